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

/// A fault: what is replaced by what, in which file below `src/`.
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    pub(crate) file: &'static str,
    pub(crate) edits: &'static [(&'static str, &'static str)],
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
    Mutant {
        name: "quorum off by one",
        file: "algorithm/vote/mod.rs",
        edits: &[("self.nodes() / 2 + 1", "(self.nodes() / 2).max(1)")],
    },
    Mutant {
        name: "no undo",
        file: "api/lock/attempts.rs",
        edits: &[(
            "engine.undo(self.call.key(), attempt, self.call.ttl.duration());",
            "let _ = (engine, attempt);",
        )],
    },
    Mutant {
        name: "undo before the SET",
        file: "api/lock/attempts.rs",
        edits: &[
            (
                "engine.undo(self.call.key(), attempt, self.call.ttl.duration());",
                "let _ = (engine, attempt);",
            ),
            (
                "        let asked = engine.acquire(request,",
                "        engine.undo(self.call.key(), engine.adopt(request.token.clone(), kind), self.call.ttl.duration());\n        let asked = engine.acquire(request,",
            ),
        ],
    },
    Mutant {
        name: "undo only where it was granted",
        file: "algorithm/acquire/mod.rs",
        edits: &[(
            "let undo = reached.without(tally.untouched());",
            "let undo = tally.granted();\n        let _ = reached;",
        )],
    },
    Mutant {
        name: "a set is not undone where a node has refused",
        file: "algorithm/acquire/mod.rs",
        edits: &[(
            "let undo = reached.without(tally.untouched());",
            "let undo = reached.without(tally.refused());",
        )],
    },
    Mutant {
        name: "a set goes by its last key",
        file: "protocol/session/mod.rs",
        edits: &[("if sent.part > 0 {", "if sent.part > 200 {")],
    },
    Mutant {
        name: "validity from the decision",
        file: "algorithm/acquire/mod.rs",
        edits: &[(
            "let lease = self.config.ttl.lease_from(t0.lease);",
            "let lease = self.config.ttl.lease_from(now.lease);",
        )],
    },
    Mutant {
        name: "a quorum too late still wins",
        file: "algorithm/acquire/mod.rs",
        edits: &[(
            "Outcome::Won if lease.is_valid(now.lease) =>",
            "Outcome::Won if lease.is_valid(t0.lease) =>",
        )],
    },
    Mutant {
        name: "drift ignored",
        file: "algorithm/lease.rs",
        edits: &[(
            "match whole.saturating_sub(drift) {",
            "match whole.saturating_sub(drift).max(whole) {",
        )],
    },
    Mutant {
        name: "token reused in a retry",
        file: "api/lock/attempts.rs",
        edits: &[(
            "let token = entropy::draw(&mut SysRng)\n            .map_err(|_| Error::entropy())?\n            .labelled",
            "let draw = || entropy::draw(&mut SysRng).map_err(|_| Error::entropy());\n        let token = self.last.as_ref().map_or_else(draw, |(record, _)| Ok(record.token.clone()))?.labelled",
        )],
    },
    Mutant {
        name: "stale vote counted",
        file: "engine/rounds/mod.rs",
        edits: &[
            (
                "(round.generation == ticket.generation).then_some(round)\n    }\n\n    /// More",
                "(round.references > 0).then_some(round)\n    }\n\n    /// More",
            ),
            (
                "(round.generation == ticket.generation).then_some(round)\n}",
                "(round.references > 0).then_some(round)\n}",
            ),
            (
                "round.references += nodes.len() as u32;",
                "round.references += 0;",
            ),
            (
                "round.references -= 1;",
                "if round.generation != ticket.generation {\n            return;\n        }\n        round.references -= 1;",
            ),
        ],
    },
    Mutant {
        name: "late reply shifted by one",
        file: "protocol/session/mod.rs",
        edits: &[(
            "        self.pipeline\n            .own\n            .ask(now, |out| Request::write(command, form, out));\n",
            "        let is_late = self.pipeline.backlog().is_overdue(Duration::from_millis(50), now);\n        if is_late && command.operation.acquires() && command.operation.kind.fence().is_none() {\n            self.pipeline.pop(&Log::default());\n        }\n        self.pipeline.own.ask(now, |out| Request::write(command, form, out));\n",
        )],
    },
    Mutant {
        name: "a quorum of answers without a quorum of deletions is a loss",
        file: "algorithm/vote/mod.rs",
        edits: &[(
            "} else if may_hold < self.quorum() {",
            "} else if self.voted().len() - self.faulted.len() >= self.quorum()\n            && self.granted.len() + undecided < self.quorum()\n        {",
        )],
    },
    Mutant {
        name: "a timeout counts as a refusal",
        file: "engine/nodes/reactor.rs",
        edits: &[(
            "                let fault = self.connections.apart(node).fault_at_deadline(now);\n                self.rounds.vote(ticket, node, &Vote::Fault(fault));",
            "                let _ = self.connections[node].fault_at_deadline(now);\n                self.rounds.vote(ticket, node, &Vote::Refused);",
        )],
    },
    Mutant {
        name: "an error reply counts as a refusal",
        file: "protocol/kinds/plain.rs",
        edits: &[(
            "Reply::Error(text) => Ok(Vote::Fault(ErrorReply::read(text).fault(\"SET\"))),\n        _ => Err(ProtocolError::UnexpectedReply),\n    }\n}\n\n/// Lets the key",
            "Reply::Error(_) => Ok(Vote::Refused),\n        _ => Err(ProtocolError::UnexpectedReply),\n    }\n}\n\n/// Lets the key",
        )],
    },
    Mutant {
        name: "what a lost connection owes is forgotten",
        file: "engine/nodes/mod.rs",
        edits: &[(
            "Abandoned::Release => self.defer_abandoned(node, ticket, fault, is_asked_anew, now),",
            "Abandoned::Release => self.rounds.count(ticket, node, &Vote::Fault(fault)),",
        )],
    },
    Mutant {
        name: "no release for a node that is away",
        file: "engine/nodes/requests.rs",
        edits: &[(
            "            if may_hold {\n                self.rounds",
            "            if false && may_hold {\n                self.rounds",
        )],
    },
    Mutant {
        name: "what was written is forgotten on reconnect",
        file: "engine/node_connection/mod.rs",
        edits: &[(
            "        self.pending.reconnected();\n",
            "        self.wrote_at = None;\n        self.pending.reconnected();\n",
        )],
    },
    Mutant {
        name: "a plain release by an unknown hash is not asked again when a quorum has decided",
        file: "engine/nodes/dispatch.rs",
        edits: &[(
            "Some(command) if !command.operation.acquires() || !self.rounds.is_decided(ticket) =>",
            "Some(command) if command.operation.kind.fence().is_some() && !command.operation.acquires() || !self.rounds.is_decided(ticket) =>",
        )],
    },
    Mutant {
        name: "a fenced release by an unknown hash is not asked again when a quorum has decided",
        file: "engine/nodes/dispatch.rs",
        edits: &[(
            "Some(command) if !command.operation.acquires() || !self.rounds.is_decided(ticket) =>",
            "Some(command) if command.operation.kind.fence().is_none() && !command.operation.acquires() || !self.rounds.is_decided(ticket) =>",
        )],
    },
    Mutant {
        name: "failed extension releases",
        file: "api/held_lock/mod.rs",
        edits: &[(
            "            ExtendResult::Failed(found) => {\n                report.",
            "            ExtendResult::Failed(found) => {\n                self.post_release();\n                report.",
        )],
    },
    Mutant {
        name: "extended after the end, by hand",
        file: "api/held_lock/mod.rs",
        edits: &[(
            "if count.is_extended() && old.is_valid(now) {",
            "if count.is_extended() {",
        )],
    },
    Mutant {
        name: "extended after the end, by the watchdog",
        file: "algorithm/renewal/mod.rs",
        edits: &[
            (
                "self.leases\n            .get_mut(&id)\n            .filter(|present| present.validity.is_valid(now))",
                "let _ = now;\n        self.leases.get_mut(&id)",
            ),
            (
                "&& end <= now\n        {\n            ended.push",
                "&& end.after(Duration::from_secs(1)) <= now\n        {\n            ended.push",
            ),
            (
                "if lease.validity.is_valid(now) && lease.config.until",
                "if lease.config.until",
            ),
        ],
    },
    Mutant {
        name: "repair after expiry",
        file: "api/held_lock/mod.rs",
        edits: &[(
            "        let now = engine.lease_now();\n        if count.is_extended() && old",
            "        let now = engine.lease_now();\n        if count.is_extended() && !old.is_valid(now) {\n            let repaired = engine.repair(&order, count.tally.absent());\n            self.may_reach(repaired);\n        }\n        if count.is_extended() && old",
        )],
    },
    Mutant {
        name: "an extension counts from its answer",
        file: "api/held_lock/mod.rs",
        edits: &[(
            "return if self.rely_on(start, ttl)",
            "return if self.rely_on(now, ttl)",
        )],
    },
    Mutant {
        name: "a renewal counts from its answer",
        file: "engine/watchdog_thread/mod.rs",
        edits: &[(
            "let lease = ttl.lease_from(start);\n        let now = self.engine.lease_now();\n        let mut",
            "let now = self.engine.lease_now();\n        let lease = ttl.lease_from(now);\n        let mut",
        )],
    },
    Mutant {
        name: "a renewal overtakes an extension by hand",
        file: "engine/watchdog_thread/mod.rs",
        edits: &[("if held.by_hand.is_awaited() {", "if false {")],
    },
    Mutant {
        name: "a renewal adds up the grants of two rounds",
        file: "engine/watchdog_thread/mod.rs",
        edits: &[
            (
                "    renewals: Renewals,\n",
                "    renewals: Renewals,\n    granted: HashMap<LeaseId, NodeSet>,\n",
            ),
            (
                "        if count.is_extended() {\n",
                "        let granted = schedule.granted.entry(watched.id).or_default();\n        *granted = granted.union(count.tally.granted());\n        let is_extended = granted.len() >= count.tally.quorum();\n        if is_extended {\n            *granted = NodeSet::EMPTY;\n",
            ),
        ],
    },
    Mutant {
        name: "watchdog after unlock",
        file: "engine/watchdog_thread/mod.rs",
        edits: &[
            (
                "        lock(&self.shared.schedule).remove(watched.id);\n        let mut held",
                "        let mut held",
            ),
            (
                "let mut held = lock(&watched.held);\n        held.is_over = true;\n        Unregistered",
                "let held = lock(&watched.held);\n        Unregistered",
            ),
        ],
    },
    Mutant {
        name: "repair after the release",
        file: "engine/watchdog_thread/mod.rs",
        edits: &[
            (
                "        if held.is_over {\n            return NodeSet::EMPTY;\n        }\n",
                "",
            ),
            ("            counted?;\n", "            let _ = counted;\n"),
        ],
    },
    Mutant {
        name: "a clock that stands still in sleep",
        file: "os/clock.rs",
        edits: &[(
            "        ahead(steady, wall).abs_diff",
            "        false && ahead(steady, wall).abs_diff",
        )],
    },
    Mutant {
        name: "a loss is reported twice to an observer",
        file: "engine/watchdog_thread/watched.rs",
        edits: &[(
            "let loss_reported = std::mem::replace(&mut held.loss_reported, true);",
            "let loss_reported = false;",
        )],
    },
    Mutant {
        name: "the outcome of a dropped guard is not reported",
        file: "api/held_lock/release.rs",
        edits: &[(
            "dropped(key.title(), was_valid, loss_reported, held);",
            "dropped(key.title(), was_valid, loss_reported, held).filter(|_| was_valid);",
        )],
    },
    Mutant {
        name: "a queue timeout that reports nothing",
        file: "api/lock/account.rs",
        edits: &[(
            "        let error = result.as_ref().err();\n",
            "        if self.attempts == 0 && matches!(result, Ok(None)) {\n            return;\n        }\n        let error = result.as_ref().err();\n",
        )],
    },
    Mutant {
        name: "a wait that is reported again after each attempt",
        file: "api/lock/account.rs",
        edits: &[(
            "std::mem::replace(&mut self.has_waited, true)",
            "std::mem::replace(&mut self.has_waited, self.attempts > 0)",
        )],
    },
    Mutant {
        name: "a background release that is not counted",
        file: "events/event_queue.rs",
        edits: &[(
            "            release.count(counters.class(class), verdict, true);\n",
            "",
        )],
    },
    Mutant {
        name: "a cancelled call that reports nothing",
        file: "api/lock/account.rs",
        edits: &[(
            "        let error = result.as_ref().err();\n",
            "        let error = result.as_ref().err();\n        if error.is_some_and(|error| error.kind() == ErrorKind::Cancelled) {\n            return;\n        }\n",
        )],
    },
    Mutant {
        name: "keys that live ten times as long",
        file: "protocol/kinds/plain.rs",
        edits: &[(
            "resp::push(out, resp::decimal(ttl_millis, &mut [0; 20]));",
            "resp::push(out, resp::decimal(ttl_millis * 10, &mut [0; 20]));",
        )],
    },
    Mutant {
        name: "attempts without a time limit",
        file: "algorithm/acquire/mod.rs",
        edits: &[(
            "let answer = start.after(budget.min(self.config.ttl.validity()))",
            "let answer = start.after((budget * 100).min(self.config.ttl.validity()))",
        )],
    },
    Mutant {
        name: "waits end by the lease clock",
        file: "engine/calls.rs",
        edits: &[
            (
                "/// The network of one client.\npub(crate) struct Engine {",
                "struct ByLeaseClock(Arc<dyn Clock>);\n\nimpl Clock for ByLeaseClock {\n    fn now(&self) -> Timestamp {\n        Timestamp::from_nanos(self.0.lease_now().as_nanos())\n    }\n\n    fn lease_now(&self) -> LeaseTime {\n        self.0.lease_now()\n    }\n}\n\n/// The network of one client.\npub(crate) struct Engine {",
            ),
            (
                "        let waker = Arc::new(Waker::new()?);\n",
                "        let clock: Arc<dyn Clock> = Arc::new(ByLeaseClock(clock));\n        let waker = Arc::new(Waker::new()?);\n",
            ),
        ],
    },
    Mutant {
        name: "what is left unsent is not polled for",
        file: "engine/socket_state.rs",
        edits: &[(
            "SocketState::Open(transport) => transport.wants_write(has_unsent),",
            "SocketState::Open(_) => has_unsent && !has_unsent,",
        )],
    },
    Mutant {
        name: "one thread delivers the events of all",
        file: "events/event_queue.rs",
        edits: &[("for _ in 0..most {", "loop {")],
    },
    Mutant {
        name: "a node is never asked again",
        file: "algorithm/health.rs",
        edits: &[(
            "Some(fault) if now < self.not_before => Err(fault),",
            "Some(fault) if self.failures > 3 || now < self.not_before => Err(fault),",
        )],
    },
    Mutant {
        name: "rounds leak when a connection is lost",
        file: "engine/nodes/mod.rs",
        edits: &[(
            "self.rounds.count(ticket, node, &Vote::Fault(fault));",
            "self.rounds.vote(ticket, node, &Vote::Fault(fault));",
        )],
    },
    Mutant {
        name: "no thread sends what is left",
        file: "engine/driver/helper.rs",
        edits: &[(
            "if !is_last\n            || state.is_closing\n            ||",
            "if is_last || !is_last || state.is_closing ||",
        )],
    },
    Mutant {
        name: "no thread looks for the answers to releases",
        file: "engine/node_connection/interest.rs",
        edits: &[(
            "self.session.incoming.read_at.after(UNREAD_LIMIT)",
            "Timestamp::NEVER.max(now.after(UNREAD_LIMIT))",
        )],
    },
    Mutant {
        name: "what may have been written is written again",
        file: "protocol/sent_operation.rs",
        edits: &[(
            "_ if !is_written => Abandoned::Unwritten,",
            "_ if !is_written || sent.part < 200 => Abandoned::Unwritten,",
        )],
    },
    Mutant {
        name: "the last handle does not wait for answers",
        file: "engine/calls.rs",
        edits: &[("        self.end();\n", "        self.driver.close();\n")],
    },
    Mutant {
        name: "a release that did not run is forgotten",
        file: "engine/nodes/pending.rs",
        edits: &[(
            "        self.defer(node, ticket, Some(fault), connections, rounds, now);\n",
            "        rounds.unrefer(ticket);\n",
        )],
    },
];
