//! What waiting costs the servers: how often a waiter asks, connects and subscribes.

use super::{ARRIVAL, client};
use crate::clients::{LONG_TTL, SOON, calls, long_lock, take};
use crate::support::server::{Answer, Server};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// For how long a waiter is watched.
const WHILE: Duration = Duration::from_secs(5);

fn connections(server: &Server) -> u64 {
    server.info("total_connections_received").unwrap().parse().unwrap()
}

/// How many attempts reach the first server while a waiter waits for a lock that stays held.
fn attempts(servers: &[Server], meanwhile: impl FnOnce(Instant)) -> u64 {
    let (mine, theirs) = (client(servers), client(servers));
    let held = take(&long_lock(&theirs, "k"));
    let before = calls(&servers[0], "set");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| long_lock(&mine, "k").lock_timeout(WHILE * 2).unwrap().is_none());
        thread::sleep(ARRIVAL);
        meanwhile(Instant::now() + WHILE);
        let attempts = calls(&servers[0], "set") - before;
        drop(held);
        assert!(!waiting.join().unwrap());
        attempts
    })
}

#[test]
fn a_waiter_asks_less_and_less_often_while_one_holder_keeps_the_lock() {
    let servers = Server::several(3).unwrap();
    let attempts = attempts(&servers, |until| thread::sleep(until - Instant::now()));
    // Two at first, then after a quarter of a second, half of one, one and two.
    assert!(attempts <= 7, "{attempts}");
}

#[test]
fn what_a_stranger_publishes_at_one_node_is_distrusted() {
    let servers = Server::several(3).unwrap();
    let attempts = attempts(&servers, |until| {
        while Instant::now() < until {
            servers[0].command(&["PUBLISH", "quorumlock:k", "0"]).unwrap();
            thread::sleep(Duration::from_millis(2));
        }
    });
    // As many as without; those that find the stranger out; one after each delay that doubles; after each of them
    // another one, for the case that a quicker client had the lock. Without distrust there are a thousand.
    assert!(attempts <= 7 + 2 * (4 + 14) + 10, "{attempts}");
}

#[test]
fn short_waits_in_a_row_use_one_connection_each() {
    let servers = Server::several(3).unwrap();
    let (mine, theirs) = (client(&servers), client(&servers));
    let _held = take(&long_lock(&theirs, "k"));
    // A machine may hold up an attempt for so long that it is none.
    let wait = || assert!(!matches!(long_lock(&mine, "k").lock_timeout(Duration::from_millis(20)), Ok(Some(_))));
    let waits = |times| (0..times).for_each(|_| wait());
    waits(3);
    let before = connections(&servers[0]);
    waits(50);
    // The question itself is asked by one.
    let made = connections(&servers[0]) - before;
    assert!(made <= 10, "{made} connections for 50 waits");
}

/// A program that takes the lock for a moment again and again, and neither publishes nor subscribes. The waiter has to
/// find out that the lock changes hands.
#[test]
fn a_waiter_gets_its_share_beside_a_program_that_polls() {
    let servers = Server::several(3).unwrap();
    let mine = client(&servers);
    let (is_over, theirs) = (AtomicBool::new(false), AtomicU32::new(0));
    let ours = thread::scope(|scope| {
        scope.spawn(|| {
            let millis = LONG_TTL.as_millis().to_string();
            for number in 0_u32.. {
                let token = format!("another library {number}");
                let set = |server: &&Server| {
                    server.command(&["SET", "k", &token, "NX", "PX", &millis]).unwrap() == Answer::Text("OK".into())
                };
                let taken: Vec<&Server> = servers.iter().filter(set).collect();
                if taken.len() >= 2 {
                    theirs.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(2));
                }
                for server in taken {
                    server.command(&["DEL", "k"]).unwrap();
                }
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                thread::sleep(Duration::from_millis(10));
            }
        });
        let until = Instant::now() + WHILE;
        let mut ours = 0;
        while Instant::now() < until {
            let guard = long_lock(&mine, "k").lock_timeout(SOON).unwrap().expect("it is free most of the time");
            ours += 1;
            thread::sleep(Duration::from_millis(2));
            drop(guard.unlock());
            thread::sleep(Duration::from_millis(10));
        }
        is_over.store(true, Ordering::Relaxed);
        ours
    });
    let theirs = theirs.into_inner();
    assert!(ours * 2 >= theirs, "{ours} times against {theirs}");
}
