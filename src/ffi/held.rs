//! What a guard's handle holds: a lock of any kind, of which only a writer's can become another
//! one.

use super::code::Code;
use super::failure::{Failure, Result};
use crate::kind::{Any, Fenced, Write};
use crate::{ExtendOutcome, FencingToken, Lease, MutexGuard, ReleaseOutcome};
use std::time::Duration;

pub(super) enum Held {
    Any(MutexGuard<Any>),
    FencedWrite(MutexGuard<Fenced<Write>>),
    Write(MutexGuard<Write>),
}

impl Held {
    pub(super) fn name(&self) -> &str {
        match self {
            Held::Any(guard) => guard.name(),
            Held::FencedWrite(guard) => guard.name(),
            Held::Write(guard) => guard.name(),
        }
    }

    pub(super) fn remaining(&self) -> Duration {
        match self {
            Held::Any(guard) => guard.remaining(),
            Held::FencedWrite(guard) => guard.remaining(),
            Held::Write(guard) => guard.remaining(),
        }
    }

    pub(super) fn ensure(&self, remaining: Duration) -> crate::Result<()> {
        match self {
            Held::Any(guard) => guard.ensure(remaining),
            Held::FencedWrite(guard) => guard.ensure(remaining),
            Held::Write(guard) => guard.ensure(remaining),
        }
    }

    pub(super) fn fence(&self) -> Option<FencingToken> {
        match self {
            Held::Any(guard) => guard.fence(),
            Held::FencedWrite(guard) => Some(guard.fence()),
            Held::Write(_) => None,
        }
    }

    pub(super) fn extend(&self, ttl: Duration) -> crate::Result<ExtendOutcome> {
        match self {
            Held::Any(guard) => guard.extend(ttl),
            Held::FencedWrite(guard) => guard.extend(ttl),
            Held::Write(guard) => guard.extend(ttl),
        }
    }

    pub(super) fn on_lost(&self, callback: impl FnOnce() + Send + 'static) -> crate::Result<()> {
        match self {
            Held::Any(guard) => guard.on_lost(callback),
            Held::FencedWrite(guard) => guard.on_lost(callback),
            Held::Write(guard) => guard.on_lost(callback),
        }
    }

    pub(super) fn unlock(self) -> Result<Code> {
        Ok(match self.into_any().unlock()? {
            ReleaseOutcome::Expired => Code::Expired,
            ReleaseOutcome::Released => Code::Ok,
            ReleaseOutcome::StillHeld(_) => Code::StillHeld,
        })
    }

    pub(super) fn detach(self) -> crate::Result<Lease<Any>> {
        self.into_any().detach()
    }

    /// A lock to read, of one to write.
    pub(super) fn downgrade(self) -> Result<Held> {
        let reader = match self {
            Held::FencedWrite(guard) => guard.downgrade()?,
            Held::Write(guard) => guard.downgrade()?,
            Held::Any(_) => {
                return Err(Failure::new(Code::Config, "the lock is not held to write"));
            }
        };
        Ok(Held::Any(reader.erase()))
    }

    pub(super) fn is_writer(&self) -> bool {
        !matches!(self, Held::Any(_))
    }

    fn into_any(self) -> MutexGuard<Any> {
        match self {
            Held::Any(guard) => guard,
            Held::FencedWrite(guard) => guard.erase(),
            Held::Write(guard) => guard.erase(),
        }
    }
}
