//! The loss of a lock is reported once, in time and for a reason.
//!
//! Whether it is reported in time also depends on when the machine lets the threads run. So one try
//! of several is enough; what the library does late is late every time. How many tries that took is
//! printed, with the times that were left.

use crate::prelude::*;
use crossbeam_channel::{RecvTimeoutError, TryRecvError};

const KEY: &str = "k";
const TTL: Duration = Duration::from_secs(1);
const MARGIN: Duration = Duration::from_millis(80);
const LOCKS: usize = 8;
/// How many faults hit the nodes.
const STRIKES: u64 = if cfg!(debug_assertions) { 10 } else { 40 };
/// Sets another number of faults. Each costs eight locks: 125 are a thousand.
const STRIKES_VARIABLE: &str = "QUORUMLOCK_TEST_STRIKES";

#[test]
#[allow(clippy::print_stdout)]
fn a_loss_is_reported_between_the_margin_and_the_end_when_all_nodes_hang() {
    let strikes = storm::number(STRIKES_VARIABLE).unwrap_or(STRIKES);
    let mut servers = Server::several(3).unwrap();
    let mut tries = 0;
    let mut left = Vec::new();
    for round in 0..strikes {
        left.extend(reported_in_time(&mut servers, round, &mut tries));
    }
    left.sort_unstable();
    println!(
        "nodes hung {strikes} times, in {tries} tries: {} losses reported once, {:?} to {:?} before the end, \
         median {:?}",
        left.len(),
        left[0],
        left[left.len() - 1],
        left[left.len() / 2]
    );
}

/// Several locks are held, all nodes hang at another phase of their renewal each
/// round, and every guard reports it while there is time. Returns how much time there was.
#[track_caller]
fn reported_in_time(servers: &mut [Server], round: u64, tries: &mut u32) -> Vec<Duration> {
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        *tries += 1;
        for server in &mut *servers {
            server.restart().unwrap();
        }
        let client = client_within(servers.iter().map(Server::url), NODE_TIMEOUT);
        let mutex = |number: usize| {
            let resource = format!("{KEY}/{number}");
            let watchdog = Watchdog::new().notify_before(MARGIN);
            client.mutex(&resource).ttl(TTL).watchdog(watchdog)
        };
        let free = |number| wait_for(&mutex(number));
        let guards: Vec<MutexGuard> = (0..LOCKS).map(free).collect();
        thread::sleep(Duration::from_millis(round * 31 % 300));
        pause(&*servers);
        let remaining = at_once(LOCKS, |number| remaining_when_reported(&guards[number]));
        // It came once. What follows is not another message, but the end of the channel, with the
        // guard's.
        let receivers: Vec<_> = guards.iter().map(|guard| guard.lost().unwrap()).collect();
        let ends: Vec<Duration> = guards.iter().map(MutexGuard::remaining).collect();
        thread::sleep(ends.into_iter().max().unwrap() + SLACK);
        for (guard, receiver) in guards.into_iter().zip(receivers) {
            assert_eq!(
                receiver.try_recv(),
                Err(TryRecvError::Empty),
                "reported twice"
            );
            assert!(guard.remaining().is_zero());
            drop(guard);
            assert_eq!(
                receiver.recv_timeout(SOON),
                Err(RecvTimeoutError::Disconnected),
                "reported twice"
            );
        }
        assert!(
            remaining.iter().all(|remaining| *remaining <= MARGIN),
            "round {round}: too early: {remaining:?}"
        );
        if remaining.iter().all(|remaining| !remaining.is_zero()) {
            return remaining;
        }
        seen.push(remaining);
    }
    panic!("round {round}: reported too late: {seen:?}");
}

fn remaining_when_reported(guard: &MutexGuard) -> Duration {
    assert_eq!(guard.lost().unwrap().recv_timeout(SOON), Ok(()));
    guard.remaining()
}

#[test]
fn without_a_watchdog_the_loss_is_reported_at_the_end() {
    let (_servers, client) = deployment(3);
    let start = Instant::now();
    let guard = take(&client.mutex(KEY).ttl(TTL));
    let lost = guard.lost().unwrap();
    assert_eq!(lost.recv_timeout(SOON), Ok(()));
    let taken = start.elapsed();
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert!(taken > TTL * 9 / 10 && taken < TTL + SOON / 10, "{taken:?}");
    assert_eq!(
        lost.recv_timeout(TTL),
        Err(RecvTimeoutError::Timeout),
        "reported twice"
    );
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Expired);
    assert_eq!(lost.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));

    // Asked for when it is over, it is reported at once.
    let guard = take(&client.mutex(KEY).ttl(TTL));
    thread::sleep(TTL);
    assert_eq!(guard.lost().unwrap().recv_timeout(SOON), Ok(()));
}

#[test]
fn unusable_watchdogs_are_refused_before_anything_is_sent() {
    let (servers, client) = deployment(3);
    for watchdog in [
        Watchdog::new().period(Duration::ZERO),
        Watchdog::new().notify_before(TTL / 2),
    ] {
        let mutex = client.mutex(KEY).ttl(TTL).watchdog(watchdog);
        fails(mutex.lock(), ErrorKind::Config);
    }
    assert!(servers.all(|server| value(server, KEY).is_none()));
}
