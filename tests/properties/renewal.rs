//! The schedule of extensions in any order of events, against a model.

use proptest::prelude::*;
use quorumlock::algorithm::lease::{MAX_TTL, Ttl, Validity};
use quorumlock::algorithm::renewal::{LeaseId, RenewalConfig, Renewals, SHORTEST_DELAY};
use quorumlock::algorithm::time::LeaseTime;
use std::time::Duration;

/// At a drift of nothing but the 2 ms that are always taken off.
fn ttl(millis: u64) -> Ttl {
    Ttl::new(Duration::from_millis(millis), 0.0, MAX_TTL).unwrap()
}

fn at(millis: u64) -> LeaseTime {
    LeaseTime::ORIGIN.after(Duration::from_millis(millis))
}

/// What may happen, and to which of the leases so far.
#[derive(Clone, Copy, Debug)]
enum Step {
    Due {
        limit: usize,
    },
    Ended,
    Extended {
        which: usize,
        millis: u64,
        ago: u64,
    },
    Failed {
        which: usize,
    },
    Insert {
        millis: u64,
        max_extensions: Option<u32>,
        until: Option<u64>,
    },
    Pass {
        millis: u64,
    },
    Remove {
        which: usize,
    },
    Renewed {
        which: usize,
        millis: u64,
        ago: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let which = 0..12_usize;
    let millis = prop_oneof![3..50_u64, 100..2_000_u64];
    let ago = 0..60_u64;
    let step = prop_oneof![
        3 => prop_oneof![Just(usize::MAX), 0..3_usize].prop_map(|limit| Step::Due { limit }),
        2 => Just(Step::Ended),
        1 => (which.clone(), millis.clone(), ago.clone()).prop_map(|(which, millis, ago)| Step::Extended { which, millis, ago }),
        2 => which.clone().prop_map(|which| Step::Failed { which }),
        3 => (millis.clone(), prop::option::of(0..3_u32), prop::option::of(0..3_000_u64))
            .prop_map(|(millis, max_extensions, until)| Step::Insert { millis, max_extensions, until }),
        4 => prop_oneof![0..20_u64, 0..900_u64].prop_map(|millis| Step::Pass { millis }),
        1 => which.clone().prop_map(|which| Step::Remove { which }),
        4 => (which, millis, ago).prop_map(|(which, millis, ago)| Step::Renewed { which, millis, ago }),
    ];
    prop::collection::vec(step, 1..120)
}

/// What is known of a lease without any schedule.
struct Known {
    id: LeaseId,
    alive: bool,
    start: LeaseTime,
    end: LeaseTime,
    in_flight: bool,
    failed: bool,
    config: RenewalConfig,
    batches: u32,
    failures: u32,
}

impl Known {
    fn take(&mut self, start: LeaseTime, lease: Validity, is_by_hand: bool) {
        if start > self.start || (start == self.start && is_by_hand) {
            self.start = start;
            self.end = lease.end();
        }
        self.failed = false;
    }
}

proptest! {
    /// In any order of events: nothing is due before its time, beyond its limits, twice or after
    /// its removal; an end is reported once, at the first check at or after it; and a thread that
    /// sleeps until `next_at` misses nothing.
    #[test]
    fn every_life_is_in_order(steps in steps()) {
        let mut renewals = Renewals::new();
        let mut leases: Vec<Known> = Vec::new();
        let mut now = at(1_000);
        for step in steps {
            let which = match step {
                Step::Extended { which, .. } | Step::Failed { which } | Step::Remove { which } | Step::Renewed { which, .. } => {
                    if leases.is_empty() { continue }
                    which % leases.len()
                }
                _ => 0,
            };
            match step {
                Step::Pass { millis } => now = now.after(Duration::from_millis(millis)),
                Step::Insert { millis, max_extensions, until } => {
                    let config = RenewalConfig { max_extensions, until: until.map(at), ..RenewalConfig::of(ttl(millis)) };
                    let lease = ttl(millis).lease_from(now);
                    let id = renewals.insert(config, now, lease, now);
                    prop_assert!(leases.iter().all(|known| known.id != id), "a name is given once");
                    leases.push(Known {
                        id, alive: true, start: now, end: lease.end(), in_flight: false, failed: false, config, batches: 0, failures: 0,
                    });
                }
                Step::Due { limit } => {
                    let mut due = Vec::new();
                    renewals.due(now, limit, &mut due);
                    prop_assert!(due.len() <= limit);
                    for id in due {
                        let known = leases.iter_mut().find(|known| known.id == id).unwrap();
                        prop_assert!(known.alive && !known.in_flight && now < known.end);
                        prop_assert!(known.config.until.is_none_or(|until| now < until));
                        prop_assert!(known.config.max_extensions.is_none_or(|most| known.batches - known.failures < most));
                        let half = known.end.since(known.start) / 2;
                        let period = known.config.period.max(SHORTEST_DELAY).min(half);
                        prop_assert!(known.failed || now >= known.start.after(period), "before its time");
                        known.in_flight = true;
                        known.batches += 1;
                    }
                }
                Step::Ended => {
                    let mut ended = Vec::new();
                    renewals.ended(now, &mut ended);
                    for known in &mut leases {
                        let expected = usize::from(known.alive && known.end <= now);
                        prop_assert_eq!(ended.iter().filter(|id| **id == known.id).count(), expected);
                        known.alive &= expected == 0;
                    }
                }
                Step::Failed { .. } => {
                    let known = &mut leases[which];
                    prop_assert_eq!(renewals.failed(known.id, now), known.alive);
                    known.failures += u32::from(known.alive && known.in_flight);
                    known.failed |= known.in_flight;
                    known.in_flight = false;
                }
                Step::Remove { .. } => {
                    let known = &mut leases[which];
                    prop_assert_eq!(renewals.remove(known.id), known.alive);
                    known.alive = false;
                }
                Step::Renewed { millis, ago, .. } | Step::Extended { millis, ago, .. } => {
                    let known = &mut leases[which];
                    let start = now.before(Duration::from_millis(ago));
                    let lease = ttl(millis).lease_from(start);
                    let answers = matches!(step, Step::Renewed { .. });
                    let counts = if answers {
                        // The driver reports an answer only for what it sent.
                        if !known.in_flight { continue }
                        renewals.renewed(known.id, start, lease, now)
                    } else {
                        renewals.extended(known.id, start, lease, now)
                    };
                    prop_assert_eq!(counts.is_some(), known.alive && now < known.end);
                    if let Some(counts) = counts {
                        known.take(start, lease, !answers);
                        prop_assert_eq!(counts.end(), known.end);
                        known.in_flight &= !answers;
                    }
                }
            }
            for known in &leases {
                prop_assert_eq!(renewals.is_in_flight(known.id), known.alive && known.in_flight);
            }
            let first_end = leases.iter().filter(|known| known.alive).map(|known| known.end).min();
            prop_assert!(renewals.next_at() <= first_end.unwrap_or(LeaseTime::NEVER));
            // Before that moment there is nothing to do.
            let before = renewals.next_at().before(Duration::from_nanos(1)).min(now);
            let mut early = Vec::new();
            let mut copy = renewals.clone();
            if before < renewals.next_at() {
                copy.due(before, usize::MAX, &mut early);
                copy.ended(before, &mut early);
                prop_assert!(early.is_empty(), "{:?} is due before {:?}", early, renewals.next_at());
            }
        }
    }
}
