//! When a call that waits asks again.

use super::*;

#[test]
fn the_next_one_asks_in_thirty_milliseconds_unless_it_is_told() {
    let mut call = waiting(0, 1);
    call.on_message(NodeId::new(0), Message::Next, at(100));
    call.on_message(NodeId::new(1), Message::Next, at(120));
    assert_eq!(
        (call.due(), call.is_told()),
        (at(130), true),
        "from the first message on"
    );
    turn(&mut call, 1, 121);
    assert_eq!(call.due(), at(123));
}

#[test]
fn one_entry_in_front_of_a_free_lock_makes_it_the_next_one() {
    for (rank, holder, is_next) in [(1, 0, true), (1, 1, false), (2, 0, false), (0, 0, false)] {
        let mut call = call();
        refused(&mut call, 100, [(5, rank, holder), (5, 3, 1)]);
        assert_eq!(call.due() == at(130), is_next, "{rank} {holder}");
    }
}

#[test]
fn without_a_message_it_asks_once_in_the_place_lease_and_its_rank() {
    for rank in [0, 1, 250] {
        assert_eq!(waiting(100, rank).due(), at(1100 + u64::from(rank)));
    }
    // What counts is the node with the fewest in front.
    let mut call = call();
    refused(&mut call, 100, [(5, 7, 1), (5, 4, 1)]);
    assert_eq!((call.due(), call.first_rank()), (at(1104), Some(4)));
    refused(&mut call, 200, [(5, 2, 1), (5, 2, 1)]);
    assert_eq!(
        (call.due(), call.first_rank()),
        (at(1202), Some(4)),
        "how many were in front when it came"
    );
}

#[test]
fn the_first_one_and_one_behind_the_holder_s_entry_ask_when_the_holder_s_time_ends_as_well() {
    for (rank, free_at, due) in [
        (0, 600, 600),
        (1, 600, 600),
        (2, 600, 1102),
        (0, 5000, 1100),
        (0, 100, 1100),
        (0, 50, 1100),
    ] {
        let mut call = call();
        call.ask(at(100));
        let mut round = QueueRound::new(None, latest_ticket(CLOCK));
        [0, 1]
            .into_iter()
            .for_each(|node| round.on_refused(NodeId::new(node), reply(5, rank, 1)));
        call.lost(NodeSet::EMPTY, &round, at(free_at), at(100));
        assert_eq!(call.due(), at(due), "{rank} {free_at}");
    }
}

#[test]
fn it_asks_while_nodes_keep_the_queue_however_long_the_place_lease_and_the_rank() {
    let setup = Setup {
        place_lease: Duration::from_secs(3600),
        ..SETUP
    };
    let mut call = QueuedCall::new(setup, entry(1), at(0));
    let replied = reply(5, u32::MAX, 1);
    lose(&mut call, 0, &[], &[(0, replied), (1, replied)]);
    assert_eq!(call.due(), at(30_000));
}
