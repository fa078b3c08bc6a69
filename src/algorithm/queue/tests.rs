//! Each clause of the contract, from the replies and messages of nodes: here which ticket a call
//! has, and what a lost round leaves to do.

use super::super::kind::EntryKind;
use super::*;

mod due;
mod heads;
mod missed;
mod slots;
mod told;

const PLACE_LEASE: Duration = Duration::from_secs(1);
const SETUP: Setup = Setup {
    nodes: 3,
    place_lease: PLACE_LEASE,
};
/// What the client's clock shows.
const CLOCK: u64 = 1_700_000_000_000_000;

fn at(millis: u64) -> Timestamp {
    Timestamp::ORIGIN.after(Duration::from_millis(millis))
}

fn nodes(indices: &[usize]) -> NodeSet {
    indices.iter().copied().map(NodeId::new).collect()
}

fn entry(number: u64) -> Entry {
    Entry {
        client: 0xab,
        kind: EntryKind::Mutex,
        number,
    }
}

fn call() -> QueuedCall {
    QueuedCall::new(SETUP, entry(1), at(0))
}

/// The reply of a node that has the call behind so many others, on a lock with this holder: 0 is
/// free.
fn reply(ticket: u64, rank: u32, holder: u8) -> QueueReply {
    let head = if rank > 0 { entry(9) } else { entry(1) };
    QueueReply {
        storage: Storage::Before,
        ticket,
        rank,
        held: Some(Duration::from_millis(if holder == 0 { 0 } else { 500 })),
        holder: (holder > 0).then(|| HolderTag::of(&[holder])),
        is_other_library: false,
        slots: Slots::default(),
        head: Some(head.member()),
    }
}

/// A round that begins then, ends at once, and is lost: these nodes granted, and those replied.
fn lose(
    call: &mut QueuedCall,
    now: u64,
    granted: &[usize],
    replies: &[(usize, QueueReply)],
) -> Aftermath {
    call.ask(at(now));
    let mut round = QueueRound::new(call.ticket, latest_ticket(CLOCK));
    replies
        .iter()
        .for_each(|&(node, reply)| round.on_refused(NodeId::new(node), reply));
    call.lost(nodes(granted), &round, Timestamp::NEVER, at(now))
}

/// The same where no node granted, and the first ones replied that they have the call at this
/// ticket, behind so many others, on a lock with this holder.
fn refused<const N: usize>(
    call: &mut QueuedCall,
    now: u64,
    replies: [(u64, u32, u8); N],
) -> Aftermath {
    let reply = |(ticket, rank, holder)| reply(ticket, rank, holder);
    let replies: Vec<_> = replies.map(reply).into_iter().enumerate().collect();
    lose(call, now, &[], &replies)
}

/// A call with ticket 5 that was refused then, with so many in front, by two nodes whose lock has a
/// holder.
fn waiting(now: u64, rank: u32) -> QueuedCall {
    let mut call = call();
    refused(&mut call, now, [(5, rank, 1); 2]);
    call
}

/// Why rounds began: by how many messages, unasked, and as challenges.
fn because(call: &QueuedCall) -> [u32; 3] {
    let because = call.because();
    [because.told, because.unasked, because.challenges]
}

/// A quorum reports that it is the call's turn.
fn turns(call: &mut QueuedCall, now: u64) {
    for node in [0, 1] {
        turn(call, node, now);
    }
}

fn turn(call: &mut QueuedCall, node: usize, now: u64) {
    call.on_message(NodeId::new(node), Message::Turn(None), at(now));
}

#[test]
fn the_ticket_is_the_greatest_reply_of_the_first_quorum_for_good() {
    let mut call = call();
    let asked = call.request(CLOCK, at(0));
    assert_eq!(
        (asked.entry, asked.ticket),
        (Some(entry(1)), TicketRequest::Proposed(CLOCK))
    );
    assert!(!asked.stores_only && asked.challenged.is_none());
    refused(&mut call, 0, [(5, 1, 1), (9, 1, 1), (7, 1, 1)]);
    assert_eq!(call.ticket, Some(9));
    assert_eq!(call.request(CLOCK, at(0)).ticket, TicketRequest::Fixed(9));
    refused(&mut call, 10, [(20, 1, 1), (30, 1, 1), (4, 1, 1)]);
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
    assert_eq!(refused(&mut call, 0, [(5, 0, 1)]), Aftermath::BeginsAgain);
    assert_eq!((call.ticket, call.due()), (None, at(10)));
    assert_eq!(Aftermath::BeginsAgain.store(), NodeSet::EMPTY);
    assert_eq!(
        call.request(CLOCK, at(0)).ticket,
        TicketRequest::Proposed(CLOCK)
    );
    // The next round may bring it.
    refused(&mut call, 20, [(5, 0, 1), (8, 0, 1)]);
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
    let aftermath = refused(&mut call, 100, [(5, 1, 1)]);
    assert_eq!(
        (aftermath, call.leaves()),
        (Aftermath::StepsAside, nodes(&[0])),
        "where it is heard, others may pass"
    );
    assert_eq!((call.ticket, call.due()), (Some(5), at(110)));
    call.ask(at(110));
    assert_eq!(
        (call.request(CLOCK, at(110)).ticket, call.leaves()),
        (TicketRequest::Fixed(5), NodeSet::EMPTY)
    );
}

#[test]
fn a_lost_round_waits_for_a_quorum_while_one_may_reply() {
    for (answered, undecided, lacks) in [
        (1, 1, true),
        (0, 2, true),
        (0, 1, false),
        (1, 0, false),
        (2, 1, false),
    ] {
        let found = QueuedCall::lacks_replies(SETUP.quorum(), answered, undecided);
        assert_eq!(found, lacks, "{answered} {undecided}");
    }
}

#[test]
fn nodes_without_a_queue_count_as_answers_and_are_neither_undone_nor_stored_at() {
    let mut call = call();
    call.ask(at(0));
    let mut round = QueueRound::new(None, latest_ticket(CLOCK));
    round.on_refused(NodeId::new(0), reply(5, 0, 1));
    round.on_refusals(nodes(&[0, 1, 2]));
    assert_eq!(
        (round.without_queue, round.unstored()),
        (nodes(&[1, 2]), nodes(&[1, 2]))
    );
    let aftermath = call.lost(NodeSet::EMPTY, &round, Timestamp::NEVER, at(0));
    assert_eq!(
        aftermath,
        Aftermath::Waits {
            undo: NodeSet::EMPTY,
            store: NodeSet::EMPTY
        }
    );
    assert_eq!(
        (call.ticket, call.due()),
        (Some(5), at(1000)),
        "it is not repeated soon"
    );
}

#[test]
fn a_lost_round_is_undone_where_a_node_granted_or_was_silent_and_stored_where_the_ticket_differs() {
    let unstored = Storage::NoMemory;
    let denied = Storage::Denied;
    let with = |storage, ticket| QueueReply {
        storage,
        ..reply(ticket, 1, 1)
    };
    for (granted, replies, undo, store) in [
        (
            &[][..],
            vec![(0, with(Storage::Now, 5)), (1, with(Storage::Before, 5))],
            &[2][..],
            &[][..],
        ),
        (
            &[],
            vec![
                (0, with(Storage::Now, 5)),
                (1, with(Storage::Now, 3)),
                (2, with(Storage::Before, 4)),
            ],
            &[],
            &[1, 2],
        ),
        (
            &[2],
            vec![(0, with(Storage::Now, 5)), (1, with(Storage::Now, 4))],
            &[2],
            &[1],
        ),
        (&[1], vec![(0, with(Storage::Now, 5))], &[1, 2], &[]),
        (
            &[],
            vec![
                (0, with(unstored, 5)),
                (1, with(denied, 5)),
                (2, with(Storage::Now, 5)),
            ],
            &[],
            &[0, 1],
        ),
    ] {
        let aftermath = lose(&mut call(), 0, granted, &replies);
        assert_eq!(
            aftermath,
            Aftermath::Waits {
                undo: nodes(undo),
                store: nodes(store)
            },
            "{granted:?} {replies:?}"
        );
        assert_eq!(aftermath.store(), nodes(store));
    }
}

#[test]
fn a_ticket_that_neither_the_clock_nor_another_node_explains_is_not_believed() {
    let lie = latest_ticket(CLOCK) + 1;
    let far = CLOCK + 365 * 86_400_000_000;
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
        let replies = tickets
            .iter()
            .map(|&ticket| reply(ticket, 1, 1))
            .enumerate();
        replies.for_each(|(node, reply)| round.on_refused(NodeId::new(node), reply));
        assert_eq!(round.ticket(), believed, "{tickets:?}");
        let exact = (0..tickets.len())
            .filter(|&node| tickets[node] == believed)
            .map(NodeId::new)
            .collect();
        assert_eq!(round.exact(), exact, "{tickets:?}");
    }
    let mut call = call();
    let aftermath = refused(&mut call, 0, [(CLOCK, 1, 1), (u64::MAX, 1, 1)]);
    assert_eq!((call.ticket, aftermath.store()), (Some(CLOCK), nodes(&[1])));
}

#[test]
fn rounds_are_counted_by_why_they_began() {
    let mut call = waiting(0, 1);
    turn(&mut call, 0, 100);
    refused(&mut call, 102, [(5, 1, 1), (5, 1, 1)]);
    call.on_message(NodeId::new(0), Message::Next, at(110));
    refused(&mut call, 140, [(5, 1, 1), (5, 1, 1)]);
    refused(&mut call, 1141, [(5, 1, 1), (5, 1, 1)]);
    assert_eq!(because(&call), [2, 1, 0]);
    call.ask_on(at(1142));
    assert_eq!(because(&call), [2, 1, 0], "it is the same round");
}

#[test]
fn a_round_names_the_nodes_that_store_nothing_and_those_without_an_end() {
    let mut round = QueueRound::new(Some(5), latest_ticket(CLOCK));
    round.on_refused(
        NodeId::new(0),
        QueueReply {
            storage: Storage::Denied,
            ..reply(5, 0, 1)
        },
    );
    round.on_refused(
        NodeId::new(2),
        QueueReply {
            held: None,
            ..reply(5, 0, 1)
        },
    );
    assert_eq!(
        (round.unstored(), round.nodes()),
        (nodes(&[0]), nodes(&[0, 2]))
    );
    assert_eq!((round.exact(), round.rank()), (nodes(&[2]), Some(0)));
}

#[test]
fn only_the_first_one_waits_for_another_library_which_tells_nobody() {
    for (rank, is_other_library, waits) in [
        (0, true, true),
        (1, true, false),
        (0, false, false),
        (1, false, false),
    ] {
        let mut round = QueueRound::new(Some(5), latest_ticket(CLOCK));
        let replied = QueueReply {
            is_other_library,
            ..reply(5, rank, 1)
        };
        round.on_refused(NodeId::new(0), replied);
        assert_eq!(round.waits_for_other_library(), waits, "{rank}");
    }
}

#[test]
fn more_than_half_of_the_nodes_decide() {
    let quorum = |nodes| Setup { nodes, ..SETUP }.quorum();
    assert_eq!([1, 2, 3, 4, 5].map(quorum), [1, 2, 2, 3, 3]);
}

#[test]
fn a_ticket_is_two_days_ahead_of_the_clock_at_most() {
    assert_eq!(latest_ticket(7), 7 + 48 * 60 * 60 * 1_000_000);
    assert_eq!(latest_ticket(u64::MAX), u64::MAX);
}
