//! What a node answers to one that asks, by the rule that is proved and by weaker ones.

pub(crate) const CLIENTS: usize = 3;

/// Which call gets the lock of a node, and with which ticket a call asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Each node goes by the order in which clients came to it.
    ArrivalOrder,
    /// The ticket is the time by the client's own clock.
    ClientClocks,
    /// A node grants to the first of its queue, whichever ticket it has stored for it.
    GrantElsewhere,
    /// A program asks for its next lock by the name that it had for the last one.
    NameKept,
    /// A node grants whenever it is free.
    NoQueue,
    /// The library's.
    Proved,
    /// The library's, with a theorem that asks for too little: that there is a quorum at each moment, not the same one.
    SomeQuorum,
    /// A client whose ticket is fixed raises it when a node answers with a greater one.
    RaisedAgain,
}

/// The queue of one node: the greatest ticket it has seen, and the ticket of each client that waits, or 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Queue {
    pub(crate) seen: u8,
    pub(crate) tickets: [u8; CLIENTS],
}

impl Queue {
    /// The ticket of a client that sends this one, or 0 if it has none yet.
    pub(crate) fn mine(&self, rule: Rule, client: usize, sent: u8) -> u8 {
        let stored = self.tickets[client];
        match sent {
            _ if rule == Rule::ArrivalOrder && stored > 0 => stored,
            0 if stored > 0 => stored,
            0 => self.seen + 1,
            _ if rule == Rule::ArrivalOrder => self.seen + 1,
            _ if rule == Rule::RaisedAgain && stored == 0 => sent.max(self.seen + 1),
            _ => sent,
        }
    }

    /// Whether the node grants, if the lock is free there.
    pub(crate) fn is_first(&self, rule: Rule, client: usize, sent: u8) -> bool {
        let stored = self.tickets[client];
        let others = || (0..CLIENTS).filter(|&other| other != client && self.tickets[other] > 0);
        let is_least = stored > 0 && others().all(|other| (stored, client) < (self.tickets[other], other));
        let is_exact = rule == Rule::GrantElsewhere || stored == self.mine(rule, client, sent);
        rule == Rule::NoQueue || others().next().is_none() || is_exact && is_least
    }

    /// The same, for a round that stores places: a client that has a ticket is granted only where that is stored. The
    /// order is searched with rounds of both kinds, of which the other one is granted more.
    pub(crate) fn is_first_and_stored(&self, rule: Rule, client: usize, sent: u8) -> bool {
        let (stored, mine) = (self.tickets[client], self.mine(rule, client, sent));
        let is_stored = if rule == Rule::GrantElsewhere { stored > 0 } else { stored == mine };
        self.is_first(rule, client, sent) && (sent == 0 || is_stored)
    }

    /// Notes the place of a client that is not granted.
    pub(crate) fn store(&mut self, client: usize, ticket: u8) {
        self.tickets[client] = ticket;
        self.seen = self.seen.max(ticket);
    }
}
