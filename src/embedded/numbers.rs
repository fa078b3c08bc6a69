//! Numbers as the scripts calculate with them: exact up to 2^53 - 1, and those that are clocks in microseconds. And the
//! tokens of owners, which are 40 digits.

/// The greatest number that a server counts exactly.
const MOST: u64 = (1 << 53) - 1;
/// A minute, in microseconds: how far before a server's clock a floor may be.
const MINUTE: u64 = 60_000_000;
/// A day, in microseconds: how far beyond the latest floor a fence may be, and beyond a server's clock a ticket.
pub(super) const DAY: u64 = 86_400_000_000;

/// A number as servers accept it: an optional minus and digits without leading zeros, within 64 bits.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let canonical = matches!(digits, [b'1'..=b'9', ..]) || text == b"0";
    if canonical { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

/// A number that counts exactly, written without leading zeros.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    integer(text)?.try_into().ok().filter(|number| *number <= MOST)
}

/// The latest floor of a fence that counts, by a clock.
pub(super) fn latest_floor(clock: u64) -> u64 {
    clock.saturating_add(MINUTE)
}

/// Whether a fence is too far ahead of a clock to be given out.
pub(super) fn is_ahead(fence: u64, clock: u64) -> bool {
    fence > latest_floor(clock).saturating_add(DAY).min(MOST)
}

/// A time, or a number of milliseconds, as servers calculate with it and as scripts return it. The greatest one that
/// fits stands for all that are greater.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Bytes of an owner token.
pub(super) const TOKEN: usize = 40;

/// Whether the library writes owner tokens so.
pub(super) fn is_token(text: &[u8]) -> bool {
    text.len() == TOKEN && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
