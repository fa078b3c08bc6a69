//! The end of a client's work: no lock is granted any more, calls that wait end, and what is held
//! is waited for.

pub(crate) mod state;

use crate::api::client::Client;
use crate::api::shared_lock::SharedLocks;
use crate::events::error::{NodeFault, Result};
use crate::os::sync::is_in_callback;
use std::fmt;
use std::time::Duration;

/// The outcome of [`Redlock::shutdown`](crate::Redlock::shutdown).
///
/// `Display` writes one line for a log, with the name of each lock and the cause at each node.
///
/// ```
/// assert_eq!(quorumlock::ShutdownOutcome::Complete.to_string(), "shutdown complete");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a program that exits before the shutdown is complete may leave locks held"]
#[non_exhaustive]
pub enum ShutdownOutcome {
    /// No guard exists, no call for a lock is in progress, and every node has run the releases.
    Complete,
    /// The time has passed before. The client remains as it is: no lock is granted, guards remain
    /// valid, and releases are still sent.
    #[non_exhaustive]
    Incomplete {
        /// The names of the locks of which a guard exists, in order; for a set, each of its names.
        held: Vec<String>,
        /// How many calls for locks have not returned. Each ends with its attempt.
        calls: usize,
        /// The nodes that have not run all releases, and why.
        unreleased: Vec<NodeFault>,
    },
}

/// Shuts a client down, or continues to wait for the end of that. In a callback, the call does not
/// wait: what it would wait for may wait for the callback.
pub(crate) fn shut_down(
    client: &Client,
    reads: &SharedLocks,
    timeout: Duration,
) -> Result<ShutdownOutcome> {
    client.check_process()?;
    let engine = &client.engine;
    let timeout = if is_in_callback() || client.watchdog_thread.is_current() {
        Duration::ZERO
    } else {
        timeout
    };
    let until = engine.now().after(timeout);
    let state = &client.shutdown;
    state.begin();
    let mut in_use = client.queues.notify_all();
    in_use.extend(client.semaphores.notify_all());
    let is_over = || {
        // The last one only, which is most often in use: a call for each guard that is dropped
        // does not look at all guards.
        while in_use.pop_if(|(_, queue)| !queue.is_in_use()).is_some() {}
        in_use.is_empty() && state.calls() == 0 && state.reads() == 0
    };
    let is_over = state.wait(until, || engine.now(), is_over);
    // Before the releases are waited for: what has ended until here has queued its release.
    let in_queues: usize = in_use.iter().map(|(_, queue)| queue.calls()).sum();
    let calls = in_queues + state.calls();
    let holders = in_use.iter().filter(|(_, queue)| queue.is_held());
    let keys = holders.map(|(key, _)| key.clone()).chain(reads.held());
    let mut held: Vec<String> = keys.map(|key| client.resource(&key).to_owned()).collect();
    held.sort_unstable();
    held.dedup();
    let unsettled = engine.settle(until.since(engine.now()));
    client.report.deliver_queued();
    if is_over && unsettled.is_empty() {
        return Ok(ShutdownOutcome::Complete);
    }
    Ok(ShutdownOutcome::Incomplete {
        held,
        calls,
        unreleased: client.names.faults(&unsettled),
    })
}

impl fmt::Display for ShutdownOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShutdownOutcome::Incomplete {
            held,
            calls,
            unreleased,
        } = self
        else {
            return f.pad("shutdown complete");
        };
        f.write_str("shutdown incomplete")?;
        let mut separator = ':';
        if !held.is_empty() {
            let names: Vec<_> = held.iter().map(|name| format!("{name:?}")).collect();
            write!(f, "{separator} still held: {}", names.join(", "))?;
            separator = ';';
        }
        if *calls > 0 {
            write!(f, "{separator} calls in progress: {calls}")?;
            separator = ';';
        }
        if !unreleased.is_empty() {
            write!(f, "{separator} releases not confirmed")?;
            NodeFault::list(unreleased, f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Cause, Fault, Phase};

    #[test]
    fn an_outcome_is_one_readable_line() {
        assert_eq!(ShutdownOutcome::Complete.to_string(), "shutdown complete");
        let incomplete = |held: &[&str], calls, nodes: &[&str]| {
            let fault = Fault::new(Phase::Reply, Cause::TimedOut);
            ShutdownOutcome::Incomplete {
                held: held.iter().map(|name| (*name).to_owned()).collect(),
                calls,
                unreleased: nodes
                    .iter()
                    .map(|&node| NodeFault::new(node, fault))
                    .collect(),
            }
            .to_string()
        };
        assert_eq!(
            incomplete(&["a", "b"], 1, &["c:3"]),
            "shutdown incomplete: still held: \"a\", \"b\"; calls in progress: 1; releases not \
             confirmed [c:3: no reply in time]"
        );
        assert_eq!(
            incomplete(&[], 0, &["c:3"]),
            "shutdown incomplete: releases not confirmed [c:3: no reply in time]"
        );
        assert_eq!(
            incomplete(&[], 2, &[]),
            "shutdown incomplete: calls in progress: 2"
        );
    }
}
