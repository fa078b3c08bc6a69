//! Waits that a shutdown ends: at once, wherever they are, and without leaving a key or an entry.

use super::*;

/// Longest time from the beginning of a shutdown until a call returns that does not wait for a
/// node. Without a notification, a wait in the local queue ends after a second.
const AT_ONCE: Duration = Duration::from_millis(500);

/// Several threads wait for this lock, in every way, until the client is shut down.
#[track_caller]
fn are_ended<K: Kind>(mutex: &Mutex<K>, client: &Redlock, held: &[&str]) {
    let (_message, messages) = crossbeam_channel::bounded(1);
    let waits = [
        Wait::unlimited(),
        Wait::timeout(SOON * 2),
        Wait::unlimited().cancelled_by(&CancelHandle::new()),
        Wait::unlimited().cancelled_by_channel(messages),
    ];
    thread::scope(|scope| {
        let waiting = waits.each_ref().map(|wait| {
            scope.spawn(move || {
                let error = mutex.lock_with(wait).map(|_| ()).unwrap_err();
                (error, Instant::now())
            })
        });
        thread::sleep(MOMENT);
        assert!(waiting.iter().all(|thread| !thread.is_finished()));
        let begun = Instant::now();
        let outcome = client.shutdown(AT_ONCE).unwrap();
        for thread in waiting {
            let (error, at) = thread.join().unwrap();
            assert_eq!(error.kind(), ErrorKind::ShutDown, "{error}");
            assert!(at - begun < AT_ONCE, "{:?}", at - begun);
        }
        if held.is_empty() {
            assert_eq!(outcome, quorumlock::ShutdownOutcome::Complete);
        } else {
            begin(client, held);
        }
    });
}

#[test]
fn behind_a_guard_of_the_same_client() {
    let (servers, client) = deployment(3);
    let mutex = long_lock(&client, "k");
    let guard = take(&mutex);
    are_ended(&mutex, &client, &["k"]);
    drop(guard);
    complete(&client);
    gone_for_good(&servers, "k");
}

#[test]
fn in_the_queues_of_the_nodes_and_behind_them() {
    for nodes in [1, 3] {
        let (servers, [mine, theirs]) = programs(nodes);
        let guard = take(&long_lock(&theirs, "k"));
        let mutex = long_lock(&mine, "k");
        thread::scope(|scope| {
            let first = scope.spawn(|| mutex.lock().unwrap_err().kind());
            has_entries(&servers, "k", 1);
            are_ended(&mutex, &mine, &[]);
            assert_eq!(first.join().unwrap(), ErrorKind::ShutDown);
        });
        has_entries(&servers, "k", 0);
        // The other client gets no entry out of its way that is not there any more.
        drop(guard);
        assert!(long_lock(&theirs, "k").try_lock().unwrap().is_some());
    }
}

#[test]
fn for_a_permit() {
    let (servers, [mine, theirs]) = programs(3);
    // Behind a guard of the same client, and behind one of another.
    let semaphore = mine.semaphore("s", 1).ttl(LONG_TTL);
    let permit = take(&semaphore);
    are_ended(&semaphore, &mine, &["s#0"]);
    drop(permit);
    complete(&mine);
    let _permit = take(&theirs.semaphore("s", 1).ttl(LONG_TTL));
    let mine = client(&servers);
    are_ended(&mine.semaphore("s", 1).ttl(LONG_TTL), &mine, &[]);
    has_entries(&servers, "s", 0);
}

/// A reader that wants to share the lease of another thread waits for that one's extension.
#[test]
fn for_a_lease_to_read_that_another_thread_extends() {
    let (servers, client) =
        deployment_with(3, |builder| builder.node_timeout(Duration::from_secs(3)));
    let mutex = client.read_mutex("k").ttl(LONG_TTL);
    let reader = take(&mutex);
    thread::scope(|scope| {
        pause(&servers);
        let extending = scope.spawn(|| reader.extend(LONG_TTL * 2));
        thread::sleep(MOMENT);
        let waiting = [
            scope.spawn(|| mutex.try_lock().map(|_| ())),
            scope.spawn(|| mutex.lock().map(|_| ())),
        ];
        thread::sleep(MOMENT);
        let outcome = client.shutdown(Duration::ZERO).unwrap();
        assert_eq!(super::incomplete(outcome).0, ["k"]);
        resume(&servers);
        for thread in waiting {
            let error = thread.join().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ShutDown, "{error}");
        }
        assert!(extending.join().unwrap().is_ok());
    });
    drop(reader);
    complete(&client);
}

/// The attempt ends with its time, and what it may have set is undone.
#[test]
fn while_all_nodes_hang() {
    let servers = Server::several(3).unwrap();
    let timeout = Duration::from_millis(500);
    let client = client_within(servers.each(Server::url), timeout);
    assert_soon!(client.connect(SOON).is_ok());
    pause(&servers);
    thread::scope(|scope| {
        let mutex = long_lock(&client, "k");
        let waiting = scope.spawn(move || (mutex.lock().unwrap_err(), Instant::now()));
        thread::sleep(MOMENT);
        let begun = Instant::now();
        let outcome = client.shutdown(timeout * 4).unwrap();
        let (error, at) = waiting.join().unwrap();
        assert_eq!(error.kind(), ErrorKind::ShutDown, "{error}");
        assert!(at - begun < timeout + AT_ONCE, "{:?}", at - begun);
        let (held, calls, nodes) = super::incomplete(outcome);
        assert_eq!((held.len(), calls, nodes.len()), (0, 0, 3));
    });
    resume(&servers);
    complete(&client);
    gone_for_good(&servers, "k");
}
