//! Nodes that restart and come back empty while locks are watched.

use super::*;

/// Not when the locks are extended next, which here is in 20 s.
#[test]
fn a_node_that_comes_back_empty_gets_the_keys_at_once() {
    let (mut servers, client) = deployment(3);
    let mutexes = [client.mutex("a"), client.mutex("b")];
    let guards = mutexes.map(|mutex| take(&mutex.ttl(SOON * 6).watchdog(Watchdog::new())));
    assert_soon!(
        ["a", "b"]
            .iter()
            .all(|key| value(&servers[0], key).is_some())
    );
    let values = ["a", "b"].map(|key| value(&servers[0], key));
    servers[0].restart().unwrap();
    assert_soon!(["a", "b"].map(|key| value(&servers[0], key)) == values);
    assert_eq!(
        guards.map(|guard| guard.unlock().unwrap()),
        [ReleaseOutcome::Released; 2]
    );
    gone_for_good(&servers, "a");
    gone_for_good(&servers, "b");
}

#[test]
fn the_loss_of_a_lock_by_nodes_that_come_back_empty_is_reported_at_once() {
    let (mut servers, client) = deployment(3);
    let guard = take(&client.mutex(KEY).ttl(SOON * 6).watchdog(Watchdog::new()));
    let lost = guard.lost().unwrap();
    servers[..2]
        .iter_mut()
        .for_each(|server| server.restart().unwrap());
    assert!(
        lost.recv_timeout(SOON).is_ok(),
        "the lock is extended in 20 s"
    );
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Expired);
}
