//! What a server reports about itself, and what of it endangers locks.

use super::findings::Findings;
use super::findings::Level::{Fault, Note, Warning};
use super::plan::{Plan, user};
use crate::connection::{Connection, Trouble, Value};
use quorumlock::RestartPolicy;
use quorumlock::algorithm::time::Human;
use quorumlock::protocol::endpoint::Endpoint;
use quorumlock::protocol::error_reply::Subject;
use std::collections::BTreeMap;
use std::time::Duration;

/// Settings that `INFO` does not show.
const SETTINGS: [&str; 5] = [
    "appendfsync",
    "no-appendfsync-on-rewrite",
    "save",
    "stop-writes-on-bgsave-error",
    "min-replicas-to-write",
];
/// Fields of `INFO` that the guarantee depends on.
const NEEDED: [&str; 2] = ["run_id", "maxmemory_policy"];
/// How many seconds ago a replica may have confirmed what it has received. It does so each second.
const LONGEST_LAG: u64 = 2;

/// What to do about replicas.
const DETACH: &str = "do not promote them, or detach them";

/// What a server has reported.
#[derive(Default)]
pub(super) struct Server {
    info: BTreeMap<String, String>,
    /// Why it has no `INFO`, and what to do.
    no_info: Option<[String; 2]>,
    /// None of what it does not show.
    settings: BTreeMap<String, String>,
    /// The same for its settings.
    no_settings: Option<[String; 2]>,
    /// Whether it does not show its cluster.
    hides_cluster: bool,
}

/// Why a server does not reply to a command that no lock needs, in words, and what to do.
fn withheld(reply: &Value, command: &str, user: &str) -> Option<[String; 2]> {
    let Value::Error(refusal) = reply else {
        return None;
    };
    match refusal.subject {
        Subject::Denied(_) => Some([
            format!("the user may not run {command}"),
            format!("ACL SETUSER {user} +{}", command.to_lowercase()),
        ]),
        Subject::UnknownCommand => Some([
            format!("the server does not know {command}"),
            "name the command as it was".to_owned(),
        ]),
        _ => None,
    }
}

impl Server {
    /// Asks the server for it, as this user.
    pub(super) fn read(connection: &mut Connection, user: &str) -> Result<Server, Trouble> {
        let mut server = Server::default();
        let reply = connection.ask(&[b"INFO"])?;
        server.no_info = withheld(&reply, "INFO", user);
        if server.no_info.is_none() {
            let text = reply.accepted("INFO")?.text().unwrap_or_default();
            server.info = parse_info(&text);
        }
        for name in SETTINGS {
            let reply = connection.ask(&[b"CONFIG", b"GET", name.as_bytes()])?;
            server.no_settings = server.no_settings.or(withheld(&reply, "CONFIG", user));
            let pair = reply.array().unwrap_or_default();
            if let Some(value) = pair.get(1).and_then(Value::text) {
                server.settings.insert(name.to_owned(), value);
            }
        }
        if server.is_cluster() {
            let reply = connection.ask(&[b"CLUSTER", b"INFO"])?.text();
            server.hides_cluster = reply.is_none();
            server.info.extend(parse_info(&reply.unwrap_or_default()));
        }
        Ok(server)
    }

    /// A field of `INFO`; empty if it is not shown. Inlined, it would make the program larger.
    #[inline(never)]
    fn field(&self, name: &str) -> &str {
        self.info.get(name).map_or("", String::as_str)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.field(name).parse().ok()
    }

    #[inline(never)]
    fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    fn is_cluster(&self) -> bool {
        self.field("cluster_enabled") == "1"
            || [self.field("redis_mode"), self.field("server_mode")].contains(&"cluster")
    }

    pub(super) fn has_replicas(&self) -> bool {
        self.number("connected_slaves")
            .is_some_and(|replicas| replicas > 0)
    }

    /// The setting by which it writes its append-only file later than before each reply.
    pub(super) fn late_fsync(&self) -> Option<String> {
        let setting = |name| Some(format!("{name} {}", self.setting(name)?));
        let late = [
            ("appendfsync", "always"),
            ("no-appendfsync-on-rewrite", "no"),
        ];
        late.into_iter()
            .find(|(name, sound)| self.setting(name).is_some_and(|value| value != *sound))
            .and_then(|(name, _)| setting(name))
    }

    pub(super) fn run_id(&self) -> Option<&String> {
        self.info.get("run_id")
    }

    /// Whether it writes nothing to disk.
    pub(super) fn is_volatile(&self) -> bool {
        self.setting("save") == Some("") && self.field("aof_enabled") == "0"
    }

    /// Whether it does not show its run id, or whether it evicts.
    pub(super) fn is_withheld(&self) -> bool {
        NEEDED.iter().any(|name| self.field(name).is_empty())
    }

    /// Facts for the reader: names and values. None where the server has no `INFO`.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        if self.info.is_empty() {
            return Vec::new();
        }
        let version = match self.info.get("valkey_version") {
            Some(version) => format!("Valkey {version}"),
            None => format!("Redis {}", self.field("redis_version")),
        };
        let uptime = Duration::from_secs(self.number("uptime_in_seconds").unwrap_or_default());
        let persistence = if self.field("aof_enabled") == "1" {
            let fsync = self.setting("appendfsync").unwrap_or("unknown");
            format!("appends to disk, fsync {fsync}")
        } else {
            "appends nothing to disk".to_owned()
        };
        vec![
            ("server", version),
            ("role", self.field("role").to_owned()),
            ("run_id", self.field("run_id").chars().take(8).collect()),
            ("uptime", Human(uptime).to_string()),
            ("persistence", persistence),
        ]
    }

    /// What endangers locks, and what cannot be verified.
    pub(super) fn examine(&self, endpoint: &Endpoint, plan: &Plan<'_>, found: &mut Findings) {
        let user = user(endpoint);
        if let Some([why, remedy]) = &self.no_info {
            let what = format!(
                "{why}: version, role, persistence, restarts, replicas, eviction and two URLs of one server are not \
                 seen"
            );
            found.add(Warning, "no-info", what, remedy);
        }
        // No lock needs the settings, and services withhold them.
        if let Some([why, _]) = &self.no_settings {
            let what = "appendfsync, save points and min-replicas-to-write are not seen";
            found.add(Note, "no-config", format!("{why}: {what}"), "");
        }
        if self.field("role") == "slave" {
            found.add(Fault, "replica", "it is a replica", "name a master");
        } else if self.field("loading") == "1" {
            found.add(Fault, "loading", "it loads its data", "wait");
        }
        let is_durable = plan.is_durable(endpoint);
        if self.is_cluster() {
            self.examine_cluster(user, is_durable, found);
        }
        let policy = self.field("maxmemory_policy");
        if self.number("maxmemory").is_some_and(|limit| limit > 0) && policy != "noeviction" {
            let what = format!(
                "it may evict the key of a held lock ({policy}) when its memory is full, and vote for another client"
            );
            let remedy = "CONFIG SET maxmemory-policy noeviction";
            found.add(Warning, "eviction", what, remedy);
        }
        if self.setting("stop-writes-on-bgsave-error") == Some("yes") {
            if let Some(points) = self.setting("save").filter(|points| !points.is_empty()) {
                let what = format!("it saves ({points}), and refuses locks when a save has failed");
                let remedy = "CONFIG SET save \"\", or stop-writes-on-bgsave-error no";
                found.add(Warning, "save-points", what, remedy);
            }
            if self.field("rdb_last_bgsave_status") == "err" {
                found.add(
                    Warning,
                    "save-failed",
                    "its last save failed",
                    "check its disk",
                );
            }
        }
        self.examine_replicas(is_durable, plan.settings.restart_policy, found);
        if is_durable {
            self.examine_durability(found);
        }
    }

    fn examine_cluster(&self, user: &str, is_durable: bool, found: &mut Findings) {
        let has_all_slots = self.number("cluster_slots_assigned") == Some(16_384);
        let (what, remedy) = match self.number("cluster_size").unwrap_or(0) {
            _ if self.hides_cluster => (
                "it is a member of a cluster, and does not show its shards".to_owned(),
                format!("ACL SETUSER {user} +cluster|info"),
            ),
            1 if has_all_slots => {
                let what = if is_durable {
                    "it runs in cluster mode, with one shard; it is declared durable, so a fail-over must lose nothing"
                } else {
                    "it runs in cluster mode, with one shard: a fail-over to a replica may lose locks"
                };
                return found.add(Note, "cluster", what, "");
            }
            count if has_all_slots => (
                format!(
                    "its cluster has {count} shards: one of them has a key, so they are no independent masters"
                ),
                "name nodes of which each is a cluster with one shard, or no cluster".to_owned(),
            ),
            _ => (
                "its cluster does not serve all slots".to_owned(),
                "let one shard serve them, or name an independent master".to_owned(),
            ),
        };
        found.add(Fault, "cluster", what, remedy);
    }

    /// What its replicas mean, and whether it refuses writes for want of them. It does not wait for
    /// them in any case.
    fn examine_replicas(&self, is_durable: bool, policy: RestartPolicy, found: &mut Findings) {
        if self.has_replicas() {
            let (vote, remedy) = match policy {
                _ if is_durable => (
                    "votes at once, as declared durable",
                    "declare it durable only if a fail-over loses nothing",
                ),
                RestartPolicy::Off => ("votes at once, by restart policy off", DETACH),
                _ => ("does not vote for max_ttl", DETACH),
            };
            let what = format!(
                "it has replicas ({}{}): one that is promoted lacks the locks that it has not received, and {vote}",
                self.field("connected_slaves"),
                self.lag()
            );
            found.add(Warning, "replicas", what, remedy);
        }
        // Shown where the setting is on.
        let Some(present) = self.number("min_slaves_good_slaves") else {
            return;
        };
        let needed = self.setting("min-replicas-to-write");
        let needed: u64 = needed.and_then(|count| count.parse().ok()).unwrap_or(1);
        let (level, what) = if present < needed {
            let what = format!(
                "it refuses locks: {present} of {needed} replicas are in time (min-replicas-to-write)"
            );
            (Fault, what)
        } else {
            let what = format!(
                "it refuses locks while fewer than {needed} replicas are in time (min-replicas-to-write), and waits \
                 for none"
            );
            (Warning, what)
        };
        found.add(
            level,
            "min-replicas",
            what,
            "CONFIG SET min-replicas-to-write 0",
        );
    }

    fn examine_durability(&self, found: &mut Findings) {
        let what = match (self.field("aof_enabled"), self.late_fsync()) {
            ("0", _) => {
                "it is declared durable, and appends nothing to disk: the declaration is ignored"
                    .to_owned()
            }
            (_, Some(setting)) => format!(
                "it is declared durable, and does not write each change to disk ({setting}): it votes at once after a \
                 crash"
            ),
            ("1", None) if self.setting("appendfsync").is_some() => return,
            _ => {
                let what = "it is declared durable, and does not show whether it keeps each change";
                return found.add(Note, "durability", what, "");
            }
        };
        let remedy = "appendonly yes and appendfsync always, or do not declare it durable";
        found.add(Warning, "not-durable", what, remedy);
    }

    /// How many replicas lag, and how far.
    fn lag(&self) -> String {
        let offset = self.number("master_repl_offset").unwrap_or_default();
        let (mut unsynchronised, mut silent, mut seconds, mut bytes) = (0, 0, 0, 0);
        for (name, line) in &self.info {
            let index = name.strip_prefix("slave");
            if index.is_none_or(|index| index.parse::<u32>().is_err()) {
                continue;
            }
            let field = |name| line.split(',').find_map(|field| field.strip_prefix(name));
            let number = |name| {
                field(name)
                    .and_then(|value| value.parse().ok())
                    .unwrap_or(0_u64)
            };
            let lag = number("lag=");
            if field("state=") != Some("online") {
                unsynchronised += 1;
            } else if lag > LONGEST_LAG {
                silent += 1;
                seconds = lag.max(seconds);
                bytes = offset.saturating_sub(number("offset=")).max(bytes);
            }
        }
        let mut text = String::new();
        if unsynchronised > 0 {
            text += &format!(", {unsynchronised} not in sync");
        }
        if silent > 0 {
            text += &format!(", {silent} silent for up to {seconds} s and {bytes} bytes behind");
        }
        text
    }
}

fn parse_info(text: &str) -> BTreeMap<String, String> {
    let mut info = BTreeMap::new();
    // Collected, they would be sorted first, which makes the program larger.
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let value = value.chars().filter(|letter| !letter.is_control());
        info.insert(name.to_owned(), value.collect());
    }
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_that_do_not_confirm_lag_and_no_count_is_trusted() {
        let lag = |lines: &str| {
            let info = parse_info(&format!("connected_slaves:18446744073709551615\n{lines}"));
            Server {
                info,
                ..Server::default()
            }
            .lag()
        };
        let online = "slave0:ip=::1,port=1,state=online,offset=90,lag=1";
        assert_eq!(lag(online), "");
        let late = "slave1:ip=::1,port=2,state=online,offset=60,lag=7";
        let new = "slave2:ip=::1,port=3,state=wait_bgsave,offset=0,lag=0";
        assert_eq!(
            lag(&format!("master_repl_offset:100\n{online}\n{late}\n{new}")),
            ", 1 not in sync, 1 silent for up to 7 s and 40 bytes behind"
        );
        assert_eq!(lag("slave_priority:1\nslave0:"), ", 1 not in sync");
    }

    #[test]
    fn a_server_that_shows_a_part_withholds_the_rest() {
        let is_withheld = |text: &str| {
            let info = parse_info(text);
            Server {
                info,
                ..Server::default()
            }
            .is_withheld()
        };
        assert!(is_withheld("") && is_withheld("run_id:a") && is_withheld("maxmemory_policy:a"));
        assert!(!is_withheld("run_id:a\nmaxmemory_policy:a"));
    }
}
