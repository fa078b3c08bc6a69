//! Opens the clients of a run, as [`plan`](crate::plan) has drawn them, on the nodes of the
//! simulation.

use crate::algorithm::backoff::Backoff;
use crate::algorithm::incarnation::Rules;
use crate::algorithm::quarantine::{Quarantine, RestartPolicy};
use crate::api::client::{Client, Settings};
use crate::api::redlock::Redlock;
use crate::engine::calls::{Engine, EngineConfig};
use crate::events::metrics::counters::Counters;
use crate::events::names::Names;
use crate::events::report::{Observer, Reporter};
use crate::kernel::with;
use crate::machine::MachineClock;
use crate::observer_rules::Listener;
use crate::os::fork::ForkEpoch;
use crate::os::transport::TransportConfig;
use crate::plan::PLACE_LEASE;
use crate::protocol::endpoint::Endpoint;
use crate::protocol::key_space;
use crate::waits;
use std::sync::Arc;
use std::time::Duration;

/// How many threads of a client spin before they sleep: none, as there is but one processor in
/// here.
const SPIN: Duration = Duration::ZERO;

/// How long nodes keep the keys of fenced locks: longer than any run.
const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
/// No key is as long.
const LONGEST_KEY: usize = 1000;
/// The longest delay between attempts.
const LONGEST_DELAY: Duration = Duration::from_millis(250);

pub(crate) fn open(client: usize) -> Redlock {
    Redlock::new(open_client(client))
}

/// One whose events are the judge's, if it is observed.
pub(crate) fn open_client(client: usize) -> Client {
    let is_observed = with(|world| world.plan.clients[client].is_observed);
    let listener = Listener { client };
    let observer = || Arc::new(move |event: &_| listener.event(event)) as Observer;
    open_with(client, is_observed.then(observer))
}

/// One whose events this observer receives.
pub(crate) fn open_with(client: usize, observer: Option<Observer>) -> Client {
    let (nodes, node_timeout, clock) = with(|world| {
        let timeout = Duration::from_nanos(world.plan.node_timeout);
        (
            world.nodes.len(),
            timeout,
            Arc::clone(&world.clients[client].clock),
        )
    });
    let drift_factor = with(|world| f64::from(world.plan.drift_factor) / 1000.0);
    let log_in = |node: usize| {
        with(|world| {
            if world.plan.nodes[node].has_password {
                ":secret@"
            } else {
                ""
            }
        })
    };
    let urls: Vec<String> = (0..nodes)
        .map(|node| format!("redis://{}10.0.0.{node}", log_in(node)))
        .collect();
    // Nothing is asked to last longer.
    let max_ttl = Duration::from_millis(with(|world| world.plan.max_ttl(client)));
    let policy = with(|world| world.plan.policy(client));
    let quarantine = Quarantine::new(policy, max_ttl);
    let transport = if with(|world| world.plan.has_tls) {
        TransportConfig::Tls
    } else {
        TransportConfig::Plain
    };
    let node = |url: &String| {
        let endpoint = Endpoint::parse(url)
            .unwrap()
            .look_at(key_space::node(""), policy == RestartPolicy::Strict);
        (endpoint, transport.clone(), quarantine.clone())
    };
    let endpoints = urls.iter().map(node).collect();
    let clock = Arc::new(MachineClock { client, clock });
    let names: Vec<String> = (0..nodes).map(|node| format!("node {node}")).collect();
    let release_notifications = waits::publishes(client);
    let observers = observer.into_iter().collect();
    let counters = Counters::new();
    with(|world| world.clients[client].counters = Some(counters.clone()));
    // A prefix that is longer than any key: so the name in an event is the key itself, which
    // distinguishes locks.
    let named = Arc::new(Names::new(&names, &"-".repeat(LONGEST_KEY)));
    let report = Reporter::new(observers, Some(counters), &named);
    let events = report.event_queue();
    let backoff = Backoff::new(Duration::from_millis(2), LONGEST_DELAY);
    let place_lease = Duration::from_millis(PLACE_LEASE);
    let rules = Rules::new(policy, max_ttl);
    let config = EngineConfig {
        spin: SPIN,
        release_notifications,
        retention: RETENTION,
        rules,
        node_timeout,
        events,
        provider: None,
        renewal: None,
    };
    let engine = Engine::new(endpoints, node_timeout, clock, config).unwrap();
    let settings = Settings {
        durable: vec![false; names.len()],
        names: Arc::new(Names::new(&names, "")),
        node_timeout,
        drift_factor,
        backoff,
        unavailable_after: Duration::from_secs(3),
        max_ttl,
        ttl: max_ttl,
        label: crate::algorithm::label::HolderLabel::NONE,
        place_lease,
    };
    Client::new(engine, settings, report, ForkEpoch::current().unwrap())
}
