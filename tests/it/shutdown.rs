//! A client that is shut down: no lock is granted any more, waits end, what is held is waited for,
//! and what has not ended is named.

mod calls;
mod waits;

use crate::prelude::*;
use quorumlock::NodeFault;

/// Long enough for a thread to be in the middle of its wait.
const MOMENT: Duration = Duration::from_millis(100);

/// The names that are held, the calls in progress, and the nodes with releases.
fn incomplete(outcome: ShutdownOutcome) -> (Vec<String>, usize, Vec<String>) {
    let ShutdownOutcome::Incomplete {
        held,
        calls,
        unreleased,
        ..
    } = outcome
    else {
        panic!("{outcome}");
    };
    let nodes = unreleased
        .iter()
        .map(|node| node.address().to_owned())
        .collect();
    (held, calls, nodes)
}

/// Begins the shutdown, while these locks are held.
#[track_caller]
fn begin(client: &Redlock, held: &[&str]) {
    client.flush_releases(SOON).unwrap();
    let outcome = client.shutdown(Duration::ZERO).unwrap();
    assert_eq!(incomplete(outcome), (names(held), 0, Vec::new()));
}

fn names(held: &[&str]) -> Vec<String> {
    held.iter().map(|&name| name.to_owned()).collect()
}

/// Completes the shutdown.
#[track_caller]
fn complete(client: &Redlock) {
    assert_eq!(client.shutdown(SOON).unwrap(), ShutdownOutcome::Complete);
}

#[test]
fn a_client_without_work_is_shut_down_at_once() {
    for nodes in [1, 3] {
        let (servers, client) = deployment(nodes);
        // Without a connection.
        complete(&client);
        let used = crate::clients::client(&servers);
        drop(take(&long_lock(&used, "k")));
        complete(&used);
        assert!(servers.all(|server| server.keys().unwrap().is_empty()));
        assert_eq!(used.connect(SOON).unwrap().len(), nodes);
    }
}

#[test]
fn guards_are_held_and_extended_until_they_are_dropped() {
    let (servers, client) = deployment(3);
    let ttl = Duration::from_millis(500);
    let watched = client.mutex("watched").ttl(ttl).watchdog(Watchdog::new());
    let watched = watched.lock().unwrap();
    let other = take(&long_lock(&client, "k"));
    begin(&client.clone(), &["k", "watched"]);
    extend(&other, LONG_TTL);
    thread::sleep(ttl * 2);
    watched.ensure(Duration::ZERO).unwrap();
    unlock(watched);
    begin(&client, &["k"]);
    thread::scope(|scope| {
        let [first, second] = [0, 1].map(|_| {
            let client = client.clone();
            scope.spawn(move || (client.shutdown(SOON), Instant::now()))
        });
        thread::sleep(MOMENT);
        assert!(!first.is_finished() && !second.is_finished());
        let dropped_at = Instant::now();
        drop(other);
        for thread in [first, second] {
            let (outcome, at) = thread.join().unwrap();
            assert_eq!(outcome.unwrap(), ShutdownOutcome::Complete);
            assert!(at - dropped_at < Duration::from_millis(500), "not notified");
        }
    });
    assert_eq!(key_counts(&servers), [0; 3]);
}

#[test]
fn locks_of_every_kind_are_waited_for() {
    let (servers, client) = deployment(3);
    let permit = take(&client.semaphore("permits", 2).ttl(LONG_TTL));
    let set = take(&client.mutex_set(["y", "x"]).ttl(LONG_TTL));
    let fenced = take(&client.mutex("fenced").fenced().ttl(LONG_TTL));
    let writer = take(&client.write_mutex("written").ttl(LONG_TTL));
    let read = client.read_mutex("read").ttl(LONG_TTL);
    let [reader, second] = [0, 1].map(|_| take(&read));
    let slot = permit.name().to_owned();
    let mut held = vec!["fenced", &slot, "read", "written", "x", "y"];
    begin(&client, &held);
    drop(reader);
    begin(&client, &held);
    for (name, end) in [
        ("read", Box::new(move || drop(second)) as Box<dyn FnOnce()>),
        (&slot, Box::new(move || drop(permit))),
        ("fenced", Box::new(move || drop(fenced))),
        ("x", Box::new(move || drop(set))),
    ] {
        end();
        held.retain(|&other| other != name && !(name == "x" && other == "y"));
        let outcome = client.shutdown(MOMENT).unwrap();
        assert_eq!(incomplete(outcome).0, names(&held), "{name}");
    }
    // The writer may continue as a reader.
    let reader = writer.downgrade().unwrap();
    begin(&client, &["written"]);
    // Its lease is not shared.
    let other = client.read_mutex("written").ttl(LONG_TTL);
    assert_eq!(other.try_lock().unwrap_err().kind(), ErrorKind::ShutDown);
    drop(reader);
    complete(&client);
    // What stays of a fenced lock is its number.
    let keys = servers[0].keys().unwrap();
    assert!(keys.iter().all(|key| key.contains("fence")), "{keys:?}");
}

/// A thread that asks for more time than the lease of the others has takes one of its own.
#[test]
fn every_lease_to_read_is_waited_for() {
    let (servers, client) = deployment(1);
    let mutex = client.read_mutex("read");
    let watchdog = Watchdog::new();
    let first = take(&mutex.clone().ttl(LONG_TTL));
    first.lost().unwrap();
    let second = take(&mutex.clone().ttl(LONG_TTL).watchdog(watchdog));
    begin(&client, &["read"]);
    drop(second);
    begin(&client, &["read"]);
    drop(first);
    complete(&client);
    gone_for_good(&servers, "quorumlock-rw:read");
}

#[test]
fn an_owner_may_take_its_lock_again() {
    let (_servers, client) = deployment(3);
    let mutex = client.mutex("k").ttl(LONG_TTL).reentrant();
    let owner = Owner::new();
    let outer = take(&mutex);
    begin(&client, &["k"]);
    let inner = mutex.lock().unwrap();
    let error = mutex.lock_as(&owner, &Wait::unlimited()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ShutDown);
    drop(outer);
    begin(&client, &["k"]);
    unlock(inner);
    complete(&client);
    assert_eq!(mutex.lock().unwrap_err().kind(), ErrorKind::ShutDown);
}

#[test]
fn what_is_detached_is_not_waited_for() {
    let (servers, client) = deployment(3);
    let mutex = long_lock(&client, "k");
    let lease = take(&mutex).detach().unwrap();
    complete(&client);
    assert_eq!(key_counts(&servers), [1; 3]);
    let error = mutex.attach(lease).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ShutDown);
    assert_eq!(key_counts(&servers), [1; 3]);
}

/// Its thread may still work, though another one has had the lock meanwhile.
#[test]
fn a_guard_is_waited_for_though_its_lease_has_ended() {
    let (_servers, client) = deployment(3);
    let late = wait_for(&client.mutex("k").ttl(MOMENT));
    let next = wait_for(&long_lock(&client, "k"));
    unlock(next);
    begin(&client, &["k"]);
    assert_eq!(late.unlock().unwrap(), ReleaseOutcome::Expired);
    complete(&client);
}

#[test]
fn a_guard_of_a_thread_that_panics_is_waited_for() {
    let (servers, client) = deployment(3);
    let mutex = long_lock(&client, "k");
    let (signal, signalled) = crossbeam_channel::bounded::<()>(0);
    let thread = thread::spawn(move || {
        let _guard = take(&mutex);
        signalled.recv().ok();
        signalled.recv().ok();
        panic!("on purpose");
    });
    signal.send(()).unwrap();
    begin(&client, &["k"]);
    drop(signal);
    complete(&client);
    assert!(thread.join().is_err());
    assert_eq!(key_counts(&servers), [0; 3]);
}

#[test]
fn a_node_that_hangs_has_releases_left() {
    let (servers, client) = deployment(3);
    let guard = take(&long_lock(&client, "k"));
    client.flush_releases(SOON).unwrap();
    servers[1].pause().unwrap();
    drop(guard);
    let outcome = client.shutdown(Duration::from_millis(300)).unwrap();
    let ShutdownOutcome::Incomplete { unreleased, .. } = &outcome else {
        panic!("{outcome}");
    };
    let causes: Vec<_> = unreleased.iter().map(NodeFault::cause).collect();
    assert_eq!(causes, [Cause::TimedOut]);
    let text = outcome.to_string();
    assert!(
        text.starts_with("shutdown incomplete: releases not confirmed [127.0.0.1:"),
        "{text}"
    );
    assert_eq!(
        incomplete(outcome),
        (Vec::new(), 0, vec![servers[1].address()])
    );
    servers[1].resume().unwrap();
    complete(&client);
    assert_eq!(key_counts(&servers), [0; 3]);
}

/// It would wait for its own call.
#[test]
fn an_observer_does_not_wait() {
    let servers = Server::several(3).unwrap();
    let own: Arc<OnceLock<Redlock>> = Arc::default();
    let outcomes = Seen::nothing();
    let reasons = Seen::nothing();
    let shut_down = {
        let own = Arc::clone(&own);
        let keep = outcomes.by(picked!(Event::Acquired { .. } => ()));
        move |event: &Event| {
            if let (Event::Acquired { .. }, Some(own)) = (event, own.get()) {
                let outcome = own.shutdown(SOON * 6).unwrap();
                assert_eq!(incomplete(outcome), (names(&["k"]), 1, Vec::new()));
                keep(event);
            }
        }
    };
    let client = builder(&servers)
        .observer(shut_down)
        .observer(reasons.by(picked!(Event::GaveUp { reason, .. } => *reason)))
        .build()
        .unwrap();
    own.set(client.clone()).unwrap();
    let begun = Instant::now();
    let mutex = long_lock(&client, "k");
    // What it acquired while the shutdown began is released.
    assert_eq!(mutex.try_lock().unwrap_err().kind(), ErrorKind::ShutDown);
    assert_eq!(mutex.try_lock().unwrap_err().kind(), ErrorKind::ShutDown);
    assert!(begun.elapsed() < SOON);
    assert_eq!(outcomes.all().len(), 1);
    assert_eq!(reasons.all(), [GaveUpReason::ShutDown]);
    complete(&client);
    assert_eq!(key_counts(&servers), [0; 3]);
}

#[test]
fn a_child_cannot_shut_the_client_of_its_parent_down() {
    alone(|| {
        let (_servers, client) = deployment(3);
        let guard = take(&long_lock(&client, "k"));
        let child = Child::fork(End::Vanish, |parent| {
            let error = client.shutdown(SOON).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Forked);
            parent.send("refused");
        });
        assert_eq!(child.end(SOON), "refused");
        assert_soon!(client.mutex("other").lock().is_ok());
        drop(guard);
        complete(&client);
    });
}
