//! How a session follows a log of commands.

use super::backlog::Backlog;
use super::log::Log;
use super::parts::PartAnswers;
use super::request::Request;
use super::{Answer, Command, PlainVote, Session, Wakes};
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::fault::protocol_error::ProtocolError;

impl Session {
    /// Whether the session can follow the log: the server votes, is looked at as the others are,
    /// and owes no answer.
    pub fn may_follow(&self, log: &Log) -> bool {
        self.pipeline.backlog() == Backlog::default() && !self.has_event() && self.is_alike(log)
    }

    /// Whether the server is sent what all others are, as far as what it has reported about itself
    /// decides that.
    pub fn is_alike(&self, log: &Log) -> bool {
        self.looks.checked_at > Timestamp::ORIGIN
            && !self.looks.are_behind_votes
            && !self.forms.take_by_set
            && log.looks_by(self.peer.node_key.as_deref())
            && self.peer.is_known_master()
    }

    /// Whether the server is sent this command in the form in which it is in the log.
    pub fn takes_from_log(&self, command: &Command<'_>) -> bool {
        self.forms.are_usual(command.asked)
    }

    /// Follows the log from its end on. `is_first`: no other session does.
    pub fn follow(&mut self, log: &mut Log, is_first: bool) {
        self.pipeline
            .follow(log.enter(self.looks.checked_at, is_first));
    }

    /// Takes the next reply if it only grants or refuses what is in the log. The replies about the
    /// keys of a set are taken together, if all grant and none has told another client.
    ///
    /// # Errors
    /// The bytes are no reply. The connection must be given up.
    #[inline]
    pub fn next_plain_vote(&mut self, log: &Log) -> Result<Option<PlainVote>, ProtocolError> {
        loop {
            let Some(awaited) = self.pipeline.front(log) else {
                return Ok(None);
            };
            let (Request::Operation(sent) | Request::Part(sent)) = &awaited.request else {
                return Ok(None);
            };
            let Some((reply, length)) = self.incoming.decode()? else {
                return Ok(None);
            };
            let Some(vote) = sent.plain_vote(reply) else {
                return Ok(None);
            };
            if let Request::Part(_) = awaited.request {
                if !vote.is_granted {
                    return Ok(None);
                }
                self.parts.add(sent.part, Answer::Vote(Vote::Granted));
                self.taken(length, false);
                continue;
            }
            if sent.part > 0 {
                let has_told = self.wakes != Wakes::default();
                if has_told || !(vote.is_granted && self.parts.have_granted()) {
                    return Ok(None);
                }
                self.parts = PartAnswers::default();
            }
            let is_release = sent.asked.is_release();
            let time = self.incoming.read_at.since(awaited.asked_at);
            self.taken(length, is_release);
            self.latency.record(time);
            return Ok(Some(vote));
        }
    }

    /// The server was asked with the log whether it is still a master.
    pub fn looked_at(&mut self, now: Timestamp) {
        self.looks.checked_at = now;
    }

    /// Whether the server was asked how much memory it may use.
    pub fn has_asked_for_memory(&self) -> bool {
        self.looks.have_shown_memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::lease::OwnerToken;
    use crate::protocol::handshake::Handshake;
    use crate::protocol::lock_key::LockKey;
    use crate::protocol::operation::Verb;
    use crate::protocol::session::tests::{
        abandons, events_in, fails, feed, granted, operation, sent, ticket,
    };
    use crate::protocol::session::{Abandoned, SessionEvent};
    use std::time::Duration;

    const NOW: Timestamp = Timestamp::from_nanos(1);

    /// A session that follows the log.
    fn follower(log: &mut Log) -> Session {
        let mut session = Session::open(&Handshake::default(), NOW);
        sent(&mut session);
        let info = format!(
            "role:master\r\nmaster_replid:{}\r\nmaster_replid2:{}",
            "a".repeat(40),
            "0".repeat(40)
        );
        let handshake = format!("$0\r\n\r\n${}\r\n{info}\r\n", info.len());
        assert!(!session.may_follow(log), "the handshake is not answered");
        assert_eq!(
            events_in(&mut session, log, &handshake),
            [SessionEvent::Accepted]
        );
        assert!(session.may_follow(log));
        session.follow(log, true);
        session
    }

    fn append(log: &mut Log, slot: u32, verb: Verb) {
        log.append(
            &Command::new(
                ticket(slot),
                &operation(verb),
                &LockKey::One("k".into()),
                &OwnerToken::from_entropy([1; 20]),
            ),
            NOW,
        );
    }

    const SET: Verb = Verb::Acquire { ttl_millis: 1 };
    const RELEASE: Verb = Verb::Release(None);

    /// One vote grants all keys of a set, however its parts arrive. The event of a refusal contains
    /// the keys that are refused.
    #[test]
    fn a_set_is_granted_by_one_plain_vote_and_refused_by_an_event() {
        const YES: &str = "+OK\r\n";
        const NO: &str = "$-1\r\n";
        let set = LockKey::of("", ["a", "b", "c"]);
        let token = OwnerToken::from_entropy([1; 20]);
        let acquire = operation(SET);
        for (replies, refused) in [
            ([YES, YES, YES], None),
            ([YES, YES, NO], Some((Vote::Partial, 4))),
            ([YES, NO, YES], Some((Vote::Partial, 2))),
            ([NO, NO, NO], Some((Vote::Refused, 7))),
        ] {
            for is_split in [false, true] {
                let mut log = Log::default();
                let mut session = follower(&mut log);
                for slot in [0, 1] {
                    log.append(&Command::new(ticket(slot), &acquire, &set, &token), NOW);
                }
                session.pipeline.sent(session.pipeline.unsent(&log).len());
                // Behind it another one, which is refused as if it were the first.
                for (slot, replies, refused) in [
                    (0, replies, refused),
                    (1, [NO, NO, NO], Some((Vote::Refused, 7))),
                ] {
                    let (mut granted, mut events) = (Vec::new(), Vec::new());
                    for (part, reply) in replies.into_iter().enumerate() {
                        feed(&mut session, reply.as_bytes());
                        if is_split || part == 2 {
                            granted.extend(session.next_plain_vote(&log).unwrap());
                            events.extend(events_in(&mut session, &log, ""));
                        }
                    }
                    let granted: Vec<_> = granted.iter().map(|vote| vote.ticket).collect();
                    let event = refused.map(|(vote, keys)| {
                        SessionEvent::Answered(ticket(slot), Answer::RefusedFor(vote, keys))
                    });
                    assert_eq!(events, Vec::from_iter(event.clone()), "{replies:?}");
                    assert_eq!(granted == [ticket(slot)], event.is_none(), "{replies:?}");
                }
            }
        }
    }

    /// Whatever was sent and answered of the log, the rest is sent and answered once, in order.
    #[test]
    fn a_session_that_leaves_the_log_takes_with_it_what_is_left() {
        let replies = "+OK\r\n:1\r\n+OK\r\n";
        for sent in (0..200).step_by(if cfg!(miri) { 33 } else { 1 }) {
            for answered in 0..=3 {
                let mut log = Log::default();
                let mut other = follower(&mut log);
                append(&mut log, 9, SET);
                let mut session = follower(&mut log);
                [SET, RELEASE, SET]
                    .into_iter()
                    .zip(0..)
                    .for_each(|(verb, slot)| append(&mut log, slot, verb));
                let all = session.pipeline.unsent(&log).to_vec();
                let sent = sent.min(all.len());
                session.pipeline.sent(sent);
                let answered = if sent < all.len() { 0 } else { answered };
                let mut seen = events_in(&mut session, &log, &replies[..[0, 5, 9, 14][answered]]);
                // What others do with the log is nothing to the session that has left it.
                session.pipeline.leave(&log);
                other.pipeline.sent(other.pipeline.unsent(&log).len());
                append(&mut log, 8, SET);
                log.cut(other.pipeline.cursor().into_iter());
                assert_eq!(
                    [all[..sent].to_vec(), session.pipeline.unsent(&log).to_vec()].concat(),
                    all
                );
                assert_eq!(
                    (
                        session.pipeline.backlog().requests,
                        session.pipeline.unanswered_releases(&log)
                    ),
                    (3 - answered, usize::from(answered < 2))
                );
                session.pipeline.sent(session.pipeline.unsent(&log).len());
                seen.extend(events_in(
                    &mut session,
                    &log,
                    &replies[[0, 5, 9, 14][answered]..],
                ));
                assert_eq!(
                    seen,
                    [granted(0), granted(1), granted(2)],
                    "{sent} {answered}"
                );
                assert!(
                    session.may_follow(&log)
                        && events_in(&mut other, &log, "+OK\r\n+OK\r\n")
                            == [granted(9), granted(0)]
                );
            }
        }
    }

    /// A request of which no byte was written can be sent on another connection.
    #[test]
    fn a_lost_connection_tells_what_was_written_of_the_log() {
        let mut log = Log::default();
        let mut session = follower(&mut log);
        append(&mut log, 0, SET);
        let first = session.pipeline.unsent(&log).len();
        [1, 2]
            .into_iter()
            .for_each(|slot| append(&mut log, slot, SET));
        session.pipeline.sent(first + 1);
        session.pipeline.leave(&log);
        let abandoned = [
            (0, Abandoned::Acquire),
            (1, Abandoned::Acquire),
            (2, Abandoned::Unwritten),
        ];
        abandons(
            &mut session,
            abandoned.map(|(slot, kind)| (ticket(slot), kind)),
        );
    }

    /// It would be taken for the reply to a request that the server has not got.
    #[test]
    fn a_reply_to_what_was_not_sent_is_an_error() {
        let mut log = Log::default();
        let mut session = follower(&mut log);
        append(&mut log, 0, SET);
        fails(&mut session, &log, "+OK\r\n", ProtocolError::Unrequested);
    }

    /// What follows them would be taken for the replies to other requests.
    #[test]
    fn bytes_that_are_no_reply_are_an_error_at_once() {
        for (bytes, error) in [
            ("$abc\r\n+OK\r\n", ProtocolError::BadNumber),
            ("$99999999999\r\n:1\r\n", ProtocolError::BulkTooLong),
            (":abc\r\n", ProtocolError::BadNumber),
            ("*x\r\n+OK\r\n", ProtocolError::BadNumber),
            ("?x\r\n", ProtocolError::UnknownType),
        ] {
            let mut log = Log::default();
            let mut session = follower(&mut log);
            [0, 1]
                .into_iter()
                .for_each(|slot| append(&mut log, slot, SET));
            session.pipeline.sent(session.pipeline.unsent(&log).len());
            feed(&mut session, bytes.as_bytes());
            assert_eq!(
                session.next_plain_vote(&log).err(),
                Some(error),
                "{bytes:?}"
            );
        }
    }

    /// What all have sent and had answered is forgotten, and no more.
    #[test]
    fn the_log_is_cut_behind_the_slowest() {
        let mut log = Log::default();
        let mut sessions = [follower(&mut log), follower(&mut log)];
        for slot in 0..100 {
            append(&mut log, slot, SET);
            for session in &mut sessions {
                session.pipeline.sent(session.pipeline.unsent(&log).len());
            }
            let [first, second] = &mut sessions;
            feed(first, b"+OK\r\n");
            assert_eq!(
                first.next_plain_vote(&log).unwrap().map(|vote| vote.ticket),
                Some(ticket(slot))
            );
            if slot % 10 == 9 {
                assert_eq!(
                    second.pipeline.backlog_in(&log),
                    Backlog {
                        requests: 10,
                        unsent: 0,
                        oldest: Some(NOW)
                    }
                );
                assert_eq!(
                    events_in(second, &log, &"+OK\r\n".repeat(10)),
                    (slot - 9..=slot).map(granted).collect::<Vec<_>>()
                );
            }
            log.cut(
                sessions
                    .iter()
                    .filter_map(|session| session.pipeline.cursor()),
            );
            assert_eq!(
                (log.backlog().requests, log.backlog().unsent),
                ((slot as usize + 1) % 10, 0)
            );
        }
    }

    #[test]
    fn a_session_that_owes_an_answer_or_has_one_does_not_follow() {
        let mut log = Log::default();
        let mut session = follower(&mut log);
        session.pipeline.leave(&log);
        assert!(session.may_follow(&log));
        feed(&mut session, b"+");
        assert!(!session.may_follow(&log), "bytes are left");
        let mut session = follower(&mut log);
        session.pipeline.leave(&log);
        session.check(ticket(0), NOW);
        assert!(!session.may_follow(&log), "a question is not answered");
    }

    #[test]
    fn a_server_takes_a_script_from_the_log_once_it_has_run_it() {
        let mut log = Log::default();
        let mut session = follower(&mut log);
        let [set, release] = [SET, RELEASE].map(operation);
        let key = LockKey::One("k".into());
        let token = OwnerToken::from_entropy([1; 20]);
        let set = Command::new(ticket(0), &set, &key, &token);
        let release = Command::new(ticket(0), &release, &key, &token);
        assert!(session.takes_from_log(&set));
        assert!(!session.takes_from_log(&release));
        session.pipeline.leave(&log);
        session.queue(&release, NOW);
        session.pipeline.sent(session.pipeline.unsent(&log).len());
        assert_eq!(events_in(&mut session, &log, ":1\r\n"), [granted(0)]);
        assert!(session.takes_from_log(&release));
    }

    #[test]
    fn a_session_that_was_looked_at_with_the_log_is_not_looked_at_by_itself_then() {
        let mut log = Log::default();
        let mut session = follower(&mut log);
        let later = NOW.after(Duration::from_secs(5));
        session.looked_at(later);
        session.pipeline.leave(&log);
        session
            .looks
            .before_vote(&session.peer, &mut session.pipeline, later);
        assert!(session.pipeline.unsent(&log).is_empty());
        assert!(!session.has_asked_for_memory());
        let due = later.after(Duration::from_millis(1001));
        session
            .looks
            .before_vote(&session.peer, &mut session.pipeline, due);
        assert!(session.has_asked_for_memory());
    }

    /// Its next vote asks once more, which the others do not.
    #[test]
    fn a_server_that_refuses_a_look_is_not_asked_as_the_others_are() {
        let mut log = Log::default();
        let mut session = follower(&mut log);
        log.look(NOW);
        session.looked_at(NOW);
        session.pipeline.sent(session.pipeline.unsent(&log).len());
        assert!(session.is_alike(&log));
        assert_eq!(events_in(&mut session, &log, "-BUSY a script runs\r\n"), []);
        assert!(!session.is_alike(&log));
    }
}
