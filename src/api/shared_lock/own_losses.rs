//! What one guard of a shared lock has called when it is lost.

use super::SharedLock;
use super::losses::Registered;
use crate::engine::watchdog_thread::watched::LossCallback;
use crate::events::error::Result;
use crate::os::fork::ForkEpoch;
use crate::os::sync::{Mutex, lock};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::{Arc, OnceLock};

/// What one guard has registered.
pub(super) struct OwnLosses {
    callbacks: Mutex<Vec<Arc<Registered>>>,
    channel: OnceLock<(Sender<()>, Receiver<()>)>,
    created_in: ForkEpoch,
}

impl OwnLosses {
    pub(super) fn new(created_in: ForkEpoch) -> OwnLosses {
        OwnLosses { callbacks: Mutex::default(), channel: OnceLock::new(), created_in }
    }

    /// Calls back when this lock is lost, if the guard is still there.
    pub(super) fn on_lost(&self, shared: &SharedLock, callback: LossCallback) -> Result<()> {
        shared.held.client().check_process()?;
        let callback = Arc::new(Mutex::new(Some(callback)));
        shared.register(&callback)?;
        lock(&self.callbacks).push(callback);
        Ok(())
    }

    /// A channel that brings one message then.
    pub(super) fn lost(&self, shared: &SharedLock) -> Result<Receiver<()>> {
        shared.held.client().check_process()?;
        if let Some((_, lost)) = self.channel.get() {
            return Ok(lost.clone());
        }
        let (loss, lost) = bounded(1);
        let signal = loss.clone();
        self.on_lost(shared, Box::new(move || _ = signal.try_send(())))?;
        // Of two threads that ask for the first time, one has its channel for itself.
        _ = self.channel.set((loss, lost.clone()));
        Ok(lost)
    }
}

impl Drop for OwnLosses {
    /// What was registered is the parent's: in a child nothing of it is dropped, as nothing of it is called.
    fn drop(&mut self) {
        if self.created_in.is_forked() {
            std::mem::forget(std::mem::take(&mut self.callbacks));
            std::mem::forget(self.channel.take());
        }
    }
}
