//! What there is in a simulation: clients, nodes, the connections between them, and what will
//! happen when.

use crate::hints::LateHints;
use crate::judge::Judge;
use crate::kernel::Tasks;
use crate::machine::{Client, Node};
use crate::observer_rules::Reports;
use crate::plan::{MILLISECOND, Plan, SECOND};
use crate::random::Random;
use crate::trace::Trace;
use crate::waits::Waits;
use crate::wire::{Connection, Path};
use quorumlock::RestartPolicy;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Something that happens at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A connection attempt comes to an end.
    Connected {
        connection: usize,
    },
    /// All faults end.
    Heal,
    /// A message arrives at the connection of a subscriber.
    Hint {
        number: u64,
    },
    /// A silent connection is tried.
    KeepAlive {
        connection: usize,
    },
    /// The judge looks for what must be gone by now; the last time, the run is over.
    Look {
        is_last: bool,
    },
    /// A stranger publishes.
    Stray,
    Strike(usize),
    Timer {
        task: usize,
        generation: u64,
    },
    /// Bytes arrive at a client.
    ToClient {
        connection: usize,
    },
    /// Bytes arrive at a node.
    ToNode {
        connection: usize,
    },
    /// The end of a fault: a node goes on, comes back, or is itself again.
    Recover {
        node: usize,
        serial: u64,
    },
    /// A client goes on.
    Resume {
        client: usize,
    },
    /// The system closes a connection whose bytes are not acknowledged.
    Unacknowledged {
        connection: usize,
    },
}

/// Which part of a run it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Faults strike.
    Stormy,
    /// All faults have ended.
    Healed,
    /// The judge has looked for the last time.
    Over,
}

/// All of it.
pub(crate) struct World {
    /// True time, in nanoseconds.
    pub(crate) now: u64,
    pub(crate) phase: Phase,
    pub(crate) plan: Plan,
    /// Bytes that a connection takes before it must wait: those of the plan, and plenty when all
    /// faults have ended.
    pub(crate) window: usize,
    pub(crate) random: Random,
    pub(crate) clients: Vec<Client>,
    /// How many polls in a row found nothing and did not sleep.
    pub(crate) idle_polls: u32,
    pub(crate) nodes: Vec<Node>,
    pub(crate) paths: Vec<Path>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) judge: Judge,
    pub(crate) late_hints: LateHints,
    pub(crate) waits: Waits,
    pub(crate) reports: Reports,
    pub(crate) trace: Trace,
    pub(crate) tasks: Tasks,
    pub(crate) events: u64,
    /// What has happened at least once, and how often.
    pub(crate) seen: BTreeMap<&'static str, u64>,
    /// The judge reads a clock: no task loses time by it.
    pub(crate) is_judging: bool,
    /// The system starts no more threads of the library's.
    pub(crate) has_no_threads: bool,
    calendar: BinaryHeap<Reverse<(u64, u64, Event)>>,
    serial: u64,
}

impl World {
    /// Whether a lock must be available: nothing fails, and the nodes of the new deployment count,
    /// which with strict protection takes as long as a lock may last.
    pub(crate) fn may_lock(&self) -> bool {
        let is_strict = self.plan.restart_policy == RestartPolicy::Strict;
        let waits = if is_strict {
            2 * self.judge.longest_ttl * MILLISECOND + SECOND
        } else {
            0
        };
        self.plan.is_calm() && self.now >= waits
    }

    pub(crate) fn new(plan: Plan, trace: Trace) -> World {
        let mut random = Random::new(plan.seed);
        let nodes = (0..plan.nodes.len())
            .map(|index| Node::new(&plan.nodes[index], random.fork(1)))
            .collect();
        let clients = plan.clients.iter().map(Client::new).collect();
        let paths = plan.paths.iter().map(Path::new).collect();
        let mut world = World {
            now: 0,
            phase: Phase::Stormy,
            window: plan.window,
            random,
            clients,
            idle_polls: 0,
            nodes,
            paths,
            connections: Vec::new(),
            judge: Judge::new(&plan),
            late_hints: LateHints::default(),
            waits: Waits::default(),
            reports: Reports::default(),
            trace,
            tasks: Tasks::default(),
            events: 0,
            seen: BTreeMap::new(),
            is_judging: false,
            has_no_threads: false,
            calendar: BinaryHeap::new(),
            serial: 0,
            plan,
        };
        for index in 0..world.plan.faults.len() {
            world.schedule(world.plan.faults[index].at, Event::Strike(index));
        }
        world.publish_stray();
        world.schedule(world.plan.fault_time, Event::Heal);
        world.schedule(world.plan.first_look(), Event::Look { is_last: false });
        world.schedule(world.plan.end(), Event::Look { is_last: true });
        world
    }

    pub(crate) fn schedule(&mut self, at: u64, event: Event) {
        self.serial += 1;
        self.calendar
            .push(Reverse((at.max(self.now), self.serial, event)));
    }

    pub(crate) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    pub(crate) fn has_faults(&self) -> bool {
        self.phase == Phase::Stormy
    }

    /// Moves on to what happens next.
    pub(crate) fn next_event(&mut self) {
        let Some(Reverse((at, _, event))) = self.calendar.pop() else {
            if !self.is_over() || self.is_stuck() {
                self.violate(
                    "deadlock",
                    "threads wait for something that cannot happen".to_owned(),
                );
            }
            return self.finish();
        };
        self.now = self.now.max(at);
        self.events += 1;
        match event {
            Event::Connected { connection } => self.connected(connection),
            Event::Heal => self.heal(),
            Event::Hint { number } => self.deliver_late(number),
            Event::KeepAlive { connection } => self.keep_alive(connection),
            Event::Look { is_last } => {
                self.look_for_leftovers();
                if is_last {
                    self.look_for_unreported();
                    self.look_for_waiters();
                    self.look_for_entries();
                    self.finish();
                }
            }
            Event::Recover { node, serial } => self.recover(node, serial),
            Event::Resume { client } => self.resume(client),
            Event::Stray => self.publish_stray(),
            Event::Strike(index) => {
                let fault = self.plan.faults[index];
                if self.has_faults() {
                    self.strike(&fault);
                }
            }
            Event::Timer { task, generation } => self.timer(task, generation),
            Event::ToClient { connection } => self.arrive_at_client(connection),
            Event::ToNode { connection } => self.arrive_at_node(connection),
            Event::Unacknowledged { connection } => self.give_up_unacknowledged(connection),
        }
    }

    /// Adds a line to the trace.
    pub(crate) fn record(&mut self, text: impl FnOnce() -> String) {
        self.trace.record(self.now, None, text);
    }

    /// The same about an attempt.
    pub(crate) fn record_attempt(&mut self, attempt: usize, text: impl FnOnce() -> String) {
        self.trace.record(self.now, Some(attempt), text);
    }

    /// Something worth counting has happened.
    pub(crate) fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// A rule was broken. The first finding counts; the run ends.
    pub(crate) fn violate(&mut self, rule: &'static str, what: String) {
        let matters = self.plan.only.is_none_or(|only| only == rule);
        if matters && self.judge.finding.is_none() && !self.is_over() {
            self.record(|| format!("VIOLATION of {rule}: {what}"));
            self.judge.finding = Some((rule, what, self.now));
            self.finish();
        }
    }

    /// Ends the run: every client runs to its end in a world of its own.
    pub(crate) fn finish(&mut self) {
        if self.is_over() {
            return;
        }
        self.phase = Phase::Over;
        for client in 0..self.clients.len() {
            self.clients[client].is_gone = true;
            self.rouse(client);
        }
    }
}
