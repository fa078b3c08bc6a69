//! Out of memory, as a replica, and when it is promoted, the embedded node answers as a real server
//! does.

use super::requests::{LONG, notes, requests, requests_for_sets, token};
use super::{Raw, pairs, same_answers, say_once};
use crate::clients::address_of;
use crate::support::server::{Answer as PublishOutcome, Server};
use quorumlock::embedded::{Condition, EmbeddedNode};
use quorumlock::protocol::kinds::fenced;

/// What is held when the condition of both nodes changes.
fn hold_both(server: &Server, node: &EmbeddedNode) {
    for address in [server.address(), address_of(node)] {
        let token = token('1');
        assert_eq!(
            say_once(&address, &["SET", "k", &token, "NX", "PX", LONG]),
            "+OK\r\n"
        );
        let acquire = [
            "EVAL",
            fenced::SCRIPT.text,
            "1",
            "f",
            "acquire",
            &token,
            LONG,
            LONG,
            "3",
        ];
        assert_eq!(say_once(&address, &acquire), "$1\r\n3\r\n");
    }
}

#[test]
fn full_memory_stops_a_set_and_no_script() {
    for (server, node) in pairs() {
        hold_both(&server, &node);
        assert_eq!(
            say_once(&server.address(), &["CONFIG", "SET", "maxmemory", "1"]),
            "+OK\r\n"
        );
        node.set_condition(Condition::OutOfMemory);
        // An extension by script is granted, a fence is raised, and the keys can be released.
        same_answers(&server, &node, &requests());
        same_answers(&server, &node, &requests_for_sets());
        same_answers(&server, &node, &notes());
    }
}

#[test]
fn a_replica_answers_alike() {
    for (server, node) in pairs() {
        hold_both(&server, &node);
        // A replica of a master that cannot be reached: the key stays.
        assert_eq!(
            say_once(&server.address(), &["REPLICAOF", "127.0.0.1", "1"]),
            "+OK\r\n"
        );
        node.set_condition(Condition::Replica);
        same_answers(&server, &node, &requests());
        same_answers(&server, &node, &requests_for_sets());
    }
}

#[test]
fn a_promotion_shows_alike_in_what_they_say_of_their_replication() {
    for (server, node) in pairs() {
        let mut nodes = [server.address(), address_of(&node)].map(|address| Raw::connect(&address));
        // Each id by the order in which it came: no two moments share theirs.
        let mut known: [Vec<String>; 2] = Default::default();
        let mut said = || {
            let mut sides = nodes.iter_mut().zip(&mut known).map(|(node, known)| {
                let text = node.say(&[b"INFO", b"replication"]);
                let field = |name: &str| {
                    let value = text
                        .lines()
                        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
                    value
                        .unwrap_or_else(|| panic!("no {name} in {text}"))
                        .to_owned()
                };
                let mut id = |name: &str| {
                    let id = field(name);
                    if id.bytes().all(|digit| digit == b'0') {
                        return id;
                    }
                    let place = known
                        .iter()
                        .position(|other| *other == id)
                        .unwrap_or(known.len());
                    if place == known.len() {
                        known.push(id);
                    }
                    place.to_string()
                };
                let ids = [id("master_replid"), id("master_replid2")];
                [
                    field("role"),
                    ids.join(" "),
                    field("master_repl_offset"),
                    field("second_repl_offset"),
                ]
            });
            (sides.next().unwrap(), sides.next().unwrap())
        };
        let mut roles = Vec::new();
        for promotions in 0..3 {
            let (real, embedded) = said();
            assert_eq!(real, embedded, "{promotions}");
            // A replica of a master that is not there.
            assert_eq!(
                server.command(&["REPLICAOF", "127.0.0.1", "1"]).unwrap(),
                PublishOutcome::Text("OK".into())
            );
            node.set_condition(Condition::Replica);
            let (real, embedded) = said();
            assert_eq!(real, embedded, "{promotions}");
            roles.push(real[0].clone());
            assert_eq!(
                server.command(&["REPLICAOF", "NO", "ONE"]).unwrap(),
                PublishOutcome::Text("OK".into())
            );
            node.set_condition(Condition::Serving);
        }
        assert_eq!(roles, ["slave"; 3]);
    }
}
