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
use crate::node::{CALLS, Calls, Kind, Take, bit};
use crate::pipe::Request;
use crate::rules::Rule;
use crate::scope::Scope;
use crate::search::{self, Outcome, Wrong, fingerprint, name};
use crate::world::{Call, Life, NODES, NOW, NodeState, Step, World};
use quorumlock::algorithm::node::{NodeId, NodeSet};
use std::fmt;
use std::time::Duration;

/// Most steps without a timer of `place_lease`.
const STEPS: usize = 300;
/// Most such timers of all calls.
const POLLS: usize = 12;

impl search::World for World {
    type Rule = Rule;
    type Scope = Scope;
    type Step = Step;
    const SPECIAL: Option<&'static str> = None;

    fn first(scope: Scope) -> World {
        World::begin(scope)
    }

    fn steps(&self, _rule: Rule, scope: Scope, steps: &mut Vec<Step>) {
        steps.clear();
        self.push_steps(scope.timely, steps);
        self.push_faults(scope, steps);
        for (c, _) in self
            .calls
            .iter()
            .enumerate()
            .take(scope.calls)
            .filter(|(_, call)| call.life == Life::Idle)
        {
            steps.extend((1..=scope.clocks).map(|clock| Step::Begin(c, clock)));
        }
    }

    fn take(&mut self, step: Step, rule: Rule, scope: Scope) -> Outcome {
        let is_fault = match step {
            Step::Cut(..) | Step::Down(_) | Step::GiveUp(_) | Step::Hang(_) | Step::Kill(_) => true,
            Step::ExecuteUnheard(..) | Step::Lose(..) | Step::Newcomer(_) => true,
            Step::QueueLost(_) => true,
            Step::Poll(_) => !self.excused,
            _ => false,
        };
        self.faults -= u8::from(is_fault);
        self.apply(step, rule, scope)
    }

    fn check(&self, rule: Rule, scope: Scope) -> Result<(), Wrong> {
        let kind = self.nodes[0].node.kind;
        let is_held = self
            .calls
            .iter()
            .any(|call| call.queued.phase == Phase::Holding);
        if !self.is_settled() || is_held && kind == Kind::Mutex {
            return Ok(());
        }
        let mut steps = Vec::new();
        self.push_steps(false, &mut steps);
        steps.retain(|step| !matches!(step, Step::Release(_)));
        let is_seen =
            kind != Kind::Mutex && !self.up().any(|(_, state)| state.node.has_unseen_death);
        let granting = |c: usize| {
            self.up()
                .filter(|(_, state)| state.node.would_grant(c))
                .count()
        };
        let passed = (0..CALLS).find(|&c| is_seen && self.waits(c) && granting(c) >= self.quorum());
        if let (true, false, Some(c)) = (steps.is_empty(), self.excused, passed) {
            return Err(Wrong(format!(
                "no node wakes {}, which would be granted",
                name(c)
            )));
        }
        if is_held {
            return Ok(());
        }
        let waiting = (0..CALLS).find(|&c| self.waits(c));
        if let (true, false, Some(c)) = (steps.is_empty(), self.excused, waiting) {
            return Err(Wrong(format!("no node wakes {}", name(c))));
        }
        self.progress(rule, scope)
    }

    fn key(&self, _scope: Scope) -> u128 {
        fingerprint(&self.canonical())
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
                node.take(rule, Take::new(call, Err(1)));
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
                *queued = queued.at_rest(match queued.phase {
                    Phase::Holding => Phase::Ended,
                    phase => phase,
                });
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

/// Each node: its queue with the tickets, its lock, the calls that hold shares of it, those with a
/// message of a turn or for the next one under way, those that are subscribed, and what clients
/// have sent. Then the calls.
impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |calls: Calls| -> String {
            let named = (0..CALLS).filter(|&c| calls & bit(c) != 0);
            named.map(name).collect()
        };
        for (_, NodeState { node, pipes, .. }) in self.up() {
            let queue: String = node
                .queue()
                .map(|c| format!("{}{}", name(c), node.scores[c]))
                .collect();
            let told = [node.holders, node.turns, node.nexts, node.receivers].map(names);
            write!(f, "[{queue} {:?} {}", node.lock, told.join("/"))?;
            for (c, pipe) in pipes
                .iter()
                .enumerate()
                .filter(|(_, pipe)| !pipe.is_empty())
            {
                write!(f, " {}:{:?}", name(c), pipe.iter().collect::<Vec<_>>())?;
            }
            f.write_str("]")?;
        }
        for (c, Call { life, queued, .. }) in self
            .calls
            .iter()
            .enumerate()
            .filter(|(_, call)| call.life != Life::Idle)
        {
            let CallState { phase, ticket, .. } = queued;
            write!(
                f,
                " {}: {life:?} {phase:?} {}",
                name(c),
                ticket.unwrap_or(0)
            )?;
        }
        Ok(())
    }
}
