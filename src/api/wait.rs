//! How long to wait for a lock, and what may end the wait.

use crate::api::forked;
use crate::engine::channel_watch::{ChannelWatch, WatchRegistration};
use crate::engine::interrupt::Interrupt;
use crate::events::error::Result;
use crate::os::channel;
use crate::os::fork::ForkEpoch;
use crate::os::sync::{Mutex, lock};
use crossbeam_channel::{Receiver, Sender, bounded, never};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a thread that waits for sockets checks the channel that may cancel its wait, if the
/// system has no thread that waits for the channel.
const CHANNEL_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// How long [`Mutex::lock_with`](crate::Mutex::lock_with) waits, and what may end the wait early.
///
/// Waits, like all other limits except leases, go by a steady clock: setting the machine's wall
/// clock changes none of them. On Linux that clock (`CLOCK_BOOTTIME`) runs while the machine
/// sleeps.
///
/// ```
/// use quorumlock::{CancelHandle, Wait};
/// use std::time::Duration;
///
/// let shutdown = CancelHandle::new();
/// let wait = Wait::timeout(Duration::from_secs(5)).cancelled_by(&shutdown);
/// # drop(wait);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Wait {
    pub(crate) limit: Limit,
    cancel: CancelSource,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    Deadline(Instant),
    Never,
    Timeout(Duration),
}

#[derive(Clone, Debug)]
enum CancelSource {
    Channel(Receiver<()>),
    Handle(CancelHandle),
    Never,
}

impl Wait {
    /// Waits for as long as the resource is held: the call has no limit of its own. It fails when
    /// no quorum of nodes has answered for
    /// [`Builder::unavailable_after`](crate::Builder::unavailable_after).
    pub fn unlimited() -> Wait {
        Wait {
            limit: Limit::Never,
            cancel: CancelSource::Never,
        }
    }

    /// Waits for this long at most, counted from the call that waits. Zero makes one attempt.
    pub fn timeout(timeout: Duration) -> Wait {
        Wait {
            limit: Limit::Timeout(timeout),
            cancel: CancelSource::Never,
        }
    }

    /// Waits until then at the latest. A time in the past makes one attempt.
    pub fn deadline(deadline: Instant) -> Wait {
        Wait {
            limit: Limit::Deadline(deadline),
            cancel: CancelSource::Never,
        }
    }

    /// Lets a handle end the wait. Replaces an earlier handle or channel.
    pub fn cancelled_by(mut self, handle: &CancelHandle) -> Wait {
        self.cancel = CancelSource::Handle(handle.clone());
        self
    }

    /// Lets a channel end the wait, by a message, which is taken, or by its last sender going away.
    /// Replaces an earlier handle or channel.
    pub fn cancelled_by_channel(mut self, receiver: Receiver<()>) -> Wait {
        self.cancel = CancelSource::Channel(receiver);
        self
    }

    /// Refuses a handle that this process has inherited from its parent: a wait on it might never
    /// end.
    pub(crate) fn check_process(&self) -> Result<()> {
        match &self.cancel {
            CancelSource::Handle(handle) => forked::check(handle.0.created_in),
            CancelSource::Channel(_) | CancelSource::Never => Ok(()),
        }
    }

    /// Whether the wait has been cancelled. Takes the message, if a channel brings one.
    pub(crate) fn is_cancelled(&self) -> bool {
        match &self.cancel {
            CancelSource::Channel(receiver) => !matches!(
                receiver.try_recv(),
                Err(crossbeam_channel::TryRecvError::Empty)
            ),
            CancelSource::Handle(handle) => handle.is_cancelled(),
            CancelSource::Never => false,
        }
    }

    /// Sets the interrupt when the wait is cancelled, until the registration is dropped.
    pub(crate) fn register<'w>(
        &'w self,
        interrupt: &Arc<Interrupt>,
        channels: &Arc<ChannelWatch>,
    ) -> InterruptRegistration<'w> {
        match &self.cancel {
            CancelSource::Handle(handle) => {
                lock(&handle.0.interrupts).push(Arc::clone(interrupt));
                InterruptRegistration::Handle(handle, Arc::clone(interrupt))
            }
            CancelSource::Channel(receiver) => {
                InterruptRegistration::Channel(channels.register(receiver, interrupt))
            }
            CancelSource::Never => InterruptRegistration::Never,
        }
    }

    /// Sleeps until `wake` brings something, the wait is cancelled, or the time is up. True when it
    /// was cancelled.
    pub(crate) fn sleep(&self, wake: &Receiver<()>, time: Duration) -> bool {
        let cancelled = match &self.cancel {
            CancelSource::Channel(receiver) => receiver.clone(),
            CancelSource::Handle(handle) => handle.0.cancelled.clone(),
            CancelSource::Never => never(),
        };
        channel::sleep(wake, &cancelled, time)
    }
}

/// An interrupt that is set when a wait is cancelled.
pub(crate) enum InterruptRegistration<'w> {
    Channel(WatchRegistration),
    Handle(&'w CancelHandle, Arc<Interrupt>),
    Never,
}

impl InterruptRegistration<'_> {
    /// Before each sleep. Returns how long to sleep at most before checking whether the wait is
    /// [cancelled](Wait::is_cancelled).
    pub(crate) fn before_sleep(&self) -> Duration {
        let InterruptRegistration::Channel(registration) = self else {
            return Duration::MAX;
        };
        registration.arm();
        if registration.is_watched() {
            Duration::MAX
        } else {
            CHANNEL_CHECK_INTERVAL
        }
    }
}

impl Drop for InterruptRegistration<'_> {
    fn drop(&mut self) {
        if let InterruptRegistration::Handle(handle, own) = self {
            let mut interrupts = lock(&handle.0.interrupts);
            if let Some(index) = interrupts
                .iter()
                .position(|interrupt| Arc::ptr_eq(interrupt, own))
            {
                interrupts.swap_remove(index);
            }
        }
    }
}

/// Ends waits from another thread: every wait that was given this handle or a clone of it, now and
/// later.
///
/// A wait that is cancelled returns an error of kind [`Cancelled`](crate::ErrorKind::Cancelled) and
/// leaves no key behind. Dropping a handle cancels nothing.
///
/// A child made by `fork` needs handles of its own: a wait that is given one of the parent's is
/// refused as [`Forked`](crate::ErrorKind::Forked), and cancelling one in the child cancels no wait
/// of the parent.
#[derive(Clone, Debug)]
pub struct CancelHandle(Arc<CancelState>);

#[derive(Debug)]
struct CancelState {
    created_in: ForkEpoch,
    is_cancelled: AtomicBool,
    /// Dropped to cancel: a channel without a sender wakes all its receivers.
    sender: Mutex<Option<Sender<()>>>,
    cancelled: Receiver<()>,
    /// Belong to the threads that wait for sockets and cannot wait for a channel.
    interrupts: Mutex<Vec<Arc<Interrupt>>>,
}

impl CancelHandle {
    /// A handle that has not cancelled anything.
    pub fn new() -> CancelHandle {
        let (sender, cancelled) = bounded(0);
        CancelHandle(Arc::new(CancelState {
            created_in: ForkEpoch::known(),
            is_cancelled: AtomicBool::new(false),
            sender: Mutex::new(Some(sender)),
            cancelled,
            interrupts: Mutex::default(),
        }))
    }

    /// Ends the waits. Doing it twice does no harm.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Release);
        if !self.is_inherited() {
            lock(&self.0.sender).take();
            lock(&self.0.interrupts)
                .iter()
                .for_each(|interrupt| interrupt.set());
        }
    }

    /// Whether [`cancel`](CancelHandle::cancel) has been called.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    fn is_inherited(&self) -> bool {
        self.0.created_in.is_forked()
    }
}

impl Drop for CancelHandle {
    /// In a child, the channel is left as it is: threads that the child does not have were perhaps
    /// waiting at it.
    fn drop(&mut self) {
        if self.is_inherited() {
            std::mem::forget(Arc::clone(&self.0));
        }
    }
}

impl Default for CancelHandle {
    fn default() -> CancelHandle {
        CancelHandle::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_cancels_every_wait_it_was_given_to() {
        let handle = CancelHandle::new();
        let waits = [
            Wait::unlimited().cancelled_by(&handle),
            Wait::timeout(Duration::ZERO).cancelled_by(&handle.clone()),
        ];
        assert!(
            waits
                .iter()
                .all(|wait| !wait.is_cancelled() && !wait.sleep(&never(), Duration::ZERO))
        );
        handle.cancel();
        handle.cancel();
        assert!(
            waits
                .iter()
                .all(|wait| wait.is_cancelled() && wait.sleep(&never(), Duration::MAX))
        );
    }

    #[test]
    fn what_is_done_before_a_cancellation_is_seen_behind_it() {
        for _ in 0..if cfg!(miri) { 2 } else { 200 } {
            let handle = &CancelHandle::new();
            let is_done = &AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    is_done.store(true, Ordering::Relaxed);
                    handle.cancel();
                });
                while !handle.is_cancelled() {
                    std::thread::yield_now();
                }
                assert!(is_done.load(Ordering::Relaxed));
            });
        }
    }

    #[test]
    fn a_dropped_handle_cancels_nothing() {
        let wait = Wait::unlimited().cancelled_by(&CancelHandle::new());
        assert!(!wait.is_cancelled());
        assert!(!wait.sleep(&never(), Duration::from_millis(1)));
    }

    #[test]
    fn a_channel_cancels_by_a_message_or_by_its_end() {
        let (sender, receiver) = bounded(1);
        let wait = Wait::unlimited().cancelled_by_channel(receiver);
        assert!(!wait.is_cancelled());
        sender.send(()).unwrap();
        assert!(wait.is_cancelled());
        assert!(!wait.is_cancelled(), "the message was taken");
        drop(sender);
        assert!(wait.is_cancelled() && wait.sleep(&never(), Duration::MAX));
    }

    #[test]
    fn a_wake_up_is_not_a_cancellation() {
        let (sender, wake) = bounded(1);
        sender.send(()).unwrap();
        assert!(!Wait::unlimited().sleep(&wake, Duration::MAX));
    }
}
