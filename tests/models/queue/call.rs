//! A call as the search stores it, and the library's own, which is made of that for each thing that
//! happens.
//!
//! What a call does is `algorithm::queue`. What is here beside it is the engine's: when a round is
//! decided (`engine::rounds`).

use crate::node::{CALLS, Lock};
use crate::rules::Rule;
use crate::world::{NODES, NOW, PLACE_LEASE};
use quorumlock::algorithm::holder::HolderTag;
use quorumlock::algorithm::kind::EntryKind;
use quorumlock::algorithm::node::{NodeId, NodeSet};
use quorumlock::algorithm::queue::{
    Aftermath, Entry, HeadWatch, Member, Message, QueueReply, QueueRound, QueuedCall, Setup, Slots,
    Storage,
};
use quorumlock::algorithm::time::Timestamp;
use std::sync::LazyLock;
use std::time::Duration;

/// Rounds that are lost in vain are repeated after this time.
const SPACING: Duration = Duration::from_millis(10);
/// No clock is ahead.
const LATEST: u64 = u64::MAX;

static MEMBERS: LazyLock<[Member; CALLS]> =
    LazyLock::new(|| std::array::from_fn(|call| entry(call).member()));
static TAGS: LazyLock<Vec<(Lock, HolderTag)>> = LazyLock::new(|| {
    let locks = [Lock::Newcomer, Lock::Late, Lock::Leaked]
        .into_iter()
        .chain((0..CALLS as u8).map(Lock::Call));
    locks
        .enumerate()
        .map(|(number, lock)| (lock, HolderTag::of(&[number as u8])))
        .collect()
});

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
    /// Refused, without any information about the queue.
    Taken,
}

/// What a round has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pending,
    /// It is lost. The engine waits for the other nodes, which may refuse it as well, for 2 ms.
    AwaitsRefusals,
    Won,
    Lost,
}

/// The replies of a round: of those that refused, what the library's [`QueueRound`] makes of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Round {
    pub(crate) granted: NodeSet,
    pub(crate) refused: NodeSet,
    pub(crate) silent: NodeSet,
    pub(crate) exact: NodeSet,
    pub(crate) greatest: u64,
    pub(crate) is_next: bool,
    pub(crate) is_by_command: bool,
}

/// A call, from its first round to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct CallState {
    /// How many nodes there are, and which call it is.
    nodes: u8,
    call: u8,
    pub(crate) phase: Phase,
    pub(crate) ticket: Option<u64>,
    pub(crate) round: Round,
    pub(crate) turns: NodeSet,
    pub(crate) found_first: NodeSet,
    pub(crate) is_next: bool,
    pub(crate) retries: bool,
}

/// What a call has seen at the head of a node's queue. All times are [`NOW`], or `place_lease`
/// before it.
pub(crate) type Watch = Option<HeadWatch<u8, Lock>>;

/// What one call has seen at the heads of the nodes' queues: before its round, and by the replies
/// of that.
pub(crate) type Heads = [[Watch; NODES]; 2];

fn entry(call: usize) -> Entry {
    Entry {
        client: call as u64,
        kind: EntryKind::Mutex,
        number: 1,
    }
}

/// The call whose entry this is.
pub(crate) fn call_of(member: Member) -> Option<usize> {
    MEMBERS.iter().position(|other| *other == member)
}

impl CallState {
    pub(crate) fn new(nodes: usize, call: usize) -> CallState {
        CallState {
            nodes: nodes as u8,
            call: call as u8,
            ..CallState::default()
        }
    }

    /// The same call, with nothing but its ticket.
    pub(crate) fn at_rest(&self, phase: Phase) -> CallState {
        CallState {
            phase,
            ticket: self.ticket,
            ..CallState::new(self.nodes.into(), self.call.into())
        }
    }

    fn setup(&self) -> Setup {
        Setup {
            nodes: self.nodes.into(),
            place_lease: PLACE_LEASE,
        }
    }

    /// The library's.
    fn queued(&self, heads: &[Watch; NODES]) -> QueuedCall {
        let entry = entry(self.call.into());
        let mut queued = QueuedCall::new(self.setup(), entry, NOW);
        queued.ticket = self.ticket;
        queued.found_first = self.found_first;
        (queued.turns, queued.next, queued.retry) = (
            self.turns,
            self.is_next.then_some(NOW),
            self.retries.then_some(SPACING),
        );
        queued.fallback = NOW.after(PLACE_LEASE);
        let watches = heads.iter().enumerate();
        queued.heads = watches
            .filter_map(|(n, watch)| Some((NodeId::new(n), (*watch)?)))
            .map(|(node, watch)| {
                let head = MEMBERS[usize::from(watch.head)];
                (node, of(watch, head, watch.holder.and_then(tag_of)))
            })
            .collect();
        queued
    }

    fn store(&mut self, queued: &QueuedCall) {
        self.ticket = queued.ticket;
        self.turns = queued.turns;
        self.retries = queued.retry.is_some();
        self.is_next = queued.next.is_some();
        self.found_first = queued.found_first;
    }

    /// Begins a round, by the command of the lock if there is one. Returns the call whose entry it
    /// challenges.
    pub(crate) fn ask(&mut self, heads: &[Watch; NODES], has_command: bool) -> Option<usize> {
        let mut queued = self.queued(heads);
        let request = queued.request(0, NOW);
        queued.ask(NOW);
        self.store(&queued);
        let greatest = self.ticket.unwrap_or(0);
        let round = Round {
            greatest,
            is_by_command: has_command && request.by_command,
            ..Round::default()
        };
        self.phase = Phase::Asking;
        self.round = round;
        request.challenged.and_then(call_of)
    }

    /// A node replied. Replies of earlier rounds are not passed here.
    pub(crate) fn on_reply(&mut self, node: NodeId, reply: Reply) -> Verdict {
        match reply {
            Reply::Granted => {
                self.round.granted.insert(node);
            }
            Reply::Refused {
                ticket,
                rank,
                is_free,
            } => {
                let mut round = self.round.library(self.ticket, &Heads::default());
                round.on_refused(node, reply_of(ticket, rank, is_free, Watch::default()));
                self.round.refused.insert(node);
                self.round.exact = round.exact();
                self.round.greatest = round.ticket();
                self.round.is_next = round.is_next();
            }
            Reply::Taken => _ = self.round.refused.insert(node),
        }
        self.verdict()
    }

    /// A node will not reply in time, or its connection has ended.
    pub(crate) fn on_silence(&mut self, node: NodeId) -> Verdict {
        self.round.silent.insert(node);
        self.verdict()
    }

    /// Whether the engine ends the round.
    pub(crate) fn verdict(&self) -> Verdict {
        let Round {
            granted,
            refused,
            silent,
            ..
        } = self.round;
        let Setup { nodes, .. } = self.setup();
        let quorum = self.setup().quorum();
        let undecided = nodes - granted.len() - refused.len() - silent.len();
        let answered = granted.len() + refused.len();
        let lacks_replies = QueuedCall::lacks_replies(quorum, answered, undecided);
        if granted.len() >= quorum {
            Verdict::Won
        } else if granted.len() + undecided >= quorum || lacks_replies {
            Verdict::Pending
        } else if refused.len() >= quorum && granted.is_empty() && undecided > 0 {
            Verdict::AwaitsRefusals
        } else {
            Verdict::Lost
        }
    }

    /// The lock is won.
    pub(crate) fn won(&mut self) {
        *self = self.at_rest(Phase::Holding);
    }

    /// The round is lost. Returns what is to be done, and what the call watches from now on.
    pub(crate) fn lost(&mut self, rule: Rule, heads: &Heads) -> (Aftermath, [Watch; NODES]) {
        let mut queued = self.queued(&heads[0]);
        let round = self.round.library(self.ticket, heads);
        let before = queued.next;
        let aftermath = queued.lost(self.round.granted, &round, Timestamp::NEVER, NOW);
        if rule == Rule::RefusedIsNotNext {
            queued.next = before;
        }
        queued.retry = queued.retry.filter(|_| rule != Rule::SilenceWaits);
        self.store(&queued);
        self.phase = Phase::Waiting;
        self.round = Round::default();
        let mut watches = [Watch::default(); NODES];
        for (node, watch) in queued.heads {
            let head = call_of(watch.head).unwrap_or_default() as u8;
            watches[node.index()] = Some(of(watch, head, watch.holder.and_then(lock_of)));
        }
        (aftermath, watches)
    }

    /// A message arrived. True: the call has ended, and leaves that node.
    pub(crate) fn on_message(&mut self, rule: Rule, node: NodeId, message: Message) -> bool {
        let is_first = rule == Rule::ConfirmedIsFirst && message == Message::Confirmed;
        let message = if is_first {
            Message::Turn(None)
        } else {
            message
        };
        if matches!(self.phase, Phase::Asking | Phase::Waiting) {
            let mut queued = self.queued(&Default::default());
            queued.on_message(node, message, NOW);
            self.store(&queued);
        }
        self.phase == Phase::Ended && message != Message::Confirmed
    }

    /// The hold has been released, or the call ends without the lock.
    pub(crate) fn end(&mut self) {
        *self = self.at_rest(Phase::Ended);
    }

    /// When it asks again, if no message arrives before.
    pub(crate) fn due(&self) -> Timestamp {
        match self.phase {
            Phase::Waiting => self.queued(&Default::default()).due(),
            _ => Timestamp::NEVER,
        }
    }
}

impl Round {
    /// The library's, of replies that come to the same.
    fn library(&self, own: Option<u64>, [_, seen]: &Heads) -> QueueRound {
        let mut round = QueueRound::new(own, LATEST).by_command(self.is_by_command);
        if self.is_by_command {
            round.on_refusals(self.refused);
            return round;
        }
        for (index, node) in self.refused.iter().enumerate() {
            let is_next = self.is_next && index == 0;
            let ticket = if self.exact.contains(node) {
                self.greatest
            } else {
                0
            };
            round.on_refused(
                node,
                reply_of(
                    ticket,
                    if is_next { 1 } else { 2 },
                    is_next,
                    seen[node.index()],
                ),
            );
        }
        round
    }
}

fn reply_of(ticket: u64, rank: u32, is_free: bool, seen: Watch) -> QueueReply {
    let held = Some(if is_free { Duration::ZERO } else { PLACE_LEASE });
    QueueReply {
        storage: Storage::Before,
        ticket,
        rank,
        held,
        holder: seen.and_then(|seen| seen.holder).and_then(tag_of),
        is_other_library: false,
        slots: Slots::default(),
        head: seen.map(|seen| MEMBERS[usize::from(seen.head)]),
    }
}

/// The same watch, of a head and a holder that are named otherwise.
fn of<A, B, M, H>(watch: HeadWatch<A, B>, head: M, holder: Option<H>) -> HeadWatch<M, H> {
    HeadWatch {
        head,
        since: watch.since,
        holder,
        is_passed: watch.is_passed,
    }
}

fn tag_of(lock: Lock) -> Option<HolderTag> {
    TAGS.iter()
        .find(|(other, _)| *other == lock)
        .map(|&(_, tag)| tag)
}

fn lock_of(tag: HolderTag) -> Option<Lock> {
    TAGS.iter()
        .find(|(_, other)| *other == tag)
        .map(|&(lock, _)| lock)
}
