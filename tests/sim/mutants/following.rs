//! Faults in the log of commands, and in how nodes follow and leave it.

use super::{Mutant, mutants};

mutants! {
    "a command in the log is not sent before the next one" in "engine/nodes/connections.rs":
        "        self.on_queued(nodes, now);"
            => "        self.on_queued(nodes.without(sharing), now);";
    "a reply is counted for the next request in the log" in "protocol/session/pipeline.rs":
        "let next = self.requests(log).next(&self.cursor)?;"
            => "let mut cursor = self.cursor;\n        if self.follows {\n            cursor.advance(false);\n        }\n        let next = self.requests(log).next(&cursor)?;";
    "a node follows the log before it has answered" in "protocol/session/following.rs":
        "self.pipeline.backlog() == Backlog::default()"
            => "self.pipeline.backlog().unsent == 0";
    "what a node has not answered in the log is forgotten when it leaves"
        in "protocol/session/requests.rs":
        "(others.place(cursor)..).copied());"
            => "(others.place(cursor)..).copied().skip(1));";
    "a release is forgotten by a node that leaves the log" in "protocol/session/requests.rs":
        "self.bytes.extend_from_slice(others.unsent(cursor));"
            => "let is_release = others.releases > cursor.releases;\n        self.bytes.extend_from_slice(if is_release { &[] } else { others.unsent(cursor) });";
    "the log is cut too far" in "protocol/session/requests.rs":
        "while self.cut_requests < cursor.answered {"
            => "while self.cut_requests < cursor.answered + u64::from(self.awaited.len() > 1) {";
    "a command in the log also goes to the queues of those that follow"
        in "engine/nodes/connections.rs":
        "for node in nodes.without(sharing).iter() {"
            => "for node in nodes.iter() {";
    "the votes of a node that follows count whatever its state" in "engine/nodes/dispatch.rs":
        "let counts = self.connections.follow_or_leave(node) && self.counts_as_it_is(node);"
            => "let _ = self.counts_as_it_is(node);\n            let counts = self.connections.follow_or_leave(node);";
}
