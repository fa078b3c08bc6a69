//! What the guards of a shared lock have called when it is lost: each guard its own, until it goes.
//!
//! The lock itself has one callback, and a table of those of its guards. They belong to the guards:
//! nothing is called for a guard that has gone, and nothing of it is left, however long others keep
//! the lock.

use crate::engine::watchdog_thread::watched::{LossCallback, call_on_loss};
use crate::os::sync::{Mutex, lock};
use std::sync::{Arc, Weak};

/// One callback of a guard, until it was called.
pub(in crate::api) type Registered = Mutex<Option<LossCallback>>;

/// The callbacks of all guards of a lock. None: the lock is lost, and they were called.
pub(in crate::api) struct LossTable(pub(super) Mutex<Option<Vec<Weak<Registered>>>>);

impl LossTable {
    /// Adds a callback. It is called at once if the lock is lost.
    pub(in crate::api) fn add(&self, callback: &Arc<Registered>) {
        if let Some(waiting) = &mut *lock(&self.0) {
            if waiting.len() == waiting.capacity() {
                waiting.retain(|callback| callback.strong_count() > 0);
                // Twice as many as are left, so that an addition looks at two on average.
                waiting.reserve(waiting.len() + 1);
            }
            return waiting.push(Arc::downgrade(callback));
        }
        run(callback);
    }

    pub(in crate::api) fn run_all(&self) {
        let waiting = lock(&self.0).take();
        waiting
            .into_iter()
            .flatten()
            .filter_map(|callback| callback.upgrade())
            .for_each(|callback| run(&callback));
    }
}

/// Calls it, once, with no mutex held.
fn run(callback: &Registered) {
    let callback = lock(callback).take();
    callback.into_iter().for_each(call_on_loss);
}
