//! What a node is asked about the key of a fenced lock, and what its reply means (rules, section 6).
//!
//! ```text
//!    the key is             acquire          extend           raise            its reply is
//!    free, or has ended     Fence            Absent           Refused          the fence; :0
//!    ours                   Fence            Granted          Granted          the fence; :1
//!    another token's        Held             Refused          Refused          :-4 - n; :-1
//!    not a fenced lock      UnexpectedValue  UnexpectedValue  UnexpectedValue  :-2
//!    free, its fence ahead  FenceAhead       -                -                :-3
//!    ours, raised too far   -                -                FenceAhead       :-3
//! ```
//!
//! `:-4 - n` reports that the lock is held for n milliseconds more. At `:-2` and `:-3` the node does not touch what the
//! key holds. To take the lock in turn, and to release it, is asked as of any lock: [`queue`](super::queue).
//!
//! All is one script, [`FENCED`](super::script::FENCED), because no command does it. Its replies are some of those
//! about a read-write lock, and are read with them: [`read_write`](super::read_write). A server that has executed it
//! once on a connection is called by the script's hash from then on, unless it keeps forgetting. A node without
//! scripts, or one that does not let our user run them, cannot hold fenced locks: [`Cause::NoScripts`].

use super::dialect::{Answer, Dialect};
use super::error_reply;
use super::error_reply::is_unknown_command;
use super::resp::Reply;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::fence::FencingToken;
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::vote::Vote;
use std::time::Duration;

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
mod tests;
