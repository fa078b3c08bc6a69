//! What a server is: what `INFO` reports about its process, version, mode, role, memory and
//! persistence, and in cluster mode `CLUSTER INFO` about its cluster.
//!
//! A server may withhold it (an ACL without `INFO`): then everything here is unknown, and nothing
//! is assumed. What is shown of it is made of numbers, and of words that are known here: never text
//! as the server sent it.

use super::node_note::NodeLook;
use crate::algorithm::digits;
use crate::algorithm::incarnation::run_id::{ReplicationIds, RunId};
use crate::algorithm::incarnation::{Incarnation, Seen};
use crate::algorithm::quarantine::ServerProcess;
use crate::fault::detail::Detail;
use crate::fault::{Cause, Fault, Phase};
use std::time::Duration;

/// What a node has reported about itself on one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerInfo {
    run_id: Option<RunId>,
    uptime_seconds: u64,
    /// Its name and version.
    server: Option<String>,
    is_sentinel: bool,
    /// Whether it is in cluster mode.
    is_in_cluster: bool,
    /// How many shards of its cluster own slots, and how many slots are owned.
    shards: u64,
    slots: u64,
    is_master: Option<bool>,
    replication_id: Option<[u8; 40]>,
    former_replication_id: Option<[u8; 40]>,
    memory_limit: u64,
    eviction: Option<&'static str>,
    aof_enabled: Option<bool>,
    loading: bool,
    /// What it remembers of itself.
    pub look: NodeLook,
}

/// How many slots the keys of a cluster are in.
const SLOTS: u64 = 16_384;

/// The ways to evict keys that servers have. All of them may hit a lock: its key has a time to
/// live.
const EVICTIONS: [&str; 10] = [
    "allkeys-lfu",
    "allkeys-lrm",
    "allkeys-lru",
    "allkeys-random",
    "noeviction",
    "volatile-lfu",
    "volatile-lrm",
    "volatile-lru",
    "volatile-random",
    "volatile-ttl",
];

impl ServerInfo {
    /// Takes the known fields of a section of `INFO` and ignores the rest.
    pub fn learn(&mut self, section: &[u8]) {
        for line in section.split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let Some(colon) = line.iter().position(|&byte| byte == b':') else {
                continue;
            };
            let name = &line[..colon];
            let value = &line[colon + 1..];
            match name {
                b"run_id" => self.run_id = RunId::new(value),
                b"redis_version" => {
                    self.server = self.server.take().or_else(|| named("Redis", value))
                }
                // Valkey shows both.
                b"valkey_version" => {
                    self.server = named("Valkey", value).or_else(|| self.server.take())
                }
                // "standalone", "sentinel" or "cluster"; Valkey 9.1 dropped the old name.
                b"redis_mode" | b"server_mode" => {
                    // A server does not leave this mode while it runs.
                    self.is_in_cluster |= value == b"cluster";
                    self.is_sentinel = value == b"sentinel";
                }
                b"cluster_size" => self.shards = digits::number(value).unwrap_or(0),
                b"cluster_slots_assigned" => self.slots = digits::number(value).unwrap_or(0),
                b"role" => self.is_master = Some(value == b"master"),
                b"master_replid" => self.replication_id = value.try_into().ok(),
                b"master_replid2" => self.former_replication_id = value.try_into().ok(),
                b"uptime_in_seconds" => self.uptime_seconds = digits::number(value).unwrap_or(0),
                b"loading" => self.loading = value == b"1",
                b"aof_enabled" => self.aof_enabled = Some(value == b"1"),
                b"maxmemory" => self.memory_limit = digits::number(value).unwrap_or(0),
                b"maxmemory_policy" => {
                    let known = EVICTIONS
                        .into_iter()
                        .find(|known| known.as_bytes() == value);
                    self.eviction = Some(known.unwrap_or("unrecognised"))
                        .filter(|&policy| policy != "noeviction");
                }
                _ => {}
            }
        }
    }

    /// The server process's own name, unless withheld.
    pub fn run_id(&self) -> Option<RunId> {
        self.run_id
    }

    /// For how long the process has been up at least, by its own account; zero if it does not
    /// report it. Two readings of a wall clock lie behind it, each cut off to a whole second.
    pub fn uptime(&self) -> Duration {
        Duration::from_secs(self.uptime_seconds.saturating_sub(1))
    }

    /// What decides whether it must be in quarantine.
    pub fn process(&self) -> ServerProcess {
        ServerProcess {
            run_id: self.run_id,
            uptime: self.uptime(),
            replication: self.replication(),
            aof_enabled: self.aof_enabled(),
        }
    }

    /// Its name and version, as far as it tells them.
    pub fn server(&self) -> Option<String> {
        self.server.clone()
    }

    /// Whether it is a master and no replica, unless withheld.
    pub fn is_master(&self) -> Option<bool> {
        self.is_master
    }

    /// The names of its data's history, unless withheld.
    pub fn replication(&self) -> Option<ReplicationIds> {
        let current = self.replication_id?;
        let former = self.former_replication_id?;
        ReplicationIds::new(&current, &former)
    }

    /// The incarnation that it is in, unless withheld.
    pub fn incarnation(&self) -> Option<Incarnation> {
        let names = self.run_id().zip(self.replication());
        names.map(|(run_id, replication)| Incarnation {
            run_id,
            replication,
        })
    }

    /// What it remembers of itself, to a program whose wall clock shows this many microseconds.
    pub fn seen(&self, wall: u64) -> Seen {
        self.look.seen(self.incarnation(), wall)
    }

    /// By what policy it evicts keys when its memory is full, if it does (rule 7.5).
    pub fn eviction(&self) -> Option<&'static str> {
        self.eviction.filter(|_| self.memory_limit > 0)
    }

    /// Whether the server appends its writes to a file; unknown if withheld, not asked, or while
    /// the server loads its data: it switches the file off until it has read it. `INFO` does not
    /// show `appendfsync` in any version.
    pub fn aof_enabled(&self) -> Option<bool> {
        self.aof_enabled.filter(|_| !self.loading)
    }

    /// Whether it is in cluster mode.
    pub fn is_in_cluster(&self) -> bool {
        self.is_in_cluster
    }

    /// Whether it has reported that its cluster is one shard, which owns all slots: then any server
    /// of it can hold any key, as its master.
    pub fn is_in_only_shard(&self) -> bool {
        self.is_in_cluster && self.has_only_shard()
    }

    /// Whether one shard owns all slots, as `CLUSTER INFO` reports.
    pub fn has_only_shard(&self) -> bool {
        (self.shards, self.slots) == (1, SLOTS)
    }

    /// Why such a server may not vote, if it may not (rule 7.2).
    pub fn objection(&self, phase: Phase) -> Option<Fault> {
        if self.is_in_cluster && !self.is_in_only_shard() {
            let (shards, slots) = (self.shards, self.slots);
            return Some(Fault::new(phase, Cause::ClusterMode).with(Detail::Shards(shards, slots)));
        }
        let is_replica = self.is_sentinel || self.is_master == Some(false);
        is_replica.then(|| Fault::new(phase, Cause::NotMaster))
    }
}

/// A server's name with its version: major and minor version, and patch level.
fn named(name: &str, version: &[u8]) -> Option<String> {
    let mut parts = std::str::from_utf8(version).ok()?.split('.');
    let major: u32 = parts.next()?.parse().ok()?;
    let mut next = || {
        parts
            .next()
            .and_then(|part| part.parse().ok())
            .unwrap_or(0u32)
    };
    Some(format!("{name} {major}.{}.{}", next(), next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(text: &str) -> ServerInfo {
        let mut identity = ServerInfo::default();
        identity.learn(text.replace('\n', "\r\n").as_bytes());
        identity
    }

    #[test]
    fn replicas_sentinels_and_one_of_several_shards_may_not_vote() {
        const SHARD: &str = "redis_mode:cluster\ncluster_size:1\ncluster_slots_assigned:16384";
        for (text, objection) in [
            ("", None),
            ("redis_mode:standalone\nrole:master", None),
            ("server_mode:standalone", None),
            ("role:slave\nmaster_host:h", Some(Cause::NotMaster)),
            ("redis_mode:sentinel", Some(Cause::NotMaster)),
            ("redis_mode:cluster\nrole:master", Some(Cause::ClusterMode)),
            ("server_mode:cluster\nrole:master", Some(Cause::ClusterMode)),
            (SHARD, None),
            (&format!("{SHARD}\nrole:master"), None),
            (&format!("{SHARD}\nrole:slave"), Some(Cause::NotMaster)),
            (&SHARD.replace("size:1", "size:2"), Some(Cause::ClusterMode)),
            (
                &format!("{}\nrole:slave", SHARD.replace("size:1", "size:2")),
                Some(Cause::ClusterMode),
            ),
            (&SHARD.replace("16384", "16383"), Some(Cause::ClusterMode)),
            (&SHARD.replace("cluster\n", "standalone\n"), None),
        ] {
            let objection_of = learnt(text).objection(Phase::Handshake);
            assert_eq!(objection_of.map(|fault| fault.cause), objection, "{text}");
        }
    }

    #[test]
    fn a_run_id_has_forty_characters_or_is_none() {
        let name = "0123456789012345678901234567890123456789";
        let read = |text: &str| learnt(text).run_id();
        let shown = |name: &str| read(&format!("run_id:{name}")).unwrap().to_string();
        let among_others = format!("# Server\nrun_id:{name}\nx:y");
        assert_eq!(read(&among_others), RunId::new(name.as_bytes()));
        assert_eq!(read("run_id:short"), None);
        assert_eq!(read("no colon\n:\n::"), None);
        assert_eq!(shown(name), "01234567");
        let odd = format!("\u{7}<b>{}", "0".repeat(36));
        assert_eq!(shown(&odd), "??b?0000");
    }

    #[test]
    fn eviction_takes_a_policy_and_a_limit() {
        let table = [
            ("maxmemory:0\nmaxmemory_policy:allkeys-lru", None),
            (
                "maxmemory:1\nmaxmemory_policy:allkeys-lru",
                Some("allkeys-lru"),
            ),
            (
                "maxmemory_policy:volatile-ttl\nmaxmemory:18446744073709551615",
                Some("volatile-ttl"),
            ),
            ("maxmemory:100\nmaxmemory_policy:noeviction", None),
            (
                "maxmemory:100\nmaxmemory_policy:hunter2",
                Some("unrecognised"),
            ),
            ("maxmemory:-1\nmaxmemory_policy:allkeys-lru", None),
            ("maxmemory:100", None),
            ("", None),
        ];
        for (text, eviction) in table {
            assert_eq!(learnt(text).eviction(), eviction, "{text}");
        }
    }

    #[test]
    fn a_promotion_shows_in_a_new_name_with_a_former_one() {
        // As recorded from servers: a letter is an id, `0` none.
        let ids = |two: &str| {
            let [current, former] = [&two[..1], &two[1..]].map(|id| id.repeat(40));
            learnt(&format!(
                "role:master\nmaster_replid:{current}\nmaster_replid2:{former}"
            ))
            .replication()
            .unwrap()
        };
        let table = [
            ("a0", "a0", false),
            // The first replica of a master comes; the backlog of one that was promoted once is
            // freed.
            ("a0", "b0", false),
            ("ba", "c0", false),
            // Seen while it loads its data, and afterwards.
            ("a0", "ax", false),
            ("ax", "ax", false),
            // Promoted: without having heard of a master, after a synchronisation, and twice from
            // the same one.
            ("a0", "ba", true),
            ("a0", "cm", true),
            ("cm", "dm", true),
        ];
        for (earlier, now, shows) in table {
            assert_eq!(
                ids(now).show_a_promotion_since(&ids(earlier)),
                shows,
                "{earlier} {now}"
            );
        }
        assert_eq!(
            learnt("role:master\nmaster_replid:short\nmaster_replid2:x").replication(),
            None
        );
        assert_eq!(
            learnt(&format!("role:master\nmaster_replid:{}", "a".repeat(40))).replication(),
            None
        );
    }

    #[test]
    fn an_append_only_file_is_on_off_or_not_shown() {
        let table = [
            ("aof_enabled:1", Some(true)),
            ("aof_enabled:0", Some(false)),
            ("aof_enabled:?", Some(false)),
        ];
        for (text, enabled) in table.into_iter().chain([
            ("loading:0\nrdb_saves:1", None),
            ("loading:1\naof_enabled:0", None),
            ("", None),
        ]) {
            assert_eq!(learnt(text).aof_enabled(), enabled, "{text}");
        }
    }

    #[test]
    fn the_uptime_is_at_least_a_second_less_than_told() {
        for (text, seconds) in [
            ("uptime_in_seconds:100", 99),
            ("uptime_in_seconds:0", 0),
            ("uptime_in_seconds:-5", 0),
            ("", 0),
        ] {
            assert_eq!(
                learnt(text).uptime(),
                Duration::from_secs(seconds),
                "{text}"
            );
        }
    }

    #[test]
    fn a_server_is_called_what_it_calls_itself() {
        let table = [
            ("redis_version:7.0.15", Some("Redis 7.0.15")),
            (
                "redis_version:7.2.4\nvalkey_version:9.1.2",
                Some("Valkey 9.1.2"),
            ),
            ("redis_version:8.10", Some("Redis 8.10.0")),
            ("redis_version:<b>", None),
            ("", None),
        ];
        for (text, server) in table {
            assert_eq!(learnt(text).server().as_deref(), server, "{text}");
        }
        assert_eq!(learnt("role:master").is_master(), Some(true));
        assert_eq!(
            (learnt("role:slave").is_master(), learnt("").is_master()),
            (Some(false), None)
        );
    }
}
