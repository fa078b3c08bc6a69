//! The first of this process's queue waits for somebody of another process: for word of his release, for the end of his
//! time, for something to happen in this process, or to be cancelled.
//!
//! Everything that can end the wait is in place before the first look at it, and whoever looks attempts again: so nothing
//! is missed between a lost attempt and the sleep.

use crate::algorithm::acquire::WaitHints;
use crate::algorithm::time::Timestamp;
use crate::api::wait::{InterruptRegistration, Wait};
use crate::engine::calls::{Engine, Listener, RoundResult, WakeReason};
use crate::engine::local_queue::QueueTicket;

/// Somebody who waits.
pub(super) struct ReleaseWaiter<'v> {
    engine: &'v Engine,
    wait: &'v Wait,
    // Dropped first: nobody rings for somebody who has gone.
    _ringing: InterruptRegistration<'v>,
    listener: Listener<'v>,
}

/// What has ended a wait.
pub(super) enum Ended {
    Cancelled,
    /// By word of something, or else in time.
    With(Option<WakeReason>),
}

impl<'v> ReleaseWaiter<'v> {
    /// Begins to listen. A release is heard once the nodes have confirmed that, which ends the first wait.
    pub(super) fn begin(engine: &'v Engine, place: &QueueTicket<'_>, wait: &'v Wait, key: &str) -> ReleaseWaiter<'v> {
        let listener = engine.listen(key);
        place.rings(listener.alarm());
        ReleaseWaiter { engine, wait, _ringing: wait.rings(listener.alarm()), listener }
    }

    pub(super) fn listener(&self) -> &Listener<'v> {
        &self.listener
    }

    /// What the count of an attempt says of the time to come.
    pub(super) fn outlook(&self, count: &RoundResult) -> WaitHints {
        let is_endless = count.endless.len() >= count.tally.quorum();
        WaitHints { free_at: count.free_at, is_attentive: self.listener.is_attentive(), is_endless }
    }

    /// Waits until then at the latest.
    pub(super) fn wait(&mut self, until: Timestamp) -> Ended {
        loop {
            if self.wait.is_cancelled() {
                return Ended::Cancelled;
            }
            let glance = self.engine.now().after(self.wait.glance());
            let word = self.listener.wait(until.min(glance));
            if word.is_some() || glance >= until {
                return if self.wait.is_cancelled() { Ended::Cancelled } else { Ended::With(word) };
            }
        }
    }

    /// What was waited for has been won.
    pub(super) fn won(mut self) {
        self.listener.won();
    }
}
