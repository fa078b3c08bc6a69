//! The world: the queues of three nodes, clients, and what can happen to both.
//!
//! It has no more steps than are needed, and lets more happen than can:
//! 1. There is no lock in it. Leases end and plain clients come at any time, so that a node which is asked is free or
//!    held as it likes. If it is free and the client is first, it may grant.
//! 2. What a client has asked arrives at any time, any number of times, or never, and so does the answer: a message
//!    that a lost connection has left behind may arrive after later ones.
//! 3. Places expire at any time. A node that loses all that it has is one whose places expire together, and a client
//!    that leaves one whose places expire everywhere.
//! 4. A client may win with grants of one round, however old they are. Only the wins of the client that may have come
//!    too early are followed: the earlier one that wins is one that gives up.
//! 5. A third client keeps no rule: it may have any ticket at any node. So it stands for any number of others.
//! 6. What no later step reads is forgotten, and nodes have no names: a state and its mirror image are one.

use crate::rules::{CLIENTS, Queue, Rule};
use crate::search::{self, After, Won, Wrong};
use std::fmt;

pub(crate) const NODES: usize = 3;
const QUORUM: usize = NODES / 2 + 1;
/// Rounds after which one of the clients that wait has the lock, if nothing fails any more.
const ROUNDS: usize = 3;

/// A node, and what the clients know of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Node {
    queue: Queue,
    /// By client that has no ticket yet: whether its answer to the present round was received.
    answered: [bool; CLIENTS],
    /// Whether it has granted to the later one of the pair, in that client's present round.
    has_granted: bool,
    /// Whether it has held the ticket of the earlier one, which was fixed, since the later one began.
    has_held: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Phase {
    #[default]
    Idle,
    /// It has no ticket yet.
    Asking,
    /// It has its ticket.
    Fixed,
    /// It has won, or given up.
    Gone,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Client {
    phase: Phase,
    /// Its ticket, or the greatest that was answered in the present round.
    ticket: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct World {
    nodes: [Node; NODES],
    clients: [Client; CLIENTS],
}

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Property {
    /// The later one of two clients does not win while a quorum of nodes holds the ticket of the earlier one, as it did
    /// when the later one began.
    Order { earlier: usize, later: usize },
    /// From every state, one of those that wait comes to win.
    Progress,
}

/// How much there is to search.
#[derive(Clone, Copy)]
pub(crate) struct Scope {
    pub(crate) property: Property,
    /// Whether there is a third client.
    pub(crate) has_stray: bool,
    /// The greatest ticket that a node gives.
    pub(crate) tickets: u8,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clients = if self.has_stray { "2 clients and any others" } else { "2 clients" };
        write!(f, "{:?}, {NODES} nodes, {clients}, {} tickets", self.property, self.tickets)
    }
}

/// What can happen. The first number is the client, the second the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// With the time by its clock, where that matters.
    Begin(usize, u8),
    /// It is asked and does not grant; whether the answer is received.
    Ask(usize, usize, bool),
    Grant(usize, usize),
    /// What was asked before there was a ticket.
    AskLate(usize, usize),
    Fix(usize),
    EndRound(usize),
    GiveUp(usize),
    Expire(usize, usize),
    /// The third client has this ticket there.
    Stray(usize, u8),
}

/// The client that keeps no rule.
const STRAY: usize = CLIENTS - 1;

impl search::World for World {
    type Rule = Rule;
    type Scope = Scope;
    type Step = Step;
    type Key = u64;
    const SPECIAL: Option<&'static str> = None;

    fn steps(&self, rule: Rule, scope: Scope, steps: &mut Vec<Step>) {
        steps.clear();
        for (n, node) in self.nodes.iter().enumerate().filter(|_| scope.has_stray) {
            let tickets = (0..=scope.tickets).filter(|&ticket| ticket != node.queue.tickets[STRAY]);
            steps.extend(tickets.map(|ticket| Step::Stray(n, ticket)));
        }
        for (c, client) in self.clients.iter().enumerate().take(STRAY) {
            let clocks = if rule == Rule::ClientClocks { 1..=scope.tickets } else { 0..=0 };
            match client.phase {
                Phase::Idle => steps.extend(clocks.map(|clock| Step::Begin(c, clock))),
                Phase::Gone if rule == Rule::NameKept => steps.push(Step::Begin(c, 0)),
                Phase::Gone => {}
                Phase::Asking | Phase::Fixed => {
                    self.steps_of(c, rule, scope, steps);
                    steps.push(Step::GiveUp(c));
                }
            }
            let waits = |n: &usize| self.nodes[*n].queue.tickets[c] > 0;
            steps.extend((0..NODES).filter(waits).map(|n| Step::Expire(c, n)));
        }
    }

    fn after(mut self, step: Step, rule: Rule, scope: Scope) -> Result<After<World>, Wrong> {
        let mut won = None;
        match step {
            Step::Begin(c, clock) => {
                self.clients[c] = Client { phase: Phase::Asking, ticket: clock };
                if let Property::Order { earlier, later } = scope.property
                    && later == c
                {
                    let Client { phase, ticket } = self.clients[earlier];
                    for node in &mut self.nodes {
                        let held = node.queue.tickets[earlier];
                        let is_held = held == ticket || rule == Rule::ArrivalOrder && held > 0;
                        node.has_held = phase == Phase::Fixed && is_held;
                    }
                }
            }
            Step::Ask(c, n, is_received) => {
                let (sent, node) = (self.sent(c, rule), &mut self.nodes[n]);
                let ticket = node.queue.mine(rule, c, sent);
                node.queue.store(c, ticket);
                let client = &mut self.clients[c];
                if is_received && (client.phase == Phase::Asking || rule == Rule::RaisedAgain) {
                    node.answered[c] = client.phase == Phase::Asking;
                    client.ticket = client.ticket.max(ticket);
                }
            }
            Step::AskLate(c, n) => {
                let queue = &mut self.nodes[n].queue;
                queue.store(c, queue.mine(rule, c, 0));
            }
            Step::Grant(c, n) => {
                let node = &mut self.nodes[n];
                node.answered[c] = self.clients[c].phase == Phase::Asking;
                node.has_granted |= scope.property.follows(c);
                let has_won = self.nodes.iter().filter(|node| node.has_granted).count() >= QUORUM;
                won = has_won.then(|| Won(format!("{} wins", name(c)), false));
                if let (true, Property::Order { earlier, .. }) = (has_won, scope.property) {
                    if self.nodes.iter().filter(|node| node.has_held).count() >= QUORUM {
                        let message = format!("{} wins, and began when {} had its place", name(c), name(earlier));
                        return Err(Wrong(message));
                    }
                    self.goes(c, scope);
                }
            }
            Step::Fix(c) => {
                self.clients[c].phase = Phase::Fixed;
                self.end_round(c, scope);
            }
            Step::EndRound(c) => {
                self.end_round(c, scope);
                // A round that too few nodes have answered fixes no ticket.
                let client = &mut self.clients[c];
                if client.phase == Phase::Asking && rule != Rule::ClientClocks {
                    client.ticket = 0;
                }
            }
            Step::GiveUp(c) => self.goes(c, scope),
            // The weaker theorem looks at what nodes hold after each step.
            Step::Expire(c, n) if rule == Rule::SomeQuorum => self.nodes[n].expire(c, Property::Progress),
            Step::Expire(c, n) => self.nodes[n].expire(c, scope.property),
            Step::Stray(n, 0) => self.nodes[n].expire(STRAY, scope.property),
            Step::Stray(n, ticket) => self.nodes[n].queue.store(STRAY, ticket),
        }
        if let (Rule::SomeQuorum, Property::Order { earlier, .. }) = (rule, scope.property) {
            let ticket = self.clients[earlier].ticket;
            let holders = self.nodes.iter().filter(|node| node.queue.tickets[earlier] == ticket).count();
            let is_held = holders >= QUORUM && self.nodes.iter().filter(|node| node.has_held).count() >= QUORUM;
            self.nodes.iter_mut().for_each(|node| node.has_held = is_held);
        }
        Ok(After { world: self, won })
    }

    fn key(&self) -> u64 {
        // The client that keeps no rule has no phase and no answers.
        let mut bits = 0_u64;
        let mut push = |value: u8, width: u32| bits = bits << width | u64::from(value);
        for node in &self.nodes {
            push(node.queue.seen, 3);
            node.queue.tickets.iter().for_each(|&ticket| push(ticket, 3));
            node.answered[..STRAY].iter().for_each(|&is| push(is.into(), 1));
            push(node.has_granted.into(), 1);
            push(node.has_held.into(), 1);
        }
        for client in &self.clients[..STRAY] {
            push(client.phase as u8, 2);
            push(client.ticket, 3);
        }
        bits
    }

    fn nameless(mut self, _scope: Scope) -> World {
        self.nodes.sort_unstable();
        self
    }

    fn first(_scope: Scope) -> World {
        World::default()
    }

    fn check(&self, rule: Rule, scope: Scope) -> Result<(), Wrong> {
        if scope.property == Property::Progress { self.progresses(rule) } else { Ok(()) }
    }

    fn describe(&self, step: Step) -> String {
        step.to_string()
    }
}

impl World {
    fn steps_of(&self, c: usize, rule: Rule, scope: Scope, steps: &mut Vec<Step>) {
        let (is_fixed, sent) = (self.clients[c].phase == Phase::Fixed, self.sent(c, rule));
        for (n, node) in self.nodes.iter().enumerate() {
            if node.queue.mine(rule, c, sent) <= scope.tickets {
                steps.push(Step::Ask(c, n, true));
                if !is_fixed {
                    steps.push(Step::Ask(c, n, false));
                }
            }
            if is_fixed && node.queue.mine(rule, c, 0) <= scope.tickets {
                steps.push(Step::AskLate(c, n));
            }
            let matters = !is_fixed || scope.property.follows(c);
            if matters && node.queue.is_first(rule, c, sent) {
                steps.push(Step::Grant(c, n));
            }
        }
        let answers = self.nodes.iter().filter(|node| node.answered[c]).count();
        if answers >= QUORUM && self.clients[c].ticket > 0 {
            steps.push(Step::Fix(c));
        }
        if answers > 0 || scope.property.follows(c) && self.nodes.iter().any(|node| node.has_granted) {
            steps.push(Step::EndRound(c));
        }
    }

    /// The ticket that a client asks with.
    fn sent(&self, c: usize, rule: Rule) -> u8 {
        let has_ticket = self.clients[c].phase == Phase::Fixed || rule == Rule::ClientClocks;
        if has_ticket { self.clients[c].ticket } else { 0 }
    }

    fn end_round(&mut self, c: usize, scope: Scope) {
        for node in &mut self.nodes {
            node.answered[c] = false;
            node.has_granted &= !scope.property.follows(c);
        }
    }

    fn goes(&mut self, c: usize, scope: Scope) {
        self.end_round(c, scope);
        self.clients[c] = Client { phase: Phase::Gone, ticket: 0 };
        if matches!(scope.property, Property::Order { earlier, later } if earlier == c || later == c) {
            self.nodes.iter_mut().for_each(|node| node.has_held = false);
        }
    }

    /// Progress: from here on nothing fails but the nodes that are down already, those that are gone are forgotten, and
    /// the lock is free. Then a client that waits wins within a few rounds, in whichever order they ask.
    pub(crate) fn progresses(&self, rule: Rule) -> Result<(), Wrong> {
        let is_waiting = |c: &usize| matches!(self.clients[*c].phase, Phase::Asking | Phase::Fixed);
        let waiting: Vec<usize> = (0..CLIENTS).filter(is_waiting).collect();
        let backwards = waiting.iter().copied().rev().collect::<Vec<_>>();
        for up in [0b011_u8, 0b101, 0b110, 0b111] {
            for order in [&waiting, &backwards] {
                if !order.is_empty() && !self.is_won_in_calm(rule, up, order) {
                    let nodes = (0..NODES).filter(|n| up & (1 << n) != 0).collect::<Vec<_>>();
                    return Err(Wrong(format!("with the nodes {nodes:?} no client wins any more")));
                }
            }
        }
        Ok(())
    }

    /// Progress from every state at all, whether it can be reached or not. Gives how many there are.
    pub(crate) fn progress_everywhere(rule: Rule, tickets: u8) -> Result<usize, (World, Wrong)> {
        let mut queues = Vec::new();
        for number in 0..usize::from(tickets + 1).pow(CLIENTS as u32 + 1) {
            let digit = |place: u32| (number / usize::from(tickets + 1).pow(place) % usize::from(tickets + 1)) as u8;
            let queue = Queue { seen: digit(0), tickets: std::array::from_fn(|c| digit(c as u32 + 1)) };
            if queue.tickets.iter().all(|&ticket| ticket <= queue.seen) {
                queues.push(queue);
            }
        }
        let asking = Client { phase: Phase::Asking, ticket: 0 };
        let gone = Client { phase: Phase::Gone, ticket: 0 };
        let fixed = (1..=tickets).map(|ticket| Client { phase: Phase::Fixed, ticket });
        let clients: Vec<Client> = [gone, asking].into_iter().chain(fixed).collect();
        let mut states = 0;
        for number in 0..clients.len().pow(CLIENTS as u32) {
            let clients = std::array::from_fn(|c| clients[number / clients.len().pow(c as u32) % clients.len()]);
            for (a, &first) in queues.iter().enumerate() {
                for (b, &second) in queues.iter().enumerate().take(a + 1) {
                    for &third in &queues[..=b] {
                        let nodes = [first, second, third].map(|queue| Node { queue, ..Node::default() });
                        let world = World { nodes, clients };
                        world.progresses(rule).map_err(|wrong| (world, wrong))?;
                        states += 1;
                    }
                }
            }
        }
        Ok(states)
    }

    fn is_won_in_calm(mut self, rule: Rule, up: u8, order: &[usize]) -> bool {
        for c in (0..CLIENTS).filter(|c| !order.contains(c)) {
            self.nodes.iter_mut().for_each(|node| node.expire(c, Property::Progress));
        }
        for &c in order.iter().cycle().take(order.len() * ROUNDS) {
            let (sent, mut grants, mut greatest) = (self.sent(c, rule), 0, 0);
            for node in self.nodes.iter_mut().enumerate().filter(|(n, _)| up & (1 << n) != 0).map(|(_, node)| node) {
                if node.queue.is_first_and_stored(rule, c, sent) {
                    grants += 1;
                } else {
                    let ticket = node.queue.mine(rule, c, sent);
                    node.queue.store(c, ticket);
                    greatest = greatest.max(ticket);
                }
            }
            if grants >= QUORUM {
                return true;
            }
            let client = &mut self.clients[c];
            if client.phase == Phase::Asking || rule == Rule::RaisedAgain {
                *client = Client { phase: Phase::Fixed, ticket: client.ticket.max(greatest) };
            }
        }
        false
    }
}

impl Node {
    fn expire(&mut self, c: usize, property: Property) {
        self.queue.tickets[c] = 0;
        self.has_held &= !matches!(property, Property::Order { earlier, .. } if earlier == c);
        // The key ends with its last place.
        if self.queue.tickets == [0; CLIENTS] {
            self.queue.seen = 0;
        }
    }
}

impl Property {
    /// Whether it matters when this client wins.
    fn follows(self, c: usize) -> bool {
        matches!(self, Property::Order { later, .. } if later == c)
    }
}

fn name(client: usize) -> char {
    char::from(b'A' + client as u8)
}

/// The nodes' queues: tickets by client.
impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            let place = |(c, ticket): (usize, &u8)| (*ticket > 0).then(|| format!("{}{ticket}", name(c)));
            let places: Vec<String> = node.queue.tickets.iter().enumerate().filter_map(place).collect();
            write!(f, "[{}]", places.join(" "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Step::Begin(c, 0) => write!(f, "{} begins", name(c)),
            Step::Begin(c, clock) => write!(f, "{} begins, and its clock says {clock}", name(c)),
            Step::Ask(c, n, true) => write!(f, "{} asks {n}, and has to wait", name(c)),
            Step::Ask(c, n, false) => write!(f, "{} asks {n}, and the answer is lost", name(c)),
            Step::AskLate(c, n) => write!(f, "what {} asked {n} before arrives", name(c)),
            Step::Grant(c, n) => write!(f, "{} asks {n}, which grants", name(c)),
            Step::Fix(c) => write!(f, "{} fixes its ticket", name(c)),
            Step::EndRound(c) => write!(f, "{} undoes what it was granted", name(c)),
            Step::GiveUp(c) => write!(f, "{} gives up", name(c)),
            Step::Stray(n, ticket) => write!(f, "{} has the ticket {ticket} at {n}", name(STRAY)),
            Step::Expire(c, n) => write!(f, "the place of {} expires at {n}", name(c)),
        }
    }
}
