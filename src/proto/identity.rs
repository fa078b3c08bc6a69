//! Who a server says it is: what `INFO` tells of its process, version, mode and role.
//!
//! A server may withhold it (an ACL without `INFO`): then everything here is unknown, and nothing is assumed.

use super::command::Dialect;
use super::fault::Cause;

/// What a node has told of itself on one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    run_id: Option<RunId>,
    redis_version: Option<Version>,
    valkey_version: Option<Version>,
    cluster: bool,
    replica: bool,
}

/// The random name that a server process draws at its start: another process, another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunId([u8; 40]);

/// Major and minor version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32);

impl Identity {
    /// Takes what a section of `INFO` says and ignores the rest.
    pub fn learn(&mut self, section: &[u8]) {
        for line in section.split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
            let (name, value) = (&line[..colon], &line[colon + 1..]);
            match name {
                b"run_id" => self.run_id = <[u8; 40]>::try_from(value).ok().map(RunId),
                b"redis_version" => self.redis_version = Version::parse(value),
                b"valkey_version" => self.valkey_version = Version::parse(value),
                // "standalone", "sentinel" or "cluster"; Valkey 9.1 dropped the old name.
                b"redis_mode" | b"server_mode" => self.cluster = value == b"cluster",
                b"role" => self.replica = value != b"master",
                _ => {}
            }
        }
    }

    /// The server process's own name, unless withheld.
    pub fn run_id(&self) -> Option<RunId> {
        self.run_id
    }

    /// Why such a server may not vote, if it may not (SPEC §7.2).
    pub fn objection(&self) -> Option<Cause> {
        if self.cluster {
            Some(Cause::ClusterMode)
        } else if self.replica {
            Some(Cause::NotMaster)
        } else {
            None
        }
    }

    /// How to release on such a server, if its version says.
    pub fn dialect(&self) -> Option<Dialect> {
        // Valkey also claims to be Redis 7.2, for old clients; what it calls itself comes first.
        match (self.valkey_version, self.redis_version) {
            (Some(version), _) if version >= Version(9, 0) => Some(Dialect::Delifeq),
            (None, Some(version)) if version >= Version(8, 4) => Some(Dialect::Delex),
            (None, None) => None,
            _ => Some(Dialect::Eval),
        }
    }
}

impl Version {
    fn parse(value: &[u8]) -> Option<Version> {
        let mut parts = std::str::from_utf8(value).ok()?.split('.');
        let major = parts.next()?.parse().ok()?;
        let minor = parts.next().and_then(|minor| minor.parse().ok()).unwrap_or(0);
        Some(Version(major, minor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(text: &str) -> Identity {
        let mut identity = Identity::default();
        identity.learn(text.replace('\n', "\r\n").as_bytes());
        identity
    }

    #[test]
    fn the_dialect_follows_from_the_version() {
        let table = [
            ("redis_version:5.0.14", Some(Dialect::Eval)),
            ("redis_version:7.4.2", Some(Dialect::Eval)),
            ("redis_version:8.3.9", Some(Dialect::Eval)),
            ("redis_version:8.4.0", Some(Dialect::Delex)),
            ("redis_version:8.10", Some(Dialect::Delex)),
            ("redis_version:10.0.0", Some(Dialect::Delex)),
            ("redis_version:7.2.4\nvalkey_version:8.1.0", Some(Dialect::Eval)),
            ("redis_version:7.2.4\nvalkey_version:9.0.0", Some(Dialect::Delifeq)),
            ("valkey_version:9.1.2\nredis_version:7.2.4", Some(Dialect::Delifeq)),
            ("redis_version:unstable", None),
            ("", None),
        ];
        for (text, dialect) in table {
            assert_eq!(learnt(text).dialect(), dialect, "{text}");
        }
    }

    #[test]
    fn replicas_and_cluster_members_may_not_vote() {
        assert_eq!(learnt("redis_mode:standalone\nrole:master").objection(), None);
        assert_eq!(learnt("role:slave\nmaster_host:h").objection(), Some(Cause::NotMaster));
        assert_eq!(learnt("redis_mode:cluster\nrole:master").objection(), Some(Cause::ClusterMode));
        assert_eq!(learnt("server_mode:cluster\nrole:master").objection(), Some(Cause::ClusterMode));
        assert_eq!(learnt("server_mode:standalone").objection(), None);
        assert_eq!(learnt("").objection(), None);
    }

    #[test]
    fn a_run_id_has_forty_characters_or_is_none() {
        let name = "0123456789012345678901234567890123456789";
        assert_eq!(
            learnt(&format!("# Server\nrun_id:{name}\nx:y")).run_id(),
            Some(RunId(name.as_bytes().try_into().unwrap()))
        );
        assert_eq!(learnt("run_id:short").run_id(), None);
        assert_eq!(learnt("no colon\n:\n::").run_id(), None);
    }
}
