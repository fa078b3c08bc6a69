//! Locks to read: the threads of a client share one lease. A thread that finds it asks no node,
//! unless the nodes were asked a while ago.

use super::Lock;
use super::account::CallAccount;
use super::attempts::Attempts;
use crate::algorithm::acquire::WaitLimit;
use crate::algorithm::kind::Kind;
use crate::algorithm::lease::Ttl;
use crate::algorithm::time::Timestamp;
use crate::api::held::Held;
use crate::api::held_lock::HeldLock;
use crate::api::share::Share;
use crate::api::shared_lock::SharedLock;
use crate::api::wait::Wait;
use crate::events::error::Result;
use crate::events::event::GaveUpReason;
use crate::events::report::WonCall;
use crate::events::spans::{HoldOutcome, HoldSpan, SpanLink, WaitSpan};
use std::sync::Arc;

impl Lock {
    /// Takes the lock to read, or shares the lease of another thread of this client.
    pub(super) fn take_to_read(&self, wait: Option<&Wait>) -> Result<Option<Held>> {
        // A call that has not waited came after the nodes were asked.
        let (came_at, until) = match wait {
            None => (self.client.engine.now(), Some(self.attempt_end())),
            Some(_) => (Timestamp::NEVER, None),
        };
        let span = self.begin_call()?;
        match self.join(came_at, until, &span) {
            Ok(None) => {}
            Ok(Some(share)) if self.client.shutdown.has_begun() => share.give_back(),
            Ok(Some(share)) => {
                span.end(0, None);
                self.keep(&share.lock.held, || self.client.engine.lease_now());
                return Ok(Some(Held::Shared(share)));
            }
            Err(error) => {
                let account = CallAccount::open(self, span);
                let failed = Err(error);
                account.close(&failed, GaveUpReason::Held);
                return failed;
            }
        }
        let share = self.take_by(wait, span, |attempts: &mut Attempts<'_, '_>| {
            if wait.is_some()
                && let Some(share) = self.join_at_head(attempts)?
            {
                return Ok(Some(share));
            }
            let Some(lock) = attempts.run()? else {
                return Ok(None);
            };
            // The thread's place in the queue outlasts this: the next one finds the lease.
            let share = self.share(SharedLock::new(lock), attempts.account.span.link());
            Ok(Some(share))
        })?;
        Ok(share.map(Held::Shared))
    }

    /// Shares a lock to read with the threads of this client from now on.
    pub(super) fn share(&self, shared: Arc<SharedLock>, link: SpanLink) -> Share {
        self.reads
            .iter()
            .for_each(|reads| reads.insert(self.key().title(), &shared));
        Share::of(shared).shown_by(self.read_span(link))
    }

    fn read_span(&self, link: SpanLink) -> HoldSpan {
        HoldSpan::begin(&self.client.names, self.key(), Kind::Read, link)
    }

    /// Makes what a writer holds a lock to read, with the settings of this lock.
    pub(in crate::api) fn downgrade(&self, writer: HeldLock) -> Result<Share> {
        self.client.check_process()?;
        let ttl = self.prepare()?;
        let asked_at = self.client.engine.now();
        let reader = writer.downgrade(ttl, self.watchdog.as_ref())?;
        let held_here = reader.hold_id();
        let link = reader.span.link();
        let share = self.share(SharedLock::asked_at(asked_at, reader), link);
        share.lock.held.span.end(HoldOutcome::Downgraded);
        // Threads of this client that wait to read share its lease.
        self.local.release(held_here, self.client.engine.now());
        Ok(share)
    }

    /// Joins the threads of this client that read, if a lease of theirs will do: without `until`,
    /// one that can be shared at once; with it, also one that the nodes grant anew by then.
    fn join(
        &self,
        came_at: Timestamp,
        until: Option<Timestamp>,
        span: &WaitSpan,
    ) -> Result<Option<Share>> {
        self.client.check_process()?;
        let ttl = self.prepare()?;
        let Some(shared) = self.shared() else {
            return Ok(None);
        };
        let share = Share::of(shared);
        match self.is_joined(&share.lock, ttl, came_at, until) {
            Ok(true) => Ok(Some(share.shown_by(self.read_span(span.link())))),
            other => {
                // The others may have gone meanwhile.
                share.give_back();
                other.map(|_| None)
            }
        }
    }

    /// How long a call tries to share a lease: another thread may use that for longer, in a
    /// callback.
    fn attempt_end(&self) -> Timestamp {
        let engine = &self.client.engine;
        engine.now().after(engine.node_timeout() * 2)
    }

    /// The lease that a thread of this client has, unless the client is shut down.
    fn shared(&self) -> Option<Arc<SharedLock>> {
        self.reads
            .as_ref()
            .filter(|_| !self.client.shutdown.has_begun())
            .and_then(|reads| reads.find(self.key().title()))
    }

    fn is_joined(
        &self,
        lock: &SharedLock,
        ttl: Ttl,
        came_at: Timestamp,
        until: Option<Timestamp>,
    ) -> Result<bool> {
        if !lock.join(ttl, came_at, until)? {
            return Ok(false);
        }
        // Where another thread watches the lease without a watchdog, one with a watchdog has a
        // lease of its own.
        self.watchdog
            .as_ref()
            .map_or(Ok(true), |watchdog| lock.is_extended_for(watchdog, ttl))
    }

    /// Joins them as the first of the threads that wait.
    fn join_at_head(&self, attempts: &mut Attempts<'_, '_>) -> Result<Option<Share>> {
        let came_at = attempts.account.called_at.steady;
        // A limit that has passed since is one all the same.
        let until = match attempts.call.limit {
            WaitLimit::Until(deadline) if deadline > came_at => deadline.min(self.attempt_end()),
            _ => self.attempt_end(),
        };
        let has_lease = self.shared().is_some();
        match self.join(came_at, Some(until), &attempts.account.span)? {
            Some(share) => self.joined(attempts, share).map(Some),
            None => {
                if has_lease {
                    attempts.machine.was_unavailable();
                }
                Ok(None)
            }
        }
    }

    /// Reports a call that has waited and shares a lease now.
    fn joined(&self, attempts: &mut Attempts<'_, '_>, share: Share) -> Result<Share> {
        if attempts.account.has_waited {
            let waited = self
                .client
                .engine
                .now()
                .since(attempts.account.called_at.steady);
            let won = WonCall {
                waited,
                has_waited: true,
                ..WonCall::default()
            };
            self.client.report.acquired(self.key().title(), &won);
            attempts.account.is_reported = true;
        }
        match attempts.call.check_granted(&share.lock.held, true) {
            Ok(()) => {
                self.keep(&share.lock.held, || self.client.engine.lease_now());
                Ok(share)
            }
            Err(error) => {
                share.give_back();
                Err(error)
            }
        }
    }
}
