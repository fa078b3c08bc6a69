//! A competitor, as a child of this program: runs the workload of its arguments and records when it had the lock.

use crate::bare_handoff::Bare;
use crate::library;
use crate::polling::Polling;
use quorumlock::event::Event;
use quorumlock::{Mutex, Observer, Redlock};
use rustix::time::{ClockId, clock_gettime};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// The first argument of a competitor.
pub(crate) const MARK: &str = "--competitor";

/// What all of them want.
const RESOURCE: &str = "contention";
/// Between two starts at the same instant, for each competitor: all of them have had the lock by then.
const PERIOD: Duration = Duration::from_millis(20);

/// How a competitor learns that the lock is free.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Means {
    WakeUps,
    Delay,
    Bare,
    Fair,
    Poll,
}

impl Means {
    const ALL: [(&'static str, Means); 5] = [
        ("wake-ups", Means::WakeUps),
        ("delay", Means::Delay),
        ("bare", Means::Bare),
        ("fair", Means::Fair),
        ("poll", Means::Poll),
    ];

    pub(crate) fn name(self) -> &'static str {
        Means::ALL.iter().find(|(_, means)| *means == self).map_or("", |(name, _)| name)
    }

    pub(crate) fn named(name: &str) -> Means {
        Means::ALL.iter().find(|(known, _)| *known == name).expect("a means").1
    }
}

/// Does what the rest of the command line says.
pub(crate) fn run(order: &[&str]) {
    let [kind, length, competitors, index, means, held, threads, addresses @ ..] = order else {
        panic!("--competitor kind length competitors index means held threads …")
    };
    let period = PERIOD * competitors.parse().expect("a number");
    let held = Duration::from_micros(held.parse().expect("a number"));
    let length: u64 = length.parse().expect("a number");
    let addresses: Vec<SocketAddr> = addresses.iter().map(|text| text.parse().expect("an address")).collect();
    let threads: usize = threads.parse().expect("a number");
    let mut turns = Vec::new();
    match Means::named(means) {
        Means::Bare => {
            let index: u8 = index.parse().expect("a number");
            let mut bare = Bare::connect(&addresses, "contention/bare", index);
            let end = wait_for_start() + length * 1_000_000;
            let mut is_next = index == 0;
            while now() < end {
                let wanted = now();
                if std::mem::take(&mut is_next) || bare.listen() {
                    let attempts = bare.take();
                    turns.push(hold([wanted, now()], held, || bare.release(), attempts));
                }
            }
        }
        Means::Poll => {
            let mut polling = Polling::connect(&addresses, RESOURCE);
            let end = wait_for_start() + length * 1_000_000;
            while now() < end {
                let wanted = now();
                let attempts = polling.take(end);
                if attempts > 0 {
                    turns.push(hold([wanted, now()], held, || polling.release(), attempts));
                }
            }
        }
        means => {
            let competitor = Competitor::new(&addresses, means);
            let start = wait_for_start();
            if *kind == "rounds" {
                for round in 0..length {
                    let at = start + round * period.as_nanos() as u64;
                    wait_until(at);
                    turns.extend(competitor.turn(at, held));
                }
            } else {
                let end = start + length * 1_000_000;
                let compete = || {
                    let turns = std::iter::from_fn(|| (now() < end).then(|| competitor.turn(now(), held)));
                    turns.flatten().collect::<Vec<_>>()
                };
                thread::scope(|scope| {
                    let others: Vec<_> = (1..threads).map(|_| scope.spawn(compete)).collect();
                    turns.extend(compete());
                    others.into_iter().for_each(|other| turns.extend(other.join().expect("its turns")));
                });
            }
        }
    }
    let mut text = String::new();
    for turn in turns {
        text += &format!("{} {} {} {}\n", turn[0], turn[1], turn[2], turn[3]);
    }
    print!("{text}");
}

/// A competitor that uses the library.
struct Competitor {
    mutex: Mutex,
    attempts: Arc<Attempts>,
}

impl Competitor {
    fn new(addresses: &[SocketAddr], means: Means) -> Competitor {
        let attempts = Arc::new(Attempts::default());
        let client = Redlock::builder()
            .nodes(addresses.iter().map(|address| format!("redis://{address}")))
            .node_timeout(Duration::from_secs(1))
            .release_notifications(means != Means::Delay)
            .observer(Arc::clone(&attempts))
            .build()
            .expect("a client");
        // The connections are made before the measurement begins.
        drop(client.mutex(format!("contention/warm-up/{}", std::process::id())).lock());
        let mutex = library::mutex(&client, RESOURCE);
        Competitor { mutex: if means == Means::Fair { mutex.fair() } else { mutex }, attempts }
    }

    fn turn(&self, wanted: u64, held: Duration) -> Option<[u64; 4]> {
        let guard = self.mutex.lock().ok()?;
        let had = now();
        let attempts = self.attempts.0.load(Ordering::Relaxed);
        Some(hold([wanted, had], held, || drop(guard.unlock()), attempts))
    }
}

/// Counts the attempts of the last acquisition.
#[derive(Default)]
struct Attempts(AtomicU32);

impl Observer for Attempts {
    fn event(&self, event: &Event) {
        if let Event::Acquired(event) = event {
            self.0.store(event.attempts(), Ordering::Relaxed);
        }
    }
}

/// Holds the lock for so long. Returns the times of each step.
fn hold([wanted, had]: [u64; 2], held: Duration, release: impl FnOnce(), attempts: u32) -> [u64; 4] {
    if !held.is_zero() {
        thread::sleep(held);
    }
    let released = now();
    release();
    [wanted, had, released, attempts.into()]
}

/// Reports that it is ready, reads the start time and waits for it.
fn wait_for_start() -> u64 {
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("when to begin");
    let start = line.trim().parse().expect("a time");
    wait_until(start);
    start
}

fn wait_until(at: u64) {
    thread::sleep(Duration::from_nanos(at.saturating_sub(now())));
}

/// The clock that all processes share, in nanoseconds.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
