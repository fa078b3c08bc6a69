//! Throughput: how many pairs a second threads reach that each lock a resource of their own.
//!
//! The library's threads share one client. The floor's threads have a connection set each, as a pool would give them.
//! [Strict rounds](crate::strict) share one connection set as the library does, with prebuilt bytes. The
//! [limit](crate::limit) has as many pairs in flight as there are threads, on one thread on which no other waits. Few
//! threads could also have a client of the library each: what sharing one brings or costs.

use crate::Setting;
use crate::comparison::{Pair, Spread, Times, take_turns};
use crate::floor::Floor;
use crate::library;
use crate::limit::Limit;
use crate::servers::Servers;
use crate::strict::Strict;
use crate::table::{Goal, Row};
use crate::workers::{Work, measured, together};
use quorumlock::Mutex;
use std::time::Duration;

const NODES: usize = 5;

/// Threads, and the least ratio of pairs a second that is wanted.
const THREADS: [(usize, Option<f64>); 7] =
    [(1, None), (2, Some(1.0)), (3, Some(1.0)), (4, Some(1.2)), (8, None), (16, Some(3.0)), (64, Some(5.0))];
/// From two threads up to so many, a client for each thread is measured as well.
const MOST_CLIENTS: usize = 8;
/// With so many threads, the distribution of a pair's times is shown.
const PERCENTILES_OF: usize = 4;
/// With so many threads, context switches are shown.
const SWITCHES_OF: [usize; 2] = [4, 64];

/// One thread of a contender.
struct Worker<L> {
    lock: L,
    times: Times,
}

/// What a contender did in one round.
#[derive(Default)]
struct Round {
    work: Work,
    times: Times,
}

impl Round {
    fn rate(&self) -> f64 {
        self.work.rate()
    }

    fn processor_micros(&self) -> f64 {
        self.work.processor_micros()
    }

    fn switches_each(&self) -> f64 {
        self.work.switches_each()
    }

    fn p99(&self) -> f64 {
        self.times.quantile(0.99)
    }
}

impl Extend<Round> for Round {
    fn extend<I: IntoIterator<Item = Round>>(&mut self, more: I) {
        for round in more {
            self.work.extend([round.work]);
            self.times.extend(round.times);
        }
    }
}

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, NODES);
    THREADS.into_iter().flat_map(|(threads, bound)| with(setting, &servers, threads, bound)).collect()
}

/// The rounds of each contender.
struct Contenders {
    threads: usize,
    floor: Vec<Round>,
    library: Vec<Round>,
    limit: Vec<Round>,
    strict: Vec<Round>,
    /// Empty where it is not measured.
    clients: Vec<Round>,
}

fn with(setting: &Setting, servers: &Servers, threads: usize, bound: Option<f64>) -> Vec<Row> {
    let (addresses, dialect) = (servers.addresses(NODES), servers.dialect());
    let time = Duration::from_millis(setting.choose(300, 50));
    let client = library::client(&addresses);
    let name = |kind: &str, thread: usize| format!("throughput/{kind}/{thread}");
    let mut library = workers(threads, |thread| library::mutex(&client, &name("library", thread)));
    let mut floors = workers(threads, |thread| Floor::connect(&addresses, dialect, &name("floor", thread), 1));
    let mut strict = Strict::connect(&addresses, dialect, threads);
    let mut strict = workers(threads, |_| strict.pop().expect("one for each thread"));
    let of_clients = if (2..=MOST_CLIENTS).contains(&threads) { threads } else { 0 };
    let mut clients =
        workers(of_clients, |thread| library::mutex(&library::client(&addresses), &name("clients", thread)));
    let mut limit = Limit::connect(&addresses, dialect, threads);

    let contenders: &mut [&mut dyn FnMut() -> Round] = &mut [
        &mut || pairs(&mut floors, time, Floor::pair),
        &mut || pairs(&mut library, time, |mutex| library::pair(mutex)),
        &mut || Round { work: measured(|| limit.run(time)), times: Times::default() },
        &mut || pairs(&mut strict, time, Strict::pair),
        &mut || pairs(&mut clients, time, |mutex: &mut Mutex| library::pair(mutex)),
    ];
    let contenders = if of_clients > 0 { contenders } else { &mut contenders[..4] };
    let mut rounds = take_turns(setting.choose((5, 1), (2, 1)), contenders).into_iter();
    let mut next = || rounds.next().unwrap_or_default();
    let (floor, library, limit, strict, clients) = (next(), next(), next(), next(), next());
    rows(&Contenders { threads, floor, library, limit, strict, clients }, bound)
}

fn rows(all: &Contenders, bound: Option<f64>) -> Vec<Row> {
    let Contenders { threads, floor, library, limit, strict, clients } = all;
    let against = ("floor", &floor[..]);
    let name = |figure: &str| format!("{threads} {}: {figure}", if *threads == 1 { "thread" } else { "threads" });
    let of_strict = |figure: fn(&Round) -> f64| Spread::over(strict, figure).median;

    let mut rate = Row::ratio(name("pairs/s"), "", library, against, Round::rate);
    if let Some(bound) = bound {
        rate = rate.goal(Goal::RatioAtLeast(bound));
    }
    let processor = Row::ratio(name("client CPU a pair"), "µs", library, against, Round::processor_micros)
        .note(format!("strict rounds {:.1}", of_strict(Round::processor_micros)));
    let reached = Spread::ratio(limit, floor, Round::rate);
    let of_limit = Row::ratio(name("pairs/s"), "", library, ("pipelined limit", limit), Round::rate);
    let mut rows = vec![
        rate,
        Row::ratio(name("pairs/s of strict rounds"), "", strict, against, Round::rate),
        of_limit.note(format!("the limit is {:.1} × the floor", reached.median)),
        if *threads == 64 { processor.goal(Goal::RatioAtMost(0.15)) } else { processor },
    ];
    if !clients.is_empty() {
        let row = Row::ratio(name("pairs/s"), "", library, ("a client per thread", clients), Round::rate);
        rows.push(if *threads < 4 { row.goal(Goal::RatioAtLeast(1.0)) } else { row });
    }
    if SWITCHES_OF.contains(threads) {
        let row = Row::ratio(name("context switches a pair"), "", library, against, Round::switches_each);
        rows.push(row.note(format!("strict rounds {:.1}", of_strict(Round::switches_each))));
    }
    if *threads == PERCENTILES_OF {
        let row = Row::ratio(name("pair p99"), "µs", library, against, Round::p99).goal(Goal::RatioAtMost(1.3));
        rows.push(row.note(format!("strict rounds {:.0}", of_strict(Round::p99))));
    }
    rows
}

fn workers<L>(threads: usize, lock: impl FnMut(usize) -> L) -> Vec<Worker<L>> {
    (0..threads).map(lock).map(|lock| Worker { lock, times: Times::default() }).collect()
}

/// Gives each worker a thread, and lets all repeat the pair until the time is up.
fn pairs<L: Send>(workers: &mut [Worker<L>], time: Duration, pair: impl Fn(&mut L) -> Pair + Sync) -> Round {
    let work = together(workers, time, |worker| {
        let pair = pair(&mut worker.lock);
        worker.times.push(pair.lock + pair.unlock);
    });
    let mut round = Round { work, times: Times::default() };
    workers.iter_mut().for_each(|worker| round.times.extend(std::mem::take(&mut worker.times)));
    round
}
