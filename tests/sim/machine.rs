//! The machines: a client's clocks and pauses, and a node around the library's own embedded store.

use crate::algorithm::time::{Clock, LeaseTime, Timestamp};
use crate::call_rules::Ended;
use crate::events::metrics::counters::Counters;
use crate::judge::Command;
use crate::os::clock::LeaseClock;
use crate::plan::{ClientPlan, NodePlan, Reckoning};
use crate::protocol::key_space;
use crate::protocol::resp::{self, Reply};
use crate::random::Random;
use crate::refusals::Refusal;
use crate::wire::End;
use crate::world::{Event, World};
use crate::{kernel, plan};
use quorumlock::embedded::store::{ClientState, Store};
use quorumlock::embedded::{Condition, ServerKind};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// One program that uses the library.
pub(crate) struct Client {
    rate: i64,
    /// Whether its steady clock goes on while the machine sleeps.
    counts_sleep: bool,
    not_counted: u64,
    asleep_since: Option<u64>,
    pub(crate) wall_offset: i64,
    /// Time that passed in the client's own world, when it is gone.
    passed: u64,
    pub(crate) clock: Arc<LeaseClock>,
    pub(crate) paused_until: u64,
    pub(crate) is_gone: bool,
    /// How many of its threads ask for nothing any more.
    pub(crate) settled: usize,
    /// How often it lost time for other reasons than waiting.
    pub(crate) pauses: u64,
    /// The end of the last of these.
    pub(crate) delayed_until: u64,
    /// How many of its calls for a lock have returned.
    pub(crate) ended: Ended,
    /// What it counts itself.
    pub(crate) counters: Option<Counters>,
}

/// The clocks that the library of a client reads.
pub(crate) struct MachineClock {
    pub(crate) client: usize,
    pub(crate) clock: Arc<LeaseClock>,
}

impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        kernel::may_be_interrupted();
        Timestamp::from_nanos(kernel::with(|world| {
            world.clients[self.client].readings(world.now).0
        }))
    }

    fn lease_now(&self) -> LeaseTime {
        kernel::may_be_interrupted();
        if let Some(time) = kernel::with(|world| world.naive_time(self.client)) {
            return time;
        }
        let now = self.clock.advance(|| {
            let wall = kernel::with(|world| world.clients[self.client].readings(world.now).1);
            kernel::may_be_interrupted();
            (
                kernel::with(|world| world.clients[self.client].readings(world.now).0),
                wall,
            )
        });
        now.lease
    }
}

/// The library's lease clock of a client, read without losing any time. Not inside
/// [`kernel::with`].
pub(crate) fn lease_time(client: usize) -> LeaseTime {
    if let Some(time) = kernel::with(|world| world.naive_time(client)) {
        return time;
    }
    let clock = kernel::with(|world| {
        world.is_judging = true;
        Arc::clone(&world.clients[client].clock)
    });
    let time = clock.advance(|| kernel::with(|world| world.clients[client].readings(world.now)));
    kernel::with(|world| world.is_judging = false);
    time.lease
}

impl Client {
    /// Whether it has lost no time but by waiting in a call that began then, after so many pauses.
    pub(crate) fn is_undisturbed(&self, (begun, pauses): (u64, u64)) -> bool {
        self.pauses == pauses && self.delayed_until < begun && !self.is_gone
    }

    pub(crate) fn new(plan: &ClientPlan) -> Client {
        Client {
            rate: plan.rate,
            counts_sleep: plan.counts_sleep,
            not_counted: 0,
            asleep_since: None,
            wall_offset: 0,
            passed: 0,
            clock: Arc::new(LeaseClock::new()),
            paused_until: 0,
            is_gone: false,
            settled: 0,
            pauses: 0,
            delayed_until: 0,
            ended: Ended::default(),
            counters: None,
        }
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.passed = self
            .passed
            .saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4))
            .min(1 << 60);
    }

    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep_since.is_some()
    }

    /// The steady clock and the wall clock.
    fn readings(&self, now: u64) -> (u64, i64) {
        let time = at_rate(now, self.rate) + self.passed;
        let asleep = self
            .asleep_since
            .filter(|_| !self.counts_sleep)
            .map_or(0, |since| at_rate(now - since, self.rate));
        (
            time - self.not_counted - asleep,
            time as i64 + self.wall_offset,
        )
    }
}

/// What a clock shows after this much true time, when it is off by so many millionths.
fn at_rate(time: u64, rate: i64) -> u64 {
    (i128::from(time) * i128::from(1_000_000 + rate) / 1_000_000) as u64
}

impl World {
    /// When, in true time, a timer of a client goes off.
    pub(crate) fn timer_for(&mut self, client: usize, time: Duration) -> u64 {
        let time = u64::try_from(time.as_nanos())
            .unwrap_or(u64::MAX)
            .min(1 << 60);
        let rate = self.clients[client].rate;
        let exact = (u128::from(time) * 1_000_000).div_ceil((1_000_000 + rate) as u128) as u64;
        self.now + exact + self.random.below(self.plan.lateness + 1)
    }

    /// The lease time of a client that goes by its steady clock alone.
    fn naive_time(&self, client: usize) -> Option<LeaseTime> {
        let is_naive = self.plan.reckoning == Reckoning::SteadyClock;
        is_naive.then(|| LeaseTime::from_nanos(self.clients[client].readings(self.now).0))
    }

    /// The wall clock of a client, since 1970.
    pub(crate) fn wall_clock(&self, client: usize) -> Duration {
        let wall = EPOCH as i64 * 1_000_000 + self.clients[client].readings(self.now).1;
        Duration::from_nanos(u64::try_from(wall).unwrap_or(0))
    }

    /// Whether the running thread loses time here, and until when.
    pub(crate) fn interruption(&mut self) -> Option<u64> {
        if !self.has_faults() || self.is_judging {
            return None;
        }
        let client = self.current_client();
        if self.clients[client].is_gone {
            return None;
        }
        if self.random.once_in(self.plan.pause_rarity) {
            let time = self
                .random
                .magnitude(plan::MILLISECOND, self.plan.longest_pause);
            self.pause(client, time);
            return Some(self.now);
        }
        if self.random.once_in(self.plan.preemption_rarity) {
            self.clients[client].pauses += 1;
            let until = self.now + self.random.magnitude(1_000, 20 * plan::MILLISECOND);
            self.clients[client].delayed_until = self.clients[client].delayed_until.max(until);
            let task = self.current_task();
            self.record(|| {
                format!(
                    "client {client} thread {task} is interrupted until {}",
                    plan::seconds(until)
                )
            });
            return Some(until);
        }
        None
    }

    pub(crate) fn pause(&mut self, client: usize, time: u64) {
        let now = self.now;
        self.record(|| format!("client {client} is paused for {}", plan::seconds(time)));
        let client = &mut self.clients[client];
        client.pauses += 1;
        client.paused_until = client.paused_until.max(now + time);
        let until = client.paused_until;
        client.delayed_until = client.delayed_until.max(until);
        self.schedule(until, Event::Resume { client: usize::MAX });
    }

    /// A machine sleeps, and its timers with it.
    pub(crate) fn put_to_sleep(&mut self, client: usize, time: u64) {
        let now = self.now;
        if self.clients[client].asleep_since.is_some() {
            return;
        }
        self.pause(client, time);
        self.clients[client].asleep_since = Some(now);
        let until = self.clients[client].paused_until;
        self.schedule(until, Event::Resume { client });
    }

    pub(crate) fn resume(&mut self, client: usize) {
        if client == usize::MAX {
            return;
        }
        let now = self.now;
        if let Some(since) = self.clients[client].asleep_since.take() {
            if !self.clients[client].counts_sleep {
                self.clients[client].not_counted += at_rate(now - since, self.clients[client].rate);
            }
            self.put_off_timers(client, now - since);
        }
    }
}

/// Something that has arrived on a connection: bytes, and when they were written, or nothing, when
/// the client has closed.
pub(crate) struct Arrival {
    pub(crate) connection: usize,
    pub(crate) content: Option<(Vec<u8>, u64)>,
}

/// One server.
pub(crate) struct Node {
    pub(crate) store: Store,
    random: Random,
    rate: i64,
    /// What its wall clock was set by.
    pub(crate) offset: i64,
    pub(crate) is_up: bool,
    /// Its machine is off: not even refusals come from it.
    pub(crate) is_dark: bool,
    pub(crate) is_hung: bool,
    /// Why it refuses requests.
    pub(crate) refusal: Option<Refusal>,
    /// Whether its users have no right to what it remembers of itself.
    pub(crate) hides_note: bool,
    /// Counts its restarts.
    pub(crate) life: u64,
    /// A copy of its data.
    pub(crate) saved: Option<Box<Store>>,
    /// What comes back is a replica that was promoted.
    pub(crate) is_promoted: bool,
    /// Which fault it recovers from next.
    pub(crate) serial: u64,
    /// What has arrived while it hung.
    backlog: VecDeque<Arrival>,
    pub(crate) service: u64,
}

impl Node {
    pub(crate) fn new(plan: &NodePlan, mut random: Random) -> Node {
        let run_id = run_id(&mut random);
        let mut store = Store::new(plan.flavour, run_id, EPOCH - UP_BEFORE);
        store.set_password(plan.has_password.then(|| "secret".to_owned()));
        Node {
            store,
            random,
            rate: plan.rate,
            offset: 0,
            is_up: true,
            is_dark: false,
            is_hung: false,
            refusal: None,
            hides_note: false,
            life: 0,
            saved: None,
            is_promoted: false,
            serial: 0,
            backlog: VecDeque::new(),
            service: plan.service,
        }
    }

    /// Its wall clock, in milliseconds.
    pub(crate) fn millis(&self, now: u64) -> u64 {
        let nanos = at_rate(now, self.rate) as i64 + self.offset;
        EPOCH.saturating_add_signed(nanos.div_euclid(1_000_000))
    }

    /// For how long it is not later than then by the node's clock, in true time: through the whole
    /// of that millisecond.
    pub(crate) fn true_time_until(&self, deadline: u64, now: u64) -> Option<i64> {
        let end = (i128::from(deadline) + 1 - i128::from(EPOCH)) * 1_000_000;
        let left = end - i128::from(at_rate(now, self.rate)) - i128::from(self.offset);
        i64::try_from(left * 1_000_000 / i128::from(1_000_000 + self.rate)).ok()
    }

    /// Runs a command, unless the node refuses it.
    fn execute(
        &mut self,
        flavour: ServerKind,
        session: &mut ClientState,
        words: &[&[u8]],
        millis: u64,
        out: &mut Vec<u8>,
    ) {
        if self.hides_note && words.contains(&key_space::node("").as_bytes()) {
            out.extend_from_slice(NO_RIGHT);
            return;
        }
        let refusal = self
            .refusal
            .and_then(|refusal| refusal.reply(flavour, (&self.store, session), words, millis));
        match refusal {
            Some(reply) => out.extend(reply),
            None => self.store.execute(session, words, millis, out),
        }
    }

    /// Ends all connections, and everything that was not on its disk.
    pub(crate) fn stop(&mut self) {
        self.is_up = false;
        self.is_hung = false;
        self.life += 1;
        self.backlog.clear();
    }

    pub(crate) fn start(&mut self, now: u64) {
        let run_id = run_id(&mut self.random);
        let millis = self.millis(now);
        self.store.restart(run_id, millis);
        if std::mem::take(&mut self.is_promoted) {
            self.store.set_condition(Condition::Replica);
        }
        self.store.set_condition(Condition::Serving);
        self.is_up = true;
        self.is_dark = false;
        self.refusal = None;
    }
}

/// Runs a command of a program that may do everything. Returns the reply.
pub(crate) fn run(store: &mut Store, words: &[&[u8]], millis: u64) -> Vec<u8> {
    let mut session = ClientState::default();
    let mut reply = Vec::new();
    store.execute(&mut session, &[b"AUTH", b"secret"], millis, &mut Vec::new());
    store.execute(&mut session, words, millis, &mut reply);
    reply
}

/// What Redis 7.0 replies to a user without a right to the key.
const NO_RIGHT: &[u8] =
    b"-NOPERM this user has no permissions to access one of the keys used as arguments\r\n";

/// When simulated time begins, in milliseconds since 1970.
const EPOCH: u64 = 1_700_000_000_000;

/// How long a node has been up then, in milliseconds: for longer than any lock lasts.
const UP_BEFORE: u64 = 1_000_000;

fn run_id(random: &mut Random) -> String {
    format!(
        "{:016x}{:016x}{:08x}",
        random.next(),
        random.next(),
        random.next() >> 32
    )
}

impl World {
    /// Something has arrived at a node.
    pub(crate) fn take_in(&mut self, arrival: Arrival) {
        let Arrival { connection, .. } = arrival;
        let node = self.connections[connection].node;
        if self.nodes[node].is_hung {
            return self.nodes[node].backlog.push_back(arrival);
        }
        match arrival.content {
            Some((bytes, written_at)) => self.serve(connection, &bytes, written_at),
            None => self.forget(connection),
        }
    }

    /// A node that hung goes on with what has arrived meanwhile.
    pub(crate) fn go_on(&mut self, node: usize) {
        self.nodes[node].is_hung = false;
        while let Some(arrival) = self.nodes[node].backlog.pop_front() {
            self.take_in(arrival);
        }
    }

    /// Runs the commands that are complete.
    fn serve(&mut self, index: usize, bytes: &[u8], written_at: u64) {
        let connection = &mut self.connections[index];
        if connection.life != self.nodes[connection.node].life {
            return;
        }
        if connection.input.is_empty() {
            connection.command_written_at = written_at;
        }
        connection.input.extend_from_slice(bytes);
        let node_index = connection.node;
        let millis = self.nodes[node_index].millis(self.now);
        let mut input = std::mem::take(&mut connection.input);
        let mut session = connection.session.clone();
        let mut replies = Vec::new();
        let mut position = 0;
        loop {
            match resp::decode(&input[position..]) {
                Ok(Some((Reply::Array(Some(elements)), length))) => {
                    let words: Vec<&[u8]> = elements
                        .map(|word| {
                            if let Reply::Bulk(Some(bytes)) = word {
                                bytes
                            } else {
                                b""
                            }
                        })
                        .collect();
                    let begin = replies.len();
                    let flavour = self.plan.nodes[node_index].flavour;
                    self.nodes[node_index].execute(
                        flavour,
                        &mut session,
                        &words,
                        millis,
                        &mut replies,
                    );
                    let command = Command {
                        connection: index,
                        node: node_index,
                        words: &words,
                        millis,
                    };
                    self.executed(&command, &replies[begin..]);
                    position += length;
                    self.connections[index].command_written_at = written_at;
                }
                Ok(None) => break,
                other => {
                    self.violate(
                        "protocol",
                        format!("node {node_index} received nonsense: {other:?}"),
                    );
                    return;
                }
            }
        }
        input.drain(..position);
        let service = self.nodes[node_index].service;
        let connection = &mut self.connections[index];
        connection.input = input;
        connection.session = session;
        if !replies.is_empty() {
            self.send_to_client(index, replies, service);
        }
        self.deliver_messages(node_index);
    }

    /// A connection has come to its end at its node.
    fn forget(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if connection.life == self.nodes[connection.node].life {
            self.nodes[connection.node]
                .store
                .forget(&mut connection.session);
        }
        connection.life = u64::MAX;
    }

    /// Ends all connections of a node, with notice or without.
    pub(crate) fn hang_up(&mut self, node: usize, silently: bool) {
        if !silently {
            for index in self.live_connections(None, Some(node)) {
                let end = End::of(self.random.once_in(2));
                self.end_by_node(index, end);
            }
        }
    }
}
