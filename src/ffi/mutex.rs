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
use crate::{Redlock, RwMutex, Semaphore, Wait, Watchdog};
use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

/// `quorumlock_mutex`.
pub(super) struct MutexHandle {
    redlock: Redlock,
    name: Arc<str>,
    settings: ForkSafeMutex<Settings>,
}

/// As set so far.
#[derive(Clone)]
struct Settings {
    /// Without the others, so that they can be taken away.
    plain: crate::Mutex,
    is_fenced: bool,
    is_fair: bool,
    watchdog: Option<Watchdog>,
    /// Of a reentrant mutex.
    owner: Option<LockOwner>,
    /// Whether it stands for some time at least.
    stands: bool,
    access: AccessNumber,
    /// Whose permits are taken, with the settings of the mutex.
    semaphore: Option<Semaphore>,
}

/// `quorumlock_access`. Numbers are never given to anything else.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessNumber {
    Alone = 0,
    Read = 1,
    Write = 2,
}

impl MutexHandle {
    pub(super) fn new(redlock: &Redlock, name: &str, plain: crate::Mutex) -> Result<MutexHandle> {
        MutexHandle::with(redlock, name, plain, None)
    }

    pub(super) fn of_permits(redlock: &Redlock, name: &str, semaphore: Semaphore) -> Result<MutexHandle> {
        MutexHandle::with(redlock, name, semaphore.mutex().clone(), Some(semaphore))
    }

    fn with(redlock: &Redlock, name: &str, plain: crate::Mutex, semaphore: Option<Semaphore>) -> Result<MutexHandle> {
        let settings = Settings {
            plain,
            is_fenced: false,
            is_fair: false,
            watchdog: None,
            owner: None,
            stands: false,
            access: AccessNumber::Alone,
            semaphore,
        };
        Ok(MutexHandle { redlock: redlock.clone(), name: name.into(), settings: ForkSafeMutex::new(settings)? })
    }

    /// The semaphore as it is set now, if the mutex is one.
    fn semaphore(&self) -> Result<Option<Semaphore>> {
        let Settings { plain, is_fenced, is_fair, watchdog, owner, access, semaphore, .. } =
            self.settings.lock()?.clone();
        let Some(semaphore) = semaphore else { return Ok(None) };
        if is_fenced || is_fair || owner.is_some() || access != AccessNumber::Alone {
            return Err(Failure::new(Code::Config, "permits cannot be fenced, fair or reentrant, nor read or written"));
        }
        let mutex = watchdog.into_iter().fold(plain, crate::Mutex::watchdog);
        Ok(Some(semaphore.with_settings_of(mutex)))
    }

    /// As it is set now. The lock is taken with a copy: a waiting thread holds nothing.
    pub(super) fn current(&self) -> Result<(crate::Mutex, Option<LockOwner>)> {
        let Settings { plain, is_fenced, is_fair, watchdog, owner, access, semaphore, .. } =
            self.settings.lock()?.clone();
        if access != AccessNumber::Alone {
            return Err(Failure::new(Code::Config, "a read-write lock has no holder to be asked for"));
        }
        if semaphore.is_some() {
            return Err(Failure::new(Code::Config, "a semaphore has no lock of its own; its slots have"));
        }
        if plain.is_set() && owner.is_some() {
            return Err(Failure::new(Code::Config, "a set of resources cannot be reentrant"));
        }
        let plain = if is_fair { plain.fair() } else { plain };
        let mutex = if is_fenced { plain.fenced().into() } else { plain };
        Ok(match watchdog {
            Some(watchdog) => (mutex.watchdog(watchdog), owner),
            None => (mutex, owner),
        })
    }

    /// The read-write lock, and what is asked for of it; none if it is set to lock alone.
    fn read_write(&self) -> Result<Option<(RwMutex, AccessNumber)>> {
        let Settings { plain, is_fenced, is_fair, watchdog, owner, stands, access, .. } = self.settings.lock()?.clone();
        if access == AccessNumber::Alone {
            return Ok(None);
        }
        if is_fair || stands || owner.is_some() || plain.is_set() {
            let message = "a read-write lock is of one resource, not fair or reentrant, and has no time at least";
            return Err(Failure::new(Code::Config, message));
        }
        let mutex = self.redlock.rw_mutex(&*self.name).ttl(plain.time_to_live());
        let mutex = if is_fenced { mutex.fenced().into() } else { mutex };
        Ok(Some((if let Some(watchdog) = watchdog { mutex.watchdog(watchdog) } else { mutex }, access)))
    }

    /// Takes the lock, unless another client holds it. Without a wait it makes one attempt.
    fn take(&self, wait: Option<&Wait>) -> Result<Option<Held>> {
        if let Some(semaphore) = self.semaphore()? {
            let permit = wait.map_or_else(|| semaphore.try_acquire(), |wait| semaphore.acquire_with(wait))?;
            return Ok(permit.map(|permit| Held::Permit(Box::new(permit))));
        }
        match self.read_write()? {
            Some((mutex, AccessNumber::Read)) => {
                let guard = wait.map_or_else(|| mutex.try_read(), |wait| mutex.read_with(wait))?;
                return Ok(guard.map(Held::Read));
            }
            Some((mutex, _)) => {
                let guard = wait.map_or_else(|| mutex.try_write(), |wait| mutex.write_with(wait))?;
                return Ok(guard.map(|guard| Held::Write(Box::new(guard))));
            }
            None => {}
        }
        Ok(match self.current()? {
            (mutex, Some(owner)) => owner.lock(&mutex.reentrant(), wait)?.map(Held::Level),
            (mutex, None) => wait
                .map_or_else(|| mutex.try_lock(), |wait| mutex.lock_with(wait))?
                .map(|guard| Held::Lock(Box::new(guard))),
        })
    }

    /// Writes a guard of what was taken, or returns that another client holds the lock.
    fn give(&self, guard: NonNullOutput<*const GuardHandle>, held: Option<Held>) -> Result<Code> {
        let Some(held) = held else { return Ok(Code::Held) };
        let name = if let Held::Permit(permit) = &held { permit.resource().into() } else { Arc::clone(&self.name) };
        guard.write_handle(GuardHandle::new(name, held)?);
        Ok(Code::Ok)
    }

    /// [`take`](MutexHandle::take), and [`give`](MutexHandle::give).
    fn lock(&self, guard: Output<*const GuardHandle>, wait: Option<&Wait>) -> Result<Code> {
        let guard = guard.required("guard")?;
        self.give(guard, self.take(wait)?)
    }
}

/// Changes the settings.
fn change(mutex: &Borrowed<MutexHandle>, change: impl FnOnce(Settings) -> Settings) -> Code {
    call(|| {
        let mutex = mutex.required("mutex")?;
        mutex.settings.check_process()?;
        let mut settings = mutex.settings.lock()?;
        *settings = change(settings.clone());
        Ok(Code::Ok)
    })
}

/// Changes those of the watchdog, and switches it on.
fn change_watchdog(mutex: &Borrowed<MutexHandle>, with: impl FnOnce(Watchdog) -> Watchdog) -> Code {
    change(mutex, |settings| {
        let watchdog = settings.watchdog.unwrap_or_default();
        Settings { watchdog: Some(with(watchdog)), ..settings }
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
        let plain = client.redlock.mutex(name);
        mutex.write_handle(MutexHandle::new(&client.redlock, name, plain)?);
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
    let ttl = Duration::from_millis(ttl_ms);
    change(&mutex, |settings| Settings { plain: settings.plain.ttl(ttl), ..settings })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_min_hold_ms(mutex: Borrowed<MutexHandle>, time_ms: u64) -> Code {
    let time = Duration::from_millis(time_ms);
    change(&mutex, |settings| Settings { plain: settings.plain.min_hold(time), stands: time_ms > 0, ..settings })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_fenced(mutex: Borrowed<MutexHandle>, enabled: c_int) -> Code {
    change(&mutex, |settings| Settings { is_fenced: enabled != 0, ..settings })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_fair(mutex: Borrowed<MutexHandle>, enabled: c_int) -> Code {
    change(&mutex, |settings| Settings { is_fair: enabled != 0, ..settings })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_access(mutex: Borrowed<MutexHandle>, access: c_int) -> Code {
    const ALONE: c_int = AccessNumber::Alone as c_int;
    const READ: c_int = AccessNumber::Read as c_int;
    const WRITE: c_int = AccessNumber::Write as c_int;
    let access = match access {
        ALONE => AccessNumber::Alone,
        READ => AccessNumber::Read,
        WRITE => AccessNumber::Write,
        _ => return call(|| mutex.required("mutex").map(|_| Code::InvalidArgument)),
    };
    change(&mutex, |settings| Settings { access, ..settings })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_reentrant(mutex: Borrowed<MutexHandle>, owner: Borrowed<OwnerHandle>) -> Code {
    let owner = owner.optional().map_or(LockOwner::Thread, LockOwner::Object);
    change(&mutex, |settings| Settings { owner: Some(owner), ..settings })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_watchdog(mutex: Borrowed<MutexHandle>, enabled: c_int) -> Code {
    match enabled {
        0 => change(&mutex, |settings| Settings { watchdog: None, ..settings }),
        _ => change_watchdog(&mutex, |watchdog| watchdog),
    }
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_watchdog_period_ms(mutex: Borrowed<MutexHandle>, period_ms: u64) -> Code {
    change_watchdog(&mutex, |watchdog| watchdog.period(Duration::from_millis(period_ms)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_watchdog_notify_before_ms(mutex: Borrowed<MutexHandle>, margin_ms: u64) -> Code {
    change_watchdog(&mutex, |watchdog| watchdog.notify_before(Duration::from_millis(margin_ms)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_watchdog_max_extensions(mutex: Borrowed<MutexHandle>, extensions: u32) -> Code {
    change_watchdog(&mutex, |watchdog| watchdog.max_extensions(extensions))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_watchdog_max_duration_ms(mutex: Borrowed<MutexHandle>, time_ms: u64) -> Code {
    change_watchdog(&mutex, |watchdog| watchdog.max_duration(Duration::from_millis(time_ms)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_lock(
    mutex: Borrowed<MutexHandle>,
    cancel: Borrowed<CancelObject>,
    guard: Output<*const GuardHandle>,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let (mutex, wait) = (mutex.required("mutex")?, ended_by(&cancel, Wait::unlimited()));
        let guard = guard.required("guard")?;
        loop {
            // Without a limit there is always a guard, or an error.
            if let Some(held) = mutex.take(Some(&wait))? {
                return mutex.give(guard, Some(held));
            }
        }
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
        let held = match mutex.read_write()? {
            Some((mutex, AccessNumber::Read)) => Held::Read(mutex.attach_read(lease.take()?)?),
            Some((mutex, _)) => Held::Write(Box::new(mutex.attach_write(lease.take()?)?)),
            None => Held::Lock(Box::new(mutex.current()?.0.attach(lease.take()?)?)),
        };
        mutex.give(guard, Some(held))
    })
}
