//! Commands about plain locks, what their replies mean, and what is stored.

use super::*;
use crate::algorithm::kind::Kind;
use crate::fault::server_error::ServerError;
use crate::fault::{Cause, Fault, Phase};
use crate::protocol::asked::Asked;
use crate::protocol::form::Form;
use crate::protocol::operation::{Operation, Verb};
use crate::protocol::reply;

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
    let fault = |cause| Ok(Vote::Fault(Fault::new(Phase::Reply, cause)));
    let table: [(Reply<'_>, Result<Vote, ProtocolError>); 13] = [
        (Reply::Simple(b"OK"), Ok(Vote::Granted)),
        (Reply::Bulk(None), Ok(Vote::Refused)),
        (
            Reply::Error(b"OOM command not allowed when used memory > 'maxmemory'."),
            fault(Cause::OutOfMemory),
        ),
        (
            Reply::Error(b"READONLY You can't write against a read only replica."),
            fault(Cause::ReadOnly),
        ),
        (
            Reply::Error(b"LOADING Redis is loading the dataset in memory"),
            fault(Cause::Loading),
        ),
        (
            Reply::Error(b"NOAUTH Authentication required."),
            fault(Cause::Auth),
        ),
        (
            Reply::Error(b"NOPERM no permissions to access a key"),
            fault(Cause::NoPermission),
        ),
        (
            Reply::Error(b"MOVED 1 127.0.0.1:1"),
            fault(Cause::NotMaster),
        ),
        (
            Reply::Simple(b"QUEUED"),
            Err(ProtocolError::UnexpectedReply),
        ),
        (Reply::Simple(b"ok"), Err(ProtocolError::UnexpectedReply)),
        (
            Reply::Bulk(Some(b"OK")),
            Err(ProtocolError::UnexpectedReply),
        ),
        (Reply::Integer(1), Err(ProtocolError::UnexpectedReply)),
        (Reply::Array(None), Err(ProtocolError::UnexpectedReply)),
    ];
    for (reply, vote) in table {
        assert_eq!(acquire_vote(reply), vote, "{reply:?}");
    }
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
    type Meaning = Result<Answer, ProtocolError>;
    const UNEXPECTED: Meaning = Err(ProtocolError::UnexpectedReply);
    let vote = |vote| Ok(Answer::Vote(vote));
    let fault = |cause| Ok(Answer::fault(cause));
    let table: [(Reply<'_>, Meaning); 20] = [
        (Reply::Integer(1), vote(Vote::Granted)),
        (Reply::Integer(0), vote(Vote::Absent)),
        (Reply::Integer(-1), vote(Vote::Refused)),
        (Reply::Integer(2), UNEXPECTED),
        (Reply::Integer(-2), UNEXPECTED),
        (Reply::Simple(b"OK"), UNEXPECTED),
        (Reply::Bulk(None), UNEXPECTED),
        (Reply::Bulk(Some(b"OK")), UNEXPECTED),
        (Reply::Array(None), UNEXPECTED),
        (Reply::Error(b"WRONGTYPE Operation against a key holding the wrong kind of value"), vote(Vote::Refused)),
        (
            Reply::Error(
                b"WRONGTYPE Operation against a key holding the wrong kind of value script: 1f, on @user_script:1.",
            ),
            vote(Vote::Refused),
        ),
        (Reply::Error(b"ERR unknown command 'EVAL', with args beginning with: 'l' "), fault(Cause::NoScripts)),
        (Reply::Error(b"ERR unknown command `EVAL`, with args beginning with: "), fault(Cause::NoScripts)),
        (Reply::Error(b"ERR Could not find scripting engine 'lua'"), fault(Cause::NoScripts)),
        (Reply::Error(b"ERR syntax error"), fault(Cause::Server(ServerError::Err))),
        (Reply::Error(b"NOPERM this user has no permissions to run the 'eval' command"), fault(Cause::NoScripts)),
        (
            Reply::Error(b"ERR The user executing the script can't run this command or subcommand script: 1f"),
            fault(Cause::NoPermission),
        ),
        (Reply::Error(b"OOM command not allowed"), fault(Cause::OutOfMemory)),
        (Reply::Error(b"READONLY no"), fault(Cause::ReadOnly)),
        (Reply::Error(b"BUSY no"), fault(Cause::Server(ServerError::Busy))),
    ];
    let operation = Operation {
        verb: Verb::Extend { ttl_millis: 1 },
        kind: Kind::Plain,
        retention_millis: 1,
    };
    for (bytes, meaning) in table {
        assert_eq!(
            reply::meaning(Form::Text, Asked::of(&operation), bytes),
            meaning,
            "{bytes:?}"
        );
    }
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
