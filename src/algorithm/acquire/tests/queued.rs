//! Calls that wait in the queues of the lock: when they enter, what a lost attempt leaves behind
//! there, and how long they sleep.

use super::*;

const LONG: WaitLimit = while_available(3);

fn waiter(wait_limit: WaitLimit, first_in_turn: Option<Timestamp>) -> Acquire {
    Acquire::new(
        AcquireConfig {
            queues: true,
            first_in_turn,
            ..acquire(wait_limit).config
        },
        at(0),
    )
}

/// A call that asks in its turn, and has not asked yet. Messages arrive.
fn entered(wait_limit: WaitLimit) -> Acquire {
    let mut machine = waiter(wait_limit, Some(at(0)));
    enter(&mut machine, at(0));
    machine.set_wait_bounds(WaitBounds {
        is_attentive: true,
        ..WaitBounds::NONE
    });
    machine
}

#[test]
fn a_call_enters_the_queue_when_it_was_refused_and_at_first_if_it_has_to() {
    let mut machine = waiter(LONG, None);
    plays(
        &mut machine,
        "
        0-1 rrr => enqueue
        enter 1 => attempt
    ",
    );
    assert_eq!(machine.queue().unwrap().entry(), entry());
    assert_eq!(waiter(LONG, Some(at(0))).poll(), Output::Enqueue);
    // One that has no queue waits.
    plays(&mut acquire(LONG), "0-1 rrr => wait 7");
}

#[test]
fn a_wait_is_attentive_while_messages_arrive() {
    let mut machine = entered(LONG);
    assert!(machine.is_attentive());
    machine.set_wait_bounds(WaitBounds::NONE);
    assert!(!machine.is_attentive());
}

#[test]
fn no_message_is_for_a_call_that_has_no_ticket() {
    // One node granted, and the other two have no queue: what is undone leaves.
    plays(
        &mut entered(LONG),
        "
        0-1 grr - => undo 0, wait 7
        turn 2 2 => wait 7
        next 2 2 => wait 7
        confirmed 2 2 => wait 7
    ",
    );
}

#[test]
fn a_call_that_lets_another_one_ask_first_waits_for_it() {
    for (wait_limit, story) in [
        (LONG, "enter 3 => wait 5\n5 => attempt"),
        // Its attempt would be cut short.
        (WaitLimit::Until(at(54)), "enter 3 => attempt"),
        (WaitLimit::Until(at(55)), "enter 3 => wait 5"),
    ] {
        plays(&mut waiter(wait_limit, Some(at(5))), story);
    }
}

#[test]
fn what_a_refused_attempt_has_got_is_undone_before_the_call_enters() {
    plays(&mut waiter(LONG, None), "0-1 grr => undo 0, enqueue");
}

#[test]
fn a_call_enters_no_queue_where_nothing_is_held_or_no_time_is_left() {
    for (wait_limit, story) in [
        // Too few nodes replied.
        (LONG, "0-1 xxx => undo 0 1 2, wait 7"),
        (WaitLimit::Once, "0-1 rrr => Held"),
        // Two more attempts of 20 ms.
        (WaitLimit::Until(at(60)), "0-20 rrr => enqueue"),
        (WaitLimit::Until(at(59)), "0-20 rrr => wait 26"),
    ] {
        plays(&mut waiter(wait_limit, None), story);
    }
}

#[test]
fn delays_begin_anew_when_another_librarys_programs_have_passed_the_lock_on() {
    for (holders, delays) in [("aaaa", [6, 18, 54, 162]), ("aabb", [6, 18, 6, 18])] {
        let mut machine = entered(LONG);
        machine.set_wait_bounds(WaitBounds::NONE);
        let mut now = 0;
        for (holder, delay) in holders.chars().zip(delays) {
            let end = now + 1;
            let story = format!("{now}-{end} rrr 5:0:{holder} => wait {}", end + delay);
            plays(&mut machine, &story);
            now = end + delay;
            machine.woken(at(now));
        }
    }
}

#[test]
fn a_lost_attempt_is_undone_where_it_granted_and_stored_where_the_ticket_differs() {
    let mut machine = entered(LONG);
    // In the end a node is silent, and may have granted.
    plays(
        &mut machine,
        "
        0-1 rrr 5:1 => wait 1001
        1001 => attempt
        1001-1002 grr 7:1 => undo 0, store 1 2, wait 2002
        2002 => attempt
        2002-2003 rrx 5:1 => undo 2, wait 3003
    ",
    );
    assert_eq!(machine.queue().unwrap().ticket, Some(5));
}

#[test]
fn a_call_that_gets_no_ticket_leaves_every_node_and_begins_again_by_growing_delays() {
    let mut machine = entered(LONG);
    // Its entry, too, where it was refused.
    waits_longer_and_longer(&mut machine, 0, "rxx 5:0", "undo 0 1 2, ");
    assert_eq!(machine.queue().unwrap().ticket, None);
}

#[test]
fn nodes_without_a_queue_are_asked_by_growing_delays() {
    waits_longer_and_longer(&mut entered(LONG), 0, "rrr -", "");
}

#[test]
fn a_cluster_that_is_away_is_asked_by_growing_delays_and_the_ticket_is_kept() {
    let mut machine = entered(while_available(60));
    plays(
        &mut machine,
        "
        0-1 rrr 5:1 => wait 1001
        1001 => attempt
    ",
    );
    waits_longer_and_longer(&mut machine, 1001, "xxx 5:1", "undo 0 1 2, ");
    assert_eq!(machine.queue().unwrap().ticket, Some(5));
}

#[test]
fn a_call_that_is_told_sleeps_until_a_message_and_one_that_is_not_asks_by_growing_delays() {
    plays(
        &mut entered(LONG),
        "
        0-1 rrr 5:3 => wait 1003
        1003 => attempt
        1003-1004 rrr 5:3 => wait 2006
    ",
    );
    let mut machine = entered(LONG);
    machine.set_wait_bounds(WaitBounds::NONE);
    waits_longer_and_longer(&mut machine, 0, "rrr 5:3", "");
}

#[test]
fn the_first_one_sleeps_no_longer_than_the_holder_has_the_lock() {
    for story in [
        "free 500; 0-1 rrr 5:0 => wait 500",
        "free 500; 0-1 rrr 5:1 => wait 500",
        "free 500; 0-1 rrr 5:2 => wait 1002",
    ] {
        plays(&mut entered(LONG), story);
    }
}

#[test]
fn a_message_ends_the_wait_when_it_is_due_and_never_makes_it_longer() {
    // The second one with a turn makes a quorum.
    plays(
        &mut entered(LONG),
        "
        0-1 rrr 5:1 => wait 1001
        next 0 100 => wait 130
        turn 0 110 => wait 112
        turn 1 111; 111 => attempt
    ",
    );
    // It has no entry.
    plays(
        &mut acquire(LONG),
        "
        0-1 rrr => wait 7
        turn 0 2 => wait 7
    ",
    );
}

#[test]
fn a_deadline_bounds_the_sleep_and_is_met_by_shorter_ones() {
    plays(
        &mut entered(WaitLimit::Until(at(200))),
        "
        0-1 rrr 5:1 => wait 100.5
        200 => Held
    ",
    );
}

/// A set that has asked for its key in turn: these nodes refused, with these tickets.
fn enqueued(tickets: &[u64], is_free: bool) -> Acquire {
    let mut machine = entered(LONG);
    machine.queue().unwrap().ask(at(0));
    let mut round = QueueRound::new(None, latest_ticket(CLOCK));
    for (node, &ticket) in tickets.iter().enumerate() {
        round.on_refused(NodeId::new(node), reply(ticket, 1));
    }
    machine.enqueued(&round, is_free, at(1), u64::MAX);
    machine
}

#[test]
fn a_set_stores_its_entry_and_asks_for_all_keys_at_once_if_that_one_is_free() {
    for (is_free, expected) in [(true, "attempt"), (false, "store 0, wait 1001")] {
        let mut machine = enqueued(&[5, 7], is_free);
        assert_eq!(machine.queue().unwrap().ticket, Some(7));
        assert!(machine.is_held(), "nodes have replied that it is");
        assert_eq!(wants(&mut machine), expected);
    }
}

#[test]
fn a_set_that_has_asked_for_all_keys_in_vain_pauses_before_it_asks_again() {
    let mut machine = enqueued(&[5], true);
    assert_eq!(machine.poll(), Output::Attempt);
    let (tally, reached) = tally("rrr");
    machine.attempted(clocks(1), &tally, reached, clocks(2), 4_000_000);
    let queue = machine.queue().unwrap();
    for node in [0, 1] {
        queue.on_message(NodeId::new(node), Message::Turn(None), at(2));
    }
    assert_eq!(queue.due(), at(4));
}

#[test]
fn a_call_that_leaves_its_queue_enters_another_one() {
    let mut machine = entered(LONG);
    plays(&mut machine, "0-1 rrr 5:1 => wait 1001");
    machine.leave_queue();
    assert!(machine.queue().is_none());
    plays(&mut machine, "enter 2 => attempt");
    assert_eq!(machine.queue().unwrap().ticket, None);
}

#[test]
fn a_cancelled_call_undoes_and_stores_nothing_more() {
    // Before it entered.
    plays(&mut waiter(LONG, Some(at(0))), "cancel => Cancelled");
    let lost = "
        0-1 rrr 5:1 => wait 1001
        1001 => attempt
    ";
    for story in [
        "1001-1002 grr 7:1 => undo 0, store 1 2, wait 2002",
        "1001-1002 grr 7:1; cancel => undo 0, Cancelled",
    ] {
        let mut machine = entered(LONG);
        plays(&mut machine, lost);
        plays(&mut machine, story);
    }
}

/// Asleep, it asked no quorum.
#[test]
fn a_waiter_that_has_slept_for_long_still_has_half_of_the_limit_when_the_cluster_is_away() {
    plays(
        &mut entered(LONG),
        "
        0-1 rrr 5:9000 => wait 10000
        10000 => attempt
        10000-10001 xxx 5:1 => undo 0 1 2, wait 10007
        10300 => attempt
        11000-11001 xxx 5:1 => undo 0 1 2, wait 11019
        11300 => attempt
        11498-11499 xxx 5:1 => undo 0 1 2, wait 11553
        11798 => attempt
        11499-11500 xxx 5:1 => undo 0 1 2, Unavailable
    ",
    );
}
