//! Sets that wait: for one key at a time, with nothing in hand, and in the queues of their client.

use super::*;

/// Long enough for a thread to have begun to wait.
const ARRIVAL: Duration = Duration::from_millis(150);

#[test]
fn a_set_waits_where_a_node_has_no_scripts() {
    let without = EmbeddedNode::builder().without_scripts().start();
    let nodes = [without, EmbeddedNode::start(), EmbeddedNode::start()].map(Result::unwrap);
    let client = || client_of(nodes.iter().map(EmbeddedNode::url));
    let downs = Seen::nothing();
    let builder = Redlock::builder()
        .nodes(nodes.iter().map(EmbeddedNode::url))
        .observer(downs.by(picked!(Event::NodeDown { .. } => ())));
    let mine = builder.build().unwrap();
    let theirs = client();
    let other = client();
    let held = ["b", "c"].map(|key| long_lock(&theirs, key).lock().unwrap());
    thread::scope(|threads| {
        let waiting = threads.spawn(|| {
            set(&mine, &["a", "b", "c", "d"])
                .lock_timeout(SOON * 3)
                .unwrap()
                .unwrap()
        });
        for guard in held {
            thread::sleep(ARRIVAL);
            assert!(!waiting.is_finished());
            unlock(guard);
        }
        unlock(waiting.join().unwrap());
    });
    // That a node has no queue does not affect its votes.
    assert_eq!(downs.all(), []);
    // Nothing is left where it could be deleted.
    unlock(take(&set(&other, &["a", "b", "c", "d"])));
}

#[test]
fn a_set_without_time_to_wait_makes_one_attempt_while_its_client_has_one_of_the_keys() {
    let (servers, client) = deployment(3);
    let held = take(&set(&client, &["b"]));
    let mutex = set(&client, &["a", "b"]);
    let now = Instant::now();
    let cancel = CancelHandle::new();
    for wait in [
        Wait::timeout(Duration::ZERO),
        Wait::deadline(now),
        Wait::deadline(now - SOON),
    ] {
        let before = calls(&servers[0], "set");
        assert!(mutex.lock_with(&wait).unwrap().is_none());
        assert_eq!(
            calls(&servers[0], "set"),
            before + 2,
            "one attempt at two keys"
        );
    }
    cancel.cancel();
    let cancelled = Wait::timeout(Duration::ZERO).cancelled_by(&cancel);
    fails(mutex.lock_with(&cancelled), ErrorKind::Cancelled);
    assert_eq!(
        held.unlock().unwrap(),
        ReleaseOutcome::Released,
        "it was held all the time"
    );
    all_gone_for_good(&servers, &["a", "b"]);
}

#[test]
fn sets_and_locks_of_one_client_wait_for_each_other_and_ask_no_node() {
    let server = Server::start().unwrap();
    let waits = Seen::nothing();
    // No attempt is made again because the machine has held it up.
    let become_as_many_as = |number| {
        assert_soon!(waits.all().len() == number, "not {number} wait");
        // The last of them has time to ask, if it does.
        thread::sleep(ARRIVAL);
    };
    let client = client_with([&server], |builder| {
        builder
            .node_timeout(SOON)
            .observer(waits.by(picked!(Event::Waiting { .. } => ())))
    });
    let lock = long_lock(&client, "b").lock().unwrap();
    let before = calls(&server, "set");
    thread::scope(|threads| {
        let waiting = threads.spawn(|| set(&client, &["a", "b", "c"]).lock().unwrap());
        become_as_many_as(1);
        assert_eq!(
            calls(&server, "set"),
            before,
            "the guard of b is in this client"
        );
        unlock(lock);
        let guard = waiting.join().unwrap();
        assert_eq!(calls(&server, "set"), before + 3);
        let single = threads.spawn(|| long_lock(&client, "c").lock().unwrap());
        become_as_many_as(2);
        let other = threads.spawn(|| {
            set(&client, &["c", "d"])
                .lock_timeout(SOON * 3)
                .unwrap()
                .unwrap()
        });
        become_as_many_as(3);
        assert_eq!(calls(&server, "set"), before + 3);
        unlock(guard);
        let first = single.join().unwrap();
        assert!(!other.is_finished(), "it queued up behind the lock");
        drop(first);
        let _ = other.join().unwrap().unlock().unwrap();
    });
    all_gone_for_good([&server], &["a", "b", "c", "d"]);
}

#[test]
fn a_lock_that_never_ends_is_found_where_a_set_waits_for_it() {
    let (servers, client) = deployment(3);
    ask_each(&servers, &["SET", "b", "for ever"]);
    let error = set(&client, &["a", "b"]).lock_timeout(SOON).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    shows(&error, "its key \"b\" has no expiry");
    gone_for_good(&servers, "a");
}

#[test]
fn a_set_without_notifications_is_in_no_queue_of_the_nodes() {
    let servers = Server::several(3).unwrap();
    let other = client(&servers);
    let client = client_with(&servers, |builder| builder.release_notifications(false));
    let held = take(&long_lock(&other, "b"));
    let set = client.mutex_set(["a", "b"]).ttl(LONG_TTL);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| set.lock_timeout(SOON).unwrap());
        thread::sleep(Duration::from_millis(300));
        let keys = servers.each(|server| server.keys().unwrap());
        drop(held);
        drop(waiting.join().unwrap().unwrap());
        assert_eq!(keys, [["b"]; 3]);
    });
}
