//! Threads that do the same thing over and over for a while, and what that took.

use crate::comparison::{Pair, Times, each_of, in_turns};
use crate::floor::Floor;
use crate::library;
use crate::strict::Strict;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use quorumlock::Redlock;
use std::net::SocketAddr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What was done in a while.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) done: f64,
    pub(crate) seconds: f64,
    /// Processor time of this process, in user and kernel mode.
    pub(crate) processor_seconds: f64,
    /// How often the scheduler took a core from a thread of this process, or a thread yielded it.
    pub(crate) switches: f64,
    /// How long each pair took, where pairs were done.
    pub(crate) times: Times,
}

impl Work {
    pub(crate) fn rate(&self) -> f64 {
        self.done / self.seconds
    }

    /// Processor time for one, in microseconds.
    pub(crate) fn processor_micros(&self) -> f64 {
        self.processor_seconds / self.done * 1e6
    }

    /// Context switches for one.
    pub(crate) fn switches_each(&self) -> f64 {
        self.switches / self.done
    }

    pub(crate) fn p50_millis(&self) -> f64 {
        self.p50() / 1000.0
    }

    pub(crate) fn p50(&self) -> f64 {
        self.times.quantile(0.5)
    }

    pub(crate) fn p99(&self) -> f64 {
        self.times.quantile(0.99)
    }
}

impl Extend<Work> for Work {
    fn extend<I: IntoIterator<Item = Work>>(&mut self, more: I) {
        for work in more {
            self.done += work.done;
            self.seconds += work.seconds;
            self.processor_seconds += work.processor_seconds;
            self.switches += work.switches;
            self.times.extend(work.times);
        }
    }
}

/// Measures what a call took that returns how much it did.
pub(crate) fn measured(call: impl FnOnce() -> u64) -> Work {
    let start = Instant::now();
    let before = Usage::now();
    let done = call() as f64;
    let seconds = start.elapsed().as_secs_f64();
    let after = Usage::now();
    Work {
        done,
        seconds,
        processor_seconds: after.processor_seconds - before.processor_seconds,
        switches: after.switches - before.switches,
        times: Times::default(),
    }
}

/// Starts a thread for each worker, and lets all repeat the task until the time is up.
pub(crate) fn together<W: Send, R>(
    workers: &mut [W],
    time: Duration,
    task: impl Fn(&mut W) -> R + Sync,
) -> Work {
    let start = Barrier::new(workers.len() + 1);
    let is_over = AtomicBool::new(false);
    let repeat = |worker: &mut W| {
        start.wait();
        let mut done = 0;
        while !is_over.load(Ordering::Relaxed) {
            task(worker);
            done += 1;
        }
        done
    };
    thread::scope(|scope| {
        let threads: Vec<_> = workers
            .iter_mut()
            .map(|worker| scope.spawn(|| repeat(worker)))
            .collect();
        start.wait();
        measured(|| {
            thread::sleep(time);
            is_over.store(true, Ordering::Relaxed);
            threads
                .into_iter()
                .map(|thread| thread.join().expect("a worker that does not fail"))
                .sum()
        })
    })
}

/// One thread of a contender: what it repeats, and how long that took.
pub(crate) struct Worker {
    pair: Box<dyn FnMut() -> Pair + Send>,
    times: Times,
}

/// A worker for each of so many threads.
pub(crate) fn workers<P: FnMut() -> Pair + Send + 'static>(
    threads: usize,
    pair: impl FnMut(usize) -> P,
) -> Vec<Worker> {
    (0..threads)
        .map(pair)
        .map(|pair| Worker {
            pair: Box::new(pair),
            times: Times::default(),
        })
        .collect()
}

/// Workers with a lock of the library each.
pub(crate) fn lockers(threads: usize, client: &Redlock, name: &str) -> Vec<Worker> {
    workers(threads, |thread| {
        let mutex = library::mutex(client, &format!("{name}/{thread}"));
        move || library::pair(&mutex)
    })
}

/// Workers with a floor each.
pub(crate) fn floors(threads: usize, addresses: &[SocketAddr], name: &str) -> Vec<Worker> {
    workers(threads, |thread| {
        let mut floor = Floor::connect(addresses, &format!("{name}/{thread}"), 1);
        move || floor.pair()
    })
}

/// Workers that share rounds.
pub(crate) fn strict_rounds(threads: usize, addresses: &[SocketAddr]) -> Vec<Worker> {
    let mut strict = Strict::connect(addresses, threads);
    workers(threads, |_| {
        let mut strict = strict.pop().expect("one for each thread");
        move || strict.pair()
    })
}

/// Starts a thread for each worker, and lets all repeat the pair until the time is up.
pub(crate) fn pairs(workers: &mut [Worker], time: Duration) -> Work {
    let mut work = together(workers, time, |worker| {
        let pair = (worker.pair)();
        worker.times.push(pair.lock + pair.unlock);
    });
    workers
        .iter_mut()
        .for_each(|worker| work.times.extend(std::mem::take(&mut worker.times)));
    work
}

/// Lets contenders take turns that are so long, each with all its workers.
pub(crate) fn contest<const N: usize>(
    turns: (usize, usize),
    time: Duration,
    mut contenders: [Vec<Worker>; N],
) -> [Vec<Work>; N] {
    each_of(in_turns(turns, N, |index| {
        pairs(&mut contenders[index], time)
    }))
}

/// `1 thread`, `2 threads`.
pub(crate) fn number_of_threads(threads: usize) -> String {
    format!(
        "{threads} {}",
        if threads == 1 { "thread" } else { "threads" }
    )
}

/// What this process has used since it began.
struct Usage {
    processor_seconds: f64,
    switches: f64,
}

impl Usage {
    fn now() -> Usage {
        let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the usage of this process");
        Usage {
            processor_seconds: (usage.user_time() + usage.system_time()).num_microseconds() as f64
                / 1e6,
            switches: (usage.voluntary_context_switches() + usage.involuntary_context_switches())
                as f64,
        }
    }
}
