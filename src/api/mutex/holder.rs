//! Which holder has a lock: a question of an operator or of a program that gave up. Taking a lock never asks it.

use super::Mutex;
use crate::algorithm::inspection::{Holding, InspectionVerdict};
use crate::algorithm::label::HolderLabel;
use crate::algorithm::time::{Human, Timestamp};
use crate::events::error::{Error, ErrorKind, Result};
use std::fmt;
use std::time::Duration;

/// The holder of a lock at one moment: from [`Mutex::holder`]. It is a copy, and does not change.
#[derive(Clone, PartialEq, Eq)]
pub struct Holder {
    label: HolderLabel,
    remaining: Option<Duration>,
    nodes: Vec<String>,
    waiting: u64,
}

impl Holder {
    /// What the holder's client calls itself: [`Builder::label`](crate::Builder::label). None if it has no label, or
    /// is of another library. It is what that program says, and no proof.
    pub fn label(&self) -> Option<&str> {
        self.label.as_str()
    }

    /// How long a quorum of nodes has the lock if it is neither released nor extended. None if its keys have no expiry.
    pub fn remaining(&self) -> Option<Duration> {
        self.remaining
    }

    /// The addresses of the nodes that have it, a quorum at least: of those that had answered when a quorum was found.
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// How many calls wait for the lock in its queue: the greatest number of a node, of those that had answered. 0
    /// where it cannot be asked for. A call that was killed counts until its entry is removed.
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

impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holder")
            .field("label", &self.label())
            .field("remaining", &self.remaining)
            .field("nodes", &self.nodes)
            .field("waiting", &self.waiting)
            .finish()
    }
}

impl Mutex {
    /// Which client holds the lock now, if any does on a quorum of nodes. Asks every node once and changes nothing;
    /// waits until a quorum of answers decides, for the node timeout at most, and once more if connections have to be
    /// made. The lock may have changed hands when the answer is there: it is for messages and operators, and no reason
    /// to believe that the lock is free, or held.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// use quorumlock::{Redlock, host_label};
    ///
    /// let redlock = Redlock::builder().node(node.url()).label(host_label()).build()?;
    /// let mutex = redlock.mutex("reports/2024-02");
    /// assert!(mutex.holder()?.is_none());
    ///
    /// let guard = mutex.lock()?;
    /// if let Some(holder) = mutex.holder()? {
    ///     // host7/4711, 9.99 s left, on 127.0.0.1:6379
    ///     println!("{holder}");
    /// }
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A user with an access control list needs `+get +pttl`, and for a fenced lock `+get +time`; for
    /// [`Holder::waiting`] also `+zcard` and the key of the queue.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when too few nodes answered to tell; its causes say where the
    /// user may not ask ([`Cause::NoPermission`](crate::Cause::NoPermission)). [`Config`](crate::ErrorKind::Config) for
    /// an unusable name; [`Forked`](crate::ErrorKind::Forked).
    pub fn holder(&self) -> Result<Option<Holder>> {
        self.client.check_process()?;
        self.check_name()?;
        if self.is_set() {
            return Err(Error::new(ErrorKind::Config, "a set of resources has no one holder"));
        }
        let result = self.client.engine().inspect(self.key().as_bytes(), self.is_fenced);
        self.client.report().deliver_queued();
        match result.holding() {
            InspectionVerdict::Held(holding) => Ok(Some(self.held(holding))),
            InspectionVerdict::Free => Ok(None),
            InspectionVerdict::Pending | InspectionVerdict::Unknown => {
                let found = self.client.unavailability(&result);
                Err(self.client.unavailable("find the holder of", self.resource(), found))
            }
        }
    }

    fn held(&self, Holding { label, end, nodes, waiting }: Holding) -> Holder {
        let now = self.client.engine().now();
        let remaining = (end != Timestamp::NEVER).then(|| end.since(now));
        let addresses = &self.client.settings().nodes;
        let nodes = nodes.iter().map(|node| addresses[node.index()].clone()).collect();
        Holder { label, remaining, nodes, waiting }
    }
}
