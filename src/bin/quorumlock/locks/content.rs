//! What is stored under a key: a token, the value of another lock, or something else.

use super::entries::{self, ReadWrite};
use super::token::Token;
use quorumlock::protocol::key_space::KeyKind;
use std::time::Duration;

/// Longest label.
const LONGEST_LABEL: usize = 64;

/// The meaning of a value.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// A plain lock, held with this token.
    Plain {
        token: Token,
        label: Option<String>,
    },
    /// A fenced lock: the last fence, and by which token it is held until which time of the server, if it is.
    Fenced {
        fence: u64,
        deadline_ms: u64,
        holder: Option<Token>,
        label: Option<String>,
    },
    ReadWrite(ReadWrite),
    /// None of this library.
    Foreign,
}

impl Content {
    /// The meaning of what is stored under this key.
    pub(crate) fn of(key: &str, value: &[u8]) -> Content {
        let Ok(text) = std::str::from_utf8(value) else {
            return Content::Foreign;
        };
        let content = match KeyKind::of(key).map(|(kind, _)| kind) {
            Some(KeyKind::Plain) => plain(text),
            Some(KeyKind::Fenced) => fenced(text),
            Some(KeyKind::ReadWrite) => entries::read_write(text).map(Content::ReadWrite),
            None => None,
        };
        content.unwrap_or(Content::Foreign)
    }

    pub(crate) fn label(&self) -> Option<&str> {
        match self {
            Content::Plain { label, .. } | Content::Fenced { label, .. } => label.as_deref(),
            Content::ReadWrite(_) | Content::Foreign => None,
        }
    }

    /// The last fence that is kept, when the server's clock shows that.
    pub(crate) fn fence(&self, server_ms: u64) -> Option<u64> {
        match *self {
            Content::Fenced { fence, .. } => Some(fence),
            Content::ReadWrite(ReadWrite { fence: Some((fence, kept_ms)), .. }) if kept_ms >= server_ms => Some(fence),
            _ => None,
        }
    }

    /// Whether what holds it are readers.
    pub(crate) fn has_readers(&self) -> bool {
        matches!(self, Content::ReadWrite(ReadWrite { is_writer: false, .. }))
    }

    /// Each holder, and for how long it is one: of a plain lock as long as the key lives, of others until a deadline.
    pub(crate) fn holders(&self, key_lives: Duration, server_ms: u64) -> Vec<(Token, Duration)> {
        let until = |deadline_ms: u64| Duration::from_millis(deadline_ms.saturating_sub(server_ms));
        let mut holders: Vec<(Token, Duration)> = match self {
            Content::Plain { token, .. } => vec![(token.clone(), key_lives)],
            Content::Fenced { deadline_ms, holder: Some(token), .. } => vec![(token.clone(), until(*deadline_ms))],
            Content::ReadWrite(ReadWrite { entries, .. }) => {
                entries.iter().map(|(token, deadline)| (token.clone(), until(*deadline))).collect()
            }
            Content::Fenced { .. } | Content::Foreign => Vec::new(),
        };
        holders.retain(|(_, left)| !left.is_zero());
        holders
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
    let (fence, deadline_ms) = (entries::positive(fence)?, entries::number(deadline)?);
    Some(Content::Fenced { fence, deadline_ms, holder, label })
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
        assert!(held.holders(Duration::MAX, 400) == [(token.clone().unwrap(), Duration::from_millis(600))]);
        assert!(held.label() == Some("l") && held.holders(Duration::MAX, 1000).is_empty());
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
}
