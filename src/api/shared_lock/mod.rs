//! A lock that is held once, however many guards share it: the levels of an owner, or the threads
//! that read.

mod joining;
pub(super) mod losses;

use super::held_lock::HeldLock;
use crate::algorithm::lease::Ttl;
use crate::algorithm::time::Timestamp;
use crate::api::watchdog::Watchdog;
use crate::engine::swept_table::{InUse, SweptTable};
use crate::events::error::Result;
use crate::os::sync::{self, lock};
use losses::{LossTable, Registered};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// When the nodes were last asked for a lock as for a new one.
#[derive(Clone, Copy)]
struct Asked {
    at: Timestamp,
    answered_at: Timestamp,
}

/// A lock that is held, once. Its guards share it.
pub(crate) struct SharedLock {
    pub(crate) held: HeldLock,
    /// When the nodes were last asked for it as for a new lock.
    asked: sync::Mutex<Asked>,
    /// Set if guards of the lock have callbacks for its loss.
    losses: OnceLock<Arc<LossTable>>,
}

/// The leases to read that the threads of a client share, by their keys.
#[derive(Default)]
pub(crate) struct SharedLocks {
    table: sync::Mutex<SweptTable<Arc<str>, Weak<SharedLock>>>,
    /// Those in whose place others were entered, while they are held.
    replaced: sync::Mutex<Vec<(Arc<str>, Weak<SharedLock>)>>,
}

impl SharedLocks {
    /// The lease for a key, if a thread has it.
    pub(crate) fn find(&self, key: &Arc<str>) -> Option<Arc<SharedLock>> {
        lock(&self.table).get(key).and_then(Weak::upgrade)
    }

    /// Enters a lease, in place of an earlier one.
    pub(crate) fn insert(&self, key: &Arc<str>, shared: &Arc<SharedLock>) {
        let replaced = lock(&self.table).insert(Arc::clone(key), Arc::downgrade(shared));
        if let Some(replaced) = replaced.filter(InUse::is_in_use) {
            let mut all = lock(&self.replaced);
            all.retain(|(_, other)| other.is_in_use());
            all.push((Arc::clone(key), replaced));
        }
    }

    /// The keys of the leases that are held.
    pub(crate) fn held(&self) -> Vec<Arc<str>> {
        let table = lock(&self.table);
        let replaced = lock(&self.replaced);
        let replaced = replaced.iter().map(|(key, shared)| (key, shared));
        table
            .entries()
            .chain(replaced)
            .filter(|(_, shared)| shared.is_in_use())
            .map(|(key, _)| Arc::clone(key))
            .collect()
    }
}

impl SharedLock {
    /// A lock that was acquired.
    pub(crate) fn new(held: HeldLock) -> Arc<SharedLock> {
        SharedLock::asked_at(held.taken_at(), held)
    }

    /// A lock that is held, and that the nodes were asked for at this time.
    pub(crate) fn asked_at(at: Timestamp, held: HeldLock) -> Arc<SharedLock> {
        let asked = sync::Mutex::new(Asked {
            at,
            answered_at: held.client.engine.now(),
        });
        Arc::new(SharedLock {
            held,
            asked,
            losses: OnceLock::new(),
        })
    }

    /// Prepares another level, which is to last for so long, and to be extended so.
    pub(crate) fn enter(&self, ttl: Ttl, watchdog: Option<&Watchdog>) -> Result<()> {
        self.held.client.check_process()?;
        // Also where nothing has to be extended: a callback of an extension has no level of its
        // own.
        drop(self.held.at_rest()?);
        let duration = ttl.duration();
        // The same function over and over sends nothing: a watchdog, too, leaves two thirds.
        let is_short = duration > self.held.ttl() || self.held.ensure(duration * 2 / 3).is_err();
        if is_short {
            self.held.ensure(Duration::ZERO)?;
            self.held.extend_or_fail(duration)?;
            // The lease may have ended while an observer ran.
            self.held.ensure(Duration::ZERO)?;
        }
        match watchdog {
            Some(watchdog) => {
                let _free = self.held.at_rest()?;
                self.held.extend_automatically(watchdog, self.longer(ttl)?)
            }
            None => Ok(()),
        }
    }

    /// This time to live, or the one that other guards rely on, if that is longer.
    fn longer(&self, ttl: Ttl) -> Result<Ttl> {
        let relied_on = self.held.ttl();
        self.held.client.checked_ttl(relied_on.max(ttl.duration()))
    }

    /// Has a guard's callback called when the lock is lost.
    pub(super) fn register(&self, callback: &Arc<Registered>) -> Result<()> {
        if self.losses.get().is_none() {
            let table = Arc::new(LossTable(sync::Mutex::new(Some(Vec::new()))));
            let all = Arc::clone(&table);
            self.held.on_lost(Box::new(move || all.run_all()))?;
            // If another thread has set a table meanwhile, nothing is called twice.
            self.losses.get_or_init(|| table);
        }
        self.losses
            .get()
            .into_iter()
            .for_each(|table| table.add(callback));
        Ok(())
    }
}
