//! Throughput: how many pairs a second threads reach that each lock a resource of their own.
//!
//! The library's threads share one client. The floor's threads have a connection set each, as a
//! pool would give them. [Strict rounds](crate::strict) share one connection set as the library
//! does, with prebuilt bytes. The [limit](crate::limit) has as many pairs in flight as there are
//! threads, on one thread on which no other waits. Few threads could also have a client of the
//! library each: what sharing one brings or costs.

use crate::comparison::{Spread, in_turns};
use crate::library;
use crate::limit::Limit;
use crate::servers::{DISTURBANCES, Disturbance, Servers};
use crate::setting::Setting;
use crate::table::{Row, Rows};
use crate::workers::{
    Work, contest, floors, lockers, measured, number_of_threads, pairs, strict_rounds, workers,
};

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

fn with(setting: &Setting, servers: &Servers, threads: usize, bound: Option<f64>) -> Vec<Row> {
    let addresses = servers.addresses(NODES);
    let time = setting.turn_time();
    let client = library::client(&addresses);
    let mut limit = Limit::connect(&addresses, threads);
    let mut contenders = vec![
        floors(threads, &addresses, "throughput/floor"),
        lockers(threads, &client, "throughput/library"),
        strict_rounds(threads, &addresses),
    ];
    if (2..=MOST_CLIENTS).contains(&threads) {
        contenders.push(workers(threads, |thread| {
            let client = library::client(&addresses);
            let mutex = library::mutex(&client, &format!("throughput/clients/{thread}"));
            move || library::pair(&mutex)
        }));
    }
    let rounds = in_turns(
        setting.turns(),
        contenders.len() + 1,
        |index| match contenders.get_mut(index) {
            Some(workers) => pairs(workers, time),
            None => measured(|| limit.run(time)),
        },
    );
    let [floor, library, strict, clients @ .., limit] = &rounds[..] else {
        unreachable!("there is one for each contender")
    };

    let title = format!("{}: ", number_of_threads(threads));
    let rows = Rows::new(title, library, ("floor", floor));
    let of_strict = |figure: fn(&Work) -> f64| Spread::over(strict, figure).median;
    let rate = rows.row("pairs/s", "", Work::rate);
    let processor = rows
        .row("client CPU a pair", "µs", Work::processor_micros)
        .note(format!(
            "strict rounds {:.1}",
            of_strict(Work::processor_micros)
        ));
    let reached = Spread::ratio(limit, floor, Work::rate).median;
    let mut all = vec![
        match bound {
            Some(bound) => rate.ratio_at_least(bound),
            None => rate,
        },
        rows.about(strict)
            .row("pairs/s of strict rounds", "", Work::rate),
        rows.against("pipelined limit", limit)
            .row("pairs/s", "", Work::rate)
            .note(format!("the limit is {reached:.1} × the floor")),
        match threads {
            64 => processor.ratio_at_most(0.15),
            _ => processor,
        },
    ];
    for clients in clients {
        let row = rows
            .against("a client per thread", clients)
            .row("pairs/s", "", Work::rate);
        all.push(match threads {
            ..4 => row.ratio_at_least(1.0),
            _ => row,
        });
    }
    if SWITCHES_OF.contains(&threads) {
        let row = rows.row("context switches a pair", "", Work::switches_each);
        let strict = of_strict(Work::switches_each);
        all.push(row.note(format!("strict rounds {strict:.1}")));
    }
    if threads == PERCENTILES_OF {
        let row = rows.row("pair p99", "µs", Work::p99).ratio_at_most(1.3);
        let strict = of_strict(Work::p99);
        all.push(row.note(format!("strict rounds {strict:.0}")));
    }
    all
}

/// With nodes that hang or are gone: against the floor on the same nodes, and the library on
/// healthy ones.
fn disturbed(setting: &Setting, healthy: &Servers, (name, count, befall): Disturbance) -> Vec<Row> {
    let mut servers = Servers::start(setting, NODES);
    let addresses = servers.addresses(NODES);
    let library = lockers(
        DISTURBED,
        &library::client(&addresses),
        "throughput/disturbed",
    );
    let undisturbed = lockers(
        DISTURBED,
        &library::client(&healthy.addresses(NODES)),
        "throughput/disturbed",
    );
    let floor = floors(DISTURBED, &addresses, "throughput/floor");
    let mut contenders = [floor, library, undisturbed];
    pairs(&mut contenders[1], setting.turn_time());
    servers.processes[1..=count].iter_mut().for_each(befall);
    // The turn for warming up lasts longer than the library takes to notice.
    let [floor, library, undisturbed] = &contest(setting.turns(), setting.turn_time(), contenders);
    let title = format!("{DISTURBED} threads, {name}: ");
    let rows = Rows::new(title, library, ("floor", floor));
    let to_healthy = rows.against("healthy", undisturbed);
    vec![
        rows.row("pairs/s", "", Work::rate),
        to_healthy
            .row("pairs/s", "", Work::rate)
            .ratio_at_least(0.9),
        rows.row("pair p50", "µs", Work::p50),
        to_healthy
            .row("pair p50", "µs", Work::p50)
            .ratio_at_most(1.1),
    ]
}
