//! What happens to nodes.

use crate::note::{AHEAD, Names, SET_TO};
use crate::scope::{Fault, Scope, open};
use crate::steps::Step;
use crate::world::{Case, Data, Link, OLD_LOOK, PROGRAMS, Phase, World};

/// Something that happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A copy of the data is made.
    Copied,
    Fault(Fault),
    /// The node's clock is set, so that its note has this age.
    SetTo(i8),
}

impl World {
    pub(crate) fn events(&self, scope: Scope, steps: &mut Vec<Step>) {
        if self.faults >= scope.faults {
            return;
        }
        let has_copies = scope.has(Fault::Saved) || scope.has(Fault::Demoted);
        let is_copied = self.nodes.iter().any(|node| node.copy.is_some());
        for (n, node) in self.nodes[..scope.nodes].iter().enumerate() {
            let there = node.data.memo.is_there();
            let mut push = |event| steps.push(Step::Event(n, event));
            if has_copies && !is_copied {
                push(Event::Copied);
            }
            for &fault in scope.kinds {
                let may = match fault {
                    Fault::Deleted | Fault::Renamed => there,
                    Fault::Empty => true,
                    Fault::Flushed => there || node.data.lock > 0,
                    Fault::Saved | Fault::Demoted => node.copy.is_some(),
                    Fault::Hang | Fault::Lost | Fault::Step | Fault::Unheard => false,
                };
                if may {
                    push(Event::Fault(fault));
                }
            }
            if scope.has(Fault::Step) && there {
                SET_TO
                    .iter()
                    .filter(|&&age| age != node.data.memo.age)
                    .for_each(|&age| push(Event::SetTo(age)));
            }
        }
    }

    pub(crate) fn happens(&mut self, n: usize, event: Event, case: Case) {
        let scope = case.scope;
        let fault = match event {
            Event::Copied => {
                self.nodes[n].copy = Some(self.nodes[n].data);
                return;
            }
            Event::Fault(fault) => fault,
            Event::SetTo(age) => {
                self.faults += 1;
                self.set_clock(n, age);
                return;
            }
        };
        self.faults += 1;
        if fault == Fault::Renamed {
            self.rename(n);
            return;
        }
        let is_founding = scope.is_open(open::FOUNDING) && self.is_founding(scope);
        let is_in_process = matches!(fault, Fault::Deleted | Fault::Demoted | Fault::Flushed);
        if is_founding || is_in_process && scope.is_open(open::MOMENT) && self.is_looked_at(n) {
            return self.pass_over();
        }
        let node = &mut self.nodes[n];
        let names = if fault == Fault::Demoted {
            Names::Promoted
        } else {
            Names::Other
        };
        node.data = match fault {
            Fault::Deleted => Data {
                memo: Default::default(),
                ..node.data
            },
            Fault::Saved | Fault::Demoted => node.copy.take().unwrap_or_default(),
            _ => Data::default(),
        };
        if fault != Fault::Deleted
            && node.data.memo.is_there()
            && node.data.memo.names != Names::Other
        {
            node.data.memo.names = names;
        }
        if fault == Fault::Empty {
            node.copy = node.copy.map(of_another_process);
        }
        self.changed(n);
        self.loses(n, fault);
    }

    /// Votes, and what is under way.
    fn loses(&mut self, n: usize, fault: Fault) {
        for p in 0..PROGRAMS {
            let is_judged = self.programs[p].round.is_judged;
            let link = &mut self.programs[p].links[n];
            link.is_lost |= link.matters();
            link.is_kept = false;
            link.is_base = false;
            link.is_promoted |=
                fault == Fault::Demoted && matches!(link.phase, Phase::Looked | Phase::Noting);
            if matches!(fault, Fault::Empty | Fault::Saved) && self.programs[p].round.is_on {
                let link = &mut self.programs[p].links[n];
                match link.phase {
                    // It connects and looks again.
                    Phase::Looked if !is_judged && !link.is_asked => link.phase = Phase::Unasked,
                    Phase::Looked | Phase::Noting => {
                        link.phase = Phase::Looked;
                        link.is_broken = true;
                        link.is_asked = true;
                        if is_judged {
                            link.memo = Default::default();
                        }
                    }
                    Phase::Unasked | Phase::Silent => (),
                }
            }
        }
    }

    /// Another replication id, and no loss.
    fn rename(&mut self, n: usize) {
        let rename = |names: &mut Names| {
            if *names == Names::Same {
                *names = Names::Renamed;
            }
        };
        let node = &mut self.nodes[n];
        rename(&mut node.data.memo.names);
        if let Some(copy) = node.copy.as_mut().filter(|copy| copy.memo.is_there()) {
            rename(&mut copy.memo.names);
        }
        for program in &mut self.programs {
            let link = &mut program.links[n];
            link.is_renamed |= link.phase == Phase::Noting
                || link.phase == Phase::Looked && !program.round.is_judged;
        }
    }

    fn set_clock(&mut self, n: usize, age: i8) {
        let memo = &mut self.nodes[n].data.memo;
        let is_back = age == AHEAD || age < memo.age;
        memo.age = age;
        for program in &mut self.programs {
            let link = &mut program.links[n];
            if matches!(link.phase, Phase::Looked | Phase::Noting) && program.round.is_on {
                link.look_age = if is_back { 0 } else { OLD_LOOK };
            }
        }
    }

    /// Whether a deployment is founded, or was a moment ago.
    fn is_founding(&self, scope: Scope) -> bool {
        let is_under_way = |link: &Link| link.phase == Phase::Noting && link.look_age < OLD_LOOK;
        // A note's time by the wall clock is the time of the look.
        let young = scope.patience + u8::from(scope.has(Fault::Step));
        self.nodes[..scope.nodes]
            .iter()
            .any(|node| node.data.memo.is_young_founder(scope.patience, young))
            || self.programs.iter().any(|program| {
                program.round.founds && program.links[..scope.nodes].iter().any(is_under_way)
            })
    }

    /// Whether a program has looked at a node, and is about to act on it.
    fn is_looked_at(&self, n: usize) -> bool {
        self.programs.iter().any(|program| {
            let link = &program.links[n];
            let is_open = match link.phase {
                Phase::Noting => true,
                Phase::Looked => !link.is_asked || !program.round.is_judged && !link.counts,
                Phase::Unasked | Phase::Silent => false,
            };
            program.round.is_on && is_open && link.look_age < OLD_LOOK && !link.is_broken
        })
    }
}

/// The same data, seen from a process that began after the copy was made.
fn of_another_process(mut data: Data) -> Data {
    if data.memo.is_there() {
        data.memo.names = Names::Other;
    }
    data
}
