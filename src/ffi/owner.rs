//! The owners of reentrant locks.

use super::boundary::{frees, new_or_null};
use super::code::Code;
use super::failure::{Failure, Result};
use super::fork_safe_mutex::ForkSafeMutex;
use crate::Owner;
use std::sync::Arc;

/// `quorumlock_owner`.
pub(super) type OwnerHandle = ForkSafeMutex<Owner>;

/// Which owner takes a lock.
#[derive(Clone)]
pub(super) enum LockOwner {
    Object(Arc<OwnerHandle>),
    /// The thread that calls.
    Thread,
}

impl LockOwner {
    /// Takes a lock, or takes it again, by `take`.
    pub(super) fn lock<G>(
        &self,
        take: impl Fn(&Owner) -> crate::Result<Option<G>>,
    ) -> Result<Option<G>> {
        Ok(match self {
            // The handles of guards may go to any thread, so the thread's own owner would not do.
            LockOwner::Thread => {
                thread_local! {
                    static THREAD: Owner = Owner::of_thread();
                }
                match THREAD.try_with(&take) {
                    Ok(taken) => taken?,
                    // The thread is just ending.
                    Err(_) => take(&Owner::of_thread())?,
                }
            }
            LockOwner::Object(handle) => {
                handle.check_process()?;
                // A thread that uses it keeps it while it waits for the lock.
                let owner = handle
                    .try_lock()
                    .ok_or_else(|| Failure::plain(Code::Busy))?;
                take(&owner)?
            }
        })
    }
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_owner_new() -> *const OwnerHandle {
    new_or_null(|| ForkSafeMutex::new(Owner::new()).ok())
}

frees! { quorumlock_owner_free(OwnerHandle); }
