//! The Lua that nodes run for us, by name.
//!
//! Each script stands in its own file under `lua/`, opening with what its KEYS, ARGV and return value mean, or in
//! several that are joined. The opening of each file is for readers; what goes over the wire is without comments.
//!
//! A server that has run a script on a connection is sent its hash from then on, unless it keeps forgetting.

use super::form::Form;
use super::resp;

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
/// All of a fenced lock: `EVAL FENCED 1 key verb token …`, see [`fenced`](super::kinds::fenced) and
/// [`queue`](super::queue).
pub const FENCED: &str = script!("lua/fence_key.lua", "lua/fenced.lua", "lua/mutex.lua", "lua/queue.lua");
/// A permit of a semaphore: `EVAL PERMIT 1 key verb token …`, see [`queue`](super::queue).
pub const PERMIT: &str = script!("lua/permit_names.lua", "lua/token_key.lua", "lua/permit.lua", "lua/queue.lua");
/// A plain lock, but for `SET NX PX` and [`EXTEND`]: `EVAL PLAIN 1 key verb token …`, see [`queue`](super::queue).
pub const PLAIN: &str =
    script!("lua/plain_names.lua", "lua/token_key.lua", "lua/plain.lua", "lua/mutex.lua", "lua/queue.lua");
/// What a node remembers of itself: `EVAL NODE 1 key …`, see [`node_note`](super::node_note).
pub const NODE: &str = script!("lua/node.lua");
/// All of a read-write lock: `EVAL READ_WRITE 1 key verb token …`, see [`read_write`](super::kinds::read_write) and
/// [`queue`](super::queue).
pub const READ_WRITE: &str = script!("lua/read_write.lua", "lua/queue.lua");

/// What servers call [`FENCED`] once they have run it, as [`PLAIN_SHA1`].
pub const FENCED_SHA1: &str = "e1230fb79be8c87eed3f8d1083ccb515e55a98f7";
/// What servers call [`PERMIT`] once they have run it, as [`PLAIN_SHA1`].
pub const PERMIT_SHA1: &str = "e87231d428d4ed86d03bedc521595db8b7167fa0";
/// What servers call [`PLAIN`] once they have run it: the SHA-1 of its text, as `SCRIPT LOAD` answers. A test asks a
/// server whether it still is.
pub const PLAIN_SHA1: &str = "d05e15b7d478de78b4f70c284139b51cfed3e2d7";
/// What servers call [`READ_WRITE`] once they have run it, as [`PLAIN_SHA1`].
pub const READ_WRITE_SHA1: &str = "c3593db7a82a9532318abd18d87d43e7ff79e9d2";

/// A script that is run often enough to go by its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    /// [`FENCED`].
    Fenced,
    /// [`PERMIT`].
    Permit,
    /// [`PLAIN`].
    Plain,
    /// [`READ_WRITE`].
    ReadWrite,
}

impl Script {
    /// How many words there are before the key.
    pub(super) const CALL_WORDS: usize = 3;

    /// Writes those: the command, and the script by its text, unless the form is [`Form::Hash`].
    pub(super) fn begin_call(self, out: &mut Vec<u8>, form: Form) {
        let (text, hash) = match self {
            Script::Fenced => (FENCED, FENCED_SHA1),
            Script::Permit => (PERMIT, PERMIT_SHA1),
            Script::Plain => (PLAIN, PLAIN_SHA1),
            Script::ReadWrite => (READ_WRITE, READ_WRITE_SHA1),
        };
        let is_hash = form == Form::Hash;
        out.extend_from_slice(if is_hash { b"$7\r\nEVALSHA\r\n" } else { b"$4\r\nEVAL\r\n" });
        resp::push(out, if is_hash { hash } else { text }.as_bytes());
        out.extend_from_slice(b"$1\r\n1\r\n");
    }
}

/// The lines of these files that are no comments, and how many bytes they have.
const fn code<const LENGTH: usize>(files: &str) -> ([u8; LENGTH], usize) {
    let (files, mut code, mut length, mut index) = (files.as_bytes(), [0; LENGTH], 0, 0);
    while index < files.len() {
        let mut start = index;
        while files[start] == b' ' {
            start += 1;
        }
        let is_code = !(files[start] == b'-' && files[start + 1] == b'-');
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
        assert!(FENCED.starts_with("local value = redis.pcall('GET', KEYS[1])\n"), "{FENCED}");
        assert!(PERMIT.starts_with("local key = KEYS[1]\n"), "{PERMIT}");
        assert!(PLAIN.starts_with("local key = KEYS[1]\n"), "{PLAIN}");
        assert!(READ_WRITE.starts_with("local room = 64\n"), "{READ_WRITE}");
        for script in [FENCED, PERMIT, PLAIN, READ_WRITE] {
            assert!(script.ends_with("first_entry() or '')\n") && !script.contains("--"), "{script}");
        }
    }
}
