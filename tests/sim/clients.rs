//! Opens the clients of a run, as [`plan`](crate::plan) has drawn them, on the nodes of the
//! simulation.

use crate::algorithm::backoff::Backoff;
use crate::algorithm::incarnation::Rules;
use crate::algorithm::quarantine::{Quarantine, RestartPolicy};
use crate::api::client::Client;
use crate::api::redlock::Redlock;
use crate::api::settings::Settings;
use crate::engine::calls::{Engine, EngineConfig};
use crate::events::event_queue::Observer;
use crate::events::metrics::counters::Counters;
use crate::events::names::Names;
use crate::events::report::Reporter;
use crate::kernel::with;
use crate::machine::MachineClock;
use crate::observer_rules::Listener;
use crate::os::fork::ForkEpoch;
use crate::os::transport::TransportConfig;
use crate::plan::{NodePlan, PLACE_LEASE};
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
    let (plan, clock) =
        with(|world| (world.plan.clone(), Arc::clone(&world.clients[client].clock)));
    let node_timeout = Duration::from_nanos(plan.node_timeout);
    // Nothing is asked to last longer.
    let max_ttl = Duration::from_millis(plan.max_ttl(client));
    let policy = plan.policy(client);
    let transport = if plan.has_tls {
        TransportConfig::Tls
    } else {
        TransportConfig::Plain
    };
    let node = |(index, node): (usize, &NodePlan)| {
        let login = if node.has_password { ":secret@" } else { "" };
        let endpoint = Endpoint::parse(&format!("redis://{login}10.0.0.{index}"))
            .unwrap()
            .look_at(key_space::node(""), policy == RestartPolicy::Strict);
        let quarantine = Quarantine::new(policy, max_ttl);
        (endpoint, transport.clone(), quarantine)
    };
    let endpoints = plan.nodes.iter().enumerate().map(node).collect();
    let clock = Arc::new(MachineClock { client, clock });
    let names: Vec<String> = (0..plan.nodes.len())
        .map(|node| format!("node {node}"))
        .collect();
    let observers = observer.into_iter().collect();
    let counters = Counters::new();
    with(|world| world.clients[client].counters = Some(counters.clone()));
    // A prefix that is longer than any key: so the name in an event is the key itself, which
    // distinguishes locks.
    let named = Arc::new(Names::new(&names, &"-".repeat(LONGEST_KEY)));
    let report = Reporter::new(observers, Some(counters), &named);
    let events = report.event_queue();
    let config = EngineConfig {
        spin: SPIN,
        release_notifications: waits::publishes(client),
        retention: RETENTION,
        rules: Rules::new(policy, max_ttl),
        node_timeout,
        events,
        provider: None,
        renewal: None,
    };
    let engine = Engine::new(endpoints, node_timeout, clock, config).unwrap();
    let settings = Settings {
        node_timeout,
        drift_factor: f64::from(plan.drift_factor) / 1000.0,
        retry_max: LONGEST_DELAY,
        max_ttl,
        ttl: Some(max_ttl),
        place_lease: Duration::from_millis(PLACE_LEASE),
        ..Settings::default()
    };
    let own_names = Arc::new(Names::new(&names, ""));
    let durable = vec![false; names.len()];
    let epoch = ForkEpoch::current().unwrap();
    Client::new(engine, settings, own_names, durable, report, epoch)
}
