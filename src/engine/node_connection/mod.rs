//! One node's ordered connection: made when needed, kept, made again when lost.
//!
//! ```text
//!          may_ask, open               address           writable
//!   Closed ─────────► Resolving ───────────► Connecting ─────────► Open
//!     ▲   (back-off)     │ no address            │ refused           │ closed, protocol error,
//!     └──────────────────┴───────────────────────┴───────────────────┘ silent or overfull
//! ```
//!
//! Commands may be queued in every state but `Closed`: they go out, in order, behind the handshake.
//! A release can therefore never overtake its own `SET`. Releases that the node has not run are
//! *pending*: those that a lost connection left unanswered are sent first on the next one, behind
//! the handshake (rule 2.9); those that the node could not run are sent again after a pause.
//!
//! An ordered connection answers nothing while its oldest request is unanswered. So a node whose
//! oldest request is older than the node timeout is *overdue*, and gets new requests only now and
//! then, until it answers (rule 7.7).

mod faults;
mod interest;
mod link;
pub(super) mod login;
mod pending;
pub(crate) mod probe;
mod probing;
mod race;
#[cfg(test)]
mod tests;

use super::socket_state::SocketState;
use crate::algorithm::health::Health;
use crate::algorithm::incarnation::run_id::RunId;
use crate::algorithm::node::NodeId;
use crate::algorithm::pending_release::ReleaseConditions;
use crate::algorithm::quarantine::Quarantine;
use crate::algorithm::time::Timestamp;
use crate::fault::credentials_error::CredentialsError;
use crate::fault::{Cause, Fault, Phase};
use crate::os::stream;
use crate::os::transport::TransportConfig;
use crate::os::waker::Waker;
use crate::protocol::credentials::Credentials;
use crate::protocol::endpoint::Endpoint;
use crate::protocol::moved::NamedMaster;
use crate::protocol::server_info::ServerInfo;
use crate::protocol::session::backlog::{Backlog, SOFT_LIMIT};
use crate::protocol::session::{Command, HandshakeState, Log, Session};
use link::Link;
use login::Use;
use pending::PendingReleases;
use probing::Probing;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long a connection may take to be made.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// Time after which a connection is polled or read before it is used again: what is written to one
/// that the server has closed is lost. Long against the time between two calls of a busy program,
/// which is spared the system calls, and short against the time after which servers close idle
/// connections.
pub(super) const IDLE_CHECK: Duration = Duration::from_millis(1);

/// One node's connection.
pub(super) struct NodeConnection {
    pub(super) session: Session,
    /// Whether the node's grants count, over all connections.
    pub(super) quarantine: Quarantine,
    /// What the node reported of itself last, on this connection or an earlier one.
    pub(super) server_info: ServerInfo,
    /// The releases that the node has not run.
    pub(super) pending: PendingReleases,
    pub(super) link: Link,
    probing: Probing,
    pub(super) health: Health,
    /// When bytes last left for the node, on this connection or an earlier one.
    wrote_at: Option<Timestamp>,
    node_timeout: Duration,
}

/// What one read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) bytes: usize,
    /// As much as there was room for: there may be more.
    pub(super) is_full: bool,
    /// There is more, which poll does not show.
    pub(super) has_unread: bool,
}

impl Received {
    pub(super) const NOTHING: Received = Received {
        bytes: 0,
        is_full: false,
        has_unread: false,
    };
}

impl NodeConnection {
    pub(super) fn new(
        node: NodeId,
        endpoint: Endpoint,
        transport: TransportConfig,
        quarantine: Quarantine,
        node_timeout: Duration,
        waker: Arc<Waker>,
    ) -> NodeConnection {
        NodeConnection {
            session: Session::open(endpoint.handshake(), Timestamp::ORIGIN),
            quarantine,
            server_info: ServerInfo::default(),
            pending: PendingReleases::default(),
            link: Link::new(endpoint, transport, node_timeout, waker),
            probing: Probing::default(),
            health: Health::new(node.index() as u64 + 1),
            wrote_at: None,
            node_timeout,
        }
    }

    /// Whether commands can be queued.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.link.socket, SocketState::Closed)
    }

    /// Whether it is being made, with a handshake that is not over.
    pub(super) fn is_connecting(&self) -> bool {
        !self.is_closed() && self.session.standing() == HandshakeState::Pending
    }

    /// Whether bytes may flow both ways.
    pub(super) fn is_open(&self) -> bool {
        self.link.is_open()
    }

    /// Whether it is established, and the node may vote on it.
    #[inline]
    pub(super) fn is_in_use(&self) -> bool {
        self.is_open() && self.session.standing() == HandshakeState::Accepted
    }

    /// Whether the key of a release may be on the node, as far as this client knows what it has
    /// written.
    pub(super) fn may_hold(&self, conditions: &ReleaseConditions) -> bool {
        conditions
            .set_since
            .is_none_or(|since| self.wrote_at.is_some_and(|wrote_at| wrote_at >= since))
    }

    /// How far the connection has come.
    pub(super) fn phase(&self) -> Phase {
        match self.link.socket {
            SocketState::Closed | SocketState::Connecting(_) => Phase::Connect,
            SocketState::Resolving if self.link.awaits_credentials() => Phase::Handshake,
            SocketState::Resolving => Phase::Resolve,
            SocketState::Open(_) if self.session.standing() == HandshakeState::Pending => {
                Phase::Handshake
            }
            SocketState::Open(_) => Phase::Reply,
        }
    }

    /// Whether requests can be queued without another check of the connection: it is open, was read
    /// a moment ago, and the node answers in time.
    pub(super) fn is_ready(&self, now: Timestamp) -> bool {
        let is_read = now.since(self.session.incoming.read_at) <= IDLE_CHECK;
        self.is_in_use() && is_read && !self.backlog().is_late(self.node_timeout, now)
    }

    /// Whether the connection should be read first: it may have been closed, or an answer that
    /// seems overdue have come.
    pub(super) fn needs_read(&self, now: Timestamp) -> bool {
        self.is_open()
            && (now.since(self.session.incoming.read_at) > IDLE_CHECK || self.is_overdue(now))
    }

    /// Whether a `SET` may be queued now. If it is, [`on_request`](NodeConnection::on_request)
    /// is to be called first.
    ///
    /// # Errors
    /// Why not. A closed connection must be opened first, if its [`health`](Health::may_ask) allows
    /// it.
    pub(super) fn admit(&mut self, now: Timestamp) -> Result<(), Fault> {
        if let HandshakeState::Rejected(fault) = self.session.standing() {
            return Err(fault);
        }
        if self.backlog().requests > SOFT_LIMIT {
            return Err(Fault::new(Phase::Reply, Cause::Backlog));
        }
        if !self.is_overdue(now) {
            return Ok(());
        }
        let overdue = self.timed_out(now);
        if !self.health.is_suspect() {
            self.health.failed(overdue, now);
        }
        // A connection that is still being made is not made faster by more requests.
        if self.is_open() && self.health.may_ask(now).is_ok() {
            Ok(())
        } else {
            Err(overdue)
        }
    }

    /// A request is about to be queued. That uses up an overdue node's chance; a round that finds
    /// no quorum to ask does not.
    pub(super) fn on_request(&mut self, now: Timestamp) {
        if self.is_overdue(now) {
            self.health.failed(self.health.fault(), now);
        }
    }

    /// Queues a command.
    pub(super) fn queue(&mut self, command: &Command<'_>, now: Timestamp) {
        if !command.operation.is_release() {
            self.on_request(now);
        }
        self.session.queue(command, now);
    }

    /// Whether a release would be run on the present connection, as far as the handshake was
    /// answered.
    pub(super) fn runs_releases(&self) -> bool {
        match self.session.standing() {
            _ if self.is_closed() => false,
            HandshakeState::Pending | HandshakeState::Accepted => true,
            HandshakeState::Rejected(fault) => !matches!(
                fault.cause,
                Cause::Auth | Cause::Loading | Cause::NotMaster | Cause::ReadOnly
            ),
        }
    }

    /// Begins to connect.
    ///
    /// # Errors
    /// It failed at once. The connection must be [`close`](NodeConnection::close)d.
    pub(super) fn open(&mut self, now: Timestamp) -> Result<(), Fault> {
        let latency = std::mem::take(&mut self.session.latency);
        self.session = Session::open(self.link.endpoint.handshake(), now);
        self.session.latency = latency;
        self.pending.reconnected();
        match self.link.login.as_mut().map(|login| login.begin(now)) {
            Some(false) => {
                self.link.prepare(now);
                Ok(())
            }
            Some(true) | None => self.link.open(now),
        }
    }

    /// Takes what the provider of the credentials has returned, and returns what is to be done.
    ///
    /// # Errors
    /// The connection waited for this, and cannot be made. It must be
    /// [`close`](NodeConnection::close)d.
    pub(super) fn learn_credentials(
        &mut self,
        returned: Result<Credentials, CredentialsError>,
        now: Timestamp,
    ) -> Result<Use, Fault> {
        let is_closed = self.is_closed();
        let Some(login) = &mut self.link.login else {
            return Ok(Use::Keep);
        };
        let user = self.link.endpoint.user();
        let returned = returned.map(|credentials| credentials.or_user(user));
        login.learn(returned, is_closed, now)
    }

    /// Begins to connect, where the connection waited for credentials of the provider, or logs in
    /// once more. One that is being made logs in with the latest.
    ///
    /// # Errors
    /// As [`open`](NodeConnection::open).
    pub(super) fn log_in(&mut self, used: Use, now: Timestamp) -> Result<(), Fault> {
        if used == Use::Begin {
            self.link.open(now)?;
            return self.advance(now);
        }
        if self.is_open()
            && let Some(latest) = self.link.next_credentials()
        {
            self.session.log_in_again(latest, now);
        }
        Ok(())
    }

    /// Takes a connection that is being made as far as it goes without waiting. Attempts that are
    /// lost at once never poll, and must not leave it half made for ever.
    pub(super) fn advance(&mut self, now: Timestamp) -> Result<(), Fault> {
        if self.link.advance(now)? {
            if let Some(latest) = self.link.next_credentials() {
                self.session.log_in_first(latest, now);
            }
            self.session.pipeline.connected(now);
        }
        self.probing.advance(&self.link, self.probed_at(), now)
    }

    /// Writes what the kernel takes. True when bytes are left for which the stream must become
    /// writable.
    #[inline]
    pub(super) fn flush(&mut self, log: &Log, now: Timestamp) -> Result<bool, Fault> {
        let (SocketState::Open(transport), None) = (&mut self.link.socket, self.probing.ended)
        else {
            return Ok(false);
        };
        while let unsent = self.session.pipeline.unsent(log)
            && !unsent.is_empty()
        {
            match transport.write(unsent) {
                Ok(count) => {
                    self.session.pipeline.sent(count);
                    self.wrote_at = self.wrote_at.max(Some(now));
                }
                Err(error) if stream::would_block(&error) => return Ok(transport.wants_write(true)),
                Err(error) => return Err(self.broken(&error)),
            }
        }
        match transport.flush() {
            Ok(()) => Ok(transport.wants_write(false)),
            Err(error) => Err(self.broken(&error)),
        }
    }

    /// Reads once.
    pub(super) fn read(&mut self, now: Timestamp) -> Result<Received, Fault> {
        self.session.incoming.read_at = now;
        let (SocketState::Open(transport), None) = (&mut self.link.socket, self.probing.ended)
        else {
            return Ok(Received::NOTHING);
        };
        let space = self.session.incoming.space();
        let size = space.len();
        match transport.read(space) {
            Ok(0) => Err(Fault::new(self.phase(), Cause::Closed)),
            Ok(count) => {
                self.session.incoming.received(count);
                Ok(Received {
                    bytes: count,
                    is_full: count == size,
                    has_unread: transport.has_unread(),
                })
            }
            Err(error) if stream::would_block(&error) => Ok(Received::NOTHING),
            Err(error) => Err(self.broken(&error)),
        }
    }

    /// The node has answered whether a lock may be acquired or kept. A handshake is not enough, nor
    /// are the releases that follow at once: a node that can do no more would be asked for ever
    /// without a delay.
    pub(super) fn on_answer(&mut self) {
        if self.session.standing() == HandshakeState::Accepted {
            self.health.answered();
        }
    }

    /// Takes the node's vote away on this connection.
    pub(super) fn reject(&mut self, fault: Fault, now: Timestamp) {
        self.session.reject(fault);
        self.health.failed(fault, now);
    }

    /// Whether a node that may not vote should be asked anew, on another connection, if it may by
    /// now. Until then the present one stays, for the releases that follow their `SET`s.
    pub(super) fn retry_reason(&self, now: Timestamp) -> Option<Fault> {
        match self.session.standing() {
            HandshakeState::Rejected(fault)
                if self.is_open()
                    && self.backlog().requests == 0
                    && self.health.may_ask(now).is_ok() =>
            {
                Some(fault)
            }
            _ => None,
        }
    }

    /// The master that the server has named in place of itself, if the next connection is to lead
    /// there. One that is named by a server that was named itself is followed only where that one
    /// was the master before.
    pub(super) fn named_master(&self) -> Option<&NamedMaster> {
        match self.session.standing() {
            HandshakeState::Rejected(fault)
                if fault.cause == Cause::NotMaster
                    && !(self.link.is_redirected() && fault.phase == Phase::Handshake) =>
            {
                let named = self.session.named_master();
                named.filter(|named| self.link.can_follow(named))
            }
            _ => None,
        }
    }

    /// Whether a request would be answered soon, as far as is known.
    pub(super) fn is_responsive(&self, now: Timestamp) -> bool {
        self.is_in_use() && !self.is_overdue(now)
    }

    /// Whether it is worth a look: it answers in time, or it is not known to hang, as no thread has
    /// read what it has replied.
    pub(super) fn may_be_looked_at(&self, now: Timestamp) -> bool {
        self.is_in_use() && !(self.is_overdue(now) && self.health.is_suspect())
    }

    /// Whether the node can follow the log: it votes, and has nothing of its own to answer, to be
    /// sent, or to run.
    pub(super) fn may_follow(&self, log: &Log) -> bool {
        self.is_in_use()
            && self.probing.ended.is_none()
            && self.pending.is_empty()
            && self.session.may_follow(log)
    }

    /// Whether the node has not answered what is in the log in time, or is too far behind to be
    /// asked more.
    pub(super) fn is_late(&self, log: &Log, now: Timestamp) -> bool {
        self.session
            .pipeline
            .backlog_in(log)
            .is_late(self.node_timeout, now)
    }

    /// Whether a grant may come from a connection to another URL of a server, which counts as the
    /// other node's.
    pub(super) fn may_grant_for_another(&self, now: Timestamp) -> bool {
        let is_duplicate = self.session.standing().is_duplicate();
        is_duplicate
            && self.is_open()
            && !self.is_overdue(now)
            && self.backlog().requests <= SOFT_LIMIT
    }

    /// The process at the other end, if it is known and may have voted in a round in flight. A
    /// round lasts two node timeouts at most.
    pub(super) fn run_id(&self, now: Timestamp) -> Option<RunId> {
        let counts =
            self.is_open() || now.since(self.session.incoming.read_at) <= self.node_timeout * 2;
        (counts && self.session.standing() == HandshakeState::Accepted)
            .then(|| self.session.identity().run_id())?
    }

    /// Keeps what the node has reported of itself on this connection.
    pub(super) fn learn_server_info(&mut self) {
        self.server_info = self.session.identity().clone();
    }

    /// Closes the connection, whose session must have been abandoned.
    pub(super) fn close(&mut self, fault: Fault, now: Timestamp) {
        debug_assert_eq!(self.backlog().requests, 0);
        let worked = self.is_in_use();
        let is_redirected = self.named_master().is_some();
        let lasted = now.since(self.link.opened_at);
        self.probing.close(self.may_be_tls(fault));
        self.link.close(worked, fault);
        match (
            worked && fault.cause == Cause::Closed || is_redirected,
            self.session.standing(),
        ) {
            (true, _) => self.health.disconnected(fault, lasted, now),
            (false, HandshakeState::Rejected(_)) => {} // counted when it was rejected
            (false, _) => self.health.failed(fault, now),
        }
    }

    /// Closes the connection as it is, and does not count it as lost.
    pub(super) fn close_inherited(&mut self) {
        self.probing = Probing::default();
        self.link.discard();
    }

    /// What the node has not replied to, but for what is in the log.
    fn backlog(&self) -> Backlog {
        self.session.pipeline.backlog()
    }

    fn is_overdue(&self, now: Timestamp) -> bool {
        self.backlog().is_overdue(self.node_timeout, now)
    }

    fn broken(&self, error: &io::Error) -> Fault {
        Fault::new(self.phase(), stream::cause_of(error))
    }
}
