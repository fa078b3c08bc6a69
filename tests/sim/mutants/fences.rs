//! Faults of what fences rest on. A node runs the scripts as they are written out in Rust: a test
//! compares that with real servers.
//!
//! Not in the table: a raise that is done where a downgrade has been, and leaves the entry a
//! reader's. The search in `tests/models/fences` shows that it does no harm.

use super::{Mutant, mutants};

mutants! {
    "the greatest fence, and no raise" in "algorithm/fence.rs":
        "self.settled.len() >= quorum"
            => "quorum > 0";
    "a raise that does not compare the token" in "embedded/scripts/fencing.rs":
        "    if !ours {\n        let is_held"
            => "    if !ours && !is_raise {\n        let is_held";
    "a fenced fair lock is given with the last fence once more" in "embedded/scripts/fencing.rs":
        "        acquire(&mut self.stored, calls, 8).map(Some)"
            => "        self.stored.fence -= self.stored.fence.min(1);\n        acquire(&mut self.stored, calls, 8).map(Some)";
    "read-write: a reader takes the number away" in "embedded/scripts/read_write.rs":
        "        stored.is_write = is_write;\n"
            => "        stored.is_write = is_write;\n        stored.fence *= u64::from(is_write);\n";
    "read-write: a writer without a number takes the number away"
        in "embedded/scripts/read_write.rs":
        "        stored.is_write = is_write;\n"
            => "        stored.is_write = is_write;\n        stored.fence *= u64::from(!is_write || calls.argument(retention).is_some());\n";
    "read-write: a reader keeps the number for less time" in "protocol/kinds/read_write.rs":
        "self.ends().chain([self.kept])"
            => "self.ends().chain([if self.is_write { self.kept } else { 0 }])";
    "read-write: a writer is given the last number once more" in "embedded/scripts/read_write.rs":
        "stored\n                    .fence\n                    .saturating_add(1)\n                    .max(floor"
            => "stored.fence.max(floor";
    "read-write: a raise where the writer's entry is gone" in "embedded/scripts/read_write.rs":
        "        let ReadWriteValue {\n            is_write, holds, ..\n        } = &self.stored;\n        if self.own.is_none() {\n            let may_be"
            => "        if let (None, Some(number)) = (self.own, calls.number(6).ok()) {\n            self.stored.fence = self.stored.fence.max(number);\n            self.store(calls)?;\n            return Ok(Integer(1));\n        }\n        let ReadWriteValue { is_write, holds, .. } = &self.stored;\n        if self.own.is_none() {\n            let may_be";
}
