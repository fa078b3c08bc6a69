//! How much there is to search: nodes, programs, what may fail, and which of the cases that the
//! design leaves open are passed over.

use crate::search::parts;
use quorumlock::algorithm::quarantine::RestartPolicy;

/// What may fail, or happen to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The key is deleted, and the locks are not.
    Deleted,
    /// In one process: made a replica, synchronised with an older copy of its data, and promoted.
    Demoted,
    /// Another process, without data.
    Empty,
    /// The process goes on without its data.
    Flushed,
    /// The node does not reply to one program in one attempt.
    Hang,
    /// A note is lost.
    Lost,
    /// The replication id changes, and nothing is lost: the first replica, a backlog that was
    /// freed.
    Renamed,
    /// Another process, with an older copy of the data: a restart from a snapshot, a replica that
    /// took over.
    Saved,
    /// The node's clock is set to any time.
    Step,
    /// A note is written, and the reply is lost.
    Unheard,
}

/// What the design leaves open, as bits: a search passes over what comes after one of these.
pub(crate) mod open {
    /// All that answer of a quorum lost the key or never had it, and a program lives whose vote was
    /// lost.
    pub(crate) const ALL_LOST: u8 = 1;
    /// A loss while a deployment is founded, or a moment later.
    pub(crate) const FOUNDING: u8 = 2;
    /// A loss without a new process, between a look and what is done because of it.
    pub(crate) const MOMENT: u8 = 4;
    /// Every node that knew of a longer time to live is lost or silent.
    pub(crate) const LONGER: u8 = 8;
    pub(crate) const NONE: u8 = 0;
    pub(crate) const ALL: u8 = ALL_LOST | FOUNDING | MOMENT | LONGER;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) nodes: usize,
    pub(crate) policy: RestartPolicy,
    /// So many nodes are founders of old in the beginning.
    pub(crate) founders: usize,
    /// How many of these.
    pub(crate) faults: u8,
    pub(crate) kinds: &'static [Fault],
    /// Some programs have a longer time to live.
    pub(crate) longer: bool,
    /// Holders extend their lease, and set the lock again where it is gone.
    pub(crate) extends: bool,
    /// A vote may come a moment after the look at its node. Otherwise both are one step.
    pub(crate) apart: bool,
    /// For how many ticks a node may be slow to answer.
    pub(crate) patience: u8,
    /// No attempt takes a tick.
    pub(crate) prompt: bool,
    /// What is passed over: bits of [`open`].
    pub(crate) open: u8,
}

impl Scope {
    parts!(
        nodes: usize,
        founders: usize,
        faults: u8,
        kinds: &'static [Fault],
        patience: u8,
        open: u8;
        apart, extends, longer, prompt
    );

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.kinds.contains(&fault)
    }

    pub(crate) fn is_open(&self, case: u8) -> bool {
        self.open & case != 0
    }

    /// Nothing is lost, so no program has a reason to wait.
    pub(crate) fn loses_nothing(&self) -> bool {
        self.prompt
            && self
                .kinds
                .iter()
                .all(|kind| matches!(kind, Fault::Hang | Fault::Renamed))
    }
}
