//! What one node has under one key.

use super::queue::Queue;
use super::token::Token;
use quorumlock::protocol::key_space;
use quorumlock::protocol::kinds::key_kind::{Hold, StoredLock};
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest value of a lock: a read-write lock with all its readers has less than 4000 bytes.
pub(crate) const LONGEST_LOCK: usize = 4096;

/// What one node has.
#[derive(Default)]
pub(crate) struct Keys {
    /// The keys of locks.
    pub(crate) locks: BTreeMap<String, Sighting>,
    /// The queues that are not empty.
    pub(crate) queues: BTreeMap<String, Queue>,
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
    /// What it means; none if it is no lock of this library.
    pub(crate) lock: Option<StoredLock>,
    /// How long the key lives; none if it has no expiry.
    pub(crate) expires_in: Option<Duration>,
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
    pub(crate) fn of(
        key: &str,
        stored: Stored,
        expires_in: Option<Duration>,
        server_ms: u64,
    ) -> Sighting {
        let lock = match &stored {
            Stored::Text(value) => key_space::lock(key).and_then(|(kind, _)| (kind.parse)(value)),
            Stored::LongText | Stored::OtherType => None,
        };
        let lives = expires_in.unwrap_or(Duration::MAX);
        let until = |deadline_ms| match deadline_ms {
            Hold::KEY_END => lives,
            _ => Duration::from_millis(deadline_ms.saturating_sub(server_ms)),
        };
        let holds = lock.iter().flat_map(|lock| &lock.holds);
        let mut holders: Vec<(Token, Duration)> = holds
            .map(|hold| (Token::ours(&hold.signature), until(hold.deadline)))
            .collect();
        holders.retain(|(_, left)| !left.is_zero());
        // As other libraries make locks: a string that expires, under the full name alone.
        let is_string = !matches!(stored, Stored::OtherType);
        if lock.is_none() && is_string && key_space::is_plain(key) && expires_in.is_some() {
            holders.push((Token::OtherLibrary, lives));
        }
        let remaining = holders
            .iter()
            .map(|(_, left)| *left)
            .max()
            .unwrap_or_default();
        let numbered = lock
            .as_ref()
            .filter(|lock| lock.fence > 0 && lock.kept >= server_ms);
        let fence = numbered.map(|lock| lock.fence);
        Sighting {
            lock,
            expires_in,
            holders,
            remaining,
            fence,
            stored,
        }
    }

    /// The holder that stays longest.
    pub(crate) fn token(&self) -> Option<&Token> {
        self.holders
            .iter()
            .max_by_key(|(_, left)| *left)
            .map(|(token, _)| token)
    }

    /// The label of the holder.
    pub(crate) fn label(&self) -> Option<&str> {
        self.lock.as_ref().and_then(|lock| lock.label.as_str())
    }

    /// Whether what holds it are readers.
    pub(crate) fn has_readers(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.is_read)
    }

    /// Why it is no lock that can be compared and deleted; none if it is one.
    pub(crate) fn oddity(&self) -> Option<&'static str> {
        match (&self.stored, &self.lock) {
            (Stored::OtherType, _) => Some("a value of another type"),
            (Stored::LongText, _) => Some("a value that is longer than any lock"),
            (Stored::Text(_), None) if self.holders.is_empty() => {
                Some("a value that is none of a lock")
            }
            (Stored::Text(_), _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_that_expires_is_a_lock_of_another_library() {
        let minute = Some(Duration::from_secs(60));
        let uuid = || Stored::Text(b"2b7c1f0e-9d9e-4d61-a2cb-5a4d6a1f7c11".to_vec());
        let other_library = |name: &str, stored, expires_in| {
            let seen = Sighting::of(name, stored, expires_in, 0);
            let is_so = seen.token() == Some(&Token::OtherLibrary);
            assert_eq!(
                seen.remaining,
                if is_so {
                    Duration::from_secs(60)
                } else {
                    Duration::ZERO
                },
                "{name}"
            );
            (is_so, seen.oddity().is_some())
        };
        assert_eq!(other_library("a", uuid(), minute), (true, false));
        assert_eq!(other_library("a", Stored::LongText, minute), (true, true));
        assert_eq!(other_library("a", uuid(), None), (false, true));
        assert_eq!(other_library("a", Stored::OtherType, minute), (false, true));
        // No other library has names of this one.
        assert_eq!(
            other_library("quorumlock-rw:a", uuid(), minute),
            (false, true)
        );
    }

    #[test]
    fn values_are_plain_fenced_or_foreign() {
        let digits = "0123456789abcdef0123456789abcdef01234567";
        let fenced_name = "quorumlock-fence:orders";
        let seen = |name: &str, value: &[u8], server_ms| {
            let stored = Stored::Text(value.to_vec());
            Sighting::of(name, stored, Some(Duration::from_secs(9)), server_ms)
        };
        let held = seen("orders", format!("{digits} billing@host").as_bytes(), 400);
        assert!(held.holders == [(Token::ours(digits.as_bytes()), Duration::from_secs(9))]);
        assert_eq!(held.label(), Some("billing@host"));
        let held = |server_ms| {
            seen(
                fenced_name,
                format!("7 1000 {digits} l").as_bytes(),
                server_ms,
            )
        };
        assert!(
            held(400).holders == [(Token::ours(digits.as_bytes()), Duration::from_millis(600))]
        );
        assert!(held(400).label() == Some("l") && held(1000).holders.is_empty());
        let at_rest = seen(fenced_name, b"7 0 ", 0);
        assert!(at_rest.holders.is_empty() && at_rest.fence == Some(7));
        for (name, value) in [
            ("orders", "word"),
            ("orders", "7 0 "),
            (fenced_name, digits),
            ("quorumlock-rw:a", digits),
        ] {
            assert!(
                seen(name, value.as_bytes(), 0).lock.is_none(),
                "{name} {value}"
            );
        }
        assert!(seen("orders", b"\xff", 0).lock.is_none());
    }
}
