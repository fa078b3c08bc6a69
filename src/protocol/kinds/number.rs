//! Numbers in values and replies, as the scripts write them.

use crate::algorithm::fence::FencingToken;

/// The number with these digits: written without leading zeros, and no greater than what a server
/// counts exactly.
pub fn number(digits: &[u8]) -> Option<u64> {
    match digits {
        b"0" => Some(0),
        _ => positive(digits),
    }
}

/// The same for a number that is never zero.
pub fn positive(digits: &[u8]) -> Option<u64> {
    FencingToken::from_digits(digits).map(FencingToken::get)
}
