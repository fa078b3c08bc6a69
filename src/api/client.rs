//! What every handle of one client shares: the engine, the queues of waiting threads, the settings.
//!
//! In a child made by `fork`, none of it may be touched ([`forked`](crate::api::forked)).

use crate::algorithm::lease::{Ttl, TtlError};
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::time::Human;
use crate::api::forked;
use crate::api::settings::Settings;
use crate::api::shutdown::state::ShutdownState;
use crate::engine::calls::{Engine, RoundResult};
use crate::engine::local_queue::slots::Semaphores;
use crate::engine::local_queue::{LocalLock, Queues, Unavailability};
use crate::engine::watchdog_thread::WatchdogThread;
use crate::events::error::{Error, ErrorKind, Result, config_error};
use crate::events::names::Names;
use crate::events::report::Reporter;
use crate::fault::detail::Detail;
use crate::fault::{Cause, Fault, Phase};
use crate::os::fork::ForkEpoch;
use crate::protocol::lock_key::LockKey;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// A handle on what is shared. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Client(pub(super) Arc<SharedClient>);

impl Deref for Client {
    type Target = SharedClient;

    fn deref(&self) -> &SharedClient {
        &self.0
    }
}

pub(crate) struct SharedClient {
    /// In which process the client was built.
    pub(crate) created_in: ForkEpoch,
    /// Begun or not.
    pub(crate) shutdown: ShutdownState,
    pub(crate) engine: Arc<Engine>,
    pub(crate) queues: Queues,
    pub(crate) semaphores: Semaphores,
    pub(crate) watchdog_thread: WatchdogThread,
    /// To be called with no mutex held.
    pub(crate) report: Reporter,
    pub(crate) names: Arc<Names>,
    /// Which of the nodes are declared durable.
    pub(crate) durable: Vec<bool>,
    pub(crate) settings: Settings,
}

impl Client {
    pub(crate) fn new(
        engine: Engine,
        settings: Settings,
        names: Arc<Names>,
        durable: Vec<bool>,
        report: Reporter,
        created_in: ForkEpoch,
    ) -> Client {
        let engine = Arc::new(engine);
        let semaphores = Semaphores::new(created_in);
        let watchdog_thread = WatchdogThread::new(Arc::clone(&engine), report.clone());
        Client(Arc::new(SharedClient {
            created_in,
            shutdown: ShutdownState::new(created_in),
            engine,
            queues: Queues::default(),
            semaphores,
            watchdog_thread,
            report,
            names,
            durable,
            settings,
        }))
    }

    /// Whether this process is a child of the one that built the client, and must not touch it.
    pub(crate) fn is_inherited(&self) -> bool {
        self.created_in.is_forked()
    }

    /// What tells this client from others, as long as it has a handle.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Refuses to work in a child. To be asked before anything else that is here.
    pub(crate) fn check_process(&self) -> Result<()> {
        forked::check(self.created_in)
    }

    /// A lock with the queues of its threads, by its key or by the keys of a set.
    pub(crate) fn local_lock(&self, key: &LockKey) -> LocalLock {
        if self.is_inherited() {
            LocalLock::alone(key)
        } else {
            self.queues.of(key)
        }
    }

    /// Starts the thread that extends locks, unless it runs.
    pub(crate) fn start_watchdog_thread(&self) -> Result<()> {
        self.watchdog_thread
            .start()
            .map_err(|error| Error::system("start the watchdog's thread", &error))
    }

    /// Checks a time to live against the settings.
    pub(crate) fn checked_ttl(&self, ttl: Duration) -> Result<Ttl> {
        let settings = &self.settings;
        Ttl::new(ttl, settings.drift_factor, settings.max_ttl).map_err(|error| {
            let why = match error {
                TtlError::TooShort => "is shorter than 1 ms".to_owned(),
                TtlError::TooLong => format!(
                    "is longer than max_ttl ({}): raise max_ttl to {} in every client of these nodes, or let a \
                     watchdog extend the lock",
                    Human(settings.max_ttl),
                    Human(ttl)
                ),
                TtlError::EatenByDrift => {
                    "is no longer than the allowance for clock drift (drift_factor and 2 ms)".to_owned()
                }
            };
            config_error(format!("a time to live of {} {why}", Human(ttl)))
        })
    }

    /// The name of the resource that a key is of.
    pub(crate) fn resource<'k>(&self, key: &'k str) -> &'k str {
        self.names.name_of(key)
    }

    /// The names of the resources that a lock's key is of.
    pub(crate) fn resources<'k>(
        &'k self,
        key: &'k LockKey,
    ) -> impl ExactSizeIterator<Item = &'k str> {
        key.each().iter().map(|key| self.resource(key))
    }

    /// The faults of a count, with the addresses of their nodes.
    pub(crate) fn unavailability(&self, count: &RoundResult) -> Unavailability {
        let tally = &count.tally;
        Unavailability {
            answered: tally.granted().union(tally.refused()).union(tally.absent()),
            asked: count.reached,
            quorum_impossible_since: None,
            causes: self.names.faults(&count.faults),
        }
    }

    /// Waits for the releases that nodes have not run.
    pub(crate) fn flush_releases(&self, timeout: Duration) -> Result<()> {
        self.check_process()?;
        let unsettled = self.engine.settle(timeout);
        self.report.deliver_queued();
        if unsettled.is_empty() {
            Ok(())
        } else {
            Err(self.unsettled(timeout, &unsettled))
        }
    }

    /// The error that these nodes have not run all releases in time.
    pub(crate) fn unsettled(&self, timeout: Duration, unsettled: &[(NodeId, Fault)]) -> Error {
        let nodes = self.names.nodes.len();
        let message = format!(
            "cannot confirm all releases within {}: {} of {} nodes have not run them; a lock ends there with its time \
             to live",
            Human(timeout),
            unsettled.len(),
            nodes
        );
        Error::new(ErrorKind::Unavailable, message)
            .with_causes_of(nodes, self.names.faults(unsettled))
    }

    /// The error that too few nodes could answer. `action` names what could not be done.
    pub(crate) fn unavailable(
        &self,
        action: &str,
        resource: &str,
        unavailability: Unavailability,
    ) -> Error {
        self.unavailable_for(&format!("{action} {resource:?}"), unavailability)
    }

    /// [`unavailable`](Client::unavailable), where no resource is concerned.
    pub(crate) fn unavailable_for(&self, action: &str, unavailability: Unavailability) -> Error {
        let names = &self.names;
        let Unavailability {
            answered,
            asked,
            causes,
            ..
        } = unavailability;
        let voting = self.engine.voting();
        let other = |(index, address): (usize, &Arc<str>)| {
            let node = NodeId::new(index);
            if causes.iter().any(|cause| cause.address() == &**address) {
                return None;
            }
            let word = match () {
                () if answered.contains(node) => "answered",
                () if asked.contains(node) => "asked, answer not awaited",
                () if voting.contains(node) => "healthy, not asked",
                () => "not asked",
            };
            Some(format!("{address}: {word}"))
        };
        let others = names.nodes.iter().enumerate().filter_map(other).collect();
        Error::unavailable(
            action,
            names.nodes.len(),
            self.settings.max_ttl,
            causes,
            others,
        )
    }

    /// The error that a lock is held by a key that has no expiry on these nodes.
    pub(crate) fn no_expiry(&self, key: &str, endless: NodeSet) -> Error {
        let message = format!(
            "cannot lock {:?}: its key {key:?} has no expiry on {} of {} nodes, and is never freed; unless a program \
             that holds the lock will delete it, delete the key",
            self.resource(key),
            endless.len(),
            self.names.nodes.len()
        );
        self.with_fault(message, endless, Fault::new(Phase::Reply, Cause::NoExpiry))
    }

    /// The error of a fair lock whose order needs messages that these nodes do not permit.
    pub(crate) fn not_told(&self, resource: &str, denied: NodeSet) -> Error {
        let message = format!(
            "cannot lock {resource:?} in order: the user may not subscribe to its channel on {} of {} nodes; permit \
             SUBSCRIBE and the channels quorumlock:*, or use a lock that is not fair",
            denied.len(),
            self.names.nodes.len()
        );
        let fault =
            Fault::new(Phase::Reply, Cause::NoPermission).with(Detail::Command("SUBSCRIBE"));
        self.with_fault(message, denied, fault)
    }

    fn with_fault(&self, message: String, nodes: NodeSet, fault: Fault) -> Error {
        let names = &self.names;
        let causes = nodes.iter().map(|node| names.fault(node, fault)).collect();
        Error::new(ErrorKind::Unavailable, message).with_causes_of(names.nodes.len(), causes)
    }
}

impl Drop for Client {
    /// In a child, what is shared outlives every handle. Threads that the child does not have were
    /// perhaps changing it, so it cannot be freed; its own drop would wait for such a thread, and
    /// for mutexes.
    fn drop(&mut self) {
        if self.is_inherited() {
            self.engine.close_inherited();
            std::mem::forget(Arc::clone(&self.0));
        }
    }
}
