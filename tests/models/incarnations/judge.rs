//! What programs make of their looks, by the library's rules; what the design leaves open; and what
//! must hold when no program is at work.

use crate::note::{Memo, Names, SHORT, duration, ticks_before_now, ttl};
use crate::rules::Rule;
use crate::scope::{Fault, Scope, open};
use crate::search::Wrong;
use crate::world::{Case, Life, NODES, Node, OLD_LOOK, Phase, Program, World};
use quorumlock::algorithm::incarnation::{Look, Origin, Rules, Seen, Standing};
use quorumlock::algorithm::node::NodeId;
use quorumlock::algorithm::quarantine::RestartPolicy;
use std::time::Duration;

/// What a program does with a node that it has looked at.
struct Judged {
    node: usize,
    memo: Memo,
    keeps_times: bool,
}

fn rules(case: Case, is_long: bool) -> Rules {
    let policy = if case.rule == Rule::StrictFoundsAll {
        RestartPolicy::Observed
    } else {
        case.scope.policy
    };
    Rules {
        policy,
        max_ttl: duration(ttl(is_long)),
    }
}

fn counts(rules: Rules, look: &Look, longest: Duration, rule: Rule) -> bool {
    let longest = match (rule, look.found) {
        (Rule::OwnNote, quorumlock::algorithm::incarnation::Found::Note(note)) => {
            note.max_ttl.max(rules.max_ttl)
        }
        _ => longest,
    };
    rules.standing(look, longest) == Standing::Counts
}

/// What is noted at which nodes, of those that were looked at.
fn judged(mut rules: Rules, looked: &[Option<Memo>], rule: Rule) -> Vec<Judged> {
    let is_known = looked
        .iter()
        .any(|memo: &Option<Memo>| memo.is_none_or(|memo| memo.is_there()));
    if rule == Rule::StrictFoundsAll && is_known {
        rules.policy = RestartPolicy::Strict;
    }
    let look = |memo: &Memo| {
        let memo = match rule {
            // A founder counts all the same.
            Rule::NothingYoung if memo.age == 0 => Memo {
                age: 1,
                wall: 1,
                ..*memo
            },
            Rule::YoungByEither => {
                let age = memo.age.min(memo.wall);
                Memo {
                    age,
                    wall: age,
                    ..*memo
                }
            }
            _ => *memo,
        };
        memo.look(rule, rules.max_ttl)
    };
    let is_part = |&n: &usize| rule != Rule::WithoutQuorum || looked[n].is_some();
    let nodes: Vec<usize> = (0..looked.len()).filter(is_part).collect();
    let seen: Vec<Seen> = nodes
        .iter()
        .map(|&n| {
            looked[n]
                .as_ref()
                .map_or(Seen::Silent, |memo| Seen::Look(look(memo)))
        })
        .collect();
    let notes = rules.notes(&seen, rules.longest(&seen)).into_iter();
    let judged = |(node, new): (NodeId, quorumlock::algorithm::incarnation::NewNote)| {
        let node = nodes[node.index()];
        let read = looked[node].unwrap_or_default();
        let wall = ticks_before_now(new.note.wall);
        let ages = if new.keeps_times {
            read
        } else {
            Memo {
                wall,
                ..Memo::default()
            }
        };
        let is_long = new.note.max_ttl > duration(SHORT);
        Judged {
            node,
            memo: Memo {
                origin: Some(new.note.origin),
                is_long,
                ..ages
            },
            keeps_times: new.keeps_times,
        }
    };
    notes.map(judged).collect()
}

impl World {
    fn looked(&self, p: usize, scope: Scope) -> Vec<Option<Memo>> {
        let links = &self.programs[p].links[..scope.nodes];
        links
            .iter()
            .map(|link| (link.phase == Phase::Looked).then_some(link.memo))
            .collect()
    }

    fn longest(&self, p: usize, case: Case) -> Duration {
        let rules = rules(case, self.programs[p].is_long);
        let looked = self.looked(p, case.scope);
        let seen = |memo: &Option<Memo>| {
            memo.map_or(Seen::Silent, |memo| {
                Seen::Look(memo.look(case.rule, rules.max_ttl))
            })
        };
        rules.longest(&looked.iter().map(seen).collect::<Vec<_>>())
    }

    /// Which nodes count, as far as nodes were looked at. Only until they are judged.
    pub(crate) fn recount(&mut self, p: usize, case: Case) {
        if self.programs[p].round.is_judged {
            return;
        }
        let longest = self.longest(p, case);
        let rules = rules(case, self.programs[p].is_long);
        for link in &mut self.programs[p].links[..case.scope.nodes] {
            if link.phase == Phase::Looked {
                let look = link.memo.look(case.rule, rules.max_ttl);
                link.counts = counts(rules, &look, longest, case.rule);
                link.counts_early = link.counts
                    && (case.rule == Rule::CountsEarly || rules.counts_early(&look, longest));
            }
        }
    }

    /// Whether a node counts by what it has now, after nodes were judged.
    pub(crate) fn stand(&mut self, p: usize, n: usize, memo: Memo, case: Case) {
        let program = &mut self.programs[p];
        let rules = rules(case, program.is_long);
        let longest = duration(ttl(program.round.is_longest_long || memo.is_long));
        let longest = if case.rule == Rule::OwnTtl {
            rules.max_ttl
        } else {
            longest
        };
        let link = &mut program.links[n];
        link.counts = counts(
            rules,
            &memo.look(case.rule, rules.max_ttl),
            longest,
            case.rule,
        );
        link.memo = Memo::default();
    }

    /// Nodes are judged when each was looked at or did not reply.
    pub(crate) fn judge(&mut self, p: usize, case: Case) {
        let Case { rule, scope } = case;
        let program = &self.programs[p];
        let links = &program.links[..scope.nodes];
        let answered = links
            .iter()
            .filter(|link| link.phase == Phase::Looked)
            .count();
        let is_early = rule == Rule::FirstQuorum && answered > scope.nodes / 2;
        let is_due = is_early || links.iter().all(|link| link.phase != Phase::Unasked);
        if !program.round.is_on || program.round.is_judged || !is_due {
            return;
        }
        let rules = rules(case, program.is_long);
        let is_longest_long = self.longest(p, case) > duration(SHORT);
        let judged = judged(rules, &self.looked(p, scope), rule);
        let founds = judged
            .iter()
            .any(|new| !new.keeps_times && new.memo.origin == Some(Origin::Founder));
        let is_open =
            founds && scope.is_open(open::ALL_LOST) && self.is_overlooked(p, scope, |_| true)
                || !judged.is_empty()
                    && scope.is_open(open::LONGER)
                    && !is_longest_long
                    && self.is_longer_overlooked(p, scope);
        self.is_passed_over |= is_open;
        let program = &mut self.programs[p];
        program.round.is_judged = true;
        program.round.founds = founds;
        program.round.is_longest_long = is_longest_long;
        for link in &mut program.links {
            link.counts_early = false;
            if link.phase == Phase::Looked {
                link.memo = Memo::default();
            }
        }
        for Judged {
            node,
            memo,
            keeps_times,
        } in judged
        {
            let link = &mut program.links[node];
            let is_founder = memo.origin == Some(Origin::Founder);
            if program.is_quiet {
                link.counts |= is_founder;
            } else if !link.is_broken {
                link.counts |= rule == Rule::FoundsUnheard && is_founder;
                let age = if scope.has(Fault::Step) {
                    link.look_age as i8
                } else {
                    0
                };
                let memo = if keeps_times {
                    memo
                } else {
                    Memo {
                        wall: memo.wall + age,
                        ..memo
                    }
                };
                link.phase = Phase::Noting;
                link.memo = memo;
                link.keeps_times = keeps_times;
            }
        }
        if !founds {
            program.round.founds = false;
        }
    }

    /// A note arrives at its node, and is written if it may be.
    pub(crate) fn note(&mut self, p: usize, n: usize, is_heard: bool, case: Case) {
        let Case { rule, scope } = case;
        let link = self.programs[p].links[n];
        let there = self.nodes[n].data.memo;
        let is_as_read = if link.was_absent {
            !there.is_there()
        } else {
            link.is_unchanged
        };
        let is_recent = link.look_age < OLD_LOOK || rule == Rule::LateNotes;
        if is_recent && (is_as_read || rule == Rule::Unconditional) {
            let names = match (link.is_promoted, link.is_renamed) {
                (true, _) => Names::Promoted,
                (false, true) => Names::Renamed,
                (false, false) => Names::Same,
            };
            self.nodes[n].data.memo = match (link.keeps_times, is_as_read) {
                (true, true) => Memo {
                    is_long: link.memo.is_long,
                    ..there
                },
                (true, false) => link.memo,
                (false, _) => {
                    let wall = if scope.has(Fault::Step) {
                        link.memo.wall
                    } else {
                        0
                    };
                    Memo {
                        age: 0,
                        wall,
                        names,
                        ..link.memo
                    }
                }
            };
            self.changed(n);
        }
        if is_heard {
            let now = self.nodes[n].data.memo;
            self.stand(p, n, now, case);
        }
        let link = &mut self.programs[p].links[n];
        link.phase = if is_heard {
            Phase::Looked
        } else {
            Phase::Silent
        };
        link.memo = Memo::default();
    }

    /// Another value is at a node than before.
    pub(crate) fn changed(&mut self, n: usize) {
        for program in &mut self.programs {
            program.links[n].is_unchanged = false;
        }
    }

    /// Whether a program lives, one of those, whose vote was lost and of which no node knows that
    /// answers. It may be the same program, which holds and extends.
    fn is_overlooked(&self, p: usize, scope: Scope, is_one: impl Fn(&Program) -> bool) -> bool {
        let answers = |n: usize| self.programs[p].links[n].phase != Phase::Silent;
        let is_overlooked = |(q, other): (usize, &Program)| {
            let links = &other.links[..scope.nodes];
            let lives = other.life == Life::Holding || other.life == Life::Trying && q != p;
            let knows = |n: usize| answers(n) && links[n].matters();
            lives
                && is_one(other)
                && links.iter().any(|link| link.is_lost)
                && !(0..scope.nodes).any(knows)
        };
        self.programs.iter().enumerate().any(is_overlooked)
    }

    pub(crate) fn is_longer_overlooked(&self, p: usize, scope: Scope) -> bool {
        scope.longer
            && !self.programs[p].is_long
            && self.is_overlooked(p, scope, |other| other.is_long)
    }

    /// No program is at work: one that tries now does not wait without need; where it has to, it
    /// gets the lock when the longest time to live has passed, and all nodes count.
    pub(crate) fn check_idle(&self, case: Case) -> Result<(), Wrong> {
        let scope = case.scope;
        let quorum = scope.nodes / 2 + 1;
        let mut nodes = self.nodes;
        let at_once = tries(&mut nodes[..scope.nodes], case);
        if scope.loses_nothing() && at_once < quorum {
            return Err(Wrong(format!(
                "nothing was lost, and a program waits: {at_once} nodes count"
            )));
        }
        let is_long = nodes.iter().any(|node| node.data.memo.is_long);
        let mut later = at_once;
        // Twice, as a note may be a moment ahead.
        for _ in 0..2 {
            for _ in 0..ttl(is_long) {
                nodes
                    .iter_mut()
                    .for_each(|node| node.data.memo = node.data.memo.ticked());
            }
            later = tries(&mut nodes[..scope.nodes], case);
        }
        if later < scope.nodes {
            return Err(Wrong(format!(
                "max_ttl has passed twice, and {later} nodes count"
            )));
        }
        Ok(())
    }
}

/// Looks at all nodes, notes what is to be noted, and returns how many count.
fn tries(nodes: &mut [Node], case: Case) -> usize {
    let mut world = World::default();
    world.nodes[..nodes.len()].copy_from_slice(nodes);
    let scope = Scope {
        open: open::NONE,
        ..case.scope
    };
    let case = Case { scope, ..case };
    world.programs[0] = Program {
        life: Life::Trying,
        ..Program::default()
    };
    world.programs[0].round.is_on = true;
    for n in 0..nodes.len() {
        let memo = world.nodes[n].data.memo;
        let link = &mut world.programs[0].links[n];
        link.phase = Phase::Looked;
        link.memo = memo;
        link.was_absent = !memo.is_there();
        link.is_unchanged = true;
    }
    world.recount(0, case);
    world.judge(0, case);
    for n in 0..nodes.len() {
        if world.programs[0].links[n].phase == Phase::Noting {
            world.note(0, n, true, case);
        }
    }
    nodes.copy_from_slice(&world.nodes[..nodes.len()]);
    world.programs[0].links[..NODES.min(nodes.len())]
        .iter()
        .filter(|link| link.counts)
        .count()
}
