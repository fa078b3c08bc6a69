//! What a client has counted of each node: how long its replies took, and how it failed.

use crate::prelude::*;

const PAIRS: u64 = 20;

fn faults(node: &NodeStatus) -> Vec<(Phase, Cause, u64)> {
    node.faults()
        .iter()
        .map(|(fault, count)| (fault.phase(), fault.cause(), *count))
        .collect()
}

#[test]
fn every_reply_about_a_lock_is_counted_once_with_its_time() {
    let (mut servers, client) = deployment(3);
    assert!(all_nodes(&client, |node| node.latency().count == 0
        && node.faults().is_empty()));
    assert_eq!(client.nodes().unwrap().len(), 3);
    client.connect(SOON).unwrap();
    assert_eq!(
        first_node(&client).latency().count,
        0,
        "a handshake is not about a lock"
    );
    let mutex = long_lock(&client, "k");
    for _ in 0..PAIRS {
        unlock(take(&mutex));
    }
    assert_soon!(
        all_nodes(&client, |node| node.latency().count == 2 * PAIRS),
        "{:?}: also those of nodes that came late",
        client.nodes()
    );
    for node in client.nodes().unwrap() {
        let latency = node.latency();
        assert!(
            Duration::ZERO < latency.p50
                && latency.p50 <= latency.p99
                && latency.p99 <= latency.max
        );
        assert!(latency.max < SOON && node.faults().is_empty(), "{node:?}");
    }
    // A node that was stopped for a while has taken that long, and a new connection goes on with
    // the counters.
    servers[0].pause().unwrap();
    drop(take(&mutex));
    let stopped = Duration::from_millis(200);
    std::thread::sleep(stopped);
    servers[0].resume().unwrap();
    assert_soon!(first_node(&client).latency().max >= stopped);
    servers[0].restart().unwrap();
    let first = || first_node(&client).latency().count;
    let before = first();
    assert!(before >= 2 * PAIRS);
    assert_soon!({
        drop(take(&mutex));
        let now = first();
        assert!(now >= before, "{now} after {before}");
        now > before
    });
}

#[test]
fn faults_are_counted_for_each_node_by_phase_and_cause() {
    let (mut servers, client) = deployment_with(3, |builder| {
        builder.node_timeout(Duration::from_millis(100))
    });
    client.connect(SOON).unwrap();
    drop(take(&long_lock(&client, "k")));
    servers[2].kill();
    servers[1].pause().unwrap();
    for _ in 0..3 {
        assert!(long_lock(&client, "other").try_lock().is_err());
    }
    let nodes = client.nodes().unwrap();
    assert_eq!(faults(&nodes[0]), []);
    let hung = faults(&nodes[1]);
    let gone = faults(&nodes[2]);
    assert!(
        hung.iter()
            .all(|&(phase, cause, _)| (phase, cause) == (Phase::Reply, Cause::TimedOut)),
        "{hung:?}"
    );
    assert!(
        hung.iter().map(|fault| fault.2).sum::<u64>() >= 3,
        "once for each attempt: {hung:?}"
    );
    assert!(
        gone.iter()
            .all(|fault| matches!(fault.1, Cause::Closed | Cause::Refused)),
        "{gone:?}"
    );
    assert!(
        gone.iter().map(|fault| fault.2).sum::<u64>() >= 3,
        "{gone:?}"
    );
    servers[1].resume().unwrap();
}
