//! What a round asks for, each with what only that needs.

use super::attempt::Attempt;
use crate::algorithm::inspection::Inspection;
use crate::algorithm::pending_release::ReleaseConditions;
use crate::algorithm::vote::{ExtensionVerdict, ReleaseVerdict, Tally};
use crate::events::event_queue::ReleaseContext;
use std::sync::Arc;

/// What a round asks for.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// A lock.
    Acquire(Attempt),
    /// As an acquire that grants nothing: a place in the queue of a key of a set. A node that has
    /// none may still grant.
    Enqueue(Attempt),
    /// Whether nodes may vote. The verdict is there when each has voted.
    Check,
    Extend,
    /// Which holder has a lock.
    Inspect(HolderQuestion),
    /// That a call's entry is stored or removed, or that those are told that wait. A reply shows
    /// nothing of locks.
    Entry,
    Release {
        /// What decides whether, and for how long, it is kept for a node.
        conditions: ReleaseConditions,
        /// Set for a background release whose outcome is to be reported.
        context: Option<ReleaseContext>,
    },
    /// Nothing: a thread waits until its wait is ended.
    Wait,
}

/// Which holder has the lock with this key, which is fenced if so: what the nodes have answered.
#[derive(Debug)]
pub(crate) struct HolderQuestion {
    pub(crate) key: Arc<str>,
    pub(crate) is_fenced: bool,
    pub(crate) answers: Inspection,
}

impl Purpose {
    /// Whether the votes decide.
    #[inline]
    pub(super) fn has_verdict(&self, tally: &Tally) -> bool {
        match self {
            Purpose::Acquire(attempt) | Purpose::Enqueue(attempt) => attempt.has_verdict(tally),
            Purpose::Check => tally.undecided().is_empty(),
            Purpose::Extend => tally.extension() != ExtensionVerdict::Pending,
            Purpose::Inspect(question) => question.answers.is_decided(tally),
            Purpose::Release { .. } => tally.release() != ReleaseVerdict::Pending,
            // No thread waits for it. A wait is ended.
            Purpose::Entry | Purpose::Wait => false,
        }
    }

    /// Whether the owner of a decided round may wait for the nodes that have not voted: an
    /// extension that is won learns which nodes have lost the key, and an attempt that all nodes
    /// have refused leaves nothing to undo.
    pub(super) fn awaits_stragglers(&self, tally: &Tally) -> bool {
        match self {
            Purpose::Extend => tally.extension() == ExtensionVerdict::Extended,
            _ => tally.untouched().len() >= tally.quorum() && tally.granted().is_empty(),
        }
    }

    pub(super) fn attempt(&mut self) -> Option<&mut Attempt> {
        match self {
            Purpose::Acquire(attempt) | Purpose::Enqueue(attempt) => Some(attempt),
            _ => None,
        }
    }
}
