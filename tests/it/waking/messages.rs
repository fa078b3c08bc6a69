//! Messages to subscribers that are lost, late, repeated or out of order: nothing but waits depends
//! on them.

use super::ARRIVAL;
use crate::clients::{LONG_TTL, SOON, calls, gone_for_good};
use crate::support::proxy::{Disturbance, Proxy};
use crate::support::server::Server;
use quorumlock::{Redlock, ReleaseOutcome};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// How often each program takes the lock.
const TURNS: u32 = 15;
const PROGRAMS: u32 = 4;
const LATE: Duration = Duration::from_millis(100);
/// How many attempts each acquisition may take on average.
const ATTEMPTS: u64 = 40;

/// Programs that share a lock, each behind proxies of its own.
fn all_progress(disturbance: Disturbance) {
    let servers = Server::several(3).unwrap();
    let programs: Vec<(Vec<Proxy>, Redlock)> = (0..PROGRAMS)
        .map(|_| {
            let proxies: Vec<Proxy> = servers
                .iter()
                .map(|server| Proxy::before(server.port()))
                .collect();
            proxies
                .iter()
                .for_each(|proxy| proxy.disturb_messages(disturbance));
            let client = Redlock::builder()
                .nodes(proxies.iter().map(Proxy::url))
                .node_timeout(Duration::from_secs(1));
            let client = client.build().unwrap();
            (proxies, client)
        })
        .collect();
    let holders = AtomicU32::new(0);
    let before = calls(&servers[0], "set");
    thread::scope(|scope| {
        for (_, client) in &programs {
            let holders = &holders;
            scope.spawn(move || {
                for turn in 0..TURNS {
                    // No wait ends without the lock, and no call fails.
                    let guard = client
                        .mutex("k")
                        .ttl(LONG_TTL)
                        .lock_timeout(6 * SOON)
                        .unwrap();
                    let guard = guard.unwrap_or_else(|| panic!("turn {turn}: {disturbance:?}"));
                    assert_eq!(
                        holders.fetch_add(1, Ordering::SeqCst),
                        0,
                        "{disturbance:?}: two holders"
                    );
                    thread::sleep(Duration::from_millis(1 + u64::from(turn % 4) * 5));
                    holders.fetch_sub(1, Ordering::SeqCst);
                    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
                }
            });
        }
    });
    let attempts = calls(&servers[0], "set") - before;
    let acquisitions = u64::from(TURNS * PROGRAMS);
    assert!(
        attempts <= ATTEMPTS * acquisitions,
        "{disturbance:?}: {attempts} for {acquisitions} acquisitions"
    );
    let disturbed: usize = programs
        .iter()
        .flat_map(|(proxies, _)| proxies)
        .map(Proxy::disturbed)
        .sum();
    assert!(disturbed > 0, "{disturbance:?}: no message was disturbed");
    thread::sleep(ARRIVAL);
    gone_for_good(&servers, "k");
}

#[test]
fn messages_that_are_lost_delay_waits_only() {
    all_progress(Disturbance::Drop);
}

#[test]
fn messages_that_are_late_delay_waits_only() {
    all_progress(Disturbance::Delay(LATE));
}

#[test]
fn messages_that_are_repeated_cost_few_attempts() {
    all_progress(Disturbance::Repeat);
}

#[test]
fn messages_that_are_out_of_order_cost_few_attempts() {
    all_progress(Disturbance::Reorder(LATE));
}
