//! The table of faults that [`planting`](crate::planting) plants in a copy of the library, one
//! after the other.
//!
//! Not in the table, because they change nothing that a rule can see: pending releases that are not
//! sent on a closed connection (no path leads there any more). Nor pending releases that are sent
//! to a node that loads its data: that floods the node and breaks no rule, and a test of its own in
//! [`recovery`](crate::recovery) finds it. Nor a loss that is signalled twice, repaired nodes that
//! are not noted for the release, and a renewal that outlives a shorter extension: 1000 seeds find
//! none of them. The model check in `tests/models/keeper` finds them.

mod fences;
mod following;
mod incarnations;
mod queues;
mod readers;
mod restarts;

/// A fault, in a file below `src/`.
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    pub(crate) file: &'static str,
    edits: [Option<Edit>; MOST_EDITS],
}

/// What is replaced, by what.
type Edit = (&'static str, &'static str);

const MOST_EDITS: usize = 4;

/// A fault: in this file, the one text is replaced by the other.
const fn mutant(
    name: &'static str,
    file: &'static str,
    old: &'static str,
    new: &'static str,
) -> Mutant {
    let mut edits = [None; MOST_EDITS];
    edits[0] = Some((old, new));
    Mutant { name, file, edits }
}

impl Mutant {
    /// The same, and one more text is replaced.
    const fn and(mut self, old: &'static str, new: &'static str) -> Mutant {
        let mut number = 1;
        while self.edits[number].is_some() {
            number += 1;
        }
        self.edits[number] = Some((old, new));
        self
    }

    pub(crate) fn edits(&self) -> impl Iterator<Item = &Edit> {
        self.edits.iter().flatten()
    }
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Mutant> {
    MUTANTS
        .iter()
        .chain(queues::MUTANTS)
        .chain(restarts::MUTANTS)
        .chain(fences::MUTANTS)
        .chain(readers::MUTANTS)
        .chain(incarnations::MUTANTS)
        .chain(following::MUTANTS)
}

const MUTANTS: &[Mutant] = &[
    mutant(
        "quorum off by one",
        "algorithm/vote/mod.rs",
        "self.nodes() / 2 + 1",
        "(self.nodes() / 2).max(1)",
    ),
    mutant(
        "no undo",
        "api/lock/attempts.rs",
        "self.call.undo(record, reached, departure);",
        "let _ = (record, reached, departure);",
    ),
    mutant(
        "undo before the SET",
        "api/lock/attempts.rs",
        "self.call.undo(record, reached, departure);",
        "let _ = (record, reached, departure);",
    )
    .and(
        "        let asked = engine.acquire(request,",
        "        engine.undo(self.call.key(), engine.adopt(request.token.clone(), kind), self.call.ttl.duration());\n        let asked = engine.acquire(request,",
    ),
    mutant(
        "undo only where it was granted",
        "algorithm/acquire/mod.rs",
        "let undo = reached.without(tally.untouched());",
        "let undo = tally.granted();\n        let _ = reached;",
    ),
    mutant(
        "a set is not undone where a node has refused",
        "algorithm/acquire/mod.rs",
        "let undo = reached.without(tally.untouched());",
        "let undo = reached.without(tally.refused());",
    ),
    mutant(
        "a set goes by its last key",
        "protocol/session/mod.rs",
        "if sent.part > 0 {",
        "if sent.part > 200 {",
    ),
    mutant(
        "validity from the decision",
        "algorithm/acquire/mod.rs",
        "let lease = self.config.ttl.lease_from(t0.lease);",
        "let lease = self.config.ttl.lease_from(now.lease);",
    ),
    mutant(
        "a quorum too late still wins",
        "algorithm/acquire/mod.rs",
        "Outcome::Won if lease.is_valid(now.lease) =>",
        "Outcome::Won if lease.is_valid(t0.lease) =>",
    ),
    mutant(
        "drift ignored",
        "algorithm/lease.rs",
        "match whole.saturating_sub(drift) {",
        "match whole.saturating_sub(drift).max(whole) {",
    ),
    mutant(
        "token reused in a retry",
        "api/lock/attempts.rs",
        "let token = entropy::draw(&mut SysRng)\n            .map_err(|_| Error::entropy())?\n            .labelled",
        "let draw = || entropy::draw(&mut SysRng).map_err(|_| Error::entropy());\n        let token = self.last.as_ref().map_or_else(draw, |(record, _)| Ok(record.token.clone()))?.labelled",
    ),
    mutant(
        "stale vote counted",
        "engine/rounds/mod.rs",
        "(round.generation == ticket.generation).then_some(round)\n    }\n\n    /// More",
        "(round.references > 0).then_some(round)\n    }\n\n    /// More",
    )
    .and(
        "(round.generation == ticket.generation).then_some(round)\n}",
        "(round.references > 0).then_some(round)\n}",
    )
    .and(
        "round.references += nodes.len() as u32;",
        "round.references += 0;",
    )
    .and(
        "round.references -= 1;",
        "if round.generation != ticket.generation {\n            return;\n        }\n        round.references -= 1;",
    ),
    mutant(
        "late reply shifted by one",
        "protocol/session/mod.rs",
        "        self.pipeline\n            .own\n            .ask(now, |out| Request::write(command, form, out));\n",
        "        let is_late = self.pipeline.backlog().is_overdue(Duration::from_millis(50), now);\n        if is_late && command.operation.acquires() && command.operation.kind.fence().is_none() {\n            self.pipeline.pop(false);\n        }\n        self.pipeline.own.ask(now, |out| Request::write(command, form, out));\n",
    ),
    mutant(
        "a quorum of answers without a quorum of deletions is a loss",
        "algorithm/vote/mod.rs",
        "} else if may_hold < self.quorum() {",
        "} else if self.voted().len() - self.faulted.len() >= self.quorum()\n            && self.granted.len() + undecided < self.quorum()\n        {",
    ),
    mutant(
        "a timeout counts as a refusal",
        "engine/nodes/reactor.rs",
        "                let fault = self.connections.apart(node).fault_at_deadline(now);\n                self.rounds.vote(ticket, node, &Vote::Fault(fault));",
        "                let _ = self.connections[node].fault_at_deadline(now);\n                self.rounds.vote(ticket, node, &Vote::Refused);",
    ),
    mutant(
        "an error reply counts as a refusal",
        "protocol/kinds/plain.rs",
        "Reply::Error(text) => Ok(Vote::Fault(ErrorReply::read(text).fault(\"SET\"))),\n        _ => Err(ProtocolError::UnexpectedReply),\n    }\n}\n\n/// Lets the key",
        "Reply::Error(_) => Ok(Vote::Refused),\n        _ => Err(ProtocolError::UnexpectedReply),\n    }\n}\n\n/// Lets the key",
    ),
    mutant(
        "what a lost connection owes is forgotten",
        "engine/nodes/mod.rs",
        "Abandoned::Release => self.defer_abandoned(node, ticket, fault, is_asked_anew, now),",
        "Abandoned::Release => self.rounds.count(ticket, node, &Vote::Fault(fault)),",
    ),
    mutant(
        "no release for a node that is away",
        "engine/nodes/requests.rs",
        "            if may_hold {\n                self.rounds",
        "            if false && may_hold {\n                self.rounds",
    ),
    mutant(
        "what was written is forgotten on reconnect",
        "engine/node_connection/mod.rs",
        "        self.pending.reconnected();\n",
        "        self.wrote_at = None;\n        self.pending.reconnected();\n",
    ),
    mutant(
        "a plain release by an unknown hash is not asked again when a quorum has decided",
        "engine/nodes/dispatch.rs",
        "Some(command) if !command.operation.acquires() || !self.rounds.is_decided(ticket) =>",
        "Some(command) if command.operation.kind.fence().is_some() && !command.operation.acquires() || !self.rounds.is_decided(ticket) =>",
    ),
    mutant(
        "a fenced release by an unknown hash is not asked again when a quorum has decided",
        "engine/nodes/dispatch.rs",
        "Some(command) if !command.operation.acquires() || !self.rounds.is_decided(ticket) =>",
        "Some(command) if command.operation.kind.fence().is_none() && !command.operation.acquires() || !self.rounds.is_decided(ticket) =>",
    ),
    mutant(
        "failed extension releases",
        "api/held_lock/mod.rs",
        "            ExtendResult::Failed(found) => {\n                report.",
        "            ExtendResult::Failed(found) => {\n                self.post_release();\n                report.",
    ),
    mutant(
        "extended after the end, by hand",
        "api/held_lock/mod.rs",
        "if count.is_extended() && old.is_valid(now) {",
        "if count.is_extended() {",
    ),
    mutant(
        "extended after the end, by the watchdog",
        "algorithm/renewal/mod.rs",
        "self.leases\n            .get_mut(&id)\n            .filter(|present| present.validity.is_valid(now))",
        "let _ = now;\n        self.leases.get_mut(&id)",
    )
    .and(
        "&& end <= now\n        {\n            ended.push",
        "&& end.after(Duration::from_secs(1)) <= now\n        {\n            ended.push",
    )
    .and(
        "if lease.validity.is_valid(now) && lease.config.until",
        "if lease.config.until",
    ),
    mutant(
        "repair after expiry",
        "api/held_lock/mod.rs",
        "        let now = engine.lease_now();\n        if count.is_extended() && old",
        "        let now = engine.lease_now();\n        if count.is_extended() && !old.is_valid(now) {\n            let repaired = engine.repair(&order, count.tally.absent());\n            self.may_reach(repaired);\n        }\n        if count.is_extended() && old",
    ),
    mutant(
        "an extension counts from its answer",
        "api/held_lock/mod.rs",
        "return if self.rely_on(start, ttl)",
        "return if self.rely_on(now, ttl)",
    ),
    mutant(
        "a renewal counts from its answer",
        "engine/watchdog_thread/mod.rs",
        "let lease = ttl.lease_from(start);\n        let now = self.engine.lease_now();\n        let mut",
        "let now = self.engine.lease_now();\n        let lease = ttl.lease_from(now);\n        let mut",
    ),
    mutant(
        "a renewal overtakes an extension by hand",
        "engine/watchdog_thread/mod.rs",
        "if held.by_hand.is_awaited() {",
        "if false {",
    ),
    mutant(
        "a renewal adds up the grants of two rounds",
        "engine/watchdog_thread/mod.rs",
        "    renewals: Renewals,\n",
        "    renewals: Renewals,\n    granted: HashMap<LeaseId, NodeSet>,\n",
    )
    .and(
        "        if count.is_extended() {\n",
        "        let granted = schedule.granted.entry(watched.id).or_default();\n        *granted = granted.union(count.tally.granted());\n        let is_extended = granted.len() >= count.tally.quorum();\n        if is_extended {\n            *granted = NodeSet::EMPTY;\n",
    ),
    mutant(
        "watchdog after unlock",
        "engine/watchdog_thread/mod.rs",
        "        lock(&self.shared.schedule).remove(watched.id);\n        let mut held",
        "        let mut held",
    )
    .and(
        "let mut held = lock(&watched.held);\n        held.is_over = true;\n        Unregistered",
        "let held = lock(&watched.held);\n        Unregistered",
    ),
    mutant(
        "repair after the release",
        "engine/watchdog_thread/mod.rs",
        "        if held.is_over {\n            return NodeSet::EMPTY;\n        }\n",
        "",
    )
    .and(
        "            counted?;\n",
        "            let _ = counted;\n",
    ),
    mutant(
        "a clock that stands still in sleep",
        "os/clock.rs",
        "        ahead(steady, wall).abs_diff",
        "        false && ahead(steady, wall).abs_diff",
    ),
    mutant(
        "a loss is reported twice to an observer",
        "engine/watchdog_thread/watched.rs",
        "let loss_reported = std::mem::replace(&mut held.loss_reported, true);",
        "let loss_reported = false;",
    ),
    mutant(
        "the outcome of a dropped guard is not reported",
        "api/held_lock/release.rs",
        "hold_ended(key.title(), was_valid, loss_reported, held);",
        "hold_ended(key.title(), was_valid, loss_reported, held).filter(|_| was_valid);",
    ),
    mutant(
        "a queue timeout that reports nothing",
        "api/lock/account.rs",
        "        let error = result.as_ref().err();\n",
        "        if self.attempts == 0 && matches!(result, Ok(None)) {\n            return;\n        }\n        let error = result.as_ref().err();\n",
    ),
    mutant(
        "a wait that is reported again after each attempt",
        "api/lock/account.rs",
        "std::mem::replace(&mut self.has_waited, true)",
        "std::mem::replace(&mut self.has_waited, self.attempts > 0)",
    ),
    mutant(
        "a background release that is not counted",
        "events/event_queue.rs",
        "            class.released(outcome, is_dropped);\n",
        "            if !is_dropped {\n                class.released(outcome, is_dropped);\n            }\n",
    ),
    mutant(
        "a cancelled call that reports nothing",
        "api/lock/account.rs",
        "        let error = result.as_ref().err();\n",
        "        let error = result.as_ref().err();\n        if error.is_some_and(|error| error.kind() == ErrorKind::Cancelled) {\n            return;\n        }\n",
    ),
    mutant(
        "keys that live ten times as long",
        "protocol/kinds/plain.rs",
        "resp::push(out, resp::decimal(ttl_millis, &mut [0; 20]));",
        "resp::push(out, resp::decimal(ttl_millis * 10, &mut [0; 20]));",
    ),
    mutant(
        "attempts without a time limit",
        "algorithm/acquire/mod.rs",
        "let answer = start.after(budget.min(self.config.ttl.validity()))",
        "let answer = start.after((budget * 100).min(self.config.ttl.validity()))",
    ),
    mutant(
        "waits end by the lease clock",
        "engine/calls.rs",
        "/// The network of one client.\npub(crate) struct Engine {",
        "struct ByLeaseClock(Arc<dyn Clock>);\n\nimpl Clock for ByLeaseClock {\n    fn now(&self) -> Timestamp {\n        Timestamp::from_nanos(self.0.lease_now().as_nanos())\n    }\n\n    fn lease_now(&self) -> LeaseTime {\n        self.0.lease_now()\n    }\n}\n\n/// The network of one client.\npub(crate) struct Engine {",
    )
    .and(
        "        let waker = Arc::new(Waker::new()?);\n",
        "        let clock: Arc<dyn Clock> = Arc::new(ByLeaseClock(clock));\n        let waker = Arc::new(Waker::new()?);\n",
    ),
    mutant(
        "what is left unsent is not polled for",
        "engine/socket_state.rs",
        "SocketState::Open(transport) => transport.wants_write(has_unsent),",
        "SocketState::Open(_) => has_unsent && !has_unsent,",
    ),
    mutant(
        "one thread delivers the events of all",
        "events/event_queue.rs",
        "for _ in 0..most {",
        "loop {",
    ),
    mutant(
        "a node is never asked again",
        "algorithm/health.rs",
        "Some(fault) if now < self.not_before => Err(fault),",
        "Some(fault) if self.failures > 3 || now < self.not_before => Err(fault),",
    ),
    mutant(
        "rounds leak when a connection is lost",
        "engine/nodes/mod.rs",
        "self.rounds.count(ticket, node, &Vote::Fault(fault));",
        "self.rounds.vote(ticket, node, &Vote::Fault(fault));",
    ),
    mutant(
        "no thread sends what is left",
        "engine/driver/helper.rs",
        "if !is_last\n            || state.is_closing\n            ||",
        "if is_last || !is_last || state.is_closing ||",
    ),
    mutant(
        "no thread looks for the answers to releases",
        "engine/node_connection/interest.rs",
        "self.session.incoming.read_at.after(UNREAD_LIMIT)",
        "Timestamp::NEVER.max(now.after(UNREAD_LIMIT))",
    ),
    mutant(
        "what may have been written is written again",
        "protocol/sent_operation.rs",
        "_ if !is_written => Abandoned::Unwritten,",
        "_ if !is_written || sent.part < 200 => Abandoned::Unwritten,",
    ),
    mutant(
        "the last handle does not wait for answers",
        "engine/calls.rs",
        "        self.end();\n",
        "        self.driver.close();\n",
    ),
    mutant(
        "a release that did not run is forgotten",
        "engine/nodes/pending.rs",
        "        self.defer(node, ticket, Some(fault), connections, rounds, now);\n",
        "        rounds.unrefer(ticket);\n",
    ),
];
