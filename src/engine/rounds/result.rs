//! What the owner of a round takes out of it.

use crate::algorithm::fault::Fault;
use crate::algorithm::fence::Agreement;
use crate::algorithm::holder::HolderTag;
use crate::algorithm::inspection::InspectionVerdict;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::place::PlaceAnswer;
use crate::algorithm::slot_survey::SlotSurvey;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::{ExtensionVerdict, Outcome, Tally, Vote};

use super::purpose::Inquiry;

/// What its owner takes out of a round.
#[derive(Debug)]
pub(crate) struct RoundResult {
    /// The votes, as far as they mattered.
    pub(crate) tally: Tally,
    /// The nodes that the command was queued for, and may have reached.
    pub(crate) reached: NodeSet,
    /// Each failed node's fault. None if a quorum granted, but for a check: then they are of no interest.
    pub(crate) faults: Vec<(NodeId, Fault)>,
    /// When so many keys have ended by themselves that a quorum may be acquired, as far as nodes have said; otherwise
    /// never.
    pub(crate) free_at: Timestamp,
    /// Which holder most nodes have refused for, as far as they have said.
    pub(crate) holder: Option<HolderTag>,
    /// Of a set: the first of its keys that a quorum cannot be had of, or else the one that most nodes refused for.
    pub(crate) refused_key: Option<usize>,
    /// The nodes that refused for a key without expiry, as far as they have said.
    pub(crate) endless: NodeSet,
    /// What the fences of a fenced attempt come to. None without a grant.
    pub(crate) agreement: Option<Agreement>,
    /// What the nodes that did not grant a fair lock have answered about the place.
    pub(crate) place: Option<PlaceAnswer>,
    /// What the nodes have answered to a question that changes nothing.
    pub(crate) inquiry: Option<Box<Inquiry>>,
}

impl RoundResult {
    /// Whether an extension was won.
    pub(crate) fn is_extended(&self) -> bool {
        self.tally.extension() == ExtensionVerdict::Extended
    }

    /// Whether an extension found that a quorum cannot hold the key any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.tally.extension() == ExtensionVerdict::Lost
    }

    /// Which holder has the lock that the nodes were asked about.
    pub(crate) fn holding(&self) -> InspectionVerdict {
        match self.inquiry.as_deref() {
            Some(Inquiry::Holder(inspection)) => inspection.verdict(&self.tally),
            Some(Inquiry::Slots(_)) | None => InspectionVerdict::Unknown,
        }
    }

    /// Which of the locks that the nodes were asked about are free.
    pub(crate) fn survey(&self) -> Option<&SlotSurvey> {
        match self.inquiry.as_deref() {
            Some(Inquiry::Slots(survey)) => Some(survey),
            Some(Inquiry::Holder(_)) | None => None,
        }
    }

    /// The result of a survey that has found no lock to try, as that of an attempt: the nodes that answered refuse.
    pub(crate) fn into_refusal(self) -> RoundResult {
        let (free_at, endless) = self.survey().map_or((Timestamp::NEVER, NodeSet::EMPTY), |survey| {
            (survey.free_at(&self.tally), survey.endless(&self.tally))
        });
        let mut tally = Tally::new(self.tally.nodes());
        self.tally.granted().iter().for_each(|node| _ = tally.record(node, Vote::Refused));
        self.faults.iter().for_each(|&(node, fault)| _ = tally.record(node, Vote::Fault(fault)));
        RoundResult { tally, free_at, endless, ..self }
    }

    /// Whether a quorum granted.
    pub(crate) fn is_won(&self) -> bool {
        self.tally.acquisition() == Outcome::Won
    }
}
