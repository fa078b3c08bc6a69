//! Faults of what a client does about what nodes remember of themselves.

use super::{Mutant, mutants};

mutants! {
    "the age of a note is not awaited" in "algorithm/incarnation/mod.rs":
        "                left => Standing::Waits(left),"
            => "                _ => Standing::Counts,";
    "the age of a note is that by the node's clock" in "algorithm/incarnation/mod.rs":
        "        by_node.min(by_wall)"
            => "        by_node";
    "the longest time to live of others is ignored" in "algorithm/incarnation/mod.rs":
        "noted.fold(self.max_ttl, Duration::max)"
            => "noted.fold(self.max_ttl, |own, _| own)";
    "a longer time to live is not stored where another program was quicker"
        in "engine/nodes/judging.rs":
        "                Stage::Noting if is_outrun && repeats < MOST_REPEATED => {\n                    self.send_notes(connections, now)\n                }\n"
            => "";
    "a reply that no thread has read is a late one" in "engine/nodes/judging.rs":
        "&& !is_late {"
            => "&& now < self.due() {";
    "a deployment is founded by the first quorum" in "engine/nodes/judging.rs":
        "            if (!awaited.is_empty() ||"
            => "            let answered = self.seen.iter().filter(|seen| **seen != Seen::Silent).count();\n\
             \x20           let is_enough = stage == Stage::Looking && 2 * answered > connections.each.len();\n\
             \x20           if !is_enough && (!awaited.is_empty() ||";
    "a founder counts before it has stored its note" in "engine/nodes/judging.rs":
        "        self.await_answers(Stage::Noting, noting, connections, now);"
            => "        self.await_answers(Stage::Noting, if founds { NodeSet::EMPTY } else { noting }, connections, now);\n\
             \x20       for node in noting.iter().filter(|_| founds) {\n\
             \x20           let _ = connections.flush(node, now);\n\
             \x20           self.seen[node.index()] = Seen::Untold;\n\
             \x20       }";
    "a note of another process counts" in "algorithm/incarnation/mod.rs":
        "self.run_id == noted.run_id && !self"
            => "!self";
    "a note from before a promotion counts" in "algorithm/incarnation/mod.rs":
        " && !self.replication.show_a_promotion_since(&noted.replication)"
            => "";
    "a strict program founds" in "algorithm/incarnation/mod.rs":
        "self.policy != RestartPolicy::Strict"
            => "true";
    "a note is stored for an old look" in "embedded/scripts/node_note.rs":
        " || now - looked > MOMENT"
            => "";
    "a program that trusts every node notes none" in "engine/nodes/judging.rs":
        "let is_unsure = founds &&"
            => "let is_unsure = self.rules.policy == RestartPolicy::Off || founds &&";
    "a node is looked at once for each connection" in "protocol/session/looks.rs":
        "now.since(self.checked_at) > RECHECK_AFTER && !self.are_behind_votes;"
            => "false;";
    "a strict program looks once a second" in "protocol/session/looks.rs":
        " > RECHECK_AFTER && !self.are_behind_votes;"
            => " > RECHECK_AFTER;",
        "if self.are_behind_votes\n            && (peer"
            => "if false && (peer";
    "a note is written whatever the node has" in "embedded/scripts/node_note.rs":
        "if !is_as_read || now < looked"
            => "if now < looked";
}
