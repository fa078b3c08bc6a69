//! Reasons to end a wait before its time: faults that time does not cure (rule 3.1), and a key that
//! never expires (rule 3.6).
//!
//! Either must last before it ends a wait. A fail-over makes a replica of a node for a moment, and
//! another client may set a key first and its expiry by a second command.

use super::time::Timestamp;
use std::time::Duration;

/// For how long each reason has been there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlyEnd {
    quorum_impossible_since: Option<Timestamp>,
    endless_since: Option<Timestamp>,
}

impl EarlyEnd {
    /// Takes what an attempt that began at `t0` found: whether no quorum is possible for permanent
    /// faults.
    pub fn record_faults(&mut self, is_quorum_impossible: bool, t0: Timestamp) {
        let since = self.quorum_impossible_since.unwrap_or(t0);
        self.quorum_impossible_since = is_quorum_impossible.then_some(since);
    }

    /// Takes what an attempt that was decided at `now` found: whether the lock is held by a key
    /// that has no expiry on a majority.
    pub fn record_key(&mut self, is_endless: bool, now: Timestamp) {
        let since = self.endless_since.unwrap_or(now);
        self.endless_since = is_endless.then_some(since);
    }

    /// Another wait for the same lock has found since then that no quorum is possible for permanent
    /// faults.
    pub fn was_quorum_impossible(&mut self, since: Timestamp) {
        self.quorum_impossible_since = Some(since);
    }

    /// Since when no quorum is possible for permanent faults, if that is so.
    pub fn quorum_impossible_since(&self) -> Option<Timestamp> {
        self.quorum_impossible_since
    }

    /// Whether no quorum has been possible for so long.
    pub fn is_quorum_impossible(&self, now: Timestamp, limit: Duration) -> bool {
        self.quorum_impossible_since
            .is_some_and(|since| now.since(since) >= limit)
    }

    /// Whether two attempts in a row, that much apart, found that the key never expires.
    pub fn is_endless(&self, now: Timestamp, apart: Duration) -> bool {
        self.endless_since
            .is_some_and(|since| since < now && now.since(since) >= apart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::ORIGIN.after(Duration::from_millis(millis))
    }

    #[test]
    fn permanent_faults_count_from_the_first_attempt_of_a_row() {
        let mut end = EarlyEnd::default();
        let limit = Duration::from_millis(100);
        assert!(!end.is_quorum_impossible(at(1000), limit));
        end.record_faults(true, at(10));
        end.record_faults(true, at(60));
        assert_eq!(end.quorum_impossible_since(), Some(at(10)));
        assert!(
            !end.is_quorum_impossible(at(109), limit) && end.is_quorum_impossible(at(110), limit)
        );
        end.record_faults(false, at(110));
        end.record_faults(true, at(120));
        assert!(
            !end.is_quorum_impossible(at(219), limit) && end.is_quorum_impossible(at(220), limit)
        );
        end.was_quorum_impossible(at(50));
        assert!(end.is_quorum_impossible(at(150), limit));
    }

    #[test]
    fn a_key_is_endless_when_two_attempts_in_a_row_say_so() {
        for apart in [0, 100] {
            let mut end = EarlyEnd::default();
            let apart = Duration::from_millis(apart);
            end.record_key(true, at(10));
            assert!(!end.is_endless(at(10), apart), "one attempt");
            end.record_key(true, at(111));
            assert!(end.is_endless(at(111), apart));
            end.record_key(false, at(112));
            end.record_key(true, at(113));
            assert!(!end.is_endless(at(113), apart));
        }
    }
}
