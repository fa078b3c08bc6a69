//! States as the search stores them, in a sixth of the memory. Times are left out: all are [`NOW`], or that and
//! `place_lease`.

use crate::call::{HeadWatch, Phase, QueuedCall, Round};
use crate::node::{CALLS, Lock};
use crate::world::{Call, Life, NODES, NOW, NodeState, PLACE_LEASE, World};
use quorumlock::algorithm::node::{NodeId, NodeSet};

/// A [`World`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct State {
    count: u8,
    nodes: [NodeState; NODES],
    calls: [(Life, u8, u32); CALLS],
    faults: u8,
    excused: bool,
    is_littered: bool,
}

/// A [`HeadWatch`], or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Watch(u8);

impl State {
    pub(crate) fn of(world: &World) -> State {
        let World { count, nodes, faults, excused, is_littered, .. } = *world;
        let calls = world.calls.map(|call| (call.life, call.clock, pack(&call.queued)));
        State { count, nodes, calls, faults, excused, is_littered }
    }

    pub(crate) fn world(&self) -> World {
        let State { count, nodes, faults, excused, is_littered, .. } = *self;
        let calls = self.calls.map(|(life, clock, packed)| Call { life, queued: unpack(packed), clock });
        World { count, nodes, calls, faults, excused, is_littered }
    }
}

impl Watch {
    pub(crate) fn of(watch: Option<HeadWatch<u8, Lock>>) -> Watch {
        watch.map_or(Watch(0), |HeadWatch { head, holder, is_passed, .. }| {
            let holder = match holder.unwrap_or_default() {
                Lock::Free => 0,
                Lock::Newcomer => 1,
                Lock::Late => 2,
                Lock::Leaked => 3,
                Lock::Call(c) => 4 + c,
            };
            Watch((head + 1) | (u8::from(is_passed) << 3) | (holder << 4))
        })
    }

    pub(crate) fn get(self) -> Option<HeadWatch<u8, Lock>> {
        let holder = match self.0 >> 4 {
            0 => None,
            1 => Some(Lock::Newcomer),
            2 => Some(Lock::Late),
            3 => Some(Lock::Leaked),
            call => Some(Lock::Call(call - 4)),
        };
        let is_passed = self.0 & 8 != 0;
        (self.0 != 0).then(|| HeadWatch { head: (self.0 & 7) - 1, since: NOW, holder, is_passed })
    }
}

/// Numbers behind each other in a word, and out again in the opposite order.
struct Word(u32);

impl Word {
    fn push(&mut self, value: u32, bits: u32) {
        debug_assert!(value < 1 << bits, "a number that has no room");
        self.0 = self.0 << bits | value;
    }

    fn pop(&mut self, bits: u32) -> u32 {
        let value = self.0 & ((1 << bits) - 1);
        self.0 >>= bits;
        value
    }

    fn push_set(&mut self, set: NodeSet) {
        (0..NODES).for_each(|n| self.push(set.contains(NodeId::new(n)).into(), 1));
    }

    fn pop_set(&mut self) -> NodeSet {
        (0..NODES).rev().filter(|_| self.pop(1) != 0).map(NodeId::new).collect()
    }
}

fn pack(queued: &QueuedCall) -> u32 {
    let QueuedCall { phase, ticket, round, turns, next, retries, .. } = *queued;
    let mut word = Word(0);
    word.push(phase as u32, 2);
    word.push(ticket.unwrap_or(0) as u32, 4);
    for set in [round.granted, round.refused, round.silent, round.exact, turns] {
        word.push_set(set);
    }
    word.push(round.greatest as u32, 4);
    for flag in [round.is_next, next.is_some(), retries] {
        word.push(flag.into(), 1);
    }
    word.0
}

fn unpack(packed: u32) -> QueuedCall {
    let mut word = Word(packed);
    let [retries, next, is_next] = std::array::from_fn(|_| word.pop(1) != 0);
    let greatest = word.pop(4).into();
    let [turns, exact, silent, refused, granted] = std::array::from_fn(|_| word.pop_set());
    let mut queued = QueuedCall::default();
    queued.round = Round { granted, refused, silent, exact, greatest, is_next, rank: None };
    (queued.turns, queued.next, queued.retries) = (turns, next.then_some(NOW), retries);
    queued.ticket = Some(word.pop(4).into()).filter(|&ticket| ticket > 0);
    queued.phase = match word.pop(2) {
        0 => Phase::Asking,
        1 => Phase::Waiting,
        2 => Phase::Holding,
        _ => Phase::Ended,
    };
    queued.fallback = NOW.after(PLACE_LEASE);
    queued
}
