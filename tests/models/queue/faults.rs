//! What may fail, and what it does.

use crate::call::Phase;
use crate::node::{CALLS, Kind, Lock, bit};
use crate::pipe::{Pipe, Request};
use crate::rules::Rule;
use crate::scope::{Fault, Scope};
use crate::search::Outcome;
use crate::world::{Life, NODES, NodeState, Step, World};
use quorumlock::algorithm::node::NodeId;
use quorumlock::algorithm::queue::Message;

impl World {
    /// The faults that can happen now.
    pub(crate) fn push_faults(&self, scope: Scope, steps: &mut Vec<Step>) {
        if self.excused && self.is_settled() {
            steps.extend(
                (0..scope.calls)
                    .filter(|&c| self.can_poll(c))
                    .map(Step::Poll),
            );
        }
        for (n, state) in self.up().filter(|(_, state)| state.late.is_some()) {
            // A lock that it is granted without a need ends by itself.
            if state.node.lock != Lock::Late {
                steps.push(Step::ExecuteLate(n));
            }
        }
        if self.faults == 0 {
            return;
        }
        let mut push = |fault: Fault, step: Step| {
            if scope.has(fault) {
                steps.push(step);
            }
        };
        for (c, call) in self
            .calls
            .iter()
            .enumerate()
            .filter(|(_, call)| call.life == Life::Alive)
        {
            let has_ended = call.queued.phase == Phase::Ended;
            if self.waits(c) {
                push(Fault::GiveUp, Step::GiveUp(c));
            }
            if !has_ended {
                push(Fault::Kill, Step::Kill(c));
                push(Fault::Hang, Step::Hang(c));
            }
            if self.can_poll(c) && !self.asks_soon(c) && !self.excused {
                push(Fault::Poll, Step::Poll(c));
            }
            for (n, state) in self.up() {
                if state.node.receivers & bit(c) != 0 && !has_ended {
                    push(Fault::Cut, Step::Cut(c, n));
                }
                if state.pipes[c].iter().any(Request::takes) {
                    push(Fault::Lose, Step::Lose(c, n, false));
                    if state.late.is_none() {
                        push(Fault::Late, Step::Lose(c, n, true));
                    }
                    if self.is_current(c, n, state) {
                        push(Fault::Unheard, Step::ExecuteUnheard(c, n));
                    }
                }
            }
        }
        for (n, state) in self.up() {
            if state.node.lock == Lock::Free {
                push(Fault::Newcomer, Step::Newcomer(n));
            }
            if state.node.scores.iter().any(|&score| score > 0) {
                push(Fault::QueueLost, Step::QueueLost(n));
            }
            if self.count > 1 && self.up().count() == usize::from(self.count) {
                push(Fault::Down, Step::Down(n));
            }
        }
    }

    /// Whether the next request is the take whose reply the call waits for.
    fn is_current(&self, c: usize, n: usize, state: &NodeState) -> bool {
        let mut requests = state.pipes[c].iter();
        let is_next = requests.next().is_some_and(Request::takes);
        is_next && !requests.any(Request::takes) && self.expects(c, n)
    }

    pub(crate) fn apply_fault(&mut self, step: Step, rule: Rule) -> Outcome {
        match step {
            Step::Kill(c) => {
                self.calls[c].life = Life::Killed;
                (0..NODES).for_each(|n| self.cut(c, n));
                for state in &mut self.nodes {
                    // The death of one that has a turn is seen by the next one.
                    let has_turn = state.node.grantable() & bit(c) != 0;
                    state.node.has_unseen_death |= state.node.kind != Kind::Mutex && !has_turn;
                }
            }
            Step::Hang(c) => {
                self.calls[c].life = Life::Hung;
                self.excused = true;
            }
            Step::Drop(c, n) => self.nodes[n].pipes[c] = Pipe::default(),
            Step::Cut(c, n) => self.cut(c, n),
            Step::Confirm(c, n) => {
                self.nodes[n].node.receivers |= bit(c);
                let call = &mut self.calls[c].queued;
                call.on_message(rule, NodeId::new(n), Message::Confirmed);
            }
            Step::QueueLost(n) => {
                self.nodes[n].node.scores = [0; CALLS];
                self.nodes[n].kept = 0;
                self.excused = true;
            }
            Step::Down(n) => {
                self.nodes[n].is_down = true;
                self.nodes[n].pipes = Default::default();
                self.nodes[n].late = None;
                for c in 0..CALLS {
                    self.cut(c, n);
                    self.silence(c, n, rule)?;
                }
            }
            Step::Newcomer(n) => self.nodes[n].node.lock = Lock::Newcomer,
            Step::ReleaseNewcomer(n) => self.nodes[n].node.release_newcomer(rule),
            Step::Expire(n) => {
                let gone = (0..CALLS)
                    .filter(|&c| self.is_gone(c))
                    .fold(0, |calls, c| calls | bit(c));
                self.nodes[n].node.lock = Lock::Free;
                self.nodes[n].node.holders &= !gone;
                self.excused = true;
            }
            _ => {}
        }
        (0..NODES).for_each(|n| self.forget_removed(n));
        Ok(None)
    }

    fn cut(&mut self, c: usize, n: usize) {
        let node = &mut self.nodes[n].node;
        for calls in [&mut node.receivers, &mut node.turns, &mut node.nexts] {
            *calls &= !bit(c);
        }
    }
}
