//! `nodes`: one line for each node, and an exit code for a probe.

use crate::arguments::{Arguments, unexpected};
use crate::exit::{Exit, Failure};
use crate::json::{self, Object};
use crate::report::{self, Progress};
use crate::settings;
use quorumlock::{NodeState, NodeStatus};
use std::time::Duration;

/// How long to wait for all nodes, unless `--timeout` says otherwise.
const TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) fn nodes(mut arguments: Arguments) -> Result<Exit, Failure> {
    let (mut options, mut timeout, mut is_json) = (settings::Options::default(), TIMEOUT, false);
    while let Some(word) = arguments.next()? {
        match &word {
            _ if options.take(&word, &mut arguments)? => {}
            word if word.is("--timeout") => timeout = arguments.duration("--timeout")?,
            word if word.is("--json") => is_json = true,
            word => return Err(unexpected("nodes", word)),
        }
    }
    let redlock = options.settings()?.builder()?.build()?;
    // Without a majority this is an error, and the states are there all the same.
    drop(Progress::during("connecting", || redlock.connect(timeout)));
    let nodes = redlock.nodes()?;
    if is_json {
        report::line(format_args!("{}", json::list(nodes.iter().map(|node| described(node).to_string()))));
    } else {
        nodes.iter().for_each(|node| report::line(format_args!("{node}")));
    }
    let voting = nodes.iter().filter(|node| node.state() == NodeState::Voting).count();
    Ok(match voting {
        all if all == nodes.len() => Exit::OK,
        most if most > nodes.len() / 2 => Exit::FINDINGS,
        _ => Exit::NO_QUORUM,
    })
}

fn described(node: &NodeStatus) -> Object {
    let state = match node.state() {
        NodeState::Down(_) => "down",
        NodeState::Quarantined { .. } => "quarantined",
        NodeState::Rejected(_) => "rejected",
        NodeState::Voting => "voting",
        _ => "unknown",
    };
    let cause = match node.state() {
        NodeState::Down(cause) | NodeState::Rejected(cause) => Some(cause),
        _ => None,
    };
    let quarantine = match node.state() {
        NodeState::Quarantined { remaining } => Some(remaining.as_millis()),
        _ => None,
    };
    Object::new()
        .text("address", node.address())
        .text("state", state)
        .maybe("cause", cause)
        .maybe_raw("quarantine_ms", quarantine)
        .raw("state_age_ms", node.state_age().as_millis())
        .maybe("server", node.server())
        .maybe("run_id", node.run_id())
        .maybe("eviction", node.eviction())
        .raw("durable", node.is_durable())
        .text("message", node)
}
