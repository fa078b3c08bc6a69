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
//! key holds. To take the lock in turn, and to release it, is asked as of any lock: [`queue`](crate::protocol::queue).
//!
//! All is one script, [`FENCED`](crate::protocol::script::FENCED), because no command does it. A server that has
//! executed it once on a connection is called by the script's hash from then on, unless it keeps forgetting. A node
//! without scripts, or one that does not let our user run them, cannot hold fenced locks: [`Cause::NoScripts`].
//!
//! ```text
//!    value    FENCE DEADLINE [TOKEN [LABEL]]    milliseconds of the node's clock, the last one included
//! ```

use super::number::{number, positive};
use super::plain::Signature;
use crate::algorithm::fault::Cause;
use crate::algorithm::fence::FencingToken;
use crate::protocol::form::Answer;

/// The answer in the digits of a fence, to an attempt that wants this one at least.
pub(in crate::protocol) fn answer(least: FencingToken, digits: &[u8]) -> Answer {
    match FencingToken::from_digits(digits) {
        // The node's own clock and value agree, and this machine's clock disagrees. If the fence counted, the other
        // nodes would be raised to it.
        Some(fence) if fence.is_ahead_of(least) => Answer::fault(Cause::FenceAhead),
        Some(fence) => Answer::Fence(fence),
        // It is made of what is stored under the key: damage there is no fault of the connection.
        None => Answer::fault(Cause::UnexpectedValue),
    }
}

/// What is stored under the key of a fenced lock. The key outlives the lock, to keep the fence.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FencedValue {
    /// The last fence that the node has given out.
    pub fence: u64,
    /// Until when it is held, in milliseconds of the node's clock.
    pub deadline: u64,
    /// Which client holds it, if one does.
    pub owner: Signature,
}

impl FencedValue {
    /// None for a value that no fenced lock has.
    pub fn parse(value: &[u8]) -> Option<FencedValue> {
        let mut fields = value.splitn(3, |&byte| byte == b' ');
        let (fence, deadline) = (positive(fields.next()?)?, number(fields.next()?)?);
        Some(FencedValue { fence, deadline, owner: Signature::parse_any(fields.next()?)? })
    }

    /// The text, as it is stored.
    pub fn text(&self) -> Vec<u8> {
        [format!("{} {} ", self.fence, self.deadline).into_bytes(), self.owner.text()].concat()
    }

    /// For how many milliseconds it is held after this time of the node's clock: through the last one of its time.
    pub fn left(&self, now: u64) -> u64 {
        if self.owner.is_held() { self.deadline.saturating_add(1).saturating_sub(now) } else { 0 }
    }
}

#[cfg(test)]
mod tests;
