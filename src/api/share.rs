//! What one guard has of a shared lock, and what it has called when that is lost.

use crate::api::lease::DetachedLease;
use crate::api::shared_lock::SharedLock;
use crate::api::shared_lock::losses::Registered;
use crate::engine::watchdog_thread::watched::LossCallback;
use crate::events::error::{Result, config_error};
use crate::events::release::ReleaseOutcome;
use crate::events::spans::{HoldOutcome, HoldSpan};
use crate::os::fork::ForkEpoch;
use crate::os::sync::{Mutex, lock};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::{Arc, OnceLock, Weak};

/// What one guard has of a shared lock.
pub(crate) struct Share {
    /// The span of a reader. It is dropped first, because it looks at the lock.
    shown: ShownShare,
    pub(crate) lock: Arc<SharedLock>,
    /// What this guard has called when the lock is lost.
    losses: OnceLock<Box<OwnLosses>>,
}

/// The span of a share.
struct ShownShare {
    span: HoldSpan,
    lock: Weak<SharedLock>,
}

impl ShownShare {
    /// Ends the span if the lock is lost. Asks the lock once, while the share exists: later that
    /// would keep the lock from a share that ends last.
    fn end_if_lost(&mut self) {
        let lock = std::mem::take(&mut self.lock);
        self.span.end_if(|| lock.upgrade()?.held.loss());
    }
}

impl Drop for ShownShare {
    fn drop(&mut self) {
        self.end_if_lost();
    }
}

impl Share {
    pub(crate) fn of(lock: Arc<SharedLock>) -> Share {
        Share {
            shown: ShownShare {
                span: HoldSpan::NONE,
                lock: Weak::new(),
            },
            lock,
            losses: OnceLock::new(),
        }
    }

    /// The hold of this guard is shown by this span, as long as the guard exists and the lock is
    /// not lost.
    pub(crate) fn shown_by(mut self, span: HoldSpan) -> Share {
        let lock = Arc::downgrade(&self.lock);
        self.shown = ShownShare { span, lock };
        self.shown.span.end_on_loss(|callback| {
            if self.lock.held.is_watched() {
                _ = self.on_lost(callback);
            }
        });
        self
    }

    /// A channel that receives one message when the lock is lost, while this guard exists.
    pub(crate) fn lost(&self) -> Result<Receiver<()>> {
        self.losses().lost(&self.lock)
    }

    /// Calls `callback` when the lock is lost, if this guard still exists.
    pub(crate) fn on_lost(&self, callback: LossCallback) -> Result<()> {
        self.losses().on_lost(&self.lock, callback)
    }

    fn losses(&self) -> &OwnLosses {
        self.losses.get_or_init(|| {
            Box::new(OwnLosses {
                callbacks: Mutex::default(),
                channel: OnceLock::new(),
                created_in: self.lock.held.client.created_in,
            })
        })
    }

    /// Ends this share, and releases the lock if it is the last.
    pub(crate) fn unlock(mut self) -> Result<ReleaseOutcome> {
        self.lock.held.client.check_process()?;
        self.shown.end_if_lost();
        // Another thread may just be taking or ending a share.
        let others = Arc::strong_count(&self.lock).saturating_sub(1);
        let outcome = match Arc::into_inner(self.lock) {
            Some(lock) => lock.held.unlock(|| ()),
            None => Ok(ReleaseOutcome::StillHeld(others.max(1))),
        };
        self.shown.span.end(match outcome {
            Ok(ReleaseOutcome::Expired) => HoldOutcome::Expired,
            Ok(ReleaseOutcome::Released) => HoldOutcome::Released,
            Ok(ReleaseOutcome::StillHeld(_)) => HoldOutcome::StillHeld,
            Err(_) => HoldOutcome::Unconfirmed,
        });
        outcome
    }

    /// Ends the guard and keeps the lock, if no other guard shares it.
    pub(crate) fn detach(mut self) -> Result<DetachedLease> {
        self.lock.held.client.check_process()?;
        self.shown.end_if_lost();
        let Some(lock) = Arc::into_inner(self.lock) else {
            let message = "other guards of this client share the lock: not detached";
            return Err(config_error(message));
        };
        let lease = lock.held.detach()?;
        self.shown.span.end(HoldOutcome::Detached);
        Ok(lease)
    }

    /// Ends the share of a call that does not return it, and that delivers queued events itself.
    pub(crate) fn give_back(mut self) {
        self.shown.end_if_lost();
        if let Some(lock) = Arc::into_inner(self.lock) {
            lock.held.post_release();
        }
    }
}

/// What one guard has registered.
struct OwnLosses {
    callbacks: Mutex<Vec<Arc<Registered>>>,
    channel: OnceLock<(Sender<()>, Receiver<()>)>,
    created_in: ForkEpoch,
}

impl OwnLosses {
    /// Calls back when this lock is lost, if the guard is still there.
    fn on_lost(&self, shared: &SharedLock, callback: LossCallback) -> Result<()> {
        shared.held.client.check_process()?;
        let callback = Arc::new(Mutex::new(Some(callback)));
        shared.register(&callback)?;
        lock(&self.callbacks).push(callback);
        Ok(())
    }

    /// A channel that brings one message then.
    fn lost(&self, shared: &SharedLock) -> Result<Receiver<()>> {
        shared.held.client.check_process()?;
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
    /// What was registered is the parent's: in a child nothing of it is dropped, as nothing of it
    /// is called.
    fn drop(&mut self) {
        if self.created_in.is_forked() {
            std::mem::forget(std::mem::take(&mut self.callbacks));
            std::mem::forget(self.channel.take());
        }
    }
}
