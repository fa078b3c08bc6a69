//! What the recorder of the crate `metrics` has received.
//!
//! Counters and gauges are set to exact numbers with each event of their class, so that an event
//! that is not delivered leaves no error behind. Histograms have no such memory: a time is recorded
//! with its event.

use super::class::Class;
use super::families::{
    EVENTS_DROPPED, Family, Kind, Labels, NODE_FAULTS, NODE_REPLY, NODES, NUMBERS, QUORUM, TIMES,
    map_series,
};
use super::nodes::{self, NodeSample};
use super::text::quorum;
use crate::os::sync::{Mutex, lock};
use metrics::{Histogram, Label, Unit};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The series of one program.
#[derive(Default)]
pub(super) struct Recorded {
    /// By name.
    classes: Mutex<HashMap<String, Arc<ClassSeries>>>,
    /// By address, the nodes whose replies were recorded.
    nodes: Mutex<HashMap<String, NodeSample>>,
}

/// The series of one class, in the order of their families.
pub(super) struct ClassSeries {
    pub(super) times: [Box<[Histogram]>; TIMES.len()],
    numbers: [Box<[SetNumber]>; NUMBERS.len()],
}

/// Sets a counter or a gauge.
type SetNumber = Box<dyn Fn(u64) + Send + Sync>;

impl Recorded {
    /// Sets counters and gauges to the numbers of a class.
    pub(super) fn update(&self, class: &Class) -> Arc<ClassSeries> {
        let new = || Arc::new(ClassSeries::new(&class.name));
        let series = Arc::clone(
            lock(&self.classes)
                .entry(class.name.to_string())
                .or_insert_with(new),
        );
        let numbers = class.numbers.iter().flatten();
        for (set, number) in series.numbers.iter().flatten().zip(numbers) {
            set(number.load(Ordering::Relaxed));
        }
        series
    }

    pub(super) fn update_dropped(count: u64) {
        metrics::counter!(EVENTS_DROPPED.name).absolute(count);
    }

    pub(super) fn update_nodes(&self, nodes: Vec<NodeSample>) {
        metrics::gauge!(NODES.name).set(nodes.len() as f64);
        metrics::gauge!(QUORUM.name).set(quorum(nodes.len()) as f64);
        for node in nodes {
            for (family, values) in nodes::GAUGES {
                for (labels, value) in family.series().iter().zip(values(&node)) {
                    metrics::gauge!(family.name, of("node", &node.address, labels))
                        .set(value.as_secs_f64());
                }
            }
            for (phase, cause, count) in node.faults.iter() {
                let address = node.address.clone();
                let labels = [
                    ("node", address),
                    ("phase", phase.to_string()),
                    ("cause", cause.to_string()),
                ];
                metrics::counter!(NODE_FAULTS.name, &labels).absolute(count);
            }
            self.record_replies(node);
        }
    }

    /// Records the replies since the last time: each as long as its bucket is.
    fn record_replies(&self, node: NodeSample) {
        let histogram = metrics::histogram!(NODE_REPLY.name, "node" => node.address.clone());
        let mut nodes = lock(&self.nodes);
        let before = nodes.get(&node.address).map(|before| &before.replies);
        // Less than before: a client that counted has ended, and the other replies are not new.
        let is_more = before.is_none_or(|before| before.count() <= node.replies.count());
        let mut known = before
            .into_iter()
            .flat_map(|before| before.buckets())
            .map(|(_, count)| count);
        for (end, count) in node.replies.buckets().filter(|_| is_more) {
            let new = count.saturating_sub(known.next().unwrap_or(0));
            histogram.record_many(
                end.as_secs_f64(),
                usize::try_from(new).unwrap_or(usize::MAX),
            );
        }
        drop(known);
        nodes.insert(node.address.clone(), node);
    }
}

impl ClassSeries {
    fn new(name: &str) -> ClassSeries {
        ClassSeries {
            times: map_series(&TIMES, |family, labels| {
                metrics::histogram!(family.name, of("class", name, labels))
            }),
            numbers: map_series(&NUMBERS, |family, labels| {
                let labels = of("class", name, labels);
                if family.kind == Kind::Gauge {
                    let gauge = metrics::gauge!(family.name, labels);
                    Box::new(move |number: u64| gauge.set(number.cast_signed() as f64)) as SetNumber
                } else {
                    let counter = metrics::counter!(family.name, labels);
                    Box::new(move |number| counter.absolute(number))
                }
            }),
        }
    }
}

/// The labels of a series of a class or a node.
fn of(subject: &'static str, name: &str, series: &Labels) -> Vec<Label> {
    let subject = Label::new(subject, name.to_owned());
    [subject]
        .into_iter()
        .chain(
            series
                .iter()
                .map(|&(label, value)| Label::from_static_parts(label, value)),
        )
        .collect()
}

/// Tells the recorder what the families mean.
pub(super) fn describe() {
    let of_nodes = nodes::GAUGES.into_iter().map(|(family, _)| family);
    let others = [NODE_REPLY, NODE_FAULTS, NODES, QUORUM, EVENTS_DROPPED];
    for Family {
        name, kind, help, ..
    } in TIMES
        .into_iter()
        .chain(NUMBERS)
        .chain(of_nodes)
        .chain(others)
    {
        match kind {
            Kind::Counter => metrics::describe_counter!(name, help),
            Kind::Gauge => metrics::describe_gauge!(name, help),
            Kind::Histogram => metrics::describe_histogram!(name, Unit::Seconds, help),
        }
    }
}
