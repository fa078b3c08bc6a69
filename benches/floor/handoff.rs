//! Hand-off: eight threads want one resource, and each holds it for a millisecond.
//!
//! The floor here is a retry loop, as lock libraries have one, with delays that were tuned for just
//! this load. It knows nothing of the other threads: each has its own connections.

use crate::comparison::{Spread, Times, take_turns};
use crate::floor::Floor;
use crate::library;
use crate::servers::Servers;
use crate::setting::Setting;
use crate::table::{Row, Rows};
use crate::workers::{Work, together};
use std::thread;
use std::time::{Duration, Instant};

const NODES: usize = 5;
const THREADS: usize = 8;
const HELD: Duration = Duration::from_millis(1);
/// The floor sleeps a random part of this after a lost attempt. From 1 ms to 9 ms it makes little
/// difference to the number of acquisitions; less takes more commands, and more makes longer waits.
const JITTER: Duration = Duration::from_micros(2500);

/// One thread of a contender.
struct Thread<L> {
    lock: L,
    waits: Times,
    random: u64,
}

/// What a contender did in one round.
#[derive(Default)]
struct Round {
    work: Work,
    waits: Times,
    /// Of each thread, how often it held the lock.
    held: [f64; THREADS],
    /// Commands that the servers ran, and that they were sent.
    commands: (f64, f64),
}

impl Round {
    /// How often each thread held the lock, as a part of the mean.
    fn shares(&self) -> Spread {
        Spread::of(self.held.map(|held| held * THREADS as f64 / self.work.done))
    }
}

impl Extend<Round> for Round {
    fn extend<I: IntoIterator<Item = Round>>(&mut self, more: I) {
        for round in more {
            self.work.extend([round.work]);
            self.waits.extend(round.waits);
            self.held
                .iter_mut()
                .zip(round.held)
                .for_each(|(sum, held)| *sum += held);
            self.commands.0 += round.commands.0;
            self.commands.1 += round.commands.1;
        }
    }
}

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, NODES);
    let addresses = servers.addresses(NODES);
    let client = library::client(&addresses);
    let mut library = threads(|_| library::mutex(&client, "handoff/library"));
    let mut floors = threads(|number| Floor::connect(&addresses, "handoff/floor", number as u8));

    let time = Duration::from_millis(setting.choose(500, 200));
    let release = |floor: &mut Floor, ()| {
        floor.release();
    };
    let [floor, library] = &take_turns(
        setting.choose((5, 2), (2, 1)),
        &mut [
            &mut || {
                round(&servers, &mut floors, time, |thread| {
                    hold(thread, take_by_retrying, release)
                })
            },
            &mut || {
                round(&servers, &mut library, time, |thread| {
                    hold(
                        thread,
                        |mutex, _| library::lock(mutex),
                        |_, guard| library::unlock(guard),
                    )
                })
            },
        ],
    );
    rows(library, floor)
}

fn rows(library: &[Round], floor: &[Round]) -> Vec<Row> {
    let title = "8 threads, 1 resource: ";
    let rows = Rows::new(title, library, ("retry loop", floor));
    let wait = |figure: &str, part: f64| {
        rows.row(figure, "ms", move |round| {
            round.waits.quantile(part) / 1000.0
        })
    };
    let longest =
        |rounds: &[Round]| Spread::over(rounds, |round| round.waits.quantile(1.0) / 1000.0).most;
    vec![
        rows.row("acquisitions/s", "", |round| round.work.rate())
            .ratio_at_least(1.01),
        wait("wait p50", 0.5),
        wait("wait p99", 0.99),
        wait("longest wait of a round", 1.0).value_at_most(20.0),
        Row::value(
            format!("{title}longest wait of all rounds"),
            "ms",
            longest(library),
        )
        .against("retry loop", longest(floor)),
        rows.row("least share of a thread, of the mean", "", |round| {
            round.shares().least
        })
        .value_at_least(0.9),
        rows.row("greatest share of a thread, of the mean", "", |round| {
            round.shares().most
        }),
        rows.row("commands run an acquisition", "", |round| {
            round.commands.0 / round.work.done
        })
        .value_at_most(26.0)
        .note("those of scripts included"),
        rows.row("commands sent an acquisition", "", |round| {
            round.commands.1 / round.work.done
        }),
    ]
}

fn threads<L>(lock: impl Fn(usize) -> L) -> Vec<Thread<L>> {
    (1..=THREADS)
        .map(|number| Thread {
            lock: lock(number),
            waits: Times::default(),
            random: number as u64,
        })
        .collect()
}

fn round<L: Send>(
    servers: &Servers,
    threads: &mut [Thread<L>],
    time: Duration,
    task: impl Fn(&mut Thread<L>) + Sync,
) -> Round {
    let before = servers.commands();
    let work = together(threads, time, task);
    let after = servers.commands();
    let mut round = Round {
        work,
        commands: (after.0 - before.0, after.1 - before.1),
        ..Round::default()
    };
    for (thread, held) in threads.iter_mut().zip(&mut round.held) {
        *held = thread.waits.count() as f64;
        round.waits.extend(std::mem::take(&mut thread.waits));
    }
    round
}

/// Waits for the lock, holds it, releases it.
fn hold<L, G>(
    thread: &mut Thread<L>,
    lock: impl FnOnce(&mut L, &mut u64) -> G,
    unlock: impl FnOnce(&mut L, G),
) {
    let start = Instant::now();
    let guard = lock(&mut thread.lock, &mut thread.random);
    thread.waits.push(start.elapsed());
    thread::sleep(HELD);
    unlock(&mut thread.lock, guard);
}

fn take_by_retrying(floor: &mut Floor, random: &mut u64) {
    while !floor.take() {
        floor.undo();
        // Xorshift: random enough for a delay.
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        thread::sleep(JITTER.mul_f64((*random >> 11) as f64 / (1_u64 << 53) as f64));
    }
}
