//! Tests of the schedule of extensions: whole lives and limits, as stories.
//! `fuzz/bodies/renewal.rs` has any order of events.

use super::*;
use crate::algorithm::lease::MAX_TTL;

/// At a drift of nothing but the 2 ms that are always taken off.
fn ttl(millis: u64) -> Ttl {
    Ttl::new(Duration::from_millis(millis), 0.0, MAX_TTL).unwrap()
}

fn at(millis: u64) -> LeaseTime {
    LeaseTime::ORIGIN.after(Duration::from_millis(millis))
}

fn lease(millis: u64, from: u64) -> Validity {
    ttl(millis).lease_from(at(from))
}

/// A schedule with one lease of 900 ms, valid for 898 ms, that began at once.
fn single(config: RenewalConfig) -> (Renewals, LeaseId) {
    let mut renewals = Renewals::new();
    let id = renewals.insert(config, at(0), lease(900, 0), at(1));
    (renewals, id)
}

fn limited(max_extensions: Option<u32>, until: Option<u64>) -> RenewalConfig {
    RenewalConfig {
        max_extensions,
        until: until.map(at),
        ..RenewalConfig::of(ttl(900))
    }
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

/// Plays a story of one lease, in milliseconds:
/// - `300 due`, `898 ended`: the lease is reported so then; or `not due`, `not ended`;
/// - `300 renewed`: the lease is due, and a try of 900 ms is won at once;
/// - `350 failed`: the try that was under way has failed; or `900 too late to fail`;
/// - `100 hurried`: a node has lost its data;
/// - `next 300`: the thread is to look then.
#[track_caller]
fn plays(renewals: &mut Renewals, id: LeaseId, story: &str) {
    for event in story.split("; ") {
        let (time, what) = event.split_once(' ').unwrap();
        if time == "next" {
            assert_eq!(renewals.next_at(), at(what.parse().unwrap()), "{event}");
            continue;
        }
        let now = time.parse().unwrap();
        match what {
            "due" => assert_eq!(due(renewals, now), [id], "{event}"),
            "not due" => assert_eq!(due(renewals, now), [], "{event}"),
            "ended" => assert_eq!(ended(renewals, now), [id], "{event}"),
            "not ended" => assert_eq!(ended(renewals, now), [], "{event}"),
            "failed" => assert!(renewals.failed(id, at(now)), "{event}"),
            "too late to fail" => assert!(!renewals.failed(id, at(now)), "{event}"),
            "hurried" => renewals.hurry(at(now)),
            "renewed" => {
                let lease = lease(900, now);
                assert_eq!(due(renewals, now), [id], "{event}");
                let renewed = renewals.renewed(id, at(now), lease, at(now));
                assert_eq!(renewed, Some(lease), "{event}");
            }
            _ => panic!("{event}"),
        }
    }
}

/// The same from the beginning of a lease.
#[track_caller]
fn lives(config: RenewalConfig, story: &str) -> (Renewals, LeaseId) {
    let (mut renewals, id) = single(config);
    plays(&mut renewals, id, story);
    (renewals, id)
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
    let (mut renewals, id) = single(limited(None, None));
    for third in 1..100 {
        let now = third * 300;
        let story = format!("next {now}; {} not due; {now} renewed", now - 1);
        plays(&mut renewals, id, &story);
    }
    assert!(renewals.remove(id));
    assert!(!renewals.remove(id));
    assert_eq!(renewals.next_at(), LeaseTime::NEVER);
    plays(&mut renewals, id, "1000000 not due; 1000000 not ended");
}

#[test]
fn an_extension_is_in_flight_from_when_it_is_due_until_its_result() {
    let (mut renewals, id) = single(limited(None, None));
    for (story, is_in_flight) in [
        ("next 300", false),
        ("300 due", true),
        ("350 failed", false),
        ("487 due", true),
    ] {
        plays(&mut renewals, id, story);
        assert_eq!(renewals.is_in_flight(id), is_in_flight, "{story}");
    }
    renewals.renewed(id, at(487), lease(900, 487), at(490));
    assert!(!renewals.is_in_flight(id));
    assert!(renewals.remove(id) && !renewals.is_in_flight(id));
}

#[test]
fn a_failed_try_is_repeated_more_and_more_often_until_the_end() {
    let (mut renewals, id) = single(limited(None, None));
    let tries = failing(&mut renewals, id, at(898), Duration::from_millis(50));
    assert_eq!(tries, [300, 487, 627, 732, 811, 871]);
    let end = "897 not ended; 898 ended; 899 not ended; 899 too late to fail";
    plays(&mut renewals, id, end);
}

#[test]
fn a_long_lease_is_tried_about_twenty_times_more() {
    let mut renewals = Renewals::new();
    let id = renewals.insert(
        RenewalConfig::of(ttl(30_000)),
        at(0),
        lease(30_000, 0),
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
    lives(
        limited(None, None),
        "300 due; 350 failed; 487 renewed; next 787",
    );
}

#[test]
fn limits_of_number_and_time_end_the_renewals_but_not_the_lease() {
    for (max_extensions, until, story) in [
        // What failed does not count.
        (
            Some(2),
            None,
            "300 due; 300 failed; 500 renewed; 800 renewed; next 1698; \
             1697 not due; 1697 not ended; 1698 ended",
        ),
        (Some(0), None, "next 898; 800 not due; 898 ended"),
        // The next one would be at its limit.
        (
            None,
            Some(600),
            "300 renewed; next 1198; 1100 not due; next 1198",
        ),
        // It was due before its limit, and the thread came late.
        (None, Some(600), "600 not due; 700 not due; 898 ended"),
    ] {
        lives(limited(max_extensions, until), story);
    }
}

#[test]
fn what_is_extended_early_for_a_node_that_lost_its_data_counts_for_nothing() {
    let once = limited(Some(1), None);
    let hurried = "100 hurried; 101 hurried; next 100; 101 renewed; next 401; 401 due";
    let (mut renewals, id) = lives(once, hurried);
    // One is in flight.
    plays(&mut renewals, id, "402 hurried; 402 not due");
    assert!(
        renewals
            .renewed(id, at(401), lease(900, 401), at(403))
            .is_some()
    );
    // Its only extension is over: it is left to end.
    plays(&mut renewals, id, "410 hurried; next 1299");
    // One that is due now is none of the others.
    lives(once, "300 hurried; 300 renewed; next 1198");
    // A try that fails is followed by one that counts.
    lives(
        once,
        "100 hurried; 100 due; 150 failed; 450 renewed; next 1348",
    );
    // Extended by hand before the thread comes to it: the next one is none for the node.
    let (mut renewals, id) = lives(once, "100 hurried");
    assert!(
        renewals
            .extended(id, at(101), lease(900, 101), at(102))
            .is_some()
    );
    plays(&mut renewals, id, "next 401; 401 renewed; next 1299");
    // One that is in flight counts for nothing, also if one by hand is won meanwhile.
    let (mut renewals, id) = lives(once, "100 hurried; 100 due");
    let by_hand = renewals.extended(id, at(101), lease(900, 101), at(102));
    assert!(
        by_hand.is_some() && renewals.renewed(id, at(100), lease(900, 100), at(103)) == by_hand
    );
    plays(&mut renewals, id, "next 401; 401 renewed; next 1299");
}

#[test]
fn an_answer_after_the_end_renews_nothing_even_if_it_was_not_reported_yet() {
    let (mut renewals, id) = lives(limited(None, None), "300 due");
    let late = lease(900, 300);
    assert_eq!(renewals.renewed(id, at(300), late, at(898)), None);
    assert_eq!(renewals.extended(id, at(300), late, at(898)), None);
    plays(&mut renewals, id, "next 898; 898 ended");
    assert!(!renewals.remove(id), "it was reported");
}

#[test]
fn an_ended_lease_is_not_extended_by_a_late_caller() {
    lives(limited(None, None), "898 not due; next 898; 5000 ended");
}

#[test]
fn removal_wins_over_an_answer_and_the_next_lease_has_a_new_name() {
    let (mut renewals, id) = lives(limited(None, None), "300 due");
    assert!(renewals.remove(id));
    let next = renewals.insert(limited(None, None), at(310), lease(900, 310), at(310));
    assert_ne!(next, id);
    assert_eq!(
        renewals.renewed(id, at(300), lease(900, 300), at(320)),
        None
    );
    assert!(!renewals.failed(id, at(320)) && !renewals.remove(id));
    plays(&mut renewals, next, "next 610; 610 due");
}

#[test]
fn an_extension_by_hand_moves_the_schedule_and_counts_for_nothing() {
    let (mut renewals, id) = single(limited(Some(1), None));
    let longer = lease(9_000, 100);
    assert_eq!(
        renewals.extended(id, at(100), longer, at(101)),
        Some(longer)
    );
    plays(&mut renewals, id, "next 400; 400 due");
    // By hand once more, sent later than the one in flight, whose answer comes last.
    let latest = lease(5_000, 410);
    assert_eq!(
        renewals.extended(id, at(410), latest, at(420)),
        Some(latest)
    );
    let automatic = renewals.renewed(id, at(400), lease(900, 400), at(430));
    assert_eq!(automatic, Some(latest));
    // The one automatic extension is used up.
    plays(&mut renewals, id, "next 5408");
}

/// A clock may show the same time twice. While an owner extends by hand, nothing is sent
/// automatically: so what is in flight was sent before.
#[test]
fn an_extension_by_hand_at_the_very_time_of_a_renewal_counts_as_the_later() {
    let automatic = lease(900, 300);
    for by_hand in [300, 5_000].map(|millis| lease(millis, 300)) {
        let begun = || lives(limited(None, None), "300 due");
        let (mut renewals, id) = begun();
        let renewed = renewals.renewed(id, at(300), automatic, at(301));
        let extended = renewals.extended(id, at(300), by_hand, at(301));
        assert_eq!((renewed, extended), (Some(automatic), Some(by_hand)));
        let (mut renewals, id) = begun();
        let extended = renewals.extended(id, at(300), by_hand, at(301));
        let renewed = renewals.renewed(id, at(300), automatic, at(301));
        assert_eq!((extended, renewed), (Some(by_hand), Some(by_hand)));
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
        ids.push(renewals.insert(
            limited(None, None),
            at(number % 7),
            lease(900, number % 7),
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
                    .renewed(id, at(now), lease(900, now), at(now + 1))
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
    let (mut renewals, id) = single(limited(Some(1), Some(1000)));
    // It runs out.
    plays(&mut renewals, id, "300 renewed; next 1198");
    assert!(renewals.allow(id, limited(Some(1), Some(500)), at(400)));
    // One more, and no less time than before.
    plays(&mut renewals, id, "600 renewed; next 1498");
    assert!(renewals.allow(id, limited(Some(9), Some(1300)), at(700)));
    // The time is over.
    plays(&mut renewals, id, "900 renewed; 1200 renewed; next 2098");
    assert!(renewals.allow(id, limited(None, None), at(1300)));
    plays(&mut renewals, id, "1500 renewed");
    // It is without limit now.
    assert!(renewals.allow(id, limited(Some(0), Some(0)), at(1500)));
    plays(&mut renewals, id, "1800 renewed; 2698 ended");
    let again = renewals.allow(id, limited(None, None), at(2698));
    assert!(!again, "an ended lease never comes back");
}
