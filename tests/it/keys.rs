//! What is on the servers: the key that a resource becomes, for how long, and what others may make
//! of it.

use crate::prelude::*;

#[test]
fn unusable_resources_and_times_to_live_are_refused_without_asking_a_node() {
    // No node could be asked in a millisecond.
    let silent = crate::support::fake::Fake::silent();
    let minute = Duration::from_secs(60);
    let hour = Duration::from_secs(3600);
    let builder = quorumlock::Redlock::builder().node(silent.url());
    let client = builder.clone().build().unwrap();
    let limited = builder.max_ttl(hour).prefix("p").build().unwrap();
    let ttl = |ttl| client.mutex("k").ttl(ttl);
    let table = [
        (client.mutex(""), "0 bytes"),
        (limited.mutex(""), "0 bytes"),
        (client.mutex("k".repeat(4097)), "4097 bytes"),
        (ttl(Duration::ZERO), "shorter than 1 ms"),
        (ttl(Duration::from_micros(999)), "shorter than 1 ms"),
        (ttl(Duration::from_millis(1)), "clock drift"),
        (ttl(Duration::from_millis(2)), "clock drift"),
        (
            ttl(minute + Duration::from_millis(1)),
            "longer than max_ttl (60 s): raise max_ttl to 60.1 s in every client of these nodes",
        ),
        (
            ttl(minute * 90),
            "raise max_ttl to 1 h 30 min in every client of these nodes, or let a watchdog extend the lock",
        ),
        (ttl(Duration::MAX), "max_ttl"),
        (
            limited.mutex("k").ttl(hour + Duration::from_millis(1)),
            "max_ttl",
        ),
    ];
    for (mutex, words) in table {
        promptly(Duration::from_millis(10), || {
            for error in [
                mutex.try_lock().unwrap_err(),
                mutex.lock().unwrap_err(),
                mutex.lock_timeout(SOON).unwrap_err(),
            ] {
                assert_eq!((error.kind(), error.causes().len()), (ErrorKind::Config, 0));
                shows(&error, words);
            }
        });
    }
    assert_eq!(silent.connections(), 0);
}

#[test]
fn times_to_live_reach_the_servers() {
    let server = Server::start().unwrap();
    let client = client_with([&server], |builder| {
        builder.max_ttl(Duration::from_secs(86_400))
    });
    for (ttl, millis) in [(100, 100), (86_400_000, 86_400_000)] {
        let guard = take(&client.mutex("k").ttl(Duration::from_millis(ttl)));
        let Answer::Number(left) = server.command(&["PTTL", "k"]).unwrap() else {
            panic!()
        };
        assert!(left <= millis && left > millis - 90, "{left} of {millis}");
        unlock(guard);
    }
}

#[test]
fn any_text_can_be_a_resource() {
    let (server, client) = single();
    for resource in [
        "k\r\nDEL k",
        "$5\r\n",
        "\0",
        " ",
        "замок 🔒",
        "{slot}",
        "*",
        &"k".repeat(4096),
    ] {
        let guard = take(&long_lock(&client, resource));
        assert_eq!(guard.name(), resource);
        assert!(value(&server, resource).is_some(), "{resource:?}");
        unlock(guard);
        assert!(server.keys().unwrap().is_empty(), "{resource:?}");
    }
}

#[test]
fn a_prefix_is_part_of_the_key_and_not_of_the_resource() {
    let servers = Server::several(3).unwrap();
    let prefixed = builder(&servers).prefix("app:").build().unwrap();
    let plain = client(&servers);
    let guard = take(&long_lock(&prefixed, "k"));
    assert_eq!(guard.name(), "k");
    everywhere(&servers, "app:k");
    assert!(is_held(&plain.mutex("app:k")));
    unlock(take(&long_lock(&plain, "k")));
    unlock(guard);
    gone_for_good(&servers, "app:k");
}

#[test]
fn a_full_name_is_one_lock_of_each_kind_for_any_prefix() {
    let servers = Server::several(3).unwrap();
    let prefixed = builder(&servers).prefix("a/").build().unwrap();
    let plain = client(&servers);
    let held = take(&long_lock(&prefixed, "b"));
    assert!(is_held(&plain.mutex("a/b")));
    let fenced = take(&long_lock(&prefixed, "b").fenced());
    assert!(is_held(&plain.mutex("a/b").fenced()));
    let writer = prefixed
        .write_mutex("b")
        .ttl(LONG_TTL)
        .try_lock()
        .unwrap()
        .unwrap();
    assert!(is_held(&plain.read_mutex("a/b")));
    for key in ["a/b", "quorumlock-fence:a/b", "quorumlock-rw:a/b"] {
        everywhere(&servers, key);
    }
    assert_eq!((held.name(), fenced.name(), writer.name()), ("b", "b", "b"));
    drop((held, writer));
    let lease = fenced.detach().unwrap();
    assert_eq!(lease.key(), "quorumlock-fence:a/b");
    unlock(plain.attach(lease).unwrap());
    assert_soon!(prefixed.mutex("b").fenced().try_lock().unwrap().is_some());
    // The other way around.
    let writer = long_lock(&plain, "a/b").fenced();
    let held = (
        take(&writer),
        take(&long_lock(&plain, "a/b")),
        plain.read_mutex("a/b").ttl(LONG_TTL).lock().unwrap(),
    );
    assert!(is_held(&prefixed.mutex("b").fenced()));
    assert!(is_held(&prefixed.mutex("b")));
    assert!(is_held(&prefixed.write_mutex("b")));
    drop(held);
}

#[test]
fn markers_begin_no_full_name() {
    let silent = crate::support::fake::Fake::silent();
    let builder = quorumlock::Redlock::builder().node(silent.url());
    let markers = [
        "quorumlock-fence:",
        "quorumlock-rw:",
        "quorumlock-queue:",
        "quorumlock-permits:",
        "quorumlock-node",
    ];
    for marker in markers {
        for cut in [0, 5, marker.len()] {
            let (prefix, name) = marker.split_at(cut);
            let client = builder.clone().prefix(prefix).build().unwrap();
            let name = &format!("{name}k");
            let errors = [
                client.mutex(name).try_lock().unwrap_err(),
                client.mutex(name).fenced().try_lock().unwrap_err(),
                client.mutex(name).fair().try_lock().unwrap_err(),
                client.mutex_set(["a", name]).try_lock().unwrap_err(),
                client.semaphore(name, 2).try_lock().unwrap_err(),
                client.read_mutex(name).try_lock().unwrap_err(),
                client.write_mutex(name).try_lock().unwrap_err(),
                client.mutex(name).holder().unwrap_err(),
            ];
            assert!(
                errors.iter().all(|error| error.kind() == ErrorKind::Config),
                "{prefix} {name}: {errors:?}"
            );
        }
        let client = builder.clone().prefix("app:").build().unwrap();
        let error = client
            .mutex(marker.to_owned() + "k")
            .try_lock()
            .unwrap_err();
        assert_ne!(
            error.kind(),
            ErrorKind::Config,
            "behind a prefix it is a name like any other: {error}"
        );
    }
}

#[test]
fn a_key_of_another_type_belongs_to_another_program() {
    let server = Server::start().unwrap();
    server.command(&["RPUSH", "k", "job"]).unwrap();
    assert!(is_held(&long_lock(&client([&server]), "k")));
    assert_eq!(server.command(&["LLEN", "k"]).unwrap(), Answer::Number(1));
}

#[test]
fn a_key_whose_type_was_changed_is_lost() {
    let server = Server::start().unwrap();
    let guard = take(&long_lock(&client([&server]), "k"));
    server.command(&["DEL", "k"]).unwrap();
    server.command(&["RPUSH", "k", "job"]).unwrap();
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Expired);
    assert_eq!(server.command(&["LLEN", "k"]).unwrap(), Answer::Number(1));
}
