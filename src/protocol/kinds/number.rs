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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_it_is_written() {
        for exact in [0, 1, 42, FencingToken::MAX.get()] {
            assert_eq!(number(exact.to_string().as_bytes()), Some(exact));
        }
        for other in "|00|01|+1|-1|1.5|1e3| 1|9007199254740992|18446744073709551616".split('|') {
            assert_eq!(number(other.as_bytes()), None, "{other:?}");
        }
        assert_eq!((positive(b"0"), positive(b"7")), (None, Some(7)));
    }
}
