//! When the server is asked whether it is still the master that it was.
//!
//! A master that is made a replica and a master again keeps its connections, and has lost its keys.
//! So a vote that comes long after the server last reported what it is goes out behind `INFO
//! replication`, in the same write, and the reply to that is understood first. With
//! [`Strict`](crate::algorithm::quarantine::RestartPolicy::Strict), the question goes out behind
//! each vote instead, and the vote counts when that is answered. A server that withheld it in the
//! handshake is not asked again.

use super::log::RECHECK_AFTER;
use super::peer::Peer;
use super::pipeline::Pipeline;
use super::request::Request;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::fault::{Fault, Phase};
use crate::protocol::command;
use crate::protocol::form::Answer;
use crate::protocol::handshake::Part;
use crate::protocol::sent_operation::{HandshakeState, SentOperation};
use std::time::Duration;

/// The looks at the server of one connection.
#[derive(Default)]
pub(super) struct Looks {
    /// Whether they come behind each vote, and not once a second.
    pub(super) are_behind_votes: bool,
    /// When the server was last asked.
    pub(super) checked_at: Timestamp,
    /// How long after the question the last reply of a look was read.
    pub(super) took: Duration,
    /// Whether the server was asked about its memory: once on each connection.
    pub(super) have_shown_memory: bool,
    /// An operation that was answered, and counts when the look behind it was answered as well.
    pub(super) unconfirmed: Option<(SentOperation, Answer)>,
}

impl Looks {
    /// Asks the server, if it has not reported that lately. To be called before a request is asked
    /// that brings a vote.
    pub(super) fn before_vote(&mut self, peer: &Peer, pipeline: &mut Pipeline, now: Timestamp) {
        let is_due = now.since(self.checked_at) > RECHECK_AFTER && !self.are_behind_votes;
        if is_due && peer.is_known_master() {
            self.look(peer, pipeline, now);
            self.ask_for_memory(pipeline, now);
        }
    }

    /// Asks the same behind a request that brings a vote, if each is looked behind.
    pub(super) fn behind_vote(&mut self, peer: &Peer, pipeline: &mut Pipeline, now: Timestamp) {
        if self.are_behind_votes
            && (peer.standing == HandshakeState::Pending || peer.is_known_master())
        {
            self.look(peer, pipeline, now);
            // Not while the first lock on this connection waits: of all questions, this one takes
            // the server longest.
            if peer.standing == HandshakeState::Accepted {
                self.ask_for_memory(pipeline, now);
            }
        }
    }

    /// Asks the server whether it is still the master that it was, and what it remembers of itself.
    pub(super) fn look(&mut self, peer: &Peer, pipeline: &mut Pipeline, now: Timestamp) {
        self.checked_at = now;
        pipeline.own.ask(now, |out| {
            Request::write_look(out, peer.node_key.as_deref())
        });
    }

    /// Asks the server, once on each connection, how much memory it may use.
    pub(super) fn ask_for_memory(&mut self, pipeline: &mut Pipeline, now: Timestamp) {
        if !std::mem::replace(&mut self.have_shown_memory, true) {
            pipeline.own.ask(now, |out| {
                command::info(out, "memory");
                [Request::Recheck(Part::InfoMemory)]
            });
        }
    }

    /// Whether the reply to an operation waits for the one to the look behind it.
    pub(super) fn are_awaited_behind(&self, sent: &SentOperation, pipeline: &Pipeline) -> bool {
        self.are_behind_votes && !sent.asked.is_release() && pipeline.is_looking()
    }

    /// Whether an operation was answered, and the look behind it.
    #[inline]
    pub(super) fn have_confirmed(&self, pipeline: &Pipeline) -> bool {
        self.unconfirmed.is_some() && !pipeline.is_looking()
    }

    /// The server runs nothing at present: a script runs, for example. The next vote asks again.
    pub(super) fn failed(&mut self, fault: Fault) {
        self.checked_at = Timestamp::ORIGIN;
        if let Some((_, answer)) = &mut self.unconfirmed {
            *answer = Answer::Vote(Vote::Fault(Fault {
                phase: Phase::Reply,
                ..fault
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::fence::FencingToken;
    use crate::algorithm::incarnation::run_id::{ReplicationIds, RunId};
    use crate::algorithm::incarnation::{Incarnation, NewNote, Note, Origin};
    use crate::algorithm::kind::Kind;
    use crate::algorithm::lease::OwnerToken;
    use crate::algorithm::queue::TakeRequest;
    use crate::fault::Cause;
    use crate::fault::server_error::ServerError;
    use crate::protocol::handshake::Handshake;
    use crate::protocol::lock_key::LockKey;
    use crate::protocol::operation::{Operation, Verb};
    use crate::protocol::reply_tests;
    use crate::protocol::session::tests::{
        abandons, bulk, events, feed, granted, operation, receives, sent, ticket, voted,
    };
    use crate::protocol::session::{Abandoned, Command, Log, Session, SessionEvent as Event};

    const RECHECK: &str = "*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n";

    fn at(millis: u64) -> Timestamp {
        Timestamp::ORIGIN.after(Duration::from_millis(millis))
    }

    fn replication(role: &str) -> String {
        let text = format!(
            "role:{role}\r\nmaster_replid:{}\r\nmaster_replid2:{}",
            "a".repeat(40),
            "0".repeat(40)
        );
        bulk(&text)
    }

    /// What arrives, one reply behind the other, amounts to these events. `master` and `slave` are
    /// the replication of such a server, `time` is its clock.
    #[track_caller]
    fn hears(session: &mut Session, replies: &str, expected: impl AsRef<[Event]>) {
        let reply = |reply: &str| match reply {
            "master" | "slave" => replication(reply),
            "time" => TIME.to_owned(),
            reply => format!("{reply}\r\n"),
        };
        let replies: String = replies.split(" | ").map(reply).collect();
        receives(session, &replies, expected);
    }

    /// One that has not to ask about memory.
    fn open(handshake: &Handshake) -> Session {
        let mut session = Session::open(handshake, Timestamp::ORIGIN);
        session.looks.have_shown_memory = true;
        session
    }

    /// A session that was accepted at the origin of time, by a server that reported this about its
    /// replication.
    fn member(replication: &str) -> Session {
        let mut session = open(&Handshake::default());
        receives(
            &mut session,
            &format!("$0\r\n\r\n{replication}"),
            [Event::Accepted],
        );
        sent(&mut session);
        session
    }

    fn queue(session: &mut Session, operation: Operation, now: Timestamp) {
        let token = &OwnerToken::from_entropy([1; 20]);
        let key = LockKey::One("k".into());
        session.queue(&Command::new(ticket(0), &operation, &key, token), now);
    }

    /// What goes out before a `SET`.
    fn before_set(session: &mut Session, now: Timestamp) -> String {
        queue(session, operation(Verb::Acquire { ttl_millis: 1 }), now);
        let text = sent(session);
        text.split_once("*6\r\n$3\r\nSET\r\n").unwrap().0.to_owned()
    }

    #[test]
    fn a_vote_long_after_the_last_look_comes_behind_another_one() {
        let mut session = member(&replication("master"));
        for (millis, looks) in [
            (1000, false),
            (1001, true),
            (1002, false),
            (2001, false),
            (2002, true),
            (9000, true),
        ] {
            assert_eq!(
                before_set(&mut session, at(millis)),
                if looks { RECHECK } else { "" },
                "{millis}"
            );
            if looks {
                hears(&mut session, "master", [Event::Rechecked]);
            }
            hears(&mut session, "+OK", [granted(0)]);
        }
        assert_eq!(session.pipeline.backlog().requests, 0);
    }

    #[test]
    fn every_request_that_brings_a_vote_has_it_and_a_release_has_not() {
        let starts = |verb, kind| {
            let operation = reply_tests::operation(verb, kind);
            let mut session = member(&replication("master"));
            queue(&mut session, operation, at(5000));
            session
                .pipeline
                .unsent(&Log::default())
                .starts_with(RECHECK.as_bytes())
        };
        let least = FencingToken::saturating(1);
        for kind in [
            Kind::Plain,
            Kind::Permit(3),
            Kind::Fenced(least),
            Kind::Write(Some(least)),
        ] {
            assert!(starts(Verb::Acquire { ttl_millis: 1 }, kind));
            assert!(starts(
                Verb::Take {
                    ttl_millis: 1,
                    request: TakeRequest::WITHOUT_ENTRY
                },
                kind
            ));
            assert!(starts(Verb::Extend { ttl_millis: 1 }, kind));
            assert!(!starts(Verb::Release(None), kind));
        }
        assert!(starts(Verb::Raise, Kind::Fenced(least)));
    }

    /// What a session reports of a replica that answers a command.
    fn objection() -> [Event; 2] {
        let fault = Fault::new(Phase::Reply, Cause::NotMaster);
        [Event::Rejected(fault), voted(0, Vote::Fault(fault))]
    }

    #[test]
    fn a_master_that_has_become_a_replica_votes_no_more() {
        let mut session = member(&replication("master"));
        before_set(&mut session, at(5000));
        hears(&mut session, "slave | -READONLY no", objection());
        assert_eq!(
            before_set(&mut session, at(9000)),
            "",
            "there is nothing more to know"
        );
    }

    #[test]
    fn a_server_that_did_not_tell_is_not_asked_and_one_that_does_not_now_is_asked_again() {
        for silent in ["-NOPERM no\r\n", "$11\r\nrole:master\r\n"] {
            assert_eq!(before_set(&mut member(silent), at(5000)), "");
        }
        let mut session = member(&replication("master"));
        for millis in [5000, 5001, 5002] {
            assert_eq!(before_set(&mut session, at(millis)), RECHECK);
            hears(&mut session, "-BUSY x | $-1", [voted(0, Vote::Refused)]);
        }
    }

    /// Two votes in one flight, each of which counts when the look behind it was understood.
    #[test]
    fn a_look_behind_each_vote_is_understood_before_the_vote() {
        let mut session = member(&replication("master"));
        session.looks.are_behind_votes = true;
        let set = operation(Verb::Acquire { ttl_millis: 1 });
        for _ in 0..2 {
            queue(&mut session, set, at(5000));
        }
        queue(&mut session, operation(Verb::Release(None)), at(5000));
        let flight = sent(&mut session);
        assert!(flight.starts_with("*6\r\n$3\r\nSET\r\n"), "{flight}");
        assert_eq!(flight.matches(RECHECK).count(), 2);
        let refused = voted(0, Vote::Refused);
        assert_eq!(events(&mut session, "+OK\r\n"), [], "the look is missing");
        assert!(!session.has_event());
        hears(&mut session, "master | $-1", [Event::Rechecked, granted(0)]);
        hears(
            &mut session,
            "master | :1",
            [Event::Rechecked, refused, granted(0)],
        );

        // What the look finds, and a look that finds nothing, cost the vote. So does the end of the
        // connection.
        queue(&mut session, set, at(5000));
        let busy = Fault::new(Phase::Reply, Cause::Server(ServerError::Busy));
        hears(&mut session, "+OK | -BUSY x", [voted(0, Vote::Fault(busy))]);
        queue(&mut session, set, at(5000));
        sent(&mut session);
        receives(&mut session, "+OK\r\n", []);
        abandons(&mut session, [(ticket(0), Abandoned::Acquire)]);
        queue(&mut session, set, at(5000));
        hears(&mut session, "+OK | slave", objection());
    }

    const LOOK: &str = "*2\r\n$3\r\nGET\r\n$16\r\nquorumlock-node:\r\n*1\r\n$4\r\nTIME\r\n";
    const TIME: &str = "*2\r\n$1\r\n9\r\n$1\r\n5\r\n";

    /// A session that looks at what its node remembers.
    fn remembering() -> Session {
        open(&Handshake {
            node_key: Some("quorumlock-node:".into()),
            ..Handshake::default()
        })
    }

    /// The same, accepted by a master on which nothing is stored.
    fn accepted_remembering() -> Session {
        let mut session = remembering();
        sent(&mut session);
        hears(
            &mut session,
            "$0\r\n | master | $-1 | time",
            [Event::Accepted],
        );
        session
    }

    /// The last reply to a handshake decides: with what a node remembers, a replica may name its
    /// master. Later the first one does.
    #[test]
    fn a_replica_is_refused_by_the_end_of_a_handshake_and_by_the_first_reply_to_a_later_look() {
        let refused = |phase| Event::Rejected(Fault::new(phase, Cause::NotMaster));
        let mut session = remembering();
        hears(&mut session, "$0\r\n | slave | $-1", []);
        hears(&mut session, "time", [refused(Phase::Handshake)]);

        let mut session = accepted_remembering();
        session.look(at(5000));
        hears(&mut session, "slave", [refused(Phase::Reply)]);

        // In cluster mode the reply to the look at the key names the master.
        let mut session = remembering();
        let server = bulk("redis_mode:cluster");
        let cluster = bulk("cluster_slots_assigned:16384\r\ncluster_size:1");
        let master = format!("{server}{}$-1\r\n{TIME}", replication("master"));
        receives(&mut session, &master, []);
        receives(&mut session, &cluster, [Event::Accepted]);
        session.look(at(5000));
        hears(&mut session, "slave", []);
        hears(&mut session, "$-1 | time", [refused(Phase::Reply)]);
    }

    #[test]
    fn a_node_that_refuses_a_note_is_not_looked_at_again() {
        for (reply, looks) in [("$-1\r\n", LOOK), ("-NOPERM no\r\n", "")] {
            let mut session = accepted_remembering();
            session.note(&new_note(), at(1));
            let stored = sent(&mut session);
            assert!(stored.contains("EVAL") && stored.contains("quorumlock-node:"));
            receives(&mut session, reply, [Event::Noted]);
            session.look(at(2));
            assert_eq!(sent(&mut session), format!("{RECHECK}{looks}"));
        }
    }

    fn new_note() -> NewNote {
        NewNote {
            note: Note {
                incarnation: Incarnation {
                    run_id: RunId::new(&[b'a'; 40]).unwrap(),
                    replication: ReplicationIds::new(&[b'b'; 40], &[b'0'; 40]).unwrap(),
                },
                origin: Origin::Since,
                time: 5,
                wall: 5,
                max_ttl: Duration::from_secs(60),
                nodes: 3,
            },
            keeps_times: false,
        }
    }

    #[test]
    fn a_vote_does_not_wait_for_the_look_that_was_asked_behind_it() {
        let mut session = member(&replication("master"));
        before_set(&mut session, at(1));
        session.look(at(2));
        receives(&mut session, "+OK\r\n", [granted(0)]);
    }

    #[test]
    fn a_session_that_looks_behind_votes_does_so_from_its_handshake_on() {
        let mut session = Session::open(
            &Handshake {
                looks_behind_votes: true,
                ..Handshake::default()
            },
            Timestamp::ORIGIN,
        );
        before_set(&mut session, at(1));
        // The look went out with it.
        hears(&mut session, "$0\r\n | master | +OK", [Event::Accepted]);
        assert!(!session.has_asked_for_memory(), "the first lock waits");
        feed(&mut session, replication("master").as_bytes());
        let next = |session: &mut Session| session.next_event(&Log::default()).unwrap();
        assert_eq!(next(&mut session), Some(Event::Rechecked));
        assert!(session.has_event(), "the vote counts now");
        assert_eq!(next(&mut session), Some(granted(0)));
        assert!(!session.has_event());
        assert_eq!(before_set(&mut session, at(2)), "");
        assert!(session.has_asked_for_memory());
    }

    #[test]
    fn a_look_at_what_the_node_remembers_comes_with_the_handshake_and_with_each_question() {
        let mut session = remembering();
        assert!(String::from_utf8_lossy(session.pipeline.unsent(&Log::default())).ends_with(LOOK));
        sent(&mut session);
        let info = format!("$0\r\n\r\n{}", replication("master"));
        assert!(
            events(&mut session, &format!("{info}$-1\r\n")).is_empty(),
            "the clock is missing"
        );
        receives(&mut session, TIME, [Event::Accepted]);
        assert_eq!(
            before_set(&mut session, at(5000)),
            format!("{RECHECK}{LOOK}")
        );
        hears(
            &mut session,
            "master | $-1 | time | +OK",
            [Event::Rechecked, granted(0)],
        );
        // A replica's objection is known with the first reply, and reported once.
        before_set(&mut session, at(9000));
        hears(
            &mut session,
            "slave | $-1 | time | -READONLY no",
            objection(),
        );
        assert_eq!(session.pipeline.backlog().requests, 0);
    }
}
