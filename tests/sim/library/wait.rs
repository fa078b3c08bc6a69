//! The library's waits: sleeping on a channel, on simulated time.

use crate::kernel::{self, Reason};
use crate::net::alarm::Alarm;
use crossbeam_channel::{Receiver, TryRecvError};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) struct Ringing<'w>(PhantomData<&'w ()>);

#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub(crate) limit: Limit,
    /// Cancelled after so many sleeps.
    cancelled_after: Option<std::rc::Rc<std::cell::Cell<u32>>>,
}

/// Cancels a wait after so many sleeps.
#[derive(Debug)]
pub struct CancelHandle(pub(crate) u32);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    Deadline(Instant),
    Never,
    Timeout(Duration),
}

impl Wait {
    pub(crate) fn forever() -> Wait {
        Wait { limit: Limit::Never, cancelled_after: None }
    }

    pub(crate) fn timeout(timeout: Duration) -> Wait {
        Wait { limit: Limit::Timeout(timeout), cancelled_after: None }
    }

    pub(crate) fn deadline(deadline: Instant) -> Wait {
        Wait { limit: Limit::Deadline(deadline), cancelled_after: None }
    }

    pub(crate) fn cancelled_by(mut self, handle: &CancelHandle) -> Wait {
        self.cancelled_after = Some(std::rc::Rc::new(std::cell::Cell::new(handle.0)));
        self
    }

    pub(crate) fn check_process(&self) -> crate::error::Result<()> {
        Ok(())
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled_after.as_ref().is_some_and(|left| left.get() == 0)
    }

    pub(crate) fn rings(&self, _alarm: &Arc<Alarm>) -> Ringing<'_> {
        Ringing(PhantomData)
    }

    /// Asked once for each sleep.
    pub(crate) fn glance(&self) -> Duration {
        if let Some(left) = &self.cancelled_after {
            left.set(left.get().saturating_sub(1));
        }
        Duration::MAX
    }

    pub(crate) fn sleep(&self, wake: &Receiver<()>, time: Duration) -> bool {
        if let Some(left) = &self.cancelled_after {
            left.set(left.get().saturating_sub(1));
        }
        if wake.try_recv() == Err(TryRecvError::Empty) {
            kernel::wait_for(Reason::Channel(wake.clone()), time);
        }
        self.is_cancelled()
    }
}
