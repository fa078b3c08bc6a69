//! Values that no lock has written are foreign to both.

use super::requests::{LONG, token};
use super::*;
use quorumlock::algorithm::lease::OwnerToken;
use quorumlock::protocol::kinds::plain::EXTEND;
use quorumlock::protocol::kinds::{fenced, plain};

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

#[test]
fn what_no_fenced_lock_has_written_is_foreign_to_both() {
    let token = token('1');
    let entry = "0000000000000007f1";
    for (server, node) in pairs() {
        let mut real = Raw::connect(&server.address());
        let mut embedded = Raw::connect(&address_of(&node));
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
                        assert_eq!(
                            node.say(&[b"GET", b"f"]),
                            format!("${}\r\n{value}\r\n", value.len()),
                            "untouched"
                        );
                    }
                    without_remaining(&answer)
                });
                assert_eq!(one, other, "{value:?} {request:?}");
                let unread = if request[0] == "release" {
                    ":0\r\n"
                } else {
                    ":-2\r\n"
                };
                assert!(*is_read || one == unread, "{value:?} {request:?}: {one}");
                assert!(!is_read || one != ":-2\r\n", "{value:?} {request:?}: {one}");
                // No clock explains the greatest fence.
                let is_ahead =
                    matches!(request[0], "acquire" | "take") && *value == format!("{MOST} 0 ");
                assert_eq!(one == ":-3\r\n", is_ahead, "{value:?} {request:?}: {one}");
            }
        }
    }
}

#[test]
fn what_is_no_string_is_not_ours() {
    for server in servers() {
        let mut real = Raw::connect(&server.address());
        assert_eq!(real.say(&[b"LPUSH", b"k", b"x"]), ":1\r\n");
        let token = OwnerToken::from_entropy([1; OwnerToken::ENTROPY]);
        let digits = token.digits();
        let extended = real.say(&[
            b"EVAL",
            EXTEND.as_bytes(),
            b"1",
            b"k",
            &digits,
            LONG.as_bytes(),
        ]);
        assert!(extended.starts_with("-WRONGTYPE "), "{extended}");
        assert_eq!(
            real.say(&[
                b"EVAL",
                plain::SCRIPT.text.as_bytes(),
                b"1",
                b"k",
                b"release",
                &digits
            ]),
            ":0\r\n"
        );
        assert_eq!(real.say(&[b"LLEN", b"k"]), ":1\r\n");
    }
}
