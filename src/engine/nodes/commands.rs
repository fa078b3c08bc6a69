//! Commands about a key: the one place that makes them and queues them on connections, for locks of all kinds alike.

use crate::algorithm::fence::FencingToken;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::lock_kind::LockKind;
use crate::algorithm::node::NodeSet;
use crate::algorithm::place::{Departure, PlaceId, PlaceRequest};
use crate::algorithm::time::Timestamp;
use crate::engine::node_connection::NodeConnection;
use crate::engine::nodes::submission::LeaseRequest;
use crate::engine::rounds::Round;
use crate::protocol::fair_operation::FairOperation;
use crate::protocol::operation::{FenceRequest, Operation, ReadWriteOperation};
use crate::protocol::publish::Hint;
use crate::protocol::session::{EncodedOperation, SentOperation, Ticket};
use std::time::Duration;

/// What an attempt does where it is refused.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Attempt<'a> {
    /// Whether a node also says which holder has this key, and for how long.
    pub(in crate::engine) asks_for_holder: Option<&'a [u8]>,
    /// Whether a writer keeps new readers out until its next attempt: one that waits does.
    pub(in crate::engine) leaves_mark: bool,
    /// Of a fair lock: the place that it takes.
    pub(in crate::engine) place: Option<PlaceRequest>,
}

impl Attempt<'_> {
    /// One that does nothing.
    pub(in crate::engine) const FIRST: Attempt<'static> =
        Attempt { asks_for_holder: None, leaves_mark: false, place: None };
}

/// An operation on one key, or on those of a set, for one round.
#[derive(Clone, Copy)]
pub(super) struct Command<'c> {
    pub(super) sent: SentOperation,
    pub(super) key: &'c [u8],
    pub(super) token: &'c OwnerToken,
    /// Of an acquire: the key of which a node that refuses is also asked which holder has it, and for how long.
    pub(super) asks_for_holder: Option<&'c [u8]>,
}

impl<'c> Command<'c> {
    /// The command of an operation that needs no further answer.
    pub(super) fn new(ticket: Ticket, key: &'c [u8], token: &'c OwnerToken, operation: Operation) -> Command<'c> {
        Command { sent: SentOperation::new(ticket, operation), key, token, asks_for_holder: None }
    }

    /// Queues the command on one connection.
    pub(super) fn queue(&self, connection: &mut NodeConnection, now: Timestamp, encoded: &mut EncodedOperation) {
        let Command { ref sent, key, token, asks_for_holder } = *self;
        if !sent.is_release() {
            connection.note_request(now);
        }
        connection.session.queue(sent, (key, token), now, encoded);
        // The voter answers: one key ends once. A node says by itself for how long a read-write lock is held.
        if let Some(asked) = asks_for_holder
            && !matches!(sent.operation(), Operation::ReadWrite(_))
            && !connection.is_duplicate()
        {
            connection.session.ask_for_held_keys(sent.ticket(), key, now);
            connection.session.ask_for_holder(sent.ticket(), asked, sent.operation().fence().is_some(), now);
        }
    }
}

/// What was queued and not written yet.
pub(super) struct Commands {
    /// For how long nodes keep the key of a fenced lock.
    retention_millis: u64,
    /// For how long a writer that waits keeps new readers out.
    mark_millis: u64,
    /// Whether releases are published.
    publishes: bool,
    unsent: NodeSet,
    /// When the latest of those commands was queued.
    queued_at: Timestamp,
    /// Of the latest command; kept for its memory.
    encoded: EncodedOperation,
}

impl Commands {
    pub(super) fn new(retention: Duration, place_lease: Duration, publishes: bool) -> Commands {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Commands {
            retention_millis: millis(retention),
            mark_millis: millis(place_lease),
            publishes,
            unsent: NodeSet::EMPTY,
            queued_at: Timestamp::ORIGIN,
            encoded: EncodedOperation::default(),
        }
    }

    /// Queues a command on these connections.
    pub(super) fn queue(
        &mut self,
        command: &Command<'_>,
        connections: &mut [NodeConnection],
        nodes: NodeSet,
        now: Timestamp,
    ) {
        self.encoded.clear();
        for node in nodes.iter() {
            command.queue(&mut connections[node.index()], now, &mut self.encoded);
        }
        self.note_queued(nodes, now);
    }

    /// The operation that begins a lock.
    pub(super) fn acquire(&self, request: &LeaseRequest<'_>, attempt: Attempt<'_>) -> Operation {
        let &LeaseRequest { kind, ttl_millis, .. } = request;
        let mark_millis = if attempt.leaves_mark { self.mark_millis } else { 0 };
        if let (LockKind::Fair { prefix, .. }, Some(place)) = (kind, attempt.place) {
            let (hint, fence) = (self.publishes.then(Hint::default), self.fence(kind));
            return Operation::Fair(FairOperation::Take { ttl_millis, place, hint, prefix, fence });
        }
        match kind {
            LockKind::ReadWrite { access, .. } => {
                let fence = self.fence(kind);
                Operation::ReadWrite(ReadWriteOperation::Acquire { access, ttl_millis, mark_millis, fence })
            }
            _ => Operation::Acquire { ttl_millis, fence: self.fence(kind) },
        }
    }

    /// The operation that lets a lock last longer.
    pub(super) fn extend(&self, kind: LockKind, ttl_millis: u64) -> Operation {
        match kind {
            LockKind::ReadWrite { access, .. } => {
                Operation::ReadWrite(ReadWriteOperation::Extend { access, ttl_millis, fence: self.fence(kind) })
            }
            _ => Operation::Extend { ttl_millis, fence: self.fence(kind) },
        }
    }

    /// The operation that raises the fence of a lock that was granted with less.
    pub(super) fn raise(&self, kind: LockKind, least: FencingToken) -> Operation {
        let fence = FenceRequest { least, retention_millis: self.retention_millis };
        match kind {
            LockKind::ReadWrite { .. } => Operation::ReadWrite(ReadWriteOperation::Raise(fence)),
            _ => Operation::Raise(fence),
        }
    }

    /// The operation that ends a lock. `undoes`: of the call for a fair lock that has not won it.
    pub(super) fn release(&self, kind: LockKind, hint: Option<Hint>, undoes: Option<PlaceId>) -> Operation {
        match kind {
            // Without a hint, the queue need not be looked at.
            LockKind::Fair { prefix, .. } if hint.is_some() => {
                Operation::Fair(FairOperation::Release { hint, undoes, prefix, fence: self.fence(kind) })
            }
            LockKind::ReadWrite { .. } => Operation::ReadWrite(ReadWriteOperation::Release { hint }),
            _ => Operation::Release { hint, fence: self.fence(kind) },
        }
    }

    /// The operation that deletes a place in the queue of a fair lock, and may put one at the end for another call.
    pub(super) fn leave(&self, kind: LockKind, id: PlaceId, departure: Departure) -> Option<Operation> {
        let LockKind::Fair { prefix, .. } = kind else { return None };
        let lasts_millis = u32::try_from(self.mark_millis).unwrap_or(u32::MAX);
        let (hint, successor) = match departure {
            Departure::GivenUp => (self.publishes.then(Hint::default), None),
            Departure::Won(successor) => (None, successor.map(|successor| (successor, lasts_millis))),
        };
        Some(Operation::Fair(FairOperation::Leave { id, successor, hint, prefix, fence: self.fence(kind) }))
    }

    /// What makes an operation one on a fenced lock.
    fn fence(&self, kind: LockKind) -> Option<FenceRequest> {
        kind.fence().map(|least| FenceRequest { least, retention_millis: self.retention_millis })
    }

    /// Queues the release of a round once more, on another connection or after a pause.
    pub(super) fn resend_release(
        &self,
        connection: &mut NodeConnection,
        ticket: Ticket,
        round: &Round,
        now: Timestamp,
    ) {
        let operation = self.release(round.kind(), None, None);
        Command::new(ticket, round.key(), round.token(), operation).queue(
            connection,
            now,
            &mut EncodedOperation::default(),
        );
    }

    /// Notes that something was queued for these nodes.
    pub(super) fn note_queued(&mut self, nodes: NodeSet, now: Timestamp) {
        self.unsent = self.unsent.union(nodes);
        self.queued_at = self.queued_at.max(now);
    }

    /// Notes that the connections of these nodes have opened, on which something was queued before.
    pub(super) fn note_opened(&mut self, nodes: NodeSet) {
        self.unsent = self.unsent.union(nodes);
    }

    /// Takes the nodes to write to, and when the latest command for them was queued.
    pub(super) fn take_unsent(&mut self) -> (NodeSet, Timestamp) {
        (std::mem::take(&mut self.unsent), self.queued_at)
    }
}

/// Queues an operation once more, in a dialect that it was not sent in yet.
pub(super) fn resend_in_dialect(connection: &mut NodeConnection, sent: SentOperation, round: &Round, now: Timestamp) {
    connection.session.ask_again(sent, round.key(), round.token(), now);
}
