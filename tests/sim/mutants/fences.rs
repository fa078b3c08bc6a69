//! Faults of what fences rest on. A node runs the scripts as they are written out in Rust: a test
//! compares that with real servers.
//!
//! Not in the table: a raise that is done where a downgrade has been, and leaves the entry a
//! reader's. The search in `tests/models/fences` shows that it does no harm.

use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the greatest fence, and no raise",
        file: "algorithm/fence.rs",
        edits: &[("self.settled.len() >= quorum", "quorum > 0")],
    },
    Mutant {
        name: "a raise that does not compare the token",
        file: "embedded/scripts/fencing.rs",
        edits: &[(
            "    if !ours {\n        let is_held",
            "    if !ours && !is_raise {\n        let is_held",
        )],
    },
    Mutant {
        name: "a fenced fair lock is given with the last fence once more",
        file: "embedded/scripts/fencing.rs",
        edits: &[(
            "        acquire(&mut self.stored, calls, 8).map(Some)",
            "        self.stored.fence -= self.stored.fence.min(1);\n        acquire(&mut self.stored, calls, 8).map(Some)",
        )],
    },
    Mutant {
        name: "read-write: a reader takes the number away",
        file: "embedded/scripts/read_write.rs",
        edits: &[(
            "        stored.is_write = is_write;\n",
            "        stored.is_write = is_write;\n        stored.fence *= u64::from(is_write);\n",
        )],
    },
    Mutant {
        name: "read-write: a writer without a number takes the number away",
        file: "embedded/scripts/read_write.rs",
        edits: &[(
            "        stored.is_write = is_write;\n",
            "        stored.is_write = is_write;\n        stored.fence *= u64::from(!is_write || calls.argument(retention).is_some());\n",
        )],
    },
    Mutant {
        name: "read-write: a reader keeps the number for less time",
        file: "protocol/kinds/read_write.rs",
        edits: &[(
            "self.ends().chain([self.kept])",
            "self.ends().chain([if self.is_write { self.kept } else { 0 }])",
        )],
    },
    Mutant {
        name: "read-write: a writer is given the last number once more",
        file: "embedded/scripts/read_write.rs",
        edits: &[(
            "stored\n                    .fence\n                    .saturating_add(1)\n                    .max(floor",
            "stored.fence.max(floor",
        )],
    },
    Mutant {
        name: "read-write: a raise where the writer's entry is gone",
        file: "embedded/scripts/read_write.rs",
        edits: &[(
            "        let ReadWriteValue {\n            is_write, holds, ..\n        } = &self.stored;\n        if self.own.is_none() {\n            let may_be",
            "        if let (None, Some(number)) = (self.own, calls.number(6).ok()) {\n            self.stored.fence = self.stored.fence.max(number);\n            self.store(calls)?;\n            return Ok(Integer(1));\n        }\n        let ReadWriteValue { is_write, holds, .. } = &self.stored;\n        if self.own.is_none() {\n            let may_be",
        )],
    },
];
