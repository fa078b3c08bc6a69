//! The embedded node runs the script of read-write locks as a real server does: the same answers, and the same keys.

use crate::embedded_vs_real::{Raw, in_short, pairs};
use quorumlock::algorithm::lease::OwnerToken;
use quorumlock::algorithm::lock_kind::Access;
use quorumlock::protocol::dialect::Dialect;
use quorumlock::protocol::operation::ReadWriteOperation;
use quorumlock::protocol::publish::Hint;
use quorumlock::protocol::read_write;

/// Longer than a test lasts.
const TTL: u64 = 600_000;

const HINT: Hint = Hint { crowd: 3, has_waited: true };

#[test]
fn the_life_of_a_key_goes_the_same_way() {
    let [ours, theirs] = [1, 2].map(|byte| OwnerToken::from_entropy([byte; OwnerToken::ENTROPY]));
    for (server, node) in pairs() {
        let (mut real, mut embedded) = (Raw::connect(&server.address()), Raw::connect(&node.address().to_string()));
        for (index, (token, operation)) in operations(&ours, &theirs).enumerate() {
            for dialect in [Dialect::Eval, Dialect::Evalsha] {
                let mut request = Vec::new();
                read_write::ask(&mut request, dialect, b"rw", token, operation);
                let [one, other] = [&mut real, &mut embedded].map(|node| {
                    // The times differ, and so does what is left of them.
                    let (answer, value) = (in_short(&node.ask(&request)), node.say(&[b"GET", b"rw"]));
                    let ends = node.say(&[b"PTTL", b"rw"]).len();
                    (answer, value.replace(|letter: char| letter.is_ascii_digit(), "0"), ends)
                });
                assert_eq!(one, other, "{index}: {operation:?}");
            }
        }
    }
}

#[test]
fn what_no_read_write_lock_has_written_is_foreign_to_both() {
    let token = OwnerToken::from_entropy([1; OwnerToken::ENTROPY]);
    let (ours, theirs, late) = ("01".repeat(20), "2".repeat(40), (1_u64 << 53) - 1);
    let table = [
        (format!("w {late} {theirs}"), true),
        (format!("w {late} {theirs} q {late}"), true),
        (format!("w 1 {ours}"), true),
        (format!("r {late}:{theirs}"), true),
        (format!("r {late}:{theirs} 1:{ours} {late}:{ours} q 7"), true),
        (format!("q {late}"), true),
        (String::new(), false),
        (format!("q {}", late + 1), false),
        (format!("w {} {theirs}", late + 1), false),
        (format!("r {}:{theirs}", late + 1), false),
        ("q 0".to_owned(), false),
        ("r".to_owned(), false),
        ("w".to_owned(), false),
        ("r q 7".to_owned(), false),
        (format!("w 1:{ours}"), false),
        (format!("r 1 {ours}"), false),
        (format!("w 01 {ours}"), false),
        (format!("w -1 {ours}"), false),
        (format!("w 1 {ours} "), false),
        (format!(" w 1 {ours}"), false),
        (format!("w 1 {ours}0"), false),
        (format!("w 1 {}", "AB".repeat(20)), false),
        (format!("w 1 {ours} q"), false),
        (format!("w 1 {ours} q 1 q 1"), false),
        (format!("w 1 {ours} 1 {theirs}"), false),
        (format!("q 1 w 1 {ours}"), false),
        (format!("r 1:{ours}  2:{theirs}"), false),
        (format!("x 1:{ours}"), false),
        (ours.clone(), false),
    ];
    let acquire = |access| ReadWriteOperation::Acquire { access, ttl_millis: TTL, mark_millis: 0 };
    for (server, node) in pairs() {
        let (mut real, mut embedded) = (Raw::connect(&server.address()), Raw::connect(&node.address().to_string()));
        for (value, is_read) in &table {
            for operation in [
                acquire(Access::Read),
                acquire(Access::Write),
                ReadWriteOperation::Extend { access: Access::Read, ttl_millis: TTL },
                ReadWriteOperation::Release { hint: None },
            ] {
                let mut request = Vec::new();
                read_write::ask(&mut request, Dialect::Eval, b"rw", &token, operation);
                let [one, other] = [&mut real, &mut embedded].map(|node| {
                    assert_eq!(node.say(&[b"SET", b"rw", value.as_bytes()]), "+OK\r\n");
                    let answer = in_short(&node.ask(&request));
                    if !is_read {
                        assert_eq!(node.say(&[b"GET", b"rw"]), format!("${}\r\n{value}\r\n", value.len()), "untouched");
                    }
                    answer
                });
                assert_eq!(one, other, "{value:?} {operation:?}");
                assert_eq!(one != ":-2\r\n", *is_read, "{value:?} {operation:?}: {one}");
            }
        }
    }
}

/// The life of a read-write lock: each operation is asked twice.
fn operations<'t>(
    ours: &'t OwnerToken,
    theirs: &'t OwnerToken,
) -> impl Iterator<Item = (&'t OwnerToken, ReadWriteOperation)> {
    let acquire = |access, mark_millis| ReadWriteOperation::Acquire { access, ttl_millis: TTL, mark_millis };
    let extend = |access| ReadWriteOperation::Extend { access, ttl_millis: TTL };
    let (read, write, marking) = (acquire(Access::Read, 0), acquire(Access::Write, 0), acquire(Access::Write, TTL));
    let [release, publish] = [None, Some(HINT)].map(|hint| ReadWriteOperation::Release { hint });
    let by_both = |operation| [(ours, operation), (theirs, operation)];
    let life = [
        (ours, release),
        (ours, extend(Access::Read)),
        (ours, read),
        (theirs, write),
        (theirs, extend(Access::Read)),
        (theirs, extend(Access::Write)),
        (theirs, read),
        (ours, write),
        (ours, extend(Access::Write)),
        (ours, publish),
        (theirs, publish),
        (ours, write),
        (theirs, extend(Access::Write)),
        (ours, extend(Access::Write)),
        (theirs, marking),
        (ours, extend(Access::Read)),
        (ours, extend(Access::Write)),
        (theirs, read),
        (ours, read),
        (ours, publish),
        (theirs, read),
        (theirs, write),
        (ours, read),
        (theirs, release),
    ];
    let many = [read, marking, extend(Access::Read), publish].into_iter().flat_map(by_both);
    life.into_iter().chain(many.collect::<Vec<_>>())
}
