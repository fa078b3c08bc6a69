//! The families of series: names, types, meanings and labels, the same for the text and for the
//! recorder.

use Kind::{Counter, Gauge, Histogram};

/// One family.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) help: &'static str,
    /// The labels after the label `class` or `node`, each with all of its values.
    labels: &'static [Label],
}

/// A label and all of its values.
type Label = (&'static str, &'static [&'static str]);

/// What its numbers are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// The labels of one series, each with its value.
pub(crate) type Labels = Vec<(&'static str, &'static str)>;

impl Family {
    /// With these labels.
    pub(super) const fn by(self, labels: &'static [Label]) -> Family {
        Family { labels, ..self }
    }

    /// The labels of each series: all combinations of their values. The last label changes first.
    pub(crate) fn series(&self) -> Vec<Labels> {
        let mut series = vec![Labels::new()];
        for &(label, values) in self.labels {
            let with_each = |labels: &Labels| {
                let labels = labels.clone();
                values
                    .iter()
                    .map(move |&value| [&labels[..], &[(label, value)]].concat())
            };
            series = series.iter().flat_map(with_each).collect();
        }
        series
    }
}

/// Makes something for each series of each of these families.
pub(crate) fn map_series<T, const N: usize>(
    families: &[Family; N],
    make: impl Fn(&Family, &Labels) -> T,
) -> [Box<[T]>; N] {
    families.each_ref().map(|family| {
        let series = family.series();
        series.iter().map(|labels| make(family, labels)).collect()
    })
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

pub(super) const fn family(kind: Kind, name: &'static str, help: &'static str) -> Family {
    Family {
        name,
        kind,
        help,
        labels: &[],
    }
}

const FLAGS: &[&str] = &["false", "true"];

/// How a call for a lock ends: it acquires it, or ends by the
/// [`GaveUpReason`](crate::event::GaveUpReason) of this number.
pub(crate) const WAIT_OUTCOMES: &[&str] = &[
    "acquired",
    "cancelled",
    "failed",
    "held",
    "timed_out",
    "too_late",
    "unavailable",
    "shut_down",
];
/// The index in [`TIMES`] of the times of calls.
pub(crate) const WAITS: usize = 0;
/// The index of the times of holds, which have one series.
pub(crate) const HOLDS: usize = 1;
/// The times of a class: of the calls for its locks, by the number of their end, and of its holds.
pub(crate) const TIMES: [Family; 2] = [
    family(
        Histogram,
        "quorumlock_wait_seconds",
        "Time from the beginning of a call for a lock to its end.",
    )
    .by(&[("outcome", WAIT_OUTCOMES)]),
    family(
        Histogram,
        "quorumlock_hold_seconds",
        "Time for which a lock was held, counted when it is released.",
    ),
];

/// The numbers of a class, in the order of [`Number`](super::class::Number).
pub(crate) const NUMBERS: [Family; 7] = [
    family(
        Gauge,
        "quorumlock_waiting",
        "Calls that wait for a lock now.",
    ),
    family(Gauge, "quorumlock_held", "Guards of locks that exist now."),
    family(
        Counter,
        "quorumlock_attempts_total",
        "Attempts to acquire a lock on the nodes.",
    )
    .by(&[("result", &["won", "held", "too_late", "unavailable"])]),
    family(
        Counter,
        "quorumlock_asked_total",
        "Rounds of calls that waited and acquired the lock: after a message of the nodes, \
         without one, or to challenge.",
    )
    .by(&[("because", &["told", "unasked", "challenge"])]),
    family(
        Counter,
        "quorumlock_lost_total",
        "Locks that were lost while their guards existed.",
    )
    .by(&[("reason", &["key_gone", "lease_ended"])]),
    family(
        Counter,
        "quorumlock_extensions_total",
        "Extensions of held locks.",
    )
    .by(&[
        ("result", &["extended", "failed", "lost"]),
        ("automatic", FLAGS),
    ]),
    family(Counter, "quorumlock_releases_total", "Releases of locks.").by(&[
        ("outcome", &["released", "expired", "unconfirmed"]),
        ("dropped", FLAGS),
    ]),
];

/// What programs that use a node may not agree on.
pub(crate) const MISMATCHES: [&str; 3] = ["max_ttl", "nodes", "rights"];
pub(crate) const NODE_REPLY: Family = family(
    Histogram,
    "quorumlock_node_reply_seconds",
    "Time from an operation on a lock to the reply of the node.",
);
/// With the labels `phase` and `cause`, whose values are not listed.
pub(crate) const NODE_FAULTS: Family = family(
    Counter,
    "quorumlock_node_faults_total",
    "Votes of the node that were lost to a fault.",
);
pub(crate) const NODES: Family = family(Gauge, "quorumlock_nodes", "Number of nodes.");
pub(crate) const QUORUM: Family =
    family(Gauge, "quorumlock_quorum", "Number of nodes that decide.");
pub(crate) const EVENTS_DROPPED: Family = family(
    Counter,
    "quorumlock_events_dropped_total",
    "Events that no observer received, because the observers were too slow.",
);
