//! Which holder has a lock: what a quorum of real servers replies.

use crate::prelude::*;
use quorumlock::{Holder, host_label};

fn labelled(servers: &[Server], label: &str) -> Redlock {
    builder(servers).label(label).build().unwrap()
}

#[test]
fn any_client_sees_the_label_and_the_time_left_of_either_kind_of_lock() {
    for servers in threes() {
        let holder = labelled(&servers, "billing@host7/4711");
        let reader = client(&servers);
        let addresses: Vec<_> = servers.each(Server::address);
        let fenced = reader.mutex("k").fenced();
        let of_plain = || reader.mutex("k").holder().unwrap();
        let of_fenced = || fenced.holder().unwrap();
        let kinds: [(_, &dyn Fn() -> Option<Holder>, _); 2] = [
            (long_lock(&holder, "k").erase(), &of_plain, "k"),
            (
                long_lock(&holder, "k").fenced().erase(),
                &of_fenced,
                "quorumlock-fence:k",
            ),
        ];
        for (ours, now_held_by, key) in kinds {
            assert_eq!(now_held_by(), None);
            let guard = take(&ours);
            everywhere(&servers, key);
            let found = now_held_by().expect("it is held");
            assert_eq!(found.label(), Some("billing@host7/4711"));
            let remaining = found.remaining().expect("it ends");
            assert!(
                remaining > LONG_TTL - SOON && remaining <= LONG_TTL + Duration::from_secs(1),
                "{remaining:?}"
            );
            assert!(
                found.nodes().len() >= 2
                    && found.nodes().iter().all(|node| addresses.contains(node))
            );
            let token = value(&servers[0], key).unwrap();
            let token = token.split(' ').find(|field| field.len() == 40).unwrap();
            assert!(
                !format!("{found} {found:?}").contains(&token[..7]),
                "{found:?}"
            );
            drop(guard);
            assert_soon!(now_held_by().is_none());
            // A holder without a label has none, whatever the one before had.
            let guard = take(&fenced_if(key != "k", long_lock(&reader, "k")));
            assert_eq!(now_held_by().expect("it is held").label(), None);
            drop(guard);
        }
    }
}

#[test]
fn a_quorum_decides_and_too_few_answers_are_no_answer() {
    let mut servers = Server::several(3).unwrap();
    let holder = labelled(&servers, "host7");
    let guard = take(&long_lock(&holder, "k"));
    everywhere(&servers, "k");
    let reader = client_within(servers.each(Server::url), Duration::from_millis(200));
    let mutex = reader.mutex("k");
    // What one node has, or what one lacks, changes nothing.
    ask(&servers[0], &["SET", "k", "orphan", "PX", "60000"]);
    assert_eq!(mutex.holder().unwrap().unwrap().label(), Some("host7"));
    servers[0].command(&["DEL", "k"]).unwrap();
    assert_eq!(mutex.holder().unwrap().unwrap().label(), Some("host7"));
    ask(&servers[1], &["SET", "k", "orphan", "PX", "60000"]);
    assert_eq!(mutex.holder().unwrap(), None, "no client has a quorum");
    // With one node hung, one that lacks it and one that has it, either is possible.
    servers[1].command(&["DEL", "k"]).unwrap();
    servers[0].pause().unwrap();
    let error = mutex.holder().unwrap_err();
    assert_eq!(
        (error.kind(), error.causes().len()),
        (ErrorKind::Unavailable, 1),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .starts_with("cannot find the holder of \"k\": 1 of 3 nodes failed"),
        "{error}"
    );
    servers[0].resume().unwrap();
    drop(guard);
    servers[2].kill();
    let guard = take(&long_lock(&holder, "k"));
    assert_eq!(
        mutex.holder().unwrap().unwrap().label(),
        Some("host7"),
        "a minority is down"
    );
    drop(guard);
}

#[test]
fn a_value_that_is_too_long_to_be_read_costs_no_connection() {
    let server = Server::start().unwrap();
    let downs = Seen::nothing();
    let down = downs.by(picked!(Event::NodeDown { .. } => ()));
    let client = builder([&server]).observer(down).build().unwrap();
    server.command(&["SETRANGE", "k", "3000000", "x"]).unwrap();
    for _ in 0..2 {
        let error = client.mutex("k").holder().unwrap_err();
        let cause = error.causes()[0].cause();
        assert_eq!(cause, Cause::UnexpectedValue, "{error}");
        drop(take(&long_lock(&client, "other")));
    }
    assert_eq!(downs.all(), []);
}

#[test]
fn the_calls_that_wait_are_counted_where_the_queue_can_be_asked_for() {
    let (server, client) = single();
    for queue in ["quorumlock-queue:k", "quorumlock-queue:quorumlock-fence:k"] {
        let plain = long_lock(&client, "k");
        let is_fenced = queue.contains("fence");
        let _guard = take(&fenced_if(is_fenced, plain.clone()));
        let holder = || match is_fenced {
            true => plain.clone().fenced().holder(),
            false => plain.holder(),
        };
        let waiting = || holder().unwrap().expect("it is held").waiting();
        assert_eq!(waiting(), 0);
        ask(
            &server,
            &[
                "ZADD",
                queue,
                "1",
                "00112233445566aam1",
                "2",
                "00112233445566bbm1",
            ],
        );
        assert_eq!(waiting(), 2);
        server.command(&["DEL", queue]).unwrap();
        server.command(&["SET", queue, "no queue"]).unwrap();
        assert_eq!(waiting(), 0);
        server.command(&["DEL", queue]).unwrap();
        ask(&server, &["ZADD", queue, "1", "00112233445566aam1"]);
    }
    if has_users() {
        let _guard = take(&long_lock(&client, "k"));
        for rights in ["~* +@all -zcard", "~k +@all"] {
            let few = user(&server, rights);
            let few = client_of([few]);
            let found = few.mutex("k").holder().unwrap().expect("it is held");
            assert_eq!(found.waiting(), 0, "{rights}");
        }
    }
}

#[test]
fn a_key_without_expiry_is_held_without_an_end() {
    let server = Server::start().unwrap();
    server.command(&["SET", "k", "for ever"]).unwrap();
    let holder = client([&server]).mutex("k").holder().unwrap().unwrap();
    assert_eq!((holder.label(), holder.remaining()), (None, None));
    assert_eq!(
        holder.to_string(),
        format!("no label, no expiry, on {}", server.address())
    );
    server.command(&["LPUSH", "list", "x"]).unwrap();
    let error = client([&server]).mutex("list").holder().unwrap_err();
    assert_eq!(error.causes()[0].cause(), Cause::UnexpectedValue, "{error}");
}

#[test]
fn taking_a_lock_never_asks_for_its_holder_and_what_is_denied_is_named() {
    skip_unless!(has_users());
    let server = Server::start().unwrap();
    let user = |name, rights| client_of([user_named(&server, name, rights)]);
    let denied = user("locks", "~* +set +eval +evalsha +del +info -get -pttl");
    let enough = user("reads", "~* +info +get +pttl +time");
    let half = user("half", "~* +info +get");
    let guard = take(&long_lock(&denied, "k"));
    assert_eq!((calls(&server, "get"), calls(&server, "pttl")), (0, 0));
    let why = |client: &Redlock, is_fenced: bool| {
        let mutex = client.mutex("k");
        let found = match is_fenced {
            true => mutex.fenced().holder(),
            false => mutex.holder(),
        };
        let error = found.unwrap_err();
        assert_eq!(
            (error.kind(), error.causes()[0].cause()),
            (ErrorKind::Unavailable, Cause::NoPermission)
        );
        error.to_string()
    };
    assert!(
        why(&denied, false).contains("the user may not run GET"),
        "{}",
        why(&denied, false)
    );
    assert!(why(&half, false).contains("the user may not run PTTL"));
    assert!(why(&half, true).contains("the user may not run TIME"));
    assert!(enough.mutex("k").holder().unwrap().is_some());
    assert!(enough.mutex("k").fenced().holder().unwrap().is_none());
    drop(guard);
}

#[test]
fn a_label_that_says_where_names_this_process() {
    let server = Server::start().unwrap();
    let client = builder([&server]).label(host_label()).build().unwrap();
    let _guard = take(&long_lock(&client, "k"));
    let holder = client.mutex("k").holder().unwrap().unwrap();
    assert!(
        holder
            .label()
            .unwrap()
            .ends_with(&format!("/{}", std::process::id())),
        "{holder}"
    );
    fails(client.mutex("").holder(), ErrorKind::Config);
}
