//! What the replies of the script of read-write locks mean, and what is stored.

use super::ReadWriteValue;
use crate::algorithm::fence::FencingToken;
use crate::algorithm::kind::Kind;
use crate::protocol::form::Form;
use crate::protocol::kinds::key_kind::Hold;
use crate::protocol::operation::Verb;
use crate::protocol::reply_tests::{ACQUIRE, EXTEND, check, operation};

#[test]
fn a_reply_means_what_its_operation_makes_of_it() {
    let fenced = Kind::Write(Some(FencingToken::MAX));
    check(
        Form::Text,
        &[
            operation(ACQUIRE, Kind::Write(None)),
            operation(ACQUIRE, fenced),
            operation(EXTEND, fenced),
            operation(Verb::Raise, fenced),
            operation(Verb::Release(None), Kind::Write(None)),
        ],
        "
        :1 | granted | - | granted | granted | granted
        :0 | - | - | absent | refused | refused
        :-1 | - | - | refused | refused | -
        :-2 | UnexpectedValue | UnexpectedValue | UnexpectedValue | UnexpectedValue | refused
        :-3 | - | FenceAhead | - | FenceAhead | refused
        :-4 | held 1 ms | held 1 ms | - | - | refused
        :-5 | held 2 ms | held 2 ms | - | - | -
        :2 | - | - | - | - | granted
        :5 | -
        $-1 | -
        $1700000000000000 | - | number 1700000000000000 | - | - | -
        $9007199254740992 | - | UnexpectedValue | - | - | -
        -NOPERM this user has no permissions to run the 'eval' command | NoScripts
        -OOM command not allowed | OutOfMemory
    ",
    );
}

#[test]
fn what_has_ended_is_dropped_and_the_rest_stays_as_it_is() {
    let [one, two] = ["1", "2"].map(|digit| digit.repeat(40));
    for (text, now, left) in [
        (
            format!("r 7:{one} 9:{two}"),
            7,
            format!("r 7:{one} 9:{two}"),
        ),
        (format!("r 7:{one} 9:{two}"), 8, format!("r 9:{two}")),
        (format!("r 7:{one} 9:{two}"), 10, String::new()),
        (format!("w 7 {one}"), 7, format!("w 7 {one}")),
        (format!("w 7 {one}"), 8, String::new()),
        (format!("f 5 8 w 7 {one}"), 8, "f 5 8".to_owned()),
        (format!("f 5 8 r 9:{one}"), 9, format!("r 9:{one}")),
    ] {
        let mut value = ReadWriteValue::parse(text.as_bytes()).unwrap();
        value.expire(now);
        assert_eq!(value.text(), left.as_bytes(), "{text} at {now}");
        assert!(value.is_write == left.contains('w'), "{text} at {now}");
    }
}

#[test]
fn a_value_is_a_writer_or_readers_and_perhaps_a_number() {
    let one = "1".repeat(40);
    let two = "2".repeat(40);
    let read = |text: &str| ReadWriteValue::parse(text.as_bytes());
    let hold = |deadline, token: &str| Hold {
        deadline,
        signature: token.as_bytes().to_vec(),
    };
    let first = hold(7, &one);
    let second = hold(8, &two);
    for number in [None, Some((5, 0)), Some((5, 6))] {
        let (fence, kept) = number.unwrap_or_default();
        let front = number.map_or(String::new(), |_| format!("f {fence} {kept} "));
        for (behind, is_write, holds) in [
            (format!("w 7 {one}"), true, vec![first.clone()]),
            (format!("r 7:{one}"), false, vec![first.clone()]),
            (
                format!("r 7:{one} 8:{two}"),
                false,
                vec![first.clone(), second.clone()],
            ),
            (String::new(), false, vec![]),
        ] {
            let text = format!("{front}{behind}");
            let text = text.trim_end();
            let value = ReadWriteValue {
                is_write,
                holds,
                fence,
                kept,
            };
            if !text.is_empty() {
                assert!(read(text) == Some(value.clone()), "{text}");
            }
            assert_eq!(value.text(), text.as_bytes());
            assert!(
                read(format!("{text} +9 more").trim_start()) == Some(value),
                "{text}"
            );
        }
    }
    for wrong in [
        "",
        "r",
        "w",
        "x",
        "q 9",
        &one,
        &format!("w 7:{one}"),
        &format!("r 7 {one}"),
        "r 7:1",
    ] {
        assert!(read(wrong).is_none(), "{wrong:?}");
    }
    for wrong in "f|f 5|f 5 6 |f 05 6|f 5 x|f 5 9007199254740992|9 f 5 6|f 5 6 f 5 6".split('|') {
        assert!(read(wrong).is_none(), "{wrong:?}");
    }
}
