//! What an [`Observer`](crate::Observer) receives: [`Event`], one variant and one type for each kind.
//!
//! `Display` of each gives one line for a log, in plain technical English; the [page of
//! messages](crate::docs::messages) shows every line. The methods give the parts, for metrics. An event owns its
//! content, so that it can be cloned and kept. None holds an owner token, a password, a full URL or text from a server.
//! Variants and parts may be added.
//!
//! ```
//! use quorumlock::event::Event;
//! use quorumlock::{Observer, Redlock};
//! use std::sync::{Arc, Mutex};
//!
//! #[derive(Default)]
//! struct Log(Mutex<Vec<String>>);
//!
//! impl Observer for Log {
//!     fn event(&self, event: &Event) {
//!         self.0.lock().unwrap().push(event.to_string());
//!     }
//! }
//!
//! # let node = quorumlock::embedded::EmbeddedNode::start()?;
//! let log = Arc::new(Log::default());
//! let redlock = Redlock::builder().node(node.url()).observer(Arc::clone(&log)).build()?;
//! let _ = redlock.mutex("orders/42").lock()?.unlock()?;
//!
//! let lines = log.0.lock().unwrap();
//! assert!(lines.iter().any(|line| line.starts_with("acquired \"orders/42\" in ")));
//! assert!(lines.contains(&"released \"orders/42\"".to_owned()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod call;
mod lock;
mod name;
mod node;
mod release;
mod severity;

#[cfg(test)]
pub(crate) mod samples;

pub use crate::algorithm::incarnation::mismatch::Mismatch;
pub use call::{GaveUp, GaveUpReason, Waiting, WaitingForItself};
pub use lock::{Acquired, AttemptLost, Extended, ExtensionFailed, KeyWithoutExpiry, LossReason, Lost, Repaired};
pub(crate) use name::ResourceName;
pub use node::{
    NodeDown, NodeMayEvict, NodeMismatched, NodeNotDurable, NodeQuarantined, NodeUp, QuarantineEnded,
    ReleaseNotificationsRefused,
};
pub use release::{ReleaseFailed, Released};
pub use severity::Severity;

use crate::events::release::ReleaseOutcome;
use std::fmt;

/// One event. `Display` gives one line for a log.
///
/// Each variant holds the type of its own name, which says when the event is reported.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A lock was acquired.
    Acquired(Acquired),
    /// An attempt did not get a quorum.
    AttemptLost(AttemptLost),
    /// Events were dropped.
    EventsDropped(EventsDropped),
    /// A lock was extended.
    Extended(Extended),
    /// Too few nodes answered an extension.
    ExtensionFailed(ExtensionFailed),
    /// A call ended without the lock.
    GaveUp(GaveUp),
    /// A wait failed at a key without expiry.
    KeyWithoutExpiry(KeyWithoutExpiry),
    /// A lock was lost.
    Lost(Lost),
    /// A node stopped answering.
    NodeDown(NodeDown),
    /// A node may evict locks.
    NodeMayEvict(NodeMayEvict),
    /// What a node remembers does not fit this client.
    NodeMismatched(NodeMismatched),
    /// A node is declared durable and is not.
    NodeNotDurable(NodeNotDurable),
    /// The votes of a node do not count.
    NodeQuarantined(NodeQuarantined),
    /// A node votes.
    NodeUp(NodeUp),
    /// The quarantine of a node has ended.
    QuarantineEnded(QuarantineEnded),
    /// Too few nodes answered a release.
    ReleaseFailed(ReleaseFailed),
    /// A node denies `PUBLISH` or `SUBSCRIBE`.
    ReleaseNotificationsRefused(ReleaseNotificationsRefused),
    /// A lock was released.
    Released(Released),
    /// The key of a held lock was set again.
    Repaired(Repaired),
    /// A call begins to wait.
    Waiting(Waiting),
    /// A call begins to wait for a lock that its own thread has.
    WaitingForItself(WaitingForItself),
}

impl Event {
    /// The name of the resource; none for an event of nodes.
    pub fn resource(&self) -> Option<&str> {
        Some(match self {
            Event::Acquired(event) => event.resource(),
            Event::AttemptLost(event) => event.resource(),
            Event::Extended(event) => event.resource(),
            Event::ExtensionFailed(event) => event.resource(),
            Event::GaveUp(event) => event.resource(),
            Event::KeyWithoutExpiry(event) => event.resource(),
            Event::Lost(event) => event.resource(),
            Event::ReleaseFailed(event) => event.resource(),
            Event::Released(event) => event.resource(),
            Event::Repaired(event) => event.resource(),
            Event::Waiting(event) => event.resource(),
            Event::WaitingForItself(event) => event.resource(),
            Event::EventsDropped(_) | Event::NodeDown(_) | Event::NodeMayEvict(_) | Event::NodeNotDurable(_) => {
                return None;
            }
            Event::NodeMismatched(_) | Event::NodeQuarantined(_) | Event::NodeUp(_) => return None,
            Event::QuarantineEnded(_) | Event::ReleaseNotificationsRefused(_) => return None,
        })
    }

    /// How serious the event is.
    pub fn severity(&self) -> Severity {
        match self {
            Event::Acquired(_) | Event::AttemptLost(_) | Event::Extended(_) | Event::Waiting(_) => Severity::Debug,
            Event::GaveUp(event) => match event.reason {
                GaveUpReason::Cancelled | GaveUpReason::Held => Severity::Debug,
                GaveUpReason::TimedOut => Severity::Info,
                GaveUpReason::Failed | GaveUpReason::TooLate | GaveUpReason::Unavailable => Severity::Error,
            },
            Event::Released(event) => match event.outcome {
                ReleaseOutcome::Expired => Severity::Warning,
                ReleaseOutcome::Released | ReleaseOutcome::StillHeld(_) => Severity::Debug,
            },
            Event::NodeUp(_) | Event::QuarantineEnded(_) | Event::Repaired(_) => Severity::Info,
            Event::EventsDropped(_) | Event::ExtensionFailed(_) | Event::ReleaseFailed(_) => Severity::Warning,
            Event::NodeDown(_) | Event::NodeMayEvict(_) | Event::NodeNotDurable(_) => Severity::Warning,
            Event::NodeMismatched(_) | Event::NodeQuarantined(_) => Severity::Warning,
            Event::ReleaseNotificationsRefused(_) | Event::WaitingForItself(_) => Severity::Warning,
            Event::KeyWithoutExpiry(_) | Event::Lost(_) => Severity::Error,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Acquired(event) => event.fmt(f),
            Event::AttemptLost(event) => event.fmt(f),
            Event::EventsDropped(event) => event.fmt(f),
            Event::Extended(event) => event.fmt(f),
            Event::ExtensionFailed(event) => event.fmt(f),
            Event::GaveUp(event) => event.fmt(f),
            Event::KeyWithoutExpiry(event) => event.fmt(f),
            Event::Lost(event) => event.fmt(f),
            Event::NodeDown(event) => event.fmt(f),
            Event::NodeMayEvict(event) => event.fmt(f),
            Event::NodeMismatched(event) => event.fmt(f),
            Event::NodeNotDurable(event) => event.fmt(f),
            Event::NodeQuarantined(event) => event.fmt(f),
            Event::NodeUp(event) => event.fmt(f),
            Event::QuarantineEnded(event) => event.fmt(f),
            Event::ReleaseFailed(event) => event.fmt(f),
            Event::ReleaseNotificationsRefused(event) => event.fmt(f),
            Event::Released(event) => event.fmt(f),
            Event::Repaired(event) => event.fmt(f),
            Event::Waiting(event) => event.fmt(f),
            Event::WaitingForItself(event) => event.fmt(f),
        }
    }
}

/// Events were dropped, because they happen faster than the observers return. Events of nodes are never dropped while
/// the client exists.
///
/// Delivered before the events that still wait in the queue.
#[derive(Clone, Debug)]
pub struct EventsDropped {
    pub(crate) count: u64,
}

impl EventsDropped {
    /// How many events were dropped since the last event of this kind.
    pub fn count(&self) -> u64 {
        self.count
    }
}

impl fmt::Display for EventsDropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events dropped: the observer is too slow", self.count)
    }
}
