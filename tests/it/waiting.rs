//! How long a call waits, and what it ends with. That no call waits for less or for more than its
//! limit is a rule of the simulator.

use crate::nemesis::clocks;
use crate::prelude::*;

/// How much later than its limit a wait may end: one attempt's time, and the time to be scheduled.
const LATE: Duration = Duration::from_millis(60);

#[test]
fn a_wait_without_limit_is_not_for_a_dead_cluster() {
    let ports = [0; 3].map(|_| free_port().unwrap());
    let urls = ports.map(|port| format!("redis://127.0.0.1:{port}"));
    let patience = Duration::from_millis(200);
    let client = client_at(urls, |builder| builder.unavailable_after(patience));
    // Two threads: the second waits behind the first, and fails with it.
    thread::scope(|scope| {
        let lock = || {
            let start = Instant::now();
            (long_lock(&client, "k").lock().unwrap_err(), start.elapsed())
        };
        for waiting in [scope.spawn(lock), scope.spawn(lock)] {
            let (error, waited) = waiting.join().unwrap();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            // What a quorum of refusals decides need not wait for the third, and may not know why
            // that one is silent.
            let addresses = ports.map(|port| format!("127.0.0.1:{port}"));
            assert!(
                causes(&error)
                    .iter()
                    .all(|cause| addresses.contains(&cause.0) && cause.1 == Phase::Connect),
                "{error}"
            );
            assert!(count_causes(&error, Cause::Refused) >= 2, "{error}");
            // It is noticed at an attempt, and the last delay may be the longest.
            let latest = patience + Duration::from_millis(250) + NODE_TIMEOUT + LATE;
            assert!(waited >= patience && waited < latest, "{waited:?}");
        }
    });
}

#[test]
fn a_wait_without_limit_behind_one_with_a_long_limit_is_not_for_a_dead_cluster() {
    let limit = Duration::from_millis(300);
    let ports = [0; 3].map(|_| free_port().unwrap());
    let urls = ports.map(|port| format!("redis://127.0.0.1:{port}"));
    let client = client_at(urls, |builder| builder.unavailable_after(limit));
    let shutdown = CancelHandle::new();
    let patient = Wait::timeout(SOON).cancelled_by(&shutdown);
    thread::scope(|scope| {
        scope.spawn(|| assert!(long_lock(&client, "k").lock_with(&patient).is_err()));
        thread::sleep(LATE);
        let begun = Instant::now();
        let error = long_lock(&client, "k").lock().unwrap_err();
        let took = begun.elapsed();
        shutdown.cancel();
        assert_eq!(
            (error.kind(), error.causes().len()),
            (ErrorKind::Unavailable, 3)
        );
        assert!(limit <= took && took < SOON / 2, "{took:?}");
    });
}

#[test]
fn a_waiter_behind_others_does_not_report_a_held_lock_before_any_node_has_answered() {
    let fake = Fake::silent();
    let client = client_within([fake.url()], SOON);
    thread::scope(|scope| {
        let head = scope.spawn(|| long_lock(&client, "k").lock_timeout(4 * LATE).is_err());
        thread::sleep(LATE);
        let error = long_lock(&client, "k")
            .lock_timeout(LATE)
            .expect_err("no node has answered");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(head.join().unwrap());
    });
}

#[test]
fn no_patience_with_an_absent_cluster_is_patience_with_one_that_is_there() {
    let (_servers, client) =
        deployment_with(3, |builder| builder.unavailable_after(Duration::ZERO));
    drop(take(&long_lock(&client, "before")));
    let barrier = Barrier::new(8);
    let results = at_once(8, |_| {
        barrier.wait();
        long_lock(&client, "k").lock().map(drop)
    });
    let errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    assert!(errors.is_empty(), "{} of 8: {}", errors.len(), errors[0]);
}

#[test]
fn spinning_ends_at_the_deadline() {
    let fake = Fake::silent();
    // Many times the limit, and not so long that the end of the client takes long.
    let node_timeout = Duration::from_secs(1);
    let client = client_at([fake.url()], |builder| {
        let builder = builder.node_timeout(node_timeout);
        builder.spin(Duration::from_millis(10))
    });
    let limit = Duration::from_millis(15);
    promptly(node_timeout / 4, || {
        assert!(long_lock(&client, "k").lock_timeout(limit).is_err());
    });
}

#[test]
fn a_guard_that_ended_long_ago_is_no_reason_to_say_that_the_lock_is_held() {
    let node = EmbeddedNode::start().unwrap();
    let client = client_within([node.url()], SOON);
    let stale = take(&client.mutex("k").ttl(Duration::from_millis(500)));
    thread::sleep(Duration::from_millis(550));
    assert!(stale.remaining().is_zero());
    node.hang();
    thread::scope(|scope| {
        let mutex = client.mutex("k").ttl(Duration::from_secs(60));
        let head = scope.spawn({
            let mutex = mutex.clone();
            move || mutex.lock_timeout(Duration::from_millis(600)).is_err()
        });
        thread::sleep(Duration::from_millis(200));
        let attempt = mutex.lock_timeout(Duration::from_millis(100));
        assert!(head.join().unwrap());
        fails(attempt, ErrorKind::Unavailable);
    });
    node.resume();
}

#[test]
fn a_wait_without_limit_is_no_longer_than_attempts_last() {
    let fake = Fake::silent();
    let client = client_at([fake.url()], |builder| {
        builder
            .node_timeout(SOON / 2)
            .unavailable_after(Duration::from_millis(300))
    });
    let mutex = client.mutex("k").ttl(Duration::from_millis(500));
    thread::scope(|scope| {
        let shutdown = CancelHandle::new();
        let wait = Wait::timeout(SOON * 2).cancelled_by(&shutdown);
        let patient = mutex.clone();
        scope.spawn(move || drop(patient.lock_with(&wait)));
        thread::sleep(Duration::from_millis(50));
        let begun = Instant::now();
        assert!(mutex.lock().is_err());
        let took = begun.elapsed();
        shutdown.cancel();
        assert!(took < SOON / 4, "{took:?}");
    });
}

/// In a process whose own wall clock is set forward while it waits. The nodes are in that process
/// and do not go by that clock.
#[test]
fn a_wall_clock_set_forward_ends_no_wait_and_shortens_a_lease() {
    const FORWARD: Duration = Duration::from_secs(60);
    const PATIENCE: Duration = Duration::from_secs(2);
    let file = std::env::var_os(clocks::VARIABLE).map_or_else(
        || Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("clock.{}", std::process::id())),
        PathBuf::from,
    );
    let variables = [
        (preload::VARIABLE, &*clocks::library()),
        (clocks::VARIABLE, &*file),
    ];
    alone_with(&variables, || {
        let nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::start().unwrap()).collect();
        let client = || plain_client(nodes.iter().map(EmbeddedNode::url));
        let holder = client();
        let waiter = client();
        let guard = holder.mutex("k").ttl(FORWARD / 2).lock().unwrap();
        let begun = Instant::now();
        let waiting = thread::spawn(move || {
            waiter
                .mutex("k")
                .lock_timeout(PATIENCE)
                .map(|guard| guard.is_some())
        });
        thread::sleep(PATIENCE / 10);
        let before = SystemTime::now();
        clocks::set(&file, i64::try_from(FORWARD.as_micros()).unwrap());
        assert!(
            SystemTime::now().duration_since(before).unwrap() >= FORWARD,
            "the clock was not set"
        );
        assert!(!waiting.join().unwrap().unwrap(), "it was never released");
        assert!(
            begun.elapsed() >= PATIENCE,
            "gave up after {:?} of {PATIENCE:?}",
            begun.elapsed()
        );
        assert_eq!(guard.remaining(), Duration::ZERO);
    });
    let _ = std::fs::remove_file(file);
}
