//! A node's health: may it be asked now, and if not, why not?
//!
//! ```text
//!                 failed                       answered
//!    up ─────────────────────► backing off ──────────────► up
//!     ▲                          │      ▲
//!     └── answered ── asked ◄────┘      │
//!                       └── failed ─────┘  (twice as long)
//! ```
//!
//! A node that fails is left alone for a while, and counts as its last fault meanwhile; then one
//! request may try it. So a dead or hung node is asked at most once per delay (rule 7.7), for ever,
//! and never given up (rule 7.1). The delay is spread by a little jitter, so that many clients do
//! not come back in the same millisecond.

use super::time::Timestamp;
use crate::fault::{Cause, Fault, Phase};
use std::time::Duration;

/// Delay after the first of several failures in a row.
pub const FIRST_DELAY: Duration = Duration::from_millis(10);
/// Longest delay: how late a revived node may be noticed.
pub const LAST_DELAY: Duration = Duration::from_secs(1);

/// What is known of one node's willingness to answer.
#[derive(Clone, Copy, Debug)]
pub struct Health {
    failures: u32,
    not_before: Timestamp,
    fault: Option<Fault>,
    /// Tells nodes apart, for the jitter.
    salt: u64,
}

impl Health {
    /// A node of which nothing bad is known. `salt` tells nodes apart, for the jitter.
    pub fn new(salt: u64) -> Health {
        Health {
            failures: 0,
            not_before: Timestamp::ORIGIN,
            fault: None,
            salt,
        }
    }

    /// Whether it may be asked now.
    ///
    /// # Errors
    /// Its last fault, while it is left alone.
    pub fn may_ask(&self, now: Timestamp) -> Result<(), Fault> {
        match self.fault {
            Some(fault) if now < self.not_before => Err(fault),
            _ => Ok(()),
        }
    }

    /// When it may be asked again.
    pub fn not_before(&self) -> Timestamp {
        self.not_before
    }

    /// It answered: nothing bad is known of it any more.
    pub fn answered(&mut self) {
        if self.fault.is_some() {
            *self = Health::new(self.salt);
        }
    }

    /// It failed.
    pub fn failed(&mut self, fault: Fault, now: Timestamp) {
        self.fault = Some(fault);
        self.failures = self.failures.saturating_add(1);
        self.not_before = now.after(self.delay(now));
    }

    /// A connection that worked was closed, as servers do with idle ones: it may be opened again at
    /// once, but only once, unless it had lasted for longer than the node would ever be left alone.
    pub fn disconnected(&mut self, fault: Fault, lasted: Duration, now: Timestamp) {
        if self.failures > 0 && lasted < LAST_DELAY {
            self.failed(fault, now);
        } else {
            self.failures = 1;
            self.fault = Some(fault);
            self.not_before = now;
        }
    }

    /// Whether it has failed since it last answered.
    pub fn is_suspect(&self) -> bool {
        self.fault.is_some()
    }

    /// Its last fault; when none is known, that it has not answered.
    pub fn fault(&self) -> Fault {
        self.fault
            .unwrap_or(Fault::new(Phase::Connect, Cause::TimedOut))
    }

    fn delay(&self, now: Timestamp) -> Duration {
        let doubled = FIRST_DELAY
            .saturating_mul(1 << (self.failures - 1).min(16))
            .min(LAST_DELAY);
        // Up to a quarter less, by a hash of the moment: enough to part clients, no generator to
        // keep.
        let hash =
            (now.as_nanos() ^ self.salt.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        doubled - (doubled / 4).mul_f64(hash as f64 / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const REFUSED: Fault = Fault::new(Phase::Connect, Cause::Refused);

    fn at(millis: u64) -> Timestamp {
        Timestamp::ORIGIN.after(Duration::from_millis(millis))
    }

    #[test]
    fn a_failing_node_is_asked_once_per_growing_delay() {
        let mut health = Health::new(7);
        let mut now = at(1000);
        let mut asked = Vec::new();
        for _ in 0..5_000 {
            if health.may_ask(now).is_ok() {
                asked.push(now);
                health.failed(REFUSED, now);
            }
            assert_eq!(health.may_ask(now), Err(REFUSED));
            now = now.after(Duration::from_millis(1));
        }
        let gaps: Vec<u128> = asked
            .windows(2)
            .map(|pair| pair[1].since(pair[0]).as_millis())
            .collect();
        for (gap, ceiling) in gaps
            .iter()
            .zip([10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000])
        {
            assert!((ceiling * 3 / 4..=ceiling).contains(gap), "{gaps:?}");
        }
        assert!(gaps.len() >= 8, "{gaps:?}");
    }

    #[test]
    fn clients_that_fail_at_the_same_time_come_back_at_different_times() {
        let delay = |salt, moment| {
            let mut health = Health::new(salt);
            health.failed(REFUSED, at(moment));
            health.not_before().since(at(moment))
        };
        for fixed in [0, 1, u64::MAX] {
            let delays: BTreeSet<_> = (0..100).map(|moment| delay(fixed, moment)).collect();
            assert!(delays.len() > 90, "{fixed}: {}", delays.len());
            let delays: BTreeSet<_> = (0..100).map(|salt| delay(salt, fixed % 1000)).collect();
            assert!(delays.len() > 90, "{fixed}: {}", delays.len());
        }
    }

    #[test]
    fn an_answer_forgets_the_past() {
        let mut health = Health::new(0);
        assert!(!health.is_suspect());
        for _ in 0..10 {
            health.failed(REFUSED, at(0));
        }
        assert_eq!(health.may_ask(at(500)), Err(REFUSED));
        assert!(health.is_suspect() && health.not_before() > at(500));
        health.answered();
        assert_eq!(health.not_before(), Timestamp::ORIGIN);
        assert_eq!(health.may_ask(at(500)), Ok(()));
        health.failed(REFUSED, at(500));
        assert_eq!(health.may_ask(at(510)), Ok(()));
    }

    #[test]
    fn a_closed_idle_connection_may_be_opened_again_at_once_but_only_once() {
        let closed = Fault::new(Phase::Reply, Cause::Closed);
        let mut health = Health::new(0);
        health.disconnected(closed, Duration::ZERO, at(0));
        assert_eq!(health.may_ask(at(0)), Ok(()), "nothing bad was known");
        for _ in 0..3 {
            health.disconnected(closed, LAST_DELAY, at(0));
            assert_eq!(health.may_ask(at(0)), Ok(()));
        }
        health.disconnected(closed, LAST_DELAY / 2, at(0));
        assert_eq!(health.may_ask(at(0)), Err(closed));
    }

    #[test]
    fn failures_without_end_do_not_overflow() {
        let mut health = Health::new(u64::MAX);
        health.failures = u32::MAX;
        health.failed(REFUSED, Timestamp::NEVER);
        assert_eq!(health.may_ask(Timestamp::NEVER), Ok(()));
    }
}
