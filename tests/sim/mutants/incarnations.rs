//! Faults of what a client does about what nodes remember of themselves.

use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the age of a note is not awaited",
        file: "algorithm/incarnation/mod.rs",
        edits: &[(
            "                left => Standing::Waits(left),",
            "                _ => Standing::Counts,",
        )],
    },
    Mutant {
        name: "the age of a note is that by the node's clock",
        file: "algorithm/incarnation/mod.rs",
        edits: &[("        by_node.min(by_wall)", "        by_node")],
    },
    Mutant {
        name: "the longest time to live of others is ignored",
        file: "algorithm/incarnation/mod.rs",
        edits: &[(
            "noted.fold(self.max_ttl, Duration::max)",
            "noted.fold(self.max_ttl, |own, _| own)",
        )],
    },
    Mutant {
        name: "a longer time to live is not stored where another program was quicker",
        file: "engine/nodes/judging.rs",
        edits: &[(
            "                Stage::Noting if is_outrun && repeats < MOST_REPEATED => {\n                    self.send_notes(connections, now)\n                }\n",
            "",
        )],
    },
    Mutant {
        name: "a reply that no thread has read is a late one",
        file: "engine/nodes/judging.rs",
        edits: &[("&& !is_late {", "&& now < self.due() {")],
    },
    Mutant {
        name: "a deployment is founded by the first quorum",
        file: "engine/nodes/judging.rs",
        edits: &[(
            "            if (!awaited.is_empty() ||",
            "            let answered = self.seen.iter().filter(|seen| **seen != Seen::Silent).count();\n\
             \x20           let is_enough = stage == Stage::Looking && 2 * answered > connections.each.len();\n\
             \x20           if !is_enough && (!awaited.is_empty() ||",
        )],
    },
    Mutant {
        name: "a founder counts before it has stored its note",
        file: "engine/nodes/judging.rs",
        edits: &[(
            "        self.await_answers(Stage::Noting, noting, connections, now);",
            "        self.await_answers(Stage::Noting, if founds { NodeSet::EMPTY } else { noting }, connections, now);\n\
             \x20       for node in noting.iter().filter(|_| founds) {\n\
             \x20           let _ = connections.flush(node, now);\n\
             \x20           self.seen[node.index()] = Seen::Untold;\n\
             \x20       }",
        )],
    },
    Mutant {
        name: "a note of another process counts",
        file: "algorithm/incarnation/mod.rs",
        edits: &[("self.run_id == noted.run_id && !self", "!self")],
    },
    Mutant {
        name: "a note from before a promotion counts",
        file: "algorithm/incarnation/mod.rs",
        edits: &[(
            " && !self.replication.show_a_promotion_since(&noted.replication)",
            "",
        )],
    },
    Mutant {
        name: "a strict program founds",
        file: "algorithm/incarnation/mod.rs",
        edits: &[("self.policy != RestartPolicy::Strict", "true")],
    },
    Mutant {
        name: "a note is stored for an old look",
        file: "embedded/scripts/node_note.rs",
        edits: &[(" || now - looked > MOMENT", "")],
    },
    Mutant {
        name: "a program that trusts every node notes none",
        file: "engine/nodes/judging.rs",
        edits: &[(
            "let is_unsure = founds &&",
            "let is_unsure = self.rules.policy == RestartPolicy::Off || founds &&",
        )],
    },
    Mutant {
        name: "a node is looked at once for each connection",
        file: "protocol/session/looks.rs",
        edits: &[(
            "now.since(self.checked_at) > RECHECK_AFTER && !self.are_behind_votes;",
            "false;",
        )],
    },
    Mutant {
        name: "a strict program looks once a second",
        file: "protocol/session/looks.rs",
        edits: &[
            (
                " > RECHECK_AFTER && !self.are_behind_votes;",
                " > RECHECK_AFTER;",
            ),
            (
                "if self.are_behind_votes\n            && (peer",
                "if false && (peer",
            ),
        ],
    },
    Mutant {
        name: "a note is written whatever the node has",
        file: "embedded/scripts/node_note.rs",
        edits: &[("if !is_as_read || now < looked", "if now < looked")],
    },
];
