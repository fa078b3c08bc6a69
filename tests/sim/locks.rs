//! The locks that threads take: plain ones, fenced, fair, of several resources, to read and to write, and permits. And
//! what they hold then.

use crate::algorithm::kind::Access;
use crate::algorithm::lease::OwnerToken;
use crate::api::client::Client;
use crate::api::guard::MutexGuard;
use crate::api::guard::shared::SharedGuards;
use crate::api::mutex::Mutex;
use crate::api::mutex::read_write::fenced::FencedRwMutex;
use crate::api::mutex::read_write::{RwMutex, RwReadGuard, RwWriteGuard};
use crate::api::redlock::Redlock;
use crate::api::semaphore::Semaphore;
use crate::api::semaphore::permit::Permit;
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
use crate::waits::{self, Awaited, SHARED};
use crossbeam_channel::Receiver;
use quorumlock::FencingToken;
use std::sync::Arc;
use std::time::Duration;

/// How many permits the semaphores have.
const PERMITS: usize = 2;

/// Which lock of a name it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Plain,
    Fair,
    Fenced,
    FencedFair,
    Read,
    Write,
    FencedWrite,
    Permit,
    /// With the lock that all sets share.
    Set,
}

impl Sort {
    pub(crate) fn access(self) -> Access {
        if self == Sort::Read { Access::Read } else { Access::Write }
    }

    pub(crate) fn has_fence(self) -> bool {
        matches!(self, Sort::Fenced | Sort::FencedFair | Sort::FencedWrite)
    }

    /// The number of its lock, by that of the name. Of a permit, of its first slot.
    pub(crate) fn resource(self, name: usize) -> usize {
        match self {
            Sort::Plain | Sort::Fair | Sort::Set => name,
            Sort::Fenced | Sort::FencedFair => keys::FENCED + name,
            Sort::Read | Sort::Write | Sort::FencedWrite => keys::READ_WRITE + name,
            Sort::Permit => keys::SLOT + keys::SLOTS * name,
        }
    }

    /// What a call waits for.
    pub(crate) fn awaited(self, name: usize) -> Awaited {
        let (first, access) = (self.resource(name), self.access());
        match self {
            Sort::Permit => {
                Awaited { resources: (0..PERMITS).map(|slot| first + slot).collect(), is_any: true, access }
            }
            Sort::Set => Awaited { resources: vec![first, SHARED], is_any: false, access },
            _ => Awaited::one(first, access),
        }
    }
}

/// What a thread calls for.
pub(crate) enum Lock {
    Alone(Mutex),
    Read(RwMutex),
    Write(RwMutex),
    FencedWrite(FencedRwMutex),
    Permit(Semaphore),
}

/// What it gets.
pub(crate) enum Guard {
    Alone(MutexGuard),
    Read(RwReadGuard),
    Write(RwWriteGuard),
    Permit(Permit),
}

impl Lock {
    /// The lock of a name. `reads`: where the leases to read are.
    pub(crate) fn of(client: &Client, reads: &Arc<SharedGuards>, name: usize, sort: Sort) -> Lock {
        let (redlock, text) = (Redlock::new(client.clone()), format!("r{name}"));
        let shared = || RwMutex::new(client.clone(), Arc::clone(reads), &text);
        let mutex = || redlock.mutex(&text);
        match sort {
            Sort::Plain => Lock::Alone(mutex()),
            Sort::Fair if with(|world| waits::publishes(world.current_client())) => Lock::Alone(mutex().fair()),
            Sort::Fair => Lock::Alone(mutex()),
            Sort::Fenced => Lock::Alone(mutex().fenced().into()),
            Sort::FencedFair if with(|world| waits::publishes(world.current_client())) => {
                Lock::Alone(mutex().fenced().fair().into())
            }
            Sort::FencedFair => Lock::Alone(mutex().fenced().into()),
            Sort::Read => Lock::Read(shared()),
            Sort::Write => Lock::Write(shared()),
            Sort::FencedWrite => Lock::FencedWrite(shared().fenced()),
            Sort::Permit => Lock::Permit(redlock.semaphore(format!("s{name}"), PERMITS)),
            Sort::Set => Lock::set(client, name),
        }
    }

    /// The lock of a resource and the one that all sets share.
    pub(crate) fn set(client: &Client, resource: usize) -> Lock {
        Lock::Alone(Mutex::of_key(client.clone(), LockKey::of("", [format!("r{resource}").as_str(), SHARED_KEY])))
    }

    pub(crate) fn ttl(self, ttl: Duration) -> Lock {
        match self {
            Lock::Alone(mutex) => Lock::Alone(mutex.ttl(ttl)),
            Lock::Read(mutex) => Lock::Read(mutex.ttl(ttl)),
            Lock::Write(mutex) => Lock::Write(mutex.ttl(ttl)),
            Lock::FencedWrite(mutex) => Lock::FencedWrite(mutex.ttl(ttl)),
            Lock::Permit(permits) => Lock::Permit(permits.ttl(ttl)),
        }
    }

    pub(crate) fn watchdog(self, watchdog: Watchdog) -> Lock {
        match self {
            Lock::Alone(mutex) => Lock::Alone(mutex.watchdog(watchdog)),
            Lock::Read(mutex) => Lock::Read(mutex.watchdog(watchdog)),
            Lock::Write(mutex) => Lock::Write(mutex.watchdog(watchdog)),
            Lock::FencedWrite(mutex) => Lock::FencedWrite(mutex.watchdog(watchdog)),
            Lock::Permit(permits) => Lock::Permit(permits.watchdog(watchdog)),
        }
    }

    pub(crate) fn try_lock(&self) -> Result<Option<Guard>> {
        Ok(match self {
            Lock::Alone(mutex) => mutex.try_lock()?.map(Guard::Alone),
            Lock::Read(mutex) => mutex.try_read()?.map(Guard::Read),
            Lock::Write(mutex) => mutex.try_write()?.map(Guard::Write),
            Lock::FencedWrite(mutex) => mutex.try_write()?.map(|guard| Guard::Write(guard.into())),
            Lock::Permit(permits) => permits.try_acquire()?.map(Guard::Permit),
        })
    }

    pub(crate) fn lock(&self) -> Result<Guard> {
        match self {
            Lock::Alone(mutex) => mutex.lock().map(Guard::Alone),
            Lock::Read(mutex) => mutex.read().map(Guard::Read),
            Lock::Write(mutex) => mutex.write().map(Guard::Write),
            Lock::FencedWrite(mutex) => mutex.write().map(|guard| Guard::Write(guard.into())),
            Lock::Permit(permits) => permits.acquire().map(Guard::Permit),
        }
    }

    pub(crate) fn lock_cancellable(&self, cancel: &CancelHandle) -> Result<Guard> {
        match self {
            Lock::Alone(mutex) => mutex.lock_cancellable(cancel).map(Guard::Alone),
            Lock::Read(mutex) => mutex.read_cancellable(cancel).map(Guard::Read),
            Lock::Write(mutex) => mutex.write_cancellable(cancel).map(Guard::Write),
            Lock::FencedWrite(mutex) => mutex.write_cancellable(cancel).map(|guard| Guard::Write(guard.into())),
            Lock::Permit(permits) => permits.acquire_cancellable(cancel).map(Guard::Permit),
        }
    }

    pub(crate) fn lock_timeout(&self, timeout: Duration) -> Result<Option<Guard>> {
        Ok(match self {
            Lock::Alone(mutex) => mutex.lock_timeout(timeout)?.map(Guard::Alone),
            Lock::Read(mutex) => mutex.read_timeout(timeout)?.map(Guard::Read),
            Lock::Write(mutex) => mutex.write_timeout(timeout)?.map(Guard::Write),
            Lock::FencedWrite(mutex) => mutex.write_timeout(timeout)?.map(|guard| Guard::Write(guard.into())),
            Lock::Permit(permits) => permits.acquire_timeout(timeout)?.map(Guard::Permit),
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

    /// Of a permit: its slot.
    pub(crate) fn slot(&self) -> usize {
        if let Guard::Permit(permit) = self { permit.slot() } else { 0 }
    }

    pub(crate) fn remaining(&self) -> Duration {
        match self {
            Guard::Alone(guard) => guard.remaining(),
            Guard::Read(guard) => guard.remaining(),
            Guard::Write(guard) => guard.remaining(),
            Guard::Permit(permit) => permit.remaining(),
        }
    }

    pub(crate) fn fencing_token(&self) -> Option<FencingToken> {
        match self {
            Guard::Alone(guard) => guard.fencing_token(),
            Guard::Read(_) | Guard::Permit(_) => None,
            Guard::Write(guard) => guard.fencing_token(),
        }
    }

    pub(crate) fn lost(&self) -> Result<Receiver<()>> {
        match self {
            Guard::Alone(guard) => guard.lost(),
            Guard::Read(guard) => guard.lost(),
            Guard::Write(guard) => guard.lost(),
            Guard::Permit(permit) => permit.lost(),
        }
    }

    pub(crate) fn extend(&mut self, ttl: Duration) -> Result<ExtendOutcome> {
        match self {
            Guard::Alone(guard) => guard.extend(ttl),
            Guard::Read(guard) => guard.extend(ttl),
            Guard::Write(guard) => guard.extend(ttl),
            Guard::Permit(permit) => permit.extend(ttl),
        }
    }

    /// None when other threads share the lock.
    pub(crate) fn unlock(self) -> Result<Option<ReleaseOutcome>> {
        match self {
            Guard::Alone(guard) => guard.unlock().map(Some),
            Guard::Read(guard) => guard.unlock(),
            Guard::Write(guard) => guard.unlock().map(Some),
            Guard::Permit(permit) => permit.release().map(Some),
        }
    }
}
