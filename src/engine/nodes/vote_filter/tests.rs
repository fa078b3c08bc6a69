//! What a vote shows about its node, and what of it counts.

use super::*;
use crate::algorithm::pending_release::ReleaseConditions;
use crate::algorithm::quarantine::{Quarantine, RestartPolicy};
use crate::engine::rounds::Attempt;
use crate::engine::tests::{MASTER, Stopped, at, introduction};
use crate::events::node_states::NodeMode;
use crate::os::transport::TransportConfig;
use crate::os::waker::Waker;
use crate::protocol::endpoint::Endpoint;
use crate::protocol::session::{Log, Session};
use std::sync::Arc;
use std::time::Duration;

const NODE: NodeId = NodeId::new(0);
const TERM: Duration = Duration::from_secs(10);

fn attempt() -> Purpose {
    Purpose::Acquire(Attempt::new(None))
}

fn refused(cause: Cause) -> Fault {
    Fault::new(Phase::Reply, cause)
}

/// A node whose server has replied to the handshake as a master.
struct Met {
    connection: NodeConnection,
    states: NodeStates,
    clock: Stopped,
}

impl Met {
    /// At the origin.
    fn new() -> Met {
        let connection = NodeConnection::new(
            NODE,
            Endpoint::parse("redis://10.0.0.1").unwrap(),
            TransportConfig::Plain,
            Quarantine::new(RestartPolicy::Observed, TERM),
            Duration::from_millis(100),
            Arc::new(Waker::new().unwrap()),
        );
        let states = NodeStates::new(None, 1, at(0));
        let mut met = Met {
            connection,
            states,
            clock: Stopped(at(0)),
        };
        met.introduced(0);
        met
    }

    /// Another connection, on which the process of this number has replied to the handshake.
    fn introduced(&mut self, number: usize) {
        let handshake = self.connection.link.endpoint.handshake();
        let log = Log::default();
        let session = &mut self.connection.session;
        *session = Session::open(handshake, at(0));
        let replies = introduction(number, MASTER);
        session.incoming.space()[..replies.len()].copy_from_slice(replies.as_bytes());
        session.incoming.received(replies.len());
        assert!(session.next_event(&log).unwrap().is_some());
        self.filter(at(0)).on_handshake();
    }

    /// One that has lost its keys: its quarantine lasts for [`TERM`].
    fn restarted() -> Met {
        let mut met = Met::new();
        met.introduced(9);
        assert!(met.connection.quarantine.is_on());
        met
    }

    fn filter(&mut self, now: Timestamp) -> VoteFilter<'_> {
        self.clock = Stopped(now);
        VoteFilter {
            node: NODE,
            connection: &mut self.connection,
            states: &mut self.states,
            clock: &self.clock,
        }
    }

    /// What counts of a vote.
    fn counted(&mut self, purpose: &Purpose, mut vote: Vote, now: Timestamp) -> Vote {
        let mut filter = self.filter(now);
        filter.filter_vote(Some(purpose), &mut vote, now);
        vote
    }

    fn mode(&self) -> NodeMode {
        self.states.of(NODE).state
    }
}

#[test]
fn nothing_counts_of_a_grant_in_quarantine_and_how_long_that_lasts_is_said() {
    let mut met = Met::restarted();
    let Vote::Fault(fault) = met.counted(&attempt(), Vote::Granted, at(4000)) else {
        panic!("it counts");
    };
    assert_eq!(fault, quarantine::UNTRUSTED);
    assert_eq!(fault.detail, Detail::Left(Duration::from_secs(6)));
    let full = refused(Cause::OutOfMemory);
    let Vote::Fault(fault) = met.counted(&attempt(), Vote::Fault(full), at(4000)) else {
        panic!("it has failed");
    };
    assert_eq!((fault, fault.detail), (full, Detail::None));
    let release = met.counted(&Purpose::Entry, Vote::Granted, at(4000));
    assert_eq!(release, Vote::Granted);
    assert_eq!(
        met.counted(&attempt(), Vote::Granted, at(10_000)),
        Vote::Granted
    );
}

#[test]
fn a_vote_that_shows_a_replica_ends_the_votes_of_the_connection() {
    for (cause, is_replica) in [
        (Cause::NotMaster, true),
        (Cause::ReadOnly, true),
        (Cause::OutOfMemory, false),
    ] {
        let mut met = Met::new();
        let vote = Vote::Fault(refused(cause));
        assert_eq!(met.counted(&attempt(), vote, at(1)), vote);
        let standing = met.connection.session.standing();
        assert_eq!(
            standing != HandshakeState::Accepted,
            is_replica,
            "{cause:?}"
        );
        assert_eq!(met.mode() == NodeMode::Down, is_replica);
        // It is counted once.
        let not_before = met.connection.health.not_before();
        met.counted(&attempt(), vote, at(500));
        assert_eq!(met.connection.health.not_before(), not_before);
        // What it knows when it is a master again is another node's.
        met.introduced(0);
        assert_eq!(met.connection.quarantine.is_on(), is_replica);
    }
}

#[test]
fn a_handshake_that_is_rejected_shows_a_replica_or_a_server_that_does_not_serve() {
    for (cause, is_replica) in [(Cause::NotMaster, true), (Cause::Loading, false)] {
        let mut met = Met::new();
        let fault = Fault::new(Phase::Handshake, cause);
        met.filter(at(1)).on_rejected(fault, at(1));
        assert_eq!(met.connection.health.may_ask(at(1)), Err(fault));
        assert_eq!(met.mode(), NodeMode::Down);
        met.introduced(0);
        assert_eq!(met.connection.quarantine.is_on(), is_replica, "{cause:?}");
    }
}

#[test]
fn a_long_backlog_is_no_failure() {
    let mut met = Met::new();
    met.filter(at(1)).on_failure(refused(Cause::Backlog), at(1));
    assert_eq!(met.mode(), NodeMode::Unknown);
    met.filter(at(2)).on_failure(refused(Cause::Closed), at(2));
    assert_eq!(met.mode(), NodeMode::Down);
}

/// The first request may have deleted the key.
#[test]
fn a_release_that_was_sent_twice_and_found_nothing_is_not_known_to_be_late() {
    let conditions = ReleaseConditions {
        set_since: None,
        key_ends: Timestamp::NEVER,
    };
    let mut met = Met::new();
    for (is_resent, vote, is_known) in [
        (false, Vote::Refused, true),
        (true, Vote::Granted, true),
        (true, Vote::Refused, false),
    ] {
        let mut rounds = Rounds::new(1, None);
        let context = None;
        let ticket = rounds.open(Purpose::Release {
            conditions,
            context,
        });
        rounds.assign(ticket, None);
        assert!(!is_resent || rounds.resend(ticket, NODE));
        let mut counted = vote;
        let mut filter = met.filter(at(1));
        filter.on_released(ticket, &mut counted, &rounds);
        assert_eq!(counted == vote, is_known);
    }
}

/// Only a better answer to an attempt shows that a node that has refused one votes again.
#[test]
fn a_node_that_refuses_attempts_is_down_until_it_answers_one() {
    let full = Vote::Fault(refused(Cause::OutOfMemory));
    let mut met = Met::new();
    met.states.mark_up(NODE, at(0));
    let mut shows = |purpose: &Purpose, vote: Vote| {
        let shown = met.filter(at(1)).on_vote(Some(purpose), &vote, at(1));
        (shown, met.mode(), met.states.is_refusing(NODE))
    };
    let [up, down] = [NodeMode::Up, NodeMode::Down];
    assert_eq!(shows(&Purpose::Extend, full), (true, up, false));
    let one_lock = Vote::Fault(refused(Cause::UnexpectedValue));
    assert_eq!(shows(&attempt(), one_lock), (true, up, false));
    assert_eq!(shows(&attempt(), full), (false, down, true));
    assert_eq!(shows(&Purpose::Extend, Vote::Granted), (false, down, true));
    assert_eq!(shows(&Purpose::Extend, full), (false, down, true));
    let quarantined = Vote::Fault(quarantine::UNTRUSTED);
    assert_eq!(shows(&attempt(), quarantined), (true, down, false));
}

#[test]
fn a_fault_of_something_else_is_kept_while_the_node_votes() {
    let mut met = Met::new();
    let full = refused(Cause::OutOfMemory);
    for (is_up, kept) in [(false, None), (true, Some(full))] {
        if is_up {
            met.states.mark_up(NODE, at(0));
        }
        let mut filter = met.filter(at(1));
        filter.on_vote(Some(&Purpose::Extend), &Vote::Fault(full), at(1));
        assert_eq!(met.states.of(NODE).fault, kept);
    }
}

#[test]
fn a_server_that_is_met_again_has_its_memory_and_its_history_known() {
    let mut met = Met::new();
    assert!(met.connection.server_info.run_id().is_some());
    met.connection.server_info = Default::default();
    met.filter(at(1)).on_memory_known();
    assert!(met.connection.server_info.run_id().is_some());
    met.connection.server_info = Default::default();
    met.filter(at(1)).on_recheck();
    assert!(met.connection.server_info.run_id().is_some());
}
