//! The search: breadth first, every state once, none left out.
//!
//! For a trace, the way to each state is kept, and nodes keep their names; that takes more memory, and is done
//! where a trace is expected.

use crate::rules::Rule;
use crate::world::{Property, Scope, Step, World, Wrong};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::hash::{BuildHasherDefault, Hasher};

/// More states than there is memory for: a search that comes here has not found out.
const LIMIT: usize = 200_000_000;

/// What a search has found.
pub(crate) enum Found {
    Broken { trace: String, states: usize },
    Nothing { states: usize, wins: usize },
}

/// Searches all that can happen.
pub(crate) fn search(rule: Rule, scope: Scope, keeps_trace: bool) -> Found {
    let first = World::default();
    let mut seen: HashSet<u128, BuildHasherDefault<Quick>> = HashSet::default();
    seen.insert(first.packed());
    let mut ways: HashMap<World, (World, Step)> = HashMap::new();
    let (mut level, mut next) = (vec![first], Vec::new());
    let (mut steps, mut wins) = (Vec::new(), 0);
    while !level.is_empty() {
        for world in level.drain(..) {
            let broken = |ways, last, Wrong(wrong), states| Found::Broken { trace: trace(ways, last, &wrong), states };
            if let (Property::Progress, Err(wrong)) = (scope.property, world.progresses(rule)) {
                return broken(&ways, world, wrong, seen.len());
            }
            world.steps(rule, scope, &mut steps);
            for &step in &steps {
                let (after, has_won) = match world.after(step, rule, scope) {
                    Ok(after) => after,
                    Err(Wrong(wrong)) => return broken(&ways, world, Wrong(format!("{step}: {wrong}")), seen.len()),
                };
                wins += usize::from(has_won);
                let after = if keeps_trace { after } else { after.nameless() };
                if seen.insert(after.packed()) {
                    assert!(seen.len() < LIMIT, "too many states");
                    if keeps_trace {
                        ways.insert(after, (world, step));
                    }
                    next.push(after);
                }
            }
        }
        std::mem::swap(&mut level, &mut next);
    }
    Found::Nothing { states: seen.len(), wins }
}

/// How it came to that. Each line shows the queues of the nodes as they were afterwards.
fn trace(ways: &HashMap<World, (World, Step)>, last: World, wrong: &str) -> String {
    let (mut lines, mut world) = (vec![wrong.to_owned()], last);
    while let Some((before, step)) = ways.get(&world) {
        lines.push(format!("{:<50} {world}", step.to_string()));
        world = *before;
    }
    lines.iter().rev().enumerate().fold(String::new(), |mut trace, (number, line)| {
        let _ = writeln!(trace, "  {:>2}. {line}", number + 1);
        trace
    })
}

/// Mixes one number: what is hashed is small, and no input from outside.
#[derive(Default)]
struct Quick(u64);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u128(byte.into()));
    }

    fn write_u128(&mut self, number: u128) {
        let folded = (number as u64).rotate_left(23) ^ (number >> 64) as u64 ^ self.0;
        let mixed = (folded ^ (folded >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
