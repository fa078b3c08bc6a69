//! When a call challenges the entry in front.

use super::*;

/// The holder that the call's rounds see, each half a second later, as a digit: which of them
/// challenge.
fn challenges(holders: &str) -> String {
    let mut call = call();
    let times = (0..).map(|round| round * 500);
    let asked = times.zip(holders.bytes()).map(|(now, holder)| {
        let challenged = call.request(CLOCK, at(now)).challenged;
        assert!(challenged.is_none_or(|head| head == entry(9).member()));
        refused(&mut call, now, [(5, 1, holder - b'0'); 2]);
        if challenged.is_some() { 'c' } else { '-' }
    });
    asked.collect()
}

#[test]
fn a_head_is_challenged_after_the_place_lease_if_the_lock_was_free_or_changed_hands() {
    for (holders, expected) in [
        // A long hold is no fault of the first one.
        ("111111", "------"),
        ("000", "--c"),
        ("1222", "--cc"),
        // Free for a moment.
        ("11101", "----c"),
        ("11122", "----c"),
    ] {
        assert_eq!(challenges(holders), expected, "{holders}");
    }
}

/// The reply of a node whose lock is free, with this entry in front.
fn behind(number: u64) -> QueueReply {
    QueueReply {
        head: Some(entry(number).member()),
        ..reply(5, 1, 0)
    }
}

#[test]
fn a_new_head_has_the_place_lease_anew_and_the_call_itself_is_none() {
    let mut call = call();
    for (now, number, challenged) in [
        (0, 9, None),
        (900, 8, None),
        (1800, 8, None),
        (1900, 8, Some(8)),
        (3000, 1, Some(8)),
    ] {
        assert_eq!(
            call.request(CLOCK, at(now)).challenged,
            challenged.map(|number| entry(number).member()),
            "{now}"
        );
        lose(
            &mut call,
            now,
            &[],
            &[(0, behind(number)), (1, behind(number))],
        );
    }
    assert_eq!(
        call.request(CLOCK, at(9000)).challenged,
        None,
        "it is the first one itself"
    );
}

#[test]
fn heads_are_watched_node_by_node() {
    let mut call = call();
    lose(&mut call, 0, &[], &[(0, behind(8)), (1, behind(9))]);
    // One node has another head now.
    lose(&mut call, 600, &[2], &[(0, behind(7)), (1, behind(9))]);
    let challenged = |call: &QueuedCall, now| call.request(CLOCK, at(now)).challenged;
    assert_eq!(challenged(&call, 999), None);
    assert_eq!(challenged(&call, 1000), Some(entry(9).member()));
    lose(&mut call, 1000, &[], &[(0, behind(7)), (1, behind(7))]);
    assert_eq!(
        [1599, 1600].map(|now| challenged(&call, now)),
        [None, Some(entry(7).member())]
    );
}

#[test]
fn a_lock_is_passed_on_where_a_node_shows_another_holder_than_before() {
    let mut call = call();
    let held_by = |holder| QueueReply {
        is_other_library: true,
        ..reply(5, 1, holder)
    };
    let entry = Entry {
        kind: EntryKind::Read,
        ..entry(1)
    };
    let mut reader = QueuedCall::new(SETUP, entry, at(0));
    for (now, holders, is_passed_on) in [
        (0, [1, 2], false),
        (100, [1, 2], false),
        (200, [1, 3], true),
        (300, [1, 3], false),
    ] {
        let [first, second] = holders.map(held_by);
        lose(&mut call, now, &[], &[(0, first), (1, second)]);
        assert_eq!(call.is_passed_on(), is_passed_on, "{holders:?}");
        lose(&mut reader, now, &[], &[(0, first), (1, second)]);
        assert!(
            !reader.is_passed_on(),
            "of readers, one goes and another stays"
        );
    }
}

#[test]
fn what_a_node_has_shown_is_forgotten_when_it_refuses_no_more() {
    let mut call = call();
    let free = reply(5, 1, 0);
    lose(&mut call, 0, &[], &[(0, free), (1, free), (2, free)]);
    let other = behind(8);
    // The third node is down from here on.
    lose(&mut call, 900, &[], &[(0, other), (1, other)]);
    assert_eq!(
        call.request(CLOCK, at(1500)).challenged,
        None,
        "it was first there for 0.6 s"
    );
    lose(&mut call, 1500, &[], &[(0, other), (1, other)]);
    assert_eq!(call.request(CLOCK, at(1900)).challenged, other.head);
}

#[test]
fn after_a_challenge_it_asks_again_in_ten_milliseconds() {
    let mut call = call();
    let free = reply(5, 2, 0);
    lose(&mut call, 0, &[], &[(0, free), (1, free)]);
    assert_eq!(call.due(), at(1002));
    refused(&mut call, 1002, [(5, 0, 0), (5, 0, 0)]);
    assert_eq!(call.due(), at(1012));
    assert_eq!(because(&call), [0, 0, 1]);
    refused(&mut call, 1012, [(5, 0, 1), (5, 0, 1)]);
    assert_eq!(call.due(), at(2012), "the next round is no challenge");
}
