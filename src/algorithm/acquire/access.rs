//! What the driver of the machine sets and reads beside its steps.

use super::{Acquire, AcquireState, Verdict};
use crate::algorithm::early_end::EarlyEnd;
use crate::algorithm::place::PlaceKeeper;
use crate::algorithm::time::Timestamp;
use std::time::Duration;

impl Acquire {
    /// Lets the call be one for a fair lock, with this place. Each attempt asks with what the keeper
    /// [says](PlaceKeeper::request). Before the attempt is counted, the keeper takes what the nodes have
    /// [answered](PlaceKeeper::answered).
    pub fn keep_place(&mut self, keeper: PlaceKeeper) {
        self.keeper = Some(keeper);
    }

    /// Begins with a wait, until then at the latest: the nodes have the call's place already, and others are in front.
    pub fn await_turn(&mut self, until: Timestamp, now: Timestamp) {
        let until = until.min(now.after(self.config.wait_limit.longest_sleep(now)));
        if until > now {
            self.held = true;
            self.fallback = until;
            self.state = AcquireState::Waiting { until, last: Verdict::Held };
        }
    }

    /// The place in the queue of a fair lock.
    pub fn keeper(&mut self) -> Option<&mut PlaceKeeper> {
        self.keeper.as_mut()
    }

    /// How long to sleep after a lost attempt, if nothing else shortens it.
    pub(super) fn delay(&mut self, longest: Duration, now: Timestamp, random: u64) -> Duration {
        match &mut self.keeper {
            Some(keeper) => keeper.ask_again_at(&mut self.config.backoff, now, random).since(now),
            None => self.listening.delay(&mut self.config.backoff, longest, random),
        }
    }

    /// Whether the last attempt that had its full time found the lock held.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Whether the attempt just counted was lost.
    pub fn is_lost(&self) -> bool {
        matches!(self.state, AcquireState::Lost { .. })
    }

    /// Whether the lock just counted as lost has changed hands, and no release was announced.
    pub fn has_missed_release(&self) -> bool {
        self.listening.has_missed()
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
