//! An operation that was sent, and what a session reports about its requests: the round that each
//! belongs to, its kind, and whether votes count.

use super::asked::Asked;
use super::form::{Answer, Form};
use super::kinds::wire::AskedVerb;
use super::kinds::{self, plain};
use super::lock_key::LockKey;
use super::operation::{Operation, Verb};
use super::resp::Reply;
use super::{queue, reply};
use crate::algorithm::fence::FencingToken;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::NodeId;
use crate::fault::protocol_error::ProtocolError;
use crate::fault::{Cause, Fault};

/// Names the round that a request belongs to. A slot is used again; its generation then differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// Which slot of the rounds in flight.
    pub slot: u32,
    /// Which use of that slot.
    pub generation: u32,
}

/// An operation on one key, or on the keys of a set, for one round.
#[derive(Clone, Copy)]
pub struct Command<'c> {
    /// The round.
    pub ticket: Ticket,
    /// What is asked.
    pub operation: &'c Operation,
    /// The key, or the keys of a set.
    pub key: &'c LockKey,
    /// The owner's token.
    pub token: &'c OwnerToken,
    pub(super) asked: Asked,
}

/// What is kept of an operation that was sent, until its reply is understood.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentOperation {
    pub(super) ticket: Ticket,
    pub(super) asked: Asked,
    /// The form that it was sent in.
    pub(super) form: Form,
    /// For a set: which of its keys the next reply is about.
    pub(super) part: u8,
}

/// The vote in a reply that only grants or refuses.
pub struct PlainVote {
    /// The round.
    pub ticket: Ticket,
    /// Whether it grants.
    pub is_granted: bool,
    /// The number that it grants, where the lock has numbers.
    pub fence: Option<FencingToken>,
}

impl<'c> Command<'c> {
    /// Asks this for a round, by the token of the key's owner.
    pub fn new(
        ticket: Ticket,
        operation: &'c Operation,
        key: &'c LockKey,
        token: &'c OwnerToken,
    ) -> Command<'c> {
        Command {
            ticket,
            operation,
            key,
            token,
            asked: Asked::of(operation),
        }
    }

    /// Writes the command, of a set one for each key. Apart from what runs for each node.
    #[inline(never)]
    pub(super) fn write(&self, out: &mut Vec<u8>, form: Form) {
        self.key
            .each()
            .iter()
            .zip(0..)
            .for_each(|(key, part)| self.write_one(out, form, key.as_bytes(), part));
    }

    /// `part`: which key of a set it is.
    fn write_one(&self, out: &mut Vec<u8>, form: Form, key: &[u8], part: u8) {
        let Command {
            operation, token, ..
        } = *self;
        let is_token_only = kinds::wire(operation.kind).is_token_only;
        match operation.verb {
            Verb::Acquire { ttl_millis } if is_token_only => {
                plain::acquire(out, key, token, ttl_millis)
            }
            Verb::Take { ttl_millis, .. } if form == Form::Set => {
                plain::acquire(out, key, token, ttl_millis)
            }
            Verb::Extend { ttl_millis } | Verb::Keep { ttl_millis } if is_token_only => {
                plain::extend(out, key, token, ttl_millis)
            }
            // The entry of a call that wants a set is in the queue of one of its keys.
            Verb::Release(Some(departure)) if departure.key != part => {
                queue::ask(
                    out,
                    form,
                    key,
                    token,
                    &Operation {
                        verb: Verb::Release(None),
                        ..*operation
                    },
                );
            }
            _ => queue::ask(out, form, key, token, operation),
        }
    }
}

impl SentOperation {
    /// The meaning of the reply.
    ///
    /// # Errors
    /// A reply that this operation never has.
    #[inline]
    pub(super) fn parse_reply(&self, reply: Reply<'_>) -> Result<Answer, ProtocolError> {
        reply::meaning(self.form, self.asked, reply)
    }

    /// The vote in the reply, if it only grants or refuses, as nearly all replies do. None: it may
    /// contain more.
    #[inline]
    pub(super) fn plain_vote(&self, reply: Reply<'_>) -> Option<PlainVote> {
        let Asked { verb, wire, least } = self.asked;
        let (is_granted, fence) = match (verb, reply) {
            (AskedVerb::Acquire, Reply::Simple(b"OK")) if wire.is_token_only => (true, None),
            (AskedVerb::Acquire, Reply::Bulk(None)) if wire.is_token_only => (false, None),
            (AskedVerb::Extend, Reply::Integer(1)) => (true, None),
            (AskedVerb::Release, Reply::Integer(1)) => (true, None),
            (AskedVerb::Release, Reply::Integer(0)) => (false, None),
            (AskedVerb::Take { .. }, Reply::Integer(1)) if least.is_none() => (true, None),
            // Not an entry in a queue.
            (AskedVerb::Acquire | AskedVerb::Take { .. }, Reply::Bulk(Some(digits)))
                if !digits.contains(&b' ') =>
            {
                match self.parse_reply(reply) {
                    Ok(Answer::Fence(fence)) => (true, Some(fence)),
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(PlainVote {
            ticket: self.ticket,
            is_granted,
            fence,
        })
    }
}

/// What kind of request a lost connection left unanswered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abandoned {
    /// It may have set the key, now or later.
    Acquire,
    /// It was only a question.
    Check,
    /// It may make our key live longer or raise its fence, now or later. Nothing is owed: the
    /// release of the lock ends it wherever it is. Or it may not have removed an entry from a
    /// queue, whose client is told and removes it then.
    Extend,
    /// It may not have deleted the key, and must be sent again.
    Release,
    /// It was to set the key, or to make it live longer, and no byte of it was written.
    Unwritten,
}

impl Abandoned {
    /// The kind of an operation. `is_written`: a byte of it may have been written.
    pub(super) fn of(sent: &SentOperation, is_written: bool) -> Abandoned {
        match sent.asked.verb {
            AskedVerb::Release => Abandoned::Release,
            _ if !is_written => Abandoned::Unwritten,
            AskedVerb::Acquire | AskedVerb::Take { .. } => Abandoned::Acquire,
            AskedVerb::Extend | AskedVerb::Leave | AskedVerb::Raise => Abandoned::Extend,
        }
    }
}

/// Whether the node on this connection may vote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HandshakeState {
    /// The handshake is not answered yet.
    #[default]
    Pending,
    /// Its votes count.
    Accepted,
    /// Its votes count as this fault.
    Rejected(Fault),
}

impl HandshakeState {
    /// Whether this is another URL of a server that has its vote already, or seems to be.
    pub fn is_duplicate(&self) -> bool {
        self.voter().is_some()
    }

    /// The node that votes for the server, if this is another URL of it.
    pub fn voter(&self) -> Option<NodeId> {
        match self {
            HandshakeState::Rejected(Fault {
                cause: Cause::Duplicate(voter),
                ..
            }) => Some(NodeId::new(*voter)),
            _ => None,
        }
    }

    /// The fault that its votes count as, if the node may not vote. Not even a refusal counts then:
    /// of two URLs that lead to one server, the second is refused because of our own key.
    pub(super) fn rejection(&self) -> Option<Fault> {
        if let HandshakeState::Rejected(fault) = *self {
            Some(fault)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::fence::FencingToken;
    use crate::algorithm::kind::Kind;
    use crate::algorithm::queue::TakeRequest;
    use crate::algorithm::vote::Vote;
    use crate::protocol::reply_tests;
    use crate::protocol::wake::Wakes;

    const TICKET: Ticket = Ticket {
        slot: 0,
        generation: 0,
    };

    /// What has only a token is extended by a script for that, which changes no other value.
    #[test]
    fn an_extension_goes_by_the_script_of_what_is_stored() {
        let fenced = Kind::Fenced(FencingToken::saturating(1));
        for (kind, is_token_only) in [
            (Kind::Plain, true),
            (Kind::Permit(3), true),
            (Kind::Read, false),
            (Kind::Write(None), false),
            (fenced, false),
        ] {
            let (token, mut by_token, mut written) =
                (OwnerToken::from_entropy([1; 20]), Vec::new(), Vec::new());
            plain::extend(&mut by_token, b"k", &token, 7);
            let operation = reply_tests::operation(Verb::Extend { ttl_millis: 7 }, kind);
            Command::new(TICKET, &operation, &LockKey::One("k".into()), &token)
                .write(&mut written, Form::Text);
            assert_eq!(written == by_token, is_token_only, "{kind:?}");
        }
    }

    /// The short way to a vote leads to the same one as the long way.
    #[test]
    fn a_plain_reply_means_what_it_means_otherwise() {
        let least = FencingToken::saturating(1);
        let kinds = [
            Kind::Plain,
            Kind::Permit(3),
            Kind::Fenced(least),
            Kind::Read,
            Kind::Write(Some(least)),
        ];
        let ttl_millis = 1;
        let request = TakeRequest::WITHOUT_ENTRY;
        let verbs = [
            Verb::Acquire { ttl_millis },
            Verb::Extend { ttl_millis },
            Verb::Leave(None),
            Verb::Raise,
            Verb::Release(None),
            Verb::Take {
                ttl_millis,
                request,
            },
        ];
        let mut plain = 0;
        for (kind, verb) in kinds
            .into_iter()
            .flat_map(|kind| verbs.map(|verb| (kind, verb)))
        {
            let asked = Asked::of(&reply_tests::operation(verb, kind));
            let sent = SentOperation {
                ticket: TICKET,
                asked,
                form: asked.usual_form(),
                part: 0,
            };
            for reply in [
                Reply::Simple(b"OK"),
                Reply::Bulk(None),
                Reply::Array(None),
                Reply::Error(b"ERR no"),
                Reply::Bulk(Some(b"1")),
                Reply::Bulk(Some(b"01")),
                Reply::Bulk(Some(b"n 1 0 5 abcdefgh - ")),
            ]
            .into_iter()
            .chain((-5..5).map(Reply::Integer))
            {
                let Some(PlainVote {
                    is_granted, fence, ..
                }) = sent.plain_vote(reply)
                else {
                    continue;
                };
                let answer = match (is_granted, fence) {
                    (_, Some(fence)) => Answer::Fence(fence),
                    (true, None) => Answer::Vote(Vote::Granted),
                    (false, None) => Answer::Vote(Vote::Refused),
                };
                assert_eq!(
                    sent.parse_reply(reply),
                    Ok(answer),
                    "{kind:?} {verb:?} {reply:?}"
                );
                let mut wakes = Wakes::default();
                wakes.learn(0, reply);
                assert_eq!(wakes, Wakes::default(), "{kind:?} {verb:?} {reply:?}");
                plain += 1;
            }
        }
        // SET for two kinds and releases of all five, which grant or refuse; extensions of all,
        // which grant; grants in turn, of which three are without a number and two with one; and
        // grants with a number by the scripts of two kinds.
        assert_eq!(plain, 2 * 2 + 5 * 2 + 5 + (3 + 2) + 2);
    }
}
