//! `doctor`: looks at each node as an operator would, takes a lock of a random name, and reports
//! what is wrong.
//!
//! 1. Each node is examined on a thread of its own: [`node`], with what it reports ([`server`]),
//!    its clock ([`clock`]) and rights ([`rights`]).
//! 2. What only shows between nodes: one server behind two names, an address that two names share.
//! 3. The library takes, extends, fences and releases a lock of all nodes: [`trial`].
//! 4. What the deployment guarantees as it is: [`guarantee`].
//! 5. The verdict, and its exit code: [`findings`].

mod clock;
mod findings;
mod guarantee;
mod node;
mod plan;
mod rights;
mod server;
mod trial;

use crate::bench::random_name;
use crate::deployment::{Deployment, at_once};
use crate::exit::{self, Exit, Failure};
use crate::json::{list, object};
use crate::report::{self, write_line};
use crate::settings::{CommonOptions, duration};
use clap::Args;
use findings::Level::{Fault, Warning};
use node::Examination;
use plan::{Plan, user};
use quorumlock::RestartPolicy;
use quorumlock::event::Mismatch;
use std::thread;
use std::time::{Duration, Instant};
use trial::Trial;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// what names of locks begin with, where the user has a right to these alone
    #[arg(long, value_name = "TEXT")]
    names: Option<String>,
    /// look at the clocks again after D, for their rate
    #[arg(long, value_name = "D", value_parser = duration)]
    watch: Option<Duration>,
    #[command(flatten)]
    common: CommonOptions,
}

pub(crate) fn doctor(options: Options) -> Result<Exit, Failure> {
    let deployment = options.common.settings.read()?;
    let settings = deployment.settings();
    let begin = options
        .names
        .or_else(|| {
            if settings.prefix.is_empty() {
                own_names(&deployment)
            } else {
                None
            }
        })
        .unwrap_or_default();
    let plan = Plan {
        name: random_name(&begin)?,
        settings,
        begin,
    };
    let (mut nodes, trial) = report::during("examining the nodes", || {
        let examine = |(index, endpoint)| node::examine(deployment.open(index), endpoint, &plan);
        let nodes = at_once(deployment.endpoints.iter().enumerate(), examine);
        (nodes, trial::run(&deployment, &plan.name))
    });
    let trial = trial?;
    nodes
        .iter_mut()
        .zip(&trial.nodes)
        .for_each(|(node, status)| node.observe_locks(status));
    for (address, mismatch) in &trial.mismatches {
        nodes
            .iter_mut()
            .filter(|node| node.address == *address)
            .for_each(|node| node.observe_mismatch(*mismatch));
    }
    compare(&mut nodes);
    if let Some(time) = options.watch {
        report::during("watching the clocks", || {
            observe_clocks(&deployment, &mut nodes, time)
        });
    }
    let voters = nodes.iter().filter(|node| node.can_vote()).count();
    let has_findings = nodes.iter().any(Examination::has_warnings);
    let exit = match &trial.error {
        Some(_) => exit::NO_QUORUM,
        None if voters < deployment.quorum() => exit::NO_QUORUM,
        None if has_findings || trial.findings.worst().is_some() => exit::FINDINGS,
        None => exit::OK,
    };
    let verdict = verdict(exit, voters, nodes.len());
    let meaning = guarantee::meaning(settings.restart_policy);
    let guarantee = guarantee(&nodes, &trial, settings.restart_policy);
    if options.common.json {
        let members = nodes
            .iter()
            .zip(&trial.nodes)
            .map(|(node, status)| node.json(status, &plan));
        let result = object! {
            "verdict" = verdict,
            "exit": exit,
            "restart_policy" = meaning,
            "guarantee" = guarantee,
            "nodes": list(members),
            "trial": trial.json(),
        };
        report::line(result);
    } else {
        nodes
            .iter()
            .zip(&trial.nodes)
            .for_each(|(node, status)| node.show(status, &plan));
        trial.show();
        write_line!("restart policy {meaning}");
        write_line!("guarantee: {guarantee}");
        report::line(verdict);
    }
    Ok(exit)
}

/// What names of locks begin with, by the access control list of the node that shows the narrowest
/// one.
fn own_names(deployment: &Deployment) -> Option<String> {
    let nodes = deployment.endpoints.iter().enumerate();
    let asked = at_once(nodes, |(index, endpoint)| {
        rights::own_names(&mut deployment.open(index)?, user(endpoint))
    });
    asked
        .into_iter()
        .filter_map(|names| names.ok().flatten())
        .max_by_key(String::len)
}

fn verdict(exit: Exit, voters: usize, nodes: usize) -> String {
    let quorum = nodes / 2 + 1;
    match exit {
        exit::OK => format!("fine: all {nodes} nodes vote, and locks work"),
        exit::FINDINGS => {
            format!("locks work: {voters} of {nodes} nodes vote, {quorum} must; see the warnings")
        }
        _ => format!("cannot lock: {voters} of {nodes} nodes vote, {quorum} must"),
    }
}

/// What the deployment guarantees as it is.
fn guarantee(nodes: &[Examination], trial: &Trial, policy: RestartPolicy) -> String {
    let of_each = nodes.iter().zip(&trial.nodes);
    let nodes: Vec<_> = of_each
        .map(|(node, status)| guarantee::Node::of(status, node.server.as_ref()))
        .collect();
    let is_disputed = trial
        .mismatches
        .iter()
        .any(|(_, mismatch)| matches!(mismatch, Mismatch::Nodes { .. }));
    guarantee::guarantee(policy, &nodes, is_disputed)
}

/// What shows only when nodes are compared.
fn compare(nodes: &mut [Examination]) {
    for index in 1..nodes.len() {
        let (earlier, later) = nodes.split_at_mut(index);
        let node = &mut later[0];
        let same_server =
            |other: &&Examination| node.run_id().is_some() && other.run_id() == node.run_id();
        if let Some(other) = earlier.iter().find(same_server) {
            let what = format!("the same server as {}: it has one vote", other.address);
            node.findings
                .add(Fault, "duplicate", what, "name another server");
        }
        let shares = |other: &&Examination| {
            other
                .sockets
                .iter()
                .any(|socket| node.sockets.contains(socket))
        };
        if let Some(other) = earlier.iter().find(shares) {
            let what = format!("has an address that {} has too", other.address);
            node.findings.add(
                Warning,
                "shared-address",
                what,
                "give each node a name of its own",
            );
        }
    }
}

/// Looks at the clocks once more after some time, for the rate at which they differ.
fn observe_clocks(deployment: &Deployment, nodes: &mut [Examination], time: Duration) {
    let begun = Instant::now();
    thread::sleep(time);
    let offsets = deployment.ask(clock::offset);
    let passed = begun.elapsed();
    for (node, later) in nodes.iter_mut().zip(offsets) {
        let (Some(earlier), Ok(Some(later))) = (node.clock, later) else {
            continue;
        };
        node.observe_rate(
            earlier.rate(later, passed),
            deployment.settings().drift_factor,
        );
    }
}
