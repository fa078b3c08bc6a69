//! The client of these settings, which are checked first.

use super::Builder;
use super::transports::{renewal, transports};
use crate::algorithm::incarnation::{LONGEST_MAX_TTL, Rules};
use crate::algorithm::node::MAX_NODES;
use crate::algorithm::quarantine::{Quarantine, RestartPolicy};
use crate::algorithm::time::{Clock, Human};
use crate::api::client::Client;
use crate::api::redlock::Redlock;
use crate::api::settings::Settings;
use crate::engine::calls::{Engine, EngineConfig};
use crate::engine::credentials::Provider;
use crate::events::error::{Error, Result, config_error};
use crate::events::names::Names;
use crate::events::report::Reporter;
use crate::os::fork::ForkEpoch;
use crate::os::transport::TransportConfig;
use crate::protocol::endpoint::{Endpoint, EndpointError};
use crate::protocol::key_space;
use std::sync::Arc;
use std::time::Duration;

/// Longest that any setting may be: so long that it means "for ever", and still far from any
/// overflow.
const LONGEST_SETTING: Duration = LONGEST_MAX_TTL;
const LONGEST_PLACE: Duration = Duration::from_secs(60 * 60);
const LONGEST_SPIN: Duration = Duration::from_millis(10);
/// How much longer the key of a fenced lock is kept than any lock lasts: a fence may be a minute
/// ahead of a server's clock, and clocks disagree.
const FENCE_MARGIN: Duration = Duration::from_secs(120);

impl Builder {
    /// [`build`](Builder::build), with another clock: a test has its own.
    pub(crate) fn build_on(self, clock: Arc<dyn Clock>) -> Result<Redlock> {
        let endpoints = self.endpoints()?;
        self.check()?;
        let provider = self.provider(&endpoints)?;
        let renewal = renewal(&self, &endpoints);
        let transports = transports(&self, &endpoints)?;
        let Builder {
            settings,
            observers,
            counters,
            ..
        } = self;
        let nodes: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
        let names = Arc::new(Names::new(&nodes, &settings.prefix));
        let report = Reporter::new(observers, counters.clone(), &names);
        let created_in = ForkEpoch::current()
            .map_err(|error| Error::system("register a fork handler", &error))?;
        let Settings {
            max_ttl,
            node_timeout,
            restart_policy,
            ..
        } = settings;
        let declared = |endpoint: &Endpoint| endpoint.durable().unwrap_or(settings.durable);
        let durable: Vec<bool> = endpoints.iter().map(declared).collect();
        let record = |((endpoint, transport), &durable): ((Endpoint, TransportConfig), &bool)| {
            let quarantine = Quarantine::new(restart_policy, max_ttl);
            let endpoint = endpoint.look_at(
                key_space::node(&settings.prefix),
                restart_policy == RestartPolicy::Strict,
            );
            match durable {
                true => (
                    endpoint.check_durability(),
                    transport,
                    quarantine.declared_durable(),
                ),
                false => (endpoint, transport, quarantine),
            }
        };
        let records = endpoints
            .into_iter()
            .zip(transports)
            .zip(&durable)
            .map(record)
            .collect();
        let config = EngineConfig {
            spin: settings.spin,
            release_notifications: settings.release_notifications,
            retention: settings
                .fence_retention
                .max(max_ttl.saturating_add(FENCE_MARGIN)),
            rules: Rules::new(restart_policy, max_ttl),
            node_timeout,
            provider,
            renewal,
            events: report.event_queue(),
        };
        let engine = Engine::new(records, node_timeout, clock, config)
            .map_err(|error| Error::system("open a descriptor", &error))?;
        let client = Client::new(engine, settings, names, durable, report, created_in);
        if let Some(counters) = counters {
            let source = Arc::downgrade(&client.0);
            counters.watch_nodes(source);
        }
        Ok(Redlock::new(client))
    }

    /// The settings beside each other.
    fn check(&self) -> Result<()> {
        let [ttl, longest] = [self.settings.default_ttl(), self.settings.max_ttl].map(Human);
        if ttl.0 > longest.0 {
            return Err(config_error(format!(
                "ttl ({ttl}) is longer than max_ttl ({longest}): lower ttl, or raise max_ttl in every client of these \
                 nodes"
            )));
        }
        self.check_each()
    }

    /// Each setting by itself.
    pub(super) fn check_each(&self) -> Result<()> {
        let Settings {
            retry_min,
            retry_max,
            ..
        } = self.settings;
        let settings = &self.settings;
        let milliseconds = |longest| Duration::from_millis(1)..=longest;
        let rules = [
            (
                milliseconds(LONGEST_SETTING).contains(&settings.node_timeout),
                "node_timeout must be between 1 ms and 366 days",
            ),
            (
                (0.0..1.0).contains(&settings.drift_factor),
                "drift_factor must be at least 0 and less than 1",
            ),
            (
                !retry_min.is_zero() && (retry_min..=LONGEST_SETTING).contains(&retry_max),
                "retry_delay must be more than zero and at most 366 days, and the longest no shorter \
                 than the shortest",
            ),
            (
                milliseconds(LONGEST_SETTING).contains(&settings.max_ttl),
                "max_ttl must be between 1 ms and 366 days",
            ),
            (
                settings.fence_retention <= LONGEST_SETTING,
                "fence_retention must be at most 366 days",
            ),
            (
                milliseconds(LONGEST_PLACE).contains(&settings.place_lease),
                "place_lease must be between 1 ms and 1 h",
            ),
            (settings.spin <= LONGEST_SPIN, "spin must be at most 10 ms"),
            (
                settings.label.is_some(),
                "label must be 1 to 64 visible ASCII characters",
            ),
        ];
        match rules.into_iter().find(|(is_kept, _)| !is_kept) {
            Some((_, rule)) => Err(config_error(rule)),
            None => Ok(()),
        }
    }

    /// What returns the credentials that URLs do not contain, if anything.
    pub(super) fn provider(&self, endpoints: &[Endpoint]) -> Result<Option<Provider>> {
        let lacks_password = |endpoint: &Endpoint| endpoint.user().is_some();
        match (&self.login, endpoints.iter().position(lacks_password)) {
            (Some(login), _) => login.provider().map(Some).map_err(config_error),
            (None, Some(index)) => {
                let error = EndpointError::NoPassword;
                Err(config_error(format!("node {index}: {error}")))
            }
            (None, None) => Ok(None),
        }
    }

    /// Where each node is, and how to log in there.
    pub(super) fn endpoints(&self) -> Result<Vec<Endpoint>> {
        if self.nodes.is_empty() {
            return Err(config_error("no node: name at least one by its URL"));
        }
        if self.nodes.len() > MAX_NODES {
            return Err(config_error(format!(
                "{} nodes; the limit is {MAX_NODES}",
                self.nodes.len()
            )));
        }
        let mut endpoints: Vec<Endpoint> = Vec::with_capacity(self.nodes.len());
        for (index, url) in self.nodes.iter().enumerate() {
            let endpoint = Endpoint::parse(url)
                .map_err(|error| config_error(format!("node {index}: {error}")))?;
            if let Some(first) = endpoints
                .iter()
                .position(|other| other.address() == endpoint.address())
            {
                return Err(config_error(format!(
                    "node {index} is node {first} again ({endpoint}): one server has one vote"
                )));
            }
            endpoints.push(endpoint);
        }
        Ok(endpoints)
    }
}
