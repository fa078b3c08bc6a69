//! The settings of a client, checked when it is built.

mod build;
pub(crate) mod label;
mod login;
#[cfg(feature = "cli")]
pub(crate) mod node_stream;
mod transports;
mod variables;

use crate::algorithm::label::HolderLabel;
use crate::algorithm::quarantine::RestartPolicy;
use crate::api::redlock::Redlock;
use crate::api::settings::Settings;
#[cfg(feature = "tls")]
use crate::api::tls::Tls;
use crate::events::error::Result;
use crate::events::event::Event;
use crate::events::event_queue::Observer;
use crate::events::metrics::counters::Counters;
use crate::os::clock::SystemClock;
use crate::protocol::credentials::Credentials;
use login::Login;
use std::sync::Arc;
use std::time::Duration;

/// The settings of a [`Redlock`], with a default for everything but the nodes. Made by
/// [`Redlock::builder`].
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
#[must_use]
pub struct Builder {
    /// The URL of each node.
    nodes: Vec<String>,
    settings: Settings,
    login: Option<Login>,
    observers: Vec<Observer>,
    #[cfg(feature = "tls")]
    tls: Tls,
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
            settings: Settings::default(),
            login: None,
            observers: Vec::new(),
            #[cfg(feature = "tls")]
            tls: Default::default(),
            counters: None,
        }
    }

    /// Adds a node: an independent Redis or Valkey master, by its URL.
    ///
    /// `redis://[user:password@]host[:port][/database]` or `unix://[user:password@]path`; user,
    /// password and path may be percent-encoded; a password without a user is written
    /// `redis://:password@host`. The port is 6379 unless it is named. `valkey://` is `redis://`,
    /// and `rediss://` is TLS (feature `tls`). Parameters follow a `?`, with `&` between them, as
    /// in `?db=2&durable=true`:
    ///
    /// | Parameter | Meaning | Default |
    /// |---|---|---|
    /// | `db` | The number of the database, also in place of `/database` | 0 |
    /// | `durable` | `true` or `false`: whether the node is [`durable`](Builder::durable) | as the builder |
    /// | `server_name` | For `rediss://`: the host name or IP address that the node's certificate must be for, and that the server is asked for (SNI) | the host |
    ///
    /// ```
    /// use quorumlock::Redlock;
    ///
    /// let redlock = Redlock::builder()
    ///     .node("redis://10.0.0.1:6379?durable=true")
    ///     .node("redis://:secret@10.0.0.2/1?durable=true")
    ///     .node("unix:///run/redis.sock?db=1")
    ///     .build()?;
    /// assert!(redlock.nodes()?[0].is_durable());
    ///
    /// // An error shows nothing of the URL, which may hold a password.
    /// let error = Redlock::builder().node("redis://:secret@10.0.0.1?durable=yes").build().unwrap_err();
    /// assert_eq!(error.to_string(), "node 0: durable takes true or false, as in redis://host:6379?durable=true");
    /// # Ok::<(), quorumlock::Error>(())
    /// ```
    ///
    /// Every client of a lock must name the same nodes, and the same database of each. Three or
    /// five make a sound quorum; one makes the single-instance lock, which is as available as that
    /// one server. The limit is 64.
    pub fn node(mut self, url: impl Into<String>) -> Builder {
        self.nodes.push(url.into());
        self
    }

    /// Adds several nodes by their URLs, each as by [`node`](Builder::node).
    pub fn nodes(mut self, urls: impl IntoIterator<Item = impl Into<String>>) -> Builder {
        self.nodes.extend(urls.into_iter().map(Into::into));
        self
    }

    /// Has connections log in with what a provider returns: for tokens that end, and passwords that
    /// rotate. It is called with the address of the node, as in `10.0.0.1:6379`. Default: nothing
    /// but what URLs contain, and a node whose URL contains a password keeps that. Replaces an
    /// earlier provider or [`password_file`](Builder::password_file).
    ///
    /// The provider is called before each connection, and again after
    /// [`refresh_after`](Credentials::refresh_after): then the open connection logs in anew, and
    /// serves calls meanwhile. Each node has a thread for that, so the provider may block, and no
    /// lock waits for it where a connection is open. After an error or a panic, the credentials
    /// before stay in use, the observer gets
    /// [`CredentialsFailed`](crate::event::Event::CredentialsFailed), and the provider is called
    /// again after a second. A connection that has none, after 3 s at the latest, fails with
    /// [`Cause::Credentials`](crate::Cause::Credentials). The text of the error is not kept, as it
    /// may contain a secret: log it in the provider.
    ///
    /// Where the credentials name no user, the user of the URL counts, as in
    /// `redis://alice@10.0.0.1`.
    ///
    /// ```
    /// use quorumlock::{Credentials, Redlock};
    /// use std::time::Duration;
    ///
    /// # fn token_for(node: &str) -> Result<String, std::io::Error> { Ok(node.to_owned()) }
    /// let redlock = Redlock::builder()
    ///     .nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
    ///     .credentials(|node| {
    ///         let token = token_for(node)?; // valid for 15 minutes
    ///         Ok(Credentials::new(token).user("billing").refresh_after(Duration::from_secs(600)))
    ///     })
    ///     .build()?;
    /// # Ok::<(), quorumlock::Error>(())
    /// ```
    pub fn credentials(
        mut self,
        provider: impl Fn(
            &str,
        )
            -> std::result::Result<Credentials, Box<dyn std::error::Error + Send + Sync>>
        + Send
        + Sync
        + 'static,
    ) -> Builder {
        self.login = Some(Login::Provider(Arc::new(provider)));
        self
    }

    /// Has connections log in with the password in a file, as secrets are mounted. The end of its
    /// line does not count. Default: none; a node whose URL contains a password keeps that. The URL
    /// names the user, as in `redis://alice@10.0.0.1`. Replaces an earlier one and
    /// [`credentials`](Builder::credentials).
    ///
    /// The file is read before each connection, and once a second while the client exists: where it
    /// has another password, open connections log in anew. A symbolic link that is changed counts.
    /// A file that cannot be used changes nothing, and is an
    /// [event](crate::event::Event::CredentialsFailed). [`build`](Builder::build) fails if it
    /// cannot be used by then. A relative path is one from the present directory, each time.
    pub fn password_file(mut self, path: impl Into<std::path::PathBuf>) -> Builder {
        self.login = Some(Login::File(path.into()));
        self
    }

    /// Declares whether all nodes keep every write that they have confirmed, through restarts and
    /// crashes: `appendonly yes` *and* `appendfsync always`, on a disk that keeps what it confirms,
    /// without fail-over to a replica; or a service whose fail-over loses none of them, as AWS
    /// MemoryDB. Default: no. `?durable=` in the URL of a node overrides it. [Durable
    /// nodes](crate::docs::operations#durable-nodes) lists which deployments are durable, and what
    /// one or several durable nodes guarantee.
    ///
    /// The votes of a durable node count at once after a restart, for any
    /// [`RestartPolicy`](crate::RestartPolicy). A node whose `INFO` contains `aof_enabled:0`
    /// contradicts its declaration: it is not durable then, nor is the process after it, and the
    /// observer receives [an event](crate::event::Event::NodeNotDurable). Nothing else can be
    /// checked, as `INFO` does not show `appendfsync`: **with a node that is wrongly declared
    /// durable, two clients may hold a lock at once.**
    ///
    /// ```
    /// use quorumlock::Redlock;
    ///
    /// let urls = ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3?durable=false"];
    /// let redlock = Redlock::builder().nodes(urls).durable(true).build()?;
    /// let durable: Vec<bool> = redlock.nodes()?.iter().map(|node| node.is_durable()).collect();
    /// assert_eq!(durable, [true, true, false]);
    /// # Ok::<(), quorumlock::Error>(())
    /// ```
    pub fn durable(mut self, durable: bool) -> Builder {
        self.settings.durable = durable;
        self
    }

    /// What is put before a resource's name to make its key. Default: nothing, so that every other
    /// Redlock client that names the same nodes and uses the same key excludes this one and is
    /// excluded by it.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Builder {
        self.settings.prefix = prefix.into();
        self
    }

    /// How long each node has to answer one attempt, and no attempt takes longer, with three
    /// exceptions. One that has to connect to nodes first, because fewer than a quorum are
    /// connected, has the same time again for connections and handshakes; an attempt on a
    /// [fenced](crate::Mutex::fenced) lock may need a second round trip, and one on a
    /// [permit](crate::kind::Slot) two more. Default: 100 ms. At least 1 ms.
    ///
    /// It must be longer than the round trip to the farthest node of the nearest quorum: to a node
    /// farther away than that, no attempt succeeds. Keep it a small part of the times to live: what
    /// an attempt takes is missing from the lease.
    pub fn node_timeout(mut self, timeout: Duration) -> Builder {
        self.settings.node_timeout = timeout;
        self
    }

    /// The part of a time to live by which clocks of servers and clients may disagree. Default:
    /// 0.01. At least 0, less than 1. A lease is shorter than its time to live by this part and 2
    /// ms (Redlock's clock drift).
    pub fn drift_factor(mut self, factor: f64) -> Builder {
        self.settings.drift_factor = factor;
        self
    }

    /// The shortest and the longest delay between two attempts of a waiting thread, if nothing ends
    /// it early. Default: 2 ms and 250 ms. Delays are random, and grow while the lock stays held;
    /// at once, where a [release](Builder::release_notifications) would be heard of. The shortest
    /// is more than zero.
    pub fn retry_delay(mut self, shortest: Duration, longest: Duration) -> Builder {
        self.settings.retry_min = shortest;
        self.settings.retry_max = longest;
        self
    }

    /// For how long [`Mutex::lock`](crate::Mutex::lock) and
    /// [`Wait::unlimited`](crate::Wait::unlimited) go on when no quorum of nodes answers. Default:
    /// 3 s. Waits with a limit of their own go on until that, unless so many nodes have
    /// [permanent](crate::Cause::is_permanent) faults for this time that no quorum is possible.
    pub fn unavailable_after(mut self, time: Duration) -> Builder {
        self.settings.unavailable_after = time;
        self
    }

    /// The time to live of locks that name none by [`Mutex::ttl`](crate::Mutex::ttl). Default: 10
    /// s, or [`max_ttl`](Builder::max_ttl) if that is shorter. One that is longer than `max_ttl` is
    /// refused.
    pub fn ttl(mut self, ttl: Duration) -> Builder {
        self.settings.ttl = Some(ttl);
        self
    }

    /// The longest time to live that a lock may ask for. Default: 60 s. At least 1 ms, at most 366
    /// days.
    ///
    /// **This is also how long a restarted node does not count**
    /// ([`restart_policy`](Builder::restart_policy)), so all clients of the nodes must set the
    /// same. A lock with a longer time to live fails at its first use, as
    /// [`Config`](crate::ErrorKind::Config). Work that takes longer needs no longer time to live: a
    /// [`Watchdog`](crate::Watchdog) extends its lock.
    pub fn max_ttl(mut self, ttl: Duration) -> Builder {
        self.settings.max_ttl = ttl;
        self
    }

    /// What is done about nodes that were restarted and may have forgotten locks. Default:
    /// [`RestartPolicy::Observed`].
    ///
    /// By default a node that has lost its keys does not count until [`max_ttl`](Builder::max_ttl)
    /// has passed, 60 s unless it is set. While a majority of nodes does not count, nothing can be
    /// locked. Nodes that write every change to disk can be declared [`durable`](Builder::durable):
    /// they count at once.
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
    pub fn restart_policy(mut self, policy: RestartPolicy) -> Builder {
        self.settings.restart_policy = policy;
        self
    }

    /// For how long a thread that is alone with its client polls for its answers without sleeping,
    /// before it sleeps. Zero is not at all, and 10 ms the most. Default: 100 µs.
    ///
    /// Servers that are near may answer sooner than a thread can be put to sleep and woken. Both
    /// ways are tried now and then, and the busy one is used only where it is faster: not where it
    /// takes the processor that a server needs, not when answers take longer, and never while
    /// several threads use the client. On a machine whose processors are all busy with other
    /// programs, switch it off.
    pub fn spin(mut self, time: Duration) -> Builder {
        self.settings.spin = time;
        self
    }

    /// Whether waiters are woken when another program releases the lock. Default: yes (rules 8).
    ///
    /// A call that waits has an entry in the queue of the lock on each node, and a release tells
    /// the call that is the first there, on the client's own channel: `quorumlock:` and 16 digits.
    /// The client subscribes to it when a call first waits, on one more connection to each node,
    /// which the first call a minute after the last wait closes. A message ends a wait early and
    /// nothing else: where messages are refused or lost, waits end by
    /// [`retry_delay`](Builder::retry_delay). While they arrive, a waiter asks the servers seldom.
    ///
    /// With `false`, calls of this client have no entry and are not told: they ask by
    /// `retry_delay`, take no turn among other programs, and [`fair`](crate::Mutex::fair) locks are
    /// an error. Its releases still tell others. A user with an access control list needs `+publish
    /// +subscribe &quorumlock:*`; without them the observer receives [one
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
    pub fn release_notifications(mut self, release_notifications: bool) -> Builder {
        self.settings.release_notifications = release_notifications;
        self
    }

    /// Calls `observer` with each [event](crate::event) of the locks and nodes of the client.
    /// Default: none. Each further call adds an observer. [The module](crate::event) lists when and
    /// on which thread it is called.
    pub fn observer(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Builder {
        self.observers.push(Arc::new(observer));
        self
    }

    /// The roots that certificates of `rediss://` nodes are checked against, and a client
    /// certificate. Default: the roots of the system with the feature `tls-native-roots`, otherwise
    /// none. See [`Tls`](crate::Tls).
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Builder {
        self.tls = tls;
        self
    }

    /// Adds to what is set by [`tls`](Builder::tls).
    #[cfg(feature = "tls")]
    pub(crate) fn change_tls(mut self, change: impl FnOnce(Tls) -> Tls) -> Builder {
        self.tls = change(std::mem::take(&mut self.tls));
        self
    }

    /// Counts what the client does, for a metrics server: see [`Counters`]. Default: nothing is
    /// counted. Replaces earlier counters. It needs no observer.
    pub fn counters(mut self, counters: &Counters) -> Builder {
        self.counters = Some(counters.clone());
        self
    }

    /// What this client calls itself, for the operator and for other programs: the label is in
    /// the values of its keys, and [`Mutex::holder`](crate::Mutex::holder) shows it. Default: none.
    ///
    /// 1 to 64 visible ASCII characters, such as `billing@host7/4711`, or
    /// [`host_label`](crate::host_label); any other label is an error of [`build`](Builder::build).
    /// **All that can read the keys can read it.** The value of a key becomes the owner token, a
    /// space and the label. Other libraries compare the whole value, so that such a lock excludes
    /// theirs, and theirs excludes it, as before. Without a label, no byte more is sent.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// use quorumlock::{ErrorKind, Redlock};
    ///
    /// let redlock = Redlock::builder().node(node.url()).label("billing@host7/4711").build()?;
    /// let mutex = redlock.mutex("orders/42");
    /// let guard = mutex.lock()?;
    /// let holder = mutex.holder()?.expect("it is held");
    /// assert_eq!(holder.label(), Some("billing@host7/4711"));
    ///
    /// let refused = Redlock::builder().node(node.url()).label("two words").build();
    /// assert_eq!(refused.unwrap_err().kind(), ErrorKind::Config);
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn label(mut self, label: impl Into<String>) -> Builder {
        self.settings.label = HolderLabel::new(label.into().as_bytes());
        self
    }

    /// How long nodes keep the key of a [fenced](crate::Mutex::fenced) lock after the lock was last
    /// acquired, extended or released, and the key of a read-write lock after a fenced writer
    /// acquired or extended the lock. Default: 24 h. Never less than [`max_ttl`](Builder::max_ttl)
    /// and two minutes more, whatever is set. At most 366 days. Give all clients the same: the last
    /// one that uses a fenced lock determines how long its key stays.
    ///
    /// The key holds the last fence. Without it, the wall clocks of client and server determine the
    /// next one, which is greater unless they disagree, or have been set back, by more than the
    /// time that the lock was not used for. Two minutes are what a fence can be ahead of a server's
    /// clock, and a minute for the clocks of servers and clients among themselves.
    ///
    /// A read-write lock has the last number in its key. Nodes keep it from when a fenced writer
    /// acquired or extended the lock, for the longest time that a client asked for.
    pub fn fence_retention(mut self, time: Duration) -> Builder {
        self.settings.fence_retention = time;
        self
    }

    /// How long a program that is first in the queue of a lock may let the others wait. Default: 1
    /// s. From 1 ms to an hour.
    ///
    /// A program that has ended costs the others nothing: its entry is removed when it is first.
    /// One that is stopped, or hangs, cannot be told from one that is about to ask. A call that has
    /// seen it in front for so long, while the lock was free or changed hands, has all entries in
    /// front of its own removed. Those that live store theirs again, at the same place, within a
    /// round trip.
    ///
    /// A call that waits and gets no message asks the nodes once in this time, 20 s at most, and
    /// one millisecond later for each call in front of it.
    pub fn place_lease(mut self, time: Duration) -> Builder {
        self.settings.place_lease = time;
        self
    }

    /// The settings as they are now, with the defaults of those that were not set.
    #[cfg(feature = "cli")]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Builds the client. This connects to no node, and does not fail because one is down.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config): no node, too many, one named twice, a URL that cannot
    /// be used, or a setting out of range; the message names it.
    /// [`Unavailable`](crate::ErrorKind::Unavailable): the process has no descriptors or memory
    /// left.
    pub fn build(self) -> Result<Redlock> {
        self.build_on(Arc::new(SystemClock))
    }
}

/// Shows the settings without the nodes, whose URLs hold passwords.
impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("nodes", &self.nodes.len())
            .field("prefix", &self.settings.prefix)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
