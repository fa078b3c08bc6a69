//! The locks that threads take: plain ones, fenced, fair, of several resources, to read and to write. And what they
//! hold then.

use crate::algorithm::lease::OwnerToken;
use crate::algorithm::lock_kind::Access;
use crate::api::client::Client;
use crate::api::guard::MutexGuard;
use crate::api::guard::shared::SharedGuards;
use crate::api::mutex::Mutex;
use crate::api::mutex::read_write::fenced::FencedRwMutex;
use crate::api::mutex::read_write::{RwMutex, RwReadGuard, RwWriteGuard};
use crate::api::redlock::Redlock;
use crate::api::wait::CancelHandle;
use crate::api::watchdog::Watchdog;
use crate::engine::local_queue::HoldId;
use crate::events::error::Result;
use crate::events::extension::ExtendOutcome;
use crate::events::release::ReleaseOutcome;
use crate::kernel::with;
use crate::keys;
use crate::plan::SHARED_KEY;
use crate::protocol::lock_key::LockKey;
use crossbeam_channel::Receiver;
use quorumlock::FencingToken;
use std::sync::Arc;
use std::time::Duration;

/// What a thread calls for.
pub(crate) enum Lock {
    Alone(Mutex),
    Read(RwMutex),
    Write(RwMutex),
    FencedWrite(FencedRwMutex),
}

/// What it gets.
pub(crate) enum Guard {
    Alone(MutexGuard),
    Read(RwReadGuard),
    Write(RwWriteGuard),
}

impl Lock {
    /// The lock of a resource, as this run has it. `reads`: where the leases to read are. `is_fenced`: in a run with
    /// fences, whether a writer has one.
    pub(crate) fn of(
        client: &Client,
        reads: &Arc<SharedGuards>,
        resource: usize,
        (access, is_fenced): (Access, bool),
    ) -> Lock {
        let has_queues = with(|world| world.plan.has_queues());
        let name = format!("r{resource}");
        if with(|world| world.plan.reads_and_writes()) {
            let mutex = RwMutex::new(client.clone(), Arc::clone(reads), &name);
            return match access {
                Access::Read => Lock::Read(mutex),
                Access::Write if is_fenced => Lock::FencedWrite(mutex.fenced()),
                Access::Write => Lock::Write(mutex),
            };
        }
        let mutex = Redlock::new(client.clone()).mutex(name);
        Lock::Alone(match (is_fenced, has_queues) {
            (true, true) => mutex.fenced().fair().into(),
            (true, false) => mutex.fenced().into(),
            (false, true) => mutex.fair(),
            (false, false) => mutex,
        })
    }

    /// The lock of a resource and the one that all sets share.
    pub(crate) fn set(client: &Client, resource: usize) -> Lock {
        Lock::Alone(Mutex::of_key(client.clone(), LockKey::of("", [format!("r{resource}").as_str(), SHARED_KEY])))
    }

    pub(crate) fn access(&self) -> Access {
        if let Lock::Read(_) = self { Access::Read } else { Access::Write }
    }

    pub(crate) fn ttl(self, ttl: Duration) -> Lock {
        match self {
            Lock::Alone(mutex) => Lock::Alone(mutex.ttl(ttl)),
            Lock::Read(mutex) => Lock::Read(mutex.ttl(ttl)),
            Lock::Write(mutex) => Lock::Write(mutex.ttl(ttl)),
            Lock::FencedWrite(mutex) => Lock::FencedWrite(mutex.ttl(ttl)),
        }
    }

    pub(crate) fn watchdog(self, watchdog: Watchdog) -> Lock {
        match self {
            Lock::Alone(mutex) => Lock::Alone(mutex.watchdog(watchdog)),
            Lock::Read(mutex) => Lock::Read(mutex.watchdog(watchdog)),
            Lock::Write(mutex) => Lock::Write(mutex.watchdog(watchdog)),
            Lock::FencedWrite(mutex) => Lock::FencedWrite(mutex.watchdog(watchdog)),
        }
    }

    pub(crate) fn try_lock(&self) -> Result<Option<Guard>> {
        Ok(match self {
            Lock::Alone(mutex) => mutex.try_lock()?.map(Guard::Alone),
            Lock::Read(mutex) => mutex.try_read()?.map(Guard::Read),
            Lock::Write(mutex) => mutex.try_write()?.map(Guard::Write),
            Lock::FencedWrite(mutex) => mutex.try_write()?.map(|guard| Guard::Write(guard.into())),
        })
    }

    pub(crate) fn lock(&self) -> Result<Guard> {
        match self {
            Lock::Alone(mutex) => mutex.lock().map(Guard::Alone),
            Lock::Read(mutex) => mutex.read().map(Guard::Read),
            Lock::Write(mutex) => mutex.write().map(Guard::Write),
            Lock::FencedWrite(mutex) => mutex.write().map(|guard| Guard::Write(guard.into())),
        }
    }

    pub(crate) fn lock_cancellable(&self, cancel: &CancelHandle) -> Result<Guard> {
        match self {
            Lock::Alone(mutex) => mutex.lock_cancellable(cancel).map(Guard::Alone),
            Lock::Read(mutex) => mutex.read_cancellable(cancel).map(Guard::Read),
            Lock::Write(mutex) => mutex.write_cancellable(cancel).map(Guard::Write),
            Lock::FencedWrite(mutex) => mutex.write_cancellable(cancel).map(|guard| Guard::Write(guard.into())),
        }
    }

    pub(crate) fn lock_timeout(&self, timeout: Duration) -> Result<Option<Guard>> {
        Ok(match self {
            Lock::Alone(mutex) => mutex.lock_timeout(timeout)?.map(Guard::Alone),
            Lock::Read(mutex) => mutex.read_timeout(timeout)?.map(Guard::Read),
            Lock::Write(mutex) => mutex.write_timeout(timeout)?.map(Guard::Write),
            Lock::FencedWrite(mutex) => mutex.write_timeout(timeout)?.map(|guard| Guard::Write(guard.into())),
        })
    }
}

impl Guard {
    /// Of a lock to read: the attempt that it belongs to.
    pub(crate) fn reads_by(&self) -> Option<usize> {
        let Guard::Read(guard) = self else { return None };
        let id = guard.lease().guard().hold_id();
        let is_it = |attempt: &usize| {
            let mut entropy = [0; OwnerToken::ENTROPY];
            entropy[..8].copy_from_slice(&keys::beginning(*attempt));
            HoldId::of(&OwnerToken::from_entropy(entropy)) == id
        };
        with(|world| (0..world.judge.tokens.len()).rev().find(is_it))
    }

    pub(crate) fn access(&self) -> Access {
        if let Guard::Read(_) = self { Access::Read } else { Access::Write }
    }

    pub(crate) fn remaining(&self) -> Duration {
        match self {
            Guard::Alone(guard) => guard.remaining(),
            Guard::Read(guard) => guard.remaining(),
            Guard::Write(guard) => guard.remaining(),
        }
    }

    pub(crate) fn fencing_token(&self) -> Option<FencingToken> {
        match self {
            Guard::Alone(guard) => guard.fencing_token(),
            Guard::Read(_) => None,
            Guard::Write(guard) => guard.fencing_token(),
        }
    }

    pub(crate) fn lost(&self) -> Result<Receiver<()>> {
        match self {
            Guard::Alone(guard) => guard.lost(),
            Guard::Read(guard) => guard.lost(),
            Guard::Write(guard) => guard.lost(),
        }
    }

    pub(crate) fn extend(&mut self, ttl: Duration) -> Result<ExtendOutcome> {
        match self {
            Guard::Alone(guard) => guard.extend(ttl),
            Guard::Read(guard) => guard.extend(ttl),
            Guard::Write(guard) => guard.extend(ttl),
        }
    }

    /// None when other threads share the lock.
    pub(crate) fn unlock(self) -> Result<Option<ReleaseOutcome>> {
        match self {
            Guard::Alone(guard) => guard.unlock().map(Some),
            Guard::Read(guard) => guard.unlock(),
            Guard::Write(guard) => guard.unlock().map(Some),
        }
    }
}
