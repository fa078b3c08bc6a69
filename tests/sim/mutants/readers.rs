//! Faults of read-write locks. A node runs the script as it is written out in Rust: a test compares that with real
//! servers.
//!
//! Not in the table: an extension of a writer that arrives after its downgrade and makes the reader a writer again. It
//! takes a connection that is given up with the extension under way; 6000 seeds do not find it. The search in
//! `tests/models/shared` does.

use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "read-write: a node lets a reader in beside a writer",
        file: "embedded/read_write.rs",
        edits: &[("            if value.is_write && own.is_none() {\n", "            if false && value.is_write {\n")],
    },
    Mutant {
        name: "read-write: a node lets a writer in beside readers",
        file: "embedded/read_write.rs",
        edits: &[(
            "if !(value.entries.is_empty() || own.is_some() && value.is_write) {",
            "if value.is_write && own.is_none() {",
        )],
    },
    Mutant {
        name: "read-write: an extension sets again what has ended",
        file: "embedded/read_write.rs",
        edits: &[(
            "    } else if own.is_none() {\n        let may_be",
            "    } else if own.is_none() && *what == b\"release\" {\n        let may_be",
        )],
    },
    Mutant {
        name: "read-write: a downgrade leaves the writer",
        file: "embedded/read_write.rs",
        edits: &[("value.is_write = asks_to_write;", "value.is_write |= asks_to_write;")],
    },
    Mutant {
        name: "read-write: the release of a reader deletes the key",
        file: "embedded/read_write.rs",
        edits: &[(
            "=> _ = value.entries.remove(own),",
            "=> {\n            let _ = own;\n            value.entries.clear();\n        }",
        )],
    },
    Mutant {
        name: "read-write: one time to live for all readers",
        file: "embedded/read_write.rs",
        edits: &[(
            "Some(own) => value.entries[own].deadline = value.entries[own].deadline.max(deadline),",
            "Some(_) => value.entries.iter_mut().for_each(|it| it.deadline = it.deadline.max(deadline)),",
        )],
    },
    Mutant {
        name: "read-write: the mark of a writer does not lapse",
        file: "embedded/read_write.rs",
        edits: &[("value.mark.max(now + mark);", "value.mark.max(now + mark * 100);")],
    },
    Mutant {
        name: "read-write: a lease that is asked for again counts from the answer",
        file: "api/guard/shared/joining.rs",
        edits: &[("self.rely_on(record.t0.lease, ttl)", "self.rely_on(now, ttl)")],
    },
    Mutant {
        name: "read-write: a thread asks to share a lease for longer than it may wait",
        file: "api/guard/shared/joining.rs",
        edits: &[(".min(until);", ";\n        let _ = until;")],
    },
    Mutant {
        name: "read-write: a wait for the lease of another thread is not reported to end",
        file: "api/mutex/read_write/joining.rs",
        edits: &[(
            "        if self.account.has_waited() {\n            client.report()",
            "        if false {\n            client.report()",
        )],
    },
];
