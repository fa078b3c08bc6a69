//! Faults in the log of commands, and in how nodes follow and leave it.

use super::{Mutant, mutant};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "a command in the log is not sent before the next one",
        "engine/nodes/connections.rs",
        "        self.on_queued(nodes, now);",
        "        self.on_queued(nodes.without(sharing), now);",
    ),
    mutant(
        "a reply is counted for the next request in the log",
        "protocol/session/pipeline.rs",
        "let next = self.requests(log).next(&self.cursor)?;",
        "let mut cursor = self.cursor;\n        if self.follows {\n            cursor.advance(false);\n        }\n        let next = self.requests(log).next(&cursor)?;",
    ),
    mutant(
        "a node follows the log before it has answered",
        "protocol/session/following.rs",
        "self.pipeline.backlog() == Backlog::default()",
        "self.pipeline.backlog().unsent == 0",
    ),
    mutant(
        "what a node has not answered in the log is forgotten when it leaves",
        "protocol/session/requests.rs",
        "(others.place(cursor)..).copied());",
        "(others.place(cursor)..).copied().skip(1));",
    ),
    mutant(
        "a release is forgotten by a node that leaves the log",
        "protocol/session/requests.rs",
        "self.bytes.extend_from_slice(others.unsent(cursor));",
        "let is_release = others.releases > cursor.releases;\n        self.bytes.extend_from_slice(if is_release { &[] } else { others.unsent(cursor) });",
    ),
    mutant(
        "the log is cut too far",
        "protocol/session/requests.rs",
        "while self.cut_requests < cursor.answered {",
        "while self.cut_requests < cursor.answered + u64::from(self.awaited.len() > 1) {",
    ),
    mutant(
        "a command in the log also goes to the queues of those that follow",
        "engine/nodes/connections.rs",
        "for node in nodes.without(sharing).iter() {",
        "for node in nodes.iter() {",
    ),
    mutant(
        "the votes of a node that follows count whatever its state",
        "engine/nodes/dispatch.rs",
        "let counts = self.connections.follow_or_leave(node) && self.counts_as_it_is(node);",
        "let _ = self.counts_as_it_is(node);\n            let counts = self.connections.follow_or_leave(node);",
    ),
];
