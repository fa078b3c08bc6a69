//! Extensions by hand of locks that are watched.

use super::{KEY, TTL, extensions, watched};
use crate::clients::{LONG_TTL, SLACK, SOON, client, gone_for_good, take, value};
use crate::support::process::eventually;
use crate::support::proxy::{Direction, Proxy};
use crate::support::server::Server;
use crossbeam_channel::RecvTimeoutError;
use quorumlock::{ExtendOutcome, Redlock, ReleaseOutcome, Watchdog};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn extensions_by_hand_and_by_a_watchdog_get_along() {
    let servers = Server::several(3).unwrap();
    let client = client(&servers);
    let guard = take(&watched(&client, TTL));
    // From now on it is extended for this long.
    assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Extended);
    assert!(guard.remaining() > LONG_TTL / 2);
    thread::sleep(TTL * 2);
    assert!(guard.remaining() > LONG_TTL / 2);
    drop(guard);
    gone_for_good(&servers, KEY);
    // And by hand for ever longer. Whenever one looks, it is no longer than asked for last.
    let guard = take(&watched(&client, TTL));
    for round in 0..20_u32 {
        let ttl = TTL * 2 + TTL * round / 5;
        assert_eq!(
            guard.extend(ttl).unwrap(),
            ExtendOutcome::Extended,
            "round {round}"
        );
        let until = Instant::now() + Duration::from_millis(u64::from(round) * 13);
        while Instant::now() < until {
            let remaining = guard.remaining();
            assert!(
                remaining <= ttl && !remaining.is_zero(),
                "{remaining:?} of {ttl:?}"
            );
            thread::sleep(Duration::from_millis(1));
        }
    }
    assert_eq!(
        guard.lost().unwrap().recv_timeout(TTL * 5),
        Err(RecvTimeoutError::Timeout)
    );
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    gone_for_good(&servers, KEY);
}

/// Others that share the lock, or the thread that took it, rely on the longer time.
#[test]
fn an_extension_by_hand_makes_no_later_renewal_shorter() {
    let servers = Server::several(3).unwrap();
    let client = client(&servers);
    let ttl = Duration::from_secs(3);
    let watchdog = Watchdog::new().period(ttl / 3);
    let guard = take(&client.mutex(KEY).ttl(ttl).watchdog(watchdog));
    let short = Duration::from_millis(2500);
    assert!(eventually(SOON, || guard.remaining() < short * 9 / 10));
    assert_eq!(guard.extend(short).unwrap(), ExtendOutcome::Extended);
    assert!(eventually(SOON, || guard.remaining() > short));
}

/// A renewal is under way: a majority has agreed, one node is still waited for. A shorter time is
/// asked for by hand, the nodes go by it, and their answers do not come. When the keys are gone, no
/// node holds the lock any more.
#[test]
fn a_shorter_time_by_hand_holds_though_a_renewal_was_under_way() {
    // Whether the extension fails before the wait for the renewal is over, or after.
    for breaks in [false, true] {
        let servers = Server::several(5).unwrap();
        let proxies: Vec<Proxy> = servers[..4]
            .iter()
            .map(|server| Proxy::before(server.port()))
            .collect();
        let urls = proxies.iter().map(Proxy::url).chain([servers[4].url()]);
        // It is renewed when a third has passed, and that waits for the fifth node for the node
        // timeout. A busy machine may take most of that until one by hand begins.
        let long = Duration::from_secs(5);
        let short = Duration::from_millis(4200);
        let node_timeout = Duration::from_secs(1);
        let client = Redlock::builder()
            .nodes(urls)
            .node_timeout(node_timeout)
            .build()
            .unwrap();
        let guard = take(
            &client
                .mutex(KEY)
                .ttl(long)
                .watchdog(Watchdog::new().max_extensions(1)),
        );
        assert!(eventually(SOON, || servers
            .iter()
            .all(|server| value(server, KEY).is_some())));
        servers[4].pause().unwrap();
        assert!(
            eventually(SOON, || extensions(&servers[..4]) >= 4),
            "no renewal"
        );
        thread::sleep(SLACK);
        for proxy in &proxies {
            proxy.stall(Direction::ToClient);
        }
        let extension = thread::scope(|scope| {
            let extension = scope.spawn(|| guard.extend(short).unwrap());
            assert!(
                eventually(SOON, || extensions(&servers[..4]) >= 8),
                "nothing was asked by hand"
            );
            proxies.iter().filter(|_| breaks).for_each(Proxy::reset_all);
            extension.join().unwrap()
        });
        assert!(
            matches!(extension, ExtendOutcome::Failed(_)),
            "{extension:?}"
        );
        let are_gone = || {
            servers[..4]
                .iter()
                .all(|server| value(server, KEY).is_none())
        };
        assert!(eventually(SOON, are_gone));
        let remaining = guard.remaining();
        assert!(
            remaining.is_zero(),
            "any client may lock it, and this guard counts on {remaining:?} more"
        );
        servers[4].resume().unwrap();
        proxies
            .iter()
            .for_each(|proxy| proxy.flow(Direction::ToClient));
    }
}
