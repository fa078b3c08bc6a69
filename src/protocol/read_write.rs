//! What a node is asked about the key of a read-write lock, and what its reply means (rules, section 14).
//!
//! ```text
//!    the key has          acquire, read    acquire, write   extend           raise       release  its reply is
//!    no entry             Granted          Granted          Absent           Refused     Refused  :1; :0
//!    readers, not us      Granted          Held             Absent, Refused  Refused     Refused  :1; :-4 - n; :0, :-1
//!    64 readers, not us   Held             Held             Absent, Refused  Refused     Refused  :-4 - n; :0, :-1
//!    a writer, not us     Held             Held             Refused          Refused     Refused  :-4 - n; :-1; :0
//!    us, as a reader      Granted          Held             Granted as such  Refused     Granted  :1, or more; :-1
//!    us, as the writer    Granted          Granted          Granted          Granted     Granted  :1, or more
//!    no read-write lock   UnexpectedValue  UnexpectedValue  UnexpectedValue  as before   Refused  :-2
//!    a number ahead       as above         FenceAhead       as above         FenceAhead  as above :-3
//!    a writer that waits  Held             as above         as above         as above    as above :-4 - n
//! ```
//!
//! A writer that asks for a number is answered that, in place of `:1`; one that does not is never answered `:-3`. An
//! extension that asks for a writer's entry is refused for one that is a reader's: it was sent before the downgrade. A
//! raise is such an extension, by no time and to a number. `:1` or more counts the subscribers that a release was
//! published to. `:-4 - n` says that the node refuses for n milliseconds more.
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
//!
//! # Why the numbers of writers grow
//!
//! As those of fenced locks, by the same exchange and the same proof: [`fence`](crate::algorithm::fence). That asks for
//! two things of a node.
//!
//! 1. Its number never falls while the key lasts: readers, writers without a number, releases and downgrades write it
//!    as it stands. What is not kept any more, or was lost, the floor makes up for.
//! 2. While it has a writer's entry of ours, no other client changes the number. A number is given out together with an
//!    entry, which no node grants beside ours. A raise asks for its own writer's entry. So before a node gives a number
//!    to the next writer, our entry has gone, or is a reader's that will have gone by then: from there on no raise of
//!    ours is run. Readers in between change nothing in that.

use super::dialect::{Answer, Dialect};
use super::fenced::{acquire_reply, fault, refusal};
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
    let [mut first, mut second, mut third, mut fourth] = [[0; 20]; 4];
    // Labels stay out of the key: they would count against its room.
    let token = &token.digits();
    let mut send = |verb: &[u8], more: &[&[u8]]| {
        let mut words = [&[][..]; 11];
        let count = 6 + more.len();
        words[..6].copy_from_slice(&[command, script, b"1", key, verb, token]);
        words[6..count].copy_from_slice(more);
        resp::encode(out, &words[..count]);
    };
    let (least, retention) = operation.fence().map_or((0, 0), |fence| (fence.least.get(), fence.retention_millis));
    let (least, retention) = (resp::decimal(least, &mut first), resp::decimal(retention, &mut second));
    match operation {
        ReadWriteOperation::Acquire { access, ttl_millis, mark_millis, fence } => {
            let (ttl, mark) = (resp::decimal(ttl_millis, &mut third), resp::decimal(mark_millis, &mut fourth));
            let count = if fence.is_some() { 5 } else { 3 };
            send(b"acquire", &[word(access), ttl, mark, retention, least][..count]);
        }
        ReadWriteOperation::Extend { access, ttl_millis, fence } => {
            let (ttl, count) = (resp::decimal(ttl_millis, &mut third), if fence.is_some() { 4 } else { 2 });
            send(b"extend", &[word(access), ttl, b"0", retention][..count]);
        }
        // An extension that adds no time.
        ReadWriteOperation::Raise(_) => send(b"extend", &[word(Access::Write), b"0", b"0", retention, least]),
        ReadWriteOperation::Release { hint: None } => send(b"release", &[]),
        ReadWriteOperation::Release { hint: Some(hint) } => send(b"release", &[CHANNEL, hint.text(&mut third)]),
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
    use ReadWriteOperation::{Acquire, Extend, Raise, Release};
    if let (Acquire { fence: Some(fence), .. }, Reply::Bulk(_) | Reply::Integer(_)) = (operation, reply) {
        return acquire_reply(fence.least, reply);
    }
    Ok(match (operation, reply) {
        (_, Reply::Error(text)) => refusal(dialect, text, Operation::ReadWrite(operation).commands()),
        (_, Reply::Integer(1)) | (Release { hint: Some(_) }, Reply::Integer(2..)) => Answer::Vote(Vote::Granted),
        // It is refused through the last millisecond.
        (Acquire { .. }, Reply::Integer(left @ ..=-4)) => Answer::Held(Duration::from_millis(left.unsigned_abs() - 3)),
        (Extend { .. }, Reply::Integer(0)) => Answer::Vote(Vote::Absent),
        (Extend { .. }, Reply::Integer(-1))
        | (Raise(_), Reply::Integer(0 | -1))
        | (Release { .. }, Reply::Integer(0 | -2)) => Answer::Vote(Vote::Refused),
        (Raise(_), Reply::Integer(-3)) => fault(Cause::FenceAhead),
        (_, Reply::Integer(-2)) => fault(Cause::UnexpectedValue),
        _ => return Err(ProtocolError::UnexpectedReply),
    })
}

#[cfg(test)]
mod tests {
    use super::super::operation::FenceRequest;
    use super::super::publish::Hint;
    use super::super::script;
    use super::*;
    use crate::algorithm::fault::{Fault, Phase};
    use crate::algorithm::fence::{FencingToken, LEAD_LIMIT};

    const ACQUIRE: ReadWriteOperation = acquire(None);
    const FENCED: ReadWriteOperation = acquire(Some(FENCE));
    const EXTEND: ReadWriteOperation =
        ReadWriteOperation::Extend { access: Access::Read, ttl_millis: 30_000, fence: None };
    const EXTEND_FENCED: ReadWriteOperation =
        ReadWriteOperation::Extend { access: Access::Write, ttl_millis: 30_000, fence: Some(FENCE) };
    const RAISE: ReadWriteOperation = ReadWriteOperation::Raise(FENCE);
    const RELEASE: ReadWriteOperation = ReadWriteOperation::Release { hint: Some(Hint { crowd: 3, has_waited: true }) };
    const UNDO: ReadWriteOperation = ReadWriteOperation::Release { hint: None };
    const FENCE: FenceRequest = FenceRequest { least: FencingToken::MAX, retention_millis: 86_400_000 };

    const fn acquire(fence: Option<FenceRequest>) -> ReadWriteOperation {
        ReadWriteOperation::Acquire { access: Access::Write, ttl_millis: 30_000, mark_millis: 1000, fence }
    }

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
        let number = "$8 86400000 $16 9007199254740991";
        assert_eq!(
            sent(Dialect::Evalsha, FENCED),
            format!("*11 $7 EVALSHA $40 {hash} $1 1 $1 k $7 acquire $40 {digits} $1 w $5 30000 $4 1000 {number} ")
        );
        assert_eq!(
            sent(Dialect::Evalsha, EXTEND_FENCED),
            format!("*10 $7 EVALSHA $40 {hash} $1 1 $1 k $6 extend $40 {digits} $1 w $5 30000 $1 0 $8 86400000 ")
        );
        assert_eq!(
            sent(Dialect::Evalsha, RAISE),
            format!("*11 $7 EVALSHA $40 {hash} $1 1 $1 k $6 extend $40 {digits} $1 w $1 0 $1 0 {number} ")
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
        let (held, ahead) = (Ok(Answer::Held(Duration::from_millis(1))), failed(Cause::FenceAhead));
        let number = Ok(Answer::Fence(FencingToken::saturating(1_700_000_000_000_000)));
        let eval = b"NOPERM this user has no permissions to run the 'eval' command".as_slice();
        let all = |meaning| [meaning; 6];
        let table: [(Reply<'_>, [Result<Answer, ProtocolError>; 6]); 12] = [
            (Reply::Integer(1), [granted, UNEXPECTED, granted, granted, granted, granted]),
            (Reply::Integer(0), [UNEXPECTED, UNEXPECTED, absent, refused, refused, refused]),
            (Reply::Integer(-1), [UNEXPECTED, UNEXPECTED, refused, refused, UNEXPECTED, UNEXPECTED]),
            (Reply::Integer(-2), [foreign, foreign, foreign, foreign, refused, refused]),
            (Reply::Integer(-3), [UNEXPECTED, ahead, UNEXPECTED, ahead, UNEXPECTED, UNEXPECTED]),
            (Reply::Integer(-4), [held, held, UNEXPECTED, UNEXPECTED, UNEXPECTED, UNEXPECTED]),
            (Reply::Integer(5), [UNEXPECTED, UNEXPECTED, UNEXPECTED, UNEXPECTED, granted, UNEXPECTED]),
            (Reply::Bulk(None), all(UNEXPECTED)),
            (
                Reply::Bulk(Some(b"1700000000000000")),
                [UNEXPECTED, number, UNEXPECTED, UNEXPECTED, UNEXPECTED, UNEXPECTED],
            ),
            (
                Reply::Bulk(Some(b"9007199254740992")),
                [UNEXPECTED, foreign, UNEXPECTED, UNEXPECTED, UNEXPECTED, UNEXPECTED],
            ),
            (Reply::Error(eval), all(no_scripts)),
            (Reply::Error(b"OOM command not allowed"), all(failed(Cause::OutOfMemory))),
        ];
        for (bytes, meanings) in table {
            for (operation, meaning) in [ACQUIRE, FENCED, EXTEND, RAISE, RELEASE, UNDO].into_iter().zip(meanings) {
                assert_eq!(reply(Dialect::Eval, operation, bytes), meaning, "{bytes:?} to {operation:?}");
            }
        }
        let after = |floor: u64| {
            let fence = FenceRequest { least: FencingToken::saturating(floor), ..FENCE };
            reply(Dialect::Eval, acquire(Some(fence)), Reply::Bulk(Some(b"1700000000000000")))
        };
        assert_eq!([1_700_000_000_000_000 - LEAD_LIMIT, 1].map(after), [number, ahead]);
        assert_eq!(
            reply(Dialect::Evalsha, ACQUIRE, Reply::Error(b"NOSCRIPT No matching script.")),
            Ok(Answer::WrongDialect(Cause::Server("NOSCRIPT")))
        );
    }
}
