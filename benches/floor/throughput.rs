//! Throughput: how many pairs a second threads reach that each lock a resource of their own.
//!
//! The library's threads share one client. The floor's threads have a connection set each, as a
//! pool would give them. [Strict rounds](crate::strict) share one connection set as the library
//! does, with prebuilt bytes. The [limit](crate::limit) has as many pairs in flight as there are
//! threads, on one thread on which no other waits. Few threads could also have a client of the
//! library each: what sharing one brings or costs.

use crate::Setting;
use crate::comparison::{Spread, take_all_turns, take_turns};
use crate::floor::Floor;
use crate::library;
use crate::limit::Limit;
use crate::servers::{DISTURBANCES, Disturbance, Servers};
use crate::strict::Strict;
use crate::table::{Goal, Row};
use crate::workers::{Work, measured, pairs, workers};
use quorumlock::Mutex;
use std::time::Duration;

const NODES: usize = 5;

/// Threads, and the least ratio of pairs a second that is wanted.
const THREADS: [(usize, Option<f64>); 7] = [
    (1, None),
    (2, Some(1.0)),
    (3, Some(1.0)),
    (4, Some(1.2)),
    (8, None),
    (16, Some(3.0)),
    (64, Some(5.0)),
];
/// From two threads up to so many, a client for each thread is measured as well.
const MOST_CLIENTS: usize = 8;
/// With so many threads, the distribution of a pair's times is shown.
const PERCENTILES_OF: usize = 4;
/// With so many threads, nodes hang or are gone.
const DISTURBED: usize = 16;
/// With so many threads, context switches are shown.
const SWITCHES_OF: [usize; 2] = [4, 64];

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, NODES);
    let healthy = THREADS
        .into_iter()
        .flat_map(|(threads, bound)| with(setting, &servers, threads, bound));
    let one = DISTURBANCES.into_iter().filter(|(_, count, _)| *count == 1);
    healthy
        .chain(one.flat_map(|disturbance| disturbed(setting, &servers, disturbance)))
        .collect()
}

/// The rounds of each contender.
struct Contenders {
    threads: usize,
    floor: Vec<Work>,
    library: Vec<Work>,
    limit: Vec<Work>,
    strict: Vec<Work>,
    /// Empty where it is not measured.
    clients: Vec<Work>,
}

fn with(setting: &Setting, servers: &Servers, threads: usize, bound: Option<f64>) -> Vec<Row> {
    let addresses = servers.addresses(NODES);
    let time = Duration::from_millis(setting.choose(300, 50));
    let client = library::client(&addresses);
    let name = |kind: &str, thread: usize| format!("throughput/{kind}/{thread}");
    let mut library = workers(threads, |thread| {
        library::mutex(&client, &name("library", thread))
    });
    let mut floors = workers(threads, |thread| {
        Floor::connect(&addresses, &name("floor", thread), 1)
    });
    let mut strict = Strict::connect(&addresses, threads);
    let mut strict = workers(threads, |_| strict.pop().expect("one for each thread"));
    let of_clients = if (2..=MOST_CLIENTS).contains(&threads) {
        threads
    } else {
        0
    };
    let mut clients = workers(of_clients, |thread| {
        library::mutex(&library::client(&addresses), &name("clients", thread))
    });
    let mut limit = Limit::connect(&addresses, threads);

    let contenders: &mut [&mut dyn FnMut() -> Work] = &mut [
        &mut || pairs(&mut floors, time, Floor::pair),
        &mut || pairs(&mut library, time, |mutex| library::pair(mutex)),
        &mut || measured(|| limit.run(time)),
        &mut || pairs(&mut strict, time, Strict::pair),
        &mut || pairs(&mut clients, time, |mutex: &mut Mutex| library::pair(mutex)),
    ];
    let contenders = if of_clients > 0 {
        contenders
    } else {
        &mut contenders[..4]
    };
    let mut rounds = take_all_turns(setting.choose((5, 1), (2, 1)), contenders).into_iter();
    let mut next = || rounds.next().unwrap_or_default();
    let floor = next();
    let library = next();
    let limit = next();
    let strict = next();
    let clients = next();
    rows(
        &Contenders {
            threads,
            floor,
            library,
            limit,
            strict,
            clients,
        },
        bound,
    )
}

fn rows(all: &Contenders, bound: Option<f64>) -> Vec<Row> {
    let Contenders {
        threads,
        floor,
        library,
        limit,
        strict,
        clients,
    } = all;
    let against = ("floor", &floor[..]);
    let name = |figure: &str| {
        format!(
            "{threads} {}: {figure}",
            if *threads == 1 { "thread" } else { "threads" }
        )
    };
    let of_strict = |figure: fn(&Work) -> f64| Spread::over(strict, figure).median;

    let mut rate = Row::ratio(name("pairs/s"), "", library, against, Work::rate);
    if let Some(bound) = bound {
        rate = rate.goal(Goal::RatioAtLeast(bound));
    }
    let processor = Row::ratio(
        name("client CPU a pair"),
        "µs",
        library,
        against,
        Work::processor_micros,
    )
    .note(format!(
        "strict rounds {:.1}",
        of_strict(Work::processor_micros)
    ));
    let reached = Spread::ratio(limit, floor, Work::rate);
    let of_limit = Row::ratio(
        name("pairs/s"),
        "",
        library,
        ("pipelined limit", limit),
        Work::rate,
    );
    let mut rows = vec![
        rate,
        Row::ratio(
            name("pairs/s of strict rounds"),
            "",
            strict,
            against,
            Work::rate,
        ),
        of_limit.note(format!("the limit is {:.1} × the floor", reached.median)),
        if *threads == 64 {
            processor.goal(Goal::RatioAtMost(0.15))
        } else {
            processor
        },
    ];
    if !clients.is_empty() {
        let row = Row::ratio(
            name("pairs/s"),
            "",
            library,
            ("a client per thread", clients),
            Work::rate,
        );
        rows.push(if *threads < 4 {
            row.goal(Goal::RatioAtLeast(1.0))
        } else {
            row
        });
    }
    if SWITCHES_OF.contains(threads) {
        let row = Row::ratio(
            name("context switches a pair"),
            "",
            library,
            against,
            Work::switches_each,
        );
        rows.push(row.note(format!(
            "strict rounds {:.1}",
            of_strict(Work::switches_each)
        )));
    }
    if *threads == PERCENTILES_OF {
        let row = Row::ratio(name("pair p99"), "µs", library, against, Work::p99)
            .goal(Goal::RatioAtMost(1.3));
        rows.push(row.note(format!("strict rounds {:.0}", of_strict(Work::p99))));
    }
    rows
}

/// With nodes that hang or are gone: against the floor on the same nodes, and the library on
/// healthy ones.
fn disturbed(setting: &Setting, healthy: &Servers, (name, count, befall): Disturbance) -> Vec<Row> {
    let mut servers = Servers::start(setting, NODES);
    let addresses = servers.addresses(NODES);
    let time = Duration::from_millis(setting.choose(300, 50));
    let resource = |kind: &str, thread: usize| format!("throughput/{kind}/{thread}");
    let clients = [
        library::client(&addresses),
        library::client(&healthy.addresses(NODES)),
    ];
    let [mut library, mut undisturbed] = clients.each_ref().map(|client| {
        workers(DISTURBED, |thread| {
            library::mutex(client, &resource("disturbed", thread))
        })
    });
    let mut floors = workers(DISTURBED, |thread| {
        Floor::connect(&addresses, &resource("floor", thread), 1)
    });
    pairs(&mut library, time, |mutex| library::pair(mutex));
    servers.processes[1..=count].iter_mut().for_each(befall);
    // The turn for warming up lasts longer than the library takes to notice.
    let [floor, library, undisturbed] = &take_turns(
        setting.choose((5, 1), (2, 1)),
        &mut [
            &mut || pairs(&mut floors, time, Floor::pair),
            &mut || pairs(&mut library, time, |mutex| library::pair(mutex)),
            &mut || pairs(&mut undisturbed, time, |mutex| library::pair(mutex)),
        ],
    );
    let floor = ("floor", &floor[..]);
    let healthy = ("healthy", &undisturbed[..]);
    let name = |figure: &str| format!("{DISTURBED} threads, {name}: {figure}");
    vec![
        Row::ratio(name("pairs/s"), "", library, floor, Work::rate),
        Row::ratio(name("pairs/s"), "", library, healthy, Work::rate).goal(Goal::RatioAtLeast(0.9)),
        Row::ratio(name("pair p50"), "µs", library, floor, Work::p50),
        Row::ratio(name("pair p50"), "µs", library, healthy, Work::p50)
            .goal(Goal::RatioAtMost(1.1)),
    ]
}
