//! Attaching to a lock that is held already: a guard is made of a lease, and no node is asked.
//!
//! A lock that another client has taken has its keys on nodes that this client may never have
//! spoken to. So all nodes count as reached, and each one gets the release, now or when it is back.

use super::Lock;
use crate::algorithm::kind::Kind;
use crate::api::client::Client;
use crate::api::held::Held;
use crate::api::held_lock::HeldLock;
use crate::api::lease::DetachedLease;
use crate::api::owner;
use crate::api::shared_lock::{SharedLock, SharedLocks};
use crate::engine::local_queue::{HoldId, LocalLock};
use crate::events::error::{Error, ErrorKind, Result, config_error};
use crate::events::spans::SpanLink;
use crate::protocol::key_space;
use crate::protocol::kinds;
use crate::protocol::lock_key::LockKey;
use std::sync::Arc;
use std::time::SystemTime;

impl DetachedLease {
    /// The lock that it is of, with the time to live of the lease and otherwise default settings.
    pub(in crate::api) fn lock(
        &self,
        client: &Client,
        reads: &Arc<SharedLocks>,
        is_reentrant: bool,
    ) -> Result<Lock> {
        let key = &self.key;
        let prefix = &client.names.prefix;
        let marker = kinds::keys(self.kind).marker;
        let name = |key: &str| {
            key.strip_prefix(marker)?
                .strip_prefix(&**prefix)
                .map(str::to_owned)
        };
        let of_another = || {
            let message = format!(
                "the lease of {:?} does not have the prefix of this client",
                key.title()
            );
            config_error(message)
        };
        let names: Vec<String> = key
            .each()
            .iter()
            .map(|key| name(key))
            .collect::<Option<_>>()
            .ok_or_else(of_another)?;
        let lock = match (self.kind, key) {
            (Kind::Permit(permits), _) => {
                let semaphore = key_space::semaphore_of_slot(&names[0]).ok_or_else(of_another)?;
                Lock::semaphore(client, semaphore, permits.into())
            }
            // Its title leaves out the prefix behind the first name.
            (kind, LockKey::Set(_)) => Lock::of(client, LockKey::of(prefix, names), kind),
            (kind, LockKey::One(_)) => Lock::of(client, key.clone(), kind),
        };
        let reads = self.kind.is_read_write().then(|| Arc::clone(reads));
        Ok(Lock {
            is_reentrant,
            ttl: self.ttl(),
            reads,
            ..lock
        })
    }

    /// Makes what a guard holds of it, with the settings of this lock. Sends nothing.
    pub(in crate::api) fn attach_to(&self, lock: &Lock) -> Result<Held> {
        lock.client.check_process()?;
        let shutdown = &lock.client.shutdown;
        let check_granted = || match shutdown.has_begun() {
            true => Err(Error::shut_down("attach", lock.name())),
            false => Ok(()),
        };
        let _in_progress = shutdown.begin_call(true);
        check_granted()?;
        let held = self.held(lock)?;
        lock.client.report.attached(held.key().title());
        lock.client.report.deliver_queued();
        // A shutdown that has begun meanwhile does not see the guard: it is released.
        check_granted()?;
        Ok(match lock.kind {
            _ if lock.is_reentrant => Held::Shared(owner::of_thread().first_level(lock, held)),
            Kind::Read => Held::Shared(lock.share(SharedLock::new(held), SpanLink::NONE)),
            _ => lock.held_alone(held),
        })
    }

    fn held(&self, lock: &Lock) -> Result<HeldLock> {
        let client = &lock.client;
        let own = lock.prepare()?;
        let Some(local) = self.local_of(lock) else {
            let [lease, own] = [&self.key, lock.key()].map(|key| key.title());
            return Err(config_error(format!(
                "the lease of {lease:?} cannot be attached to {own:?}"
            )));
        };
        let ttl = client.checked_ttl(self.ttl())?;
        let now = client.engine.readings();
        let validity = self.validity(ttl, now.lease, SystemTime::now());
        if !validity.is_valid(now.lease) {
            let message = format!("the lease of {:?} has ended", self.key.title());
            return Err(Error::new(ErrorKind::LeaseLost, message));
        }
        let kind = if lock.permits.is_some() {
            lock.kind
        } else {
            self.kind
        };
        let claim = client.engine.adopt(self.token.clone(), kind);
        // No extension shortens a lease.
        let longest = match &lock.watchdog {
            Some(_) => own.max(ttl),
            None => ttl,
        };
        // A thread that waits to read shares the lease of one that reads.
        if lock.kind != Kind::Read {
            local.hold(HoldId::of(&claim.token), validity, now);
        }
        let held = lock.hold(local, claim, validity, longest, SpanLink::NONE);
        held.announce();
        Ok(held)
    }

    /// The lock that it is of, if that is this one or a slot of it.
    fn local_of<'l>(&self, lock: &'l Lock) -> Option<&'l LocalLock> {
        let kind = |kind: Kind| (kind.is_fenced(), kind.is_read_write(), kind == Kind::Read);
        let is_alike = kind(self.kind) == kind(lock.kind);
        let mut locks = lock
            .permits
            .as_ref()
            .map_or(std::slice::from_ref(&lock.local), |permits| &permits.locks)
            .iter();
        locks.find(|local| is_alike && *local.key() == self.key)
    }
}
