//! The text format of Prometheus, version 0.0.4.
//!
//! A line is put together in one buffer before it is written, and numbers are made here: with 256 classes there are
//! tens of thousands of lines.

use super::class::{ATTEMPTS, Class, ENDS, EXTENSIONS, LOSSES, REASONS, RELEASES};
use super::classes::ClassId;
use super::families::{self, Family};
use super::histogram::{BOUNDS, HistogramValues};
use super::nodes::{MISMATCHES, NodeSample};
use std::fmt::{Result, Write};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// The values of a label that is a flag.
pub(crate) const FLAGS: [&str; 2] = ["false", "true"];
const NANOS: u64 = 1_000_000_000;

/// Writes lines to a sink.
struct Text<'w> {
    out: &'w mut dyn Write,
    line: String,
}

impl Text<'_> {
    /// Begins a family.
    fn family(&mut self, &Family { name, kind, help }: &Family) -> Result {
        let kind = kind.name();
        self.line.clear();
        for part in ["# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n"] {
            self.line.push_str(part);
        }
        self.out.write_str(&self.line)
    }

    /// A family of one sample without labels.
    fn single(&mut self, family: &Family, value: u64) -> Result {
        self.family(family)?;
        self.sample(family.name, "", value)
    }

    /// One sample. `labels` are escaped, and stand in braces.
    fn sample(&mut self, name: &str, labels: &str, value: u64) -> Result {
        self.begin(name, labels);
        self.number(value);
        self.end()
    }

    fn begin(&mut self, name: &str, labels: &str) {
        self.line.clear();
        self.line.push_str(name);
        self.line.push_str(labels);
        self.line.push(' ');
    }

    fn end(&mut self) -> Result {
        self.line.push('\n');
        self.out.write_str(&self.line)
    }

    fn number(&mut self, mut value: u64) {
        let mut digits = [0; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        self.line.extend(digits[first..].iter().map(|&digit| char::from(digit)));
    }

    /// Nanoseconds as seconds.
    fn seconds(&mut self, nanos: u64) {
        let (seconds, rest) = (nanos / NANOS, nanos % NANOS);
        self.number(seconds);
        if rest > 0 {
            self.line.push('.');
            let start = self.line.len();
            // A one in front keeps the zeros.
            self.number(NANOS + rest);
            self.line.remove(start);
        }
    }

    /// A histogram; `labels` without braces. An empty one has all of its buckets: `rate` misses the first increase of a
    /// bucket that is added later, and a quantile would then be in the bucket without a bound.
    fn histogram(&mut self, names: &HistogramNames, labels: &str, values: &HistogramValues) -> Result {
        let count = values.count();
        let bounds = BOUNDS.iter().map(|&(_, bound)| bound).zip(values.cumulative);
        for (bound, value) in bounds.chain([("+Inf", count)]) {
            self.line.clear();
            for part in [names.bucket, "{", labels, ",le=\"", bound, "\"} "] {
                self.line.push_str(part);
            }
            self.number(value);
            self.end()?;
        }
        self.totals(names, labels, values.nanos, count)
    }

    /// The sum and the count of a histogram; `labels` without braces.
    fn totals(&mut self, names: &HistogramNames, labels: &str, nanos: u64, count: u64) -> Result {
        let labels = ["{", labels, "}"].concat();
        self.begin(names.sum, &labels);
        self.seconds(nanos);
        self.end()?;
        self.sample(names.count, &labels, count)
    }
}

/// The names of the three series of a histogram.
struct HistogramNames {
    bucket: &'static str,
    sum: &'static str,
    count: &'static str,
}

const WAITS: HistogramNames = HistogramNames {
    bucket: "quorumlock_wait_seconds_bucket",
    sum: "quorumlock_wait_seconds_sum",
    count: "quorumlock_wait_seconds_count",
};
const HOLDS: HistogramNames = HistogramNames {
    bucket: "quorumlock_hold_seconds_bucket",
    sum: "quorumlock_hold_seconds_sum",
    count: "quorumlock_hold_seconds_count",
};
const REPLIES: HistogramNames = HistogramNames {
    bucket: "quorumlock_node_reply_seconds_bucket",
    sum: "quorumlock_node_reply_seconds_sum",
    count: "quorumlock_node_reply_seconds_count",
};

/// A class, with its label.
type Labelled<'c> = (&'c Class, String);

pub(super) fn write_classes<'c>(out: &mut dyn Write, classes: impl Iterator<Item = (ClassId, &'c Class)>) -> Result {
    let mut text = Text { out, line: String::with_capacity(256) };
    let classes: Vec<Labelled<'_>> = classes.map(|(_, class)| (class, label("class", class.name()))).collect();
    text.family(&families::WAIT)?;
    for (class, label) in &classes {
        for (outcome, waits) in ENDS.iter().zip(&class.waits) {
            let labels = [label, ",outcome=\"", outcome, "\""].concat();
            text.histogram(&WAITS, &labels, &waits.values())?;
        }
    }
    text.family(&families::HOLD)?;
    for (class, label) in &classes {
        text.histogram(&HOLDS, label, &class.holds.values())?;
    }
    text.gauges(&families::WAITING, &classes, |class| &class.waiting)?;
    text.gauges(&families::HELD, &classes, |class| &class.held)?;
    text.counters((&families::ATTEMPTS, "result"), &ATTEMPTS, &classes, |class| &class.attempts)?;
    text.counters((&families::ASKED, "because"), &REASONS, &classes, |class| &class.reasons)?;
    text.counters((&families::LOST, "reason"), &LOSSES, &classes, |class| &class.losses)?;
    let extensions = (&families::EXTENSIONS, ["result", "automatic"]);
    text.flagged(extensions, &EXTENSIONS, &classes, |class| &class.extensions)?;
    let releases = (&families::RELEASES, ["outcome", "dropped"]);
    text.flagged(releases, &RELEASES, &classes, |class| &class.releases)
}

impl Text<'_> {
    /// A gauge. It is negative for no longer than two threads take to count.
    fn gauges(&mut self, family: &Family, classes: &[Labelled<'_>], of: fn(&Class) -> &AtomicI64) -> Result {
        self.family(family)?;
        for (class, label) in classes {
            let value = of(class).load(Ordering::Relaxed);
            self.sample(family.name, &["{", label, "}"].concat(), u64::try_from(value).unwrap_or(0))?;
        }
        Ok(())
    }

    /// A counter with one label besides the class.
    fn counters<const N: usize>(
        &mut self,
        (family, label): (&Family, &str),
        values: &[&str; N],
        classes: &[Labelled<'_>],
        of: fn(&Class) -> &[AtomicU64; N],
    ) -> Result {
        self.family(family)?;
        for (class, of_class) in classes {
            for (value, counter) in values.iter().zip(of(class)) {
                let labels = ["{", of_class, ",", label, "=\"", value, "\"}"].concat();
                self.sample(family.name, &labels, counter.load(Ordering::Relaxed))?;
            }
        }
        Ok(())
    }

    /// A counter with two labels besides the class, the second of which is a flag.
    fn flagged<const N: usize>(
        &mut self,
        (family, [label, flag]): (&Family, [&str; 2]),
        values: &[&str; N],
        classes: &[Labelled<'_>],
        of: fn(&Class) -> &[[AtomicU64; 2]; N],
    ) -> Result {
        self.family(family)?;
        for (class, of_class) in classes {
            for (value, counters) in values.iter().zip(of(class)) {
                for (is_set, counter) in FLAGS.iter().zip(counters) {
                    let labels = ["{", of_class, ",", label, "=\"", value, "\",", flag, "=\"", is_set, "\"}"].concat();
                    self.sample(family.name, &labels, counter.load(Ordering::Relaxed))?;
                }
            }
        }
        Ok(())
    }
}

pub(super) fn write_nodes(out: &mut dyn Write, nodes: &[NodeSample]) -> Result {
    let mut text = Text { out, line: String::new() };
    let labels: Vec<String> = nodes.iter().map(|node| ["{", &label("node", &node.address), "}"].concat()).collect();
    let labelled = || nodes.iter().zip(&labels);
    text.family(&families::NODE_UP)?;
    for (node, labels) in labelled() {
        text.sample(families::NODE_UP.name, labels, node.is_up.into())?;
    }
    text.family(&families::NODE_VOTES)?;
    for (node, labels) in labelled() {
        text.sample(families::NODE_VOTES.name, labels, node.votes.into())?;
    }
    text.family(&families::NODE_QUARANTINE)?;
    for (node, labels) in labelled() {
        text.begin(families::NODE_QUARANTINE.name, labels);
        text.seconds(nanos(node.quarantine));
        text.end()?;
    }
    text.family(&families::NODE_MISMATCH)?;
    for node in nodes {
        for (of, is_mismatched) in MISMATCHES.into_iter().zip(node.mismatches) {
            let labels = [label("node", &node.address), label("of", of)].join(",");
            text.sample(families::NODE_MISMATCH.name, &["{", &labels, "}"].concat(), is_mismatched.into())?;
        }
    }
    text.family(&families::NODE_REPLY)?;
    for node in nodes {
        text.replies(node)?;
    }
    text.family(&families::NODE_FAULTS)?;
    for node in nodes {
        for (phase, cause, number) in node.faults.iter() {
            let labels = [("node", &*node.address), ("phase", &phase.to_string()), ("cause", &cause.to_string())]
                .map(|(name, value)| label(name, value));
            text.sample(families::NODE_FAULTS.name, &["{", &labels.join(","), "}"].concat(), number)?;
        }
    }
    text.single(&families::NODES, nodes.len() as u64)?;
    text.single(&families::QUORUM, quorum(nodes.len()))
}

impl Text<'_> {
    /// The histogram of a node's replies, with a bucket for each doubling.
    fn replies(&mut self, node: &NodeSample) -> Result {
        let (label, count) = (label("node", &node.address), node.replies.count());
        for (end, shorter) in node.replies.doublings() {
            self.line.clear();
            for part in [REPLIES.bucket, "{", &label, ",le=\""] {
                self.line.push_str(part);
            }
            self.seconds(nanos(end));
            self.line.push_str("\"} ");
            self.number(shorter);
            self.end()?;
        }
        self.sample(REPLIES.bucket, &["{", &label, ",le=\"+Inf\"}"].concat(), count)?;
        self.totals(&REPLIES, &label, nanos(node.replies.sum()), count)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// How many nodes decide; none of none.
pub(crate) fn quorum(nodes: usize) -> u64 {
    if nodes == 0 { 0 } else { nodes as u64 / 2 + 1 }
}

pub(super) fn write_dropped(out: &mut dyn Write, dropped: u64) -> Result {
    Text { out, line: String::new() }.single(&families::EVENTS_DROPPED, dropped)
}

/// A label and its value, escaped.
fn label(name: &str, value: &str) -> String {
    let mut label = [name, "=\""].concat();
    for letter in value.chars() {
        match letter {
            '\\' => label.push_str("\\\\"),
            '"' => label.push_str("\\\""),
            '\n' => label.push_str("\\n"),
            letter => label.push(letter),
        }
    }
    label.push('"');
    label
}
