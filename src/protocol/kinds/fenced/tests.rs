//! What the replies of the script of fenced locks mean.

use super::*;
use crate::algorithm::kind::Kind;
use crate::protocol::form::Form;
use crate::protocol::reply_tests::{ACQUIRE, EXTEND, SCRIPT_ERRORS, check, operation};

#[test]
fn a_reply_means_what_its_operation_makes_of_it() {
    let verbs = [ACQUIRE, EXTEND, Verb::Raise, Verb::Release(None)];
    let operations = verbs.map(|verb| operation(verb, Kind::Fenced(FencingToken::MAX)));
    check(Form::Text, &operations, SCRIPT_ERRORS);
    check(
        Form::Text,
        &operations,
        "
        $1700000000000000 | number 1700000000000000 | - | - | -
        $9007199254740992 | UnexpectedValue | - | - | -
        $1.7e+15 | UnexpectedValue | - | - | -
        $-1 | -
        :1 | - | granted | granted | granted
        :0 | - | absent | refused | refused
        :-1 | - | refused | refused | -
        :-2 | UnexpectedValue | UnexpectedValue | UnexpectedValue | refused
        :-3 | FenceAhead | - | FenceAhead | refused
        :-4 | held 1 ms | - | - | refused
        :-5 | held 2 ms | - | - | -
        :-9223372036854775808 | held 9223372036854775805 ms | - | - | -
        :2 | - | - | - | granted
        :5 | -
        +OK | -
    ",
    );
}

#[test]
fn a_value_is_read_as_it_is_written() {
    let token = "a7".repeat(20);
    let held = format!("7 1000 {token} host7");
    for text in [
        "7 0 ",
        "7 0  host7",
        &held,
        &format!("9007199254740991 9007199254740991 {token}"),
        &format!("7 1000 {token} host7 more"),
        &format!("7 1000 {token}  more"),
    ] {
        assert_eq!(
            FencedValue::parse(text.as_bytes()).unwrap().text(),
            text.as_bytes()
        );
    }
    let value = FencedValue::parse(held.as_bytes()).unwrap();
    assert_eq!(
        (value.fence, value.deadline, value.owner.label().as_str()),
        (7, 1000, Some("host7"))
    );
    assert_eq!(
        [400, 1000, 1001, 9000].map(|now| value.left(now)),
        [601, 1, 0, 0]
    );
    assert_eq!(
        FencedValue::parse(b"7 1000 ").unwrap().left(0),
        0,
        "no client holds it"
    );
    for text in [
        "",
        "7",
        "7 0",
        "0 0 ",
        "07 0 ",
        "7 00 ",
        "7 x ",
        "7 0 word",
        &token,
        &format!("7 0 {token} h\u{7f}"),
    ] {
        assert!(FencedValue::parse(text.as_bytes()).is_none(), "{text:?}");
    }
}
