//! What the rest of the library sees of the network: take, release, undo.
//!
//! All threads of a client share one engine, and with it one ordered connection per node. There is no I/O thread: whoever
//! waits, polls ([`relay`](super::relay)).

use super::driver::{Driver, WaitSlots};
use super::interrupt::Interrupt;
use super::node_connection::NodeConnection;
use super::nodes::Nodes;
pub(crate) use super::nodes::requests::KeyOrigin;
pub(crate) use super::nodes::requests::{AttemptRecord, LeaseRequest};
use super::nodes::requests::{ReleaseRequest, ReleaseScope};
use super::nodes::status::NodeStatusSnapshot;
pub(crate) use super::rounds::RoundResult;
pub(crate) use super::wait_registry::WakeReason;
use crate::algorithm::fault::Fault;
use crate::algorithm::fence::{Agreement, FencingToken};
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::pending_release::Settled;
use crate::algorithm::quarantine::Quarantine;
use crate::algorithm::time::{Clock, LeaseTime, Readings, Timestamp};
use crate::events::event_queue::{EventQueue, ReleaseContext};
use crate::os::waker::Waker;
use crate::protocol::endpoint::Endpoint;
use crate::protocol::session::Ticket;
use crate::protocol::subscription::Key;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long an extension waits before it looks whether it may go on to.
const GLANCE: Duration = Duration::from_millis(10);
/// How long stragglers are waited for at least.
const STRAGGLER_LIMIT: Duration = Duration::from_millis(50);

/// Whether extensions that were sent together wait for nodes that have not answered when a quorum has: to learn who has lost
/// the key, and must get it again. They do so for a moment; where the quorum took longer, as long as that once more. Whoever is
/// slower is asked again with the next extension.
pub(crate) enum Stragglers {
    /// A quorum has not answered yet. They were sent then.
    AwaitedSince(Timestamp),
    AwaitedUntil(Timestamp),
    LeftBehind,
}

impl Stragglers {
    /// Until when they are waited for, a quorum having answered by now.
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
    relay: Arc<Driver<Nodes>>,
    clock: Arc<dyn Clock>,
    node_timeout: Duration,
    waker: Arc<Waker>,
    /// Whether others wait for any lock that was released here lately.
    is_crowded: Arc<AtomicBool>,
}

impl Engine {
    /// An engine for these nodes, each with its record. Connects to none of them. `news` is where it notes what concerns no
    /// caller; with `release_notifications`, those who wait for a lock are told of its release, and listen for that; `retention` is how
    /// long nodes keep the key of a fenced lock.
    ///
    /// # Errors
    /// The process has no descriptor left for waking the driver.
    pub(crate) fn new(
        nodes: Vec<(Endpoint, Quarantine)>,
        node_timeout: Duration,
        spin: Duration,
        clock: Arc<dyn Clock>,
        news: Option<Arc<EventQueue>>,
        release_notifications: bool,
        retention: Duration,
    ) -> io::Result<Engine> {
        let waker = Arc::new(Waker::new()?);
        let links = nodes
            .into_iter()
            .enumerate()
            .map(|(index, node)| NodeConnection::new(NodeId::new(index), node, node_timeout, Arc::clone(&waker)))
            .collect();
        let fleet =
            Nodes::new(links, Arc::clone(&clock), Arc::clone(&waker), spin, news, release_notifications, retention);
        let is_crowded = fleet.is_crowded();
        Ok(Engine { relay: Driver::new(fleet), clock, node_timeout, waker, is_crowded })
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
        Readings { steady: now, lease: self.clock.lease_now() }
    }

    /// Makes one attempt on all nodes. `deadline` says, given the time of its start and whether it has to connect to nodes
    /// first, how long to wait for votes. The attempt of
    /// somebody who listens for the lock finds out about all that was heard before.
    pub(crate) fn acquire(
        &self,
        key: &[u8],
        token: OwnerToken,
        ttl_millis: u64,
        listener: Option<&Listener<'_>>,
        deadline: impl FnOnce(Timestamp, bool) -> Timestamp,
    ) -> (AttemptRecord, RoundResult) {
        let mut claim = claim(token, listener, None);
        let count = self.relay.run(
            |fleet, t0, bells| {
                claim.t0 = self.readings_at(t0);
                if let Some(listener) = listener {
                    fleet.look_into(&listener.key);
                }
                let asks_remaining = listener.is_some_and(|listener| listener.asks_remaining);
                let ticket = fleet.acquire(key, &token, ttl_millis, asks_remaining, t0, bells);
                (ticket, deadline(t0, fleet.has_to_connect(t0)))
            },
            |fleet, ticket| fleet.rounds().conclude(ticket),
        );
        claim.reached = count.reached;
        (claim, count)
    }

    /// Begins to listen for releases of a lock, for somebody who waits for it.
    pub(crate) fn listen(&self, key: &str) -> Listener<'_> {
        let key = Key::from(key.as_bytes());
        self.relay.enter(|fleet, now, _| fleet.listen(&key, now));
        Listener {
            engine: self,
            key,
            alarm: Arc::new(Interrupt::new(&self.waker)),
            asks_remaining: true,
            has_won: false,
        }
    }

    /// Whether somebody who wants a lock, and has not waited for it, should let others go first who have.
    pub(crate) fn must_defer(&self, key: &str, is_handed_on: bool) -> bool {
        self.is_crowded.load(Ordering::Relaxed)
            && self.relay.enter(|fleet, now, _| fleet.must_defer(key.as_bytes(), is_handed_on, now))
    }

    /// Makes one attempt to take a fenced lock, and gives what its fences come to as well.
    pub(crate) fn acquire_fenced(
        &self,
        order: &LeaseRequest<'_>,
        floor: FencingToken,
        listener: Option<&Listener<'_>>,
        deadline: impl FnOnce(Timestamp, bool) -> Timestamp,
    ) -> (AttemptRecord, RoundResult, Option<Agreement>) {
        let mut claim = claim(*order.token, listener, Some(floor));
        let (count, agreement) = self.relay.run(
            |fleet, t0, bells| {
                claim.t0 = self.readings_at(t0);
                if let Some(listener) = listener {
                    fleet.look_into(&listener.key);
                }
                let ticket = fleet.acquire_fenced(order, floor, t0, bells);
                (ticket, deadline(t0, fleet.has_to_connect(t0)))
            },
            |fleet, ticket| {
                let agreement = fleet.rounds().agreement(ticket);
                (fleet.rounds().conclude(ticket), agreement)
            },
        );
        claim.reached = count.reached;
        (claim, count, agreement)
    }

    /// Raises the fence on the nodes that are behind, and waits for the verdict, until the deadline at most.
    pub(crate) fn raise(
        &self,
        key: &[u8],
        claim: &AttemptRecord,
        agreement: &Agreement,
        deadline: impl FnOnce(Timestamp) -> Timestamp,
    ) -> RoundResult {
        self.relay.run(
            |fleet, now, bells| (fleet.raise((key, &claim.token), agreement, now, bells), deadline(now)),
            |fleet, ticket| fleet.rounds().conclude(ticket),
        )
    }

    /// Takes over a lock that is held with this token, and waits for nothing: connections are begun to be made.
    pub(crate) fn adopt(&self, token: OwnerToken, fence: Option<FencingToken>) -> AttemptRecord {
        self.relay.enter(|fleet, now, bells| fleet.adopt(token, fence, self.readings_at(now), bells))
    }

    /// Releases a key that lives for so long at most on all nodes, and waits for the verdict, for the node timeout at most.
    /// `queued` is told the time when
    /// the release has been queued on every connection: what is asked from then on goes behind it.
    pub(crate) fn release(
        &self,
        key: &[u8],
        claim: &AttemptRecord,
        key_lasts: Duration,
        queued: impl FnOnce(Readings),
    ) -> RoundResult {
        let releasing = ReleaseRequest { key, claim, extent: ReleaseScope::Everywhere, key_lasts };
        self.relay.run(
            |fleet, now, bells| {
                let ticket = fleet.release(&releasing, now, bells);
                queued(self.readings_at(now));
                (ticket, now.after(self.node_timeout))
            },
            |fleet, ticket| fleet.rounds().conclude(ticket),
        )
    }

    /// Extends one lock, and waits for the verdict, for the node timeout at most. Gives the time that was read before the
    /// first byte was written.
    pub(crate) fn extend(&self, order: &LeaseRequest<'_>, awaits_stragglers: bool) -> (LeaseTime, RoundResult) {
        let begin =
            |fleet: &mut Nodes, now, bells: &mut WaitSlots| (self.readings_at(now), fleet.extend(order, now, bells));
        let (Readings { steady, lease }, ticket) = self.relay.enter(begin);
        let mut stragglers = if awaits_stragglers { Stragglers::AwaitedSince(steady) } else { Stragglers::LeftBehind };
        (lease, self.extended(ticket, &mut stragglers, || steady.after(self.node_timeout)))
    }

    /// Begins to extend many locks, all in one write to each node. Gives the time, read before the first byte was written,
    /// and appends a ticket for each, to be waited for by [`extended`](Engine::extended).
    pub(crate) fn begin_to_extend<'o>(
        &self,
        orders: impl Iterator<Item = LeaseRequest<'o>>,
        tickets: &mut Vec<Ticket>,
    ) -> Readings {
        self.relay.enter(|fleet, now, bells| {
            let start = self.readings_at(now);
            tickets.extend(orders.map(|order| fleet.extend(&order, now, bells)));
            start
        })
    }

    /// Waits for the verdict on an extension, until the deadline at most, and then perhaps for stragglers. The deadline is
    /// asked for again every [`GLANCE`]: something else may have become more urgent.
    pub(crate) fn extended(
        &self,
        ticket: Ticket,
        stragglers: &mut Stragglers,
        deadline: impl Fn() -> Timestamp,
    ) -> RoundResult {
        loop {
            let (until, glance) = (deadline(), self.now().after(GLANCE));
            let is_glance = glance < until;
            let begin = |fleet: &mut Nodes, _: Timestamp, _: &mut WaitSlots| {
                fleet.rounds().bear_with(ticket, is_glance);
                (ticket, until.min(glance))
            };
            let conclude = |fleet: &mut Nodes, ticket| match stragglers {
                _ if is_glance && !fleet.rounds().is_decided(ticket) => ControlFlow::Continue(()),
                Stragglers::AwaitedSince(_) | Stragglers::AwaitedUntil(_)
                    if fleet.rounds().await_stragglers(ticket) =>
                {
                    ControlFlow::Break(None)
                }
                _ => ControlFlow::Break(Some(fleet.rounds().conclude(ticket))),
            };
            match self.relay.run(begin, conclude) {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(Some(count)) => return count,
                ControlFlow::Break(None) => break,
            }
        }
        let deadline = deadline();
        self.relay.run(
            |_, now, _| (ticket, stragglers.until(now).min(deadline)),
            |fleet, ticket| fleet.rounds().conclude(ticket),
        )
    }

    /// Sets the key of a lock that is held anew on nodes that have lost it, and waits for nothing. Gives the nodes that it
    /// may reach.
    pub(crate) fn repair(&self, order: &LeaseRequest<'_>, nodes: NodeSet) -> NodeSet {
        self.relay.enter(|fleet, now, bells| fleet.repair(order, nodes, now, bells))
    }

    /// Connects to every node that there is no connection to, asks each whether it may vote, and waits for all of them, for
    /// this long at most.
    pub(crate) fn check(&self, timeout: Duration) -> RoundResult {
        self.relay.run(
            |fleet, now, bells| (fleet.check(now, bells), now.after(timeout)),
            |fleet, ticket| fleet.checked(ticket),
        )
    }

    /// How the nodes look now, in their order. Asks none of them.
    pub(crate) fn status(&self) -> Vec<NodeStatusSnapshot> {
        self.relay.enter(Nodes::status)
    }

    /// The nodes that vote and answer in time, as far as is known.
    pub(crate) fn voting(&self) -> NodeSet {
        self.relay.enter(|fleet, now, _| fleet.voting(now))
    }

    /// How many rounds are in flight.
    #[cfg(test)]
    #[allow(dead_code, reason = "the simulator asks")]
    pub(crate) fn in_flight(&self) -> usize {
        self.relay.enter(|fleet, _, _| fleet.rounds().in_flight())
    }

    /// How long a node has to answer.
    pub(crate) fn node_timeout(&self) -> Duration {
        self.node_timeout
    }

    /// Releases a key on all nodes and waits for nothing. `queued` as in [`release`](Engine::release); the outcome becomes
    /// news if it gives a farewell.
    pub(crate) fn post_release(
        &self,
        key: &[u8],
        claim: &AttemptRecord,
        key_lasts: Duration,
        queued: impl FnOnce(Readings) -> Option<ReleaseContext>,
    ) {
        self.post(&ReleaseRequest { key, claim, extent: ReleaseScope::Everywhere, key_lasts }, queued);
    }

    /// Undoes a lost attempt, whose key lives for so long at most, on the nodes that it reached, and waits for nothing.
    pub(crate) fn undo(&self, key: &[u8], claim: &AttemptRecord, key_lasts: Duration) {
        self.post(&ReleaseRequest { key, claim, extent: ReleaseScope::Reached, key_lasts }, |_| None);
    }

    /// Waits until the nodes have run all releases, for so long at most. Gives the nodes that have not, each with what keeps it
    /// from that.
    pub(crate) fn settle(&self, timeout: Duration) -> Vec<(NodeId, Fault)> {
        self.relay.run(
            |fleet, now, bells| (fleet.await_settled(Settled::Run, now, bells), now.after(timeout)),
            |fleet, ticket| {
                fleet.leave_settling(ticket);
                fleet.unsettled()
            },
        )
    }

    /// Closes this process's copies of the connections, unless a thread that it does not have was at them. For a child made
    /// by `fork`: the parent, and the nodes, notice nothing of it.
    pub(crate) fn let_go(&self) {
        self.relay.try_enter(Nodes::let_go);
    }

    fn post(&self, releasing: &ReleaseRequest<'_>, queued: impl FnOnce(Readings) -> Option<ReleaseContext>) {
        self.relay.enter(|fleet, now, bells| {
            let ticket = fleet.release(releasing, now, bells);
            match queued(self.readings_at(now)) {
                Some(farewell) => fleet.follow(ticket, farewell, now.after(self.node_timeout)),
                None => fleet.rounds().unrefer(ticket),
            }
        });
    }
}

impl Drop for Engine {
    /// Waits for the answers to releases, for the node timeout at most. To close a connection before would answer the replies
    /// that are still to come with a reset, and that throws away what is not sent yet.
    fn drop(&mut self) {
        if self.waker.is_inherited() {
            return;
        }
        self.relay.close();
        self.relay.run(
            |fleet, now, bells| (fleet.await_settled(Settled::Answered, now, bells), now.after(self.node_timeout)),
            |fleet, ticket| fleet.leave_settling(ticket),
        );
    }
}

/// Somebody who waits for a lock. Dropping it ends the listening.
pub(crate) struct Listener<'e> {
    engine: &'e Engine,
    key: Key,
    alarm: Arc<Interrupt>,
    /// Whether the next attempt asks for how long the lock lasts that it is refused for. One that follows a release does not:
    /// it may well win, and if not, the next one asks.
    asks_remaining: bool,
    has_won: bool,
}

impl Listener<'_> {
    /// What ends a wait from outside.
    pub(crate) fn alarm(&self) -> &Arc<Interrupt> {
        &self.alarm
    }

    /// Waits until then at the latest, and gives what has ended the wait before.
    pub(crate) fn wait(&mut self, until: Timestamp) -> Option<WakeReason> {
        let word = self.engine.relay.run(
            |fleet, now, bells| (fleet.sleep(&self.key, &self.alarm, now, bells), until),
            |fleet, ticket| fleet.wake(ticket, &self.key),
        );
        self.asks_remaining = !matches!(word, Some(WakeReason::Released(_)));
        word
    }

    /// Whether no release of the lock can escape.
    pub(crate) fn is_attentive(&self) -> bool {
        self.engine.relay.enter(|fleet, _, _| fleet.is_attentive(&self.key))
    }

    /// What was waited for has been won.
    pub(crate) fn won(&mut self) {
        self.has_won = true;
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        self.engine.relay.enter(|fleet, now, _| fleet.unlisten(&self.key, self.has_won, now));
    }
}

/// What is known of an attempt before it is begun.
fn claim(token: OwnerToken, listener: Option<&Listener<'_>>, fence: Option<FencingToken>) -> AttemptRecord {
    let t0 = Readings { steady: Timestamp::ORIGIN, lease: LeaseTime::ORIGIN };
    let (reached, setter) = (NodeSet::EMPTY, KeyOrigin::Here);
    AttemptRecord { token, t0, reached, setter, has_waited: listener.is_some(), fence: fence.into() }
}
