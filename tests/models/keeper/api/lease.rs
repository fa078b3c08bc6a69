//! A lock at rest stays there.

use crate::algorithm::lease::Validity;
use crate::algorithm::time::LeaseTime;
use crate::engine::calls::AttemptRecord;
use crate::protocol::lock_key::LockKey;
use std::time::SystemTime;

pub struct Lease;

impl Lease {
    pub(crate) fn detached(
        _key: LockKey,
        _claim: &AttemptRecord,
        _ttl_millis: u64,
        _lease: Validity,
        _wall: SystemTime,
        _now: LeaseTime,
    ) -> Lease {
        Lease
    }
}
