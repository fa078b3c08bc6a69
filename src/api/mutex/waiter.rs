//! The wait of the queue's head for a lock that another program holds, or for any of several.
//!
//! The wait ends with a message about a release, at the given time, by an interrupt from this process, or when it is
//! cancelled. All sources are registered before the wait begins, and an attempt follows each registration. So no
//! release is missed between a lost attempt and the sleep.

use crate::algorithm::acquire::WaitBounds;
use crate::algorithm::place::PlaceId;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Outcome;
use crate::api::wait::{InterruptRegistration, Wait};
use crate::engine::calls::{Engine, RoundResult};
use crate::engine::listener::{Hearing, Listener};
use crate::engine::local_queue::QueueTicket;
use crate::engine::wait_registry::WakeReason;
use std::sync::Arc;

/// A registered wait. Dropping it ends the subscription.
pub(super) struct ReleaseWaiter<'w> {
    engine: &'w Engine,
    wait: &'w Wait,
    // Dropped before the listener: a cancellation does not interrupt a wait that has gone.
    registration: InterruptRegistration<'w>,
    listener: Listener<'w>,
}

/// What has ended a wait.
pub(super) enum WaitEnd {
    Cancelled,
    TimedOut,
    /// And the place of the lock that was released, if one was.
    Woken(WakeReason, usize),
}

impl<'w> ReleaseWaiter<'w> {
    /// Begins to listen. The confirmation by the nodes ends the first wait, if the waiter `subscribes`.
    pub(super) fn begin(
        engine: &'w Engine,
        ticket: &QueueTicket<'_>,
        wait: &'w Wait,
        (keys, subscribes, place): (&[Arc<str>], bool, Option<PlaceId>),
    ) -> ReleaseWaiter<'w> {
        let listener = engine.listen(keys, subscribes);
        if let Some(place) = place {
            listener.note_place(place, true);
        }
        ticket.notify_by_interrupt(listener.interrupt());
        let registration = wait.register(listener.interrupt(), &engine.channel_watch);
        ReleaseWaiter { engine, wait, registration, listener }
    }

    pub(super) fn listener(&self) -> &Listener<'w> {
        &self.listener
    }

    /// What the result of an attempt says about the next wait. Nothing, if that will be for another key of a set.
    pub(super) fn bounds(&mut self, result: &RoundResult, is_for_this_key: bool) -> WaitBounds {
        let is_endless = result.endless.len() >= result.tally.quorum();
        // A node that the holder does not have grants its key, and confirms nothing.
        let is_refused = result.tally.acquisition() == Outcome::Held && is_for_this_key;
        let Hearing { is_attentive, misses_releases, is_rumour, may_ignore } = self.listener.hearing(is_refused);
        let &RoundResult { free_at, holder, .. } = result;
        if !is_for_this_key {
            return WaitBounds::NONE;
        }
        WaitBounds { free_at, is_attentive, is_endless, holder, misses_releases, is_rumour, may_ignore }
    }

    /// Waits until then at the latest.
    pub(super) fn wait(&mut self, until: Timestamp) -> WaitEnd {
        loop {
            let longest = self.registration.before_sleep();
            if self.wait.is_cancelled() {
                return WaitEnd::Cancelled;
            }
            let next_check = self.engine.now().after(longest);
            let reason = self.listener.wait(until.min(next_check));
            if reason.is_some() || next_check >= until {
                return match reason {
                    _ if self.wait.is_cancelled() => WaitEnd::Cancelled,
                    Some((reason, place)) => WaitEnd::Woken(reason, place),
                    None => WaitEnd::TimedOut,
                };
            }
        }
    }

    /// The lock was acquired. `successor`: the next call, which has a place and will wait.
    pub(super) fn won(mut self, successor: Option<PlaceId>) {
        self.listener.won(successor);
    }
}
