//! One node's ordered connection: made when needed, kept, made again when lost.
//!
//! ```text
//!          may_open, open              address           writable
//!   Closed ─────────► Resolving ───────────► Connecting ─────────► Open
//!     ▲   (back-off)     │ no address            │ refused           │ closed, protocol error,
//!     └──────────────────┴───────────────────────┴───────────────────┘ silent or overfull
//! ```
//!
//! Commands may be queued in every state but `Closed`: they go out, in order, behind the handshake. A release can
//! therefore never overtake its own `SET`. Releases that the node has not run are *pending*: those that a lost
//! connection left unanswered are sent first on the next one, behind the handshake (rule 2.9); those that the node
//! could not run are sent again after a pause.
//!
//! An ordered connection answers nothing while its oldest request is unanswered. So a node whose oldest request is
//! older than the node timeout is *overdue*, and gets new requests only now and then, until it answers (rule 7.7).

mod duplicate;
mod faults;
mod following;
mod interest;
mod pending;
pub(crate) mod probe;
mod probing;
mod race;

use super::socket_state::SocketState;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::health::Health;
use crate::algorithm::node::NodeId;
use crate::algorithm::pending_release::ReleaseConditions;
use crate::algorithm::quarantine::Quarantine;
use crate::algorithm::time::Timestamp;
use crate::os::resolve::{self, Resolution};
use crate::os::stream::{self, Stream};
use crate::os::transport::TransportConfig;
use crate::os::waker::Waker;
use crate::protocol::endpoint::{Address, Endpoint};
use crate::protocol::server_info::ServerInfo;
use crate::protocol::session::{Command, HandshakeState, Log, Session};
use pending::PendingReleases;
use probe::Probe;
use race::{Progress, Race};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Unanswered requests beyond which a node gets no new `SET`s, only its releases. Many threads and a far node make a
/// long backlog, which does no harm: what matters is how old the oldest request is. This only leaves room for releases.
const BACKLOG_LIMIT: usize = BACKLOG_HARD_LIMIT / 2;
/// Unanswered requests, or unsent bytes, beyond which a connection is closed.
const BACKLOG_HARD_LIMIT: usize = 65_536;
const UNSENT_HARD_LIMIT: usize = 8 * 1024 * 1024;
/// How long a connection may take to be made.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// How long an answer may be overdue before the connection is closed. Long, because that does not cancel what was sent.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);
/// Time after which a connection is read before it is used again: what is written to one that the server has closed is
/// lost. Long against the time between two calls of a busy program, which is spared the system calls, and short against
/// the time after which servers close idle connections.
const IDLE_CHECK: Duration = Duration::from_millis(1);

/// One node's connection.
pub(super) struct NodeConnection {
    pub(super) session: Session,
    /// Whether the node's grants count, over all connections.
    pub(super) quarantine: Quarantine,
    /// What the node reported of itself last, on this connection or an earlier one.
    pub(super) server_info: ServerInfo,
    node: NodeId,
    endpoint: Endpoint,
    transport: TransportConfig,
    socket: SocketState,
    health: Health,
    /// The releases that the node has not run.
    pub(super) pending: PendingReleases,
    race: Race,
    probe: Probe,
    /// The node has ended the connection so, and is asked first whether it speaks TLS, until then at most.
    ended: Option<(Fault, Timestamp)>,
    /// A look-up that may outlast the connection it was begun for: there is never more than one.
    resolution: Option<Resolution>,
    opened_at: Timestamp,
    /// When the connection was last read from.
    checked_at: Timestamp,
    /// When bytes last left for the node, on this connection or an earlier one.
    wrote_at: Option<Timestamp>,
    node_timeout: Duration,
    waker: Arc<Waker>,
}

/// What one read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    Nothing,
    /// All there was, or all before the end of the connection.
    Something,
    /// As much as there was room for: there may be more.
    Much,
}

impl NodeConnection {
    pub(super) fn new(
        node: NodeId,
        (endpoint, transport, quarantine): (Endpoint, TransportConfig, Quarantine),
        node_timeout: Duration,
        waker: Arc<Waker>,
    ) -> NodeConnection {
        NodeConnection {
            session: Session::open(endpoint.handshake(), Timestamp::ORIGIN),
            quarantine,
            server_info: ServerInfo::default(),
            node,
            endpoint,
            transport,
            socket: SocketState::Closed,
            health: Health::new(),
            pending: PendingReleases::default(),
            race: Race::new(),
            probe: Probe::default(),
            ended: None,
            resolution: None,
            opened_at: Timestamp::ORIGIN,
            checked_at: Timestamp::ORIGIN,
            wrote_at: None,
            node_timeout,
            waker,
        }
    }

    /// Whether commands can be queued.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.socket, SocketState::Closed)
    }

    /// Whether it is being made, with a handshake that is not over.
    pub(super) fn is_connecting(&self) -> bool {
        !self.is_closed() && self.session.standing() == HandshakeState::Pending
    }

    /// Whether bytes may flow both ways.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.socket, SocketState::Open(_))
    }

    /// Whether it stands, and the node may vote on it.
    #[inline]
    pub(super) fn is_in_use(&self) -> bool {
        self.is_open() && self.session.standing() == HandshakeState::Accepted
    }

    /// Whether the key of a release may be on the node, as far as this client knows what it has written.
    pub(super) fn may_hold(&self, conditions: &ReleaseConditions) -> bool {
        conditions.set_since.is_none_or(|since| self.wrote_at.is_some_and(|wrote_at| wrote_at >= since))
    }

    /// How far the connection has come.
    pub(super) fn phase(&self) -> Phase {
        match self.socket {
            SocketState::Closed | SocketState::Connecting(_) => Phase::Connect,
            SocketState::Resolving => Phase::Resolve,
            SocketState::Open(_) if self.session.standing() == HandshakeState::Pending => Phase::Handshake,
            SocketState::Open(_) => Phase::Reply,
        }
    }

    /// Whether requests can be queued without another check of the connection: it is open, was read a moment ago, and
    /// the node answers in time. This is the common case, and the check is cheap.
    pub(super) fn is_ready(&self, now: Timestamp) -> bool {
        self.is_in_use()
            && now.since(self.checked_at) <= IDLE_CHECK
            && !self.is_overdue(now)
            && !NodeConnection::is_backlog((self.session.backlog(), self.session.traffic.unsent().len()))
    }

    /// Whether the connection should be read first: it may have been closed, or an answer that seems overdue have come.
    pub(super) fn needs_read(&self, now: Timestamp) -> bool {
        self.is_open() && (now.since(self.checked_at) > IDLE_CHECK || self.is_overdue(now))
    }

    /// Whether a `SET` may be queued now. If it is, [`note_request`](NodeConnection::note_request) is to be called
    /// first.
    ///
    /// # Errors
    /// Why not. A closed connection must be opened first, if [`may_open`](NodeConnection::may_open) allows it.
    pub(super) fn admit(&mut self, now: Timestamp) -> Result<(), Fault> {
        if let HandshakeState::Rejected(fault) = self.session.standing() {
            return Err(fault);
        }
        if self.session.backlog() > BACKLOG_LIMIT {
            return Err(Fault::new(Phase::Reply, Cause::Backlog));
        }
        if !self.is_overdue(now) {
            return Ok(());
        }
        let overdue = self.timed_out(now);
        if !self.health.is_suspect() {
            self.health.failed(overdue, now, self.salt());
        }
        // A connection that is still being made is not made faster by more requests.
        if self.is_open() && self.health.may_ask(now).is_ok() { Ok(()) } else { Err(overdue) }
    }

    /// A request is about to be queued. That uses up an overdue node's chance; a round that finds no quorum to ask does
    /// not.
    pub(super) fn note_request(&mut self, now: Timestamp) {
        if self.is_overdue(now) {
            self.health.failed(self.health.fault(), now, self.salt());
        }
    }

    /// Queues a command.
    pub(super) fn queue(&mut self, command: &Command<'_>, now: Timestamp) {
        if !command.operation.is_release() {
            self.note_request(now);
        }
        self.session.queue(command, now);
    }

    /// Whether a closed connection may be opened now.
    ///
    /// # Errors
    /// The fault for which it stays closed until its back-off is over.
    pub(super) fn may_open(&self, now: Timestamp) -> Result<(), Fault> {
        self.health.may_ask(now)
    }

    /// Whether a release would be run on the present connection, as far as the handshake was answered.
    pub(super) fn runs_releases(&self) -> bool {
        match self.session.standing() {
            _ if self.is_closed() => false,
            HandshakeState::Pending | HandshakeState::Accepted => true,
            HandshakeState::Rejected(fault) => {
                !matches!(fault.cause, Cause::Auth | Cause::Loading | Cause::NotMaster | Cause::ReadOnly)
            }
        }
    }

    /// When something can be done next for the releases that the node has not run, if the node sends nothing until
    /// then.
    pub(super) fn pending_due(&self) -> Timestamp {
        let due = match self.socket {
            SocketState::Closed => self.health.not_before(),
            SocketState::Resolving | SocketState::Connecting(_) => self.opened_at.after(CONNECT_LIMIT),
            // What was asked is answered first.
            SocketState::Open(_) if self.session.follows() || self.session.backlog() > 0 => Timestamp::NEVER,
            SocketState::Open(_) if self.runs_releases() => self.pending.paused_until(),
            SocketState::Open(_) => self.health.not_before(),
        };
        due.min(self.pending.first_end())
    }

    /// Begins to connect.
    ///
    /// # Errors
    /// It failed at once. The connection must be [`close`](NodeConnection::close)d.
    pub(super) fn open(&mut self, now: Timestamp) -> Result<(), Fault> {
        let latency = std::mem::take(&mut self.session.latency);
        self.session = Session::open(self.endpoint.handshake(), now);
        self.session.latency = latency;
        self.opened_at = now;
        self.checked_at = now;
        self.pending.reconnected();
        match self.endpoint.address().clone() {
            Address::Unix(path) => {
                let attempt = self.race.begin_with(Stream::connect_unix(&path));
                self.begin_connecting(attempt, now)
            }
            Address::Tcp(host, port) => match resolve::literal(&host, port) {
                Some(address) => {
                    let attempt = self.race.begin_with(Stream::connect_tcp(address));
                    self.begin_connecting(attempt, now)
                }
                None if self.race.first().is_some() => {
                    let attempt = self.race.begin(self.node_timeout, now);
                    self.begin_connecting(attempt, now)
                }
                None => {
                    if self.resolution.is_none() {
                        let resolution = Resolution::begin(&host, port, Arc::clone(&self.waker));
                        let failed = |error: io::Error| Fault::new(Phase::Resolve, stream::cause_of(&error));
                        self.resolution = Some(resolution.map_err(failed)?);
                    }
                    self.socket = SocketState::Resolving;
                    self.resolved(now)
                }
            },
        }
    }

    /// Goes on to connect when the host name has been looked up.
    pub(super) fn resolved(&mut self, now: Timestamp) -> Result<(), Fault> {
        let (SocketState::Resolving, Some(resolution)) = (&self.socket, &self.resolution) else { return Ok(()) };
        let Some(addresses) = resolution.answer() else { return Ok(()) };
        self.resolution = None;
        self.race.learn(addresses);
        let attempt = self.race.begin(self.node_timeout, now);
        self.begin_connecting(attempt, now)
    }

    /// Takes a connection that is being made as far as it goes without waiting. Attempts that are lost at once never
    /// poll, and must not leave it half made for ever.
    pub(super) fn advance(&mut self, now: Timestamp) -> Result<(), Fault> {
        self.resolved(now)?;
        if let SocketState::Connecting(_) = self.socket {
            self.socket = match self.race.advance(now)? {
                Progress::Made(stream) => {
                    self.session.connected(now);
                    SocketState::Open(self.transport.begin(stream).map_err(|error| self.broken(&error))?)
                }
                Progress::Making(stream) => SocketState::Connecting(stream),
            };
        }
        self.probe(now)
    }

    /// Writes what the kernel takes. True when bytes are left for which the stream must become writable.
    pub(super) fn flush(&mut self, log: &Log, now: Timestamp) -> Result<bool, Fault> {
        let (SocketState::Open(transport), None) = (&mut self.socket, self.ended) else { return Ok(false) };
        while let unsent = self.session.unsent(log)
            && !unsent.is_empty()
        {
            match transport.write(unsent) {
                Ok(count) => {
                    self.session.sent(count);
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
        self.checked_at = now;
        let (SocketState::Open(transport), None) = (&mut self.socket, self.ended) else {
            return Ok(Received::Nothing);
        };
        self.session.traffic.reading(now);
        let space = self.session.traffic.space();
        let size = space.len();
        match transport.read(space) {
            Ok(0) => Err(Fault::new(self.phase(), Cause::Closed)),
            Ok(count) => {
                self.session.traffic.received(count);
                let is_much = count == size || transport.has_unread();
                Ok(if is_much { Received::Much } else { Received::Something })
            }
            Err(error) if stream::would_block(&error) => Ok(Received::Nothing),
            Err(error) => Err(self.broken(&error)),
        }
    }

    /// The session has rejected the node.
    pub(super) fn note_rejected(&mut self, fault: Fault, now: Timestamp) {
        self.health.failed(fault, now, self.salt());
    }

    /// The node has answered whether a lock may be acquired or kept. A handshake is not enough, nor are the releases
    /// that follow at once: a node that can do no more would be asked for ever without a delay.
    pub(super) fn note_answer(&mut self) {
        if self.session.standing() == HandshakeState::Accepted {
            self.health.answered();
        }
    }

    /// Takes the node's vote away on this connection.
    pub(super) fn reject(&mut self, fault: Fault, now: Timestamp) {
        self.session.reject(fault);
        self.note_rejected(fault, now);
    }

    /// Whether a node that may not vote should be asked anew, on another connection, if it may by now. Until then the
    /// present one stays, for the releases that follow their `SET`s.
    pub(super) fn retry_reason(&self, now: Timestamp) -> Option<Fault> {
        match self.session.standing() {
            HandshakeState::Rejected(fault)
                if self.is_open() && self.session.backlog() == 0 && self.may_open(now).is_ok() =>
            {
                Some(fault)
            }
            _ => None,
        }
    }

    /// Whether a request would be answered soon, as far as is known.
    pub(super) fn is_responsive(&self, now: Timestamp) -> bool {
        self.is_in_use() && !self.is_overdue(now)
    }

    /// Whether it is worth a look: it answers in time, or it is not known to hang, as no thread has read what it has
    /// replied.
    pub(super) fn may_be_looked_at(&self, now: Timestamp) -> bool {
        self.is_in_use() && !(self.is_overdue(now) && self.health.is_suspect())
    }

    /// Closes the connection, whose session must have been abandoned.
    pub(super) fn close(&mut self, fault: Fault, now: Timestamp) {
        debug_assert_eq!(self.session.backlog(), 0);
        let worked = self.is_in_use();
        let is_closed = fault.cause == Cause::Closed;
        let probe = self.probe_after(fault);
        if let (Some(stream), false) = (self.socket.stream(), is_closed) {
            stream.reset_on_close();
        }
        if !worked {
            if self.is_open() { self.race.skip_first() } else { self.race.forget() }
        }
        self.race.stop();
        (self.socket, self.probe, self.ended) = (SocketState::Closed, probe, None);
        match (worked && is_closed, self.session.standing()) {
            (true, _) => self.health.disconnected(fault, now.since(self.opened_at), now, self.salt()),
            (false, HandshakeState::Rejected(_)) => {} // counted when it was rejected
            (false, _) => self.health.failed(fault, now, self.salt()),
        }
    }

    /// Closes the connection as it is, and does not count it as lost.
    pub(super) fn close_inherited(&mut self) {
        (self.socket, self.probe, self.ended) = (SocketState::Closed, Probe::default(), None);
        self.race.stop();
    }

    fn begin_connecting(&mut self, attempt: Result<Arc<Stream>, Fault>, now: Timestamp) -> Result<(), Fault> {
        self.socket = SocketState::Connecting(attempt?);
        // The time of the name's look-up does not count for the connection.
        self.opened_at = now;
        Ok(())
    }

    fn is_overdue(&self, now: Timestamp) -> bool {
        self.session.waiting_since().is_some_and(|since| now.since(since) > self.node_timeout)
    }

    fn broken(&self, error: &io::Error) -> Fault {
        Fault::new(self.phase(), stream::cause_of(error))
    }

    fn salt(&self) -> u64 {
        self.node.index() as u64 + 1
    }
}
