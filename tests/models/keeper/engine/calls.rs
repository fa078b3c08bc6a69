//! What the watchdog thread and the guards see of the network, in place of the engine: nodes that
//! answer one command after the other, as late as the scheduler wants, on one connection each, in
//! order.
//!
//! Like the engine, it queues a command on all connections under one mutex, under which it also
//! reads the time. It knows the names and rounds of the engine, and checks what is queued: nothing
//! may follow the release of a lock.

pub(crate) use super::nodes::submission::{
    AttemptRecord, AttemptRequest, InTurn, KeyOrigin, LeaseRequest, Release, ReleaseScope,
};
pub(crate) use super::rounds::RoundResult;
use super::rounds::{Attempt, Purpose, Rounds};
use crate::algorithm::kind::Kind;
use crate::algorithm::lease::{OwnerToken, Ttl};
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::pending_release::ReleaseConditions;
use crate::algorithm::queue::Entry;
use crate::algorithm::time::{LeaseTime, Readings, Timestamp};
use crate::algorithm::vote::Vote;
use crate::events::event_queue::ReleaseContext;
use crate::fault::{Cause, Fault, Phase};
use crate::os::sync::{Condvar, Mutex, MutexGuard, lock};
use crate::protocol::session::Ticket;
use crate::time;
use crossbeam_channel::Receiver;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const NODES: usize = 3;
pub(crate) const NODE_TIMEOUT: Duration = Duration::from_millis(50);
const GLANCE: Duration = Duration::from_millis(10);

/// The network of one client.
pub(crate) struct Engine(Arc<Network>);

pub(crate) enum Stragglers {
    AwaitedSince(Timestamp),
    LeftBehind,
}

impl Engine {
    pub(crate) fn new(network: &Arc<Network>) -> Engine {
        Engine(Arc::clone(network))
    }

    pub(crate) fn close_inherited(&self) {}

    pub(crate) fn end(&self) {}

    pub(crate) fn settle(&self, _: Duration) -> Vec<(NodeId, Fault)> {
        Vec::new()
    }

    pub(crate) fn now(&self) -> Timestamp {
        time::moment()
    }

    pub(crate) fn lease_now(&self) -> LeaseTime {
        self.readings().lease
    }

    pub(crate) fn readings(&self) -> Readings {
        time::readings(time::moment())
    }

    pub(crate) fn node_timeout(&self) -> Duration {
        NODE_TIMEOUT
    }

    pub(crate) fn voting(&self) -> NodeSet {
        NodeSet::EMPTY
    }

    pub(crate) fn extend(
        &self,
        order: &LeaseRequest<'_>,
        awaits_stragglers: bool,
    ) -> (LeaseTime, RoundResult) {
        let (start, ticket) = {
            let mut state = lock(&self.0.state);
            let start = self.readings();
            (start, state.extend(order))
        };
        self.0.changed.notify_all();
        (
            start.lease,
            self.0.conclude(
                ticket,
                || start.steady.after(NODE_TIMEOUT),
                awaits_stragglers,
            ),
        )
    }

    pub(crate) fn begin_to_extend<'o>(
        &self,
        orders: impl Iterator<Item = LeaseRequest<'o>>,
        tickets: &mut Vec<Ticket>,
    ) -> Readings {
        let start = {
            let mut state = lock(&self.0.state);
            let start = self.readings();
            tickets.extend(orders.map(|order| state.extend(&order)));
            start
        };
        self.0.changed.notify_all();
        start
    }

    pub(crate) fn extended(
        &self,
        ticket: Ticket,
        stragglers: &mut Stragglers,
        deadline: impl Fn() -> Timestamp,
    ) -> RoundResult {
        self.0.conclude(
            ticket,
            deadline,
            matches!(stragglers, Stragglers::AwaitedSince(_)),
        )
    }

    pub(crate) fn repair(&self, order: &LeaseRequest<'_>, nodes: NodeSet) -> NodeSet {
        {
            let mut state = lock(&self.0.state);
            state.repairs += nodes.len();
            let ticket = state.rounds.open(Purpose::Acquire(Attempt::default()));
            state.queue(ticket, nodes, order, What::Repair);
            state.rounds.unrefer(ticket);
        }
        self.0.changed.notify_all();
        nodes
    }

    pub(crate) fn reconnect(&self) -> (NodeSet, bool) {
        (std::mem::take(&mut lock(&self.0.state).returned), false)
    }

    pub(crate) fn acquire(
        &self,
        _: AttemptRequest,
        _: Option<&()>,
        _: impl FnMut(Timestamp, bool) -> Timestamp,
    ) -> (AttemptRecord, RoundResult) {
        unreachable!("no thread shares a lock to read")
    }

    pub(crate) fn leave(&self, _: &Arc<str>, _: Kind, _: Option<Entry>, _: NodeSet) {
        unreachable!("no call has an entry in a queue")
    }

    pub(crate) fn release(
        &self,
        release: Release,
        now: Timestamp,
        queued: impl FnOnce(),
    ) -> RoundResult {
        let ticket = self.0.release(&release, queued);
        self.0.conclude(ticket, || now.after(NODE_TIMEOUT), false)
    }

    pub(crate) fn post_release(
        &self,
        release: Release,
        _: Timestamp,
        context: Option<ReleaseContext>,
    ) {
        assert!(context.is_none());
        let ticket = self.0.release(&release, || ());
        lock(&self.0.state).rounds.unrefer(ticket);
    }
}

/// The nodes, and the wire to them.
pub(crate) struct Network {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    nodes: [Node; NODES],
    rounds: Rounds,
    released: Vec<Arc<str>>,
    left: Vec<Arc<str>>,
    losses: HashMap<Arc<str>, Loss>,
    repairs: usize,
    /// The nodes that have forgotten keys, until that is noticed.
    returned: NodeSet,
    is_closed: bool,
}

/// What was reported of a lock's loss.
struct Loss {
    lost: Receiver<()>,
    taken: usize,
    /// As it was when the release was queued: it stays so.
    at_release: Option<usize>,
}

#[derive(Default)]
struct Node {
    requests: VecDeque<Request>,
    keys: HashMap<Arc<str>, Key>,
    hangs: bool,
}

struct Key {
    token: OwnerToken,
    end: LeaseTime,
}

struct Request {
    ticket: Ticket,
    key: Arc<str>,
    token: OwnerToken,
    ttl: Duration,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Extend,
    Release,
    Repair,
}

impl Network {
    pub(crate) fn new() -> Arc<Network> {
        let state = State {
            nodes: Default::default(),
            rounds: Rounds::new(NODES, None),
            released: Vec::new(),
            left: Vec::new(),
            losses: HashMap::new(),
            repairs: 0,
            returned: NodeSet::EMPTY,
            is_closed: false,
        };
        Arc::new(Network {
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    /// A lock is taken on these nodes, now.
    pub(crate) fn take(
        &self,
        key: &str,
        token: OwnerToken,
        ttl: Ttl,
        nodes: NodeSet,
    ) -> AttemptRecord {
        let t0 = time::readings(time::now());
        let end = t0.lease.after(Duration::from_millis(ttl.millis()));
        for node in nodes.iter() {
            lock(&self.state).nodes[node.index()].keys.insert(
                key.into(),
                Key {
                    token: token.clone(),
                    end,
                },
            );
        }
        let origin = KeyOrigin::Here;
        let kind = Kind::Plain;
        AttemptRecord {
            token,
            t0,
            reached: nodes,
            origin,
            departure: None,
            kind,
        }
    }

    /// Counts from now on the reports of a lock's loss.
    pub(crate) fn listen(&self, key: &str, lost: Receiver<()>) {
        lock(&self.state).losses.insert(
            key.into(),
            Loss {
                lost,
                taken: 0,
                at_release: None,
            },
        );
    }

    /// Takes the messages that have come. Whether the loss of a lock was reported.
    pub(crate) fn is_lost(&self, key: &str) -> bool {
        let mut state = lock(&self.state);
        let loss = state.losses.get_mut(key).unwrap();
        loss.taken += loss.lost.try_iter().count();
        assert!(loss.taken <= 1, "{key}: reported twice");
        assert!(
            loss.at_release.is_none_or(|before| before == loss.taken),
            "{key}: reported after its owner had left"
        );
        loss.taken > 0
    }

    /// Some nodes forget a key.
    pub(crate) fn forget(&self, nodes: impl IntoIterator<Item = usize>, key: &str) {
        let mut state = lock(&self.state);
        for node in nodes {
            state.nodes[node].keys.remove(key);
            state.returned.insert(NodeId::new(node));
        }
    }

    /// The owner has given up the lock, be it without a release.
    pub(crate) fn has_left(&self, key: &str) {
        lock(&self.state).left.push(key.into());
    }

    /// A node hangs, or goes on with what has arrived meanwhile.
    pub(crate) fn hang(&self, node: usize, hangs: bool) {
        lock(&self.state).nodes[node].hangs = hangs;
        self.changed.notify_all();
    }

    /// Nothing more comes: the nodes end when all has been answered.
    pub(crate) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
    }

    /// What one node does.
    pub(crate) fn serve(&self, node: usize) {
        let mut state = lock(&self.state);
        loop {
            if !state.nodes[node].hangs
                && let Some(request) = state.nodes[node].requests.pop_front()
            {
                state.answer(node, &request);
                drop(state);
                self.changed.notify_all();
                state = lock(&self.state);
            } else if state.is_closed {
                return;
            } else {
                state = self.wait(state, Duration::MAX);
            }
        }
    }

    /// On how many nodes a key of this token lasts at least so long.
    pub(crate) fn count_lasting(&self, key: &str, token: &OwnerToken, end: LeaseTime) -> usize {
        let state = lock(&self.state);
        let keys = state.nodes.iter().filter_map(|node| node.keys.get(key));
        keys.filter(|key| key.token == *token && key.end >= end)
            .count()
    }

    /// On how many nodes a key that was released is all the same.
    pub(crate) fn come_back(&self) -> usize {
        let state = lock(&self.state);
        let is_there =
            |key: &&Arc<str>| state.nodes.iter().any(|node| node.keys.contains_key(*key));
        state.released.iter().filter(is_there).count()
    }

    /// How many repairs have been queued.
    pub(crate) fn repairs(&self) -> usize {
        lock(&self.state).repairs
    }

    fn release(&self, release: &Release, queued: impl FnOnce()) -> Ticket {
        let Release {
            key,
            attempt: claim,
            scope,
            key_lasts,
        } = release;
        let ReleaseScope::Everywhere { stands_for } = scope else {
            panic!("no attempt is undone here")
        };
        assert!(stands_for.is_none() && !key_lasts.is_zero());
        let ticket = {
            let mut state = lock(&self.state);
            let purpose = Purpose::Release {
                conditions: ReleaseConditions::default(),
                context: None,
            };
            let ticket = state.rounds.open(purpose);
            // As if the other nodes did not respond: only where the key can be, it is released.
            state.queue(
                ticket,
                claim.reached,
                &LeaseRequest {
                    key,
                    token: &claim.token,
                    ttl_millis: 0,
                    kind: Kind::Plain,
                },
                What::Release,
            );
            state.released.push(Arc::clone(key.title()));
            if let Some(loss) = state.losses.get_mut(key.title()) {
                loss.at_release = Some(loss.taken + loss.lost.len());
            }
            queued();
            ticket
        };
        self.changed.notify_all();
        ticket
    }

    fn conclude(
        &self,
        ticket: Ticket,
        deadline: impl Fn() -> Timestamp,
        mut awaits_stragglers: bool,
    ) -> RoundResult {
        let mut state = lock(&self.state);
        while time::now() < deadline() {
            if state.rounds.is_decided(ticket) {
                if std::mem::take(&mut awaits_stragglers) && state.rounds.await_stragglers(ticket) {
                    continue;
                }
                break;
            }
            let left = deadline().since(time::now()).min(GLANCE);
            state = self.wait(state, left);
        }
        let undecided = state
            .rounds
            .round(ticket)
            .map_or(NodeSet::EMPTY, |round| round.tally.undecided());
        for node in undecided.iter() {
            let fault = Vote::Fault(Fault::new(Phase::Reply, Cause::TimedOut));
            state.rounds.vote(ticket, node, &fault);
        }
        state.rounds.conclude(ticket)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, time).unwrap().0
    }
}

impl State {
    fn extend(&mut self, order: &LeaseRequest<'_>) -> Ticket {
        let ticket = self.rounds.open(Purpose::Extend);
        self.queue(ticket, NodeSet::first(NODES), order, What::Extend);
        ticket
    }

    fn queue(&mut self, ticket: Ticket, nodes: NodeSet, order: &LeaseRequest<'_>, what: What) {
        let name = order.key.title();
        assert!(
            !self.released.iter().any(|key| key == name),
            "{name}: sent behind the release"
        );
        assert!(
            !self.left.iter().any(|key| key == name),
            "{name}: sent when its owner had left"
        );
        self.rounds.refer(ticket, nodes);
        for node in nodes.iter() {
            let ttl = Duration::from_millis(order.ttl_millis);
            let request = Request {
                ticket,
                key: Arc::clone(name),
                token: order.token.clone(),
                ttl,
                what,
            };
            self.nodes[node.index()].requests.push_back(request);
        }
    }

    fn answer(&mut self, index: usize, request: &Request) {
        let now = time::lease_now();
        let keys = &mut self.nodes[index].keys;
        keys.retain(|_, key| now < key.end);
        let end = now.after(request.ttl);
        let found = keys.get_mut(&request.key);
        let vote = match (request.what, found) {
            (What::Extend, None) => Vote::Absent,
            (What::Release, None) => Vote::Refused,
            (What::Repair, None) => {
                keys.insert(
                    request.key.clone(),
                    Key {
                        token: request.token.clone(),
                        end,
                    },
                );
                Vote::Granted
            }
            (What::Repair, Some(_)) => Vote::Refused,
            (_, Some(key)) if key.token != request.token => Vote::Refused,
            (What::Extend, Some(key)) => {
                key.end = end;
                Vote::Granted
            }
            (What::Release, Some(_)) => {
                keys.remove(&request.key);
                Vote::Granted
            }
        };
        self.rounds.count(request.ticket, NodeId::new(index), &vote);
    }
}
