//! The counters for a metrics server: exact, also where events are not reported, and in a format
//! that a strict reader accepts. That they count every call and hold once is a rule of the
//! simulator.

use crate::prelude::*;
use crate::support::exposition::Exposition;

/// What the counters show now.
fn shown(counters: &Counters) -> Exposition {
    Exposition::read(&counters.prometheus_text())
}

#[track_caller]
fn is(counters: &Counters, name: &str, labels: &[(&str, &str)], expected: f64) {
    let value = shown(counters).sum(name, labels);
    assert!(
        (value - expected).abs() < 0.5,
        "{name}{labels:?} is {value}, and {expected} was expected"
    );
}

#[test]
fn each_operation_counts_once() {
    let servers = Server::several(3).unwrap();
    let counters = Counters::by_prefix('/');
    let client = client_with(&servers, |builder| {
        builder.prefix("app:").counters(&counters)
    });
    let guard = take(&long_lock(&client, "orders/1"));
    let fenced = client.mutex("orders/2").fenced().lock().unwrap();
    assert!(is_held(&client.mutex("orders/1")));
    assert!(is_held_for(
        &client.mutex("orders/1"),
        Duration::from_millis(20)
    ));
    extend(&guard, LONG_TTL);
    let class = ("class", "orders");
    is(&counters, "quorumlock_held", &[class], 2.0);
    drop(fenced);
    let lease = guard.detach().unwrap();
    is(&counters, "quorumlock_held", &[class], 0.0);
    let guard = client.attach(lease).unwrap();
    is(&counters, "quorumlock_held", &[class], 1.0);
    let _ = guard.unlock().unwrap();
    gone_for_good(&servers, "app:orders/1");
    client.flush_releases(SOON).unwrap();
    for (name, labels, expected) in [
        ("wait_seconds_count", [class, ("outcome", "acquired")], 2.0),
        ("wait_seconds_count", [class, ("outcome", "held")], 1.0),
        ("wait_seconds_count", [class, ("outcome", "timed_out")], 1.0),
        ("attempts_total", [class, ("result", "won")], 2.0),
        ("attempts_total", [class, ("result", "held")], 1.0),
        (
            "extensions_total",
            [("result", "extended"), ("automatic", "false")],
            1.0,
        ),
        ("hold_seconds_count", [class, class], 2.0),
        (
            "releases_total",
            [("outcome", "released"), ("dropped", "true")],
            1.0,
        ),
        (
            "releases_total",
            [("outcome", "released"), ("dropped", "false")],
            1.0,
        ),
        ("waiting", [class, class], 0.0),
        ("held", [class, class], 0.0),
    ] {
        is(&counters, &format!("quorumlock_{name}"), &labels, expected);
    }
    is(&counters, "quorumlock_node_votes", &[], 3.0);
    assert!(
        shown(&counters).sum("quorumlock_node_reply_seconds_count", &[]) > 11.0,
        "two locks, two releases"
    );
    is(&counters, "quorumlock_quorum", &[], 2.0);
    drop(client);
    is(&counters, "quorumlock_nodes", &[], 0.0);
}

/// What a callback does is not reported, and counted all the same.
#[test]
fn calls_within_a_callback_are_counted() {
    let servers = Server::several(3).unwrap();
    let counters = Counters::new();
    let client: Arc<OnceLock<Redlock>> = Arc::default();
    let calls = {
        let client = Arc::downgrade(&client);
        move |event: &Event| {
            let client = client.upgrade();
            if let (Event::Acquired { .. }, Some(client)) =
                (event, client.as_ref().and_then(|c| c.get()))
            {
                drop(take(&long_lock(client, "inner")));
                assert!(is_held(&client.mutex("outer")));
            }
        }
    };
    let built = client_with(&servers, |builder| {
        builder.counters(&counters).observer(calls)
    });
    let _ = client.set(built);
    let redlock = client.get().unwrap();
    let _ = take(&long_lock(redlock, "outer")).unlock().unwrap();
    redlock.flush_releases(SOON).unwrap();
    is(
        &counters,
        "quorumlock_wait_seconds_count",
        &[("outcome", "acquired")],
        2.0,
    );
    is(
        &counters,
        "quorumlock_wait_seconds_count",
        &[("outcome", "held")],
        1.0,
    );
    assert_soon!({
        shown(&counters).sum("quorumlock_releases_total", &[("outcome", "released")]) > 1.5
    });
    is(&counters, "quorumlock_held", &[], 0.0);
}

#[test]
fn nodes_are_shown_as_they_are() {
    let mut servers = Server::several(3).unwrap();
    let counters = Counters::new();
    let client = builder(&servers).counters(&counters).build().unwrap();
    is(&counters, "quorumlock_node_up", &[], 0.0);
    client.connect(SOON).unwrap();
    is(&counters, "quorumlock_node_up", &[], 3.0);
    is(&counters, "quorumlock_node_votes", &[], 3.0);
    let address = servers[0].address();
    servers[0].restart().unwrap();
    assert_soon!({
        let _ = client.connect(SOON);
        shown(&counters).sum("quorumlock_node_quarantine_seconds", &[("node", &address)]) > 1.0
    });
    is(&counters, "quorumlock_node_up", &[], 3.0);
    is(&counters, "quorumlock_node_votes", &[], 2.0);
    servers[0].kill();
    assert_soon!({
        let _ = client.connect(SOON);
        (shown(&counters).sum("quorumlock_node_up", &[("node", &address)])).abs() < 0.5
    });
    assert_soon!({
        drop(take(&long_lock(&client, "k")));
        shown(&counters).sum("quorumlock_node_faults_total", &[("node", &address)]) > 0.5
    });
}
