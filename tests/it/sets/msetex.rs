//! The command that sets all keys or none, on every server at hand: where it is used, and where it is not.
//!
//! `QUORUMLOCK_SERVERS` names further servers, separated by colons.

use super::{set, take};
use crate::clients::{LONG_TTL, SOON, builder, calls, client, client_of, gone_for_good, long_lock, value};
use crate::embedded_vs_real::say_once;
use crate::support::process::eventually;
use crate::support::server::{Answer, Server, binaries};
use quorumlock::embedded::{EmbeddedNode, ServerKind};
use quorumlock::{ExtendOutcome, Redlock, ReleaseOutcome};
use std::thread;
use std::time::Duration;

const KEYS: [&str; 3] = ["a", "b", "c"];

pub(super) fn servers_of_each_version() -> Vec<Vec<Server>> {
    let three = |binary| (0..3).map(|_| Server::plan().binary(&binary).start().unwrap()).collect();
    binaries().unwrap().into_iter().map(three).collect()
}

pub(super) fn has_msetex(server: &Server) -> bool {
    server.command(&["COMMAND", "INFO", "MSETEX"]).unwrap() != Answer::List(vec![Answer::Nil])
}

/// A client whose user may not use it.
pub(super) fn without_msetex(servers: &[Server]) -> Redlock {
    client_of(servers.iter().map(|server| {
        let user = ["ACL", "SETUSER", "locker", "reset", "on", ">secret", "~*", "&*", "+@all", "-msetex"];
        assert_eq!(server.command(&user).unwrap(), Answer::Text("OK".into()));
        format!("redis://locker:secret@{}", server.address())
    }))
}

#[test]
fn a_set_is_one_command_where_the_server_has_it_and_a_few_where_not() {
    for servers in servers_of_each_version() {
        let client = client(&servers);
        client.connect(SOON).unwrap();
        for _ in 0..3 {
            assert_eq!(take(&set(&client, &KEYS)).unlock().unwrap(), ReleaseOutcome::Released);
        }
        // One SET is the note that each node of a new deployment gets.
        let expected = if has_msetex(&servers[0]) { (3, 1) } else { (0, 10) };
        for server in &servers {
            assert!(eventually(SOON, || (calls(server, "msetex"), calls(server, "set")) == expected));
        }
        KEYS.iter().for_each(|key| gone_for_good(&servers, key));
    }
}

#[test]
fn what_one_command_refuses_is_undone_nowhere() {
    for servers in servers_of_each_version().into_iter().filter(|servers| has_msetex(&servers[0])) {
        let client = client(&servers);
        client.connect(SOON).unwrap();
        servers.iter().for_each(|server| _ = server.command(&["SET", "b", "theirs"]).unwrap());
        assert!(set(&client, &KEYS).try_lock().unwrap().is_none());
        client.flush_releases(SOON).unwrap();
        let releases = |server: &Server| ["eval", "evalsha", "delex", "delifeq"].map(|command| calls(server, command));
        // One script, with one SET, stores the note that each node of a new deployment gets.
        let is_noted_only = |server: &&Server| releases(server) == [1, 0, 0, 0];
        assert!(servers.iter().filter(is_noted_only).count() >= 2, "refused by two of three");
        assert!(servers.iter().all(|server| value(server, "a").is_none() && calls(server, "set") == 2));
    }
}

#[test]
fn a_user_who_may_not_use_it_is_asked_in_the_other_way_within_the_call() {
    for servers in servers_of_each_version().into_iter().filter(|servers| has_msetex(&servers[0])) {
        let client = without_msetex(&servers);
        client.connect(SOON).unwrap();
        for _ in 0..3 {
            assert_eq!(take(&set(&client, &KEYS)).unlock().unwrap(), ReleaseOutcome::Released);
            client.flush_releases(SOON).unwrap();
        }
        // Once only, a node that answers last is not asked again: the others have granted the lock. One SET is the note
        // that each node of a new deployment gets.
        for server in &servers {
            assert!(eventually(SOON, || matches!(calls(server, "set"), 7 | 10)), "{}", calls(server, "set"));
        }
        assert!(servers.iter().all(|server| calls(server, "msetex") == 0));
        KEYS.iter().for_each(|key| gone_for_good(&servers, key));
    }
}

#[test]
fn a_waiter_finds_out_which_key_it_waits_for_and_a_node_that_lost_one_key_is_repaired() {
    for servers in servers_of_each_version() {
        // Nothing that is asked runs out of time.
        let [mine, theirs] = [(); 2].map(|()| builder(&servers).node_timeout(SOON).build().unwrap());
        [&mine, &theirs].into_iter().for_each(|client| drop(client.connect(SOON).unwrap()));
        let held = ["b", "c"].map(|key| long_lock(&theirs, key).lock().unwrap());
        let mut guard = thread::scope(|threads| {
            let waiting = threads.spawn(|| set(&mine, &KEYS).lock_timeout(SOON * 3).unwrap().unwrap());
            for guard in held {
                thread::sleep(Duration::from_millis(150));
                // An attempt that one command does not make sets it for as long as the machine takes to undo that.
                assert!(eventually(SOON, || servers.iter().all(|server| value(server, "a").is_none())));
                assert!(!waiting.is_finished());
                assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
            }
            waiting.join().unwrap()
        });
        // At a node where "c" was released last, its key may be missing from the start. Two such nodes are a loss.
        if servers.iter().all(|server| value(server, "c").is_some()) {
            servers[0].command(&["DEL", "c"]).unwrap();
        }
        // An extension does not wait for a node that the machine holds up.
        assert!(eventually(SOON, || {
            assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Extended);
            let values: Vec<_> = servers.iter().map(|server| value(server, "c")).collect();
            values[0].is_some() && values.iter().all(|value| *value == values[0])
        }));
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
        KEYS.iter().for_each(|key| gone_for_good(&servers, key));
    }
}

#[test]
fn the_embedded_node_answers_it_as_redis_does() {
    let requests: [&[&str]; 9] = [
        &["MSETEX", "2", "a", "1", "b", "1", "NX", "PX", "600000"],
        &["MSETEX", "2", "b", "2", "c", "2", "NX", "PX", "600000"],
        &["EXISTS", "a", "b", "c"],
        &["MSETEX", "2", "c", "2", "c", "3", "NX", "PX", "600000"],
        &["GET", "c"],
        &["MSETEX", "2", "d", "1", "e", "1", "NX", "PX", "0"],
        &["MSETEX", "none", "d", "1"],
        &["MSETEX", "2", "d", "1"],
        &["MSETEX", "1", "d", "1", "NX", "PZ", "1"],
    ];
    let is_redis = |servers: &Vec<Server>| servers[0].info("valkey_version").unwrap().is_empty();
    for servers in servers_of_each_version().into_iter().filter(is_redis) {
        let kind = if has_msetex(&servers[0]) { ServerKind::Redis84 } else { ServerKind::Redis };
        let node = EmbeddedNode::builder().kind(kind).start().unwrap();
        for request in requests {
            let [real, embedded] =
                [servers[0].address(), node.address().to_string()].map(|address| say_once(&address, request));
            // Each version has its own quotation marks for what it does not know.
            let is_unknown = [&real, &embedded].iter().all(|said| said.starts_with("-ERR unknown command"));
            assert!(is_unknown || real == embedded, "{request:?}: {real} {embedded}");
        }
    }
}
