//! Numbers as servers accept them, and as the scripts calculate with clocks in microseconds.

use super::reply::{Failure, NOT_AN_INTEGER};
use crate::algorithm::digits;
use crate::algorithm::fence::FencingToken;

/// A minute, in microseconds: how far before a server's clock a floor may be.
const MINUTE: u64 = 60_000_000;
/// A day, in microseconds: how far beyond the latest floor a fence may be, and beyond a server's
/// clock a ticket.
pub(super) const DAY: u64 = 86_400_000_000;

/// A number as servers accept it, which is how they write it.
///
/// # Errors
/// What a server replies to what is none.
pub(super) fn integer(text: &[u8]) -> Result<i64, Failure> {
    digits::integer(text).ok_or(NOT_AN_INTEGER)
}

/// The latest floor of a fence that counts, by a clock.
pub(super) fn latest_floor(clock: u64) -> u64 {
    clock.saturating_add(MINUTE)
}

/// Whether a fence is too far ahead of a clock to be given out.
pub(super) fn is_ahead(fence: u64, clock: u64) -> bool {
    fence
        > latest_floor(clock)
            .saturating_add(DAY)
            .min(FencingToken::MAX.get())
}

/// A time, or a number of milliseconds, as servers calculate with it and as scripts return it. The
/// greatest one that fits represents all that are greater.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
