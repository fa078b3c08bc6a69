//! What a round is for, and what it waits for.

use crate::algorithm::inspection::Inspection;
use crate::algorithm::slot_survey::SlotSurvey;
use crate::algorithm::vote::Tally;

/// What a round asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Acquire,
    /// Whether nodes may vote. The verdict is there when each has said so.
    Check,
    /// With [`Straggler::Awaited`] it has no verdict before every node has voted, unless it is lost.
    Extend(Straggler),
    /// Which holder has a lock.
    Inspect,
    /// That a place in the queue of a fair lock goes. What a node answers says nothing of locks.
    Leave,
    Release,
    /// Which of several locks is free.
    Survey,
    /// Nothing: a thread waits until its wait is ended.
    Wait,
}

/// What becomes of nodes that have not answered when a quorum has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Straggler {
    Awaited,
    LeftBehind,
}

/// The answers to a question that changes nothing.
#[derive(Debug)]
pub(crate) enum Inquiry {
    Holder(Inspection),
    Slots(SlotSurvey),
}

impl Inquiry {
    /// Of a round of this purpose, if it asks one.
    pub(super) fn of(purpose: Purpose) -> Option<Box<Inquiry>> {
        match purpose {
            Purpose::Inspect => Some(Box::new(Inquiry::Holder(Inspection::default()))),
            Purpose::Survey => Some(Box::new(Inquiry::Slots(SlotSurvey::default()))),
            Purpose::Acquire
            | Purpose::Check
            | Purpose::Extend(_)
            | Purpose::Leave
            | Purpose::Release
            | Purpose::Wait => None,
        }
    }

    pub(super) fn is_decided(&self, tally: &Tally) -> bool {
        match self {
            Inquiry::Holder(inspection) => inspection.is_decided(tally),
            Inquiry::Slots(survey) => survey.is_decided(tally),
        }
    }
}
