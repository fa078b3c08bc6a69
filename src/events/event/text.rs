//! Each event as one line of a log.

use super::variants::Event::{self, *};
use crate::algorithm::time::Human;
use crate::events::error::NodeFault;
use crate::events::release::ReleaseOutcome;
use std::fmt;

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |is_said, word| if is_said { word } else { "" };
        match self {
            Acquired {
                name,
                waited,
                attempts,
                ..
            } => {
                write!(f, "acquired {name:?} in {}, ", Human(*waited))?;
                match attempts {
                    0 => f.write_str("with another thread"),
                    _ => write!(f, "at attempt {attempts}"),
                }
            }
            AttemptLost {
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
            CredentialsFailed { node, fault } => {
                write!(f, "{node}: credentials not replaced: {}", fault.explained())
            }
            EventsDropped { count } => {
                write!(f, "{count} events dropped: the observer is too slow")
            }
            Extended {
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
            ExtensionFailed {
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
            GaveUp {
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
            KeyWithoutExpiry { name, key, nodes } => {
                write!(
                    f,
                    "lock {name:?} is held by key {key:?}, which has no expiry on {}",
                    nodes.join(", ")
                )
            }
            Lost { name, reason, .. } => write!(f, "lock {name:?} lost: {reason}"),
            NodeDown { node, fault } => write!(f, "{node} is down: {}", fault.explained()),
            NodeMayEvict { node, policy } => write!(f, "{node} may evict locks ({policy})"),
            NodeMismatched { node, mismatch } => write!(f, "{node}: {mismatch}"),
            NodeMoved { node, master } => {
                write!(f, "{node} is led to the master of its shard, {master}")
            }
            NodeNotDurable { node } => {
                let what = "is declared durable but appends nothing to disk (aof_enabled:0)";
                write!(f, "{node} {what}; the declaration is ignored")
            }
            NodeQuarantined { node, remaining } => {
                write!(
                    f,
                    "{node} may have forgotten locks, does not vote for {}",
                    Human(*remaining)
                )
            }
            NodeUp { node } => write!(f, "{node} is up"),
            QuarantineEnded { node } => write!(f, "{node} votes again after its quarantine"),
            ReleaseFailed {
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
            ReleaseNotificationsRefused {
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
            Released {
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
            Repaired { name, nodes } => {
                write!(f, "set the key of {name:?} again on {}", nodes.join(", "))
            }
            Waiting { name } => write!(f, "waiting for {name:?}"),
            WaitingForItself { name, remaining } => write!(
                f,
                "waiting for {name:?}, which this thread holds: unless another thread releases it, the wait lasts \
                 until the lease ends, in {} or later",
                Human(*remaining)
            ),
        }
    }
}
