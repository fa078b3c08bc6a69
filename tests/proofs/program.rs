//! What a program does: calls for the lock, holds, extensions and releases, and what it knows of
//! the nodes.
//!
//! The library's engine does the same with sockets and threads: which votes wait until a node is
//! judged is simpler here. A vote counts, or is a fault, as it is read.

use crate::world::{Age, Asks, EPOCH, Lock, Operation, Programs, What, World};
use quorumlock::algorithm::acquire::{Acquire, AcquireConfig, Output, Verdict, WaitLimit};
use quorumlock::algorithm::backoff::Backoff;
use quorumlock::algorithm::fence::{Agreement, Fences, FencingToken};
use quorumlock::algorithm::incarnation::run_id::RunId;
use quorumlock::algorithm::incarnation::{Found, Incarnation, Look, Origin, Rules, Seen, Standing};
use quorumlock::algorithm::lease::{Ttl, Validity};
use quorumlock::algorithm::node::{NodeId, NodeSet};
use quorumlock::algorithm::quarantine::{self, Quarantine};
use quorumlock::algorithm::queue::{
    Entry, Message, QueueRound, QueuedCall, Setup, TakeRequest, latest_ticket,
};
use quorumlock::algorithm::time::{LeaseTime, Readings, Timestamp};
use quorumlock::algorithm::vote::{ExtensionVerdict, Outcome, Tally, Vote};
use quorumlock::fault::{Cause, Fault, Phase};
use quorumlock::protocol::lock_key::LockKey;
use quorumlock::protocol::operation::{Departure, Operation as Asked, Verb};
use quorumlock::protocol::session::{Answer, Command, SessionEvent, Ticket};
use std::time::Duration;

const NODE_TIMEOUT: Duration = Duration::from_millis(30);
/// What the clocks of a program show in the beginning.
const ORIGIN: u64 = 1_000_000_000_000;
/// A look that is older is repeated before notes are written.
const OLD_LOOK: u64 = 400_000;
const LATE: Fault = Fault::new(Phase::Reply, Cause::TimedOut);
const GONE: Fault = Fault::new(Phase::Reply, Cause::Closed);

/// A program, from its beginning to its end.
pub(crate) struct Program {
    /// No other one has this number.
    pub(crate) life: usize,
    pub(crate) rate: u64,
    /// By how much its wall clock is behind, for the numbers that it asks for.
    behind: u64,
    pub(crate) wakes_at: u64,
    pub(crate) links: Vec<crate::world::Link>,
    pub(crate) activity: Activity,
    /// By node: what was seen, when, and from when on it counts by that, if it does.
    pub(crate) seen: Vec<Seen>,
    looked_at: Vec<u64>,
    /// By node: the step of the last look that was read on this connection.
    pub(crate) looks: Vec<Option<usize>>,
    pub(crate) counts_from: Vec<Option<u64>>,
    quarantines: Vec<Quarantine>,
    pub(crate) rules: Rules,
    calls: u64,
}

pub(crate) enum Activity {
    Idle,
    Calling(Box<Call>),
    Holding(Box<Held>),
}

/// A call for the lock.
pub(crate) struct Call {
    machine: Acquire,
    ttl: Ttl,
    is_read: bool,
    pub(crate) attempt: Option<usize>,
    open: Option<Open>,
}

/// A lock that is held.
pub(crate) struct Held {
    pub(crate) attempt: usize,
    ttl: Ttl,
    is_read: bool,
    lease: Validity,
    fence: FencingToken,
    departure: Option<Departure>,
    acts_at: u64,
    open: Option<Open>,
}

/// What nodes are asked in a round.
#[derive(Clone, Copy)]
struct Question {
    round: usize,
    asks: Asks,
    verb: Verb,
    fence: FencingToken,
}

/// A round whose replies are awaited.
struct Open {
    round: usize,
    asks: Asks,
    t0: Readings,
    deadline: Timestamp,
    tally: Tally,
    reached: NodeSet,
    fences: Fences,
    queue: Option<Box<QueueRound>>,
}

impl Open {
    fn new(
        question: Question,
        t0: Readings,
        deadline: Timestamp,
        tally: Tally,
        reached: NodeSet,
    ) -> Open {
        Open {
            round: question.round,
            asks: question.asks,
            t0,
            deadline,
            tally,
            reached,
            fences: Fences::default(),
            queue: None,
        }
    }
}

impl Program {
    pub(crate) fn new(
        life: usize,
        nodes: usize,
        setup: Programs,
        rate: u64,
        wakes_at: u64,
    ) -> Program {
        let (policy, max_ttl) = (setup.policy(), setup.max_ttl(life));
        Program {
            life,
            rate,
            behind: life as u64 % 2 * 1_000_000,
            wakes_at,
            links: (0..nodes).map(|_| crate::world::Link::default()).collect(),
            activity: Activity::Idle,
            seen: vec![Seen::Silent; nodes],
            looked_at: vec![0; nodes],
            looks: vec![None; nodes],
            counts_from: vec![None; nodes],
            quarantines: vec![Quarantine::new(policy, max_ttl); nodes],
            rules: Rules::new(policy, max_ttl),
            calls: 0,
        }
    }

    pub(crate) fn readings(&self, now: u64) -> Readings {
        let nanos = ORIGIN + now * self.rate / 1000;
        Readings {
            steady: Timestamp::from_nanos(nanos),
            lease: LeaseTime::from_nanos(nanos),
        }
    }

    /// The true time at which its clocks show this.
    fn true_time(&self, nanos: u64) -> u64 {
        (nanos.saturating_sub(ORIGIN).saturating_mul(1000)).div_ceil(self.rate)
    }

    fn open(&mut self) -> Option<&mut Open> {
        match &mut self.activity {
            Activity::Idle => None,
            Activity::Calling(call) => call.open.as_mut(),
            Activity::Holding(held) => held.open.as_mut(),
        }
    }
}

/// Whether a look has found a note of the incarnation that the node is in.
fn is_noted(seen: &Seen) -> bool {
    seen.look().is_some_and(|look| match &look.found {
        Found::Note(note) => look.present.is_still(&note.incarnation),
        Found::Nothing | Found::Damage => false,
    })
}

impl World {
    fn at(&self, index: usize) -> Readings {
        self.programs[index].readings(self.now)
    }

    pub(crate) fn wake(&mut self, index: usize) {
        let now = self.at(index);
        match std::mem::replace(&mut self.programs[index].activity, Activity::Idle) {
            Activity::Idle => self.begin_call(index),
            Activity::Calling(mut call) => {
                match &call.open {
                    Some(open) if now.steady >= open.deadline => self.conclude(index, &mut call),
                    Some(_) => {}
                    None => call.machine.woken(now.steady),
                }
                self.drive(index, call);
            }
            Activity::Holding(held) => self.hold_on(index, held),
        }
    }

    fn begin_call(&mut self, index: usize) {
        let now = self.at(index);
        let millis = [60, 100, 200, 400][self.random.below(4) as usize];
        let max_ttl = self.programs[index].rules.max_ttl;
        let ttl = Duration::from_millis(millis).min(max_ttl);
        let ttl = Ttl::new(ttl, 0.01, max_ttl).expect("a time to live");
        let waits = self.random.below(4) > 0;
        let until = now
            .steady
            .after(Duration::from_millis(self.random.below(600)));
        let is_fair = self.random.once_in(2);
        let config = AcquireConfig {
            ttl,
            node_timeout: NODE_TIMEOUT,
            wait_limit: if waits {
                WaitLimit::Until(until)
            } else {
                WaitLimit::Once
            },
            backoff: Backoff::new(Duration::from_millis(2), Duration::from_millis(40)),
            permanent_fault_limit: Duration::from_secs(3),
            queues: waits,
            first_in_turn: (waits && is_fair).then_some(now.steady),
        };
        let call = Call {
            machine: Acquire::new(config, now.steady),
            ttl,
            is_read: self.random.once_in(2),
            attempt: None,
            open: None,
        };
        self.drive(index, Box::new(call));
    }

    /// Does what the machine asks for, until it waits.
    fn drive(&mut self, index: usize, mut call: Box<Call>) {
        while call.open.is_none() {
            let now = self.at(index);
            match call.machine.poll() {
                Output::Attempt => self.attempt(index, &mut call),
                Output::Raise(agreement) => self.raise(index, &mut call, agreement),
                Output::Undo(nodes) => {
                    let departure = self.departure(&mut call);
                    if let Some(attempt) = call.attempt {
                        self.release(index, attempt, call.is_read, departure, nodes);
                    }
                }
                // That node may never have it: as if it were lost.
                Output::Store(_) => {}
                Output::Enqueue => {
                    self.programs[index].calls += 1;
                    let entry = Entry {
                        client: self.programs[index].life as u64,
                        kind: self.entry_kind(call.is_read),
                        number: self.programs[index].calls,
                    };
                    let setup = Setup {
                        nodes: self.nodes.len(),
                        place_lease: Duration::from_millis(50),
                    };
                    call.machine
                        .enter(QueuedCall::new(setup, entry, now.steady), now.steady);
                }
                Output::Wait(until) => {
                    let until = self.programs[index].true_time(until.as_nanos());
                    self.programs[index].wakes_at = until.max(self.now + 1);
                    self.programs[index].activity = Activity::Calling(call);
                    return;
                }
                Output::Done(Verdict::Acquired(lease)) => return self.acquired(index, call, lease),
                Output::Done(_) => {
                    self.programs[index].wakes_at = self.now + self.random.below(60_000);
                    return;
                }
            }
        }
        let deadline = call
            .open
            .as_ref()
            .map_or(0, |open| open.deadline.as_nanos());
        self.programs[index].wakes_at = self.programs[index].true_time(deadline).max(self.now + 1);
        self.programs[index].activity = Activity::Calling(call);
    }

    fn departure(&mut self, call: &mut Call) -> Option<Departure> {
        let queue = call.machine.queue()?;
        let (entry, ticket) = (queue.entry(), queue.ticket);
        Some(Departure {
            entry,
            ticket,
            key: 0,
        })
    }

    fn attempt(&mut self, index: usize, call: &mut Call) {
        let t0 = self.at(index);
        let wall = self.wall();
        let slots = self.slots();
        let named = call
            .machine
            .queue()
            .and_then(QueuedCall::take_slot)
            .map(usize::from);
        let slot = named.filter(|&slot| slot < slots);
        let slot = slot.unwrap_or_else(|| self.random.below(slots as u64) as usize);
        let life = self.programs[index].life;
        let attempt = self.new_attempt(life, slot, call.is_read);
        call.attempt = Some(attempt);
        let round = self.new_round(attempt, index, call.ttl);
        self.note(0, What::Begun(attempt));
        let ttl_millis = call.ttl.millis();
        let mut request = TakeRequest::WITHOUT_ENTRY;
        let mut queue_round = None;
        if let Some(queue) = call.machine.queue() {
            request = queue.request(wall, t0.steady);
            queue.ask(t0.steady);
            let round = QueueRound::new(queue.ticket, latest_ticket(wall));
            queue_round = Some(Box::new(round.by_command(request.by_command)));
        }
        // Readers and writers always ask in their turn.
        let is_first = queue_round.is_none() && self.lock != Lock::ReadWrite;
        let verb = if request.by_command || is_first {
            Verb::Acquire { ttl_millis }
        } else {
            Verb::Take {
                ttl_millis,
                request,
            }
        };
        let question = Question {
            round,
            asks: Asks::Acquire,
            verb,
            fence: FencingToken::saturating(wall - self.programs[index].behind),
        };
        let reached = self.ask(index, question);
        let deadline = call.machine.attempt_deadline(t0.steady, false);
        let tally = Tally::new(self.nodes.len());
        call.open = Some(Open {
            queue: queue_round,
            ..Open::new(question, t0, deadline, tally, reached)
        });
        self.count_unreached(call.open.as_mut());
    }

    fn raise(&mut self, index: usize, call: &mut Call, agreement: Agreement) {
        let t0 = self.at(index);
        let round = self.rounds.len() - 1;
        let round = (0..=round).rfind(|&round| Some(self.rounds[round].attempt) == call.attempt);
        let round = round.expect("a raise follows an attempt");
        let mut tally = Tally::new(self.nodes.len());
        let mut reached = NodeSet::EMPTY;
        let question = Question {
            round,
            asks: Asks::Raise,
            verb: Verb::Raise,
            fence: agreement.fence(),
        };
        for node in self.node_ids() {
            if agreement.behind().contains(node) {
                if self.ask_node(index, node.index(), question) {
                    reached.insert(node);
                }
            } else if agreement.settled().contains(node) {
                tally.record(node, Vote::Granted);
            } else {
                tally.record(node, Vote::Fault(LATE));
            }
        }
        let deadline = call.machine.raise_deadline(t0.steady);
        call.open = Some(Open::new(question, t0, deadline, tally, reached));
    }

    /// Asks all nodes, and returns those that are asked.
    fn ask(&mut self, index: usize, question: Question) -> NodeSet {
        let nodes = self.node_ids();
        nodes
            .filter(|node| self.ask_node(index, node.index(), question))
            .collect()
    }

    fn ask_node(&mut self, index: usize, node: usize, question: Question) -> bool {
        let Question {
            round,
            asks,
            verb,
            fence,
        } = question;
        let attempt = &self.attempts[self.rounds[round].attempt];
        let operation = Asked {
            verb,
            kind: self.kind(attempt.is_read, fence),
            retention_millis: 3_600_000,
        };
        let key = LockKey::One(self.key(attempt.slot).into());
        let ticket = Ticket {
            slot: asks as u32,
            generation: round as u32,
        };
        let token = attempt.token.clone();
        let now = self.at(index).steady;
        let link = &mut self.programs[index].links[node];
        let Some(session) = &mut link.session else {
            return false;
        };
        let command = Command::new(ticket, &operation, &key, &token);
        session.queue(&command, now);
        link.operations.push_back(Operation { round, asks });
        self.flush(index, node);
        true
    }

    fn count_unreached(&mut self, open: Option<&mut Open>) {
        let Some(open) = open else { return };
        for node in self.node_ids().filter(|&node| !open.reached.contains(node)) {
            open.tally.record(node, Vote::Fault(GONE));
        }
    }

    fn release(
        &mut self,
        index: usize,
        attempt: usize,
        is_read: bool,
        departure: Option<Departure>,
        nodes: NodeSet,
    ) {
        self.attempts[attempt].is_read = is_read;
        let round = (0..self.rounds.len()).rfind(|&round| self.rounds[round].attempt == attempt);
        let round = round.expect("an attempt has a round");
        let (asks, verb, fence) = (Asks::Release, Verb::Release(departure), FencingToken::MAX);
        let question = Question {
            round,
            asks,
            verb,
            fence,
        };
        for node in nodes.iter() {
            self.ask_node(index, node.index(), question);
        }
    }

    /// The round of a call is decided, or its time is over.
    fn conclude(&mut self, index: usize, call: &mut Call) {
        let Some(mut open) = call.open.take() else {
            return;
        };
        let Some(attempt) = call.attempt else { return };
        let now = self.at(index);
        for node in open.tally.undecided().iter() {
            open.tally.record(node, Vote::Fault(LATE));
        }
        let random = self.random.next();
        let is_won = open.tally.acquisition() == Outcome::Won;
        if open.asks == Asks::Raise {
            call.machine.raised(&open.tally, now, random);
        } else {
            if let Some(mut round) = open.queue.take() {
                round.on_refusals(open.tally.refused());
                call.machine.answered_in_turn(round, open.tally.granted());
            }
            match open.fences.agreement().filter(|_| is_won) {
                Some(agreement) => {
                    self.note(0, What::Agreed(attempt, agreement.fence().get()));
                    let reached = open.reached;
                    call.machine.attempted_fenced(
                        open.t0,
                        &open.tally,
                        agreement,
                        reached,
                        now,
                        random,
                    );
                }
                None => {
                    let tally = &open.tally;
                    call.machine
                        .attempted(open.t0, tally, open.reached, now, random);
                }
            }
        }
        // A copy, as what is polled is done.
        match call.machine.clone().poll() {
            Output::Raise(_) => return,
            Output::Done(Verdict::Acquired(lease)) => {
                let until = self.programs[index].true_time(lease.end().as_nanos());
                let round = &mut self.rounds[open.round];
                round.until = until;
                round.won = Some(self.now);
            }
            _ => {
                self.attempts[attempt].gave_up = Some(self.now);
                self.note(0, What::GaveUp(attempt));
            }
        }
        self.note(0, What::Over(attempt));
    }

    fn acquired(&mut self, index: usize, mut call: Box<Call>, lease: Validity) {
        let departure = self.departure(&mut call);
        let departure = departure.map(Departure::without_ticket);
        let acts_at = self.now + self.random.below(120_000);
        self.programs[index].wakes_at = acts_at;
        self.programs[index].activity = Activity::Holding(Box::new(Held {
            attempt: call.attempt.expect("an attempt was won"),
            ttl: call.ttl,
            is_read: call.is_read,
            lease,
            fence: FencingToken::MAX,
            departure,
            acts_at,
            open: None,
        }));
    }

    /// Extends the lock, or releases it.
    fn hold_on(&mut self, index: usize, mut held: Box<Held>) {
        let now = self.at(index);
        if held
            .open
            .as_ref()
            .is_some_and(|open| now.steady >= open.deadline)
        {
            self.conclude_extension(index, &mut held);
        }
        let is_over = !held.lease.is_valid(now.lease);
        if is_over || held.open.is_none() && self.now >= held.acts_at && self.random.once_in(2) {
            self.attempts[held.attempt].gave_up = Some(self.now);
            self.note(0, What::GaveUp(held.attempt));
            let nodes = NodeSet::first(self.nodes.len());
            self.release(index, held.attempt, held.is_read, held.departure, nodes);
            self.programs[index].wakes_at = self.now + self.random.below(60_000);
            return;
        }
        if held.open.is_none() && self.now >= held.acts_at {
            // A writer may become a reader.
            held.is_read |= self.random.once_in(4);
            self.attempts[held.attempt].is_read = held.is_read;
            let round = self.new_round(held.attempt, index, held.ttl);
            let ttl_millis = held.ttl.millis();
            let question = Question {
                round,
                asks: Asks::Extend,
                verb: Verb::Extend { ttl_millis },
                fence: held.fence,
            };
            let reached = self.ask(index, question);
            let deadline = now.steady.after(NODE_TIMEOUT);
            let tally = Tally::new(self.nodes.len());
            held.open = Some(Open::new(question, now, deadline, tally, reached));
            self.count_unreached(held.open.as_mut());
            held.acts_at = self.now + self.random.below(120_000);
        }
        let open = held.open.as_ref().map(|open| open.deadline.as_nanos());
        let deadline = open.map_or(held.acts_at, |nanos| self.programs[index].true_time(nanos));
        let end = self.programs[index].true_time(held.lease.end().as_nanos());
        self.programs[index].wakes_at = deadline.min(end).max(self.now + 1);
        self.programs[index].activity = Activity::Holding(held);
    }

    fn conclude_extension(&mut self, index: usize, held: &mut Held) {
        let Some(open) = held.open.take() else { return };
        let now = self.at(index);
        let is_won = open.tally.extension() == ExtensionVerdict::Extended;
        if is_won && held.lease.is_valid(now.lease) {
            held.lease = held.ttl.lease_from(open.t0.lease);
            let until = self.programs[index].true_time(held.lease.end().as_nanos());
            self.rounds[open.round].until = until;
            self.rounds[open.round].won = Some(self.now);
        }
    }

    pub(crate) fn on_event(
        &mut self,
        index: usize,
        node: usize,
        event: SessionEvent,
        now: Timestamp,
    ) {
        match event {
            SessionEvent::Answered(ticket, answer) => self.answered(index, node, ticket, answer),
            SessionEvent::Accepted => {
                let program = &mut self.programs[index];
                if let Some(session) = &program.links[node].session {
                    program.quarantines[node].meet(&session.identity().process(), now);
                }
                self.look(index, node, None);
            }
            SessionEvent::Rechecked => {
                let program = &mut self.programs[index];
                if let Some(session) = &program.links[node].session {
                    program.quarantines[node].recheck(&session.identity().process(), now);
                }
                self.look(index, node, None);
            }
            SessionEvent::Noted => self.look(index, node, Some(())),
            SessionEvent::NotRun(..) | SessionEvent::MemoryKnown => {}
            other => panic!("{other:?}"),
        }
    }

    /// The node has shown what it remembers: by a look, or behind a note.
    fn look(&mut self, index: usize, node: usize, is_note: Option<()>) {
        let wall = match is_note {
            Some(()) => EPOCH * 1000 + self.programs[index].looked_at[node],
            None => self.wall(),
        };
        let program = &mut self.programs[index];
        let Some(session) = &program.links[node].session else {
            return;
        };
        program.seen[node] = session.identity().seen(wall);
        if is_note.is_none() {
            program.looked_at[node] = self.now;
        }
        program.looks[node] = program.links[node].looks.front().copied();
        self.judge(index);
        let step = self.programs[index].links[node]
            .looks
            .pop_front()
            .expect("a look");
        let at = self.steps[step].at;
        let from = self.counts_by_look(index, node).map(|from| from.max(at));
        // A look that shows the same ends no wait sooner, and makes none longer.
        let program = &mut self.programs[index];
        let earlier = program.counts_from[node];
        let from = from.map(|from| earlier.map_or(from, |earlier| from.min(earlier)).max(at));
        program.counts_from[node] = from;
        let made = is_note.is_none().then(|| self.age(index, node)).flatten();
        if let What::Looked {
            from: counts, age, ..
        } = &mut self.steps[step].what
        {
            (*counts, *age) = (from, made);
        }
    }

    /// What the rules make of the last look at a node. Whether it looks new, they show where all
    /// others are left out and it is to be noted.
    fn age(&self, index: usize, node: usize) -> Option<Age> {
        let Program { seen, rules, .. } = &self.programs[index];
        let look = seen[node].look()?;
        let noted = match &look.found {
            Found::Note(note) => (note.time, note.wall),
            Found::Nothing | Found::Damage => (look.time, look.wall),
        };
        let other = RunId::new(&[b'f'; 40]).expect("a name");
        let unnoted = Look {
            present: Incarnation {
                run_id: other,
                ..look.present
            },
            ..*look
        };
        let notes = rules.notes(&[Seen::Look(unnoted)], rules.max_ttl);
        Some(Age {
            by_node: look.time.saturating_sub(noted.0),
            by_wall: look.wall.saturating_sub(noted.1),
            is_new: notes[0].1.note.origin == Origin::Founder,
        })
    }

    fn standing(&self, index: usize, node: usize) -> Standing {
        let program = &self.programs[index];
        let longest = program.rules.longest(&program.seen);
        program.seen[node].look().map_or(Standing::Unnoted, |look| {
            program.rules.standing(look, longest)
        })
    }

    /// From when on the node counts, as far as it was looked at.
    fn counts_by_look(&mut self, index: usize, node: usize) -> Option<u64> {
        let now = self.at(index).steady;
        let left = match self.standing(index, node) {
            Standing::Unnoted => return None,
            Standing::Counts => Duration::ZERO,
            Standing::Waits(left) => left,
        };
        let program = &mut self.programs[index];
        program.quarantines[node].wait_by_note(left, [now, now], now);
        let left = program.quarantines[node].remaining(now);
        match left {
            Duration::ZERO => Some(0),
            left => Some(program.true_time(now.after(left).as_nanos())),
        }
    }

    /// Notes what is to be noted, once all nodes that can be reached were looked at.
    fn judge(&mut self, index: usize) {
        let program = &self.programs[index];
        let is_awaited = |node: NodeId| {
            let link = &program.links[node.index()];
            link.session.is_some()
                && (program.seen[node.index()] == Seen::Silent || link.looks.len() > 1)
        };
        let now = self.at(index).steady;
        if !program.rules.is_open(&program.seen) || self.node_ids().any(is_awaited) {
            return;
        }
        let is_old = |node: &NodeId| {
            program.seen[node.index()].look().is_some()
                && program.looked_at[node.index()] + OLD_LOOK < self.now
        };
        let old: Vec<NodeId> = self.node_ids().filter(is_old).collect();
        let longest = program.rules.longest(&program.seen);
        let notes = program.rules.notes(&program.seen, longest);
        let program = &mut self.programs[index];
        let mut asked = Vec::new();
        for node in &old {
            if let Some(session) = &mut program.links[node.index()].session {
                session.look(now);
                asked.push(*node);
            }
        }
        if old.is_empty() {
            for (node, new) in notes {
                let looks = program.looks.iter().flatten().copied().collect();
                let link = &mut program.links[node.index()];
                if let Some(session) = &mut link.session {
                    session.note(&new, now);
                    link.notes.push_back(looks);
                    asked.push(node);
                }
            }
        }
        asked
            .iter()
            .for_each(|node| self.flush(index, node.index()));
    }

    /// What counts of a vote of this node.
    fn filtered(&mut self, index: usize, node: usize, asks: Asks, vote: Vote) -> Vote {
        let now = self.at(index).steady;
        let program = &self.programs[index];
        // A time to live that is longer than the noted ones is stored first.
        let is_unnoted = self.standing(index, node) == Standing::Unnoted
            || program.rules.is_longer(&program.seen);
        let quarantine = &mut self.programs[index].quarantines[node];
        if !is_unnoted && (!quarantine.is_on() || quarantine.end(now)) {
            return vote;
        }
        match asks {
            Asks::Extend => quarantine::of_extension(vote),
            _ => quarantine::of_attempt(vote),
        }
    }

    fn answered(&mut self, index: usize, node: usize, ticket: Ticket, answer: Answer) {
        let id = NodeId::new(node);
        let Some(open) = self.programs[index].open() else {
            return;
        };
        if (open.round, open.asks as u32) != (ticket.generation as usize, ticket.slot) {
            return;
        }
        let (round, asks) = (open.round, open.asks);
        let vote = match &answer {
            Answer::Vote(vote) => *vote,
            Answer::Fence(_) => Vote::Granted,
            Answer::Held(_) | Answer::Queued(_) => Vote::Refused,
            other => panic!("{other:?}"),
        };
        let vote = self.filtered(index, node, asks, vote);
        let Some(open) = self.programs[index].open() else {
            return;
        };
        if !open.tally.record(id, vote) {
            return;
        }
        match answer {
            Answer::Fence(fence) if vote == Vote::Granted => open.fences.record(id, fence),
            Answer::Queued(reply) => {
                if let Some(queue) = &mut open.queue {
                    queue.on_refused(id, *reply);
                }
            }
            _ => {}
        }
        if vote == Vote::Granted && asks != Asks::Raise {
            self.rounds[round].counted[node] = Some(self.now);
            self.note(node, What::Counted(round));
            let Program { life, seen, .. } = &self.programs[index];
            let life = *life;
            let noted: Vec<usize> = (0..seen.len())
                .filter(|&node| is_noted(&seen[node]))
                .collect();
            for node in noted {
                self.note(node, What::Relied(life));
            }
        }
        self.decide(index);
    }

    /// The connection to a node is lost: it does not answer.
    pub(crate) fn lost(&mut self, index: usize, node: usize) {
        if let Some(open) = self.programs[index].open() {
            open.tally.record(NodeId::new(node), Vote::Fault(GONE));
        }
        self.decide(index);
    }

    fn decide(&mut self, index: usize) {
        match std::mem::replace(&mut self.programs[index].activity, Activity::Idle) {
            Activity::Calling(mut call) => {
                let is_pending = |open: &Open| open.tally.acquisition() == Outcome::Pending;
                if call.open.as_ref().is_some_and(|open| !is_pending(open)) {
                    self.conclude(index, &mut call);
                    self.drive(index, call);
                } else {
                    self.programs[index].activity = Activity::Calling(call);
                }
            }
            Activity::Holding(mut held) => {
                let is_decided = |open: &Open| open.tally.extension() != ExtensionVerdict::Pending;
                if held.open.as_ref().is_some_and(is_decided) {
                    self.conclude_extension(index, &mut held);
                }
                self.programs[index].activity = Activity::Holding(held);
            }
            Activity::Idle => {}
        }
    }

    /// Messages arrive that no node has sent.
    pub(crate) fn forge(&mut self, index: usize) {
        let now = self.at(index).steady;
        let nodes = self.nodes.len() as u64;
        for _ in 0..=self.random.below(4) {
            let node = NodeId::new(self.random.below(nodes) as usize);
            let message = match self.random.below(4) {
                0 => Message::Next,
                1 => Message::Confirmed,
                _ => Message::Turn(Some(self.random.below(4) as u16)),
            };
            let is_retry = self.random.once_in(6);
            if let Activity::Calling(call) = &mut self.programs[index].activity {
                call.machine.on_message(node, message, now);
                if is_retry && call.open.is_none() {
                    call.machine.retry_now(now);
                }
            }
        }
        if let Activity::Calling(call) = &self.programs[index].activity
            && call.open.is_none()
        {
            self.wake(index);
        }
    }
}
