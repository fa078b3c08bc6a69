//! The ways to take a lock: by one attempt, or by a wait.

use super::Lock;
use super::account::CallAccount;
use super::attempts::Attempts;
use super::call::LockCall;
use super::queueing;
use crate::algorithm::acquire::WaitLimit;
use crate::algorithm::kind::Kind;
use crate::algorithm::time::{Readings, Timestamp};
use crate::api::held::Held;
use crate::api::owner::{self, Owner};
use crate::api::wait::{Limit, Wait};
use crate::events::error::Result;
use crate::events::event::GaveUpReason;
use crate::events::spans::WaitSpan;
use std::time::Instant;

impl Lock {
    /// Takes the lock, waiting as `wait` allows; without it, by one attempt. None: the lock is
    /// held, or the limit has passed; never without a limit. An owner may hold the lock already;
    /// the thread is the owner of a reentrant lock.
    pub(in crate::api) fn take(
        &self,
        owner: Option<&Owner>,
        wait: Option<&Wait>,
    ) -> Result<Option<Held>> {
        match (owner, self.kind) {
            (Some(owner), _) => owner.take(self, wait),
            _ if self.is_reentrant => owner::of_thread().take(self, wait),
            (None, Kind::Read) => self.take_to_read(wait),
            _ => self.take_by(wait, self.begin_call()?, |attempts| attempts.run_for_held()),
        }
    }

    /// Takes the lock, by the call of this span. `at_head` makes the attempts, when this thread is
    /// first.
    pub(super) fn take_by<'m, G>(
        &'m self,
        wait: Option<&Wait>,
        span: WaitSpan,
        at_head: impl FnOnce(&mut Attempts<'_, 'm>) -> Result<Option<G>>,
    ) -> Result<Option<G>> {
        if let Err(error) = wait.map_or(Ok(()), Wait::check_process) {
            span.end(0, Some(GaveUpReason::Failed));
            return Err(error);
        }
        let _in_progress = self.client.shutdown.begin_call(wait.is_none());
        let mut account = CallAccount::open(self, span);
        let call = self.call(wait, account.called_at.steady);
        let once = Wait::unlimited();
        let result = call.and_then(|call| match wait {
            None => at_head(&mut Attempts::new(call, None, &once, &mut account)),
            Some(wait) => self.take_in_turn(call, wait, &mut account, at_head),
        });
        let if_held = match wait {
            None => GaveUpReason::Held,
            Some(_) => GaveUpReason::TimedOut,
        };
        account.close(&result, if_held);
        result
    }

    /// Waits to be first among the threads of this client, and then for the lock.
    fn take_in_turn<'m, G>(
        &'m self,
        mut call: LockCall<'m>,
        wait: &Wait,
        account: &mut CallAccount<'m>,
        at_head: impl FnOnce(&mut Attempts<'_, 'm>) -> Result<Option<G>>,
    ) -> Result<Option<G>> {
        let mut now = account.called_at;
        // A set waits for one of its keys at a time: the first that a guard of this client holds.
        let mut held = self.first_held(now);
        // It leaves one queue when it has joined the next: a shutdown finds the call in one.
        let mut queued = None;
        loop {
            let place = held.unwrap_or_default();
            let (ticket, position) = match &self.permits {
                Some(permits) => permits.join(now),
                None => self.local.queues()[place].join(now),
            };
            let ticket = queued.insert(ticket);
            if !queueing::wait_in_queue(&mut call, ticket, position, now, wait, account)? {
                return Ok(None);
            }
            if held.is_some() {
                now = self.client.engine.readings();
                held = self.first_held(now);
            }
            // Without time to wait, the call makes its one attempt, as with a single key.
            if held.is_none() || call.wait_deadline().is_none() {
                let queued = queued.take().map(|ticket| (ticket, place));
                return at_head(&mut Attempts::new(call, queued, wait, account));
            }
        }
    }

    /// The first key of a set that a guard of this client holds.
    fn first_held(&self, now: Readings) -> Option<usize> {
        if self.is_set() {
            self.local.first_held(now.lease)
        } else {
            None
        }
    }

    fn call(&self, wait: Option<&Wait>, now: Timestamp) -> Result<LockCall<'_>> {
        let limit = match wait.map(|wait| wait.limit) {
            None => WaitLimit::Once,
            Some(Limit::Never) => WaitLimit::WhileAvailable(self.client.settings.unavailable_after),
            Some(Limit::Timeout(timeout)) => WaitLimit::Until(now.after(timeout)),
            Some(Limit::Deadline(deadline)) => {
                WaitLimit::Until(now.after(deadline.saturating_duration_since(Instant::now())))
            }
        };
        Ok(LockCall {
            lock: self,
            local: &self.local,
            ttl: self.prepare()?,
            limit,
            started: now,
        })
    }
}
