//! A call that waits for a lock, as its client sees it: which tickets it asks with, when it asks, what it undoes.
//!
//! This file has no type of the model: it is written to become the library's own, with `now` as an argument. Its
//! terms: an *entry* is the call's place in the queue of a node; its *ticket* is the entry's score there.
//!
//! 1. A round asks all nodes ([`QueuedCall::ask`]). A call without a ticket takes the greatest answer of the first
//!    round in which a quorum answered, for good. With fewer answers it leaves, and begins again.
//!    A round that is lost with fewer answers is repeated in 10 ms: its undo wakes others, and not its own call.
//! 2. A round that is lost is undone where a node granted or did not answer. The undo stores the ticket again. A node
//!    that answered with another ticket stores the call's.
//! 3. A call asks when a quorum of nodes sent it a turn, or 2 ms after the first node did. Because of fewer nodes than
//!    a quorum it asks at most once in 10 ms. A subscription that is confirmed counts as a turn.
//! 4. The entry behind the first one is the next one. A call that is next asks in 30 ms: the first one may have ended.
//!    A refusal with one entry in front, by a node whose lock was free, makes its call the next one, too. A call that
//!    has ended leaves a node that sends it a message of either kind.
//! 5. Without a message, a call asks once in `place_lease` and its rank in milliseconds.
//! 6. A round challenges a head that the call saw for `place_lease` while the lock was free or changed hands
//!    ([`HeadWatch`], one for each node).

use quorumlock::algorithm::node::{NodeId, NodeSet};
use quorumlock::algorithm::time::Timestamp;
use std::time::Duration;

/// A turn by fewer nodes than a quorum waits so long for the others: they are a network's jitter apart.
const JITTER: Duration = Duration::from_millis(2);
/// Rounds because of fewer turns than a quorum are so far apart, as most of them are lost.
const SPACING: Duration = Duration::from_millis(10);
/// The first one has so long to ask before the next one does: many round trips, and short to a person.
const NEXT: Duration = Duration::from_millis(30);

/// What stays the same for a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) nodes: usize,
    /// How long an entry in front may let others wait.
    pub(crate) place_lease: Duration,
}

/// Where a call is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// A round is under way.
    #[default]
    Asking,
    Waiting,
    Holding,
    Ended,
}

/// What a node replied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Granted,
    /// With the ticket that is stored there, and how many entries are in front of it.
    Refused {
        ticket: u64,
        rank: u32,
        is_free: bool,
    },
}

/// A message on a client's channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The lock is free, and the call's entry is the first.
    Turn,
    /// The lock is free, and the call's entry is behind the first.
    Next,
}

/// What a round has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Won,
    /// The call waits. Some nodes undo and store the ticket, others only store it.
    Lost {
        undo: NodeSet,
        store: NodeSet,
    },
    /// Too few nodes answered: the call leaves all nodes, and asks again.
    BeginsAgain,
}

/// The replies of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Round {
    pub(crate) granted: NodeSet,
    pub(crate) refused: NodeSet,
    pub(crate) silent: NodeSet,
    /// Of those that refused, the ones that answered with the greatest ticket.
    pub(crate) exact: NodeSet,
    pub(crate) greatest: u64,
    /// Whether a node refused whose lock was free, with one entry in front.
    pub(crate) is_next: bool,
    /// The least one.
    pub(crate) rank: Option<u32>,
}

/// A call, from its first round to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct QueuedCall {
    pub(crate) phase: Phase,
    pub(crate) ticket: Option<u64>,
    pub(crate) round: Round,
    /// The nodes that sent a turn since the last round began.
    pub(crate) turns: NodeSet,
    /// When the first of them did.
    turned: Timestamp,
    /// Since when it is the next one.
    pub(crate) next: Option<Timestamp>,
    /// Whether too few nodes answered its last round.
    pub(crate) retries: bool,
    asked: Timestamp,
    pub(crate) fallback: Timestamp,
}

/// The head of one node's queue, as its refusals show it to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct HeadWatch<M, V> {
    pub(crate) head: M,
    pub(crate) since: Timestamp,
    /// What the lock's key held.
    pub(crate) holder: Option<V>,
    /// Whether the lock was free, or changed hands, since then.
    pub(crate) is_passed: bool,
}

impl<M: Copy + Eq, V: Copy + Eq> HeadWatch<M, V> {
    /// What is known after a refusal.
    pub(crate) fn after(earlier: Option<Self>, head: M, holder: Option<V>, now: Timestamp) -> Self {
        match earlier.filter(|earlier| earlier.head == head) {
            None => HeadWatch { head, since: now, holder, is_passed: holder.is_none() },
            Some(same) => {
                let is_passed = same.is_passed || holder.is_none() || holder != same.holder;
                HeadWatch { holder, is_passed, ..same }
            }
        }
    }

    /// The head that the next round challenges on this node.
    pub(crate) fn challenged(&self, setup: &Setup, now: Timestamp) -> Option<M> {
        (self.is_passed && now >= self.since.after(setup.place_lease)).then_some(self.head)
    }
}

impl Setup {
    pub(crate) const fn quorum(&self) -> usize {
        self.nodes / 2 + 1
    }
}

impl QueuedCall {
    /// Begins a round. The ticket to ask with is the call's, if it has one.
    pub(crate) fn ask(&mut self, now: Timestamp) {
        let ticket = self.ticket;
        *self = QueuedCall { ticket, asked: now, ..QueuedCall::default() };
    }

    /// A node replied. Replies of earlier rounds are not passed here.
    pub(crate) fn on_reply(&mut self, setup: &Setup, node: NodeId, reply: Reply, now: Timestamp) -> Option<Verdict> {
        match reply {
            Reply::Granted => {
                self.round.granted.insert(node);
            }
            Reply::Refused { ticket, rank, is_free } => {
                let round = &mut self.round;
                round.refused.insert(node);
                let greatest = self.ticket.unwrap_or(ticket.max(round.greatest));
                if greatest != round.greatest {
                    round.exact = NodeSet::EMPTY;
                    round.greatest = greatest;
                }
                if ticket == greatest {
                    round.exact.insert(node);
                }
                round.is_next |= is_free && rank == 1;
                round.rank = Some(round.rank.map_or(rank, |least| least.min(rank)));
            }
        }
        self.judge(setup, now)
    }

    /// A node will not reply in time, or its connection has ended.
    pub(crate) fn on_silence(&mut self, setup: &Setup, node: NodeId, now: Timestamp) -> Option<Verdict> {
        self.round.silent.insert(node);
        self.judge(setup, now)
    }

    /// A message arrived. True: the call has ended, and leaves that node.
    pub(crate) fn on_message(&mut self, node: NodeId, message: Message, now: Timestamp) -> bool {
        match (self.phase, message) {
            (Phase::Asking | Phase::Waiting, Message::Turn) => {
                if self.turns.is_empty() {
                    self.turned = now;
                }
                self.turns.insert(node);
            }
            (Phase::Asking | Phase::Waiting, Message::Next) => self.next = self.next.or(Some(now)),
            (Phase::Holding, _) => {}
            (Phase::Ended, _) => return true,
        }
        false
    }

    /// The subscription on a node is confirmed: messages may have been lost before.
    pub(crate) fn on_confirmed(&mut self, node: NodeId, now: Timestamp) {
        if self.phase != Phase::Ended {
            self.on_message(node, Message::Turn, now);
        }
    }

    /// The hold has been released, or the call gives up.
    pub(crate) fn end(&mut self) {
        *self = QueuedCall { phase: Phase::Ended, ticket: self.ticket, ..QueuedCall::default() };
    }

    /// When it asks again, if no message arrives before.
    pub(crate) fn due(&self, setup: &Setup) -> Timestamp {
        if self.phase != Phase::Waiting {
            return Timestamp::NEVER;
        }
        let retry = if self.retries { self.asked.after(SPACING) } else { self.fallback };
        let next = self.next.map_or(Timestamp::NEVER, |since| since.after(NEXT));
        let turn = match self.turns.len() {
            0 => Timestamp::NEVER,
            turns if turns >= setup.quorum() => self.turned,
            _ => self.turned.after(JITTER).max(self.asked.after(SPACING)),
        };
        retry.min(next).min(turn)
    }

    fn judge(&mut self, setup: &Setup, now: Timestamp) -> Option<Verdict> {
        let Round { granted, refused, silent, exact, greatest, is_next, rank } = self.round;
        if granted.len() >= setup.quorum() {
            *self = QueuedCall { phase: Phase::Holding, ticket: self.ticket, ..QueuedCall::default() };
            return Some(Verdict::Won);
        }
        let (answers, lost) = (granted.len() + refused.len(), refused.len() + silent.len());
        let is_open = answers + silent.len() < setup.nodes;
        let is_answered = self.ticket.is_some() || answers >= setup.quorum();
        if lost <= setup.nodes - setup.quorum() || is_open && !is_answered {
            return None;
        }
        self.phase = Phase::Waiting;
        self.round = Round::default();
        self.retries = answers < setup.quorum();
        if !is_answered {
            return Some(Verdict::BeginsAgain);
        }
        self.ticket = self.ticket.or(Some(greatest));
        let pause = setup.place_lease + Duration::from_millis(rank.unwrap_or(0).into());
        self.fallback = self.asked.after(pause);
        if is_next {
            self.next = self.next.or(Some(now));
        }
        Some(Verdict::Lost { undo: NodeSet::first(setup.nodes).without(refused), store: refused.without(exact) })
    }
}
