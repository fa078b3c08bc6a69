//! What a guard says of the lock to the one that passes it on to another thread.

use super::MutexGuard;
use crate::api::client::Client;
use crate::engine::calls::AttemptRecord;
use crate::protocol::lock_key::LockKey;

impl MutexGuard {
    /// Whether a release frees the lock at once: it is held, its lease lasts, and it need not stand for a while yet.
    pub(crate) fn is_freed_by_release(&self) -> bool {
        let is_held = !self.client.is_inherited() && self.held_for.is_some();
        is_held && {
            let now = self.client.engine().lease_now();
            now >= self.stands_until && self.lease().is_valid(now)
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn key(&self) -> &LockKey {
        &self.key
    }

    /// What its release is sent with.
    pub(crate) fn claim(&mut self) -> &mut AttemptRecord {
        &mut self.claim
    }
}
