//! The embedded node answers what the library sends as a real server does: the same bytes, and of an error the same word.
//!
//! Every server at hand is compared with the embedded node in its guise. `QUORUMLOCK_SERVERS` names further servers.

use crate::support::server::{Server, binaries};
use quorumlock::embedded::{Condition, EmbeddedNode, Flavour};
use quorumlock::proto::command::{self, Dialect};
use quorumlock::proto::dialect::Answer;
use quorumlock::proto::extension::{self, ExtensionDialect};
use quorumlock::proto::hint::{self, Hint};
use quorumlock::proto::lease::OwnerToken;
use quorumlock::proto::resp::{self, Decoder};
use quorumlock::proto::vote::Vote;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than a test lasts.
const TTL: u64 = 600_000;

const HINT: Hint = Hint { crowd: 3, has_waited: true };

/// One connection, and the bytes of one reply at a time.
struct Raw(TcpStream);

impl Raw {
    fn connect(address: &str) -> Raw {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Raw(stream)
    }

    fn ask(&mut self, request: &[u8]) -> Vec<u8> {
        self.0.write_all(request).unwrap();
        let mut bytes = Vec::new();
        while Decoder::default().decode(&bytes).unwrap().is_none() {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            bytes.push(byte[0]);
        }
        bytes
    }

    fn say(&mut self, words: &[&[u8]]) -> String {
        let mut request = Vec::new();
        resp::encode(&mut request, words);
        in_short(&self.ask(&request))
    }
}

/// A reply, and only the first word of an error: what follows names the script or the arguments.
fn in_short(reply: &[u8]) -> String {
    let text = String::from_utf8_lossy(reply);
    if text.starts_with('-') { text.split_whitespace().next().unwrap_or_default().into() } else { text.into_owned() }
}

/// What the library asks in the life of a key, and around it.
fn requests() -> Vec<Vec<u8>> {
    let [ours, theirs] = [1, 2].map(|byte| OwnerToken::from_entropy([byte; OwnerToken::ENTROPY]));
    let mut requests = Vec::new();
    let mut add = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut request = Vec::new();
        write(&mut request);
        requests.push(request);
    };
    for dialect in ExtensionDialect::ALL {
        add(&|out| extension::extend(out, dialect, b"k", &ours, TTL));
        add(&|out| command::acquire(out, b"k", &ours, TTL));
        add(&|out| command::acquire(out, b"k", &ours, TTL));
        add(&|out| extension::extend(out, dialect, b"k", &theirs, TTL));
        add(&|out| extension::extend(out, dialect, b"k", &ours, TTL));
        add(&|out| extension::extend(out, dialect, b"k", &ours, 0));
        add(&|out| extension::extend(out, dialect, b"k", &ours, u64::MAX));
        for dialect in Dialect::ALL {
            add(&|out| command::acquire(out, b"k", &ours, TTL));
            add(&|out| command::release(out, dialect, b"k", &theirs));
            add(&|out| command::release(out, dialect, b"k", &ours));
            add(&|out| command::release(out, dialect, b"k", &ours));
        }
        add(&|out| command::release(out, Dialect::Eval, b"k", &ours));
        add(&|out| command::acquire(out, b"k", &ours, TTL));
        add(&|out| hint::release_and_tell(out, Dialect::Eval, b"k", &theirs, HINT));
        add(&|out| hint::release_and_tell(out, Dialect::Eval, b"k", &ours, HINT));
    }
    requests
}

/// The guise that a server has, if the embedded node knows it.
fn flavour(server: &Server) -> Option<Flavour> {
    let version = |field: &str| {
        let text = server.info(field).unwrap();
        let mut numbers = text.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    };
    match (version("valkey_version"), version("redis_version")) {
        ((0, _), redis) => Some(if redis >= (8, 4) { Flavour::Redis84 } else { Flavour::Redis }),
        ((9.., _), _) => Some(Flavour::Valkey9),
        _ => None,
    }
}

/// A real server and the embedded node in its guise, for every server at hand that has one.
fn pairs() -> impl Iterator<Item = (Server, EmbeddedNode)> {
    let servers = binaries().unwrap().into_iter().map(|binary| Server::plan().binary(binary).start().unwrap());
    servers.filter_map(|server| {
        let flavour = flavour(&server)?;
        Some((server, EmbeddedNode::builder().flavour(flavour).start().unwrap()))
    })
}

fn same_answers(server: &Server, node: &EmbeddedNode) {
    let (mut real, mut embedded) = (Raw::connect(&server.address()), Raw::connect(&node.address().to_string()));
    for request in requests() {
        let shown = String::from_utf8_lossy(&request).replace("\r\n", " ");
        assert_eq!(in_short(&real.ask(&request)), in_short(&embedded.ask(&request)), "{shown}");
    }
}

#[test]
fn the_life_of_a_key_goes_the_same_way() {
    for (server, node) in pairs() {
        same_answers(&server, &node);
    }
}

/// What a subscriber is told, and what those are told who tell him.
#[test]
fn hints_are_given_and_heard_alike() {
    for (server, node) in pairs() {
        let [real, embedded] = [server.address(), node.address().to_string()].map(|address| conversation(&address));
        assert_eq!(real, embedded);
        let heard = real.iter().filter(|reply| reply.starts_with("*3\r\n$7\r\nmessage")).count();
        assert_eq!(heard, 2, "{real:?}");
    }
}

fn conversation(address: &str) -> Vec<String> {
    let (mut ear, mut mouth) = (Raw::connect(address), Raw::connect(address));
    let token = OwnerToken::from_entropy([1; OwnerToken::ENTROPY]);
    let request = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut request = Vec::new();
        write(&mut request);
        request
    };
    let take = request(&|out| command::acquire(out, b"k", &token, TTL));
    let release = request(&|out| hint::release_and_tell(out, Dialect::Eval, b"k", &token, HINT));
    let mut said = Vec::new();
    let mut say = |reply: Vec<u8>| said.push(in_short(&reply));
    say(mouth.ask(&take));
    say(mouth.ask(&release));
    for key in [b"k", b"l", b"k"] {
        say(ear.ask(&request(&|out| hint::subscribe(out, key))));
    }
    say(ear.ask(&request(&|out| command::remaining(out, b"k"))));
    say(ear.ask(b"*1\r\n$4\r\nPING\r\n"));
    say(mouth.ask(&take));
    say(mouth.ask(&release));
    say(ear.ask(b""));
    say(mouth.ask(b"*3\r\n$7\r\nPUBLISH\r\n$12\r\nquorumlock:l\r\n$0\r\n\r\n"));
    say(ear.ask(b""));
    say(mouth.ask(b"*3\r\n$7\r\nPUBLISH\r\n$12\r\nquorumlock:m\r\n$0\r\n\r\n"));
    for key in [b"k", b"m", b"l"] {
        say(ear.ask(&request(&|out| hint::unsubscribe(out, key))));
    }
    say(ear.ask(&request(&|out| command::remaining(out, b"k"))));
    said
}

#[test]
fn full_memory_stops_a_set_and_no_script() {
    for (server, node) in pairs() {
        let (mut real, mut embedded) = (Raw::connect(&server.address()), Raw::connect(&node.address().to_string()));
        let mut request = Vec::new();
        command::acquire(&mut request, b"k", &OwnerToken::from_entropy([1; OwnerToken::ENTROPY]), TTL);
        assert_eq!([real.ask(&request), embedded.ask(&request)], [b"+OK\r\n"; 2]);
        assert_eq!(real.say(&[b"CONFIG", b"SET", b"maxmemory", b"1"]), "+OK\r\n");
        node.set_condition(Condition::OutOfMemory);
        // Now that it is ours, and memory is full, an extension by script is granted, and the key can be let go.
        same_answers(&server, &node);
    }
}

#[test]
fn a_replica_answers_alike() {
    for (server, node) in pairs() {
        let (mut real, mut embedded) = (Raw::connect(&server.address()), Raw::connect(&node.address().to_string()));
        let mut request = Vec::new();
        command::acquire(&mut request, b"k", &OwnerToken::from_entropy([1; OwnerToken::ENTROPY]), TTL);
        assert_eq!([real.ask(&request), embedded.ask(&request)], [b"+OK\r\n"; 2]);
        // Of a master that nobody can reach: the key stays.
        assert_eq!(real.say(&[b"REPLICAOF", b"127.0.0.1", b"1"]), "+OK\r\n");
        node.set_condition(Condition::Replica);
        same_answers(&server, &node);
    }
}

#[test]
fn what_is_no_string_is_not_ours() {
    for binary in binaries().unwrap() {
        let server = Server::plan().binary(binary).start().unwrap();
        let mut real = Raw::connect(&server.address());
        assert_eq!(real.say(&[b"LPUSH", b"k", b"x"]), ":1\r\n");
        let token = OwnerToken::from_entropy([1; OwnerToken::ENTROPY]);
        for dialect in ExtensionDialect::ALL {
            let mut request = Vec::new();
            extension::extend(&mut request, dialect, b"k", &token, TTL);
            let bytes = real.ask(&request);
            let (reply, _) = Decoder::default().decode(&bytes).unwrap().unwrap();
            let answer = extension::extend_reply(dialect, reply).unwrap();
            let is_unknown = dialect == ExtensionDialect::SetIfeq && matches!(answer, Answer::WrongDialect(_));
            assert!(answer == Answer::Vote(Vote::Refused) || is_unknown, "{dialect:?}: {answer:?}");
        }
        assert_eq!(real.say(&[b"LLEN", b"k"]), ":1\r\n");
    }
}
