//! Faults of read-write locks. A node runs the script as it is written out in Rust: a test compares
//! that with real servers.
//!
//! Not in the table: an extension of a writer that arrives after its downgrade and makes the reader
//! a writer again. It takes a connection that is given up with the extension under way; 6000 seeds
//! do not find it. `tests/it/read_write/downgrades.rs` does, on a real server, and the proof in
//! `tests/proofs/readers_writers.smt2` has the trace.

use super::{Mutant, mutants};

mutants! {
    "read-write: a node lets a reader in beside a writer" in "embedded/scripts/read_write.rs":
        "let is_written = *is_write && !holds.is_empty();"
            => "let is_written = false && *is_write && !holds.is_empty();";
    "read-write: a node lets a writer in beside readers" in "embedded/scripts/read_write.rs":
        "return rank == 0 && holds.is_empty();"
            => "return rank == 0 && (holds.is_empty() || !*is_write);";
    "read-write: an extension sets again what has ended" in "embedded/scripts/read_write.rs":
        "        if self.own.is_none() {\n            let may_be"
            => "        if false && self.own.is_none() {\n            let may_be";
    "read-write: a downgrade leaves the writer" in "embedded/scripts/read_write.rs":
        "stored.is_write = is_write;"
            => "stored.is_write |= is_write;";
    "read-write: the release of a reader deletes the key" in "embedded/scripts/read_write.rs":
        "            lock.stored.holds.remove(own);\n"
            => "            let _ = own;\n            lock.stored.holds.clear();\n";
    "read-write: one time to live for all readers" in "embedded/scripts/read_write.rs":
        "let hold = &mut stored.holds[own];\n        hold.deadline = if keeps {\n            deadline\n        } else {\n            hold.deadline.max(deadline)\n        };"
            => "stored.holds.iter_mut().for_each(|it| it.deadline = it.deadline.max(deadline));";
    "read-write: a lease that is asked for again counts from the answer" in "api/held_lock/mod.rs":
        "self.rely_on(record.t0.lease, ttl)"
            => "self.rely_on(now, ttl)";
    "read-write: a thread asks to share a lease for longer than it may wait"
        in "api/held_lock/mod.rs":
        "            t0.after(timeout * (1 + u32::from(connects))).min(until)"
            => "            let _ = until;\n            t0.after(timeout * (1 + u32::from(connects)))";
    "read-write: a wait for the lease of another thread is not reported to end"
        in "api/lock/reading.rs":
        "        if attempts.account.has_waited {"
            => "        if false {";
}
