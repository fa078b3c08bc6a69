//! The Lua that nodes run for us, by name.
//!
//! Each script stands in its own file under `lua/`, opening with what its KEYS, ARGV and return value mean, or in
//! several that are joined. The opening of each file is for readers; what goes over the wire is without comments.
//!
//! A server that has run a script on a connection is sent its hash from then on, unless it keeps forgetting:
//! `ScriptCache`.

use super::dialect::Dialect;

/// The script that these files make up, without comments.
macro_rules! script {
    ($($file:literal),+) => {{
        const FILES: &str = concat!($(include_str!($file)),+);
        const CODE: &([u8; FILES.len()], usize) = &code(FILES);
        match str::from_utf8(CODE.0.split_at(CODE.1).0) {
            Ok(code) => code,
            Err(_) => panic!("it is made of whole lines"),
        }
    }};
}

/// Compare and extend: `EVAL EXTEND 1 key token ttl_ms` → `:1` extended, `:0` no such key, `:-1` another token.
pub const EXTEND: &str = script!("lua/extend.lua");
/// All of a fair lock: `EVAL FAIR 2 key queue what …`, see [`fair`](super::fair).
pub const FAIR: &str = script!("lua/fair.lua", "lua/queue.lua");
/// All of a fenced lock: `EVAL FENCE 1 key what token retention_ms …`, see [`fenced`](super::fenced).
pub const FENCE: &str = script!("lua/fence_key.lua", "lua/fence.lua");
/// The queue of a lock that is fenced and fair, all else of which is [`FENCE`]: `EVAL FENCED_FAIR 2 key queue what …`,
/// see [`fair`](super::fair).
pub const FENCED_FAIR: &str = script!("lua/fence_key.lua", "lua/fenced_fair.lua", "lua/queue.lua");
/// All of a read-write lock: `EVAL READ_WRITE 1 key what token …`, see [`read_write`](super::read_write).
pub const READ_WRITE: &str = script!("lua/read_write.lua");
/// Compare and delete, for servers that have no command for it: `EVAL RELEASE 1 key token [channel number]` → `:1` or
/// `:0`; `:2` when it was done and publishing is not permitted, `:2` and the number of subscribers otherwise.
pub const RELEASE: &str = script!("lua/release.lua");

/// What servers call [`FAIR`] once they have run it, as [`RELEASE_SHA1`].
pub const FAIR_SHA1: &str = "07023b094c82c79a82ffd9c7b695422a1ffbf409";
/// What servers call [`FENCE`] once they have run it, as [`RELEASE_SHA1`].
pub const FENCE_SHA1: &str = "5ce4f849b2ec3e60d78543eba65df4a1ee7228cf";
/// What servers call [`FENCED_FAIR`] once they have run it, as [`RELEASE_SHA1`].
pub const FENCED_FAIR_SHA1: &str = "d62e6741ec91d7e617533c3bf1ed0cde9ea2cfd9";
/// What servers call [`READ_WRITE`] once they have run it, as [`RELEASE_SHA1`].
pub const READ_WRITE_SHA1: &str = "9e5859914f6eaa1ed1b8c2adfbc97f78e196da3a";
/// What servers call [`RELEASE`] once they have run it: the SHA-1 of its text, as `SCRIPT LOAD` answers. A test asks a
/// server whether it still is.
pub const RELEASE_SHA1: &str = "dd12ea445da65aeeca6ce92e29939c3267883e1b";

/// How often on one connection a server may not know a script that it has run. To flush its scripts is rare. A server
/// that forbids the hash, or forgets scripts all the time, does so for good.
const HASH_REFUSALS: u8 = 3;

/// A script that is run often enough to go by its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    /// [`FAIR`].
    Fair,
    /// [`FENCE`].
    Fence,
    /// [`FENCED_FAIR`].
    FencedFair,
    /// [`READ_WRITE`].
    ReadWrite,
    /// [`RELEASE`].
    Release,
}

impl Script {
    /// The command and the script in it: by the text, unless the dialect is [`Dialect::Evalsha`].
    pub(super) fn call(self, dialect: Dialect) -> [&'static [u8]; 2] {
        let (text, hash) = match self {
            Script::Fair => (FAIR, FAIR_SHA1),
            Script::Fence => (FENCE, FENCE_SHA1),
            Script::FencedFair => (FENCED_FAIR, FENCED_FAIR_SHA1),
            Script::ReadWrite => (READ_WRITE, READ_WRITE_SHA1),
            Script::Release => (RELEASE, RELEASE_SHA1),
        };
        if dialect == Dialect::Evalsha { [b"EVALSHA", hash.as_bytes()] } else { [b"EVAL", text.as_bytes()] }
    }
}

/// Which scripts a server knows by their hashes, on one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptCache {
    scripts: [CacheEntry; 5],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CacheEntry {
    has_run: bool,
    refusals: u8,
}

impl ScriptCache {
    /// Whether the hash is worth sending.
    pub(super) fn knows(&self, script: Script) -> bool {
        let entry = self.scripts[script as usize];
        entry.has_run && entry.refusals < HASH_REFUSALS
    }

    /// The server has run the script.
    pub(super) fn note_run(&mut self, script: Script) {
        self.scripts[script as usize].has_run = true;
    }

    /// The server does not know the hash, or does not permit it. Of several requests that were under way together, one
    /// counts.
    pub(super) fn note_refusal(&mut self, script: Script) {
        let entry = &mut self.scripts[script as usize];
        if std::mem::take(&mut entry.has_run) {
            entry.refusals = entry.refusals.saturating_add(1);
        }
    }
}

/// The lines of these files that are no comments, and how many bytes they have.
const fn code<const LENGTH: usize>(files: &str) -> ([u8; LENGTH], usize) {
    let (files, mut code, mut length, mut index) = (files.as_bytes(), [0; LENGTH], 0, 0);
    while index < files.len() {
        let is_code = !(files[index] == b'-' && files[index + 1] == b'-');
        let mut is_line = true;
        while is_line {
            is_line = files[index] != b'\n';
            if is_code {
                code[length] = files[index];
                length += 1;
            }
            index += 1;
        }
    }
    (code, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_gets_code_without_comments() {
        assert!(EXTEND.starts_with("local owner = redis.pcall('GET', KEYS[1])\n"), "{EXTEND}");
        assert!(EXTEND.ends_with("return redis.pcall('PEXPIRE', KEYS[1], ARGV[2])\n"));
        assert!(RELEASE.starts_with("if redis.call('GET', KEYS[1]) ~= ARGV[1]"), "{RELEASE}");
        assert!(RELEASE.ends_with("or gone\n"));
        assert!(FENCE.starts_with("local value = redis.pcall('GET', KEYS[1])\n"), "{FENCE}");
        assert!(FENCE.ends_with("or 1\n"));
        assert!(READ_WRITE.starts_with("local room = 64\n"), "{READ_WRITE}");
        assert!(READ_WRITE.ends_with("or 1\n"));
        assert!(FAIR.starts_with("local what = ARGV[1]\n") && FAIR.contains("\nend\nlocal queue = redis."), "{FAIR}");
        assert!(FAIR.ends_with("position, lasts, next_id)\n"));
        assert!(FENCED_FAIR.starts_with("local value = redis.pcall('GET', KEYS[1])\n"), "{FENCED_FAIR}");
        assert!(FENCED_FAIR.ends_with("position, lasts, next_id)\n"));
        assert!([EXTEND, FAIR, FENCE, FENCED_FAIR, READ_WRITE, RELEASE].iter().all(|script| !script.contains("--")));
    }

    #[test]
    fn a_script_that_was_run_goes_by_its_hash_unless_the_server_keeps_forgetting() {
        let mut cache = ScriptCache::default();
        assert!(!cache.knows(Script::Fence));
        for round in 0..HASH_REFUSALS {
            cache.note_run(Script::Fence);
            assert!(cache.knows(Script::Fence) && !cache.knows(Script::Release), "{round}");
            cache.note_refusal(Script::Fence);
            cache.note_refusal(Script::Fence);
            assert!(!cache.knows(Script::Fence), "{round}");
        }
        cache.note_run(Script::Fence);
        assert!(!cache.knows(Script::Fence), "it forgets all the time");
        cache.note_run(Script::Release);
        assert!(cache.knows(Script::Release));
    }
}
