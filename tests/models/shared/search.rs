//! The search: breadth first, every state once, none left out.
//!
//! For a trace, the way to each state is kept, and nodes keep their names; that takes more memory, and is done
//! where a trace is expected.

use crate::rules::Rule;
use crate::world::{Scope, Step, World};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::hash::{BuildHasherDefault, Hasher};

/// More states than there is memory for: a search that comes here has not found out.
const LIMIT: usize = 40_000_000;

/// What a search has found.
pub(crate) enum Found {
    Broken { trace: String, states: usize },
    Nothing { states: usize, wins: usize, shared: usize },
}

/// Searches all that can happen.
pub(crate) fn search(rule: Rule, scope: Scope, keeps_trace: bool) -> Found {
    let first = World::default();
    let mut seen: HashSet<World, BuildHasherDefault<Quick>> = HashSet::default();
    seen.insert(first);
    let mut ways: HashMap<World, (World, Step)> = HashMap::new();
    let (mut level, mut next) = (vec![first], Vec::new());
    let (mut steps, mut wins, mut shared) = (Vec::new(), 0, 0);
    while !level.is_empty() {
        for world in level.drain(..) {
            world.steps(rule, scope, &mut steps);
            for &step in &steps {
                let after = match world.after(step, rule) {
                    Ok(after) => after,
                    Err(wrong) => {
                        return Found::Broken { trace: trace(rule, &ways, world, step, &wrong.0), states: seen.len() };
                    }
                };
                if let Some(won) = after.won {
                    wins += 1;
                    shared += usize::from(won.is_shared);
                }
                let after = if keeps_trace { after.world } else { after.world.nameless(scope) };
                if seen.insert(after) {
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
    Found::Nothing { states: seen.len(), wins, shared }
}

/// How it came to that. Each line shows the nodes as they were afterwards: their entries.
fn trace(rule: Rule, ways: &HashMap<World, (World, Step)>, last: World, step: Step, wrong: &str) -> String {
    let mut lines = vec![format!("{}: {wrong}", last.describe(step))];
    let mut world = last;
    while let Some((before, step)) = ways.get(&world) {
        let won = before.after(*step, rule).ok().and_then(|after| after.won);
        let won = won.map_or_else(String::new, |won| format!("; {won}"));
        lines.push(format!("{:<60} {world}", before.describe(*step) + &won));
        world = *before;
    }
    lines.iter().rev().enumerate().fold(String::new(), |mut trace, (number, line)| {
        let _ = writeln!(trace, "  {:>2}. {line}", number + 1);
        trace
    })
}

/// FNV, a byte or a word at a time: what is hashed is small, and no input from outside.
struct Quick(u64);

impl Default for Quick {
    fn default() -> Quick {
        Quick(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(5);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}
