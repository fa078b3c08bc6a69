//! A lock at rest stays there.

use crate::algorithm::lease::Validity;
use crate::algorithm::time::LeaseTime;
use crate::engine::calls::AttemptRecord;
use crate::protocol::lock_key::LockKey;
use std::time::SystemTime;

pub(crate) struct DetachedLease;

impl DetachedLease {
    pub(crate) fn new(
        _key: LockKey,
        _claim: &AttemptRecord,
        _ttl_millis: u64,
        _lease: Validity,
        _wall: SystemTime,
        _now: LeaseTime,
    ) -> DetachedLease {
        DetachedLease
    }
}
