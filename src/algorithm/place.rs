//! The place of a call in the queue of a fair lock, which each node keeps for itself.
//!
//! # Rules
//! A call has an id of its own, and a ticket. A node's queue holds places: `(ticket, id, deadline)`, and the greatest
//! ticket that it has seen. The script [`FAIR`](crate::protocol::script::FAIR) is what a node does:
//!
//! 1. It answers a call without a ticket with the one that it has stored for the id, or else with one more than it has
//!    seen; and a call with a ticket with that.
//! 2. It grants the lock, if that is free, to a call that is *first*: exactly the call's ticket is stored for its id
//!    and is the least, by `(ticket, id)`, or the call has no ticket yet and no other place is there. To any other it
//!    grants nothing, and stores its place with a new deadline. So a call that waits has its place on all nodes,
//!    however many of them were free when it came.
//!
//! A call ([`PlaceKeeper`]) asks without a ticket until a round is answered by a quorum. The greatest ticket of those
//! answers is its ticket for good. It asks again well before its places end, and each of its rounds stores or refreshes
//! them; but not after a round that no quorum has answered: a call that cannot win would keep others from winning. A
//! round that stores nothing is granted where no other place is, whatever the ticket. A place is asked for at least for
//! twice as long as the last round took: one that has always ended before the next round would never be granted. An id
//! belongs to one call, never to two: what a lost connection has left behind is then at most a place that ends.
//!
//! A call that has won leaves. In the same step it may have each node store a place for the next call of its program,
//! with a new id and one more than the greatest ticket seen: as if that call had asked each node, and the answers were
//! lost. It fixes its ticket when it asks.
//!
//! # Theorem
//! While the nodes of a quorum hold the ticket of a call A, which is fixed, no call B wins that begins later.
//!
//! # Proof
//! Let Q be those nodes, and t the ticket of A. Each of them has seen t, so it answers t + 1 or more to a B without a
//! ticket, and grants nothing to it: A's place is there, and none of B's was before it began. The quorum of answers
//! that fixes B's ticket shares a node with Q, so B's ticket is greater than t. From then on each node of Q finds A
//! before B, or finds a place of B with another ticket, and grants nothing to B in both cases. Every quorum shares a
//! node with Q, so B is not granted by any. ∎
//!
//! It takes a ticket that is greater than t. There is none if t is the [greatest](MOST_TICKET) that a queue has room
//! for, which only damage brings about; then nothing but the order is lost.
//!
//! The nodes of Q must be the same all the time. That there is *some* quorum at each moment is not enough: if A's place
//! moves from one node to another, B may come to the one before it and to the other after it.
//!
//! # Progress
//! When no node fails and no new call comes, the calls that wait store their fixed tickets on all nodes that answer, in
//! one round each. Then all those queues have the same order, and the first one wins.
//!
//! Both are searched in all states by `tests/models/fair`, with the rules that look as good and are not: no queue, the
//! order of arrival at each node (two calls, each first at one node, wait for ever), clocks of clients, a ticket that
//! is raised again, a grant to a call with another ticket than the stored one (waits for ever), an id that is used
//! again.
//!
//! A fenced lock that is fair has the same rules, by the script [`FENCED_FAIR`](crate::protocol::script::FENCED_FAIR).
//! A grant has a fence there, and what raises the fences afterwards grants nothing, so the proof is the same.

use super::backoff::Backoff;
use super::lock_kind::LockKind;
use super::node::NodeSet;
use super::time::Timestamp;
use super::turns::short_delay;
use std::fmt;
use std::time::Duration;

/// The greatest ticket: queues have 15 digits for each.
pub const MOST_TICKET: u64 = 999_999_999_999_999;
/// No lock passes through two nodes and two programs faster.
const SHORTEST_TURN: Duration = Duration::from_micros(250);

/// Names one call in the queues of a fair lock: 8 random bytes, as 16 hexadecimal digits. It is no secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PlaceId([u8; PlaceId::LENGTH]);

impl PlaceId {
    /// Bytes of it on the wire.
    pub const LENGTH: usize = 16;

    /// The id with this number.
    pub const fn new(number: u64) -> PlaceId {
        let (mut text, mut index) = ([0; PlaceId::LENGTH], 0);
        while index < PlaceId::LENGTH {
            text[index] = b"0123456789abcdef"[(number >> (60 - 4 * index)) as usize & 15];
            index += 1;
        }
        PlaceId(text)
    }

    /// Reads what was sent.
    pub fn parse(text: &[u8]) -> Option<PlaceId> {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        text.try_into().ok().filter(|digits: &[u8; PlaceId::LENGTH]| digits.iter().all(is_digit)).map(PlaceId)
    }

    /// As it is sent.
    pub fn text(&self) -> &[u8; PlaceId::LENGTH] {
        &self.0
    }
}

impl fmt::Debug for PlaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// What a call says of its place when it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceRequest {
    /// The call.
    pub id: PlaceId,
    /// Its ticket. None: that which the node has, or gives.
    pub ticket: Option<u64>,
    /// For how long the place counts from now on. None: the node stores no place.
    pub lasts_millis: Option<u32>,
}

/// The place that a call for a fair lock has left to the next one of its program, in exchange for its own.
#[derive(Clone, Copy, Debug)]
pub struct Successor {
    /// The next call.
    pub id: PlaceId,
    /// Of the lock.
    pub kind: LockKind,
    /// The nodes that may have the place.
    pub nodes: NodeSet,
    /// When they were asked for it.
    pub since: Timestamp,
}

/// How a call leaves the queue of a fair lock.
#[derive(Clone, Copy, Debug)]
pub enum Departure {
    /// Without the lock. The nodes name the call behind it, which is the first now.
    GivenUp,
    /// With the lock, whose release names the first one. The next call of the program may have a place at the end.
    Won(Option<PlaceId>),
}

/// What a node has answered about a place. Of several nodes: the greatest ticket and position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceAnswer {
    /// The ticket.
    pub ticket: u64,
    /// The position in the queue, counted from 1.
    pub position: u32,
    /// The least position.
    pub nearest: u32,
    /// Whether all nodes have answered the same ticket.
    pub is_common: bool,
}

impl PlaceAnswer {
    /// One node's.
    pub fn new(ticket: u64, position: u32) -> PlaceAnswer {
        PlaceAnswer { ticket, position, nearest: position, is_common: true }
    }

    /// Both nodes'.
    #[must_use]
    pub fn and(self, other: PlaceAnswer) -> PlaceAnswer {
        PlaceAnswer {
            ticket: self.ticket.max(other.ticket),
            position: self.position.max(other.position),
            nearest: self.nearest.min(other.nearest),
            is_common: self.is_common && other.is_common && self.ticket == other.ticket,
        }
    }
}

/// The answer to a call that was not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueReply {
    /// For how long the lock is held at most, counted from now. None: without an end.
    pub held: Option<Duration>,
    /// For how long the first place counts at most, if it is another one's.
    pub first_lasts: Duration,
    /// The place.
    pub place: PlaceAnswer,
}

/// A call's place: what to ask with, and when to ask again.
#[derive(Clone, Debug)]
pub struct PlaceKeeper {
    id: PlaceId,
    lasts: Duration,
    ticket: Option<u64>,
    /// The position when the ticket was fixed.
    position: Option<u32>,
    /// The least position by the last round.
    last_position: u32,
    /// Whether the next round stores a place: the one before it was answered by a quorum, or there is none.
    stores: bool,
    /// Whether the last round has stored the ticket that is fixed, as far as nodes have answered.
    is_settled: bool,
    /// When a quorum may be granted, by the answers to the last round.
    free_at: Timestamp,
    /// Whether the last round followed at once on the one before it.
    was_at_once: bool,
    /// How long the last round took.
    round_time: Duration,
}

impl PlaceKeeper {
    /// The place of a call that has not asked yet. It counts for so long each time. A call that `waits` not takes none.
    pub fn new(id: PlaceId, lasts: Duration, waits: bool) -> PlaceKeeper {
        PlaceKeeper {
            id,
            lasts,
            ticket: None,
            position: None,
            last_position: 0,
            stores: waits,
            is_settled: false,
            free_at: Timestamp::NEVER,
            was_at_once: false,
            round_time: Duration::ZERO,
        }
    }

    /// Until when a call need not ask whose place was stored for it then.
    pub fn refreshed_after(&self, stored_at: Timestamp) -> Timestamp {
        stored_at.after(self.lasts / 4)
    }

    /// What to ask with. The place is there when the call asks again, however far the nodes are.
    pub fn request(&self) -> PlaceRequest {
        let lasts = self.lasts.max(self.round_time.saturating_mul(2));
        let millis = u32::try_from(lasts.as_millis()).unwrap_or(u32::MAX);
        PlaceRequest { id: self.id, ticket: self.ticket, lasts_millis: self.stores.then_some(millis) }
    }

    /// The last round took so long.
    pub fn note_round_time(&mut self, time: Duration) {
        self.round_time = time;
    }

    /// Takes what a lost round was answered: by how many nodes, and when a quorum of them may grant.
    pub fn answered(&mut self, has_quorum: bool, answer: Option<PlaceAnswer>, free_at: Timestamp) {
        let had_ticket = self.ticket.is_some();
        if let (true, false, Some(answer)) = (has_quorum, had_ticket, answer) {
            (self.ticket, self.position) = (Some(answer.ticket), Some(answer.position));
        }
        self.is_settled = self.stores && (had_ticket || answer.is_none_or(|answer| answer.is_common));
        self.stores = has_quorum;
        self.last_position = answer.map_or(0, |answer| answer.nearest);
        self.free_at = free_at;
    }

    /// When to ask again after a lost round, if nothing happens before.
    pub(super) fn ask_again_at(&mut self, backoff: &mut Backoff, now: Timestamp, random: u64) -> Timestamp {
        let is_moment = self.stores && (!self.is_settled || self.free_at <= now);
        let was_at_once = std::mem::replace(&mut self.was_at_once, is_moment);
        match is_moment {
            // A place with another ticket is not granted, and one that is stored now is.
            true if !was_at_once => now,
            true => now.after(short_delay(random)),
            false if self.stores => now.after(self.refresh(random)).min(self.free_at),
            false => now.after(backoff.next_delay(random)),
        }
    }

    /// How long to sleep until the place is refreshed: within a third of the time that it counts for.
    fn refresh(&self, random: u64) -> Duration {
        (self.lasts / 4).mul_f64(1.0 + random as f64 / u64::MAX as f64 / 4.0)
    }

    /// Whether the place is stored, and behind so many others that none of the releases since the last round, at
    /// `asked_at`, was for this call: it need not ask again because it may have missed one.
    pub fn is_behind(&self, asked_at: Timestamp, now: Timestamp) -> bool {
        let turns = SHORTEST_TURN * self.last_position.saturating_sub(1);
        self.stores && self.is_settled && now.since(asked_at) < turns
    }

    /// Whether the call was the first at any node, by the last round.
    pub fn is_first(&self) -> bool {
        self.last_position == 1
    }

    /// The position when the call got its ticket, counted from 1.
    pub fn position(&self) -> Option<u32> {
        self.position
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANDOM: u64 = u64::MAX;

    fn at(millis: u64) -> Timestamp {
        Timestamp::ORIGIN.after(Duration::from_millis(millis))
    }

    fn keeper() -> PlaceKeeper {
        PlaceKeeper::new(PlaceId::new(7), Duration::from_secs(1), true)
    }

    fn backoff() -> Backoff {
        Backoff::new(Duration::from_millis(2), Duration::from_millis(250))
    }

    #[test]
    fn ids_are_as_long_whatever_the_number_is() {
        assert_eq!(PlaceId::new(0x1f).text(), b"000000000000001f");
        assert_eq!(PlaceId::parse(b"000000000000001f"), Some(PlaceId::new(31)));
        assert_eq!(PlaceId::parse(b"00000000000001f"), None);
        assert_eq!(PlaceId::parse(b"000000000000001F"), None);
    }

    #[test]
    fn the_greatest_ticket_of_the_first_quorum_is_fixed_for_good() {
        let mut keeper = keeper();
        keeper.answered(false, Some(PlaceAnswer::new(9, 4)), at(100));
        assert_eq!(keeper.request().ticket, None, "too few have answered");
        assert_eq!(keeper.request().lasts_millis, None, "and the place is left to end");
        keeper.answered(true, Some(PlaceAnswer::new(3, 1).and(PlaceAnswer::new(5, 2))), at(100));
        assert_eq!((keeper.request().ticket, keeper.position()), (Some(5), Some(2)));
        assert_eq!(keeper.request().lasts_millis, Some(1000));
        keeper.answered(true, Some(PlaceAnswer::new(8, 8)), at(100));
        assert_eq!((keeper.request().ticket, keeper.position()), (Some(5), Some(2)));
    }

    #[test]
    fn a_place_lasts_until_a_round_that_takes_as_long_as_the_last_one_has_come_back() {
        let mut keeper = keeper();
        for (round, lasts) in [(500, 1000), (1200, 2400), (3, 1000), (u64::MAX, u32::MAX)] {
            keeper.note_round_time(Duration::from_millis(round));
            keeper.answered(true, Some(PlaceAnswer::new(5, 1)), at(9999));
            assert_eq!(keeper.request().lasts_millis, Some(lasts));
        }
    }

    #[test]
    fn a_place_is_refreshed_within_a_third_and_asked_for_when_the_lock_may_be_free() {
        let mut keeper = keeper();
        let mut again = |answer, free_at| {
            keeper.answered(true, Some(answer), at(free_at));
            keeper.ask_again_at(&mut backoff(), at(10), RANDOM)
        };
        assert_eq!(again(PlaceAnswer::new(3, 1).and(PlaceAnswer::new(5, 1)), 9999), at(10), "places differ");
        let refresh = again(PlaceAnswer::new(5, 1), 9999);
        assert!(refresh > at(260) && refresh < at(10 + 333));
        assert_eq!(again(PlaceAnswer::new(5, 1), 40), at(40));
        assert_eq!(again(PlaceAnswer::new(5, 1), 10), at(10), "it is free, and the place is stored now");
        assert!(again(PlaceAnswer::new(5, 1), 10) >= at(12), "but not again and again");
    }

    #[test]
    fn a_release_that_was_missed_is_for_another_call_while_so_many_are_in_front() {
        let mut keeper = keeper();
        keeper.answered(true, Some(PlaceAnswer::new(8, 9)), at(9999));
        assert!(keeper.is_behind(at(10), at(11)) && !keeper.is_behind(at(10), at(12)));
        keeper.answered(true, Some(PlaceAnswer::new(8, 1)), at(9999));
        assert!(!keeper.is_behind(at(10), at(10)));
    }

    #[test]
    fn a_call_that_reaches_no_quorum_waits_as_any_other() {
        let mut keeper = keeper();
        keeper.answered(false, None, Timestamp::NEVER);
        assert!(keeper.ask_again_at(&mut backoff(), at(0), 0) <= at(250));
    }
}
