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
    pub(crate) edits: &'static [Edit],
}

/// What is replaced, by what.
type Edit = (&'static str, &'static str);

/// A table of faults: in a file, each old text is replaced by the new one.
macro_rules! mutants {
    ($($name:literal in $file:literal: $($old:literal => $new:literal),+;)*) => {
        pub(super) const MUTANTS: &[Mutant] = &[$(Mutant {
            name: $name,
            file: $file,
            edits: &[$(($old, $new)),+],
        }),*];
    };
}
use mutants;

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

mutants! {
    "quorum off by one" in "algorithm/vote/mod.rs":
        "self.nodes() / 2 + 1"
            => "(self.nodes() / 2).max(1)";
    "no undo" in "api/lock/attempts.rs":
        "self.call.undo(record, reached, departure);"
            => "let _ = (record, reached, departure);";
    "undo before the SET" in "api/lock/attempts.rs":
        "self.call.undo(record, reached, departure);"
            => "let _ = (record, reached, departure);",
        "        let asked = engine.acquire(request,"
            => "        engine.undo(self.call.key(), engine.adopt(request.token.clone(), kind), self.call.ttl.duration());\n        let asked = engine.acquire(request,";
    "undo only where it was granted" in "algorithm/acquire/mod.rs":
        "let undo = reached.without(tally.untouched());"
            => "let undo = tally.granted();\n        let _ = reached;";
    "a set is not undone where a node has refused" in "algorithm/acquire/mod.rs":
        "let undo = reached.without(tally.untouched());"
            => "let undo = reached.without(tally.refused());";
    "a set goes by its last key" in "protocol/session/mod.rs":
        "if sent.part > 0 {"
            => "if sent.part > 200 {";
    "validity from the decision" in "algorithm/acquire/mod.rs":
        "let lease = self.config.ttl.lease_from(t0.lease);"
            => "let lease = self.config.ttl.lease_from(now.lease);";
    "a quorum too late still wins" in "algorithm/acquire/mod.rs":
        "Outcome::Won if lease.is_valid(now.lease) =>"
            => "Outcome::Won if lease.is_valid(t0.lease) =>";
    "drift ignored" in "algorithm/lease.rs":
        "match whole.saturating_sub(drift) {"
            => "match whole.saturating_sub(drift).max(whole) {";
    "token reused in a retry" in "api/lock/attempts.rs":
        "let token = entropy::draw(&mut SysRng)\n            .map_err(|_| Error::entropy())?\n            .labelled"
            => "let draw = || entropy::draw(&mut SysRng).map_err(|_| Error::entropy());\n        let token = self.last.as_ref().map_or_else(draw, |(record, _)| Ok(record.token.clone()))?.labelled";
    "stale vote counted" in "engine/rounds/mod.rs":
        "(round.generation == ticket.generation).then_some(round)\n    }\n\n    /// More"
            => "(round.references > 0).then_some(round)\n    }\n\n    /// More",
        "(round.generation == ticket.generation).then_some(round)\n}"
            => "(round.references > 0).then_some(round)\n}",
        "round.references += nodes.len() as u32;"
            => "round.references += 0;",
        "round.references -= 1;"
            => "if round.generation != ticket.generation {\n            return;\n        }\n        round.references -= 1;";
    "late reply shifted by one" in "protocol/session/mod.rs":
        "        self.pipeline\n            .own\n            .ask(now, |out| Request::write(command, form, out));\n"
            => "        let is_late = self.pipeline.backlog().is_overdue(Duration::from_millis(50), now);\n        if is_late && command.operation.acquires() && command.operation.kind.fence().is_none() {\n            self.pipeline.pop(false);\n        }\n        self.pipeline.own.ask(now, |out| Request::write(command, form, out));\n";
    "a quorum of answers without a quorum of deletions is a loss" in "algorithm/vote/mod.rs":
        "} else if may_hold < self.quorum() {"
            => "} else if self.voted().len() - self.faulted.len() >= self.quorum()\n            && self.granted.len() + undecided < self.quorum()\n        {";
    "a timeout counts as a refusal" in "engine/nodes/reactor.rs":
        "                let fault = self.connections.apart(node).fault_at_deadline(now);\n                self.rounds.vote(ticket, node, &Vote::Fault(fault));"
            => "                let _ = self.connections[node].fault_at_deadline(now);\n                self.rounds.vote(ticket, node, &Vote::Refused);";
    "an error reply counts as a refusal" in "protocol/kinds/plain.rs":
        "Reply::Error(text) => Ok(Vote::Fault(ErrorReply::read(text).fault(\"SET\"))),\n        _ => Err(ProtocolError::UnexpectedReply),\n    }\n}\n\n/// Lets the key"
            => "Reply::Error(_) => Ok(Vote::Refused),\n        _ => Err(ProtocolError::UnexpectedReply),\n    }\n}\n\n/// Lets the key";
    "what a lost connection owes is forgotten" in "engine/nodes/mod.rs":
        "Abandoned::Release => self.defer_abandoned(node, ticket, fault, is_asked_anew, now),"
            => "Abandoned::Release => self.rounds.count(ticket, node, &Vote::Fault(fault)),";
    "no release for a node that is away" in "engine/nodes/requests.rs":
        "            if may_hold {\n                self.rounds"
            => "            if false && may_hold {\n                self.rounds";
    "what was written is forgotten on reconnect" in "engine/node_connection/mod.rs":
        "        self.pending.reconnected();\n"
            => "        self.wrote_at = None;\n        self.pending.reconnected();\n";
    "a plain release by an unknown hash is not asked again when a quorum has decided"
        in "engine/nodes/dispatch.rs":
        "Some(command) if !command.operation.acquires() || !self.rounds.is_decided(ticket) =>"
            => "Some(command) if command.operation.kind.fence().is_some() && !command.operation.acquires() || !self.rounds.is_decided(ticket) =>";
    "a fenced release by an unknown hash is not asked again when a quorum has decided"
        in "engine/nodes/dispatch.rs":
        "Some(command) if !command.operation.acquires() || !self.rounds.is_decided(ticket) =>"
            => "Some(command) if command.operation.kind.fence().is_none() && !command.operation.acquires() || !self.rounds.is_decided(ticket) =>";
    "failed extension releases" in "api/held_lock/mod.rs":
        "            ExtendResult::Failed(found) => {\n                report."
            => "            ExtendResult::Failed(found) => {\n                self.post_release();\n                report.";
    "extended after the end, by hand" in "api/held_lock/mod.rs":
        "if count.is_extended() && old.is_valid(now) {"
            => "if count.is_extended() {";
    "extended after the end, by the watchdog" in "algorithm/renewal/mod.rs":
        "self.leases\n            .get_mut(&id)\n            .filter(|present| present.validity.is_valid(now))"
            => "let _ = now;\n        self.leases.get_mut(&id)",
        "&& end <= now\n        {\n            ended.push"
            => "&& end.after(Duration::from_secs(1)) <= now\n        {\n            ended.push",
        "if lease.validity.is_valid(now) && lease.config.until"
            => "if lease.config.until";
    "repair after expiry" in "api/held_lock/mod.rs":
        "        let now = engine.lease_now();\n        if count.is_extended() && old"
            => "        let now = engine.lease_now();\n        if count.is_extended() && !old.is_valid(now) {\n            let repaired = engine.repair(&order, count.tally.absent());\n            self.may_reach(repaired);\n        }\n        if count.is_extended() && old";
    "an extension counts from its answer" in "api/held_lock/mod.rs":
        "return if self.rely_on(start, ttl)"
            => "return if self.rely_on(now, ttl)";
    "a renewal counts from its answer" in "engine/watchdog_thread/mod.rs":
        "let lease = ttl.lease_from(start);\n        let now = self.engine.lease_now();\n        let mut"
            => "let now = self.engine.lease_now();\n        let lease = ttl.lease_from(now);\n        let mut";
    "a renewal overtakes an extension by hand" in "engine/watchdog_thread/mod.rs":
        "if held.by_hand.is_awaited() {"
            => "if false {";
    "a renewal adds up the grants of two rounds" in "engine/watchdog_thread/mod.rs":
        "    renewals: Renewals,\n"
            => "    renewals: Renewals,\n    granted: HashMap<LeaseId, NodeSet>,\n",
        "        if count.is_extended() {\n"
            => "        let granted = schedule.granted.entry(watched.id).or_default();\n        *granted = granted.union(count.tally.granted());\n        let is_extended = granted.len() >= count.tally.quorum();\n        if is_extended {\n            *granted = NodeSet::EMPTY;\n";
    "watchdog after unlock" in "engine/watchdog_thread/mod.rs":
        "        lock(&self.shared.schedule).remove(watched.id);\n        let mut held"
            => "        let mut held",
        "let mut held = lock(&watched.held);\n        held.is_over = true;\n        Unregistered"
            => "let held = lock(&watched.held);\n        Unregistered";
    "repair after the release" in "engine/watchdog_thread/mod.rs":
        "        if held.is_over {\n            return NodeSet::EMPTY;\n        }\n"
            => "",
        "            counted?;\n"
            => "            let _ = counted;\n";
    "a clock that stops in sleep" in "os/clock.rs":
        "        ahead(steady, wall).abs_diff"
            => "        false && ahead(steady, wall).abs_diff";
    "a loss is reported twice to an observer" in "engine/watchdog_thread/watched.rs":
        "let loss_reported = std::mem::replace(&mut held.loss_reported, true);"
            => "let loss_reported = false;";
    "the outcome of a dropped guard is not reported" in "api/held_lock/release.rs":
        "hold_ended(key.title(), was_valid, loss_reported, held);"
            => "hold_ended(key.title(), was_valid, loss_reported, held).filter(|_| was_valid);";
    "a queue timeout that reports nothing" in "api/lock/account.rs":
        "        let error = result.as_ref().err();\n"
            => "        if self.attempts == 0 && matches!(result, Ok(None)) {\n            return;\n        }\n        let error = result.as_ref().err();\n";
    "a wait that is reported again after each attempt" in "api/lock/account.rs":
        "std::mem::replace(&mut self.has_waited, true)"
            => "std::mem::replace(&mut self.has_waited, self.attempts > 0)";
    "a background release that is not counted" in "events/event_queue.rs":
        "            class.released(outcome, is_dropped);\n"
            => "            if !is_dropped {\n                class.released(outcome, is_dropped);\n            }\n";
    "a cancelled call that reports nothing" in "api/lock/account.rs":
        "        let error = result.as_ref().err();\n"
            => "        let error = result.as_ref().err();\n        if error.is_some_and(|error| error.kind() == ErrorKind::Cancelled) {\n            return;\n        }\n";
    "keys that live ten times as long" in "protocol/kinds/plain.rs":
        "resp::push(out, resp::decimal(ttl_millis, &mut [0; 20]));"
            => "resp::push(out, resp::decimal(ttl_millis * 10, &mut [0; 20]));";
    "attempts without a time limit" in "algorithm/acquire/mod.rs":
        "let answer = start.after(budget.min(self.config.ttl.validity()))"
            => "let answer = start.after((budget * 100).min(self.config.ttl.validity()))";
    "waits end by the lease clock" in "engine/calls.rs":
        "/// The network of one client.\npub(crate) struct Engine {"
            => "struct ByLeaseClock(Arc<dyn Clock>);\n\nimpl Clock for ByLeaseClock {\n    fn now(&self) -> Timestamp {\n        Timestamp::from_nanos(self.0.lease_now().as_nanos())\n    }\n\n    fn lease_now(&self) -> LeaseTime {\n        self.0.lease_now()\n    }\n}\n\n/// The network of one client.\npub(crate) struct Engine {",
        "        let waker = Arc::new(Waker::new()?);\n"
            => "        let clock: Arc<dyn Clock> = Arc::new(ByLeaseClock(clock));\n        let waker = Arc::new(Waker::new()?);\n";
    "what is left unsent is not polled for" in "engine/socket_state.rs":
        "SocketState::Open(transport) => transport.wants_write(has_unsent),"
            => "SocketState::Open(_) => has_unsent && !has_unsent,";
    "one thread delivers the events of all" in "events/event_queue.rs":
        "for _ in 0..most {"
            => "loop {";
    "a node is never asked again" in "algorithm/health.rs":
        "Some(fault) if now < self.not_before => Err(fault),"
            => "Some(fault) if self.failures > 3 || now < self.not_before => Err(fault),";
    "rounds leak when a connection is lost" in "engine/nodes/mod.rs":
        "self.rounds.count(ticket, node, &Vote::Fault(fault));"
            => "self.rounds.vote(ticket, node, &Vote::Fault(fault));";
    "no thread sends what is left" in "engine/driver/helper.rs":
        "if !is_last\n            || state.is_closing\n            ||"
            => "if is_last || !is_last || state.is_closing ||";
    "no thread looks for the answers to releases" in "engine/node_connection/interest.rs":
        "self.session.incoming.read_at.after(UNREAD_LIMIT)"
            => "Timestamp::NEVER.max(now.after(UNREAD_LIMIT))";
    "what may have been written is written again" in "protocol/sent_operation.rs":
        "_ if !is_written => Abandoned::Unwritten,"
            => "_ if !is_written || sent.part < 200 => Abandoned::Unwritten,";
    "the last handle does not wait for answers" in "engine/calls.rs":
        "        self.end();\n"
            => "        self.driver.close();\n";
    "a release that did not run is forgotten" in "engine/nodes/pending.rs":
        "        self.defer(node, ticket, Some(fault), connections, rounds, now);\n"
            => "        rounds.unrefer(ticket);\n";
}
