//! The wait for releases of one lock, or of any of several.

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

/// A registered waiter for releases of a lock, or of any of several. Dropping it ends the registration.
pub(crate) struct Listener<'e> {
    pub(super) driver: &'e Driver<Nodes>,
    pub(super) keys: Box<[Key]>,
    pub(super) interrupt: Arc<Interrupt>,
    /// The lock whose release the next attempt follows, even after a delay.
    pub(super) released: Option<usize>,
    pub(super) has_won: bool,
    /// Of a fair lock: the next call of this program, which has a place and will wait.
    pub(super) successor: Option<PlaceId>,
}

impl Listener<'_> {
    /// What ends a wait from outside.
    pub(crate) fn interrupt(&self) -> &Arc<Interrupt> {
        &self.interrupt
    }

    /// Whether the next attempt asks which holder it is refused for, and for how long. One that follows a release does
    /// not: it may well win, and the lock changes hands. If not, the next one asks. Of several locks, one is asked about
    /// by a survey.
    pub(super) fn asks_for_holder(&self) -> Option<&Key> {
        match &*self.keys {
            [key] if self.released.is_none() => Some(key),
            _ => None,
        }
    }

    /// The key that an attempt finds out about: of several, the one that is tried.
    pub(super) fn key_of<'k>(&'k self, tried: &'k [u8]) -> &'k [u8] {
        if let [key] = &*self.keys { key } else { tried }
    }

    /// Waits until then at the latest, and gives what has ended the wait before, and the place of its lock.
    pub(crate) fn wait(&mut self, until: Timestamp) -> Option<(WakeReason, usize)> {
        let reason = self.driver.run(
            |nodes, now, notify| (nodes.sleep(&self.keys, &self.interrupt, now, notify), until),
            |nodes, ticket| nodes.wake(ticket, &self.keys),
        );
        if let Some((WakeReason::Released(_), place)) = reason {
            self.released = Some(place);
        }
        reason
    }

    /// Whether every release by a quorum is certain to be noticed.
    pub(crate) fn is_attentive(&self) -> bool {
        self.driver.enter(|nodes, _, _| self.keys.iter().all(|key| nodes.wait_registry().is_attentive(key)))
    }

    /// After an attempt, which a quorum has refused if it `is_refused`: what the waiter hears.
    pub(crate) fn hearing(&mut self, is_refused: bool) -> Hearing {
        let released = self.released.take();
        self.driver.enter(|nodes, now, _| {
            let registry = nodes.wait_registry();
            Hearing {
                is_rumour: released.is_some_and(|place| registry.followed(&self.keys[place], is_refused, now)),
                may_ignore: self.keys.iter().any(|key| registry.may_ignore(key, now)),
                is_attentive: self.keys.iter().all(|key| registry.is_attentive(key)),
                misses_releases: self.keys.iter().any(|key| registry.misses_releases(key, now)),
            }
        })
    }

    /// The lock has changed hands, and no release was announced.
    pub(crate) fn missed_release(&self) {
        self.driver.enter(|nodes, now, _| {
            self.keys.iter().for_each(|key| nodes.wait_registry().note_missed(key, now));
        });
    }

    /// The place of the call for a fair lock, and whether it is the first: from now on the waiter is woken when it is
    /// its turn.
    pub(crate) fn note_place(&self, id: PlaceId, is_first: bool) {
        self.driver.enter(|nodes, _, _| nodes.wait_registry().set_place(&self.keys[0], (id, is_first)));
    }

    /// Whether a release has named a call of another program while this one waited.
    pub(crate) fn has_heard_of_others(&self) -> bool {
        self.driver.enter(|nodes, _, _| nodes.wait_registry().has_heard_of_others(&self.keys[0]))
    }

    /// The waiter has acquired the lock. If the next call has a place, its releases go on being subscribed to.
    pub(crate) fn won(&mut self, successor: Option<PlaceId>) {
        (self.has_won, self.successor) = (true, successor);
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        self.driver.enter(|nodes, now, _| nodes.unlisten(&self.keys, (self.has_won, self.successor), now));
    }
}
