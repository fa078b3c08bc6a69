//! The embedded node answers what the library sends as a real server does: the same bytes, error
//! texts included.
//!
//! Every server at hand is compared with the embedded node in its guise. `QUORUMLOCK_SERVERS` names
//! further servers. [`requests`] are the requests that both are asked, [`conditions`] is about
//! nodes that refuse some, [`foreign`] about values of other programs, and [`queues`] about scripts
//! with any requests in any order.

mod conditions;
pub(crate) mod foreign;
mod queues;
mod requests;
mod sequence;

use crate::prelude::*;
use quorumlock::embedded::ServerKind;
use quorumlock::protocol::command;
use quorumlock::protocol::kinds::plain;
use quorumlock::protocol::resp;
use quorumlock::protocol::server_info::ServerInfo;
use requests::{LONG, notes, requests, requests_for_sets, token};
use std::io::{Read, Write};

/// Longer than a test lasts, in milliseconds.
const TTL: u64 = 600_000;

/// One connection, and the bytes of one reply at a time.
pub(crate) struct Raw(BufReader<TcpStream>);

impl Raw {
    pub(crate) fn connect(address: &str) -> Raw {
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        Raw(BufReader::new(stream))
    }

    pub(crate) fn ask(&mut self, request: &[u8]) -> Vec<u8> {
        self.0.get_mut().write_all(request).unwrap();
        let mut bytes = Vec::new();
        while resp::decode(&bytes).unwrap().is_none() {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            bytes.push(byte[0]);
        }
        bytes
    }

    /// The reply to these words, or the next one to none.
    pub(crate) fn say<W: AsRef<[u8]>>(&mut self, words: &[W]) -> String {
        let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
        let mut request = Vec::new();
        if !words.is_empty() {
            resp::encode(&mut request, &words);
        }
        in_short(&self.ask(&request))
    }

    /// Waits until the node has seen the end of the last connection that received from a channel.
    fn await_no_receiver(&mut self, channel: &str) {
        while self.say(&["PUBLISH", channel, ""]) != ":0\r\n" {}
    }
}

/// What a server answers to one command on a connection of its own.
pub(crate) fn say_once(address: &str, words: &[&str]) -> String {
    Raw::connect(address).say(words)
}

/// A reply, without what differs from one moment to the next, or from one version to the next and
/// is read by no program.
pub(crate) fn in_short(reply: &[u8]) -> String {
    let text = String::from_utf8_lossy(reply);
    if text.starts_with("-ERR ") && text.contains("in this context") {
        "-ERR … in this context".into()
    } else if text.starts_with(":-") && text.len() > ":-4\r\n".len() {
        // For how long a fenced lock is held still. The two are not asked in the same millisecond.
        ":-4 and more".into()
    } else if text.starts_with('-') {
        // Inside scripts, Redis 5.0 makes two blanks of the line break that it has read.
        text.trim_end().into()
    } else {
        let mut lines: Vec<String> = text.split("\r\n").map(str::to_owned).collect();
        for at in 1..lines.len() {
            if let Some(score) = score_in_short(&lines[at]) {
                "$".clone_into(&mut lines[at - 1]);
                lines[at] = score;
            }
        }
        lines.join("\r\n")
    }
}

/// The text of a score that versions write in several ways: 0.1 with 17 digits, 1e17 without, zero
/// as -0.
fn score_in_short(line: &str) -> Option<String> {
    let is_long = line.len() > 16 || line.contains(['.', 'e']);
    let is_score = line == "0" || line == "-0" || line.len() < 30 && is_long;
    let score = line.parse::<f64>().ok().filter(|_| is_score)?;
    Some(format!("{:e}", score + 0.0))
}

/// The reply to a take, without for how long the lock is held: the two are not asked in the same
/// millisecond.
pub(crate) fn without_remaining(reply: &str) -> String {
    let mut fields: Vec<&str> = reply.splitn(7, ' ').collect();
    if let [_, _, _, left, ..] = &mut fields[..]
        && left.len() > 4
    {
        *left = "long";
    }
    fields.join(" ")
}

/// What is random in a test, and the same each time.
pub(crate) struct Choice(pub(crate) u64);

impl Choice {
    pub(crate) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        choices[(self.0 >> 33) as usize % choices.len()]
    }
}

/// The guise that a server has, if the embedded node knows it.
fn flavour(server: &Server) -> Option<ServerKind> {
    let version = |field: &str| {
        let text = server.info(field).unwrap();
        let mut numbers = text.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    };
    match (version("valkey_version"), version("redis_version")) {
        ((0, _), (7.., _)) => Some(ServerKind::Redis),
        ((0, _), _) => Some(ServerKind::Redis62),
        ((9.., _), _) => Some(ServerKind::Valkey9),
        _ => None,
    }
}

/// A real server and the embedded node in its guise, for every server at hand that has one.
pub(crate) fn pairs() -> impl Iterator<Item = (Server, EmbeddedNode)> {
    servers().into_iter().filter_map(|server| {
        let flavour = flavour(&server)?;
        Some((
            server,
            EmbeddedNode::builder().kind(flavour).start().unwrap(),
        ))
    })
}

pub(crate) fn connect_both(server: &Server, node: &EmbeddedNode) -> [Raw; 2] {
    [server.address(), address_of(node)].map(|address| Raw::connect(&address))
}

fn same_answers(server: &Server, node: &EmbeddedNode, requests: &[Vec<String>]) {
    let [mut real, mut embedded] = connect_both(server, node);
    for request in requests {
        assert_eq!(real.say(request), embedded.say(request), "{request:?}");
    }
}

#[test]
fn the_life_of_a_key_goes_the_same_way() {
    for (server, node) in pairs() {
        same_answers(&server, &node, &requests());
    }
}

#[test]
fn what_a_node_remembers_is_stored_alike() {
    for (server, node) in pairs() {
        same_answers(&server, &node, &notes());
        let text = say_once(&server.address(), &["GET", "n"]);
        assert_eq!(text, "$7\r\n1 f 8 x\r\n");
    }
}

#[test]
fn the_commands_for_sorted_sets_are_the_same() {
    for (server, node) in pairs() {
        same_answers(&server, &node, &requests_for_sets());
    }
}

/// What `INFO` reports of memory, persistence and replication, as far as the library reads it.
#[test]
fn info_says_the_same() {
    for (server, node) in pairs() {
        let said = |address: &str| {
            let mut raw = Raw::connect(address);
            ["memory", "persistence", "replication"].map(|section| {
                let mut request = Vec::new();
                command::info(&mut request, section);
                let reply = raw.ask(&request);
                let mut identity = ServerInfo::default();
                identity.learn(&reply);
                assert!(
                    String::from_utf8_lossy(&reply).contains("\r\n# "),
                    "{section}"
                );
                (
                    identity.is_master(),
                    identity.eviction(),
                    identity.aof_enabled(),
                    identity.objection(Phase::Handshake),
                )
            })
        };
        let real = said(&server.address());
        assert_eq!(real, said(&address_of(&node)));
        assert_eq!(real.map(|said| said.2), [None, Some(false), None]);
    }
}

/// What a subscriber receives, and the replies that a publisher gets.
#[test]
fn both_publish_and_deliver_notifications_alike() {
    for (server, node) in pairs() {
        let [real, embedded] =
            [server.address(), address_of(&node)].map(|address| conversation(&address));
        assert_eq!(real, embedded);
        let heard = real
            .iter()
            .filter(|reply| reply.starts_with("*3\r\n$7\r\nmessage"))
            .count();
        assert_eq!(heard, 3, "{real:?}");
    }
}

/// A client waits for a lock that another one holds.
fn conversation(address: &str) -> Vec<String> {
    let mut subscriber = Raw::connect(address);
    let mut publisher = Raw::connect(address);
    let [ours, theirs] = ['1', '2'].map(token);
    let waits = "quorumlock:0000000000000007";
    let entry = "0000000000000007m1";
    let mut said = Vec::new();
    let mut say = |raw: &mut Raw, words: &[&str]| said.push(without_remaining(&raw.say(words)));
    let script = ["EVAL", plain::SCRIPT.text, "1", "k"];
    let take = [&script[..], &["take", &theirs, LONG, entry, "5", "f"]].concat();
    let release = [&script[..], &["release", &theirs, "", ""]].concat();
    say(&mut publisher, &["SET", "k", &ours, "NX", "PX", LONG]);
    for channel in [waits, "quorumlock:other", waits] {
        say(&mut subscriber, &["SUBSCRIBE", channel]);
    }
    say(&mut subscriber, &["PTTL", "k"]);
    say(&mut subscriber, &["PING"]);
    say(&mut publisher, &take);
    say(&mut publisher, &[&script[..], &["release", &ours]].concat());
    say(&mut subscriber, &[]);
    say(&mut publisher, &take);
    say(&mut publisher, &["PUBLISH", "quorumlock:other", ""]);
    say(&mut subscriber, &[]);
    say(&mut publisher, &["PUBLISH", "quorumlock:none", ""]);
    say(&mut publisher, &release);
    say(&mut subscriber, &[]);
    drop(subscriber);
    publisher.await_no_receiver(waits);
    // Its entry has no receiver any more.
    say(&mut publisher, &release);
    say(&mut publisher, &["ZCARD", "quorumlock-queue:k"]);
    said
}
