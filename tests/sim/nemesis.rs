//! What strikes: each fault of a plan, done to the world, and its end.

use crate::plan::{Data, Kind, SECOND};
use crate::refusals::Refusal;
use crate::wire::End;
use crate::world::{Event, Phase, World};
use quorumlock::embedded::Condition;

/// How long a connection is silent before its system tries it.
const KEEP_ALIVE_AFTER: u64 = 10 * SECOND;

impl World {
    pub(crate) fn strike(&mut self, kind: &Kind) {
        let now = self.now;
        self.record(|| format!("{kind:?}"));
        self.saw(name(kind));
        self.is_disturbed(kind);
        match *kind {
            Kind::Block {
                client,
                node,
                directions,
                time,
            } => {
                for from in 0..self.clients.len() {
                    for to in 0..self.nodes.len() {
                        if client.is_some_and(|client| client != from)
                            || node.is_some_and(|node| node != to)
                        {
                            continue;
                        }
                        let path = self.path(from, to);
                        for (direction, blocked) in directions.into_iter().enumerate() {
                            if blocked {
                                path.blocked_until[direction] =
                                    path.blocked_until[direction].max(now + time);
                            }
                        }
                    }
                }
            }
            Kind::Condition {
                node,
                condition,
                time,
            } if self.nodes[node].is_up => {
                self.nodes[node].store.set_condition(condition);
                self.recover_later(node, time);
            }
            Kind::Crash {
                node,
                time,
                data,
                is_dark,
            } => self.crash(node, time, data, is_dark),
            Kind::Cut { client, node } => {
                for index in self.live_connections(client, Some(node)) {
                    self.cut(index);
                }
            }
            Kind::CutSubscribers { client, node } => {
                for index in self.live_connections(client, Some(node)) {
                    if self.connections[index].is_subscriber {
                        self.cut(index);
                    }
                }
            }
            Kind::Evict { node } | Kind::Flush { node } => self.lose_data(node, Data::Lost),
            Kind::ForgetScripts { node } => self.nodes[node].store.forget_scripts(),
            Kind::Hang { node, time } if self.nodes[node].is_up => {
                self.nodes[node].is_hung = true;
                self.recover_later(node, time);
            }
            Kind::Leave { client } => self.leave(client),
            Kind::LoseQueues { node } => self.lose_queues(node),
            Kind::Pause { client, time } => self.pause(client, time),
            Kind::Refuse {
                node,
                refusal,
                time,
            } if self.nodes[node].is_up => {
                self.nodes[node].refusal = Some(refusal);
                self.recover_later(node, time);
            }
            Kind::Resync { node, time } if self.nodes[node].is_up => {
                self.lose_data(node, Data::Saved);
                self.nodes[node].store.set_condition(Condition::Replica);
                self.recover_later(node, time);
            }
            Kind::Save { node } => {
                self.nodes[node].saved = Some(Box::new(self.nodes[node].store.clone()))
            }
            Kind::SetNodeClock { node, by } => {
                self.nodes[node].offset += by;
                self.read_entries_again(node);
            }
            Kind::SetWallClock { client, by } => {
                self.clients[client].wall_offset += by;
                self.clients[client].pauses += 1;
            }
            Kind::Sleep { client, time } => self.put_to_sleep(client, time),
            Kind::StopFirst { node, time } => {
                let first = self.first_in_a_queue(node);
                match (first, time) {
                    (None, _) => {}
                    (Some(client), Some(time)) => {
                        self.saw("a client that is stopped while its entry is first");
                        self.pause(client, time);
                    }
                    (Some(client), None) => {
                        self.saw("a client that is killed while its entry is first");
                        self.leave(client);
                    }
                }
            }
            Kind::Void { client, node } => {
                for index in self.live_connections(Some(client), Some(node)) {
                    self.connections[index].is_void = true;
                }
            }
            // The node is down.
            Kind::Condition { .. }
            | Kind::Hang { .. }
            | Kind::Refuse { .. }
            | Kind::Resync { .. } => {}
        }
    }

    fn recover_later(&mut self, node: usize, time: u64) {
        self.nodes[node].serial += 1;
        let serial = self.nodes[node].serial;
        self.schedule(self.now + time, Event::Recover { node, serial });
    }

    fn crash(&mut self, node: usize, time: u64, data: Data, is_dark: bool) {
        if !self.nodes[node].is_up {
            return;
        }
        self.hang_up(node, is_dark);
        self.nodes[node].stop();
        (self.nodes[node].is_dark, self.nodes[node].is_promoted) =
            (is_dark, data == Data::OfReplica);
        if data != Data::Kept {
            self.lose_data(node, data);
        }
        self.recover_later(node, time);
    }

    fn lose_data(&mut self, node: usize, data: Data) {
        let present = &mut self.nodes[node];
        match (data, &present.saved) {
            (Data::Saved | Data::OfReplica, Some(saved)) => present.store.copy_keys(saved),
            _ => present.store.clear(),
        }
        self.judge.entries.forget(node);
        self.has_lost(node);
    }

    /// A fault of a node ends, unless another one has begun since.
    pub(crate) fn recover(&mut self, node: usize, serial: u64) {
        if self.nodes[node].serial != serial {
            return;
        }
        let now = self.now;
        self.record(|| format!("node {node} is well again"));
        if !self.nodes[node].is_up {
            self.nodes[node].start(now);
        }
        self.nodes[node].store.set_condition(Condition::Serving);
        self.nodes[node].refusal = None;
        if self.nodes[node].is_hung {
            self.go_on(node);
        }
    }

    /// A client's process is killed. Its system closes its connections.
    fn leave(&mut self, client: usize) {
        if self.clients[client].is_gone
            || self.clients.iter().filter(|client| !client.is_gone).count() == 1
        {
            return;
        }
        for index in self.live_connections(Some(client), None) {
            self.cut_by_client(index, End::Closed);
        }
        self.judge.forget_client(client);
        self.clients[client].is_gone = true;
        self.rouse(client);
    }

    /// All faults end.
    pub(crate) fn heal(&mut self) {
        let now = self.now;
        self.record(|| "all faults end".to_owned());
        self.phase = Phase::Healed;
        self.window = self.window.max(64 * 1024);
        for path in &mut self.paths {
            path.blocked_until = path.blocked_until.map(|until| until.min(now));
        }
        for index in 0..self.connections.len() {
            // Whatever waited for its path is sent now.
            self.schedule(now, Event::ToNode { connection: index });
            self.schedule(now, Event::ToClient { connection: index });
            self.schedule(
                now + KEEP_ALIVE_AFTER,
                Event::KeepAlive { connection: index },
            );
        }
        for node in 0..self.nodes.len() {
            let serial = self.nodes[node].serial;
            self.recover(node, serial);
            self.nodes[node].serial += 1;
        }
        for client in 0..self.clients.len() {
            self.clients[client].paused_until = self.clients[client].paused_until.min(now);
            self.resume(client);
        }
    }
}

fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Block {
            directions: [true, true],
            ..
        } => "fault: a path is blocked",
        Kind::Block { .. } => "fault: a path is blocked in one direction",
        Kind::Condition {
            condition: Condition::Loading,
            ..
        } => "fault: a node loads its data",
        Kind::Condition {
            condition: Condition::Replica,
            ..
        } => "fault: a node is a replica",
        Kind::Condition { .. } => "fault: a node is out of memory",
        Kind::Crash {
            data: Data::Lost, ..
        } => "fault: a node loses its data",
        Kind::Crash {
            data: Data::Saved, ..
        } => "fault: a node comes back with a snapshot",
        Kind::Crash {
            data: Data::OfReplica,
            ..
        } => "fault: a replica that lags becomes the master",
        Kind::Crash { is_dark: true, .. } => "fault: a machine crashes",
        Kind::Crash { .. } => "fault: a node crashes",
        Kind::Cut { .. } => "fault: connections are reset",
        Kind::CutSubscribers { .. } => "fault: subscriber connections are reset",
        Kind::Evict { .. } => "fault: a node evicts keys",
        Kind::Flush { .. } => "fault: a node is flushed",
        Kind::ForgetScripts { .. } => "fault: a node forgets its scripts",
        Kind::Hang { .. } => "fault: a node hangs",
        Kind::Leave { .. } => "fault: a client is killed",
        Kind::LoseQueues { .. } => "fault: queues are deleted",
        Kind::Pause { .. } => "fault: a client is paused",
        Kind::Resync { .. } => "fault: a node is a replica with other data for a while",
        Kind::Save { .. } => "a copy of a node's data",
        Kind::SetNodeClock { by: 1.., .. } => "fault: a node's clock is set forward",
        Kind::SetNodeClock { .. } => "fault: a node's clock is set",
        Kind::SetWallClock { .. } => "fault: a client's wall clock is set",
        Kind::Refuse {
            refusal: Refusal::Busy,
            ..
        } => "fault: a node is busy with a script",
        Kind::Refuse {
            refusal: Refusal::Misconf,
            ..
        } => "fault: a node cannot write to its disk",
        Kind::Refuse {
            refusal: Refusal::NoReplicas,
            ..
        } => "fault: a node has too few replicas",
        Kind::Sleep { .. } => "fault: a client's machine sleeps",
        Kind::StopFirst { .. } => "fault: the first in a queue is stopped or killed",
        Kind::Void { .. } => "fault: a connection is half-open",
    }
}
