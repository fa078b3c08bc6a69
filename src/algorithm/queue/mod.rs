//! Waiting for a lock: one queue for each name, on each node.
//!
//! An *entry* is a call's place in the queue of a node; its *ticket* is the entry's score there.
//! The scripts of [`protocol::queue`](crate::protocol::queue) are what a node does. [`QueuedCall`]
//! is what a call does: a value without clock, socket or thread. Exclusion never depends on it:
//! every grant is by the key of the lock.
//!
//! # Contract
//! 1. A round asks all nodes ([`request`](QueuedCall::request), [`ask`](QueuedCall::ask)). A call
//!    without a ticket takes the greatest reply of the first round in which a quorum replied, for
//!    good; but none that neither its clock nor another node explains. A round that is lost waits
//!    for those replies while they may arrive ([`lacks_replies`](QueuedCall::lacks_replies)). With
//!    fewer it leaves, and begins again after a delay that grows (rule 3.3). A round that a quorum
//!    granted, and that is lost, is repeated in 10 ms: its undo wakes others, and not its own call.
//! 2. A round that is lost is undone where a node granted or did not reply. The undo stores the
//!    ticket again; but where fewer nodes than a quorum replied, the entry is removed from those,
//!    and the call keeps its ticket. A node that replied with another ticket stores the call's
//!    ([`lost`](QueuedCall::lost)).
//! 3. A call asks when a quorum of nodes sent it a turn, or 2 ms after the first node did. Because
//!    of fewer nodes than a quorum it asks at most once in 10 ms, which doubles with each such
//!    round until a quorum does. A subscription that is confirmed counts as a turn. Told by a
//!    quorum to be the first one, it asks by the command of the lock, which costs a node a tenth of
//!    the script, and by the script if that is lost. Without a ticket, no message is for it.
//! 4. The entry behind the first one is the next one. A call that is next asks in 30 ms: the first
//!    one may have ended. A refusal with one entry in front, by a node whose lock was free, makes
//!    its call the next one, too.
//! 5. Without a message, a call asks once in `place_lease` and its rank in milliseconds; the first
//!    one also when the holder's time to live ends. Where messages do not arrive, it asks after a
//!    delay that grows (rule 3.3). So does the first one while another library has the lock, by
//!    [`QueueRound::waits_for_other_library`]; its delays begin anew when that library's programs
//!    have passed the lock on ([`is_passed_on`](QueuedCall::is_passed_on)). A call that finds
//!    another holder, and was not told, asks again in 10 ms: if it has not been told by then, the
//!    holders' releases send no message ([`has_missed`](QueuedCall::has_missed)). A set that asked
//!    for all its keys in vain lets a random time pass before a turn has it ask again
//!    ([`collided`](QueuedCall::collided)).
//! 6. A round challenges a head that the call saw for `place_lease` while the lock was free or
//!    changed hands ([`HeadWatch`], one for each node). It grants nothing, and the call asks again
//!    in 10 ms.
//!
//! # Theorem
//! While the nodes of one quorum keep the ticket of a call A, no call that begins later and asks in
//! its turn wins before A. Nor does it by the command: a quorum found it to be first, and one of
//! those nodes has the entry of A in front. Exceptions: first attempts of plain locks, which have
//! no entry; a challenge; an entry that was removed while its client's connection was away; a lost
//! queue; damage. `tests/models/queue` searches this, and refutes what looks as good.

mod entry;
mod reply;
mod round;
mod setup;

pub use self::entry::{CLIENT_DIGITS, Entry, Member};
pub use self::reply::{MOST_SLOTS, QueueReply, Slots, Storage, TakeRequest, TicketRequest};
pub use self::round::{HeadWatch, QueueRound};
pub use self::setup::{Setup, latest_ticket};

use super::holder::HolderTag;
use super::node::{NodeId, NodeSet};
use super::time::Timestamp;
use std::cmp::Reverse;
use std::time::Duration;

/// A turn by fewer nodes than a quorum waits so long for the others: they are a network's jitter
/// apart.
const JITTER: Duration = Duration::from_millis(2);
/// The longest time without a round but for the rank: nodes keep a queue for three times as long
/// after one.
const LONGEST: Duration = Duration::from_secs(20);
/// A greater rank is a lie.
const MOST_IN_FRONT: u32 = 10_000;
/// Rounds because of fewer turns than a quorum are so far apart, as most of them are lost.
const SPACING: Duration = Duration::from_millis(10);
/// The first one has so long to ask before the next one does: many round trips, and short to a
/// person.
const NEXT: Duration = Duration::from_millis(30);
/// What arrives on a client's channel for one of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The lock is free for the call. A semaphore names the slot that may be free.
    Turn(Option<u16>),
    /// The lock is free, and the call's entry is behind the first.
    Next,
    /// The subscription is confirmed: messages may have been lost before.
    Confirmed,
}

/// What a lost round leaves to be done, on which nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aftermath {
    /// The call waits. Some nodes undo and store the ticket, others only store it.
    Waits {
        /// These may have granted.
        undo: NodeSet,
        /// These have another ticket, or none.
        store: NodeSet,
    },
    /// Too few nodes replied for a ticket: the call leaves all nodes, and asks again.
    BeginsAgain,
    /// Too few nodes replied to a call with a ticket: it leaves those, and keeps its ticket. Where
    /// it is heard, it would be the first one for as long as it fails.
    StepsAside,
}

impl Aftermath {
    /// The nodes that are to store the ticket.
    pub fn store(self) -> NodeSet {
        if let Aftermath::Waits { store, .. } = self {
            store
        } else {
            NodeSet::EMPTY
        }
    }
}

/// Why a call asked, for events and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskedBecause {
    /// Of messages.
    pub told: u32,
    /// Of nothing but time.
    pub unasked: u32,
    /// How often it challenged the first entry.
    pub challenges: u32,
}

/// A call that waits in the queues of a lock. The model `tests/models/queue` stores what is public,
/// and makes the call of that again.
#[derive(Clone, Debug)]
pub struct QueuedCall {
    setup: Setup,
    entry: Entry,
    /// Its ticket, once it has one.
    pub ticket: Option<u64>,
    /// The nodes that sent a turn since the last round began, and when the first of them did.
    pub turns: NodeSet,
    turned: Timestamp,
    /// The nodes among them that found the call to be the first one, and the lock to be free.
    pub found_first: NodeSet,
    /// Since when it is the next one.
    pub next: Option<Timestamp>,
    /// After which time the last round is repeated, if soon: too few nodes replied, or a quorum
    /// granted it in vain, it was a challenge, or another slot is free.
    pub retry: Option<Duration>,
    /// The pause after a round in which another slot was free. It doubles until a quorum sends
    /// turns: on no quorum the slot may be free.
    slot_pause: Duration,
    asked: Timestamp,
    /// For how long after it asked no turn has it ask again.
    pause: Duration,
    /// The same of turns by fewer nodes than a quorum. It doubles with each such round until a
    /// quorum sends turns: a node without the holder's key may send one for each round.
    spacing: Duration,
    /// When it asks without a reason to.
    pub fallback: Timestamp,
    /// How many were in front on the node with the fewest: at the first round that was refused, and
    /// at the last one.
    first_rank: Option<u32>,
    rank: u32,
    /// The nodes that had the ticket by the last round.
    stored: NodeSet,
    /// The nodes that the call leaves, though it has a ticket, because too few replied to the last
    /// round.
    leaves: NodeSet,
    /// The slots of a semaphore that turns named, by node.
    slots: Vec<(NodeId, u16)>,
    /// The first entries of the nodes where another one is first.
    pub heads: Vec<(NodeId, HeadWatch<Member, HolderTag>)>,
    because: AskedBecause,
    /// Whether the last round began without a message, and before the holder's time had ended.
    is_unasked: bool,
    /// When the holder's key ends, as far as nodes have replied.
    free_at: Timestamp,
    /// By node: how many were in front there, and which holder had the lock.
    seen: Vec<(NodeId, u32, Option<HolderTag>)>,
    /// Whether the last round found another holder, and no message had arrived. One may still
    /// arrive.
    suspects: bool,
    /// Whether none had arrived when the call asked again: holders may not publish.
    has_missed: bool,
    /// Whether another library's programs have passed the lock on since the round before the last
    /// one.
    is_passed_on: bool,
}

impl QueuedCall {
    /// A call that has not asked yet.
    pub fn new(setup: Setup, entry: Entry, now: Timestamp) -> QueuedCall {
        QueuedCall {
            setup,
            entry,
            ticket: None,
            turns: NodeSet::EMPTY,
            turned: now,
            found_first: NodeSet::EMPTY,
            next: None,
            retry: None,
            slot_pause: JITTER,
            asked: now,
            pause: Duration::ZERO,
            spacing: SPACING,
            fallback: now,
            first_rank: None,
            rank: 0,
            stored: NodeSet::EMPTY,
            leaves: NodeSet::EMPTY,
            slots: Vec::new(),
            heads: Vec::new(),
            because: AskedBecause::default(),
            is_unasked: false,
            free_at: Timestamp::NEVER,
            seen: Vec::new(),
            suspects: false,
            has_missed: false,
            is_passed_on: false,
        }
    }

    /// The call's entry.
    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// How to ask, by the client's clock in microseconds.
    pub fn request(&self, clock: u64, now: Timestamp) -> TakeRequest {
        let ticket = self
            .ticket
            .map_or(TicketRequest::Proposed(clock), TicketRequest::Fixed);
        let challenged = self.challenged(now);
        let is_first = self.ticket.is_some() && self.found_first.len() >= self.setup.quorum();
        let by_command =
            is_first && self.entry.kind.is_acquired_by_command() && challenged.is_none();
        TakeRequest {
            entry: Some(self.entry),
            ticket,
            challenged,
            by_command,
            ..TakeRequest::WITHOUT_ENTRY
        }
    }

    /// Begins another round at once, for a slot or a key that an earlier one has shown to be free.
    pub fn ask_on(&mut self, now: Timestamp) {
        self.asked = now;
    }

    /// Begins a round. What was received before is found out by it.
    pub fn ask(&mut self, now: Timestamp) {
        let is_told = self.is_told();
        self.has_missed = std::mem::take(&mut self.suspects) && !is_told;
        if self.turns.len() >= self.setup.quorum() {
            self.spacing = SPACING;
            self.slot_pause = JITTER;
        } else if !self.turns.is_empty() {
            self.spacing = (self.spacing * 2).min(self.setup.place_lease).max(SPACING);
        }
        self.is_unasked =
            self.ticket.is_some() && !is_told && self.retry.is_none() && now < self.free_at;
        if self.challenged(now).is_some() {
            self.because.challenges += 1;
        } else if is_told {
            self.because.told += 1;
        } else if self.ticket.is_some() {
            self.because.unasked += 1;
        }
        self.turns = NodeSet::EMPTY;
        self.found_first = NodeSet::EMPTY;
        self.next = None;
        self.retry = None;
        self.asked = now;
        self.leaves = NodeSet::EMPTY;
        self.pause = Duration::ZERO;
    }

    /// A set asked for all keys in vain: it may have kept another set from one of them, which kept
    /// it from another one. What each of them undoes wakes the other, at the same time again and
    /// again, unless they pause for random times.
    pub fn collided(&mut self, attempt_time: Duration, random: u64) {
        let longest = u64::try_from(SPACING.max(attempt_time * 2).as_nanos()).unwrap_or(u64::MAX);
        self.pause = Duration::from_nanos(random % longest);
    }

    /// The nodes that the call leaves by the undo of the last round, though it has a ticket.
    pub fn leaves(&self) -> NodeSet {
        self.leaves
    }

    /// A message arrived.
    pub fn on_message(&mut self, node: NodeId, message: Message, now: Timestamp) {
        match message {
            Message::Turn(slot) => {
                if let Some(slot) = slot {
                    self.slots.retain(|&(other, _)| other != node);
                    self.slots.push((node, slot));
                }
                self.found_first.insert(node);
                self.on_turn(node, now);
            }
            Message::Confirmed => self.on_turn(node, now),
            Message::Next => self.next = self.next.or(Some(now)),
        }
    }

    fn on_turn(&mut self, node: NodeId, now: Timestamp) {
        if self.turns.is_empty() {
            self.turned = now;
        }
        self.turns.insert(node);
    }

    /// The slot that most turns named since the last time. If several slots were named equally
    /// often, it is the one that the first node named: where two slots became free in another order
    /// on each node, two calls that were told do not ask for the same one.
    pub fn take_slot(&mut self) -> Option<u16> {
        let slots = std::mem::take(&mut self.slots);
        let count = |slot: u16| slots.iter().filter(|&&(_, other)| other == slot).count();
        slots
            .iter()
            .max_by_key(|&&(node, slot)| (count(slot), Reverse(node)))
            .map(|&(_, slot)| slot)
    }

    /// Whether a round that is lost is to be waited for longer: so few nodes have replied that its
    /// call would get no ticket, or leave them and forget what it has seen there, and so many may
    /// still reply that it would not.
    pub fn lacks_replies(quorum: usize, answered: usize, undecided: usize) -> bool {
        answered < quorum && answered + undecided >= quorum
    }

    /// A round is lost that these nodes granted. Those that neither granted nor refused are silent.
    /// `free_at`: when the holder's key ends, as far as nodes have replied.
    pub fn lost(
        &mut self,
        granted: NodeSet,
        round: &QueueRound,
        free_at: Timestamp,
        now: Timestamp,
    ) -> Aftermath {
        if round.is_by_command {
            // Another call was granted meanwhile. By the script, the nodes reply what the call is
            // to wait for.
            self.retry = Some(Duration::ZERO);
            let undo = NodeSet::first(self.setup.nodes).without(round.without_queue);
            return Aftermath::Waits {
                undo,
                store: NodeSet::EMPTY,
            };
        }
        let refused = round.nodes();
        let answered = granted.union(refused).union(round.without_queue).len();
        let was_challenge = self.challenged(self.asked).is_some();
        let quorum = self.setup.quorum();
        self.retry = match answered < quorum || granted.len() >= quorum || was_challenge {
            true => Some(SPACING),
            false => round.has_other_slots().then_some(self.slot_pause),
        };
        if round.has_other_slots() {
            self.slot_pause = (self.slot_pause * 2).min(self.setup.place_lease);
        }
        if self.ticket.is_none() && (answered < quorum || refused.is_empty()) {
            return Aftermath::BeginsAgain;
        }
        self.free_at = free_at;
        self.watch_heads(round, now);
        if self.suspects {
            self.retry = self.retry.or(Some(SPACING));
        }
        self.ticket = self.ticket.or(Some(round.ticket()));
        self.stored = round.exact();
        self.rank = round.rank().unwrap_or(0);
        self.first_rank = self.first_rank.or(Some(self.rank));
        let longest = self.setup.place_lease.min(LONGEST);
        self.fallback = self
            .asked
            .after(longest + Duration::from_millis(self.rank.min(MOST_IN_FRONT).into()));
        if round.is_next() {
            self.next = self.next.or(Some(now));
        }
        if answered < quorum {
            self.leaves = granted.union(refused);
            self.stored = NodeSet::EMPTY;
            return Aftermath::StepsAside;
        }
        Aftermath::Waits {
            undo: NodeSet::first(self.setup.nodes)
                .without(refused)
                .without(round.without_queue),
            store: refused.without(round.exact()),
        }
    }

    /// When it asks again, if no message arrives before.
    pub fn due(&self) -> Timestamp {
        let retry = self
            .retry
            .map_or(self.fallback, |pause| self.asked.after(pause));
        let next = self
            .next
            .map_or(Timestamp::NEVER, |since| since.after(NEXT));
        let turn = match self.turns.len() {
            0 => Timestamp::NEVER,
            turns if turns >= self.setup.quorum() => self.turned.max(self.asked.after(self.pause)),
            _ => self
                .turned
                .after(JITTER)
                .max(self.asked.after(self.spacing.max(self.pause))),
        };
        let end = if self.may_be_first() && self.free_at > self.asked {
            self.free_at
        } else {
            Timestamp::NEVER
        };
        retry.min(next).min(turn).min(end)
    }

    /// Whether no entry is in front of it on some node, or one, which may be the holder's.
    fn may_be_first(&self) -> bool {
        self.first_rank.is_some() && self.rank <= 1
    }

    /// How many were in front when it came.
    pub fn first_rank(&self) -> Option<u32> {
        self.first_rank
    }

    /// Whether a message is the reason to ask now.
    pub fn is_told(&self) -> bool {
        !self.turns.is_empty() || self.next.is_some()
    }

    /// Why it asked.
    pub fn because(&self) -> AskedBecause {
        self.because
    }

    /// Whether the lock changed hands before the last round, and no message had arrived by then.
    /// With `has_won`, the last round won the lock, and a win that no message preceded counts as
    /// well.
    pub fn has_missed(&self, has_won: bool) -> bool {
        self.has_missed || has_won && self.is_unasked
    }

    /// Whether other libraries' programs have passed the lock on between the last two rounds: it is
    /// free for short times, which no message shows, and a call that asks seldom would miss all of
    /// them.
    pub fn is_passed_on(&self) -> bool {
        self.is_passed_on
    }

    fn challenged(&self, now: Timestamp) -> Option<Member> {
        self.ticket?;
        self.heads
            .iter()
            .find_map(|(_, watch)| watch.challenged(self.setup.place_lease, now))
    }

    fn watch_heads(&mut self, round: &QueueRound, now: Timestamp) {
        let own = self.entry.member();
        let has_one_holder = self.entry.kind.has_one_holder();
        // What a node that does not refuse any more has shown is over.
        let refused = round.nodes();
        self.heads.retain(|(node, _)| refused.contains(*node));
        self.is_passed_on = false;
        for &(node, reply) in &round.replies {
            let at = self.heads.iter().position(|&(other, _)| other == node);
            let earlier = at.map(|at| self.heads.swap_remove(at).1);
            // A release tells the first entry, and the second one that it is that; those behind
            // hear nothing. Of readers and permits, one holder goes and another stays.
            let is_new = |&(other, rank, holder): &(NodeId, u32, Option<HolderTag>)| {
                other == node
                    && rank <= 1
                    && has_one_holder
                    && reply.holder.is_some()
                    && holder != reply.holder
            };
            let has_changed = self.seen.iter().any(is_new);
            self.is_passed_on |= reply.is_other_library && has_changed;
            // An entry that is gone, without a message about it, was removed: messages to it count
            // no receiver.
            let is_gone = self.stored.contains(node) && reply.storage == Storage::Now;
            self.suspects |= self.is_unasked && (has_changed || is_gone);
            if let Some(head) = reply.head.filter(|head| *head != own) {
                self.heads
                    .push((node, HeadWatch::after(earlier, head, reply.holder, now)));
            }
        }
        self.seen = round
            .replies
            .iter()
            .map(|&(node, reply)| (node, reply.rank, reply.holder))
            .collect();
    }
}

#[cfg(test)]
mod tests;
