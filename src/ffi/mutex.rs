//! The lock of one resource, and the ways to take it.

use super::boundary::{call, call_or, call_with_error};
use super::cancel::CancelObject;
use super::client::ClientHandle;
use super::code::Code;
use super::error_object::ErrorObject;
use super::failure::{Failure, Result};
use super::fork_safe_mutex::ForkSafeMutex;
use super::guard::GuardHandle;
use super::handle::{Borrowed, Output, Returned};
use super::held::Held;
use super::lease::LeaseHandle;
use super::owner::{LockOwner, OwnerHandle};
use super::text::{Bytes, Str};
use super::version::now_millis;
use crate::kind::{Any, Fenced, Kind, Plain, Reentrant, Slot, Write};
use crate::{Holder, Lease, Mutex, MutexGuard, Redlock, Wait, Watchdog};
use std::ffi::c_int;
use std::time::Duration;

/// `quorumlock_mutex`.
pub(super) struct MutexHandle {
    lock: Lock,
    /// As a program sees it.
    name: String,
    settings: ForkSafeMutex<Settings>,
}

/// The lock, of a kind that never changes. It has the settings of its client.
pub(super) enum Lock {
    Plain(Mutex<Plain>),
    Fenced(Mutex<Fenced>),
    Write(Mutex<Write>),
    FencedWrite(Mutex<Fenced<Write>>),
    Slots(Mutex<Slot>),
    /// To read, or of several resources.
    Any(Mutex<Any>),
}

/// As set so far.
#[derive(Clone)]
struct Settings {
    ttl: Option<Duration>,
    min_hold: Duration,
    is_fair: bool,
    watchdog: Option<Watchdog>,
    /// The owner of a reentrant mutex.
    owner: Option<LockOwner>,
}

/// `quorumlock_lock_kind`. Numbers are never given to anything else.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LockKind {
    Plain = 0,
    Fenced = 1,
    Read = 2,
    Write = 3,
    FencedWrite = 4,
}

impl LockKind {
    const ALL: [LockKind; 5] = [
        LockKind::Plain,
        LockKind::Fenced,
        LockKind::Read,
        LockKind::Write,
        LockKind::FencedWrite,
    ];

    /// The lock of this kind and name.
    fn of(self, redlock: &Redlock, name: &str) -> Lock {
        match self {
            LockKind::Plain => Lock::Plain(redlock.mutex(name)),
            LockKind::Fenced => Lock::Fenced(redlock.mutex(name).fenced()),
            LockKind::Read => Lock::Any(redlock.read_mutex(name).erase()),
            LockKind::Write => Lock::Write(redlock.write_mutex(name)),
            LockKind::FencedWrite => Lock::FencedWrite(redlock.write_mutex(name).fenced()),
        }
    }
}

impl Settings {
    /// A mutex with the settings that every kind has.
    fn applied<K: Kind>(&self, mutex: &Mutex<K>) -> Mutex<K> {
        let mutex = mutex.clone().min_hold(self.min_hold);
        let mutex = self.ttl.into_iter().fold(mutex, Mutex::ttl);
        self.watchdog.iter().cloned().fold(mutex, Mutex::watchdog)
    }

    fn plain(&self, mutex: &Mutex<Plain>) -> Mutex<Plain> {
        let mutex = self.applied(mutex);
        if self.is_fair { mutex.fair() } else { mutex }
    }

    fn fenced(&self, mutex: &Mutex<Fenced>) -> Mutex<Fenced> {
        let mutex = self.applied(mutex);
        if self.is_fair { mutex.fair() } else { mutex }
    }
}

impl MutexHandle {
    pub(super) fn new(lock: Lock, name: &str) -> Result<MutexHandle> {
        let settings = Settings {
            ttl: None,
            min_hold: Duration::ZERO,
            is_fair: false,
            watchdog: None,
            owner: None,
        };
        Ok(MutexHandle {
            lock,
            name: name.to_owned(),
            settings: ForkSafeMutex::new(settings)?,
        })
    }

    fn change(&self, change: impl FnOnce(&mut Settings)) -> Result<Code> {
        self.settings.check_process()?;
        change(&mut *self.settings.lock()?);
        Ok(Code::Ok)
    }

    /// The client that holds the lock, if one does.
    pub(super) fn holder(&self) -> Result<Option<Holder>> {
        match &self.lock {
            Lock::Plain(mutex) => Ok(mutex.holder()?),
            Lock::Fenced(mutex) => Ok(mutex.holder()?),
            _ => Err(Failure::new(
                Code::Config,
                "only a plain or fenced lock has a holder to be asked for",
            )),
        }
    }

    /// Refuses a setting of plain and fenced locks where it is of another kind.
    fn check_is_of_one_owner(&self) -> Result<()> {
        match self.lock {
            Lock::Plain(_) | Lock::Fenced(_) => Ok(()),
            _ => Err(Failure::new(
                Code::Config,
                "only a plain or fenced lock can be fair or reentrant",
            )),
        }
    }

    /// Takes the lock, unless another client holds it. Without a wait it makes one attempt.
    fn take(&self, wait: Option<&Wait>) -> Result<Option<GuardHandle>> {
        fn taken<K: Kind>(
            mutex: &Mutex<K>,
            wait: Option<&Wait>,
        ) -> crate::Result<Option<MutexGuard<K>>> {
            wait.map_or_else(|| mutex.try_lock(), |wait| mutex.lock_with(wait))
        }
        fn level<K: Kind + Send>(
            mutex: &Mutex<Reentrant<K>>,
            owner: &LockOwner,
            wait: Option<&Wait>,
        ) -> Result<Option<Held>>
        where
            Reentrant<K>: Kind,
        {
            Ok(owner
                .lock(|owner| mutex.take_as(owner, wait))?
                .map(|guard| Held::Any(guard.erase())))
        }
        // With a copy: a waiting thread holds nothing.
        let settings = self.settings.lock()?.clone();
        let held = match (&self.lock, &settings.owner) {
            (Lock::Plain(mutex), Some(owner)) => {
                level(&settings.plain(mutex).reentrant(), owner, wait)?
            }
            (Lock::Fenced(mutex), Some(owner)) => {
                level(&settings.fenced(mutex).reentrant(), owner, wait)?
            }
            (Lock::Plain(mutex), None) => {
                taken(&settings.plain(mutex).erase(), wait)?.map(Held::Any)
            }
            (Lock::Fenced(mutex), None) => {
                taken(&settings.fenced(mutex).erase(), wait)?.map(Held::Any)
            }
            (Lock::Any(mutex), _) => taken(&settings.applied(mutex), wait)?.map(Held::Any),
            (Lock::FencedWrite(mutex), _) => {
                taken(&settings.applied(mutex), wait)?.map(Held::FencedWrite)
            }
            (Lock::Write(mutex), _) => taken(&settings.applied(mutex), wait)?.map(Held::Write),
            (Lock::Slots(mutex), _) => {
                return taken(&settings.applied(mutex), wait)?
                    .map(permit)
                    .transpose();
            }
        };
        held.map(|held| GuardHandle::new(held, 0)).transpose()
    }

    /// Makes a guard of a lease. It is no level of an owner: levels begin with a call that takes
    /// the lock.
    fn attach(&self, lease: Lease<Any>) -> Result<GuardHandle> {
        let settings = self.settings.lock()?.clone();
        let held = match &self.lock {
            Lock::Any(mutex) => Held::Any(settings.applied(mutex).attach(lease)?),
            Lock::Plain(mutex) => Held::Any(settings.plain(mutex).erase().attach(lease)?),
            Lock::Fenced(mutex) => Held::Any(settings.fenced(mutex).erase().attach(lease)?),
            Lock::FencedWrite(mutex) => {
                Held::FencedWrite(settings.applied(mutex).attach(lease.into_kind()?)?)
            }
            Lock::Write(mutex) => Held::Write(settings.applied(mutex).attach(lease.into_kind()?)?),
            Lock::Slots(mutex) => {
                return permit(settings.applied(mutex).attach(lease.into_kind()?)?);
            }
        };
        GuardHandle::new(held, 0)
    }

    /// Takes the lock, and writes its guard, or returns that another client holds it.
    fn lock(&self, guard: Output<*const GuardHandle>, wait: Option<&Wait>) -> Result<Code> {
        let guard = guard.required("guard")?;
        let Some(taken) = self.take(wait)? else {
            return Ok(Code::Held);
        };
        guard.write_handle(taken);
        Ok(Code::Ok)
    }
}

/// The guard of a permit, which knows its slot.
fn permit(permit: MutexGuard<Slot>) -> Result<GuardHandle> {
    let slot = permit.slot();
    GuardHandle::new(Held::Any(permit.erase()), slot)
}

/// Changes the settings.
fn change(mutex: &Borrowed<MutexHandle>, change: impl FnOnce(&mut Settings)) -> Code {
    call(|| mutex.required("mutex")?.change(change))
}

/// Changes those that only a plain or fenced lock has.
fn change_of_one_owner(mutex: &Borrowed<MutexHandle>, change: impl FnOnce(&mut Settings)) -> Code {
    call(|| {
        let mutex = mutex.required("mutex")?;
        mutex.check_is_of_one_owner()?;
        mutex.change(change)
    })
}

/// Changes those of the watchdog, and switches it on.
fn change_watchdog(mutex: &Borrowed<MutexHandle>, with: impl FnOnce(Watchdog) -> Watchdog) -> Code {
    change(mutex, |settings| {
        settings.watchdog = Some(with(settings.watchdog.take().unwrap_or_default()))
    })
}

/// Ended by the handle, if there is one.
fn ended_by(cancel: &Borrowed<CancelObject>, wait: Wait) -> Wait {
    match cancel.optional() {
        Some(cancel) => wait.cancelled_by(&cancel.handle),
        None => wait,
    }
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_client_mutex(
    client: Borrowed<ClientHandle>,
    name: Bytes,
    name_length: usize,
    kind: c_int,
    mutex: Output<*const MutexHandle>,
) -> Code {
    call(|| {
        let client = client.required("client")?;
        let name = name.text(name_length, "name")?;
        let mutex = mutex.required("mutex")?;
        let Some(kind) = LockKind::ALL
            .into_iter()
            .find(|&known| known as c_int == kind)
        else {
            return Ok(Code::InvalidArgument);
        };
        mutex.write_handle(MutexHandle::new(kind.of(&client.redlock, name), name)?);
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_free(mutex: Returned<MutexHandle>) {
    call_or((), || mutex.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_name(mutex: Borrowed<MutexHandle>) -> Str {
    call_or(Str::EMPTY, || Some(Str::of(&mutex.optional()?.name)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_ttl_ms(mutex: Borrowed<MutexHandle>, ttl_ms: u64) -> Code {
    change(&mutex, |settings| {
        settings.ttl = Some(Duration::from_millis(ttl_ms))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_min_hold_ms(mutex: Borrowed<MutexHandle>, time_ms: u64) -> Code {
    change(&mutex, |settings| {
        settings.min_hold = Duration::from_millis(time_ms)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_fair(mutex: Borrowed<MutexHandle>, enabled: c_int) -> Code {
    change_of_one_owner(&mutex, |settings| settings.is_fair = enabled != 0)
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_reentrant(
    mutex: Borrowed<MutexHandle>,
    owner: Borrowed<OwnerHandle>,
) -> Code {
    let owner = owner
        .optional()
        .map_or(LockOwner::Thread, LockOwner::Object);
    change_of_one_owner(&mutex, |settings| settings.owner = Some(owner))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_watchdog(mutex: Borrowed<MutexHandle>, enabled: c_int) -> Code {
    match enabled {
        0 => change(&mutex, |settings| settings.watchdog = None),
        _ => change_watchdog(&mutex, |watchdog| watchdog),
    }
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_watchdog_period_ms(
    mutex: Borrowed<MutexHandle>,
    period_ms: u64,
) -> Code {
    change_watchdog(&mutex, |watchdog| {
        watchdog.period(Duration::from_millis(period_ms))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_watchdog_notify_before_ms(
    mutex: Borrowed<MutexHandle>,
    margin_ms: u64,
) -> Code {
    change_watchdog(&mutex, |watchdog| {
        watchdog.notify_before(Duration::from_millis(margin_ms))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_watchdog_max_extensions(
    mutex: Borrowed<MutexHandle>,
    extensions: u32,
) -> Code {
    change_watchdog(&mutex, |watchdog| watchdog.max_extensions(extensions))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_watchdog_max_duration_ms(
    mutex: Borrowed<MutexHandle>,
    time_ms: u64,
) -> Code {
    change_watchdog(&mutex, |watchdog| {
        watchdog.max_duration(Duration::from_millis(time_ms))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_lock(
    mutex: Borrowed<MutexHandle>,
    timeout_ms: i64,
    cancel: Borrowed<CancelObject>,
    guard: Output<*const GuardHandle>,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let wait = match u64::try_from(timeout_ms) {
            Ok(limit) => Wait::timeout(Duration::from_millis(limit)),
            Err(_) => Wait::unlimited(),
        };
        let wait = ended_by(&cancel, wait);
        mutex.required("mutex")?.lock(guard, Some(&wait))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_try_lock(
    mutex: Borrowed<MutexHandle>,
    guard: Output<*const GuardHandle>,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || mutex.required("mutex")?.lock(guard, None))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_lock_deadline(
    mutex: Borrowed<MutexHandle>,
    deadline_ms: u64,
    cancel: Borrowed<CancelObject>,
    guard: Output<*const GuardHandle>,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let left = Duration::from_millis(deadline_ms.saturating_sub(now_millis()));
        let wait = ended_by(&cancel, Wait::timeout(left));
        mutex.required("mutex")?.lock(guard, Some(&wait))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_attach(
    mutex: Borrowed<MutexHandle>,
    lease: Borrowed<LeaseHandle>,
    guard: Output<*const GuardHandle>,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let mutex = mutex.required("mutex")?;
        let lease = lease.required("lease")?;
        let guard = guard.required("guard")?;
        guard.write_handle(mutex.attach(lease.take()?)?);
        Ok(Code::Ok)
    })
}
