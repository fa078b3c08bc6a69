//! The world: nodes as the scripts leave them, clients, and messages that arrive at any time or not
//! at all.
//!
//! It has no more steps than are needed:
//! 1. A message that is lost is one that never arrives. So is one that is refused, as a refusal
//!    changes nothing anywhere.
//! 2. A lease ends at any time. Before that, no entry ends that was set or extended for it or for a
//!    later one: a node counts an entry's time from when it runs the command, after the client has
//!    begun to count. An entry of an earlier lease may end at any time.
//! 3. What a client leaves behind when its lease has ended, it has released, or it has given up,
//!    can only refuse others. A world in which that is gone at once has more steps, and no fewer.
//!    With one time to live for all, it stays.
//! 4. A lease is won as soon as it can be. To win later would only be inside for less time.
//! 5. A downgraded writer counts as a reader from when it has asked for that.
//! 6. Nodes have no names, nor have readers among readers, and writers among writers.

use crate::rules::{Entries, Entry, Rule};
use crate::search::{self, After, Won, Wrong};
use std::fmt;

pub(crate) const NODES: usize = 3;
/// Two readers, then two writers.
pub(crate) const CLIENTS: usize = 4;
const FIRST_WRITER: usize = 2;
const QUORUM: usize = NODES / 2 + 1;

/// The leases of a client, in their order.
const ACQUIRED: u8 = 1;
const EXTENDED: u8 = 2;
const DOWNGRADED: u8 = 3;

/// How much there is to search.
#[derive(Clone, Copy)]
pub(crate) struct Scope {
    pub(crate) readers: usize,
    pub(crate) writers: usize,
    /// Each client extends its lease once, and then sets its key on nodes that have not got it.
    pub(crate) extends: bool,
    /// Writers become readers.
    pub(crate) downgrades: bool,
    /// One node loses all it has, once.
    pub(crate) loses: bool,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{NODES} nodes, {} readers, {} writers",
            self.readers, self.writers
        )?;
        for (is_on, name) in [
            (self.extends, "extended"),
            (self.downgrades, "downgraded"),
            (self.loses, "a node lost"),
        ] {
            if is_on {
                write!(f, ", {name}")?;
            }
        }
        Ok(())
    }
}

/// A message that is sent at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Message {
    #[default]
    Unsent,
    UnderWay,
    /// It has arrived, and the answer counts.
    Granted,
    /// It has arrived, and the answer does not count.
    Over,
}

/// What is between a node and each client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Traffic {
    acquire: Message,
    extend: Message,
    downgrade: Message,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Node {
    entries: Entries,
    traffic: [Traffic; CLIENTS],
    /// The clients that must have come to their end before the node votes again: it had lost what
    /// it knew of them.
    awaits: u8,
    /// With one time to live for all: for which client and lease it was set last.
    set_for: Option<(u8, u8)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Phase {
    #[default]
    Unborn,
    Collecting,
    /// Inside this lease.
    Inside(u8),
    Ended,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Client {
    phase: Phase,
    has_extended: bool,
    is_downgraded: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct World {
    nodes: [Node; NODES],
    clients: [Client; CLIENTS],
    has_lost: bool,
}

/// What can happen. The first number is the client, the second the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Begin(usize),
    Acquire(usize, usize),
    Extend(usize),
    Extended(usize, usize),
    Downgrade(usize),
    Downgraded(usize, usize),
    /// It sets its key on a node that has not got it; as a writer, if so.
    Repair(usize, usize, bool),
    Expire(usize, usize),
    ExpireAll(usize),
    End(usize),
    Lose(usize),
}

impl search::World for World {
    type Rule = Rule;
    type Scope = Scope;
    type Step = Step;
    type Key = World;
    const SPECIAL: Option<&'static str> = Some("beside another reader");

    fn steps(&self, rule: Rule, scope: Scope, steps: &mut Vec<Step>) {
        steps.clear();
        for c in scope.clients() {
            let client = self.clients[c];
            match client.phase {
                // Entries of one kind are all alike, so they begin in order.
                Phase::Unborn
                    if c % FIRST_WRITER == 0 || self.clients[c - 1].phase != Phase::Unborn =>
                {
                    steps.push(Step::Begin(c));
                }
                Phase::Unborn | Phase::Ended => continue,
                Phase::Collecting => steps.push(Step::End(c)),
                Phase::Inside(_) => {
                    steps.push(Step::End(c));
                    if scope.extends && !client.has_extended && !client.is_downgraded {
                        steps.push(Step::Extend(c));
                    }
                    if scope.downgrades && self.writes(c) {
                        steps.push(Step::Downgrade(c));
                    }
                }
            }
            for n in 0..NODES {
                self.steps_at(n, c, rule, steps);
            }
        }
        for n in 0..NODES {
            if scope.loses && !self.has_lost && self.nodes[n].entries.iter().any(Option::is_some) {
                steps.push(Step::Lose(n));
            }
            if rule == Rule::SharedTtl
                && let Some((c, lease)) = self.nodes[n].set_for
                && self.may_end(usize::from(c), lease)
            {
                steps.push(Step::ExpireAll(n));
            }
        }
    }

    fn after(mut self, step: Step, rule: Rule, _scope: Scope) -> Result<After<World>, Wrong> {
        let mut won = None;
        match step {
            Step::Begin(c) => {
                self.clients[c].phase = Phase::Collecting;
                self.nodes
                    .iter_mut()
                    .for_each(|node| node.traffic[c].acquire = Message::UnderWay);
            }
            Step::Acquire(c, n) => {
                let counts =
                    self.clients[c].phase == Phase::Collecting && self.nodes[n].votes(rule);
                self.set(
                    n,
                    c,
                    Entry {
                        lease: ACQUIRED,
                        writes: c >= FIRST_WRITER,
                    },
                    rule,
                );
                self.nodes[n].traffic[c].acquire = if counts {
                    Message::Granted
                } else {
                    Message::Over
                };
                if counts && self.granted(|traffic| traffic[c].acquire) >= QUORUM {
                    self.clients[c].phase = Phase::Inside(ACQUIRED);
                    won = Some(self.judge(c)?);
                    self.nodes
                        .iter_mut()
                        .for_each(|node| node.traffic[c].acquire.settle());
                }
            }
            Step::Extend(c) => {
                self.clients[c].has_extended = true;
                self.nodes
                    .iter_mut()
                    .for_each(|node| node.traffic[c].extend = Message::UnderWay);
            }
            Step::Extended(c, n) => {
                let counts = self.clients[c].phase < Phase::Inside(EXTENDED)
                    && !self.clients[c].is_downgraded
                    && self.nodes[n].votes(rule);
                self.extend(n, c, self.asked(step), rule);
                self.nodes[n].traffic[c].extend = if counts {
                    Message::Granted
                } else {
                    Message::Over
                };
                if counts && self.granted(|traffic| traffic[c].extend) >= QUORUM {
                    self.clients[c].phase = Phase::Inside(EXTENDED);
                    self.nodes
                        .iter_mut()
                        .for_each(|node| node.traffic[c].extend.settle());
                }
            }
            Step::Downgrade(c) => {
                self.clients[c].is_downgraded = true;
                for node in &mut self.nodes {
                    node.traffic[c].extend.settle();
                    node.traffic[c].downgrade = Message::UnderWay;
                }
            }
            Step::Downgraded(c, n) => {
                let counts =
                    self.clients[c].phase < Phase::Inside(DOWNGRADED) && self.nodes[n].votes(rule);
                self.extend(n, c, self.asked(step), rule);
                self.nodes[n].traffic[c].downgrade = if counts {
                    Message::Granted
                } else {
                    Message::Over
                };
                if counts && self.granted(|traffic| traffic[c].downgrade) >= QUORUM {
                    self.clients[c].phase = Phase::Inside(DOWNGRADED);
                    self.nodes
                        .iter_mut()
                        .for_each(|node| node.traffic[c].downgrade.settle());
                }
            }
            Step::Repair(c, n, writes) => self.set(
                n,
                c,
                Entry {
                    lease: EXTENDED,
                    writes,
                },
                rule,
            ),
            Step::Expire(c, n) => self.nodes[n].entries[c] = None,
            Step::ExpireAll(n) => {
                (self.nodes[n].entries, self.nodes[n].set_for) = ([None; CLIENTS], None);
            }
            Step::End(c) => {
                self.clients[c] = Client {
                    phase: Phase::Ended,
                    ..Client::default()
                };
                for node in &mut self.nodes {
                    node.entries[c] = None;
                    node.traffic[c] = Traffic::default();
                    node.awaits &= !(1 << c);
                }
            }
            Step::Lose(n) => {
                let lives =
                    |c: &usize| !matches!(self.clients[*c].phase, Phase::Unborn | Phase::Ended);
                let awaits = (0..CLIENTS).filter(lives).map(|c| 1 << c).sum();
                let node = &mut self.nodes[n];
                node.entries = [None; CLIENTS];
                node.set_for = None;
                node.awaits = awaits;
                self.has_lost = true;
            }
        }
        Ok(After { world: self, won })
    }

    fn nameless(self, scope: Scope) -> World {
        let orders = [[0, 1, 2, 3], [1, 0, 2, 3], [0, 1, 3, 2], [1, 0, 3, 2]];
        let is_searched = |c: usize| scope.clients().any(|other| other == c);
        let keeps_those_searched =
            |order: &[usize; CLIENTS]| (0..CLIENTS).all(|c| order[c] == c || is_searched(c));
        let worlds = orders
            .into_iter()
            .filter(keeps_those_searched)
            .map(|order| {
                let mut world = self;
                world.clients = order.map(|c| self.clients[c]);
                for (node, old) in world.nodes.iter_mut().zip(&self.nodes) {
                    node.entries = order.map(|c| old.entries[c]);
                    node.traffic = order.map(|c| old.traffic[c]);
                    node.awaits = (0..CLIENTS)
                        .map(|c| (old.awaits >> order[c] & 1) << c)
                        .sum();
                }
                world.nodes.sort_unstable();
                world
            });
        worlds.min().unwrap_or(self)
    }

    fn describe(&self, step: Step) -> String {
        match step {
            Step::Begin(c) => format!("{} begins", name(c)),
            Step::Acquire(c, n) => format!("{}'s acquire is granted at {n}", name(c)),
            Step::Extend(c) => format!("{} extends", name(c)),
            Step::Extended(c, n) => format!("{}'s extension is done at {n}", name(c)),
            Step::Downgrade(c) => format!("{} becomes a reader", name(c)),
            Step::Downgraded(c, n) => format!("{} is downgraded at {n}", name(c)),
            Step::Repair(c, n, _) => format!("{} sets its key again at {n}", name(c)),
            Step::Expire(c, n) => format!("{}'s entry ends at {n}", name(c)),
            Step::ExpireAll(n) => format!("all entries end at {n}"),
            Step::End(c) => format!("{} is outside: released, ended or given up", name(c)),
            Step::Lose(n) => format!("{n} loses all it has"),
        }
    }

    fn first(_scope: Scope) -> World {
        World::default()
    }

    fn key(&self) -> World {
        *self
    }
}

impl World {
    fn steps_at(&self, n: usize, c: usize, rule: Rule, steps: &mut Vec<Step>) {
        let Node {
            entries, traffic, ..
        } = &self.nodes[n];
        let Client {
            phase,
            is_downgraded,
            ..
        } = self.clients[c];
        let grants = |writes| rule.grants(entries, c, writes, n == NODES - 1);
        let acquires = traffic[c].acquire == Message::UnderWay;
        // A node that has the key for a later lease already takes no earlier one: it has run both
        // in their order.
        if acquires && entries[c].is_none() && grants(c >= FIRST_WRITER) {
            steps.push(Step::Acquire(c, n));
        }
        for (message, step) in [
            (traffic[c].extend, Step::Extended(c, n)),
            (traffic[c].downgrade, Step::Downgraded(c, n)),
        ] {
            let asked = self.asked(step);
            if message == Message::UnderWay && rule.extended(&mut entries.clone(), c, asked) {
                steps.push(step);
            }
        }
        if let Phase::Inside(lease) = phase
            && lease >= EXTENDED
            && entries[c].is_none()
            && !acquires
        {
            for writes in [false, true] {
                let may_have_been_sent = if writes {
                    c >= FIRST_WRITER
                } else {
                    c < FIRST_WRITER || is_downgraded
                };
                if may_have_been_sent && grants(writes) {
                    steps.push(Step::Repair(c, n, writes));
                }
            }
        }
        if entries[c].is_some_and(|entry| rule != Rule::SharedTtl && self.may_end(c, entry.lease)) {
            steps.push(Step::Expire(c, n));
        }
    }

    /// What the message of a step asks for.
    fn asked(&self, step: Step) -> Entry {
        match step {
            Step::Extended(c, _) => Entry {
                lease: EXTENDED,
                writes: c >= FIRST_WRITER,
            },
            _ => Entry {
                lease: DOWNGRADED,
                writes: false,
            },
        }
    }

    fn set(&mut self, n: usize, c: usize, entry: Entry, rule: Rule) {
        let node = &mut self.nodes[n];
        if entry.writes {
            // One that is granted has the key to itself.
            node.entries = [None; CLIENTS];
        }
        node.entries[c] = Some(entry);
        node.note_set(c, entry, rule);
    }

    fn extend(&mut self, n: usize, c: usize, asked: Entry, rule: Rule) {
        rule.extended(&mut self.nodes[n].entries, c, asked);
        self.nodes[n].note_set(c, asked, rule);
    }

    /// Whether the time of an entry that was set for this lease may be over.
    fn may_end(&self, c: usize, of: u8) -> bool {
        match self.clients[c].phase {
            Phase::Inside(lease) => of < lease,
            Phase::Ended => true,
            Phase::Unborn | Phase::Collecting => false,
        }
    }

    fn writes(&self, c: usize) -> bool {
        c >= FIRST_WRITER && !self.clients[c].is_downgraded
    }

    fn granted(&self, message: impl Fn(&[Traffic; CLIENTS]) -> Message) -> usize {
        self.nodes
            .iter()
            .filter(|node| message(&node.traffic) == Message::Granted)
            .count()
    }

    /// A client is inside its lease: which others are?
    fn judge(&self, c: usize) -> Result<Won, Wrong> {
        let is_inside =
            |other: &usize| *other != c && matches!(self.clients[*other].phase, Phase::Inside(_));
        let mut is_shared = false;
        for other in (0..CLIENTS).filter(is_inside) {
            if self.writes(c) || self.writes(other) {
                let verb = |c| if self.writes(c) { "writes" } else { "reads" };
                let one = name(other);
                let two = name(c);
                return Err(Wrong(format!(
                    "{one} {} and {two} {} at once",
                    verb(other),
                    verb(c)
                )));
            }
            is_shared = true;
        }
        Ok(Won(format!("{} is inside", name(c)), is_shared))
    }
}

impl Scope {
    fn clients(self) -> impl Iterator<Item = usize> {
        (0..self.readers).chain(FIRST_WRITER..FIRST_WRITER + self.writers)
    }
}

impl Node {
    fn votes(&self, rule: Rule) -> bool {
        self.awaits == 0 || rule == Rule::NoQuarantine
    }

    fn note_set(&mut self, c: usize, entry: Entry, rule: Rule) {
        if rule == Rule::SharedTtl {
            self.set_for = Some((c as u8, entry.lease));
        }
    }
}

impl Message {
    /// No answer counts any more.
    fn settle(&mut self) {
        if *self == Message::Granted {
            *self = Message::Over;
        }
    }
}

fn name(client: usize) -> &'static str {
    ["R1", "R2", "W1", "W2"][client]
}

/// The entries of the nodes.
impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            let entry = |(c, entry): (usize, &Option<Entry>)| {
                entry.map(|entry| format!("{}{}", if entry.writes { "w:" } else { "r:" }, name(c)))
            };
            let entries: Vec<String> = node.entries.iter().enumerate().filter_map(entry).collect();
            write!(f, "[{}]", entries.join(" "))?;
        }
        Ok(())
    }
}
