//! What a node is asked about the key of a read-write lock, and what its reply means (rules, section 14).
//!
//! ```text
//!    the key has                  acquire, read    acquire, write   extend           release  its reply is
//!    no entry                     Granted          Granted          Absent           Refused  :1; :0
//!    readers, not us              Granted          Held             Absent, Refused  Refused  :1; :-4 - n; :0, :-1
//!    64 readers, not us           Held             Held             Absent, Refused  Refused  :-4 - n; :0, :-1
//!    a writer, not us             Held             Held             Refused          Refused  :-4 - n; :-1
//!    us, as a reader              Granted          Held             Granted as such  Granted  :1, or more; :-4 - n
//!    us, as the writer            Granted          Granted          Granted          Granted  :1, or more
//!    no read-write lock           UnexpectedValue  UnexpectedValue  UnexpectedValue  Refused  :-2
//!    any, and a writer waits      Held             as above         as above         as above :-4 - n
//! ```
//!
//! An extension that asks for a writer's entry is refused for one that is a reader's: it was sent before the downgrade.
//! `:1` or more counts the subscribers that a release was published to. `:-4 - n` says that the node refuses for n
//! milliseconds more.
//!
//! # Why a writer is alone
//!
//! 1. A client is inside its lease only while a quorum of nodes has an entry of it that has not ended: a node counts an
//!    entry's time from when it runs the command, which is after the client has begun to count, and clocks differ by no
//!    more than the drift that was taken off.
//! 2. Two quorums have a node in common. Let a writer and another client be inside at once. Some node then has granted
//!    both, and it has run one command after the other.
//! 3. If the writer came second, the entry of the other one was there and had not ended: the node refuses. If the
//!    writer came first, its entry was there and had not ended: the node refuses a reader and a writer alike.
//! 4. An entry that is there is changed by commands with its own token alone. An extension acts on an entry that has
//!    not ended, and never on one that is gone: a node that has granted a writer since has no entry of ours. It makes
//!    no entry shorter, so one that arrives late takes nothing away. It makes no reader a writer, so an entry that
//!    others were let in beside stays a reader's.
//! 5. A downgraded writer counts as a reader from when it asks for that. A node that has not done it yet has a writer's
//!    entry, which refuses more.
//! 6. A node that has lost its entries does not vote until the leases that it knew have ended (rule 7.4).
//!
//! `tests/models/shared` searches all states of two readers and two writers on three nodes, and finds a trace against
//! each weaker rule: one time to live for all readers, a node that ignores readers or a writer, an extension of what
//! has ended or of what was downgraded, and votes after a loss.

use super::dialect::{Answer, Dialect};
use super::fenced::{fault, refusal};
use super::operation::{Operation, ReadWriteOperation};
use super::publish::CHANNEL;
use super::resp::{self, Reply};
use super::script::Script;
use crate::algorithm::fault::Cause;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::lock_kind::Access;
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::vote::Vote;
use std::time::Duration;

/// What stands between the prefix and the resource in the key of a read-write lock. No name of a plain lock begins with
/// it.
pub const READ_WRITE_KEY_PREFIX: &str = "quorumlock-rw:";

/// The name of the resource in what follows the prefix in a lock's key.
pub fn resource(name: &str) -> &str {
    name.strip_prefix(READ_WRITE_KEY_PREFIX).unwrap_or(name)
}

/// Writes an operation on a read-write lock: by the script's text, or by its hash in [`Dialect::Evalsha`].
pub fn ask(out: &mut Vec<u8>, dialect: Dialect, key: &[u8], token: &OwnerToken, operation: ReadWriteOperation) {
    let [command, script] = Script::ReadWrite.call(dialect);
    let [mut first, mut second] = [[0; 20]; 2];
    // Labels stay out of the key: they would count against its room.
    let token = &token.digits();
    match operation {
        ReadWriteOperation::Acquire { access, ttl_millis, mark_millis } => {
            let (ttl, mark) = (resp::decimal(ttl_millis, &mut first), resp::decimal(mark_millis, &mut second));
            resp::encode(out, &[command, script, b"1", key, b"acquire", token, word(access), ttl, mark]);
        }
        ReadWriteOperation::Extend { access, ttl_millis } => {
            let ttl = resp::decimal(ttl_millis, &mut first);
            resp::encode(out, &[command, script, b"1", key, b"extend", token, word(access), ttl]);
        }
        ReadWriteOperation::Release { hint: None } => {
            resp::encode(out, &[command, script, b"1", key, b"release", token]);
        }
        ReadWriteOperation::Release { hint: Some(hint) } => {
            let hint = hint.text(&mut first);
            resp::encode(out, &[command, script, b"1", key, b"release", token, CHANNEL, hint]);
        }
    }
}

fn word(access: Access) -> &'static [u8] {
    match access {
        Access::Read => b"r",
        Access::Write => b"w",
    }
}

/// The meaning of a reply to [`ask`] in this dialect.
///
/// # Errors
/// A reply that the script never gives.
pub fn reply(dialect: Dialect, operation: ReadWriteOperation, reply: Reply<'_>) -> Result<Answer, ProtocolError> {
    use ReadWriteOperation::{Acquire, Extend, Release};
    Ok(match (operation, reply) {
        (_, Reply::Error(text)) => refusal(dialect, text, Operation::ReadWrite(operation).commands()),
        (_, Reply::Integer(1)) | (Release { hint: Some(_) }, Reply::Integer(2..)) => Answer::Vote(Vote::Granted),
        // It is refused through the last millisecond.
        (Acquire { .. }, Reply::Integer(left @ ..=-4)) => Answer::Held(Duration::from_millis(left.unsigned_abs() - 3)),
        (Extend { .. }, Reply::Integer(0)) => Answer::Vote(Vote::Absent),
        (Extend { .. }, Reply::Integer(-1)) | (Release { .. }, Reply::Integer(0 | -2)) => Answer::Vote(Vote::Refused),
        (_, Reply::Integer(-2)) => fault(Cause::UnexpectedValue),
        _ => return Err(ProtocolError::UnexpectedReply),
    })
}

#[cfg(test)]
mod tests {
    use super::super::publish::Hint;
    use super::super::script;
    use super::*;
    use crate::algorithm::fault::{Fault, Phase};

    const ACQUIRE: ReadWriteOperation =
        ReadWriteOperation::Acquire { access: Access::Write, ttl_millis: 30_000, mark_millis: 1000 };
    const EXTEND: ReadWriteOperation = ReadWriteOperation::Extend { access: Access::Read, ttl_millis: 30_000 };
    const RELEASE: ReadWriteOperation = ReadWriteOperation::Release { hint: Some(Hint { crowd: 3, has_waited: true }) };
    const UNDO: ReadWriteOperation = ReadWriteOperation::Release { hint: None };

    #[test]
    fn requests_go_out_as_the_script_expects_them() {
        let digits = "ab".repeat(20);
        let sent = |dialect, operation| {
            let mut out = Vec::new();
            ask(&mut out, dialect, b"k", &OwnerToken::from_entropy([0xab; 20]), operation);
            String::from_utf8(out).unwrap().replace("\r\n", " ")
        };
        let hash = script::READ_WRITE_SHA1;
        assert_eq!(
            sent(Dialect::Evalsha, ACQUIRE),
            format!("*9 $7 EVALSHA $40 {hash} $1 1 $1 k $7 acquire $40 {digits} $1 w $5 30000 $4 1000 ")
        );
        assert_eq!(
            sent(Dialect::Evalsha, EXTEND),
            format!("*8 $7 EVALSHA $40 {hash} $1 1 $1 k $6 extend $40 {digits} $1 r $5 30000 ")
        );
        assert_eq!(
            sent(Dialect::Evalsha, RELEASE),
            format!("*8 $7 EVALSHA $40 {hash} $1 1 $1 k $7 release $40 {digits} $11 quorumlock: $2 3w ")
        );
        let (length, text) = (script::READ_WRITE.len(), script::READ_WRITE.replace("\r\n", " "));
        assert_eq!(
            sent(Dialect::Eval, UNDO),
            format!("*6 $4 EVAL ${length} {text} $1 1 $1 k $7 release $40 {digits} ")
        );
    }

    #[test]
    fn a_reply_means_what_its_operation_makes_of_it() {
        const UNEXPECTED: Result<Answer, ProtocolError> = Err(ProtocolError::UnexpectedReply);
        let vote = |vote| Ok(Answer::Vote(vote));
        let failed = |cause| Ok(Answer::Vote(Vote::Fault(Fault::new(Phase::Reply, cause))));
        let [granted, refused, absent] = [Vote::Granted, Vote::Refused, Vote::Absent].map(vote);
        let [foreign, no_scripts] = [Cause::UnexpectedValue, Cause::NoScripts].map(failed);
        let held = Ok(Answer::Held(Duration::from_millis(1)));
        let eval = b"NOPERM this user has no permissions to run the 'eval' command".as_slice();
        let table: [(Reply<'_>, [Result<Answer, ProtocolError>; 4]); 10] = [
            (Reply::Integer(1), [granted; 4]),
            (Reply::Integer(0), [UNEXPECTED, absent, refused, refused]),
            (Reply::Integer(-1), [UNEXPECTED, refused, UNEXPECTED, UNEXPECTED]),
            (Reply::Integer(-2), [foreign, foreign, refused, refused]),
            (Reply::Integer(-3), [UNEXPECTED; 4]),
            (Reply::Integer(-4), [held, UNEXPECTED, UNEXPECTED, UNEXPECTED]),
            (Reply::Integer(5), [UNEXPECTED, UNEXPECTED, granted, UNEXPECTED]),
            (Reply::Bulk(None), [UNEXPECTED; 4]),
            (Reply::Error(eval), [no_scripts; 4]),
            (Reply::Error(b"OOM command not allowed"), [failed(Cause::OutOfMemory); 4]),
        ];
        for (bytes, meanings) in table {
            for (operation, meaning) in [ACQUIRE, EXTEND, RELEASE, UNDO].into_iter().zip(meanings) {
                assert_eq!(reply(Dialect::Eval, operation, bytes), meaning, "{bytes:?} to {operation:?}");
            }
        }
        assert_eq!(
            reply(Dialect::Evalsha, ACQUIRE, Reply::Error(b"NOSCRIPT No matching script.")),
            Ok(Answer::WrongDialect(Cause::Server("NOSCRIPT")))
        );
    }
}
