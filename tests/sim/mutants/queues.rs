//! Faults of the queues of those that wait. A node runs the scripts as they are written out in
//! Rust: a test compares that with real servers.

use super::{Mutant, mutants};

mutants! {
    "queue: an undo that does not store the ticket again" in "embedded/queue.rs":
        "        if !ticket.is_empty() {"
            => "        if ticket.len() > 100 {";
    "queue: a release that removes no entry" in "embedded/queue.rs":
        "let gone = self.calls.zrem(self.me);"
            => "let gone = match is_leave { true => self.calls.zrem(self.me), false => Ok(false) };";
    "queue: a leave that is never sent" in "engine/seat.rs":
        "                nodes.update_queue(key, kind, Verb::Leave(Some(entry)), may_have, now);"
            => "                let _ = (key, kind, may_have);";
    "queue: a leave tells no call" in "embedded/queue.rs":
        "        self.wake(MOST_TOLD, None);\n        let reply"
            => "        if !is_leave {\n            self.wake(MOST_TOLD, None);\n        }\n        let reply";
    "queue: a message for a call that has ended is ignored" in "engine/wait_registry.rs":
        "        } else {\n            Reaction::Leave\n"
            => "        } else {\n            Reaction::None\n";
    "queue: a confirmed subscription has no call ask" in "engine/wait_registry.rs":
        "        let note = Note {\n            node,\n            message: Message::Confirmed,\n            at: now,\n        };\n        self.with_waiters(|waiter| waiter.note(note))"
            => "        let _ = now;\n        Vec::new()";
    "queue: a grant where another one is first" in "embedded/scripts/plain.rs":
        "!self.is_held && rank == 0"
            => "!self.is_held && rank < 9";
    "queue: a grant removes its entry" in "embedded/queue.rs":
        "        if answer.is_some() && !self.kind.keeps_entry() {"
            => "        if answer.is_some() {";
    "queue: the first one is not told by a release" in "embedded/queue.rs":
        "        self.wake(MOST_TOLD, None);\n        let reply"
            => "        if is_leave {\n            self.wake(MOST_TOLD, None);\n        }\n        let reply";
    "queue: a call is told, and does not ask" in "algorithm/queue/mod.rs":
        "            turns if turns >= self.setup.quorum() => self.turned.max(self.asked.after(self.pause)),\n            _ => self\n                .turned\n                .after(JITTER)\n                .max(self.asked.after(self.spacing.max(self.pause))),"
            => "            _ => Timestamp::NEVER,";
    "queue: a first entry is never challenged" in "algorithm/queue/round.rs":
        "(self.is_passed && now >= self.since.after(place_lease)).then_some(self.head)"
            => "(self.is_passed && now < self.since.after(place_lease / 100_000)).then_some(self.head)";
    "queue: entries of ended calls pass for living ones" in "engine/nodes/subscribers.rs":
        "        if self.left.is_empty() || self.registry.has_waiters() {"
            => "        if !self.left.is_empty() || self.registry.has_waiters() {";
    "queue: fewer nodes than a quorum decide against a call in turn" in "engine/rounds/attempt.rs":
        " && !self.lacks_replies(tally)"
            => "";
    "queue: another slot is asked for as fast as replies arrive" in "algorithm/queue/mod.rs":
        "self.slot_pause = (self.slot_pause * 2).min(self.setup.place_lease);"
            => "self.slot_pause = JITTER;";
}
