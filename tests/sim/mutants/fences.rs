//! Faults of what fences rest on.

use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the greatest fence, and no raise",
        file: "algorithm/fence.rs",
        edits: &[("self.settled.len() >= quorum", "quorum > 0")],
    },
    Mutant {
        // The node runs the script as it is written out in Rust: a test compares that with real servers.
        name: "a raise that does not compare the token",
        file: "embedded/fencing.rs",
        edits: &[("b\"release\" | b\"raise\" if !is_ours", "b\"release\" if !is_ours")],
    },
    Mutant {
        name: "a fenced fair lock is given with the last fence once more",
        file: "embedded/fair_key.rs",
        edits: &[(
            "        stored.clone().unwrap_or_default().acquire(",
            "        let mut stored = stored.clone().unwrap_or_default();\n\
             \x20       stored.fence -= stored.fence.min(1);\n\
             \x20       stored.acquire(",
        )],
    },
];
