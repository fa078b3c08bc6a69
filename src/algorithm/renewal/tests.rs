//! Tests of the schedule of extensions: whole lives and limits. `fuzz/bodies/renewal.rs` has any
//! order of events.

use super::*;
use crate::algorithm::lease::MAX_TTL;

/// At a drift of nothing but the 2 ms that are always taken off.
fn ttl(millis: u64) -> Ttl {
    Ttl::new(Duration::from_millis(millis), 0.0, MAX_TTL).unwrap()
}

fn at(millis: u64) -> LeaseTime {
    LeaseTime::ORIGIN.after(Duration::from_millis(millis))
}

/// A schedule with one lease of 900 ms, valid for 898 ms, that began at once.
fn single(config: RenewalConfig) -> (Renewals, LeaseId) {
    let mut renewals = Renewals::new();
    let id = renewals.insert(config, at(0), ttl(900).lease_from(at(0)), at(1));
    (renewals, id)
}

fn due(renewals: &mut Renewals, now: u64) -> Vec<LeaseId> {
    let mut due = Vec::new();
    renewals.due(at(now), usize::MAX, &mut due);
    due
}

fn ended(renewals: &mut Renewals, now: u64) -> Vec<LeaseId> {
    let mut ended = Vec::new();
    renewals.ended(at(now), &mut ended);
    ended
}

/// A try that is won at once.
fn renew(renewals: &mut Renewals, id: LeaseId, now: u64) {
    assert_eq!(due(renewals, now), [id]);
    let lease = ttl(900).lease_from(at(now));
    assert_eq!(renewals.renewed(id, at(now), lease, at(now)), Some(lease));
}

/// When a lease is tried, in milliseconds, if every try fails after a while.
fn failing(renewals: &mut Renewals, id: LeaseId, end: LeaseTime, after: Duration) -> Vec<u64> {
    let mut tries = Vec::new();
    while renewals.next_at() < end {
        let now = renewals.next_at();
        let mut due = Vec::new();
        tries.push(now.since(LeaseTime::ORIGIN).as_millis() as u64);
        renewals.due(now, usize::MAX, &mut due);
        assert_eq!(due, [id]);
        assert!(renewals.failed(id, now.after(after)));
    }
    tries
}

#[test]
fn a_lease_is_renewed_at_every_third_until_it_is_removed() {
    let (mut renewals, id) = single(RenewalConfig::of(ttl(900)));
    for third in 1..100 {
        assert_eq!(renewals.next_at(), at(third * 300));
        assert_eq!(due(&mut renewals, third * 300 - 1), []);
        renew(&mut renewals, id, third * 300);
    }
    assert!(renewals.remove(id));
    assert!(!renewals.remove(id));
    assert_eq!(renewals.next_at(), LeaseTime::NEVER);
    assert_eq!(
        (
            due(&mut renewals, 1_000_000),
            ended(&mut renewals, 1_000_000)
        ),
        (vec![], vec![])
    );
}

#[test]
fn an_extension_is_in_flight_from_when_it_is_due_until_its_result() {
    let (mut renewals, id) = single(RenewalConfig::of(ttl(900)));
    assert!(!renewals.is_in_flight(id));
    assert_eq!(due(&mut renewals, 300), [id]);
    assert!(renewals.is_in_flight(id));
    assert!(renewals.failed(id, at(350)));
    assert!(!renewals.is_in_flight(id));
    assert_eq!(due(&mut renewals, 487), [id]);
    assert!(renewals.is_in_flight(id));
    renewals.renewed(id, at(487), ttl(900).lease_from(at(487)), at(490));
    assert!(!renewals.is_in_flight(id));
    assert!(renewals.remove(id) && !renewals.is_in_flight(id));
}

#[test]
fn a_failed_try_is_repeated_more_and_more_often_until_the_end() {
    let (mut renewals, id) = single(RenewalConfig::of(ttl(900)));
    let tries = failing(&mut renewals, id, at(898), Duration::from_millis(50));
    assert_eq!(tries, [300, 487, 627, 732, 811, 871]);
    assert_eq!(ended(&mut renewals, 897), []);
    assert_eq!(ended(&mut renewals, 898), [id]);
    assert_eq!(ended(&mut renewals, 899), []);
    assert!(!renewals.failed(id, at(899)));
}

#[test]
fn a_long_lease_is_tried_about_twenty_times_more() {
    let mut renewals = Renewals::new();
    let id = renewals.insert(
        RenewalConfig::of(ttl(30_000)),
        at(0),
        ttl(30_000).lease_from(at(0)),
        at(0),
    );
    let tries = failing(&mut renewals, id, at(29_998), Duration::ZERO);
    assert!((20..=30).contains(&tries.len()), "{tries:?}");
    assert_eq!(tries[..4], [10_000, 14_999, 18_749, 21_561]);
    assert!(
        tries.windows(2).all(|pair| pair[1] - pair[0] >= 9),
        "sooner than a node may be asked again: {tries:?}"
    );
    assert!(tries.last() > Some(&29_980), "{tries:?}");
}

#[test]
fn a_success_after_failures_goes_back_to_the_period() {
    let (mut renewals, id) = single(RenewalConfig::of(ttl(900)));
    assert_eq!(due(&mut renewals, 300), [id]);
    renewals.failed(id, at(350));
    renew(&mut renewals, id, 487);
    assert_eq!(renewals.next_at(), at(787));
}

#[test]
fn limits_of_number_and_time_end_the_renewals_but_not_the_lease() {
    let (mut renewals, id) = single(RenewalConfig {
        max_extensions: Some(2),
        ..RenewalConfig::of(ttl(900))
    });
    assert_eq!(due(&mut renewals, 300), [id]);
    // What failed does not count.
    renewals.failed(id, at(300));
    renew(&mut renewals, id, 500);
    renew(&mut renewals, id, 800);
    assert_eq!(renewals.next_at(), at(800 + 898));
    assert_eq!(
        (due(&mut renewals, 1697), ended(&mut renewals, 1697)),
        (vec![], vec![])
    );
    assert_eq!(ended(&mut renewals, 1698), [id]);

    let (mut renewals, id) = single(RenewalConfig {
        max_extensions: Some(0),
        ..RenewalConfig::of(ttl(900))
    });
    assert_eq!(
        (renewals.next_at(), due(&mut renewals, 800)),
        (at(898), vec![])
    );
    assert_eq!(ended(&mut renewals, 898), [id]);

    let (mut renewals, id) = single(RenewalConfig {
        until: Some(at(600)),
        ..RenewalConfig::of(ttl(900))
    });
    renew(&mut renewals, id, 300);
    assert_eq!(
        renewals.next_at(),
        at(1198),
        "the next one would be at its limit"
    );
    assert_eq!(
        (due(&mut renewals, 1100), renewals.next_at()),
        (vec![], at(1198))
    );
    // It was due before its limit, and the thread came late.
    let (mut renewals, id) = single(RenewalConfig {
        until: Some(at(600)),
        ..RenewalConfig::of(ttl(900))
    });
    assert_eq!(due(&mut renewals, 600), []);
    assert_eq!(
        (due(&mut renewals, 700), ended(&mut renewals, 898)),
        (vec![], vec![id])
    );
}

#[test]
fn what_is_extended_early_for_a_node_that_lost_its_data_counts_for_nothing() {
    let (mut renewals, id) = single(RenewalConfig {
        max_extensions: Some(1),
        ..RenewalConfig::of(ttl(900))
    });
    renewals.hurry(at(100));
    renewals.hurry(at(101));
    assert_eq!(renewals.next_at(), at(100));
    renew(&mut renewals, id, 101);
    assert_eq!(renewals.next_at(), at(401));
    assert_eq!(due(&mut renewals, 401), [id]);
    renewals.hurry(at(402));
    assert_eq!(due(&mut renewals, 402), [], "one is in flight");
    assert!(
        renewals
            .renewed(id, at(401), ttl(900).lease_from(at(401)), at(403))
            .is_some()
    );
    // Its only extension is over: it is left to end.
    renewals.hurry(at(410));
    assert_eq!(renewals.next_at(), at(401 + 898));
    // One that is due now is none of the others.
    let (mut renewals, id) = single(RenewalConfig {
        max_extensions: Some(1),
        ..RenewalConfig::of(ttl(900))
    });
    renewals.hurry(at(300));
    renew(&mut renewals, id, 300);
    assert_eq!(renewals.next_at(), at(300 + 898));
    // A try that fails is followed by one that counts.
    let (mut renewals, id) = single(RenewalConfig {
        max_extensions: Some(1),
        ..RenewalConfig::of(ttl(900))
    });
    renewals.hurry(at(100));
    assert_eq!(due(&mut renewals, 100), [id]);
    renewals.failed(id, at(150));
    renew(&mut renewals, id, 450);
    assert_eq!(renewals.next_at(), at(450 + 898));
}

#[test]
fn an_answer_after_the_end_renews_nothing_even_if_it_was_not_reported_yet() {
    let (mut renewals, id) = single(RenewalConfig::of(ttl(900)));
    assert_eq!(due(&mut renewals, 300), [id]);
    assert_eq!(
        renewals.renewed(id, at(300), ttl(900).lease_from(at(300)), at(898)),
        None
    );
    assert_eq!(
        renewals.extended(id, at(300), ttl(900).lease_from(at(300)), at(898)),
        None
    );
    assert_eq!(renewals.next_at(), at(898));
    assert_eq!(ended(&mut renewals, 898), [id]);
    assert!(!renewals.remove(id), "it was reported");
}

#[test]
fn an_ended_lease_is_not_extended_by_a_late_caller() {
    let (mut renewals, id) = single(RenewalConfig::of(ttl(900)));
    assert_eq!(due(&mut renewals, 898), []);
    assert_eq!(renewals.next_at(), at(898));
    assert_eq!(ended(&mut renewals, 5_000), [id]);
}

#[test]
fn removal_wins_over_an_answer_and_the_next_lease_has_a_new_name() {
    let (mut renewals, id) = single(RenewalConfig::of(ttl(900)));
    assert_eq!(due(&mut renewals, 300), [id]);
    assert!(renewals.remove(id));
    let next = renewals.insert(
        RenewalConfig::of(ttl(900)),
        at(310),
        ttl(900).lease_from(at(310)),
        at(310),
    );
    assert_ne!(next, id);
    assert_eq!(
        renewals.renewed(id, at(300), ttl(900).lease_from(at(300)), at(320)),
        None
    );
    assert!(!renewals.failed(id, at(320)) && !renewals.remove(id));
    assert_eq!(renewals.next_at(), at(610));
    assert_eq!(due(&mut renewals, 610), [next]);
}

#[test]
fn an_extension_by_hand_moves_the_schedule_and_counts_for_nothing() {
    let (mut renewals, id) = single(RenewalConfig {
        max_extensions: Some(1),
        ..RenewalConfig::of(ttl(900))
    });
    let longer = ttl(9_000).lease_from(at(100));
    assert_eq!(
        renewals.extended(id, at(100), longer, at(101)),
        Some(longer)
    );
    assert_eq!(renewals.next_at(), at(400));
    assert_eq!(due(&mut renewals, 400), [id]);
    // By hand once more, sent later than the one in flight, whose answer comes last.
    let latest = ttl(5_000).lease_from(at(410));
    assert_eq!(
        renewals.extended(id, at(410), latest, at(420)),
        Some(latest)
    );
    assert_eq!(
        renewals.renewed(id, at(400), ttl(900).lease_from(at(400)), at(430)),
        Some(latest)
    );
    assert_eq!(
        renewals.next_at(),
        at(410 + 4_998),
        "the one automatic extension is used up"
    );
}

/// A clock may show the same time twice. While an owner extends by hand, nothing is sent
/// automatically: so what is in flight was sent before.
#[test]
fn an_extension_by_hand_at_the_very_time_of_a_renewal_counts_as_the_later() {
    for (automatic, by_hand) in [(900, 300), (900, 5_000)] {
        for is_answered_last in [true, false] {
            let (mut renewals, id) = single(RenewalConfig::of(ttl(900)));
            assert_eq!(due(&mut renewals, 300), [id]);
            let automatic = ttl(automatic).lease_from(at(300));
            let by_hand = ttl(by_hand).lease_from(at(300));
            if is_answered_last {
                assert_eq!(
                    renewals.renewed(id, at(300), automatic, at(301)),
                    Some(automatic)
                );
                assert_eq!(
                    renewals.extended(id, at(300), by_hand, at(301)),
                    Some(by_hand)
                );
            } else {
                assert_eq!(
                    renewals.extended(id, at(300), by_hand, at(301)),
                    Some(by_hand)
                );
                assert_eq!(
                    renewals.renewed(id, at(300), automatic, at(301)),
                    Some(by_hand)
                );
            }
        }
    }
}

#[test]
fn odd_settings_do_no_harm() {
    for period in [Duration::ZERO, Duration::from_micros(1), Duration::MAX] {
        let (renewals, _) = single(RenewalConfig {
            period,
            ..RenewalConfig::of(ttl(900))
        });
        assert!(
            (at(10)..=at(449)).contains(&renewals.next_at()),
            "{period:?}"
        );
    }
    let mut renewals = Renewals::new();
    let id = renewals.insert(
        RenewalConfig::of(ttl(3)),
        at(0),
        ttl(3).lease_from(at(0)),
        at(0),
    );
    assert_eq!(renewals.next_at(), LeaseTime::from_nanos(500_000));
    assert_eq!(due(&mut renewals, 0), []);
    assert_eq!(ended(&mut renewals, 1), [id]);
    let never = ttl(900).lease_from(LeaseTime::NEVER);
    let id = renewals.insert(
        RenewalConfig::of(ttl(900)),
        LeaseTime::NEVER,
        never,
        LeaseTime::NEVER,
    );
    assert_eq!(renewals.next_at(), LeaseTime::NEVER);
    let mut reported = Vec::new();
    renewals.ended(LeaseTime::NEVER, &mut reported);
    assert_eq!(reported, [id]);
}

#[test]
fn ten_thousand_leases_go_out_in_one_batch_and_leave_nothing_behind() {
    const LEASES: usize = if cfg!(miri) { 100 } else { 10_000 };
    let mut renewals = Renewals::new();
    let mut ids = Vec::new();
    for number in 0..LEASES as u64 {
        let start = at(number % 7);
        ids.push(renewals.insert(
            RenewalConfig::of(ttl(900)),
            start,
            ttl(900).lease_from(start),
            at(7),
        ));
    }
    for third in 1..10 {
        let now = third * 307;
        let mut batch = due(&mut renewals, now);
        batch.sort_unstable();
        assert_eq!(batch, ids);
        assert_eq!(due(&mut renewals, now), []);
        for id in batch {
            assert!(
                renewals
                    .renewed(id, at(now), ttl(900).lease_from(at(now)), at(now + 1))
                    .is_some()
            );
        }
    }
    // In parts, if the driver wants no more at a time.
    let mut part = Vec::new();
    for fifths in [2, 2, 1, 0] {
        part.clear();
        renewals.due(at(3_100), LEASES * 2 / 5, &mut part);
        assert_eq!(part.len(), LEASES * fifths / 5);
    }
    assert_eq!(ended(&mut renewals, 5_000).len(), LEASES);
    assert!(renewals.leases.is_empty() && renewals.tries.is_empty() && renewals.ends.is_empty());
}

#[test]
fn limits_give_way_to_later_ones() {
    let limited = |max_extensions, until| RenewalConfig {
        max_extensions,
        until,
        ..RenewalConfig::of(ttl(900))
    };
    let (mut renewals, id) = single(limited(Some(1), Some(at(1000))));
    renew(&mut renewals, id, 300);
    assert_eq!(renewals.next_at(), at(1198), "it runs out");
    assert!(renewals.allow(id, limited(Some(1), Some(at(500))), at(400)));
    renew(&mut renewals, id, 600);
    assert_eq!(
        renewals.next_at(),
        at(1498),
        "one more, and no less time than before"
    );
    assert!(renewals.allow(id, limited(Some(9), Some(at(1300))), at(700)));
    renew(&mut renewals, id, 900);
    renew(&mut renewals, id, 1200);
    assert_eq!(renewals.next_at(), at(2098), "the time is over");
    assert!(renewals.allow(id, RenewalConfig::of(ttl(900)), at(1300)));
    renew(&mut renewals, id, 1500);
    assert!(
        renewals.allow(id, limited(Some(0), Some(at(0))), at(1500)),
        "it is without limit now"
    );
    renew(&mut renewals, id, 1800);
    assert_eq!(ended(&mut renewals, 2698), [id]);
    assert!(
        !renewals.allow(id, RenewalConfig::of(ttl(900)), at(2698)),
        "an ended lease never comes back"
    );
}
