//! What one node has under one key.

use super::content::Content;
use super::queue::Queue;
use super::token::Token;
use quorumlock::protocol::key_space::KeyKind;
use std::collections::BTreeMap;
use std::time::Duration;

/// What one node has.
#[derive(Default)]
pub(crate) struct Keys {
    /// The keys of locks.
    pub(crate) locks: BTreeMap<String, Sighting>,
    /// The queues that are not empty.
    pub(crate) queues: BTreeMap<String, Queue>,
}

/// How long a key lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    For(Duration),
    /// It has no expiry.
    Forever,
}

/// What is stored under a key, as far as it is read.
#[derive(Clone)]
pub(crate) enum Stored {
    /// A string, whole. Not to be shown.
    Text(Vec<u8>),
    /// A string that is longer than any lock of its kind. It is not read to its end.
    LongText,
    /// A hash, a list, or another type.
    OtherType,
}

/// What one node has under one key.
#[derive(Clone)]
pub(crate) struct Sighting {
    pub(crate) content: Content,
    pub(crate) lifetime: Lifetime,
    /// Each holder, and for how long it is one, as this node has it.
    pub(crate) holders: Vec<(Token, Duration)>,
    /// For how long the lock is held by any of them.
    pub(crate) remaining: Duration,
    /// The last number, as long as this node keeps it.
    pub(crate) fence: Option<u64>,
    /// Empty where all keys are listed, so that the list takes little memory.
    pub(crate) stored: Stored,
}

impl Sighting {
    /// What this means under this key, when the server's clock shows that.
    pub(crate) fn of(key: &str, stored: Stored, lifetime: Lifetime, server_ms: u64) -> Sighting {
        let content = match &stored {
            Stored::Text(value) => Content::of(key, value),
            Stored::LongText | Stored::OtherType => Content::Foreign,
        };
        let lives = if let Lifetime::For(time) = lifetime { time } else { Duration::MAX };
        let mut holders = content.holders(lives, server_ms);
        if is_of_other_library(key, &content, &stored, lifetime) {
            holders.push((Token::OtherLibrary, lives));
        }
        let remaining = holders.iter().map(|(_, left)| *left).max().unwrap_or_default();
        let fence = content.fence(server_ms);
        Sighting { content, lifetime, holders, remaining, fence, stored }
    }

    /// The holder that stays longest.
    pub(crate) fn token(&self) -> Option<&Token> {
        self.holders.iter().max_by_key(|(_, left)| *left).map(|(token, _)| token)
    }

    /// Why it is no lock that can be compared and deleted; none if it is one.
    pub(crate) fn oddity(&self) -> Option<&'static str> {
        match (&self.stored, &self.content) {
            (Stored::OtherType, _) => Some("a value of another type"),
            (Stored::LongText, _) => Some("a value that is longer than any lock"),
            (Stored::Text(_), Content::Foreign) if self.holders.is_empty() => Some("a value that is none of a lock"),
            (Stored::Text(_), _) => None,
        }
    }
}

/// Whether it is a lock as other libraries make them: a string that expires, under the full name alone.
fn is_of_other_library(key: &str, content: &Content, stored: &Stored, lifetime: Lifetime) -> bool {
    let is_string = !matches!(stored, Stored::OtherType);
    let is_plain = KeyKind::of(key).is_some_and(|(kind, _)| kind == KeyKind::Plain);
    *content == Content::Foreign && is_plain && is_string && lifetime != Lifetime::Forever
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_that_expires_is_a_lock_of_another_library() {
        let minute = Lifetime::For(Duration::from_secs(60));
        let uuid = || Stored::Text(b"2b7c1f0e-9d9e-4d61-a2cb-5a4d6a1f7c11".to_vec());
        let other_library = |name: &str, stored, lifetime| {
            let seen = Sighting::of(name, stored, lifetime, 0);
            let is_so = seen.token() == Some(&Token::OtherLibrary);
            assert_eq!(seen.remaining, if is_so { Duration::from_secs(60) } else { Duration::ZERO }, "{name}");
            (is_so, seen.oddity().is_some())
        };
        assert_eq!(other_library("a", uuid(), minute), (true, false));
        assert_eq!(other_library("a", Stored::LongText, minute), (true, true));
        assert_eq!(other_library("a", uuid(), Lifetime::Forever), (false, true));
        assert_eq!(other_library("a", Stored::OtherType, minute), (false, true));
        // No other library has names of this one.
        assert_eq!(other_library("quorumlock-rw:a", uuid(), minute), (false, true));
    }
}
