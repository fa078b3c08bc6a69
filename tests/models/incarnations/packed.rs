//! States as the search stores them: bits behind each other, and of all states that differ in names
//! the least.

use crate::note::{AHEAD, Memo};
use crate::world::{Data, Link, NODES, Program, World};
use quorumlock::algorithm::incarnation::Origin;

/// A state.
pub(crate) type Key = [u64; 5];

/// Numbers behind each other.
#[derive(Default)]
struct Word(u128, u32);

impl Word {
    #[inline(always)]
    fn push(&mut self, value: u64, bits: u32) {
        debug_assert!(value < 1 << bits, "a number that has no room");
        self.0 = self.0 << bits | u128::from(value);
        self.1 += bits;
    }

    #[inline(always)]
    fn push_flags<const COUNT: usize>(&mut self, flags: [bool; COUNT]) {
        let word = flags
            .iter()
            .fold(0, |word, &flag| word << 1 | u64::from(flag));
        self.push(word, COUNT as u32);
    }

    fn push_memo(&mut self, memo: &Memo) {
        let origin = match memo.origin {
            None => 0,
            Some(Origin::Founder) => 1,
            Some(Origin::Since) => 2,
        };
        let age = |age: i8| if age == AHEAD { 7 } else { (age + 1) as u64 };
        let word = origin | (memo.names as u64) << 2 | u64::from(memo.is_long) << 4;
        self.push(word | age(memo.age) << 5 | age(memo.wall) << 8, 11);
    }

    fn push_data(&mut self, data: &Data, is_swapped: bool) {
        let lock = if is_swapped {
            [0, 2, 1][usize::from(data.lock)]
        } else {
            data.lock
        };
        self.push_memo(&data.memo);
        self.push(u64::from(lock) | u64::from(data.lock_age) << 2, 4);
    }

    fn push_link(&mut self, link: &Link) {
        self.push_flags([
            link.is_asked,
            link.is_granted,
            link.counts,
            link.is_kept,
            link.is_lost,
            link.is_broken,
        ]);
        self.push_flags([
            link.counts_early,
            link.was_absent,
            link.is_unchanged,
            link.keeps_times,
            link.is_renamed,
            link.is_promoted,
        ]);
        self.push(link.phase as u64 | u64::from(link.look_age) << 2, 4);
        self.push_memo(&link.memo);
    }

    /// All but what it knows of nodes.
    fn push_program(&mut self, program: &Program) {
        let round = program.round;
        self.push_flags([
            program.is_long,
            program.is_quiet,
            round.is_on,
            round.is_judged,
            round.founds,
            round.is_won,
        ]);
        self.push_flags([round.is_longest_long]);
        self.push(
            program.life as u64 | u64::from(program.age) << 2 | u64::from(round.age) << 5,
            8,
        );
    }
}

impl World {
    /// All that there is of a node, with the programs in one or the other order.
    fn node(&self, n: usize, is_swapped: bool) -> u128 {
        let mut word = Word::default();
        let node = &self.nodes[n];
        word.push_data(&node.data, is_swapped);
        word.push_flags([node.copy.is_some()]);
        word.push_data(&node.copy.unwrap_or_default(), is_swapped);
        let order = if is_swapped { [1, 0] } else { [0, 1] };
        order
            .iter()
            .for_each(|&p| word.push_link(&self.programs[p].links[n]));
        word.0
    }

    /// All that is not of a node.
    fn rest(&self, is_swapped: bool) -> u64 {
        let mut word = Word::default();
        word.push_flags([self.is_passed_over]);
        word.push(self.faults.into(), 3);
        let order = if is_swapped { [1, 0] } else { [0, 1] };
        order
            .iter()
            .for_each(|&p| word.push_program(&self.programs[p]));
        word.0 as u64
    }

    /// The least of all that differ in names.
    pub(crate) fn packed(&self, nodes: usize) -> Key {
        let [one, other] = [false, true].map(|is_swapped| {
            let mut each = std::array::from_fn(|n| self.node(n, is_swapped));
            each[..nodes].sort_unstable();
            key(each, self.rest(is_swapped))
        });
        one.min(other)
    }
}

/// Three words of 87 bits at most, and one of 59.
fn key(nodes: [u128; NODES], rest: u64) -> Key {
    let [a, b, c] = nodes;
    debug_assert!(
        nodes.iter().all(|&node| node < 1 << 87) && rest < 1 << 59,
        "a word that has no room"
    );
    let high = (a >> 64) | (b >> 64) << 23 | (c >> 64) << 46;
    // What does not fit into the fourth word goes on top of the fifth.
    [
        a as u64,
        b as u64,
        c as u64,
        high as u64,
        rest | ((high >> 64) as u64) << 59,
    ]
}
