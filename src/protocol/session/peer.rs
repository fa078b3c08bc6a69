//! The server at the other end: what it has reported about itself, and whether its votes count.

use super::event::SessionEvent;
use crate::algorithm::vote::Vote;
use crate::fault::protocol_error::ProtocolError;
use crate::fault::{Fault, Phase};
use crate::protocol::form::Answer;
use crate::protocol::handshake::Part;
use crate::protocol::moved::NamedMaster;
use crate::protocol::resp::Reply;
use crate::protocol::sent_operation::{HandshakeState, SentOperation};
use crate::protocol::server_info::ServerInfo;

/// The server of one connection.
#[derive(Default)]
pub(super) struct Peer {
    pub(super) standing: HandshakeState,
    pub(super) identity: ServerInfo,
    /// The key of what the node remembers, if it is looked at and tells.
    pub(super) node_key: Option<String>,
    pub(super) has_asked_about_cluster: bool,
    /// The master that it has named, of its shard.
    pub(super) named_master: Option<NamedMaster>,
}

impl Peer {
    /// Whether its votes count, and it has reported that it is a master.
    pub(super) fn is_known_master(&self) -> bool {
        self.standing == HandshakeState::Accepted && self.identity.replication().is_some()
    }

    /// The server has replied with an error, which may name another server as the master.
    pub(super) fn learn_error(&mut self, text: &[u8]) {
        if let Some(named) = NamedMaster::read(text) {
            self.named_master = Some(named);
        }
    }

    /// A part of the handshake or of a later look is answered, and refused if so. Only the first
    /// refusal is reported. When all of a handshake is answered: is this a node that may vote? A
    /// master that has become a replica reports that first; one in cluster mode names the master
    /// behind it.
    pub(super) fn on_answer(&mut self, part: Part, refused: Option<Fault>) -> Option<SessionEvent> {
        let is_last = part == self.last_part();
        let (phase, event) = match self.standing {
            HandshakeState::Pending => (Phase::Handshake, SessionEvent::Accepted),
            HandshakeState::Accepted => (Phase::Reply, SessionEvent::Rechecked),
            HandshakeState::Rejected(_) => return None,
        };
        let objection = self
            .identity
            .objection(phase)
            .filter(|_| is_last || phase == Phase::Reply && !self.identity.is_in_cluster());
        if let Some(fault) = refused.or(objection) {
            self.standing = HandshakeState::Rejected(fault);
            return Some(SessionEvent::Rejected(fault));
        }
        if is_last && phase == Phase::Handshake {
            self.standing = HandshakeState::Accepted;
            self.record_told();
        }
        is_last.then_some(event)
    }

    /// What the handshake, or a later look, ends with.
    fn last_part(&self) -> Part {
        match self.standing {
            HandshakeState::Pending if self.identity.is_in_cluster() => Part::Cluster,
            _ if self.node_key.is_some() => Part::NodeTime,
            _ => Part::InfoReplication,
        }
    }

    /// Whether the server is to be asked what its cluster is: once.
    pub(super) fn asks_about_cluster(&mut self) -> bool {
        self.identity.is_in_cluster() && !std::mem::replace(&mut self.has_asked_about_cluster, true)
    }

    /// Whether answers wait for what the server reports about its cluster.
    #[inline]
    pub(super) fn awaits_cluster(&self) -> bool {
        self.standing == HandshakeState::Pending && self.identity.is_in_cluster()
    }

    /// The reply to a note that was to be stored.
    ///
    /// # Errors
    /// One that it never has.
    pub(super) fn on_note(&mut self, reply: Reply<'_>) -> Result<(), ProtocolError> {
        self.identity.look.learn_stored(reply)?;
        self.record_told();
        Ok(())
    }

    /// The vote of a server that was asked whether it may vote, and has refused to answer if so.
    pub(super) fn checked(&self, refused: Option<Fault>) -> Vote {
        // What a handshake would have found is a fault of the handshake, whenever it is found.
        let objection = self.identity.objection(Phase::Handshake);
        let fault = refused
            .map(|fault| Fault {
                phase: Phase::Reply,
                ..fault
            })
            .or(objection);
        self.filtered(fault.map_or(Vote::Granted, Vote::Fault))
    }

    /// The event in the answer to an operation.
    pub(super) fn judged(&self, sent: &SentOperation, answer: Answer) -> SessionEvent {
        match (&answer, self.standing.rejection()) {
            (Answer::Vote(Vote::Fault(reason)), rejection)
                if sent.asked.is_release() && reason.cause.is_not_run() =>
            {
                SessionEvent::NotRun(sent.ticket, rejection.unwrap_or(*reason))
            }
            (_, Some(rejection)) if !self.counts_all_the_same(sent, &answer) => {
                SessionEvent::Answered(sent.ticket, Answer::Vote(Vote::Fault(rejection)))
            }
            _ => SessionEvent::Answered(sent.ticket, answer),
        }
    }

    /// A vote as far as it counts.
    pub(super) fn filtered(&self, vote: Vote) -> Vote {
        self.standing.rejection().map_or(vote, Vote::Fault)
    }

    /// Whether an answer counts although the node may not vote:
    /// * A key that is set or deleted by a duplicate URL is set or deleted on the server, and the
    ///   URL that votes for the server may be refused because of it. A fence is excluded: it is
    ///   raised on the connection that replied.
    /// * A release is sent again in another form, because the key is to be deleted on every node.
    fn counts_all_the_same(&self, sent: &SentOperation, answer: &Answer) -> bool {
        let is_release = sent.asked.is_release();
        let is_duplicate = self.standing.is_duplicate();
        match answer {
            Answer::Vote(Vote::Granted) => {
                is_duplicate && (is_release || sent.asked.least.is_none())
            }
            Answer::WrongForm => is_release || is_duplicate,
            _ => false,
        }
    }

    /// A node that does not tell what it remembers is not looked at again on this connection.
    fn record_told(&mut self) {
        self.node_key = self
            .node_key
            .take()
            .filter(|_| self.identity.look.is_told());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::fence::FencingToken;
    use crate::algorithm::kind::Kind;
    use crate::fault::Cause;
    use crate::protocol::asked::Asked;
    use crate::protocol::form::Form;
    use crate::protocol::operation::Verb;
    use crate::protocol::reply_tests;
    use crate::protocol::sent_operation::Ticket;

    /// What the answer to an operation counts as where the votes of the server are this fault.
    fn counted(rejection: Fault, verb: Verb, kind: Kind, answer: Answer) -> Answer {
        let peer = Peer {
            standing: HandshakeState::Rejected(rejection),
            ..Peer::default()
        };
        let operation = reply_tests::operation(verb, kind);
        let sent = SentOperation {
            ticket: Ticket {
                slot: 0,
                generation: 0,
            },
            asked: Asked::of(&operation),
            form: Form::Hash,
            part: 0,
        };
        match peer.judged(&sent, answer) {
            SessionEvent::Answered(_, answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn of_servers_that_may_not_vote_only_what_a_second_url_does_counts() {
        const ACQUIRE: Verb = Verb::Acquire { ttl_millis: 1 };
        const RELEASE: Verb = Verb::Release(None);
        const GRANTED: Answer = Answer::Vote(Vote::Granted);
        const REFUSED: Answer = Answer::Vote(Vote::Refused);
        let fenced = Kind::Fenced(FencingToken::saturating(1));
        // Whether it counts on a second URL, and on another server that may not vote.
        for (verb, kind, answer, counts) in [
            (ACQUIRE, Kind::Plain, GRANTED, [true, false]),
            (ACQUIRE, fenced, GRANTED, [false, false]),
            (RELEASE, Kind::Plain, GRANTED, [true, false]),
            (RELEASE, fenced, GRANTED, [true, false]),
            (ACQUIRE, Kind::Plain, REFUSED, [false, false]),
            (RELEASE, Kind::Plain, REFUSED, [false, false]),
            (ACQUIRE, fenced, Answer::WrongForm, [true, false]),
            (RELEASE, Kind::Plain, Answer::WrongForm, [true, true]),
        ] {
            for (cause, counts) in [Cause::Duplicate(2), Cause::NotMaster]
                .into_iter()
                .zip(counts)
            {
                let rejection = Fault::new(Phase::Handshake, cause);
                let expected = match counts {
                    true => answer.clone(),
                    false => Answer::Vote(Vote::Fault(rejection)),
                };
                let found = counted(rejection, verb, kind, answer.clone());
                assert_eq!(found, expected, "{verb:?} {kind:?} {cause:?}");
            }
        }
    }

    #[test]
    fn only_a_second_url_has_a_node_that_votes_for_it() {
        let rejected = |cause| HandshakeState::Rejected(Fault::new(Phase::Handshake, cause));
        let standing = rejected(Cause::Duplicate(2));
        assert_eq!(standing.voter().map(|voter| voter.index()), Some(2));
        assert!(standing.is_duplicate());
        for other in [HandshakeState::Accepted, rejected(Cause::NotMaster)] {
            assert!(other.voter().is_none() && !other.is_duplicate());
        }
    }

    #[test]
    fn the_fault_of_a_refused_check_is_that_of_a_reply() {
        let refused = Fault::new(Phase::Handshake, Cause::Auth);
        let checked = Peer::default().checked(Some(refused));
        assert_eq!(checked, Vote::Fault(Fault::new(Phase::Reply, Cause::Auth)));
    }
}
