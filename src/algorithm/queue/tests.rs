//! Each clause of the contract, from the replies and messages of nodes.

use super::super::kind::EntryKind;
use super::*;

mod slots;
mod told;

const PLACE_LEASE: Duration = Duration::from_secs(1);
const SETUP: Setup = Setup { nodes: 3, place_lease: PLACE_LEASE };
/// What the client's clock shows.
const CLOCK: u64 = 1_700_000_000_000_000;

fn at(millis: u64) -> Timestamp {
    Timestamp::ORIGIN.after(Duration::from_millis(millis))
}

fn nodes(indices: &[usize]) -> NodeSet {
    indices.iter().copied().map(NodeId::new).collect()
}

fn entry(number: u64) -> Entry {
    Entry { client: 0xab, kind: EntryKind::Mutex, number }
}

fn call() -> QueuedCall {
    QueuedCall::new(SETUP, entry(1), at(0))
}

/// The reply of a node that has the call behind so many others, on a lock with this holder: 0 is free.
fn reply(ticket: u64, rank: u32, holder: u8) -> QueueReply {
    let head = if rank > 0 { entry(9) } else { entry(1) };
    QueueReply {
        storage: Storage::Before,
        ticket,
        rank,
        held: Some(Duration::from_millis(if holder == 0 { 0 } else { 500 })),
        holder: (holder > 0).then(|| HolderTag::exact(&[holder])),
        is_other_library: false,
        slots: Slots::default(),
        head: Some(head.member()),
    }
}

/// A round that begins then, ends at once, and is lost: these nodes granted, and those replied.
fn lose(call: &mut QueuedCall, now: u64, granted: &[usize], replies: &[(usize, QueueReply)]) -> Aftermath {
    call.ask(at(now));
    let mut round = QueueRound::new(call.ticket, latest_ticket(CLOCK));
    replies.iter().for_each(|&(node, reply)| round.on_refused(NodeId::new(node), reply));
    call.lost(nodes(granted), &round, Timestamp::NEVER, at(now))
}

/// A call with ticket 5 that was refused then, with so many in front, by two nodes whose lock has a holder.
fn waiting(now: u64, rank: u32) -> QueuedCall {
    let mut call = call();
    let replied = reply(5, rank, 1);
    lose(&mut call, now, &[], &[(0, replied), (1, replied)]);
    call
}

fn turn(call: &mut QueuedCall, node: usize, now: u64) {
    call.on_message(NodeId::new(node), Message::Turn(None), at(now));
}

#[test]
fn the_ticket_is_the_greatest_reply_of_the_first_quorum_for_good() {
    let mut call = call();
    let asked = call.request(CLOCK, at(0));
    assert_eq!((asked.entry, asked.ticket), (Some(entry(1)), TicketRequest::Proposed(CLOCK)));
    assert!(!asked.stores_only && asked.challenged.is_none());
    lose(&mut call, 0, &[], &[(0, reply(5, 1, 1)), (1, reply(9, 1, 1)), (2, reply(7, 1, 1))]);
    assert_eq!(call.ticket, Some(9));
    assert_eq!(call.request(CLOCK, at(0)).ticket, TicketRequest::Fixed(9));
    lose(&mut call, 10, &[], &[(0, reply(20, 1, 1)), (1, reply(30, 1, 1)), (2, reply(4, 1, 1))]);
    assert_eq!(call.ticket, Some(9));
}

#[test]
fn a_node_that_granted_counts_among_the_quorum() {
    let mut call = call();
    lose(&mut call, 0, &[2], &[(0, reply(5, 0, 1))]);
    assert_eq!(call.ticket, Some(5));
}

#[test]
fn with_fewer_replies_than_a_quorum_a_call_leaves_and_begins_again() {
    let mut call = call();
    assert_eq!(lose(&mut call, 0, &[], &[(0, reply(5, 0, 1))]), Aftermath::BeginsAgain);
    assert_eq!((call.ticket, call.due()), (None, at(10)));
    assert_eq!(Aftermath::BeginsAgain.store(), NodeSet::EMPTY);
    assert_eq!(call.request(CLOCK, at(0)).ticket, TicketRequest::Proposed(CLOCK));
    // The next round may bring it.
    lose(&mut call, 20, &[], &[(0, reply(5, 0, 1)), (1, reply(8, 0, 1))]);
    assert_eq!(call.ticket, Some(8));
}

#[test]
fn a_quorum_that_granted_in_vain_brings_no_ticket_and_is_asked_again_soon() {
    let mut call = call();
    assert_eq!(lose(&mut call, 50, &[0, 1, 2], &[]), Aftermath::BeginsAgain);
    assert_eq!((call.ticket, call.due()), (None, at(60)));
    // Its own undo tells no call that it is first.
    let mut call = waiting(100, 0);
    lose(&mut call, 200, &[0, 1], &[(2, reply(5, 0, 1))]);
    assert_eq!(call.due(), at(210));
}

#[test]
fn a_call_with_a_ticket_keeps_it_where_too_few_reply_and_asks_again_soon() {
    let mut call = waiting(0, 1);
    let aftermath = lose(&mut call, 100, &[], &[(0, reply(5, 1, 1))]);
    assert_eq!((aftermath, call.leaves()), (Aftermath::StepsAside, nodes(&[0])), "where it is heard, others may pass");
    assert_eq!((call.ticket, call.due()), (Some(5), at(110)));
    call.ask(at(110));
    assert_eq!((call.request(CLOCK, at(110)).ticket, call.leaves()), (TicketRequest::Fixed(5), NodeSet::EMPTY));
}

#[test]
fn a_round_without_a_ticket_waits_for_a_quorum_while_one_may_reply() {
    for (has_ticket, answered, undecided, lacks) in [
        (false, 1, 1, true),
        (false, 0, 2, true),
        (false, 0, 1, false),
        (false, 1, 0, false),
        (false, 2, 1, false),
        (true, 1, 1, false),
    ] {
        let found = QueuedCall::lacks_ticket(has_ticket, &SETUP, answered, undecided);
        assert_eq!(found, lacks, "{has_ticket} {answered} {undecided}");
    }
}

#[test]
fn nodes_without_a_queue_count_as_answers_and_are_neither_undone_nor_stored_at() {
    let mut call = call();
    call.ask(at(0));
    let mut round = QueueRound::new(None, latest_ticket(CLOCK));
    round.on_refused(NodeId::new(0), reply(5, 0, 1));
    round.on_refusals(nodes(&[0, 1, 2]));
    assert_eq!((round.without_queue(), round.unstored()), (nodes(&[1, 2]), nodes(&[1, 2])));
    let aftermath = call.lost(NodeSet::EMPTY, &round, Timestamp::NEVER, at(0));
    assert_eq!(aftermath, Aftermath::Waits { undo: NodeSet::EMPTY, store: NodeSet::EMPTY });
    assert_eq!((call.ticket, call.due()), (Some(5), at(1000)), "it is not repeated soon");
}

#[test]
fn a_lost_round_is_undone_where_a_node_granted_or_was_silent_and_stored_where_the_ticket_differs() {
    let (unstored, denied) = (Storage::NoMemory, Storage::Denied);
    let with = |storage, ticket| QueueReply { storage, ..reply(ticket, 1, 1) };
    for (granted, replies, undo, store) in [
        (&[][..], vec![(0, with(Storage::Now, 5)), (1, with(Storage::Before, 5))], &[2][..], &[][..]),
        (
            &[],
            vec![(0, with(Storage::Now, 5)), (1, with(Storage::Now, 3)), (2, with(Storage::Before, 4))],
            &[],
            &[1, 2],
        ),
        (&[2], vec![(0, with(Storage::Now, 5)), (1, with(Storage::Now, 4))], &[2], &[1]),
        (&[1], vec![(0, with(Storage::Now, 5))], &[1, 2], &[]),
        (&[], vec![(0, with(unstored, 5)), (1, with(denied, 5)), (2, with(Storage::Now, 5))], &[], &[0, 1]),
    ] {
        let aftermath = lose(&mut call(), 0, granted, &replies);
        assert_eq!(aftermath, Aftermath::Waits { undo: nodes(undo), store: nodes(store) }, "{granted:?} {replies:?}");
        assert_eq!(aftermath.store(), nodes(store));
    }
}

#[test]
fn a_ticket_that_neither_the_clock_nor_another_node_explains_is_not_believed() {
    let (lie, far) = (latest_ticket(CLOCK) + 1, CLOCK + 365 * 86_400_000_000);
    for (tickets, believed) in [
        (&[CLOCK, CLOCK + 5][..], CLOCK + 5),
        (&[CLOCK, lie - 1], lie - 1),
        (&[CLOCK, far], CLOCK),
        (&[far, CLOCK, u64::MAX], CLOCK),
        // The client's clock is wrong.
        (&[far, far + 5], far + 5),
        (&[far, far + 5, u64::MAX], far + 5),
        (&[far], far),
        (&[], 0),
    ] {
        let mut round = QueueRound::new(None, latest_ticket(CLOCK));
        let replies = tickets.iter().map(|&ticket| reply(ticket, 1, 1)).enumerate();
        replies.for_each(|(node, reply)| round.on_refused(NodeId::new(node), reply));
        assert_eq!(round.ticket(), believed, "{tickets:?}");
        let exact = (0..tickets.len()).filter(|&node| tickets[node] == believed).map(NodeId::new).collect();
        assert_eq!(round.exact(), exact, "{tickets:?}");
    }
    let mut call = call();
    let aftermath = lose(&mut call, 0, &[], &[(0, reply(CLOCK, 1, 1)), (1, reply(u64::MAX, 1, 1))]);
    assert_eq!((call.ticket, aftermath.store()), (Some(CLOCK), nodes(&[1])));
}

#[test]
fn the_next_one_asks_in_thirty_milliseconds_unless_it_is_told() {
    let mut call = waiting(0, 1);
    call.on_message(NodeId::new(0), Message::Next, at(100));
    call.on_message(NodeId::new(1), Message::Next, at(120));
    assert_eq!((call.due(), call.is_told()), (at(130), true), "from the first message on");
    turn(&mut call, 1, 121);
    assert_eq!(call.due(), at(123));
}

#[test]
fn one_entry_in_front_of_a_free_lock_makes_it_the_next_one() {
    for (rank, holder, is_next) in [(1, 0, true), (1, 1, false), (2, 0, false), (0, 0, false)] {
        let mut call = call();
        lose(&mut call, 100, &[], &[(0, reply(5, rank, holder)), (1, reply(5, 3, 1))]);
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
    lose(&mut call, 100, &[], &[(0, reply(5, 7, 1)), (1, reply(5, 4, 1))]);
    assert_eq!((call.due(), call.first_rank()), (at(1104), Some(4)));
    lose(&mut call, 200, &[], &[(0, reply(5, 2, 1)), (1, reply(5, 2, 1))]);
    assert_eq!((call.due(), call.first_rank()), (at(1202), Some(4)), "how many were in front when it came");
}

#[test]
fn the_first_one_and_one_behind_the_holder_s_entry_ask_when_the_holder_s_time_ends_as_well() {
    for (rank, free_at, due) in
        [(0, 600, 600), (1, 600, 600), (2, 600, 1102), (0, 5000, 1100), (0, 100, 1100), (0, 50, 1100)]
    {
        let mut call = call();
        call.ask(at(100));
        let mut round = QueueRound::new(None, latest_ticket(CLOCK));
        [0, 1].into_iter().for_each(|node| round.on_refused(NodeId::new(node), reply(5, rank, 1)));
        call.lost(NodeSet::EMPTY, &round, at(free_at), at(100));
        assert_eq!(call.due(), at(due), "{rank} {free_at}");
    }
}

#[test]
fn it_asks_while_nodes_keep_the_queue_however_long_the_place_lease_and_the_rank() {
    let setup = Setup { place_lease: Duration::from_secs(3600), ..SETUP };
    let mut call = QueuedCall::new(setup, entry(1), at(0));
    let replied = reply(5, u32::MAX, 1);
    lose(&mut call, 0, &[], &[(0, replied), (1, replied)]);
    assert_eq!(call.due(), at(30_000));
}

/// The holder that the call's rounds see, each half a second later: which of them challenge.
fn challenges(holders: &[u8]) -> Vec<bool> {
    let mut call = call();
    let times = (0..).map(|round| round * 500);
    let asked = times.zip(holders).map(|(now, &holder)| {
        let challenged = call.request(CLOCK, at(now)).challenged;
        assert!(challenged.is_none_or(|head| head == entry(9).member()));
        lose(&mut call, now, &[], &[(0, reply(5, 1, holder)), (1, reply(5, 1, holder))]);
        challenged.is_some()
    });
    asked.collect()
}

#[test]
fn a_head_is_challenged_after_the_place_lease_if_the_lock_was_free_or_changed_hands() {
    assert_eq!(challenges(&[1, 1, 1, 1, 1, 1]), [false; 6], "a long hold is no fault of the first one");
    assert_eq!(challenges(&[0, 0, 0]), [false, false, true]);
    assert_eq!(challenges(&[1, 2, 2, 2]), [false, false, true, true]);
    assert_eq!(challenges(&[1, 1, 1, 0, 1]), [false, false, false, false, true], "free for a moment");
    assert_eq!(challenges(&[1, 1, 1, 2, 2]), [false, false, false, false, true]);
}

#[test]
fn a_new_head_has_the_place_lease_anew_and_the_call_itself_is_none() {
    let head = |number: u64| QueueReply { head: Some(entry(number).member()), ..reply(5, 1, 0) };
    let mut call = call();
    for (now, number, challenged) in
        [(0, 9, None), (900, 8, None), (1800, 8, None), (1900, 8, Some(8)), (3000, 1, Some(8))]
    {
        assert_eq!(call.request(CLOCK, at(now)).challenged, challenged.map(|number| entry(number).member()), "{now}");
        lose(&mut call, now, &[], &[(0, head(number)), (1, head(number))]);
    }
    assert_eq!(call.request(CLOCK, at(9000)).challenged, None, "it is the first one itself");
}

#[test]
fn heads_are_watched_node_by_node() {
    let head = |number: u64| QueueReply { head: Some(entry(number).member()), ..reply(5, 1, 0) };
    let mut call = call();
    lose(&mut call, 0, &[], &[(0, head(8)), (1, head(9))]);
    // One node has another head now.
    lose(&mut call, 600, &[2], &[(0, head(7)), (1, head(9))]);
    let challenged = |call: &QueuedCall, now| call.request(CLOCK, at(now)).challenged;
    assert_eq!(challenged(&call, 999), None);
    assert_eq!(challenged(&call, 1000), Some(entry(9).member()));
    lose(&mut call, 1000, &[], &[(0, head(7)), (1, head(7))]);
    assert_eq!([1599, 1600].map(|now| challenged(&call, now)), [None, Some(entry(7).member())]);
}

#[test]
fn what_a_node_has_shown_is_forgotten_when_it_refuses_no_more() {
    let mut call = call();
    let free = reply(5, 1, 0);
    lose(&mut call, 0, &[], &[(0, free), (1, free), (2, free)]);
    let other = QueueReply { head: Some(entry(8).member()), ..free };
    // The third node is down from here on.
    lose(&mut call, 900, &[], &[(0, other), (1, other)]);
    assert_eq!(call.request(CLOCK, at(1500)).challenged, None, "it was first there for 0.6 s");
    lose(&mut call, 1500, &[], &[(0, other), (1, other)]);
    assert_eq!(call.request(CLOCK, at(1900)).challenged, other.head);
}

#[test]
fn an_entry_that_is_gone_without_a_message_shows_that_messages_do_not_arrive() {
    let (kept, gone) = (reply(5, 1, 1), QueueReply { storage: Storage::Now, ..reply(5, 1, 1) });
    for (first, second, told, has_missed) in
        [(kept, gone, false, true), (kept, kept, false, false), (kept, gone, true, false)]
    {
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
fn after_a_challenge_it_asks_again_in_ten_milliseconds() {
    let mut call = call();
    let free = reply(5, 2, 0);
    lose(&mut call, 0, &[], &[(0, free), (1, free)]);
    assert_eq!(call.due(), at(1002));
    lose(&mut call, 1002, &[], &[(0, reply(5, 0, 0)), (1, reply(5, 0, 0))]);
    assert_eq!(call.due(), at(1012));
    assert_eq!(call.because(), AskedBecause { told: 0, unasked: 0, challenges: 1 });
    lose(&mut call, 1012, &[], &[(0, reply(5, 0, 1)), (1, reply(5, 0, 1))]);
    assert_eq!(call.due(), at(2012), "the next round is no challenge");
}

#[test]
fn rounds_are_counted_by_why_they_began() {
    let mut call = waiting(0, 1);
    turn(&mut call, 0, 100);
    lose(&mut call, 102, &[], &[(0, reply(5, 1, 1)), (1, reply(5, 1, 1))]);
    call.on_message(NodeId::new(0), Message::Next, at(110));
    lose(&mut call, 140, &[], &[(0, reply(5, 1, 1)), (1, reply(5, 1, 1))]);
    lose(&mut call, 1141, &[], &[(0, reply(5, 1, 1)), (1, reply(5, 1, 1))]);
    assert_eq!(call.because(), AskedBecause { told: 2, unasked: 1, challenges: 0 });
    call.ask_on(at(1142));
    assert_eq!(call.because(), AskedBecause { told: 2, unasked: 1, challenges: 0 }, "it is the same round");
}

#[test]
fn a_lock_that_changes_hands_without_a_message_is_noticed() {
    let changes = |rank, begin: fn(&mut QueuedCall), holder, then: fn(&mut QueuedCall)| {
        let mut call = waiting(0, rank);
        begin(&mut call);
        lose(&mut call, 1001, &[], &[(0, reply(5, rank, holder)), (1, reply(5, rank, holder))]);
        let due = call.due();
        then(&mut call);
        call.ask(due);
        (call.has_missed(false), due == at(1011))
    };
    assert_eq!(changes(0, |_| {}, 2, |call| turn(call, 0, 1005)), (false, true), "the message was on its way");
    let changes = |rank, begin, holder| changes(rank, begin, holder, |_| {});
    assert_eq!((changes(0, |_| {}, 2), changes(1, |_| {}, 2)), ((true, true), (true, true)));
    assert_eq!(changes(2, |_| {}, 2), (false, false), "others were told");
    assert_eq!(changes(0, |_| {}, 1), (false, false), "the same holder");
    assert_eq!(changes(0, |_| {}, 0), (false, false), "that it is free may have been said a moment later");
    assert_eq!(changes(1, |call| turn(call, 0, 1000), 2), (false, false), "it was told");
    // A call that wins without a message has missed one, unless the holder's time had ended.
    let wins = |free_at, now| {
        let mut call = call();
        call.ask(at(0));
        let mut round = QueueRound::new(None, latest_ticket(CLOCK));
        [0, 1].into_iter().for_each(|node| round.on_refused(NodeId::new(node), reply(5, 0, 1)));
        call.lost(NodeSet::EMPTY, &round, at(free_at), at(0));
        assert!(!call.has_missed(true), "the first round has nothing to miss");
        call.ask(at(now));
        call.has_missed(true)
    };
    assert!(wins(500, 499) && !wins(500, 500));
}

#[test]
fn a_round_names_the_nodes_that_store_nothing_and_those_without_an_end() {
    let mut round = QueueRound::new(Some(5), latest_ticket(CLOCK));
    round.on_refused(NodeId::new(0), QueueReply { storage: Storage::Denied, ..reply(5, 0, 1) });
    round.on_refused(NodeId::new(2), QueueReply { held: None, ..reply(5, 0, 1) });
    assert_eq!((round.unstored(), round.endless(), round.nodes()), (nodes(&[0]), nodes(&[2]), nodes(&[0, 2])));
    assert_eq!((round.exact(), round.rank(), round.has_ticket()), (nodes(&[2]), Some(0), true));
}
