//! An attempt to take a lock: what the nodes reply beside their votes.

use super::refusals::Refusals;
use crate::algorithm::fence::Fences;
use crate::algorithm::node::NodeId;
use crate::algorithm::queue::{QueueReply, QueueRound, QueuedCall};
use crate::algorithm::vote::{Outcome, Tally};

/// What the nodes of an attempt have replied.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    pub(super) refusals: Refusals,
    /// Empty unless the attempt is fenced.
    pub(super) fences: Fences,
    /// About the queue, if the attempt is made in turn.
    pub(super) queue: Option<Box<QueueRound>>,
}

impl Attempt {
    /// An attempt that collects what nodes reply about the queue, if it is made in turn.
    pub(crate) fn new(queue: Option<QueueRound>) -> Attempt {
        Attempt {
            queue: queue.map(Box::new),
            ..Attempt::default()
        }
    }

    pub(super) fn has_verdict(&self, tally: &Tally) -> bool {
        tally.acquisition() != Outcome::Pending && !self.lacks_replies(tally)
    }

    fn lacks_replies(&self, tally: &Tally) -> bool {
        let answered = tally.granted().len() + tally.refused().len();
        self.queue.is_some()
            && QueuedCall::lacks_replies(tally.quorum(), answered, tally.undecided().len())
    }

    pub(super) fn record_queue_reply(&mut self, node: NodeId, reply: &QueueReply) {
        if let Some(queue) = &mut self.queue {
            queue.on_refused(node, *reply);
        }
    }
}
