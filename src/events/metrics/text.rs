//! The text format of Prometheus, version 0.0.4.
//!
//! A line is put together of parts, without a format: with 256 classes there are tens of thousands
//! of lines.

use super::class::Class;
use super::families::{Family, Labels, NODE_FAULTS, NODE_REPLY, NODES, NUMBERS, QUORUM, TIMES};
use super::histogram::BOUNDS;
use super::nodes::{self, NodeSample};
use std::fmt::{self, Display, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The text as far as it is written.
#[derive(Default)]
pub(super) struct Text(pub(super) String);

impl Text {
    pub(super) fn classes<'c>(&mut self, classes: impl Iterator<Item = &'c Class>) {
        let classes: Vec<(&Class, String)> = classes
            .map(|class| (class, label("class", &class.name)))
            .collect();
        for (index, family) in TIMES.iter().enumerate() {
            self.family(family);
            let series = suffixes(family);
            for (class, of_class) in &classes {
                for (labels, times) in series.iter().zip(&class.times[index]) {
                    // An empty one has all of its buckets: `rate` misses the first increase of a
                    // bucket that is added later, and a quantile would then be in the bucket
                    // without a bound.
                    let bounds = BOUNDS.iter().map(|&(_, bound)| bound);
                    let cumulative = times.cumulative();
                    self.times(
                        family,
                        &[of_class, labels.as_str()].concat(),
                        bounds.zip(cumulative),
                        times.sum(),
                        cumulative[BOUNDS.len()],
                    );
                }
            }
        }
        for (index, family) in NUMBERS.iter().enumerate() {
            self.family(family);
            let series = suffixes(family);
            for (class, of_class) in &classes {
                for (labels, number) in series.iter().zip(&class.numbers[index]) {
                    let number = number.load(Ordering::Relaxed).cast_signed().max(0);
                    self.sample(family, [of_class, labels], number);
                }
            }
        }
    }

    pub(super) fn nodes(&mut self, nodes: &[NodeSample]) {
        let nodes: Vec<(&NodeSample, String)> = nodes
            .iter()
            .map(|node| (node, label("node", &node.address)))
            .collect();
        for (family, values) in nodes::GAUGES {
            self.family(&family);
            let series = suffixes(&family);
            for (node, of_node) in &nodes {
                for (labels, value) in series.iter().zip(values(node)) {
                    self.sample(&family, [of_node, labels], Seconds(value));
                }
            }
        }
        self.family(&NODE_REPLY);
        for (node, of_node) in &nodes {
            let buckets = node
                .replies
                .doublings()
                .map(|(end, count)| (Seconds(end).to_string(), count));
            self.times(
                &NODE_REPLY,
                of_node,
                buckets,
                node.replies.sum(),
                node.replies.count(),
            );
        }
        self.family(&NODE_FAULTS);
        for (node, of_node) in &nodes {
            for (phase, cause, count) in node.faults.iter() {
                let labels =
                    suffix("phase", &phase.to_string()) + &suffix("cause", &cause.to_string());
                self.sample(&NODE_FAULTS, [of_node, &labels], count);
            }
        }
        self.single(&NODES, nodes.len() as u64);
        self.single(&QUORUM, quorum(nodes.len()));
    }

    /// Begins a family.
    fn family(
        &mut self,
        &Family {
            name, kind, help, ..
        }: &Family,
    ) {
        self.add(
            &["# HELP ", name, " ", help, "\n# TYPE ", name],
            kind.name(),
        );
    }

    /// A family of one sample without labels.
    pub(super) fn single(&mut self, family: &Family, value: u64) {
        self.family(family);
        self.add(&[family.name], value);
    }

    /// One sample, with two parts of its labels.
    fn sample(&mut self, family: &Family, labels: [&str; 2], value: impl Display) {
        self.add(&[family.name, "{", labels[0], labels[1], "}"], value);
    }

    /// A histogram, by the bounds of its buckets.
    fn times(
        &mut self,
        family: &Family,
        labels: &str,
        buckets: impl Iterator<Item = (impl AsRef<str>, u64)>,
        sum: Duration,
        count: u64,
    ) {
        let name = family.name;
        for (bound, count) in buckets {
            self.add(
                &[name, "_bucket{", labels, ",le=\"", bound.as_ref(), "\"}"],
                count,
            );
        }
        self.add(&[name, "_bucket{", labels, ",le=\"+Inf\"}"], count);
        self.add(&[name, "_sum{", labels, "}"], Seconds(sum));
        self.add(&[name, "_count{", labels, "}"], count);
    }

    /// A line of these parts and a value.
    fn add(&mut self, parts: &[&str], value: impl Display) {
        self.0.extend(parts.iter().copied());
        // A `String` has no errors.
        let _ = writeln!(self.0, " {value}");
    }
}

/// A time in seconds, with all digits that it has.
struct Seconds(Duration);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.as_secs(), self.0.subsec_nanos()) {
            (seconds, 0) => write!(f, "{seconds}"),
            (seconds, nanos) => write!(f, "{seconds}.{nanos:09}"),
        }
    }
}

/// How many nodes decide; none of none.
pub(super) fn quorum(nodes: usize) -> u64 {
    if nodes == 0 { 0 } else { nodes as u64 / 2 + 1 }
}

/// The labels of each series of a family, as they follow the label of the class or the node.
fn suffixes(family: &Family) -> Vec<String> {
    let labels = |labels: &Labels| {
        labels
            .iter()
            .map(|(name, value)| suffix(name, value))
            .collect()
    };
    family.series().iter().map(labels).collect()
}

fn suffix(name: &str, value: &str) -> String {
    format!(",{}", label(name, value))
}

/// A label and its value, escaped.
fn label(name: &str, value: &str) -> String {
    let value = value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("{name}=\"{value}\"")
}
