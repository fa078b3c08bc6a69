//! No spans: the feature `tracing` is off.

use super::outcome::HoldOutcome;
use crate::algorithm::kind::Kind;
use crate::events::event::GaveUpReason;
use crate::events::names::Names;
use crate::protocol::lock_key::LockKey;

pub(crate) struct SpanLink;

pub(crate) struct WaitSpan;

pub(crate) struct HoldSpan;

impl SpanLink {
    pub(crate) const NONE: SpanLink = SpanLink;
}

impl WaitSpan {
    pub(crate) fn begin(_: &Names, _: &LockKey, _: Kind) -> WaitSpan {
        WaitSpan
    }

    pub(crate) fn link(&self) -> SpanLink {
        SpanLink
    }

    pub(crate) fn end(self, _: u32, _: Option<GaveUpReason>) {}
}

impl HoldSpan {
    pub(crate) const NONE: HoldSpan = HoldSpan;

    pub(crate) fn begin(_: &Names, _: &LockKey, _: Kind, _: SpanLink) -> HoldSpan {
        HoldSpan
    }

    pub(crate) fn link(&self) -> SpanLink {
        SpanLink
    }

    pub(crate) fn end_on_loss(&self, _: impl FnOnce(Box<dyn FnOnce() + Send>)) {}

    pub(crate) fn end_if(&self, _: impl FnOnce() -> Option<HoldOutcome>) {}

    pub(crate) fn end(&self, _: HoldOutcome) {}
}
