//! What is stored under a key: a token, the value of another lock, or something else.

use super::token::Token;
use quorumlock::protocol::key_space::KeyKind;
use quorumlock::protocol::kinds::fenced::FencedValue;
use quorumlock::protocol::kinds::plain::Signature;
use quorumlock::protocol::kinds::read_write::ReadWriteValue;
use std::time::Duration;

/// The meaning of a value.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Plain(Signature),
    Fenced(FencedValue),
    ReadWrite(ReadWriteValue),
    /// None of this library.
    Foreign,
}

impl Content {
    /// The meaning of what is stored under this key.
    pub(crate) fn of(key: &str, value: &[u8]) -> Content {
        let content = match KeyKind::of(key).map(|(kind, _)| kind) {
            Some(KeyKind::Plain) => Signature::parse(value).map(Content::Plain),
            Some(KeyKind::Fenced) => FencedValue::parse(value).map(Content::Fenced),
            Some(KeyKind::ReadWrite) => ReadWriteValue::parse(value).map(Content::ReadWrite),
            None => None,
        };
        content.unwrap_or(Content::Foreign)
    }

    pub(crate) fn label(&self) -> Option<String> {
        let label = match self {
            Content::Plain(signature) => signature.label(),
            Content::Fenced(value) => value.owner.label(),
            Content::ReadWrite(_) | Content::Foreign => return None,
        };
        label.as_str().map(str::to_owned)
    }

    /// The last fence that is kept, when the server's clock shows that.
    pub(crate) fn fence(&self, server_ms: u64) -> Option<u64> {
        match self {
            Content::Fenced(value) => Some(value.fence),
            Content::ReadWrite(value) if value.fence > 0 && value.kept >= server_ms => Some(value.fence),
            _ => None,
        }
    }

    /// Whether what holds it are readers.
    pub(crate) fn has_readers(&self) -> bool {
        matches!(self, Content::ReadWrite(ReadWriteValue { is_write: false, .. }))
    }

    /// Each holder, and for how long it is one: of a plain lock as long as the key lives, of others until a deadline.
    pub(crate) fn holders(&self, key_lives: Duration, server_ms: u64) -> Vec<(Token, Duration)> {
        let until = |deadline_ms: u64| Duration::from_millis(deadline_ms.saturating_sub(server_ms));
        let mut holders: Vec<(Token, Duration)> = match self {
            Content::Plain(signature) => vec![(Token::ours(&signature.token), key_lives)],
            Content::Fenced(value) if value.owner.is_held() => {
                vec![(Token::ours(&value.owner.token), until(value.deadline))]
            }
            Content::ReadWrite(value) => {
                value.holds.iter().map(|hold| (Token::ours(&hold.token), until(hold.deadline))).collect()
            }
            Content::Fenced(_) | Content::Foreign => Vec::new(),
        };
        holders.retain(|(_, left)| !left.is_zero());
        holders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_plain_fenced_or_foreign() {
        let digits = "0123456789abcdef0123456789abcdef01234567";
        let fenced_name = "quorumlock-fence:orders";
        let held = Content::of("orders", format!("{digits} billing@host").as_bytes());
        assert!(held.holders(Duration::MAX, 400) == [(Token::ours(digits.as_bytes()), Duration::MAX)]);
        assert_eq!(held.label().as_deref(), Some("billing@host"));
        let held = Content::of(fenced_name, format!("7 1000 {digits} l").as_bytes());
        assert!(held.holders(Duration::MAX, 400) == [(Token::ours(digits.as_bytes()), Duration::from_millis(600))]);
        assert!(held.label().as_deref() == Some("l") && held.holders(Duration::MAX, 1000).is_empty());
        let at_rest = Content::of(fenced_name, b"7 0 ");
        assert!(at_rest.holders(Duration::MAX, 0).is_empty() && at_rest.fence(0) == Some(7));
        for (name, value) in
            [("orders", "word"), ("orders", "7 0 "), (fenced_name, digits), ("quorumlock-rw:a", digits)]
        {
            assert!(Content::of(name, value.as_bytes()) == Content::Foreign, "{name} {value}");
        }
        assert!(Content::of("orders", b"\xff") == Content::Foreign);
    }
}
