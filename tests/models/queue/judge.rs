//! What must hold, and which states are the same.
//!
//! 1. *Order.* No call wins that began while a quorum of nodes kept the ticket of an earlier one,
//!    and still does.
//! 2. *No stall.* In a quiet state nothing is under way, no call asks before `place_lease` ends,
//!    and no call holds the lock. There no living call waits, unless what happened wakes none
//!    ([`World::excused`]). With permits and readers, none waits that a quorum would grant, whether
//!    others hold or not; an entry of a program that is killed while others hold may block so long
//!    until one of them releases.
//! 3. *Progress.* From each settled state, without further faults, each living call wins: within a
//!    few rounds by timers of `place_lease`, and without an endless exchange of rounds.
//! 4. *No garbage.* Then no node has an entry of a living program.

use crate::call::{CallState, Phase};
use crate::node::{CALLS, Calls, Kind, Lock, Take, bit};
use crate::packed::State;
use crate::pipe::Request;
use crate::rules::Rule;
use crate::scope::Scope;
use crate::search::{self, After, Won, Wrong};
use crate::world::{Call, Life, NODES, NOW, NodeState, Step, World, name};
use quorumlock::algorithm::node::{NodeId, NodeSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// Most steps without a timer of `place_lease`.
const STEPS: usize = 300;
/// Most such timers of all calls.
const POLLS: usize = 12;

impl search::World for State {
    type Rule = Rule;
    type Scope = Scope;
    type Step = Step;
    type Key = u128;
    const SPECIAL: Option<&'static str> = None;

    fn first(scope: Scope) -> State {
        State::of(&World::begin(scope))
    }

    fn steps(&self, _rule: Rule, scope: Scope, steps: &mut Vec<Step>) {
        let world = self.world();
        steps.clear();
        world.push_steps(scope.is_timely, steps);
        world.push_faults(scope, steps);
        for (c, _) in world
            .calls
            .iter()
            .enumerate()
            .take(scope.calls)
            .filter(|(_, call)| call.life == Life::Idle)
        {
            steps.extend((1..=scope.clocks).map(|clock| Step::Begin(c, clock)));
        }
    }

    fn after(self, step: Step, rule: Rule, scope: Scope) -> Result<After<State>, Wrong> {
        let mut world = self.world();
        let is_fault = match step {
            Step::GiveUp(_)
            | Step::Kill(_)
            | Step::Hang(_)
            | Step::Cut(..)
            | Step::Down(_)
            | Step::QueueLost(_) => true,
            Step::ExecuteUnheard(..) | Step::Lose(..) | Step::Newcomer(_) => true,
            Step::Poll(_) => !world.excused,
            _ => false,
        };
        world.faults -= u8::from(is_fault);
        let won: Option<Won> = world.apply(step, rule, scope)?;
        Ok(After {
            world: State::of(&world),
            won,
        })
    }

    fn check(&self, rule: Rule, scope: Scope) -> Result<(), Wrong> {
        let world = self.world();
        let kind = world.nodes[0].node.kind;
        let is_held = world
            .calls
            .iter()
            .any(|call| call.queued.phase == Phase::Holding);
        if !world.is_settled() || is_held && kind == Kind::Mutex {
            return Ok(());
        }
        let mut steps = Vec::new();
        world.push_steps(false, &mut steps);
        steps.retain(|step| !matches!(step, Step::Release(_)));
        let is_seen =
            kind != Kind::Mutex && !world.up().any(|(_, state)| state.node.has_unseen_death);
        let granting = |c: usize| {
            world
                .up()
                .filter(|(_, state)| state.node.would_grant(c))
                .count()
        };
        let passed =
            (0..CALLS).find(|&c| is_seen && world.waits(c) && granting(c) >= world.quorum());
        if let (true, false, Some(c)) = (steps.is_empty(), world.excused, passed) {
            return Err(Wrong(format!(
                "no node wakes {}, which would be granted",
                name(c)
            )));
        }
        if is_held {
            return Ok(());
        }
        let waiting = (0..CALLS).find(|&c| world.waits(c));
        if let (true, false, Some(c)) = (steps.is_empty(), world.excused, waiting) {
            return Err(Wrong(format!("no node wakes {}", name(c))));
        }
        world.progress(rule, scope)
    }

    fn key(&self, _scope: Scope) -> u128 {
        let mut fingerprint = Fingerprint::default();
        State::of(&self.world().canonical()).hash(&mut fingerprint);
        fingerprint.0
    }

    fn describe(&self, step: Step) -> String {
        step.to_string()
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.world().fmt(f)
    }
}

impl World {
    /// Nothing fails any more, and what can happen does, in the order that is likely.
    fn progress(mut self, rule: Rule, scope: Scope) -> Result<(), Wrong> {
        let mut steps = Vec::new();
        let mut polls = 0;
        let mut count = 0;
        let mut last = 0;
        loop {
            steps.clear();
            self.push_steps(false, &mut steps);
            let waiting: Vec<usize> = (0..CALLS).filter(|&c| self.can_poll(c)).collect();
            // Messages are faster than timers, and the shorter timer ends first.
            let due = |step: &Step| match *step {
                Step::Ask(c) => (self.due(c), (c + CALLS - last) % CALLS),
                Step::Conclude(_) => (NOW.after(Duration::from_millis(2)), 0),
                _ => (NOW, 0),
            };
            let step = match steps
                .iter()
                .min_by_key(|step| (matches!(step, Step::Ask(_) | Step::Conclude(_)), due(step)))
            {
                // Time passes meanwhile.
                Some(Step::Ask(_)) if count > STEPS / 2 && self.excused => {
                    Step::Poll(waiting[polls % waiting.len()])
                }
                Some(&step) => step,
                None if waiting.is_empty() => return self.is_clean(rule, scope),
                None => Step::Poll(waiting[polls % waiting.len()]),
            };
            (polls, count) = if let Step::Poll(_) = step {
                (polls + 1, 0)
            } else {
                (polls, count + 1)
            };
            if let Step::Ask(c) = step {
                last = c + 1;
            }
            if polls > POLLS {
                return Err(Wrong(format!(
                    "{} asks and is never granted: {self}",
                    name(waiting[0])
                )));
            }
            if count > STEPS {
                return Err(Wrong(format!("rounds without an end: {self}")));
            }
            self.apply(step, rule, scope)?;
        }
    }

    /// No entry of a living program stays, and after another call none of a program that was
    /// killed. A take that arrives when its lock has been released may hold the lock until that
    /// ends: then an entry stays, too.
    fn is_clean(mut self, rule: Rule, scope: Scope) -> Result<(), Wrong> {
        let living = self
            .calls
            .iter()
            .enumerate()
            .filter(|(_, call)| call.life == Life::Alive);
        let living = living.fold(0, |calls, (c, _)| calls | bit(c));
        if !self.excused && !self.is_littered {
            self.has_none(living)?;
        }
        if self.calls.iter().any(|call| call.life == Life::Hung) {
            return Ok(());
        }
        for n in 0..self.count.into() {
            // The releases of permits do not look at those that were told before; a grant does.
            let node = &mut self.nodes[n].node;
            if let (Kind::Permits(_), Some(call)) =
                (node.kind, (0..CALLS).find(|&c| node.scores[c] == 0))
            {
                node.take(
                    rule,
                    Take {
                        call,
                        ticket: Err(1),
                        stores_only: false,
                        challenged: None,
                    },
                );
                node.release(rule, call, None);
            }
            self.apply(Step::ReleaseNewcomer(n), rule, scope)?;
        }
        let mut steps = Vec::new();
        for _ in 0..STEPS {
            steps.clear();
            self.push_steps(false, &mut steps);
            let Some(&step) = steps.first() else {
                return self.has_none(Calls::MAX);
            };
            self.apply(step, rule, scope)?;
        }
        Err(Wrong(format!("messages without an end: {self}")))
    }

    fn has_none(&self, calls: Calls) -> Result<(), Wrong> {
        for (n, state) in self.up() {
            if let Some(c) = state.node.queue().find(|&c| calls & bit(c) != 0) {
                return Err(Wrong(format!(
                    "the entry of {} stays on node {n}: {self}",
                    name(c)
                )));
            }
        }
        Ok(())
    }

    /// Without names of nodes, and without what no later step reads.
    fn canonical(mut self) -> World {
        let quorum = self.quorum();
        for (c, call) in self.calls.iter_mut().enumerate() {
            let nodes = || self.nodes.iter();
            let is_late =
                nodes().any(|state| state.late.is_some_and(|(late, _)| usize::from(late) == c));
            let has = |first: bool| {
                nodes().any(|state| {
                    state.pipes[c]
                        .iter()
                        .any(|request| !first || request == Request::First)
                }) || is_late
            };
            let queued = &mut call.queued;
            for set in [&mut queued.turns, &mut queued.found_first] {
                *set = NodeSet::first(set.len().min(quorum));
            }
            if call.life == Life::Killed {
                let phase = if queued.phase == Phase::Holding {
                    Phase::Ended
                } else {
                    queued.phase
                };
                let ticket = queued.ticket;
                *queued = CallState::default();
                queued.phase = phase;
                queued.ticket = ticket;
            }
            if queued.phase == Phase::Ended && !has(false) {
                queued.ticket = None;
            }
            if (queued.ticket.is_some() || queued.phase == Phase::Ended) && !has(true) {
                call.clock = 0;
            }
            if !nodes().any(|state| {
                state.pipes[c]
                    .iter()
                    .any(|request| request == Request::Challenge)
            }) {
                call.challenged = 0;
            }
        }
        let count = usize::from(self.count);
        let mut order: [usize; NODES] = std::array::from_fn(|n| n);
        let sets = |call: &Call| {
            [
                call.queued.round.granted,
                call.queued.round.refused,
                call.queued.round.silent,
            ]
        };
        let exact = |call: &Call| call.queued.round.exact;
        let rank = |n: usize| -> (NodeState, u32) {
            let id = NodeId::new(n);
            let has = |set: NodeSet| u32::from(set.contains(id));
            let bits = self
                .calls
                .iter()
                .flat_map(|call| sets(call).into_iter().chain([exact(call)]));
            (
                self.nodes[n],
                bits.fold(0, |bits, set| bits << 1 | has(set)),
            )
        };
        order[..count].sort_by_cached_key(|&n| rank(n));
        let renamed = |set: NodeSet| -> NodeSet {
            (0..count)
                .filter(|&n| set.contains(NodeId::new(order[n])))
                .map(NodeId::new)
                .collect()
        };
        let mut world = self;
        for (n, &from) in order.iter().enumerate() {
            world.nodes[n] = self.nodes[from];
        }
        for call in &mut world.calls {
            let round = &mut call.queued.round;
            for set in [
                &mut round.granted,
                &mut round.refused,
                &mut round.silent,
                &mut round.exact,
            ] {
                *set = renamed(*set);
            }
        }
        world
    }
}

/// 128 bits of what is hashed, by FNV in words: two of a billion states have the same with a chance
/// of 1 : 10²⁰.
struct Fingerprint(u128);

impl Default for Fingerprint {
    fn default() -> Fingerprint {
        Fingerprint(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Hasher for Fingerprint {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            self.write_u64(
                chunk
                    .iter()
                    .fold(0, |word, &byte| word << 8 | u64::from(byte)),
            );
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }

    fn write_u16(&mut self, word: u16) {
        self.write_u64(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ u128::from(word))
            .wrapping_mul(0x0100_0000_0000_0000_0000_013b)
            .rotate_left(47);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0 as u64
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, state) in self.nodes[..self.count.into()].iter().enumerate() {
            let queue: Vec<String> = state
                .node
                .queue()
                .map(|c| format!("{}{}", name(c), state.node.scores[c]))
                .collect();
            write!(f, "[{}", queue.join(" "))?;
            match state.node.lock {
                Lock::Free => {}
                Lock::Call(c) => write!(f, " held by {}", name(c.into()))?,
                lock => write!(f, " {lock:?}")?,
            }
            for c in (0..CALLS).filter(|&c| state.node.holders & bit(c) != 0) {
                write!(f, " held by {}", name(c))?;
            }
            if state.is_down {
                f.write_str(" down")?;
            }
            for (c, pipe) in state
                .pipes
                .iter()
                .enumerate()
                .filter(|(_, pipe)| !pipe.is_empty())
            {
                write!(f, " {}:{:?}", name(c), pipe.iter().collect::<Vec<_>>())?;
            }
            for c in 0..CALLS {
                let is_turn = state.node.turns & bit(c) != 0;
                let is_next = state.node.nexts & bit(c) != 0;
                let text =
                    if is_turn { "!" } else { "" }.to_owned() + if is_next { "?" } else { "" };
                if !text.is_empty() {
                    write!(f, " {text}{}", name(c))?;
                }
                let is_away =
                    self.calls[c].life == Life::Alive && state.node.receivers & bit(c) == 0;
                if is_away && n < self.count.into() {
                    write!(f, " {} away", name(c))?;
                }
            }
            f.write_str("]")?;
        }
        for (c, call) in self
            .calls
            .iter()
            .enumerate()
            .filter(|(_, call)| call.life != Life::Idle)
        {
            let life = if call.life == Life::Alive {
                String::new()
            } else {
                format!("{:?} ", call.life)
            };
            write!(f, " {}: {life}{:?}", name(c), call.queued.phase)?;
            if let Some(ticket) = call.queued.ticket {
                write!(f, " {ticket}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Step::Begin(c, clock) => write!(f, "{} begins, its clock shows {clock}", name(c)),
            Step::Ask(c) => write!(f, "{} asks", name(c)),
            Step::Conclude(c) => write!(f, "{} waits for no more nodes", name(c)),
            Step::Poll(c) => write!(f, "{} asks after place_lease", name(c)),
            Step::Execute(c, n) => write!(f, "node {n} executes a request of {}", name(c)),
            Step::ExecuteUnheard(c, n) => write!(
                f,
                "node {n} executes a request of {}, the reply is lost",
                name(c)
            ),
            Step::Lose(c, n, false) => write!(f, "the connection of {} to {n} ends", name(c)),
            Step::Lose(c, n, true) => write!(
                f,
                "the connection of {} to {n} ends, a take arrives later",
                name(c)
            ),
            Step::ExecuteLate(n) => write!(f, "node {n} executes a late take"),
            Step::Deliver(c, n, message) => {
                write!(f, "a message of {n} reaches {}: {message:?}", name(c))
            }
            Step::Release(c) => write!(f, "{} releases", name(c)),
            Step::GiveUp(c) => write!(f, "{} gives up", name(c)),
            Step::Kill(c) => write!(f, "{} is killed", name(c)),
            Step::Hang(c) => write!(f, "{} hangs", name(c)),
            Step::Drop(c, n) => write!(f, "what {} sent to {n} is lost", name(c)),
            Step::Cut(c, n) => write!(f, "the subscription of {} on {n} ends", name(c)),
            Step::Confirm(c, n) => write!(f, "the subscription of {} on {n} is confirmed", name(c)),
            Step::QueueLost(n) => write!(f, "node {n} loses its queue"),
            Step::Down(n) => write!(f, "node {n} ends"),
            Step::Newcomer(n) => write!(f, "node {n} grants to a call without an entry"),
            Step::ReleaseNewcomer(n) => write!(f, "that releases on {n}"),
            Step::Expire(n) => write!(f, "the lock ends on {n}"),
        }
    }
}
