//! An owner token, and how much of it is shown.

/// Digits of an owner token.
const DIGITS: usize = 40;
/// Digits of a token that are shown, at most: enough to tell holders apart, too few to release a lock.
const SHOWN_DIGITS: usize = 6;

/// An owner token, which releases a lock: it is compared and sent, and shown in part.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Token(String);

impl Token {
    /// Its bytes, as a command takes them.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The first digits.
    pub(crate) fn shown(&self) -> &str {
        &self.0[..SHOWN_DIGITS]
    }

    pub(super) fn of(text: &str) -> Option<Token> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == DIGITS && text.bytes().all(is_digit)).then(|| Token(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_digits_are_shown() {
        assert_eq!(Token::of(&"ab".repeat(20)).unwrap().shown(), "ababab");
    }
}
