//! Judges nodes by what they remember of themselves.
//!
//! Each connection begins with a look at the node, and has another one once a second: before a
//! vote, so that what the look shows is known first. A node that is not noted as it is does not
//! count. While there is one, the nodes are judged: looks that are older are repeated, notes are
//! stored and acknowledged. The votes of the nodes in question wait for it, and are counted then.
//! On a warm path there is no such node. A late node is waited for half a node timeout: the call
//! whose votes wait ends after a whole one, and would fail each time while a node hangs. A call
//! that has its quorum returns before the nodes are judged; the helper thread completes that when
//! no other thread drives.

use super::Nodes;
use super::incarnations::{Incarnations, Judging, LookTimes, Stage};
use super::vote_filter::{NodeVote, in_quarantine};
use crate::algorithm::incarnation::mismatch::Mismatch;
use crate::algorithm::incarnation::{Look, MOMENT, Origin, Seen, Standing};
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::quarantine::{RestartPolicy, UNTRUSTED};
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::engine::node_connection::NodeConnection;
use crate::events::event::Event;
use crate::fault::detail::Detail;
use crate::fault::{Cause, Fault, Phase};
use crate::os::clock;
use crate::protocol::session::{HandshakeState, Ticket};
use std::time::Duration;

/// How many programs, each with another `max_ttl`, may store their notes first. A node that lies
/// could name one after the other, and the votes of all nodes would wait.
const MOST_REPEATED: u8 = 8;

impl Nodes {
    /// The node was looked at on its connection.
    pub(super) fn on_look(&mut self, node: NodeId, now: Timestamp) {
        let wall = u64::try_from(clock::since_epoch().as_micros()).unwrap_or(u64::MAX);
        let identity = self.connections[node.index()].session.identity();
        let seen = if self.node(node).is_in_use() {
            identity.seen(wall)
        } else {
            Seen::Silent
        };
        self.incarnations
            .note_seen(node, seen, identity.incarnation());
        // The clock is read anew: the thread may have been delayed since its last reading, and the
        // look be later.
        let asked_at = now.before(self.node(node).session.look_took());
        self.incarnations.times[node.index()] = LookTimes {
            asked_at,
            read_at: self.clock.now(),
        };
        self.report_mismatches(node);
        if self
            .incarnations
            .judging
            .is_none_or(|judging| judging.stage != Stage::Noting)
        {
            self.incarnations.note_answer(node, asked_at);
        }
        self.judge(now);
    }

    /// The node has answered a note. Its age is still the one from the look before.
    pub(super) fn on_noted(&mut self, node: NodeId, now: Timestamp) {
        let identity = self.connections[node.index()].session.identity();
        let judged = self.incarnations.seen[node.index()];
        if let Seen::Look(Look { wall, .. }) = judged {
            let seen = identity.seen(wall);
            self.incarnations.seen[node.index()] = seen;
            if let Some(judging) = &mut self.incarnations.judging {
                judging.is_outrun |= seen != judged && self.incarnations.rules.is_longer(&[seen]);
            }
        }
        let refusal = identity.look.refusal;
        self.report_mismatches(node);
        if let Some(cause) =
            refusal.filter(|_| self.incarnations.seen[node.index()] == Seen::Silent)
        {
            // It would refuse a lock as well.
            self.following.counting.set(node, false);
            self.states
                .mark_refusing(node, Fault::new(Phase::Reply, cause), now);
        }
        self.incarnations.note_answer(node, Timestamp::NEVER);
        self.judge(now);
    }

    /// Reports how what the node remembers does not fit this client: once for each change, and not
    /// for each look. While it is silent, as one that stores nothing, what was last known holds.
    fn report_mismatches(&mut self, node: NodeId) {
        let seen = &self.incarnations.seen[node.index()];
        if *seen == Seen::Silent {
            return;
        }
        let mut mismatches = self
            .incarnations
            .rules
            .mismatches(seen, self.connections.len());
        let refusal = self.connections[node.index()]
            .session
            .identity()
            .look
            .refusal;
        if *seen == Seen::Untold && refusal == Some(Cause::NoPermission) {
            mismatches.push(Mismatch::Rights);
        }
        let reported = &mut self.incarnations.mismatches[node.index()];
        for &mismatch in mismatches
            .iter()
            .filter(|mismatch| !reported.contains(mismatch))
        {
            self.states.push(|names| Event::NodeMismatched {
                node: names.node(node),
                mismatch,
            });
        }
        *reported = mismatches;
    }

    /// The connection is lost, or the node may not vote on it.
    pub(super) fn on_silence(&mut self, node: NodeId, fault: Fault, is_idle: bool, now: Timestamp) {
        self.incarnations.seen[node.index()] = Seen::Silent;
        self.incarnations.note_answer(node, Timestamp::NEVER);
        if self.node(node).is_closed() && is_idle {
            self.incarnations.idle.insert(node);
        }
        for held in self.incarnations.take_held(|held| held.node == node) {
            self.count_held(
                NodeVote {
                    vote: Vote::Fault(fault),
                    ..held
                },
                now,
            );
        }
        self.judge(now);
    }

    /// The owner of a round waits no longer: what these nodes have answered does not count, unless
    /// it decides nothing.
    pub(super) fn give_up_held(&mut self, ticket: Ticket) {
        for NodeVote { node, mut vote, .. } in
            self.incarnations.take_held(|held| held.ticket == ticket)
        {
            if let Some(round) = self
                .rounds
                .round(ticket)
                .filter(|round| round.tally.can_be_won())
            {
                vote = in_quarantine(Some(&round.purpose), vote);
            }
            self.rounds.count(ticket, node, &vote);
        }
    }

    /// The nodes whose votes in a round wait.
    pub(super) fn held_nodes(&self, ticket: Ticket) -> NodeSet {
        let of_round = |held: &&NodeVote| held.ticket == ticket;
        self.incarnations
            .held
            .iter()
            .filter(of_round)
            .map(|held| held.node)
            .collect()
    }

    /// Judges the nodes without those that are late, if it is time to. While no call was made, no
    /// thread has read what they have replied: that counts.
    pub(super) fn judge_late(&mut self, now: Timestamp) {
        if now < self.incarnations.due() {
            return;
        }
        for node in self.nodes() {
            if self.node(node).is_open() {
                self.read(node, now);
            }
        }
        let timeout = self.incarnations.node_timeout;
        if let Some(judging) = &mut self.incarnations.judging {
            // No call lasts so long: none was made meanwhile, and the nodes have their time now.
            if now.since(judging.deadline) > timeout * 2 {
                judging.deadline = now.after(timeout / 2);
            }
            judging.is_late = now >= judging.deadline;
        }
        self.judge(now);
    }

    /// Judges the nodes, as far as that is possible now.
    pub(super) fn judge(&mut self, now: Timestamp) {
        let Incarnations {
            rules,
            seen,
            unheard,
            judging,
            ..
        } = &self.incarnations;
        let is_to_note = rules.is_open(seen);
        // A node may not count before others have replied that were not heard of.
        if judging.is_none() && (is_to_note || !unheard.is_empty() && rules.awaits_others(seen)) {
            let limit = if is_to_note {
                now.before(self.incarnations.node_timeout)
            } else {
                Timestamp::ORIGIN
            };
            self.look_at(self.looked_at_before(limit, now), Stage::Looking, now);
        }
        self.note_standings();
        while let Some(Judging {
            stage,
            awaited,
            is_late,
            is_outrun,
            repeats,
            ..
        }) = self.incarnations.judging
        {
            let is_expecting = !self.incarnations.unheard.is_empty()
                || is_to_note && self.connections.iter().any(NodeConnection::is_connecting);
            if (!awaited.is_empty() || stage == Stage::Looking && is_expecting) && !is_late {
                return;
            }
            self.incarnations.unheard = NodeSet::EMPTY;
            // Not the late ones: they had their time.
            let old = self
                .looked_at_before(now.before(MOMENT / 2), now)
                .without(awaited);
            match stage {
                Stage::Looking if is_to_note && !old.is_empty() => {
                    self.look_at(old, Stage::LookingAgain, now)
                }
                Stage::Looking | Stage::LookingAgain => self.send_notes(now),
                Stage::Noting if is_outrun && repeats < MOST_REPEATED => self.send_notes(now),
                Stage::Noting => self.end_judging(now),
            }
        }
    }

    /// The nodes that can be looked at again, and were not asked after this.
    fn looked_at_before(&self, limit: Timestamp, now: Timestamp) -> NodeSet {
        let is_old = |node: &NodeId| self.incarnations.times[node.index()].asked_at < limit;
        self.nodes()
            .filter(is_old)
            .filter(|&node| self.node(node).may_be_looked_at(now))
            .collect()
    }

    fn look_at(&mut self, nodes: NodeSet, stage: Stage, now: Timestamp) {
        for node in nodes.iter() {
            self.apart(node).session.look(now);
        }
        self.await_answers(stage, nodes, now);
    }

    fn send_notes(&mut self, now: Timestamp) {
        let Incarnations { rules, seen, .. } = &self.incarnations;
        let notes = rules.notes(
            &self.incarnations.seen_since(now.before(MOMENT)),
            rules.longest(seen),
        );
        let founds = notes
            .iter()
            .any(|(_, new)| !new.keeps_times && new.note.origin == Origin::Founder);
        // A node that was not asked, because its connection had ended, may know of an older
        // deployment.
        let is_unsure = founds && !self.incarnations.idle.is_empty();
        let mut noting = NodeSet::EMPTY;
        for (node, new) in notes.into_iter().filter(|_| !is_unsure) {
            let Seen::Look(judged) = self.incarnations.seen[node.index()] else {
                continue;
            };
            let session = &mut self.apart(node).session;
            // Half of another look may have arrived: what it finds is judged when the other half
            // has.
            if session.identity().seen(judged.wall) == Seen::Look(judged) {
                session.note(&new, now);
                noting.insert(node);
            }
        }
        self.await_answers(Stage::Noting, noting, now);
    }

    fn await_answers(&mut self, stage: Stage, awaited: NodeSet, now: Timestamp) {
        let timeout = self.incarnations.node_timeout;
        let deadline = now.after(if stage == Stage::Noting {
            timeout
        } else {
            timeout / 2
        });
        let repeats = match self.incarnations.judging {
            Some(Judging {
                stage: Stage::Noting,
                repeats,
                ..
            }) => repeats + 1,
            _ => 0,
        };
        self.incarnations.judging = Some(Judging {
            stage,
            awaited,
            begun: now,
            deadline,
            is_late: false,
            is_outrun: false,
            repeats,
        });
        // The thread that polls waits no longer than that.
        self.poll.note_change(true);
        for node in awaited.iter() {
            // An error shows at the next read.
            let _ = self.flush_node(node, now);
        }
    }

    fn end_judging(&mut self, now: Timestamp) {
        self.incarnations.judging = None;
        self.note_standings();
        for mut held in self.incarnations.take_held(|_| true) {
            let standing = self.node(held.node).session.standing();
            if let (HandshakeState::Rejected(fault), false) = (standing, standing.is_duplicate()) {
                held.vote = Vote::Fault(fault);
            }
            self.count_held(held, now);
        }
    }

    /// Finds out which nodes count now, and how long the others wait.
    fn note_standings(&mut self) {
        let doubtful_before = std::mem::take(&mut self.incarnations.doubtful);
        self.following.counting = NodeSet::EMPTY;
        let is_judging = self.incarnations.judging.is_some();
        if self.incarnations.rules.policy == RestartPolicy::Off {
            return;
        }
        let is_longer = is_judging && self.incarnations.rules.is_longer(&self.incarnations.seen);
        let longest = self.incarnations.rules.longest(&self.incarnations.seen);
        for node in self.nodes() {
            let standing = self.incarnations.standing(node, longest);
            let connection = &self.connections[node.index()];
            let is_silent = self.incarnations.seen[node.index()] == Seen::Silent;
            let is_doubtful = match standing {
                _ if is_longer => connection.is_in_use(),
                _ if connection.quarantine.is_durable() => false,
                None => is_silent && connection.is_in_use(),
                Some(Standing::Unnoted) => true,
                Some(Standing::Counts) => {
                    self.wait_by_note(node, Duration::ZERO);
                    false
                }
                Some(Standing::Waits(left)) => {
                    self.wait_by_note(node, left);
                    false
                }
            };
            if is_doubtful {
                self.incarnations.doubtful.insert(node);
                match standing {
                    _ if doubtful_before.contains(node) => {}
                    // Another node's note is in question, and this one has lost nothing: its grants
                    // wait.
                    Some(Standing::Counts) => {
                        let grants = self.rounds.take_back(node).into_iter();
                        let held = grants.map(|(ticket, fence)| NodeVote {
                            ticket,
                            node,
                            vote: Vote::Granted,
                            fence,
                        });
                        self.incarnations.held.extend(held);
                    }
                    _ => self.rounds.withdraw(node, UNTRUSTED),
                }
            }
        }
    }

    /// By what the last look at the node has shown, the node waits for this long after that.
    fn wait_by_note(&mut self, node: NodeId, left: Duration) {
        let LookTimes { asked_at, read_at } = self.incarnations.times[node.index()];
        let quarantine = &mut self.connections[node.index()].quarantine;
        if quarantine.wait_by_note(left, [asked_at, read_at], self.clock.now()) {
            self.states.quarantine_began(node);
            self.rounds
                .withdraw(node, UNTRUSTED.with(Detail::Left(left)));
        }
    }

    /// The node has answered whether a lock may be acquired or kept. It is not up before it is
    /// judged, which is not possible with less than a quorum.
    pub(super) fn note_answer(&mut self, node: NodeId, now: Timestamp) {
        let too_few_vote = || {
            let voters = self
                .connections
                .iter()
                .filter(|connection| connection.is_in_use())
                .count();
            self.incarnations.judging.is_none() && voters <= self.connections.len() / 2
        };
        if !self.incarnations.is_doubtful(node)
            || self.node(node).quarantine.is_on()
            || too_few_vote()
        {
            self.filter(node).note_answer(now);
        }
    }

    fn count_held(&mut self, mut held: NodeVote, now: Timestamp) {
        if self.count_vote(&mut held, now) {
            self.note_answer(held.node, now);
        }
    }
}
