//! Tests of the embedded node without sockets: tables of commands and replies.

use super::*;
use crate::protocol::kinds;

const RUN_ID: &str = "0123456789abcdef0123456789abcdef01234567";
const NOW: Millis = 1_700_000_000_123;

fn store(kind: ServerKind) -> Store {
    Store::new(kind, RUN_ID.to_owned(), NOW)
}

/// The reply to a request written as words with spaces between them; `''` is the empty word, and a
/// script goes by the name of its constant.
fn ask_at(store: &mut Store, session: &mut ClientState, request: &str, now: Millis) -> String {
    let words: Vec<&[u8]> = request
        .split(' ')
        .map(|word| match word {
            "''" => b"".as_slice(),
            "EXTEND" => kinds::plain::EXTEND.as_bytes(),
            "FENCED" => kinds::fenced::SCRIPT.text.as_bytes(),
            "PERMIT" => kinds::permit::SCRIPT.text.as_bytes(),
            "PLAIN" => kinds::plain::SCRIPT.text.as_bytes(),
            "READ_WRITE" => kinds::read_write::SCRIPT.text.as_bytes(),
            word => word.as_bytes(),
        })
        .collect();
    let mut out = Vec::new();
    store.execute(session, &words, now, &mut out);
    String::from_utf8(out).unwrap()
}

/// Requests and replies, a line each. A line that begins with `#` is a comment.
fn rows(conversation: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = conversation.lines().map(str::trim_start);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(" => ").unwrap())
}

/// The reply that has this name in conversations, or the same text.
fn spelled(reply: &str) -> &str {
    match reply {
        "INVALID_SET" => "-ERR invalid expire time in 'set' command",
        "INVALID_PEXPIRE" => "-ERR invalid expire time in 'pexpire' command",
        "NO_AUTH" => "-NOAUTH Authentication required.",
        "NO_INTEGER" => "-ERR value is not an integer or out of range",
        "NO_PASSWORD" => {
            "-ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?"
        }
        "NO_SYNTAX" => "-ERR syntax error",
        "OUT_OF_MEMORY" => "-OOM command not allowed when used memory > 'maxmemory'.",
        "READ_ONLY" => "-READONLY You can't write against a read only replica.",
        "WRONG_PASSWORD" => "-WRONGPASS invalid username-password pair or user is disabled.",
        "WRONG_TYPE" => "-WRONGTYPE Operation against a key holding the wrong kind of value",
        text => text,
    }
}

/// Runs a conversation on one connection: requests, and replies without their last CRLF. A number
/// in front of a request is how many milliseconds after [`NOW`] it is asked.
#[track_caller]
fn converse(store: &mut Store, conversation: &str) {
    let mut session = ClientState::default();
    for (number, (request, reply)) in (1..).zip(rows(conversation)) {
        let reply = spelled(reply).replace("\\r\\n", "\r\n");
        let timed = request
            .split_once(' ')
            .and_then(|(after, request)| Some((request, NOW + after.parse::<Millis>().ok()?)));
        let (words, now) = timed.unwrap_or((request, NOW));
        let real = ask_at(store, &mut session, words, now);
        assert_eq!(real, format!("{reply}\r\n"), "row {number}: {request}");
    }
}

#[test]
fn the_name_of_an_unknown_command_does_not_break_the_reply() {
    let mut out = Vec::new();
    let mut session = ClientState::default();
    store(ServerKind::Redis).execute(&mut session, &[b"FO\0O\r\nx"], NOW, &mut out);
    assert_eq!(out, b"-ERR unknown command 'FO\\x00O\\r\\nx'\r\n");
}

// Every row of the tables below was observed on a real server, but for the end of the text about an
// unknown command, and what Redis replies to one before the password.

#[test]
fn plain_commands() {
    converse(
        &mut store(ServerKind::Redis),
        r"
        PING => +PONG
        PING a => -ERR wrong number of arguments for 'ping' command
        ping => +PONG
        Publish c m => :0
        TIME => *2\r\n$10\r\n1700000000\r\n$6\r\n123000
        TIME a => -ERR wrong number of arguments for 'time' command
        SET k v => +OK
        GET k => $1\r\nv
        GET K => $-1
        SET '' e => +OK
        GET '' => $1\r\ne
        DEL k '' zz => :2
        DEL k => :0
        DEL => -ERR wrong number of arguments for 'del' command
        SUBSCRIBE => -ERR wrong number of arguments for 'subscribe' command
        ZADD k 1 => -ERR wrong number of arguments for 'zadd' command
        FOO => -ERR unknown command 'FOO'
        foo a b => -ERR unknown command 'foo'
    ",
    );
    let mut out = Vec::new();
    store(ServerKind::Redis).execute(&mut ClientState::default(), &[], NOW, &mut out);
    assert!(out.is_empty());
}

#[test]
fn set_and_its_options() {
    converse(
        &mut store(ServerKind::Redis),
        "
        SET k => -ERR wrong number of arguments for 'set' command
        SET k v => +OK
        SET k v2 NX => $-1
        SET k v3 NX PX 1000 => $-1
        SET n v NX PX 1000 => +OK
        PTTL n => :1000
        PTTL k => :-1
        PTTL zzz => :-2
        SET n v PX 10 => +OK
        PTTL n => :10
        SET n v => +OK
        PTTL n => :-1
        SET n v PX => NO_SYNTAX
        SET n v PX 0 => INVALID_SET
        SET n v PX -1 => INVALID_SET
        SET n v PX abc => NO_INTEGER
        SET n v PX '' => NO_INTEGER
        SET n v PX 1.5 => NO_INTEGER
        SET n v PX +5 => NO_INTEGER
        SET n v PX 05 => NO_INTEGER
        SET n v PX -0 => NO_INTEGER
        SET n v PX 9223372036854775807 => INVALID_SET
        SET n v PX 9223372036854775808 => NO_INTEGER
        SET n v FOO => NO_SYNTAX
        SET n v IFEQ v => NO_SYNTAX
        SET n v NX PX 0 => INVALID_SET
    ",
    );
}

#[test]
fn an_extension_and_its_number() {
    converse(
        &mut store(ServerKind::Redis),
        "
        SET k v PX 1000 => +OK
        EVAL EXTEND 1 k v abc => NO_INTEGER
        EVAL EXTEND 1 k v 9223372036854775808 => NO_INTEGER
        EVAL EXTEND 1 k v 9223372036854775807 => INVALID_PEXPIRE
        PTTL k => :1000
        EVAL EXTEND 1 k v -9223372036854775808 => :1
        PTTL k => :-2
    ",
    );
}

#[test]
fn databases_are_apart() {
    converse(
        &mut store(ServerKind::Redis),
        r"
        SET k v => +OK
        SELECT 15 => +OK
        GET k => $-1
        SELECT 16 => -ERR DB index is out of range
        SELECT -1 => -ERR DB index is out of range
        SELECT x => NO_INTEGER
        SELECT 01 => NO_INTEGER
        SELECT 2147483648 => -ERR value is out of range, value must between -2147483648 and 2147483647
        SELECT 1 2 => -ERR wrong number of arguments for 'select' command
        SELECT 0 => +OK
        GET k => $1\r\nv
    ",
    );
}

#[test]
fn the_known_scripts_and_no_other() {
    converse(
        &mut store(ServerKind::Redis),
        r"
        EVAL PLAIN => -ERR wrong number of arguments for 'eval' command
        EVAL PLAIN 1 => -ERR Number of keys can't be greater than number of args
        EVAL PLAIN 2 k => -ERR Number of keys can't be greater than number of args
        EVAL PLAIN -1 k => -ERR Number of keys can't be negative
        EVAL PLAIN x k => NO_INTEGER
        EVAL PLAIN 1 k release => :0
        SET k v => +OK
        EVAL PLAIN 1 k release w => :0
        EVAL PLAIN 1 k release => :0
        eval PLAIN 1 k release v => :1
        EVAL PLAIN 1 k release v => :0
        EVAL EXTEND 1 k v 500 => :0
        EVAL EXTEND 1 k => :0
        SET k v PX 100 => +OK
        EVAL EXTEND 1 k => :-1
        EVAL EXTEND 1 k w 500 => :-1
        PTTL k => :100
        eval EXTEND 1 k v 500 => :1
        PTTL k => :500
        EVAL EXTEND 1 k v 50 => :1
        PTTL k => :50
        GET k => $1\r\nv
        EVAL EXTEND 1 k v 0 => :1
        GET k => $-1
        EVAL return 0 => -ERR the embedded node runs only quorumlock's own scripts
    ",
    );
    let mut without = store(ServerKind::Redis);
    without.set_scripts(false);
    converse(&mut without, "EVAL x 0 => -ERR unknown command 'EVAL'");
}

#[test]
fn passwords() {
    let mut locked = store(ServerKind::Redis);
    locked.set_password(Some("secret".to_owned()));
    converse(
        &mut locked,
        "
        PING => NO_AUTH
        INFO server => NO_AUTH
        FOO a => NO_AUTH
        AUTH => -ERR wrong number of arguments for 'auth' command
        AUTH a b c => NO_SYNTAX
        AUTH bad => WRONG_PASSWORD
        AUTH u secret => WRONG_PASSWORD
        GET k => NO_AUTH
        AUTH default secret => +OK
        GET k => $-1
        AUTH bad => WRONG_PASSWORD
        GET k => $-1
    ",
    );
    converse(
        &mut locked,
        "
        GET k => NO_AUTH
        AUTH secret => +OK
        GET k => $-1
    ",
    );
    converse(
        &mut store(ServerKind::Redis),
        "
        AUTH pw => NO_PASSWORD
        AUTH u p => WRONG_PASSWORD
        AUTH default p => +OK
    ",
    );
}

#[test]
fn each_flavour_has_its_words_for_what_a_script_is_refused() {
    let error = "READONLY You can't write against a read only replica.";
    for (kind, by_release, by_extension) in [
        (ServerKind::Redis, format!("-{error}"), format!("-{error}")),
        (
            ServerKind::Redis62,
            format!("-@user_script: 13: -{error}"),
            format!("-@user_script: 11: -{error}"),
        ),
    ] {
        let mut node = store(kind);
        converse(&mut node, "SET k v => +OK");
        node.set_condition(Condition::Replica);
        converse(
            &mut node,
            &format!(
                "
                EVAL PLAIN 1 k release v => {by_release}
                EVAL EXTEND 1 k v 5 => {by_extension}
            "
            ),
        );
    }
}

#[test]
fn conditions() {
    let mut node = store(ServerKind::Valkey9);
    converse(&mut node, "SET k v => +OK");
    node.set_condition(Condition::Replica);
    converse(
        &mut node,
        r"
        SET k v => READ_ONLY
        DEL zz => READ_ONLY
        EVAL PLAIN 1 k release w => :0
        EVAL PLAIN 1 k release v => READ_ONLY
        EVAL EXTEND 1 zz v 5 => :0
        EVAL EXTEND 1 k w 5 => :-1
        EVAL EXTEND 1 k v 5 => READ_ONLY
        GET k => $1\r\nv
    ",
    );
    node.set_condition(Condition::OutOfMemory);
    converse(
        &mut node,
        "
        SET k v NX PX 0 => OUT_OF_MEMORY
        EVAL EXTEND 1 k v 500 => :1
        PTTL k => :500
        EVAL PLAIN 1 k release v => :1
    ",
    );
    node.set_condition(Condition::Loading);
    converse(
        &mut node,
        "
        PING => -LOADING Valkey is loading the dataset in memory
        EVAL PLAIN 1 k release v => -LOADING Valkey is loading the dataset in memory
        SELECT 0 => +OK
    ",
    );
    node.set_condition(Condition::Serving);
    converse(&mut node, "SET k v => +OK");
}

#[test]
fn information_by_section() {
    let mut session = ClientState::default();
    let mut redis = store(ServerKind::Redis);
    let server = ask_at(&mut redis, &mut session, "INFO server", NOW + 61_999);
    assert!(
        server.contains("\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n"),
        "{server}"
    );
    assert!(
        server.contains(&format!("\r\nrun_id:{RUN_ID}\r\nuptime_in_seconds:61\r\n")),
        "{server}"
    );
    let valkey = ask_at(
        &mut store(ServerKind::Valkey9),
        &mut session,
        "INFO server",
        NOW,
    );
    for line in [
        "redis_version:7.2.4",
        "server_name:valkey",
        "valkey_version:9.0.0",
        "server_mode:standalone",
    ] {
        assert!(valkey.contains(&format!("\r\n{line}\r\n")), "{valkey}");
    }
    let all = ask_at(&mut redis, &mut session, "INFO", NOW);
    for line in [
        "role:master",
        "connected_slaves:0",
        "maxmemory:0",
        "maxmemory_policy:noeviction",
        "# Server",
    ] {
        assert!(all.contains(&format!("\n{line}\r\n")), "{all}");
    }
    assert_eq!(
        ask_at(&mut redis, &mut session, "INFO foo", NOW),
        "$0\r\n\r\n"
    );
    redis.set_condition(Condition::Replica);
    assert!(
        ask_at(&mut redis, &mut session, "INFO memory replication", NOW)
            .contains("\r\n\r\n# Replication\r\nrole:slave\r\n")
    );
}

#[test]
fn keys_end_at_an_exact_millisecond() {
    let mut node = store(ServerKind::Redis);
    converse(
        &mut node,
        r"
        SET k v NX PX 100 => +OK
        99 PTTL k => :1
        100 PTTL k => :0
        100 SET k w NX PX 100 => $-1
        101 PTTL k => :-2
        101 EVAL PLAIN 1 k release v => :0
        # A dead key is not brought back.
        101 EVAL EXTEND 1 k v 500 => :0
        101 DEL k => :0
        101 SET k w NX PX 100 => +OK
        102 EVAL EXTEND 1 k w 500 => :1
        602 GET k => $1\r\nw
        603 GET k => $-1
        # A clock that is set back brings it back.
        602 GET k => $1\r\nw
    ",
    );
    let count = |after| node.keys(NOW + after).count();
    assert_eq!((count(602), count(603)), (1, 0));
}

#[test]
fn a_restart_keeps_the_keys_until_they_are_cleared() {
    let mut node = store(ServerKind::Redis);
    converse(&mut node, "SET k v => +OK");
    node.restart("f".repeat(40), NOW + 5000);
    assert_eq!(node.value(b"k", NOW), Some(b"v".as_slice()));
    assert_eq!(node.deadline(b"k", NOW), Some(None));
    let server = ask_at(
        &mut node,
        &mut ClientState::default(),
        "INFO server",
        NOW + 6000,
    );
    assert!(
        server.contains(&format!(
            "run_id:{}\r\nuptime_in_seconds:1\r\n",
            "f".repeat(40)
        )),
        "{server}"
    );
    node.clear();
    assert_eq!(node.keys(NOW).count(), 0);
}

#[test]
fn the_ends_of_time_do_not_overflow() {
    let mut node = store(ServerKind::Redis);
    let mut session = ClientState::default();
    let mut ask = |request: &str, now: Millis| ask_at(&mut node, &mut session, request, now);
    let invalid = spelled("INVALID_SET");
    assert_eq!(ask("SET k v PX 1", Millis::MAX), format!("{invalid}\r\n"));
    assert_eq!(ask("SET k v", Millis::MAX), "+OK\r\n");
    assert_eq!(ask("EVAL EXTEND 1 k v -1", 0), ":1\r\n");
}

mod scripts;
