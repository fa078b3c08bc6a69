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
//! All is one script, [`FENCED`](super::script::FENCED), because no command does it. A server that has
//! executed it once on a connection is called by the script's hash from then on, unless it keeps forgetting. A node
//! without scripts, or one that does not let our user run them, cannot hold fenced locks: [`Cause::NoScripts`].

use super::form::Answer;
use crate::algorithm::fault::Cause;
use crate::algorithm::fence::FencingToken;

/// The answer in the digits of a fence, to an attempt that wants this one at least.
pub(super) fn answer(least: FencingToken, digits: &[u8]) -> Answer {
    match FencingToken::from_digits(digits) {
        // The node's own clock and value agree, and this machine's clock disagrees. If the fence counted, the other
        // nodes would be raised to it.
        Some(fence) if fence.is_ahead_of(least) => Answer::fault(Cause::FenceAhead),
        Some(fence) => Answer::Fence(fence),
        // It is made of what is stored under the key: damage there is no fault of the connection.
        None => Answer::fault(Cause::UnexpectedValue),
    }
}

#[cfg(test)]
mod tests;
