//! A detached lease, whatever its kind: what another thread or process needs to continue with a
//! held lock.
//!
//! ```text
//!   MutexGuard ── detach ──► Lease ──────────────── attach ──► MutexGuard
//!                              │ into_text              ▲
//!                              ▼                        │ parse
//!                          SecretText ── pipe, file ── &str
//! ```
//!
//! It has no client, no thread and no connection; its keys stay on the nodes and expire there.
//! Invariants:
//! 1. There is one of it: `attach` and `into_text` consume it. The library does not know of copies
//!    of the text.
//! 2. It never lasts longer than the lock did when it was detached. Within the process, its own
//!    clock ensures this. Elsewhere only the wall clock can; and as that may be wrong, a lease
//!    never lasts longer than its whole time to live from when it is attached.
//! 3. The owner token leaves it in its text alone.

use crate::algorithm::kind::Kind;
use crate::algorithm::lease::{OwnerToken, Ttl, Validity};
use crate::algorithm::time::{Clock, LeaseTime};
use crate::engine::calls::AttemptRecord;
use crate::os::clock::SystemClock;
use crate::protocol::lock_key::LockKey;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last millisecond of the year 9999: an end that every system can represent.
pub(super) const LATEST_END_MILLIS: u64 = 253_402_300_799_999;

/// A lease without a guard.
#[cfg_attr(test, derive(PartialEq))]
pub(crate) struct DetachedLease {
    pub(crate) key: LockKey,
    pub(super) ttl_millis: u64,
    /// By the wall clock, since 1970. At most [`LATEST_END_MILLIS`].
    pub(super) end_millis: u64,
    pub(crate) kind: Kind,
    pub(crate) token: OwnerToken,
    /// Its end by the clock of this process, of which there is one, for as long as the lease has
    /// not left it.
    pub(super) end_here: Option<LeaseTime>,
}

impl DetachedLease {
    /// What remains at `now`. To be read in this order: the wall clock, then the other, so that
    /// what passes in between is taken off.
    pub(crate) fn new(
        key: LockKey,
        claim: &AttemptRecord,
        ttl_millis: u64,
        validity: Validity,
        wall: SystemTime,
        now: LeaseTime,
    ) -> DetachedLease {
        // A wall clock before 1970 is not one to rely on.
        let wall = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        let end = wall.saturating_add(validity.remaining(now)).as_millis();
        let end_millis = u64::try_from(end)
            .unwrap_or(u64::MAX)
            .min(LATEST_END_MILLIS);
        DetachedLease {
            key,
            ttl_millis,
            end_millis,
            kind: claim.kind,
            token: claim.token.clone(),
            end_here: Some(validity.end()),
        }
    }

    /// How long the lock was last asked to last.
    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_millis)
    }

    /// When the lock ends by the wall clock.
    pub(crate) fn end(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.end_millis)
    }

    /// How long it can still be relied on.
    pub(crate) fn remaining(&self) -> Duration {
        let now = SystemClock.lease_now();
        self.end_from(now, SystemTime::now(), self.ttl()).since(now)
    }

    /// For how long it may be relied on by a client that reckons with this time to live. To be read
    /// in this order: `now`, then the wall clock.
    pub(crate) fn validity(&self, ttl: Ttl, now: LeaseTime, wall: SystemTime) -> Validity {
        Validity::until(self.end_from(now, wall, ttl.validity()))
    }

    /// Its end by the clock of this process: no later than any of the clocks allows, and `longest`
    /// from now at most.
    fn end_from(&self, now: LeaseTime, wall: SystemTime, longest: Duration) -> LeaseTime {
        let left = self.end().duration_since(wall).unwrap_or_default();
        now.after(left.min(longest))
            .min(self.end_here.unwrap_or(LeaseTime::NEVER))
    }
}

/// Shows the key and the end, never the owner token.
impl fmt::Debug for DetachedLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("key", self.key.title())
            .field("end", &self.end())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::lease::MAX_TTL;
    use crate::algorithm::node::NodeSet;
    use crate::algorithm::time::{Readings, Timestamp};
    use crate::engine::calls::KeyOrigin;

    /// Valid for 988 ms.
    fn ttl() -> Ttl {
        Ttl::new(Duration::from_secs(1), 0.01, MAX_TTL).unwrap()
    }

    fn here(millis: u64) -> LeaseTime {
        LeaseTime::ORIGIN.after(Duration::from_millis(millis))
    }

    fn wall(millis: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(millis)
    }

    fn claim() -> AttemptRecord {
        let token = OwnerToken::from_entropy([7; OwnerToken::ENTROPY]);
        let t0 = Readings {
            steady: Timestamp::ORIGIN,
            lease: here(5_000),
        };
        let reached = NodeSet::EMPTY;
        let origin = KeyOrigin::Here;
        let kind = Kind::Plain;
        AttemptRecord {
            token,
            t0,
            reached,
            origin,
            departure: None,
            kind,
        }
    }

    /// A lock that was taken at 5 000 by this clock, and detached 200 ms later, at 60 000 by the
    /// wall clock.
    fn lease() -> DetachedLease {
        DetachedLease::new(
            LockKey::One("k".into()),
            &claim(),
            1000,
            ttl().lease_from(here(5_000)),
            wall(60_000),
            here(5_200),
        )
    }

    /// The same in another process.
    fn elsewhere(lease: DetachedLease) -> DetachedLease {
        DetachedLease::from_text(lease.to_text().expose()).unwrap()
    }

    fn left(lease: &DetachedLease, now: LeaseTime, wall: SystemTime) -> Duration {
        lease.validity(ttl(), now, wall).remaining(now)
    }

    #[test]
    fn a_lease_lasts_as_long_as_its_lock_did_here_and_elsewhere() {
        assert_eq!(lease().end(), wall(60_788));
        for passed in [0, 1, 787, 788, 789, 100_000] {
            let expected = Duration::from_millis(788_u64.saturating_sub(passed));
            assert_eq!(
                left(&lease(), here(5_200 + passed), wall(60_000 + passed)),
                expected
            );
            // Another clock, with another origin.
            assert_eq!(
                left(&elsewhere(lease()), here(9 + passed), wall(60_000 + passed)),
                expected
            );
        }
    }

    #[test]
    fn a_wall_clock_set_back_makes_no_lease_longer_than_it_could_ever_have_been() {
        for back in [0, 1, 59_000, 59_800] {
            assert_eq!(
                left(&lease(), here(5_300), wall(back)),
                Duration::from_millis(688),
                "not at all here"
            );
            assert_eq!(
                left(&elsewhere(lease()), here(9), wall(back)),
                ttl().validity(),
                "nor by more elsewhere"
            );
        }
        assert_eq!(left(&lease(), here(5_988), wall(0)), Duration::ZERO);
        assert_eq!(
            left(
                &elsewhere(lease()),
                here(9),
                SystemTime::UNIX_EPOCH - Duration::from_secs(1)
            ),
            ttl().validity()
        );
    }

    #[test]
    fn a_wall_clock_set_forward_ends_a_lease_early() {
        for lease in [lease(), elsewhere(lease())] {
            assert_eq!(
                left(&lease, here(5_200), wall(60_500)),
                Duration::from_millis(288)
            );
            assert_eq!(left(&lease, here(5_200), wall(60_788)), Duration::ZERO);
            assert_eq!(
                left(&lease, here(5_200), wall(LATEST_END_MILLIS)),
                Duration::ZERO
            );
        }
    }

    #[test]
    fn a_wall_clock_out_of_its_range_neither_overflows_nor_makes_a_lease_longer() {
        let before = UNIX_EPOCH - Duration::from_secs(1);
        for (wall, millis) in [
            (before, 788),
            (wall(LATEST_END_MILLIS + 1), LATEST_END_MILLIS),
        ] {
            let validity = ttl().lease_from(here(5_000));
            let lease = DetachedLease::new(
                LockKey::One("k".into()),
                &claim(),
                1000,
                validity,
                wall,
                here(5_200),
            );
            assert_eq!(lease.end_millis, millis);
            assert!(left(&elsewhere(lease), here(5_200), wall) <= ttl().validity());
        }
    }

    #[test]
    fn what_is_shown_has_no_token() {
        let lease = lease();
        let token = String::from_utf8(lease.token.digits().to_vec()).unwrap();
        let shown = format!("{lease:?}");
        assert!(
            shown.starts_with("Lease { key: \"k\", end: SystemTime") && !shown.contains("0707"),
            "{shown}"
        );
        assert!(lease.to_text().expose().ends_with(&token));
    }

    #[test]
    fn no_clock_makes_a_lease_longer_than_its_lock_or_its_time_to_live() {
        let moments = [
            0,
            1,
            987,
            988,
            989,
            60_000,
            LATEST_END_MILLIS - 1,
            LATEST_END_MILLIS,
        ];
        let clocks = [
            0,
            1,
            987_999_999,
            988_000_000,
            60_000_000_000,
            u64::MAX - 1,
            u64::MAX,
        ]
        .map(LeaseTime::from_nanos);
        let ends_here: Vec<Option<LeaseTime>> =
            clocks.map(Some).into_iter().chain([None]).collect();
        for (end_millis, &end_here) in moments
            .into_iter()
            .flat_map(|end| ends_here.iter().map(move |here| (end, here)))
        {
            let lease = DetachedLease {
                end_millis,
                end_here,
                ..lease()
            };
            for (wall_millis, now) in moments
                .into_iter()
                .flat_map(|wall| clocks.map(|now| (wall, now)))
            {
                let left = left(&lease, now, wall(wall_millis));
                assert!(left <= ttl().validity());
                assert!(left <= Duration::from_millis(end_millis.saturating_sub(wall_millis)));
                assert!(end_here.is_none_or(|end| left <= end.since(now)));
            }
        }
    }
}
