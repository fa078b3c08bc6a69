//! The rule about calls for a lock: each ends in exactly one event, and the end of a wait follows
//! its beginning.
//!
//! A call and all its events are on one thread. So what was reported on a thread since its last
//! call returned is about the call that returns now. The judge sees what the call returned, and
//! compares.

use crate::events::error::{Error, ErrorKind, Result};
use crate::events::event::GaveUpReason;
use crate::world::World;

/// How many calls of a client have returned, with a guard and without.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ended {
    pub(crate) acquired: u64,
    /// With a guard of the lease that another thread of the client has: no acquisition, and the end
    /// of a wait, if the call has waited.
    pub(crate) joined: u64,
    pub(crate) others: u64,
    /// For a client without an observer: with the error that the lease ended before the call
    /// returned. It may have been the lease of another thread.
    pub(crate) unclear: u64,
}

/// What was reported of the call of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReportedCall {
    waiting: u32,
    attempts_lost: u32,
    /// How many ends, and the last of them: why, or none for an acquisition.
    ends: u32,
    reason: Option<GaveUpReason>,
    has_waited: bool,
    attempts: u32,
}

impl ReportedCall {
    pub(crate) fn waits(&mut self) {
        self.waiting += 1;
    }

    pub(crate) fn lost_attempt(&mut self) {
        self.attempts_lost += 1;
    }

    pub(crate) fn ended(&mut self, reason: Option<GaveUpReason>, has_waited: bool, attempts: u32) {
        self.ends += 1;
        self.reason = reason;
        self.has_waited = has_waited;
        self.attempts = attempts;
    }

    /// What is wrong with it, for a call that returned with a guard or for one of these reasons.
    fn fault(&self, expected: Option<&[GaveUpReason]>, is_joined: bool) -> Option<&'static str> {
        let is_expected = match (expected, self.reason) {
            (None, None) => true,
            (Some(expected), Some(reason)) => expected.contains(&reason),
            _ => false,
        };
        match self {
            _ if self.ends == 0 => Some("a call returned, and its end was not reported"),
            _ if self.ends > 1 => Some("the end of a call was reported twice"),
            _ if !is_expected => Some("a call was reported to end in another way than it did"),
            _ if self.waiting > 1 => Some("a call was reported to wait twice"),
            _ if self.has_waited != (self.waiting == 1) => {
                Some("a wait was reported to end that had not begun")
            }
            _ if self.attempts
                != self.attempts_lost + u32::from(self.reason.is_none() && !is_joined) =>
            {
                Some("a call was reported to end after another number of attempts")
            }
            _ => None,
        }
    }
}

impl World {
    /// A call for a lock has returned. `is_joined`: with a guard of the lease of another thread.
    pub(crate) fn reported_call<T>(
        &mut self,
        what: &str,
        result: &Result<Option<T>>,
        is_joined: bool,
    ) {
        let client = self.current_client();
        let call = self
            .reports
            .calls
            .remove(&self.current_task())
            .unwrap_or_default();
        // The machine has stood still: the lock was acquired, and is lost.
        let is_over = |error: &Error| {
            error
                .to_string()
                .contains("its lease ended before the call returned")
        };
        let has_ended = result.as_ref().is_err_and(is_over);
        // A reader that was to share the lease of another thread, and had not waited, has acquired
        // nothing.
        let has_shared =
            has_ended && call.attempts == 0 && call.reason == Some(GaveUpReason::Unavailable);
        let is_unclear = has_ended && !self.is_observed_now();
        let has_acquired = has_ended && !has_shared || matches!(result, Ok(Some(_)));
        let is_joined =
            is_joined || result.is_err() && has_acquired && call.ends > 0 && call.attempts == 0;
        if has_acquired && result.is_err() {
            self.reported_lost_in_call();
        }
        let ended = &mut self.clients[client].ended;
        match has_acquired {
            _ if is_unclear => ended.unclear += 1,
            true if is_joined => ended.joined += 1,
            true => ended.acquired += 1,
            false => ended.others += 1,
        }
        const TRIED: &[GaveUpReason] = &[GaveUpReason::Held];
        const WAITED: &[GaveUpReason] = &[GaveUpReason::TimedOut];
        if !self.is_observed_now() {
            return;
        }
        let expected: Option<&[GaveUpReason]> = match result {
            _ if has_acquired => None,
            Ok(Some(_)) => None,
            Ok(None) if what == "try_lock" => Some(TRIED),
            Ok(None) => Some(WAITED),
            Err(error) => Some(match error.kind() {
                ErrorKind::Cancelled => &[GaveUpReason::Cancelled],
                ErrorKind::Unavailable if has_shared => &[GaveUpReason::Unavailable],
                ErrorKind::Unavailable if error.to_string().contains("too short") => {
                    &[GaveUpReason::TooLate]
                }
                ErrorKind::Unavailable => &[GaveUpReason::Unavailable],
                _ => &[GaveUpReason::Failed],
            }),
        };
        if call.ends > 0 && call.waiting > 0 {
            self.saw("a wait whose end is reported");
        }
        if call.ends > 0 && call.reason.is_some() && call.attempts == 0 {
            self.saw("a call that ends without an attempt");
        }
        if is_joined {
            self.saw("a lease to read that threads share");
            if call.waiting == 0 && call.ends == 0 {
                return;
            }
            self.saw("a wait that ends with the lease of another thread");
        }
        if let Some(fault) = call.fault(expected, is_joined) {
            self.violate("accounted for", format!("{fault}: {what}, {call:?}"));
        }
    }

    /// What a client has counted, when all its calls have returned and all its releases have ended.
    pub(crate) fn check_counters(&mut self, client: usize, text: &str) {
        let sum = |series: &str, label: &str| -> u64 {
            let lines = text
                .lines()
                .filter_map(|line| line.strip_prefix("quorumlock_"))
                .filter(|line| line.starts_with(series) && line.contains(label));
            lines
                .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
                .sum()
        };
        let Ended {
            acquired,
            joined,
            others,
            unclear,
        } = self.clients[client].ended;
        let waits = "wait_seconds_count";
        // Not known is which calls have waited for the lease of another thread.
        let may_be_more = joined + unclear;
        let counted = [
            ("acquired", waits, "\"acquired\"", acquired, may_be_more),
            ("calls", waits, "", acquired + others, may_be_more),
            ("waiting", "waiting{", "", 0, 0),
            ("held", "held{", "", 0, 0),
            ("holds", "hold_seconds_count", "", acquired, unclear),
            ("releases", "releases_total{", "", acquired, unclear),
            ("won", "attempts_total{", "\"won\"", acquired, unclear),
        ];
        for (what, series, label, is, more) in counted {
            let counted = sum(series, label);
            if !(is..=is + more).contains(&counted) {
                let text =
                    format!("client {client} counted {what}: {counted}, and there were {is}");
                return self.violate("accounted for", text);
            }
        }
    }

    /// When all calls have returned, no thread waits.
    pub(crate) fn look_for_waiters(&mut self) {
        let open = |client: &usize| {
            self.plan.clients[*client].is_observed && !self.clients[*client].is_gone
        };
        let waits = |call: &ReportedCall| call.waiting > 0;
        let left = self.reports.calls.iter().filter(|(_, call)| waits(call));
        let waiters = left
            .filter(|(task, _)| open(&self.client_of(**task)))
            .count();
        if waiters > 0 {
            self.violate(
                "accounted for",
                format!("{waiters} calls were reported to wait, and never to end"),
            );
        }
    }
}
