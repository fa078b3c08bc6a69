//! What nodes remember of themselves, as far as it was read, and the votes that wait until they are
//! judged. [`judging`](super::judging) is what is done about it.

use super::vote_filter::{NodeVote, in_quarantine};
use crate::algorithm::incarnation::mismatch::Mismatch;
use crate::algorithm::incarnation::summary::NodeNote;
use crate::algorithm::incarnation::{Found, Incarnation, Look, Rules, Seen, Standing};
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::engine::rounds::{Purpose, Round};
use crate::fault::{Cause, Fault, Phase};
use std::time::Duration;

/// What is known of the nodes' incarnations.
pub(super) struct Incarnations {
    pub(super) rules: Rules,
    pub(super) seen: Vec<Seen>,
    pub(super) times: Vec<LookTimes>,
    /// What does not fit this client, as it was reported.
    pub(super) mismatches: Vec<Vec<Mismatch>>,
    pub(super) judging: Option<Judging>,
    /// Those that were never looked at, nor waited for in vain.
    pub(super) unheard: NodeSet,
    /// Those whose connections ended while they were idle: they may know better, and were not asked
    /// since.
    pub(super) idle: NodeSet,
    /// Those whose votes do not count, or not yet.
    pub(super) doubtful: NodeSet,
    /// The votes of those, while the nodes are judged.
    pub(super) held: Vec<NodeVote>,
    /// The last look at each node, over all its connections.
    last: Vec<Option<Look>>,
    /// Those that have lost their data since the locks of this client were last set again.
    pub(super) returned: NodeSet,
}

/// The times of the last look at a node.
#[derive(Clone, Copy)]
pub(super) struct LookTimes {
    /// When the node was asked: what the look shows may be as old, where no thread has read the
    /// reply.
    pub(super) asked_at: Timestamp,
    /// When the reply was read: an age counts from then on.
    pub(super) read_at: Timestamp,
}

/// The nodes are being judged.
#[derive(Clone, Copy)]
pub(super) struct Judging {
    pub(super) stage: Stage,
    /// The nodes that have not replied.
    pub(super) awaited: NodeSet,
    /// When they were asked.
    pub(super) begun: Timestamp,
    /// When the judging continues without them.
    pub(super) deadline: Timestamp,
    /// Whether that time has come, and they had not replied then.
    pub(super) is_late: bool,
    /// Whether another program has stored a note first, with a shorter `max_ttl`.
    pub(super) is_outrun: bool,
    /// How often notes were stored again because of that.
    pub(super) repeats: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Each node is looked at, once it is connected.
    Looking,
    /// Late nodes have taken so long that the others are looked at once more.
    LookingAgain,
    /// Notes are stored.
    Noting,
}

impl Incarnations {
    pub(super) fn new(rules: Rules, nodes: usize) -> Incarnations {
        Incarnations {
            rules,
            seen: vec![Seen::Silent; nodes],
            times: vec![
                LookTimes {
                    asked_at: Timestamp::ORIGIN,
                    read_at: Timestamp::ORIGIN
                };
                nodes
            ],
            mismatches: vec![Vec::new(); nodes],
            judging: None,
            unheard: NodeSet::first(nodes),
            idle: NodeSet::EMPTY,
            doubtful: NodeSet::EMPTY,
            held: Vec::new(),
            last: vec![None; nodes],
            returned: NodeSet::EMPTY,
        }
    }

    /// What is known of a node now. One that does not tell what it remembers may still name its
    /// incarnation.
    pub(super) fn record_seen(&mut self, node: NodeId, seen: Seen, names: Option<Incarnation>) {
        self.seen[node.index()] = seen;
        let untold = names.map(|present| Look {
            found: Found::Nothing,
            present,
            time: 0,
            wall: 0,
        });
        if let Some(look) = seen.look().copied().or(untold)
            && let Some(last) = self.last[node.index()].replace(look)
            && !look.continues(&last)
        {
            self.returned.insert(node);
        }
    }

    /// When the judging continues without the nodes that are late.
    pub(super) fn due(&self) -> Timestamp {
        self.judging
            .as_ref()
            .map_or(Timestamp::NEVER, |judging| judging.deadline)
    }

    /// What is known of the nodes by looks that are not older. A node that hangs has not replied:
    /// what it showed long ago is no information about a new deployment.
    pub(super) fn seen_since(&self, limit: Timestamp) -> Vec<Seen> {
        let is_old = |(seen, times): &(&Seen, &LookTimes)| {
            matches!(seen, Seen::Look(_)) && times.asked_at < limit
        };
        let seen = self.seen.iter().zip(&self.times);
        seen.map(|pair| if is_old(&pair) { Seen::Silent } else { *pair.0 })
            .collect()
    }

    /// Whether the node's votes do not count, or not yet.
    #[inline]
    pub(super) fn is_doubtful(&self, node: NodeId) -> bool {
        self.doubtful.contains(node)
    }

    /// Keeps a vote of such a node until the nodes are judged, or leaves what counts of it: all of
    /// it where it decides nothing. `refusal`: why the node was not looked at, or not noted. True
    /// where the vote is kept.
    pub(super) fn holds(
        &mut self,
        cast: &mut NodeVote,
        round: Option<&Round>,
        refusal: Option<Cause>,
    ) -> bool {
        let counted = in_quarantine(round.map(|round| &round.purpose), cast.vote);
        if counted == cast.vote {
            return false;
        }
        if self.judging.is_some() {
            self.held.push(*cast);
            return true;
        }
        // A check grants nothing.
        let decides = round.is_none_or(|round| {
            !matches!(round.purpose, Purpose::Check) && round.tally.can_be_won()
        });
        if let Some(cause) = refusal {
            cast.vote = Vote::Fault(Fault::new(Phase::Reply, cause));
        } else if decides {
            cast.vote = counted;
        }
        false
    }

    /// What the node remembers of itself.
    pub(super) fn summary(&self, node: NodeId, now: Timestamp) -> NodeNote {
        self.rules.summary(
            &self.seen[node.index()],
            now.since(self.times[node.index()].read_at),
        )
    }

    /// For how long the node has counted, by what it remembers of itself.
    pub(super) fn counted_for(&self, node: NodeId, now: Timestamp) -> Option<Duration> {
        let Seen::Look(look) = &self.seen[node.index()] else {
            return None;
        };
        let counted = self
            .rules
            .counted_for(look, self.rules.longest(&self.seen))?;
        Some(counted + now.since(self.times[node.index()].read_at))
    }

    /// Removes the held votes for which this is true, and returns them.
    pub(super) fn take_held(&mut self, is_taken: impl Fn(&NodeVote) -> bool) -> Vec<NodeVote> {
        self.held.extract_if(.., |held| is_taken(held)).collect()
    }

    /// The node has replied to what it was asked then, and need not be waited for any longer. A
    /// reply to an earlier question, which no thread had read, is not the one that is awaited.
    pub(super) fn on_answer(&mut self, node: NodeId, asked_at: Timestamp) {
        self.unheard.set(node, false);
        self.idle.set(node, false);
        if let Some(judging) = &mut self.judging
            && asked_at >= judging.begun
        {
            judging.awaited.set(node, false);
        }
    }

    /// The standing of a node that was looked at, where no lock lasts longer than `longest`.
    pub(super) fn standing(&self, node: NodeId, longest: Duration) -> Option<Standing> {
        let Seen::Look(look) = &self.seen[node.index()] else {
            return None;
        };
        let is_early = !self.unheard.is_empty() && !self.rules.counts_early(look, longest);
        match self.rules.standing(look, longest) {
            Standing::Counts if is_early => Some(Standing::Unnoted),
            standing => Some(standing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::incarnation::run_id::{ReplicationIds, RunId};
    use crate::algorithm::quarantine::RestartPolicy;
    use crate::engine::rounds::{Attempt, Purpose, Rounds};
    use crate::engine::tests::at;

    const NODE_TIMEOUT: Duration = Duration::from_millis(100);

    fn incarnations() -> Incarnations {
        Incarnations::new(
            Rules::new(RestartPolicy::Observed, Duration::from_secs(10)),
            3,
        )
    }

    fn incarnation(number: u8) -> Incarnation {
        let id = [b'0' + number; 40];
        Incarnation {
            run_id: RunId::new(&id).unwrap(),
            replication: ReplicationIds::new(&id, &[b'0'; 40]).unwrap(),
        }
    }

    fn judging(deadline: Timestamp) -> Judging {
        Judging {
            stage: Stage::Looking,
            awaited: NodeSet::first(3),
            begun: at(0),
            deadline,
            is_late: false,
            is_outrun: false,
            repeats: 0,
        }
    }

    /// No call lasts so long: none was made meanwhile.
    #[test]
    fn nodes_that_are_judged_are_late_at_their_deadline_or_have_their_time_after_a_long_pause() {
        let mut incarnations = incarnations();
        incarnations.judging = Some(judging(at(100)));
        let mut is_late = |millis| {
            incarnations.on_late(NODE_TIMEOUT, at(millis));
            incarnations.judging.unwrap().is_late
        };
        assert_eq!(
            [99, 100, 160, 300].map(&mut is_late),
            [false, true, true, true]
        );
        assert_eq!([301, 350, 351].map(is_late), [false, false, true]);
    }

    #[test]
    fn a_grant_of_a_node_in_doubt_is_held_while_nodes_are_judged_and_counts_where_it_decides_nothing()
     {
        let mut rounds = Rounds::new(3, None);
        let node = NodeId::new(0);
        let mut counted = |purpose, refusals: usize, is_judging: bool| {
            let ticket = rounds.open(purpose);
            for index in 1..=refusals {
                rounds.vote(ticket, NodeId::new(index), &Vote::Refused);
            }
            let mut incarnations = incarnations();
            incarnations.judging = is_judging.then(|| judging(at(100)));
            let mut cast = NodeVote {
                ticket,
                node,
                vote: Vote::Granted,
                fence: None,
            };
            let is_held = incarnations.holds(&mut cast, rounds.round(ticket), None);
            (is_held, cast.vote == Vote::Granted)
        };
        let attempt = || Purpose::Acquire(Attempt::default());
        assert_eq!(counted(attempt(), 0, true), (true, true));
        assert_eq!(counted(attempt(), 0, false), (false, false));
        assert_eq!(counted(attempt(), 2, false), (false, true), "it is lost");
        assert_eq!(counted(Purpose::Check, 0, false), (false, true));
        assert_eq!(counted(Purpose::Entry, 0, true), (false, true));
    }

    #[test]
    fn a_node_that_was_looked_at_before_is_as_one_that_is_silent() {
        let seen = Seen::Look(Look {
            found: Found::Nothing,
            present: incarnation(1),
            time: 0,
            wall: 0,
        });
        let mut incarnations = incarnations();
        incarnations.seen = vec![seen; 3];
        for (times, millis) in incarnations.times.iter_mut().zip([10, 20, 30]) {
            times.asked_at = at(millis);
        }
        let silent = Seen::Silent;
        assert_eq!(incarnations.seen_since(at(25)), [silent, silent, seen]);
    }

    #[test]
    fn a_node_has_returned_when_it_is_seen_without_what_it_had() {
        let node = NodeId::new(1);
        let mut incarnations = incarnations();
        let mut has_returned = |number| {
            incarnations.record_seen(node, Seen::Silent, Some(incarnation(number)));
            incarnations.returned.contains(node)
        };
        assert_eq!([1, 1, 2].map(&mut has_returned), [false, false, true]);
    }
}
