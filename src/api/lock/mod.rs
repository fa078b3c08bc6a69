//! A lock of any kind: its names, its settings, and how it is taken.

mod account;
mod attach;
mod attempts;
mod call;
pub(crate) mod holder;
mod levels;
mod queueing;
mod reading;
mod search;
mod slots;
mod taking;

use crate::algorithm::fence::FencingToken;
use crate::algorithm::kind::Kind;
use crate::algorithm::lease::{Ttl, Validity};
use crate::algorithm::time::{Human, LeaseTime};
use crate::api::client::Client;
use crate::api::held_lock::HeldLock;
use crate::api::shared_lock::SharedLocks;
use crate::api::watchdog::Watchdog;
use crate::engine::calls::AttemptRecord;
use crate::engine::local_queue::{HoldId, LocalLock};
use crate::events::error::{Result, config_error};
use crate::events::spans::{HoldSpan, SpanLink, WaitSpan};
use crate::protocol::key_space;
use crate::protocol::kinds::{self, fenced};
use crate::protocol::lock_key::{LockKey, MOST_KEYS};
use slots::{MOST_PERMITS, PermitSlots};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Longest name, in bytes: longer ones are mistakes, and would be sent to every node with every
/// command.
const MAX_NAME: usize = 4096;

/// A lock by name, with settings.
#[derive(Clone)]
pub(crate) struct Lock {
    pub(super) client: Client,
    /// Its key, and the queues of threads that want it.
    local: LocalLock,
    kind: Kind,
    /// Set for a semaphore. The key is only its name then, and is never set.
    permits: Option<PermitSlots>,
    /// For a read-write lock: the leases to read that threads of the client share.
    reads: Option<Arc<SharedLocks>>,
    /// Why no lock can have its name, if so.
    refusal: Option<Arc<str>>,
    pub(super) is_fair: bool,
    is_reentrant: bool,
    pub(super) ttl: Duration,
    pub(super) watchdog: Option<Watchdog>,
    pub(super) min_hold: Duration,
}

impl Lock {
    /// The lock of a name.
    pub(super) fn plain(client: &Client, name: &str) -> Lock {
        Lock::of(
            client,
            LockKey::behind(&client.names.prefix, name),
            Kind::Plain,
        )
    }

    /// The lock of a name, of a kind whose keys have a marker. `reads`: of a read-write lock.
    pub(super) fn marked(
        client: &Client,
        name: &str,
        kind: Kind,
        reads: &Arc<SharedLocks>,
    ) -> Lock {
        let key = kinds::keys(kind).key(&client.names.prefix, name);
        Lock {
            reads: Some(Arc::clone(reads)),
            ..Lock::of(client, LockKey::One(key.into()), kind)
        }
    }

    /// The lock of several names.
    pub(super) fn set(client: &Client, names: impl IntoIterator<Item = impl AsRef<str>>) -> Lock {
        Lock::of(
            client,
            LockKey::of(&client.names.prefix, names),
            Kind::Plain,
        )
    }

    /// The lock of any of several slots. `permits` is as the program has given it: it may be
    /// unusable.
    pub(super) fn semaphore(client: &Client, name: &str, permits: usize) -> Lock {
        let lock = Lock::plain(client, name);
        let kind = Kind::Permit(u16::try_from(permits.min(MOST_PERMITS)).unwrap_or_default());
        let permits = PermitSlots::new(client, lock.key().title(), permits);
        Lock {
            kind,
            permits: Some(permits),
            ..lock
        }
    }

    fn of(client: &Client, key: LockKey, kind: Kind) -> Lock {
        Lock {
            client: client.clone(),
            local: client.local_lock(&key),
            kind,
            permits: None,
            reads: None,
            refusal: refusal(client, &key, kind).map(Arc::from),
            is_fair: false,
            is_reentrant: false,
            ttl: client.settings.default_ttl(),
            watchdog: None,
            min_hold: Duration::ZERO,
        }
    }

    /// The same lock with a number for each acquisition.
    pub(super) fn fenced(mut self) -> Lock {
        let floor = FencingToken::saturating(0);
        self.kind = if let Kind::Plain = self.kind {
            let key = LockKey::One(fenced::KEYS.key("", self.key().title()).into());
            self.local = self.client.local_lock(&key);
            Kind::Fenced(floor)
        } else {
            self.kind.with_fence(floor)
        };
        self
    }

    /// The same lock, which its owner may take again.
    pub(super) fn reentrant(self) -> Lock {
        Lock {
            is_reentrant: true,
            ..self
        }
    }

    pub(super) fn key(&self) -> &LockKey {
        self.local.key()
    }

    /// The name without the prefix; of a set, its names.
    pub(super) fn name(&self) -> &str {
        self.client.resource(self.key().title())
    }

    /// How many permits a semaphore has, as the program has given it.
    pub(super) fn permits(&self) -> usize {
        self.permits.as_ref().map_or(0, |permits| permits.count)
    }

    /// The keys of the lock. A semaphore has one for each slot.
    pub(super) fn keys(&self) -> &[Arc<str>] {
        match &self.permits {
            Some(permits) => &permits.keys,
            None => self.key().each(),
        }
    }

    /// Whether it is of several names.
    fn is_set(&self) -> bool {
        matches!(self.local, LocalLock::Set(_))
    }

    /// Checks the name and the settings, and starts the thread of the watchdog if there is to be
    /// one.
    fn prepare(&self) -> Result<Ttl> {
        self.check()?;
        let ttl = self.client.checked_ttl(self.ttl)?;
        if self.min_hold > self.client.settings.max_ttl {
            let [time, longest] = [self.min_hold, self.client.settings.max_ttl].map(Human);
            let message = format!(
                "min_hold of {time} is longer than max_ttl ({longest}): raise max_ttl to {time} in every client of \
                 these nodes"
            );
            return Err(config_error(message));
        }
        if let Some(watchdog) = &self.watchdog {
            watchdog.check(ttl)?;
            self.client.start_watchdog_thread()?;
        }
        Ok(ttl)
    }

    fn check(&self) -> Result<()> {
        let unusable = self
            .permits
            .as_ref()
            .filter(|permits| !(1..=MOST_PERMITS).contains(&permits.count));
        let refusal = if let Some(refusal) = &self.refusal {
            refusal.as_ref().to_owned()
        } else if let Some(permits) = unusable {
            format!(
                "a semaphore of {} permits; it must have 1 to {MOST_PERMITS}",
                permits.count
            )
        } else if self.is_fair && !self.client.engine.has_messages() {
            "a fair lock needs release notifications, which this client does without: remove \
             release_notifications(false)"
                .to_owned()
        } else {
            return Ok(());
        };
        Err(config_error(refusal))
    }

    /// Keeps what was taken, or is shared, at this time for the least time of this lock.
    fn keep(&self, held: &HeldLock, taken_at: impl FnOnce() -> LeaseTime) {
        if !self.min_hold.is_zero() {
            held.keep_until(taken_at().after(self.min_hold));
        }
    }

    /// A call for the lock begins.
    fn begin_call(&self) -> Result<WaitSpan> {
        self.client.check_process()?;
        let names = &self.client.names;
        Ok(WaitSpan::begin(names, self.key(), self.kind))
    }

    /// Makes what is held of a lock, or of a slot, that was acquired, or attached to. Threads of
    /// this client know of the hold.
    fn hold(
        &self,
        local: &LocalLock,
        record: AttemptRecord,
        lease: Validity,
        ttl: Ttl,
        link: SpanLink,
    ) -> HeldLock {
        let client = &self.client;
        let hold = HoldId::of(&record.token);
        let watched = self.watchdog.as_ref().map(|watchdog| {
            let extension = watchdog.extension_of(ttl, record.t0.lease, hold);
            client
                .watchdog_thread
                .watch(local, &record, lease, Some(extension), false)
        });
        // Readers have theirs with their share of the lease.
        let span = if record.kind == Kind::Read {
            HoldSpan::NONE
        } else {
            HoldSpan::begin(&client.names, local.key(), record.kind, link)
        };
        HeldLock::new(client.clone(), local.clone(), record, lease, ttl, span).watched(watched)
    }
}

/// Why a lock of this kind cannot have this key, if so.
fn refusal(client: &Client, key: &LockKey, kind: Kind) -> Option<String> {
    let marker = kinds::keys(kind).marker;
    let keys = key.each();
    let is_long = |name: &&str| name.is_empty() || name.len() > MAX_NAME;
    let reserved = |key: &Arc<str>| key_space::reserved(&key[marker.len()..]);
    if keys.is_empty() || keys.len() > MOST_KEYS {
        Some(format!(
            "a set of {} resources; it must have 1 to {MOST_KEYS}",
            keys.len()
        ))
    } else if let Some(name) = client.resources(key).find(is_long) {
        Some(format!(
            "a resource name of {} bytes; it must have 1 to {MAX_NAME}",
            name.len()
        ))
    } else {
        keys.iter().find_map(reserved).map(|(beginning, what)| {
            format!(
                "a prefix and resource name that begin with {beginning:?}, which is reserved for {what}s"
            )
        })
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex")
            .field("name", &self.name())
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}
