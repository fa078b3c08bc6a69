//! What shows that messages do not arrive.

use super::*;

#[test]
fn an_entry_that_is_gone_without_a_message_shows_that_messages_do_not_arrive() {
    let kept = reply(5, 1, 1);
    let gone = QueueReply {
        storage: Storage::Now,
        ..reply(5, 1, 1)
    };
    for (first, second, told, has_missed) in [
        (kept, gone, false, true),
        (kept, kept, false, false),
        (kept, gone, true, false),
    ] {
        let mut call = call();
        lose(&mut call, 0, &[], &[(0, first), (1, first)]);
        if told {
            turn(&mut call, 0, 1000);
        }
        lose(&mut call, 1001, &[], &[(0, second), (1, second)]);
        assert!(!call.has_missed(false), "the message may be on its way");
        call.ask(at(1011));
        assert_eq!(call.has_missed(false), has_missed, "{told}");
    }
}

#[test]
fn a_lock_that_changes_hands_without_a_message_is_noticed() {
    let changes = |rank, begin: fn(&mut QueuedCall), holder, then: fn(&mut QueuedCall)| {
        let mut call = waiting(0, rank);
        begin(&mut call);
        refused(&mut call, 1001, [(5, rank, holder), (5, rank, holder)]);
        let due = call.due();
        then(&mut call);
        call.ask(due);
        (call.has_missed(false), due == at(1011))
    };
    assert_eq!(
        changes(0, |_| {}, 2, |call| turn(call, 0, 1005)),
        (false, true),
        "the message was on its way"
    );
    let changes = |rank, begin, holder| changes(rank, begin, holder, |_| {});
    assert_eq!(
        (changes(0, |_| {}, 2), changes(1, |_| {}, 2)),
        ((true, true), (true, true))
    );
    assert_eq!(changes(2, |_| {}, 2), (false, false), "others were told");
    assert_eq!(changes(0, |_| {}, 1), (false, false), "the same holder");
    assert_eq!(
        changes(0, |_| {}, 0),
        (false, false),
        "that it is free may have been said a moment later"
    );
    assert_eq!(
        changes(1, |call| turn(call, 0, 1000), 2),
        (false, false),
        "it was told"
    );
    // A call that wins without a message has missed one, unless the holder's time had ended.
    let wins = |free_at, now| {
        let mut call = call();
        call.ask(at(0));
        let mut round = QueueRound::new(None, latest_ticket(CLOCK));
        [0, 1]
            .into_iter()
            .for_each(|node| round.on_refused(NodeId::new(node), reply(5, 0, 1)));
        call.lost(NodeSet::EMPTY, &round, at(free_at), at(0));
        assert!(
            !call.has_missed(true),
            "the first round has nothing to miss"
        );
        call.ask(at(now));
        call.has_missed(true)
    };
    assert!(wins(500, 499) && !wins(500, 500));
}
