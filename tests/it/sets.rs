//! Several resources at once: all of them or none, on the nodes, in this client's queues, and for
//! other libraries.

mod parts;
mod ring;
mod waits;

use crate::prelude::*;
use quorumlock::MutexSet;
use quorumlock::kind::Set;

/// A set of these resources, with a time to live that outlives the test.
pub(crate) fn set(client: &Redlock, names: &[&str]) -> MutexSet {
    client.mutex_set(names).ttl(LONG_TTL)
}

#[test]
fn a_set_holds_all_its_resources_with_one_value_and_one_end() {
    let (servers, [mine, theirs]) = programs(3);
    let mutex = set(&mine, &["b", "a", "c", "a"]);
    assert_eq!(mutex.names().collect::<Vec<_>>(), ["a", "b", "c"]);
    let guard = take(&mutex);
    assert_eq!(guard.names().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(guard.remaining() > LONG_TTL / 2 && guard.ensure(LONG_TTL / 2).is_ok());
    for server in &servers {
        assert_soon!(value(server, "c").is_some());
        assert!(value(server, "a").is_some() && value(server, "a") == value(server, "b"));
        assert_eq!(value(server, "a"), value(server, "c"));
        assert!(
            ["a", "b", "c"]
                .iter()
                .all(|key| left(server, key).unwrap() > LONG_TTL / 2)
        );
    }
    for client in [&mine, &theirs] {
        assert!(
            ["a", "b", "c"]
                .iter()
                .all(|name| is_held(&client.mutex(name)))
        );
        assert!(is_held(&set(client, &["c", "d"])));
    }
    let others = take(&set(&theirs, &["d", "e"]));
    unlock(guard);
    drop(others);
    all_gone_for_good(&servers, &["a", "b", "c", "d", "e"]);
    // What was refused has left nothing either.
    assert!(theirs.mutex("b").try_lock().unwrap().is_some());
}

#[test]
fn a_set_of_one_is_the_lock_of_one() {
    let (server, client) = single();
    let guard = take(&set(&client, &["a", "a"]));
    // The other one is the note that each node of a new deployment gets.
    assert_eq!(calls(&server, "set"), 2);
    let lease = guard.detach().unwrap();
    unlock(client.attach(lease).unwrap());
}

#[test]
fn names_that_cannot_be_used_are_refused_without_asking_a_node() {
    let (server, client) = single();
    let many: Vec<String> = (0..65).map(|number| format!("k{number}")).collect();
    let long = "x".repeat(4097);
    let lease = take(&set(&client, &["a", "b"])).detach().unwrap();
    let unusable = [
        client.mutex_set(Vec::<&str>::new()),
        client.mutex_set(&many),
        client.mutex_set(["a", ""]),
        client.mutex_set(["a", &long]),
        client.mutex_set(["a", "quorumlock-fence:b"]),
        client.mutex_set(["a", "b"]).ttl(Duration::ZERO),
    ];
    let before = calls(&server, "set");
    for mutex in unusable {
        let errors = [
            mutex.lock().unwrap_err(),
            mutex.try_lock().unwrap_err(),
            mutex.lock_timeout(SOON).unwrap_err(),
        ];
        assert!(
            errors.iter().all(|error| error.kind() == ErrorKind::Config),
            "{errors:?}"
        );
    }
    assert_eq!(calls(&server, "set"), before);
    assert_eq!(client.attach(lease).unwrap().name(), "a, b");
    unlock(take(&client.mutex_set(&many[..64])));
}

#[test]
fn a_set_is_handed_over_as_a_whole() {
    let (servers, [mine, theirs]) = programs(3);
    let names = ["orders/1", "orders, 2:%"];
    let text = take(&set(&mine, &names)).detach().unwrap().into_text();
    let lease = || text.expose().parse::<Lease<Set>>().unwrap();
    assert_eq!(
        lease().keys().collect::<Vec<_>>(),
        ["orders, 2:%", "orders/1"]
    );
    for other in [
        &names[..1],
        &["orders/1", "another"],
        &["orders, 2:%", "orders/1", "orders/3"],
    ] {
        at_row(format_args!("{other:?}"));
        fails(set(&theirs, other).attach(lease()), ErrorKind::Config);
    }
    let guard = set(&theirs, &names).attach(lease()).unwrap();
    extend(&guard, LONG_TTL * 2);
    assert!(
        names
            .iter()
            .all(|key| left(&servers[0], key).unwrap() > LONG_TTL)
    );
    unlock(guard);
    all_gone_for_good(&servers, &names);
}

#[test]
fn one_round_trip_takes_or_frees_a_set_and_a_drop_frees_it_too() {
    let (servers, client) = deployment(3);
    let mutex = set(&client, &["a", "b", "c"]);
    for _ in 0..3 {
        drop(mutex.lock().unwrap());
    }
    // Each goes behind the release before it, on the same connections.
    let before: Vec<u64> = servers.each(|server| calls(server, "set"));
    unlock(mutex.lock().unwrap());
    for (server, before) in servers.iter().zip(before) {
        assert_soon!(
            calls(server, "set") == before + 3,
            "no attempt was made twice"
        );
    }
    all_gone_for_good(&servers, &["a", "b", "c"]);
}

#[test]
fn a_watchdog_extends_all_keys_together() {
    let ttl = Duration::from_millis(600);
    let servers = Server::several(3).unwrap();
    let mutex = client(&servers)
        .mutex_set(["a", "b", "c"])
        .ttl(ttl)
        .watchdog(Watchdog::new());
    let guard = mutex.lock().unwrap();
    std::thread::sleep(ttl * 2);
    assert!(guard.remaining() > Duration::ZERO);
    let lasts = |key| {
        servers
            .iter()
            .filter(|server| value(server, key).is_some())
            .count()
            >= 2
    };
    assert!(lasts("a") && lasts("b") && lasts("c"));
    unlock(guard);
    all_gone_for_good(&servers, &["a", "b", "c"]);
}

#[test]
fn a_set_stands_for_as_long_as_it_is_to_stand_at_least() {
    let (servers, client) = deployment(3);
    let mutex = set(&client, &["a", "b"]).min_hold(LONG_TTL / 4);
    unlock(take(&mutex));
    for server in &servers {
        assert!(
            ["a", "b"]
                .iter()
                .all(|key| eventually(SOON, || left(server, key).unwrap() <= LONG_TTL / 4))
        );
    }
    assert!(is_held(&mutex) && is_held(&client.mutex("b")));
}

#[test]
fn a_set_that_has_lost_one_key_on_a_quorum_is_lost() {
    let servers = Server::several(3).unwrap();
    let ttl = Duration::from_secs(3);
    for how in ["extend", "watchdog", "unlock"] {
        let mutex = client(&servers).mutex_set(["a", "b"]).ttl(ttl);
        let mutex = if how == "watchdog" {
            mutex.watchdog(Watchdog::new())
        } else {
            mutex
        };
        let guard = take(&mutex);
        everywhere(&servers, "b");
        servers[..2].iter().for_each(|server| {
            assert_eq!(server.command(&["DEL", "b"]).unwrap(), Answer::Number(1))
        });
        match how {
            "extend" => assert_eq!(guard.extend(ttl).unwrap(), ExtendOutcome::Lost),
            "watchdog" => {
                assert!(guard.lost().unwrap().recv_timeout(SOON).is_ok());
                assert!(guard.remaining().is_zero() && guard.ensure(Duration::ZERO).is_err());
            }
            _ => {}
        }
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Expired, "{how}");
        all_gone_for_good(&servers, &["a", "b"]);
    }
}

#[test]
fn events_call_a_set_by_all_its_names() {
    let server = Server::start().unwrap();
    let names = Seen::nothing();
    let client = client_with([&server], |builder| {
        builder
            .prefix("app:")
            .observer(names.by(picked!(Event::Acquired { name, .. } => name.to_string())))
    });
    let guard = take(&set(&client, &["b", "a"]));
    assert_eq!(names.all(), ["a, b"]);
    assert!(format!("{guard:?}").contains("a, b") && value(&server, "app:a").is_some());
}
