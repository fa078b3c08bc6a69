//! Commands about a key: the one place that makes them, for locks of all kinds alike, and which
//! nodes they are to be written to.

use crate::algorithm::kind::Kind;
use crate::algorithm::node::NodeSet;
use crate::algorithm::queue::{QueueRound, TakeRequest, TicketRequest};
use crate::algorithm::time::Timestamp;
use crate::protocol::operation::{Operation, Verb};
use std::time::Duration;

/// How a call asks in its turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InTurn {
    pub(crate) request: TakeRequest,
    /// The greatest ticket that the client's clock explains.
    pub(crate) latest: u64,
}

impl InTurn {
    /// Without an entry: it is granted if no call is first.
    pub(crate) const AS_A_NEWCOMER: InTurn = InTurn {
        request: TakeRequest::WITHOUT_ENTRY,
        latest: u64::MAX,
    };

    /// The round that collects the replies.
    pub(super) fn round(&self) -> QueueRound {
        let own = if let TicketRequest::Fixed(ticket) = self.request.ticket {
            Some(ticket)
        } else {
            None
        };
        QueueRound::new(own, self.latest).by_command(self.request.by_command)
    }
}

/// What was queued and not written yet.
pub(super) struct Commands {
    /// For how long nodes keep the key of a fenced lock.
    retention_millis: u64,
    /// The nodes to write to.
    pub(super) unsent: NodeSet,
    /// When the latest command for them was queued.
    pub(super) queued_at: Timestamp,
}

impl Commands {
    pub(super) fn new(retention: Duration) -> Commands {
        Commands {
            retention_millis: u64::try_from(retention.as_millis()).unwrap_or(u64::MAX),
            unsent: NodeSet::EMPTY,
            queued_at: Timestamp::ORIGIN,
        }
    }

    /// What is asked of a lock of this kind.
    pub(super) fn operation(&self, kind: Kind, verb: Verb) -> Operation {
        Operation {
            verb,
            kind,
            retention_millis: self.retention_millis,
        }
    }

    /// Something was queued for these nodes.
    pub(super) fn on_queued(&mut self, nodes: NodeSet, now: Timestamp) {
        self.unsent = self.unsent.union(nodes);
        self.queued_at = self.queued_at.max(now);
    }
}
