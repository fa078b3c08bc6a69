//! What the embedded node reports about itself: `INFO`, as far as the library reads it.
//!
//! Each kind reports what the real server reports, oddities included: Valkey reports the Redis
//! version that it is compatible with as `redis_version`, and calls its mode `server_mode` where
//! Redis calls it `redis_mode`.

use std::fmt::Write;

use super::config::{Condition, ServerKind};
use super::reply;

/// What `INFO` reports that changes from node to node.
pub(super) struct Facts<'s> {
    pub(super) condition: Condition,
    pub(super) kind: ServerKind,
    pub(super) run_id: &'s str,
    /// The name of its data's history, and of the one that ended with its last promotion.
    pub(super) replication_ids: [&'s str; 2],
    pub(super) uptime_seconds: u64,
}

/// Answers `INFO` with the sections of these names, or all of them. An unknown section is an empty
/// one, as on a server.
pub(super) fn info(out: &mut Vec<u8>, sections: &[&[u8]], facts: &Facts<'_>) {
    let wanted = |name: &str| sections.is_empty() || sections.contains(&name.as_bytes());
    let mut text = String::new();
    for (name, write_section) in SECTIONS {
        if wanted(name) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            write_section(&mut text, facts);
        }
    }
    reply::bulk(out, text.as_bytes());
}

/// What a server that was never promoted reports as the former name of its data's history.
pub(super) const NO_REPLICATION_ID: &str = "0000000000000000000000000000000000000000";

/// The master that a pretended replica pretends to have: one that cannot be reached.
const MASTER_HOST: &str = "127.0.0.1";
const MASTER_PORT: u16 = 1;

type WriteSection = fn(&mut String, &Facts<'_>);

const SECTIONS: [(&str, WriteSection); 4] = [
    ("server", write_server),
    ("memory", write_memory),
    ("persistence", write_persistence),
    ("replication", write_replication),
];

fn write_server(text: &mut String, facts: &Facts<'_>) {
    text.push_str("# Server\r\n");
    text.push_str(match facts.kind {
        ServerKind::Redis => "redis_version:7.0.15\r\nredis_mode:standalone\r\n",
        ServerKind::Redis62 => "redis_version:6.2.16\r\nredis_mode:standalone\r\n",
        ServerKind::Valkey9 => {
            "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.0.0\r\nserver_mode:standalone\r\n"
        }
    });
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "run_id:{}\r\nuptime_in_seconds:{}\r\n",
        facts.run_id, facts.uptime_seconds
    );
}

fn write_memory(text: &mut String, facts: &Facts<'_>) {
    // A server that is out of memory has a limit, and this one evicts nothing.
    let limit = u8::from(facts.condition == Condition::OutOfMemory);
    let _ = write!(
        text,
        "# Memory\r\nmaxmemory:{limit}\r\nmaxmemory_policy:noeviction\r\n"
    );
}

/// It keeps nothing: no append-only file.
fn write_persistence(text: &mut String, facts: &Facts<'_>) {
    let loading = u8::from(facts.condition == Condition::Loading);
    let _ = write!(
        text,
        "# Persistence\r\nloading:{loading}\r\naof_enabled:0\r\n"
    );
}

fn write_replication(text: &mut String, facts: &Facts<'_>) {
    text.push_str("# Replication\r\n");
    if facts.condition == Condition::Replica {
        let _ = write!(
            text,
            "role:slave\r\nmaster_host:{MASTER_HOST}\r\nmaster_port:{MASTER_PORT}\r\nmaster_link_status:down\r\n"
        );
    } else {
        text.push_str("role:master\r\n");
    }
    let [current, former] = facts.replication_ids;
    // It never copies another one's data, so that its history always ends where it began.
    let end = if former == NO_REPLICATION_ID { -1 } else { 1 };
    let _ = write!(
        text,
        "connected_slaves:0\r\nmaster_replid:{current}\r\nmaster_replid2:{former}\r\nmaster_repl_offset:0\r\n\
         second_repl_offset:{end}\r\n"
    );
}
