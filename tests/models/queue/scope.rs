//! How much there is to search: nodes, calls, and what may fail.

use crate::node::Kind;
use crate::search::parts;

/// What may fail, or happen without need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The subscription of a call ends, and begins again.
    Cut,
    /// A node ends for good.
    Down,
    /// A call ends without the lock.
    GiveUp,
    /// A program stops. Its connections stay.
    Hang,
    Kill,
    /// A connection ends: a take is lost.
    Lose,
    /// The same, and the take is executed later.
    Late,
    /// A call without an entry has the lock of a node.
    Newcomer,
    /// A call asks without a reason.
    Poll,
    QueueLost,
    /// A reply is lost, or too late.
    Unheard,
}

pub(crate) const ALL: [Fault; 11] = {
    use Fault::*;
    [
        Cut, Down, GiveUp, Hang, Kill, Lose, Late, Newcomer, Poll, QueueLost, Unheard,
    ]
};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) nodes: usize,
    pub(crate) kind: Kind,
    pub(crate) calls: usize,
    /// How many of these.
    pub(crate) faults: u8,
    pub(crate) kinds: &'static [Fault],
    /// The times that a clock may show.
    pub(crate) clocks: u8,
    /// Whether a program has its channels when its call begins.
    pub(crate) subscribed: bool,
    /// Whether timers of 10 ms and 30 ms end only when nothing is under way.
    pub(crate) timely: bool,
}

impl Scope {
    parts!(
        nodes: usize,
        kind: Kind,
        calls: usize,
        faults: u8,
        kinds: &'static [Fault],
        clocks: u8,
        subscribed: bool;
        timely
    );

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.kinds.contains(&fault)
    }
}
