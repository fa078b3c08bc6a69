//! Many waiters: programs that take turns, and a thousand locks at once.

use super::{channels, client, count, has_channels, no_entry_stays, subscribers};
use crate::clients::{SOON, builder, gone_for_good, long_lock, take};
use crate::support::process::{alone, eventually};
use crate::support::server::Server;
use quorumlock::ReleaseOutcome;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long the programs compete.
const GAME: Duration = Duration::from_secs(2);

/// Waits are counted in the turns of others, which a machine that is busy with other things does
/// not make longer.
#[test]
fn eight_programs_get_equal_shares_and_none_waits_for_long() {
    let servers = Server::several(3).unwrap();
    let clients: Vec<_> = (0..8).map(|_| client(&servers)).collect();
    let mut seen = Vec::new();
    // The machine may hold one of them up.
    for _ in 0..3 {
        let end = Instant::now() + GAME;
        let turns = AtomicU32::new(0);
        let waits: Vec<Vec<u32>> = thread::scope(|scope| {
            let play = |client| {
                let turns = &turns;
                move || {
                    let mut waits = Vec::new();
                    while Instant::now() < end {
                        let wanted = turns.load(Ordering::Relaxed);
                        let guard = long_lock(client, "k").lock().unwrap();
                        waits.push(turns.fetch_add(1, Ordering::Relaxed) - wanted);
                        thread::sleep(Duration::from_millis(1));
                        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
                    }
                    waits
                }
            };
            let threads: Vec<_> = clients
                .iter()
                .map(|client| scope.spawn(play(client)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let all: Vec<u32> = waits.iter().flatten().copied().collect();
        let mean = f64::from(all.iter().sum::<u32>()) / all.len() as f64;
        let longest = f64::from(all.iter().copied().max().unwrap()) / mean;
        let least = waits.iter().map(Vec::len).min().unwrap() as f64 * 8.0 / all.len() as f64;
        if longest <= 10.0 && least >= 0.5 {
            return;
        }
        seen.push((all.len(), mean, longest, least));
    }
    panic!("number, mean wait in turns, the longest of that, the least share: {seen:?}");
}

#[test]
fn a_program_of_many_threads_lets_another_one_in() {
    let servers = Server::several(3).unwrap();
    let crowd = client(&servers);
    let single = client(&servers);
    let is_over = AtomicBool::new(false);
    let theirs = AtomicU32::new(0);
    let turns = thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    drop(long_lock(&crowd, "k").lock().unwrap());
                    theirs.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let begun = Instant::now();
        let mut turns = 0;
        while begun.elapsed() < GAME / 2 {
            if let Some(guard) = long_lock(&single, "k").lock_timeout(GAME / 2).unwrap() {
                turns += 1;
                drop(guard);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        turns
    });
    let theirs = theirs.into_inner();
    assert!(
        turns * 60 >= theirs && turns >= 10,
        "{turns} turns against {theirs}"
    );
}

#[test]
fn a_thousand_locks_are_waited_for_on_one_connection_each_and_nothing_stays() {
    alone(
        "waking::many::a_thousand_locks_are_waited_for_on_one_connection_each_and_nothing_stays",
        || {
            const LOCKS: usize = 1000;
            let servers = Server::several(3).unwrap();
            // A node that the machine holds up for longer than its timeout misses entries, until
            // their calls ask again.
            let mine = client(&servers);
            let theirs = client(&servers);
            let name = |number: usize| format!("k{number}");
            let held: Vec<_> = (0..LOCKS)
                .map(|number| take(&long_lock(&theirs, &name(number))))
                .collect();
            thread::scope(|scope| {
                let waiting: Vec<_> = (0..LOCKS)
                    .map(|number| {
                        let mutex = long_lock(&mine, &name(number));
                        let thread = thread::Builder::new().stack_size(256 * 1024);
                        thread
                            .spawn_scoped(scope, move || {
                                drop(mutex.lock_timeout(SOON * 6).unwrap().unwrap())
                            })
                            .unwrap()
                    })
                    .collect();
                let has_all =
                    |server: &Server| (0..LOCKS).all(|number| count(server, &name(number)) == 1);
                assert!(eventually(SOON * 2, || servers.iter().all(has_all)));
                has_channels(&servers, 1);
                assert!(
                    servers.iter().all(|server| subscribers(server) == 1),
                    "one connection for all"
                );
                drop(held);
                for thread in waiting {
                    thread.join().unwrap();
                }
            });
            no_entry_stays(&servers);
            // What the program has subscribed to goes with it.
            drop(mine);
            has_channels(&servers, 0);
        },
    );
}

#[test]
fn waiters_that_give_up_leave_no_entry_and_share_one_connection() {
    let servers = Server::several(3).unwrap();
    let mine = client(&servers);
    let theirs = builder(&servers).build().unwrap();
    let held = take(&long_lock(&theirs, "k"));
    for _ in 0..20 {
        // On a busy machine it may not find out in so short a time.
        assert!(!matches!(
            long_lock(&mine, "k").lock_timeout(Duration::from_millis(20)),
            Ok(Some(_))
        ));
    }
    no_entry_stays(&servers);
    assert!(
        servers
            .iter()
            .all(|server| channels(server).len() <= 1 && subscribers(server) <= 1)
    );
    drop(mine);
    assert!(eventually(SOON, || servers
        .iter()
        .all(|server| subscribers(server) == 0)));
    drop(held);
    gone_for_good(&servers, "k");
}
