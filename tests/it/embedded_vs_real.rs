//! The embedded node answers what the library sends as a real server does: the same bytes, error texts included.
//!
//! Every server at hand is compared with the embedded node in its guise. `QUORUMLOCK_SERVERS` names further servers.

use crate::support::server::{Answer as PublishOutcome, Server, binaries};
use quorumlock::algorithm::fence::FencingToken;
use quorumlock::algorithm::lease::OwnerToken;
use quorumlock::algorithm::place::{MOST_TICKET, PlaceId, PlaceRequest};
use quorumlock::algorithm::vote::Vote;
use quorumlock::embedded::{Condition, EmbeddedNode, ServerKind};
use quorumlock::protocol::dialect::{Answer, Dialect};
use quorumlock::protocol::fair;
use quorumlock::protocol::fair_operation::FairOperation;
use quorumlock::protocol::operation::{FenceRequest, Operation};
use quorumlock::protocol::publish::{self, Hint};
use quorumlock::protocol::resp::{self, Decoder};
use quorumlock::protocol::server_info::ServerInfo;
use quorumlock::protocol::{command, extension, fenced, holder};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than a test lasts.
const TTL: u64 = 600_000;

const HINT: Hint = Hint { crowd: 3, has_waited: true };

/// One connection, and the bytes of one reply at a time.
pub(crate) struct Raw(TcpStream);

impl Raw {
    pub(crate) fn connect(address: &str) -> Raw {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Raw(stream)
    }

    pub(crate) fn ask(&mut self, request: &[u8]) -> Vec<u8> {
        self.0.write_all(request).unwrap();
        let mut bytes = Vec::new();
        while Decoder::default().decode(&bytes).unwrap().is_none() {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            bytes.push(byte[0]);
        }
        bytes
    }

    pub(crate) fn say(&mut self, words: &[&[u8]]) -> String {
        let mut request = Vec::new();
        resp::encode(&mut request, words);
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

/// What is random in a test, and the same each time.
pub(crate) struct Choice(pub(crate) u64);

impl Choice {
    pub(crate) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        choices[(self.0 >> 33) as usize % choices.len()]
    }
}

/// The embedded node has the rules of a queue written out in Rust: so this compares the script with them, too.
#[test]
fn the_queue_of_a_fair_lock_is_the_same_whatever_is_asked() {
    queues_are_the_same(false);
}

#[test]
fn that_of_a_fenced_one_is_as_well() {
    queues_are_the_same(true);
}

fn queues_are_the_same(is_fenced: bool) {
    let (server, node) = (Server::start().unwrap(), EmbeddedNode::start().unwrap());
    let mut both = [server.address(), node.address().to_string()].map(|address| Raw::connect(&address));
    let queue = String::from_utf8(fair::queue_key(b"locks/k", 6)).unwrap();
    let ahead = format!("{} 0 ", FencingToken::MAX);
    let mut choice = Choice(7);
    let (mut granted, mut queued, mut unread, mut most) = (0, 0, 0, 0);
    for step in 0..4000 {
        let id = PlaceId::new(choice.of(&[1, 2, 3, 4, 5, 6]));
        let owner = OwnerToken::from_entropy([choice.of(&[1, 2, 3]); OwnerToken::ENTROPY]);
        let hint = choice.of(&[None, Some(HINT)]);
        let ticket = choice.of(&[None, None, Some(3), Some(9), Some(step / 20)]).filter(|ticket| *ticket > 0);
        let damaged = choice.of(&[MOST_TICKET - 1, MOST_TICKET, u64::MAX]);
        let ticket = if step % 400 < 380 { ticket } else { ticket.map(|_| damaged) };
        let lasts_millis = choice.of(&[None, Some(1), Some(600_000), Some(600_000), Some(600_000)]);
        let place = PlaceRequest { id, ticket, lasts_millis };
        let (ttl_millis, prefix) = (if is_fenced { choice.of(&[1, TTL, TTL]) } else { TTL }, 6);
        let fence = fence(choice.of(&[1, step])).filter(|_| is_fenced);
        let operation = match choice.of(&[0, 0, 0, 0, 1, 2]) {
            0 => FairOperation::Take { ttl_millis, place, hint, prefix, fence },
            1 => {
                let successor = choice.of(&[None, Some(PlaceId::new(7)), Some(PlaceId::new(8))]);
                let successor = successor.filter(|_| step % 4 == 0).map(|id| (id, 600_000));
                FairOperation::Leave { id, successor, hint, prefix, fence }
            }
            _ => FairOperation::Release { hint, undoes: choice.of(&[None, Some(id)]), prefix, fence },
        };
        // What no lock has written, and the end of it.
        let other: Option<Vec<&str>> = match step % 40 {
            9 => Some(vec!["SET", &queue, "junk"]),
            19 if is_fenced => Some(vec!["SET", "locks/k", choice.of(&["junk", &ahead])]),
            12 => Some(vec!["DEL", &queue]),
            26 => Some(vec!["DEL", "locks/k"]),
            _ => None,
        };
        let answers = both.each_mut().map(|raw| {
            other.iter().for_each(|words| _ = raw.say(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>()));
            let mut request = Vec::new();
            fair::ask(&mut request, Dialect::Eval, b"locks/k", &owner, operation);
            let reply = String::from_utf8(raw.ask(&request)).unwrap();
            let (held, rest) = reply.split_once(' ').unwrap_or((&reply, ""));
            let is_held = held.lines().last() != Some("0");
            match rest.split(' ').collect::<Vec<_>>()[..] {
                [ticket, position, lasts, first] => {
                    assert!(position.parse::<i64>().unwrap() > 0, "step {step}: {operation:?}: {reply}");
                    format!("{is_held} {ticket} {position} {} {first}", lasts != "0")
                }
                _ => reply.clone(),
            }
        });
        let takes = matches!(operation, FairOperation::Take { .. });
        // What lasts for a moment is over on both when they are asked.
        if takes && (lasts_millis == Some(1) || ttl_millis == 1) {
            std::thread::sleep(Duration::from_millis(3));
        }
        let stored = both.each_mut().map(|raw| {
            ["locks/k", &queue].map(|key| {
                let value = raw.say(&[b"GET", key.as_bytes()]);
                let fields = value.split([' ', ':']).filter(|field| field.len() != 13 && !field.starts_with('$'));
                fields.map(str::to_owned).collect::<Vec<_>>()
            })
        });
        let ([real, ours], [really_stored, stored]) = (answers, stored);
        assert_eq!((&real, &really_stored), (&ours, &stored), "step {step}: {operation:?}");
        granted += u32::from(takes && (real == ":1\r\n" || real.starts_with('$') && !real.contains(' ')));
        queued += u32::from(real.contains(' '));
        unread += u32::from(real == ":-2\r\n");
        most = most.max(stored[1].len() / 2);
    }
    assert!(granted > 100 && queued > 1000 && unread > 10 && most >= 5, "{granted} {queued} {unread} {most}");
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
    for dialect in Dialect::FOR_EXTENSION {
        add(&|out| extension::extend(out, dialect, b"k", &ours, TTL));
        add(&|out| command::acquire(out, b"k", &ours, TTL));
        add(&|out| command::acquire(out, b"k", &ours, TTL));
        add(&|out| extension::extend(out, dialect, b"k", &theirs, TTL));
        add(&|out| extension::extend(out, dialect, b"k", &ours, TTL));
        add(&|out| extension::extend(out, dialect, b"k", &ours, 0));
        add(&|out| extension::extend(out, dialect, b"k", &ours, u64::MAX));
        for dialect in Dialect::FOR_RELEASE {
            add(&|out| command::acquire(out, b"k", &ours, TTL));
            add(&|out| holder::ask(out, b"k"));
            add(&|out| command::release(out, dialect, b"k", &theirs, None));
            add(&|out| command::release(out, dialect, b"k", &ours, None));
            add(&|out| command::release(out, dialect, b"k", &ours, None));
        }
        add(&|out| command::release(out, Dialect::Eval, b"k", &ours, None));
        add(&|out| command::acquire(out, b"k", &ours, TTL));
        add(&|out| command::release(out, Dialect::Eval, b"k", &theirs, Some(HINT)));
        add(&|out| command::release(out, Dialect::Eval, b"k", &ours, Some(HINT)));
    }
    for (key, token, operation) in fenced_operations(&ours, &theirs) {
        add(&|out| fenced::ask(out, Dialect::Eval, key, token, operation));
        add(&|out| resp::encode(out, &[b"GET", b"the last fence"]));
        add(&|out| fenced::ask(out, Dialect::Evalsha, key, token, operation));
    }
    add(&|out| holder::ask(out, b"no key"));
    add(&|out| resp::encode(out, &[b"SET", b"text", b"0123456789"]));
    for [start, end] in
        [["0", "3"], ["-3", "-1"], ["-1", "-3"], ["5", "4"], ["4", "99"], ["99", "-99"], ["-99", "0"], ["x", "1"]]
    {
        add(&|out| resp::encode(out, &[b"GETRANGE", b"text", start.as_bytes(), end.as_bytes()]));
    }
    // No time at all: it is held through this millisecond, and perhaps not when it is asked for again.
    let operation = Operation::Acquire { ttl_millis: 0, fence: fence(3) };
    add(&|out| fenced::ask(out, Dialect::Eval, b"short", &ours, operation));
    requests
}

/// What an operation on a fenced lock says of the fence.
fn fence(least: u64) -> Option<FenceRequest> {
    Some(FenceRequest { least: FencingToken::saturating(least), retention_millis: TTL })
}

/// The life of a fenced lock. Times that count from the server's clock would differ, and are left out.
fn fenced_operations<'t>(
    ours: &'t OwnerToken,
    theirs: &'t OwnerToken,
) -> Vec<(&'static [u8], &'t OwnerToken, Operation)> {
    let acquire = |floor: u64| Operation::Acquire { ttl_millis: TTL, fence: fence(floor) };
    let extend = Operation::Extend { ttl_millis: TTL, fence: fence(1) };
    let raise =
        |fence: u64| Operation::Raise(FenceRequest { least: FencingToken::saturating(fence), retention_millis: TTL });
    let most = FencingToken::MAX.get();
    let f = b"f".as_slice();
    let mut deeds = vec![
        (f, ours, extend),
        (f, ours, raise(5)),
        (f, ours, Operation::Release { hint: None, fence: fence(1) }),
        (f, ours, acquire(7)),
        (f, ours, acquire(9)),
        (f, theirs, acquire(9)),
        (f, theirs, extend),
        (f, theirs, raise(50)),
        (f, theirs, Operation::Release { hint: None, fence: fence(1) }),
        (f, ours, extend),
        (f, ours, raise(5)),
        (f, ours, raise(20)),
        (f, ours, acquire(1)),
        (f, ours, Operation::Release { hint: None, fence: fence(1) }),
        (f, ours, raise(90)),
        (f, ours, extend),
        (f, ours, Operation::Release { hint: Some(Hint { crowd: 2, has_waited: true }), fence: fence(1) }),
        (f, theirs, acquire(1)),
        (f, theirs, acquire(1)),
        (f, theirs, Operation::Release { hint: None, fence: fence(1) }),
        (f, ours, acquire(100)),
        // Further ahead than a clock explains: refused, and the key is as before.
        (f, ours, raise(most)),
        (f, ours, raise(101)),
        (f, ours, Operation::Release { hint: None, fence: fence(1) }),
        (f, ours, acquire(1)),
        (f, ours, Operation::Release { hint: None, fence: fence(1) }),
    ];
    // "k" holds what a plain lock left there: nothing, or the token of one that could not be released.
    deeds.extend(
        [acquire(3), extend, raise(9), Operation::Release { hint: None, fence: fence(1) }]
            .map(|deed| (b"k".as_slice(), ours, deed)),
    );
    deeds
}

/// The guise that a server has, if the embedded node knows it.
fn flavour(server: &Server) -> Option<ServerKind> {
    let version = |field: &str| {
        let text = server.info(field).unwrap();
        let mut numbers = text.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    };
    match (version("valkey_version"), version("redis_version")) {
        ((0, _), (8, 4..) | (9.., _)) => Some(ServerKind::Redis84),
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
                (identity.role(), identity.eviction(), identity.aof_enabled(), identity.objection())
            })
        };
        let real = said(&server.address());
        assert_eq!(real, said(&node.address().to_string()));
        assert_eq!(real.map(|said| said.2), [None, Some(false), None]);
    }
}

/// What a subscriber receives, and the replies that a publisher gets.
#[test]
fn both_publish_and_deliver_notifications_alike() {
    for (server, node) in pairs() {
        let [real, embedded] = [server.address(), node.address().to_string()].map(|address| conversation(&address));
        assert_eq!(real, embedded);
        let heard = real.iter().filter(|reply| reply.starts_with("*3\r\n$7\r\nmessage")).count();
        assert_eq!(heard, 2, "{real:?}");
    }
}

fn conversation(address: &str) -> Vec<String> {
    let (mut subscriber, mut publisher) = (Raw::connect(address), Raw::connect(address));
    let token = OwnerToken::from_entropy([1; OwnerToken::ENTROPY]);
    let request = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut request = Vec::new();
        write(&mut request);
        request
    };
    let take = request(&|out| command::acquire(out, b"k", &token, TTL));
    let release = request(&|out| command::release(out, Dialect::Eval, b"k", &token, Some(HINT)));
    let mut said = Vec::new();
    let mut say = |reply: Vec<u8>| said.push(in_short(&reply));
    say(publisher.ask(&take));
    say(publisher.ask(&release));
    for key in [b"k", b"l", b"k"] {
        say(subscriber.ask(&request(&|out| publish::subscribe(out, key))));
    }
    say(subscriber.ask(&request(&|out| command::remaining(out, b"k"))));
    say(subscriber.ask(b"*1\r\n$4\r\nPING\r\n"));
    say(publisher.ask(&take));
    say(publisher.ask(&release));
    say(subscriber.ask(b""));
    say(publisher.ask(b"*3\r\n$7\r\nPUBLISH\r\n$12\r\nquorumlock:l\r\n$0\r\n\r\n"));
    say(subscriber.ask(b""));
    say(publisher.ask(b"*3\r\n$7\r\nPUBLISH\r\n$12\r\nquorumlock:m\r\n$0\r\n\r\n"));
    for key in [b"k", b"m", b"l"] {
        say(subscriber.ask(&request(&|out| publish::unsubscribe(out, key))));
    }
    say(subscriber.ask(&request(&|out| command::remaining(out, b"k"))));
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
    let token = OwnerToken::from_entropy([1; OwnerToken::ENTROPY]);
    for (server, node) in pairs() {
        let (mut real, mut embedded) = (Raw::connect(&server.address()), Raw::connect(&node.address().to_string()));
        for (value, is_read) in &fenced_values() {
            for operation in [
                Operation::Extend { ttl_millis: TTL, fence: fence(1) },
                Operation::Raise(FenceRequest { least: FencingToken::saturating(5), retention_millis: TTL }),
                Operation::Release { hint: None, fence: fence(1) },
                Operation::Acquire { ttl_millis: TTL, fence: fence(3) },
            ] {
                let mut request = Vec::new();
                fenced::ask(&mut request, Dialect::Eval, b"f", &token, operation);
                let [one, other] = [&mut real, &mut embedded].map(|node| {
                    assert_eq!(node.say(&[b"SET", b"f", value.as_bytes()]), "+OK\r\n");
                    let answer = in_short(&node.ask(&request));
                    if !is_read {
                        assert_eq!(node.say(&[b"GET", b"f"]), format!("${}\r\n{value}\r\n", value.len()), "untouched");
                    }
                    answer
                });
                assert_eq!(one, other, "{value:?} {operation:?}");
                assert_eq!(one != ":-2\r\n", *is_read, "{value:?} {operation:?}: {one}");
                // No clock explains the greatest fence.
                let is_ahead = matches!(operation, Operation::Acquire { .. }) && *value == format!("{MOST} 0 ");
                assert_eq!(one == ":-3\r\n", is_ahead, "{value:?} {operation:?}: {one}");
            }
        }
    }
}

#[test]
fn full_memory_stops_a_set_and_no_script() {
    for (server, node) in pairs() {
        let (mut real, mut embedded) = (Raw::connect(&server.address()), Raw::connect(&node.address().to_string()));
        let (mut request, ours) = (Vec::new(), OwnerToken::from_entropy([1; OwnerToken::ENTROPY]));
        command::acquire(&mut request, b"k", &ours, TTL);
        assert_eq!([real.ask(&request), embedded.ask(&request)], [b"+OK\r\n"; 2]);
        let mut request = Vec::new();
        fenced::ask(&mut request, Dialect::Eval, b"f", &ours, Operation::Acquire { ttl_millis: TTL, fence: fence(3) });
        assert_eq!([real.ask(&request), embedded.ask(&request)], [b"$1\r\n3\r\n"; 2]);
        assert_eq!(real.say(&[b"CONFIG", b"SET", b"maxmemory", b"1"]), "+OK\r\n");
        node.set_condition(Condition::OutOfMemory);
        // Now that they are ours, and memory is full, an extension by script is granted, a fence is raised, and the
        // keys can be released.
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
        // Of a master that cannot be reached: the key stays.
        assert_eq!(real.say(&[b"REPLICAOF", b"127.0.0.1", b"1"]), "+OK\r\n");
        node.set_condition(Condition::Replica);
        same_answers(&server, &node);
    }
}

#[test]
fn a_promotion_shows_alike_in_what_they_say_of_their_replication() {
    for (server, node) in pairs() {
        let mut nodes = [server.address(), node.address().to_string()].map(|address| Raw::connect(&address));
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
        for dialect in Dialect::FOR_EXTENSION {
            let mut request = Vec::new();
            extension::extend(&mut request, dialect, b"k", &token, TTL);
            let bytes = real.ask(&request);
            let (reply, _) = Decoder::default().decode(&bytes).unwrap().unwrap();
            let answer = extension::extend_reply(dialect, reply).unwrap();
            let is_unknown = dialect == Dialect::SetIfeq && matches!(answer, Answer::WrongDialect(_));
            assert!(answer == Answer::Vote(Vote::Refused) || is_unknown, "{dialect:?}: {answer:?}");
        }
        for dialect in Dialect::FOR_RELEASE {
            let mut request = Vec::new();
            command::release(&mut request, dialect, b"k", &token, None);
            let bytes = real.ask(&request);
            let (reply, _) = Decoder::default().decode(&bytes).unwrap().unwrap();
            let answer = command::release_reply(reply).unwrap();
            let is_unknown = dialect != Dialect::Eval && matches!(answer, Answer::WrongDialect(_));
            assert!(answer == Answer::Vote(Vote::Refused) || is_unknown, "{dialect:?}: {answer:?}");
        }
        assert_eq!(real.say(&[b"LLEN", b"k"]), ":1\r\n");
    }
}
