//! The embedded node by TLS: locks, faults and death as without, and trusted by its own root only.

use super::SECOND;
use crate::prelude::*;
use quorumlock::{Tls, TlsError};

fn builder(nodes: &[EmbeddedNode]) -> Builder {
    let tls = nodes.iter().fold(Tls::new(), |tls, node| {
        tls.roots_pem(node.root_pem().unwrap())
    });
    Redlock::builder()
        .nodes(nodes.iter().map(EmbeddedNode::url))
        .tls(tls)
        .node_timeout(SECOND)
}

#[test]
fn locks_work_as_without() {
    let nodes = [0; 3].map(|_| EmbeddedNode::builder().tls().start().unwrap());
    let redlock = builder(&nodes).build().unwrap();
    assert!(
        redlock
            .connect(SOON)
            .unwrap()
            .iter()
            .all(|status| status.state() == NodeState::Voting)
    );
    thread::scope(|scope| {
        for thread in 0..4 {
            // Long enough that a request takes several reads.
            let name = move |index: usize| format!("{thread}/{index}/{}", "x".repeat(4000));
            let redlock = &redlock;
            scope.spawn(move || {
                for index in 0..50 {
                    let guard = redlock.mutex(name(index)).lock().unwrap();
                    assert!(is_held(&redlock.mutex(name(index))));
                    unlock(guard);
                }
            });
        }
    });
    redlock.flush_releases(SOON).unwrap();
    assert!(nodes.iter().all(|node| node.keys().is_empty()));
}

#[test]
fn waiters_are_woken_and_fences_grow() {
    let nodes = [EmbeddedNode::builder()
        .password("hunter2")
        .tls()
        .start()
        .unwrap()];
    let url = nodes[0].url().replace("://", "://:hunter2@");
    let tls = Tls::new().roots_pem(nodes[0].root_pem().unwrap());
    let minute = 60 * SECOND;
    let client = Redlock::builder()
        .node(url)
        .tls(tls)
        .retry_delay(minute, minute)
        .node_timeout(SECOND);
    let ours = client.clone().build().unwrap();
    let theirs = client.build().unwrap();
    let held = theirs.mutex("orders/42").fenced().lock().unwrap();
    let fence = held.fence();
    let waiting = thread::spawn(move || ours.mutex("orders/42").fenced().lock_timeout(20 * SECOND));
    thread::sleep(Duration::from_millis(200));
    drop(held);
    assert!(
        waiting
            .join()
            .unwrap()
            .unwrap()
            .expect("it was woken")
            .fence()
            > fence
    );
}

#[test]
fn a_node_hangs_and_dies_and_comes_back() {
    let nodes = [EmbeddedNode::builder().tls().start().unwrap()];
    let client = builder(&nodes)
        .restart_policy(RestartPolicy::Off)
        .node_timeout(SECOND / 5)
        .build()
        .unwrap();
    let mutex = client.mutex("orders/42");
    let cause = || mutex.try_lock().unwrap_err().causes()[0].cause();
    let _ = mutex.lock().unwrap().unlock().unwrap();
    nodes[0].hang();
    assert_eq!(cause(), Cause::TimedOut);
    nodes[0].resume();
    unlock(wait_for(&mutex));
    nodes[0].kill();
    assert_soon!(cause() == Cause::Refused);
    nodes[0].revive().unwrap();
    unlock(wait_for(&mutex));
}

#[test]
fn each_is_trusted_by_its_own_root() {
    let [node, other] = [0; 2].map(|_| EmbeddedNode::builder().tls().start().unwrap());
    let client = |tls| {
        Redlock::builder()
            .node(node.url())
            .tls(tls)
            .node_timeout(SECOND)
            .build()
            .unwrap()
    };
    let tls = |pem: &str| Tls::new().roots_pem(pem);
    let error = failure(&client(tls(other.root_pem().unwrap())).mutex("a"));
    assert_eq!(
        error.causes()[0].cause(),
        Cause::Tls(TlsError::UnknownIssuer)
    );
    unlock(take(&client(tls(node.root_pem().unwrap())).mutex("a")));
    assert_eq!(EmbeddedNode::start().unwrap().root_pem(), None);
}
