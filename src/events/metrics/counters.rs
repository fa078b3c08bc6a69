//! The counters that a program has, and the ways to count.

use super::class::{Class, ExtensionResult};
use super::classes::{ClassId, Classes, OTHER};
use super::nodes::{NodeSample, NodeSources};
use super::text;
use crate::algorithm::queue::AskedBecause;
use crate::algorithm::vote::Tally;
use crate::events::event::{GaveUpReason, LossReason};
use crate::events::release::ReleaseOutcome;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The class of all resources, by default.
const ALL: &str = "all";

/// Counts what clients do: waits, holds, attempts, extensions, losses, releases, and the state of nodes. Given to
/// [`Builder::counters`](crate::Builder::counters). Clones count together.
///
/// It consists of atomic numbers and fixed buckets, has no thread, and takes no lock and no memory once a class is
/// known. [The module](crate::metrics) has an example and lists the series.
///
/// The counters of one program are given to clients of the same nodes. In a child made by `fork` they are a copy that
/// nothing changes, without nodes; the clients of the child need counters of their own.
#[derive(Clone)]
pub struct Counters(Arc<Shared>);

struct Shared {
    classify: Box<dyn for<'n> Fn(&'n str) -> &'n str + Send + Sync>,
    classes: Classes,
    events_dropped: AtomicU64,
    nodes: NodeSources,
}

impl Counters {
    /// Counters with one class of resources, `all`.
    pub fn new() -> Counters {
        Counters::by_class(|_| ALL)
    }

    /// Counters that distinguish resources by a class. `class` gives the class of the name of a resource: a part of the
    /// name, or a text of the program. It must be quick. For a [permit](crate::Semaphore) it is given the name of the
    /// semaphore: a `#` with a number is taken off the end of each name.
    ///
    /// There are at most 256 classes, of at most 128 bytes. What exceeds that, and names for which `class` panics, are
    /// counted as the class `other`: so choose a class that has few values, and not the name of the resource.
    ///
    /// ```
    /// use quorumlock::metrics::Counters;
    ///
    /// let counters = Counters::by_class(|name| if name.starts_with("order") { "orders" } else { "rest" });
    /// # drop(counters);
    /// ```
    pub fn by_class(class: impl for<'n> Fn(&'n str) -> &'n str + Send + Sync + 'static) -> Counters {
        Counters(Arc::new(Shared {
            classify: Box::new(class),
            classes: Classes::new(),
            events_dropped: AtomicU64::new(0),
            nodes: NodeSources::new(),
        }))
    }

    /// Writes all series in the Prometheus text format, version 0.0.4
    /// (`Content-Type: text/plain; version=0.0.4; charset=utf-8`). Asks no node and waits for none.
    ///
    /// Labels are the class, never the name of a resource, and the address of a node. A class has all of its series,
    /// and each histogram all of its buckets, from the first call on: about 150 lines.
    ///
    /// # Errors
    /// Those of `out`. A `String` has none.
    pub fn write_prometheus(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        text::write_classes(out, self.classes())?;
        text::write_nodes(out, &self.node_samples())?;
        text::write_dropped(out, self.dropped_so_far())
    }

    /// The class of a resource.
    pub(crate) fn class_of(&self, resource: &str) -> ClassId {
        let name = catch_unwind(AssertUnwindSafe(|| (self.0.classify)(resource)));
        self.0.classes.find(name.unwrap_or(OTHER))
    }

    pub(crate) fn class(&self, id: ClassId) -> &Class {
        self.0.classes.get(id)
    }

    /// All classes in which anything may have been counted.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (ClassId, &Class)> {
        self.0.classes.iter()
    }

    /// The nodes of the clients that count here.
    pub(crate) fn node_samples(&self) -> Vec<NodeSample> {
        self.0.nodes.samples()
    }

    /// How many events no observer received.
    pub(crate) fn dropped_so_far(&self) -> u64 {
        self.0.events_dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn waits(&self, class: ClassId) {
        self.class(class).waits();
    }

    pub(crate) fn acquired(&self, class: ClassId, waited: Duration, because: AskedBecause, has_waited: bool) {
        self.class(class).acquired(waited, because, has_waited);
    }

    pub(crate) fn joined(&self, class: ClassId, waited: Duration) {
        self.class(class).joined(waited);
    }

    pub(crate) fn gave_up(&self, class: ClassId, reason: GaveUpReason, waited: Duration, has_waited: bool) {
        self.class(class).gave_up(reason, waited, has_waited);
    }

    pub(crate) fn attempt_lost(&self, class: ClassId, tally: &Tally) {
        self.class(class).attempt_lost(tally);
    }

    /// A guard is made of a lease.
    pub(crate) fn attached(&self, class: ClassId) {
        self.class(class).holds();
    }

    /// A guard is gone. After this time, if it released its lock.
    pub(crate) fn lets_go(&self, class: ClassId, held: Option<Duration>) {
        self.class(class).lets_go(held);
    }

    pub(crate) fn extended(&self, class: ClassId, result: ExtensionResult, automatic: bool) {
        self.class(class).extended(result, automatic);
    }

    pub(crate) fn lost(&self, class: ClassId, reason: LossReason) {
        self.class(class).lost(reason);
    }

    pub(crate) fn released(&self, class: ClassId, outcome: Option<ReleaseOutcome>, dropped: bool) {
        self.class(class).released(outcome, dropped);
    }

    pub(crate) fn events_dropped(&self, count: u64) {
        self.0.events_dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// Shows the nodes of a client as well, until `sample` gives none.
    pub(crate) fn watch_nodes(&self, sample: impl Fn() -> Option<Vec<NodeSample>> + Send + Sync + 'static) {
        self.0.nodes.add(Arc::new(sample));
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

/// For [`Counters::by_class`]: the part of a name before the first `separator`, or all of a name without one.
///
/// ```
/// let class = quorumlock::metrics::by_first_segment('/');
/// assert_eq!((class("orders/42"), class("nightly")), ("orders", "nightly"));
/// ```
pub fn by_first_segment(separator: char) -> impl for<'n> Fn(&'n str) -> &'n str + Send + Sync + 'static {
    move |name| name.split(separator).next().unwrap_or(name)
}
