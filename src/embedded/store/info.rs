//! What the embedded node reports about itself: `INFO`, as far as the library reads it.
//!
//! Each kind reports what the real server reports, oddities included: Valkey reports the Redis
//! version that it is compatible with as `redis_version`, and calls its mode `server_mode` where
//! Redis calls it `redis_mode`.

use super::{Millis, Store};
use crate::embedded::config::{Condition, ServerKind};

impl Store {
    /// What `INFO` replies: the sections of these names, or all of them. An unknown section is an
    /// empty one, as on a server.
    pub(super) fn info(&self, sections: &[&[u8]], now: Millis) -> String {
        let run_id = &self.run_id;
        let uptime = now.saturating_sub(self.started) / 1000;
        let [current, former] = self.replication_ids();
        let version = match self.kind {
            ServerKind::Redis => "redis_version:7.0.15\r\nredis_mode:standalone",
            ServerKind::Redis62 => "redis_version:6.2.16\r\nredis_mode:standalone",
            ServerKind::Valkey9 => {
                "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.0.0\r\nserver_mode:standalone"
            }
        };
        // A server that is out of memory has a limit, and this one evicts nothing.
        let limit = u8::from(self.condition == Condition::OutOfMemory);
        let loading = u8::from(self.condition == Condition::Loading);
        let role = match self.condition {
            // It pretends to have a master, one that cannot be reached.
            Condition::Replica => {
                "role:slave\r\nmaster_host:127.0.0.1\r\nmaster_port:1\r\nmaster_link_status:down"
            }
            _ => "role:master",
        };
        // It never copies another one's data, so that its history always ends where it began.
        let end = if former == NO_REPLICATION_ID { -1 } else { 1 };
        let all = [
            (
                "server",
                format!(
                    "# Server\r\n{version}\r\nrun_id:{run_id}\r\nuptime_in_seconds:{uptime}\r\n"
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

    /// The present name of its data's history, and the former one: another pair with each
    /// promotion.
    fn replication_ids(&self) -> [String; 2] {
        let name = |promotions: u32| {
            format!(
                "{promotions:08x}{}",
                self.run_id.get(8..).unwrap_or_default()
            )
        };
        let former = self
            .promotions
            .checked_sub(1)
            .map_or(NO_REPLICATION_ID.to_owned(), name);
        [name(self.promotions), former]
    }
}

/// What a server that was never promoted reports as the former name of its data's history.
const NO_REPLICATION_ID: &str = "0000000000000000000000000000000000000000";
