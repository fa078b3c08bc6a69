//! A held lock on its way to another thread or process.

use super::boundary::{call_or, call_with_error};
use super::code::Code;
use super::error_object::ErrorObject;
use super::failure::{Failure, Result};
use super::fork_safe_mutex::ForkSafeMutex;
use super::handle::{Borrowed, Output, Returned};
use super::secret::SecretHandle;
use super::text::{Bytes, Str};
use super::times::millis;
use crate::Lease;
use crate::kind::Any;
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

    fn remaining(&self) -> Option<Duration> {
        self.rest.lock().ok()?.as_ref().map(Lease::remaining)
    }
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_lease_free(lease: Returned<LeaseHandle>) {
    call_or((), || lease.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_lease_key(lease: Borrowed<LeaseHandle>) -> Str {
    call_or(Str::EMPTY, || Some(Str::of(&lease.optional()?.key)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_lease_ttl_ms(lease: Borrowed<LeaseHandle>) -> u64 {
    call_or(0, || Some(millis(lease.optional()?.ttl)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_lease_fencing_token(lease: Borrowed<LeaseHandle>) -> u64 {
    call_or(0, || Some(lease.optional()?.fence))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_lease_end_unix_ms(lease: Borrowed<LeaseHandle>) -> u64 {
    call_or(0, || Some(millis(lease.optional()?.end)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_lease_remaining_ms(lease: Borrowed<LeaseHandle>) -> u64 {
    call_or(0, || lease.optional()?.remaining().map(millis))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_lease_into_text(
    lease: Borrowed<LeaseHandle>,
    secret: Output<*const SecretHandle>,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let lease = lease.required("lease")?;
        let secret = secret.required("secret")?;
        secret.write_handle(SecretHandle {
            text: lease.take()?.into_text(),
        });
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_lease_from_text(
    text: Bytes,
    text_length: usize,
    lease: Output<*const LeaseHandle>,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let text = text.text(text_length, "text")?;
        let lease = lease.required("lease")?;
        lease.write_handle(LeaseHandle::new(text.parse()?)?);
        Ok(Code::Ok)
    })
}
