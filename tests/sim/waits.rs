//! Rules about waiting: a waiter asks in time when a lock is free, seldom while it is held, has its turn, and keeps its
//! connections. They hold whatever becomes of published releases. The table of all rules stands in
//! [`judge`](crate::judge).

use crate::algorithm::lock_kind::Access;
use crate::plan::{MILLISECOND, SECOND, seconds};
use crate::world::World;
use std::collections::BTreeMap;

/// The longest delay between attempts, as all clients have it set, for clocks that differ.
const LONGEST_DELAY: u64 = 253 * MILLISECOND;
/// The longest that a waiter sleeps which has subscribed at so many nodes that no release escapes it.
const LONGEST_SLEEP: u64 = 10_100 * MILLISECOND;
/// The longest that a waiter gives each of those that have waited for longer, twice over.
const TURN: u64 = 6 * MILLISECOND;
/// How often a call asks at most: at first, in each second, and for each time that the lock changes hands. Delays that
/// are drawn between the shortest one and three times the last one may stay short for a long time.
const FIRST_ATTEMPTS: u64 = 96;
const ATTEMPTS_PER_SECOND: u64 = 24;
const ATTEMPTS_PER_CHANGE: u64 = 4;
/// How many attempts more a stranger provokes at most, until it is distrusted: by as many announcements as it takes,
/// with delays that double up to ten seconds, each followed by one more attempt.
const STRAY_ATTEMPTS: u64 = 2 * (4 + 13);
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
    /// The attempt whose key it was last.
    attempt: usize,
    /// Until when it refuses readers, and writers.
    refuses_until: [u64; 2],
}

/// A call that waits for a lock.
struct Call {
    client: usize,
    /// Its resources; of a single lock, twice the same.
    resources: [usize; 2],
    access: Access,
    begun: u64,
    /// How often its client had lost time by then.
    pauses: u64,
    longest_sleep: u64,
    attempts: u64,
    /// How often another client has taken the lock since.
    changes: u64,
}

impl World {
    /// The running thread calls for a lock, or for the set of a resource, and waits for so long; none is without limit.
    pub(crate) fn begins_to_wait(&mut self, (what, access): ((usize, bool), Access), patience: Option<u64>) {
        let (task, client) = (self.current_task(), self.current_client());
        let (begun, pauses) = (self.now, self.clients[client].pauses);
        let longest_sleep = patience.map_or(LONGEST_SLEEP, |time| (time / 2).min(LONGEST_SLEEP));
        let resources = resources_of(what);
        if what.1 {
            self.saw("a wait for a set");
        }
        let call = Call { client, resources, access, begun, pauses, longest_sleep, attempts: 0, changes: 0 };
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
        let (task, now) = (self.current_task(), self.now);
        self.check_asked_in_time(task);
        let Some(call) = self.waits.calls.get_mut(&task) else { return };
        call.attempts += 1;
        let (nodes, has_strays) = (self.plan.nodes.len() as u64, u64::from(self.plan.hints.strays.is_some()));
        let stray = has_strays * STRAY_ATTEMPTS;
        let limit = FIRST_ATTEMPTS
            + stray
            + ATTEMPTS_PER_SECOND * (now - call.begun) / SECOND
            + (ATTEMPTS_PER_CHANGE * nodes + stray) * call.changes;
        let (client, resources, attempts, begun) = (call.client, call.resources, call.attempts, call.begun);
        self.waits.asked_at.extend(resources.map(|resource| ((client, resource), now)));
        if attempts > limit && self.plan.is_calm() {
            let (took, what) = (seconds(now - begun), name(resources));
            let text = format!("client {client} has asked {attempts} times for {what} in {took}");
            self.violate("asks seldom", text);
        }
    }

    /// A node has run a command for the key of an attempt.
    pub(crate) fn note_key(&mut self, node: usize, key: &[u8], (resource, token): (usize, usize)) {
        let (now, present) = (self.now, &self.nodes[node]);
        let known = self.waits.keys.entry((resource, node)).or_default();
        if self.plan.reads_and_writes() {
            let refuses_for = [Access::Read, Access::Write].map(|access| present.refuses_for(key, access, now));
            known.refuses_until =
                [0, 1].map(|index| refuses_for[index].map_or(known.refuses_until[index].min(now), |time| now + time));
            return;
        }
        match present.time_left(key, (token, Access::Write), now) {
            Some(left) => *known = Key { attempt: token, refuses_until: [now.saturating_add_signed(left); 2] },
            None if known.attempt == token => known.refuses_until = known.refuses_until.map(|until| until.min(now)),
            None => {}
        }
    }

    /// A client has taken a lock, or the set of a resource. That a set has its turn among many is not promised.
    pub(crate) fn note_change(&mut self, client: usize, what: (usize, bool)) {
        let (taken, mut overtaken) = (resources_of(what), None);
        let concerns = |call: &&mut Call| call.resources.iter().any(|resource| taken.contains(resource));
        for call in self.waits.calls.values_mut().filter(|call| call.client != client).filter(concerns) {
            call.changes += 1;
            if call.changes > MOST_OVERTAKEN && call.resources[0] == call.resources[1] {
                overtaken = Some((call.client, call.changes, call.resources));
            }
        }
        if let Some((client, changes, resources)) = overtaken
            && self.plan.is_calm()
        {
            let what = name(resources);
            let text = format!("client {client} waits for {what}, and others have had it {changes} times");
            self.violate("has its turn", text);
        }
    }

    /// A client makes a connection.
    pub(crate) fn note_connection(&mut self, client: usize, node: usize) {
        let number = self.waits.connections.entry((client, node)).or_default();
        *number += 1;
        let (number, limit) = (*number, FIRST_CONNECTIONS + CONNECTIONS_PER_SECOND * self.now / SECOND);
        if number > limit && self.plan.is_calm() {
            let took = seconds(self.now);
            let text = format!("client {client} has made {number} connections to node {node} in {took}");
            self.violate("keeps connections", text);
        }
    }

    /// While no node has a key of the lock, the client that the thread belongs to asks again before its delay is over.
    /// For a set, a thread does that is first in its client's queue for one of the keys.
    fn check_asked_in_time(&mut self, task: usize) {
        let now = self.now;
        let Some(call) = self.waits.calls.get(&task) else { return };
        let present = &self.clients[call.client];
        let is_undisturbed = present.pauses == call.pauses && present.delayed_until < call.begun && !present.is_gone;
        if !is_undisturbed || !self.plan.is_calm() && self.has_faults() {
            return;
        }
        let asked_for = usize::from(call.access == Access::Write);
        let keys = call.resources.map(|resource| self.waits.keys.range((resource, 0)..(resource + 1, 0)));
        let free_since =
            keys.into_iter().flatten().map(|(_, key)| key.refuses_until[asked_for].min(now)).max().unwrap_or(0);
        let asked_at = call.resources.map(|resource| self.waits.asked_at.get(&(call.client, resource)).copied());
        let asked_at = asked_at.into_iter().flatten().max().unwrap_or(0);
        let waited = now - free_since.max(asked_at).max(call.begun);
        let limit = self.longest_delay(call);
        if waited > limit {
            let (waited, limit) = (seconds(waited), seconds(limit));
            let (client, what) = (call.client, name(call.resources));
            let text = format!("client {client} waits for {what}, and leaves it free for {waited} of {limit}");
            self.violate("asks in time", text);
        }
    }

    /// How long a waiter may leave a free lock alone, from the beginning of one attempt to the beginning of the next.
    fn longest_delay(&self, call: &Call) -> u64 {
        let hints = &self.plan.hints;
        // Connecting, an attempt, and a raise.
        let attempt = 3 * self.plan.node_timeout + 10 * MILLISECOND + 10 * self.plan.lateness;
        let crowd = hints.strays.as_ref().map_or(0, |strays| u64::from(strays.crowd));
        let turns = TURN * (crowd + self.clients.len() as u64);
        let subscribes = publishes(call.client);
        let all_publish = (0..self.clients.len()).all(publishes);
        let is_sure = self.plan.is_calm() && all_publish && hints.loss == 0 && hints.strays.is_none();
        let delay = match subscribes && !is_sure {
            true => self.longest_sleep(call).max(LONGEST_DELAY),
            false => LONGEST_DELAY + hints.delay + hints.disorder,
        };
        delay + attempt + turns
    }

    /// How long the first thread in the queue of the call's client sleeps at most, whichever of them that is.
    fn longest_sleep(&self, call: &Call) -> u64 {
        let shares = |other: &Call| other.resources.iter().any(|resource| call.resources.contains(resource));
        let is_beside = |other: &&Call| other.client == call.client && shares(other);
        let beside = self.waits.calls.values().filter(is_beside);
        beside.map(|other| other.longest_sleep).max().unwrap_or(call.longest_sleep)
    }
}

/// The resources of a lock, or of the set of one.
fn resources_of((resource, is_set): (usize, bool)) -> [usize; 2] {
    [resource, if is_set { SHARED } else { resource }]
}

fn name([resource, other]: [usize; 2]) -> String {
    if resource == other { format!("r{resource}") } else { format!("the set of r{resource}") }
}

/// Whether a client publishes its releases, and subscribes to those of others.
pub(crate) fn publishes(client: usize) -> bool {
    client % 3 != 2
}
