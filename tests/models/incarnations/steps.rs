//! Everything that can happen.

use crate::faults::Event;
use crate::note::{Memo, OLD};
use crate::rules::Rule;
use crate::scope::{Fault, Scope};
use crate::search::{self, Outcome, Wrong, fingerprint};
use crate::world::{Case, Life, Link, PROGRAMS, Phase, Program, Round, World};
use quorumlock::algorithm::incarnation::Origin;
use quorumlock::algorithm::quarantine::RestartPolicy;

/// What can happen. The first number is the program, the second the node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A program with the longer time to live, if so; one that writes no notes, if so.
    Begin(usize, bool, bool),
    Extend(usize),
    /// A look, and the vote with it, if so.
    Look(usize, usize, bool),
    Vote(usize, usize),
    Silent(usize, usize),
    /// The reply is lost, if not.
    Note(usize, usize, bool),
    LoseNote(usize, usize),
    Tick,
    Event(usize, Event),
}

impl search::World for World {
    type Rule = Rule;
    type Scope = Scope;
    type Step = Step;
    const SPECIAL: Option<&'static str> = None;

    fn first(scope: Scope) -> World {
        let mut world = World::default();
        for node in &mut world.nodes[..scope.founders] {
            node.data.memo = Memo {
                origin: Some(Origin::Founder),
                age: OLD,
                wall: OLD,
                ..Memo::default()
            };
        }
        world
    }

    fn steps(&self, rule: Rule, scope: Scope, steps: &mut Vec<Step>) {
        steps.clear();
        if self.is_passed_over {
            return;
        }
        let has_faults = self.faults < scope.faults;
        if let Some(p) = (0..PROGRAMS).find(|&p| self.programs[p].life == Life::Free) {
            steps.push(Step::Begin(p, false, false));
            if scope.longer {
                steps.push(Step::Begin(p, true, false));
            }
            if rule == Rule::SomeNoteNothing
                && !self.programs.iter().any(|program| program.is_quiet)
            {
                steps.push(Step::Begin(p, false, true));
            }
        }
        for (p, program) in self
            .programs
            .iter()
            .enumerate()
            .filter(|(_, program)| program.life != Life::Free)
        {
            if scope.extends && program.life == Life::Holding && !program.round.is_on {
                steps.push(Step::Extend(p));
            }
            if !program.round.is_on {
                continue;
            }
            for (n, link) in program.links[..scope.nodes].iter().enumerate() {
                match link.phase {
                    Phase::Unasked => {
                        steps.push(Step::Look(p, n, !scope.apart));
                        if has_faults && scope.has(Fault::Hang) {
                            steps.push(Step::Silent(p, n));
                        }
                    }
                    Phase::Noting => {
                        steps.push(Step::Note(p, n, true));
                        if has_faults && scope.has(Fault::Unheard) {
                            steps.push(Step::Note(p, n, false));
                        }
                        if has_faults && scope.has(Fault::Lost) {
                            steps.push(Step::LoseNote(p, n));
                        }
                    }
                    Phase::Silent | Phase::Looked => (),
                }
                if matches!(link.phase, Phase::Looked | Phase::Noting) && !link.is_asked {
                    steps.push(Step::Vote(p, n));
                }
            }
        }
        if self.may_tick(scope) {
            steps.push(Step::Tick);
        }
        self.events(scope, steps);
    }

    fn take(&mut self, step: Step, rule: Rule, scope: Scope) -> Outcome {
        let case = Case { rule, scope };
        let p = match step {
            Step::Begin(p, is_long, is_quiet) => {
                let round = Round {
                    is_on: true,
                    ..Round::default()
                };
                self.programs[p] = Program {
                    life: Life::Trying,
                    is_long,
                    is_quiet,
                    round,
                    ..Program::default()
                };
                p
            }
            Step::Extend(p) => {
                let program = &mut self.programs[p];
                program.round = Round {
                    is_on: true,
                    ..Round::default()
                };
                for link in &mut program.links {
                    *link = Link {
                        phase: Phase::Unasked,
                        is_asked: false,
                        is_base: link.is_kept,
                        ..*link
                    };
                }
                p
            }
            Step::Look(p, n, votes) => {
                self.look(p, n, case);
                if votes {
                    self.vote(p, n);
                }
                p
            }
            Step::Vote(p, n) => {
                if scope.policy == RestartPolicy::Strict {
                    self.look_behind_vote(p, n, case);
                }
                self.vote(p, n);
                p
            }
            Step::Silent(p, n) => {
                self.faults += 1;
                self.programs[p].links[n].phase = Phase::Silent;
                p
            }
            Step::Note(p, n, is_heard) => {
                self.faults += u8::from(!is_heard);
                self.note(p, n, is_heard, case);
                p
            }
            Step::LoseNote(p, n) => {
                self.faults += 1;
                let link = &mut self.programs[p].links[n];
                *link = Link {
                    phase: Phase::Silent,
                    memo: Memo::default(),
                    ..*link
                };
                p
            }
            Step::Tick => {
                self.tick(case);
                return Ok(None);
            }
            Step::Event(n, event) => {
                self.happens(n, event, case);
                // What was under way to the node may have ended.
                for p in 0..PROGRAMS {
                    self.close(p, scope);
                }
                return Ok(None);
            }
        };
        self.judge(p, case);
        let won = if self.is_passed_over {
            None
        } else {
            self.conclude(p, case)?
        };
        self.close(p, scope);
        if self.is_passed_over {
            self.pass_over();
        }
        Ok(won)
    }

    fn check(&self, rule: Rule, scope: Scope) -> Result<(), Wrong> {
        if self.is_passed_over
            || self
                .programs
                .iter()
                .any(|program| program.life != Life::Free)
        {
            return Ok(());
        }
        self.check_idle(Case { rule, scope })
    }

    fn key(&self, scope: Scope) -> u128 {
        let mut swapped = *self;
        swapped.programs.swap(0, 1);
        for node in &mut swapped.nodes {
            for data in std::iter::once(&mut node.data).chain(&mut node.copy) {
                data.lock = [0, 2, 1][usize::from(data.lock)];
            }
        }
        // The least of all that differ in names.
        self.nameless(scope).min(swapped.nameless(scope))
    }
}

impl World {
    /// What comes after one of the cases that the design leaves open is not searched.
    pub(crate) fn pass_over(&mut self) {
        *self = World {
            is_passed_over: true,
            ..World::default()
        };
    }

    /// The same for all states that differ in names of nodes.
    fn nameless(&self, scope: Scope) -> u128 {
        let mut nodes: Vec<u128> = (0..scope.nodes)
            .map(|n| fingerprint(&(self.nodes[n], self.programs.map(|program| program.links[n]))))
            .collect();
        nodes.sort_unstable();
        let programs = self.programs.map(|program| {
            (
                (program.life, program.is_long, program.is_quiet),
                (program.age, program.round),
            )
        });
        fingerprint(&(nodes, programs, self.faults, self.is_passed_over))
    }

    fn may_tick(&self, scope: Scope) -> bool {
        self.programs.iter().all(|program| {
            let is_due = program.round.age >= scope.patience;
            let waits = program.links[..scope.nodes]
                .iter()
                .any(|link| link.phase == Phase::Unasked);
            !(program.round.is_on && (scope.prompt || waits && is_due))
        })
    }
}
