//! Tests of the rounds in flight.

use super::*;
use crate::algorithm::kind::Kind;
use crate::algorithm::queue::{QueueRound, Slots, Storage};
use crate::algorithm::time::Timestamp;
use crate::protocol::operation::Verb;

fn attempt(queue: Option<QueueRound>) -> Purpose {
    Purpose::Acquire(Attempt::new(queue))
}

fn rounds() -> (Rounds, Ticket) {
    rounds_of(3)
}

fn rounds_of(nodes: usize) -> (Rounds, Ticket) {
    let mut rounds = Rounds::new(nodes, None);
    let ticket = rounds.open(attempt(None));
    (rounds, ticket)
}

impl Rounds {
    /// How many rounds there are references to.
    pub(crate) fn in_flight(&self) -> usize {
        self.slots.len() - self.unused.len()
    }
}

#[test]
fn a_straggler_finds_its_round_and_then_nobody_does() {
    let (mut rounds, ticket) = rounds();
    rounds.refer(ticket, NodeSet::first(3));
    rounds.vote(ticket, NodeId::new(0), &Vote::Granted);
    assert!(!rounds.is_decided(ticket));
    rounds.vote(ticket, NodeId::new(1), &Vote::Granted);
    assert!(rounds.is_decided(ticket));
    for _ in 0..3 {
        rounds.unrefer(ticket);
    }
    rounds.vote(ticket, NodeId::new(2), &Vote::Refused);
    assert_eq!(rounds.round(ticket).unwrap().tally.refused().len(), 1);
    rounds.unrefer(ticket);
    assert!(rounds.round(ticket).is_none());
    assert_eq!(rounds.in_flight(), 0);
}

/// The fence of a node that may have forgotten it is no reason not to raise the others.
#[test]
fn the_fence_of_a_grant_that_is_withdrawn_does_not_count() {
    let (mut rounds, ticket) = rounds();
    for (index, fence) in [(0, 9), (1, 9), (2, 5)] {
        rounds.record_fence(ticket, NodeId::new(index), FencingToken::saturating(fence));
        rounds.vote(ticket, NodeId::new(index), &Vote::Granted);
        if index == 0 {
            rounds.withdraw(NodeId::new(0), Fault::new(Phase::Reply, Cause::Quarantined));
        }
    }
    let agreement = rounds.conclude(ticket).agreement.unwrap();
    assert_eq!(agreement.settled(), NodeSet::from_iter([NodeId::new(1)]));
}

#[test]
fn a_grant_that_is_withdrawn_is_a_vote_that_a_fault_has_cost_and_may_decide() {
    let (mut rounds, ticket) = rounds();
    let node = NodeId::new(0);
    rounds.vote(ticket, node, &Vote::Granted);
    rounds.vote(ticket, NodeId::new(1), &Vote::Refused);
    assert!(!rounds.is_decided(ticket), "one of three may grant");
    rounds.withdraw(node, Fault::new(Phase::Reply, Cause::Quarantined));
    assert!(rounds.is_decided(ticket), "no quorum can grant");
    let counted = rounds.fault_counts(node).iter().collect::<Vec<_>>();
    assert_eq!(counted, [(Phase::Reply, Cause::Quarantined, 1)]);
}

/// It is counted when the node has been judged, as if it came then.
#[test]
fn a_grant_that_is_taken_back_counts_with_its_fence_when_it_is_counted_again() {
    let node = NodeId::new(0);
    let fence = FencingToken::saturating(9);
    let (mut rounds, ticket) = rounds();
    let grant = |rounds: &mut Rounds, node| {
        rounds.record_fence(ticket, node, fence);
        rounds.vote(ticket, node, &Vote::Granted);
    };
    grant(&mut rounds, node);
    assert_eq!(rounds.take_back(node), [(ticket, Some(fence))]);
    assert_eq!(rounds.take_back(node), [], "once");
    grant(&mut rounds, NodeId::new(1));
    assert!(!rounds.is_decided(ticket), "one of three");
    grant(&mut rounds, node);
    assert!(rounds.is_decided(ticket));
    assert_eq!(rounds.take_back(node), [], "it has decided");
    assert_eq!(
        rounds.conclude(ticket).agreement.unwrap().settled().len(),
        2
    );
    assert_eq!(
        rounds.in_flight(),
        1,
        "the vote that was taken back refers to it"
    );
    rounds.unrefer(ticket);
    assert_eq!((rounds.in_flight(), rounds.take_back(node)), (0, vec![]));
}

/// The owner of an attempt that is lost waits for the other nodes only where that can save an undo.
#[test]
fn refusals_are_awaited_where_no_node_has_granted() {
    for (nodes, votes, is_awaited) in [
        (3, "rr", true),
        (3, "rrr", false),
        (5, "rrr", true),
        (5, "grrr", false),
        (3, "r", false),
        (3, "gg", false),
    ] {
        let (mut rounds, ticket) = rounds_of(nodes);
        for (index, letter) in votes.chars().enumerate() {
            let vote = if letter == 'g' {
                Vote::Granted
            } else {
                Vote::Refused
            };
            rounds.vote(ticket, NodeId::new(index), &vote);
        }
        let was_decided = rounds.is_decided(ticket);
        assert_eq!(
            rounds.await_stragglers(ticket),
            is_awaited,
            "{votes} of {nodes}"
        );
        assert_eq!(
            rounds.is_decided(ticket),
            was_decided && !is_awaited,
            "{votes} of {nodes}"
        );
        for index in votes.len()..nodes {
            rounds.vote(ticket, NodeId::new(index), &Vote::Refused);
        }
        assert!(rounds.is_decided(ticket), "all have voted");
    }
}

/// Otherwise a node that does not know the script any more would be asked again behind the release.
#[test]
fn nothing_is_asked_again_once_the_owner_has_ceased_to_await_stragglers() {
    let (mut rounds, ticket) = rounds_of(3);
    for index in 0..2 {
        rounds.vote(ticket, NodeId::new(index), &Vote::Refused);
    }
    // For the node that has not answered.
    rounds.refer(ticket, NodeSet::from_iter([NodeId::new(2)]));
    assert!(rounds.await_stragglers(ticket) && !rounds.is_decided(ticket));
    rounds.conclude(ticket);
    assert!(rounds.round(ticket).is_some() && rounds.is_decided(ticket));
}

#[test]
fn a_stale_ticket_does_not_vote_in_the_next_round_of_its_slot() {
    let (mut rounds, stale) = rounds();
    rounds.unrefer(stale);
    let release = Purpose::Release {
        conditions: ReleaseConditions::default(),
        context: None,
    };
    let operation = Operation {
        verb: Verb::Release(None),
        kind: Kind::Plain,
        retention_millis: 1,
    };
    let fresh = rounds.open_command(
        release,
        &LockKey::One("other".into()),
        &OwnerToken::from_entropy([1; 20]),
        operation,
    );
    assert_eq!(fresh.slot, stale.slot);
    for index in 0..3 {
        rounds.vote(stale, NodeId::new(index), &Vote::Granted);
    }
    rounds.unrefer(stale);
    assert!(rounds.is_decided(stale));
    assert!(!rounds.is_decided(fresh));
    assert_eq!(
        rounds.command(fresh).unwrap().key,
        &LockKey::One("other".into())
    );
    assert_eq!(rounds.round(fresh).unwrap().tally.undecided().len(), 3);
}

#[test]
fn a_lock_is_free_when_the_keys_of_a_quorum_have_ended_as_far_as_nodes_have_said() {
    let at = |millis| Timestamp::ORIGIN.after(std::time::Duration::from_millis(millis));
    for (nodes, faults, ends, free_at) in [
        (3, 1, &[500][..], at(500)),
        (3, 0, &[700, 500], at(700)),
        (3, 0, &[], Timestamp::NEVER),
        (5, 0, &[900, 500, 800, 600, 700], at(700)),
        (5, 1, &[900, 500, 800, 600], at(800)),
    ] {
        let (mut rounds, ticket) = rounds_of(nodes);
        for index in 0..faults {
            let fault = Fault::new(Phase::Connect, Cause::Refused);
            rounds.vote(ticket, NodeId::new(index), &Vote::Fault(fault));
        }
        for (index, &end) in ends.iter().enumerate() {
            let node = NodeId::new(faults + index);
            rounds.vote(ticket, node, &Vote::Refused);
            rounds.record_refusal(ticket, node, Refusal::Until(at(end)));
        }
        assert_eq!(
            rounds.conclude(ticket).free_at(),
            free_at,
            "{faults} {ends:?}"
        );
    }
}

#[test]
fn faults_are_kept_by_node() {
    let (mut rounds, ticket) = rounds();
    let refused = Fault::new(Phase::Connect, Cause::Refused);
    rounds.vote(ticket, NodeId::new(2), &Vote::Fault(refused));
    assert!(!rounds.is_decided(ticket));
    rounds.vote(
        ticket,
        NodeId::new(0),
        &Vote::Fault(Fault::new(Phase::Reply, Cause::Closed)),
    );
    assert!(rounds.is_decided(ticket));
    let count = rounds.conclude(ticket);
    assert_eq!(
        count.faults,
        [
            (NodeId::new(0), Fault::new(Phase::Reply, Cause::Closed)),
            (NodeId::new(2), refused)
        ]
    );
    let counted = |index| rounds.fault_counts(NodeId::new(index)).iter().count();
    assert_eq!([0, 1, 2].map(counted), [1, 0, 1]);
}

fn queue_reply(ticket: u64) -> QueueReply {
    QueueReply {
        storage: Storage::Before,
        ticket,
        rank: 1,
        held: None,
        holder: None,
        is_other_library: false,
        slots: Slots::default(),
        head: None,
    }
}

/// A node refuses in turn: its reply, then its vote.
fn refuse_in_turn(rounds: &mut Rounds, ticket: Ticket, node: usize) {
    rounds.record_queue_reply(ticket, NodeId::new(node), &queue_reply(5));
    rounds.vote(ticket, NodeId::new(node), &Vote::Refused);
}

/// The call would have to begin again, or to repeat the round.
#[test]
fn a_lost_attempt_in_turn_waits_for_a_quorum_of_replies() {
    let fault = Vote::Fault(Fault::new(Phase::Connect, Cause::Refused));
    for (queue, is_decided) in [
        (None, true),
        (Some(QueueRound::new(None, u64::MAX)), false),
        (Some(QueueRound::new(Some(5), u64::MAX)), false),
    ] {
        let mut rounds = Rounds::new(3, None);
        let ticket = rounds.open(attempt(queue));
        rounds.vote(ticket, NodeId::new(0), &fault);
        refuse_in_turn(&mut rounds, ticket, 1);
        assert_eq!(rounds.is_decided(ticket), is_decided);
        refuse_in_turn(&mut rounds, ticket, 2);
        assert!(rounds.is_decided(ticket));
    }
    // Of four nodes, two are enough to refuse, and no quorum.
    for own in [None, Some(5)] {
        let mut rounds = Rounds::new(4, None);
        let ticket = rounds.open(attempt(Some(QueueRound::new(own, u64::MAX))));
        for (node, is_decided) in [(0, false), (1, false), (2, true)] {
            refuse_in_turn(&mut rounds, ticket, node);
            assert_eq!(rounds.is_decided(ticket), is_decided, "{own:?} {node}");
        }
    }
    // Where no quorum can reply, it waits for nothing.
    let mut rounds = Rounds::new(3, None);
    let ticket = rounds.open(attempt(Some(QueueRound::new(None, u64::MAX))));
    [0, 1]
        .into_iter()
        .for_each(|node| rounds.vote(ticket, NodeId::new(node), &fault));
    assert!(rounds.is_decided(ticket));
}

#[test]
fn what_a_node_replied_about_the_queue_is_taken_once_and_before_its_vote() {
    let (mut rounds, ticket) = rounds();
    rounds.record_queue_reply(ticket, NodeId::new(0), &queue_reply(4));
    rounds.vote(ticket, NodeId::new(0), &Vote::Refused);
    assert!(
        rounds.conclude(ticket).queue.is_none(),
        "it was not asked in turn"
    );
    let ticket = rounds.open(attempt(Some(QueueRound::new(None, u64::MAX))));
    let stale = Ticket {
        generation: ticket.generation + 1,
        ..ticket
    };
    rounds.record_queue_reply(stale, NodeId::new(2), &queue_reply(9));
    refuse_in_turn(&mut rounds, ticket, 0);
    rounds.record_queue_reply(ticket, NodeId::new(0), &queue_reply(9));
    refuse_in_turn(&mut rounds, ticket, 1);
    let queue = rounds.conclude(ticket).queue.unwrap();
    assert_eq!(
        queue.replies,
        [
            (NodeId::new(0), queue_reply(5)),
            (NodeId::new(1), queue_reply(5))
        ]
    );
}

/// On another connection, in place of one that was lost.
#[test]
fn a_request_is_sent_again_once_and_only_where_a_thread_waits_for_its_verdict() {
    let first = NodeId::new(0);
    let (mut rounds, ticket) = rounds();
    assert!(rounds.resend(ticket, first));
    assert!(!rounds.resend(ticket, first), "once to each node");
    assert!(rounds.resend(ticket, NodeId::new(1)));
    for index in 1..3 {
        rounds.vote(ticket, NodeId::new(index), &Vote::Granted);
    }
    assert!(!rounds.resend(ticket, NodeId::new(2)), "it has its verdict");
    let conditions = ReleaseConditions {
        set_since: None,
        key_ends: Timestamp::NEVER,
    };
    let context = None;
    let release = rounds.open(Purpose::Release {
        conditions,
        context,
    });
    assert!(!rounds.resend(release, first), "no thread waits for it");
    rounds.assign(release, None);
    assert!(rounds.resend(release, first));
}

#[test]
fn a_deadline_that_only_checks_something_is_soft_and_so_is_that_of_a_wait() {
    let (mut rounds, ticket) = rounds();
    assert!(!rounds.has_soft_deadline(ticket));
    rounds.set_soft_deadline(ticket, true);
    assert!(rounds.has_soft_deadline(ticket));
    rounds.set_soft_deadline(ticket, false);
    assert!(!rounds.has_soft_deadline(ticket));
    let wait = rounds.open(Purpose::Wait);
    assert!(rounds.has_soft_deadline(wait));
}

#[test]
fn the_faults_of_a_round_without_a_quorum_are_kept_and_the_answers_to_a_question() {
    let fault = Fault::new(Phase::Reply, Cause::Auth);
    for (grants, faults) in [(1, 1), (2, 0)] {
        let (mut rounds, ticket) = rounds();
        rounds.vote(ticket, NodeId::new(2), &Vote::Fault(fault));
        for index in 0..grants {
            rounds.vote(ticket, NodeId::new(index), &Vote::Granted);
        }
        assert_eq!(rounds.conclude(ticket).faults.len(), faults);
    }
    let (mut rounds, attempt) = rounds();
    assert!(rounds.inquiry(attempt).is_none());
    let question = rounds.open(Purpose::Inspect(HolderQuestion {
        key: "k".into(),
        is_fenced: false,
        answers: Inspection::default(),
    }));
    assert!(rounds.inquiry(question).is_some());
}

/// By an answer on another connection to the same server.
#[test]
fn a_node_that_has_granted_elsewhere_counts_with_the_next_vote() {
    let (mut rounds, ticket) = rounds();
    rounds.vote(ticket, NodeId::new(0), &Vote::Granted);
    rounds.granted_at(ticket, NodeId::new(1));
    assert!(!rounds.is_decided(ticket));
    rounds.vote(ticket, NodeId::new(2), &Vote::Refused);
    assert!(rounds.is_decided(ticket));
    assert_eq!(rounds.conclude(ticket).tally.granted().len(), 2);
}
