//! What the replies on a connection amount to.

use crate::fault::Fault;
use crate::protocol::form::Answer;
use crate::protocol::inspection::Inspected;
use crate::protocol::sent_operation::Ticket;

/// What the bytes received so far amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// A node's answer in a round. After [`Answer::WrongForm`], call
    /// [`ask_again`](super::Session::ask_again), or drop it: an acquisition must not be sent behind
    /// the release of an attempt that was abandoned meanwhile.
    Answered(Ticket, Answer),
    /// The node did not run the release of a round, for this reason: it is to be sent again later.
    NotRun(Ticket, Fault),
    /// A node's answer to the question which holder has a lock.
    Inspected(Ticket, Box<Inspected>),
    /// The handshake was accepted: the server's [`identity`](super::Session::identity) is known as
    /// far as the server reports it.
    Accepted,
    /// The server has reported again what it is: its [`identity`](super::Session::identity) is up
    /// to date.
    Rechecked,
    /// The server has reported how much memory it may use: the
    /// [`identity`](super::Session::identity) is up to date.
    MemoryKnown,
    /// The node was to store a note: the [`identity`](super::Session::identity) has what it
    /// remembers now.
    Noted,
    /// The server has accepted credentials that replace others.
    LoggedInAnew,
    /// The server has refused credentials that were to replace others, and those stay.
    LogInRefused(Fault),
    /// The handshake was refused, or the server has become a replica; no vote on this connection
    /// counts.
    Rejected(Fault),
}
