//! Faults of the queues of those that wait. A node runs the scripts as they are written out in
//! Rust: a test compares that with real servers.

use super::{Mutant, mutant};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "queue: an undo that does not store the ticket again",
        "embedded/queue.rs",
        "        if !ticket.is_empty() {",
        "        if ticket.len() > 100 {",
    ),
    mutant(
        "queue: a release that removes no entry",
        "embedded/queue.rs",
        "let gone = self.calls.zrem(self.me);",
        "let gone = match is_leave { true => self.calls.zrem(self.me), false => Ok(false) };",
    ),
    mutant(
        "queue: a leave that is never sent",
        "engine/seat.rs",
        "                nodes.update_queue(key, kind, Verb::Leave(Some(entry)), may_have, now);",
        "                let _ = (key, kind, may_have);",
    ),
    mutant(
        "queue: a leave tells nobody",
        "embedded/queue.rs",
        "        self.wake(MOST_TOLD, None);\n        let reply",
        "        if !is_leave {\n            self.wake(MOST_TOLD, None);\n        }\n        let reply",
    ),
    mutant(
        "queue: a message for a call that has ended is ignored",
        "engine/wait_registry.rs",
        "        } else {\n            Reaction::Leave\n",
        "        } else {\n            Reaction::None\n",
    ),
    mutant(
        "queue: a confirmed subscription asks nobody to ask",
        "engine/wait_registry.rs",
        "        let note = Note {\n            node,\n            message: Message::Confirmed,\n            at: now,\n        };\n        self.with_waiters(|waiter| waiter.note(note))",
        "        let _ = now;\n        Vec::new()",
    ),
    mutant(
        "queue: a grant where another one is first",
        "embedded/scripts/plain.rs",
        "!self.is_held && rank == 0",
        "!self.is_held && rank < 9",
    ),
    mutant(
        "queue: a grant removes its entry",
        "embedded/queue.rs",
        "        if answer.is_some() && !self.kind.keeps_entry() {",
        "        if answer.is_some() {",
    ),
    mutant(
        "queue: the first one is not told by a release",
        "embedded/queue.rs",
        "        self.wake(MOST_TOLD, None);\n        let reply",
        "        if is_leave {\n            self.wake(MOST_TOLD, None);\n        }\n        let reply",
    ),
    mutant(
        "queue: a call is told, and does not ask",
        "algorithm/queue/mod.rs",
        "            turns if turns >= self.setup.quorum() => self.turned.max(self.asked.after(self.pause)),\n            _ => self\n                .turned\n                .after(JITTER)\n                .max(self.asked.after(self.spacing.max(self.pause))),",
        "            _ => Timestamp::NEVER,",
    ),
    mutant(
        "queue: a first entry is never challenged",
        "algorithm/queue/round.rs",
        "(self.is_passed && now >= self.since.after(place_lease)).then_some(self.head)",
        "(self.is_passed && now < self.since.after(place_lease / 100_000)).then_some(self.head)",
    ),
    mutant(
        "queue: entries of ended calls pass for living ones",
        "engine/nodes/subscribers.rs",
        "        if self.left.is_empty() || self.registry.has_waiters() {",
        "        if !self.left.is_empty() || self.registry.has_waiters() {",
    ),
    mutant(
        "queue: fewer nodes than a quorum decide against a call in turn",
        "engine/rounds/attempt.rs",
        " && !self.lacks_replies(tally)",
        "",
    ),
    mutant(
        "queue: another slot is asked for as fast as replies arrive",
        "algorithm/queue/mod.rs",
        "self.slot_pause = (self.slot_pause * 2).min(self.setup.place_lease);",
        "self.slot_pause = JITTER;",
    ),
];
