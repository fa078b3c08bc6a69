//! What the events report about one call for a lock as a whole: that it waits, and how it ended
//! without the lock.
//!
//! Each call has one account, closed with its result. So no way out of a call can miss the event of
//! its end, or report it twice.

use super::Lock;
use super::call::LockCall;
use crate::algorithm::node::NodeId;
use crate::algorithm::time::{LeaseTime, Readings};
use crate::api::client::Client;
use crate::events::error::{Error, ErrorKind, Result};
use crate::events::event::GaveUpReason;
use crate::events::report::FailedCall;
use crate::events::spans::WaitSpan;
use crate::fault::Fault;
use std::sync::Arc;

/// The account of one call.
pub(super) struct CallAccount<'m> {
    client: &'m Client,
    key: &'m Arc<str>,
    pub(super) called_at: Readings,
    /// How many attempts have ended.
    pub(super) attempts: u32,
    /// What the last attempt of a call ran into that found the lock held.
    pub(super) faults: Vec<(NodeId, Fault)>,
    /// Whether a quorum granted the lock after its lease had ended.
    pub(super) is_too_late: bool,
    /// Whether the end of the call was reported: that it has acquired the lock.
    pub(super) is_reported: bool,
    /// Whether the call has begun to wait.
    pub(super) has_waited: bool,
    pub(super) span: WaitSpan,
}

impl<'m> CallAccount<'m> {
    /// A call begins now.
    pub(super) fn open(lock: &'m Lock, span: WaitSpan) -> CallAccount<'m> {
        CallAccount {
            client: &lock.client,
            key: lock.key().title(),
            called_at: lock.client.engine.readings(),
            attempts: 0,
            faults: Vec::new(),
            is_too_late: false,
            is_reported: false,
            has_waited: false,
            span,
        }
    }

    /// The call is about to wait. Reported the first time, and whether it waits for its own thread.
    pub(super) fn begin_to_wait(&mut self, call: &LockCall<'_>, now: LeaseTime) {
        if !std::mem::replace(&mut self.has_waited, true) {
            self.client.report.waiting(self.key, || {
                let (key, until) = call.held_by_this_thread(now)?;
                Some((key.unwrap_or(self.key), until.since(now)))
            });
        }
    }

    /// The call has ended. Reported, unless it acquired the lock: that was reported when the guard
    /// was made, also if its lease ended meanwhile. `if_held`: the reason for a call that ends
    /// because the lock is held.
    pub(super) fn close<T>(self, result: &Result<Option<T>>, if_held: GaveUpReason) {
        if self.is_reported || matches!(result, Ok(Some(_))) {
            return self.span.end(self.attempts, None);
        }
        let error = result.as_ref().err();
        let reason = error.map_or(if_held, |error| self.reason(error));
        self.span.end(self.attempts, Some(reason));
        let waited = || self.client.engine.now().since(self.called_at.steady);
        let causes = error.map_or(&[][..], Error::causes);
        self.client.report.gave_up(
            self.key,
            waited,
            &FailedCall {
                reason,
                attempts: self.attempts,
                has_waited: self.has_waited,
                faults: &self.faults,
                causes,
            },
        );
    }

    fn reason(&self, error: &Error) -> GaveUpReason {
        match error.kind() {
            ErrorKind::Cancelled => GaveUpReason::Cancelled,
            ErrorKind::ShutDown => GaveUpReason::ShutDown,
            ErrorKind::Unavailable if self.is_too_late => GaveUpReason::TooLate,
            ErrorKind::Unavailable => GaveUpReason::Unavailable,
            ErrorKind::Config
            | ErrorKind::Entropy
            | ErrorKind::Forked
            | ErrorKind::LeaseLost
            | ErrorKind::LeaseTooShort => GaveUpReason::Failed,
        }
    }
}
