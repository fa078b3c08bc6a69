//! The holder of a lock: an owner token, and how much of it is shown, or a program of another
//! library.

use crate::json::{Object, maybe, object, quoted};
use quorumlock::algorithm::lease::OwnerToken;
use std::fmt;

/// Digits of a token that are shown, at most: enough to tell holders apart, too few to release a
/// lock.
const SHOWN_DIGITS: usize = 6;

/// A holder, as the value of a key names it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Token {
    /// An owner token, which releases a lock: it is compared, and shown in part.
    Ours(String),
    /// Any value that is none of this library. Where a majority has one, no client gets the lock,
    /// whether or not the values are the same.
    OtherLibrary,
}

impl Token {
    /// The holder with this signature, an owner token and perhaps a label.
    pub(super) fn ours(signature: &[u8]) -> Token {
        let digits = signature.get(..OwnerToken::LENGTH).unwrap_or(signature);
        Token::Ours(String::from_utf8_lossy(digits).into_owned())
    }

    /// The first digits of the owner token.
    fn digits(&self) -> Option<&str> {
        match self {
            Token::Ours(digits) => Some(&digits[..SHOWN_DIGITS]),
            Token::OtherLibrary => None,
        }
    }
}

/// A holder as part of an object: `token`, `other_library` and `label`.
pub(crate) fn json(token: Option<&Token>, label: Option<&str>) -> Object {
    object! {
        "token": maybe(token.and_then(Token::digits).map(quoted)),
        "other_library": token == Some(&Token::OtherLibrary),
        "label": maybe(label.map(quoted)),
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.digits() {
            Some(digits) => write!(f, "{digits}…"),
            None => f.write_str("another library"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_digits_are_shown() {
        assert_eq!(
            Token::ours("ab".repeat(20).as_bytes()).to_string(),
            "ababab…"
        );
        assert_eq!(Token::OtherLibrary.to_string(), "another library");
    }
}
