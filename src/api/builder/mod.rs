//! The settings of a client, checked when it is built.

mod checks;
mod kept;
pub(crate) mod label;
mod nodes;
#[cfg(feature = "cli")]
pub(crate) mod targets;
mod transports;
pub(crate) mod variables;

use crate::algorithm::backoff::Backoff;
use crate::algorithm::incarnation::Rules;
use crate::algorithm::lease::MAX_TTL;
use crate::algorithm::quarantine::{Quarantine, RestartPolicy};
use crate::algorithm::time::Clock;
use crate::api::client::{Client, Settings};
use crate::api::redlock::Redlock;
use crate::engine::calls::{Engine, EngineConfig};
use crate::events::error::{Error, ErrorKind, Result};
use crate::events::event::Event;
use crate::events::metrics::counters::Counters;
use crate::events::report::{Observer, Reporter};
use crate::os::clock::SystemClock;
use crate::os::fork::ForkEpoch;
use crate::os::transport::TransportConfig;
use crate::protocol::endpoint::Endpoint;
use crate::protocol::key_space;
use std::sync::Arc;
use std::time::Duration;

/// Time for a node to answer, by default: far more than a healthy one in the same region needs, far less than a caller
/// notices.
const NODE_TIMEOUT: Duration = Duration::from_millis(100);
/// Part of a time to live that clocks may disagree by, by default: one in a hundred.
const DRIFT_FACTOR: f64 = 0.01;
const RETRY_MIN: Duration = Duration::from_millis(2);
const RETRY_MAX: Duration = Duration::from_millis(250);
/// Time to poll without sleeping, by default: about what servers on the same machine or in the same rack take.
const SPIN: Duration = Duration::from_micros(100);
/// How long a fenced lock's key is kept, by default: far longer than clocks of machines disagree by.
const FENCE_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
/// How much longer it is kept than any lock lasts: a fence may be a minute ahead of a server's clock, and clocks
/// disagree.
const FENCE_MARGIN: Duration = Duration::from_secs(120);
/// How long an entry in front of a queue may let others wait.
const PLACE_LEASE: Duration = Duration::from_secs(1);
const UNAVAILABLE_AFTER: Duration = Duration::from_secs(3);

/// The settings of a [`Redlock`], with a default for everything but the nodes. Made by [`Redlock::builder`].
///
/// ```
/// use quorumlock::Redlock;
/// use std::time::Duration;
///
/// // None of these has to be there for the client to be built.
/// let redlock = Redlock::builder()
///     .node("redis://10.0.0.1:6379")
///     .node("redis://:secret@10.0.0.2:6379/2")
///     .node("redis://user:secret@10.0.0.3")
///     .node_timeout(Duration::from_millis(30))
///     .prefix("locks/")
///     .build()?;
///
/// // The key of this one is "locks/orders/42".
/// let mutex = redlock.mutex("orders/42");
/// assert_eq!(mutex.name(), "orders/42");
/// # Ok::<(), quorumlock::Error>(())
/// ```
///
/// A client that really locks, on a node inside the process:
///
/// ```
/// use quorumlock::{Redlock, embedded::EmbeddedNode};
///
/// let node = EmbeddedNode::start()?;
/// let redlock = Redlock::builder().node(node.url()).build()?;
/// let guard = redlock.mutex("orders/42").lock()?;
/// assert_eq!(node.keys(), ["orders/42"]);
/// # drop(guard);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Builder {
    /// The URL of each node.
    nodes: Vec<String>,
    prefix: String,
    node_timeout: Duration,
    drift_factor: f64,
    retry_min: Duration,
    retry_max: Duration,
    unavailable_after: Duration,
    max_ttl: Duration,
    /// None: the default.
    ttl: Option<Duration>,
    label: Option<String>,
    restart_policy: RestartPolicy,
    durable: bool,
    fence_retention: Duration,
    place_lease: Duration,
    spin: Duration,
    release_notifications: bool,
    observers: Vec<Observer>,
    #[cfg(feature = "tls")]
    tls: crate::api::tls::Tls,
    counters: Option<Counters>,
}

impl Redlock {
    /// Starts to name the nodes and settings of a client.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    fn new() -> Builder {
        Builder {
            nodes: Vec::new(),
            prefix: String::new(),
            node_timeout: NODE_TIMEOUT,
            drift_factor: DRIFT_FACTOR,
            retry_min: RETRY_MIN,
            retry_max: RETRY_MAX,
            unavailable_after: UNAVAILABLE_AFTER,
            max_ttl: MAX_TTL,
            ttl: None,
            label: None,
            restart_policy: RestartPolicy::default(),
            durable: false,
            fence_retention: FENCE_RETENTION,
            place_lease: PLACE_LEASE,
            spin: SPIN,
            release_notifications: true,
            observers: Vec::new(),
            #[cfg(feature = "tls")]
            tls: Default::default(),
            counters: None,
        }
    }

    /// What is put before a resource's name to make its key. Default: nothing, so that every other Redlock client that
    /// names the same nodes and uses the same key excludes this one and is excluded by it.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Builder {
        self.prefix = prefix.into();
        self
    }

    /// How long each node has to answer one attempt, and no attempt takes longer, with three exceptions. One that has
    /// to connect to nodes first, because fewer than a quorum are connected, has the same time again for connections
    /// and handshakes; an attempt on a [fenced](crate::Mutex::fenced) lock may need a second round trip, and one on a
    /// [permit](crate::kind::Slot) two more. Default: 100 ms. At least 1 ms.
    ///
    /// It must be longer than the round trip to the farthest node of the nearest quorum: to a node farther away than
    /// that, no attempt succeeds. Keep it a small part of the times to live: what an attempt takes is missing from the
    /// lease.
    #[must_use]
    pub fn node_timeout(mut self, timeout: Duration) -> Builder {
        self.node_timeout = timeout;
        self
    }

    /// The part of a time to live by which clocks of servers and clients may disagree. Default: 0.01. At least 0,
    /// less than 1. A lease is shorter than its time to live by this part and 2 ms (Redlock's clock drift).
    #[must_use]
    pub fn drift_factor(mut self, factor: f64) -> Builder {
        self.drift_factor = factor;
        self
    }

    /// The shortest and the longest delay between two attempts of a waiting thread, if nothing ends it early. Default:
    /// 2 ms and 250 ms. Delays are random, and grow while the lock stays held; at once, where a
    /// [release](Builder::release_notifications) would be heard of. The shortest is more than zero.
    #[must_use]
    pub fn retry_delay(mut self, shortest: Duration, longest: Duration) -> Builder {
        self.retry_min = shortest;
        self.retry_max = longest;
        self
    }

    /// For how long [`Mutex::lock`](crate::Mutex::lock) and [`Wait::unlimited`](crate::Wait::unlimited) go on when no
    /// quorum of nodes answers. Default: 3 s. Waits with a limit of their own go on until that, unless so many nodes
    /// have [permanent](crate::Cause::is_permanent) faults for this time that no quorum is possible.
    #[must_use]
    pub fn unavailable_after(mut self, time: Duration) -> Builder {
        self.unavailable_after = time;
        self
    }

    /// The time to live of locks that name none by [`Mutex::ttl`](crate::Mutex::ttl). Default: 10 s, or
    /// [`max_ttl`](Builder::max_ttl) if that is shorter. One that is longer than `max_ttl` is refused.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Builder {
        self.ttl = Some(ttl);
        self
    }

    /// The longest time to live that a lock may ask for. Default: 60 s. At least 1 ms, at most 366 days.
    ///
    /// **This is also how long a restarted node does not count** ([`restart_policy`](Builder::restart_policy)), so all
    /// clients of the nodes must set the same. A lock with a longer time to live fails at its first use, as
    /// [`Config`](ErrorKind::Config). Work that takes longer needs no longer time to live: a
    /// [`Watchdog`](crate::Watchdog) extends its lock.
    #[must_use]
    pub fn max_ttl(mut self, ttl: Duration) -> Builder {
        self.max_ttl = ttl;
        self
    }

    /// What is done about nodes that were restarted and may have forgotten locks. Default: [`RestartPolicy::Observed`].
    ///
    /// By default a node that has lost its keys does not count until [`max_ttl`](Builder::max_ttl) has passed, 60 s
    /// unless it is set. While a majority of nodes does not count, nothing can be locked. Nodes that write every change
    /// to disk can be declared [`durable`](Builder::durable): they count at once.
    ///
    /// ```
    /// use quorumlock::{Redlock, embedded::EmbeddedNode};
    /// use std::time::{Duration, Instant};
    ///
    /// let node = EmbeddedNode::start()?;
    /// let (ttl, max_ttl) = (Duration::from_millis(200), Duration::from_millis(300));
    /// let redlock = Redlock::builder().node(node.url()).ttl(ttl).max_ttl(max_ttl).build()?;
    /// let mutex = redlock.mutex("orders/42");
    /// let _ = mutex.lock()?.unlock()?;
    ///
    /// // It comes back without its keys. Whatever it has forgotten ends within 300 ms, and then it counts.
    /// node.kill();
    /// node.revive()?;
    /// let revived = Instant::now();
    /// let _ = mutex.lock()?.unlock()?;
    /// assert!(revived.elapsed() >= Duration::from_millis(300));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn restart_policy(mut self, policy: RestartPolicy) -> Builder {
        self.restart_policy = policy;
        self
    }

    /// For how long a thread that is alone with its client polls for its answers without sleeping, before it sleeps.
    /// Zero is not at all, and 10 ms the most. Default: 100 µs.
    ///
    /// Servers that are near may answer sooner than a thread can be put to sleep and woken. Both ways are tried now and
    /// then, and the busy one is used only where it is faster: not where it takes the processor that a server needs,
    /// not when answers take longer, and never while several threads use the client. On a machine whose processors are
    /// all busy with other programs, switch it off.
    #[must_use]
    pub fn spin(mut self, time: Duration) -> Builder {
        self.spin = time;
        self
    }

    /// Whether waiters are woken when another program releases the lock. Default: yes (rules 8).
    ///
    /// A call that waits has an entry in the queue of the lock on each node, and a release tells the call that is the
    /// first there, on the client's own channel: `quorumlock:` and 16 digits. The client subscribes to it when a call
    /// first waits, on one more connection to each node, which is kept until no call has waited for a minute. A message
    /// ends a wait early and nothing else: where messages are refused or lost, waits end by
    /// [`retry_delay`](Builder::retry_delay). While they arrive, a waiter asks the servers seldom.
    ///
    /// With `false`, calls of this client have no entry and are not told: they ask by `retry_delay`, take no turn among
    /// other programs, and [`fair`](crate::Mutex::fair) locks are an error. Its releases still tell others. A user with
    /// an access control list needs `+publish +subscribe &quorumlock:*`; without them the observer receives [one
    /// event](Event::ReleaseNotificationsRefused), and locks that are not fair work all the same.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// use quorumlock::Redlock;
    /// use std::{thread, time::Duration};
    ///
    /// // Two programs, with delays between attempts that would show.
    /// let minute = Duration::from_secs(60);
    /// let client = || Redlock::builder().node(node.url()).retry_delay(minute, minute).build();
    /// let (ours, theirs) = (client()?, client()?);
    ///
    /// let held = theirs.mutex("orders/42").lock()?;
    /// let waiting = thread::spawn(move || ours.mutex("orders/42").lock_timeout(Duration::from_secs(50)));
    /// thread::sleep(Duration::from_millis(100));
    /// drop(held);
    /// assert!(waiting.join().unwrap()?.is_some(), "it was woken, and did not wait for a minute");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn release_notifications(mut self, release_notifications: bool) -> Builder {
        self.release_notifications = release_notifications;
        self
    }

    /// Calls `observer` with each [event](crate::event) of the locks and nodes of the client. Default: none. Each
    /// further call adds an observer. [The module](crate::event) lists when and on which thread it is called.
    #[must_use]
    pub fn observer(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Builder {
        self.observers.push(Arc::new(observer));
        self
    }

    /// The roots that certificates of `rediss://` nodes are checked against, and a client certificate. Default: the
    /// roots of the system with the feature `tls-native-roots`, otherwise none. See [`Tls`](crate::Tls).
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    #[must_use]
    pub fn tls(mut self, tls: crate::Tls) -> Builder {
        self.tls = tls;
        self
    }

    /// Adds to what is set by [`tls`](Builder::tls).
    #[cfg(feature = "tls")]
    pub(crate) fn change_tls(mut self, change: impl FnOnce(crate::Tls) -> crate::Tls) -> Builder {
        self.tls = change(std::mem::take(&mut self.tls));
        self
    }

    /// Counts what the client does, for a metrics server: see [`Counters`]. Default: nothing is counted. Replaces
    /// earlier counters. It needs no observer.
    #[must_use]
    pub fn counters(mut self, counters: &Counters) -> Builder {
        self.counters = Some(counters.clone());
        self
    }

    /// Builds the client. This connects to no node, and does not fail because one is down.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config): no node, too many, one named twice, a URL that cannot be used, or a setting out
    /// of range; the message names it. [`Unavailable`](ErrorKind::Unavailable): the process has no descriptors or
    /// memory left.
    pub fn build(self) -> Result<Redlock> {
        self.build_on(Arc::new(SystemClock))
    }

    /// [`build`](Builder::build), with another clock: a test has its own.
    pub(crate) fn build_on(self, clock: Arc<dyn Clock>) -> Result<Redlock> {
        let endpoints = self.endpoints()?;
        self.check()?;
        let label = self.checked_label()?;
        let transports = self.transports(&endpoints)?;
        let nodes: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
        let report = Reporter::new(self.observers.clone(), self.counters.clone(), &nodes, &self.prefix);
        let created_in = ForkEpoch::current().map_err(|error| Error::system("register a fork handler", &error))?;
        let declared = |endpoint: &Endpoint| endpoint.durable().unwrap_or(self.durable);
        let durable: Vec<bool> = endpoints.iter().map(declared).collect();
        let record = |((endpoint, transport), &durable): ((Endpoint, TransportConfig), &bool)| {
            let quarantine = Quarantine::new(self.restart_policy, self.max_ttl);
            let endpoint =
                endpoint.look_at(key_space::node(&self.prefix), self.restart_policy == RestartPolicy::Strict);
            match durable {
                true => (endpoint.check_durability(), transport, quarantine.declared_durable()),
                false => (endpoint, transport, quarantine),
            }
        };
        let records = endpoints.into_iter().zip(transports).zip(&durable).map(record).collect();
        let ttl = self.default_ttl();
        let config = EngineConfig {
            spin: self.spin,
            release_notifications: self.release_notifications,
            retention: self.fence_retention.max(self.max_ttl.saturating_add(FENCE_MARGIN)),
            rules: Rules::new(self.restart_policy, self.max_ttl),
            node_timeout: self.node_timeout,
            events: report.event_queue(),
        };
        let engine = Engine::new(records, self.node_timeout, clock, config)
            .map_err(|error| Error::system("open a descriptor", &error))?;
        let client = Client::new(
            engine,
            Settings {
                nodes,
                durable,
                prefix: self.prefix,
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
        if let Some(counters) = self.counters {
            let weak = client.downgrade();
            counters.watch_nodes(move || Some(Redlock::new(weak.upgrade()?).samples()));
        }
        Ok(Redlock::new(client))
    }
}

/// Shows the settings without the nodes, whose URLs hold passwords.
impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("nodes", &self.nodes.len())
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

fn config(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Config, message)
}

#[cfg(test)]
mod tests;
