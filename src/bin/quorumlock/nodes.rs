//! `nodes`: one line for each node, and an exit code for a probe.
//!
//! A lock of a random name is tried, because only that shows what a node answers to one: a full
//! memory, a user without the right, a disk that has failed.

use crate::bench::random_name;
use crate::exit::{self, Exit, Failure};
use crate::json::{Object, list, maybe, object, quoted};
use crate::protection;
use crate::report;
use crate::settings::{CommonOptions, duration};
use clap::Args;
use quorumlock::{Cause, Mutex, NodeState, NodeStatus, Redlock};
use std::time::Duration;

/// How long a lock of the trial lasts, where its release does not arrive.
const TTL: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// how long to wait for all nodes
    #[arg(long, value_name = "D", value_parser = duration, default_value = "1s")]
    timeout: Duration,
    /// what names of locks begin with, where the user has a right to these alone
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    names: String,
    #[command(flatten)]
    common: CommonOptions,
}

pub(crate) fn nodes(options: Options) -> Result<Exit, Failure> {
    let deployment = options.common.settings.read()?;
    let redlock = &deployment.client;
    let name = random_name(&options.names)?;
    let mutex = redlock.mutex(name).ttl(deployment.trial_ttl(TTL));
    let is_locked = report::during("connecting", || can_lock(redlock, &mutex, options.timeout));
    // Without a majority there are the states all the same.
    let nodes = redlock.nodes()?;
    if options.common.json {
        report::line(list(nodes.iter().map(described)));
    } else {
        nodes.iter().for_each(report::line);
    }
    let voting = nodes
        .iter()
        .filter(|node| node.state() == NodeState::Voting)
        .count();
    let is_denied = |node: &NodeStatus| node.state() == NodeState::Rejected(Cause::NoPermission);
    if nodes.iter().any(is_denied) {
        report::complain(
            "name what the keys begin with that the user has a right to, by --names or --prefix",
        );
    }
    Ok(match voting {
        _ if !is_locked => exit::NO_QUORUM,
        all if all == nodes.len() => exit::OK,
        most if most > nodes.len() / 2 => exit::FINDINGS,
        _ => exit::NO_QUORUM,
    })
}

/// Connects to all nodes, and tries a lock. Whether there is a majority for it.
fn can_lock(redlock: &Redlock, mutex: &Mutex, timeout: Duration) -> bool {
    if redlock.connect(timeout).is_err() {
        return false;
    }
    let is_locked = matches!(mutex.try_lock(), Ok(Some(_)));
    // A reply to the lock that was not waited for is read before that to a question that was asked
    // later.
    redlock.connect(timeout).is_ok() && is_locked
}

fn described(node: &NodeStatus) -> Object {
    let (state, cause) = match node.state() {
        NodeState::Down(cause) => ("down", Some(cause)),
        NodeState::Quarantined { .. } => ("quarantined", None),
        NodeState::Rejected(cause) => ("rejected", Some(cause)),
        NodeState::Voting => ("voting", None),
        _ => ("unknown", None),
    };
    object! {
        "address" = node.address(),
        "state" = state,
        "cause": maybe(cause.map(quoted)),
        _: protection::json(node),
        "state_age_ms": node.state_age().as_millis(),
        "server": maybe(node.server().map(quoted)),
        "run_id": maybe(node.run_id().map(quoted)),
        "eviction": maybe(node.eviction().map(quoted)),
        "durable": node.is_durable(),
        "message" = node,
    }
}
