//! A held lock on its way to another thread or process.

use super::boundary::{enter, value};
use super::code::Code;
use super::failure::{Failure, Result};
use super::handle::{Lent, Output, Returned};
use super::report::Report;
use super::secret::Secret;
use super::slot::Slot;
use super::text::{Bytes, Str};
use std::time::{Duration, UNIX_EPOCH};

/// `quorumlock_lease`. What it says of itself stays when it is used up.
pub(super) struct Lease {
    key: String,
    ttl: Duration,
    fence: u64,
    end: Duration,
    rest: Slot<Option<crate::Lease>>,
}

impl Lease {
    pub(super) fn new(lease: crate::Lease) -> Result<Lease> {
        let key = lease.key().to_owned();
        let end = lease.end().duration_since(UNIX_EPOCH).unwrap_or_default();
        let fence = lease.fencing_token().map_or(0, u64::from);
        Ok(Lease { key, ttl: lease.ttl(), fence, end, rest: Slot::new(Some(lease))? })
    }

    /// There is one of it: it goes once.
    pub(super) fn take(&self) -> Result<crate::Lease> {
        self.rest.lock()?.take().ok_or_else(|| Failure::plain(Code::Consumed))
    }

    fn remaining(&self) -> Option<Duration> {
        self.rest.lock().ok()?.as_ref().map(crate::Lease::remaining)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_lease_free(lease: Returned<Lease>) {
    value((), || lease.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_lease_key(lease: Lent<Lease>) -> Str {
    value(Str::EMPTY, || Some(Str::of(&lease.optional()?.key)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_lease_ttl_ms(lease: Lent<Lease>) -> u64 {
    value(0, || Some(millis(lease.optional()?.ttl)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_lease_fencing_token(lease: Lent<Lease>) -> u64 {
    value(0, || Some(lease.optional()?.fence))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_lease_end_unix_ms(lease: Lent<Lease>) -> u64 {
    value(0, || Some(millis(lease.optional()?.end)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_lease_remaining_ms(lease: Lent<Lease>) -> u64 {
    value(0, || lease.optional()?.remaining().map(millis))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_lease_into_text(
    lease: Lent<Lease>,
    secret: Output<*const Secret>,
    error: Output<*const Report>,
) -> Code {
    enter(error, || {
        let lease = lease.content("lease")?;
        let secret = secret.required("secret")?;
        secret.give(Secret { text: lease.take()?.into_text() });
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_lease_from_text(
    text: Bytes,
    text_length: usize,
    lease: Output<*const Lease>,
    error: Output<*const Report>,
) -> Code {
    enter(error, || {
        let text = text.text(text_length, "text")?;
        let lease = lease.required("lease")?;
        lease.give(Lease::new(text.parse()?)?);
        Ok(Code::Ok)
    })
}
