//! The Lua that nodes run for us, by name.
//!
//! Each script stands in its own file under `lua/`, opening with what its KEYS, ARGV and return value mean. That
//! opening is for people; what goes over the wire begins after it.

/// Compare and extend: `EVAL EXTEND 1 key token ttl_ms` → `:1` extended, `:0` no such key, `:-1` somebody else's.
pub const EXTEND: &str = body(include_str!("lua/extend.lua"));
/// All of a fenced lock: `EVAL FENCE 1 key what token retention_ms …`, see [`fenced`](super::fenced).
pub const FENCE: &str = body(include_str!("lua/fence.lua"));
/// Compare and delete, for servers that have no command for it: `EVAL RELEASE 1 key token [channel number]` → `:1` or
/// `:0`; `:2` when it was done and nobody may be told, `:2` and the number of those who were.
pub const RELEASE: &str = body(include_str!("lua/release.lua"));

/// What servers call [`FENCE`] once they have run it, as [`RELEASE_SHA1`].
pub const FENCE_SHA1: &str = "471fdc68a4ff73a5746c64f9c1f082bda8ac3956";
/// What servers call [`RELEASE`] once they have run it: the SHA-1 of its text, as `SCRIPT LOAD` answers. A test asks a
/// server whether it still is.
pub const RELEASE_SHA1: &str = "dd12ea445da65aeeca6ce92e29939c3267883e1b";

/// The script without the comment lines that it opens with.
const fn body(file: &'static str) -> &'static str {
    let mut rest = file;
    while let [b'-', b'-', ..] = rest.as_bytes() {
        let mut line_end = 0;
        while rest.as_bytes()[line_end] != b'\n' {
            line_end += 1;
        }
        rest = rest.split_at(line_end + 1).1;
    }
    rest
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
        assert!(FENCE.starts_with("local most = 9007199254740991\n"), "{FENCE}");
        assert!(FENCE.ends_with("or answer\n"));
        assert!(!EXTEND.contains("--") && !FENCE.contains("--") && !RELEASE.contains("--"));
    }
}
