//! Values that no lock has written are foreign to both.

use super::requests::{LONG, token};
use super::*;
use quorumlock::protocol::kinds::plain::EXTEND;
use quorumlock::protocol::kinds::{fenced, permit, plain};

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
        (format!("1 0 {digits} two words"), true),
        (format!("1 0 {digits}  more"), true),
        (format!("1 0 {digits} {}", "~".repeat(255)), true),
        (format!("1 0 {digits} {}", "~".repeat(256)), false),
        (format!("1 0 {digits} two\nlines"), false),
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

/// What both reply to this call of a script, which finds this value and changes it only if it is
/// read.
#[track_caller]
pub(crate) fn reply_of_both(
    sides: &mut [Raw; 2],
    value: &str,
    is_read: bool,
    call: &[&str],
) -> String {
    let [_, _, _, key, request @ ..] = call else {
        panic!("{call:?}")
    };
    let [one, other] = sides.each_mut().map(|node| {
        assert_eq!(node.say(&["SET", key, value]), "+OK\r\n");
        let reply = node.say(call);
        if !is_read {
            assert_eq!(node.say(&["GET", key]), bulk(value), "untouched");
        }
        without_remaining(&reply)
    });
    assert_eq!(one, other, "{value:?} {request:?}");
    let is_fit = match (is_read, request[0]) {
        (true, _) => one != ":-2\r\n",
        (false, "release") => one == ":0\r\n",
        (false, _) => one == ":-2\r\n",
    };
    assert!(is_fit, "{value:?} {request:?}: {one}");
    one
}

#[test]
fn what_no_fenced_lock_has_written_is_foreign_to_both() {
    let token = token('1');
    let entry = "0000000000000007f1";
    for (server, node) in pairs() {
        let mut sides = connect_both(&server, &node);
        for (value, is_read) in &fenced_values() {
            for request in [
                &["extend", &token, LONG, LONG][..],
                &["raise", &token, "5", LONG],
                &["release", &token, "", "", LONG],
                &["acquire", &token, LONG, LONG, "3"],
                &["take", &token, LONG, entry, "5", "n", "", LONG, "3"],
            ] {
                let words = [&["EVAL", fenced::SCRIPT.text, "1", "f"], request].concat();
                let reply = reply_of_both(&mut sides, value, *is_read, &words);
                // No clock explains the greatest fence.
                let is_ahead =
                    matches!(request[0], "acquire" | "take") && *value == format!("{MOST} 0 ");
                assert_eq!(
                    reply == ":-3\r\n",
                    is_ahead,
                    "{value:?} {request:?}: {reply}"
                );
            }
        }
    }
}

/// An entry that names no number counts with the most permits: one is free, and it has no receiver.
#[test]
fn entries_of_no_client_count_with_the_same_numbers_of_permits() {
    let queue = "quorumlock-queue:quorumlock-permits:jobs";
    let (token, entry) = (token('1'), "0000000000000007s3:1");
    let script = ["EVAL", permit::SCRIPT.text, "1", "jobs#0"];
    let take = ["take", &token, LONG, entry, "9", "f", "", "3"];
    let take = [&script[..], &take].concat();
    for (server, node) in pairs() {
        let mut sides = connect_both(&server, &node);
        for (member, is_number) in [
            ("000000000000000as3:x", true),
            ("000000000000000As3:1", true),
            ("as3:1", true),
            ("as03:1", false),
            ("as3", false),
            ("s3:1", false),
        ] {
            let left = sides.each_mut().map(|side| {
                for slot in ["jobs#0", "jobs#1", "jobs#2"] {
                    side.say(&["SET", slot, "x"]);
                }
                side.say(&["ZADD", queue, "5", member]);
                side.say(&take);
                let left = side.say(&["ZCARD", queue]);
                side.say(&["DEL", queue]);
                left
            });
            let expected = if is_number { ":2\r\n" } else { ":1\r\n" };
            assert_eq!(left, [expected; 2], "{member}");
        }
    }
}

#[test]
fn what_is_no_string_is_not_ours() {
    for server in servers() {
        let mut real = Raw::connect(&server.address());
        assert_eq!(real.say(&["LPUSH", "k", "x"]), ":1\r\n");
        let token = token('1');
        let extended = real.say(&["EVAL", EXTEND, "1", "k", &token, LONG]);
        assert!(extended.starts_with("-WRONGTYPE "), "{extended}");
        let release = ["EVAL", plain::SCRIPT.text, "1", "k", "release", &token];
        assert_eq!(real.say(&release), ":0\r\n");
        assert_eq!(real.say(&["LLEN", "k"]), ":1\r\n");
    }
}
