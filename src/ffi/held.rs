//! What a guard's handle holds: a lock, or a level of a reentrant one.

use super::code::Code;
use super::failure::Result;
use crate::{ByOwner, ExtendOutcome, FencingToken, MutexGuard, ReentrantGuard, ReentrantOutcome, ReleaseOutcome};
use std::time::Duration;

pub(super) enum Held {
    Level(ReentrantGuard<ByOwner>),
    Lock(MutexGuard),
}

impl Held {
    pub(super) fn remaining(&self) -> Duration {
        match self {
            Held::Level(guard) => guard.remaining(),
            Held::Lock(guard) => guard.remaining(),
        }
    }

    pub(super) fn ensure(&self, at_least: Duration) -> crate::Result<()> {
        match self {
            Held::Level(guard) => guard.ensure(at_least),
            Held::Lock(guard) => guard.ensure(at_least),
        }
    }

    pub(super) fn fencing_token(&self) -> Option<FencingToken> {
        match self {
            Held::Level(guard) => guard.fencing_token(),
            Held::Lock(guard) => guard.fencing_token(),
        }
    }

    pub(super) fn extend(&mut self, ttl: Duration) -> crate::Result<ExtendOutcome> {
        match self {
            Held::Level(guard) => guard.extend(ttl),
            Held::Lock(guard) => guard.extend(ttl),
        }
    }

    pub(super) fn on_lost(&self, callback: impl FnOnce() + Send + 'static) -> crate::Result<()> {
        match self {
            Held::Level(guard) => guard.on_lost(callback),
            Held::Lock(guard) => guard.on_lost(callback),
        }
    }

    pub(super) fn unlock(self) -> Result<Code> {
        let outcome = match self {
            Held::Level(guard) => match guard.unlock()? {
                ReentrantOutcome::Ended(outcome) => outcome,
                ReentrantOutcome::StillHeld(_) => return Ok(Code::StillHeld),
            },
            Held::Lock(guard) => guard.unlock()?,
        };
        Ok(match outcome {
            ReleaseOutcome::Expired => Code::Expired,
            ReleaseOutcome::Released => Code::Ok,
        })
    }
}
