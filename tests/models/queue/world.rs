//! The world: nodes, calls, what is under way between them, and what can happen.
//!
//! It has no time: what is under way arrives at any time, and so does the end of a timer of a few
//! milliseconds. A timer of `place_lease` ends only where no message could have woken the call
//! ([`World::excused`]), or at the cost of a fault.
//! 1. A node executes a request and the call receives the reply in one step. A reply that is too
//!    late is one that is lost, and costs a fault.
//! 2. A client's requests to a node are executed in their order. When their connection ends, a take
//!    is lost or executed at any later time, releases are sent again, and what else stores or
//!    removes an entry is lost.
//! 3. A round is decided as soon as it can be. If a quorum refused it and no node granted, the
//!    engine waits for the other nodes, for any time ([`Step::Conclude`]).
//! 4. A program that is killed or stopped stays so. One that goes on was slow. A node that is down
//!    stays so.
//! 5. Each call acquires the lock once.

use crate::call::{CallState, Phase, Reply, Verdict, Watch};
use crate::node::{CALLS, Kind, Lock, Node, Take, bit};
use crate::pipe::{Pipe, Request};
use crate::rules::Rule;
use crate::scope::{Fault, Scope};
use crate::search::Outcome;
use quorumlock::algorithm::node::{NodeId, NodeSet};
use quorumlock::algorithm::queue::{Aftermath, HeadWatch, Message};
use quorumlock::algorithm::time::Timestamp;
use std::time::Duration;

pub(crate) const NODES: usize = 3;
pub(crate) const PLACE_LEASE: Duration = Duration::from_secs(1);
/// Nothing happens before or after it, but what waits for `place_lease`.
pub(crate) const NOW: Timestamp = Timestamp::from_nanos(1_000_000_000);

/// A node, and what is between it and each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeState {
    pub(crate) node: Node,
    pub(crate) is_down: bool,
    pub(crate) pipes: [Pipe; CALLS],
    /// A take of a call that arrives after what was sent later.
    pub(crate) late: Option<(u8, Request)>,
    /// For each earlier and later call: whether the earlier one's ticket was kept here since the
    /// later one began.
    pub(crate) kept: u16,
    /// For each call: the head that it has seen here, and the one by its reply to the present
    /// round.
    pub(crate) watches: [Watch; CALLS],
    pub(crate) seen: [Watch; CALLS],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Life {
    /// It has not begun.
    #[default]
    Idle,
    Alive,
    /// Stopped: its connections stay.
    Hung,
    Killed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) life: Life,
    pub(crate) queued: CallState,
    /// The time by its clock when it began.
    pub(crate) clock: u8,
    /// The call whose entry it has challenged last, counted from 1.
    pub(crate) challenged: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) count: u8,
    pub(crate) nodes: [NodeState; NODES],
    pub(crate) calls: [Call; CALLS],
    pub(crate) faults: u8,
    /// Whether a lock ended with its time to live, a queue was lost, or a program hangs: what wakes
    /// no call.
    pub(crate) excused: bool,
    /// Whether a take of a call that had ended was executed late: its entry stays until another
    /// call meets it.
    pub(crate) is_littered: bool,
}

/// What can happen. The first number is the call, the second the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// With the time by its clock.
    Begin(usize, u8),
    Ask(usize),
    /// The engine waits no longer for nodes that may refuse.
    Conclude(usize),
    /// Asks after `place_lease`.
    Poll(usize),
    Execute(usize, usize),
    /// The reply is lost, or too late.
    ExecuteUnheard(usize, usize),
    /// The connection ends; whether the take is executed later.
    Lose(usize, usize, bool),
    ExecuteLate(usize),
    Deliver(usize, usize, Message),
    Release(usize),
    GiveUp(usize),
    Kill(usize),
    Hang(usize),
    /// What a program sent before it was killed is lost.
    Drop(usize, usize),
    /// The subscription ends.
    Cut(usize, usize),
    Confirm(usize, usize),
    QueueLost(usize),
    Down(usize),
    Newcomer(usize),
    ReleaseNewcomer(usize),
    /// The lock's time to live ends.
    Expire(usize),
}

impl World {
    pub(crate) fn begin(scope: Scope) -> World {
        let mut nodes = [NodeState::default(); NODES];
        nodes[..scope.nodes]
            .iter_mut()
            .for_each(|state| state.node.kind = scope.kind);
        let calls = std::array::from_fn(|c| Call {
            queued: CallState::new(scope.nodes, c),
            ..Call::default()
        });
        World {
            count: scope.nodes as u8,
            nodes,
            calls,
            faults: scope.faults,
            excused: false,
            is_littered: false,
        }
    }

    pub(crate) fn quorum(&self) -> usize {
        usize::from(self.count) / 2 + 1
    }

    /// When a call asks again.
    pub(crate) fn due(&self, c: usize) -> Timestamp {
        self.calls[c].queued.due()
    }

    pub(crate) fn up(&self) -> impl Iterator<Item = (usize, &NodeState)> {
        self.nodes[..self.count.into()]
            .iter()
            .enumerate()
            .filter(|(_, state)| !state.is_down)
    }

    /// What happens without a fault.
    pub(crate) fn push_steps(&self, timely: bool, steps: &mut Vec<Step>) {
        let is_settled = self.is_settled();
        for (n, state) in self.up() {
            for (c, call) in self.calls.iter().enumerate() {
                let is_alive = call.life == Life::Alive;
                if !state.pipes[c].is_empty() {
                    steps.push(Step::Execute(c, n));
                    if call.life == Life::Killed {
                        steps.push(Step::Drop(c, n));
                    }
                }
                for (calls, message) in [
                    (state.node.turns, Message::Turn(None)),
                    (state.node.nexts, Message::Next),
                ] {
                    if is_alive && calls & bit(c) != 0 {
                        steps.push(Step::Deliver(c, n, message));
                    }
                }
                if is_alive && state.node.receivers & bit(c) == 0 {
                    steps.push(Step::Confirm(c, n));
                }
            }
            match state.node.lock {
                Lock::Newcomer => steps.push(Step::ReleaseNewcomer(n)),
                Lock::Late => steps.push(Step::Expire(n)),
                Lock::Call(c)
                    if self.is_gone(c.into()) && state.pipes[usize::from(c)].is_empty() =>
                {
                    steps.push(Step::Expire(n));
                }
                _ => {}
            }
            let is_over = |&c: &usize| {
                self.is_gone(c) && state.pipes[c].is_empty() && state.node.holders & bit(c) != 0
            };
            if (0..CALLS).any(|c| is_over(&c)) {
                steps.push(Step::Expire(n));
            }
        }
        for (c, call) in self
            .calls
            .iter()
            .enumerate()
            .filter(|(_, call)| call.life == Life::Alive)
        {
            if call.queued.phase == Phase::Holding {
                steps.push(Step::Release(c));
            }
            let is_asking = call.queued.phase == Phase::Asking;
            if is_asking && call.queued.verdict() == Verdict::AwaitsRefusals {
                steps.push(Step::Conclude(c));
            }
            if self.asks_soon(c) && (!timely || is_settled || self.due(c) == NOW) {
                steps.push(Step::Ask(c));
            }
        }
    }

    pub(crate) fn is_gone(&self, c: usize) -> bool {
        matches!(self.calls[c].life, Life::Hung | Life::Killed)
    }

    pub(crate) fn waits(&self, c: usize) -> bool {
        self.calls[c].life == Life::Alive
            && matches!(self.calls[c].queued.phase, Phase::Asking | Phase::Waiting)
    }

    /// Whether it asks before `place_lease` ends.
    pub(crate) fn asks_soon(&self, c: usize) -> bool {
        self.calls[c].life == Life::Alive && self.due(c) < NOW.after(PLACE_LEASE)
    }

    /// Whether it waits for the end of `place_lease`.
    pub(crate) fn can_poll(&self, c: usize) -> bool {
        self.calls[c].life == Life::Alive && self.calls[c].queued.phase == Phase::Waiting
    }

    /// Whether nothing is under way.
    pub(crate) fn is_settled(&self) -> bool {
        let living = self
            .calls
            .iter()
            .enumerate()
            .filter(|(_, call)| call.life == Life::Alive);
        let living = living.fold(0, |calls, (c, _)| calls | bit(c));
        self.up().all(|(_, state)| {
            let messages = (state.node.turns | state.node.nexts) & living;
            messages == 0 && state.pipes.iter().all(|pipe| pipe.is_empty())
        })
    }

    pub(crate) fn apply(&mut self, step: Step, rule: Rule, scope: Scope) -> Outcome {
        match step {
            Step::Begin(c, clock) => {
                self.calls[c] = Call {
                    life: Life::Alive,
                    clock,
                    ..self.calls[c]
                };
                let count = self.count.into();
                for n in 0..count {
                    self.nodes[n].node.receivers |= if scope.subscribed { bit(c) } else { 0 };
                    for earlier in (0..CALLS).filter(|&earlier| earlier != c) {
                        self.keep(earlier, c, n);
                    }
                }
                self.ask(c, rule, false)
            }
            Step::Ask(c) => self.ask(c, rule, false),
            Step::Conclude(c) => self.lose(c, rule),
            Step::Poll(c) => self.ask(c, rule, true),
            Step::Execute(c, n) => self.execute(c, n, rule, scope, true),
            Step::ExecuteUnheard(c, n) => {
                self.execute(c, n, rule, scope, false)?;
                self.silence(c, n, rule)
            }
            Step::Lose(c, n, is_late) => {
                let (lost, is_leave_lost) = self.nodes[n].pipes[c].lose();
                self.is_littered |= is_leave_lost;
                if is_late {
                    self.nodes[n].late = lost.map(|lost| (c as u8, lost));
                }
                self.silence(c, n, rule)
            }
            Step::ExecuteLate(n) => {
                if let Some((c, request)) = self.nodes[n].late.take() {
                    let is_over = self.calls[usize::from(c)].queued.phase == Phase::Ended;
                    self.is_littered |= is_over && request != Request::Command;
                    let node = &mut self.nodes[n].node;
                    // No later undo has its token.
                    let lock = node.lock;
                    if lock == Lock::Call(c) {
                        node.lock = Lock::Late;
                    }
                    let (reply, _) = self.take(c.into(), n, rule, request, None);
                    let node = &mut self.nodes[n].node;
                    node.lock = if reply == Reply::Granted {
                        Lock::Late
                    } else {
                        lock
                    };
                }
                Ok(None)
            }
            Step::Deliver(c, n, message) => {
                let node = &mut self.nodes[n].node;
                let calls = if message == Message::Next {
                    &mut node.nexts
                } else {
                    &mut node.turns
                };
                *calls &= !bit(c);
                let call = &mut self.calls[c].queued;
                let leaves = call.on_message(rule, NodeId::new(n), message);
                if leaves && !(rule == Rule::EndedIgnoresNext && message == Message::Next) {
                    self.nodes[n].pipes[c].push(Request::Leave);
                }
                Ok(None)
            }
            Step::Release(c) => {
                (0..self.count.into()).for_each(|n| self.send(c, n, Request::End));
                self.finish(c)
            }
            Step::GiveUp(c) => {
                let CallState { phase, round, .. } = self.calls[c].queued;
                if phase == Phase::Asking {
                    self.undo(c, NodeSet::first(self.count.into()).without(round.refused));
                }
                (0..self.count.into()).for_each(|n| self.send(c, n, Request::Leave));
                self.finish(c)
            }
            _ => self.apply_fault(step, rule),
        }
    }

    fn send(&mut self, c: usize, n: usize, request: Request) {
        if !self.nodes[n].is_down {
            self.nodes[n].pipes[c].push(request);
        }
    }

    fn finish(&mut self, c: usize) -> Outcome {
        self.calls[c].queued.end();
        self.forget(c);
        self.nodes
            .iter_mut()
            .for_each(|state| state.seen[c] = Watch::default());
        Ok(None)
    }

    /// The release of what an attempt may have set. It stores the call's ticket, if there is one,
    /// or removes the entry.
    fn undo(&mut self, c: usize, nodes: NodeSet) {
        let request = if self.calls[c].queued.ticket.is_some() {
            Request::Undo
        } else {
            Request::End
        };
        nodes
            .iter()
            .for_each(|node| self.send(c, node.index(), request));
    }

    fn ask(&mut self, c: usize, rule: Rule, is_poll: bool) -> Outcome {
        if is_poll {
            self.nodes
                .iter_mut()
                .for_each(|state| state.watches[c] = state.watches[c].map(aged));
        }
        let count = self.count.into();
        let watches = self.nodes.map(|state| state.watches[c]);
        let has_command = self.nodes[0].node.kind == Kind::Mutex && rule != Rule::GrantRemoves;
        let call = &mut self.calls[c];
        let challenged = call.queued.ask(&watches, has_command);
        call.challenged = challenged.map_or(call.challenged, |challenged| challenged as u8 + 1);
        let request = match (
            challenged,
            call.queued.ticket.is_some() && rule != Rule::NoAgreement,
        ) {
            _ if call.queued.round.is_by_command => Request::Command,
            (Some(_), _) => Request::Challenge,
            (None, true) => Request::Fixed,
            (None, false) => Request::First,
        };
        for n in 0..count {
            let state = &mut self.nodes[n];
            let is_undone = state.pipes[c]
                .iter()
                .any(|request| matches!(request, Request::Undo | Request::End));
            // Each attempt has a token of its own.
            if state.node.lock == Lock::Call(c as u8) && !is_undone {
                state.node.lock = Lock::Leaked;
            }
            self.send(c, n, request);
        }
        for n in (0..count)
            .filter(|&n| self.nodes[n].is_down)
            .collect::<Vec<_>>()
        {
            self.silence(c, n, rule)?;
        }
        Ok(None)
    }

    /// Whether the call waits for the node's reply.
    pub(crate) fn expects(&self, c: usize, n: usize) -> bool {
        let Call { life, queued, .. } = &self.calls[c];
        let round = &queued.round;
        let answered = round.granted.union(round.refused).union(round.silent);
        *life == Life::Alive && queued.phase == Phase::Asking && !answered.contains(NodeId::new(n))
    }

    pub(crate) fn silence(&mut self, c: usize, n: usize, rule: Rule) -> Outcome {
        if !self.expects(c, n) {
            return Ok(None);
        }
        let verdict = self.calls[c].queued.on_silence(NodeId::new(n));
        self.decide(c, verdict, rule)
    }

    fn take(
        &mut self,
        c: usize,
        n: usize,
        rule: Rule,
        request: Request,
        head: Option<usize>,
    ) -> (Reply, Option<usize>) {
        if request == Request::Command {
            return (self.nodes[n].node.set(c), None);
        }
        let Call { queued, clock, .. } = self.calls[c];
        let ticket = queued
            .ticket
            .filter(|_| request != Request::First)
            .map_or(Err(clock), |ticket| Ok(ticket as u8));
        let reply = self.nodes[n].node.take(
            rule,
            Take {
                challenged: head,
                ..Take::new(c, ticket)
            },
        );
        self.forget_removed(n);
        reply
    }

    fn execute(&mut self, c: usize, n: usize, rule: Rule, scope: Scope, is_heard: bool) -> Outcome {
        let Some(request) = self.nodes[n].pipes[c].pop() else {
            return Ok(None);
        };
        let ticket = self.calls[c].queued.ticket.map(|ticket| ticket as u8);
        let is_killed = self.calls[c].life == Life::Killed;
        let node = &mut self.nodes[n].node;
        let has_unseen_death = node.has_unseen_death;
        match request {
            Request::Undo => node.release(rule, c, ticket),
            Request::End => node.release(rule, c, None),
            Request::Leave => node.leave(rule, c),
            Request::Store => {
                let take = Take {
                    stores_only: true,
                    ..Take::new(c, Ok(ticket.unwrap_or(0)))
                };
                node.take(rule, take);
            }
            Request::First | Request::Fixed | Request::Challenge | Request::Command => {
                let holder = node.holder();
                let challenged = usize::from(self.calls[c].challenged).checked_sub(1);
                let challenged = challenged.filter(|_| request == Request::Challenge);
                let (reply, head) = self.take(c, n, rule, request, challenged);
                let is_last = !self.nodes[n].pipes[c].iter().any(Request::takes);
                if is_heard && is_last && self.expects(c, n) {
                    let seen = head.filter(|_| scope.has(Fault::Hang));
                    let seen = seen.map(|head| HeadWatch::after(None, head as u8, holder, NOW));
                    self.nodes[n].seen[c] = seen;
                    let verdict = self.calls[c].queued.on_reply(NodeId::new(n), reply);
                    return self.decide(c, verdict, rule);
                }
            }
        }
        // What a program sent before it was killed does not look at its own entry.
        self.nodes[n].node.has_unseen_death |= is_killed && has_unseen_death;
        self.forget_removed(n);
        Ok(None)
    }

    fn decide(&mut self, c: usize, verdict: Verdict, rule: Rule) -> Outcome {
        match verdict {
            Verdict::Pending | Verdict::AwaitsRefusals => Ok(None),
            Verdict::Won => {
                self.calls[c].queued.won();
                self.nodes
                    .iter_mut()
                    .for_each(|state| state.seen[c] = Watch::default());
                self.win(c)
            }
            Verdict::Lost => self.lose(c, rule),
        }
    }

    /// A round is lost.
    fn lose(&mut self, c: usize, rule: Rule) -> Outcome {
        let count: usize = self.count.into();
        let heads = [
            self.nodes.map(|state| state.watches[c]),
            self.nodes.map(|state| state.seen[c]),
        ];
        let round = self.calls[c].queued.round;
        let (aftermath, watches) = self.calls[c].queued.lost(rule, &heads);
        for (state, watch) in self.nodes.iter_mut().zip(watches) {
            state.watches[c] = watch;
            state.seen[c] = Watch::default();
        }
        let (undo, store) = match aftermath {
            Aftermath::Waits { undo, store } => (undo, store),
            // The call has no ticket: what is undone leaves.
            Aftermath::BeginsAgain => (NodeSet::first(count), NodeSet::EMPTY),
            // Where it was heard, it leaves.
            Aftermath::StepsAside => {
                let heard = round.granted.union(round.refused);
                heard
                    .iter()
                    .for_each(|node| self.send(c, node.index(), Request::End));
                (NodeSet::first(count).without(heard), NodeSet::EMPTY)
            }
        };
        let is_undone =
            |&node: &NodeId| rule != Rule::NoUndoWhereSilent || round.granted.contains(node);
        self.undo(c, undo.iter().filter(is_undone).collect());
        for node in store.iter().filter(|_| rule != Rule::NoAgreement) {
            self.send(c, node.index(), Request::Store);
        }
        Ok(None)
    }
}

/// `place_lease` passes.
fn aged(watch: HeadWatch<u8, Lock>) -> HeadWatch<u8, Lock> {
    HeadWatch {
        since: Timestamp::ORIGIN,
        ..watch
    }
}
