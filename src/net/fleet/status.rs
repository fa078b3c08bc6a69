//! How the nodes look at present, for those who ask.
//!
//! It is what is known already: nothing is sent, connected or waited for.

use super::Fleet;
use crate::net::link::Link;
use crate::net::news::State;
use crate::proto::fault::{Cause, Fault, Phase};
use crate::proto::identity::Identity;
use crate::proto::time::Timestamp;
use std::time::Duration;

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) look: Look,
    /// How long it has looked like this.
    pub(crate) time: Duration,
    pub(crate) is_connected: bool,
    /// What it has told of itself.
    pub(crate) identity: Identity,
    pub(crate) last_fault: Option<Fault>,
}

/// What to think of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Down(Fault),
    /// For so long.
    Quarantined(Duration),
    Rejected(Fault),
    Unknown,
    Voting,
}

impl Fleet {
    /// How the nodes look now, in their order.
    pub(in crate::net) fn status(&self, now: Timestamp) -> Vec<Snapshot> {
        let snapshot = |(node, link): (_, &Link)| {
            let seen = self.presence.of(node);
            let remaining = link.quarantine.remaining(now);
            let look = match (seen.state, seen.fault) {
                (State::Down, Some(fault)) if is_verdict(fault) => Look::Rejected(fault),
                (State::Down, fault) => Look::Down(fault.unwrap_or(link.fault())),
                _ if !remaining.is_zero() => Look::Quarantined(remaining),
                (State::Unknown, _) => Look::Unknown,
                (State::Quarantined | State::Up, _) => Look::Voting,
            };
            Snapshot {
                look,
                time: now.since(seen.since),
                is_connected: link.is_open(),
                identity: link.known.clone(),
                last_fault: seen.fault,
            }
        };
        self.nodes().zip(&self.links).map(snapshot).collect()
    }
}

/// Whether a fault says that the node answers and does not serve as one: nothing that passes by itself.
fn is_verdict(fault: Fault) -> bool {
    match fault.cause {
        Cause::Closed | Cause::Protocol(_) | Cause::System(_) | Cause::TimedOut => false,
        Cause::ReadOnly => true,
        _ => fault.phase == Phase::Handshake,
    }
}
