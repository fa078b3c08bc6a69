//! Releases that were written and not answered: a thread of the client finds out that they are
//! lost, though no call is under way.

use crate::clients::{SOON, client_of, key_counts, long_lock, take};
use crate::support::process::{alone, eventually, threads_named};
use crate::support::proxy::{Direction, Proxy};
use crate::support::server::Server;
use quorumlock::{MutexGuard, Redlock};
use std::thread;
use std::time::Duration;

const GUARDS: usize = 20;
const OUTAGE: Duration = Duration::from_secs(2);
const HELPER: &str = "quorumlock rele";

/// Connections are reset with what is on its way, and none is made for a while.
#[test]
fn releases_on_connections_that_are_reset_are_run_after_the_outage_without_a_call() {
    let (servers, proxies) = nodes();
    let (_client, guards) = some(&proxies);
    proxies
        .iter()
        .for_each(|proxy| proxy.stall(Direction::ToServer));
    drop(guards);
    proxies.iter().for_each(|proxy| proxy.refuse(true));
    proxies.iter().for_each(Proxy::reset_all);
    thread::sleep(OUTAGE);
    assert_eq!(
        key_counts(&servers),
        [GUARDS; 3],
        "no release has come through"
    );
    proxies
        .iter()
        .for_each(|proxy| proxy.flow(Direction::ToServer));
    proxies.iter().for_each(|proxy| proxy.refuse(false));
    assert!(
        eventually(SOON, || key_counts(&servers) == [0; 3]),
        "{:?} keys stay",
        key_counts(&servers)
    );
}

/// Whatever is sent is lost. Then the wire reports that there is no such connection, as a firewall
/// does that has forgotten it.
#[test]
fn releases_that_were_lost_are_run_when_their_connections_turn_out_to_be_gone() {
    let (servers, proxies) = nodes();
    let (_client, guards) = some(&proxies);
    proxies.iter().for_each(Proxy::lose_all);
    drop(guards);
    thread::sleep(OUTAGE);
    assert_eq!(
        key_counts(&servers),
        [GUARDS; 3],
        "no release has come through"
    );
    proxies.iter().for_each(Proxy::reset_all);
    assert!(
        eventually(SOON, || key_counts(&servers) == [0; 3]),
        "{:?} keys stay",
        key_counts(&servers)
    );
}

#[test]
fn a_node_that_hangs_is_waited_for_without_processor_time_until_the_keys_end() {
    alone(
        "pending_releases::outages::a_node_that_hangs_is_waited_for_without_processor_time_until_the_keys_end",
        || {
            let servers = Server::several(3).unwrap();
            let client = client_of(servers.iter().map(Server::url));
            let short = |number| {
                take(
                    &client
                        .mutex(format!("k{number}"))
                        .ttl(Duration::from_secs(4)),
                )
            };
            let guards: Vec<_> = (0..GUARDS).map(short).collect();
            servers[0].pause().unwrap();
            drop(guards);
            thread::sleep(OUTAGE);
            let helper = threads_named(HELPER).pop().expect("answers are missing");
            let used = helper.processor_time();
            assert!(used < OUTAGE / 20, "{used:?} in {OUTAGE:?}");
            assert!(
                eventually(SOON, || threads_named(HELPER).is_empty()),
                "the keys have ended"
            );
            servers[0].resume().unwrap();
        },
    );
}

fn nodes() -> (Vec<Server>, Vec<Proxy>) {
    let servers = Server::several(3).unwrap();
    let proxies = servers
        .iter()
        .map(|server| Proxy::before(server.port()))
        .collect();
    (servers, proxies)
}

/// Some locks, on all nodes.
fn some(proxies: &[Proxy]) -> (Redlock, Vec<MutexGuard>) {
    let client = client_of(proxies.iter().map(Proxy::url));
    client.connect(SOON).unwrap();
    let guards = (0..GUARDS)
        .map(|number| take(&long_lock(&client, &format!("k{number}"))))
        .collect();
    // Each node has answered.
    assert!(client.mutex("other").try_lock().is_ok());
    client.flush_releases(SOON).unwrap();
    (client, guards)
}
