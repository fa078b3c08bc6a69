//! The counters that a program has, and the ways to count.

use super::class::{Class, Classes, OTHER};
use super::families::EVENTS_DROPPED;
#[cfg(feature = "metrics")]
use super::families::{HOLDS, WAITS};
use super::nodes::{NodeSource, NodeSources};
#[cfg(feature = "metrics")]
use super::recorded::{self, Recorded};
use super::text::Text;
#[cfg(feature = "metrics")]
use crate::events::event::Event;
use crate::os::caught::caught;
use crate::protocol::key_space;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Counts what clients do: waits, holds, attempts, extensions, losses, releases, and the state of
/// nodes. The argument of [`Builder::counters`](crate::Builder::counters). Clones count together.
///
/// It consists of atomic numbers and fixed buckets, has no thread, and takes no lock and no memory
/// once a class is known.
///
/// The counters of one program are for clients of the same nodes. In a child made by `fork` they
/// are a copy that nothing changes, without nodes; the clients of the child need counters of their
/// own.
///
/// ```
/// use quorumlock::{Counters, Redlock};
///
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// let counters = Counters::by_prefix('/');
/// let redlock = Redlock::builder().node(node.url()).counters(&counters).build()?;
/// let _ = redlock.mutex("orders/42").lock()?.unlock()?;
///
/// // What the program replies to GET /metrics.
/// let text = counters.prometheus_text();
/// assert!(text.contains("quorumlock_wait_seconds_count{class=\"orders\",outcome=\"acquired\"} 1\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Series
///
/// | Series | Type | Meaning |
/// |---|---|---|
/// | `quorumlock_wait_seconds{class,outcome}` | histogram | Time from the beginning of a call for a lock to its end. `outcome`: `acquired`, or the [reason](crate::event::GaveUpReason) why the call gave up: `cancelled`, `failed`, `held`, `timed_out`, `too_late`, `unavailable`, `shut_down` |
/// | `quorumlock_hold_seconds{class}` | histogram | Time for which a guard held its lock, counted when it is released. Not counted for a guard that is [detached](crate::MutexGuard::detach) |
/// | `quorumlock_attempts_total{class,result}` | counter | Attempts on the nodes: `won`, `held`, `too_late`, `unavailable` |
/// | `quorumlock_asked_total{class,because}` | counter | Rounds of calls that waited and acquired the lock: `told`, after a message of the nodes; `unasked`, without one; `challenge`, to challenge the first entry in the queue |
/// | `quorumlock_waiting{class}` | gauge | Calls that wait now |
/// | `quorumlock_held{class}` | gauge | Guards that exist now: of locks that were acquired or attached, and not released or detached |
/// | `quorumlock_extensions_total{class,result,automatic}` | counter | Extensions: `extended`, `failed`, `lost`. `automatic`: `true` for those by a [`Watchdog`](crate::Watchdog) |
/// | `quorumlock_lost_total{class,reason}` | counter | Locks that were lost: `key_gone`, `lease_ended` |
/// | `quorumlock_releases_total{class,outcome,dropped}` | counter | Releases: `released`, `expired`, `unconfirmed`. `dropped`: `true` for guards that were dropped, whose release is counted when it is answered, or after the node timeout |
/// | `quorumlock_node_up{node}` | gauge | 1 if the node answers, otherwise 0 |
/// | `quorumlock_node_votes{node}` | gauge | 1 if the votes of the node count, otherwise 0 |
/// | `quorumlock_node_quarantine_seconds{node}` | gauge | Time until the votes of the node count again; 0 if it is not in quarantine |
/// | `quorumlock_node_mismatch{node,of}` | gauge | 1 if what the node remembers does not fit the client, otherwise 0: as [`NodeStatus::mismatches`](crate::NodeStatus::mismatches). `of`: another `max_ttl`, another number of `nodes`, or `rights` to the key that the user lacks |
/// | `quorumlock_node_reply_seconds{node}` | histogram | Time from an operation on a lock to the reply of the node, counted by the clients that there are |
/// | `quorumlock_node_faults_total{node,phase,cause}` | counter | Votes of the node that were lost to a fault, counted by the clients that there are: as [`NodeStatus::faults`](crate::NodeStatus::faults) |
/// | `quorumlock_nodes` | gauge | Number of nodes |
/// | `quorumlock_quorum` | gauge | Number of nodes that decide |
/// | `quorumlock_events_dropped_total` | counter | Events that no observer received, because the observers were too slow |
///
/// All counts are exact. They do not depend on events: an observer that is too slow, or a call
/// within a callback, changes none of them.
#[derive(Clone)]
pub struct Counters(Arc<Shared>);

struct Shared {
    classify: Box<dyn for<'n> Fn(&'n str) -> &'n str + Send + Sync>,
    classes: Classes,
    events_dropped: AtomicU64,
    nodes: NodeSources,
    #[cfg(feature = "metrics")]
    recorded: Recorded,
}

impl Counters {
    /// Counts all locks together, as the class `all`.
    pub fn new() -> Counters {
        Counters::by_class(|_| "all")
    }

    /// Counts the locks of each class apart. `class` returns the class of the name of a lock: a
    /// part of the name, or a text of the program. It must be quick. For a
    /// [permit](crate::Semaphore) its argument is the name of the semaphore: a `#` with a number is
    /// removed from the end of each name.
    ///
    /// There are at most 256 classes, of at most 128 bytes. What exceeds that, and names for which
    /// `class` panics, are counted as the class `other`: so choose a class that has few values, and
    /// not the name of the lock.
    ///
    /// ```
    /// use quorumlock::Counters;
    ///
    /// let counters = Counters::by_class(|name| if name.starts_with("order") { "orders" } else { "rest" });
    /// # drop(counters);
    /// ```
    pub fn by_class(
        class: impl for<'n> Fn(&'n str) -> &'n str + Send + Sync + 'static,
    ) -> Counters {
        Counters(Arc::new(Shared {
            classify: Box::new(class),
            classes: Classes::new(),
            events_dropped: AtomicU64::new(0),
            nodes: NodeSources::new(),
            #[cfg(feature = "metrics")]
            recorded: Recorded::default(),
        }))
    }

    /// Counts by the part of the name before the first `separator`: `orders/42` as `orders`. A name
    /// without one is a class of its own.
    pub fn by_prefix(separator: char) -> Counters {
        Counters::by_class(move |name| name.split(separator).next().unwrap_or(name))
    }

    /// All series in the Prometheus text format, version 0.0.4 (`Content-Type: text/plain;
    /// version=0.0.4; charset=utf-8`). Asks no node and waits for none.
    ///
    /// Labels are the class, never the name of a lock, and the address of a node. A class has all
    /// of its series, and each histogram all of its buckets, from the first call on: about 150
    /// lines.
    pub fn prometheus_text(&self) -> String {
        let mut text = Text::default();
        text.classes(self.0.classes.iter());
        text.nodes(&self.0.nodes.samples());
        text.single(&EVENTS_DROPPED, self.dropped_so_far());
        text.0
    }

    /// An observer that updates the recorder of the crate `metrics` with each event.
    ///
    /// ```
    /// use quorumlock::{Counters, Redlock};
    ///
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// // After the program has installed its recorder.
    /// let counters = Counters::by_prefix('/');
    /// let redlock = Redlock::builder().node(node.url()).counters(&counters).observer(counters.recorder()).build()?;
    /// # drop(redlock);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The series have the same names, but for buckets, which the recorder has of its own. Each
    /// [event](crate::event) of a lock updates its class, and each event of a node updates the
    /// nodes. [`update_recorder`](Counters::update_recorder) updates all of them; for a recorder
    /// that is read seldom, call it before. Times are recorded with their events, so times of
    /// events that are not reported are missing ([`EventsDropped`](Event::EventsDropped)).
    ///
    /// The recorder must be installed before this is called: it receives nothing of what was
    /// registered before.
    #[cfg(feature = "metrics")]
    pub fn recorder(&self) -> impl Fn(&Event) + Send + Sync + 'static + use<> {
        recorded::describe();
        let counters = self.clone();
        move |event| counters.record(event)
    }

    /// Updates all series of the recorder of the crate `metrics` now.
    #[cfg(feature = "metrics")]
    pub fn update_recorder(&self) {
        for class in self.0.classes.iter() {
            self.0.recorded.update(class);
        }
        self.0.recorded.update_nodes(self.0.nodes.samples());
        Recorded::update_dropped(self.dropped_so_far());
    }

    #[cfg(feature = "metrics")]
    fn record(&self, event: &Event) {
        let Some(name) = event.name() else {
            Recorded::update_dropped(self.dropped_so_far());
            return self.0.recorded.update_nodes(self.0.nodes.samples());
        };
        let series = self.0.recorded.update(self.class_of(name));
        match event {
            Event::Acquired { waited, .. } => series.times[WAITS][0].record(*waited),
            Event::GaveUp { reason, waited, .. } => {
                series.times[WAITS][*reason as usize].record(*waited)
            }
            Event::Released { held, .. } | Event::ReleaseFailed { held, .. } => {
                series.times[HOLDS][0].record(*held)
            }
            _ => {}
        }
    }

    /// The class of a lock. Calls a function of the program, so no mutex may be held.
    pub(crate) fn class_of(&self, name: &str) -> &Arc<Class> {
        // A call waits for any slot, and acquires one: both count in the same class.
        let name = key_space::semaphore_of_slot(name).unwrap_or(name);
        let class = caught(|| (self.0.classify)(name));
        self.0.classes.find(class.unwrap_or(OTHER))
    }

    /// How many events no observer received.
    fn dropped_so_far(&self) -> u64 {
        self.0.events_dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn events_dropped(&self, count: u64) {
        self.0.events_dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// Shows the nodes of a client as well, while it exists.
    pub(crate) fn watch_nodes(&self, client: Weak<dyn NodeSource>) {
        self.0.nodes.add(client);
    }
}

impl Default for Counters {
    fn default() -> Counters {
        Counters::new()
    }
}

/// Shows nothing that is counted.
impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counters").finish_non_exhaustive()
    }
}
