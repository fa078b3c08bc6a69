//! What one call that wants a lock asks for.

use super::slots::PermitSlots;
use crate::algorithm::acquire::WaitLimit;
use crate::algorithm::fence::FencingToken;
use crate::algorithm::kind::{Access, Kind};
use crate::algorithm::label::HolderLabel;
use crate::algorithm::lease::Ttl;
use crate::algorithm::time::{LeaseTime, Readings, Timestamp};
use crate::api::client::Client;
use crate::api::watchdog::Watchdog;
use crate::engine::local_queue::{LocalLock, QueuePosition, QueueTicket};
use crate::events::error::{Error, ErrorKind};
use crate::os::clock;
use crate::protocol::lock_key::LockKey;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

/// One call that wants a lock.
#[derive(Clone, Copy)]
pub(super) struct LockCall<'m> {
    pub(super) client: &'m Client,
    /// Its key, and the queues of threads that want it.
    pub(super) local: &'m LocalLock,
    pub(super) ttl: Ttl,
    pub(super) watchdog: Option<&'m Watchdog>,
    pub(super) is_fenced: bool,
    pub(super) is_fair: bool,
    /// What is asked for of a read-write lock, if it is one.
    pub(super) access: Option<Access>,
    pub(super) min_hold: Duration,
    pub(super) limit: WaitLimit,
    pub(super) called_at: Readings,
    /// The time from which the wait for an available quorum counts.
    pub(super) started: Timestamp,
    /// The slots of a semaphore, if any of them will do. The key is that of the semaphore then, or of the slot that is
    /// tried.
    pub(super) permits: Option<&'m PermitSlots>,
}

impl<'m> LockCall<'m> {
    pub(super) fn key(&self) -> &'m LockKey {
        self.local.key()
    }

    /// The name of the resource, without the prefix.
    pub(super) fn resource(&self) -> &str {
        self.client.resource(self.key().title())
    }

    /// The kind of the lock, as an attempt asks for it that begins now.
    pub(super) fn kind(&self) -> Kind {
        match self.access {
            Some(Access::Read) => Kind::Read,
            Some(Access::Write) => Kind::Write(self.is_fenced.then(wall_clock)),
            None if self.is_fenced => Kind::Fenced(wall_clock()),
            None => self.permits.map_or(Kind::Plain, |permits| Kind::Permit(permits.keys().len() as u16)),
        }
    }

    /// Whether it is for several resources.
    pub(super) fn is_set(&self) -> bool {
        matches!(self.local, LocalLock::Set(_))
    }

    /// Whether every attempt is made in the call's turn.
    pub(super) fn is_in_turn(&self) -> bool {
        self.is_fair || self.access.is_some()
    }

    /// The label of this client. Entries of read-write locks have none.
    pub(super) fn label(&self) -> HolderLabel {
        if self.access.is_some() { HolderLabel::NONE } else { self.client.settings().label.clone() }
    }

    /// The keys that a wait is for: the slots of a semaphore, the key of a set with this index, or all of them.
    pub(super) fn awaited_keys(&self, index: Option<usize>) -> &'m [Arc<str>] {
        let keys = self.key().each();
        self.permits.map_or(index.map_or(keys, |index| slice::from_ref(&keys[index])), PermitSlots::keys)
    }

    /// Whether an interrupt of the wait is a reason to ask: of a semaphore, that a thread of this client has released a
    /// slot.
    pub(super) fn has_slot_handed_on(&self) -> bool {
        self.permits.is_none_or(|permits| permits.has_first_choice())
    }

    /// The position in the queue, with regard to the slots of a semaphore that are held here.
    pub(super) fn position(&self, ticket: &QueueTicket<'_>, now: LeaseTime) -> QueuePosition {
        self.permits.map_or_else(|| ticket.position(now), |permits| permits.position(ticket.position(now), now))
    }

    /// The lock that this thread has, if the call waits for that: one of a set, or all permits of a semaphore, which
    /// have no key of their own. And until when.
    pub(super) fn held_by_this_thread(&self, now: LeaseTime) -> Option<(Option<&'m Arc<str>>, LeaseTime)> {
        match self.permits {
            Some(permits) => LocalLock::held_by_this_thread_until(permits.locks(), now).map(|until| (None, until)),
            None => {
                let mut queues = self.key().each().iter().zip(self.local.queues());
                queues.find_map(|(key, queue)| Some((Some(key), queue.held_by_this_thread_until(now)?)))
            }
        }
    }

    /// The error of a wait that was cancelled.
    pub(super) fn cancelled(&self) -> Error {
        Error::new(ErrorKind::Cancelled, format!("the wait for {:?} was cancelled", self.resource()))
    }
}

/// Microseconds since 1970, by the wall clock of this machine, as far as a fence can count.
fn wall_clock() -> FencingToken {
    let time = clock::since_epoch().as_micros();
    FencingToken::saturating(u64::try_from(time).unwrap_or(u64::MAX))
}
