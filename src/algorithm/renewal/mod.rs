//! When to extend which lease: the schedule of automatic extension, for many leases at once (rules, section 5).
//!
//! ```text
//!                  insert                  due
//!              ────────────► waiting ──────────────► in flight
//!                             ▲   ▲                   │    │
//!                             │   └──── renewed ──────┘    │
//!                             └──────── failed: sooner ────┘
//!
//!              whichever it is:   remove ──► forgotten
//!                                 its end has come ──► ended tells it, once, and forgets it
//! ```
//!
//! A lease is extended when its period is over, by default a third of the time to live. A try that fails is followed by
//! another, after a quarter of what is left: soon enough for several tries, and the closer together the nearer the end.
//! [`Renewals`] knows no lock and no node, only identifiers that it gave out itself. How to drive it:
//!
//! 1. [`insert`](Renewals::insert) a lease that was won. [`remove`](Renewals::remove) it before its release is sent: lock
//!    state first, then the wire. True means that nobody was or will be told that it was lost.
//! 2. Sleep until [`next_at`](Renewals::next_at). An insertion may have made that earlier.
//! 3. Read the clock. Take the leases that [`ended`](Renewals::ended): each is lost, and its owner is told now. No answer
//!    that is under way brings it back.
//! 4. Take those that are [`due`](Renewals::due), and send their extensions in one batch. What the clock says before the
//!    first byte is written is the start of the new leases.
//! 5. When such an extension is decided, read the clock and say that it was [`renewed`](Renewals::renewed) or has
//!    [`failed`](Renewals::failed). `renewed` gives back the lease that counts from now on; if it gives back none, it came
//!    too late or was not wanted any more, and there is no new lease to rely on.
//! 6. An owner who extended a lease by hand says so with [`extended`](Renewals::extended), and the schedule goes by that.
//!
//! The time passed in need not be exact: who comes late finds the same leases due or ended, and none twice. Every operation
//! takes logarithmic time, and allocates only while there are more leases than ever before.
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
//! assert_eq!(ended, [id], "told at its end, with a try still in flight");
//! let late = renewals.renewed(id, at(784), ttl.lease_from(at(784)), at(1190));
//! assert_eq!(late, None, "an ended lease never comes back");
//! assert_eq!(renewals.next_at(), LeaseTime::NEVER);
//! ```

use super::agenda::Agenda;
use super::health;
use super::lease::{Ttl, Validity};
use super::time::LeaseTime;
use std::time::Duration;

/// Shortest time from one try to the next. A node that failed is left alone for so long: asked sooner, it would not be.
pub const SHORTEST_DELAY: Duration = health::FIRST_DELAY;
/// The part of the time left that passes between a failed try and the next, as a divisor. After each delay three quarters
/// are left, so that a lock of 30 s, first refused at a third of its life, is tried about twenty times more.
pub const RETRIES_SPREAD: u32 = 4;

/// Names a lease on the schedule. No two leases ever have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id {
    slot: u32,
    serial: u64,
}

/// How a lease is to be extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewalConfig {
    /// Time from the start of a lease to its extension; at most half of its validity is waited, whatever stands here.
    pub period: Duration,
    /// The time that an answer takes at worst: no try is repeated so close to the end that it could not be answered.
    pub margin: Duration,
    /// How often it may be extended automatically; no number is without limit.
    pub at_most: Option<u32>,
    /// No automatic extension begins then or later; no moment is without limit.
    pub until: Option<LeaseTime>,
}

impl RenewalConfig {
    /// Never extended: there to be told when it ends.
    pub const NEVER: RenewalConfig =
        RenewalConfig { period: Duration::MAX, margin: Duration::ZERO, at_most: Some(0), until: None };

    /// The default for leases of this time to live: extended after a third of it, without limit, tried to the very end.
    pub fn of(ttl: Ttl) -> RenewalConfig {
        RenewalConfig {
            period: Duration::from_millis(ttl.millis()) / 3,
            margin: Duration::ZERO,
            at_most: None,
            until: None,
        }
    }
}

/// The leases to be extended, and when.
#[derive(Clone, Debug, Default)]
pub struct Renewals {
    slots: Vec<Slot>,
    unused: Vec<u32>,
    /// How many leases there have been.
    serial: u64,
    /// When to extend: every waiting lease that may be.
    tries: Agenda,
    /// When validity ends: every lease.
    ends: Agenda,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    serial: u64,
    state: State,
    terms: RenewalConfig,
    start: LeaseTime,
    lease: Validity,
    extensions: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    Unused,
    Waiting,
}

impl Renewals {
    /// An empty schedule.
    pub fn new() -> Renewals {
        Renewals::default()
    }

    /// Adds a lease that began at `start`, before the first byte of its attempt was written.
    pub fn insert(&mut self, terms: RenewalConfig, start: LeaseTime, lease: Validity, now: LeaseTime) -> Id {
        self.serial += 1;
        let fresh = Slot { serial: self.serial, state: State::Waiting, terms, start, lease, extensions: 0 };
        let slot = match self.unused.pop() {
            Some(slot) => {
                self.slots[slot as usize] = fresh;
                slot
            }
            None => {
                self.slots.push(fresh);
                (self.slots.len() - 1) as u32
            }
        };
        self.ends.plan(slot, lease.end());
        self.plan(slot, fresh.first_try().max(now));
        Id { slot, serial: fresh.serial }
    }

    /// Forgets a lease; false when it is not there, because it was removed before or its end was told.
    pub fn remove(&mut self, id: Id) -> bool {
        let known = self.known(id).is_some();
        if known {
            self.forget(id.slot);
        }
        known
    }

    /// Whether an extension of a lease is in flight: it is due, and it was not said yet what came of it.
    pub fn is_in_flight(&self, id: Id) -> bool {
        let slot = self.slots.get(id.slot as usize);
        slot.is_some_and(|slot| slot.serial == id.serial && slot.state == State::InFlight)
    }

    /// When there is something to do: the earliest extension, or end of a lease. Without leases, never.
    pub fn next_at(&self) -> LeaseTime {
        let moments = [self.tries.first(), self.ends.first()];
        moments.into_iter().flatten().map(|(at, _)| at).min().unwrap_or(LeaseTime::NEVER)
    }

    /// When the first of all leases ends. Without leases, never.
    pub fn next_end(&self) -> LeaseTime {
        self.ends.first().map_or(LeaseTime::NEVER, |(at, _)| at)
    }

    /// Appends the leases to be extended now, at most `limit` of them, those that have waited longest first. They are in
    /// flight from now on.
    pub fn due(&mut self, now: LeaseTime, limit: usize, due: &mut Vec<Id>) {
        let mut taken = 0;
        while let Some((at, slot)) = self.tries.first()
            && at <= now
            && taken < limit
        {
            self.tries.strike(slot);
            let present = &mut self.slots[slot as usize];
            // A lease that has ended is left to be told. One whose limit came while nobody looked runs out.
            if present.lease.is_valid(now) && present.terms.until.is_none_or(|until| now < until) {
                present.state = State::InFlight;
                due.push(Id { slot, serial: present.serial });
                taken += 1;
            }
        }
    }

    /// The extension in flight was won, at the start that is passed, read before its first byte was written. Gives back the
    /// lease that counts now; none when the old one had ended or is not there any more.
    pub fn renewed(&mut self, id: Id, start: LeaseTime, lease: Validity, now: LeaseTime) -> Option<Validity> {
        let present = self.valid(id, now)?;
        if present.state == State::InFlight {
            present.state = State::Waiting;
            present.extensions += 1;
        }
        // Sent at the very time of one by hand, it was sent before that: nothing is while somebody waits for that one's
        // answers, and later ones last as long.
        let (start, lease) = if start > present.start { (start, lease) } else { (present.start, present.lease) };
        self.extended(id, start, lease, now)
    }

    /// The extension in flight was not won: it is tried again, as long as that may help. False when the lease is not there
    /// any more.
    pub fn failed(&mut self, id: Id, now: LeaseTime) -> bool {
        let Some(present) = self.known(id) else { return false };
        if present.state == State::InFlight {
            present.state = State::Waiting;
            let again = present.next_try(now);
            self.plan(id.slot, again);
        }
        true
    }

    /// The lease was extended by hand. That uses up none of the automatic extensions, and if one is in flight, it stays so.
    /// Gives back the lease that counts now; none when the old one had ended or is not there any more.
    pub fn extended(&mut self, id: Id, start: LeaseTime, lease: Validity, now: LeaseTime) -> Option<Validity> {
        let present = self.valid(id, now)?;
        // Nodes go by the extension that was sent last, whichever answer is the later.
        if start >= present.start {
            (present.start, present.lease) = (start, lease);
        }
        let (lease, first_try) = (present.lease, present.first_try());
        self.ends.plan(id.slot, lease.end());
        self.plan(id.slot, first_try.max(now));
        Some(lease)
    }

    /// Appends the leases whose validity has ended, and forgets them, whether or not an extension is in flight.
    pub fn ended(&mut self, now: LeaseTime, ended: &mut Vec<Id>) {
        while let Some((end, slot)) = self.ends.first()
            && end <= now
        {
            ended.push(Id { slot, serial: self.slots[slot as usize].serial });
            self.forget(slot);
        }
    }

    /// Plans the next try of a lease, if it is waiting and there may be one.
    fn plan(&mut self, slot: u32, at: LeaseTime) {
        let Slot { state, terms, extensions, lease, .. } = self.slots[slot as usize];
        let allowed = terms.at_most.is_none_or(|most| extensions < most) && terms.until.is_none_or(|until| at < until);
        if state == State::Waiting && allowed && lease.is_valid(at) {
            self.tries.plan(slot, at);
        } else {
            self.tries.strike(slot);
        }
    }

    fn forget(&mut self, slot: u32) {
        self.slots[slot as usize].state = State::Unused;
        self.tries.strike(slot);
        self.ends.strike(slot);
        self.unused.push(slot);
    }

    fn known(&mut self, id: Id) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        (slot.serial == id.serial && slot.state != State::Unused).then_some(slot)
    }

    /// The lease, unless it has ended, be it that nobody was told yet: an ended lease never comes back.
    fn valid(&mut self, id: Id, now: LeaseTime) -> Option<&mut Slot> {
        self.known(id).filter(|present| present.lease.is_valid(now))
    }
}

impl Slot {
    /// When to extend the lease as it is: after its period, and while there is time to try again if that fails.
    fn first_try(&self) -> LeaseTime {
        let longest = self.lease.remaining(self.start) / 2;
        self.start.after(self.terms.period.max(SHORTEST_DELAY).min(longest))
    }

    /// When to try again after a try has failed. The last of all is as late as it can be of use.
    fn next_try(&self, now: LeaseTime) -> LeaseTime {
        let left = self.lease.end().before(self.terms.margin).since(now);
        if left.is_zero() {
            return LeaseTime::NEVER;
        }
        now.after((left / RETRIES_SPREAD).min(self.terms.period).max(SHORTEST_DELAY).min(left))
    }
}

#[cfg(test)]
mod tests;
