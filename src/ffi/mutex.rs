//! The lock of one resource, and the ways to take it.

use super::boundary::{call, call_or, call_with_error};
use super::cancel::CancelObject;
use super::client::ClientHandle;
use super::code::Code;
use super::error_object::ErrorObject;
use super::failure::Result;
use super::fork_safe_mutex::ForkSafeMutex;
use super::guard::GuardHandle;
use super::handle::{Borrowed, Output, Returned};
use super::lease::LeaseHandle;
use super::text::{Bytes, Str};
use super::version::now_millis;
use crate::{Wait, Watchdog};
use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

/// `quorumlock_mutex`.
pub(super) struct MutexHandle {
    name: Arc<str>,
    settings: ForkSafeMutex<Settings>,
}

/// As set so far.
#[derive(Clone)]
struct Settings {
    /// Without the others, so that they can be taken away.
    plain: crate::Mutex,
    is_fenced: bool,
    watchdog: Option<Watchdog>,
}

impl MutexHandle {
    /// As it is set now. The lock is taken with a copy: a waiting thread holds nothing.
    fn current(&self) -> Result<crate::Mutex> {
        let Settings { plain, is_fenced, watchdog } = self.settings.lock()?.clone();
        let mutex = if is_fenced { plain.fenced().into() } else { plain };
        Ok(match watchdog {
            Some(watchdog) => mutex.watchdog(watchdog),
            None => mutex,
        })
    }

    /// Writes a guard, or returns that another client holds the lock.
    fn take(
        &self,
        guard: Output<*const GuardHandle>,
        take: impl FnOnce(&crate::Mutex) -> Result<Option<crate::MutexGuard>>,
    ) -> Result<Code> {
        let guard = guard.required("guard")?;
        let Some(held) = take(&self.current()?)? else { return Ok(Code::Held) };
        guard.write_handle(GuardHandle::new(Arc::clone(&self.name), held)?);
        Ok(Code::Ok)
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
        mutex.write_handle(MutexHandle {
            name: name.into(),
            settings: ForkSafeMutex::new(Settings { plain, is_fenced: false, watchdog: None })?,
        });
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
extern "C" fn quorumlock_mutex_set_fenced(mutex: Borrowed<MutexHandle>, enabled: c_int) -> Code {
    change(&mutex, |settings| Settings { is_fenced: enabled != 0, ..settings })
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
        let wait = ended_by(&cancel, Wait::forever());
        mutex.required("mutex")?.take(guard, |mutex| {
            loop {
                // Without a limit there is always a guard, or an error.
                if let Some(held) = mutex.lock_with(&wait)? {
                    return Ok(Some(held));
                }
            }
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_try_lock(
    mutex: Borrowed<MutexHandle>,
    guard: Output<*const GuardHandle>,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || mutex.required("mutex")?.take(guard, |mutex| Ok(mutex.try_lock()?)))
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
        mutex.required("mutex")?.take(guard, |mutex| Ok(mutex.lock_with(&wait)?))
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
        mutex.required("mutex")?.take(guard, |mutex| Ok(mutex.lock_with(&wait)?))
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
        mutex.take(guard, |mutex| Ok(Some(mutex.attach(lease.take()?)?)))
    })
}
