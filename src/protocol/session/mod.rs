//! One connection's conversation: bytes in, bytes out, and which request each reply belongs to.
//!
//! A session is made when a connection is opened and thrown away with it. It holds the bytes still
//! to be sent, the bytes received, and a queue of what is expected, in the order in which it was
//! asked. Redis answers in that order, so the first reply belongs to the first entry, always. An
//! entry leaves the queue with its reply and in no other way: that a caller stopped waiting changes
//! nothing here. This is the rule that keeps a late `+OK` from being taken for the grant of a later
//! request, two holders of one lock (rule 2.8).
//!
//! The handshake goes out in one flight with the first command:
//!
//! ```text
//!   AUTH, SELECT, INFO server, replication, a look at what the node remembers, then whatever is asked
//!     in cluster mode: CLUSTER INFO behind that, and what was asked counts once it is answered
//!     all accepted ──► Accepted: votes count
//!     any refused ───► Rejected: every vote on this connection is that fault; releases are still served
//! ```
//!
//! How to drive it:
//! 1. [`Session::open`] queues the handshake; [`queue`](Session::queue) queues an operation on a
//!    lock's key.
//! 2. Write what its pipeline has unsent, then report how much was sent.
//! 3. Read into the space of its incoming bytes, then report how much was received.
//! 4. Call [`next_event`](Session::next_event) until it returns `None`. After
//!    [`Answer::WrongForm`], call [`ask_again`](Session::ask_again), or drop it.
//! 5. After an error, or when the connection is lost, hand out the faults with
//!    [`abandon`](Session::abandon).

pub mod backlog;
mod early;
mod event;
mod following;
mod forms;
mod log;
mod looks;
mod parts;
mod peer;
mod pipeline;
mod request;
mod requests;

use super::command;
use super::credentials::Credentials;
pub use super::form::Answer;
use super::form::Form;
use super::handshake::{Handshake, Part};
use super::incoming::Incoming;
pub use super::inspection::Inspected;
use super::inspection::{self, Inquiry};
pub use super::sent_operation::{Abandoned, Command, HandshakeState, PlainVote, Ticket};
use super::server_info::ServerInfo;
pub use super::wake::Wakes;
use crate::algorithm::incarnation::NewNote;
use crate::algorithm::time::Timestamp;
use crate::fault::protocol_error::ProtocolError;
use crate::fault::{Cause, Fault};
use crate::protocol::latency::Histogram;
use crate::protocol::moved::NamedMaster;
use crate::protocol::resp::Reply;
use early::Outcome;
pub use event::SessionEvent;
use forms::Forms;
pub use log::Log;
use looks::Looks;
use parts::PartAnswers;
use peer::Peer;
use pipeline::Pipeline;
use request::Request;
use requests::Awaited;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// Size of the receive buffer, and the size it returns to after a longer reply: room for an `INFO`
/// section at least.
const RECEIVE_BUFFER: usize = 16 * 1024;

/// One connection's conversation.
pub struct Session {
    /// The bytes received.
    pub incoming: Incoming,
    /// The requests, and the bytes to be sent.
    pub pipeline: Pipeline,
    /// How long the replies to operations took, on this connection and earlier ones.
    pub latency: Histogram,
    peer: Peer,
    looks: Looks,
    forms: Forms,
    parts: PartAnswers,
    wakes: Wakes,
    inquiry: Inquiry,
    /// What has come before the reply about the cluster, if that is awaited; or what the master of
    /// the shard is to be asked instead.
    early: VecDeque<Outcome>,
}

impl Session {
    /// Begins a conversation by queueing the handshake.
    pub fn open(handshake: &Handshake, now: Timestamp) -> Session {
        let mut pipeline = Pipeline::default();
        pipeline.own.ask(now, |out| {
            handshake.write(out).into_iter().map(Request::Handshake)
        });
        Session {
            incoming: Incoming::new(RECEIVE_BUFFER, now),
            pipeline,
            latency: Histogram::default(),
            peer: Peer {
                node_key: handshake.node_key.clone(),
                ..Peer::default()
            },
            looks: Looks {
                are_behind_votes: handshake.looks_behind_votes,
                checked_at: now,
                ..Looks::default()
            },
            forms: Forms::default(),
            parts: PartAnswers::default(),
            wakes: Wakes::default(),
            inquiry: Inquiry::default(),
            early: VecDeque::new(),
        }
    }

    /// Logs in with what was not known when the handshake was queued: in front of it. Nothing may
    /// have been sent.
    pub fn log_in_first(&mut self, credentials: &Credentials, now: Timestamp) {
        let mut login = Vec::new();
        credentials.log_in(&mut login);
        self.pipeline
            .own
            .ask_first(now, &login, Request::Handshake(Part::Auth));
    }

    /// Logs in once more, with other credentials.
    pub fn log_in_again(&mut self, credentials: &Credentials, now: Timestamp) {
        self.pipeline.own.ask(now, |out| {
            credentials.log_in(out);
            [Request::Recheck(Part::Auth)]
        });
    }

    /// Queues the question whether the server may still vote, which also shows that it answers.
    /// What it reports about its memory is known before that.
    pub fn check(&mut self, ticket: Ticket, now: Timestamp) {
        self.look_for_master(now);
        self.looks.ask_for_memory(&mut self.pipeline, now);
        self.pipeline.own.ask(now, |out| {
            command::info(out, "replication");
            [Request::Check(ticket)]
        });
    }

    /// In front of a question: a server in cluster mode that is a replica by now names the master
    /// in the reply to this.
    fn look_for_master(&mut self, now: Timestamp) {
        if self.peer.standing == HandshakeState::Accepted && self.peer.identity.is_in_cluster() {
            self.look(now);
        }
    }

    /// Queues the question whether the server is still the master that it was, and what it
    /// remembers of itself.
    pub fn look(&mut self, now: Timestamp) {
        self.looks.look(&self.peer, &mut self.pipeline, now);
    }

    /// Has the node store a note about itself, if it still has what the last look has found.
    pub fn note(&mut self, new: &NewNote, now: Timestamp) {
        if let Some(key) = &self.peer.node_key {
            self.pipeline.own.ask(now, |out| {
                self.peer.identity.look.store(out, key.as_bytes(), new);
                [Request::Note]
            });
        }
    }

    /// Queues the questions what is stored under the key of a lock, how many calls wait for it, and
    /// until when.
    pub fn inspect(&mut self, ticket: Ticket, key: &[u8], is_fenced: bool, now: Timestamp) {
        self.look_for_master(now);
        self.pipeline.own.ask(now, |out| {
            inspection::ask(out, key, is_fenced);
            [
                Request::Value(is_fenced),
                Request::Waiting,
                Request::End(ticket, is_fenced),
            ]
        });
    }

    /// Queues a command.
    pub fn queue(&mut self, command: &Command<'_>, now: Timestamp) {
        self.send(command, self.forms.first(command.asked), now);
    }

    /// Queues a command once more, in a form it has not been sent in.
    pub fn ask_again(&mut self, command: &Command<'_>, now: Timestamp) {
        self.send(command, self.forms.next(command.asked), now);
    }

    fn send(&mut self, command: &Command<'_>, form: Form, now: Timestamp) {
        if !command.asked.is_release() {
            self.looks.before_vote(&self.peer, &mut self.pipeline, now);
        }
        self.pipeline
            .own
            .ask(now, |out| Request::write(command, form, out));
        if !command.asked.departs() {
            self.looks.behind_vote(&self.peer, &mut self.pipeline, now);
        }
    }

    /// Takes what the release or leave has found whose reply was the last event.
    pub fn take_wakes(&mut self) -> Wakes {
        std::mem::take(&mut self.wakes)
    }

    /// How long after the question the reply of the last look was read: what it shows may be as
    /// old.
    pub fn look_took(&self) -> Duration {
        self.looks.took
    }

    /// Lets no vote on this connection count any more: each is `fault` from now on. Releases are
    /// still served.
    pub fn reject(&mut self, fault: Fault) {
        self.peer.standing = HandshakeState::Rejected(fault);
    }

    /// Whether votes count here.
    pub fn standing(&self) -> HandshakeState {
        self.peer.standing
    }

    /// What the server has reported about itself so far.
    pub fn identity(&self) -> &ServerInfo {
        &self.peer.identity
    }

    /// The master that the server has named, if that one has the same keys: all are on one shard.
    pub fn named_master(&self) -> Option<&NamedMaster> {
        let named = self.peer.named_master.as_ref();
        named.filter(|_| self.peer.identity.is_in_only_shard())
    }

    /// Whether there may be another event.
    pub fn has_event(&self) -> bool {
        !self.incoming.is_empty()
            || self.looks.have_confirmed(&self.pipeline)
            || !(self.early.is_empty() || self.peer.awaits_cluster())
    }

    /// The next thing that the received bytes mean, or `None` until more are received. `log`: what
    /// the session follows, if it does.
    ///
    /// # Errors
    /// The bytes are not what was asked for. The connection must be given up.
    pub fn next_event(&mut self, log: &Log) -> Result<Option<SessionEvent>, ProtocolError> {
        loop {
            if !self.peer.awaits_cluster()
                && let Some(outcome) = self.early.pop_front()
            {
                return Ok(self.on_outcome(outcome));
            }
            if self.looks.have_confirmed(&self.pipeline)
                && let Some((sent, answer)) = self.looks.unconfirmed.take()
            {
                match self.on_outcome(Outcome::Operation(sent, answer)) {
                    None => continue,
                    event => return Ok(event),
                }
            }
            if self.incoming.is_empty() {
                return Ok(None);
            }
            // Even half a reply is too much when none is expected.
            let Some(&Awaited {
                request, asked_at, ..
            }) = self.pipeline.front(log)
            else {
                return Err(ProtocolError::Unrequested);
            };
            let decoded = match self.incoming.decode() {
                Err(ProtocolError::BulkTooLong) if request.is_for_value() => {
                    self.incoming.skip_long()?
                }
                decoded => decoded?,
            };
            let Some((reply, length)) = decoded else {
                return Ok(None);
            };
            if let Reply::Error(text) = reply {
                self.peer.learn_error(text);
            }
            let event = match request {
                Request::Check(ticket) => {
                    let refused = Part::InfoReplication.learn(reply, &mut self.peer.identity)?;
                    self.on_outcome(Outcome::Check(ticket, refused))
                }
                Request::Handshake(part) => {
                    let refused = part.learn(reply, &mut self.peer.identity)?;
                    if self.peer.asks_about_cluster() {
                        self.pipeline.own.ask(self.incoming.read_at, |out| {
                            command::cluster_info(out);
                            [Request::Handshake(Part::Cluster)]
                        });
                    }
                    self.peer.on_answer(part, refused)
                }
                Request::Recheck(part) => match part.learn(reply, &mut self.peer.identity)? {
                    _ if part == Part::InfoMemory => Some(SessionEvent::MemoryKnown),
                    // The log-in before this one stays.
                    Some(fault) if part == Part::Auth => Some(SessionEvent::LogInRefused(fault)),
                    Some(fault) => {
                        self.looks.failed(fault);
                        None
                    }
                    None if part == Part::Auth => Some(SessionEvent::LoggedInAnew),
                    None => self.peer.on_answer(part, None),
                },
                Request::Operation(sent) => {
                    let mut answer = sent.parse_reply(reply)?;
                    if sent.asked.departs() {
                        self.wakes.learn(sent.part, reply);
                    }
                    if sent.part > 0 {
                        answer = self.parts.finish(sent.part, answer, sent.asked.acquires());
                    }
                    self.answered(length, &request, asked_at);
                    if self.looks.are_awaited_behind(&sent, &self.pipeline) {
                        self.looks.unconfirmed = Some((sent, answer));
                        continue;
                    }
                    match self.on_outcome(Outcome::Operation(sent, answer)) {
                        None => continue,
                        event => return Ok(event),
                    }
                }
                Request::Part(sent) => {
                    self.parts.add(sent.part, sent.parse_reply(reply)?);
                    if sent.asked.departs() {
                        self.wakes.learn(sent.part, reply);
                    }
                    None
                }
                Request::Note => {
                    self.peer.on_note(reply)?;
                    Some(SessionEvent::Noted)
                }
                Request::Value(is_fenced) => {
                    self.inquiry.learn_value(reply, is_fenced)?;
                    None
                }
                Request::Waiting => {
                    self.inquiry.learn_waiting(reply)?;
                    None
                }
                Request::End(ticket, is_fenced) => {
                    let inspected = Box::new(self.inquiry.finish(reply, is_fenced)?);
                    self.on_outcome(Outcome::Inspected(ticket, inspected))
                }
            };
            self.answered(length, &request, asked_at);
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// Ends the conversation: every request that is still unanswered, oldest first, and what kind
    /// it was. A session that follows a log [leaves](Pipeline::leave) it first.
    pub fn abandon(&mut self) -> impl Iterator<Item = (Ticket, Abandoned)> + '_ {
        let unconfirmed = self
            .looks
            .unconfirmed
            .take()
            .map(|(sent, _)| (sent.ticket, Abandoned::of(&sent, true)));
        let unanswered =
            self.pipeline
                .abandon()
                .filter_map(|(request, is_written)| match request {
                    Request::Check(ticket) | Request::End(ticket, _) => {
                        Some((ticket, Abandoned::Check))
                    }
                    Request::Operation(sent) => {
                        Some((sent.ticket, Abandoned::of(&sent, is_written)))
                    }
                    _ => None,
                });
        let early = self.early.drain(..).map(|outcome| outcome.abandoned());
        early.chain(unconfirmed).chain(unanswered)
    }

    /// The event in what a reply has brought; none while the reply about the cluster is awaited.
    #[inline]
    fn on_outcome(&mut self, outcome: Outcome) -> Option<SessionEvent> {
        let moved = outcome
            .fault()
            .filter(|fault| fault.cause == Cause::NotMaster);
        if self.peer.awaits_cluster() && (moved.is_some() || !outcome.is_departure()) {
            self.early.push_back(outcome);
            return None;
        }
        if let Some(fault) = moved
            && self.peer.standing == HandshakeState::Accepted
            && self.named_master().is_some()
        {
            // It was not run, and the master can be asked instead.
            self.early.push_back(outcome);
            self.reject(fault);
            return Some(SessionEvent::Rejected(fault));
        }
        Some(self.judged(outcome))
    }

    fn judged(&mut self, outcome: Outcome) -> SessionEvent {
        match outcome {
            Outcome::Check(ticket, refused) => {
                SessionEvent::Answered(ticket, Answer::Vote(self.peer.checked(refused)))
            }
            Outcome::Inspected(ticket, mut inspected) => {
                inspected.vote = self.peer.filtered(inspected.vote);
                SessionEvent::Inspected(ticket, inspected)
            }
            Outcome::Operation(sent, answer) => {
                self.forms.learn(&sent, &answer);
                self.peer.judged(&sent, answer)
            }
        }
    }

    /// The reply to this request, which was expected first, has been understood.
    fn answered(&mut self, length: usize, request: &Request, asked_at: Timestamp) {
        self.taken(length, request.is_release());
        let time = self.incoming.read_at.since(asked_at);
        match request {
            Request::Operation(_) => self.latency.record(time),
            // What it was asked behind is as old as both.
            Request::Handshake(Part::Cluster) => self.looks.took += time,
            Request::Handshake(_) | Request::Recheck(_) => self.looks.took = time,
            _ => {}
        }
    }

    /// The reply that was expected first has been understood, which is to a release if so.
    #[inline]
    fn taken(&mut self, length: usize, is_release: bool) {
        self.incoming.taken(length);
        self.pipeline.pop(is_release);
    }
}

/// Shows counts only: the buffers hold tokens and passwords.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("standing", &self.peer.standing)
            .field("backlog", &self.pipeline.backlog())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
