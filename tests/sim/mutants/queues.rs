//! Faults of the queues of those that wait. A node runs the scripts as they are written out in
//! Rust: a test compares that with real servers.

use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "queue: an undo that does not store the ticket again",
        file: "embedded/queue.rs",
        edits: &[(
            "        if !ticket.is_empty() {",
            "        if ticket.len() > 100 {",
        )],
    },
    Mutant {
        name: "queue: a release that removes no entry",
        file: "embedded/queue.rs",
        edits: &[(
            "let gone = self.calls.zrem(&self.lock.queue, self.me);",
            "let gone = match is_leave { true => self.calls.zrem(&self.lock.queue, self.me), false => Ok(false) };",
        )],
    },
    Mutant {
        name: "queue: a leave that is never sent",
        file: "engine/seat.rs",
        edits: &[(
            "                nodes.update_queue(key, kind, Verb::Leave(Some(entry)), may_have, now);",
            "                let _ = (key, kind, may_have);",
        )],
    },
    Mutant {
        name: "queue: a leave tells nobody",
        file: "embedded/queue.rs",
        edits: &[(
            "        self.wake(MOST_TOLD, None);\n        let reply",
            "        if !is_leave {\n            self.wake(MOST_TOLD, None);\n        }\n        let reply",
        )],
    },
    Mutant {
        name: "queue: a message for a call that has ended is ignored",
        file: "engine/wait_registry.rs",
        edits: &[(
            "        } else {\n            Reaction::Leave\n",
            "        } else {\n            Reaction::None\n",
        )],
    },
    Mutant {
        name: "queue: a confirmed subscription asks nobody to ask",
        file: "engine/wait_registry.rs",
        edits: &[(
            "        let note = Note {\n            node,\n            message: Message::Confirmed,\n            at: now,\n        };\n        self.with_waiters(|waiter| waiter.note(note))",
            "        let _ = now;\n        Vec::new()",
        )],
    },
    Mutant {
        name: "queue: a grant where another one is first",
        file: "embedded/scripts/plain.rs",
        edits: &[("!self.is_held && rank == 0", "!self.is_held && rank < 9")],
    },
    Mutant {
        name: "queue: a grant removes its entry",
        file: "embedded/queue.rs",
        edits: &[(
            "        if answer.is_some() && !self.kind.keeps_entry() {",
            "        if answer.is_some() {",
        )],
    },
    Mutant {
        name: "queue: the first one is not told by a release",
        file: "embedded/queue.rs",
        edits: &[(
            "        self.wake(MOST_TOLD, None);\n        let reply",
            "        if is_leave {\n            self.wake(MOST_TOLD, None);\n        }\n        let reply",
        )],
    },
    Mutant {
        name: "queue: a call is told, and does not ask",
        file: "algorithm/queue/mod.rs",
        edits: &[(
            "            turns if turns >= self.setup.quorum() => self.turned.max(self.asked.after(self.pause)),\n            _ => self\n                .turned\n                .after(JITTER)\n                .max(self.asked.after(self.spacing.max(self.pause))),",
            "            _ => Timestamp::NEVER,",
        )],
    },
    Mutant {
        name: "queue: a first entry is never challenged",
        file: "algorithm/queue/round.rs",
        edits: &[(
            "(self.is_passed && now >= self.since.after(place_lease)).then_some(self.head)",
            "(self.is_passed && now < self.since.after(place_lease / 100_000)).then_some(self.head)",
        )],
    },
    Mutant {
        name: "queue: entries of ended calls pass for living ones",
        file: "engine/nodes/subscribers.rs",
        edits: &[(
            "        if self.left.is_empty() || self.registry.has_waiters() {",
            "        if !self.left.is_empty() || self.registry.has_waiters() {",
        )],
    },
    Mutant {
        name: "queue: fewer nodes than a quorum decide against a call in turn",
        file: "engine/rounds/attempt.rs",
        edits: &[(" && !self.lacks_replies(tally)", "")],
    },
    Mutant {
        name: "queue: another slot is asked for as fast as replies arrive",
        file: "algorithm/queue/mod.rs",
        edits: &[(
            "self.slot_pause = (self.slot_pause * 2).min(self.setup.place_lease);",
            "self.slot_pause = JITTER;",
        )],
    },
];
