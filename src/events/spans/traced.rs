//! The spans, as the crate `tracing` has them.

use super::outcome::HoldOutcome;
use crate::algorithm::kind::Kind;
use crate::events::event::GaveUpReason;
use crate::events::metrics::families::WAIT_OUTCOMES;
use crate::events::names::Names;
use crate::events::report::isolated;
use crate::os::fork::ForkEpoch;
use crate::os::sync::{Mutex, is_in_callback, lock};
use crate::protocol::lock_key::LockKey;
use std::sync::Arc;
use tracing::level_filters::LevelFilter;
use tracing::span::Id;
use tracing::{Level, Span, field, span};

const TARGET: &str = "quorumlock::lock";
/// The same for both: a subscriber that shows ordinary work shows both.
const LEVEL: Level = Level::INFO;

/// What a span follows from, if that is a span.
pub(crate) struct SpanLink(Option<Id>);

/// The span of one call for a lock. Dropped without an end, it closes without an outcome. Small,
/// because calls move it.
pub(crate) struct WaitSpan(Option<Box<OpenSpan>>);

/// The span of one hold. What can end the hold shares it, and of several ends the first one counts.
/// If it is dropped without an end, so was the guard. Small, because guards move it.
pub(crate) struct HoldSpan(Option<Arc<OpenSpan>>);

/// A span until it is closed.
struct OpenSpan {
    /// None when it has ended.
    span: Mutex<Option<Span>>,
    opened_in: ForkEpoch,
}

impl SpanLink {
    pub(crate) const NONE: SpanLink = SpanLink(None);
}

impl WaitSpan {
    /// A call of this thread begins.
    pub(crate) fn begin(names: &Names, key: &LockKey, kind: Kind) -> WaitSpan {
        let open = OpenSpan::begin(|| {
            span!(
                target: TARGET,
                LEVEL,
                "quorumlock.wait",
                lock.name = names.name_of(key.title()),
                lock.kind = label_of_kind(kind, key),
                attempts = field::Empty,
                outcome = field::Empty,
            )
        });
        WaitSpan(open.map(Box::new))
    }

    pub(crate) fn link(&self) -> SpanLink {
        SpanLink(self.0.as_deref().and_then(OpenSpan::id))
    }

    /// The call has ended after so many attempts: with the lock, or for this reason without it.
    pub(crate) fn end(self, attempts: u32, reason: Option<GaveUpReason>) {
        if let Some(open) = self.0 {
            open.end(|span| {
                span.record("attempts", i64::from(attempts));
                let end = reason.map_or(0, |reason| reason as usize);
                span.record("outcome", WAIT_OUTCOMES[end]);
            });
        }
    }
}

impl HoldSpan {
    pub(crate) const NONE: HoldSpan = HoldSpan(None);

    /// A call of this thread has acquired a lock, or has made a guard of it.
    pub(crate) fn begin(names: &Names, key: &LockKey, kind: Kind, link: SpanLink) -> HoldSpan {
        let open = OpenSpan::begin(|| {
            let span = span!(
                target: TARGET,
                LEVEL,
                "quorumlock.hold",
                lock.name = names.name_of(key.title()),
                lock.kind = label_of_kind(kind, key),
                fence = kind.fence().map(i64::from),
                outcome = field::Empty,
            );
            span.follows_from(link.0);
            span
        });
        HoldSpan(open.map(Arc::new))
    }

    pub(crate) fn link(&self) -> SpanLink {
        SpanLink(self.0.as_deref().and_then(OpenSpan::id))
    }

    /// Ends when the lock is lost. `register` has the callback called then.
    pub(crate) fn end_on_loss(&self, register: impl FnOnce(Box<dyn FnOnce() + Send>)) {
        if let Some(hold) = &self.0 {
            let hold = Arc::clone(hold);
            register(Box::new(move || hold.end_as(HoldOutcome::Lost)));
        }
    }

    /// Ends if the hold has ended like this.
    pub(crate) fn end_if(&self, ended: impl FnOnce() -> Option<HoldOutcome>) {
        if let Some(hold) = &self.0
            && let Some(outcome) = ended()
        {
            hold.end_as(outcome);
        }
    }

    pub(crate) fn end(&self, outcome: HoldOutcome) {
        if let Some(hold) = &self.0 {
            hold.end_as(outcome);
        }
    }
}

impl Drop for HoldSpan {
    fn drop(&mut self) {
        self.end(HoldOutcome::Dropped);
    }
}

impl OpenSpan {
    /// None if no subscriber wants the span, or the thread is in a callback.
    fn begin(open: impl FnOnce() -> Span) -> Option<OpenSpan> {
        if LEVEL > LevelFilter::current() || is_in_callback() {
            return None;
        }
        let opened_in = ForkEpoch::current().ok()?;
        let span = isolated(open).filter(|span| !span.is_disabled())?;
        Some(OpenSpan {
            span: Mutex::new(Some(span)),
            opened_in,
        })
    }

    fn id(&self) -> Option<Id> {
        lock(&self.span).as_ref().and_then(Span::id)
    }

    /// Records how a hold has ended, and closes.
    fn end_as(&self, outcome: HoldOutcome) {
        self.end(|span| _ = span.record("outcome", label_of_outcome(outcome)));
    }

    /// Records the end, and closes.
    fn end(&self, record: impl FnOnce(&Span)) {
        // In a child, the mutex may be locked for ever.
        if self.opened_in.is_forked() {
            return;
        }
        let span = lock(&self.span).take();
        // The mutex is free again.
        if let Some(span) = span {
            isolated(|| record(&span));
            isolated(|| drop(span));
        }
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        let span = std::mem::take(&mut self.span);
        if self.opened_in.is_forked() {
            std::mem::forget(span);
        } else {
            isolated(|| drop(span));
        }
    }
}

fn label_of_kind(kind: Kind, key: &LockKey) -> &'static str {
    match kind {
        _ if matches!(key, LockKey::Set(_)) => "set",
        Kind::Fenced(_) => "fenced",
        Kind::Permit(_) => "permit",
        Kind::Plain => "plain",
        Kind::Read => "read",
        Kind::Write(_) => "write",
    }
}

fn label_of_outcome(outcome: HoldOutcome) -> &'static str {
    match outcome {
        HoldOutcome::Detached => "detached",
        HoldOutcome::Downgraded => "downgraded",
        HoldOutcome::Dropped => "dropped",
        HoldOutcome::Expired => "expired",
        HoldOutcome::Lost => "lost",
        HoldOutcome::Released => "released",
        HoldOutcome::StillHeld => "still_held",
        HoldOutcome::Unconfirmed => "unconfirmed",
    }
}
