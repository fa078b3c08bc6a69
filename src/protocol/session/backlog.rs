//! What a server has not replied to, and from when on that is too much.

use crate::algorithm::time::Timestamp;
use std::time::Duration;

/// Unanswered requests beyond which a node gets no new `SET`s, only its releases. Many threads and
/// a far node make a long backlog, which does no harm: what matters is how old the oldest request
/// is. This only leaves room for releases.
pub const SOFT_LIMIT: usize = HARD_LIMIT / 2;
/// Unanswered requests beyond which a connection is closed.
const HARD_LIMIT: usize = 65_536;
/// Unsent bytes beyond which it is closed.
const UNSENT_LIMIT: usize = 8 * 1024 * 1024;

/// What a server has not replied to, or several have not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How many requests.
    pub requests: usize,
    /// How many bytes of them were not sent.
    pub unsent: usize,
    /// When the oldest one was made.
    pub oldest: Option<Timestamp>,
}

impl Backlog {
    /// Whether the oldest request is older than this.
    pub fn is_overdue(&self, limit: Duration, now: Timestamp) -> bool {
        self.oldest.is_some_and(|oldest| now.since(oldest) > limit)
    }

    /// Whether it is that old, or so many requests or unsent bytes are more than a node is asked.
    pub fn is_late(&self, limit: Duration, now: Timestamp) -> bool {
        self.is_overdue(limit, now) || self.requests > SOFT_LIMIT || self.unsent > UNSENT_LIMIT
    }

    /// Whether it is so long that the connection is closed.
    pub fn is_too_long(&self) -> bool {
        self.requests > HARD_LIMIT || self.unsent > UNSENT_LIMIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_is_late_by_its_age_its_requests_or_its_bytes() {
        let limit = Duration::from_millis(100);
        let is_late = |requests, unsent, age: Option<u64>| {
            let now = Timestamp::ORIGIN.after(Duration::from_millis(age.unwrap_or(0)));
            let backlog = Backlog {
                requests,
                unsent,
                oldest: age.map(|_| Timestamp::ORIGIN),
            };
            backlog.is_late(limit, now)
        };
        assert!(!is_late(0, 0, None));
        assert!(!is_late(32_768, 8 << 20, Some(100)));
        assert!(is_late(1, 0, Some(101)));
        assert!(is_late(32_769, 0, Some(0)));
        assert!(is_late(HARD_LIMIT, 0, Some(0)));
        assert!(is_late(1, (8 << 20) + 1, Some(0)));
    }

    #[test]
    fn a_backlog_is_too_long_by_its_requests_or_its_bytes() {
        for (requests, unsent, is_too_long) in [
            (65_536, 8 << 20, false),
            (65_537, 0, true),
            (65_538, 0, true),
            (0, (8 << 20) + 1, true),
            (0, (8 << 20) + 2, true),
        ] {
            let backlog = Backlog {
                requests,
                unsent,
                oldest: None,
            };
            assert_eq!(backlog.is_too_long(), is_too_long, "{backlog:?}");
        }
    }
}
