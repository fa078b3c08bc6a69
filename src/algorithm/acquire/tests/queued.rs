//! Calls that wait in the queues of the lock: when they enter, what a lost attempt leaves behind
//! there, and how long they sleep.

use super::super::super::holder::HolderTag;
use super::super::super::kind::EntryKind;
use super::super::super::queue::{Entry, QueueReply, Setup, Slots, Storage, latest_ticket};
use super::*;

const LONG: WaitLimit = while_available(3);
const SETUP: Setup = Setup {
    nodes: 3,
    place_lease: Duration::from_secs(1),
};
const CLOCK: u64 = 1_700_000_000_000_000;
/// Messages arrive.
const ATTENTIVE: WaitBounds = WaitBounds {
    is_attentive: true,
    ..WaitBounds::NONE
};

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

fn enter(machine: &mut Acquire, now: u64) {
    assert_eq!(machine.poll(), Output::Enqueue);
    machine.enter(QueuedCall::new(SETUP, entry(), at(now)), at(now));
}

fn entry() -> Entry {
    Entry {
        client: 0xab,
        kind: EntryKind::Mutex,
        number: 1,
    }
}

/// A call that asks in its turn, and has not asked yet.
fn entered(wait_limit: WaitLimit) -> Acquire {
    let mut machine = waiter(wait_limit, Some(at(0)));
    enter(&mut machine, 0);
    machine
}

/// The reply of a node that has the call behind so many others on a lock that is held.
fn reply(ticket: u64, rank: u32) -> QueueReply {
    QueueReply {
        storage: Storage::Before,
        ticket,
        rank,
        held: Some(Duration::from_millis(500)),
        holder: Some(HolderTag::of(b"holder")),
        is_other_library: false,
        slots: Slots::default(),
        head: None,
    }
}

/// One attempt in its turn from `t0` to a millisecond later: each node that refuses replies this.
fn in_turn(
    machine: &mut Acquire,
    row: &str,
    replied: QueueReply,
    bounds: WaitBounds,
    t0: u64,
) -> Output {
    assert_eq!(machine.poll(), Output::Attempt);
    let queue = machine.queue().unwrap();
    queue.ask(at(t0));
    let mut round = QueueRound::new(queue.ticket, latest_ticket(CLOCK));
    for (node, _) in row.char_indices().filter(|&(_, letter)| letter == 'r') {
        round.on_refused(NodeId::new(node), replied);
    }
    let (tally, reached) = tally(row);
    machine.set_wait_bounds(bounds);
    machine.answered_in_turn(Box::new(round), tally.granted());
    machine.attempted(clocks(t0), &tally, reached, clocks(t0 + 1), u64::MAX);
    machine.poll()
}

#[test]
fn a_call_enters_the_queue_when_it_was_refused_and_at_first_if_it_has_to() {
    let mut machine = waiter(LONG, None);
    assert_eq!(attempt(&mut machine, "rrr", 0, 1), Output::Enqueue);
    machine.enter(QueuedCall::new(SETUP, entry(), at(1)), at(1));
    assert_eq!(machine.poll(), Output::Attempt, "it asks at once");
    assert_eq!(machine.queue().unwrap().entry(), entry());
    assert_eq!(waiter(LONG, Some(at(0))).poll(), Output::Enqueue);
    assert_eq!(
        attempt(&mut acquire(LONG), "rrr", 0, 1),
        wait(7),
        "one that has no queue waits"
    );
}

#[test]
fn a_wait_is_attentive_while_messages_arrive() {
    let mut machine = entered(LONG);
    assert!(!machine.is_attentive());
    machine.set_wait_bounds(ATTENTIVE);
    assert!(machine.is_attentive());
    machine.set_wait_bounds(WaitBounds::NONE);
    assert!(!machine.is_attentive());
}

#[test]
fn no_message_is_for_a_call_that_has_no_ticket() {
    let mut machine = entered(LONG);
    // One node granted, and the other two have no queue: what is undone leaves.
    assert_eq!(machine.poll(), Output::Attempt);
    machine.queue().unwrap().ask(at(0));
    let mut round = QueueRound::new(None, latest_ticket(CLOCK));
    let (tally, reached) = tally("grr");
    round.on_refusals(tally.refused());
    machine.answered_in_turn(Box::new(round), tally.granted());
    machine.attempted(clocks(0), &tally, reached, clocks(1), u64::MAX);
    assert_eq!(machine.poll(), undo(&[0]));
    let Output::Wait(until) = machine.poll() else {
        panic!("it asks after a delay")
    };
    for message in [Message::Turn(None), Message::Next, Message::Confirmed] {
        machine.on_message(NodeId::new(2), message, at(2));
        assert_eq!(machine.poll(), Output::Wait(until), "{message:?}");
    }
}

#[test]
fn a_call_that_lets_another_one_ask_first_waits_for_it() {
    let enters = |wait_limit| {
        let mut machine = waiter(wait_limit, Some(at(5)));
        enter(&mut machine, 3);
        machine
    };
    let mut machine = enters(LONG);
    assert_eq!(machine.poll(), wait(5));
    machine.woken(at(5));
    assert_eq!(machine.poll(), Output::Attempt);
    assert_eq!(
        enters(WaitLimit::Until(at(54))).poll(),
        Output::Attempt,
        "its attempt would be cut short"
    );
    assert_eq!(enters(WaitLimit::Until(at(55))).poll(), wait(5));
}

#[test]
fn what_a_refused_attempt_has_got_is_undone_before_the_call_enters() {
    let mut machine = waiter(LONG, None);
    assert_eq!(attempt(&mut machine, "grr", 0, 1), undo(&[0]));
    assert_eq!(machine.poll(), Output::Enqueue);
}

#[test]
fn a_call_enters_no_queue_where_nothing_is_held_or_no_time_is_left() {
    let mut machine = waiter(LONG, None);
    assert_is_undo(attempt(&mut machine, "xxx", 0, 1));
    assert_eq!(machine.poll(), wait(7), "too few nodes replied");
    assert_eq!(
        attempt(&mut waiter(WaitLimit::Once, None), "rrr", 0, 1),
        Output::Done(Verdict::Held)
    );
    for (deadline, enters) in [(60, true), (59, false)] {
        let output = attempt(
            &mut waiter(WaitLimit::Until(at(deadline)), None),
            "rrr",
            0,
            20,
        );
        assert_eq!(
            output == Output::Enqueue,
            enters,
            "two more attempts of 20 ms, until {deadline}"
        );
    }
}

#[test]
fn delays_begin_anew_when_another_librarys_programs_have_passed_the_lock_on() {
    let delays = |holders: [&[u8]; 4]| {
        let mut machine = entered(LONG);
        let mut now = 0;
        holders.map(|holder| {
            let replied = QueueReply {
                is_other_library: true,
                holder: Some(HolderTag::of(holder)),
                ..reply(5, 0)
            };
            let output = in_turn(&mut machine, "rrr", replied, WaitBounds::NONE, now);
            let Output::Wait(until) = output else {
                panic!("{output:?}")
            };
            let delay = until.since(at(now + 1)).as_millis();
            now = until.since(at(0)).as_millis() as u64;
            machine.woken(until);
            delay
        })
    };
    assert_eq!(delays([b"a", b"a", b"a", b"a"]), [6, 18, 54, 162]);
    assert_eq!(delays([b"a", b"a", b"b", b"b"]), [6, 18, 6, 18]);
}

#[test]
fn a_lost_attempt_is_undone_where_it_granted_and_stored_where_the_ticket_differs() {
    let mut machine = entered(LONG);
    assert_eq!(
        in_turn(&mut machine, "rrr", reply(5, 1), ATTENTIVE, 0),
        wait(1001)
    );
    assert_eq!(machine.queue().unwrap().ticket, Some(5));
    machine.woken(at(1001));
    let output = in_turn(&mut machine, "grr", reply(7, 1), ATTENTIVE, 1001);
    assert_eq!(output, undo(&[0]));
    assert_eq!(
        machine.poll(),
        Output::Store(nodes(&[1, 2])),
        "they have another ticket"
    );
    assert_eq!(machine.poll(), wait(2002), "once");
    // A node that was silent may have granted.
    machine.woken(at(2002));
    assert_eq!(
        in_turn(&mut machine, "rrx", reply(5, 1), ATTENTIVE, 2002),
        undo(&[2])
    );
    assert_eq!(machine.poll(), wait(3003));
}

#[test]
fn a_call_that_gets_no_ticket_leaves_every_node_and_begins_again_by_growing_delays() {
    let mut machine = entered(LONG);
    let mut now = 0;
    for delay in [6, 18, 54, 162, 250, 250] {
        let output = in_turn(&mut machine, "rxx", reply(5, 0), ATTENTIVE, now);
        assert_eq!(
            output,
            undo(&[0, 1, 2]),
            "its entry, too, where it was refused"
        );
        assert_eq!(machine.queue().unwrap().ticket, None);
        assert_eq!(machine.poll(), wait(now + 1 + delay));
        now += 1 + delay;
        machine.woken(at(now));
    }
}

#[test]
fn nodes_without_a_queue_are_asked_by_growing_delays() {
    let mut machine = entered(LONG);
    let mut now = 0;
    for delay in [6, 18, 54, 162, 250, 250] {
        assert_eq!(machine.poll(), Output::Attempt);
        machine.queue().unwrap().ask(at(now));
        machine.set_wait_bounds(ATTENTIVE);
        machine.answered_in_turn(
            Box::new(QueueRound::new(None, latest_ticket(CLOCK))),
            NodeSet::EMPTY,
        );
        let (tally, reached) = tally("rrr");
        machine.attempted(clocks(now), &tally, reached, clocks(now + 1), u64::MAX);
        assert_eq!(machine.poll(), wait(now + 1 + delay));
        now += 1 + delay;
        machine.woken(at(now));
    }
}

#[test]
fn a_cluster_that_is_away_is_asked_by_growing_delays_and_the_ticket_is_kept() {
    let mut machine = entered(WaitLimit::WhileAvailable(Duration::from_secs(60)));
    assert_eq!(
        in_turn(&mut machine, "rrr", reply(5, 1), ATTENTIVE, 0),
        wait(1001)
    );
    machine.woken(at(1001));
    let mut now = 1001;
    for delay in [6, 18, 54, 162, 250] {
        assert_eq!(
            in_turn(&mut machine, "xxx", reply(5, 1), ATTENTIVE, now),
            undo(&[0, 1, 2])
        );
        assert_eq!(machine.poll(), wait(now + 1 + delay));
        now += 1 + delay;
        machine.woken(at(now));
    }
    assert_eq!(machine.queue().unwrap().ticket, Some(5));
}

#[test]
fn a_call_that_is_told_sleeps_until_a_message_and_one_that_is_not_asks_by_growing_delays() {
    for (is_attentive, delays) in [(true, [1003, 1003, 1003]), (false, [7, 19, 55])] {
        let mut machine = entered(LONG);
        let mut now = 0;
        for delay in delays {
            let bounds = WaitBounds {
                is_attentive,
                ..WaitBounds::NONE
            };
            assert_eq!(
                in_turn(&mut machine, "rrr", reply(5, 3), bounds, now),
                wait(now + delay)
            );
            now += delay;
            machine.woken(at(now));
        }
    }
}

#[test]
fn the_first_one_sleeps_no_longer_than_the_holder_has_the_lock() {
    for (rank, until) in [(0, 500), (1, 500), (2, 1002)] {
        let bounds = WaitBounds {
            free_at: at(500),
            ..ATTENTIVE
        };
        assert_eq!(
            in_turn(&mut entered(LONG), "rrr", reply(5, rank), bounds, 0),
            wait(until),
            "{rank}"
        );
    }
}

#[test]
fn a_message_ends_the_wait_when_it_is_due_and_never_makes_it_longer() {
    let mut machine = entered(LONG);
    assert_eq!(
        in_turn(&mut machine, "rrr", reply(5, 1), ATTENTIVE, 0),
        wait(1001)
    );
    machine.on_message(NodeId::new(0), Message::Next, at(100));
    assert_eq!(machine.poll(), wait(130));
    machine.on_message(NodeId::new(0), Message::Turn(None), at(110));
    assert_eq!(machine.poll(), wait(112));
    machine.on_message(NodeId::new(1), Message::Turn(None), at(111));
    machine.woken(at(111));
    assert_eq!(machine.poll(), Output::Attempt, "a quorum");
    let mut machine = acquire(LONG);
    assert_eq!(attempt(&mut machine, "rrr", 0, 1), wait(7));
    machine.on_message(NodeId::new(0), Message::Turn(None), at(2));
    assert_eq!(machine.poll(), wait(7), "it has no entry");
}

#[test]
fn a_deadline_bounds_the_sleep_and_is_met_by_shorter_ones() {
    let mut machine = entered(WaitLimit::Until(at(200)));
    assert_eq!(
        in_turn(&mut machine, "rrr", reply(5, 1), ATTENTIVE, 0),
        Output::Wait(Timestamp::from_nanos(100_500_000))
    );
    machine.woken(at(200));
    assert_eq!(machine.poll(), Output::Done(Verdict::Held));
}

#[test]
fn a_set_stores_its_entry_and_asks_for_all_keys_at_once_if_that_one_is_free() {
    for is_free in [true, false] {
        let mut machine = entered(LONG);
        machine.set_wait_bounds(ATTENTIVE);
        machine.queue().unwrap().ask(at(0));
        let mut round = QueueRound::new(None, latest_ticket(CLOCK));
        [(0, 5), (1, 7)]
            .into_iter()
            .for_each(|(node, ticket)| round.on_refused(NodeId::new(node), reply(ticket, 1)));
        machine.enqueued(&round, is_free, at(1), u64::MAX);
        assert_eq!(machine.queue().unwrap().ticket, Some(7));
        assert!(machine.is_held(), "nodes have replied that it is");
        if is_free {
            assert_eq!(machine.poll(), Output::Attempt);
        } else {
            assert_eq!(machine.poll(), Output::Store(nodes(&[0])));
            assert_eq!(machine.poll(), wait(1001));
        }
    }
}

#[test]
fn a_set_that_has_asked_for_all_keys_in_vain_pauses_before_it_asks_again() {
    let mut machine = entered(LONG);
    machine.set_wait_bounds(ATTENTIVE);
    machine.queue().unwrap().ask(at(0));
    let mut round = QueueRound::new(None, latest_ticket(CLOCK));
    round.on_refused(NodeId::new(0), reply(5, 1));
    machine.enqueued(&round, true, at(1), u64::MAX);
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
    assert_is_wait(in_turn(&mut machine, "rrr", reply(5, 1), ATTENTIVE, 0));
    machine.leave_queue();
    assert!(machine.queue().is_none());
    enter(&mut machine, 2);
    assert_eq!(
        (machine.poll(), machine.queue().unwrap().ticket),
        (Output::Attempt, None)
    );
}

#[test]
fn a_cancelled_call_undoes_and_stores_nothing_more() {
    let mut machine = waiter(LONG, Some(at(0)));
    machine.cancelled();
    assert_eq!(
        machine.poll(),
        Output::Done(Verdict::Cancelled),
        "before it entered"
    );
    let mut machine = entered(LONG);
    assert_eq!(machine.poll(), Output::Attempt);
    machine.queue().unwrap().ask(at(0));
    let mut round = QueueRound::new(None, latest_ticket(CLOCK));
    [(1, 5), (2, 7)]
        .into_iter()
        .for_each(|(node, ticket)| round.on_refused(NodeId::new(node), reply(ticket, 1)));
    let (tally, reached) = tally("grr");
    machine.answered_in_turn(Box::new(round), tally.granted());
    machine.attempted(clocks(0), &tally, reached, clocks(1), 0);
    machine.cancelled();
    assert_eq!(machine.poll(), undo(&[0]));
    assert_eq!(machine.poll(), Output::Done(Verdict::Cancelled));
}

/// Asleep, it asked no quorum.
#[test]
fn a_waiter_that_has_slept_for_long_still_has_half_of_the_limit_when_the_cluster_is_away() {
    let mut machine = entered(LONG);
    assert_eq!(
        in_turn(&mut machine, "rrr", reply(5, 9_000), ATTENTIVE, 0),
        wait(10_000)
    );
    machine.woken(at(10_000));
    for (later, gives_up) in [(0, false), (1000, false), (1498, false), (1499, true)] {
        let now = 10_000 + later;
        assert_is_undo(in_turn(&mut machine, "xxx", reply(5, 1), ATTENTIVE, now));
        match machine.poll() {
            Output::Wait(_) => assert!(!gives_up, "{later}"),
            output => assert_eq!(
                (output, gives_up),
                (Output::Done(Verdict::Unavailable), true),
                "{later}"
            ),
        }
        machine.woken(at(now + 300));
    }
}
