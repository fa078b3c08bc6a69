//! What the rest of the library sees of the network: take, release, undo.
//!
//! All threads of a client share one engine, and with it one ordered connection per node. There is
//! no I/O thread: a thread that waits also polls ([`driver`](super::driver)).

use super::channel_watch::ChannelWatch;
use super::credentials;
use super::driver::{Driver, Reactor};
use super::interrupt::Interrupt;
use super::node_connection::NodeConnection;
pub(crate) use super::nodes::EngineConfig;
use super::nodes::Nodes;
use super::nodes::status::NodeStatusSnapshot;
pub(crate) use super::nodes::submission::{
    AttemptRecord, AttemptRequest, InTurn, KeyOrigin, LeaseRequest, Release, ReleaseScope,
};
use super::nodes::submission::{Posting, Submission};
pub(crate) use super::rounds::RoundResult;
use super::seat::Seat;
use crate::algorithm::fence::Agreement;
use crate::algorithm::kind::Kind;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::pending_release::Settled;
use crate::algorithm::quarantine::Quarantine;
use crate::algorithm::queue::{Entry, TakeRequest, TicketRequest};
use crate::algorithm::time::{Clock, LeaseTime, Readings, Timestamp};
use crate::events::event_queue::ReleaseContext;
use crate::fault::Fault;
use crate::os::background_call::BackgroundCall;
use crate::os::transport::TransportConfig;
use crate::os::waker::Waker;
use crate::protocol::endpoint::Endpoint;
use crate::protocol::lock_key::LockKey;
use crate::protocol::operation::Verb;
use crate::protocol::session::Ticket;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long an extension waits before it asks for its deadline again.
const DEADLINE_CHECK: Duration = Duration::from_millis(10);
/// Shortest wait for stragglers.
const STRAGGLER_LIMIT: Duration = Duration::from_millis(50);

/// Longest wait for the answers to releases when the last handle is dropped, while answers keep
/// coming.
const DROP_LIMIT: Duration = Duration::from_secs(5);

/// Longest wait for nodes that may refuse an attempt that is lost. They have as long again as the
/// others took.
const REFUSAL_LIMIT: Duration = Duration::from_millis(2);

/// Whether extensions that were sent together wait for nodes that have not answered when a quorum
/// has: to learn which nodes have lost the key and need it again. They wait for a moment, or as
/// long again as the quorum took. A node that is slower is asked again with the next extension.
pub(crate) enum Stragglers {
    /// A quorum has not answered yet. They were sent then.
    AwaitedSince(Timestamp),
    AwaitedUntil(Timestamp),
    LeftBehind,
}

impl Stragglers {
    /// Until when to wait for them, once a quorum has answered.
    fn until(&mut self, now: Timestamp) -> Timestamp {
        match *self {
            Stragglers::AwaitedSince(start) => {
                let until = now.after(STRAGGLER_LIMIT.max(now.since(start)));
                *self = Stragglers::AwaitedUntil(until);
                until
            }
            Stragglers::AwaitedUntil(until) => until,
            Stragglers::LeftBehind => now,
        }
    }
}

/// The network of one client.
pub(crate) struct Engine {
    pub(super) driver: Arc<Driver<Nodes>>,
    /// The thread that looks after certificates, as long as the engine exists.
    _certificates: Option<BackgroundCall>,
    clock: Arc<dyn Clock>,
    node_timeout: Duration,
    waker: Arc<Waker>,
    /// Whether any release woke another client lately.
    has_woken: Arc<AtomicBool>,
    /// Whether the client subscribes to its channel when a call waits.
    has_messages: bool,
    /// The waits that a channel may cancel.
    pub(crate) channel_watch: Arc<ChannelWatch>,
}

impl Engine {
    /// An engine for these nodes, each with its record. Connects to none of them.
    ///
    /// # Errors
    /// The process has no descriptor left for waking the driver.
    pub(crate) fn new(
        nodes: Vec<(Endpoint, TransportConfig, Quarantine)>,
        node_timeout: Duration,
        clock: Arc<dyn Clock>,
        mut config: EngineConfig,
    ) -> io::Result<Engine> {
        let waker = Arc::new(Waker::new()?);
        let logins = config
            .provider
            .take()
            .map(|provider| (provider, credentials::without_credentials(&nodes)));
        let renewal = config.renewal.take();
        let connections = nodes
            .into_iter()
            .enumerate()
            .map(|(index, (endpoint, transport, quarantine))| {
                let node = NodeId::new(index);
                let waker = Arc::clone(&waker);
                NodeConnection::new(node, endpoint, transport, quarantine, node_timeout, waker)
            })
            .collect();
        let has_messages = config.release_notifications;
        let nodes = Nodes::new(connections, Arc::clone(&clock), Arc::clone(&waker), config);
        let has_woken = Arc::clone(&nodes.subscribers.registry.has_woken);
        let driver = Driver::new(nodes);
        if let Some((provider, nodes)) = logins {
            credentials::ask(&driver, nodes, &provider, node_timeout)?;
        }
        let certificates = renewal.map(|renewal| credentials::watch_certificates(&driver, renewal));
        Ok(Engine {
            driver,
            _certificates: certificates.transpose()?,
            clock,
            node_timeout,
            waker,
            has_woken,
            has_messages,
            channel_watch: Arc::default(),
        })
    }

    /// The present time by the steady clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The present time by the lease clock.
    pub(crate) fn lease_now(&self) -> LeaseTime {
        self.clock.lease_now()
    }

    /// The present time by both clocks.
    pub(crate) fn readings(&self) -> Readings {
        self.clock.readings()
    }

    /// The time `now`, which was read a moment ago, and the lease clock.
    fn readings_at(&self, now: Timestamp) -> Readings {
        Readings {
            steady: now,
            lease: self.clock.lease_now(),
        }
    }

    /// Makes one attempt on all nodes. `deadline` returns how long to wait for votes, given the
    /// start of the attempt and whether it has to connect to nodes first. With a seat, the call
    /// waits in the queue of the lock: the attempt finds out about all that has arrived before, and
    /// has time for nodes that may refuse it.
    pub(crate) fn acquire(
        &self,
        request: AttemptRequest,
        seat: Option<&Seat<'_>>,
        mut deadline: impl FnMut(Timestamp, bool) -> Timestamp,
    ) -> (AttemptRecord, RoundResult) {
        let t0 = self.readings();
        let mut deadline = |has_to_connect| deadline(t0.steady, has_to_connect);
        let token = request.token.clone();
        let kind = request.kind;
        let result = match seat {
            None => self
                .driver
                .submit(Submission::Acquire(request), t0.steady, deadline, || ()),
            Some(seat) => {
                let mut until = t0.steady;
                let begin = |nodes: &mut Nodes, now| {
                    nodes.subscribers.registry.look_into(seat.entry().number);
                    let ticket = nodes.acquire(&request, now);
                    until = deadline(nodes.connections.have_to_be_made(now));
                    (ticket, until)
                };
                let refused = self.driver.run(begin, |nodes, ticket| {
                    match nodes.rounds.await_stragglers(ticket) {
                        true => Err(ticket),
                        false => Ok(nodes.rounds.conclude(ticket)),
                    }
                });
                // A waiter has time, and an attempt that all nodes have refused leaves nothing to
                // undo.
                refused.unwrap_or_else(|ticket| {
                    let refusals = |now: Timestamp| {
                        now.after(now.since(t0.steady).min(REFUSAL_LIMIT))
                            .min(until)
                    };
                    self.driver
                        .run(|_, now| (ticket, refusals(now)), Nodes::conclude)
                })
            }
        };
        let kind = result
            .agreement
            .as_ref()
            .map_or(kind, |agreement| kind.with_fence(agreement.fence()));
        (
            AttemptRecord {
                token,
                t0,
                reached: result.reached,
                origin: KeyOrigin::Here,
                departure: None,
                kind,
            },
            result,
        )
    }

    /// Lets a call wait in the queue of the lock with this key. `random` names the client if it has
    /// no name yet.
    pub(crate) fn sit(&self, key: &Arc<str>, kind: Kind, random: u64) -> Seat<'_> {
        let interrupt = Arc::new(Interrupt::new(&self.waker));
        let (client, number) = self.driver.enter(|nodes, now| {
            nodes
                .subscribers
                .enter(&interrupt, random, &mut nodes.connections, now)
        });
        let entry = Entry {
            client,
            kind: kind.entry_kind(),
            number,
        };
        Seat {
            driver: &self.driver,
            key: Arc::clone(key),
            kind,
            entry,
            interrupt,
            may_have: NodeSet::EMPTY,
            has_won: false,
        }
    }

    /// Whether calls are told when a lock may be free.
    pub(crate) fn has_messages(&self) -> bool {
        self.has_messages
    }

    /// When a release of this client last woke another one, if it did lately: that may be about to
    /// take a lock with one of these keys.
    pub(crate) fn woke_another(&self, keys: &[Arc<str>]) -> Option<Timestamp> {
        if !self.has_woken.load(Ordering::Relaxed) {
            return None;
        }
        self.driver.enter(|nodes, now| {
            keys.iter()
                .filter_map(|key| nodes.subscribers.registry.woke_another(key, now))
                .max()
        })
    }

    /// Stores a call's ticket on these nodes, and does not wait for that.
    pub(crate) fn store(
        &self,
        key: &Arc<str>,
        kind: Kind,
        entry: Entry,
        ticket: u64,
        nodes: NodeSet,
    ) {
        let entry = Some(entry);
        let ticket = TicketRequest::Fixed(ticket);
        let request = TakeRequest {
            entry,
            ticket,
            stores_only: true,
            ..TakeRequest::WITHOUT_ENTRY
        };
        let verb = Verb::Take {
            ttl_millis: 0,
            request,
        };
        self.driver
            .enter(|all, now| all.update_queue(key, kind, verb, nodes, now));
    }

    /// Removes a call's entry on these nodes, or without one tells those that wait, and does not
    /// wait for that.
    pub(crate) fn leave(&self, key: &Arc<str>, kind: Kind, entry: Option<Entry>, nodes: NodeSet) {
        self.driver.enter(|all, now| {
            entry
                .into_iter()
                .for_each(|entry| all.subscribers.registry.leave(entry.number));
            all.update_queue(key, kind, Verb::Leave(entry), nodes, now);
        });
    }

    /// Raises the fence on the nodes that are behind, and waits for the verdict, until the deadline
    /// at most.
    pub(crate) fn raise(
        &self,
        key: &LockKey,
        attempt: &AttemptRecord,
        agreement: &Agreement,
        deadline: impl FnOnce(Timestamp) -> Timestamp,
    ) -> RoundResult {
        self.driver.run(
            |nodes, now| (nodes.raise(key, attempt, agreement, now), deadline(now)),
            Nodes::conclude,
        )
    }

    /// Takes over a lock that is held with this token. Begins to connect, and does not wait for
    /// that.
    pub(crate) fn adopt(&self, token: OwnerToken, kind: Kind) -> AttemptRecord {
        self.driver
            .enter(|nodes, now| nodes.adopt(token, kind, self.readings_at(now)))
    }

    /// Releases a lock, and waits for the verdict, for the node timeout at most. `queued` is called
    /// when the release has its place: later requests go behind it, on every connection.
    pub(crate) fn release(
        &self,
        release: Release,
        now: Timestamp,
        queued: impl FnOnce(),
    ) -> RoundResult {
        self.driver.submit(
            Submission::Release(release),
            now,
            |_| now.after(self.node_timeout),
            queued,
        )
    }

    /// Extends one lock, and waits for the verdict, for the node timeout at most. Returns the time
    /// that was read before the first byte was written.
    pub(crate) fn extend(
        &self,
        request: &LeaseRequest<'_>,
        awaits_stragglers: bool,
    ) -> (LeaseTime, RoundResult) {
        let begin = |nodes: &mut Nodes, now| (self.readings_at(now), nodes.extend(request, now));
        let (Readings { steady, lease }, ticket) = self.driver.enter(begin);
        let mut stragglers = if awaits_stragglers {
            Stragglers::AwaitedSince(steady)
        } else {
            Stragglers::LeftBehind
        };
        (
            lease,
            self.extended(ticket, &mut stragglers, || steady.after(self.node_timeout)),
        )
    }

    /// Begins to extend many locks, all in one write to each node. Returns the time, read before
    /// the first byte was written, and appends a ticket for each, to be waited for by
    /// [`extended`](Engine::extended).
    pub(crate) fn begin_to_extend<'o>(
        &self,
        requests: impl Iterator<Item = LeaseRequest<'o>>,
        tickets: &mut Vec<Ticket>,
    ) -> Readings {
        self.driver.enter(|nodes, now| {
            let start = self.readings_at(now);
            tickets.extend(requests.map(|request| nodes.extend(&request, now)));
            start
        })
    }

    /// Waits for the verdict on an extension, until the deadline at most, and then perhaps for
    /// stragglers. Asks for the deadline again every [`DEADLINE_CHECK`]: something else may have
    /// become more urgent.
    pub(crate) fn extended(
        &self,
        ticket: Ticket,
        stragglers: &mut Stragglers,
        deadline: impl Fn() -> Timestamp,
    ) -> RoundResult {
        loop {
            let until = deadline();
            let glance = self.now().after(DEADLINE_CHECK);
            let is_glance = glance < until;
            let begin = |nodes: &mut Nodes, _: Timestamp| {
                nodes.rounds.set_soft_deadline(ticket, is_glance);
                (ticket, until.min(glance))
            };
            let conclude = |nodes: &mut Nodes, ticket| match stragglers {
                _ if is_glance && !nodes.rounds.is_decided(ticket) => ControlFlow::Continue(()),
                Stragglers::AwaitedSince(_) | Stragglers::AwaitedUntil(_)
                    if nodes.rounds.await_stragglers(ticket) =>
                {
                    ControlFlow::Break(None)
                }
                _ => ControlFlow::Break(Some(nodes.rounds.conclude(ticket))),
            };
            match self.driver.run(begin, conclude) {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(Some(count)) => return count,
                ControlFlow::Break(None) => break,
            }
        }
        let deadline = deadline();
        self.driver.run(
            |_, now| (ticket, stragglers.until(now).min(deadline)),
            Nodes::conclude,
        )
    }

    /// Sets the key of a held lock again on nodes that have lost it, and does not wait for that.
    /// Returns the nodes that it may reach.
    pub(crate) fn repair(&self, request: &LeaseRequest<'_>, nodes: NodeSet) -> NodeSet {
        self.driver
            .enter(|all, now| all.repair(request, nodes, now))
    }

    /// Makes connections again that have ended, and does not wait for that. Returns the nodes that
    /// have lost their data since this was asked last, and whether a node is being connected to.
    pub(crate) fn reconnect(&self) -> (NodeSet, bool) {
        self.driver.enter(Nodes::reconnect)
    }

    /// Connects to every node that there is no connection to, asks each whether it may vote, and
    /// waits for all of them, for this long at most.
    pub(crate) fn check(&self, timeout: Duration) -> RoundResult {
        self.driver.run(
            |nodes, now| (nodes.check(now), now.after(timeout)),
            Nodes::conclude_check,
        )
    }

    /// Asks every node what the key of a lock holds, and waits until a quorum of answers decides,
    /// for the node timeout at most, and once more for connections.
    pub(crate) fn inspect(&self, key: &str, is_fenced: bool) -> RoundResult {
        self.driver.run(
            |nodes, now| {
                let ticket = nodes.inspect(key, is_fenced, now);
                let timeouts = if nodes.connections.have_to_be_made(now) {
                    2
                } else {
                    1
                };
                (ticket, now.after(self.node_timeout * timeouts))
            },
            Nodes::conclude,
        )
    }

    /// The state of each node, in their order. Asks none of them.
    pub(crate) fn status(&self) -> Vec<NodeStatusSnapshot> {
        self.driver.enter(NodeStatusSnapshot::of_all)
    }

    /// The nodes that vote and answer in time, as far as is known.
    pub(crate) fn voting(&self) -> NodeSet {
        self.driver
            .enter(|nodes, now| nodes.connections.voting(now))
    }

    /// How many rounds are in flight.
    #[cfg(test)]
    #[allow(dead_code, reason = "the simulator asks")]
    pub(crate) fn in_flight(&self) -> usize {
        self.driver.enter(|nodes, _| nodes.rounds.in_flight())
    }

    #[cfg(test)]
    #[allow(dead_code, reason = "the simulator asks")]
    pub(crate) fn followers(&self) -> usize {
        self.driver
            .enter(|nodes, _| nodes.connections.followers.len())
    }

    /// How long a node has to answer.
    pub(crate) fn node_timeout(&self) -> Duration {
        self.node_timeout
    }

    /// Releases a lock in the background. Later requests go behind it, on every connection. The
    /// outcome is reported with the context, if there is one.
    pub(crate) fn post_release(
        &self,
        release: Release,
        now: Timestamp,
        context: Option<ReleaseContext>,
    ) {
        let report = context.map(|context| (context, now.after(self.node_timeout)));
        self.driver.post(Posting { release, report });
    }

    /// Undoes a lost attempt, whose key lives for so long at most, on the nodes that it reached, in
    /// the background.
    pub(crate) fn undo(&self, key: &LockKey, attempt: AttemptRecord, key_lasts: Duration) {
        let release = Release {
            key: key.clone(),
            attempt,
            scope: ReleaseScope::Reached,
            key_lasts,
        };
        self.driver.post(Posting {
            release,
            report: None,
        });
    }

    /// Waits until the nodes have run all releases, for so long at most. Returns the nodes that
    /// have not, each with what keeps it from that.
    pub(crate) fn settle(&self, timeout: Duration) -> Vec<(NodeId, Fault)> {
        self.driver.run(
            |nodes, now| (nodes.await_settled(Settled::Run, now), now.after(timeout)),
            |nodes, ticket| {
                nodes.releases.leave(ticket, &mut nodes.rounds);
                nodes.connections.unsettled()
            },
        )
    }

    /// Closes this process's copies of the connections, unless a thread that it does not have was
    /// using them. For a child made by `fork`: the parent and the nodes notice nothing.
    pub(crate) fn close_inherited(&self) {
        self.driver.try_enter(Nodes::close_inherited);
    }

    /// Waits for the answers to releases: until no node has sent anything for a node timeout, and
    /// for [`DROP_LIMIT`] at most. To close a connection before would answer the replies that are
    /// still to come with a reset, and that throws away what is not sent yet.
    pub(crate) fn end(&self) {
        if self.waker.is_inherited() {
            return;
        }
        self.driver.close();
        let begun = self.now();
        let limit = begun.after(DROP_LIMIT.max(self.node_timeout));
        let mut until = begun.after(self.node_timeout);
        while self.now() < until {
            until = self.driver.run(
                |nodes, now| (nodes.await_settled(Settled::Answered, now), until),
                |nodes, ticket| {
                    let is_settled = nodes.rounds.is_decided(ticket);
                    nodes.releases.leave(ticket, &mut nodes.rounds);
                    let last = nodes.releases.heard_at.max(begun);
                    if is_settled {
                        begun
                    } else {
                        last.after(self.node_timeout).min(limit)
                    }
                },
            );
        }
        // Their outcome is still counted.
        self.driver
            .enter(|nodes, now| nodes.expire_background(Timestamp::NEVER, now));
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;
