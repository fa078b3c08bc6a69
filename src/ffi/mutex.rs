//! The lock of one resource, and the ways to take it.

use super::boundary::{enter, tell, value};
use super::cancel::Cancel;
use super::client::Client;
use super::code::Code;
use super::failure::Result;
use super::guard::Guard;
use super::handle::{Lent, Output, Returned};
use super::lease::Lease;
use super::report::Report;
use super::slot::Slot;
use super::text::{Bytes, Str};
use super::version::now_millis;
use crate::{Wait, Watchdog};
use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

/// `quorumlock_mutex`.
pub(super) struct Mutex {
    name: Arc<str>,
    settings: Slot<Settings>,
}

/// As set so far.
#[derive(Clone)]
struct Settings {
    /// Without the others, so that they can be taken away.
    plain: crate::Mutex,
    is_fenced: bool,
    watchdog: Option<Watchdog>,
}

impl Mutex {
    /// As it is set now. The lock is taken with a copy: a waiting thread holds nothing.
    fn current(&self) -> Result<crate::Mutex> {
        let Settings { plain, is_fenced, watchdog } = self.settings.lock()?.clone();
        let mutex = if is_fenced { plain.fenced().into() } else { plain };
        Ok(match watchdog {
            Some(watchdog) => mutex.watchdog(watchdog),
            None => mutex,
        })
    }

    /// Gives a guard, or that another client has the lock.
    fn take(
        &self,
        guard: Output<*const Guard>,
        take: impl FnOnce(&crate::Mutex) -> Result<Option<crate::MutexGuard>>,
    ) -> Result<Code> {
        let guard = guard.required("guard")?;
        let Some(held) = take(&self.current()?)? else { return Ok(Code::Held) };
        guard.give(Guard::new(Arc::clone(&self.name), held)?);
        Ok(Code::Ok)
    }
}

/// Changes the settings.
fn change(mutex: &Lent<Mutex>, change: impl FnOnce(Settings) -> Settings) -> Code {
    tell(|| {
        let mutex = mutex.content("mutex")?;
        mutex.settings.check_process()?;
        let mut settings = mutex.settings.lock()?;
        *settings = change(settings.clone());
        Ok(Code::Ok)
    })
}

/// Changes those of the watchdog, and switches it on.
fn change_watchdog(mutex: &Lent<Mutex>, with: impl FnOnce(Watchdog) -> Watchdog) -> Code {
    change(mutex, |settings| {
        let watchdog = settings.watchdog.unwrap_or_default();
        Settings { watchdog: Some(with(watchdog)), ..settings }
    })
}

/// Ended by the handle, if there is one.
fn ended_by(cancel: &Lent<Cancel>, wait: Wait) -> Wait {
    match cancel.optional() {
        Some(cancel) => wait.cancelled_by(&cancel.handle),
        None => wait,
    }
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_new(
    client: Lent<Client>,
    name: Bytes,
    name_length: usize,
    mutex: Output<*const Mutex>,
) -> Code {
    tell(|| {
        let client = client.content("client")?;
        let name = name.text(name_length, "name")?;
        let mutex = mutex.required("mutex")?;
        let plain = client.redlock.mutex(name);
        mutex.give(Mutex {
            name: name.into(),
            settings: Slot::new(Settings { plain, is_fenced: false, watchdog: None })?,
        });
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_free(mutex: Returned<Mutex>) {
    value((), || mutex.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_name(mutex: Lent<Mutex>) -> Str {
    value(Str::EMPTY, || Some(Str::of(&mutex.optional()?.name)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_ttl_ms(mutex: Lent<Mutex>, ttl_ms: u64) -> Code {
    let ttl = Duration::from_millis(ttl_ms);
    change(&mutex, |settings| Settings { plain: settings.plain.ttl(ttl), ..settings })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_fenced(mutex: Lent<Mutex>, enabled: c_int) -> Code {
    change(&mutex, |settings| Settings { is_fenced: enabled != 0, ..settings })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_watchdog(mutex: Lent<Mutex>, enabled: c_int) -> Code {
    match enabled {
        0 => change(&mutex, |settings| Settings { watchdog: None, ..settings }),
        _ => change_watchdog(&mutex, |watchdog| watchdog),
    }
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_watchdog_period_ms(mutex: Lent<Mutex>, period_ms: u64) -> Code {
    change_watchdog(&mutex, |watchdog| watchdog.period(Duration::from_millis(period_ms)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_watchdog_notify_before_ms(mutex: Lent<Mutex>, margin_ms: u64) -> Code {
    change_watchdog(&mutex, |watchdog| watchdog.notify_before(Duration::from_millis(margin_ms)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_watchdog_max_extensions(mutex: Lent<Mutex>, extensions: u32) -> Code {
    change_watchdog(&mutex, |watchdog| watchdog.max_extensions(extensions))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_set_watchdog_max_duration_ms(mutex: Lent<Mutex>, time_ms: u64) -> Code {
    change_watchdog(&mutex, |watchdog| watchdog.max_duration(Duration::from_millis(time_ms)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_lock(
    mutex: Lent<Mutex>,
    cancel: Lent<Cancel>,
    guard: Output<*const Guard>,
    error: Output<*const Report>,
) -> Code {
    enter(error, || {
        let wait = ended_by(&cancel, Wait::forever());
        mutex.content("mutex")?.take(guard, |mutex| {
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
    mutex: Lent<Mutex>,
    guard: Output<*const Guard>,
    error: Output<*const Report>,
) -> Code {
    enter(error, || mutex.content("mutex")?.take(guard, |mutex| Ok(mutex.try_lock()?)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_lock_timeout(
    mutex: Lent<Mutex>,
    timeout_ms: u64,
    cancel: Lent<Cancel>,
    guard: Output<*const Guard>,
    error: Output<*const Report>,
) -> Code {
    enter(error, || {
        let wait = ended_by(&cancel, Wait::timeout(Duration::from_millis(timeout_ms)));
        mutex.content("mutex")?.take(guard, |mutex| Ok(mutex.lock_with(&wait)?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_lock_deadline(
    mutex: Lent<Mutex>,
    deadline_ms: u64,
    cancel: Lent<Cancel>,
    guard: Output<*const Guard>,
    error: Output<*const Report>,
) -> Code {
    enter(error, || {
        let left = Duration::from_millis(deadline_ms.saturating_sub(now_millis()));
        let wait = ended_by(&cancel, Wait::timeout(left));
        mutex.content("mutex")?.take(guard, |mutex| Ok(mutex.lock_with(&wait)?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_attach(
    mutex: Lent<Mutex>,
    lease: Lent<Lease>,
    guard: Output<*const Guard>,
    error: Output<*const Report>,
) -> Code {
    enter(error, || {
        let mutex = mutex.content("mutex")?;
        let lease = lease.content("lease")?;
        mutex.take(guard, |mutex| Ok(Some(mutex.attach(lease.take()?)?)))
    })
}
