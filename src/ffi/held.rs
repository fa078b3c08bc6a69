//! What a guard's handle holds: a lock, a level of a reentrant one, a lock to read or to write, or a permit.

use super::code::Code;
use super::failure::Result;
use crate::{
    ByOwner, ExtendOutcome, FencingToken, Lease, MutexGuard, Permit, ReentrantGuard, ReentrantOutcome, ReleaseOutcome,
    RwReadGuard, RwWriteGuard,
};
use std::time::Duration;

pub(super) enum Held {
    Level(ReentrantGuard<ByOwner>),
    Lock(Box<MutexGuard>),
    Permit(Box<Permit>),
    Read(RwReadGuard),
    Write(Box<RwWriteGuard>),
}

impl Held {
    pub(super) fn remaining(&self) -> Duration {
        match self {
            Held::Level(guard) => guard.remaining(),
            Held::Lock(guard) => guard.remaining(),
            Held::Read(guard) => guard.remaining(),
            Held::Write(guard) => guard.remaining(),
            Held::Permit(permit) => permit.remaining(),
        }
    }

    pub(super) fn ensure(&self, at_least: Duration) -> crate::Result<()> {
        match self {
            Held::Level(guard) => guard.ensure(at_least),
            Held::Lock(guard) => guard.ensure(at_least),
            Held::Read(guard) => guard.ensure(at_least),
            Held::Write(guard) => guard.ensure(at_least),
            Held::Permit(permit) => permit.ensure(at_least),
        }
    }

    pub(super) fn fencing_token(&self) -> Option<FencingToken> {
        match self {
            Held::Level(guard) => guard.fencing_token(),
            Held::Lock(guard) => guard.fencing_token(),
            Held::Write(guard) => guard.fencing_token(),
            Held::Permit(_) | Held::Read(_) => None,
        }
    }

    /// Which permit it is; 0 if it is none.
    pub(super) fn slot(&self) -> usize {
        match self {
            Held::Level(_) | Held::Lock(_) | Held::Read(_) | Held::Write(_) => 0,
            Held::Permit(permit) => permit.slot(),
        }
    }

    /// No other thread may be at it.
    pub(super) fn extend(&self, ttl: Duration) -> crate::Result<ExtendOutcome> {
        match self {
            Held::Level(guard) => guard.extend(ttl),
            Held::Lock(guard) => guard.extend_one_at_a_time(ttl),
            Held::Read(guard) => guard.extend(ttl),
            Held::Write(guard) => guard.extend_one_at_a_time(ttl),
            Held::Permit(permit) => permit.extend_one_at_a_time(ttl),
        }
    }

    pub(super) fn on_lost(&self, callback: impl FnOnce() + Send + 'static) -> crate::Result<()> {
        match self {
            Held::Level(guard) => guard.on_lost(callback),
            Held::Lock(guard) => guard.on_lost(callback),
            Held::Read(guard) => guard.on_lost(callback),
            Held::Write(guard) => guard.on_lost(callback),
            Held::Permit(permit) => permit.on_lost(callback),
        }
    }

    pub(super) fn unlock(self) -> Result<Code> {
        let outcome = match self {
            Held::Level(guard) => match guard.unlock()? {
                ReentrantOutcome::Ended(outcome) => outcome,
                ReentrantOutcome::StillHeld(_) => return Ok(Code::StillHeld),
            },
            Held::Lock(guard) => guard.unlock()?,
            Held::Read(guard) => match guard.unlock()? {
                Some(outcome) => outcome,
                None => return Ok(Code::StillHeld),
            },
            Held::Write(guard) => guard.unlock()?,
            Held::Permit(permit) => permit.release()?,
        };
        Ok(match outcome {
            ReleaseOutcome::Expired => Code::Expired,
            ReleaseOutcome::Released => Code::Ok,
        })
    }

    /// The lease, and no guard; or what is held, and why it cannot be detached.
    pub(super) fn detach(self) -> std::result::Result<Lease, Box<(Held, &'static str)>> {
        match self {
            Held::Lock(guard) => Ok(guard.detach()),
            Held::Permit(permit) => Ok(permit.detach()),
            Held::Write(guard) => Ok(guard.detach()),
            Held::Read(guard) => guard
                .detach()
                .map_err(|guard| Box::new((Held::Read(guard), "other threads of the client share the lock to read"))),
            level @ Held::Level(_) => Err(Box::new((level, "a level of a reentrant lock cannot be detached"))),
        }
    }
}
