//! Each event as one line of a log.

use super::variants::Event;
use crate::algorithm::time::Human;
use crate::events::error::NodeFault;
use crate::events::release::ReleaseOutcome;
use std::fmt;

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |is_said, word| if is_said { word } else { "" };
        match self {
            Event::Acquired {
                name,
                waited,
                attempts: 0,
                ..
            } => {
                write!(
                    f,
                    "acquired {name:?} in {}, with another thread",
                    Human(*waited)
                )
            }
            Event::Acquired {
                name,
                waited,
                attempts,
                ..
            } => {
                write!(
                    f,
                    "acquired {name:?} in {}, at attempt {attempts}",
                    Human(*waited)
                )
            }
            Event::AttemptLost {
                name,
                attempt,
                granted,
                refused,
                causes,
            } => {
                write!(
                    f,
                    "attempt {attempt} for {name:?} lost: {granted} granted, {refused} refused"
                )?;
                NodeFault::list(causes, f)
            }
            Event::CredentialsFailed { node, fault } => {
                write!(f, "{node}: credentials not replaced: {}", fault.explained())
            }
            Event::EventsDropped { count } => {
                write!(f, "{count} events dropped: the observer is too slow")
            }
            Event::Extended {
                name,
                ttl,
                is_automatic,
            } => {
                write!(
                    f,
                    "{}extended {name:?} to {}",
                    word(*is_automatic, "automatically "),
                    Human(*ttl)
                )
            }
            Event::ExtensionFailed {
                name,
                is_automatic,
                remaining,
                causes,
            } => {
                let automatic = word(*is_automatic, "automatic ");
                let remaining = Human(*remaining);
                write!(
                    f,
                    "{automatic}extension of {name:?} failed, lock held for another {remaining}"
                )?;
                NodeFault::list(causes, f)
            }
            Event::GaveUp {
                name,
                reason,
                waited,
                attempts,
                causes,
                ..
            } => {
                write!(f, "gave up {name:?} after {}, ", Human(*waited))?;
                match attempts {
                    0 => f.write_str("without an attempt")?,
                    1 => f.write_str("after 1 attempt")?,
                    attempts => write!(f, "after {attempts} attempts")?,
                }
                write!(f, ": {reason}")?;
                NodeFault::list(causes, f)
            }
            Event::KeyWithoutExpiry { name, key, nodes } => {
                write!(
                    f,
                    "lock {name:?} is held by key {key:?}, which has no expiry on {}",
                    nodes.join(", ")
                )
            }
            Event::Lost { name, reason, .. } => write!(f, "lock {name:?} lost: {reason}"),
            Event::NodeDown { node, fault } => write!(f, "{node} is down: {}", fault.explained()),
            Event::NodeMayEvict { node, policy } => write!(f, "{node} may evict locks ({policy})"),
            Event::NodeMismatched { node, mismatch } => write!(f, "{node}: {mismatch}"),
            Event::NodeMoved { node, master } => {
                write!(f, "{node} is led to the master of its shard, {master}")
            }
            Event::NodeNotDurable { node } => {
                let what = "is declared durable but appends nothing to disk (aof_enabled:0)";
                write!(f, "{node} {what}; the declaration is ignored")
            }
            Event::NodeQuarantined { node, remaining } => {
                write!(
                    f,
                    "{node} may have forgotten locks, does not vote for {}",
                    Human(*remaining)
                )
            }
            Event::NodeUp { node } => write!(f, "{node} is up"),
            Event::QuarantineEnded { node } => write!(f, "{node} votes again after its quarantine"),
            Event::ReleaseFailed {
                name,
                is_dropped,
                causes,
                ..
            } => {
                write!(
                    f,
                    "{}release of {name:?} not confirmed",
                    word(*is_dropped, "background ")
                )?;
                NodeFault::list(causes, f)
            }
            Event::ReleaseNotificationsRefused {
                node,
                fault,
                is_publishing,
            } => {
                let effect = match is_publishing {
                    true => "denies PUBLISH, other clients are not notified of releases",
                    false => "denies SUBSCRIBE, this client is not notified of releases",
                };
                write!(f, "{node} {effect}: {}", fault.explained())
            }
            Event::Released {
                name,
                is_dropped,
                outcome,
                ..
            } => {
                let how = word(*is_dropped, " in the background");
                let late = word(
                    *outcome == ReleaseOutcome::Expired,
                    ", after the lock was lost",
                );
                write!(f, "released {name:?}{how}{late}")
            }
            Event::Repaired { name, nodes } => {
                write!(f, "set the key of {name:?} again on {}", nodes.join(", "))
            }
            Event::Waiting { name } => write!(f, "waiting for {name:?}"),
            Event::WaitingForItself { name, remaining } => write!(
                f,
                "waiting for {name:?}, which this thread holds: unless another thread releases it, the wait lasts \
                 until the lease ends, in {} or later",
                Human(*remaining)
            ),
        }
    }
}
