//! Out of memory, as a replica, and when it is promoted, the embedded node answers as a real server
//! does.

use super::requests::{LONG, notes, requests, requests_for_sets, token};
use super::{connect_both, pairs, same_answers, say_once};
use crate::prelude::*;
use quorumlock::embedded::Condition;
use quorumlock::protocol::kinds::fenced;

/// What is held when the condition of both nodes changes.
fn hold_both(server: &Server, node: &EmbeddedNode) {
    for address in [server.address(), address_of(node)] {
        let token = token('1');
        assert_eq!(
            say_once(&address, &["SET", "k", &token, "NX", "PX", LONG]),
            "+OK\r\n"
        );
        let script = ["EVAL", fenced::SCRIPT.text, "1", "f"];
        let acquire = [&script[..], &["acquire", &token, LONG, LONG, "3"]].concat();
        assert_eq!(say_once(&address, &acquire), "$1\r\n3\r\n");
    }
}

#[test]
fn full_memory_stops_a_set_and_no_script() {
    for (server, node) in pairs() {
        hold_both(&server, &node);
        ok(&server, &["CONFIG", "SET", "maxmemory", "1"]);
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
        ok(&server, &["REPLICAOF", "127.0.0.1", "1"]);
        node.set_condition(Condition::Replica);
        same_answers(&server, &node, &requests());
        same_answers(&server, &node, &requests_for_sets());
    }
}

#[test]
fn a_promotion_shows_alike_in_what_they_say_of_their_replication() {
    for (server, node) in pairs() {
        let mut nodes = connect_both(&server, &node);
        // Each id by the order in which it came: no two moments share theirs.
        let mut known: [Vec<String>; 2] = Default::default();
        let mut said = || {
            let mut sides = nodes.iter_mut().zip(&mut known).map(|(node, known)| {
                let text = node.say(&["INFO", "replication"]);
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
            ok(&server, &["REPLICAOF", "127.0.0.1", "1"]);
            node.set_condition(Condition::Replica);
            let (real, embedded) = said();
            assert_eq!(real, embedded, "{promotions}");
            roles.push(real[0].clone());
            promote(&server);
            node.set_condition(Condition::Serving);
        }
        assert_eq!(roles, ["slave"; 3]);
    }
}
