//! The client of these settings, which are checked first.

use super::Builder;
use super::transports::{renewal, transports};
use crate::algorithm::backoff::Backoff;
use crate::algorithm::incarnation::{LONGEST_MAX_TTL, Rules};
use crate::algorithm::label::HolderLabel;
use crate::algorithm::node::MAX_NODES;
use crate::algorithm::quarantine::{Quarantine, RestartPolicy};
use crate::algorithm::time::{Clock, Human};
use crate::api::client::{Client, Settings};
use crate::api::redlock::Redlock;
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
/// Time to live of a lock that names none, by a client that names none.
const DEFAULT_TTL: Duration = Duration::from_secs(10);
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
        let label = self.checked_label()?;
        let provider = self.provider(&endpoints)?;
        let renewal = renewal(&self, &endpoints);
        let transports = transports(&self, &endpoints)?;
        let nodes: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
        let names = Arc::new(Names::new(&nodes, &self.prefix));
        let report = Reporter::new(self.observers.clone(), self.counters.clone(), &names);
        let created_in = ForkEpoch::current()
            .map_err(|error| Error::system("register a fork handler", &error))?;
        let declared = |endpoint: &Endpoint| endpoint.durable().unwrap_or(self.durable);
        let durable: Vec<bool> = endpoints.iter().map(declared).collect();
        let record = |((endpoint, transport), &durable): ((Endpoint, TransportConfig), &bool)| {
            let quarantine = Quarantine::new(self.restart_policy, self.max_ttl);
            let endpoint = endpoint.look_at(
                key_space::node(&self.prefix),
                self.restart_policy == RestartPolicy::Strict,
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
        let ttl = self.default_ttl();
        let config = EngineConfig {
            spin: self.spin,
            release_notifications: self.release_notifications,
            retention: self
                .fence_retention
                .max(self.max_ttl.saturating_add(FENCE_MARGIN)),
            rules: Rules::new(self.restart_policy, self.max_ttl),
            node_timeout: self.node_timeout,
            provider,
            renewal,
            events: report.event_queue(),
        };
        let engine = Engine::new(records, self.node_timeout, clock, config)
            .map_err(|error| Error::system("open a descriptor", &error))?;
        let client = Client::new(
            engine,
            Settings {
                names,
                durable,
                node_timeout: self.node_timeout,
                drift_factor: self.drift_factor,
                backoff: Backoff::new(self.retry_min, self.retry_max),
                unavailable_after: self.unavailable_after,
                max_ttl: self.max_ttl,
                ttl,
                label,
                place_lease: self.place_lease,
            },
            report,
            created_in,
        );
        let redlock = Redlock::new(client);
        if let Some(counters) = self.counters {
            counters.watch_nodes(redlock.samples());
        }
        Ok(redlock)
    }

    pub(super) fn default_ttl(&self) -> Duration {
        self.ttl.unwrap_or(DEFAULT_TTL.min(self.max_ttl))
    }

    /// The settings beside each other.
    fn check(&self) -> Result<()> {
        let [ttl, longest] = [self.default_ttl(), self.max_ttl].map(Human);
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
        let millisecond = Duration::from_millis(1);
        if !(millisecond..=LONGEST_SETTING).contains(&self.node_timeout) {
            return Err(config_error("node_timeout must be at least 1 ms"));
        }
        if !(0.0..1.0).contains(&self.drift_factor) {
            return Err(config_error(
                "drift_factor must be at least 0 and less than 1",
            ));
        }
        if self.retry_min.is_zero()
            || self.retry_min > self.retry_max
            || self.retry_max > LONGEST_SETTING
        {
            return Err(config_error(
                "retry_delay must be more than zero, and the longest no shorter than the shortest",
            ));
        }
        if !(millisecond..=LONGEST_SETTING).contains(&self.max_ttl) {
            return Err(config_error("max_ttl must be between 1 ms and 366 days"));
        }
        if self.fence_retention > LONGEST_SETTING {
            return Err(config_error("fence_retention must be at most 366 days"));
        }
        if !(millisecond..=LONGEST_PLACE).contains(&self.place_lease) {
            return Err(config_error("place_lease must be between 1 ms and 1 h"));
        }
        if self.spin > LONGEST_SPIN {
            return Err(config_error("spin must be at most 10 ms"));
        }
        Ok(())
    }

    pub(super) fn checked_label(&self) -> Result<HolderLabel> {
        let Some(label) = &self.label else {
            return Ok(HolderLabel::NONE);
        };
        HolderLabel::new(label.as_bytes())
            .ok_or_else(|| config_error("label must be 1 to 64 visible ASCII characters"))
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
            return Err(config_error(
                "no node: name at least one with Builder::node",
            ));
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
