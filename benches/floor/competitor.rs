//! A competitor, as a child of this program: runs the workload of its arguments and records when it
//! had the lock.

use crate::bare_handoff::Bare;
use crate::clock::now;
use crate::library;
use crate::polling::Polling;
use quorumlock::event::Event;
use quorumlock::kind::Kind;
use quorumlock::{Mutex, Redlock, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// The first argument of a competitor.
pub(crate) const MARK: &str = "--competitor";

/// What all of them want.
const RESOURCE: &str = "contention";
/// The second key of those that want a set.
const SECOND: &str = "contention/second";
/// How many competitors have a permit at once.
pub(crate) const PERMITS: usize = 3;
/// Between two starts at the same instant, for each competitor: all of them have had the lock by
/// then.
const PERIOD: Duration = Duration::from_millis(20);

/// How a competitor takes the lock, and learns that it is free.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Means {
    WakeUps,
    Delay,
    Bare,
    Poll,
    Fair,
    Fenced,
    FencedFair,
    Read,
    Write,
    Set,
    /// One of [`PERMITS`].
    Permit,
    /// A lock that no other competitor wants.
    Own,
}

impl Means {
    const ALL: [(&'static str, Means); 12] = [
        ("plain", Means::WakeUps),
        ("delay", Means::Delay),
        ("bare", Means::Bare),
        ("poll", Means::Poll),
        ("fair", Means::Fair),
        ("fenced", Means::Fenced),
        ("fenced fair", Means::FencedFair),
        ("read", Means::Read),
        ("write", Means::Write),
        ("set", Means::Set),
        ("permit", Means::Permit),
        ("own", Means::Own),
    ];

    pub(crate) fn name(self) -> &'static str {
        Means::ALL
            .iter()
            .find(|(_, means)| *means == self)
            .map_or("", |(name, _)| name)
    }

    pub(crate) fn named(name: &str) -> Means {
        Means::ALL
            .iter()
            .find(|(known, _)| *known == name)
            .expect("a means")
            .1
    }
}

/// Runs the order in the rest of the command line.
pub(crate) fn run(order: &[&str]) {
    let [
        kind,
        length,
        competitors,
        index,
        means,
        held,
        ttl,
        threads,
        addresses @ ..,
    ] = order
    else {
        panic!("--competitor kind length competitors index means held ttl threads …")
    };
    let period = PERIOD * competitors.parse().expect("a number");
    let held = Duration::from_micros(held.parse().expect("a number"));
    let length: u64 = length.parse().expect("a number");
    let addresses: Vec<SocketAddr> = addresses
        .iter()
        .map(|text| text.parse().expect("an address"))
        .collect();
    let threads: usize = threads.parse().expect("a number");
    let ttl = Duration::from_millis(ttl.parse().expect("a number"));
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
                    report(hold([wanted, now()], held, || bare.release(), attempts));
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
                    report(hold([wanted, now()], held, || polling.release(), attempts));
                }
            }
        }
        means => {
            let competitor = Competitor::new(&addresses, means, ttl);
            let start = wait_for_start();
            if *kind == "rounds" {
                for round in 0..length {
                    let at = start + round * period.as_nanos() as u64;
                    wait_until(at);
                    competitor.take_turn(at, held);
                }
            } else {
                let end = start + length * 1_000_000;
                let compete = || {
                    while now() < end {
                        competitor.take_turn(now(), held);
                    }
                };
                thread::scope(|scope| {
                    for _ in 1..threads {
                        scope.spawn(compete);
                    }
                    compete();
                });
            }
        }
    }
}

/// At once: a competitor may be killed.
fn report([wanted, had, released, attempts]: [u64; 4]) {
    println!("{wanted} {had} {released} {attempts}");
}

/// Takes the lock, holds it for so long and releases it. Returns when it was acquired and when
/// released.
type TakeTurn = dyn Fn(Duration) -> Result<[u64; 2]> + Send + Sync;

/// A competitor that uses the library.
struct Competitor {
    turn: Box<TakeTurn>,
    /// How many attempts the last acquisition took.
    attempts: Arc<AtomicU32>,
}

impl Competitor {
    fn new(addresses: &[SocketAddr], means: Means, ttl: Duration) -> Competitor {
        let attempts = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&attempts);
        let count = move |event: &Event| {
            if let Event::Acquired { attempts, .. } = event {
                counted.store(*attempts, Ordering::Relaxed);
            }
        };
        let client = library::builder(addresses)
            .node_timeout(Duration::from_secs(1))
            .release_notifications(means != Means::Delay)
            .observer(count)
            .build()
            .expect("a client");
        // The connections are made before the measurement begins.
        drop(
            client
                .mutex(format!("contention/warm-up/{}", std::process::id()))
                .lock(),
        );
        Competitor {
            turn: turn_of(&client, means, ttl),
            attempts,
        }
    }

    fn take_turn(&self, wanted: u64, held: Duration) {
        if let Ok([had, released]) = (self.turn)(held) {
            report([
                wanted,
                had,
                released,
                self.attempts.load(Ordering::Relaxed).into(),
            ]);
        }
    }
}

fn turn_of(client: &Redlock, means: Means, ttl: Duration) -> Box<TakeTurn> {
    let mutex = client.mutex(RESOURCE).ttl(ttl);
    match means {
        Means::Fair => turns(mutex.fair()),
        Means::Fenced => turns(mutex.fenced()),
        Means::FencedFair => turns(mutex.fenced().fair()),
        Means::Read => turns(client.read_mutex(RESOURCE).ttl(ttl)),
        Means::Write => turns(client.write_mutex(RESOURCE).ttl(ttl)),
        Means::Set => turns(client.mutex_set([RESOURCE, SECOND]).ttl(ttl)),
        Means::Permit => turns(client.semaphore(RESOURCE, PERMITS).ttl(ttl)),
        Means::Own => {
            let name = format!("contention/own/{}", std::process::id());
            turns(client.mutex(name).ttl(ttl))
        }
        _ => turns(mutex),
    }
}

fn turns<K: Kind>(mutex: Mutex<K>) -> Box<TakeTurn> {
    Box::new(move |held| {
        let guard = mutex.lock()?;
        let had = now();
        let [.., released, _] = hold([0, had], held, || drop(guard.unlock()), 0);
        Ok([had, released])
    })
}

/// Holds the lock for so long. Returns the times of each step.
fn hold(
    [wanted, had]: [u64; 2],
    held: Duration,
    release: impl FnOnce(),
    attempts: u32,
) -> [u64; 4] {
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
    std::io::stdin()
        .read_line(&mut line)
        .expect("when to begin");
    let start = line.trim().parse().expect("a time");
    wait_until(start);
    start
}

fn wait_until(at: u64) {
    thread::sleep(Duration::from_nanos(at.saturating_sub(now())));
}
