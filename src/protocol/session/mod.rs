//! One connection's conversation: bytes in, bytes out, and which request each reply belongs to.
//!
//! A session is made when a connection is opened and thrown away with it. It holds the bytes still to be sent, the
//! bytes received, and a queue of what is expected, in the order in which it was asked. Redis answers in that order, so
//! the first reply belongs to the first entry, always. An entry leaves the queue with its reply and in no other way:
//! that a caller stopped waiting changes nothing here. This is the rule that keeps a late `+OK` from being taken for
//! the grant of a later request, two holders of one lock (rule 2.8).
//!
//! The handshake goes out in one flight with the first command:
//!
//! ```text
//!   AUTH, SELECT, INFO server, replication, a look at what the node remembers, then whatever is asked
//!     all accepted ──► Accepted: votes count
//!     any refused ───► Rejected: every vote on this connection is that fault; releases are still served
//! ```
//!
//! How to drive it:
//! 1. [`Session::open`] queues the handshake; [`queue`](Session::queue) queues an operation on a lock's key.
//! 2. Write [`unsent`](Traffic::unsent), then say how much went out with [`sent`](Traffic::sent).
//! 3. Read into [`space`](Traffic::space), then say how much came with [`received`](Traffic::received).
//! 4. Call [`next_event`](Session::next_event) until it returns `None`. After
//!    [`Answer::WrongForm`], call [`ask_again`](Session::ask_again), or drop it.
//! 5. After an error, or when the connection is lost, hand out the faults with [`abandon`](Session::abandon).

mod following;
mod inspecting;
mod log;
mod operations;
mod parts;
mod recheck;
mod request;

use super::command;
use super::expected::Expected;
pub use super::form::Answer;
use super::handshake::{Handshake, Part};
use super::inspection::{self, Inspected};
use super::script::ScriptCache;
use super::sent_operation::SentOperation;
pub use super::sent_operation::{Abandoned, Command, HandshakeState, PlainVote, Ticket};
use super::server_info::ServerInfo;
use super::traffic::Traffic;
use super::wake::Wake;
use crate::algorithm::fault::{Fault, Phase};
use crate::algorithm::latency::Histogram;
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use log::Cursor;
pub use log::Log;
use parts::PartAnswers;
use request::Request;
use std::fmt;
use std::time::Duration;

/// Size of the receive buffer, and the size it returns to after a longer reply: room for an `INFO` section at least.
const RECEIVE_BUFFER: usize = 16 * 1024;

/// What the bytes received so far amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// A node's answer in a round. After [`Answer::WrongForm`], call [`ask_again`](Session::ask_again), or drop it: an
    /// acquisition must not be sent behind the release of an attempt that was abandoned meanwhile.
    Answered(Ticket, Answer),
    /// The node did not run the release of a round, for this reason: it is to be sent again later.
    NotRun(Ticket, Fault),
    /// A node's vote on whether a lock is held: granted with what [`Session::take_occupant`] returns, or absent.
    Inspected(Ticket, Vote),
    /// The handshake was accepted: the server's [`identity`](Session::identity) is known as far as the server says it.
    Accepted,
    /// The server has said once more what it is: its [`identity`](Session::identity) is up to date.
    Rechecked,
    /// The server has said how much memory it may use: the [`identity`](Session::identity) is up to date.
    MemoryKnown,
    /// The node was to store a note: the [`identity`](Session::identity) has what it remembers now.
    Noted,
    /// The handshake was refused, or the server has become a replica; no vote on this connection counts.
    Rejected(Fault),
}

/// One connection's conversation.
pub struct Session {
    /// The bytes.
    pub traffic: Traffic,
    expected: Expected<Request>,
    /// How many of those are releases.
    unanswered_releases: usize,
    /// While it follows a log, how far it has come. Then it sends and expects nothing of its own.
    cursor: Option<Cursor>,
    standing: HandshakeState,
    identity: ServerInfo,
    scripts: ScriptCache,
    /// Whether attempts that are made in turn go by `SET`: the server runs no scripts for the user.
    takes_by_set: bool,
    wakes: Wakes,
    /// When the server was last asked whether it is a master.
    checked_at: Timestamp,
    /// The key of what the node remembers, if it is looked at.
    node_key: Option<String>,
    looks_behind_votes: bool,
    /// Whether the server was asked about its memory: once on each connection.
    has_asked_for_memory: bool,
    /// How long after the question the last reply of a look was read.
    look_took: Duration,
    /// An operation that was answered, and counts when the look behind it was answered as well.
    unconfirmed: Option<(SentOperation, Answer)>,
    inspected: Inspected,
    parts: PartAnswers,
    /// How long the replies to operations took, on this connection and earlier ones.
    pub latency: Histogram,
}

/// What the releases and leaves that were replied to last have found in the queues: a bit for each key of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakes {
    /// Another client was told.
    pub told: u64,
    /// More entries may be in front whose clients are gone.
    pub more: u64,
    /// The user may not publish.
    pub is_denied: bool,
}

impl Wakes {
    fn add(&mut self, part: u8, wake: Wake) {
        match wake {
            Wake::Nobody => {}
            Wake::Other => self.told |= 1 << part,
            Wake::More => self.more |= 1 << part,
            Wake::Denied => self.is_denied = true,
        }
    }
}

impl Session {
    /// Begins a conversation by queueing the handshake.
    pub fn open(handshake: &Handshake, now: Timestamp) -> Session {
        let mut session = Session {
            traffic: Traffic::new(RECEIVE_BUFFER),
            expected: Expected::new(),
            unanswered_releases: 0,
            cursor: None,
            standing: HandshakeState::Pending,
            identity: ServerInfo::default(),
            scripts: ScriptCache::default(),
            takes_by_set: false,
            wakes: Wakes::default(),
            checked_at: now,
            node_key: handshake.node_key.clone(),
            looks_behind_votes: handshake.looks_behind_votes,
            has_asked_for_memory: false,
            look_took: Duration::ZERO,
            unconfirmed: None,
            inspected: Inspected::default(),
            parts: PartAnswers::default(),
            latency: Histogram::default(),
        };
        let parts = handshake.write(session.traffic.end());
        parts.into_iter().for_each(|part| session.await_reply(Request::Handshake(part), now));
        session
    }

    /// Queues the question whether the server may still vote, which also shows that it answers. What it says of its
    /// memory is known before that.
    pub fn check(&mut self, ticket: Ticket, now: Timestamp) {
        self.ask_for_memory(now);
        command::info(self.traffic.end(), "replication");
        self.await_reply(Request::Check(ticket), now);
    }

    /// Takes what the release or leave has found whose reply was the last event.
    pub fn take_wakes(&mut self) -> Wakes {
        std::mem::take(&mut self.wakes)
    }

    /// How long after the question the reply of the last look was read: what it shows may be as old.
    pub fn look_took(&self) -> Duration {
        self.look_took
    }

    /// Lets no vote on this connection count any more: each is `fault` from now on. Releases are still served.
    pub fn reject(&mut self, fault: Fault) {
        self.standing = HandshakeState::Rejected(fault);
    }

    /// Whether votes count here.
    pub fn standing(&self) -> HandshakeState {
        self.standing
    }

    /// What the server has said about itself so far.
    pub fn identity(&self) -> &ServerInfo {
        &self.identity
    }

    /// Whether there may be another event.
    pub fn has_event(&self) -> bool {
        self.traffic.has_input() || self.is_confirmed()
    }

    /// The next thing that the received bytes mean, or `None` until more are received. `log`: what the session follows,
    /// if it does.
    ///
    /// # Errors
    /// The bytes are not what was asked for. The connection must be given up.
    pub fn next_event(&mut self, log: &Log) -> Result<Option<SessionEvent>, ProtocolError> {
        loop {
            if self.is_confirmed()
                && let Some((sent, answer)) = self.unconfirmed.take()
            {
                return Ok(Some(self.answered(&sent, answer)));
            }
            if !self.traffic.has_input() {
                return Ok(None);
            }
            // Even half a reply is too much when none is expected.
            let request = match &self.cursor {
                Some(cursor) => log.request(cursor),
                None => self.expected.front(),
            };
            let Some(request) = request else { return Err(ProtocolError::Unrequested) };
            let Some((reply, length)) = self.traffic.decode()? else {
                return Ok(None);
            };
            let event = match request {
                Request::Check(_) | Request::Handshake(_) | Request::Recheck(_) => {
                    let request = *request;
                    let refused = request.part().learn(reply, &mut self.identity)?;
                    self.informed(request, refused)
                }
                &Request::Operation(sent) => {
                    let (mut answer, wake) = (sent.parse_reply(reply)?, sent.wake(reply));
                    self.wakes.add(sent.part, wake);
                    if sent.part > 0 {
                        answer = self.parts.finish(sent.part, answer, sent.asked.acquires());
                    }
                    self.taken(length, log);
                    if self.looks_behind_votes && !sent.asked.is_release() && self.is_looking() {
                        self.unconfirmed = Some((sent, answer));
                        continue;
                    }
                    return Ok(Some(self.answered(&sent, answer)));
                }
                &Request::Part(sent) => {
                    self.parts.add(sent.part, sent.parse_reply(reply)?);
                    self.wakes.add(sent.part, sent.wake(reply));
                    None
                }
                Request::Note => {
                    self.identity.look.learn_stored(reply)?;
                    self.note_told();
                    Some(SessionEvent::Noted)
                }
                &Request::Value(is_fenced) => {
                    self.inspected.note_value(inspection::value_reply(reply, is_fenced)?);
                    None
                }
                Request::Waiting => {
                    self.inspected.note_waiting(reply)?;
                    None
                }
                &Request::End(ticket, is_fenced) => {
                    let vote = self.inspected.note_end(reply, is_fenced)?;
                    Some(self.inspected_with(ticket, vote))
                }
            };
            self.taken(length, log);
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// Ends the conversation: every request that is still unanswered, oldest first, and what kind it was. A session
    /// that follows a log [leaves](Session::leave) it first.
    pub fn abandon(&mut self) -> impl Iterator<Item = (Ticket, Abandoned)> + '_ {
        debug_assert!(self.cursor.is_none(), "what is left of the log is unanswered as well");
        self.unanswered_releases = 0;
        let unconfirmed = self.unconfirmed.take().map(|(sent, _)| (sent.ticket, Abandoned::of(&sent, true)));
        let unanswered =
            self.expected.abandon(self.traffic.all_sent()).filter_map(|(request, is_written)| match request {
                Request::Check(ticket) | Request::End(ticket, _) => Some((ticket, Abandoned::Check)),
                Request::Operation(sent) => Some((sent.ticket, Abandoned::of(&sent, is_written))),
                Request::Handshake(_)
                | Request::Part(_)
                | Request::Recheck(_)
                | Request::Note
                | Request::Value(_)
                | Request::Waiting => None,
            });
        unconfirmed.into_iter().chain(unanswered)
    }

    /// How many replies are expected, but for those to what is in the log.
    pub fn backlog(&self) -> usize {
        self.expected.len()
    }

    /// When the request was made whose reply is expected next, but for those in the log.
    pub fn waiting_since(&self) -> Option<Timestamp> {
        self.expected.waiting_since()
    }

    /// The connection is made: what was queued while there was none counts as asked now.
    pub fn connected(&mut self, now: Timestamp) {
        self.expected.connected(now);
    }

    /// The server has said what it is, or refuses to say it.
    fn informed(&mut self, request: Request, refused: Option<Fault>) -> Option<SessionEvent> {
        match request {
            Request::Check(ticket) => Some(SessionEvent::Answered(ticket, Answer::Vote(self.checked(refused)))),
            Request::Handshake(part) => self.handshake_answered(part, refused),
            Request::Recheck(part) => self.rechecked(part, refused),
            _ => None,
        }
    }

    fn inspected_with(&self, ticket: Ticket, vote: Vote) -> SessionEvent {
        SessionEvent::Inspected(ticket, self.standing.rejection().copied().map_or(vote, Vote::Fault))
    }

    fn checked(&self, refused: Option<Fault>) -> Vote {
        // What a handshake would have found is a fault of the handshake, whenever it is found.
        let objection = self.identity.objection().map(|cause| Fault::new(Phase::Handshake, cause));
        let fault = refused.map(|fault| Fault { phase: Phase::Reply, ..fault }).or(objection);
        self.standing.rejection().copied().or(fault).map_or(Vote::Granted, Vote::Fault)
    }

    /// A part of the handshake is answered, and refused if so. Only the first refusal is reported. When all is
    /// answered: is this a node that may vote?
    fn handshake_answered(&mut self, part: Part, mut refused: Option<Fault>) -> Option<SessionEvent> {
        if self.standing != HandshakeState::Pending {
            return None;
        }
        if self.is_last(part) && refused.is_none() {
            refused = self.identity.objection().map(|cause| Fault::new(Phase::Handshake, cause));
        }
        if let Some(fault) = refused {
            self.standing = HandshakeState::Rejected(fault);
            return Some(SessionEvent::Rejected(fault));
        }
        if self.is_last(part) {
            self.note_told();
            self.standing = HandshakeState::Accepted;
            return Some(SessionEvent::Accepted);
        }
        None
    }

    /// A node that does not tell what it remembers is not looked at again on this connection.
    fn note_told(&mut self) {
        self.node_key = self.node_key.take().filter(|_| self.identity.look.is_told());
    }

    /// Whether a look, or a handshake, is answered in full with this.
    fn is_last(&self, part: Part) -> bool {
        part == if self.node_key.is_some() { Part::NodeTime } else { Part::InfoReplication }
    }

    /// The reply that was expected first has been understood.
    #[inline]
    fn taken(&mut self, length: usize, log: &Log) {
        self.traffic.taken(length);
        let answered = match &mut self.cursor {
            Some(cursor) => cursor.advance(log),
            None => {
                let answered = self.expected.pop();
                let is_release = answered.is_some_and(|(request, _)| request.is_release());
                self.unanswered_releases -= usize::from(is_release);
                answered
            }
        };
        let Some((request, asked_at)) = answered else { return };
        let time = self.traffic.read_at().since(asked_at);
        match request {
            Request::Operation(_) => self.latency.record(time),
            Request::Handshake(_) | Request::Recheck(_) => self.look_took = time,
            _ => {}
        }
    }

    fn await_reply(&mut self, request: Request, asked_at: Timestamp) {
        self.await_reply_at(request, asked_at, self.traffic.begin());
    }

    /// Expects the reply to a request. `begin`: how many bytes there were on the connection before its command.
    fn await_reply_at(&mut self, request: Request, asked_at: Timestamp, begin: u64) {
        self.unanswered_releases += usize::from(request.is_release());
        self.expected.push(request, asked_at, begin);
    }
}

/// Shows counts only: the buffers hold tokens and passwords.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("standing", &self.standing)
            .field("expected", &self.expected.len())
            .field("unsent", &self.traffic.unsent().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
