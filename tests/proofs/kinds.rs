//! The other proofs: permits, fences, readers and writers, and messages, each about one node.

use crate::smt::{Replay, real, time};
use crate::world::{Asks, EPOCH, Granted, Lock, Step, What, World};
use std::collections::BTreeMap;

/// Later than anything: of a grant that is never counted.
const NEVER: i64 = 1_000_000_000_000_000;

/// The state of a proof, as a text, from step to step.
struct Trace<'r> {
    replay: &'r mut Replay,
    sort: &'static str,
    name: String,
}

impl Trace<'_> {
    fn begin<'r>(replay: &'r mut Replay, sort: &'static str, text: &str) -> Trace<'r> {
        let name = replay.state(sort, text);
        Trace { replay, sort, name }
    }

    fn step(&mut self, rule: &str, text: &str, arguments: &str, about: &Step) {
        let after = self.replay.state(self.sort, text);
        let formula = format!("({rule} {} {after}{arguments})", self.name);
        let about = format!("node {} at {}: {:?}", about.node, about.at, about.what);
        self.replay.check(&formula, &about);
        self.name = after;
    }
}

fn array(sort: &str, default: &str, entries: impl Iterator<Item = (String, String)>) -> String {
    entries.fold(
        format!("((as const (Array {sort})) {default})"),
        |array, (at, value)| format!("(store {array} {at} {value})"),
    )
}

/// Pairs of attempts one of which was granted soon after the other at a node, with the steps from
/// the first grant until both are over.
fn pairs(world: &World, node: usize, most: usize) -> Vec<(usize, usize, usize, usize)> {
    let grants: Vec<(usize, usize)> = world
        .steps
        .iter()
        .enumerate()
        .filter_map(|(index, step)| match step.what {
            What::Granted(granted) if step.node == node => Some((index, granted.attempt)),
            _ => None,
        })
        .collect();
    let begins = |attempt: usize| {
        world
            .steps
            .iter()
            .position(|step| step.what == What::Begun(attempt))
            .unwrap_or(0)
    };
    let ends = |attempt: usize| {
        let over = world
            .steps
            .iter()
            .position(|step| step.what == What::GaveUp(attempt));
        over.map_or(world.steps.len(), |over| (over + 40).min(world.steps.len()))
    };
    let near = grants
        .windows(3)
        .flat_map(|near| [[near[0], near[1]], [near[0], near[2]]]);
    let near = near.map(|[(_, p), (_, q)]| (p, q, begins(p).min(begins(q)), ends(p).max(ends(q))));
    let all: Vec<_> = near.collect();
    let apart = (all.len() / most.max(1)).max(1);
    all.into_iter().step_by(apart).collect()
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
        for (p, q, from, to) in pairs(world, node, 12) {
            PermitNode::new(world, node, p, q).replay(from, to, replay);
        }
    }
    replay.add("(pop)");
}

struct PermitNode<'w> {
    world: &'w World,
    node: usize,
    pair: [usize; 2],
    now: u64,
    born: i64,
    keys: BTreeMap<usize, (usize, u64)>,
    grants: [Option<[i64; 4]>; 2],
}

impl PermitNode<'_> {
    fn new(world: &World, node: usize, p: usize, q: usize) -> PermitNode<'_> {
        PermitNode {
            world,
            node,
            pair: [p, q],
            now: 0,
            born: -(world.longest() as i64),
            keys: BTreeMap::new(),
            grants: [None; 2],
        }
    }

    fn name_of(&self, attempt: usize) -> &'static str {
        match self.pair.iter().position(|&one| one == attempt) {
            Some(index) => ["p", "q"][index],
            None => "third",
        }
    }

    fn text(&self) -> String {
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
            time(self.now),
            real(self.born),
            grants.join(" ")
        )
    }

    /// The steps before `from` are applied, for the keys that exist then, and not replayed.
    fn replay(mut self, from: usize, to: usize, replay: &mut Replay) {
        for step in &self.world.steps[..from] {
            self.apply(step);
        }
        self.now = self.world.steps[from].at;
        let mut trace = Trace::begin(replay, "Node", &self.text());
        for step in &self.world.steps[from..to] {
            let before = self.now;
            self.now = step.at;
            let passed = self.text();
            self.now = before;
            if let Some((rule, arguments)) = self.apply(step) {
                if before != step.at {
                    trace.step("time-passes", &passed, "", step);
                }
                self.now = step.at;
                trace.step(rule, &self.text(), &arguments, step);
            }
        }
    }

    fn apply(&mut self, step: &Step) -> Option<(&'static str, String)> {
        let world = self.world;
        if let What::GaveUp(attempt) = step.what {
            let index = self.pair.iter().position(|&one| one == attempt)?;
            self.grants[index] = None;
            return Some(("gives-up", format!(" {}", self.name_of(attempt))));
        }
        if step.node != self.node {
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

    fn granted(&mut self, granted: Granted, rule: &'static str, at: u64) -> (&'static str, String) {
        let world = self.world;
        let round = &world.rounds[granted.round];
        let attempt = &world.attempts[granted.attempt];
        let slot = attempt.slot;
        self.keys.insert(slot, (granted.attempt, granted.ends));
        // What runs when the attempt is over promises nothing.
        let is_over = attempt.gave_up.is_some_and(|over| over <= at);
        let is_promised = !is_over && (rule == "takes" || round.won.is_some());
        if let (Some(index), true) = (
            self.pair.iter().position(|&one| one == granted.attempt),
            is_promised,
        ) {
            let counts = round.counted[self.node].map_or(NEVER, |counted| counted as i64);
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

/// Replays `fences.smt2`.
pub(crate) fn fences(world: &World, replay: &mut Replay) {
    for node in 0..world.nodes.len() {
        for (a, b, from, to) in pairs(world, node, 12) {
            FenceNode::new(world, node, a, b).replay(from, to, replay);
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
    world: &'w World,
    node: usize,
    pair: [usize; 2],
    last: u64,
    owner: Option<usize>,
    attempts: [FenceAttempt; 2],
    first: Option<usize>,
    is_later: bool,
}

impl FenceNode<'_> {
    fn new(world: &World, node: usize, a: usize, b: usize) -> FenceNode<'_> {
        FenceNode {
            world,
            node,
            pair: [a, b],
            last: 0,
            owner: None,
            attempts: Default::default(),
            first: None,
            is_later: false,
        }
    }

    fn index(&self, attempt: usize) -> Option<usize> {
        self.pair.iter().position(|&one| one == attempt)
    }

    fn name_of(&self, attempt: Option<usize>) -> &'static str {
        match attempt.map(|attempt| self.index(attempt)) {
            None => "free",
            Some(None) => "other",
            Some(Some(index)) => ["a", "b"][index],
        }
    }

    fn text(&self) -> String {
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

    fn is_settled(&self, index: usize) -> bool {
        let one = &self.attempts[index];
        one.m
            .is_some_and(|m| one.is_counted && one.fence == m || one.is_acked)
    }

    fn replay(mut self, from: usize, to: usize, replay: &mut Replay) {
        for step in &self.world.steps[..from] {
            let at_node = step.node == self.node;
            match step.what {
                What::Granted(granted) if at_node => {
                    self.last = granted.fence;
                    self.owner = Some(granted.attempt);
                }
                What::Raised { fence, .. } if at_node => self.last = fence,
                What::Deleted { .. } if at_node => self.owner = None,
                _ => {}
            }
        }
        let mut trace = Trace::begin(replay, "Node", &self.text());
        for step in &self.world.steps[from..to] {
            self.free_before(step, &mut trace);
            if let Some((rule, arguments)) = self.apply(step) {
                trace.step(rule, &self.text(), &arguments, step);
            }
        }
    }

    /// The key of a lock whose time is over is free, which shows when another one takes it.
    fn free_before(&mut self, step: &Step, trace: &mut Trace<'_>) {
        if let What::Granted(granted) = step.what
            && step.node == self.node
            && self.owner.is_some()
        {
            debug_assert_ne!(self.owner, Some(granted.attempt));
            self.owner = None;
            trace.step("is-freed", &self.text(), "", step);
        }
    }

    fn apply(&mut self, step: &Step) -> Option<(&'static str, String)> {
        let of = |index: usize| format!(" {}", ["a", "b"][index]);
        match step.what {
            What::Begun(attempt) => {
                let index = self.index(attempt)?;
                self.attempts[index].has_begun = true;
                if index == 1 {
                    self.is_later = self.is_settled(0);
                }
                return Some(("begins-one", of(index)));
            }
            What::Agreed(attempt, m) => {
                let index = self.index(attempt)?;
                self.attempts[index].m = Some(m);
                return Some(("counts", format!("{} {m}", of(index))));
            }
            What::Over(attempt) => {
                let index = self.index(attempt)?;
                self.attempts[index].is_over = true;
                return Some(("ends", of(index)));
            }
            _ if step.node != self.node => return None,
            _ => {}
        }
        match step.what {
            What::Granted(granted) => {
                let Granted { fence, attempt, .. } = granted;
                self.last = fence;
                self.owner = Some(attempt);
                let Some(index) = self.index(attempt) else {
                    return Some(("other-acquires", format!(" {fence}")));
                };
                if self.attempts[index].is_over {
                    return Some(("is-repaired", format!("{} {fence}", of(index))));
                }
                let one = &mut self.attempts[index];
                let round = &self.world.rounds[granted.round];
                one.is_counted = one.m.is_none() && round.counted[self.node].is_some();
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
                let Some(index) = self.index(attempt) else {
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
        for (p, q, from, to) in pairs(world, node, 8) {
            for pair in [[p, q], [q, p]] {
                SharedNode::new(world, node, pair, from).replay(from, to, replay);
            }
        }
    }
}

struct SharedNode<'w> {
    world: &'w World,
    node: usize,
    pair: [usize; 2],
    now: i64,
    writes: bool,
    ends: BTreeMap<usize, i64>,
    promises: [i64; 2],
    q_writes: bool,
}

impl SharedNode<'_> {
    fn new(world: &World, node: usize, pair: [usize; 2], from: usize) -> SharedNode<'_> {
        let mut shared = SharedNode {
            world,
            node,
            pair,
            now: 0,
            writes: false,
            ends: BTreeMap::new(),
            promises: [-1; 2],
            q_writes: false,
        };
        for step in &world.steps[..from] {
            shared.apply(step);
        }
        shared
    }

    fn name(&self, attempt: usize) -> String {
        match self.pair.iter().position(|&one| one == attempt) {
            Some(index) => ["p", "q"][index].to_owned(),
            None => format!("t{attempt}"),
        }
    }

    fn text(&self) -> String {
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
            real(self.now)
        )
    }

    fn replay(mut self, from: usize, to: usize, replay: &mut Replay) {
        replay.add("(push)");
        let steps = &self.world.steps[from..to];
        let granted = steps
            .iter()
            .filter(|step| step.node == self.node)
            .filter_map(|step| match step.what {
                What::Granted(granted) | What::Extended(granted) => Some(granted.attempt),
                What::Deleted { by, .. } => Some(by),
                _ => None,
            });
        let mut others: Vec<usize> = granted.chain(self.ends.keys().copied()).collect();
        others.sort_unstable();
        others.dedup();
        others.retain(|other| !self.pair.contains(other));
        for other in &others {
            replay.add(&format!("(declare-const t{other} Token)"));
        }
        let names: Vec<String> = others.iter().map(|other| format!(" t{other}")).collect();
        replay.add(&format!("(assert (distinct p q third{}))", names.concat()));
        let mut trace = Trace::begin(replay, "Node", &self.text());
        for step in steps {
            let before = self.now;
            self.now = (step.node_at - EPOCH) as i64;
            let passed = self.text();
            let Some((rule, arguments)) = self.apply(step) else {
                self.now = before;
                continue;
            };
            if before != self.now {
                trace.step("time-passes", &passed, "", step);
            }
            trace.step(rule, &self.text(), &arguments, step);
        }
        replay.add("(pop)");
    }

    fn apply(&mut self, step: &Step) -> Option<(&'static str, String)> {
        if step.node != self.node {
            return None;
        }
        self.now = (step.node_at - EPOCH) as i64;
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
                let ttl = self.world.rounds[round].ttl_millis as i64;
                let until = self.now + ttl;
                self.writes = is_write;
                self.ends.insert(attempt, (deadline - EPOCH) as i64);
                if let Some(index) = self.pair.iter().position(|&one| one == attempt) {
                    let before = self.promises[index];
                    let keeps = self.now <= before && until < before;
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
                if let Some(index) = self.pair.iter().position(|&one| one == by) {
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
    for (p, q, from, to) in pairs(world, node, 30) {
        let mut told = ToldNode::new(world, node);
        let steps = &world.steps[from..to];
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
        let calls: Vec<usize> = steps
            .iter()
            .filter_map(|step| match step.what {
                What::Begun(attempt) => Some(attempt),
                _ => None,
            })
            .chain([p, q])
            .collect();
        told.replay(&calls, steps, replay);
    }
    replay.add("(pop)");
}

struct ToldNode<'w> {
    world: &'w World,
    node: usize,
    holds: BTreeMap<usize, u64>,
    last: u64,
    slots: BTreeMap<usize, usize>,
    fences: BTreeMap<usize, u64>,
    counts: BTreeMap<usize, bool>,
}

impl ToldNode<'_> {
    fn new(world: &World, node: usize) -> ToldNode<'_> {
        ToldNode {
            world,
            node,
            holds: BTreeMap::new(),
            last: 0,
            slots: BTreeMap::new(),
            fences: BTreeMap::new(),
            counts: BTreeMap::new(),
        }
    }

    fn text(&self) -> String {
        let call = |call: &usize| format!("c{call}");
        let holds = self.holds.keys().map(|one| (call(one), "true".to_owned()));
        let slots = self
            .slots
            .iter()
            .map(|(one, slot)| (call(one), slot.to_string()));
        let fences = self
            .fences
            .iter()
            .map(|(one, fence)| (call(one), fence.to_string()));
        let counts = self
            .counts
            .iter()
            .map(|(one, counts)| (call(one), counts.to_string()));
        let silence = array("Call Message", "silence", std::iter::empty());
        format!(
            "(world {} {} any {silence} {silence} {} {} {})",
            array("Call Bool", "false", holds),
            self.last,
            array("Call Int", "0", slots),
            array("Call Int", "0", fences),
            array("Call Bool", "false", counts)
        )
    }

    fn replay(&mut self, calls: &[usize], steps: &[Step], replay: &mut Replay) {
        replay.add("(push)");
        let mut calls = calls.to_vec();
        calls.sort_unstable();
        calls.dedup();
        for call in &calls {
            replay.add(&format!("(declare-const c{call} Call)"));
        }
        let names: Vec<String> = calls.iter().map(|call| format!("c{call}")).collect();
        replay.add(&format!("(assert (distinct {}))", names.join(" ")));
        for call in &calls {
            for other in calls.iter().filter(|other| *other != call) {
                let is_read = |call: usize| self.world.attempts[call].is_read;
                let is_shared = self.world.lock == Lock::ReadWrite;
                let excludes = !(is_shared && is_read(*call) && is_read(*other));
                replay.add(&format!(
                    "(assert (= (exclude c{call} c{other}) {excludes}))"
                ));
            }
        }
        let mut trace = Trace::begin(replay, "World", &self.text());
        for step in steps {
            self.expire(step, &mut trace);
            if let Some((rule, arguments)) = self.apply(step, &calls) {
                trace.step(rule, &self.text(), &arguments, step);
            }
        }
        replay.add("(pop)");
    }

    fn expire(&mut self, step: &Step, trace: &mut Trace<'_>) {
        while let Some((&call, _)) = self.holds.iter().find(|&(_, &ends)| ends <= step.at) {
            self.holds.remove(&call);
            self.counts.remove(&call);
            trace.step("releases", &self.text(), &format!(" c{call} c{call}"), step);
        }
    }

    fn apply(&mut self, step: &Step, calls: &[usize]) -> Option<(&'static str, String)> {
        match step.what {
            What::Begun(call) => {
                self.slots.insert(call, self.world.attempts[call].slot);
                return Some(("asks", format!(" c{call}")));
            }
            _ if step.node != self.node => return None,
            _ => {}
        }
        match step.what {
            What::Granted(granted) if calls.contains(&granted.attempt) => {
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
