//! One connection's conversation: bytes in, bytes out, and to whom each reply belongs.
//!
//! A session is made when a connection is opened and thrown away with it. It holds the bytes still to be sent, the bytes
//! received, and a queue of what is expected, in the order in which it was asked. Redis answers in that order, so the
//! first reply belongs to the first entry, always. An entry leaves the queue with its reply and in no other way: that
//! somebody stopped waiting changes nothing here. This is the rule that keeps a late `+OK` from being taken for the
//! grant of a later request, the worst thing that could happen in this library (rule 2.8).
//!
//! The greeting goes out in one flight with the first command:
//!
//! ```text
//!   AUTH, SELECT, INFO server, memory, replication, then whatever is asked
//!     all accepted ──► Greeted: votes count
//!     any refused ───► Rejected: every vote on this connection is that fault; releases are still served
//! ```
//!
//! How to drive it:
//! 1. [`Session::open`] queues the greeting; [`acquire`](Session::acquire), [`extend`](Session::extend) and
//!    [`release`](Session::release) queue more.
//! 2. Write [`unsent`](Session::unsent), then say how much went out with [`sent`](Session::sent).
//! 3. Read into [`space`](Session::space), then say how much came with [`received`](Session::received).
//! 4. Call [`next_event`](Session::next_event) until it returns `None`. To [`Event::WrongDialect`] say
//!    [`ask_again`](Session::ask_again).
//! 5. After an error, or when the connection is lost, hand out the faults with [`abandon`](Session::abandon).

mod fencing;
mod publish;
mod recheck;
mod releasing;
mod traffic;

use super::buffer::{Incoming, Outgoing};
use super::command::{self, Dialect, Lifetime};
use super::dialect::Attempted;
use super::extension::{self, ExtensionDialect};
use super::fenced::{FencedRequest, ScriptCache};
use super::handshake::{Handshake, Part};
use super::hint::{self, Hint};
use super::publish_permission::PublishPermission;
pub use super::request::{Abandoned, HandshakeState, Ticket};
use super::resp::Reply;
use super::server_info::ServerInfo;
use crate::algorithm::fault::{Fault, Phase};
use crate::algorithm::fence::FencingToken;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// Size of the receive buffer, and the size it returns to after a longer reply: room for an `INFO` section at least.
const RECEIVE_BUFFER: usize = 16 * 1024;

/// What the bytes received so far amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A node's vote in a round.
    Answered(Ticket, Vote),
    /// The key that an attempt was refused for has no expiry.
    Endless(Ticket),
    /// For how long the key that an attempt was refused for lives at most, counted from now.
    EndsWithin(Ticket, Duration),
    /// A node's vote in a round: the key is somebody else's, and held for so long at most, counted from now.
    Held(Ticket, Duration),
    /// So many were told of the release of a round.
    PublishOutcome(Ticket, u8),
    /// A node's vote in a round: the key is ours, with this fence.
    Fenced(Ticket, FencingToken),
    /// The node did not run the release of a round, for this reason: it is to be sent again later.
    NotRun(Ticket, Fault),
    /// The greeting was accepted: the server's [`identity`](Session::identity) is known as far as it is told.
    Greeted,
    /// The server has said once more what it is: its [`identity`](Session::identity) is up to date.
    Rechecked,
    /// The greeting was refused, or the server has become a replica; no vote on this connection counts.
    Rejected(Fault),
    /// The node does not know the script of a fenced lock by its hash: say [`fenced`](Session::fenced) again, or not at all.
    UnknownScript(Ticket, FencedRequest),
    /// The node does not speak the dialect that a request was sent in: call [`ask_again`](Session::ask_again).
    WrongDialect(Unsupported),
}

/// A release or an extension, to be sent again in another dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    ticket: Ticket,
    wish: PendingOp,
}

impl Unsupported {
    /// The round it belongs to.
    pub fn ticket(self) -> Ticket {
        self.ticket
    }
}

/// One connection's conversation.
pub struct Session {
    outgoing: Outgoing,
    incoming: Incoming,
    expected: VecDeque<Expected>,
    /// How many of those are releases.
    unanswered_releases: usize,
    standing: HandshakeState,
    identity: ServerInfo,
    dialect: Dialect,
    /// How often the server did not know the script by its hash, or did not let us call it so.
    hash_refusals: u8,
    extension_dialect: ExtensionDialect,
    voice: PublishPermission,
    /// How many were told within the release that was answered last.
    audience: u8,
    fence_memory: ScriptCache,
    /// When the server was last asked whether it is a master.
    checked_at: Timestamp,
}

struct Expected {
    request: Request,
    asked_at: Timestamp,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Request {
    Acquire(Ticket),
    /// What the greeting ends with, asked once more.
    Check(Ticket),
    Fenced {
        ticket: Ticket,
        ask: FencedRequest,
        by_hash: bool,
    },
    Handshake(Part),
    Publish(Ticket),
    Recheck,
    Remaining(Ticket),
    PendingOp(Ticket, PendingOp),
}

/// What is to become of a key if it is ours. Both can be said in several dialects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PendingOp {
    Extend { tried: Attempted<ExtensionDialect>, ttl_millis: u64 },
    Release { tried: Attempted<Dialect>, tells: bool },
}

impl Session {
    /// Begins a conversation by queueing the greeting. `dialect` is what the node spoke last time, if there was one.
    pub fn open(greeting: &Handshake, dialect: Option<Dialect>, now: Timestamp) -> Session {
        let mut session = Session {
            outgoing: Outgoing::default(),
            incoming: Incoming::of_size(RECEIVE_BUFFER),
            expected: VecDeque::new(),
            unanswered_releases: 0,
            standing: HandshakeState::Pending,
            identity: ServerInfo::default(),
            dialect: dialect.unwrap_or(Dialect::Eval),
            hash_refusals: 0,
            // Never carried over: where scripts work again, they are to be used again.
            extension_dialect: ExtensionDialect::Eval,
            voice: PublishPermission::default(),
            audience: 0,
            fence_memory: ScriptCache::default(),
            checked_at: now,
        };
        let Session { outgoing, expected, .. } = &mut session;
        greeting.write(outgoing.end(), |part| {
            expected.push_back(Expected { request: Request::Handshake(part), asked_at: now });
        });
        session
    }

    /// Queues a `SET NX PX`, as [`command::acquire`] wrote it: it is the same for every node of a round.
    pub fn acquire(&mut self, ticket: Ticket, request: &[u8], now: Timestamp) {
        self.recheck(now);
        self.outgoing.end().extend_from_slice(request);
        self.await_reply(Request::Acquire(ticket), now);
    }

    /// Queues the question whether the server may still vote, which also shows that it answers.
    pub fn check(&mut self, ticket: Ticket, now: Timestamp) {
        command::info(self.outgoing.end(), "replication");
        self.await_reply(Request::Check(ticket), now);
    }

    /// Queues a compare-and-extend.
    pub fn extend(&mut self, ticket: Ticket, key: &[u8], token: &OwnerToken, ttl_millis: u64, now: Timestamp) {
        self.recheck(now);
        let tried = Attempted::nothing(self.extension_dialect);
        self.ask_again(Unsupported { ticket, wish: PendingOp::Extend { tried, ttl_millis } }, key, token, now);
    }

    /// Queues a compare-and-delete, as [`command::release`] wrote it in this session's [`dialect`](Session::dialect): it is
    /// the same for most nodes of a round.
    pub fn release(&mut self, ticket: Ticket, request: &[u8], now: Timestamp) {
        self.outgoing.end().extend_from_slice(request);
        let tried = Attempted::nothing(self.dialect).in_next(&mut self.dialect);
        self.expect_release(ticket, tried, false, now);
    }

    /// Says that the `SET` queued last has [`command::remaining`] behind it.
    pub fn remaining(&mut self, ticket: Ticket, now: Timestamp) {
        self.await_reply(Request::Remaining(ticket), now);
    }

    /// Queues a compare-and-delete that an earlier connection left unanswered.
    pub fn release_owed(&mut self, ticket: Ticket, key: &[u8], token: &OwnerToken, now: Timestamp) {
        let tried = Attempted::nothing(self.dialect).in_next(&mut self.dialect);
        command::release(self.outgoing.end(), tried.last(), key, token);
        self.expect_release(ticket, tried, false, now);
    }

    /// Queues a release or an extension once more, in a dialect it has not been tried in.
    pub fn ask_again(&mut self, again: Unsupported, key: &[u8], token: &OwnerToken, now: Timestamp) {
        let mut wish = again.wish;
        match &mut wish {
            PendingOp::Extend { tried, ttl_millis } => {
                *tried = tried.in_next(&mut self.extension_dialect);
                extension::extend(self.outgoing.end(), tried.last(), key, token, *ttl_millis);
            }
            PendingOp::Release { tried, tells } => {
                self.dialect = self.dialect.by_text();
                *tried = tried.in_next(&mut self.dialect);
                *tells &= self.voice.may_tell();
                match *tells {
                    true => hint::release_and_tell(self.outgoing.end(), tried.last(), key, token, Hint::default()),
                    false => command::release(self.outgoing.end(), tried.last(), key, token),
                }
                return self.expect_release(again.ticket, *tried, *tells, now);
            }
        }
        self.await_reply(Request::PendingOp(again.ticket, wish), now);
    }

    /// Lets no vote on this connection count any more: each is `fault` from now on. Releases are still served.
    pub fn reject(&mut self, fault: Fault) {
        self.standing = HandshakeState::Rejected(fault);
    }

    /// Whether votes count here.
    pub fn standing(&self) -> HandshakeState {
        self.standing
    }

    /// What the server has told of itself so far.
    pub fn identity(&self) -> &ServerInfo {
        &self.identity
    }

    /// How releases are sent here, as far as is known.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The next thing that the received bytes mean, or `None` until more are received.
    ///
    /// # Errors
    /// The bytes are not what was asked for. The connection must be given up.
    pub fn next_event(&mut self) -> Result<Option<Event>, ProtocolError> {
        while !self.incoming.is_empty() {
            // Even half a reply is too much when none is expected.
            let Some(request) = self.expected.front().map(|expected| expected.request) else {
                return Err(ProtocolError::Unrequested);
            };
            let Some((reply, length)) = self.incoming.decode()? else {
                return Ok(None);
            };
            let event = match request {
                Request::Acquire(ticket) => {
                    let vote = command::acquire_vote(reply)?;
                    Some(Event::Answered(ticket, credited(vote, self.standing)))
                }
                Request::Check(ticket) => {
                    let refused = Part::InfoReplication.learn(reply, &mut self.identity)?;
                    // What a handshake would have found is a fault of the handshake, whenever it is found.
                    let objection = self.identity.objection().map(|cause| Fault::new(Phase::Handshake, cause));
                    let fault = refused.map(|fault| Fault { phase: Phase::Reply, ..fault }).or(objection);
                    let vote = fault.map_or(Vote::Granted, Vote::Fault);
                    Some(Event::Answered(ticket, counted(vote, self.standing)))
                }
                Request::PendingOp(ticket, wish) => {
                    let event = understand(ticket, wish, self.standing, reply)?;
                    if let PendingOp::Release { tried, tells } = wish {
                        if tells {
                            self.audience = self.voice.told(hint::told_by_script(reply));
                        }
                        let hash_refusals = &mut self.hash_refusals;
                        self.dialect = self.dialect.after(tried.last(), event.vote(), hash_refusals);
                    }
                    Some(event)
                }
                Request::Fenced { ticket, ask, by_hash } => {
                    let said = self.fence_memory.hear(by_hash, ask, reply)?;
                    if ask.deed.tells() {
                        self.audience = self.voice.told(hint::told_by_script(reply));
                    }
                    Some(said.event(ticket, ask, self.standing))
                }
                Request::Handshake(part) => {
                    let refused = part.learn(reply, &mut self.identity)?;
                    self.greeted(part, refused)
                }
                Request::Publish(ticket) => {
                    let audience = self.voice.told(hint::publish_reply(reply)?);
                    (audience > 0).then_some(Event::PublishOutcome(ticket, audience))
                }
                Request::Recheck => {
                    let refused = Part::InfoReplication.learn(reply, &mut self.identity)?;
                    self.rechecked(refused.is_none())
                }
                Request::Remaining(ticket) => match command::remaining_reply(reply)? {
                    Lifetime::Endless => Some(Event::Endless(ticket)),
                    Lifetime::Limited(left) => Some(Event::EndsWithin(ticket, left)),
                    Lifetime::Unknown => None,
                },
            };
            self.taken(length);
            if let Some(Event::Answered(..) | Event::NotRun(..)) = event {
                self.overhear();
            }
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// Ends the conversation: every request that is still unanswered, oldest first, and what kind it was.
    pub fn abandon(&mut self) -> impl Iterator<Item = (Ticket, Abandoned)> + '_ {
        self.unanswered_releases = 0;
        self.expected.drain(..).filter_map(|expected| match expected.request {
            Request::Acquire(ticket) => Some((ticket, Abandoned::Acquire)),
            Request::Check(ticket) => Some((ticket, Abandoned::Check)),
            Request::Fenced { ticket, ask, .. } => Some((ticket, Abandoned::of(ask.deed))),
            Request::PendingOp(ticket, PendingOp::Extend { .. }) => Some((ticket, Abandoned::Extend)),
            Request::PendingOp(ticket, PendingOp::Release { .. }) => Some((ticket, Abandoned::Release)),
            Request::Handshake(_) | Request::Publish(_) | Request::Recheck | Request::Remaining(_) => None,
        })
    }

    /// A part of the greeting is answered, and refused if so. Only the first refusal is told. When all is answered: is this a
    /// node that may vote?
    fn greeted(&mut self, part: Part, mut refused: Option<Fault>) -> Option<Event> {
        if self.standing != HandshakeState::Pending {
            return None;
        }
        if part.is_last() && refused.is_none() {
            if let Some(known) = self.identity.dialect() {
                self.dialect = known;
            }
            refused = self.identity.objection().map(|cause| Fault::new(Phase::Handshake, cause));
        }
        if let Some(fault) = refused {
            self.standing = HandshakeState::Rejected(fault);
            return Some(Event::Rejected(fault));
        }
        if part.is_last() {
            self.standing = HandshakeState::Accepted;
            return Some(Event::Greeted);
        }
        None
    }

    /// The reply that was expected first has been understood.
    fn taken(&mut self, length: usize) {
        self.incoming.taken(length);
        if self.expected.pop_front().is_some_and(|expected| expected.request.is_release()) {
            self.unanswered_releases -= 1;
        }
    }

    fn await_reply(&mut self, request: Request, asked_at: Timestamp) {
        self.unanswered_releases += usize::from(request.is_release());
        self.expected.push_back(Expected { request, asked_at });
    }
}

/// A vote, unless the node may not vote. Not even a refusal counts then: of two URLs that lead to one server, the second
/// is refused because of our own key.
fn counted(vote: Vote, standing: HandshakeState) -> Vote {
    match standing {
        HandshakeState::Rejected(fault) => Vote::Fault(fault),
        HandshakeState::Pending | HandshakeState::Accepted => vote,
    }
}

/// A vote that counts as [`counted`] says, unless a duplicate URL grants: what is granted there is granted by the server, and
/// the URL that votes for the server may be refused because of it.
fn credited(vote: Vote, standing: HandshakeState) -> Vote {
    if vote == Vote::Granted && standing.is_duplicate() { vote } else { counted(vote, standing) }
}

/// The event in the reply to a wish.
fn understand(
    ticket: Ticket,
    mut wish: PendingOp,
    standing: HandshakeState,
    reply: Reply<'_>,
) -> Result<Event, ProtocolError> {
    let vote = match &mut wish {
        PendingOp::Extend { tried, .. } => {
            let vote = tried.vote(extension::extend_reply(tried.last(), reply)?);
            match standing {
                HandshakeState::Rejected(fault) if !standing.is_duplicate() => Some(Vote::Fault(fault)),
                _ => vote.map(|vote| credited(vote, standing)),
            }
        }
        PendingOp::Release { tried, .. } => match tried.vote(command::release_reply(reply)?) {
            Some(vote) => return Ok(standing.released(ticket, vote)),
            None => None,
        },
    };
    Ok(match vote {
        Some(vote) => Event::Answered(ticket, vote),
        None => Event::WrongDialect(Unsupported { ticket, wish }),
    })
}

/// Shows counts only: the buffers hold tokens and passwords.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("standing", &self.standing)
            .field("expected", &self.expected.len())
            .field("unsent", &self.unsent().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
