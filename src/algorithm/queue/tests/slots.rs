//! Which slot of a semaphore a call asks for, and when a set asks for all its keys again.

use super::*;

#[test]
fn most_of_the_turns_decide_which_slot_is_tried() {
    let mut call = call();
    let told = |call: &mut QueuedCall, node, slot| {
        call.on_message(NodeId::new(node), Message::Turn(Some(slot)), at(1))
    };
    assert_eq!(call.take_slot(), None);
    for (node, slot) in [(0, 3), (1, 2), (2, 2)] {
        told(&mut call, node, slot);
    }
    assert_eq!(
        (call.take_slot(), call.take_slot()),
        (Some(2), None),
        "once"
    );
    for order in [[(1, 2), (0, 3)], [(0, 3), (1, 2)]] {
        for (node, slot) in order {
            told(&mut call, node, slot);
        }
        assert_eq!(
            call.take_slot(),
            Some(3),
            "two slots are named once each: the first node decides"
        );
    }
}

#[test]
fn another_slot_that_is_free_is_tried_soon() {
    for (letters, rank, due) in [
        ("tft", 0, 102),
        ("ttt", 0, 1100),
        ("tft", 1, 1101),
        ("fft", 1, 102),
    ] {
        let mut call = call();
        let slots = Slots::of(letters.as_bytes());
        let replied = QueueReply {
            slots,
            ..reply(5, rank, 1)
        };
        lose(&mut call, 100, &[], &[(0, replied), (1, replied)]);
        assert_eq!(call.due(), at(due), "{letters} {rank}");
    }
}

#[test]
fn a_call_that_is_refused_though_slots_are_free_asks_again_later_and_later() {
    let mut call = call();
    let replied = QueueReply {
        slots: Slots::of(b"fft"),
        ..reply(5, 1, 1)
    };
    for (now, due) in [(100, 102), (200, 204), (300, 308)] {
        lose(&mut call, now, &[], &[(0, replied), (1, replied)]);
        assert_eq!(call.due(), at(due));
    }
}

#[test]
fn the_slot_that_is_free_on_most_nodes_is_tried_next() {
    let round = |letters: &str| {
        let mut round = QueueRound::new(Some(5), latest_ticket(CLOCK));
        for (node, letters) in letters.split(' ').enumerate() {
            round.on_refused(
                NodeId::new(node),
                QueueReply {
                    slots: Slots::of(letters.as_bytes()),
                    ..reply(5, 0, 1)
                },
            );
        }
        round
    };
    for (letters, silent, start, slot) in [
        ("ttf ttf ftf", 0, 0, Some(2)),
        // No quorum.
        ("ftt tft ttf", 0, 0, None),
        // A silent node may have it free.
        ("ftt ttt", 1, 0, Some(0)),
        // Of equals, the first from the start on.
        ("ftf ftf", 0, 0, Some(0)),
        ("ftf ftf", 0, 1, Some(2)),
        // Free on no node.
        ("ttt ttt", 2, 0, None),
    ] {
        let found = round(letters).free_slot(&SETUP, silent, 3, start, |_| true);
        assert_eq!(found, slot, "{letters} {silent} {start}");
    }
    let found = round("ftf ftf").free_slot(&SETUP, 0, 3, 0, |slot| slot != 0);
    assert_eq!(found, Some(2));
    let mut behind = QueueRound::new(Some(5), latest_ticket(CLOCK));
    for node in [0, 1] {
        let replied = QueueReply {
            slots: Slots::of(b"ftt"),
            ..reply(5, 1, 1)
        };
        behind.on_refused(NodeId::new(node), replied);
    }
    let found = behind.free_slot(&SETUP, 0, 3, 0, |_| true);
    assert_eq!(found, None, "it is for the entry in front");
    let endless = round("ete ete tte").endless_slots(&SETUP, 3);
    assert_eq!(endless, [(0, nodes(&[0, 1])), (2, nodes(&[0, 1, 2]))]);
}

#[test]
fn sets_that_keep_each_other_from_their_keys_ask_again_at_different_times() {
    let due = |attempt_time, random| {
        let mut call = waiting(0, 0);
        call.ask(at(100));
        call.collided(Duration::from_millis(attempt_time), random);
        turns(&mut call, 101);
        call.due()
    };
    assert_eq!(
        [0, 4_000_000, 9_999_999].map(|random| due(1, random).since(at(100)).as_millis()),
        [1, 4, 9]
    );
    assert_eq!(due(40, 79_000_000), at(179), "an attempt lasts longer");
    let mut call = waiting(0, 0);
    call.ask(at(100));
    call.collided(Duration::ZERO, 4_000_000);
    call.ask_on(at(200));
    turns(&mut call, 201);
    assert_eq!(call.due(), at(204), "from the last question of a round on");
    let mut call = waiting(0, 0);
    call.collided(Duration::ZERO, 9_000_000);
    call.ask(at(100));
    turns(&mut call, 101);
    assert_eq!(call.due(), at(101), "a round ends the pause");
}
