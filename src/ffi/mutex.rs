//! The lock of one resource, of several or of several slots, and the ways to take it.

use super::boundary::{calls, frees, parts};
use super::code::Code;
use super::failure::{Failure, Result};
use super::fork_safe_mutex::ForkSafeMutex;
use super::guard::GuardHandle;
use super::handle::{Borrowed, Output};
use super::lease::LeaseHandle;
use super::owner::{LockOwner, OwnerHandle};
use super::text::{Str, Texts};
use super::times::millis;
use super::version::now_millis;
use crate::kind::Any;
use crate::{CancelHandle, Holder, Mutex, Redlock, Wait, Watchdog};
use std::ffi::c_int;
use std::time::Duration;

/// `quorumlock_mutex`.
struct MutexHandle {
    /// With the settings of its client.
    lock: Mutex<Any>,
    /// As a program sees it.
    name: String,
    /// Whether it has one owner, and may be fair and reentrant: if it is plain or fenced.
    has_one_owner: bool,
    settings: ForkSafeMutex<Settings>,
}

/// As set so far.
#[derive(Clone)]
struct Settings {
    lock: Mutex<Any>,
    /// The owner of a reentrant mutex.
    owner: Option<LockOwner>,
}

impl MutexHandle {
    fn new(lock: Mutex<Any>, name: &str, has_one_owner: bool) -> Result<MutexHandle> {
        Ok(MutexHandle {
            name: name.to_owned(),
            has_one_owner,
            settings: ForkSafeMutex::new(Settings {
                lock: lock.clone(),
                owner: None,
            })?,
            lock,
        })
    }

    fn change(&self, change: impl FnOnce(Mutex<Any>) -> Mutex<Any>) -> Result<Code> {
        self.settings.check_process()?;
        let mut settings = self.settings.lock()?;
        settings.lock = change(settings.lock.clone());
        Ok(Code::Ok)
    }

    /// Changes the settings of the watchdog, and switches it on.
    fn watch(&self, with: impl FnOnce(Watchdog) -> Watchdog) -> Result<Code> {
        self.change(|lock| lock.watch(|watchdog| Some(with(watchdog))))
    }

    /// Refuses what only a plain or fenced lock has.
    fn check_has_one_owner(&self) -> Result<()> {
        if self.has_one_owner {
            return Ok(());
        }
        Err(Failure::new(
            Code::Config,
            "only a plain or fenced lock can be fair or reentrant, or asked for its holder",
        ))
    }

    /// Takes the lock, and writes its guard, or returns that another client holds it. Without a
    /// wait it makes one attempt.
    fn lock(&self, guard: Output<*const GuardHandle>, wait: Option<&Wait>) -> Result<Code> {
        let guard = guard.required("guard")?;
        // With a copy: a waiting thread holds nothing.
        let Settings { lock, owner } = self.settings.lock()?.clone();
        let taken = match (owner, wait) {
            (Some(owner), _) => owner.lock(|owner| lock.clone().lock_as(owner, wait))?,
            (None, Some(wait)) => lock.lock_with(wait)?,
            (None, None) => lock.try_lock()?,
        };
        let Some(taken) = taken else {
            return Ok(Code::Held);
        };
        guard.write_handle(GuardHandle::new(taken)?);
        Ok(Code::Ok)
    }
}

/// Ended by the handle, if there is one.
fn ended_by(cancel: &Borrowed<CancelHandle>, wait: Wait) -> Wait {
    match cancel.optional() {
        Some(cancel) => wait.cancelled_by(&cancel),
        None => wait,
    }
}

/// `quorumlock_holder`. It never changes.
struct HolderObject {
    holder: Holder,
    message: String,
}

impl From<Holder> for HolderObject {
    fn from(holder: Holder) -> HolderObject {
        HolderObject {
            message: holder.to_string(),
            holder,
        }
    }
}

frees! {
    quorumlock_mutex_free(MutexHandle);
    quorumlock_holder_free(HolderObject);
}

parts! { Borrowed<MutexHandle>:
    quorumlock_mutex_name() -> Str = |mutex| Str::of(&mutex.name);
}

parts! { Borrowed<HolderObject>:
    quorumlock_holder_message() -> Str = |of| Str::of(&of.message);
    quorumlock_holder_label() -> Str = |of| Str::of(of.holder.label().unwrap_or_default());
    quorumlock_holder_remaining_ms() -> u64 = |of| of.holder.remaining().map_or(u64::MAX, millis);
    quorumlock_holder_node_count() -> usize = |of| of.holder.nodes().len();
    quorumlock_holder_node(index: usize) -> Str =
        |of| of.holder.nodes().get(index).map(|node| Str::of(node)).unwrap_or_default();
}

calls! {
    fn quorumlock_client_mutex(
        &client: Redlock,
        *name[name_length],
        kind: c_int;
        new mutex: MutexHandle
    ) {
        // `quorumlock_lock_kind`.
        let lock = match kind {
            0 => client.mutex(name).erase(),
            1 => client.mutex(name).fenced().erase(),
            2 => client.read_mutex(name).erase(),
            3 => client.write_mutex(name).erase(),
            4 => client.write_mutex(name).fenced().erase(),
            _ => return Err(Failure::plain(Code::InvalidArgument)),
        };
        MutexHandle::new(lock, name, matches!(kind, 0 | 1))?
    }

    fn quorumlock_client_mutex_set(
        &client: Redlock,
        names: Texts,
        count: usize;
        new mutex: MutexHandle
    ) {
        let set = client.mutex_set(names.texts(count, "names")?);
        let name = set.name().to_owned();
        MutexHandle::new(set.erase(), &name, false)?
    }

    fn quorumlock_client_semaphore(
        &client: Redlock,
        *name[name_length],
        permits: usize;
        new mutex: MutexHandle
    ) {
        MutexHandle::new(client.semaphore(name, permits).erase(), name, false)?
    }

    fn quorumlock_mutex_set_ttl_ms(&mutex: MutexHandle, ttl_ms: u64) {
        mutex.change(|lock| lock.ttl(Duration::from_millis(ttl_ms)))
    }

    fn quorumlock_mutex_set_min_hold_ms(&mutex: MutexHandle, time_ms: u64) {
        mutex.change(|lock| lock.min_hold(Duration::from_millis(time_ms)))
    }

    fn quorumlock_mutex_set_fair(&mutex: MutexHandle, enabled: c_int) {
        mutex.check_has_one_owner()?;
        mutex.change(|lock| lock.fair(enabled != 0))
    }

    fn quorumlock_mutex_set_reentrant(&mutex: MutexHandle, owner: Borrowed<OwnerHandle>) {
        mutex.check_has_one_owner()?;
        mutex.settings.check_process()?;
        let owner = owner.optional().map_or(LockOwner::Thread, LockOwner::Object);
        mutex.settings.lock()?.owner = Some(owner);
        Ok(Code::Ok)
    }

    fn quorumlock_mutex_set_watchdog(&mutex: MutexHandle, enabled: c_int) {
        mutex.change(|lock| lock.watch(|watchdog| (enabled != 0).then_some(watchdog)))
    }

    fn quorumlock_mutex_set_watchdog_period_ms(&mutex: MutexHandle, period_ms: u64) {
        mutex.watch(|watchdog| watchdog.period(Duration::from_millis(period_ms)))
    }

    fn quorumlock_mutex_set_watchdog_notify_before_ms(&mutex: MutexHandle, margin_ms: u64) {
        mutex.watch(|watchdog| watchdog.notify_before(Duration::from_millis(margin_ms)))
    }

    fn quorumlock_mutex_set_watchdog_max_extensions(&mutex: MutexHandle, extensions: u32) {
        mutex.watch(|watchdog| watchdog.max_extensions(extensions))
    }

    fn quorumlock_mutex_set_watchdog_max_duration_ms(&mutex: MutexHandle, time_ms: u64) {
        mutex.watch(|watchdog| watchdog.max_duration(Duration::from_millis(time_ms)))
    }

    fn quorumlock_mutex_lock(
        &mutex: MutexHandle,
        timeout_ms: i64,
        cancel: Borrowed<CancelHandle>,
        guard: Output<*const GuardHandle>;
        error
    ) {
        let wait = match u64::try_from(timeout_ms) {
            Ok(limit) => Wait::timeout(Duration::from_millis(limit)),
            Err(_) => Wait::unlimited(),
        };
        mutex.lock(guard, Some(&ended_by(&cancel, wait)))
    }

    fn quorumlock_mutex_try_lock(&mutex: MutexHandle, guard: Output<*const GuardHandle>; error) {
        mutex.lock(guard, None)
    }

    fn quorumlock_mutex_lock_deadline(
        &mutex: MutexHandle,
        deadline_ms: u64,
        cancel: Borrowed<CancelHandle>,
        guard: Output<*const GuardHandle>;
        error
    ) {
        let left = Duration::from_millis(deadline_ms.saturating_sub(now_millis()));
        let wait = ended_by(&cancel, Wait::timeout(left));
        mutex.lock(guard, Some(&wait))
    }

    fn quorumlock_mutex_attach(
        &mutex: MutexHandle,
        &lease: LeaseHandle;
        new guard: GuardHandle;
        error
    ) {
        // No level of an owner: levels begin with a call that takes the lock.
        let lock = mutex.settings.lock()?.lock.clone();
        GuardHandle::new(lock.attach(lease.take()?)?)?
    }

    fn quorumlock_mutex_holder(&mutex: MutexHandle, holder: Output<*const HolderObject>; error) {
        let output = holder.required("holder")?;
        mutex.check_has_one_owner()?;
        let Some(holder) = mutex.lock.holder()? else {
            return Ok(Code::NotHeld);
        };
        output.write_handle(holder.into());
        Ok(Code::Ok)
    }
}
