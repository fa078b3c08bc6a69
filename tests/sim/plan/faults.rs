//! The kinds of faults: which client and node each of them strikes, when, and for how long.

use crate::refusals::Refusal;
use quorumlock::embedded::Condition;

/// A fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) at: u64,
    pub(crate) kind: Kind,
    /// The client that it strikes, and the node; none where it strikes all of them, or has nothing
    /// to do with any.
    pub(crate) client: Option<usize>,
    pub(crate) node: Option<usize>,
    /// How long it lasts, if it does.
    pub(crate) time: u64,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Paths are blocked, to the node and to the client.
    Block([bool; 2]),
    Condition(Condition),
    /// The node's process ends.
    Crash(Data),
    Cut,
    /// The subscriber connections of clients.
    CutSubscribers,
    Evict,
    /// All keys are deleted.
    Flush,
    ForgetScripts,
    Hang,
    /// The client whose entry is the first of a queue is killed.
    KillFirst,
    Leave,
    /// The queues of locks are deleted.
    LoseQueues,
    /// The node's machine is off for a while: not even refusals come from it.
    MachineCrash(Data),
    Pause,
    Refuse(Refusal),
    /// The node is a replica of one that has what was saved last, or nothing, and then a master
    /// again.
    Resync,
    /// A copy of the node's data is made.
    Save,
    SetNodeClock(i64),
    SetWallClock(i64),
    Sleep,
    /// The client whose entry is the first of a queue is stopped.
    StopFirst,
    Void,
}

impl Kind {
    /// The crash of a node, or of its machine.
    pub(crate) fn crash(data: Data, is_dark: bool) -> Kind {
        if is_dark {
            Kind::MachineCrash(data)
        } else {
            Kind::Crash(data)
        }
    }

    pub(crate) fn of_client(self, client: usize) -> Fault {
        self.between(Some(client), None)
    }

    pub(crate) fn of_node(self, node: usize) -> Fault {
        self.between(None, Some(node))
    }

    /// Of this client, or all, and this node, or all.
    pub(crate) fn between(self, client: Option<usize>, node: Option<usize>) -> Fault {
        Fault {
            at: 0,
            kind: self,
            client,
            node,
            time: 0,
        }
    }

    /// Whether a node loses what it has.
    pub(crate) fn loses_data(self) -> bool {
        match self {
            Kind::Crash(data) | Kind::MachineCrash(data) => data != Data::Kept,
            _ => matches!(self, Kind::Evict | Kind::Flush | Kind::Resync),
        }
    }
}

impl Fault {
    /// The same, for so long.
    pub(crate) fn lasting(self, time: u64) -> Fault {
        Fault { time, ..self }
    }
}
