//! Waits that end before their time: for faults that time does not cure, and for a key that never
//! expires.

use crate::prelude::*;

/// Longer than any test lasts.
const LONG: Duration = Duration::from_secs(60);
const UNAVAILABLE_AFTER: Duration = Duration::from_millis(400);

fn impatient() -> Builder {
    Redlock::builder().unavailable_after(UNAVAILABLE_AFTER)
}

/// The error of a wait with a limit, which it did not last for, of each of three threads.
fn ended(client: &Redlock, cause: Cause) {
    assert!(
        client.mutex("k").try_lock().unwrap_err().is_permanent(),
        "{cause}"
    );
    let begun = Instant::now();
    thread::scope(|scope| {
        let waits = [0; 3].map(|_| scope.spawn(|| client.mutex("k").lock_timeout(LONG)));
        for wait in waits {
            let error = wait.join().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert!(error.is_permanent(), "{error}");
            assert!(count_causes(&error, cause) >= 2, "{error}");
        }
    });
    let time = begun.elapsed();
    assert!(
        time >= UNAVAILABLE_AFTER && time < SOON,
        "{cause}: {time:?}"
    );
}

#[test]
fn permanent_faults_on_a_majority_end_every_wait() {
    let healthy = Server::start().unwrap();
    let locked = [0; 2].map(|_| Server::with(&["--requirepass", "hunter2"]).unwrap());
    let fail = |urls: Vec<String>, cause| {
        let builder = impatient().nodes(urls).node(healthy.url());
        ended(&builder.build().unwrap(), cause);
    };
    let wrong = |server: &Server| format!("redis://:hunter3@{}", server.address());
    fail(locked.iter().map(wrong).collect(), Cause::Auth);

    let servers = Server::several(2).unwrap();
    let missing = |server: &Server| format!("{}/9999", server.url());
    fail(servers.each(missing), Cause::Database);

    if has_users() {
        let denied = |server: &Server| user(server, "~* +@all -set");
        fail(servers.each(denied), Cause::NoPermission);
    }

    servers.iter().for_each(|server| follow(server, &healthy));
    fail(servers.each(Server::url), Cause::NotMaster);
}

#[test]
fn faults_that_may_pass_and_those_of_a_minority_end_no_wait() {
    let healthy = Server::several(2).unwrap();
    let locked = Server::with(&["--requirepass", "hunter2"]).unwrap();
    let wrong = format!("redis://:hunter3@{}", locked.address());
    let client = impatient()
        .nodes(healthy.iter().map(Server::url))
        .node(&wrong)
        .node_timeout(SOON)
        .build()
        .unwrap();
    let _ = client.mutex("k").lock().unwrap().unlock().unwrap();

    let client = impatient().nodes([dead(), dead(), wrong]).build().unwrap();
    let begun = Instant::now();
    let limit = UNAVAILABLE_AFTER * 4;
    let error = client.mutex("k").lock_timeout(limit).unwrap_err();
    assert!(
        begun.elapsed() >= limit && !error.is_permanent(),
        "{error} after {:?}",
        begun.elapsed()
    );
}

/// The key and the addresses of an event.
fn without_expiry(event: &Event) -> Option<(String, Vec<String>)> {
    let Event::KeyWithoutExpiry {
        name, key, nodes, ..
    } = event
    else {
        return None;
    };
    assert_eq!(format!("jobs:{name}"), **key);
    Some((
        key.to_string(),
        nodes.iter().map(ToString::to_string).collect(),
    ))
}

#[test]
fn a_key_without_expiry_on_a_majority_ends_waits_and_is_reported() {
    let servers = Server::several(3).unwrap();
    let journal = Seen::nothing();
    let client = client_with(&servers, |builder| {
        builder.prefix("jobs:").observer(journal.by(without_expiry))
    });
    let mutex = client.mutex("k");
    servers[0].command(&["SET", "jobs:k", "data"]).unwrap();
    let _ = mutex.lock().unwrap().unlock().unwrap();

    servers[2].command(&["SET", "jobs:k", "data"]).unwrap();
    assert!(is_held(&mutex), "it is held");
    let begun = Instant::now();
    let errors =
        [mutex.lock_timeout(LONG).map(drop), mutex.lock().map(drop)].map(Result::unwrap_err);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let addresses = vec![servers[0].address(), servers[2].address()];
    for error in &errors {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        let causes = error.causes().iter();
        let causes: Vec<_> = causes.map(|node| (node.address(), node.cause())).collect();
        let expected = [0, 1].map(|index: usize| (addresses[index].as_str(), Cause::NoExpiry));
        assert_eq!(causes, expected);
        assert!(
            error.is_permanent()
                && error
                    .to_string()
                    .contains("\"jobs:k\" has no expiry on 2 of 3 nodes"),
            "{error}"
        );
    }
    assert_eq!(journal.all(), vec![("jobs:k".to_owned(), addresses); 2]);
    assert_eq!(
        value(&servers[0], "jobs:k").as_deref(),
        Some("data"),
        "it is left as it is"
    );

    servers[2].command(&["DEL", "jobs:k"]).unwrap();
    let _ = mutex.lock().unwrap().unlock().unwrap();
}

/// The others are waited for, so the call does not end for it.
#[test]
fn a_slot_of_a_semaphore_without_expiry_is_reported_once_by_a_call_that_waits() {
    let servers = Server::several(3).unwrap();
    let journal = Seen::nothing();
    let client = client_with(&servers, |builder| {
        builder.prefix("jobs:").observer(journal.by(without_expiry))
    });
    let permits = client.semaphore("k", 2).ttl(LONG);
    ask_each(&servers[..2], &["SET", "jobs:k#1", "data"]);
    let held = permits.lock().unwrap();
    assert_eq!(held.slot(), 0);
    assert!(is_held(&permits));
    let reported = || journal.all();
    assert_eq!(
        reported(),
        [],
        "another program may be about to set the expiry"
    );
    thread::scope(|scope| {
        let waiting = scope.spawn(|| wait_for(&permits));
        assert_soon!(
            !reported().is_empty(),
            "the permit is lost without an event"
        );
        thread::sleep(Duration::from_millis(500));
        drop(held);
        assert_eq!(waiting.join().unwrap().slot(), 0);
    });
    let addresses = vec![servers[0].address(), servers[1].address()];
    assert_eq!(reported(), [("jobs:k#1".to_owned(), addresses)]);
}

/// Other programs set a key first and its expiry by a second command.
#[test]
fn a_key_that_gets_its_expiry_late_is_waited_for() {
    let (servers, client) =
        deployment_with(3, |builder| builder.node_timeout(Duration::from_secs(3)));
    ask_each(&servers, &["SET", "k", "another program"]);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| client.mutex("k").lock_timeout(LONG));
        thread::sleep(Duration::from_millis(300));
        ask_each(&servers, &["PEXPIRE", "k", "200"]);
        assert!(waiting.join().unwrap().unwrap().is_some());
    });
}
