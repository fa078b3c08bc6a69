//! A held lock on its way to another thread or process.

use super::boundary::{calls, frees, parts};
use super::code::Code;
use super::failure::{Failure, Result};
use super::fork_safe_mutex::ForkSafeMutex;
use super::handle::Borrowed;
use super::text::Str;
use super::times::millis;
use crate::kind::Any;
use crate::{Lease, SecretText};
use std::time::{Duration, UNIX_EPOCH};

/// `quorumlock_lease`. Its fields can still be read when it is used up.
pub(super) struct LeaseHandle {
    key: String,
    ttl: Duration,
    fence: u64,
    end: Duration,
    rest: ForkSafeMutex<Option<Lease<Any>>>,
}

impl LeaseHandle {
    pub(super) fn new(lease: Lease<Any>) -> Result<LeaseHandle> {
        let key = lease.key().to_owned();
        let end = lease.end().duration_since(UNIX_EPOCH).unwrap_or_default();
        let fence = lease.fence().map_or(0, u64::from);
        Ok(LeaseHandle {
            key,
            ttl: lease.ttl(),
            fence,
            end,
            rest: ForkSafeMutex::new(Some(lease))?,
        })
    }

    /// There is one of it: it goes once.
    pub(super) fn take(&self) -> Result<Lease<Any>> {
        self.rest
            .lock()?
            .take()
            .ok_or_else(|| Failure::plain(Code::Consumed))
    }

    fn remaining(&self) -> Duration {
        let rest = self.rest.lock().ok();
        rest.and_then(|rest| rest.as_ref().map(Lease::remaining))
            .unwrap_or_default()
    }
}

frees! {
    quorumlock_lease_free(LeaseHandle);
    quorumlock_secret_free(SecretText);
}

parts! { Borrowed<LeaseHandle>:
    quorumlock_lease_key() -> Str = |lease| Str::of(&lease.key);
    quorumlock_lease_ttl_ms() -> u64 = |lease| millis(lease.ttl);
    quorumlock_lease_fencing_token() -> u64 = |lease| lease.fence;
    quorumlock_lease_end_unix_ms() -> u64 = |lease| millis(lease.end);
    quorumlock_lease_remaining_ms() -> u64 = |lease| millis(lease.remaining());
}

parts! { Borrowed<SecretText>:
    quorumlock_secret_text() -> Str = |secret| Str::of(secret.expose());
}

calls! {
    fn quorumlock_lease_into_text(&lease: LeaseHandle; new secret: SecretText; error) {
        lease.take()?.into_text()
    }

    fn quorumlock_lease_from_text(*text[text_length]; new lease: LeaseHandle; error) {
        LeaseHandle::new(text.parse()?)?
    }
}
