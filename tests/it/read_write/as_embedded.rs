//! The embedded node runs the script of read-write locks as a real server does: the same answers, and the same keys.

use crate::embedded_vs_real::{Choice, Raw, in_short, pairs};
use quorumlock::algorithm::fence::FencingToken;
use quorumlock::algorithm::lease::OwnerToken;
use quorumlock::algorithm::lock_kind::Access;
use quorumlock::embedded::Condition;
use quorumlock::protocol::dialect::Dialect;
use quorumlock::protocol::operation::{FenceRequest, ReadWriteOperation};
use quorumlock::protocol::publish::Hint;
use quorumlock::protocol::read_write;

/// Longer than a test lasts.
const TTL: u64 = 600_000;

/// Longer than the entries of [`TTL`].
const RETENTION: u64 = 2 * TTL;

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

/// Anything in any order, with numbers and without, while memory is full and while it is not.
#[test]
fn a_key_is_the_same_whatever_is_asked() {
    for (server, node) in pairs() {
        let mut both = [server.address(), node.address().to_string()].map(|address| Raw::connect(&address));
        let (dead, late) = ("3".repeat(40), (1_u64 << 53) - 1);
        let planted = [
            format!("f 70 {late}"),
            format!("f 70 1 r 1:{dead}"),
            format!("f {late} {late}"),
            format!("f 70 {late} w {late} {dead}"),
            format!("f 70 1 q {late}"),
            "junk".to_owned(),
        ];
        let mut choice = Choice(7);
        let (mut numbers, mut kept, mut ahead, mut full) = (0, 0, 0, 0);
        for step in 0..3000_u64 {
            let token = OwnerToken::from_entropy([choice.of(&[1, 1, 2, 3]); OwnerToken::ENTROPY]);
            let access = choice.of(&[Access::Read, Access::Write, Access::Write]);
            let (ttl_millis, mark_millis) = (choice.of(&[TTL, 2 * TTL]), choice.of(&[0, 0, 0, TTL]));
            let least = FencingToken::saturating(choice.of(&[1, step.max(1), 5000]));
            let fence = FenceRequest { least, retention_millis: choice.of(&[1, RETENTION, RETENTION]) };
            let of_writer = choice.of(&[None, Some(fence), Some(fence)]).filter(|_| access == Access::Write);
            let operation = match choice.of(&[0, 0, 1, 2, 3, 3]) {
                0 => ReadWriteOperation::Acquire { access, ttl_millis, mark_millis, fence: of_writer },
                1 => ReadWriteOperation::Extend { access, ttl_millis, fence: of_writer },
                2 => ReadWriteOperation::Raise(fence),
                _ => ReadWriteOperation::Release { hint: choice.of(&[None, Some(HINT)]) },
            };
            let plant = (step % 25 == 0).then(|| choice.of(&planted.each_ref()).as_bytes());
            let is_full = step % 7 > 4;
            node.set_condition(Condition::Serving);
            assert_eq!(both[0].say(&[b"CONFIG", b"SET", b"maxmemory", b"0"]), "+OK\r\n");
            if let Some(value) = plant {
                both.iter_mut().for_each(|raw| assert_eq!(raw.say(&[b"SET", b"rw", value]), "+OK\r\n"));
            }
            if is_full {
                assert_eq!(both[0].say(&[b"CONFIG", b"SET", b"maxmemory", b"1"]), "+OK\r\n");
                node.set_condition(Condition::OutOfMemory);
            }
            let mut request = Vec::new();
            read_write::ask(&mut request, Dialect::Eval, b"rw", &token, operation);
            let answers = both.each_mut().map(|raw| in_short(&raw.ask(&request)));
            if fence.retention_millis == 1 {
                // It is over on both when they are asked next.
                std::thread::sleep(std::time::Duration::from_millis(3));
            }
            let stored = both.each_mut().map(|raw| {
                let value = raw.say(&[b"GET", b"rw"]);
                let is_time = |word: &&str| word.len() == 13 && word.bytes().all(|byte| byte.is_ascii_digit());
                let words = value.trim_end().split([' ', ':']).filter(|word| !is_time(word)).map(str::to_owned);
                (words.collect::<Vec<_>>(), raw.say(&[b"PTTL", b"rw"]).len())
            });
            let ([real, ours], [really_stored, stored]) = (answers, stored);
            assert_eq!((&real, &really_stored), (&ours, &stored), "step {step}: {operation:?}, planted {plant:?}");
            numbers += u32::from(real.starts_with('$'));
            kept += u32::from(real == ":1\r\n" && of_writer.is_none() && stored.0[0].ends_with("\nf"));
            ahead += u32::from(real == ":-3\r\n");
            full += u32::from(real.contains("OOM"));
        }
        assert!(numbers > 50 && kept > 100 && ahead > 10 && full > 50, "{numbers} {kept} {ahead} {full}");
    }
}

/// Values, and whether the script reads them as those of a read-write lock.
pub(crate) fn values() -> Vec<(String, bool)> {
    let (ours, theirs, late) = ("01".repeat(20), "2".repeat(40), (1_u64 << 53) - 1);
    vec![
        (format!("w {late} {theirs}"), true),
        (format!("w {late} {theirs} q {late}"), true),
        (format!("w 1 {ours}"), true),
        (format!("r {late}:{theirs}"), true),
        (format!("r {late}:{theirs} 1:{ours} {late}:{ours} q 7"), true),
        (format!("q {late}"), true),
        (String::new(), false),
        (format!("q {}", late + 1), false),
        (format!("f 7 {late}"), true),
        ("f 7 1".to_owned(), true),
        ("f 7 0".to_owned(), true),
        (format!("w 0 {theirs}"), true),
        (format!("f {late} {late} w {late} {theirs} q {late}"), true),
        (format!("f {late} 0 r {late}:{theirs} 1:{ours}"), true),
        (format!("f 7 {late} q 7"), true),
        (format!("f 0 {late}"), false),
        (format!("f 07 {late}"), false),
        (format!("f {} {late}", late + 1), false),
        (format!("f 7 {}", late + 1), false),
        (format!("f 7 {late} "), false),
        (format!("f 7  {late}"), false),
        (format!("f 7 {late} f 7 {late}"), false),
        (format!("f 7 {late} {ours}"), false),
        (format!("f 7 {late} w 1 {ours} r 1:{ours}"), false),
        (format!("q {late} f 7 {late}"), false),
        (format!("w 1 {ours} f 7 {late}"), false),
        (format!("f 7 {late} q 0"), false),
        (format!("f{}", "0".repeat(39)), false),
        ("f 7".to_owned(), false),
        ("f".to_owned(), false),
        (format!("w 1 {ours} q 0"), false),
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
    ]
}

#[test]
fn what_no_read_write_lock_has_written_is_foreign_to_both() {
    let token = OwnerToken::from_entropy([1; OwnerToken::ENTROPY]);
    let acquire = |access, fence| ReadWriteOperation::Acquire { access, ttl_millis: TTL, mark_millis: 0, fence };
    let fence = FenceRequest { least: FencingToken::saturating(1), retention_millis: RETENTION };
    for (server, node) in pairs() {
        let (mut real, mut embedded) = (Raw::connect(&server.address()), Raw::connect(&node.address().to_string()));
        for (value, is_read) in &values() {
            for operation in [
                acquire(Access::Read, None),
                acquire(Access::Write, None),
                acquire(Access::Write, Some(fence)),
                ReadWriteOperation::Raise(fence),
                ReadWriteOperation::Extend { access: Access::Read, ttl_millis: TTL, fence: None },
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
    let acquire =
        |access, mark_millis| ReadWriteOperation::Acquire { access, ttl_millis: TTL, mark_millis, fence: None };
    let extend = |access| ReadWriteOperation::Extend { access, ttl_millis: TTL, fence: None };
    let (read, write, marking) = (acquire(Access::Read, 0), acquire(Access::Write, 0), acquire(Access::Write, TTL));
    let number = |least: u64| FenceRequest { least: FencingToken::saturating(least), retention_millis: RETENTION };
    let fenced = |least, mark_millis| {
        let fence = Some(number(least));
        ReadWriteOperation::Acquire { access: Access::Write, ttl_millis: TTL, mark_millis, fence }
    };
    let extend_fenced = ReadWriteOperation::Extend { access: Access::Write, ttl_millis: TTL, fence: Some(number(1)) };
    let raise = |least| ReadWriteOperation::Raise(number(least));
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
        (ours, release),
    ];
    let with_numbers = [
        (ours, raise(4)),
        (ours, fenced(3, 0)),
        (ours, raise(5)),
        (theirs, raise(9)),
        (theirs, fenced(3, TTL)),
        (theirs, write),
        (ours, extend_fenced),
        (ours, raise(FencingToken::MAX.get())),
        (ours, raise(2)),
        (ours, fenced(7, 0)),
        (ours, publish),
        (theirs, read),
        (theirs, raise(9)),
        (theirs, fenced(9, 0)),
        (theirs, release),
        (ours, write),
        (ours, extend_fenced),
        (ours, release),
        (theirs, fenced(6, 0)),
        (theirs, extend(Access::Read)),
        (theirs, raise(9)),
        (theirs, extend_fenced),
        (ours, read),
        (theirs, release),
        (ours, release),
    ];
    let life = life.into_iter().chain(with_numbers);
    let many = [read, marking, extend(Access::Read), publish].into_iter().flat_map(by_both);
    life.chain(many.collect::<Vec<_>>())
}
