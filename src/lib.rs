//! A synchronous, blocking Redlock: one distributed lock over N independent Redis or Valkey
//! masters.
//!
//! Programs that share a resource ask all nodes for its lock at once, and a majority decides. A
//! lock is a lease: it ends when its guard is dropped, or with its time to live, whatever happens
//! to its holder; it can be extended while it is held. There is no async runtime, and no I/O thread
//! between the caller and the servers.
//!
//! ```
//! use quorumlock::{Redlock, ReleaseOutcome};
//! use std::time::Duration;
//!
//! # let nodes = (0..5).map(|_| quorumlock::embedded::EmbeddedNode::start()).collect::<Result<Vec<_>, _>>()?;
//! # let urls: Vec<String> = nodes.iter().map(|node| node.url()).collect();
//! // Five URLs such as redis://:password@10.0.0.1:6379. One client for the whole program.
//! let redlock = Redlock::builder().nodes(urls).build()?;
//!
//! let order = redlock.mutex("orders/42").ttl(Duration::from_secs(5));
//! match order.lock_timeout(Duration::from_secs(1))? {
//!     Some(guard) => {
//!         // Held, and for how long. Check again before every step that must not be done twice.
//!         assert!(guard.remaining() > Duration::from_secs(4));
//!         // No other guard is given out meanwhile, in this program or another.
//!         assert!(order.try_lock()?.is_none());
//!         // Dropping the guard releases too. This also returns whether the lease lasted until then.
//!         assert_eq!(guard.unlock()?, ReleaseOutcome::Released);
//!     }
//!     None => println!("another client held the lock for the whole second"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
#![doc = include_str!("docs/images/one_lock.svg")]
//!
//! # What it promises
//!
//! * Two guards of one lock are never valid at the same time, as long as the conditions below hold;
//!   of a read-write lock, a writer's and another one never are. A guard is valid while
//!   [`remaining`](MutexGuard::remaining) is more than zero.
//! * A guard is valid when it is returned: the time that the answers took is taken off.
//! * Leases go by a clock that continues while the machine is suspended.
//! * A hung or dead minority of nodes delays no lock. An attempt takes no longer than the node
//!   timeout (one more where connections have to be made first, one more for a fenced lock, two for
//!   a permit), and a wait no longer than its limit.
//! * "Held by another client" is `Ok(None)`. "Could not be found out" is an [`Error`], with the
//!   cause at every node that failed.
//! * A lost, cancelled or failed attempt is undone on every node that it may have reached. Where
//!   that is impossible, the key ends with its time to live.
//! * No error and no `Debug` output contains a password, an owner token, a full URL or text from a
//!   server. Only [`SecretText`] shows a token.
//!
//! The conditions: the clocks of clients and servers run equally fast, within
//! [`drift_factor`](Builder::drift_factor); every client names the same nodes, and each is an
//! independent master; no node forgets a key before its time, by eviction, `FLUSHALL` or fail-over,
//! nor by a [restart](docs::operations#restarted-nodes) that the client cannot detect. For a lock
//! that went to another process as text: the text was attached once, and the wall clocks agree.
//!
//! The [rules](docs::rules) state all of this by number, with the tests that show each.
//!
//! # What it does not promise
//!
//! * **The lease may end during the work.** No client can stop a thread when its time is over. If
//!   two holders at once would lose data, do not rely on a lease, this or another: let the resource
//!   itself refuse late writes, by the number of a [`fenced`](Mutex::fenced) lock. A lock alone
//!   saves work, not data.
//! * Order among all calls. Threads and programs that wait are [served in
//!   turn](docs::operations#waiting). A call that has not waited yet may come first, except with a
//!   [`fair`](Mutex::fair) lock.
//!
//! # After a fork
//!
//! A client, and all that was made with it, belongs to the process that built it. In a child made
//! by `fork`, every operation on an inherited handle returns an error of kind
//! [`Forked`](ErrorKind::Forked) at once; [`remaining`](MutexGuard::remaining) is zero; dropping a
//! guard there releases nothing. Nothing reaches the parent's connections, and its locks and their
//! watchdog continue. Let the child build a client of its own.
//!
//! A child that drops what it has inherited closes its copies of the connections, unless threads of
//! the parent were using them at the moment of the fork. Until then, or until it ends or executes
//! another program, they stay open at the nodes although the parent may have closed them. The
//! memory that the handles share is not freed.
//!
//! A handler that `fork` calls (`pthread_atfork`) detects the child. Children that execute another
//! program at once need none: [`std::process::Command`], `posix_spawn`, `vfork`. A process that is
//! cloned without the C library, by a bare `clone` or by `_Fork`, is not detected, and must not
//! touch what it has inherited.
//!
//! # In reading order
//!
//! 1. [`Builder`] has the nodes and settings, and builds a [`Redlock`], the client. Clones share
//!    its connections.
//! 2. [`Mutex`] is a lock by name. [`lock`](Mutex::lock), [`try_lock`](Mutex::try_lock),
//!    [`lock_timeout`](Mutex::lock_timeout) and [`lock_with`](Mutex::lock_with) take it, whatever
//!    its kind.
//! 3. [`Wait`] is the limit of a wait, and [`CancelHandle`] ends waits from another thread.
//!    [`shutdown`](Redlock::shutdown) ends all waits of a client when its program is told to end,
//!    and waits for the guards.
//! 4. [`MutexGuard`] is a held lock. Dropping it releases; [`unlock`](MutexGuard::unlock) also
//!    returns the outcome, a [`ReleaseOutcome`]. [`extend`](MutexGuard::extend) extends the lease,
//!    with an [`ExtendOutcome`] as its outcome. [`detach`](MutexGuard::detach) makes a [`Lease`] of
//!    it, for another thread or process: [`attach`](Redlock::attach), or as [`SecretText`].
//! 5. [`Watchdog`] extends locks automatically; [`lost`](MutexGuard::lost) and
//!    [`on_lost`](MutexGuard::on_lost) report in time that a lock is lost.
//! 6. The [kind] of a lock is the type parameter of mutex, guard and lease, and chosen where the
//!    lock is named. [`fenced`](Mutex::fenced) locks have a [`FencingToken`], by which a
//!    [`FenceChecker`] or a database refuses late writes; [`fair`](Mutex::fair) ones serve programs
//!    in the order in which they began to wait.
//! 7. [`reentrant`](Mutex::reentrant) locks may be locked again by their owner: a thread, or an
//!    [`Owner`].
//! 8. [`Redlock::read_mutex`] and [`Redlock::write_mutex`] are the two sides of a lock of many
//!    readers or one writer.
//! 9. [`Redlock::mutex_set`] is the lock of several names, and [`Redlock::semaphore`] one of which
//!    at most k are held at once. Code for any kind of lock takes `Mutex<K>` or `MutexGuard<K>`
//!    with `K:` [`Kind`](kind::Kind).
//! 10. [`Error`] has an [`ErrorKind`] for the program, and a [`NodeFault`] for each node that
//!     failed, with its [`Phase`] and its [`Cause`].
//! 11. [`Builder::label`] names a client, for example by its [`host_label`], and [`Mutex::holder`]
//!     returns the [`Holder`] of a lock.
//! 12. [`Builder::observer`] takes a closure that receives each [`event`], for logs and alarms:
//!     also events of nodes, and of releases that no call waits for. [`Counters`] count what a
//!     client does, for Prometheus. [`nodes`](Redlock::nodes) returns the last known state of each
//!     node: its [`NodeState`], server, run id and last fault.
#![cfg_attr(
    feature = "embedded",
    doc = "13. [`embedded`] is a node inside the process, for first runs and for the tests of your own code."
)]
//!
//! # The manual
//!
//! * [Choosing](docs::choosing): when to use which lock, what each costs, and what it does not
//!   promise.
//! * [Operations](docs::operations): nodes, access control, restarts, settings, sizing, errors.
//! * [TLS](docs::tls): certificates, settings of servers, faults.
//! * [The command line](docs::command_line): programs under a lock, without a line of Rust; what
//!   the nodes hold.
//! * [From another library](docs::migrating): redlock-py, redsync, rslock, Redisson, ShedLock.
//! * [Recipes](docs::recipes): cron, workers, pods, SQL, tokio, metrics, a compose file, managed
//!   Redis, and the debate about Redlock.
//! * [Compatibility](docs::compatibility): versions side by side, changes of the interface, and
//!   support.
//! * [Rules](docs::rules), [messages](docs::messages), [architecture](docs::architecture), and
//!   [what was tested](docs::testing) and what was not.
//!
//! # Features
//!
//! * `embedded`, off by default: the module of that name, a node inside the process for first runs
//!   and tests. It brings no further dependency. It is not for production.
//! * `embedded-tls`, off by default: `embedded` and `tls`, and embedded nodes with TLS. It brings
//!   rcgen, which makes their certificates.
//! * `tls`, off by default: `rediss://` URLs and [`Tls`](docs::tls). It brings rustls with ring.
//! * `tls-native-roots`, off by default: `tls`, with the root certificates of the system where the
//!   program names none.
//! * `capi`, off by default, and not for Rust programs: the functions of `src/ffi/quorumlock.h`,
//!   for a shared or static library that C programs link, [built](docs::operations#the-c-library)
//!   by one command.
//! * `log`, off by default: `event::log`, an observer that writes each event as one line to the
//!   crate `log`.
//! * `metrics`, off by default: `Counters::recorder`, an observer that updates the recorder of the
//!   crate `metrics`. [`Counters`] and their text for Prometheus need no feature.
//! * `tracing`, off by default: [spans](docs::operations#spans) of waits and holds, by the crate
//!   `tracing`, and through it for OpenTelemetry.
//! * `cli`, off by default: the program [`quorumlock`](docs::command_line), which `cargo install
//!   quorumlock --features cli --profile cli` builds. It brings clap, and adds to the library what
//!   that needs: `Builder::open` asks nodes for what is no lock, and `Builder::settings` and
//!   `Mutex::keys` show what a client goes by.

// On docs.rs each item of a feature names it.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[doc(hidden)]
pub mod algorithm;
pub mod docs;
#[doc(hidden)]
pub mod fault;
#[doc(hidden)]
pub mod protocol;

#[cfg(feature = "embedded")]
pub mod embedded;

#[cfg(feature = "capi")]
mod ffi;

mod api;
mod engine;
mod events;
mod os;

pub use algorithm::fence::FencingToken;
pub use algorithm::incarnation::summary::NodeNote;
pub use algorithm::quarantine::RestartPolicy;
pub use api::aliases::{
    FencedGuard, FencedMutex, FencedRwWriteGuard, FencedRwWriteMutex, MutexSet, Permit,
    ReentrantGuard, ReentrantMutex, RwReadGuard, RwReadMutex, RwWriteGuard, RwWriteMutex,
    Semaphore, SetGuard,
};
pub use api::builder::Builder;
pub use api::builder::label::host_label;
#[cfg(feature = "cli")]
pub use api::builder::node_stream::NodeStream;
pub use api::fence_checker::{FenceChecker, StaleFence};
pub use api::guard::MutexGuard;
pub use api::kind;
pub use api::lease::{Lease, SecretText};
pub use api::lock::holder::Holder;
pub use api::mutex::Mutex;
pub use api::node_status::{Latency, NodeStatus};
pub use api::owner::Owner;
pub use api::redlock::Redlock;
#[cfg(feature = "cli")]
pub use api::settings::Settings;
pub use api::shutdown::ShutdownOutcome;
#[cfg(feature = "tls")]
pub use api::tls::Tls;
pub use api::wait::{CancelHandle, Wait};
pub use api::watchdog::Watchdog;
/// The crate whose channels [`MutexGuard::lost`] returns and [`Wait::cancelled_by_channel`] takes,
/// for a `select!` of the right version.
#[doc(no_inline)]
pub use crossbeam_channel;
pub use engine::nodes::status::NodeState;
pub use events::error::{Error, ErrorKind, NodeFault, Result};
pub use events::event;
pub use events::extension::ExtendOutcome;
pub use events::metrics::counters::Counters;
pub use events::release::ReleaseOutcome;
pub use fault::credentials_error::CredentialsError;
pub use fault::server_error::ServerError;
pub use fault::tls_error::TlsError;
pub use fault::{Cause, Phase};
pub use protocol::credentials::Credentials;

/// The code in README.md, which the documentation tests compile and run.
#[cfg(all(doctest, feature = "embedded"))]
#[doc = include_str!("../README.md")]
struct Readme;
