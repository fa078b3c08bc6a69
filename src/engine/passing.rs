//! Locks that pass from thread to thread of this client while other programs wait for them.

use super::calls::Engine;
use crate::algorithm::contention::Handover;
use crate::protocol::lock_key::LockKey;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Engine {
    /// How a lock goes on that a thread of this client releases while another one wants it.
    pub(crate) fn hand_over(&self, key: &LockKey) -> Handover {
        if !self.is_crowded.load(Ordering::Relaxed) {
            return Handover::Open;
        }
        self.driver.enter(|nodes, now, _| nodes.wait_registry().hand_over(key.as_bytes(), now))
    }

    /// Other programs have these locks.
    pub(crate) fn note_taken<'k>(&self, keys: impl Iterator<Item = &'k Arc<str>>) {
        if self.is_crowded.load(Ordering::Relaxed) {
            self.driver.enter(|nodes, _, _| keys.for_each(|key| nodes.wait_registry().note_taken(key.as_bytes())));
        }
    }

    /// Announces a release that was to be passed on, and that no thread of this client has taken.
    pub(crate) fn announce(&self, key: &str) {
        self.driver.enter(|nodes, now, _| nodes.announce(key.as_bytes(), now));
    }
}
