//! What stands under a key: a token, the value of a fenced lock, or something else.

use quorumlock::protocol::fenced::FENCED_KEY_PREFIX;
use quorumlock::protocol::read_write::READ_WRITE_KEY_PREFIX;
use std::time::Duration;

/// Digits of an owner token.
const TOKEN_DIGITS: usize = 40;
/// Digits of a token that are shown, at most: enough to tell holders apart, too few to release a lock.
const SHOWN_DIGITS: usize = 6;
/// Longest label.
const LONGEST_LABEL: usize = 64;

/// An owner token, which releases a lock: it is compared and sent, and shown in part.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Token(String);

/// The meaning of a value.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// A plain lock, held with this token.
    Plain { token: Token, label: Option<String> },
    /// A fenced lock: the last fence, and by which token it is held until which time of the server, if it is.
    Fenced { fence: u64, deadline_ms: u64, holder: Option<Token>, label: Option<String> },
    /// No lock of this library.
    Foreign,
    /// A read-write lock: entries of readers or a writer, or the mark of one that waits.
    ReadWrite,
}

impl Token {
    /// Its bytes, as a command takes them.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The first digits.
    pub(crate) fn shown(&self) -> &str {
        &self.0[..SHOWN_DIGITS]
    }

    fn of(text: &str) -> Option<Token> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == TOKEN_DIGITS && text.bytes().all(is_digit)).then(|| Token(text.to_owned()))
    }
}

impl Content {
    /// The meaning of what stands under a key whose name behind the prefix is this.
    pub(crate) fn of(name: &str, value: &[u8]) -> Content {
        let Ok(text) = std::str::from_utf8(value) else {
            return Content::Foreign;
        };
        if name.starts_with(READ_WRITE_KEY_PREFIX) && ["r ", "w ", "q "].iter().any(|word| text.starts_with(word)) {
            return Content::ReadWrite;
        }
        let content = if name.starts_with(FENCED_KEY_PREFIX) { fenced(text) } else { plain(text) };
        content.unwrap_or(Content::Foreign)
    }

    pub(crate) fn token(&self) -> Option<&Token> {
        match self {
            Content::Plain { token, .. } => Some(token),
            Content::Fenced { holder, .. } => holder.as_ref(),
            Content::Foreign | Content::ReadWrite => None,
        }
    }

    pub(crate) fn label(&self) -> Option<&str> {
        match self {
            Content::Plain { label, .. } | Content::Fenced { label, .. } => label.as_deref(),
            Content::Foreign | Content::ReadWrite => None,
        }
    }

    /// For how long it is held: a plain lock as long as its key lives, a fenced one until its deadline.
    pub(crate) fn remaining(&self, key_lives: Duration, server_ms: u64) -> Duration {
        match self {
            Content::Plain { .. } | Content::ReadWrite => key_lives,
            Content::Fenced { deadline_ms, holder: Some(_), .. } => {
                Duration::from_millis(deadline_ms.saturating_sub(server_ms))
            }
            Content::Fenced { .. } | Content::Foreign => Duration::ZERO,
        }
    }
}

fn plain(text: &str) -> Option<Content> {
    let (token, label) = labelled(text)?;
    Some(Content::Plain { token: Token::of(token)?, label })
}

/// `fence deadline token`, the token empty if the lock is free.
fn fenced(text: &str) -> Option<Content> {
    let (fence, rest) = text.split_once(' ')?;
    let (deadline, rest) = rest.split_once(' ')?;
    let (token, label) = labelled(rest)?;
    let holder = if token.is_empty() { None } else { Some(Token::of(token)?) };
    Some(Content::Fenced { fence: fence.parse().ok()?, deadline_ms: deadline.parse().ok()?, holder, label })
}

/// A token, and the label behind it.
fn labelled(text: &str) -> Option<(&str, Option<String>)> {
    let Some((token, label)) = text.split_once(' ') else {
        return Some((text, None));
    };
    let is_label = (1..=LONGEST_LABEL).contains(&label.len()) && label.bytes().all(|byte| byte.is_ascii_graphic());
    is_label.then(|| (token, Some(label.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_plain_fenced_or_foreign() {
        let digits = "0123456789abcdef0123456789abcdef01234567";
        let token = Token::of(digits);
        let fenced_name = "quorumlock-fence:orders";
        let plain =
            |label: Option<&str>| Content::Plain { token: token.clone().unwrap(), label: label.map(str::to_owned) };
        assert!(Content::of("orders", digits.as_bytes()) == plain(None));
        assert!(Content::of("orders", format!("{digits} billing@host").as_bytes()) == plain(Some("billing@host")));
        let at_rest = Content::of(fenced_name, b"7 0 ");
        assert!(at_rest == Content::Fenced { fence: 7, deadline_ms: 0, holder: None, label: None });
        let held = Content::of(fenced_name, format!("7 1000 {digits} l").as_bytes());
        assert!(held.token() == token.as_ref() && held.label() == Some("l"));
        assert_eq!(held.remaining(Duration::MAX, 400), Duration::from_millis(600));
        for (name, value) in [
            ("orders", "0123456789ABCDEF0123456789abcdef01234567"),
            ("orders", "word"),
            ("orders", "7 0 "),
            (fenced_name, digits),
            (fenced_name, "7 x "),
            (fenced_name, "7 0 word"),
        ] {
            assert!(Content::of(name, value.as_bytes()) == Content::Foreign, "{name} {value}");
        }
        assert!(Content::of("orders", b"\xff") == Content::Foreign);
    }

    #[test]
    fn six_digits_are_shown() {
        assert_eq!(Token::of(&"ab".repeat(20)).unwrap().shown(), "ababab");
    }
}
