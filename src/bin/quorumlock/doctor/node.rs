//! One node, examined: how far it can be reached, what it is, and what of it endangers locks.

use super::clock::{self, Offset, Rate};
use super::findings::Findings;
use super::findings::Level::{Fault, Note, Warning};
use super::plan::{Plan, user};
use super::rights::{self, Purpose};
use super::server::Server;
use crate::connection::{Connection, Step, Trouble};
use crate::json::{Object, list, maybe, object, quoted};
use crate::protection;
use crate::report::write_line;
use crate::times::Times;
use quorumlock::algorithm::time::Human;
use quorumlock::event::Mismatch;
use quorumlock::protocol::endpoint::{Address, Endpoint};
use quorumlock::{Cause, NodeState, NodeStatus};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// How many round trips are measured, unless the node is so far away that they take longer than
/// this.
const ROUND_TRIPS: usize = 100;
const LONGEST_MEASUREMENT: Duration = Duration::from_secs(1);

/// What was found of one node.
#[derive(Default)]
pub(super) struct Examination {
    pub(super) address: String,
    pub(super) findings: Findings,
    /// Where its name leads to.
    pub(super) sockets: Vec<SocketAddr>,
    /// None of one that was not asked.
    pub(super) server: Option<Server>,
    pub(super) clock: Option<Offset>,
    rate: Option<Rate>,
    /// Round trips.
    times: Times,
}

/// How many replies to what locks asked the node were too late.
fn timeouts(status: &NodeStatus) -> u64 {
    let late = status
        .faults()
        .into_iter()
        .filter(|(fault, _)| fault.cause() == Cause::TimedOut);
    late.map(|(_, count)| count).sum()
}

/// Examines a node by a connection to it. Whatever goes wrong is a finding.
pub(super) fn examine(
    opened: Result<Connection, Trouble>,
    endpoint: &Endpoint,
    plan: &Plan<'_>,
) -> Examination {
    let mut node = Examination {
        address: endpoint.to_string(),
        sockets: sockets(endpoint),
        ..Examination::default()
    };
    let examined = opened.and_then(|mut connection| node.look(&mut connection, endpoint, plan));
    if let Err(trouble) = examined {
        let (kind, remedy) = unreachable(trouble.step);
        node.findings.add(Fault, kind, trouble.to_string(), remedy);
    }
    node
}

/// Where the name of the node leads to; nothing for a Unix domain socket, or if it is unknown.
fn sockets(endpoint: &Endpoint) -> Vec<SocketAddr> {
    match endpoint.address() {
        Address::Tcp(host, port) => (host.as_str(), *port)
            .to_socket_addrs()
            .map_or_else(|_| Vec::new(), Iterator::collect),
        Address::Unix(_) => Vec::new(),
    }
}

/// What is wrong with a node that could not be asked, and what to do.
fn unreachable(step: Step) -> (&'static str, &'static str) {
    match step {
        Step::Resolve => ("resolve", "check the host name"),
        Step::Connect => (
            "connect",
            "check that the server runs, its address and the firewall",
        ),
        Step::Tls => (
            "tls",
            "check the certificates, --cacert, --cert, --key and --sni, and that the port is one of TLS",
        ),
        Step::LogIn => ("login", "check user and password in the URL"),
        Step::Ask => (
            "no-answer",
            "check that the server is not stopped or overloaded; for a port of TLS write rediss://",
        ),
    }
}

impl Examination {
    pub(super) fn can_vote(&self) -> bool {
        self.findings.worst() < Some(Fault)
    }

    /// Whether something endangers locks. What cannot be verified does not.
    pub(super) fn has_warnings(&self) -> bool {
        self.findings.worst() > Some(Note)
    }

    /// Looks at the node, as far as it replies.
    fn look(
        &mut self,
        connection: &mut Connection,
        endpoint: &Endpoint,
        plan: &Plan<'_>,
    ) -> Result<(), Trouble> {
        let server = Server::read(connection, user(endpoint))?;
        server.examine(endpoint, plan, &mut self.findings);
        self.server = Some(server);
        self.clock = clock::offset(connection)?;
        if let Some(offset) = self.clock.filter(|offset| offset.is_off()) {
            let what = format!(
                "its clock differs from that of this machine by {}",
                offset.shown()
            );
            let remedy = "let NTP set the clocks, and slew them";
            self.findings.add(Warning, "clock", what, remedy);
        }
        let key = format!("{}{}", plan.settings.prefix, plan.name);
        let ask = || connection.ask(&[b"PTTL", key.as_bytes()]).map(drop);
        self.times.measure(ROUND_TRIPS, LONGEST_MEASUREMENT, ask)?;
        if self.can_vote() {
            self.look_at_rights(connection, endpoint, plan)?;
        }
        Ok(())
    }

    fn look_at_rights(
        &mut self,
        connection: &mut Connection,
        endpoint: &Endpoint,
        plan: &Plan<'_>,
    ) -> Result<(), Trouble> {
        let missing = rights::missing(connection, plan)?;
        if missing.are_keys_unknown {
            let what = format!(
                "the user has no right to keys such as {:?}: its rights are not tried",
                plan.name
            );
            let remedy = "name what its keys begin with, by --names or --prefix";
            self.findings.add(Fault, "names", what, remedy);
            return Ok(());
        }
        for (purpose, rules) in missing.rules {
            let rules = rules.into_iter().collect::<Vec<_>>().join(" ");
            let remedy = format!("ACL SETUSER {} {rules}", user(endpoint));
            let (level, what) = if missing.is_locking_denied && purpose == Purpose::Locking {
                (Fault, "the user cannot lock here".to_owned())
            } else {
                (Warning, purpose.lack())
            };
            self.findings.add(level, "acl", what, remedy);
        }
        Ok(())
    }

    /// Takes note of how fast the clock runs.
    pub(super) fn observe_rate(&mut self, rate: Rate, drift_factor: f64) {
        self.rate = Some(rate);
        if rate.part.abs() - rate.error > drift_factor {
            let percent = rate.part * 100.0;
            let what = format!(
                "its clock runs {percent:+.2} % faster; drift_factor allows {:.2} %",
                drift_factor * 100.0
            );
            self.findings.add(
                Warning,
                "clock-rate",
                what,
                "repair the clock, or raise drift_factor",
            );
        }
    }

    /// Takes note of what the trial's client knows of the node.
    pub(super) fn observe_locks(&mut self, status: &NodeStatus) {
        if let NodeState::Quarantined { remaining } = status.state() {
            let what = format!(
                "its votes do not count for another {}: {}",
                Human(remaining),
                status.note()
            );
            self.findings.add(Fault, "quarantine", what, "wait");
        }
    }

    /// Takes note of what programs that use the node do not agree on. Rights are tried one by one.
    pub(super) fn observe_mismatch(&mut self, mismatch: Mismatch) {
        let section = match mismatch {
            Mismatch::MaxTtl { .. } => "raise or lower max_ttl",
            Mismatch::Nodes { .. } => "go from three nodes to five",
            _ => return,
        };
        let remedy = format!("set the same in all programs, as the manual says ({section})");
        self.findings
            .add(Warning, mismatch.kind(), mismatch.to_string(), &remedy);
    }

    pub(super) fn run_id(&self) -> Option<&String> {
        self.server.as_ref()?.run_id()
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        self.server.as_ref().map(Server::facts).unwrap_or_default()
    }

    pub(super) fn show(&self, status: &NodeStatus, plan: &Plan<'_>) {
        let word = match () {
            () if !self.can_vote() => "does not vote",
            () if self.has_warnings() => "votes, with warnings",
            () => "fine",
        };
        write_line!("{}: {word}", self.address);
        if let [
            (_, server),
            (_, role),
            (_, run_id),
            (_, uptime),
            (_, persistence),
        ] = self.facts().as_slice()
        {
            write_line!("  {server}, {role}, run id {run_id}, up for {uptime}, {persistence}");
        }
        if let Some(reason) = protection::reason(status, plan.settings.restart_policy) {
            write_line!("  {reason}");
        }
        if let Some(offset) = self.clock {
            let rate = self.rate.map(|Rate { part, error }| {
                format!(", rate {:+.4} % ± {:.4} %", part * 100.0, error * 100.0)
            });
            write_line!("  clock {}{}", offset.shown(), rate.unwrap_or_default());
        }
        if self.times.count() > 0 {
            write_line!(
                "  answers in {}; node_timeout of {} would cut {} of {}",
                self.times,
                Human(plan.settings.node_timeout),
                self.times.longer_than(plan.settings.node_timeout),
                self.times.count()
            );
        }
        let latency = status.latency();
        if latency.count > 0 {
            write_line!(
                "  replies to locks in {} (median), {} (p99) of {}; {} came too late",
                Human(latency.p50),
                Human(latency.p99),
                latency.count,
                timeouts(status)
            );
        }
        self.findings.show();
    }

    pub(super) fn json(&self, status: &NodeStatus, plan: &Plan<'_>) -> Object {
        let latency = status.latency();
        let facts = self.facts().into_iter();
        let facts = facts.flat_map(|(name, value)| object! { @ name = value });
        object! {
            "address" = self.address,
            "can_vote": self.can_vote(),
            _: Object(facts.collect()),
            "addresses": list(self.sockets.iter().map(quoted)),
            "clock_offset_ms": maybe(self.clock.map(|offset| offset.seconds * 1e3)),
            "clock_error_ms": maybe(self.clock.map(|offset| offset.error * 1e3)),
            "clock_rate": maybe(self.rate.map(|rate| rate.part)),
            _: self.times.json(),
            "cut_by_node_timeout": self.times.longer_than(plan.settings.node_timeout),
            "lock_replies": latency.count,
            "lock_p50_us": latency.p50.as_micros(),
            "lock_p99_us": latency.p99.as_micros(),
            "lock_timeouts": timeouts(status),
            _: protection::json(status),
            "findings": self.findings.json(),
        }
    }
}
