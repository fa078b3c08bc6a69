//! The search of a model: breadth first, every state once, none left out.
//!
//! Of all states that differ in names alone, the first one is searched. For a trace, the way to
//! each state is kept; that takes more memory, and is done where a trace is expected.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::{Debug, Display, Write};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::time::Instant;

/// More states than there is memory for: a search that comes here has not found out.
const LIMIT: usize = 400_000_000;

/// Makes a method for each of these parts of a scope: the same scope but for that part. Those
/// behind the semicolon are switched on.
macro_rules! parts {
    ($($part:ident: $kind:ty),*; $($switch:ident),*) => {
        $(pub(crate) const fn $part(self, $part: $kind) -> Self {
            Self { $part, ..self }
        })*
        $(pub(crate) const fn $switch(self) -> Self {
            Self { $switch: true, ..self }
        })*
    };
}
pub(crate) use parts;

/// What is searched: a state of it, and what can happen there.
pub(crate) trait World: Copy + Display {
    type Rule: Copy + Debug;
    /// How much there is to search.
    type Scope: Copy + Debug;
    type Step: Copy + Debug;
    /// What some wins are, of which there must be some.
    const SPECIAL: Option<&'static str>;

    /// Before anything has happened.
    fn first(scope: Self::Scope) -> Self;

    /// Everything that can happen now.
    fn steps(&self, rule: Self::Rule, scope: Self::Scope, steps: &mut Vec<Self::Step>);

    /// Makes it what it is afterwards. Returns what was won.
    fn take(&mut self, step: Self::Step, rule: Self::Rule, scope: Self::Scope) -> Outcome;

    /// What must hold here, in addition to what must hold of steps.
    fn check(&self, _rule: Self::Rule, _scope: Self::Scope) -> Result<(), Wrong> {
        Ok(())
    }

    /// The [`fingerprint`] of the state without names: the same for all states that differ in them.
    fn key(&self, scope: Self::Scope) -> u128;
}

/// What a step has come to.
pub(crate) type Outcome = Result<Option<Won>, Wrong>;

/// What was won, in words, and whether it is a [special](World::SPECIAL) win.
pub(crate) struct Won(pub(crate) String, pub(crate) bool);

/// What must not happen.
pub(crate) struct Wrong(pub(crate) String);

/// What an attempt, a program or a call of this number is called.
pub(crate) fn name(number: usize) -> char {
    char::from(b'A' + number as u8)
}

/// Whether this variable asks for all scopes.
pub(crate) fn is_full(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| value == "full")
}

/// Searches all there is, and finds nothing.
pub(crate) fn holds<W: World>(rule: W::Rule, scope: W::Scope) {
    let begun = Instant::now();
    match search::<W>(rule, scope, false) {
        Found::Nothing {
            states,
            wins,
            special,
        } => {
            let what =
                W::SPECIAL.map_or_else(String::new, |what| format!(", {special} of them {what}"));
            let seconds = begun.elapsed().as_secs_f64();
            println!(
                "{rule:?}, {scope:?}: holds in all of {states} states; {wins} of the steps there win{what} \
                 ({seconds:.1} s)"
            );
            // It does not hold for lack of winners.
            assert!(
                wins > 100 && (W::SPECIAL.is_none() || special > 10),
                "nothing happens"
            );
        }
        Found::Broken { trace, .. } => panic!("{rule:?}, {scope:?}, is broken:\n{trace}"),
    }
}

/// Finds a trace in which a rule allows what must not happen.
pub(crate) fn is_refuted<W: World>(rule: W::Rule, scope: W::Scope) {
    match search::<W>(rule, scope, true) {
        Found::Nothing { states, .. } => {
            panic!("{rule:?}, {scope:?}: not refuted by {states} states")
        }
        Found::Broken { trace, states } => {
            println!("{rule:?}, {scope:?}: refuted after {states} states\n{trace}")
        }
    }
}

enum Found {
    Broken {
        trace: String,
        states: usize,
    },
    Nothing {
        states: usize,
        wins: usize,
        special: usize,
    },
}

/// The way to each state: the one before it, and the step. Where states have the same key, it leads
/// to the first one.
type Ways<W> = HashMap<u128, (u128, <W as World>::Step), BuildHasherDefault<Fingerprint>>;

/// Searches all that can happen.
fn search<W: World>(rule: W::Rule, scope: W::Scope, keeps_trace: bool) -> Found {
    let first = W::first(scope);
    let mut seen: HashSet<u128, BuildHasherDefault<Fingerprint>> = HashSet::default();
    seen.insert(first.key(scope));
    let mut ways: Ways<W> = HashMap::default();
    let mut states = VecDeque::from([first]);
    let mut steps = Vec::new();
    let mut wins = 0;
    let mut special = 0;
    while let Some(world) = states.pop_front() {
        let broken = |ways: &Ways<W>, states: usize, wrong: String| Found::Broken {
            trace: trace((rule, scope), ways, world, wrong),
            states,
        };
        if let Err(Wrong(wrong)) = world.check(rule, scope) {
            return broken(&ways, seen.len(), wrong);
        }
        world.steps(rule, scope, &mut steps);
        for &step in &steps {
            let mut after = world;
            let won = match after.take(step, rule, scope) {
                Ok(won) => won,
                Err(Wrong(wrong)) => {
                    return broken(&ways, seen.len(), format!("{step:?}: {wrong}"));
                }
            };
            wins += usize::from(won.is_some());
            special += usize::from(won.is_some_and(|won| won.1));
            let key = after.key(scope);
            if seen.insert(key) {
                assert!(seen.len() < LIMIT, "too many states");
                if keeps_trace {
                    ways.insert(key, (world.key(scope), step));
                }
                states.push_back(after);
            }
        }
    }
    Found::Nothing {
        states: seen.len(),
        wins,
        special,
    }
}

/// How it came to that. Each line has a step, whose numbers its type explains, and the nodes as
/// they were afterwards. What is called `A` there is number 0 of a step.
fn trace<W: World>(
    (rule, scope): (W::Rule, W::Scope),
    ways: &Ways<W>,
    last: W,
    wrong: String,
) -> String {
    let mut steps = Vec::new();
    let mut key = last.key(scope);
    while let Some(&(before, step)) = ways.get(&key) {
        steps.push(step);
        key = before;
    }
    let mut lines = Vec::new();
    let mut world = W::first(scope);
    for step in steps.into_iter().rev() {
        let Ok(won) = world.take(step, rule, scope) else {
            break;
        };
        let won = won.map_or_else(String::new, |won| format!("; {}", won.0));
        lines.push(format!("{:<60} {world}", format!("{step:?}{won}")));
    }
    lines.push(wrong);
    lines
        .iter()
        .enumerate()
        .fold(String::new(), |mut trace, (number, line)| {
            let _ = writeln!(trace, "  {:>2}. {line}", number + 1);
            trace
        })
}

/// What identifies a state among those that were seen: 128 bits of a hash, by FNV in words. Two of
/// a billion states have the same with a chance of 1 : 10²⁰.
pub(crate) fn fingerprint(state: &impl Hash) -> u128 {
    let mut fingerprint = Fingerprint::default();
    state.hash(&mut fingerprint);
    fingerprint.write_u64(fingerprint.pending);
    fingerprint.hash
}

#[derive(Default)]
struct Fingerprint {
    hash: u128,
    /// Bytes that are no word yet.
    pending: u64,
    bytes: u32,
}

impl Hasher for Fingerprint {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u8(byte));
    }

    fn write_u8(&mut self, byte: u8) {
        self.pending = self.pending << 8 | u64::from(byte);
        self.bytes += 1;
        if self.bytes.is_multiple_of(8) {
            self.write_u64(self.pending);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.hash = (self.hash ^ u128::from(word))
            .wrapping_mul(0x0100_0000_0000_0000_0000_013b)
            .rotate_left(47);
    }

    /// The number of a variant.
    fn write_isize(&mut self, variant: isize) {
        self.write_u8(variant as u8);
    }

    fn finish(&self) -> u64 {
        self.hash as u64
    }
}
