//! The schedule of extensions, in any order of events.
//!
//! Input: what happens, until the bytes are used up. Beside the schedule is a list of what is known
//! of each lease without any schedule. Rules:
//! 1. Nothing is due before its time, beyond its limits, twice, after its end or after its removal.
//! 2. An end is reported once, at the first look at or after it.
//! 3. An answer counts while the lease has not ended. The lease that began last counts, and of two
//!    that began at once the one by hand.
//! 4. A thread that sleeps until `next_at` misses nothing: before, nothing is due and nothing ends.

use super::Input;
use quorumlock::algorithm::lease::{MAX_TTL, Ttl, Validity};
use quorumlock::algorithm::renewal::{LeaseId, RenewalConfig, Renewals, SHORTEST_DELAY};
use quorumlock::algorithm::time::LeaseTime;
use std::time::Duration;

/// Steps of one input.
const STEPS: usize = 200;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let mut run = Run {
        renewals: Renewals::new(),
        leases: Vec::new(),
        now: at(1_000),
    };
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        run.step(&mut input);
        run.check();
    }
}

struct Run {
    renewals: Renewals,
    leases: Vec<Known>,
    now: LeaseTime,
}

/// What is known of a lease without any schedule.
struct Known {
    id: LeaseId,
    is_alive: bool,
    start: LeaseTime,
    end: LeaseTime,
    is_in_flight: bool,
    has_failed: bool,
    config: RenewalConfig,
    batches: u32,
    failures: u32,
}

impl Run {
    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 20 {
            0..3 => self.due(match input.byte() % 4 {
                0 => usize::MAX,
                limit => usize::from(limit) - 1,
            }),
            3..5 => self.ended(),
            5 => self.answer(input, true),
            6..8 => self.failed(input),
            8..11 => self.insert(input),
            11..15 => {
                self.now = self
                    .now
                    .after(Duration::from_millis(number(input, 20, 900)))
            }
            15 => self.remove(input),
            _ => self.answer(input, false),
        }
    }

    fn insert(&mut self, input: &mut Input<'_>) {
        let (ttl, now) = (ttl(input), self.now);
        let max_extensions = u32::from(input.byte() % 4).checked_sub(1);
        let has_limit = input.byte() % 2 == 1;
        let until = has_limit.then(|| at(number(input, 100, 3_000)));
        let config = RenewalConfig {
            max_extensions,
            until,
            ..RenewalConfig::of(ttl)
        };
        let lease = ttl.lease_from(now);
        let id = self.renewals.insert(config, now, lease, now);
        let mut others = self.leases.iter();
        assert!(others.all(|known| known.id != id), "a name is given once");
        self.leases.push(Known {
            id,
            is_alive: true,
            start: now,
            end: lease.end(),
            is_in_flight: false,
            has_failed: false,
            config,
            batches: 0,
            failures: 0,
        });
    }

    fn due(&mut self, limit: usize) {
        let mut due = Vec::new();
        self.renewals.due(self.now, limit, &mut due);
        assert!(due.len() <= limit);
        for id in due {
            let Some(known) = self.leases.iter_mut().find(|known| known.id == id) else {
                panic!("{id:?} is due, which there is not")
            };
            known.is_due(self.now);
        }
    }

    fn ended(&mut self) {
        let mut ended = Vec::new();
        self.renewals.ended(self.now, &mut ended);
        for known in &mut self.leases {
            let has_ended = known.is_alive && known.end <= self.now;
            let reports = ended.iter().filter(|id| **id == known.id).count();
            assert_eq!(reports, usize::from(has_ended));
            known.is_alive &= !has_ended;
        }
    }

    fn failed(&mut self, input: &mut Input<'_>) {
        let Some(known) = one(&mut self.leases, input) else {
            return;
        };
        assert_eq!(self.renewals.failed(known.id, self.now), known.is_alive);
        known.failures += u32::from(known.is_alive && known.is_in_flight);
        known.has_failed |= known.is_in_flight;
        known.is_in_flight = false;
    }

    fn remove(&mut self, input: &mut Input<'_>) {
        let Some(known) = one(&mut self.leases, input) else {
            return;
        };
        assert_eq!(self.renewals.remove(known.id), known.is_alive);
        known.is_alive = false;
    }

    /// The answer to an extension by the schedule, or one by hand.
    fn answer(&mut self, input: &mut Input<'_>, is_by_hand: bool) {
        let Some(known) = one(&mut self.leases, input) else {
            return;
        };
        let (ttl, now) = (ttl(input), self.now);
        let start = now.before(Duration::from_millis(u64::from(input.byte() % 60)));
        let lease = ttl.lease_from(start);
        let counts = if is_by_hand {
            self.renewals.extended(known.id, start, lease, now)
        } else if known.is_in_flight {
            self.renewals.renewed(known.id, start, lease, now)
        } else {
            // The driver reports an answer only for what it sent.
            return;
        };
        assert_eq!(counts.is_some(), known.is_alive && now < known.end);
        if let Some(counts) = counts {
            known.take(start, lease, is_by_hand);
            assert_eq!(counts.end(), known.end);
            known.is_in_flight &= is_by_hand;
        }
    }

    /// What holds after each step.
    fn check(&self) {
        for known in &self.leases {
            let is_in_flight = self.renewals.is_in_flight(known.id);
            assert_eq!(is_in_flight, known.is_alive && known.is_in_flight);
        }
        let alive = self.leases.iter().filter(|known| known.is_alive);
        let next = self.renewals.next_at();
        assert!(
            next <= alive
                .map(|known| known.end)
                .min()
                .unwrap_or(LeaseTime::NEVER)
        );
        let before = next.before(Duration::from_nanos(1)).min(self.now);
        if before < next {
            let mut early = Vec::new();
            let mut copy = self.renewals.clone();
            copy.due(before, usize::MAX, &mut early);
            copy.ended(before, &mut early);
            assert!(early.is_empty(), "{early:?} is due before {next:?}");
        }
    }
}

impl Known {
    fn is_due(&mut self, now: LeaseTime) {
        assert!(self.is_alive && !self.is_in_flight && now < self.end);
        assert!(self.config.until.is_none_or(|until| now < until));
        let sent = self.batches - self.failures;
        assert!(self.config.max_extensions.is_none_or(|most| sent < most));
        let half = self.end.since(self.start) / 2;
        let period = self.config.period.max(SHORTEST_DELAY).min(half);
        assert!(
            self.has_failed || now >= self.start.after(period),
            "before its time"
        );
        self.is_in_flight = true;
        self.batches += 1;
    }

    fn take(&mut self, start: LeaseTime, lease: Validity, is_by_hand: bool) {
        if start > self.start || (start == self.start && is_by_hand) {
            self.start = start;
            self.end = lease.end();
        }
        self.has_failed = false;
    }
}

/// One of the leases so far.
fn one<'l>(leases: &'l mut [Known], input: &mut Input<'_>) -> Option<&'l mut Known> {
    let which = usize::from(input.byte()) % leases.len().max(1);
    leases.get_mut(which)
}

/// A number that is often below the first limit, and below the second one otherwise.
fn number(input: &mut Input<'_>, few: u64, many: u64) -> u64 {
    match u64::from(input.byte()) {
        byte @ 0..128 => byte % few,
        byte => (byte << 8 | u64::from(input.byte())) % many,
    }
}

/// At a drift of nothing but the 2 ms that are always taken off.
fn ttl(input: &mut Input<'_>) -> Ttl {
    let millis = 3 + number(input, 47, 2_000);
    match Ttl::new(Duration::from_millis(millis), 0.0, MAX_TTL) {
        Ok(ttl) => ttl,
        Err(_) => panic!("{millis} ms are no time to live"),
    }
}

fn at(millis: u64) -> LeaseTime {
    LeaseTime::ORIGIN.after(Duration::from_millis(millis))
}
