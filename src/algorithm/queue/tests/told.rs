//! What a call does when it is told.

use super::*;

#[test]
fn told_by_a_quorum_it_asks_at_once() {
    let mut call = waiting(0, 0);
    turn(&mut call, 0, 100);
    turn(&mut call, 0, 101);
    assert_eq!(call.due(), at(102), "one node, though it said so twice");
    turn(&mut call, 2, 101);
    assert!(call.due() <= at(101) && call.is_told());
    // Even if it has just asked.
    let mut call = waiting(100, 0);
    turn(&mut call, 0, 101);
    turn(&mut call, 1, 101);
    assert!(call.due() <= at(101));
}

#[test]
fn told_by_fewer_it_asks_after_two_milliseconds_and_once_in_ten() {
    for (told, due) in [(100, 102), (11, 13), (8, 10), (7, 10), (1, 10)] {
        let mut call = waiting(0, 0);
        turn(&mut call, 1, told);
        assert_eq!(call.due(), at(due), "told at {told}");
    }
    // A node that lost the holder's key sends a turn for each round that is undone there.
    let mut call = waiting(0, 0);
    let refused = [(0, reply(5, 0, 1)), (1, reply(5, 0, 1))];
    for (asked, due) in [(10, 30), (30, 70), (70, 150)] {
        turn(&mut call, 2, asked - 2);
        assert_eq!(call.due(), at(asked));
        lose(&mut call, asked, &[2], &refused);
        turn(&mut call, 2, asked + 1);
        assert_eq!(call.due(), at(due));
    }
    turns(&mut call, 71);
    assert_eq!(call.due(), at(71), "a quorum is believed at once");
}

#[test]
fn a_subscription_that_is_confirmed_counts_as_a_turn() {
    let mut call = waiting(0, 0);
    call.on_message(NodeId::new(0), Message::Confirmed, at(100));
    assert_eq!((call.due(), call.is_told()), (at(102), true));
    turn(&mut call, 1, 101);
    assert!(call.due() <= at(101));
}

#[test]
fn a_round_finds_out_about_all_that_arrived_before_it() {
    let mut call = waiting(0, 0);
    turn(&mut call, 0, 100);
    call.on_message(NodeId::new(1), Message::Next, at(100));
    call.ask(at(101));
    assert!(!call.is_told());
    turn(&mut call, 1, 101);
    assert_eq!(
        call.due(),
        at(121),
        "the one of before does not make it a quorum"
    );
}

#[test]
fn found_first_by_a_quorum_it_asks_by_command_once() {
    let asks_by_command = |call: &QueuedCall| call.request(CLOCK, at(100)).by_command;
    let mut call = waiting(0, 0);
    turn(&mut call, 0, 100);
    call.on_message(NodeId::new(1), Message::Confirmed, at(100));
    call.on_message(NodeId::new(2), Message::Next, at(100));
    assert!(!asks_by_command(&call), "one node");
    turn(&mut call, 2, 100);
    assert!(asks_by_command(&call));
    // Another call was granted meanwhile: by the script, it gets to know what it waits for.
    call.ask(at(100));
    let mut round = QueueRound::new(call.ticket, latest_ticket(CLOCK)).by_command(true);
    round.on_refusals(nodes(&[1, 2]));
    let aftermath = call.lost(nodes(&[0]), &round, Timestamp::NEVER, at(100));
    assert_eq!(
        aftermath,
        Aftermath::Waits {
            undo: nodes(&[0]),
            store: NodeSet::EMPTY
        }
    );
    assert!(call.due() <= at(100) && !asks_by_command(&call));
}

#[test]
fn by_command_asks_neither_a_call_without_a_ticket_nor_one_of_another_kind_nor_a_challenge() {
    let told = |mut call: QueuedCall| {
        turns(&mut call, 1500);
        call.request(CLOCK, at(1500)).by_command
    };
    assert!(told(waiting(0, 0)));
    assert!(!told(call()));
    for kind in [
        EntryKind::Fenced,
        EntryKind::Read,
        EntryKind::Write,
        EntryKind::Permit(3),
    ] {
        let mut call = QueuedCall::new(SETUP, Entry { kind, ..entry(1) }, at(0));
        let replied = reply(5, 0, 1);
        lose(&mut call, 0, &[], &[(0, replied), (1, replied)]);
        assert!(!told(call), "{kind:?}");
    }
    let mut challenger = waiting(0, 1);
    let replied = reply(5, 1, 0);
    lose(&mut challenger, 1200, &[], &[(0, replied), (1, replied)]);
    assert!(!told(challenger));
}
