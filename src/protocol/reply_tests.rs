//! What replies mean, in tables of text. A row has a reply, and behind each `|` what it means to
//! one of some operations; or once, what it means to all of them.

use super::asked::Asked;
use super::form::{Answer, Form};
use super::operation::{Operation, Verb};
use super::reply;
use super::resp::Reply;
use crate::algorithm::kind::Kind;
use crate::algorithm::vote::Vote;
use crate::fault::protocol_error::ProtocolError;
use crate::fault::{Fault, Phase};

/// What begins a hold, and makes it longer.
pub(super) const ACQUIRE: Verb = Verb::Acquire { ttl_millis: 30_000 };
pub(super) const EXTEND: Verb = Verb::Extend { ttl_millis: 30_000 };

/// Why servers run no script, or not all of one.
pub(super) const SCRIPT_ERRORS: &str = "
    -ERR unknown command 'EVAL', with args beginning with: 'l'  | NoScripts
    -ERR Could not find scripting engine 'lua' | NoScripts
    -NOPERM this user has no permissions to run the 'eval' command | NoScripts
    -NOPERM No permissions to access a key | NoPermission
    -ERR The user executing the script can't run this command or subcommand | NoPermission
    -OOM command not allowed when used memory > 'maxmemory'. | OutOfMemory
    -READONLY You can't write against a read only replica. | ReadOnly
";

pub(super) fn operation(verb: Verb, kind: Kind) -> Operation {
    Operation {
        verb,
        kind,
        retention_millis: 86_400_000,
    }
}

/// The cells of each row of a table.
pub(super) fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = table.lines().map(str::trim_start);
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(|line| line.split(" | ").collect())
}

/// Checks what replies mean to these operations in this form.
#[track_caller]
pub(super) fn check(form: Form, operations: &[Operation], table: &str) {
    for row in rows(table) {
        let (text, meanings) = row.split_first().unwrap();
        assert!([1, operations.len()].contains(&meanings.len()), "{text}");
        for (operation, expected) in operations.iter().zip(meanings.iter().cycle()) {
            let meaning = reply::meaning(form, Asked::of(operation), reply(text));
            assert_eq!(&word(meaning), expected, "{text} to {operation:?}");
        }
    }
}

/// As on the wire, without lengths.
fn reply(text: &str) -> Reply<'_> {
    match text.split_at(1) {
        ("+", text) => Reply::Simple(text.as_bytes()),
        ("-", text) => Reply::Error(text.as_bytes()),
        (":", number) => Reply::Integer(number.parse().unwrap()),
        ("$", "-1") => Reply::Bulk(None),
        ("$", text) => Reply::Bulk(Some(text.as_bytes())),
        ("*", "-1") => Reply::Array(None),
        _ => panic!("{text}"),
    }
}

/// In a word: `-` is a reply that the operation never has, a fault is its cause.
fn word(meaning: Result<Answer, ProtocolError>) -> String {
    match meaning {
        Err(ProtocolError::UnexpectedReply) => "-".to_owned(),
        Ok(Answer::Vote(Vote::Granted)) => "granted".to_owned(),
        Ok(Answer::Vote(Vote::Refused)) => "refused".to_owned(),
        Ok(Answer::Vote(Vote::Absent)) => "absent".to_owned(),
        Ok(Answer::Vote(Vote::Fault(Fault {
            phase: Phase::Reply,
            cause,
            ..
        }))) => format!("{cause:?}"),
        Ok(Answer::Fence(number)) => format!("number {}", number.get()),
        Ok(Answer::Held(time)) => format!("held {} ms", time.as_millis()),
        Ok(Answer::WrongForm) => "in another form".to_owned(),
        other => panic!("{other:?}"),
    }
}
