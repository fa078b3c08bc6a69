//! The embedded node answers what the library sends as a real server does: the same bytes, error texts included.
//!
//! Every server at hand is compared with the embedded node in its guise. `QUORUMLOCK_SERVERS` names further servers.

use crate::clients::address_of;
use crate::support::server::{Answer as PublishOutcome, Server, binaries};
use quorumlock::algorithm::lease::OwnerToken;
use quorumlock::embedded::{Condition, EmbeddedNode, ServerKind};
use quorumlock::protocol::command;
use quorumlock::protocol::kinds::plain::EXTEND;
use quorumlock::protocol::kinds::{fenced, permit, plain};
use quorumlock::protocol::node_note;
use quorumlock::protocol::resp::{self, Decoder};
use quorumlock::protocol::script::Script;
use quorumlock::protocol::server_info::ServerInfo;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

mod queues;
mod sequence;

/// Longer than a test lasts, in milliseconds.
const TTL: u64 = 600_000;
/// The same, as a word of a request.
const LONG: &str = "600000";

/// One connection, and the bytes of one reply at a time.
pub(crate) struct Raw(BufReader<TcpStream>);

impl Raw {
    pub(crate) fn connect(address: &str) -> Raw {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Raw(BufReader::new(stream))
    }

    pub(crate) fn ask(&mut self, request: &[u8]) -> Vec<u8> {
        self.0.get_mut().write_all(request).unwrap();
        let mut bytes = Vec::new();
        while Decoder::default().decode(&bytes).unwrap().is_none() {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            bytes.push(byte[0]);
        }
        bytes
    }

    /// The reply to these words, or the next one to none.
    pub(crate) fn say(&mut self, words: &[&[u8]]) -> String {
        let mut request = Vec::new();
        if !words.is_empty() {
            resp::encode(&mut request, words);
        }
        in_short(&self.ask(&request))
    }
}

/// What a server answers to one command on a connection of its own.
pub(crate) fn say_once(address: &str, words: &[&str]) -> String {
    Raw::connect(address).say(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>())
}

/// A reply, without what differs from one moment to the next, or from one version to the next and is read by no
/// program.
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
        text.into_owned()
    }
}

/// The reply to a take, without for how long the lock is held: the two are not asked in the same millisecond.
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
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        choices[(self.0 >> 33) as usize % choices.len()]
    }
}

/// The token of a lock.
fn token(digit: char) -> String {
    digit.to_string().repeat(40)
}

/// The requests of the library in the life of a key, and around it.
fn requests() -> Vec<Vec<String>> {
    let [ours, theirs] = ['1', '2'].map(token);
    let mut requests: Vec<Vec<String>> = Vec::new();
    let mut add = |words: &[&str]| requests.push(words.iter().map(|word| (*word).to_owned()).collect());
    for token in [&ours, &theirs] {
        add(&["EVAL", EXTEND, "1", "k", token, LONG]);
    }
    let acquire = ["SET", "k", &ours, "NX", "PX", LONG];
    for ttl in [LONG, "0", "18446744073709551615"] {
        add(&acquire);
        add(&acquire);
        for token in [&ours, &theirs] {
            add(&["EVAL", EXTEND, "1", "k", token, ttl]);
        }
        add(&acquire);
        add(&["GETRANGE", "k", "0", "127"]);
        for token in [&theirs, &ours, &ours] {
            add(&["EVAL", plain::SCRIPT.text, "1", "k", "release", token]);
        }
    }
    // By its hash, known or not. "k" is without an owner, and then of another one.
    for Script { text: script, sha1: hash, .. } in [plain::SCRIPT, permit::SCRIPT, fenced::SCRIPT] {
        add(&["EVALSHA", hash, "1", "k#0", "release", &ours]);
        add(&["EVAL", script, "1", "k#0", "release", &ours]);
        add(&["EVALSHA", hash, "1", "k#0", "release", &ours]);
    }
    fenced_requests(&ours, &theirs).iter().for_each(|words| {
        add(&[&["EVAL", fenced::SCRIPT.text, "1"], &words.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
        add(&["GET", "the last fence"]);
    });
    add(&["GETRANGE", "no key", "0", "127"]);
    add(&["SET", "text", "0123456789"]);
    for [start, end] in
        [["0", "3"], ["-3", "-1"], ["-1", "-3"], ["5", "4"], ["4", "99"], ["99", "-99"], ["-99", "0"], ["x", "1"]]
    {
        add(&["GETRANGE", "text", start, end]);
    }
    requests
}

/// The commands that a tool needs for queues, and those for strings where a queue is.
fn requests_for_sets() -> Vec<Vec<String>> {
    let rows = [
        "ZADD set 5 b",
        "ZADD set 5 a 4 c 6 a",
        "ZADD set 1",
        "ZADD set 1 m 2",
        "ZADD set x m",
        "ZADD set inf i -inf j",
        "ZADD set 0.1 d 1795519049784269 e 1e17 f",
        "ZADD set nan g",
        "ZADD set 1e999 g",
        "ZCARD set",
        "ZCARD none",
        "ZCARD",
        "ZSCORE set a",
        "ZSCORE set d",
        "ZSCORE set none",
        "ZSCORE none a",
        "ZRANGE set 0 -1",
        "ZRANGE set 0 -1 withscores",
        "ZRANGE set 1 2 WITHSCORES",
        "ZRANGE set -2 -1",
        "ZRANGE set -99 1",
        "ZRANGE set 3 1",
        "ZRANGE set 99 100",
        "ZRANGE set 2 99",
        "ZRANGE set x 1",
        "ZRANGE set 0 -99",
        "ZRANGE set 0 1 foo",
        "ZRANGE set x 1 foo",
        "ZRANGE none 0 -1",
        "ZRANGE set 0",
        "ZREM set a",
        "ZREM set a b none",
        "ZREM none a",
        "ZREM set",
        "GET set",
        "GETRANGE set 0 1",
        "GETRANGE set x 1",
        "SET set v NX",
        "EXISTS set",
        "PTTL set",
        "PEXPIRE set 600000",
        "SET set v XX",
        "ZADD set 1 m",
        "ZADD set x m",
        "ZCARD set",
        "ZREM set m",
        "ZSCORE set m",
        "ZRANGE set 0 -1",
        "ZRANGE set x -1",
        "GET set",
        "DEL set",
        "ZADD set -0 m",
        "ZSCORE set m",
        "ZADD set 0 m",
        "ZSCORE set m",
        "ZREM set m",
        "EXISTS set",
        "ZADD set 1 m",
        "DEL set",
    ];
    rows.map(|row| row.split(' ').map(str::to_owned).collect()).to_vec()
}

/// The life of a fenced lock. Times that count from the server's clock would differ, and are left out.
fn fenced_requests(ours: &str, theirs: &str) -> Vec<Vec<String>> {
    let rows = [
        "f extend OURS LONG LONG",
        "f raise OURS 5 LONG",
        "f release OURS - - LONG",
        "f acquire OURS LONG LONG 7",
        "f acquire OURS LONG LONG 9",
        "f acquire THEIRS LONG LONG 9",
        "f extend THEIRS LONG LONG",
        "f raise THEIRS 50 LONG",
        "f release THEIRS - - LONG",
        "f extend OURS LONG LONG",
        "f raise OURS 5 LONG",
        "f raise OURS 20 LONG",
        "f acquire OURS LONG LONG 1",
        "f release OURS - - LONG",
        "f raise OURS 90 LONG",
        "f extend OURS LONG LONG",
        "f release OURS - - LONG",
        "f acquire THEIRS LONG LONG 1",
        "f acquire THEIRS LONG LONG 1",
        "f release THEIRS - - LONG",
        "f acquire OURS LONG LONG 100",
        // Further ahead than a clock explains: refused, and the key is as before.
        "f raise OURS 9007199254740991 LONG",
        "f raise OURS 101 LONG",
        "f release OURS - - LONG",
        "f acquire OURS LONG LONG 1",
        "f release OURS - - LONG",
        // "k" holds the value of a plain lock: nothing, or the token of one that could not be released.
        "k acquire OURS LONG LONG 3",
        "k extend OURS LONG LONG",
        "k raise OURS 9 LONG",
        "k release OURS - - LONG",
        // No time at all: it is held through this millisecond, and perhaps not when it is asked for again.
        "short acquire OURS 0 LONG 3",
    ];
    let word = |word: &str| match word {
        "OURS" => ours.to_owned(),
        "THEIRS" => theirs.to_owned(),
        "LONG" => LONG.to_owned(),
        "-" => String::new(),
        other => other.to_owned(),
    };
    rows.map(|row| row.split(' ').map(word).collect()).to_vec()
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
    let servers = binaries().unwrap().into_iter().map(|binary| Server::plan().binary(binary).start().unwrap());
    servers.filter_map(|server| {
        let flavour = flavour(&server)?;
        Some((server, EmbeddedNode::builder().kind(flavour).start().unwrap()))
    })
}

/// Requests to store what a node remembers of itself. The time is given: the two are not asked in the same moment.
fn notes() -> Vec<Vec<String>> {
    // The embedded node's clock has milliseconds.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64 - 10_000;
    let note = |key: &str, read: &str, looked: u64, time: &str| {
        ["EVAL", node_note::STORE, "1", key, read, &looked.to_string(), "1 f ", time, " x"].map(str::to_owned).to_vec()
    };
    let second = 1_000_000;
    vec![
        note("n", "other", now, "7"),
        note("n", "", now - 10 * second, "7"),
        note("n", "", now + 100 * second, "7"),
        note("n", "", now, "7"),
        note("n", "", now, "8"),
        note("n", "1 f 7 x", now, "8"),
        ["ZADD", "z", "1", "a"].map(str::to_owned).to_vec(),
        note("z", "", now, "7"),
    ]
}

fn same_answers(server: &Server, node: &EmbeddedNode, requests: &[Vec<String>]) {
    let (mut real, mut embedded) = (Raw::connect(&server.address()), Raw::connect(&address_of(node)));
    for request in requests {
        let words: Vec<&[u8]> = request.iter().map(String::as_bytes).collect();
        assert_eq!(real.say(&words), embedded.say(&words), "{request:?}");
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

/// What `INFO` says of memory, persistence and replication, as far as the library reads it.
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
                assert!(String::from_utf8_lossy(&reply).contains("\r\n# "), "{section}");
                (identity.is_master(), identity.eviction(), identity.aof_enabled(), identity.objection())
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
        let [real, embedded] = [server.address(), address_of(&node)].map(|address| conversation(&address));
        assert_eq!(real, embedded);
        let heard = real.iter().filter(|reply| reply.starts_with("*3\r\n$7\r\nmessage")).count();
        assert_eq!(heard, 3, "{real:?}");
    }
}

/// A client waits for a lock that another one holds.
fn conversation(address: &str) -> Vec<String> {
    let (mut subscriber, mut publisher) = (Raw::connect(address), Raw::connect(address));
    let [ours, theirs] = ['1', '2'].map(token);
    let (waits, entry) = ("quorumlock:0000000000000007", "0000000000000007m1");
    let mut said = Vec::new();
    let mut say = |raw: &mut Raw, words: &[&str]| {
        said.push(without_remaining(&raw.say(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>())));
    };
    let take = ["EVAL", plain::SCRIPT.text, "1", "k", "take", &theirs, LONG, entry, "5", "f"];
    let release = |token| ["EVAL", plain::SCRIPT.text, "1", "k", "release", token];
    say(&mut publisher, &["SET", "k", &ours, "NX", "PX", LONG]);
    for channel in [waits, "quorumlock:other", waits] {
        say(&mut subscriber, &["SUBSCRIBE", channel]);
    }
    say(&mut subscriber, &["PTTL", "k"]);
    say(&mut subscriber, &["PING"]);
    say(&mut publisher, &take);
    say(&mut publisher, &release(&ours));
    say(&mut subscriber, &[]);
    say(&mut publisher, &take);
    say(&mut publisher, &["PUBLISH", "quorumlock:other", ""]);
    say(&mut subscriber, &[]);
    say(&mut publisher, &["PUBLISH", "quorumlock:none", ""]);
    say(&mut publisher, &["EVAL", plain::SCRIPT.text, "1", "k", "release", &theirs, "", ""]);
    say(&mut subscriber, &[]);
    for channel in [waits, "quorumlock:none", "quorumlock:other"] {
        say(&mut subscriber, &["UNSUBSCRIBE", channel]);
    }
    // Its entry has no receiver any more.
    say(&mut publisher, &["EVAL", plain::SCRIPT.text, "1", "k", "release", &theirs, "", ""]);
    say(&mut publisher, &["EXISTS", "quorumlock-queue:k"]);
    say(&mut subscriber, &["PTTL", "k"]);
    said
}

/// The greatest fence.
const MOST: u64 = (1 << 53) - 1;

/// Values, and whether the scripts read them as those of a fenced lock.
pub(crate) fn fenced_values() -> Vec<(String, bool)> {
    let digits = "01".repeat(20);
    vec![
        ("1 0 ".to_owned(), true),
        (format!("1 0 {digits}"), true),
        (format!("{MOST} 0 "), true),
        (format!("9 {MOST} {}", "2".repeat(40)), true),
        ("1 0  host7".to_owned(), true),
        (format!("1 0 {digits} {}", "~".repeat(64)), true),
        (format!("1 0 {digits} {}", "~".repeat(65)), false),
        (format!("1 0 {digits} two words"), false),
        ("1 0  h\u{7f}".to_owned(), false),
        (String::new(), false),
        ("1".to_owned(), false),
        ("1 0".to_owned(), false),
        ("0 0 ".to_owned(), false),
        ("01 0 ".to_owned(), false),
        ("1 00 ".to_owned(), false),
        ("-1 0 ".to_owned(), false),
        ("1.5 0 ".to_owned(), false),
        ("1e3 0 ".to_owned(), false),
        ("0x1 0 ".to_owned(), false),
        ("1  ".to_owned(), false),
        (" 1 0 ".to_owned(), false),
        ("1 0  ".to_owned(), false),
        ("1 0 \n".to_owned(), false),
        ("1 0 x".to_owned(), false),
        (format!("1 0 {digits}0"), false),
        (format!("1 0 {digits} "), false),
        (format!("1 0 {}", "AB".repeat(20)), false),
        (digits, false),
        (format!("{} 0 ", MOST + 1), false),
        (format!("1 {} ", MOST + 1), false),
        (format!("{} 0 ", u128::MAX), false),
    ]
}

#[test]
fn what_no_fenced_lock_has_written_is_foreign_to_both() {
    let token = token('1');
    let entry = "0000000000000007f1";
    for (server, node) in pairs() {
        let (mut real, mut embedded) = (Raw::connect(&server.address()), Raw::connect(&address_of(&node)));
        for (value, is_read) in &fenced_values() {
            for request in [
                &["extend", &token, LONG, LONG][..],
                &["raise", &token, "5", LONG],
                &["release", &token, "", "", LONG],
                &["acquire", &token, LONG, LONG, "3"],
                &["take", &token, LONG, entry, "5", "n", "", LONG, "3"],
            ] {
                let words = [&["EVAL", fenced::SCRIPT.text, "1", "f"], request].concat();
                let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
                let [one, other] = [&mut real, &mut embedded].map(|node| {
                    assert_eq!(node.say(&[b"SET", b"f", value.as_bytes()]), "+OK\r\n");
                    let answer = node.say(&words);
                    if !is_read {
                        assert_eq!(node.say(&[b"GET", b"f"]), format!("${}\r\n{value}\r\n", value.len()), "untouched");
                    }
                    without_remaining(&answer)
                });
                assert_eq!(one, other, "{value:?} {request:?}");
                let unread = if request[0] == "release" { ":0\r\n" } else { ":-2\r\n" };
                assert!(*is_read || one == unread, "{value:?} {request:?}: {one}");
                assert!(!is_read || one != ":-2\r\n", "{value:?} {request:?}: {one}");
                // No clock explains the greatest fence.
                let is_ahead = matches!(request[0], "acquire" | "take") && *value == format!("{MOST} 0 ");
                assert_eq!(one == ":-3\r\n", is_ahead, "{value:?} {request:?}: {one}");
            }
        }
    }
}

/// What is held when the condition of both nodes changes.
fn hold_both(server: &Server, node: &EmbeddedNode) {
    for address in [server.address(), address_of(node)] {
        let token = token('1');
        assert_eq!(say_once(&address, &["SET", "k", &token, "NX", "PX", LONG]), "+OK\r\n");
        let acquire = ["EVAL", fenced::SCRIPT.text, "1", "f", "acquire", &token, LONG, LONG, "3"];
        assert_eq!(say_once(&address, &acquire), "$1\r\n3\r\n");
    }
}

#[test]
fn full_memory_stops_a_set_and_no_script() {
    for (server, node) in pairs() {
        hold_both(&server, &node);
        assert_eq!(say_once(&server.address(), &["CONFIG", "SET", "maxmemory", "1"]), "+OK\r\n");
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
        // Of a master that cannot be reached: the key stays.
        assert_eq!(say_once(&server.address(), &["REPLICAOF", "127.0.0.1", "1"]), "+OK\r\n");
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
                    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
                    value.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
                };
                let mut id = |name: &str| {
                    let id = field(name);
                    if id.bytes().all(|digit| digit == b'0') {
                        return id;
                    }
                    let place = known.iter().position(|other| *other == id).unwrap_or(known.len());
                    if place == known.len() {
                        known.push(id);
                    }
                    place.to_string()
                };
                let ids = [id("master_replid"), id("master_replid2")];
                [field("role"), ids.join(" "), field("master_repl_offset"), field("second_repl_offset")]
            });
            (sides.next().unwrap(), sides.next().unwrap())
        };
        let mut roles = Vec::new();
        for promotions in 0..3 {
            let (real, embedded) = said();
            assert_eq!(real, embedded, "{promotions}");
            // Of a master that is not there.
            assert_eq!(server.command(&["REPLICAOF", "127.0.0.1", "1"]).unwrap(), PublishOutcome::Text("OK".into()));
            node.set_condition(Condition::Replica);
            let (real, embedded) = said();
            assert_eq!(real, embedded, "{promotions}");
            roles.push(real[0].clone());
            assert_eq!(server.command(&["REPLICAOF", "NO", "ONE"]).unwrap(), PublishOutcome::Text("OK".into()));
            node.set_condition(Condition::Serving);
        }
        assert_eq!(roles, ["slave"; 3]);
    }
}

#[test]
fn what_is_no_string_is_not_ours() {
    for binary in binaries().unwrap() {
        let server = Server::plan().binary(binary).start().unwrap();
        let mut real = Raw::connect(&server.address());
        assert_eq!(real.say(&[b"LPUSH", b"k", b"x"]), ":1\r\n");
        let token = OwnerToken::from_entropy([1; OwnerToken::ENTROPY]);
        let digits = token.digits();
        let extended = real.say(&[b"EVAL", EXTEND.as_bytes(), b"1", b"k", &digits, LONG.as_bytes()]);
        assert!(extended.starts_with("-WRONGTYPE "), "{extended}");
        assert_eq!(real.say(&[b"EVAL", plain::SCRIPT.text.as_bytes(), b"1", b"k", b"release", &digits]), ":0\r\n");
        assert_eq!(real.say(&[b"LLEN", b"k"]), ":1\r\n");
    }
}
