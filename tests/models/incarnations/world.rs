//! The world: nodes with a key and one lock, and two programs at most that are at work.
//!
//! It has no more steps than are needed:
//! 1. A tick is one [`MOMENT`](quorumlock::algorithm::incarnation::MOMENT). All times are ages, and
//!    old is old.
//! 2. A program is new in each attempt, and knows nothing. There are as many attempts as there may
//!    be, two at a time.
//! 3. The look at a node and the vote are one step, and the reply is known at once. A note is
//!    another step, at any time after the nodes were judged; one that is lost is one that comes too
//!    late. Nodes are judged, and the lock is won, as soon as can be: to win later would end as
//!    soon.
//! 4. An attempt that is lost, and a lease that ends, leave no lock behind: that would refuse
//!    others only. A note that is under way arrives all the same.
//! 5. Locks end by true time, whatever a node's clock is set to.
//! 6. Nodes and programs have no names: a state and its mirror image are one.

use crate::note::{Memo, ttl};
use crate::rules::Rule;
use crate::scope::Scope;
use crate::search::{Outcome, Won, Wrong, name};
use std::fmt;

pub(crate) const NODES: usize = 3;
pub(crate) const PROGRAMS: usize = 2;
/// A look that is older is not acted on.
pub(crate) const OLD_LOOK: u8 = 2;

/// What is searched, and by which rules programs go.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) rule: Rule,
    pub(crate) scope: Scope,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) data: Data,
    /// An older copy: a snapshot, or what a replica has.
    pub(crate) copy: Option<Data>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Data {
    pub(crate) memo: Memo,
    /// The program that has the lock here, counted from 1; 0 is none.
    pub(crate) lock: u8,
    /// For how long, where leases are extended.
    pub(crate) lock_age: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Life {
    /// There is no such program.
    #[default]
    Free,
    Trying,
    Holding,
    /// It has no lock and gets none, but its notes are under way.
    Over,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Program {
    pub(crate) life: Life,
    pub(crate) is_long: bool,
    /// It writes no notes.
    pub(crate) is_quiet: bool,
    /// Since its lease, or its attempt, began.
    pub(crate) age: u8,
    pub(crate) round: Round,
    pub(crate) links: [Link; NODES],
}

/// An attempt, or an extension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Round {
    pub(crate) is_on: bool,
    pub(crate) age: u8,
    pub(crate) is_judged: bool,
    /// Nodes were judged to be new.
    pub(crate) founds: bool,
    pub(crate) is_won: bool,
    /// The longest time to live that was read is the longer one.
    pub(crate) is_longest_long: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Phase {
    #[default]
    Unasked,
    Silent,
    Looked,
    /// A note is under way.
    Noting,
}

/// What a program knows of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Link {
    pub(crate) phase: Phase,
    /// The node was asked for its vote.
    pub(crate) is_asked: bool,
    pub(crate) is_granted: bool,
    /// By the last look, and the longest time to live that was read.
    pub(crate) counts: bool,
    /// Also as long as not all nodes have replied.
    pub(crate) counts_early: bool,
    /// The vote and the note are there still. No program knows.
    pub(crate) is_kept: bool,
    /// The lease that is extended rests on the vote of before.
    pub(crate) is_base: bool,
    /// A vote that counted is not there any more. No program knows.
    pub(crate) is_lost: bool,
    /// The connection has ended since the look.
    pub(crate) is_broken: bool,
    pub(crate) was_absent: bool,
    /// Nothing was written or deleted since the look.
    pub(crate) is_unchanged: bool,
    /// The note under way keeps the times of the one that is there.
    pub(crate) keeps_times: bool,
    /// By the node's clock.
    pub(crate) look_age: u8,
    /// Names have changed since the look.
    pub(crate) is_renamed: bool,
    pub(crate) is_promoted: bool,
    /// What was read, until nodes are judged; then what is to be written.
    pub(crate) memo: Memo,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) nodes: [Node; NODES],
    pub(crate) programs: [Program; PROGRAMS],
    pub(crate) faults: u8,
    /// One of the cases has come that the design leaves open.
    pub(crate) is_passed_over: bool,
}

impl Program {
    pub(crate) fn ttl(&self) -> u8 {
        ttl(self.is_long) as u8
    }

    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.life, Life::Trying | Life::Holding)
    }

    fn is_complete(&self, nodes: usize) -> bool {
        let is_done = |link: &Link| {
            link.phase == Phase::Silent || link.phase == Phase::Looked && link.is_asked
        };
        self.links[..nodes].iter().all(is_done)
    }
}

impl Link {
    /// A vote that counts in the present round.
    fn is_vote(&self, round: &Round) -> bool {
        self.is_granted && self.counts && (round.is_judged || self.counts_early)
    }

    /// A vote that counts, if it is the last that is wanted, or has counted, and is there.
    pub(crate) fn matters(&self) -> bool {
        self.is_kept && (self.counts || self.is_base)
    }

    /// Whether the node was not looked at, or knows of the time to live of this program.
    fn knows(&self, program: &Program) -> bool {
        match self.phase {
            Phase::Unasked | Phase::Silent => true,
            Phase::Looked if program.round.is_judged => true,
            Phase::Looked => !program.is_long || self.memo.is_long,
            Phase::Noting => !program.is_long,
        }
    }

    /// What is known after a look.
    fn looked(self, memo: Memo) -> Link {
        let phase = Phase::Looked;
        let was_absent = !memo.is_there();
        Link {
            phase,
            was_absent,
            memo,
            is_unchanged: true,
            look_age: 0,
            is_renamed: false,
            is_promoted: false,
            is_broken: false,
            ..self
        }
    }
}

impl World {
    pub(crate) fn look(&mut self, p: usize, n: usize, case: Case) {
        let memo = self.nodes[n].data.memo;
        let program = &mut self.programs[p];
        program.links[n] = program.links[n].looked(memo);
        if program.round.is_judged {
            self.stand(p, n, memo, case);
        }
        self.recount(p, case);
    }

    /// The vote is asked for, and the note behind it.
    pub(crate) fn look_behind_vote(&mut self, p: usize, n: usize, case: Case) {
        use crate::note::Names;
        let mut memo = self.nodes[n].data.memo;
        let link = self.programs[p].links[n];
        if case.rule == Rule::StrictReadsNoNames
            && link.is_promoted
            && memo.names == Names::Promoted
        {
            // The names are those of the first look, and the note is about them.
            memo.names = Names::Same;
        }
        if link.phase == Phase::Noting {
            return;
        }
        if self.programs[p].round.is_judged {
            self.stand(p, n, memo, case);
        } else {
            self.programs[p].links[n] = link.looked(memo);
            self.recount(p, case);
        }
    }

    pub(crate) fn vote(&mut self, p: usize, n: usize) {
        let data = &mut self.nodes[n].data;
        let link = &mut self.programs[p].links[n];
        let own = p as u8 + 1;
        link.is_asked = true;
        link.is_granted = data.lock == 0 || data.lock == own;
        if link.is_granted {
            data.lock = own;
            data.lock_age = 0;
            link.is_kept = true;
        }
    }

    pub(crate) fn tick(&mut self, case: Case) {
        let Case { scope, rule } = case;
        for node in &mut self.nodes[..scope.nodes] {
            for data in std::iter::once(&mut node.data).chain(&mut node.copy) {
                data.memo = data.memo.ticked();
                if scope.extends && data.lock > 0 {
                    data.lock_age += 1;
                    let owner = usize::from(data.lock) - 1;
                    if data.lock_age >= self.programs[owner].ttl() {
                        data.lock = 0;
                        data.lock_age = 0;
                    }
                }
            }
        }
        for p in 0..PROGRAMS {
            let program = &mut self.programs[p];
            if program.life == Life::Free {
                continue;
            }
            program.age += u8::from(program.life != Life::Over);
            program.round.age += u8::from(program.round.is_on && program.life != Life::Over);
            let is_over = program.age >= program.ttl();
            for link in &mut program.links[..scope.nodes] {
                if link.phase == Phase::Noting || link.phase == Phase::Looked && program.round.is_on
                {
                    link.look_age = (link.look_age + 1).min(OLD_LOOK);
                }
                // One that is asked later is looked at anew; so it is as if it did not reply.
                link.is_asked |= link.look_age >= OLD_LOOK && link.phase != Phase::Unasked;
                if link.phase == Phase::Noting {
                    link.memo = link.memo.ticked();
                    if is_over && link.look_age >= OLD_LOOK && rule != Rule::LateNotes {
                        link.phase = Phase::Silent;
                    }
                }
            }
            if is_over {
                self.ends(p);
            }
            self.close(p, scope);
        }
    }

    /// It has no lock any more.
    fn ends(&mut self, p: usize) {
        let program = &mut self.programs[p];
        program.life = Life::Over;
        program.age = program.ttl();
        program.round = Round {
            is_on: true,
            is_judged: true,
            founds: program.round.founds,
            ..Round::default()
        };
        for link in &mut program.links {
            // A note that is under way arrives all the same.
            *link = match link.phase {
                Phase::Noting => Link {
                    is_asked: true,
                    is_granted: false,
                    counts: false,
                    counts_early: false,
                    is_kept: false,
                    is_base: false,
                    is_lost: false,
                    is_broken: false,
                    ..*link
                },
                _ => Link {
                    phase: Phase::Silent,
                    ..Link::default()
                },
            };
        }
        self.unlock(p);
    }

    fn unlock(&mut self, p: usize) {
        for node in &mut self.nodes {
            for data in std::iter::once(&mut node.data).chain(&mut node.copy) {
                if data.lock == p as u8 + 1 {
                    data.lock = 0;
                    data.lock_age = 0;
                }
            }
        }
    }

    /// Whether it has won with what it knows now.
    pub(crate) fn conclude(&mut self, p: usize, case: Case) -> Outcome {
        let Case { scope, rule } = case;
        let program = self.programs[p];
        let votes = program.links[..scope.nodes]
            .iter()
            .filter(|link| link.is_vote(&program.round))
            .count();
        let is_in_time = program.is_alive() && program.round.is_on && program.age < program.ttl();
        let is_stored = rule == Rule::StoresAtVotes
            || program.links[..scope.nodes]
                .iter()
                .all(|link| link.knows(&program));
        if !is_in_time || program.round.is_won || votes < scope.nodes / 2 + 1 || !is_stored {
            return Ok(None);
        }
        if scope.is_open(crate::scope::open::LONGER) && self.is_longer_overlooked(p, scope) {
            self.is_passed_over = true;
            return Ok(None);
        }
        let name = name(p);
        let is_held = |(q, other): (usize, &Program)| q != p && other.life == Life::Holding;
        if self.programs.iter().enumerate().any(is_held) {
            return Err(Wrong(format!("{name} holds, and another holds")));
        }
        let program = &mut self.programs[p];
        program.round.is_won = true;
        let round = program.round;
        for link in &mut program.links {
            // The lease rests on these votes from here on.
            link.is_base = false;
            link.is_lost = link.is_vote(&round) && !link.is_kept;
        }
        program.life = Life::Holding;
        program.age = program.round.age;
        Ok(Some(Won(format!("{name} holds"), false)))
    }

    /// Ends a round in which nothing is under way any more, and with it an attempt that is lost.
    pub(crate) fn close(&mut self, p: usize, scope: Scope) {
        let program = &mut self.programs[p];
        if program.life == Life::Free || !program.round.is_on || !program.is_complete(scope.nodes) {
            return;
        }
        if program.life == Life::Holding {
            let round = program.round;
            let is_won = program.round.is_won;
            for link in &mut program.links {
                let is_part = !is_won || link.is_vote(&round);
                let is_kept = link.matters() && is_part;
                let is_lost = link.is_lost && is_part;
                *link = Link {
                    is_kept,
                    is_lost,
                    counts: is_kept,
                    ..Link::default()
                };
            }
            program.round = Round::default();
        } else {
            *program = Program::default();
            self.unlock(p);
        }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Node { data, .. } in &self.nodes {
            let owner = usize::from(data.lock).checked_sub(1).map_or('-', name);
            write!(f, "[{} {owner}]", data.memo)?;
        }
        let programs = self.programs.iter().enumerate();
        for (p, program) in programs.filter(|(_, program)| program.life != Life::Free) {
            write!(f, " {}:{:?} {}", name(p), program.life, program.age)?;
        }
        Ok(())
    }
}
