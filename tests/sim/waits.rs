//! Rules about waiting: a waiter asks in time when a lock is free, seldom while it is held, has its
//! turn, and keeps its connections. They hold whatever becomes of published releases. The table of
//! all rules is in [`judge`](crate::judge).

use crate::holds::Hold;
use crate::judge::{Command, is_granted};
use crate::keys;
use crate::locks::Access;
use crate::plan::{Bounds, MILLISECOND, PLACE_LEASE, SECOND, seconds};
use crate::queues::Request;
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};

/// The longest delay between attempts of a client without a queue, as all clients have it set, for
/// clocks that differ.
const LONGEST_DELAY: u64 = 253 * MILLISECOND;
/// A call in a queue asks at the latest when an entry in front may have let it wait for this long,
/// and a millisecond later for each entry in front.
const LONGEST_SLEEP: u64 = (PLACE_LEASE + 10) * MILLISECOND * 101 / 100;
/// How often a call asks at most: at first, in each second, and for each time that the lock changes
/// hands. Delays that are drawn between the shortest one and three times the last one may stay
/// short for a long time.
const FIRST_ATTEMPTS: u64 = 96;
const ATTEMPTS_PER_SECOND: u64 = 24;
const ATTEMPTS_PER_CHANGE: u64 = 4;
/// The number of the resource that all sets share, among those that are waited for.
pub(crate) const SHARED: usize = usize::MAX - 1;
/// How often others may have the lock while a call waits for it.
const MOST_OVERTAKEN: u64 = 250;
/// How many connections a client makes to one node at most: at first, and in each second.
const FIRST_CONNECTIONS: u64 = 6;
const CONNECTIONS_PER_SECOND: u64 = 20;

/// What is known of the calls that wait, and of the locks that they wait for.
#[derive(Default)]
pub(crate) struct Waits {
    /// By thread.
    calls: BTreeMap<usize, Call>,
    /// By resource and node.
    keys: BTreeMap<(usize, usize), Key>,
    /// By client and resource: when it last asked.
    asked_at: BTreeMap<(usize, usize), u64>,
    /// By client and node: how many connections it has made.
    connections: BTreeMap<(usize, usize), u64>,
}

/// What is known of the key of a lock.
#[derive(Default)]
struct Key {
    /// Until when it refuses readers, and writers.
    refuses_until: [u64; 2],
}

/// What a call waits for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Awaited {
    /// The locks: all of them, or of a semaphore any.
    pub(crate) resources: Vec<usize>,
    pub(crate) is_any: bool,
    pub(crate) access: Access,
}

impl Awaited {
    /// A lock of one resource.
    pub(crate) fn one(resource: usize, access: Access) -> Awaited {
        Awaited {
            resources: vec![resource],
            is_any: false,
            access,
        }
    }
}

/// A call that waits for a lock.
#[derive(Default)]
struct Call {
    client: usize,
    awaited: Awaited,
    begun: u64,
    /// How often its client had lost time by then.
    pauses: u64,
    attempts: u64,
    /// How often another client has taken the lock since.
    changes: u64,
    /// The nodes that have stored its entry, and from when on a quorum of them keeps its ticket.
    stored_by: BTreeSet<usize>,
    seated_at: Option<u64>,
    /// Since then, how often others have got the lock that began later: in turn, and as newcomers.
    overtaken_in_turn: u64,
    overtaken: u64,
    /// For how long the lock was free since then, but for the present.
    free: u64,
    counted_until: u64,
}

impl World {
    /// The running thread calls for a lock.
    pub(crate) fn begins_to_wait(&mut self, awaited: Awaited) {
        let task = self.current_task();
        let client = self.current_client();
        let begun = self.now;
        let pauses = self.clients[client].pauses;
        if awaited.resources.contains(&SHARED) {
            self.saw("a wait for a set");
        }
        let call = Call {
            client,
            awaited,
            begun,
            pauses,
            counted_until: begun,
            ..Call::default()
        };
        self.waits.calls.insert(task, call);
    }

    /// The call has returned.
    pub(crate) fn ends_waiting(&mut self) {
        let task = self.current_task();
        self.check_asked_in_time(task);
        self.waits.calls.remove(&task);
    }

    /// A thread begins an attempt.
    pub(crate) fn asks(&mut self) {
        let task = self.current_task();
        let now = self.now;
        self.check_asked_in_time(task);
        let Some(call) = self.waits.calls.get_mut(&task) else {
            return;
        };
        call.attempts += 1;
        let nodes = self.plan.nodes.len() as u64;
        let limit = FIRST_ATTEMPTS
            + ATTEMPTS_PER_SECOND * (now - call.begun) / SECOND
            + ATTEMPTS_PER_CHANGE * nodes * call.changes;
        // Of up to three nodes, one whose messages a stranger forges and one that lacks the
        // holder's key are a quorum: each such message has a call ask. Those by fewer have it ask
        // once in 10 ms, which doubles each time.
        let is_limited = nodes > 3 || self.plan.hints.strays.is_none();
        let (client, resources, attempts, begun) = (
            call.client,
            call.awaited.resources.clone(),
            call.attempts,
            call.begun,
        );
        self.waits
            .asked_at
            .extend(resources.iter().map(|&resource| ((client, resource), now)));
        if attempts > limit && is_limited && self.plan.is_calm() {
            let took = seconds(now - begun);
            let what = name(&resources);
            let text = format!("client {client} has asked {attempts} times for {what} in {took}");
            self.violate("asks seldom", text);
        }
    }

    /// The client's guard of a lock has gone: until now its threads waited for that, whatever nodes
    /// had lost.
    pub(crate) fn waits_since_release(&mut self, client: usize, resource: usize) {
        self.waits.asked_at.insert((client, resource), self.now);
    }

    /// A node has run a command for the key of a lock.
    pub(crate) fn note_key(&mut self, node: usize, key: &[u8], resource: usize) {
        let now = self.now;
        let present = &self.nodes[node];
        let known = self.waits.keys.entry((resource, node)).or_default();
        let refuses_for =
            [Access::Read, Access::Write].map(|access| present.refuses_for(key, access, now));
        let until = [0, 1].map(|index| {
            refuses_for[index].map_or(known.refuses_until[index].min(now), |time| now + time)
        });
        // What was free until now is counted, before it is forgotten.
        let was_free = known.refuses_until.map(|until| until < now);
        if was_free
            .iter()
            .zip(until)
            .any(|(was_free, until)| *was_free && until > now)
        {
            self.count_free(resource);
        }
        self.waits
            .keys
            .entry((resource, node))
            .or_default()
            .refuses_until = until;
    }

    /// A node has run a take of a call that waits. A quorum that has stored the entry keeps its
    /// ticket a little later: when the call has heard of it, and the others have stored it. While
    /// its client has no subscriber connection to a node, the entry counts as dead there.
    pub(crate) fn note_seat(&mut self, command: &Command<'_>, request: &Request<'_>, reply: &[u8]) {
        let is_taken = request.verb == b"take"
            && request.stores
            && matches!(reply, [b'$', ..])
            && !is_granted(reply);
        let number =
            keys::attempt_of(command.words[5]).filter(|&number| number < self.judge.tokens.len());
        let Some(number) = number.filter(|_| request.verb == b"take") else {
            return;
        };
        self.judge.tokens[number].in_turn = request.stores;
        let task = self.judge.tokens[number].task;
        let now = self.now;
        let margin = 4 * self.plan.longest_way() + 20 * self.plan.lateness;
        let majority = self.judge.majority;
        let drawn_at = self.judge.tokens[number].drawn_at;
        let is_subscribed =
            self.is_subscribed(self.connections[command.connection].client, command.node);
        let is_seated = |call: &&mut Call| is_taken && is_subscribed && call.begun <= drawn_at;
        let Some(call) = self.waits.calls.get_mut(&task).filter(is_seated) else {
            return;
        };
        // With fewer replies than a quorum in time, a call without a ticket leaves, and begins
        // again.
        if request.proposes && call.stored_by.contains(&command.node) {
            call.stored_by.clear();
            call.seated_at = None;
        }
        call.stored_by.insert(command.node);
        if call.stored_by.len() >= majority && call.seated_at.is_none() {
            call.seated_at = Some(now + margin);
            call.free = 0;
            call.counted_until = now + margin;
        }
    }

    /// A node has run a take that removes what is in front, which may be alive: a call that the
    /// others of a quorum do not keep has its place again when a quorum has stored it again.
    pub(crate) fn note_challenge(&mut self, command: &Command<'_>) {
        let client = self.connections[command.connection].client;
        let majority = self.judge.majority;
        let Some(resource) = keys::resource_of(command.words[3]) else {
            return;
        };
        let is_concerned =
            |call: &&mut Call| call.client != client && call.awaited.resources.contains(&resource);
        for call in self.waits.calls.values_mut().filter(is_concerned) {
            call.stored_by.remove(&command.node);
            call.seated_at = call.seated_at.filter(|_| call.stored_by.len() >= majority);
        }
    }

    /// A lock was free until now: counted for all calls that wait for it in a queue.
    fn count_free(&mut self, resource: usize) {
        let now = self.now;
        let concerned: Vec<usize> = self
            .waits
            .calls
            .iter()
            .filter(|(_, call)| call.awaited.resources.contains(&resource))
            .map(|(task, _)| *task)
            .collect();
        for task in concerned {
            let free_since = self.free_since(&self.waits.calls[&task].awaited, Access::Write);
            let Some(call) = self.waits.calls.get_mut(&task) else {
                continue;
            };
            call.free += now.saturating_sub(free_since.max(call.counted_until));
            call.counted_until = call.counted_until.max(now);
        }
    }

    /// Since when all nodes would grant this for such access; now, if one of them would not.
    fn free_since(&self, awaited: &Awaited, access: Access) -> u64 {
        let asked_for = usize::from(access == Access::Write);
        let of_one = |&resource: &usize| {
            let keys = self
                .waits
                .keys
                .range((resource, 0)..=(resource, usize::MAX));
            keys.map(|(_, key)| key.refuses_until[asked_for].min(self.now))
                .max()
                .unwrap_or(0)
        };
        let each = awaited.resources.iter().map(of_one);
        if awaited.is_any {
            each.min()
        } else {
            each.max()
        }
        .unwrap_or(0)
    }

    /// A client has taken a lock, by a call that began then. That a set has its turn among many is
    /// not promised.
    pub(crate) fn note_change(&mut self, client: usize, taken: &[usize], token: usize, begun: u64) {
        let now = self.now;
        let in_turn = self.judge.tokens[token].in_turn;
        let mut overtaken = None;
        let mut out_of_order = None;
        let clients = self.clients.len() as u64;
        let is_whole = self.plan.hints.is_whole();
        let concerns = |call: &&mut Call| {
            call.awaited
                .resources
                .iter()
                .any(|resource| taken.contains(resource))
        };
        for call in self
            .waits
            .calls
            .values_mut()
            .filter(|call| call.client != client)
            .filter(concerns)
        {
            call.changes += 1;
            let is_single = call.awaited.resources.len() == 1;
            if call.changes > MOST_OVERTAKEN && is_single {
                overtaken = Some((call.client, call.changes, call.awaited.resources.clone()));
            }
            let Some(seated_at) = call.seated_at.filter(|&at| begun > at) else {
                continue;
            };
            if in_turn {
                call.overtaken_in_turn += 1;
            } else {
                call.overtaken += 1;
            }
            // One without an entry may come between a release and the next one in the queue. Its
            // own release tells the next one then, and for a second it asks in turn.
            let seconds_waited = (now - seated_at) / SECOND + 2;
            let is_writer = call.access() == Access::Write;
            let is_wrong = call.overtaken_in_turn > 0 || call.overtaken > clients * seconds_waited;
            if is_single && is_writer && is_whole && is_wrong {
                let numbers = (call.overtaken_in_turn, call.overtaken);
                out_of_order = Some((
                    call.client,
                    numbers,
                    call.awaited.resources.clone(),
                    seated_at,
                ));
            }
        }
        // With clocks that run too differently, first entries are challenged too early.
        if !self.plan.is_calm() || self.plan.bounds != Bounds::Kept {
            return;
        }
        if let Some((client, changes, resources)) = overtaken {
            let what = name(&resources);
            let text =
                format!("client {client} waits for {what}, and others have had it {changes} times");
            self.violate("has its turn", text);
        }
        if let Some((client, (in_turn, others), resources, seated_at)) = out_of_order {
            let what = name(&resources);
            let since = seconds(seated_at);
            let text = format!(
                "client {client} waits for {what} in a queue since {since}, and was overtaken {in_turn} times in turn \
                 and {others} times by newcomers; the last one began at {}",
                seconds(begun)
            );
            self.violate("in order", text);
        }
    }

    /// A client makes a connection.
    pub(crate) fn note_connection(&mut self, client: usize, node: usize) {
        let number = self.waits.connections.entry((client, node)).or_default();
        *number += 1;
        let number = *number;
        let limit = FIRST_CONNECTIONS + CONNECTIONS_PER_SECOND * self.now / SECOND;
        if number > limit && self.plan.is_calm() {
            let took = seconds(self.now);
            let text =
                format!("client {client} has made {number} connections to node {node} in {took}");
            self.violate("keeps connections", text);
        }
    }

    /// While no node has a key of the lock, the client that the thread belongs to asks again before
    /// its delay is over. For a set, a thread does that is first in its client's queue for one of
    /// the keys.
    fn check_asked_in_time(&mut self, task: usize) {
        let now = self.now;
        let Some(call) = self.waits.calls.get(&task) else {
            return;
        };
        let is_undisturbed = self.clients[call.client].is_undisturbed((call.begun, call.pauses));
        let holds = |hold: &Hold| {
            hold.client == call.client
                && !hold.is_over
                && call.awaited.resources.contains(&hold.resource)
        };
        let is_excused = !is_undisturbed || self.judge.holds.iter().any(holds);
        if is_excused || !self.plan.is_calm() && self.has_faults() {
            return;
        }
        let free_since = self.free_since(&call.awaited, call.awaited.access);
        let asked_at = call
            .awaited
            .resources
            .iter()
            .map(|&resource| self.waits.asked_at.get(&(call.client, resource)).copied());
        let asked_at = asked_at.flatten().max().unwrap_or(0);
        let waited = now - free_since.max(asked_at).max(call.begun);
        let limit = self.longest_delay(call);
        // All others that have got the lock meanwhile were in front, or as few as the rule "in
        // order" allows. Each time that it changes hands takes an attempt, of two round trips if
        // the nodes were divided, or a node timeout. The rest is the time that lost messages, and
        // holders whose lease ends, may cost: a challenge of the first entry and one more for what
        // it brings back. A reader may be behind a writer that waits for other readers.
        let free_of_all = self.free_since(&call.awaited, Access::Write);
        let free = call.free + now.saturating_sub(free_of_all.max(call.counted_until));
        let hand_off = 3 * self.plan.node_timeout
            + 40 * MILLISECOND
            + self.plan.hints.delay
            + self.plan.hints.disorder;
        let most_free = 3 * limit + hand_off * (call.changes + 1);
        let is_queued = call.seated_at.is_some() && publishes(call.client);
        if waited > limit {
            let waited = seconds(waited);
            let limit = seconds(limit);
            let client = call.client;
            let what = name(&call.awaited.resources);
            let text = format!(
                "client {client} waits for {what}, and leaves it free for {waited} of {limit}"
            );
            self.violate("asks in time", text);
        } else if is_queued && free > most_free && self.plan.is_calm() {
            let client = call.client;
            let what = name(&call.awaited.resources);
            let changes = call.changes;
            let free = seconds(free);
            let begun = seconds(call.begun);
            let text = format!(
                "client {client} waits for {what} since {begun}, which was free for {free} and changed hands {changes} \
                 times"
            );
            self.violate("has its turn", text);
        }
    }

    /// How long a waiter may leave a free lock alone, from the beginning of one attempt to the
    /// beginning of the next.
    fn longest_delay(&self, call: &Call) -> u64 {
        // Connecting, an attempt, and a raise.
        let attempt = 3 * self.plan.node_timeout + 10 * MILLISECOND + 10 * self.plan.lateness;
        let threads: usize = self.plan.clients.iter().map(|client| client.threads).sum();
        let queues = publishes(call.client);
        attempt
            + if queues {
                LONGEST_SLEEP + threads as u64 * MILLISECOND
            } else {
                LONGEST_DELAY
            }
    }
}

impl Call {
    fn access(&self) -> Access {
        self.awaited.access
    }
}

/// The locks, for a message.
fn name(resources: &[usize]) -> String {
    resources
        .iter()
        .map(|&resource| keys::key_of(resource))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Whether a client waits in queues, and subscribes to its channel.
pub(crate) fn publishes(client: usize) -> bool {
    client % 3 != 2
}
