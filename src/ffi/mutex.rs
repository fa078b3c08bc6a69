//! The lock of one resource, and the ways to take it.

use super::boundary::{call, call_or, call_with_error};
use super::cancel::CancelObject;
use super::client::ClientHandle;
use super::code::Code;
use super::error_object::ErrorObject;
use super::failure::{Failure, Result};
use super::fork_safe_mutex::ForkSafeMutex;
use super::guard::GuardHandle;
use super::handle::{Borrowed, NonNullOutput, Output, Returned};
use super::held::Held;
use super::lease::LeaseHandle;
use super::owner::{LockOwner, OwnerHandle};
use super::text::{Bytes, Str};
use super::version::now_millis;
use crate::kind::{Any, Fenced, Kind, Plain, Reentrant, Write};
use crate::{Holder, Lease, Mutex, Redlock, Wait, Watchdog};
use std::ffi::c_int;
use std::time::Duration;

/// `quorumlock_mutex`.
pub(super) struct MutexHandle {
    redlock: Redlock,
    names: Names,
    /// As a program sees it.
    name: String,
    settings: ForkSafeMutex<Settings>,
}

/// What it locks.
pub(super) enum Names {
    One(String),
    Several(Vec<String>),
    /// Any of so many slots of a semaphore of this name.
    Slots(String, usize),
}

/// As set so far.
#[derive(Clone)]
struct Settings {
    ttl: Option<Duration>,
    min_hold: Duration,
    is_fenced: bool,
    is_fair: bool,
    watchdog: Option<Watchdog>,
    /// The owner of a reentrant mutex.
    owner: Option<LockOwner>,
    access: AccessNumber,
}

/// `quorumlock_access`. Numbers are never given to anything else.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessNumber {
    Alone = 0,
    Read = 1,
    Write = 2,
}

/// The mutex as it is set now. The lock is taken with a copy: a waiting thread holds nothing.
enum AnyMutex {
    /// To read, or of several resources.
    Any(Mutex<Any>),
    /// Reentrant if the settings have an owner, as a fenced one is.
    Plain(Mutex<Plain>),
    Fenced(Mutex<Fenced>),
    FencedWrite(Mutex<Fenced<Write>>),
    Slots(Mutex<crate::kind::Slot>),
    Write(Mutex<Write>),
}

/// What was taken, and which slot of a semaphore it is; 0 if it is none.
struct Taken {
    held: Held,
    slot: usize,
}

impl Settings {
    /// A mutex with the settings that every kind has.
    fn applied<K: Kind>(&self, mutex: Mutex<K>) -> Mutex<K> {
        let mutex = self
            .ttl
            .into_iter()
            .fold(mutex.min_hold(self.min_hold), Mutex::ttl);
        self.watchdog.iter().cloned().fold(mutex, Mutex::watchdog)
    }
}

impl MutexHandle {
    pub(super) fn new(redlock: &Redlock, names: Names) -> Result<MutexHandle> {
        let name = match &names {
            Names::One(name) | Names::Slots(name, _) => name.clone(),
            Names::Several(names) => redlock.mutex_set(names).name().to_owned(),
        };
        let settings = Settings {
            ttl: None,
            min_hold: Duration::ZERO,
            is_fenced: false,
            is_fair: false,
            watchdog: None,
            owner: None,
            access: AccessNumber::Alone,
        };
        Ok(MutexHandle {
            redlock: redlock.clone(),
            names,
            name,
            settings: ForkSafeMutex::new(settings)?,
        })
    }

    /// The mutex with these settings.
    fn with(&self, settings: &Settings) -> Result<AnyMutex> {
        let &Settings {
            is_fenced,
            is_fair,
            ref owner,
            access,
            ..
        } = settings;
        let refusal = |message| Err(Failure::new(Code::Config, message));
        let is_of_one_name =
            is_fenced || is_fair || owner.is_some() || access != AccessNumber::Alone;
        let name = match &self.names {
            Names::Slots(..) if is_of_one_name => {
                return refusal("permits cannot be fenced, fair or reentrant, nor read or written");
            }
            Names::Slots(name, permits) => {
                return Ok(AnyMutex::Slots(
                    settings.applied(self.redlock.semaphore(name, *permits)),
                ));
            }
            Names::Several(_) if is_of_one_name => {
                return refusal(
                    "a set of resources cannot be fenced, fair or reentrant, nor read or written",
                );
            }
            Names::Several(names) => {
                return Ok(AnyMutex::Any(
                    settings.applied(self.redlock.mutex_set(names)).erase(),
                ));
            }
            Names::One(name) => name,
        };
        if access != AccessNumber::Alone && (is_fair || owner.is_some()) {
            return refusal("a read-write lock is not fair or reentrant");
        }
        let write = || settings.applied(self.redlock.write_mutex(name));
        Ok(match access {
            AccessNumber::Read => {
                AnyMutex::Any(settings.applied(self.redlock.read_mutex(name)).erase())
            }
            AccessNumber::Write if is_fenced => AnyMutex::FencedWrite(write().fenced()),
            AccessNumber::Write => AnyMutex::Write(write()),
            AccessNumber::Alone => {
                let plain = settings.applied(self.redlock.mutex(name));
                let plain = if is_fair { plain.fair() } else { plain };
                if is_fenced {
                    AnyMutex::Fenced(plain.fenced())
                } else {
                    AnyMutex::Plain(plain)
                }
            }
        })
    }

    /// The client that holds the lock, if one does.
    pub(super) fn holder(&self) -> Result<Option<Holder>> {
        let Settings {
            is_fenced, access, ..
        } = *self.settings.lock()?;
        match &self.names {
            Names::One(name) if access == AccessNumber::Alone => {
                let mutex = self.redlock.mutex(name);
                Ok(if is_fenced {
                    mutex.fenced().holder()?
                } else {
                    mutex.holder()?
                })
            }
            Names::One(_) => Err(Failure::new(
                Code::Config,
                "a read-write lock has no holder to be asked for",
            )),
            Names::Several(_) => Err(Failure::new(
                Code::Config,
                "a set of resources has no one holder",
            )),
            Names::Slots(..) => Err(Failure::new(
                Code::Config,
                "a semaphore has no lock of its own; its slots have",
            )),
        }
    }

    /// Takes the lock, unless another client holds it. Without a wait it makes one attempt.
    fn take(&self, wait: Option<&Wait>) -> Result<Option<Taken>> {
        fn taken<K: Kind>(
            mutex: &Mutex<K>,
            wait: Option<&Wait>,
        ) -> crate::Result<Option<crate::MutexGuard<K>>> {
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
        let settings = self.settings.lock()?.clone();
        let (held, slot) = match (self.with(&settings)?, &settings.owner) {
            (AnyMutex::Plain(mutex), Some(owner)) => (level(&mutex.reentrant(), owner, wait)?, 0),
            (AnyMutex::Fenced(mutex), Some(owner)) => (level(&mutex.reentrant(), owner, wait)?, 0),
            (AnyMutex::Plain(mutex), None) => (taken(&mutex.erase(), wait)?.map(Held::Any), 0),
            (AnyMutex::Fenced(mutex), None) => (taken(&mutex.erase(), wait)?.map(Held::Any), 0),
            (AnyMutex::Any(mutex), _) => (taken(&mutex, wait)?.map(Held::Any), 0),
            (AnyMutex::FencedWrite(mutex), _) => (taken(&mutex, wait)?.map(Held::FencedWrite), 0),
            (AnyMutex::Write(mutex), _) => (taken(&mutex, wait)?.map(Held::Write), 0),
            (AnyMutex::Slots(mutex), _) => {
                let permit = taken(&mutex, wait)?;
                let slot = permit.as_ref().map_or(0, crate::MutexGuard::slot);
                (permit.map(|permit| Held::Any(permit.erase())), slot)
            }
        };
        Ok(held.map(|held| Taken { held, slot }))
    }

    /// Makes what a guard holds of a lease. It is no level of an owner: levels begin with a call
    /// that takes the lock.
    fn attach(&self, lease: Lease<Any>) -> Result<Taken> {
        let settings = self.settings.lock()?.clone();
        let (held, slot) = match self.with(&settings)? {
            AnyMutex::Any(mutex) => (Held::Any(mutex.attach(lease)?), 0),
            AnyMutex::Plain(mutex) => (Held::Any(mutex.erase().attach(lease)?), 0),
            AnyMutex::Fenced(mutex) => (Held::Any(mutex.erase().attach(lease)?), 0),
            AnyMutex::FencedWrite(mutex) => {
                (Held::FencedWrite(mutex.attach(lease.into_kind()?)?), 0)
            }
            AnyMutex::Write(mutex) => (Held::Write(mutex.attach(lease.into_kind()?)?), 0),
            AnyMutex::Slots(mutex) => {
                let permit = mutex.attach(lease.into_kind()?)?;
                let slot = permit.slot();
                (Held::Any(permit.erase()), slot)
            }
        };
        Ok(Taken { held, slot })
    }

    /// Writes a guard of what was taken, or returns that another client holds the lock.
    fn give(&self, guard: NonNullOutput<*const GuardHandle>, taken: Option<Taken>) -> Result<Code> {
        let Some(Taken { held, slot }) = taken else {
            return Ok(Code::Held);
        };
        guard.write_handle(GuardHandle::new(held, slot)?);
        Ok(Code::Ok)
    }

    /// [`take`](MutexHandle::take), and [`give`](MutexHandle::give).
    fn lock(&self, guard: Output<*const GuardHandle>, wait: Option<&Wait>) -> Result<Code> {
        let guard = guard.required("guard")?;
        self.give(guard, self.take(wait)?)
    }
}

/// Changes the settings.
fn change(mutex: &Borrowed<MutexHandle>, change: impl FnOnce(&mut Settings)) -> Code {
    call(|| {
        let mutex = mutex.required("mutex")?;
        mutex.settings.check_process()?;
        change(&mut *mutex.settings.lock()?);
        Ok(Code::Ok)
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
extern "C" fn quorumlock_mutex_new(
    client: Borrowed<ClientHandle>,
    name: Bytes,
    name_length: usize,
    mutex: Output<*const MutexHandle>,
) -> Code {
    call(|| {
        let client = client.required("client")?;
        let name = name.text(name_length, "name")?;
        let mutex = mutex.required("mutex")?;
        mutex.write_handle(MutexHandle::new(
            &client.redlock,
            Names::One(name.to_owned()),
        )?);
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
extern "C" fn quorumlock_mutex_set_fenced(mutex: Borrowed<MutexHandle>, enabled: c_int) -> Code {
    change(&mutex, |settings| settings.is_fenced = enabled != 0)
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_fair(mutex: Borrowed<MutexHandle>, enabled: c_int) -> Code {
    change(&mutex, |settings| settings.is_fair = enabled != 0)
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_access(mutex: Borrowed<MutexHandle>, access: c_int) -> Code {
    let known = [AccessNumber::Alone, AccessNumber::Read, AccessNumber::Write];
    let Some(access) = known.into_iter().find(|&known| known as c_int == access) else {
        return call(|| mutex.required("mutex").map(|_| Code::InvalidArgument));
    };
    change(&mutex, |settings| settings.access = access)
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_reentrant(
    mutex: Borrowed<MutexHandle>,
    owner: Borrowed<OwnerHandle>,
) -> Code {
    let owner = owner
        .optional()
        .map_or(LockOwner::Thread, LockOwner::Object);
    change(&mutex, |settings| settings.owner = Some(owner))
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
    cancel: Borrowed<CancelObject>,
    guard: Output<*const GuardHandle>,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let mutex = mutex.required("mutex")?;
        let wait = ended_by(&cancel, Wait::unlimited());
        let guard = guard.required("guard")?;
        mutex.give(guard, mutex.take(Some(&wait))?)
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
extern "C" fn quorumlock_mutex_lock_timeout(
    mutex: Borrowed<MutexHandle>,
    timeout_ms: u64,
    cancel: Borrowed<CancelObject>,
    guard: Output<*const GuardHandle>,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let wait = ended_by(&cancel, Wait::timeout(Duration::from_millis(timeout_ms)));
        mutex.required("mutex")?.lock(guard, Some(&wait))
    })
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
        let attached = mutex.attach(lease.take()?)?;
        mutex.give(guard, Some(attached))
    })
}
