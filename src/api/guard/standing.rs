//! A lock that stands for some time at least, however early it is released.

use super::MutexGuard;
use crate::algorithm::node::NodeSet;
use crate::algorithm::time::LeaseTime;
use crate::engine::calls::{AttemptRecord, Release, ReleaseScope};
use std::num::NonZeroU64;
use std::time::Duration;

impl MutexGuard {
    /// Lets the lock stand for at least this long from when it was taken.
    pub(crate) fn standing_at_least(mut self, time: Duration) -> MutexGuard {
        self.stands_until = self.claim.t0.lease.after(time);
        self
    }

    /// The release of the lock at this time, which these nodes may have.
    pub(super) fn release_at(&self, now: LeaseTime, reached: NodeSet) -> Release {
        let left = self.stands_until.since(now);
        // A node counts whole milliseconds, from when it runs the command.
        let millis = left.as_nanos().div_ceil(1_000_000);
        let stands_for = u64::try_from(millis).ok().and_then(NonZeroU64::new);
        let attempt = AttemptRecord { reached, ..self.claim.clone() };
        let (scope, key_lasts) =
            (ReleaseScope::Everywhere { stands_for }, Duration::from_millis(self.held.get().longest.get()));
        Release { key: self.key().clone(), attempt, scope, key_lasts }
    }
}
