//! What counters count, for the recorder of the crate `metrics`.
//!
//! Counters and gauges are set to the exact numbers of [`Counters`] with each event of their class, so that an event
//! that is not delivered leaves no error behind. Histograms have no such memory: a time is recorded with its event.

use crate::events::event::Event;
use crate::events::metrics::class::{ATTEMPTS, Class, ENDS, EXTENSIONS, LOSSES, REASONS, RELEASES, end_of};
use crate::events::metrics::classes::ClassId;
use crate::events::metrics::counters::Counters;
use crate::events::metrics::families::{self, Family, Kind};
use crate::events::metrics::nodes::{MISMATCHES, NodeSample};
use crate::events::metrics::text::{FLAGS, quorum};
use crate::events::observer::Observer;
use crate::os::sync::{Mutex, lock};
use metrics::{Counter, Gauge, Histogram, Label, Unit};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Hands what [`Counters`] count on to the recorder of the crate `metrics`, under the same names. Given to
/// [`Builder::observer`](crate::Builder::observer) beside its counters.
///
/// ```
/// use quorumlock::metrics::{Counters, by_first_segment};
/// use quorumlock::{RecorderObserver, Redlock};
///
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// // After the program has installed its recorder.
/// let counters = Counters::by_class(by_first_segment('/'));
/// let recorder = RecorderObserver::new(&counters);
/// let redlock = Redlock::builder().node(node.url()).counters(&counters).observer(recorder).build()?;
/// # drop(redlock);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The series are those of [`metrics`](crate::metrics), but for buckets, which the recorder has of its own. The numbers
/// of a class are handed on with each [event](crate::event) of the class, and those of nodes with each event of a node.
/// [`update`](RecorderObserver::update) hands on all of them at once; for a recorder that is read seldom, call it
/// before. Times are recorded with their events, so those of events that are not reported are missing
/// ([`EventsDropped`](crate::event::EventsDropped)).
///
/// The recorder must be installed before the first event of a class: what is registered before goes nowhere.
pub struct RecorderObserver {
    counters: Counters,
    classes: Mutex<HashMap<ClassId, Arc<ClassHandles>>>,
    /// By address, the nodes whose replies were handed on.
    nodes: Mutex<HashMap<String, NodeSample>>,
}

impl RecorderObserver {
    /// An observer of the clients that count there.
    pub fn new(counters: &Counters) -> RecorderObserver {
        describe();
        RecorderObserver { counters: counters.clone(), classes: Mutex::default(), nodes: Mutex::default() }
    }

    /// Hands on the present numbers of all classes and nodes.
    pub fn update(&self) {
        for (id, class) in self.counters.classes() {
            self.handles(id, class).update(class);
        }
        self.update_nodes();
        metrics::counter!(families::EVENTS_DROPPED.name).absolute(self.counters.dropped_so_far());
    }

    fn update_nodes(&self) {
        let nodes = self.counters.node_samples();
        metrics::gauge!(families::NODES.name).set(nodes.len() as f64);
        metrics::gauge!(families::QUORUM.name).set(quorum(nodes.len()) as f64);
        for node in nodes {
            let gauge = |family: &Family| metrics::gauge!(family.name, "node" => node.address.clone());
            gauge(&families::NODE_UP).set(f64::from(u8::from(node.is_up)));
            gauge(&families::NODE_VOTES).set(f64::from(u8::from(node.votes)));
            gauge(&families::NODE_QUARANTINE).set(node.quarantine.as_secs_f64());
            for (of, is_mismatched) in MISMATCHES.into_iter().zip(node.mismatches) {
                let labels = [("node", node.address.clone()), ("of", of.to_owned())];
                metrics::gauge!(families::NODE_MISMATCH.name, &labels).set(f64::from(u8::from(is_mismatched)));
            }
            for (phase, cause, number) in node.faults.iter() {
                let labels =
                    [("node", node.address.clone()), ("phase", phase.to_string()), ("cause", cause.to_string())];
                metrics::counter!(families::NODE_FAULTS.name, &labels).absolute(number);
            }
            self.record_replies(node);
        }
    }

    /// Hands on the replies since the last time: each as long as its bucket is.
    fn record_replies(&self, node: NodeSample) {
        let histogram = metrics::histogram!(families::NODE_REPLY.name, "node" => node.address.clone());
        let mut nodes = lock(&self.nodes);
        let before = nodes.get(&node.address).map(|before| &before.replies);
        // Less than before: a client that counted has ended, and what is left is not new.
        let is_more = before.is_none_or(|before| before.count() <= node.replies.count());
        let mut known = before.into_iter().flat_map(|before| before.buckets()).map(|(_, count)| count);
        for (end, count) in node.replies.buckets().filter(|_| is_more) {
            let new = count.saturating_sub(known.next().unwrap_or(0));
            histogram.record_many(end.as_secs_f64(), usize::try_from(new).unwrap_or(usize::MAX));
        }
        drop(known);
        nodes.insert(node.address.clone(), node);
    }

    fn handles(&self, id: ClassId, class: &Class) -> Arc<ClassHandles> {
        Arc::clone(lock(&self.classes).entry(id).or_insert_with(|| Arc::new(ClassHandles::new(class.name()))))
    }
}

impl Observer for RecorderObserver {
    fn event(&self, event: &Event) {
        let Some(resource) = event.resource() else {
            if let Event::EventsDropped(_) = event {
                metrics::counter!(families::EVENTS_DROPPED.name).absolute(self.counters.dropped_so_far());
            }
            return self.update_nodes();
        };
        let id = self.counters.class_of(resource);
        let class = self.counters.class(id);
        let handles = self.handles(id, class);
        handles.update(class);
        match event {
            Event::Acquired(event) => handles.waits[0].record(event.waited),
            Event::GaveUp(event) => handles.waits[end_of(event.reason)].record(event.waited),
            Event::Released(event) => handles.holds.record(event.held),
            Event::ReleaseFailed(event) => handles.holds.record(event.held),
            _ => {}
        }
    }
}

/// The recorder's handles for one class, in the order of the tables of [`class`](crate::events::metrics::class).
struct ClassHandles {
    waits: [Histogram; ENDS.len()],
    holds: Histogram,
    waiting: Gauge,
    held: Gauge,
    attempts: [Counter; ATTEMPTS.len()],
    reasons: [Counter; REASONS.len()],
    losses: [Counter; LOSSES.len()],
    extensions: [[Counter; 2]; EXTENSIONS.len()],
    releases: [[Counter; 2]; RELEASES.len()],
}

impl ClassHandles {
    fn new(name: &str) -> ClassHandles {
        let labels = |others: &[(&'static str, &'static str)]| {
            let class = Label::new("class", name.to_owned());
            let others = others.iter().map(|&(label, value)| Label::from_static_parts(label, value));
            [class].into_iter().chain(others).collect::<Vec<_>>()
        };
        let counter = |family: &Family, others: &[_]| metrics::counter!(family.name, labels(others));
        let flagged = |family, end, flag| FLAGS.map(|is_set| counter(family, &[end, (flag, is_set)]));
        ClassHandles {
            waits: ENDS.map(|end| metrics::histogram!(families::WAIT.name, labels(&[("outcome", end)]))),
            holds: metrics::histogram!(families::HOLD.name, labels(&[])),
            waiting: metrics::gauge!(families::WAITING.name, labels(&[])),
            held: metrics::gauge!(families::HELD.name, labels(&[])),
            attempts: ATTEMPTS.map(|result| counter(&families::ATTEMPTS, &[("result", result)])),
            reasons: REASONS.map(|because| counter(&families::ASKED, &[("because", because)])),
            losses: LOSSES.map(|reason| counter(&families::LOST, &[("reason", reason)])),
            extensions: EXTENSIONS.map(|result| flagged(&families::EXTENSIONS, ("result", result), "automatic")),
            releases: RELEASES.map(|outcome| flagged(&families::RELEASES, ("outcome", outcome), "dropped")),
        }
    }

    /// Sets counters and gauges to the numbers of the class.
    fn update(&self, class: &Class) {
        self.waiting.set(class.waiting.load(Ordering::Relaxed) as f64);
        self.held.set(class.held.load(Ordering::Relaxed) as f64);
        let single = self.attempts.iter().zip(&class.attempts).chain(self.losses.iter().zip(&class.losses));
        let extensions = self.extensions.iter().flatten().zip(class.extensions.iter().flatten());
        let releases = self.releases.iter().flatten().zip(class.releases.iter().flatten());
        let reasons = self.reasons.iter().zip(&class.reasons);
        for (handle, counter) in single.chain(reasons).chain(extensions).chain(releases) {
            handle.absolute(counter.load(Ordering::Relaxed));
        }
    }
}

const ALL: [Family; 18] = [
    families::WAIT,
    families::HOLD,
    families::WAITING,
    families::HELD,
    families::ATTEMPTS,
    families::ASKED,
    families::LOST,
    families::EXTENSIONS,
    families::RELEASES,
    families::NODE_UP,
    families::NODE_VOTES,
    families::NODE_QUARANTINE,
    families::NODE_MISMATCH,
    families::NODE_REPLY,
    families::NODE_FAULTS,
    families::NODES,
    families::QUORUM,
    families::EVENTS_DROPPED,
];

fn describe() {
    for Family { name, kind, help } in ALL {
        match kind {
            Kind::Counter => metrics::describe_counter!(name, help),
            Kind::Gauge => metrics::describe_gauge!(name, help),
            Kind::Histogram => metrics::describe_histogram!(name, Unit::Seconds, help),
        }
    }
}
