//! The families of series: names, types, meanings and labels, the same for the text and for the
//! recorder.

/// One family.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) help: &'static str,
    /// The labels after the label `class` or `node`, each with all of its values.
    labels: &'static [(&'static str, &'static [&'static str])],
}

/// What its numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// The labels of one series, each with its value.
pub(crate) type Labels = Vec<(&'static str, &'static str)>;

impl Family {
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

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

const fn family(
    name: &'static str,
    kind: Kind,
    help: &'static str,
    labels: &'static [(&'static str, &'static [&'static str])],
) -> Family {
    Family {
        name,
        kind,
        help,
        labels,
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
pub(crate) const WAIT: Family = family(
    "quorumlock_wait_seconds",
    Kind::Histogram,
    "Time from the beginning of a call for a lock to its end.",
    &[("outcome", WAIT_OUTCOMES)],
);
pub(crate) const HOLD: Family = family(
    "quorumlock_hold_seconds",
    Kind::Histogram,
    "Time for which a lock was held, counted when it is released.",
    &[],
);
pub(crate) const WAITING: Family = family(
    "quorumlock_waiting",
    Kind::Gauge,
    "Calls that wait for a lock now.",
    &[],
);
pub(crate) const HELD: Family = family(
    "quorumlock_held",
    Kind::Gauge,
    "Guards of locks that exist now.",
    &[],
);

/// The counters of a class, in the order of [`Counted`](super::class::Counted).
pub(crate) const COUNTERS: [Family; 5] = [
    family(
        "quorumlock_attempts_total",
        Kind::Counter,
        "Attempts to acquire a lock on the nodes.",
        &[("result", &["won", "held", "too_late", "unavailable"])],
    ),
    family(
        "quorumlock_asked_total",
        Kind::Counter,
        "Rounds of calls that waited and acquired the lock: after a message of the nodes, without one, or to \
         challenge.",
        &[("because", &["told", "unasked", "challenge"])],
    ),
    family(
        "quorumlock_lost_total",
        Kind::Counter,
        "Locks that were lost while their guards existed.",
        &[("reason", &["key_gone", "lease_ended"])],
    ),
    family(
        "quorumlock_extensions_total",
        Kind::Counter,
        "Extensions of held locks.",
        &[
            ("result", &["extended", "failed", "lost"]),
            ("automatic", FLAGS),
        ],
    ),
    family(
        "quorumlock_releases_total",
        Kind::Counter,
        "Releases of locks.",
        &[
            ("outcome", &["released", "expired", "unconfirmed"]),
            ("dropped", FLAGS),
        ],
    ),
];

pub(crate) const NODE_UP: Family = family(
    "quorumlock_node_up",
    Kind::Gauge,
    "Whether the node answers.",
    &[],
);
pub(crate) const NODE_VOTES: Family = family(
    "quorumlock_node_votes",
    Kind::Gauge,
    "Whether the votes of the node count.",
    &[],
);
pub(crate) const NODE_QUARANTINE: Family = family(
    "quorumlock_node_quarantine_seconds",
    Kind::Gauge,
    "Time until the votes of the node count again.",
    &[],
);
pub(crate) const NODE_MISMATCH: Family = family(
    "quorumlock_node_mismatch",
    Kind::Gauge,
    "Whether what the node remembers of other programs does not fit the client.",
    &[("of", &MISMATCHES)],
);
/// What programs that use a node may not agree on.
pub(crate) const MISMATCHES: [&str; 3] = ["max_ttl", "nodes", "rights"];
pub(crate) const NODE_REPLY: Family = family(
    "quorumlock_node_reply_seconds",
    Kind::Histogram,
    "Time from an operation on a lock to the reply of the node.",
    &[],
);
/// With the labels `phase` and `cause`, whose values are not listed.
pub(crate) const NODE_FAULTS: Family = family(
    "quorumlock_node_faults_total",
    Kind::Counter,
    "Votes of the node that were lost to a fault.",
    &[],
);
pub(crate) const NODES: Family = family("quorumlock_nodes", Kind::Gauge, "Number of nodes.", &[]);
pub(crate) const QUORUM: Family = family(
    "quorumlock_quorum",
    Kind::Gauge,
    "Number of nodes that decide.",
    &[],
);
pub(crate) const EVENTS_DROPPED: Family = family(
    "quorumlock_events_dropped_total",
    Kind::Counter,
    "Events that no observer received, because the observers were too slow.",
    &[],
);
