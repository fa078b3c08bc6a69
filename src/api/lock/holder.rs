//! Which holder has a lock: a question of an operator or of a program that has given up. Taking a
//! lock never asks it.

use super::Lock;
use crate::algorithm::inspection::InspectionVerdict;
use crate::algorithm::label::HolderLabel;
use crate::algorithm::time::{Human, Timestamp};
use crate::events::error::Result;
use std::fmt;
use std::time::Duration;

/// The holder of a lock at one moment: from [`Mutex::holder`](crate::Mutex::holder). It is a copy,
/// and does not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    label: HolderLabel,
    remaining: Option<Duration>,
    nodes: Vec<String>,
    waiting: u64,
}

impl Holder {
    /// The client that holds a lock now, if one does on a quorum of nodes.
    pub(in crate::api) fn of(lock: &Lock) -> Result<Option<Holder>> {
        let client = &lock.client;
        client.check_process()?;
        lock.check()?;
        let result = client
            .engine
            .inspect(lock.key().title(), lock.kind.is_fenced());
        client.report.deliver_queued();
        match result.holding() {
            InspectionVerdict::Held(holding) => {
                let now = client.engine.now();
                let names = &client.names;
                let nodes = holding
                    .nodes
                    .iter()
                    .map(|node| names.node(node).to_string());
                Ok(Some(Holder {
                    label: holding.label,
                    remaining: (holding.end != Timestamp::NEVER).then(|| holding.end.since(now)),
                    nodes: nodes.collect(),
                    waiting: holding.waiting,
                }))
            }
            InspectionVerdict::Free => Ok(None),
            InspectionVerdict::Pending | InspectionVerdict::Unknown => {
                let found = client.unavailability(&result);
                Err(client.unavailable("find the holder of", lock.name(), found))
            }
        }
    }

    /// What the holder's client calls itself: [`Builder::label`](crate::Builder::label). None if it
    /// has no label, or is of another library. The program sets it itself, so it proves nothing.
    pub fn label(&self) -> Option<&str> {
        self.label.as_str()
    }

    /// How long a quorum of nodes has the lock if it is neither released nor extended. None if its
    /// keys have no expiry.
    pub fn remaining(&self) -> Option<Duration> {
        self.remaining
    }

    /// The addresses of the nodes that have it, a quorum at least: of those that had answered when
    /// a quorum was found.
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// How many calls wait for the lock in its queue: the greatest number of a node, of those that
    /// had answered. 0 where it cannot be asked for. A call that was killed counts until its entry
    /// is removed.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }
}

/// One line: the label, the time left, and the nodes.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label().unwrap_or("no label"))?;
        match self.remaining {
            Some(remaining) => write!(f, ", {} left", Human(remaining))?,
            None => f.write_str(", no expiry")?,
        }
        write!(f, ", on {}", self.nodes.join(", "))
    }
}
