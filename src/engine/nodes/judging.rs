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

use super::connections::Connections;
use super::incarnations::{Incarnations, Judging, LookTimes, Stage};
use super::vote_filter::{NodeVote, in_quarantine};
use crate::algorithm::incarnation::mismatch::Mismatch;
use crate::algorithm::incarnation::{Look, MOMENT, Origin, Seen, Standing};
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::quarantine::{RestartPolicy, UNTRUSTED};
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::engine::rounds::Rounds;
use crate::events::event::Event;
use crate::fault::detail::Detail;
use crate::fault::{Cause, Fault, Phase};
use crate::os::clock;
use crate::protocol::session::Ticket;
use std::time::Duration;

/// How many programs, each with another `max_ttl`, may store their notes first. A node that lies
/// could name one after the other, and the votes of all nodes would wait.
const MOST_REPEATED: u8 = 8;

impl Incarnations {
    /// The node was looked at on its connection.
    pub(super) fn on_look(&mut self, node: NodeId, connections: &mut Connections, now: Timestamp) {
        let wall = clock::micros_since_epoch();
        let identity = connections[node].session.identity();
        let seen = if connections[node].is_in_use() {
            identity.seen(wall)
        } else {
            Seen::Silent
        };
        self.record_seen(node, seen, identity.incarnation());
        // The clock is read anew: the thread may have been delayed since its last reading, and the
        // look be later.
        let asked_at = now.before(connections[node].session.look_took());
        self.times[node.index()] = LookTimes {
            asked_at,
            read_at: connections.clock.now(),
        };
        self.report_mismatches(node, connections);
        if self
            .judging
            .is_none_or(|judging| judging.stage != Stage::Noting)
        {
            self.on_answer(node, asked_at);
        }
    }

    /// The node has answered a note. Its age is still the one from the look before.
    pub(super) fn on_noted(&mut self, node: NodeId, connections: &mut Connections, now: Timestamp) {
        let identity = connections[node].session.identity();
        let judged = self.seen[node.index()];
        if let Seen::Look(Look { wall, .. }) = judged {
            let seen = identity.seen(wall);
            self.seen[node.index()] = seen;
            if let Some(judging) = &mut self.judging {
                judging.is_outrun |= seen != judged && self.rules.is_longer(&[seen]);
            }
        }
        let refusal = identity.look.refusal;
        self.report_mismatches(node, connections);
        if let Some(cause) = refusal.filter(|_| self.seen[node.index()] == Seen::Silent) {
            // It would refuse a lock as well.
            connections.counting.set(node, false);
            connections
                .states
                .mark_refusing(node, Fault::new(Phase::Reply, cause), now);
        }
        self.on_answer(node, Timestamp::NEVER);
    }

    /// Reports how what the node remembers does not fit this client: once for each change, and not
    /// for each look. While it is silent, as one that stores nothing, what was last known holds.
    fn report_mismatches(&mut self, node: NodeId, connections: &mut Connections) {
        let seen = &self.seen[node.index()];
        if *seen == Seen::Silent {
            return;
        }
        let mut mismatches = self.rules.mismatches(seen, connections.each.len());
        let refusal = connections[node].session.identity().look.refusal;
        if *seen == Seen::Untold && refusal == Some(Cause::NoPermission) {
            mismatches.push(Mismatch::Rights);
        }
        let reported = &mut self.mismatches[node.index()];
        for &mismatch in mismatches
            .iter()
            .filter(|mismatch| !reported.contains(mismatch))
        {
            connections.states.push(|names| Event::NodeMismatched {
                node: names.node(node),
                mismatch,
            });
        }
        *reported = mismatches;
    }

    /// The connection is lost, or the node may not vote on it. `is_idle`: it has ended while it was
    /// idle. Returns the votes of the node that have waited.
    pub(super) fn on_silence(&mut self, node: NodeId, is_idle: bool) -> Vec<NodeVote> {
        self.seen[node.index()] = Seen::Silent;
        self.on_answer(node, Timestamp::NEVER);
        if is_idle {
            self.idle.insert(node);
        }
        self.take_held(|held| held.node == node)
    }

    /// The owner of a round waits no longer: what these nodes have answered does not count, unless
    /// it decides nothing.
    pub(super) fn give_up_held(&mut self, ticket: Ticket, rounds: &mut Rounds) {
        for NodeVote { node, mut vote, .. } in self.take_held(|held| held.ticket == ticket) {
            if let Some(round) = rounds
                .round(ticket)
                .filter(|round| round.tally.can_be_won())
            {
                vote = in_quarantine(Some(&round.purpose), vote);
            }
            rounds.count(ticket, node, &vote);
        }
    }

    /// The nodes whose votes in a round wait.
    pub(super) fn held_nodes(&self, ticket: Ticket) -> NodeSet {
        let of_round = |held: &&NodeVote| held.ticket == ticket;
        self.held
            .iter()
            .filter(of_round)
            .map(|held| held.node)
            .collect()
    }

    /// The time of the nodes that have not replied is over, and all that had arrived was read.
    pub(super) fn on_late(&mut self, node_timeout: Duration, now: Timestamp) {
        if let Some(judging) = &mut self.judging {
            // No call lasts so long: none was made meanwhile, and the nodes have their time now.
            if now.since(judging.deadline) > node_timeout * 2 {
                judging.deadline = now.after(node_timeout / 2);
            }
            judging.is_late = now >= judging.deadline;
        }
    }

    /// Judges the nodes, as far as that is possible now. Returns the votes that have waited for it,
    /// and are to be counted.
    pub(super) fn judge(
        &mut self,
        connections: &mut Connections,
        rounds: &mut Rounds,
        now: Timestamp,
    ) -> Vec<NodeVote> {
        let is_to_note = self.rules.is_open(&self.seen);
        // A node may not count before others have replied that were not heard of.
        if self.judging.is_none()
            && (is_to_note || !self.unheard.is_empty() && self.rules.awaits_others(&self.seen))
        {
            let limit = if is_to_note {
                now.before(connections.node_timeout)
            } else {
                Timestamp::ORIGIN
            };
            let old = self.looked_at_before(limit, connections, now);
            self.look_at(old, Stage::Looking, connections, now);
        }
        self.record_standings(connections, rounds);
        while let Some(Judging {
            stage,
            awaited,
            is_late,
            is_outrun,
            repeats,
            ..
        }) = self.judging
        {
            let is_expecting =
                !self.unheard.is_empty() || is_to_note && connections.are_connecting();
            if (!awaited.is_empty() || stage == Stage::Looking && is_expecting) && !is_late {
                break;
            }
            self.unheard = NodeSet::EMPTY;
            // Not the late ones: they had their time.
            let old = self
                .looked_at_before(now.before(MOMENT / 2), connections, now)
                .without(awaited);
            match stage {
                Stage::Looking if is_to_note && !old.is_empty() => {
                    self.look_at(old, Stage::LookingAgain, connections, now)
                }
                Stage::Looking | Stage::LookingAgain => self.send_notes(connections, now),
                Stage::Noting if is_outrun && repeats < MOST_REPEATED => {
                    self.send_notes(connections, now)
                }
                Stage::Noting => {
                    self.judging = None;
                    self.record_standings(connections, rounds);
                    return std::mem::take(&mut self.held);
                }
            }
        }
        Vec::new()
    }

    /// The nodes that can be looked at again, and were not asked after this.
    fn looked_at_before(
        &self,
        limit: Timestamp,
        connections: &Connections,
        now: Timestamp,
    ) -> NodeSet {
        let is_old = |node: &NodeId| self.times[node.index()].asked_at < limit;
        connections
            .nodes()
            .filter(is_old)
            .filter(|&node| connections[node].may_be_looked_at(now))
            .collect()
    }

    fn look_at(
        &mut self,
        nodes: NodeSet,
        stage: Stage,
        connections: &mut Connections,
        now: Timestamp,
    ) {
        for node in nodes.iter() {
            connections.apart(node).session.look(now);
        }
        self.await_answers(stage, nodes, connections, now);
    }

    fn send_notes(&mut self, connections: &mut Connections, now: Timestamp) {
        let notes = self.rules.notes(
            &self.seen_since(now.before(MOMENT)),
            self.rules.longest(&self.seen),
        );
        let founds = notes
            .iter()
            .any(|(_, new)| !new.keeps_times && new.note.origin == Origin::Founder);
        // A node that was not asked, because its connection had ended, may know of an older
        // deployment.
        let is_unsure = founds && !self.idle.is_empty();
        let mut noting = NodeSet::EMPTY;
        for (node, new) in notes.into_iter().filter(|_| !is_unsure) {
            let Seen::Look(judged) = self.seen[node.index()] else {
                continue;
            };
            let session = &mut connections.apart(node).session;
            // Half of another look may have arrived: what it finds is judged when the other half
            // has.
            if session.identity().seen(judged.wall) == Seen::Look(judged) {
                session.note(&new, now);
                noting.insert(node);
            }
        }
        self.await_answers(Stage::Noting, noting, connections, now);
    }

    fn await_answers(
        &mut self,
        stage: Stage,
        awaited: NodeSet,
        connections: &mut Connections,
        now: Timestamp,
    ) {
        let timeout = connections.node_timeout;
        let deadline = now.after(if stage == Stage::Noting {
            timeout
        } else {
            timeout / 2
        });
        let repeats = match self.judging {
            Some(Judging {
                stage: Stage::Noting,
                repeats,
                ..
            }) => repeats + 1,
            _ => 0,
        };
        self.judging = Some(Judging {
            stage,
            awaited,
            begun: now,
            deadline,
            is_late: false,
            is_outrun: false,
            repeats,
        });
        // The thread that polls waits no longer than that.
        connections.poll.record_change(true);
        for node in awaited.iter() {
            // An error shows at the next read.
            let _ = connections.flush(node, now);
        }
    }

    /// Finds out which nodes count now, and how long the others wait.
    fn record_standings(&mut self, connections: &mut Connections, rounds: &mut Rounds) {
        self.doubtful = NodeSet::EMPTY;
        connections.counting = NodeSet::EMPTY;
        let is_judging = self.judging.is_some();
        if self.rules.policy == RestartPolicy::Off {
            return;
        }
        let is_longer = is_judging && self.rules.is_longer(&self.seen);
        let longest = self.rules.longest(&self.seen);
        for node in connections.nodes() {
            let standing = self.standing(node, longest);
            let connection = &connections[node];
            let is_silent = self.seen[node.index()] == Seen::Silent;
            let is_doubtful = match standing {
                _ if is_longer => connection.is_in_use(),
                _ if connection.quarantine.is_durable() => false,
                None => is_silent && connection.is_in_use(),
                Some(Standing::Unnoted) => true,
                Some(Standing::Counts) => {
                    self.wait_by_note(node, Duration::ZERO, connections, rounds);
                    false
                }
                Some(Standing::Waits(left)) => {
                    self.wait_by_note(node, left, connections, rounds);
                    false
                }
            };
            if is_doubtful {
                self.doubtful.insert(node);
                match standing {
                    // Another node's note is in question, and this one has lost nothing: its grants
                    // wait.
                    Some(Standing::Counts) => {
                        let grants = rounds.take_back(node).into_iter();
                        let held = grants.map(|(ticket, fence)| NodeVote {
                            ticket,
                            node,
                            vote: Vote::Granted,
                            fence,
                        });
                        self.held.extend(held);
                    }
                    _ => rounds.withdraw(node, UNTRUSTED),
                }
            }
        }
    }

    /// By what the last look at the node has shown, the node waits for this long after that.
    fn wait_by_note(
        &self,
        node: NodeId,
        left: Duration,
        connections: &mut Connections,
        rounds: &mut Rounds,
    ) {
        let LookTimes { asked_at, read_at } = self.times[node.index()];
        let clock_now = connections.clock.now();
        let quarantine = &mut connections[node].quarantine;
        if quarantine.wait_by_note(left, [asked_at, read_at], clock_now) {
            connections.states.quarantine_began(node);
            rounds.withdraw(node, UNTRUSTED.with(Detail::Left(left)));
        }
    }

    /// The node has answered whether a lock may be acquired or kept. It is not up before it is
    /// judged, which is not possible with less than a quorum.
    pub(super) fn on_usable(&self, node: NodeId, connections: &mut Connections, now: Timestamp) {
        let too_few_vote = || {
            let voters = connections
                .each
                .iter()
                .filter(|connection| connection.is_in_use())
                .count();
            self.judging.is_none() && voters <= connections.each.len() / 2
        };
        if !self.is_doubtful(node) || connections[node].quarantine.is_on() || too_few_vote() {
            connections.filter(node).on_answer(now);
        }
    }
}
