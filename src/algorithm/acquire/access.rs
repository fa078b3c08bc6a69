//! What the driver of the machine sets and reads beside its steps.

use super::{Acquire, AcquireState, Verdict};
use crate::algorithm::early_end::EarlyEnd;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Outcome;
use std::time::Duration;

/// In less time, no node is expected to answer: it is the shortest node timeout that a client may
/// have.
const SHORTEST_ATTEMPT: Duration = Duration::from_millis(1);

impl Acquire {
    /// Whether the present or the last wait goes by messages.
    pub fn is_attentive(&self) -> bool {
        self.bounds.is_attentive
    }

    /// Another call has failed before this one begins, and nothing has answered since.
    pub fn was_unavailable(&mut self) {
        self.has_failed = true;
    }

    /// What a lost attempt that began at `t0` comes to. One that the caller's limit cut short finds
    /// out nothing: what was known before remains, that the lock is held or why nodes failed. If
    /// nothing was known, a call whose last attempt had hardly begun has timed out.
    pub(super) fn verdict_on_loss(
        &mut self,
        outcome: Outcome,
        t0: Timestamp,
        now: Timestamp,
    ) -> Verdict {
        self.is_cut_short = false;
        match outcome {
            Outcome::Won => Verdict::TooLate,
            Outcome::Held => {
                self.has_failed = false;
                Verdict::Held
            }
            Outcome::Pending | Outcome::Unavailable => {
                let time = self.time_until_limit(t0);
                self.is_cut_short = time < self.budget && now.since(t0) >= time;
                // With so little time, no answer was to be expected.
                let has_hardly_begun = time < SHORTEST_ATTEMPT;
                if self.is_cut_short && (self.held || !self.has_failed && has_hardly_begun) {
                    return Verdict::Held;
                }
                self.has_failed |= !self.is_cut_short;
                Verdict::Unavailable
            }
        }
    }

    /// How long an attempt that began at `t0` has until the caller's limit, if that cuts it short.
    fn time_until_limit(&self, t0: Timestamp) -> Duration {
        match self.limit() {
            limit if self.started < limit => limit.since(t0),
            // A call whose limit has passed already still makes one whole attempt.
            _ => Duration::MAX,
        }
    }

    /// Whether the attempt just counted was lost only because the caller's limit came.
    pub fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }

    /// Whether the last attempt that had its full time found the lock held.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Whether the attempt just counted was lost.
    pub fn is_lost(&self) -> bool {
        !matches!(
            self.state,
            AcquireState::Raising { .. } | AcquireState::Done(Verdict::Acquired(_))
        )
    }

    /// What may end the wait before its time.
    pub fn early_end(&mut self) -> &mut EarlyEnd {
        &mut self.early_end
    }

    /// How many attempts were made.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }
}
