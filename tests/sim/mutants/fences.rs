//! Faults of what fences rest on. A node runs the scripts as they are written out in Rust: a test compares that with
//! real servers.
//!
//! Not in the table: a raise that is done where a downgrade has been, and leaves the entry a reader's. The search in
//! `tests/models/fences` shows that it does no harm.

use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the greatest fence, and no raise",
        file: "algorithm/fence.rs",
        edits: &[("self.settled.len() >= quorum", "quorum > 0")],
    },
    Mutant {
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
    Mutant {
        name: "read-write: a reader takes the number away",
        file: "embedded/read_write.rs",
        edits: &[(
            "value.is_write = asks_to_write;\n",
            "value.is_write = asks_to_write;\n            value.fence *= u64::from(asks_to_write);\n",
        )],
    },
    Mutant {
        name: "read-write: a writer without a number takes the number away",
        file: "embedded/read_write.rs",
        edits: &[(
            "value.is_write = asks_to_write;\n",
            "let is_fenced = rest.len() > 3;\n            value.is_write = asks_to_write;\n\
             \x20           value.fence *= u64::from(!asks_to_write || is_fenced);\n",
        )],
    },
    Mutant {
        name: "read-write: a reader keeps the number for less time",
        file: "embedded/read_write.rs",
        edits: &[(
            "entries.chain([self.mark, self.kept])",
            "entries.chain([self.mark, if self.is_write { self.kept } else { 0 }])",
        )],
    },
    Mutant {
        name: "read-write: a writer is given the last number once more",
        file: "embedded/read_write.rs",
        edits: &[("(value.fence + 1).max(", "value.fence.max(")],
    },
    Mutant {
        name: "read-write: a raise where the writer's entry is gone",
        file: "embedded/read_write.rs",
        edits: &[(
            "    } else if own.is_none() {\n        let may_be",
            "    } else if own.is_none() && rest.len() > 4 {\n        value.fence = value.fence.max(argument(4)?);\n\
             \x20       value.store(database, key, now);\n        return Ok(ScriptValue::Integer(1));\n\
             \x20   } else if own.is_none() {\n        let may_be",
        )],
    },
];
