//! 64 threads, 10 locks, five real servers that hang and are killed, cancellations and limits at
//! random: when all has ended, the counters equal what the threads wrote down, to the last call.
//!
//! `QUORUMLOCK_BOOKS_SECONDS` makes the run longer, `QUORUMLOCK_BOOKS_SEED` repeats its choices, if
//! not their timing.

use super::shown;
use crate::clients::{SOON, calling};
use crate::storm::{Random, number, seed};
use crate::support::server::Server;
use quorumlock::event::Event;
use quorumlock::{
    CancelHandle, Counters, Error, ErrorKind, ExtendOutcome, MutexGuard, Redlock, ReleaseOutcome,
    Wait,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: u64 = 64;
const LOCKS: u64 = 10;
const CLASSES: u64 = 3;
const NODE_TIMEOUT: Duration = Duration::from_millis(50);

/// Numbers by series and labels, as a text.
type Book = BTreeMap<String, u64>;

/// The book of one thread, or of all.
#[derive(Default)]
struct Books(Book);

impl Books {
    fn note(&mut self, entry: String) {
        *self.0.entry(entry).or_default() += 1;
    }

    fn add(&mut self, other: Books) {
        for (entry, number) in other.0 {
            *self.0.entry(entry).or_default() += number;
        }
    }
}

/// Counts the losses that are reported, and those of events that the queue has dropped.
#[derive(Default)]
struct Losses(Mutex<Books>);

impl Losses {
    fn event(&self, event: &Event) {
        let mut books = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Lost { name, .. } => books.note(format!("lost {}", class(name))),
            Event::AttemptLost { name, .. } => books.note(format!("attempts lost {}", class(name))),
            Event::Waiting { name, .. } => books.note(format!("waits {}", class(name))),
            Event::EventsDropped { .. } => books.note("events dropped".into()),
            _ => {}
        }
    }
}

fn class(name: &str) -> &str {
    name.split('/').next().unwrap().split_at(2).0
}

/// What one thread does until the time is up.
fn work(client: &Redlock, seed: u64, until: Instant, cancels: &Mutex<Vec<CancelHandle>>) -> Books {
    let mut random = Random::from_seed(seed);
    let mut books = Books::default();
    while Instant::now() < until {
        let lock = random.below(LOCKS);
        let name = format!("c{}/{lock}", lock % CLASSES);
        let mutex = client
            .mutex(&name)
            .ttl(Duration::from_millis(30) + random.millis(1500));
        let class = class(&name);
        let (what, result) = match random.below(5) {
            0 => ("held", mutex.try_lock()),
            1 => ("timed_out", mutex.lock_timeout(random.millis(150))),
            2 => (
                "failed",
                mutex.ttl(Duration::from_secs(100)).lock().map(Some),
            ),
            _ => {
                let cancel = CancelHandle::new();
                cancels.lock().unwrap().push(cancel.clone());
                let wait = Wait::timeout(random.millis(400)).cancelled_by(&cancel);
                ("timed_out", mutex.lock_with(&wait))
            }
        };
        match result {
            Ok(Some(guard)) => {
                books.note(format!("acquired {class}"));
                hold(client, guard, class, &mut random, &mut books);
            }
            Ok(None) => books.note(format!("{what} {class}")),
            // The machine has held the thread up: it is acquired, lost and dropped.
            Err(error)
                if error
                    .to_string()
                    .contains("its lease ended before the call returned") =>
            {
                books.note(format!("acquired {class}"));
                books.note(format!("dropped {class}"));
            }
            Err(error) => books.note(format!("{} {class}", reason(&error))),
        }
        // The threads are to be neither always in a call nor in step.
        thread::sleep(random.up_to(Duration::from_millis(10)));
    }
    books
}

fn reason(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::Unavailable if error.to_string().contains("too short") => "too_late",
        ErrorKind::Unavailable => "unavailable",
        _ => "failed",
    }
}

/// Extends it or not, hands it over or not, and lets it go in one of the ways.
fn hold(
    client: &Redlock,
    mut guard: MutexGuard,
    class: &str,
    random: &mut Random,
    books: &mut Books,
) {
    thread::sleep(random.up_to(Duration::from_millis(15)));
    if random.below(3) == 0 {
        // Less than that remains, so the nodes are asked.
        let ttl = guard.remaining() + Duration::from_millis(30) + random.millis(500);
        let result = match guard.extend(ttl).unwrap() {
            ExtendOutcome::Extended => "extended",
            ExtendOutcome::Failed(_) => "failed",
            ExtendOutcome::Lost => "lost",
            other => panic!("{other}"),
        };
        books.note(format!("extension {result} {class}"));
    }
    if random.below(4) == 0 {
        match client.attach(guard.detach().unwrap()) {
            Ok(attached) => guard = attached,
            // Its time is up: nothing is released.
            Err(error) => return assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}"),
        }
    }
    if random.below(2) == 0 {
        books.note(format!("dropped {class}"));
        return drop(guard);
    }
    let outcome = match guard.unlock() {
        Ok(ReleaseOutcome::Released) => "released",
        Ok(ReleaseOutcome::Expired) => "expired",
        Ok(other) => panic!("{other}"),
        Err(_) => "unconfirmed",
    };
    books.note(format!("{outcome} {class}"));
}

/// Hangs two servers and kills a third, again and again, for a while each; sometimes all at once.
fn disturb(servers: &mut [Server], random: &mut Random, until: Instant) {
    while Instant::now() < until {
        let first = random.below(5) as usize;
        let hung = [first, (first + 1) % 5];
        hung.iter().for_each(|&node| servers[node].pause().unwrap());
        thread::sleep(random.millis(400));
        let killed = (first + 2) % 5;
        let is_killed = random.below(2) == 0;
        if is_killed {
            servers[killed].kill();
            thread::sleep(random.millis(300));
        }
        hung.iter()
            .for_each(|&node| servers[node].resume().unwrap());
        if is_killed {
            servers[killed].restart().unwrap();
        }
        thread::sleep(random.millis(600));
    }
}

#[test]
#[allow(clippy::print_stdout)]
fn the_counters_equal_the_books_of_the_program() {
    let length = Duration::from_secs(number("QUORUMLOCK_BOOKS_SECONDS").unwrap_or(6));
    let seed = seed("QUORUMLOCK_BOOKS_SEED");
    let mut servers = Server::several(5).unwrap();
    let counters = Counters::by_prefix('/');
    let losses = Arc::new(Losses::default());
    let client = Redlock::builder()
        .nodes(servers.iter().map(Server::url))
        .node_timeout(NODE_TIMEOUT);
    let client = client
        .ttl(Duration::from_secs(3))
        .max_ttl(Duration::from_secs(3))
        .unavailable_after(Duration::from_millis(300));
    let client = client.restart_policy(quorumlock::RestartPolicy::Off);
    let client = client
        .counters(&counters)
        .observer(calling(&losses, Losses::event))
        .build()
        .unwrap();
    let begun = Instant::now();
    let cancels = Mutex::new(Vec::<CancelHandle>::new());
    let until = begun + length;
    let is_over = AtomicBool::new(false);
    let mut all = Books::default();
    thread::scope(|scope| {
        let client = &client;
        let cancels = &cancels;
        let is_over = &is_over;
        let counters = &counters;
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                scope.spawn(move || work(client, seed.wrapping_mul(1000) + number, until, cancels))
            })
            .collect();
        scope.spawn(move || {
            let mut random = Random::from_seed(seed + 1);
            while !is_over.load(Ordering::Relaxed) {
                thread::sleep(random.millis(20));
                let cancelled = cancels.lock().unwrap().pop();
                cancelled.iter().for_each(CancelHandle::cancel);
            }
        });
        // Each text is whole while all counts change, and no count goes back.
        scope.spawn(move || {
            let mut before = 0.0;
            while !is_over.load(Ordering::Relaxed) {
                let calls = shown(counters).sum("quorumlock_wait_seconds_count", &[]);
                assert!(calls >= before, "{calls} calls, and {before} before");
                before = calls;
                thread::sleep(Duration::from_millis(100));
            }
        });
        disturb(&mut servers, &mut Random::from_seed(seed + 2), until);
        threads
            .into_iter()
            .for_each(|thread| all.add(thread.join().unwrap()));
        is_over.store(true, Ordering::Relaxed);
    });
    let _ = client.flush_releases(SOON);
    drop(client);
    let shown = shown(&counters);
    let mut findings = Vec::new();
    let mut compare = |what: String, counted: f64, booked: u64| {
        if counted != booked as f64 {
            findings.push(format!("{what}: {counted} counted, {booked} in the books"));
        }
    };
    let losses = losses.0.lock().unwrap();
    let booked = |entry: String| all.0.get(&entry).copied().unwrap_or(0);
    let reported = |entry: String| losses.0.get(&entry).copied().unwrap_or(0);
    for class in ["c0", "c1", "c2"] {
        let count = |series: &str, labels: &[(&str, &str)]| {
            shown.sum(
                &format!("quorumlock_{series}"),
                &[&[("class", class)], labels].concat(),
            )
        };
        let outcomes = [
            "acquired",
            "cancelled",
            "failed",
            "held",
            "timed_out",
            "too_late",
            "unavailable",
            "shut_down",
        ];
        for outcome in outcomes {
            let entry = format!("{outcome} {class}");
            compare(
                entry.clone(),
                count("wait_seconds_count", &[("outcome", outcome)]),
                booked(entry),
            );
        }
        for result in ["extended", "failed", "lost"] {
            let entry = format!("extension {result} {class}");
            let labels = [("result", result), ("automatic", "false")];
            compare(
                entry.clone(),
                count("extensions_total", &labels),
                booked(entry),
            );
        }
        let mut released = 0;
        for outcome in ["released", "expired", "unconfirmed"] {
            let entry = format!("{outcome} {class}");
            let labels = [("outcome", outcome), ("dropped", "false")];
            compare(
                entry.clone(),
                count("releases_total", &labels),
                booked(entry.clone()),
            );
            released += booked(entry);
        }
        let dropped = booked(format!("dropped {class}"));
        compare(
            format!("dropped {class}"),
            count("releases_total", &[("dropped", "true")]),
            dropped,
        );
        compare(
            format!("holds {class}"),
            count("hold_seconds_count", &[]),
            released + dropped,
        );
        compare(
            format!("won {class}"),
            count("attempts_total", &[("result", "won")]),
            booked(format!("acquired {class}")),
        );
        let all_attempts =
            count("attempts_total", &[]) - count("attempts_total", &[("result", "won")]);
        compare(
            format!("attempts lost {class}"),
            all_attempts,
            reported(format!("attempts lost {class}")),
        );
        compare(format!("waiting {class}"), count("waiting", &[]), 0);
        compare(format!("held {class}"), count("held", &[]), 0);
        let lost = count("lost_total", &[]);
        // The losses that the last releases found are counted, and not reported any more.
        if lost < reported(format!("lost {class}")) as f64 {
            compare(
                format!("lost {class}"),
                lost,
                reported(format!("lost {class}")),
            );
        }
    }
    println!(
        "{:?} in {:.1} s; {:?}",
        all.0,
        begun.elapsed().as_secs_f64(),
        losses.0
    );
    assert!(findings.is_empty(), "seed {seed}: {findings:#?}");
    for entry in [
        "acquired",
        "cancelled",
        "held",
        "timed_out",
        "unavailable",
        "released",
        "dropped",
    ] {
        assert!(
            booked(format!("{entry} c0")) > 0,
            "nothing was {entry}: {:?}",
            all.0
        );
    }
}
