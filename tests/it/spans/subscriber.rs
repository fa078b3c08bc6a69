//! A subscriber that keeps all spans, and what happens to them.

use crate::prelude::*;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard};
use std::thread::ThreadId;
use tracing::dispatcher::DefaultGuard;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber, dispatcher};

/// A subscriber, to be looked into. Cloning is cheap.
#[derive(Clone, Default)]
pub(super) struct Spans {
    kept: Arc<Mutex<Kept>>,
    last: Arc<AtomicU64>,
}

#[derive(Default)]
struct Kept {
    /// By number: in the order of their beginnings.
    spans: BTreeMap<u64, Shown>,
    entered: HashMap<ThreadId, Vec<u64>>,
}

/// What is known of a span.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    pub(super) number: u64,
    pub(super) name: &'static str,
    pub(super) target: String,
    pub(super) parent: Option<u64>,
    pub(super) fields: BTreeMap<String, String>,
    pub(super) follows: Vec<u64>,
    handles: usize,
}

impl Shown {
    pub(super) fn is_closed(&self) -> bool {
        self.handles == 0
    }

    /// A field; empty without a value.
    pub(super) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

impl Spans {
    /// Subscribes on this thread, as long as the result exists.
    pub(super) fn subscribed() -> (Spans, DefaultGuard) {
        let spans = Spans::default();
        let guard = spans.subscribe();
        (spans, guard)
    }

    pub(super) fn subscribe(&self) -> DefaultGuard {
        dispatcher::set_default(&Dispatch::new(self.clone()))
    }

    /// The spans of this name, in the order of their beginnings.
    pub(super) fn named(&self, name: &str) -> Vec<Shown> {
        let kept = self.kept();
        let spans = kept.spans.values();
        spans.filter(|span| span.name == name).cloned().collect()
    }

    /// The spans of this name, which are so many.
    #[track_caller]
    pub(super) fn all<const N: usize>(&self, name: &str) -> [Shown; N] {
        self.named(name)
            .try_into()
            .unwrap_or_else(|found: Vec<_>| panic!("not {N} spans: {found:?}"))
    }

    /// The last span of this name.
    #[track_caller]
    pub(super) fn last(&self, name: &str) -> Shown {
        self.named(name).pop().expect("a span of this name")
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap()
    }
}

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut kept = self.kept();
        let current = kept
            .entered
            .get(&thread::current().id())
            .and_then(|entered| entered.last().copied());
        let parent = if attributes.is_contextual() {
            current
        } else {
            attributes.parent().map(Id::into_u64)
        };
        let mut span = Shown {
            number,
            name: attributes.metadata().name(),
            target: attributes.metadata().target().to_owned(),
            parent,
            handles: 1,
            ..Shown::default()
        };
        attributes.record(&mut Fields(&mut span.fields));
        kept.spans.insert(number, span);
        Id::from_u64(number)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        let mut kept = self.kept();
        let span = kept.spans.get_mut(&id.into_u64()).unwrap();
        assert!(span.handles > 0, "recorded after its end: {span:?}");
        values.record(&mut Fields(&mut span.fields));
    }

    fn record_follows_from(&self, id: &Id, follows: &Id) {
        let mut kept = self.kept();
        assert!(
            kept.spans[&follows.into_u64()].handles > 0,
            "followed after its end"
        );
        let span = kept.spans.get_mut(&id.into_u64()).unwrap();
        span.follows.push(follows.into_u64());
    }

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, id: &Id) {
        let mut kept = self.kept();
        let entered = kept.entered.entry(thread::current().id()).or_default();
        entered.push(id.into_u64());
    }

    fn exit(&self, _: &Id) {
        let mut kept = self.kept();
        let entered = kept.entered.entry(thread::current().id()).or_default();
        entered.pop();
    }

    fn clone_span(&self, id: &Id) -> Id {
        let mut kept = self.kept();
        kept.spans.get_mut(&id.into_u64()).unwrap().handles += 1;
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut kept = self.kept();
        let span = kept.spans.get_mut(&id.into_u64()).unwrap();
        span.handles -= 1;
        span.is_closed()
    }
}

/// Keeps the fields of a span. A field gets its value once.
struct Fields<'f>(&'f mut BTreeMap<String, String>);

impl Visit for Fields<'_> {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.record_debug(field, &value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let before = self.0.insert(field.name().to_owned(), format!("{value:?}"));
        assert_eq!(before, None, "{field} has two values");
    }
}
