//! What one guard of a shared lock has called when it is lost.

use super::SharedGuard;
use super::losses::{LossTable, Registered};
use crate::engine::watchdog_thread::watched::LossCallback;
use crate::events::error::Result;
use crate::os::fork::ForkEpoch;
use crate::os::sync::{Mutex, lock};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::{Arc, OnceLock};

/// What one guard has registered.
pub(crate) struct OwnLosses {
    callbacks: Mutex<Vec<Arc<Registered>>>,
    channel: OnceLock<(Sender<()>, Receiver<()>)>,
    created_in: ForkEpoch,
}

impl SharedGuard {
    /// Has a guard's callback called when the lock is lost.
    fn note_loss_callback(&self, callback: &Arc<Registered>) -> Result<()> {
        if self.losses.get().is_none() {
            let table = Arc::new(LossTable::new());
            let all = Arc::clone(&table);
            self.alone()?.on_lost(move || all.run_all())?;
            // Of a table that another thread has set meanwhile, nothing is called twice.
            self.losses.get_or_init(|| table);
        }
        self.losses.get().into_iter().for_each(|table| table.add(callback));
        Ok(())
    }
}

impl OwnLosses {
    pub(crate) fn of(shared: &SharedGuard) -> OwnLosses {
        let created_in = shared.guard.client.created_in();
        OwnLosses { callbacks: Mutex::default(), channel: OnceLock::new(), created_in }
    }

    /// Calls back when this lock is lost, if the guard is still there.
    pub(crate) fn on_lost(&self, shared: &SharedGuard, callback: LossCallback) -> Result<()> {
        shared.guard.client.check_process()?;
        let callback = Arc::new(Mutex::new(Some(callback)));
        shared.note_loss_callback(&callback)?;
        lock(&self.callbacks).push(callback);
        Ok(())
    }

    /// A channel that brings one message then.
    pub(crate) fn lost(&self, shared: &SharedGuard) -> Result<Receiver<()>> {
        shared.guard.client.check_process()?;
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
