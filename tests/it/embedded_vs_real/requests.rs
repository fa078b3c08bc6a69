//! The requests that both are asked: those of the library, and those of its tools.

use crate::prelude::*;
use quorumlock::protocol::kinds::plain::EXTEND;
use quorumlock::protocol::kinds::{fenced, permit, plain};
use quorumlock::protocol::node_note;
use quorumlock::protocol::script::Script;

/// Longer than a test lasts, in milliseconds, as a word of a request.
pub(super) const LONG: &str = "600000";

/// The token of a lock.
pub(super) fn token(digit: char) -> String {
    digit.to_string().repeat(40)
}

/// The requests of the library in the life of a key, and around it.
pub(super) fn requests() -> Vec<Vec<String>> {
    let [ours, theirs] = ['1', '2'].map(token);
    let mut requests: Vec<Vec<String>> = Vec::new();
    let mut add =
        |words: &[&str]| requests.push(words.iter().map(|word| (*word).to_owned()).collect());
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
    for Script {
        text: script,
        sha1: hash,
        ..
    } in [plain::SCRIPT, permit::SCRIPT, fenced::SCRIPT]
    {
        add(&["EVALSHA", hash, "1", "k#0", "release", &ours]);
        add(&["EVAL", script, "1", "k#0", "release", &ours]);
        add(&["EVALSHA", hash, "1", "k#0", "release", &ours]);
    }
    add(&["GETRANGE", "no key", "0", "127"]);
    add(&["SET", "text", "0123456789"]);
    for [start, end] in [
        ["0", "3"],
        ["-3", "-1"],
        ["-1", "-3"],
        ["5", "4"],
        ["4", "99"],
        ["99", "-99"],
        ["-99", "0"],
        ["x", "1"],
    ] {
        add(&["GETRANGE", "text", start, end]);
    }
    requests
}

/// The commands that a tool needs for queues, and those for strings where a queue is.
pub(super) fn requests_for_sets() -> Vec<Vec<String>> {
    let rows = [
        "ZADD set 5 b",
        "ZADD set 5 a 4 c 6 a",
        "ZADD set 1 m 2",
        "ZADD set x m",
        "ZADD set inf i -inf j",
        "ZADD set 0.1 d 1795519049784269 e 1e17 f",
        "ZADD set nan g",
        "ZCARD set",
        "ZCARD none",
        "ZCARD",
        "ZRANGE set 0 -1",
        "ZRANGE set 0 -1 WITHSCORES",
        "ZRANGE set 1 2 WITHSCORES",
        "ZRANGE set -2 -1",
        "ZRANGE set -99 1",
        "ZRANGE set 3 1",
        "ZRANGE set 99 100",
        "ZRANGE set 2 99",
        "ZRANGE set x 1",
        "ZRANGE set 0 -99",
        "ZRANGE set 0 1 foo",
        "ZRANGE none 0 -1",
        "ZRANGE set 0",
        "GET set",
        "GETRANGE set 0 1",
        "GETRANGE set x 1",
        "SET set v NX",
        "PTTL set",
        "SET set v",
        "ZADD set 1 m",
        "ZADD set x m",
        "ZCARD set",
        "ZRANGE set 0 -1",
        "ZRANGE set x -1",
        "GET set",
        "DEL set",
        "ZADD set -0 m",
        "ZRANGE set 0 -1 WITHSCORES",
        "ZADD set 0 m",
        "ZRANGE set 0 -1 WITHSCORES",
        "DEL set",
    ];
    rows.map(|row| row.split(' ').map(str::to_owned).collect())
        .to_vec()
}

/// Requests to store what a node remembers of itself. The time is given: the two are not asked in
/// the same moment.
pub(super) fn notes() -> Vec<Vec<String>> {
    // The embedded node's clock has milliseconds.
    let now = micros() - 10_000;
    let note = |key: &str, read: &str, looked: u64, time: &str| {
        [
            "EVAL",
            node_note::STORE,
            "1",
            key,
            read,
            &looked.to_string(),
            "1 f ",
            time,
            " x",
        ]
        .map(str::to_owned)
        .to_vec()
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
