//! The kinds of faults, and when each of them strikes.

use crate::refusals::Refusal;
use quorumlock::embedded::Condition;

#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) at: u64,
    pub(crate) kind: Kind,
}

/// What a node that comes back has of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    Kept,
    Lost,
    /// What was saved last, or nothing.
    Saved,
    /// The same, of another node that was its replica and is a master now.
    OfReplica,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Block {
        client: Option<usize>,
        node: Option<usize>,
        directions: [bool; 2],
        time: u64,
    },
    Condition {
        node: usize,
        condition: Condition,
        time: u64,
    },
    Crash {
        node: usize,
        time: u64,
        data: Data,
        is_dark: bool,
    },
    Cut {
        client: Option<usize>,
        node: usize,
    },
    /// The subscriber connections of clients.
    CutSubscribers {
        client: Option<usize>,
        node: usize,
    },
    Evict {
        node: usize,
    },
    /// All keys are deleted.
    Flush {
        node: usize,
    },
    ForgetScripts {
        node: usize,
    },
    Hang {
        node: usize,
        time: u64,
    },
    Leave {
        client: usize,
    },
    /// The queues of locks are deleted.
    LoseQueues {
        node: usize,
    },
    Pause {
        client: usize,
        time: u64,
    },
    Refuse {
        node: usize,
        refusal: Refusal,
        time: u64,
    },
    /// The node is a replica of one that has what was saved last, or nothing, and then a master
    /// again.
    Resync {
        node: usize,
        time: u64,
    },
    /// A copy of the node's data is made.
    Save {
        node: usize,
    },
    SetNodeClock {
        node: usize,
        by: i64,
    },
    SetWallClock {
        client: usize,
        by: i64,
    },
    /// The client whose entry is the first of a queue is stopped for so long, or killed.
    StopFirst {
        node: usize,
        time: Option<u64>,
    },
    Sleep {
        client: usize,
        time: u64,
    },
    Void {
        client: usize,
        node: usize,
    },
}

impl Kind {
    /// The client that it strikes, if it is one.
    pub(crate) fn client(&mut self) -> Option<&mut usize> {
        match self {
            Kind::Block { client, .. }
            | Kind::Cut { client, .. }
            | Kind::CutSubscribers { client, .. } => client.as_mut(),
            Kind::Leave { client }
            | Kind::Pause { client, .. }
            | Kind::SetWallClock { client, .. }
            | Kind::Sleep { client, .. }
            | Kind::Void { client, .. } => Some(client),
            _ => None,
        }
    }

    /// The node that it strikes, if it is one.
    pub(crate) fn node(&mut self) -> Option<&mut usize> {
        match self {
            Kind::Block { node, .. } => node.as_mut(),
            Kind::Condition { node, .. }
            | Kind::Crash { node, .. }
            | Kind::Cut { node, .. }
            | Kind::CutSubscribers { node, .. }
            | Kind::Evict { node }
            | Kind::Flush { node }
            | Kind::ForgetScripts { node }
            | Kind::Hang { node, .. }
            | Kind::LoseQueues { node }
            | Kind::Refuse { node, .. }
            | Kind::Resync { node, .. }
            | Kind::Save { node }
            | Kind::SetNodeClock { node, .. }
            | Kind::StopFirst { node, .. }
            | Kind::Void { node, .. } => Some(node),
            Kind::Leave { .. }
            | Kind::Pause { .. }
            | Kind::SetWallClock { .. }
            | Kind::Sleep { .. } => None,
        }
    }

    /// Whether a node loses what it has.
    pub(crate) fn loses_data(&self) -> bool {
        match self {
            Kind::Crash { data, .. } => *data != Data::Kept,
            Kind::Evict { .. } | Kind::Flush { .. } | Kind::Resync { .. } => true,
            _ => false,
        }
    }
}
