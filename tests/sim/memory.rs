//! The rules about nodes that lose what they have, and about the notes that are stored at nodes.
//! They know what was lost, and not what is noted.
//!
//! What stays open by design is not judged:
//!
//! | open | for how long |
//! |---|---|
//! | a deployment is founded once more: no node that replies has kept a lock | until what was forgotten has ended |
//! | each node that knew of a longer time to live than a program's own has lost its data | for that program |
//! | a node loses its data in the same process, and was looked at within a second; not if the client is strict | one vote |
//! | a program that trusts every node takes a lock | as long as it has that lock |

use crate::holds::Hold;
use crate::judge::{Command, NODES, Token};
use crate::machine::Node;
use crate::plan::{Fault, Kind, MILLISECOND, SECOND};
use crate::world::World;
use quorumlock::RestartPolicy;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Under which key nodes remember what they are.
pub(crate) const NODE_KEY: &[u8] = b"quorumlock-node:";
/// What the note of a founder begins with.
const FOUNDER: &[u8] = b"1 f ";
/// For how long a node that has failed, or could not be reached, may not be asked.
const LONGEST_SILENCE: u64 = 3 * SECOND;
/// A program may take others for founders that began with it. Later than that it knows better.
const FOUNDING: u64 = 2 * SECOND;

/// What nodes have lost, and what is written at them.
#[derive(Default)]
pub(crate) struct Memory {
    /// By node, in order.
    losses: [Vec<Loss>; NODES],
    /// By connection, in order.
    looks: BTreeMap<usize, Vec<Look>>,
    /// By node: the note that was stored last.
    notes: [Vec<u8>; NODES],
    /// By node: when it was noted as a founder last.
    founded_at: [u64; NODES],
    /// By node: until when something kept it from its replies.
    disturbed_until: [Option<u64>; NODES],
    /// Attempts and nodes that granted them, where a loss could not be seen yet.
    unseen: BTreeSet<(usize, usize)>,
    /// When locks may be given away that were forgotten, in order.
    open: Vec<Range<u64>>,
}

struct Loss {
    at: u64,
    /// Connections have outlived it.
    is_in_process: bool,
    /// The longest time to live that a node has known ever since, in milliseconds.
    known: u64,
}

#[derive(Clone, Copy)]
struct Look {
    /// When the note was read.
    read_at: u64,
    /// The node's clock a moment later.
    millis: u64,
}

impl Memory {
    pub(crate) fn has_losses(&self) -> bool {
        self.losses.iter().any(|losses| !losses.is_empty())
    }

    /// The last loss of a node until then.
    fn loss_before(&self, node: usize, at: u64) -> Option<&Loss> {
        self.losses[node].iter().rfind(|loss| loss.at <= at)
    }

    fn has_lost_since(&self, node: usize, at: u64) -> bool {
        self.losses[node].last().is_some_and(|loss| loss.at >= at)
    }
}

impl Node {
    /// The longest time to live that its note names, in milliseconds.
    pub(crate) fn noted_ttl(&self, now: u64) -> Option<u64> {
        let note = str::from_utf8(self.store.value(NODE_KEY, self.millis(now))?).ok()?;
        note.split(' ').nth(4)?.parse().ok()
    }
}

impl World {
    /// A node has lost its data, and has older ones at most.
    pub(crate) fn has_lost(&mut self, node: usize) {
        let now = self.now;
        let present = &self.nodes[node];
        let is_in_process = present.is_up;
        let millis = present.millis(now);
        for key in present.store.keys(millis) {
            let content = present.content(key, now);
            for entry in content.live(millis) {
                // What was deleted is there again.
                let token = &mut self.judge.tokens[entry.attempt];
                token.is_excused |= token.closed_at > 0 || token.deleted_at[node].is_some();
            }
            self.judge.entries.restore(node, key, content);
        }
        let entries = self
            .queues_of(node)
            .into_iter()
            .flat_map(|(_, entries)| entries);
        self.judge.queues.restored.extend(entries);
        let known = self
            .nodes
            .iter()
            .filter_map(|node| node.noted_ttl(now))
            .max()
            .unwrap_or(0);
        let memory = &mut self.judge.memory;
        memory.losses[node].push(Loss {
            at: now,
            is_in_process,
            known,
        });
        memory
            .losses
            .iter_mut()
            .flatten()
            .for_each(|loss| loss.known = loss.known.min(known));
    }

    /// A fault may keep nodes from their replies.
    pub(crate) fn is_disturbed(&mut self, fault: &Fault) {
        if matches!(
            fault.kind,
            Kind::KillFirst
                | Kind::Leave
                | Kind::Pause
                | Kind::Save
                | Kind::SetWallClock(_)
                | Kind::Sleep
                | Kind::StopFirst
        ) {
            return;
        }
        let until = Some(self.now + fault.time);
        for disturbed_until in &mut self.judge.memory.disturbed_until
            [fault.node.map_or(0..NODES, |node| node..node + 1)]
        {
            *disturbed_until = until.max(*disturbed_until);
        }
    }

    /// A node was asked what it remembers.
    pub(crate) fn looked(&mut self, command: &Command<'_>) {
        let look = Look {
            read_at: self.now,
            millis: command.millis,
        };
        self.judge
            .memory
            .looks
            .entry(command.connection)
            .or_default()
            .push(look);
        self.saw("a look at what a node remembers");
    }

    /// A node was asked for its clock, behind a look.
    pub(crate) fn looked_at_clock(&mut self, command: &Command<'_>) {
        let looks = self.judge.memory.looks.get_mut(&command.connection);
        if let Some(look) = looks.and_then(|looks| looks.last_mut()) {
            look.millis = command.millis;
        }
    }

    /// A node was to store a note.
    pub(crate) fn noted(&mut self, command: &Command<'_>, reply: &[u8]) {
        let [_, _, _, _, _, _, front, time, behind] = *command.words else {
            return;
        };
        let clock = (command.millis * 1000).to_string();
        let is_new = time.is_empty();
        let note = [front, if is_new { clock.as_bytes() } else { time }, behind].concat();
        let client = self.connections[command.connection].client;
        let node = command.node;
        // Another program may have stored the very same one, within a millisecond.
        let is_other = self.judge.memory.notes[node] != note;
        let is_stored = is_other
            && reply
                .strip_suffix(b"\r\n")
                .is_some_and(|reply| reply.ends_with(&note));
        self.record(|| {
            let stored = if is_stored {
                "stores"
            } else {
                "does not store"
            };
            format!(
                "client {client} → node {node}: it {stored} {}",
                String::from_utf8_lossy(&note)
            )
        });
        if !is_stored {
            return self.saw("a note that is not stored");
        }
        self.saw("a note of a node about itself");
        self.judge.memory.notes[node] = note;
        // The last one may not have been replied to.
        let mut looks = self
            .judge
            .memory
            .looks
            .get(&command.connection)
            .into_iter()
            .flatten();
        let is_fresh = |look: &Look| (look.millis..=look.millis + 1000).contains(&command.millis);
        if !looks.any(is_fresh) {
            let text = format!(
                "node {node} has stored a note of client {client} for a look that is too old"
            );
            self.violate("fresh look", text);
        }
        if is_new && front == FOUNDER {
            self.founds(client, node);
        }
    }

    /// A node was noted as a founder.
    fn founds(&mut self, client: usize, node: usize) {
        let knowing = (0..self.nodes.len()).find(|&other| self.knows_better(client, other));
        if self.plan.policy(client) == RestartPolicy::Strict {
            self.violate(
                "founding",
                format!("client {client} is strict, and has noted node {node} as a founder"),
            );
        } else if let Some(other) = knowing {
            let text = format!(
                "client {client} has noted node {node} as a founder, and node {other} has kept a lock"
            );
            self.violate("founding", text);
        }
        let now = self.now;
        let until = now + self.judge.longest_ttl * MILLISECOND * 102 / 100;
        let memory = &mut self.judge.memory;
        memory.founded_at[node] = now;
        if memory.has_losses() {
            match memory.open.last_mut().filter(|open| now < open.end) {
                Some(open) => open.end = until,
                None => memory.open.push(now..until),
            }
            self.saw("a deployment that is founded once more");
        }
    }

    /// Whether a node replies to a client, and has kept a lock that was taken while it voted.
    fn knows_better(&self, client: usize, node: usize) -> bool {
        let is_quiet =
            |until: Option<u64>| until.is_none_or(|until| until + LONGEST_SILENCE < self.now);
        let delayed_until = Some(self.clients[client].delayed_until).filter(|&until| until > 0);
        let is_near =
            8 * self.plan.longest_way() + 20 * self.plan.lateness < self.plan.node_timeout / 2;
        if !self.plan.is_protected()
            || !self.plan.is_prompt()
            || !is_near
            || !is_quiet(delayed_until)
        {
            return false;
        }
        let memory = &self.judge.memory;
        let is_past = |hold: &&Hold| {
            self.noted_by(hold)
                .is_some_and(|at| at + FOUNDING < self.now)
        };
        let has_kept = |hold: &Hold| {
            let set_at = self.judge.tokens[hold.token].set_at[node].filter(|&at| at <= hold.since);
            set_at.is_some_and(|at| !memory.has_lost_since(node, at))
        };
        is_quiet(memory.disturbed_until[node])
            && self.judge.holds.iter().filter(is_past).any(has_kept)
    }

    /// When the nodes of a lock are noted. A program that trusts every node does not wait for that:
    /// it goes on with a call after the time of late nodes.
    fn noted_by(&self, hold: &Hold) -> Option<u64> {
        let late = hold.since + self.plan.node_timeout;
        let is_next = |token: &&Token| token.client == hold.client && token.drawn_at > late;
        match self.plan.policy(hold.client) {
            RestartPolicy::Off => self
                .judge
                .tokens
                .iter()
                .find(is_next)
                .map(|token| token.drawn_at),
            _ => Some(hold.since),
        }
    }

    /// A node has granted a lock. It may have lost others since it was looked at: by design, for
    /// one second. A strict client looks behind each vote.
    pub(crate) fn granted(&mut self, command: &Command<'_>, number: usize) {
        let client = self.connections[command.connection].client;
        if self.plan.policy(client) == RestartPolicy::Strict {
            return;
        }
        let memory = &self.judge.memory;
        let written_at = self.connections[command.connection].command_written_at;
        let Some(loss) = memory.losses[command.node]
            .last()
            .filter(|loss| loss.is_in_process)
        else {
            return;
        };
        let look = memory
            .looks
            .get(&command.connection)
            .and_then(|looks| looks.last());
        let Some(look) = look.filter(|look| look.read_at <= loss.at) else {
            return;
        };
        let delays = |fault: &Fault| {
            let is_harmless = matches!(
                fault.kind,
                Kind::Save | Kind::SetNodeClock(_) | Kind::SetWallClock(_)
            );
            !fault.kind.loses_data() && !is_harmless
        };
        let is_timed = self.plan.is_prompt() && !self.plan.faults.iter().any(delays);
        let longest = SECOND * 102 / 100 + 4 * self.plan.longest_way() + 20 * self.plan.lateness;
        if !is_timed || written_at <= look.read_at + longest {
            self.judge.memory.unseen.insert((number, command.node));
            self.saw("a vote of a node whose loss cannot be seen yet");
        }
    }

    /// A lock was taken: by a quorum of nodes that are noted, and have lost none that may last.
    pub(crate) fn check_memory(&mut self, client: usize, number: usize) {
        let policy = self.plan.policy(client);
        if !self.plan.is_protected() || policy == RestartPolicy::Off || self.clients[client].is_gone
        {
            return;
        }
        let kept = (0..self.nodes.len())
            .filter(|&node| self.has_kept(number, node))
            .count();
        if kept < self.judge.majority {
            let text =
                format!("attempt {number} was won with {kept} nodes that have kept what they had");
            self.violate("kept memory", text);
        }
    }

    fn has_kept(&self, number: usize, node: usize) -> bool {
        let Some(set_at) = self.judge.tokens[number].set_at[node] else {
            return false;
        };
        let memory = &self.judge.memory;
        let present = &self.nodes[node];
        if memory.unseen.contains(&(number, node)) {
            return true;
        }
        let is_noted = present
            .store
            .value(NODE_KEY, present.millis(self.now))
            .is_some();
        if !is_noted && !memory.has_lost_since(node, set_at) {
            return false;
        }
        let Some(loss) = memory.loss_before(node, set_at) else {
            return true;
        };
        // What it may have forgotten, from what was taken before.
        let clients = self
            .judge
            .holds
            .iter()
            .filter(|hold| hold.since <= loss.at)
            .map(|hold| hold.client);
        let longest = clients
            .map(|client| self.plan.max_ttl(client))
            .max()
            .unwrap_or(0);
        let own = self.plan.max_ttl(self.judge.tokens[number].client);
        let longest = longest.min(loss.known.max(own)) * MILLISECOND;
        self.now >= loss.at + longest / 100 * 98 || memory.founded_at[node] >= loss.at
    }

    /// Whether two guards of one lock may be valid at once.
    pub(crate) fn is_open(&self, hold: usize, other: usize) -> bool {
        // By when each was taken: a writer that has become a reader since was not taken anew.
        let holds = &self.judge.holds;
        let taken_at = |hold: usize| {
            holds
                .iter()
                .position(|first| first.token == holds[hold].token)
        };
        let [earlier, later] = if taken_at(hold) < taken_at(other) {
            [hold, other]
        } else {
            [other, hold]
        };
        let earlier = &holds[earlier];
        let later = &holds[later];
        let memory = &self.judge.memory;
        let is_unseen = |token: usize| {
            memory
                .unseen
                .range((token, 0)..(token + 1, 0))
                .next()
                .is_some()
        };
        let trusts_all = self.plan.clients[later.client].trusts_all;
        let [longest, own] = [earlier, later].map(|hold| self.plan.max_ttl(hold.client));
        // A writer that becomes a reader has its lock for longer than that hold.
        let begun = self.judge.tokens[earlier.token].drawn_at;
        let is_unknown = |loss: &Loss| loss.at >= begun && loss.known < longest;
        let waits_too_short = own < longest && memory.losses.iter().flatten().any(is_unknown);
        let is_any_unseen = is_unseen(earlier.token) || is_unseen(later.token);
        let is_founding = memory.open.iter().any(|open| open.contains(&later.since));
        is_founding || is_any_unseen || waits_too_short || trusts_all
    }
}
