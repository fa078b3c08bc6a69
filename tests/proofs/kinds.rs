//! The other proofs: permits, fences, readers and writers, and messages, each about one node.

use crate::smt::{Replay, real, time};
use crate::world::{Asks, EPOCH, Granted, Lock, Step, What, World};
use std::collections::BTreeMap;
use std::fmt::Display;

/// Later than anything: of a grant that is never counted.
const NEVER: i64 = 1_000_000_000_000_000;

/// The rule by which a state is the next one, and its arguments beside the states.
type Rule = (&'static str, String);

/// What a proof has of one node, and how that follows a world.
trait View {
    /// The sort of its states.
    const SORT: &'static str;

    /// The state at this time.
    fn text(&self, now: i64) -> String;

    /// What a step is to the node, if it is one.
    fn apply(&mut self, step: &Step) -> Option<Rule>;

    /// What ends by itself before a step, if there is something.
    fn end_before(&mut self, _step: &Step) -> Option<Rule> {
        None
    }

    /// When a step is, by the clock of the states, if they have one.
    fn time_of(_step: &Step) -> i64 {
        0
    }

    /// Replays these steps, with the state that the earlier ones lead to. Time passes where the
    /// proof has a rule for the step.
    fn follow(&mut self, earlier: &[Step], steps: &[Step], replay: &mut Replay) {
        let mut now = 0;
        for step in earlier {
            if self.apply(step).is_some() {
                now = Self::time_of(step);
            }
        }
        let mut name = replay.state(Self::SORT, &self.text(now));
        let mut check = |(rule, arguments): Rule, text: &str, step: &Step| {
            let after = replay.state(Self::SORT, text);
            let about = format!("node {} at {}: {:?}", step.node, step.at, step.what);
            replay.check(&format!("({rule} {name} {after}{arguments})"), &about);
            name = after;
        };
        for step in steps {
            while let Some(rule) = self.end_before(step) {
                check(rule, &self.text(now), step);
            }
            let then = Self::time_of(step);
            let passed = (then != now).then(|| self.text(then));
            let Some(rule) = self.apply(step) else {
                continue;
            };
            if let Some(passed) = passed {
                check(("time-passes", String::new()), &passed, step);
            }
            now = then;
            check(rule, &self.text(now), step);
        }
    }
}

/// Two attempts of which a node has granted one soon after the other, and the steps from the first
/// grant until both are over.
#[derive(Clone, Copy)]
struct Pair<'w> {
    world: &'w World,
    node: usize,
    attempts: [usize; 2],
    earlier: &'w [Step],
    steps: &'w [Step],
}

impl Pair<'_> {
    fn index(&self, attempt: usize) -> Option<usize> {
        self.attempts.iter().position(|&one| one == attempt)
    }
}

fn array(sort: &str, default: &str, entries: impl Iterator<Item = (String, String)>) -> String {
    entries.fold(
        format!("((as const (Array {sort})) {default})"),
        |array, (at, value)| format!("(store {array} {at} {value})"),
    )
}

fn pairs(world: &World, node: usize, most: usize) -> Vec<Pair<'_>> {
    let attempt = |step: &Step| match step.what {
        What::Granted(granted) if step.node == node => Some(granted.attempt),
        _ => None,
    };
    let grants: Vec<usize> = world.steps.iter().filter_map(attempt).collect();
    let place = |what: What| world.steps.iter().position(|step| step.what == what);
    let begins = |attempt: usize| place(What::Begun(attempt)).unwrap_or(0);
    let ends = |attempt: usize| {
        let over = place(What::GaveUp(attempt));
        over.map_or(world.steps.len(), |over| (over + 40).min(world.steps.len()))
    };
    let near = grants
        .windows(3)
        .flat_map(|near| [[near[0], near[1]], [near[0], near[2]]]);
    let pair = |[p, q]: [usize; 2]| {
        let (before, rest) = world.steps.split_at(begins(p).min(begins(q)));
        Pair {
            world,
            node,
            attempts: [p, q],
            earlier: before,
            steps: &rest[..ends(p).max(ends(q)) - before.len()],
        }
    };
    let all: Vec<_> = near.map(pair).collect();
    let apart = (all.len() / most.max(1)).max(1);
    all.into_iter().step_by(apart).collect()
}

/// The same by call.
fn of_calls<V: Display>(sort: &str, default: &str, values: &BTreeMap<usize, V>) -> String {
    let entry = |(call, value): (&usize, &V)| (format!("c{call}"), value.to_string());
    array(sort, default, values.iter().map(entry))
}

/// Replays `permits.smt2`.
pub(crate) fn permits(world: &World, replay: &mut Replay) {
    replay.add("(declare-const third Token)");
    replay.add("(assert (distinct no-token p q third))");
    replay.add("(push)");
    replay.add(&format!(
        "(assert (and (= k {}) (= longest {})))",
        world.slots(),
        time(world.longest())
    ));
    for node in 0..world.nodes.len() {
        for pair in pairs(world, node, 12) {
            let mut permits = PermitNode {
                pair,
                born: -(world.longest() as i64),
                keys: BTreeMap::new(),
                grants: [None; 2],
            };
            permits.follow(pair.earlier, pair.steps, replay);
        }
    }
    replay.add("(pop)");
}

struct PermitNode<'w> {
    pair: Pair<'w>,
    born: i64,
    keys: BTreeMap<usize, (usize, u64)>,
    grants: [Option<[i64; 4]>; 2],
}

impl PermitNode<'_> {
    fn name_of(&self, attempt: usize) -> &'static str {
        match self.pair.index(attempt) {
            Some(index) => ["p", "q"][index],
            None => "third",
        }
    }

    fn granted(&mut self, granted: Granted, rule: &'static str, at: u64) -> Rule {
        let world = self.pair.world;
        let round = &world.rounds[granted.round];
        let attempt = &world.attempts[granted.attempt];
        let slot = attempt.slot;
        self.keys.insert(slot, (granted.attempt, granted.ends));
        // What runs when the attempt is over promises nothing.
        let is_over = attempt.gave_up.is_some_and(|over| over <= at);
        let is_promised = !is_over && (rule == "takes" || round.won.is_some());
        if let (Some(index), true) = (self.pair.index(granted.attempt), is_promised) {
            let counts = round.counted[self.pair.node].map_or(NEVER, |counted| counted as i64);
            self.grants[index] = Some([slot as i64, at as i64, round.until as i64, counts]);
        }
        let name = self.name_of(granted.attempt);
        let token = if rule == "takes" {
            format!(" {name}")
        } else {
            String::new()
        };
        let begun = real(round.until as i64 - round.lasts as i64);
        let life = time(granted.ends - at);
        (
            rule,
            format!(" {name}{token} {slot} {life} {begun} {}", time(round.lasts)),
        )
    }
}

impl View for PermitNode<'_> {
    const SORT: &'static str = "Node";

    fn text(&self, now: i64) -> String {
        let keys = self.keys.iter().map(|(slot, &(attempt, ends))| {
            let owner = if attempt == usize::MAX {
                "no-token"
            } else {
                self.name_of(attempt)
            };
            (slot.to_string(), format!("(key {owner} {})", time(ends)))
        });
        let keys = array("Int Key", "(key no-token 0.0)", keys);
        let grants = self.grants.map(|grant| {
            grant.map_or("no-grant".to_owned(), |[slot, granted, until, counts]| {
                let times = [granted, until, counts].map(real).join(" ");
                format!("(grant {slot} {times})")
            })
        });
        format!(
            "(node {} {} {keys} {})",
            real(now),
            real(self.born),
            grants.join(" ")
        )
    }

    fn time_of(step: &Step) -> i64 {
        step.at as i64
    }

    fn apply(&mut self, step: &Step) -> Option<Rule> {
        let world = self.pair.world;
        if let What::GaveUp(attempt) = step.what {
            let index = self.pair.index(attempt)?;
            self.grants[index] = None;
            return Some(("gives-up", format!(" {}", self.name_of(attempt))));
        }
        if step.node != self.pair.node {
            return None;
        }
        match step.what {
            What::Granted(granted) => Some(self.granted(granted, "takes", step.at)),
            What::Extended(granted) => Some(self.granted(granted, "extends", step.at)),
            What::Deleted { by, whose } => {
                let slot = world.attempts[whose].slot;
                self.keys.insert(slot, (usize::MAX, step.at));
                Some((
                    "releases",
                    format!(" {} {} {slot}", self.name_of(by), self.name_of(whose)),
                ))
            }
            What::Restarted { ref keys, .. } => {
                let slot = |attempt: usize| world.attempts[attempt].slot;
                self.keys = keys
                    .iter()
                    .map(|&(attempt, ends)| (slot(attempt), (attempt, ends)))
                    .collect();
                self.born = step.at as i64;
                Some(("loses", String::new()))
            }
            _ => None,
        }
    }
}

/// Replays `fences.smt2`.
pub(crate) fn fences(world: &World, replay: &mut Replay) {
    for node in 0..world.nodes.len() {
        for pair in pairs(world, node, 12) {
            let mut fences = FenceNode {
                pair,
                last: 0,
                owner: None,
                attempts: Default::default(),
                first: None,
                is_later: false,
            };
            fences.follow(pair.earlier, pair.steps, replay);
        }
    }
}

/// An attempt as `fences.smt2` has it.
#[derive(Clone, Default)]
struct FenceAttempt {
    has_begun: bool,
    was_run: bool,
    fence: u64,
    is_counted: bool,
    m: Option<u64>,
    is_acked: bool,
    is_over: bool,
}

struct FenceNode<'w> {
    pair: Pair<'w>,
    last: u64,
    owner: Option<usize>,
    attempts: [FenceAttempt; 2],
    first: Option<usize>,
    is_later: bool,
}

impl FenceNode<'_> {
    fn name_of(&self, attempt: Option<usize>) -> &'static str {
        match attempt.map(|attempt| self.pair.index(attempt)) {
            None => "free",
            Some(None) => "other",
            Some(Some(index)) => ["a", "b"][index],
        }
    }

    fn is_settled(&self, index: usize) -> bool {
        let one = &self.attempts[index];
        one.m
            .is_some_and(|m| one.is_counted && one.fence == m || one.is_acked)
    }
}

impl View for FenceNode<'_> {
    const SORT: &'static str = "Node";

    fn text(&self, _now: i64) -> String {
        let attempts = self.attempts.each_ref().map(|one| {
            let m = one.m.unwrap_or(0);
            format!(
                "(attempt {} {} {} {} {} {m} {} {})",
                one.has_begun,
                one.was_run,
                one.fence,
                one.is_counted,
                one.m.is_some(),
                one.is_acked,
                one.is_over
            )
        });
        format!(
            "(node {} {} {} {} {})",
            self.last,
            self.name_of(self.owner),
            attempts.join(" "),
            self.name_of(self.first),
            self.is_later
        )
    }

    /// The key of a lock whose time is over is free, which shows when another one takes it.
    fn end_before(&mut self, step: &Step) -> Option<Rule> {
        let What::Granted(granted) = step.what else {
            return None;
        };
        let owner = self.owner.filter(|_| step.node == self.pair.node)?;
        debug_assert_ne!(owner, granted.attempt);
        self.owner = None;
        Some(("is-freed", String::new()))
    }

    fn apply(&mut self, step: &Step) -> Option<Rule> {
        let of = |index: usize| format!(" {}", ["a", "b"][index]);
        match step.what {
            What::Begun(attempt) => {
                let index = self.pair.index(attempt)?;
                self.attempts[index].has_begun = true;
                if index == 1 {
                    self.is_later = self.is_settled(0);
                }
                return Some(("begins-one", of(index)));
            }
            What::Agreed(attempt, m) => {
                let index = self.pair.index(attempt)?;
                self.attempts[index].m = Some(m);
                return Some(("counts", format!("{} {m}", of(index))));
            }
            What::Over(attempt) => {
                let index = self.pair.index(attempt)?;
                self.attempts[index].is_over = true;
                return Some(("ends", of(index)));
            }
            _ if step.node != self.pair.node => return None,
            _ => {}
        }
        match step.what {
            What::Granted(granted) => {
                let Granted { fence, attempt, .. } = granted;
                self.last = fence;
                self.owner = Some(attempt);
                let Some(index) = self.pair.index(attempt) else {
                    return Some(("other-acquires", format!(" {fence}")));
                };
                if self.attempts[index].is_over {
                    return Some(("is-repaired", format!("{} {fence}", of(index))));
                }
                let one = &mut self.attempts[index];
                let round = &self.pair.world.rounds[granted.round];
                one.is_counted = one.m.is_none() && round.counted[self.pair.node].is_some();
                one.was_run = true;
                one.fence = if one.is_counted {
                    fence
                } else {
                    one.fence.max(fence)
                };
                self.first = self.first.or(Some(attempt));
                let counted = self.attempts[index].is_counted;
                Some(("acquires", format!("{} {fence} {counted}", of(index))))
            }
            What::Raised { attempt, fence } => {
                self.last = fence;
                let Some(index) = self.pair.index(attempt) else {
                    return Some(("other-is-raised", format!(" {fence}")));
                };
                self.attempts[index].is_acked |= !self.attempts[index].is_over;
                Some(("is-raised", of(index)))
            }
            What::Deleted { .. } => {
                self.owner = None;
                Some(("is-freed", String::new()))
            }
            _ => None,
        }
    }
}

/// Replays `readers_writers.smt2`, by the clock of each node.
pub(crate) fn readers_writers(world: &World, replay: &mut Replay) {
    replay.add("(declare-const third Token)");
    replay.add("(assert (distinct p q third))");
    for node in 0..world.nodes.len() {
        for pair in pairs(world, node, 8) {
            let [p, q] = pair.attempts;
            for attempts in [[p, q], [q, p]] {
                let mut shared = SharedNode {
                    pair: Pair { attempts, ..pair },
                    writes: false,
                    ends: BTreeMap::new(),
                    promises: [-1; 2],
                    q_writes: false,
                };
                shared.replay(replay);
            }
        }
    }
}

struct SharedNode<'w> {
    pair: Pair<'w>,
    writes: bool,
    ends: BTreeMap<usize, i64>,
    promises: [i64; 2],
    q_writes: bool,
}

impl SharedNode<'_> {
    fn name(&self, attempt: usize) -> String {
        match self.pair.index(attempt) {
            Some(index) => ["p", "q"][index].to_owned(),
            None => format!("t{attempt}"),
        }
    }

    fn replay(&mut self, replay: &mut Replay) {
        let Pair {
            node,
            earlier,
            steps,
            ..
        } = self.pair;
        earlier.iter().for_each(|step| _ = self.apply(step));
        replay.add("(push)");
        let granted = steps
            .iter()
            .filter(|step| step.node == node)
            .filter_map(|step| match step.what {
                What::Granted(granted) | What::Extended(granted) => Some(granted.attempt),
                What::Deleted { by, .. } => Some(by),
                _ => None,
            });
        let mut others: Vec<usize> = granted.chain(self.ends.keys().copied()).collect();
        others.sort_unstable();
        others.dedup();
        others.retain(|other| !self.pair.attempts.contains(other));
        for other in &others {
            replay.add(&format!("(declare-const t{other} Token)"));
        }
        let names: Vec<String> = others.iter().map(|other| format!(" t{other}")).collect();
        replay.add(&format!("(assert (distinct p q third{}))", names.concat()));
        self.follow(&[], steps, replay);
        replay.add("(pop)");
    }
}

impl View for SharedNode<'_> {
    const SORT: &'static str = "Node";

    fn text(&self, now: i64) -> String {
        let ends = self
            .ends
            .iter()
            .map(|(&attempt, &ends)| (self.name(attempt), real(ends)));
        let ends = array("Token Real", "(- 1.0)", ends);
        let [to_p, to_q] = self.promises.map(real);
        let Self {
            writes, q_writes, ..
        } = self;
        format!(
            "(node {} {writes} {ends} {to_p} {to_q} {q_writes})",
            real(now)
        )
    }

    fn time_of(step: &Step) -> i64 {
        (step.node_at - EPOCH) as i64
    }

    fn apply(&mut self, step: &Step) -> Option<Rule> {
        if step.node != self.pair.node {
            return None;
        }
        let now = Self::time_of(step);
        match step.what {
            What::Granted(granted) | What::Extended(granted) => {
                let Granted {
                    attempt,
                    is_write,
                    deadline,
                    asks,
                    round,
                    ..
                } = granted;
                let ttl = self.pair.world.rounds[round].ttl_millis as i64;
                let until = now + ttl;
                self.writes = is_write;
                self.ends.insert(attempt, (deadline - EPOCH) as i64);
                if let Some(index) = self.pair.index(attempt) {
                    let before = self.promises[index];
                    let keeps = now <= before && until < before;
                    let until = if keeps { before } else { until };
                    self.promises[index] = if index == 1 || is_write { until } else { -1 };
                    if index == 1 {
                        self.q_writes = is_write;
                    }
                }
                let name = self.name(attempt);
                Some(match asks {
                    Asks::Extend => ("extends", format!(" {name} {is_write} {} false", real(ttl))),
                    _ => ("acquires", format!(" {name} {is_write} {}", real(ttl))),
                })
            }
            What::Deleted { by, whose } => {
                self.ends.insert(whose, -1);
                if let Some(index) = self.pair.index(by) {
                    self.promises[index] = -1;
                    self.q_writes &= index == 0;
                }
                Some((
                    "releases",
                    format!(" {} {}", self.name(by), self.name(whose)),
                ))
            }
            _ => None,
        }
    }
}

/// Replays `messages.smt2`: what became of the lock at a node, whatever was forged and damaged. A
/// key whose time is over is given back.
pub(crate) fn messages(world: &World, replay: &mut Replay) {
    replay.add("(push)");
    replay.add(&format!("(assert (= k {}))", world.slots()));
    replay.add("(declare-const any Queue)");
    replay.add("(assert (forall ((c Call)) (is-first any c)))");
    let is_shared = world.lock == Lock::ReadWrite;
    let node = world.rounds.len() % world.nodes.len();
    for pair in pairs(world, node, 30) {
        let steps = pair.steps;
        let is_exception = |step: &Step| match step.what {
            What::Restarted { .. } => true,
            What::Extended(granted) => is_shared && !granted.is_write,
            _ => false,
        };
        if steps
            .iter()
            .any(|step| step.node == node && is_exception(step))
        {
            continue;
        }
        let mut calls: Vec<usize> = steps
            .iter()
            .filter_map(|step| match step.what {
                What::Begun(attempt) => Some(attempt),
                _ => None,
            })
            .chain(pair.attempts)
            .collect();
        calls.sort_unstable();
        calls.dedup();
        let mut told = ToldNode {
            world,
            node,
            calls,
            holds: BTreeMap::new(),
            last: 0,
            slots: BTreeMap::new(),
            fences: BTreeMap::new(),
            counts: BTreeMap::new(),
        };
        told.replay(steps, replay);
    }
    replay.add("(pop)");
}

struct ToldNode<'w> {
    world: &'w World,
    node: usize,
    calls: Vec<usize>,
    holds: BTreeMap<usize, u64>,
    last: u64,
    slots: BTreeMap<usize, usize>,
    fences: BTreeMap<usize, u64>,
    counts: BTreeMap<usize, bool>,
}

impl ToldNode<'_> {
    fn replay(&mut self, steps: &[Step], replay: &mut Replay) {
        replay.add("(push)");
        let calls = &self.calls;
        for call in calls {
            replay.add(&format!("(declare-const c{call} Call)"));
        }
        let names: Vec<String> = calls.iter().map(|call| format!("c{call}")).collect();
        replay.add(&format!("(assert (distinct {}))", names.join(" ")));
        for call in calls {
            for other in calls.iter().filter(|other| *other != call) {
                let is_read = |call: usize| self.world.attempts[call].is_read;
                let is_shared = self.world.lock == Lock::ReadWrite;
                let excludes = !(is_shared && is_read(*call) && is_read(*other));
                replay.add(&format!(
                    "(assert (= (exclude c{call} c{other}) {excludes}))"
                ));
            }
        }
        self.follow(&[], steps, replay);
        replay.add("(pop)");
    }
}

impl View for ToldNode<'_> {
    const SORT: &'static str = "World";

    fn text(&self, _now: i64) -> String {
        let holds: BTreeMap<usize, bool> = self.holds.keys().map(|&call| (call, true)).collect();
        let silence = array("Call Message", "silence", std::iter::empty());
        format!(
            "(world {} {} any {silence} {silence} {} {} {})",
            of_calls("Call Bool", "false", &holds),
            self.last,
            of_calls("Call Int", "0", &self.slots),
            of_calls("Call Int", "0", &self.fences),
            of_calls("Call Bool", "false", &self.counts)
        )
    }

    fn end_before(&mut self, step: &Step) -> Option<Rule> {
        let (&call, _) = self.holds.iter().find(|&(_, &ends)| ends <= step.at)?;
        self.holds.remove(&call);
        self.counts.remove(&call);
        Some(("releases", format!(" c{call} c{call}")))
    }

    fn apply(&mut self, step: &Step) -> Option<Rule> {
        match step.what {
            What::Begun(call) => {
                self.slots.insert(call, self.world.attempts[call].slot);
                return Some(("asks", format!(" c{call}")));
            }
            _ if step.node != self.node => return None,
            _ => {}
        }
        match step.what {
            What::Granted(granted) if self.calls.contains(&granted.attempt) => {
                let is_fenced = self.world.lock == Lock::Fenced;
                self.last = if is_fenced {
                    granted.fence
                } else {
                    self.last + 1
                };
                self.holds.insert(granted.attempt, granted.ends);
                self.fences.insert(granted.attempt, self.last);
                Some(("takes", format!(" c{}", granted.attempt)))
            }
            What::Extended(granted) => {
                let ends = self.holds.get_mut(&granted.attempt)?;
                *ends = granted.ends;
                None
            }
            What::Counted(round) => {
                let call = self.world.rounds[round].attempt;
                self.holds.get(&call)?;
                self.counts.insert(call, true);
                Some(("counts-grant", format!(" c{call}")))
            }
            What::Deleted { whose, .. } if self.holds.contains_key(&whose) => {
                self.holds.remove(&whose);
                self.counts.remove(&whose);
                Some(("releases", format!(" c{whose} c{whose}")))
            }
            _ => None,
        }
    }
}
