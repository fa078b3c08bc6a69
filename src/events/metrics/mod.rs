//! What a client counts, for a metrics server: [`Counters`].
//!
//! ```
//! use quorumlock::Redlock;
//! use quorumlock::metrics::{Counters, by_first_segment};
//!
//! # let node = quorumlock::embedded::EmbeddedNode::start()?;
//! let counters = Counters::by_class(by_first_segment('/'));
//! let redlock = Redlock::builder().node(node.url()).counters(&counters).build()?;
//! let _ = redlock.mutex("orders/42").lock()?.unlock()?;
//!
//! // What the program answers to GET /metrics.
//! let mut text = String::new();
//! counters.write_prometheus(&mut text)?;
//! assert!(text.contains("quorumlock_wait_seconds_count{class=\"orders\",outcome=\"acquired\"} 1\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Series
//!
//! | Series | Type | Meaning |
//! |---|---|---|
//! | `quorumlock_wait_seconds{class,outcome}` | histogram | Time from the beginning of a call for a lock to its end. `outcome`: `acquired`, or the [reason](crate::event::GaveUpReason) why the call gave up: `cancelled`, `failed`, `held`, `timed_out`, `too_late`, `unavailable` |
//! | `quorumlock_hold_seconds{class}` | histogram | Time for which a guard held its lock, counted when it is released. Not counted for a guard that is [detached](crate::MutexGuard::detach) |
//! | `quorumlock_attempts_total{class,result}` | counter | Attempts on the nodes: `won`, `held`, `too_late`, `unavailable` |
//! | `quorumlock_waiting{class}` | gauge | Calls that wait now |
//! | `quorumlock_held{class}` | gauge | Guards that exist now: of locks that were acquired or attached, and not released or detached |
//! | `quorumlock_extensions_total{class,result,automatic}` | counter | Extensions: `extended`, `failed`, `lost`. `automatic`: `true` for those by a [`Watchdog`](crate::Watchdog) |
//! | `quorumlock_lost_total{class,reason}` | counter | Locks that were lost: `key_gone`, `lease_ended` |
//! | `quorumlock_releases_total{class,outcome,dropped}` | counter | Releases: `released`, `expired`, `unconfirmed`. `dropped`: `true` for guards that were dropped, whose release is counted when it is answered, or after the node timeout |
//! | `quorumlock_node_up{node}` | gauge | 1 if the node answers, otherwise 0 |
//! | `quorumlock_node_votes{node}` | gauge | 1 if the votes of the node count, otherwise 0 |
//! | `quorumlock_node_quarantine_seconds{node}` | gauge | Time until the votes of the node count again; 0 if it is not in quarantine |
//! | `quorumlock_node_mismatch{node,of}` | gauge | 1 if what the node remembers does not fit the client, otherwise 0: as [`NodeStatus::mismatches`](crate::NodeStatus::mismatches). `of`: another `max_ttl`, another number of `nodes`, or `rights` to the key that the user lacks |
//! | `quorumlock_node_reply_seconds{node}` | histogram | Time from an operation on a lock to the reply of the node, counted by the clients that there are |
//! | `quorumlock_node_faults_total{node,phase,cause}` | counter | Votes of the node that were lost to a fault, counted by the clients that there are: as [`NodeStatus::faults`](crate::NodeStatus::faults) |
//! | `quorumlock_nodes` | gauge | Number of nodes |
//! | `quorumlock_quorum` | gauge | Number of nodes that decide |
//! | `quorumlock_events_dropped_total` | counter | Events that no observer received, because the observers were too slow |
//!
//! All counts are exact. They are made where the thing happens, and not by events: an observer that is too slow, or a
//! call within a callback, changes none of them.

pub(crate) mod class;
pub(crate) mod classes;
pub(crate) mod counters;
pub(crate) mod families;
mod histogram;
pub(crate) mod meter;
pub(crate) mod nodes;
pub(crate) mod text;

pub use counters::{Counters, by_first_segment};

#[cfg(test)]
mod tests;
