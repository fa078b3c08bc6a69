//! What the embedded node reports about itself: `INFO`, as far as the library reads it.
//!
//! Each kind reports what the real server reports, oddities included: Valkey reports the Redis
//! version that it is compatible with as `redis_version`, and calls its mode `server_mode` where
//! Redis calls it `redis_mode`.

use super::config::{Condition, ServerKind};

/// What `INFO` reports that changes from node to node.
pub(super) struct Facts<'s> {
    pub(super) condition: Condition,
    pub(super) kind: ServerKind,
    pub(super) run_id: &'s str,
    /// The name of its data's history, and of the one that ended with its last promotion.
    pub(super) replication_ids: [&'s str; 2],
    pub(super) uptime_seconds: u64,
}

/// What `INFO` replies: the sections of these names, or all of them. An unknown section is an empty
/// one, as on a server.
pub(super) fn info(sections: &[&[u8]], facts: &Facts<'_>) -> String {
    let Facts {
        run_id,
        uptime_seconds,
        replication_ids: [current, former],
        ..
    } = facts;
    let version = match facts.kind {
        ServerKind::Redis => "redis_version:7.0.15\r\nredis_mode:standalone",
        ServerKind::Redis62 => "redis_version:6.2.16\r\nredis_mode:standalone",
        ServerKind::Valkey9 => {
            "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.0.0\r\nserver_mode:standalone"
        }
    };
    // A server that is out of memory has a limit, and this one evicts nothing.
    let limit = u8::from(facts.condition == Condition::OutOfMemory);
    let loading = u8::from(facts.condition == Condition::Loading);
    let role = match facts.condition {
        Condition::Replica => REPLICA,
        _ => "role:master",
    };
    // It never copies another one's data, so that its history always ends where it began.
    let end = if *former == NO_REPLICATION_ID { -1 } else { 1 };
    let all = [
        (
            "server",
            format!(
                "# Server\r\n{version}\r\nrun_id:{run_id}\r\nuptime_in_seconds:{uptime_seconds}\r\n"
            ),
        ),
        (
            "memory",
            format!("# Memory\r\nmaxmemory:{limit}\r\nmaxmemory_policy:noeviction\r\n"),
        ),
        (
            // It keeps nothing: no append-only file.
            "persistence",
            format!("# Persistence\r\nloading:{loading}\r\naof_enabled:0\r\n"),
        ),
        (
            "replication",
            format!(
                "# Replication\r\n{role}\r\nconnected_slaves:0\r\nmaster_replid:{current}\r\n\
                 master_replid2:{former}\r\nmaster_repl_offset:0\r\nsecond_repl_offset:{end}\r\n"
            ),
        ),
    ];
    let wanted = all
        .into_iter()
        .filter(|(name, _)| sections.is_empty() || sections.contains(&name.as_bytes()));
    wanted
        .map(|(_, text)| text)
        .collect::<Vec<_>>()
        .join("\r\n")
}

/// What a server that was never promoted reports as the former name of its data's history.
pub(super) const NO_REPLICATION_ID: &str = "0000000000000000000000000000000000000000";

/// A pretended replica pretends to have a master, one that cannot be reached.
const REPLICA: &str =
    "role:slave\r\nmaster_host:127.0.0.1\r\nmaster_port:1\r\nmaster_link_status:down";
