//! The mutable content of a handle: behind a mutex on which no child of `fork` waits.
//!
//! In a child, a mutex that another thread of the parent had stays locked, and its content may be
//! half changed. So a child only tries it.

use super::code::Code;
use super::failure::{Failure, Result};
use crate::os::fork::ForkEpoch;
use crate::os::sync::{Mutex, MutexGuard, lock};
use std::sync::TryLockError;

/// Mutable content. Its mutex is held briefly, and never during a callback.
pub(super) struct ForkSafeMutex<T> {
    created_in: ForkEpoch,
    content: Mutex<T>,
}

impl<T> ForkSafeMutex<T> {
    pub(super) fn new(content: T) -> Result<ForkSafeMutex<T>> {
        let created_in = ForkEpoch::current().map_err(|error| {
            Failure::new(
                Code::Unavailable,
                format!("cannot register a fork handler: {error}"),
            )
        })?;
        Ok(ForkSafeMutex {
            created_in,
            content: Mutex::new(content),
        })
    }

    /// Whether this process is a child of the one that made it.
    fn is_inherited(&self) -> bool {
        self.created_in.is_forked()
    }

    /// Refuses what belongs to the parent.
    pub(super) fn check_process(&self) -> Result<()> {
        if self.is_inherited() {
            Err(Failure::plain(Code::Forked))
        } else {
            Ok(())
        }
    }

    /// The content, unless another thread has it.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.content.try_lock() {
            Ok(content) => Some(content),
            Err(TryLockError::Poisoned(content)) => Some(content.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The content. In a child: if no thread of the parent was changing it when it was forked.
    pub(super) fn lock(&self) -> Result<MutexGuard<'_, T>> {
        if self.is_inherited() {
            return self
                .content
                .try_lock()
                .map_err(|_| Failure::plain(Code::Forked));
        }
        Ok(lock(&self.content))
    }
}
