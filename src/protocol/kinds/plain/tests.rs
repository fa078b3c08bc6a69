//! Commands about plain locks, what their replies mean, and what is stored.

use super::*;
use crate::algorithm::kind::Kind;
use crate::protocol::form::Form;
use crate::protocol::reply_tests::{self, check, operation};

fn token() -> OwnerToken {
    OwnerToken::from_entropy([0xab; 20])
}

#[test]
fn an_acquisition_goes_out_as_servers_expect_it() {
    let mut out = Vec::new();
    acquire(&mut out, b"orders/42", &token(), 30_000);
    let digits = "ab".repeat(20);
    assert_eq!(
        String::from_utf8(out).unwrap().replace("\r\n", " "),
        format!("*6 $3 SET $9 orders/42 $40 {digits} $2 NX $2 PX $5 30000 ")
    );
}

#[test]
fn only_ok_is_a_grant_and_only_null_a_refusal() {
    check(
        Form::Set,
        &[operation(reply_tests::ACQUIRE, Kind::Plain)],
        "
        +OK | granted
        $-1 | refused
        -OOM command not allowed when used memory > 'maxmemory'. | OutOfMemory
        -READONLY You can't write against a read only replica. | ReadOnly
        -LOADING Redis is loading the dataset in memory | Loading
        -NOAUTH Authentication required. | Auth
        -NOPERM no permissions to access a key | NoPermission
        -MOVED 1 127.0.0.1:1 | NotMaster
        +QUEUED | -
        +ok | -
        $OK | -
        :1 | -
        *-1 | -
    ",
    );
}

#[test]
fn extensions_go_out_as_servers_expect_them() {
    let mut out = Vec::new();
    extend(&mut out, b"k", &token(), 30_000);
    let digits = "ab".repeat(20);
    assert_eq!(
        String::from_utf8(out).unwrap().replace("\r\n", " "),
        format!(
            "*6 $4 EVAL ${} {} $1 1 $1 k $40 {digits} $5 30000 ",
            EXTEND.len(),
            EXTEND
        )
    );
}

#[test]
fn a_reply_means_what_the_script_makes_of_it() {
    check(
        Form::Text,
        &[operation(reply_tests::EXTEND, Kind::Plain)],
        "
        :1 | granted
        :0 | absent
        :-1 | refused
        :2 | -
        :-2 | -
        +OK | -
        $-1 | -
        $OK | -
        *-1 | -
        -WRONGTYPE Operation against a key holding the wrong kind of value | refused
        -WRONGTYPE Operation against a key script: 1f, on @user_script:1. | refused
        -ERR unknown command 'EVAL', with args beginning with: 'l'  | NoScripts
        -ERR unknown command `EVAL`, with args beginning with:  | NoScripts
        -ERR Could not find scripting engine 'lua' | NoScripts
        -ERR syntax error | Server(Err)
        -NOPERM this user has no permissions to run the 'eval' command | NoScripts
        -ERR The user executing the script can't run this command script: 1f | NoPermission
        -OOM command not allowed | OutOfMemory
        -READONLY no | ReadOnly
        -BUSY no | Server(Busy)
    ",
    );
}

#[test]
fn a_signature_is_a_token_perhaps_a_label_and_perhaps_more() {
    let token = "a7".repeat(20);
    let longest = "~".repeat(HolderLabel::LONGEST);
    for (text, label) in [
        (token.clone(), None),
        (format!("{token} host7"), Some("host7")),
        (format!("{token} {longest}"), Some(&*longest)),
        (format!("{token} host7 more +words"), Some("host7")),
        (format!("{token}  more"), None),
        (format!("{token} {longest}~"), None),
    ] {
        let signature = Signature::parse(text.as_bytes()).unwrap();
        assert_eq!(
            (&*signature.token, signature.label().as_str()),
            (token.as_bytes(), label)
        );
        assert_eq!(signature.text(), text.as_bytes());
        assert!(Signature::of_request(text.as_bytes()) == signature);
    }
    let upper = token.to_uppercase();
    for text in [
        "",
        " host7",
        "locked",
        &upper,
        &token[1..],
        &format!("{token} "),
        &format!("{token} {}", "~".repeat(LONGEST_LABEL)),
        &format!("{token} h\u{7f}"),
    ] {
        assert!(Signature::parse(text.as_bytes()).is_none(), "{text:?}");
    }
    assert!(Signature::parse(format!("{token}host7").as_bytes()).is_none());
}
