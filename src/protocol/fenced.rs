//! What a node is asked about the key of a fenced lock, and what its reply means (rules, section 6).
//!
//! ```text
//!    the key is             acquire          extend           raise            release  its reply is
//!    free, or has ended     Fence            Absent           Refused          Refused  the fence; :0
//!    ours                   Fence            Granted          Granted          Granted  the fence; :1, or more
//!    another token's        Held             Refused          Refused          Refused  :-4 - n; :-1
//!    not a fenced lock      UnexpectedValue  UnexpectedValue  UnexpectedValue  Refused  :-2
//!    free, its fence ahead  FenceAhead       -                -                -        :-3
//!    ours, raised too far   -                -                FenceAhead       -        :-3
//! ```
//!
//! `:1` or more counts the subscribers that a release was published to. `:-4 - n` says that the lock is held for n
//! milliseconds more. At `:-2` and `:-3` the node does not touch what stands under the key.
//!
//! All is one script, [`FENCE`](super::script::FENCE), because no command does it. A server that has answered it once
//! on a connection is called by the script's hash from then on, unless it keeps forgetting. A node without scripts, or
//! one that does not let our user run them, cannot hold fenced locks: [`Cause::NoScripts`].

use super::dialect::{Answer, Dialect};
use super::error_reply;
use super::error_reply::is_unknown_command;
use super::operation::Operation;
use super::publish::CHANNEL;
use super::resp::{self, Reply};
use super::script::Script;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::fence::FencingToken;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::vote::Vote;
use std::time::Duration;

/// What stands between the prefix and the resource in the key of a fenced lock. No name of a plain lock begins with it.
pub const FENCED_KEY_PREFIX: &str = "quorumlock-fence:";

/// The name of the resource in what follows the prefix in a lock's key.
pub fn resource(name: &str) -> &str {
    name.strip_prefix(FENCED_KEY_PREFIX).unwrap_or(name)
}

/// The owner token in the value of a fenced lock's key, or in its first bytes: none when it is free. What stands before
/// it changes while the lock stays with one holder.
pub(super) fn token_of(value: &[u8]) -> Option<&[u8]> {
    value.split(|&byte| byte == b' ').nth(2)
}

/// Writes an operation on a fenced lock: by the script's text, or by its hash in [`Dialect::Evalsha`].
pub fn ask(out: &mut Vec<u8>, dialect: Dialect, key: &[u8], token: &OwnerToken, operation: Operation) {
    let [command, script] = Script::Fence.call(dialect);
    let (least, retention) = operation.fence().map_or((0, 0), |fence| (fence.least.get(), fence.retention_millis));
    let [mut kept, mut first, mut second] = [[0; 20]; 3];
    let (kept, least) = (resp::decimal(retention, &mut kept), resp::decimal(least, &mut second));
    let token: &[u8] = &token.value();
    let mut send = |verb: &[u8], more: &[&[u8]]| {
        let mut words = [command, script, b"1", key, verb, token, kept, b"", b""];
        let count = words.len() - 2 + more.len();
        words[count - more.len()..count].copy_from_slice(more);
        resp::encode(out, &words[..count]);
    };
    match operation {
        Operation::Acquire { ttl_millis, .. } => send(b"acquire", &[resp::decimal(ttl_millis, &mut first), least]),
        Operation::Extend { ttl_millis, .. } => send(b"extend", &[resp::decimal(ttl_millis, &mut first)]),
        Operation::Raise(_) => send(b"raise", &[least]),
        // They are written by `fair` and `read_write`.
        Operation::Fair(_) | Operation::ReadWrite(_) => {}
        Operation::Release { hint: None, .. } => send(b"release", &[]),
        Operation::Release { hint: Some(hint), .. } => send(b"release", &[CHANNEL, hint.text(&mut first)]),
    }
}

/// The meaning of a reply to [`ask`] in this dialect.
///
/// # Errors
/// A reply that the script never gives.
pub fn reply(dialect: Dialect, operation: Operation, reply: Reply<'_>) -> Result<Answer, ProtocolError> {
    if let Reply::Error(text) = reply {
        return Ok(refusal(dialect, text, operation.commands()));
    }
    if let Operation::Acquire { fence, .. } = operation {
        return acquire_reply(fence.map_or(FencingToken::MAX, |fence| fence.least), reply);
    }
    Ok(match (operation, reply) {
        // A greater number says how many subscribers the hint reached.
        (_, Reply::Integer(2..)) if operation.publishes() => Answer::Vote(Vote::Granted),
        (_, Reply::Integer(1)) => Answer::Vote(Vote::Granted),
        (Operation::Extend { .. }, Reply::Integer(0)) => Answer::Vote(Vote::Absent),
        (_, Reply::Integer(0 | -1)) => Answer::Vote(Vote::Refused),
        (Operation::Raise(_), Reply::Integer(-3)) => fault(Cause::FenceAhead),
        // Whatever it is, it is not held with our token.
        (Operation::Release { .. }, Reply::Integer(-2)) => Answer::Vote(Vote::Refused),
        (_, Reply::Integer(-2)) => fault(Cause::UnexpectedValue),
        _ => return Err(ProtocolError::UnexpectedReply),
    })
}

/// The meaning of a reply to an attempt that wants this fence at least.
pub(super) fn acquire_reply(least: FencingToken, reply: Reply<'_>) -> Result<Answer, ProtocolError> {
    match reply {
        Reply::Bulk(Some(digits)) => match FencingToken::from_digits(digits) {
            // The node's own clock and value agree, and this machine's clock disagrees. If the fence counted, the other
            // nodes would be raised to it.
            Some(fence) if fence.is_ahead_of(least) => Ok(fault(Cause::FenceAhead)),
            Some(fence) => Ok(Answer::Fence(fence)),
            // It is made of what is stored under the key: damage there is no fault of the connection.
            None => Ok(fault(Cause::UnexpectedValue)),
        },
        // It is held through the last millisecond of its time.
        Reply::Integer(left @ ..=-4) => Ok(Answer::Held(Duration::from_millis(left.unsigned_abs() - 3))),
        Reply::Integer(-3) => Ok(fault(Cause::FenceAhead)),
        Reply::Integer(-2) => Ok(fault(Cause::UnexpectedValue)),
        _ => Err(ProtocolError::UnexpectedReply),
    }
}

/// The meaning of an error reply to a script that a node must run. `commands` is what the user needs for it.
pub(super) fn refusal(dialect: Dialect, text: &[u8], commands: &'static str) -> Answer {
    let by_hash = dialect == Dialect::Evalsha;
    let cause = error_reply::cause(text);
    let is_barred = is_unknown_command(text) || is_no_permission_to_run(text);
    match cause {
        _ if by_hash && (is_barred || cause == Cause::Server("NOSCRIPT")) => Answer::WrongDialect(cause),
        _ if is_barred => fault(Cause::NoScripts),
        _ => Answer::Vote(Vote::Fault(error_reply::fault(text, commands))),
    }
}

pub(super) fn fault(cause: Cause) -> Answer {
    Answer::Vote(Vote::Fault(Fault::new(Phase::Reply, cause)))
}

/// Whether the user may not run scripts at all. What else it may not do, touch the key for one, has another remedy.
fn is_no_permission_to_run(text: &[u8]) -> bool {
    let says = |words: &[u8]| text.windows(words.len()).any(|window| window == words);
    text.starts_with(b"NOPERM") && says(b" run the 'eval")
}

#[cfg(test)]
mod tests {
    use super::super::operation::FenceRequest;
    use super::super::publish::Hint;
    use super::super::script;
    use super::*;
    use crate::algorithm::fence::LEAD_LIMIT;

    const FENCE: Option<FenceRequest> = Some(fence(FencingToken::MAX));
    const ACQUIRE: Operation = Operation::Acquire { ttl_millis: 30_000, fence: FENCE };
    const EXTEND: Operation = Operation::Extend { ttl_millis: 30_000, fence: FENCE };
    const RELEASE: Operation = Operation::Release { hint: None, fence: FENCE };

    const fn fence(least: FencingToken) -> FenceRequest {
        FenceRequest { least, retention_millis: 86_400_000 }
    }

    #[test]
    fn requests_go_out_as_the_script_expects_them() {
        let digits = "ab".repeat(20);
        let sent = |dialect, operation| {
            let mut out = Vec::new();
            ask(&mut out, dialect, b"k", &OwnerToken::from_entropy([0xab; 20]), operation);
            String::from_utf8(out).unwrap().replace("\r\n", " ")
        };
        let hash = script::FENCE_SHA1;
        assert_eq!(
            sent(Dialect::Evalsha, ACQUIRE),
            format!(
                "*9 $7 EVALSHA $40 {hash} $1 1 $1 k $7 acquire $40 {digits} $8 86400000 $5 30000 $16 9007199254740991 "
            )
        );
        assert_eq!(
            sent(Dialect::Evalsha, EXTEND),
            format!("*8 $7 EVALSHA $40 {hash} $1 1 $1 k $6 extend $40 {digits} $8 86400000 $5 30000 ")
        );
        assert_eq!(
            sent(Dialect::Evalsha, Operation::Raise(fence(FencingToken::saturating(7)))),
            format!("*8 $7 EVALSHA $40 {hash} $1 1 $1 k $5 raise $40 {digits} $8 86400000 $1 7 ")
        );
        let (length, text) = (script::FENCE.len(), script::FENCE.replace("\r\n", " "));
        assert_eq!(
            sent(Dialect::Eval, RELEASE),
            format!("*7 $4 EVAL ${length} {text} $1 1 $1 k $7 release $40 {digits} $8 86400000 ")
        );
        assert_eq!(
            sent(
                Dialect::Evalsha,
                Operation::Release { hint: Some(Hint { crowd: 3, has_waited: true }), fence: FENCE }
            ),
            format!("*9 $7 EVALSHA $40 {hash} $1 1 $1 k $7 release $40 {digits} $8 86400000 $11 quorumlock: $2 3w ")
        );
    }

    #[test]
    fn a_reply_means_what_its_operation_makes_of_it() {
        const UNEXPECTED: Result<Answer, ProtocolError> = Err(ProtocolError::UnexpectedReply);
        let vote = |vote| Ok(Answer::Vote(vote));
        let failed = |cause| Ok(Answer::Vote(Vote::Fault(Fault::new(Phase::Reply, cause))));
        let [granted, refused, absent] = [Vote::Granted, Vote::Refused, Vote::Absent].map(vote);
        let [ahead, foreign, no_scripts] = [Cause::FenceAhead, Cause::UnexpectedValue, Cause::NoScripts].map(failed);
        let [denied, full] = [Cause::NoPermission, Cause::OutOfMemory].map(failed);
        let granted_fence = Ok(Answer::Fence(FencingToken::saturating(1_700_000_000_000_000)));
        let held = |millis| Ok(Answer::Held(Duration::from_millis(millis)));
        let all = |meaning| [meaning; 4];
        let eval = b"NOPERM this user has no permissions to run the 'eval' command".as_slice();
        let table: [(Reply<'_>, [Result<Answer, ProtocolError>; 4]); 19] = [
            (Reply::Bulk(Some(b"1700000000000000")), [granted_fence, UNEXPECTED, UNEXPECTED, UNEXPECTED]),
            (Reply::Bulk(Some(b"9007199254740992")), [foreign, UNEXPECTED, UNEXPECTED, UNEXPECTED]),
            (Reply::Bulk(Some(b"1.7e+15")), [foreign, UNEXPECTED, UNEXPECTED, UNEXPECTED]),
            (Reply::Bulk(None), all(UNEXPECTED)),
            (Reply::Integer(1), [UNEXPECTED, granted, granted, granted]),
            (Reply::Integer(0), [UNEXPECTED, absent, refused, refused]),
            (Reply::Integer(-1), [UNEXPECTED, refused, refused, refused]),
            (Reply::Integer(-3), [ahead, UNEXPECTED, ahead, UNEXPECTED]),
            (Reply::Integer(-4), [held(1), UNEXPECTED, UNEXPECTED, UNEXPECTED]),
            (Reply::Integer(i64::MIN), [held(i64::MAX as u64 - 2), UNEXPECTED, UNEXPECTED, UNEXPECTED]),
            (Reply::Integer(-2), [foreign, foreign, foreign, refused]),
            (Reply::Integer(2), all(UNEXPECTED)),
            (Reply::Simple(b"OK"), all(UNEXPECTED)),
            (Reply::Error(b"ERR unknown command 'EVAL', with args beginning with: 'l' "), all(no_scripts)),
            (Reply::Error(b"ERR Could not find scripting engine 'lua'"), all(no_scripts)),
            (Reply::Error(eval), all(no_scripts)),
            (Reply::Error(b"NOPERM No permissions to access a key"), all(denied)),
            (Reply::Error(b"ERR The user executing the script can't run this command or subcommand"), all(denied)),
            (Reply::Error(b"OOM command not allowed when used memory > 'maxmemory'."), all(full)),
        ];
        for (bytes, meanings) in table {
            for (operation, meaning) in [ACQUIRE, EXTEND, Operation::Raise(fence(FencingToken::saturating(1))), RELEASE]
                .into_iter()
                .zip(meanings)
            {
                assert_eq!(reply(Dialect::Eval, operation, bytes), meaning, "{bytes:?} to {operation:?}");
            }
        }
        let fence_after = |floor: u64| {
            let operation =
                Operation::Acquire { ttl_millis: 30_000, fence: Some(fence(FencingToken::saturating(floor))) };
            reply(Dialect::Eval, operation, Reply::Bulk(Some(b"1700000000000000")))
        };
        assert_eq!([1_700_000_000_000_000 - LEAD_LIMIT, 1].map(fence_after), [granted_fence, ahead]);
        for (operation, meaning) in
            [(Operation::Release { hint: Some(Hint::default()), fence: FENCE }, granted), (RELEASE, UNEXPECTED)]
        {
            assert_eq!(reply(Dialect::Eval, operation, Reply::Integer(5)), meaning);
        }
        for (text, cause) in [
            (b"NOSCRIPT No matching script.".as_slice(), Cause::Server("NOSCRIPT")),
            (b"ERR unknown command 'EVALSHA'", Cause::Server("ERR")),
            (eval, Cause::NoPermission),
        ] {
            assert_eq!(reply(Dialect::Evalsha, ACQUIRE, Reply::Error(text)), Ok(Answer::WrongDialect(cause)));
        }
    }
}
