//! Numbers as the scripts calculate with them: exact up to 2^53 - 1, and those that are clocks in microseconds.

/// The greatest number that a server counts exactly.
pub(super) const MOST: u64 = (1 << 53) - 1;
/// A minute, in microseconds: how far before a server's clock a floor may be.
const MINUTE: u64 = 60_000_000;
/// A day, in microseconds: how far beyond the latest floor a fence may be, and beyond a server's clock a ticket.
pub(super) const DAY: u64 = 86_400_000_000;

/// A number that counts exactly, written without leading zeros.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    let is_canonical = matches!(text, [b'1'..=b'9', ..] | b"0") && text.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(text).ok().filter(|_| is_canonical)?.parse().ok()?;
    (number <= MOST).then_some(number)
}

/// The latest floor of a fence that counts, by a clock.
pub(super) fn latest_floor(clock: u64) -> u64 {
    clock.saturating_add(MINUTE)
}

/// Whether a fence is too far ahead of a clock to be given out.
pub(super) fn is_ahead(fence: u64, clock: u64) -> bool {
    fence > latest_floor(clock).saturating_add(DAY).min(MOST)
}

/// A number of milliseconds or members as scripts return it.
pub(super) fn returned(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
