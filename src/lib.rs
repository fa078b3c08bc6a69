//! A synchronous, blocking Redlock: one distributed lock over N independent Redis or Valkey masters.
//!
//! Threads of any number of programs take turns with a resource. To lock is to ask all nodes at once; a majority must
//! agree, and nobody waits for the others. A lock is a lease: it ends when its guard is dropped, or with its time to live,
//! whatever became of its holder; it can be extended while it is held. There is no async runtime, and no thread of the
//! library's own between the caller and the servers.
//!
//! ```
//! use quorumlock::{Redlock, Release};
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
//!         // Ours, and for how long. Look again before every step that must not be done twice.
//!         assert!(guard.remaining() > Duration::from_secs(4));
//!         // Nobody else gets it meanwhile, in this program or another.
//!         assert!(order.try_lock()?.is_none());
//!         // Dropping the guard would do. This also tells whether the lock was ours to the end.
//!         assert_eq!(guard.unlock()?, Release::Released);
//!     }
//!     None => println!("somebody else had it for the whole second"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it promises
//!
//! * Two guards of one resource are never valid at the same time, as long as the three conditions below hold. A guard is
//!   valid while [`remaining`](MutexGuard::remaining) is more than zero.
//! * A guard that you are given was valid when it was given: the time that the answers took is taken off.
//! * Time is told by a clock that goes on while the machine is suspended.
//! * A hung or dead minority of nodes keeps nobody from locking, and nobody waits for it. An attempt takes no longer than
//!   the node timeout (one more where connections have to be made first, and one more for a fenced lock), a wait no longer
//!   than its limit.
//! * "Held by somebody else" is `Ok(None)`. "Could not find out" is an [`Error`], with the cause at every node that failed.
//! * A lost, cancelled or failed attempt is undone on every node it may have reached. Where that is impossible, the key
//!   goes with its time to live.
//! * No password, owner token, full URL or text from a server is ever part of an error or of `Debug` output. The one way out
//!   for a token is [`SecretText`].
//!
//! The conditions: the clocks of clients and servers run equally fast, but for
//! [`drift_factor`](Builder::drift_factor); every client names the same nodes, and each is an independent master; no node
//! forgets a key before its time, by eviction, `FLUSHALL`, or fail-over, and none that a client does not know to have been
//! [restarted](#restarted-nodes). And for a lock that went to another process as text: it was attached once, and the wall
//! clocks agree.
//!
//! [What we tested, and what we did not](docs), with figures and commands, is on a page of its own.
//!
//! # What it does not promise
//!
//! * **The lease may end while you work.** No client can stop your thread when its time is up. If something is lost when
//!   two holders work at once, do not rely on any lease, this or another: let the resource itself refuse what comes too
//!   late, by the number that a [`fenced`](Mutex::fenced) lock gives. Use a lock alone to save work, not to save data.
//! * Order among programs. Threads that share a client queue up, first come, first served. Programs that wait for a lock
//!   [are told](Builder::wake_ups) of its release and take turns as a rule, by what they hear; nothing enforces it.
//!
//! Not in this version: fair or reentrant locks; TLS.
//!
//! # Restarted nodes
//!
//! A node that comes back empty has forgotten its locks. While one of them is held, it might help to give it away a second
//! time. So a client does not believe a node that was restarted since it last met it (another `run_id`): until
//! [`max_ttl`](Builder::max_ttl) has passed its votes are the fault [`Quarantined`](Cause::Quarantined), for attempts and for
//! extensions. It is asked all the same, and gets its releases. `max_ttl` is 60 s by default: for so long, a
//! single node that was restarted locks nothing, nor do three nodes of which two were restarted. No lock can ask for a longer
//! time to live than `max_ttl`; a [`Watchdog`] extends locks of longer work. All clients of the nodes must set the same
//! `max_ttl`. Nodes that write every change to disk (`appendonly yes`, `appendfsync always`) can be declared
//! [`durable`](Node::durable): then they count at once.
//!
//! What this guards against: a restart, a crash, a move of the address to another server, and a master that was a replica
//! meanwhile. The latter shows in `master_replid` and `master_replid2` of `INFO replication`, which a client reads on each
//! connection, and on one in use before a vote that comes more than a second after it last read them. What it cannot see:
//! `FLUSHALL`, `DEBUG RELOAD` and eviction, which keep the process; the restart of a node that withholds `INFO`; any restart
//! before the client met the node; and a time as a replica that lies within one second of use (until the next look), or
//! whose trace the node has dropped (`repl-backlog-ttl` shorter than `max_ttl`, `DEBUG CHANGE-REPL-ID`, a first replica after a
//! synchronisation that did not finish). Against restarts before the client met the node there is [`RestartGuard::Strict`]:
//! a node that is met for the first time must have been up for `max_ttl`, by its own clock. Otherwise a client that was just
//! built believes every node. That is also why building a client anew ends every quarantine: the long wait of one that was
//! idle through harmless restarts, and the protection.
//!
//! [`Redlock::nodes`] tells which nodes are in quarantine and for how long, and the [`Observer`] when it begins and ends.
//!
//! # After a fork
//!
//! A client, and all that was made with it, belongs to the process that built it. In a child made by `fork`, every
//! operation on what was there before returns an error of kind [`Forked`](ErrorKind::Forked) at once;
//! [`remaining`](MutexGuard::remaining) is zero; a guard that is dropped there releases nothing, whether the child exits or
//! lives on. Nothing reaches the parent's connections, and its locks and their watchdog go on as if there was no child. Let
//! the child build a client of its own.
//!
//! A child that drops what it has inherited closes its copies of the connections, unless threads of the parent were using
//! them in the moment of the fork. Until then, or until it ends or goes on to another program, they stay open at the nodes
//! although the parent may have closed them. What the handles share is left in memory.
//!
//! The child is noticed by a handler that `fork` calls (`pthread_atfork`). Children that go on to another program at once
//! need none: [`std::process::Command`], `posix_spawn`, `vfork`. A process that is cloned behind the C library's back, by a
//! bare `clone` or by `_Fork`, is not noticed, and must not touch what it has inherited.
//!
//! # In reading order
//!
//! 1. [`Builder`] names the nodes and settings, and builds a [`Redlock`], the client. Clones share its connections.
//! 2. [`Mutex`] is the lock of one resource. [`lock`](Mutex::lock), [`try_lock`](Mutex::try_lock),
//!    [`lock_timeout`](Mutex::lock_timeout), [`lock_cancellable`](Mutex::lock_cancellable) and
//!    [`lock_with`](Mutex::lock_with) take it.
//! 3. [`Wait`] says how long to wait, [`CancelHandle`] ends waits from another thread.
//! 4. [`MutexGuard`] is the lock, taken. Dropping it lets go; [`unlock`](MutexGuard::unlock) also says how that went, by a
//!    [`Release`]. [`extend`](MutexGuard::extend) makes it last longer, and [`Extension`] says what came of it.
//!    [`detach`](MutexGuard::detach) makes a [`Lease`] of it, which goes on in another thread or process:
//!    [`attach`](Redlock::attach), or as [`SecretText`].
//! 5. [`Watchdog`] extends locks automatically; [`lost`](MutexGuard::lost) and [`on_lost`](MutexGuard::on_lost) tell in time
//!    when one is lost all the same.
//! 6. [`Mutex::fenced`] makes a [`FencedMutex`], whose [`FencedGuard`] has a [`FencingToken`]. By it a [`FenceGuard`] or a
//!    database refuses writes that come too late.
//! 7. [`Error`] has an [`ErrorKind`] for the program, and a [`NodeFault`] for each node that failed: how far it had come
//!    ([`Phase`]), and what went wrong ([`Cause`]).
//! 8. [`Observer`] is told what happens, for logs, metrics and alarms: also of nodes, and of releases that nobody waits for.
//!    [`nodes`](Redlock::nodes) tells how each node looks now: its [`NodeState`], server, run id, role and last fault.
#![cfg_attr(
    feature = "embedded",
    doc = "9. [`embedded`] is a node inside your own process, for first runs and for the tests of your own code."
)]
//!
//! # Features
//!
//! * `embedded`, off by default: the module of that name, an in-process node for first runs and tests. It brings no
//!   further dependency. It is not for production.
//! * `capi`, off by default, and not for Rust programs: the functions of `src/ffi/quorumlock.h`, for a shared or static
//!   library that programs in C link. README.md says how to build one.

#[doc(hidden)]
pub mod algorithm;
pub mod docs;
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

pub use algorithm::fault::{Cause, Phase};
pub use algorithm::fence::FencingToken;
pub use algorithm::node::NodeId;
pub use algorithm::protocol_error::ProtocolError;
pub use algorithm::quarantine::RestartGuard;
pub use api::builder::Builder;
pub use api::fence_checker::{FenceGuard, StaleFence};
pub use api::guard::MutexGuard;
pub use api::lease::{Lease, SecretText};
pub use api::mutex::Mutex;
pub use api::mutex::fenced_mutex::{FencedGuard, FencedMutex};
pub use api::node::Node;
pub use api::node_status::{NodeState, NodeStatus};
pub use api::redlock::Redlock;
pub use api::wait::{CancelHandle, Wait};
pub use api::watchdog::Watchdog;
/// The receiving half of a channel of the crate `crossbeam-channel`, as [`MutexGuard::lost`] gives it and
/// [`Wait::cancelled_by_channel`] takes it.
#[doc(no_inline)]
pub use crossbeam_channel::Receiver;
pub use events::error::{Error, ErrorKind, NodeFault, Result};
pub use events::event::{
    Acquired, AttemptLost, EventsDropped, Extended, ExtensionFailed, KeyWithoutExpiry, LossReason, Lost, NodeDown,
    NodeMayEvict, NodeNotDurable, NodeQuarantined, NodeUp, QuarantineEnded, ReleaseFailed, Released, Repaired,
    WakeUpsRefused,
};
pub use events::extension::Extension;
pub use events::observer::Observer;
pub use events::release::Release;
pub use protocol::server_info::Role;

#[doc(hidden)]
pub use algorithm::time::Human;

#[doc(hidden)]
pub use protocol::endpoint::{Address, Endpoint, EndpointError};

/// The code in README.md, which the documentation tests compile and run.
#[cfg(all(doctest, feature = "embedded"))]
#[doc = include_str!("../README.md")]
struct Readme;
