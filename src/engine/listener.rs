//! The wait for releases of one lock.

use super::driver::Driver;
use super::interrupt::Interrupt;
use super::nodes::Nodes;
use super::wait_registry::WakeReason;
use crate::algorithm::place::PlaceId;
use crate::algorithm::time::Timestamp;
use crate::protocol::subscription::Key;
use std::sync::Arc;

/// What a waiter hears of releases.
pub(crate) struct Hearing {
    /// Whether a release of the lock by a quorum is certain to be noticed.
    pub(crate) is_attentive: bool,
    /// Whether releases were not announced lately.
    pub(crate) misses_releases: bool,
    /// Whether the last attempt followed what one node had announced in vain again and again.
    pub(crate) is_rumour: bool,
    /// Whether a release may be ignored, for a while, as what a single node announces.
    pub(crate) may_ignore: bool,
}

/// A registered waiter for releases of a lock. Dropping it ends the registration.
pub(crate) struct Listener<'e> {
    pub(super) driver: &'e Driver<Nodes>,
    pub(super) key: Key,
    pub(super) interrupt: Arc<Interrupt>,
    /// Whether the next attempt asks which holder it is refused for, and for how long. One that follows a release, even
    /// after a delay, does not: it may well win, and the lock changes hands. If not, the next one asks.
    pub(super) asks_for_holder: bool,
    pub(super) has_won: bool,
}

impl Listener<'_> {
    /// What ends a wait from outside.
    pub(crate) fn interrupt(&self) -> &Arc<Interrupt> {
        &self.interrupt
    }

    /// Waits until then at the latest, and gives what has ended the wait before.
    pub(crate) fn wait(&mut self, until: Timestamp) -> Option<WakeReason> {
        let reason = self.driver.run(
            |nodes, now, notify| (nodes.sleep(&self.key, &self.interrupt, now, notify), until),
            |nodes, ticket| nodes.wake(ticket, &self.key),
        );
        self.asks_for_holder &= !matches!(reason, Some(WakeReason::Released(_)));
        reason
    }

    /// After an attempt, which a quorum has refused if it `is_refused`: what the waiter hears.
    pub(crate) fn hearing(&mut self, is_refused: bool) -> Hearing {
        let has_followed = !std::mem::replace(&mut self.asks_for_holder, true);
        self.driver.enter(|nodes, now, _| {
            let registry = nodes.wait_registry();
            Hearing {
                is_rumour: has_followed && registry.followed(&self.key, is_refused, now),
                may_ignore: registry.may_ignore(&self.key, now),
                is_attentive: registry.is_attentive(&self.key),
                misses_releases: registry.misses_releases(&self.key, now),
            }
        })
    }

    /// The lock has changed hands, and no release was announced.
    pub(crate) fn missed_release(&self) {
        self.driver.enter(|nodes, now, _| nodes.wait_registry().note_missed(&self.key, now));
    }

    /// The place of the call for a fair lock, and whether it is the first: from now on the waiter is woken when it is
    /// its turn.
    pub(crate) fn note_place(&self, id: PlaceId, is_first: bool) {
        self.driver.enter(|nodes, _, _| nodes.wait_registry().set_place(&self.key, (id, is_first)));
    }

    /// The waiter has acquired the lock.
    pub(crate) fn won(&mut self) {
        self.has_won = true;
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        self.driver.enter(|nodes, now, _| nodes.unlisten(&self.key, self.has_won, now));
    }
}
