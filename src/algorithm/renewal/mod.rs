//! When to extend which lease: the schedule of automatic extension, for many leases at once (rules,
//! section 5).
//!
//! ```text
//!                  insert                  due
//!              ────────────► waiting ──────────────► in flight
//!                             ▲   ▲                   │    │
//!                             │   └──── renewed ──────┘    │
//!                             └──────── failed: sooner ────┘
//!
//!              in either state:   remove ──► forgotten
//!                                 at its end: ended reports it, once, and forgets it
//! ```
//!
//! A lease is extended when its period is over, by default a third of the time to live. A try that
//! fails is followed by another, after a quarter of the remaining time: soon enough for several
//! tries, and the closer together the nearer the end. [`Renewals`] knows no lock and no node, only
//! identifiers that it assigned itself. How to drive it:
//!
//! 1. [`insert`](Renewals::insert) a lease that was won. [`remove`](Renewals::remove) it before its
//!    release is sent: lock state first, then the wire. True means that its loss was not reported
//!    and will not be.
//! 2. Sleep until [`next_at`](Renewals::next_at). An insertion may have made that earlier.
//! 3. Read the clock. Take the leases that [`ended`](Renewals::ended): each is lost, and its owner
//!    is notified now. No answer that is under way brings it back.
//! 4. Take those that are [`due`](Renewals::due), and send their extensions in one batch. The time
//!    that was read before the first byte was written is the start of the new leases.
//! 5. When such an extension is decided, read the clock and report it as
//!    [`renewed`](Renewals::renewed) or [`failed`](Renewals::failed). `renewed` returns the lease
//!    that counts from now on. If it returns nothing, the extension came too late or was not wanted
//!    any more: there is no new lease to rely on.
//! 6. An owner that extended a lease by hand reports that by [`extended`](Renewals::extended), and
//!    the schedule goes by it.
//!
//! The time passed in need not be exact: a late caller finds the same leases due or ended, and none
//! twice. Every operation takes logarithmic time.
//!
//! ```
//! use quorumlock::algorithm::lease::{MAX_TTL, Ttl};
//! use quorumlock::algorithm::renewal::{Renewals, RenewalConfig};
//! use quorumlock::algorithm::time::LeaseTime;
//! use std::time::Duration;
//!
//! let at = |millis| LeaseTime::ORIGIN.after(Duration::from_millis(millis));
//! let ttl = Ttl::new(Duration::from_millis(900), 0.01, MAX_TTL).unwrap(); // valid for 889 ms
//! let mut renewals = Renewals::new();
//! let (mut due, mut ended) = (Vec::new(), Vec::new());
//!
//! let id = renewals.insert(RenewalConfig::of(ttl), at(0), ttl.lease_from(at(0)), at(2));
//! assert_eq!(renewals.next_at(), at(300));
//! renewals.due(at(299), usize::MAX, &mut due);
//! assert!(due.is_empty(), "never before its time");
//! renewals.due(at(300), usize::MAX, &mut due);
//! assert_eq!(due, [id]);
//! assert!(renewals.renewed(id, at(300), ttl.lease_from(at(300)), at(301)).is_some());
//!
//! renewals.due(at(600), usize::MAX, &mut due);
//! assert!(renewals.failed(id, at(649)));
//! assert_eq!(renewals.next_at(), at(784), "a quarter of the 540 ms that are left");
//!
//! renewals.due(at(784), usize::MAX, &mut due);
//! renewals.ended(at(1189), &mut ended);
//! assert_eq!(ended, [id], "reported at its end, with a try still in flight");
//! let late = renewals.renewed(id, at(784), ttl.lease_from(at(784)), at(1190));
//! assert_eq!(late, None, "an ended lease never comes back");
//! assert_eq!(renewals.next_at(), LeaseTime::NEVER);
//! ```

pub mod by_hand;

use super::health;
use super::lease::{Ttl, Validity};
use super::time::LeaseTime;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// Shortest time from one try to the next. A node that failed is not asked again before that.
pub const SHORTEST_DELAY: Duration = health::FIRST_DELAY;
/// The part of the time left that passes between a failed try and the next, as a divisor. After
/// each delay three quarters are left, so that a lock of 30 s, first refused at a third of its
/// life, is tried about twenty times more.
pub const RETRIES_SPREAD: u32 = 4;

/// Names a lease on the schedule. No two leases of a schedule ever have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(u64);

/// How a lease is to be extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewalConfig {
    /// Time from the start of a lease to its extension. A longer period than half of the validity
    /// counts as half of it.
    pub period: Duration,
    /// How often it may be extended automatically; `None` is without limit.
    pub max_extensions: Option<u32>,
    /// No automatic extension begins then or later; `None` is without limit.
    pub until: Option<LeaseTime>,
}

impl RenewalConfig {
    /// Never extended: the schedule only reports the end.
    pub const REPORT_ONLY: RenewalConfig = RenewalConfig {
        period: Duration::MAX,
        max_extensions: Some(0),
        until: None,
    };

    /// The default for leases of this time to live: extended after a third of it, without limit,
    /// tried to the very end.
    pub fn of(ttl: Ttl) -> RenewalConfig {
        RenewalConfig {
            period: Duration::from_millis(ttl.millis()) / 3,
            max_extensions: None,
            until: None,
        }
    }
}

/// The leases to be extended, and when.
#[derive(Clone, Debug, Default)]
pub struct Renewals {
    leases: HashMap<LeaseId, ScheduledLease>,
    /// How many leases there have been.
    inserted: u64,
    /// When to extend: every waiting lease that may be.
    tries: BTreeSet<(LeaseTime, LeaseId)>,
    /// When validity ends: every lease.
    ends: BTreeSet<(LeaseTime, LeaseId)>,
}

#[derive(Clone, Copy, Debug)]
struct ScheduledLease {
    config: RenewalConfig,
    start: LeaseTime,
    validity: Validity,
    extensions: u32,
    is_in_flight: bool,
    /// The next extension does not count: it comes early, because a node has lost its data.
    is_extra: bool,
    /// Its entry among the tries.
    try_at: Option<LeaseTime>,
}

impl Renewals {
    /// An empty schedule.
    pub fn new() -> Renewals {
        Renewals::default()
    }

    /// Adds a lease that began at `start`, before the first byte of its attempt was written.
    pub fn insert(
        &mut self,
        config: RenewalConfig,
        start: LeaseTime,
        lease: Validity,
        now: LeaseTime,
    ) -> LeaseId {
        self.inserted += 1;
        let id = LeaseId(self.inserted);
        let scheduled = ScheduledLease {
            config,
            start,
            validity: lease,
            extensions: 0,
            is_in_flight: false,
            is_extra: false,
            try_at: None,
        };
        self.leases.insert(id, scheduled);
        self.ends.insert((lease.end(), id));
        self.plan_try(id, scheduled.first_try().max(now));
        id
    }

    /// Forgets a lease; false when it is not there, because it was removed before or its end was
    /// reported.
    pub fn remove(&mut self, id: LeaseId) -> bool {
        let Some(lease) = self.leases.remove(&id) else {
            return false;
        };
        self.ends.remove(&(lease.validity.end(), id));
        if let Some(at) = lease.try_at {
            self.tries.remove(&(at, id));
        }
        true
    }

    /// Whether an extension of a lease is in flight: it was due, and its result has not been
    /// reported.
    pub fn is_in_flight(&self, id: LeaseId) -> bool {
        self.leases.get(&id).is_some_and(|lease| lease.is_in_flight)
    }

    /// When there is something to do: the earliest extension, or end of a lease. Without leases,
    /// never.
    pub fn next_at(&self) -> LeaseTime {
        self.tries
            .first()
            .map_or(LeaseTime::NEVER, |&(at, _)| at)
            .min(self.next_end())
    }

    /// When the first of all leases ends. Without leases, never.
    pub fn next_end(&self) -> LeaseTime {
        self.ends.first().map_or(LeaseTime::NEVER, |&(at, _)| at)
    }

    /// Appends the leases to be extended now, at most `limit` of them, those that have waited
    /// longest first. They are in flight from now on.
    pub fn due(&mut self, now: LeaseTime, limit: usize, due: &mut Vec<LeaseId>) {
        let mut taken = 0;
        while let Some(&(at, id)) = self.tries.first()
            && at <= now
            && taken < limit
        {
            self.tries.pop_first();
            let Some(lease) = self.leases.get_mut(&id) else {
                continue;
            };
            lease.try_at = None;
            // A lease that has ended stays, to be reported as ended. One whose limit passed before
            // this call runs out.
            if lease.validity.is_valid(now) && lease.config.until.is_none_or(|until| now < until) {
                lease.is_in_flight = true;
                due.push(id);
                taken += 1;
            }
        }
    }

    /// A node has lost its data: what is to be extended later is due now, and that uses up none of
    /// the extensions.
    pub fn hurry(&mut self, now: LeaseTime) {
        let later: Vec<LeaseId> = self
            .tries
            .iter()
            .filter(|&&(at, _)| at > now)
            .map(|&(_, id)| id)
            .collect();
        for id in later {
            if let Some(lease) = self.leases.get_mut(&id) {
                lease.is_extra = true;
            }
            self.plan_try(id, now);
        }
    }

    /// Lets a lease be extended as often and as long as this allows from now on, where that is
    /// more. False when it has ended.
    pub fn allow(&mut self, id: LeaseId, config: RenewalConfig, now: LeaseTime) -> bool {
        let Some(lease) = self.valid(id, now) else {
            return false;
        };
        let RenewalConfig {
            max_extensions,
            until,
            ..
        } = &mut lease.config;
        let extensions = config
            .max_extensions
            .map(|more| lease.extensions.saturating_add(more));
        *max_extensions = max_extensions
            .zip(extensions)
            .map(|(old, new)| old.max(new));
        *until = until.zip(config.until).map(|(old, new)| old.max(new));
        if lease.try_at.is_none() {
            let at = lease.first_try().max(now);
            self.plan_try(id, at);
        }
        true
    }

    /// The extension in flight was won, at the start that is passed, read before its first byte was
    /// written. Returns the lease that counts now; none when the old one had ended or is not there
    /// any more.
    pub fn renewed(
        &mut self,
        id: LeaseId,
        start: LeaseTime,
        lease: Validity,
        now: LeaseTime,
    ) -> Option<Validity> {
        let present = self.valid(id, now)?;
        if std::mem::take(&mut present.is_in_flight) && !std::mem::take(&mut present.is_extra) {
            present.extensions += 1;
        }
        // With the same start as an extension by hand, this one was sent before that. While an
        // owner waits for its answers, nothing is sent automatically, and later extensions last as
        // long.
        let (start, lease) = if start > present.start {
            (start, lease)
        } else {
            (present.start, present.validity)
        };
        self.extended(id, start, lease, now)
    }

    /// The extension in flight was not won: it is tried again, as long as that may help. False when
    /// the lease is not there any more.
    pub fn failed(&mut self, id: LeaseId, now: LeaseTime) -> bool {
        let Some(present) = self.leases.get_mut(&id) else {
            return false;
        };
        present.is_extra = false;
        if std::mem::take(&mut present.is_in_flight) {
            let again = present.next_try(now);
            self.plan_try(id, again);
        }
        true
    }

    /// The lease was extended by hand. That uses up none of the automatic extensions, and if one is
    /// in flight, it stays so. Returns the lease that counts now; none when the old one had ended
    /// or is not there any more.
    pub fn extended(
        &mut self,
        id: LeaseId,
        start: LeaseTime,
        lease: Validity,
        now: LeaseTime,
    ) -> Option<Validity> {
        let present = self.valid(id, now)?;
        let old_end = present.validity.end();
        // Nodes go by the extension that was sent last, in whichever order the answers arrive.
        if start >= present.start {
            present.start = start;
            present.validity = lease;
        }
        present.is_extra &= present.is_in_flight;
        let validity = present.validity;
        let first_try = present.first_try();
        self.ends.remove(&(old_end, id));
        self.ends.insert((validity.end(), id));
        self.plan_try(id, first_try.max(now));
        Some(validity)
    }

    /// Appends the leases whose validity has ended, and forgets them, whether or not an extension
    /// is in flight.
    pub fn ended(&mut self, now: LeaseTime, ended: &mut Vec<LeaseId>) {
        while let Some(&(end, id)) = self.ends.first()
            && end <= now
        {
            ended.push(id);
            self.remove(id);
        }
    }

    /// Plans the next try of a lease in place of the one before, if it is waiting and there may be
    /// one.
    fn plan_try(&mut self, id: LeaseId, at: LeaseTime) {
        let Some(lease) = self.leases.get_mut(&id) else {
            return;
        };
        let planned = Some(at).filter(|&at| lease.may_be_tried(at));
        if let Some(at) = std::mem::replace(&mut lease.try_at, planned) {
            self.tries.remove(&(at, id));
        }
        if let Some(at) = planned {
            self.tries.insert((at, id));
        }
    }

    /// The lease, unless it has ended, reported or not: an ended lease never comes back.
    fn valid(&mut self, id: LeaseId, now: LeaseTime) -> Option<&mut ScheduledLease> {
        self.leases
            .get_mut(&id)
            .filter(|present| present.validity.is_valid(now))
    }
}

impl ScheduledLease {
    fn may_be_tried(&self, at: LeaseTime) -> bool {
        let config = self.config;
        let is_allowed = config
            .max_extensions
            .is_none_or(|most| self.extensions < most)
            && config.until.is_none_or(|until| at < until);
        is_allowed && !self.is_in_flight && self.validity.is_valid(at)
    }

    /// When to extend the lease as it is: after its period, and while there is time to try again if
    /// that fails.
    fn first_try(&self) -> LeaseTime {
        let longest = self.validity.remaining(self.start) / 2;
        self.start
            .after(self.config.period.max(SHORTEST_DELAY).min(longest))
    }

    /// When to try again after a try has failed.
    fn next_try(&self, now: LeaseTime) -> LeaseTime {
        let part = self.validity.remaining(now) / RETRIES_SPREAD;
        now.after(part.min(self.config.period).max(SHORTEST_DELAY))
    }
}

#[cfg(test)]
mod tests;
