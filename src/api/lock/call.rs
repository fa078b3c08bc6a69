//! What one call that wants a lock asks for.

use super::Lock;
use crate::algorithm::acquire::WaitLimit;
use crate::algorithm::fence::FencingToken;
use crate::algorithm::kind::Kind;
use crate::algorithm::label::HolderLabel;
use crate::algorithm::lease::Ttl;
use crate::algorithm::node::NodeSet;
use crate::algorithm::time::{LeaseTime, Timestamp};
use crate::api::client::Client;
use crate::api::held_lock::HeldLock;
use crate::engine::calls::AttemptRecord;
use crate::engine::local_queue::{LocalLock, QueuePosition, QueueTicket, Unavailability};
use crate::events::error::{Error, ErrorKind, Result};
use crate::os::clock;
use crate::protocol::lock_key::LockKey;
use crate::protocol::operation::Departure;
use std::slice;
use std::sync::Arc;

/// One call that wants a lock.
#[derive(Clone, Copy)]
pub(super) struct LockCall<'m> {
    pub(super) lock: &'m Lock,
    /// The key that is asked for, and the queues of threads that want it: the queues of the lock,
    /// or of the slot that is tried.
    pub(super) local: &'m LocalLock,
    pub(super) ttl: Ttl,
    pub(super) limit: WaitLimit,
    /// The time from which the wait for an available quorum counts.
    pub(super) started: Timestamp,
}

impl<'m> LockCall<'m> {
    pub(super) fn client(&self) -> &'m Client {
        &self.lock.client
    }

    pub(super) fn key(&self) -> &'m LockKey {
        self.local.key()
    }

    /// The name of the lock, or of the slot that is tried, without the prefix.
    pub(super) fn name(&self) -> &str {
        self.client().resource(self.key().title())
    }

    /// The kind of the lock, as an attempt asks for it that begins now.
    pub(super) fn kind(&self) -> Kind {
        let kind = self.lock.kind;
        if kind.is_fenced() {
            kind.with_fence(FencingToken::saturating(clock::micros_since_epoch()))
        } else {
            kind
        }
    }

    /// Until when the call may wait; `None` is not at all.
    pub(super) fn wait_deadline(&self) -> Option<Timestamp> {
        match self.limit {
            WaitLimit::Once => None,
            WaitLimit::Until(deadline) => Some(deadline).filter(|&until| until > self.started),
            WaitLimit::WhileAvailable(_) => Some(Timestamp::NEVER),
        }
    }

    /// Whether every attempt is made in the call's turn.
    pub(super) fn is_in_turn(&self) -> bool {
        self.lock.is_fair || self.lock.kind.is_read_write()
    }

    /// The label of this client. Entries of read-write locks have none.
    pub(super) fn label(&self) -> HolderLabel {
        match &self.client().settings.label {
            Some(label) if !self.lock.kind.is_read_write() => label.clone(),
            _ => HolderLabel::NONE,
        }
    }

    /// The keys that a wait is for: the slots of a semaphore, the key of a set with this index, or
    /// all of them.
    pub(super) fn awaited_keys(&self, index: Option<usize>) -> &'m [Arc<str>] {
        let keys = self.lock.keys();
        match index {
            Some(index) if self.lock.permits.is_none() => slice::from_ref(&keys[index]),
            _ => keys,
        }
    }

    /// Whether an interrupt of the wait is a reason to ask: of a semaphore, that a thread of this
    /// client has released a slot.
    pub(super) fn has_slot_handed_on(&self) -> bool {
        self.lock
            .permits
            .as_ref()
            .is_none_or(|permits| permits.slots.last_released(&permits.locks).is_some())
    }

    /// The position in the queue, with regard to the slots of a semaphore that are held here.
    pub(super) fn position(&self, ticket: &QueueTicket<'_>, now: LeaseTime) -> QueuePosition {
        let position = ticket.position(now);
        self.lock
            .permits
            .as_ref()
            .map_or(position, |permits| permits.position(position, now))
    }

    /// The lock that this thread has, if the call waits for that: one of a set, or all permits of a
    /// semaphore, which have no key of their own. And until when.
    pub(super) fn held_by_this_thread(
        &self,
        now: LeaseTime,
    ) -> Option<(Option<&'m Arc<str>>, LeaseTime)> {
        match &self.lock.permits {
            Some(permits) => {
                LocalLock::held_by_this_thread_until(&permits.locks, now).map(|until| (None, until))
            }
            None => {
                let mut queues = self.key().each().iter().zip(self.local.queues());
                queues.find_map(|(key, queue)| {
                    Some((Some(key), queue.held_by_this_thread_until(now)?))
                })
            }
        }
    }

    /// Queues the release of what an attempt may have set on these nodes.
    pub(super) fn undo(
        &self,
        record: &AttemptRecord,
        reached: NodeSet,
        departure: Option<Departure>,
    ) {
        if !reached.is_empty() {
            let attempt = AttemptRecord {
                reached,
                departure,
                ..record.clone()
            };
            let engine = &self.client().engine;
            engine.undo(self.key(), attempt, self.ttl.duration());
        }
    }

    /// Fails if the lock is not to be granted: a shutdown has begun, or its lease has ended while
    /// an observer ran, if one was told.
    pub(super) fn check_granted(&self, held: &HeldLock, is_told: bool) -> Result<()> {
        if self.client().shutdown.has_begun() {
            Err(self.cancelled())
        } else if is_told && held.is_over() {
            Err(Error::ended_meanwhile(self.name(), self.ttl.duration()))
        } else {
            Ok(())
        }
    }

    /// The error of a call that has not found out whether the lock is held.
    pub(super) fn unavailable(&self, found: Unavailability) -> Error {
        self.client().unavailable("lock", self.name(), found)
    }

    /// The error of a wait that was cancelled, or of a call whose client is shut down.
    pub(super) fn cancelled(&self) -> Error {
        if self.client().shutdown.has_begun() {
            return Error::shut_down("lock", self.name());
        }
        Error::new(
            ErrorKind::Cancelled,
            format!("the wait for {:?} was cancelled", self.name()),
        )
    }
}
