//! How permits pass among the threads of a program, and from one program to another.

use super::semaphore;
use crate::clients::{calls, client};
use crate::support::server::Server;
use quorumlock::CancelHandle;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PERMITS: usize = 3;
const TIME: Duration = Duration::from_millis(700);

/// How many permits so many threads of each of two clients acquire, and how often, for each of them, one asks how long
/// the slots live, and announces a release.
fn shared(servers: &[Server], threads: usize) -> ([u64; 2], [f64; 2]) {
    let commands = || ["pttl", "publish"].map(|command| calls(&servers[0], command));
    let (before, end) = (commands(), Instant::now() + TIME);
    let acquired = [client(servers), client(servers)].map(|client| {
        let acquired = AtomicU64::new(0);
        (client, acquired)
    });
    thread::scope(|scope| {
        for (client, acquired) in acquired.iter().flat_map(|each| vec![each; threads]) {
            scope.spawn(move || {
                let semaphore = semaphore(client, PERMITS);
                while Instant::now() < end {
                    semaphore.acquire().unwrap().release().unwrap();
                    acquired.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let acquired = acquired.map(|(_, acquired)| acquired.into_inner());
    let [asked, announced] = commands();
    let all = acquired.iter().sum::<u64>() as f64;
    (acquired, [(asked - before[0]) as f64 / PERMITS as f64 / all, (announced - before[1]) as f64 / all])
}

#[test]
fn a_thread_that_takes_over_the_wait_asks_nothing_that_is_known_and_both_programs_get_permits() {
    let servers = Server::several(3).unwrap();
    // On a busy machine, what was known is out of date: one of three.
    let found: Vec<_> = (0..3).map(|_| shared(&servers, PERMITS)).collect();
    let is_known = found.iter().any(|(_, [surveys, _])| *surveys < 0.32);
    let is_shared = found.iter().any(|(acquired, _)| acquired.iter().all(|one| one * 5 > acquired.iter().sum()));
    assert!(is_known && is_shared, "{found:?}");
}

#[test]
fn a_permit_that_stays_in_the_program_is_announced_to_no_other_and_both_programs_get_permits() {
    let servers = Server::several(3).unwrap();
    let found: Vec<_> = (0..3).map(|_| shared(&servers, PERMITS * 3)).collect();
    let is_quiet = found.iter().any(|(_, [_, announced])| *announced < 0.5);
    let is_shared = found.iter().any(|(acquired, _)| acquired.iter().all(|one| one * 5 > acquired.iter().sum()));
    assert!(is_quiet && is_shared, "{found:?}");
}

/// The longest time that another program needs to get the only permit, which was passed on to a thread that gives up.
fn longest_wait(servers: &[Server]) -> Duration {
    let (mine, theirs, acquired) = (client(servers), client(servers), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let semaphore = semaphore(&theirs, 1);
            while !is_over.load(Ordering::Relaxed) {
                drop(semaphore.acquire().unwrap());
                acquired.fetch_add(1, Ordering::Relaxed);
            }
        });
        let semaphore = semaphore(&mine, 1);
        let mut longest = Duration::ZERO;
        for _ in 0..40 {
            let (permit, gives_up) = (semaphore.acquire().unwrap(), CancelHandle::new());
            let waiting = scope.spawn({
                let (semaphore, gives_up) = (semaphore.clone(), gives_up.clone());
                move || drop(semaphore.acquire_cancellable(&gives_up))
            });
            thread::sleep(Duration::from_millis(3));
            gives_up.cancel();
            let (before, released) = (acquired.load(Ordering::Relaxed), Instant::now());
            drop(permit);
            waiting.join().unwrap();
            while acquired.load(Ordering::Relaxed) == before {
                thread::yield_now();
            }
            longest = longest.max(released.elapsed());
        }
        is_over.store(true, Ordering::Relaxed);
        longest
    })
}

#[test]
fn a_permit_that_was_passed_on_to_a_thread_that_gives_up_is_announced() {
    let servers = Server::several(3).unwrap();
    // Without an announcement, a waiter asks after 125 ms at the earliest. The machine may stand still: one of three.
    let longest: Vec<_> = (0..3).map(|_| longest_wait(&servers)).collect();
    assert!(longest.iter().any(|&longest| longest < Duration::from_millis(100)), "{longest:?}");
}
