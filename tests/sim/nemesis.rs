//! What strikes: each fault of a plan, done to the world, and its end.

use crate::plan::{Data, Fault, Kind, SECOND};
use crate::refusals::Refusal;
use crate::wire::End;
use crate::world::{Event, Phase, World};
use quorumlock::embedded::Condition;

/// How long a connection is silent before its system tries it.
const KEEP_ALIVE_AFTER: u64 = 10 * SECOND;

impl World {
    pub(crate) fn strike(&mut self, fault: &Fault) {
        let Fault {
            kind,
            client,
            node,
            time,
            ..
        } = *fault;
        self.record(|| format!("{fault:?}"));
        self.saw(name(kind));
        self.is_disturbed(fault);
        let struck = node.unwrap_or(0);
        let struck_client = client.unwrap_or(0);
        let is_up = self.nodes[struck].is_up;
        match kind {
            Kind::Block(directions) => self.block((client, node), directions, time),
            Kind::Condition(condition) if is_up => {
                self.nodes[struck].store.set_condition(condition);
                self.recover_later(struck, time);
            }
            Kind::Crash(data) => self.crash(struck, time, data, false),
            Kind::Cut | Kind::CutSubscribers => {
                for index in self.live_connections(client, node) {
                    if kind == Kind::Cut || self.connections[index].is_subscriber {
                        self.cut(index);
                    }
                }
            }
            Kind::Evict | Kind::Flush => self.lose_data(struck, Data::Lost),
            Kind::ForgetScripts => self.nodes[struck].store.forget_scripts(),
            Kind::Hang if is_up => {
                self.nodes[struck].is_hung = true;
                self.recover_later(struck, time);
            }
            Kind::KillFirst => {
                if let Some(first) = self.first_in_a_queue(struck) {
                    self.saw("a client that is killed while its entry is first");
                    self.leave(first);
                }
            }
            Kind::Leave => self.leave(struck_client),
            Kind::LoseQueues => self.lose_queues(struck),
            Kind::MachineCrash(data) => self.crash(struck, time, data, true),
            Kind::Pause => self.pause(struck_client, time),
            Kind::Refuse(refusal) if is_up => {
                self.nodes[struck].refusal = Some(refusal);
                self.recover_later(struck, time);
            }
            Kind::Resync if is_up => {
                self.lose_data(struck, Data::Saved);
                self.nodes[struck].store.set_condition(Condition::Replica);
                self.recover_later(struck, time);
            }
            Kind::Save => {
                self.nodes[struck].saved = Some(Box::new(self.nodes[struck].store.clone()));
            }
            Kind::SetNodeClock(by) => {
                self.nodes[struck].offset += by;
                self.read_entries_again(struck);
            }
            Kind::SetWallClock(by) => {
                self.clients[struck_client].wall_offset += by;
                self.clients[struck_client].pauses += 1;
            }
            Kind::Sleep => self.put_to_sleep(struck_client, time),
            Kind::StopFirst => {
                if let Some(first) = self.first_in_a_queue(struck) {
                    self.saw("a client that is stopped while its entry is first");
                    self.pause(first, time);
                }
            }
            Kind::Void => {
                for index in self.live_connections(client, node) {
                    self.connections[index].is_void = true;
                }
            }
            // The node is down.
            Kind::Condition(_) | Kind::Hang | Kind::Refuse(_) | Kind::Resync => {}
        }
    }

    /// Blocks the paths of this client, or all, to this node, or all.
    fn block(
        &mut self,
        (client, node): (Option<usize>, Option<usize>),
        directions: [bool; 2],
        time: u64,
    ) {
        let until = self.now + time;
        for from in (0..self.clients.len()).filter(|&from| client.is_none_or(|it| it == from)) {
            for to in (0..self.nodes.len()).filter(|&to| node.is_none_or(|it| it == to)) {
                let ends = self.path(from, to).blocked_until.iter_mut().zip(directions);
                for (end, _) in ends.filter(|(_, is_blocked)| *is_blocked) {
                    *end = until.max(*end);
                }
            }
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

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Block([true, true]) => "fault: a path is blocked",
        Kind::Block(_) => "fault: a path is blocked in one direction",
        Kind::Condition(Condition::Loading) => "fault: a node loads its data",
        Kind::Condition(Condition::Replica) => "fault: a node is a replica",
        Kind::Condition(_) => "fault: a node is out of memory",
        Kind::Crash(Data::Lost) | Kind::MachineCrash(Data::Lost) => "fault: a node loses its data",
        Kind::Crash(Data::Saved) | Kind::MachineCrash(Data::Saved) => {
            "fault: a node comes back with a snapshot"
        }
        Kind::Crash(Data::OfReplica) | Kind::MachineCrash(Data::OfReplica) => {
            "fault: a replica that lags becomes the master"
        }
        Kind::Crash(Data::Kept) => "fault: a node crashes",
        Kind::MachineCrash(Data::Kept) => "fault: a machine crashes",
        Kind::Cut => "fault: connections are reset",
        Kind::CutSubscribers => "fault: subscriber connections are reset",
        Kind::Evict => "fault: a node evicts keys",
        Kind::Flush => "fault: a node is flushed",
        Kind::ForgetScripts => "fault: a node forgets its scripts",
        Kind::Hang => "fault: a node hangs",
        Kind::Leave => "fault: a client is killed",
        Kind::LoseQueues => "fault: queues are deleted",
        Kind::Pause => "fault: a client is paused",
        Kind::Resync => "fault: a node is a replica with other data for a while",
        Kind::Save => "a copy of a node's data",
        Kind::SetNodeClock(1..) => "fault: a node's clock is set forward",
        Kind::SetNodeClock(_) => "fault: a node's clock is set",
        Kind::SetWallClock(_) => "fault: a client's wall clock is set",
        Kind::Refuse(Refusal::Busy) => "fault: a node is busy with a script",
        Kind::Refuse(Refusal::Misconf) => "fault: a node cannot write to its disk",
        Kind::Refuse(Refusal::NoReplicas) => "fault: a node has too few replicas",
        Kind::Sleep => "fault: a client's machine sleeps",
        Kind::KillFirst | Kind::StopFirst => "fault: the first in a queue is stopped or killed",
        Kind::Void => "fault: a connection is half-open",
    }
}
