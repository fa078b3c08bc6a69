//! Faults in the log of commands, and in how nodes follow and leave it.

use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a command in the log is not sent before the next one",
        file: "engine/nodes/connections.rs",
        edits: &[(
            "        self.on_queued(nodes, now);",
            "        self.on_queued(nodes.without(sharing), now);",
        )],
    },
    Mutant {
        name: "a reply is counted for the next request in the log",
        file: "protocol/session/pipeline.rs",
        edits: &[(
            "let next = self.requests(log).next(&self.cursor)?;",
            "let mut cursor = self.cursor;\n        cursor.advance(self.requests(log)).filter(|_| self.follows);\n        let next = self.requests(log).next(&cursor)?;",
        )],
    },
    Mutant {
        name: "a node follows the log before it has answered",
        file: "protocol/session/following.rs",
        edits: &[(
            "self.pipeline.backlog() == Backlog::default()",
            "self.pipeline.backlog().unsent == 0",
        )],
    },
    Mutant {
        name: "what a node has not answered in the log is forgotten when it leaves",
        file: "protocol/session/requests.rs",
        edits: &[(
            "(others.place(cursor)..).copied());",
            "(others.place(cursor)..).copied().skip(1));",
        )],
    },
    Mutant {
        name: "a release is forgotten by a node that leaves the log",
        file: "protocol/session/requests.rs",
        edits: &[(
            "self.bytes.extend_from_slice(others.unsent(cursor));",
            "let is_release = others.releases > cursor.releases;\n        self.bytes.extend_from_slice(if is_release { &[] } else { others.unsent(cursor) });",
        )],
    },
    Mutant {
        name: "the log is cut too far",
        file: "protocol/session/requests.rs",
        edits: &[(
            "while self.cut_requests < cursor.answered {",
            "while self.cut_requests < cursor.answered + u64::from(self.awaited.len() > 1) {",
        )],
    },
    Mutant {
        name: "a command in the log also goes to the queues of those that follow",
        file: "engine/nodes/connections.rs",
        edits: &[(
            "for node in nodes.without(sharing).iter() {",
            "for node in nodes.iter() {",
        )],
    },
    Mutant {
        name: "the votes of a node that follows count whatever its state",
        file: "engine/nodes/dispatch.rs",
        edits: &[(
            "let counts = self.connections.follow_or_leave(node) && self.counts_as_it_is(node);",
            "let _ = self.counts_as_it_is(node);\n            let counts = self.connections.follow_or_leave(node);",
        )],
    },
];
