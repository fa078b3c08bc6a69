//! A held lock at rest: what another thread or process needs in order to go on with it.
//!
//! ```text
//!   MutexGuard ── detach ──► Lease ──────────────── attach ──► MutexGuard
//!                              │ into_text              ▲
//!                              ▼                        │ parse
//!                          SecretText ── pipe, file ── &str
//! ```
//!
//! A lease at rest has no client, no thread and no connection; its keys stay on the nodes and run out there.
//! Invariants:
//! 1. There is one of it: `attach` and `into_text` consume it. The library does not know of copies of the text.
//! 2. It never lasts longer than the lock did when it was detached. Within the process, its own clock says so.
//!    Elsewhere only the wall clock can; and as that may be wrong, a lease never lasts longer than its whole time to
//!    live from when it is attached.
//! 3. The owner token leaves it in its text alone.

mod text;

pub use text::SecretText;

use crate::algorithm::fence::FencingToken;
use crate::algorithm::kind::Kind;
use crate::algorithm::lease::{OwnerToken, Ttl, Validity};
use crate::algorithm::time::{Clock, LeaseTime};
use crate::engine::calls::AttemptRecord;
use crate::events::error::{Error, Result};
use crate::os::clock::SystemClock;
use crate::protocol::lock_key::LockKey;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use text::{LATEST_END_MILLIS, LeaseContent};

/// A held lock without a guard, on its way to another thread or process.
/// [`MutexGuard::detach`](crate::MutexGuard::detach) makes one, [`Redlock::attach`](crate::Redlock::attach) and
/// [`Mutex::attach`](crate::Mutex::attach) make a guard of it.
///
/// The lock is still held: no other client gets it before [`end`](Lease::end). **Dropping a lease releases nothing**,
/// and nothing extends it; a lease that is not attached runs out.
///
/// ```
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
/// use quorumlock::{ExtendOutcome, Lease, ReleaseOutcome};
/// use std::time::Duration;
///
/// let lease: Lease = redlock.mutex("orders/42").lock()?.detach();
/// let text = lease.into_text();
///
/// // In another process, which has read `line` from a pipe, say.
/// # let line = text.expose();
/// let lease: Lease = line.parse()?;
/// let mut guard = redlock.attach(lease)?;
/// assert_eq!(guard.extend(Duration::from_secs(5))?, ExtendOutcome::Extended);
/// assert_eq!(guard.unlock()?, ReleaseOutcome::Released);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Whose it is
///
/// A lock has one holder because a lease has one owner. Its text can be copied, and the library cannot know: if two
/// processes attach the same text, both believe that they have the lock. The first to unlock it ends it for both; the
/// other's `unlock` then says [`Expired`](crate::ReleaseOutcome::Expired), its extensions
/// [`Lost`](crate::ExtendOutcome::Lost). A child made by `fork` has a copy as well: one of the two attaches it, the
/// child with a client of its own.
///
/// # How long it lasts
///
/// In the process that detached it, exactly as long as the guard would have. Once it has been text, its end is a time
/// of the wall clock, so that it means something in another process, on another machine and after a restart. So **the
/// wall clocks must agree**: by as much as one is behind, the lease is believed in for too long there, though never for
/// longer than its time to live. `extend` right after `attach` makes it certain: it asks the nodes, and counts from
/// then.
#[must_use = "dropping a lease releases nothing: the lock stays held until it runs out"]
pub struct Lease {
    content: LeaseContent,
    /// Its end by the clock of this process, of which there is one, for as long as the lease has not left it.
    end_here: Option<LeaseTime>,
}

impl Lease {
    /// The lock's key on the nodes: the marker of its kind, the prefix of its client, and the name of the resource. For
    /// a [set](crate::MutexSet), the first of its [`keys`](Lease::keys).
    pub fn key(&self) -> &str {
        &self.content.key.each()[0]
    }

    /// The keys of the lock of a [set](crate::MutexSet), in order. Of any other lock, its key.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.content.key.each().iter().map(|key| &**key)
    }

    /// How long the lock was last asked to last.
    pub fn ttl(&self) -> Duration {
        Duration::from_millis(self.content.ttl_millis)
    }

    /// When the lock ends by the wall clock, in whole milliseconds, rounded down.
    pub fn end(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.content.end_millis)
    }

    /// The number that the acquisition was given, if the lock is [fenced](crate::Mutex::fenced), or a [fenced
    /// writer's](crate::RwMutex::fenced).
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.content.kind.fence()
    }

    /// For how long the lock may still be relied on, by the clocks as they are now. Zero once it may not: it cannot be
    /// attached any more.
    pub fn remaining(&self) -> Duration {
        let now = SystemClock.lease_now();
        self.end_from(now, SystemTime::now(), self.ttl()).since(now)
    }

    /// The lease as one line of text, for another process. `parse` makes a lease of it again:
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// # let lease = redlock.mutex("orders/42").lock()?.detach();
    /// use quorumlock::Lease;
    ///
    /// let text = lease.into_text();
    /// assert!(text.expose().starts_with("quorumlock-lease:1:orders/42:10000:"));
    /// let again: Lease = text.expose().parse()?;
    /// assert_eq!(again.key(), "orders/42");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A process that has the text has the lock: see [`SecretText`].
    pub fn into_text(self) -> SecretText {
        self.content.to_text()
    }

    /// What is left at `now`. To be read in this order: the wall clock, then the other, so that what passes in between
    /// is taken off.
    pub(crate) fn detached(
        key: LockKey,
        claim: &AttemptRecord,
        ttl_millis: u64,
        validity: Validity,
        wall: SystemTime,
        now: LeaseTime,
    ) -> Lease {
        // A wall clock before 1970 is not one to rely on.
        let wall = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        let end = wall.saturating_add(validity.remaining(now)).as_millis();
        let end_millis = u64::try_from(end).unwrap_or(u64::MAX).min(LATEST_END_MILLIS);
        let content = LeaseContent { key, ttl_millis, end_millis, kind: claim.kind, token: claim.token.clone() };
        Lease { content, end_here: Some(validity.end()) }
    }

    /// For how long it may be relied on by a client that reckons with this time to live. To be read in this order:
    /// `now`, then the wall clock.
    pub(crate) fn validity(&self, ttl: Ttl, now: LeaseTime, wall: SystemTime) -> Validity {
        Validity::until(self.end_from(now, wall, ttl.validity()))
    }

    /// The key, or those of a set.
    pub(crate) fn lock_key(&self) -> &LockKey {
        &self.content.key
    }

    /// What kind of lock it is of.
    pub(crate) fn kind(&self) -> Kind {
        self.content.kind
    }

    /// The token that the lock is held with.
    pub(crate) fn token(&self) -> OwnerToken {
        self.content.token.clone()
    }

    /// Its end by the clock of this process: no later than any of the clocks allows, and `longest` from now at most.
    fn end_from(&self, now: LeaseTime, wall: SystemTime, longest: Duration) -> LeaseTime {
        let left = self.end().duration_since(wall).unwrap_or_default();
        now.after(left.min(longest)).min(self.end_here.unwrap_or(LeaseTime::NEVER))
    }
}

/// Reads what [`Lease::into_text`] wrote: exactly that, without a line feed or blank around it, so trim it if it comes
/// from a file. Whether the lease still lasts is found out when it is attached.
///
/// An error is of kind [`Config`](crate::ErrorKind::Config): the text is damaged, of a later version, or something
/// else. It is never quoted.
impl FromStr for Lease {
    type Err = Error;

    fn from_str(text: &str) -> Result<Lease> {
        Ok(Lease { content: LeaseContent::from_text(text)?, end_here: None })
    }
}

/// Shows the key and the end, never the owner token.
impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("key", self.content.key.title()).field("end", &self.end()).finish_non_exhaustive()
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
        let t0 = Readings { steady: Timestamp::ORIGIN, lease: here(5_000) };
        let (reached, origin, kind) = (NodeSet::EMPTY, KeyOrigin::Here, Kind::Plain);
        AttemptRecord { token, t0, reached, origin, departure: None, kind }
    }

    /// A lock that was taken at 5 000 by this clock, and detached 200 ms later, at 60 000 by the wall clock.
    fn lease() -> Lease {
        Lease::detached(
            LockKey::One("k".into()),
            &claim(),
            1000,
            ttl().lease_from(here(5_000)),
            wall(60_000),
            here(5_200),
        )
    }

    /// The same in another process.
    fn elsewhere(lease: Lease) -> Lease {
        lease.into_text().expose().parse().unwrap()
    }

    fn left(lease: &Lease, now: LeaseTime, wall: SystemTime) -> Duration {
        lease.validity(ttl(), now, wall).remaining(now)
    }

    #[test]
    fn a_lease_lasts_as_long_as_its_lock_did_here_and_elsewhere() {
        assert_eq!(lease().end(), wall(60_788));
        for passed in [0, 1, 787, 788, 789, 100_000] {
            let expected = Duration::from_millis(788_u64.saturating_sub(passed));
            assert_eq!(left(&lease(), here(5_200 + passed), wall(60_000 + passed)), expected);
            // Another clock, with another origin.
            assert_eq!(left(&elsewhere(lease()), here(9 + passed), wall(60_000 + passed)), expected);
        }
    }

    #[test]
    fn a_wall_clock_set_back_makes_no_lease_longer_than_it_could_ever_have_been() {
        for back in [0, 1, 59_000, 59_800] {
            assert_eq!(left(&lease(), here(5_300), wall(back)), Duration::from_millis(688), "not at all here");
            assert_eq!(left(&elsewhere(lease()), here(9), wall(back)), ttl().validity(), "nor by more elsewhere");
        }
        assert_eq!(left(&lease(), here(5_988), wall(0)), Duration::ZERO);
        assert_eq!(
            left(&elsewhere(lease()), here(9), SystemTime::UNIX_EPOCH - Duration::from_secs(1)),
            ttl().validity()
        );
    }

    #[test]
    fn a_wall_clock_set_forward_ends_a_lease_early() {
        for lease in [lease(), elsewhere(lease())] {
            assert_eq!(left(&lease, here(5_200), wall(60_500)), Duration::from_millis(288));
            assert_eq!(left(&lease, here(5_200), wall(60_788)), Duration::ZERO);
            assert_eq!(left(&lease, here(5_200), wall(LATEST_END_MILLIS)), Duration::ZERO);
        }
    }

    #[test]
    fn a_wall_clock_out_of_its_range_neither_overflows_nor_makes_a_lease_longer() {
        let before = UNIX_EPOCH - Duration::from_secs(1);
        for (wall, millis) in [(before, 788), (wall(LATEST_END_MILLIS + 1), LATEST_END_MILLIS)] {
            let validity = ttl().lease_from(here(5_000));
            let lease = Lease::detached(LockKey::One("k".into()), &claim(), 1000, validity, wall, here(5_200));
            assert_eq!(lease.content.end_millis, millis);
            assert!(left(&elsewhere(lease), here(5_200), wall) <= ttl().validity());
        }
    }

    #[test]
    fn what_is_shown_has_no_token() {
        let lease = lease();
        let token = String::from_utf8(lease.token().digits().to_vec()).unwrap();
        let shown = format!("{lease:?}");
        assert!(shown.starts_with("Lease { key: \"k\", end: SystemTime") && !shown.contains("0707"), "{shown}");
        assert!(lease.into_text().expose().ends_with(&token));
    }

    #[test]
    fn no_clock_makes_a_lease_longer_than_its_lock_or_its_time_to_live() {
        let moments = [0, 1, 987, 988, 989, 60_000, LATEST_END_MILLIS - 1, LATEST_END_MILLIS];
        let clocks =
            [0, 1, 987_999_999, 988_000_000, 60_000_000_000, u64::MAX - 1, u64::MAX].map(LeaseTime::from_nanos);
        let ends_here: Vec<Option<LeaseTime>> = clocks.map(Some).into_iter().chain([None]).collect();
        for (end_millis, &end_here) in moments.into_iter().flat_map(|end| ends_here.iter().map(move |here| (end, here)))
        {
            let LeaseContent { key, ttl_millis, kind, token, .. } = lease().content;
            let lease = Lease { content: LeaseContent { key, ttl_millis, end_millis, kind, token }, end_here };
            for (wall_millis, now) in moments.into_iter().flat_map(|wall| clocks.map(|now| (wall, now))) {
                let left = left(&lease, now, wall(wall_millis));
                assert!(left <= ttl().validity());
                assert!(left <= Duration::from_millis(end_millis.saturating_sub(wall_millis)));
                assert!(end_here.is_none_or(|end| left <= end.since(now)));
            }
        }
    }
}
