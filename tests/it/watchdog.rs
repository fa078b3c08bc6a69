//! Automatic extension: locks that are watched outlive their time to live, whatever happens to a
//! minority of the nodes, for as long as they are wanted and no longer.
//!
//! [`restarts`] is about nodes that come back, [`limits`] about the end of extension, [`by_hand`]
//! about `extend`.
//!
//! What a watchdog has sent shows in the servers' own counts: only an extension runs `PEXPIRE`.

mod by_hand;
mod limits;
mod restarts;

use crate::prelude::*;
use crossbeam_channel::TryRecvError;

const KEY: &str = "k";
/// A machine may hold every program up for a part of it.
const TTL: Duration = Duration::from_secs(1);
/// As the kernel shows the name of the watchdog's thread.
const THREAD: &str = "quorumlock watc";
/// How many locks one thread extends, for how long, and the variables that set another number, and
/// more seconds.
const LEASES: usize = if cfg!(debug_assertions) { 4000 } else { 10_000 };
const LEASES_VARIABLE: &str = "QUORUMLOCK_TEST_LEASES";
const SECONDS: usize = 5;
const SECONDS_VARIABLE: &str = "QUORUMLOCK_TEST_SECONDS";

fn setting(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |value| value.parse().unwrap())
}

fn short_timeout_client(servers: &[Server]) -> Redlock {
    client_within(servers.iter().map(Server::url), NODE_TIMEOUT)
}

fn watched(client: &Redlock, ttl: Duration) -> Mutex {
    client.mutex(KEY).ttl(ttl).watchdog(Watchdog::new())
}

fn extensions(servers: &[Server]) -> u64 {
    all_calls(servers, "pexpire")
}

/// Holds a lock for a while, and returns its guard. One try of three must succeed, as the machine
/// may hold up any of them.
#[track_caller]
fn hold_for(time: Duration, mutex: &Mutex) -> MutexGuard {
    for _ in 0..3 {
        let guard = wait_for(mutex);
        let lost = guard.lost().unwrap();
        if lost.recv_timeout(time).is_err() && !guard.remaining().is_zero() {
            assert_eq!(lost.try_recv(), Err(TryRecvError::Empty));
            return guard;
        }
        assert_soon!(guard.remaining().is_zero());
    }
    panic!("lost three times");
}

#[test]
fn a_watched_lock_is_held_for_long_with_one_node_hung_and_one_killed() {
    let mut servers = Server::several(5).unwrap();
    let mine = short_timeout_client(&servers);
    let theirs = client(&servers);
    unlock(take(&long_lock(&mine, "before")));
    servers[0].pause().unwrap();
    servers[1].kill();
    let guard = hold_for(TTL * 3, &watched(&mine, TTL));
    assert!(guard.remaining() <= TTL);
    assert!(is_held(&long_lock(&theirs, KEY)));
    unlock(guard);
    gone_for_good(&servers[2..], KEY);
}

#[test]
#[allow(clippy::print_stdout)]
fn thousands_of_locks_are_extended_by_one_thread_while_a_node_hangs() {
    alone(|| {
        let leases = setting(LEASES_VARIABLE, LEASES);
        let seconds = setting(SECONDS_VARIABLE, SECONDS);
        let servers = Server::several(5).unwrap();
        // A busy machine is no reason for a fault at the nodes that answer.
        let client = client(&servers);
        assert!(threads_named(THREAD).is_empty());
        let take = |number| {
            let resource = format!("many/{number}");
            // Extended every second: a machine that holds the thread up for seconds is no
            // reason to fail. If the thread waited for the hung node at each of the locks, that
            // would be minutes.
            let watchdog = Watchdog::new().period(Duration::from_secs(1));
            let mutex = client.mutex(&resource).ttl(LONG_TTL / 2).watchdog(watchdog);
            // Of so many, some attempts come while a batch is answered.
            wait_for(&mutex)
        };
        let mut guards: Vec<MutexGuard> = (0..leases / 2).map(take).collect();
        servers[0].pause().unwrap();
        guards.extend((leases / 2..leases).map(take));
        let thread = threads_named(THREAD).remove(0);
        let before = (
            asked(&servers[1]),
            reads(&servers[1]),
            thread.processor_time(),
        );
        let start = Instant::now();
        let mut least = Duration::MAX;
        while start.elapsed() < Duration::from_secs(seconds as u64) {
            least = guards
                .iter()
                .map(MutexGuard::remaining)
                .min()
                .unwrap()
                .min(least);
            assert_eq!(threads_named(THREAD), std::slice::from_ref(&thread));
            thread::sleep(Duration::from_millis(50));
        }
        let lost = guards
            .iter()
            .filter(|guard| guard.lost().unwrap().try_recv().is_ok())
            .count();
        println!(
            "{leases} locks for {:.1?}: {lost} lost, at least {least:?} left; the thread took \
                 {:.2?} of a processor; a node was asked {} times and read {} times",
            start.elapsed(),
            thread.processor_time() - before.2,
            asked(&servers[1]) - before.0,
            reads(&servers[1]) - before.1
        );
        assert_eq!(lost, 0);
        // Each of them has been extended meanwhile.
        assert!(
            asked(&servers[1]) - before.0 >= leases as u64,
            "extended too rarely"
        );
        servers[0].resume().unwrap();
        for guard in guards {
            unlock(guard);
        }
        let clone = client.clone();
        drop(client);
        assert_eq!(threads_named(THREAD).len(), 1);
        drop(clone);
        assert_soon!(threads_named(THREAD).is_empty(), "a thread is left");
    });
}

/// How many extensions a server was asked for, whatever it replied.
fn asked(server: &Server) -> u64 {
    calls(server, "eval")
}

/// How many times a server has read from a connection, 16 KiB at most each time. Redis before 6
/// does not count that.
fn reads(server: &Server) -> u64 {
    server
        .info("total_reads_processed")
        .unwrap()
        .parse()
        .unwrap_or_default()
}

#[test]
fn the_thread_is_started_when_needed_and_ends_with_the_last_handle() {
    alone(|| {
        let (servers, client) = deployment(3);
        unlock(take(&long_lock(&client, KEY)));
        assert!(
            threads_named(THREAD).is_empty(),
            "no watchdog was asked for"
        );
        let guard = take(&watched(&client, TTL));
        assert_soon!(threads_named(THREAD).len() == 1);
        let mutex = watched(&client, TTL);
        drop(client);
        assert_eq!(left(&servers[0], KEY).map(|left| left <= TTL), Some(true));
        thread::sleep(TTL);
        assert!(!guard.remaining().is_zero(), "a guard is handle enough");
        drop(guard);
        assert_eq!(threads_named(THREAD).len(), 1);
        drop(mutex);
        assert_soon!(threads_named(THREAD).is_empty(), "a thread is left");
        gone_for_good(&servers, KEY);
    });
}
