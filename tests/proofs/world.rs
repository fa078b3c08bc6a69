//! Programs and nodes on simulated time, whose steps are written down for the proofs.
//!
//! A program is the library's pure layers: its attempts, tallies, leases, quarantines and
//! judgements of nodes, and a session for each connection. A node is the library's embedded one.
//! What is between them is here: clocks that run at different rates, delays, connections that end,
//! nodes that restart without their keys, programs that die and begin anew, messages that are
//! forged, and queues that are damaged.

use crate::program::{Activity, Program};
use crate::random::Random;
use quorumlock::algorithm::fence::FencingToken;
use quorumlock::algorithm::incarnation::Seen;
use quorumlock::algorithm::kind::{EntryKind, Kind};
use quorumlock::algorithm::lease::{OwnerToken, Ttl};
use quorumlock::algorithm::node::NodeId;
use quorumlock::algorithm::quarantine::RestartPolicy;
use quorumlock::algorithm::time::Timestamp;
use quorumlock::embedded::ServerKind;
use quorumlock::embedded::store::{ClientState, Store};
use quorumlock::protocol::handshake::Handshake;
use quorumlock::protocol::kinds;
use quorumlock::protocol::resp::{self, Reply};
use quorumlock::protocol::session::{Log, Session};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// The longest that a lock may last.
pub(crate) const MAX_TTL: Duration = Duration::from_millis(400);
/// The same for every second program, where programs differ.
const SHORTER: Duration = Duration::from_millis(200);
/// What the wall clocks show in the beginning, in milliseconds.
pub(crate) const EPOCH: u64 = 1_700_000_000_000;
/// Clocks differ by so much at most, each from true time, in millionths: within the drift.
const RATES: u64 = 4_500;
const NODE_KEY: &str = "quorumlock-node:";
/// A new deployment is founded before nodes are lost.
const FOUNDED: u64 = 1_500_000;

/// What the programs lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    Plain,
    Permits(u16),
    Fenced,
    ReadWrite,
}

/// How the programs are configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Programs {
    Alike,
    /// Every second one has another longest time to live.
    Differ,
    /// No node is a founder, and each vote counts by a look behind it.
    Strict,
}

impl Programs {
    /// The longest that a lock of this program may last.
    pub(crate) fn max_ttl(self, life: usize) -> Duration {
        if self == Programs::Differ && life % 2 == 1 {
            SHORTER
        } else {
            MAX_TTL
        }
    }

    pub(crate) fn policy(self) -> RestartPolicy {
        if self == Programs::Strict {
            RestartPolicy::Strict
        } else {
            RestartPolicy::Observed
        }
    }
}

/// A node.
pub(crate) struct Node {
    store: Store,
    /// What it may come back with: as it was at some time.
    snapshot: Option<Store>,
    /// The id of its process.
    name: String,
    rate: u64,
}

/// A connection of a program to a node.
#[derive(Default)]
pub(crate) struct Link {
    pub(crate) session: Option<Session>,
    client: ClientState,
    to_node: VecDeque<(u64, Vec<u8>)>,
    to_program: VecDeque<(u64, Vec<u8>)>,
    /// The operations that the node has not run.
    pub(crate) operations: VecDeque<Operation>,
    /// The looks that the program has not read, by their steps.
    pub(crate) looks: VecDeque<usize>,
    /// The notes that the node has not stored: which looks the program goes by.
    pub(crate) notes: VecDeque<Vec<usize>>,
    pub(crate) reconnects_at: u64,
}

/// What was asked of a node about the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) round: usize,
    pub(crate) asks: Asks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    Acquire,
    Extend,
    Raise,
    Release,
}

/// An attempt: of one token.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) program: usize,
    pub(crate) slot: usize,
    pub(crate) is_read: bool,
    pub(crate) token: OwnerToken,
    /// From when on it is not relied on, and nothing is counted.
    pub(crate) gave_up: Option<u64>,
}

/// A round of an attempt: the acquisition, or an extension.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) attempt: usize,
    /// How long the lease of it lasts, and until when, if it is won.
    pub(crate) ttl_millis: u64,
    pub(crate) lasts: u64,
    pub(crate) until: u64,
    pub(crate) won: Option<u64>,
    /// By node: when its grant was run, and counted.
    pub(crate) granted: Vec<Option<u64>>,
    pub(crate) counted: Vec<Option<u64>>,
}

/// A step, in true time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) at: u64,
    /// The same by the node's clock, in milliseconds.
    pub(crate) node_at: u64,
    pub(crate) node: usize,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// The key of an attempt is set, or lasts until another time.
    Granted(Granted),
    Extended(Granted),
    /// The number is raised, or known to be as great already.
    Raised {
        attempt: usize,
        fence: u64,
    },
    Deleted {
        by: usize,
        whose: usize,
    },
    /// It has other data: what it remembers of an earlier incarnation, and these keys, by their
    /// attempts and ends.
    Restarted {
        note: Option<Note>,
        keys: Vec<(usize, u64)>,
    },
    /// A program has looked at the node, or noted it: what it has found, and from when on the node
    /// counts by that, if it does.
    Looked {
        program: usize,
        found: Option<Note>,
        from: Option<u64>,
        age: Option<Age>,
    },
    /// A program knows nothing of the node any more.
    Silent(usize),
    /// By a program, which goes by the looks of these steps.
    Noted {
        note: Note,
        by: usize,
        looks: Vec<usize>,
    },
    /// A program that has read the node's note counts a vote, of whichever node.
    Relied(usize),
    /// A program's, as all that follow.
    Begun(usize),
    GaveUp(usize),
    /// An attempt has counted its replies, of which this is the greatest number.
    Agreed(usize, u64),
    /// An attempt is won or lost.
    Over(usize),
    /// The program has counted the node's grant in this round.
    Counted(usize),
}

/// What a node remembers of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Note {
    pub(crate) is_founder: bool,
    pub(crate) written: u64,
    /// In milliseconds.
    pub(crate) max_ttl: u64,
}

/// What a program makes of a look: the age of the note by two clocks, and whether the node looks
/// new.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Age {
    pub(crate) by_node: u64,
    pub(crate) by_wall: u64,
    pub(crate) is_new: bool,
}

/// A grant as the node stores it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Granted {
    pub(crate) round: usize,
    pub(crate) attempt: usize,
    /// The last millisecond of the node's clock that counts, and when it is over.
    pub(crate) deadline: u64,
    pub(crate) ends: u64,
    pub(crate) fence: u64,
    pub(crate) is_write: bool,
    pub(crate) asks: Asks,
}

/// What the node has under the keys of the lock: by token.
#[derive(Clone, Debug, Default, PartialEq)]
struct Stored {
    holds: Vec<(String, u64, bool)>,
    fence: u64,
}

/// All of it.
pub(crate) struct World {
    pub(crate) lock: Lock,
    pub(crate) now: u64,
    pub(crate) nodes: Vec<Node>,
    pub(crate) programs: Vec<Program>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) rounds: Vec<Round>,
    pub(crate) steps: Vec<Step>,
    pub(crate) random: Random,
    pub(crate) lives: usize,
    pub(crate) setup: Programs,
    tokens: HashMap<String, usize>,
    log: Log,
    names: u64,
}

impl World {
    /// Runs a world from a seed.
    pub(crate) fn run(lock: Lock, setup: Programs, seed: u64, micros: u64) -> World {
        let mut random = Random::new(seed);
        let nodes = [1, 2, 3, 3, 4, 5][random.below(6) as usize];
        let mut world = World {
            lock,
            now: 0,
            nodes: Vec::new(),
            programs: Vec::new(),
            attempts: Vec::new(),
            rounds: Vec::new(),
            steps: Vec::new(),
            random,
            lives: 0,
            setup,
            tokens: HashMap::new(),
            log: Log::default(),
            names: 0,
        };
        for _ in 0..nodes {
            let name = world.run_id();
            let store = Store::new(ServerKind::Redis, name.clone(), EPOCH);
            let rate = world.rate();
            let snapshot = None;
            world.nodes.push(Node {
                store,
                snapshot,
                name,
                rate,
            });
        }
        for _ in 0..3 {
            let program = world.program();
            world.programs.push(program);
        }
        while world.now < micros {
            world.step();
        }
        world
    }

    fn step(&mut self) {
        let mut due = (u64::MAX, 0, None);
        for (index, program) in self.programs.iter().enumerate() {
            due = due.min((program.wakes_at, index, None));
            for (node, link) in program.links.iter().enumerate() {
                let ready = [link.to_node.front(), link.to_program.front()];
                let ready = ready.into_iter().flatten().map(|&(at, _)| at).min();
                let at = match link.session {
                    Some(_) => ready.unwrap_or(u64::MAX),
                    None => link.reconnects_at,
                };
                due = due.min((at, index, Some(node)));
            }
        }
        let (at, index, node) = due;
        self.now = self.now.max(at);
        if self.random.once_in(150) {
            self.fault();
            return;
        }
        match node {
            None => self.wake(index),
            Some(node) if self.programs[index].links[node].session.is_none() => {
                self.connect(index, node);
            }
            Some(node) => self.deliver(index, node),
        }
    }

    fn fault(&mut self) {
        let index = self.random.below(self.programs.len() as u64) as usize;
        let node = self.random.below(self.nodes.len() as u64) as usize;
        match self.random.below(8) {
            0 if self.now > FOUNDED && self.forgets() => self.restart(node),
            1 if self.now > FOUNDED => {
                self.give_up(index);
                self.programs[index] = self.program();
            }
            2 => {
                self.disconnect(index, node);
                self.nodes[node].snapshot = Some(self.nodes[node].store.clone());
            }
            3 | 4 => self.damage(node),
            _ => self.forge(index),
        }
    }

    /// Whether nodes lose their keys: that is for the proofs of locks with one holder.
    fn forgets(&self) -> bool {
        matches!(self.lock, Lock::Plain | Lock::Permits(_))
    }

    /// Damages the queue of the lock: an entry of no call, another type, or no queue.
    fn damage(&mut self, node: usize) {
        let key = self.key(0);
        let queue = match self.lock {
            Lock::Permits(_) => "quorumlock-queue:quorumlock-permits:a".to_owned(),
            _ => format!("quorumlock-queue:{key}"),
        };
        let score = (EPOCH * 1000 + self.random.below(10_000_000)).to_string();
        let member = format!("{:016x}m{}", self.random.below(5), self.random.below(9));
        let command: &[&[u8]] = match self.random.below(3) {
            0 => &[b"DEL", queue.as_bytes()],
            1 => &[b"SET", queue.as_bytes(), b"x"],
            _ => &[
                b"ZADD",
                queue.as_bytes(),
                score.as_bytes(),
                member.as_bytes(),
            ],
        };
        let at = self.node_clock(node);
        let store = &mut self.nodes[node].store;
        store.execute(&mut ClientState::default(), command, at, &mut Vec::new());
    }

    /// A node loses all keys, if all others are noted: so no program takes the deployment for a new
    /// one.
    fn restart(&mut self, node: usize) {
        let is_noted = |other: &Node| {
            let value = other.store.value(NODE_KEY.as_bytes(), u64::MAX);
            value.is_some_and(|value| String::from_utf8_lossy(value).contains(&other.name))
        };
        let mut others = self
            .nodes
            .iter()
            .enumerate()
            .filter(|&(other, _)| other != node);
        if self.nodes.len() == 1 || !others.all(|(_, other)| is_noted(other)) {
            return;
        }
        for index in 0..self.programs.len() {
            self.disconnect(index, node);
        }
        let run_id = self.run_id();
        let at = self.node_clock(node);
        let has_snapshot = self.random.once_in(2);
        let lost = &mut self.nodes[node];
        lost.store.clear();
        if let (true, Some(snapshot)) = (has_snapshot, &lost.snapshot) {
            lost.store.copy_keys(snapshot);
        }
        lost.store.restart(run_id.clone(), at);
        lost.name = run_id;
        let note = self.note_of(node);
        let stored = self.stored(node, at).holds.into_iter();
        let keys =
            stored.map(|(token, deadline, _)| (self.tokens[&token], self.end(node, deadline)));
        let keys = keys.collect();
        self.note(node, What::Restarted { note, keys });
    }

    pub(crate) fn disconnect(&mut self, index: usize, node: usize) {
        let pause = self.random.below(30_000);
        let link = &mut self.programs[index].links[node];
        if link.session.is_none() {
            return;
        }
        *link = Link {
            reconnects_at: self.now + pause,
            ..Link::default()
        };
        self.programs[index].seen[node] = Seen::Silent;
        self.programs[index].looks[node] = None;
        self.programs[index].counts_from[node] = None;
        self.note(node, What::Silent(self.programs[index].life));
        self.lost(index, node);
    }

    fn connect(&mut self, index: usize, node: usize) {
        let handshake = Handshake {
            node_key: Some(NODE_KEY.to_owned()),
            looks_behind_votes: self.setup == Programs::Strict,
            ..Handshake::default()
        };
        let now = self.programs[index].readings(self.now).steady;
        self.programs[index].links[node].session = Some(Session::open(&handshake, now));
        self.flush(index, node);
    }

    /// Sends what the session has to send.
    pub(crate) fn flush(&mut self, index: usize, node: usize) {
        let delay = self.delay();
        let link = &mut self.programs[index].links[node];
        let Some(session) = &mut link.session else {
            return;
        };
        let bytes = session.pipeline.unsent(&self.log).to_vec();
        session.pipeline.sent(bytes.len());
        if !bytes.is_empty() {
            let last = link.to_node.back().map_or(0, |&(at, _)| at);
            link.to_node.push_back((last.max(self.now + delay), bytes));
        }
    }

    fn deliver(&mut self, index: usize, node: usize) {
        let link = &mut self.programs[index].links[node];
        if link.to_node.front().is_some_and(|&(at, _)| at <= self.now) {
            if let Some((_, bytes)) = link.to_node.pop_front() {
                self.serve(index, node, &bytes);
            }
        } else if let Some((_, bytes)) = link.to_program.pop_front() {
            let now = self.programs[index].readings(self.now).steady;
            self.receive(index, node, &bytes, now);
        }
    }

    fn receive(&mut self, index: usize, node: usize, bytes: &[u8], now: Timestamp) {
        let Some(session) = &mut self.programs[index].links[node].session else {
            return;
        };
        session.incoming.read_at = now;
        session.incoming.space()[..bytes.len()].copy_from_slice(bytes);
        session.incoming.received(bytes.len());
        while let Some(session) = &mut self.programs[index].links[node].session {
            let event = session.next_event(&self.log).expect("replies of a node");
            let Some(event) = event else { break };
            self.on_event(index, node, event, now);
        }
        self.flush(index, node);
    }

    /// The node runs commands, and what they change is written down.
    fn serve(&mut self, index: usize, node: usize, bytes: &[u8]) {
        let mut rest = bytes;
        let mut out = Vec::new();
        let at = self.node_clock(node);
        while !rest.is_empty() {
            let decoded = resp::decode(rest)
                .expect("requests")
                .expect("whole requests");
            let (Reply::Array(Some(words)), length) = decoded else {
                panic!("no request")
            };
            rest = &rest[length..];
            let words: Vec<&[u8]> = words
                .map(|word| match word {
                    Reply::Bulk(Some(word)) => word,
                    _ => panic!("no word"),
                })
                .collect();
            let is_about_node = words.iter().any(|word| *word == NODE_KEY.as_bytes());
            let note = self.note_of(node);
            let before = self.stored(node, at);
            let link = &mut self.programs[index].links[node];
            self.nodes[node]
                .store
                .execute(&mut link.client, &words, at, &mut out);
            self.nodes[node].store.take_messages();
            if is_about_node {
                self.looked(index, node, words[0] == b"EVAL", note);
            } else if matches!(words[0], b"SET" | b"EVAL" | b"EVALSHA") {
                let operation = self.programs[index].links[node].operations.pop_front();
                let after = self.stored(node, at);
                self.changed(node, operation.expect("an operation"), &before, &after);
            }
        }
        let delay = self.delay();
        let link = &mut self.programs[index].links[node];
        let last = link.to_program.back().map_or(0, |&(at, _)| at);
        link.to_program.push_back((last.max(self.now + delay), out));
    }

    /// A look at the node, or a note, which is stored where the node still has the one that was
    /// read.
    fn looked(&mut self, index: usize, node: usize, is_note: bool, before: Option<Note>) {
        let found = self.note_of(node);
        let program = self.programs[index].life;
        let link = &mut self.programs[index].links[node];
        let looks = is_note.then(|| link.notes.pop_front().expect("a note"));
        if let (true, Some(note), Some(looks)) = (before != found, found, looks) {
            let by = program;
            self.note(node, What::Noted { note, by, looks });
        }
        self.programs[index].links[node]
            .looks
            .push_back(self.steps.len());
        self.note(
            node,
            What::Looked {
                program,
                found,
                from: None,
                age: None,
            },
        );
    }

    fn note_of(&self, node: usize) -> Option<Note> {
        let at = self.node_clock(node);
        let value = self.nodes[node].store.value(NODE_KEY.as_bytes(), at)?;
        let text = String::from_utf8_lossy(value);
        let words: Vec<&str> = text.split(' ').collect();
        let number = |word: usize| words[word].parse::<u64>().expect("a number");
        Some(Note {
            is_founder: words[1] == "f",
            written: number(3) - EPOCH * 1000,
            max_ttl: number(4),
        })
    }

    /// Writes down how an operation has changed the keys of the lock.
    fn changed(&mut self, node: usize, operation: Operation, before: &Stored, after: &Stored) {
        let by = self.rounds[operation.round].attempt;
        for (token, deadline, is_write) in &after.holds {
            let attempt = self.tokens[token];
            let earlier = before.holds.iter().find(|(other, ..)| other == token);
            let granted = Granted {
                round: operation.round,
                attempt,
                deadline: *deadline,
                ends: self.end(node, *deadline),
                fence: after.fence,
                is_write: *is_write,
                asks: operation.asks,
            };
            match earlier {
                None => {
                    self.rounds[operation.round].granted[node] = Some(self.now);
                    self.note(node, What::Granted(granted));
                }
                Some((_, other, _)) if attempt != by => {
                    assert_eq!(other, deadline, "the hold of another attempt");
                }
                Some((_, other, mode)) if (other, mode) != (deadline, is_write) => {
                    self.rounds[operation.round].granted[node] = Some(self.now);
                    self.note(node, What::Extended(granted));
                }
                Some(_) if operation.asks == Asks::Extend => {
                    self.rounds[operation.round].granted[node] = Some(self.now);
                    self.note(node, What::Extended(granted));
                }
                Some(_) if operation.asks == Asks::Raise => {
                    let fence = after.fence;
                    self.note(node, What::Raised { attempt: by, fence });
                }
                Some(_) => {}
            }
        }
        for (token, ..) in &before.holds {
            // The key of a fenced lock has its owner until another one takes it.
            let is_gone = self.lock != Lock::Fenced || after.holds.is_empty();
            if is_gone && after.holds.iter().all(|(other, ..)| other != token) {
                self.note(
                    node,
                    What::Deleted {
                        by,
                        whose: self.tokens[token],
                    },
                );
            }
        }
    }

    fn stored(&self, node: usize, at: u64) -> Stored {
        let store = &self.nodes[node].store;
        let mut stored = Stored::default();
        let keys = kinds::keys(self.kind(false, FencingToken::MAX));
        for slot in 0..self.slots() {
            let key = self.key(slot);
            let Some(value) = store.value(key.as_bytes(), at) else {
                continue;
            };
            let lock = (keys.parse)(value).expect("a lock");
            stored.fence = lock.fence;
            for hold in lock.holds {
                let deadline = match self.lock {
                    Lock::Plain | Lock::Permits(_) => store.deadline(key.as_bytes(), at).flatten(),
                    _ => Some(hold.deadline),
                };
                let deadline = deadline.expect("an end");
                if deadline >= at || self.lock == Lock::Fenced {
                    let token = String::from_utf8_lossy(&hold.signature).into_owned();
                    stored.holds.push((token, deadline, !lock.is_read));
                }
            }
        }
        stored
    }

    pub(crate) fn note(&mut self, node: usize, what: What) {
        let node_at = self.node_clock(node);
        self.steps.push(Step {
            at: self.now,
            node_at,
            node,
            what,
        });
    }

    /// The node's clock, in milliseconds.
    fn node_clock(&self, node: usize) -> u64 {
        EPOCH + self.now * self.nodes[node].rate / 1_000_000_000
    }

    /// When that millisecond of the node's clock is over.
    fn end(&self, node: usize, deadline: u64) -> u64 {
        ((deadline + 1 - EPOCH) * 1_000_000_000).div_ceil(self.nodes[node].rate)
    }

    /// How long a lease of any program lasts at most.
    pub(crate) fn longest(&self) -> u64 {
        let ttl = Ttl::new(MAX_TTL, 0.01, MAX_TTL).expect("a time to live");
        (ttl.validity().as_nanos() as u64 * 1000).div_ceil(1_000_000 - RATES)
    }

    pub(crate) fn wall(&self) -> u64 {
        EPOCH * 1000 + self.now
    }

    /// From when on a round that is won is not relied on any more.
    pub(crate) fn relied_on_until(&self, round: &Round) -> u64 {
        let gave_up = self.attempts[round.attempt].gave_up;
        gave_up.map_or(round.until, |at| round.until.min(at))
    }

    /// The key of a slot; of a lock that is no semaphore, its key.
    pub(crate) fn key(&self, slot: usize) -> String {
        match self.lock {
            Lock::Plain => "a".to_owned(),
            Lock::Permits(_) => format!("a#{slot}"),
            Lock::Fenced => "quorumlock-fence:a".to_owned(),
            Lock::ReadWrite => "quorumlock-rw:a".to_owned(),
        }
    }

    pub(crate) fn slots(&self) -> usize {
        match self.lock {
            Lock::Permits(permits) => usize::from(permits),
            _ => 1,
        }
    }

    pub(crate) fn kind(&self, is_read: bool, fence: FencingToken) -> Kind {
        match self.lock {
            Lock::Plain => Kind::Plain,
            Lock::Permits(permits) => Kind::Permit(permits),
            Lock::Fenced => Kind::Fenced(fence),
            Lock::ReadWrite if is_read => Kind::Read,
            Lock::ReadWrite => Kind::Write(None),
        }
    }

    pub(crate) fn entry_kind(&self, is_read: bool) -> EntryKind {
        match self.lock {
            Lock::Plain => EntryKind::Mutex,
            Lock::Permits(permits) => EntryKind::Permit(permits),
            Lock::Fenced => EntryKind::Fenced,
            Lock::ReadWrite if is_read => EntryKind::Read,
            Lock::ReadWrite => EntryKind::Write,
        }
    }

    /// A new attempt, with a token of its own.
    pub(crate) fn new_attempt(&mut self, program: usize, slot: usize, is_read: bool) -> usize {
        let attempt = self.attempts.len();
        let mut entropy = [0; OwnerToken::ENTROPY];
        entropy[..8].copy_from_slice(&(attempt as u64 + 1).to_be_bytes());
        let token = OwnerToken::from_entropy(entropy);
        let digits = String::from_utf8_lossy(&token.digits()).into_owned();
        self.tokens.insert(digits, attempt);
        self.attempts.push(Attempt {
            program,
            slot,
            is_read,
            token,
            gave_up: None,
        });
        attempt
    }

    /// A new round of an attempt.
    pub(crate) fn new_round(&mut self, attempt: usize, index: usize, ttl: Ttl) -> usize {
        let nodes = self.nodes.len();
        let rate = self.programs[index].rate;
        let lasts = (ttl.validity().as_nanos() as u64 * 1000).div_ceil(rate);
        self.rounds.push(Round {
            attempt,
            ttl_millis: ttl.millis(),
            lasts,
            until: self.now + lasts,
            won: None,
            granted: vec![None; nodes],
            counted: vec![None; nodes],
        });
        self.rounds.len() - 1
    }

    fn program(&mut self) -> Program {
        let rate = self.rate();
        let wakes_at = self.now + self.random.below(100_000);
        self.lives += 1;
        Program::new(self.lives, self.nodes.len(), self.setup, rate, wakes_at)
    }

    fn rate(&mut self) -> u64 {
        match self.random.below(3) {
            0 => 1_000_000 - RATES,
            1 => 1_000_000 + RATES,
            _ => 1_000_000,
        }
    }

    fn run_id(&mut self) -> String {
        self.names += 1;
        format!("{:040x}", self.names)
    }

    fn delay(&mut self) -> u64 {
        match self.random.below(40) {
            0 => self.random.below(150_000),
            1..=5 => self.random.below(15_000),
            _ => 100 + self.random.below(1_500),
        }
    }

    /// What a program relied on is over.
    pub(crate) fn give_up(&mut self, index: usize) {
        let attempt = match &self.programs[index].activity {
            Activity::Idle => None,
            Activity::Calling(call) => call.attempt,
            Activity::Holding(held) => Some(held.attempt),
        };
        if let Some(attempt) = attempt
            && self.attempts[attempt].gave_up.is_none()
        {
            self.attempts[attempt].gave_up = Some(self.now);
            self.note(0, What::GaveUp(attempt));
        }
    }

    pub(crate) fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(NodeId::new)
    }
}
