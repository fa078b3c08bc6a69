//! States as the search stores them, in a sixth of the memory. Times are left out: all are [`NOW`],
//! or `place_lease` before or after it.

use crate::call::{CallState, Phase, Round};
use crate::node::{CALLS, Lock};
use crate::world::{Call, Life, NODES, NOW, NodeState, World};
use quorumlock::algorithm::node::{NodeId, NodeSet};
use quorumlock::algorithm::queue::HeadWatch;
use quorumlock::algorithm::time::Timestamp;
use std::sync::LazyLock;

/// A [`World`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct State {
    count: u8,
    nodes: [NodeState; NODES],
    calls: [(Life, u8, u8, u32); CALLS],
    faults: u8,
    excused: bool,
    is_littered: bool,
}

/// A [`HeadWatch`], or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Watch(u16);

impl State {
    pub(crate) fn of(world: &World) -> State {
        let World {
            count,
            nodes,
            faults,
            excused,
            is_littered,
            ..
        } = *world;
        let calls = world
            .calls
            .map(|call| (call.life, call.clock, call.challenged, pack(&call.queued)));
        State {
            count,
            nodes,
            calls,
            faults,
            excused,
            is_littered,
        }
    }

    pub(crate) fn world(&self) -> World {
        let State {
            count,
            nodes,
            faults,
            excused,
            is_littered,
            ..
        } = *self;
        let calls = self.calls.map(|(life, clock, challenged, packed)| {
            let queued = unpack(packed);
            Call {
                life,
                queued,
                clock,
                challenged,
            }
        });
        World {
            count,
            nodes,
            calls,
            faults,
            excused,
            is_littered,
        }
    }
}

impl Watch {
    pub(crate) fn of(watch: Option<HeadWatch<u8, Lock>>) -> Watch {
        watch.map_or(
            Watch(0),
            |HeadWatch {
                 head,
                 since,
                 holder,
                 is_passed,
             }| {
                let holder: u16 = match holder.unwrap_or_default() {
                    Lock::Free => 0,
                    Lock::Newcomer => 1,
                    Lock::Late => 2,
                    Lock::Leaked => 3,
                    Lock::Call(c) => 4 + u16::from(c),
                };
                let flags = u16::from(is_passed) << 3 | u16::from(since < NOW) << 8;
                Watch(u16::from(head + 1) | flags | holder << 4)
            },
        )
    }

    pub(crate) fn get(self) -> Option<HeadWatch<u8, Lock>> {
        let holder = match self.0 >> 4 & 15 {
            0 => None,
            1 => Some(Lock::Newcomer),
            2 => Some(Lock::Late),
            3 => Some(Lock::Leaked),
            call => Some(Lock::Call((call - 4) as u8)),
        };
        let since = if self.0 & 256 == 0 {
            NOW
        } else {
            Timestamp::ORIGIN
        };
        (self.0 != 0).then(|| HeadWatch {
            head: (self.0 & 7) as u8 - 1,
            since,
            holder,
            is_passed: self.0 & 8 != 0,
        })
    }

    /// `place_lease` passes.
    pub(crate) fn aged(self) -> Watch {
        Watch::of(self.get().map(|watch| HeadWatch {
            since: Timestamp::ORIGIN,
            ..watch
        }))
    }
}

/// Numbers behind each other in a word, and out again in the opposite order.
struct Word(u32);

impl Word {
    #[inline(always)]
    fn push(&mut self, value: u32, bits: u32) {
        debug_assert!(value < 1 << bits, "a number that has no room");
        self.0 = self.0 << bits | value;
    }

    #[inline(always)]
    fn pop(&mut self, bits: u32) -> u32 {
        let value = self.0 & ((1 << bits) - 1);
        self.0 >>= bits;
        value
    }

    fn push_set(&mut self, set: NodeSet) {
        let number = SETS
            .iter()
            .position(|other| *other == set)
            .unwrap_or_default();
        self.push(number as u32, NODES as u32);
    }

    fn pop_set(&mut self) -> NodeSet {
        SETS[self.pop(NODES as u32) as usize]
    }
}

/// Each set of nodes.
static SETS: LazyLock<[NodeSet; 1 << NODES]> = LazyLock::new(|| {
    let set = |number: usize| {
        (0..NODES)
            .filter(|n| number & 1 << n != 0)
            .map(NodeId::new)
            .collect()
    };
    std::array::from_fn(set)
});

fn pack(queued: &CallState) -> u32 {
    let CallState {
        phase,
        ticket,
        round,
        turns,
        found_first,
        is_next,
        retries,
    } = *queued;
    let mut word = Word(0);
    word.push(phase as u32, 2);
    word.push(ticket.unwrap_or(0) as u32, 4);
    for set in [
        round.granted,
        round.refused,
        round.silent,
        round.exact,
        turns,
        found_first,
    ] {
        word.push_set(set);
    }
    word.push(round.greatest as u32, 4);
    for flag in [round.is_by_command, round.is_next, is_next, retries] {
        word.push(flag.into(), 1);
    }
    word.0
}

fn unpack(packed: u32) -> CallState {
    let mut word = Word(packed);
    let [retries, is_next, is_behind_first, is_by_command] =
        std::array::from_fn(|_| word.pop(1) != 0);
    let greatest = word.pop(4).into();
    let [found_first, turns, exact, silent, refused, granted] =
        std::array::from_fn(|_| word.pop_set());
    let round = Round {
        granted,
        refused,
        silent,
        exact,
        greatest,
        is_next: is_behind_first,
        is_by_command,
    };
    let ticket = Some(word.pop(4).into()).filter(|&ticket| ticket > 0);
    let phase = match word.pop(2) {
        0 => Phase::Asking,
        1 => Phase::Waiting,
        2 => Phase::Holding,
        _ => Phase::Ended,
    };
    CallState {
        phase,
        ticket,
        round,
        turns,
        found_first,
        is_next,
        retries,
    }
}
