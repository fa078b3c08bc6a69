//! The locks that threads take: plain ones, fenced, fair, of several resources, to read and to
//! write, and permits. And what they hold then.

use crate::algorithm::lease::OwnerToken;
use crate::api::guard::MutexGuard;
use crate::api::held::Held;
use crate::api::kind::{Any, Fenced, Read, Slot, Write};
use crate::api::mutex::Mutex;
use crate::api::redlock::Redlock;
use crate::api::wait::Wait;
use crate::api::watchdog::Watchdog;
use crate::engine::local_queue::HoldId;
use crate::events::error::Result;
use crate::events::extension::ExtendOutcome;
use crate::events::release::ReleaseOutcome;
use crate::kernel::with;
use crate::keys;
use crate::plan::SHARED_KEY;
use crate::waits::{self, Awaited, SHARED};
use crossbeam_channel::Receiver;
use quorumlock::FencingToken;
use std::time::Duration;

/// How many permits the semaphores have.
const PERMITS: usize = 2;

/// What a call wants of a lock that several may hold, or has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Access {
    /// Together with other readers.
    Read,
    /// Alone.
    #[default]
    Write,
}

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
        if self == Sort::Read {
            Access::Read
        } else {
            Access::Write
        }
    }

    pub(crate) fn has_fence(self) -> bool {
        matches!(self, Sort::Fenced | Sort::FencedFair | Sort::FencedWrite)
    }

    /// The number of its lock, by the number of the name. For a permit, the number of its first
    /// slot.
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
        let first = self.resource(name);
        let access = self.access();
        match self {
            Sort::Permit => Awaited {
                resources: (0..PERMITS).map(|slot| first + slot).collect(),
                is_any: true,
                access,
            },
            Sort::Set => Awaited {
                resources: vec![first, SHARED],
                is_any: false,
                access,
            },
            _ => Awaited::one(first, access),
        }
    }
}

/// What a thread calls for, and what it gets, of each of these kinds.
macro_rules! kinds {
    ($($kind:ident($marker:ty)),*) => {
        pub(crate) enum Lock {
            $($kind(Mutex<$marker>)),*
        }

        pub(crate) enum Guard {
            $($kind(MutexGuard<$marker>)),*
        }

        impl Lock {
            pub(crate) fn ttl(self, ttl: Duration) -> Lock {
                match self {
                    $(Lock::$kind(mutex) => Lock::$kind(mutex.ttl(ttl))),*
                }
            }

            pub(crate) fn watchdog(self, watchdog: Watchdog) -> Lock {
                match self {
                    $(Lock::$kind(mutex) => Lock::$kind(mutex.watchdog(watchdog))),*
                }
            }
        }

        $(impl From<MutexGuard<$marker>> for Guard {
            fn from(guard: MutexGuard<$marker>) -> Guard {
                Guard::$kind(guard)
            }
        })*
    };
}

kinds!(
    Alone(Any),
    Read(Read),
    Write(Write),
    FencedWrite(Fenced<Write>),
    Permit(Slot)
);

/// Does the same with a lock, or a guard, of any kind.
macro_rules! any {
    ($type:ident, $of:expr, $each:ident => $what:expr) => {
        match $of {
            $type::Alone($each) => $what,
            $type::Read($each) => $what,
            $type::Write($each) => $what,
            $type::FencedWrite($each) => $what,
            $type::Permit($each) => $what,
        }
    };
}

impl Lock {
    /// The lock of a name.
    pub(crate) fn of(redlock: &Redlock, name: usize, sort: Sort) -> Lock {
        let text = format!("r{name}");
        let mutex = || redlock.mutex(&text);
        let may_be_fair = || with(|world| waits::publishes(world.current_client()));
        match sort {
            Sort::Fair if may_be_fair() => Lock::Alone(mutex().fair().erase()),
            Sort::Plain | Sort::Fair => Lock::Alone(mutex().erase()),
            Sort::FencedFair if may_be_fair() => Lock::Alone(mutex().fenced().fair().erase()),
            Sort::Fenced | Sort::FencedFair => Lock::Alone(mutex().fenced().erase()),
            Sort::Read => Lock::Read(redlock.read_mutex(text)),
            Sort::Write => Lock::Write(redlock.write_mutex(text)),
            Sort::FencedWrite => Lock::FencedWrite(redlock.write_mutex(text).fenced()),
            Sort::Permit => Lock::Permit(redlock.semaphore(format!("s{name}"), PERMITS)),
            Sort::Set => Lock::Alone(redlock.mutex_set([text.as_str(), SHARED_KEY]).erase()),
        }
    }

    pub(crate) fn try_lock(&self) -> Result<Option<Guard>> {
        any!(Lock, self, mutex => Ok(mutex.try_lock()?.map(Guard::from)))
    }

    pub(crate) fn lock(&self) -> Result<Guard> {
        any!(Lock, self, mutex => mutex.lock().map(Guard::from))
    }

    pub(crate) fn lock_with(&self, wait: &Wait) -> Result<Option<Guard>> {
        any!(Lock, self, mutex => Ok(mutex.lock_with(wait)?.map(Guard::from)))
    }

    pub(crate) fn lock_timeout(&self, timeout: Duration) -> Result<Option<Guard>> {
        self.lock_with(&Wait::timeout(timeout))
    }
}

impl Guard {
    /// For a lock to read: the attempt that it belongs to.
    pub(crate) fn reads_by(&self) -> Option<usize> {
        let Guard::Read(guard) = self else {
            return None;
        };
        let Held::Shared(share) = &guard.held else {
            return None;
        };
        let id = share.lock.held.hold_id();
        let is_it = |attempt: &usize| {
            let mut entropy = [0; OwnerToken::ENTROPY];
            entropy[..8].copy_from_slice(&keys::beginning(*attempt));
            HoldId::of(&OwnerToken::from_entropy(entropy)) == id
        };
        with(|world| (0..world.judge.tokens.len()).rev().find(is_it))
    }

    /// For a permit: its slot.
    pub(crate) fn slot(&self) -> usize {
        if let Guard::Permit(permit) = self {
            permit.slot()
        } else {
            0
        }
    }

    pub(crate) fn remaining(&self) -> Duration {
        any!(Guard, self, guard => guard.remaining())
    }

    pub(crate) fn fence(&self) -> Option<FencingToken> {
        match self {
            Guard::Alone(guard) => guard.fence(),
            Guard::FencedWrite(guard) => Some(guard.fence()),
            Guard::Permit(_) | Guard::Read(_) | Guard::Write(_) => None,
        }
    }

    pub(crate) fn lost(&self) -> Result<Receiver<()>> {
        any!(Guard, self, guard => guard.lost())
    }

    pub(crate) fn extend(&self, ttl: Duration) -> Result<ExtendOutcome> {
        any!(Guard, self, guard => guard.extend(ttl))
    }

    pub(crate) fn is_writer(&self) -> bool {
        matches!(self, Guard::FencedWrite(_) | Guard::Write(_))
    }

    /// Makes a writer a reader. Others stay what they are.
    pub(crate) fn downgrade(self) -> Result<Guard> {
        match self {
            Guard::Write(guard) => guard.downgrade().map(Guard::Read),
            Guard::FencedWrite(guard) => guard.downgrade().map(Guard::Read),
            other => Ok(other),
        }
    }

    pub(crate) fn unlock(self) -> Result<ReleaseOutcome> {
        any!(Guard, self, guard => guard.unlock())
    }
}
