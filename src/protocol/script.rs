//! The Lua that nodes run for us, as each [kind](super::kinds) has it.
//!
//! Each script has its own file under `lua/`, opening with what its KEYS, ARGV and return value
//! mean, or several that are joined. The opening of each file is for readers; what goes over the
//! wire is without comments.
//!
//! A server that has run a script on a connection is sent its hash from then on, unless it keeps
//! forgetting.

use super::form::Form;
use super::resp;

/// The script that these files make up, without comments.
macro_rules! script {
    ($($file:literal),+) => {{
        const FILES: &str = concat!($(include_str!($file)),+);
        const CODE: &([u8; FILES.len()], usize) = &crate::protocol::script::code(FILES);
        match str::from_utf8(CODE.0.split_at(CODE.1).0) {
            Ok(code) => code,
            Err(_) => panic!("it is made of whole lines"),
        }
    }};
}

pub(super) use script;

/// A script that is run often enough to go by its hash.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// Its Lua.
    pub text: &'static str,
    /// What servers call it once they have run it: the SHA-1 of its text, as `SCRIPT LOAD` replies.
    /// A test asks a server whether it still is.
    pub sha1: &'static str,
    /// Which of [`SCRIPTS`](super::kinds::SCRIPTS) it is.
    pub(super) index: usize,
}

impl Script {
    /// How many words there are before the key.
    pub(super) const CALL_WORDS: usize = 3;

    /// Writes those: the command, and the script by its text, unless the form is [`Form::Hash`].
    pub(super) fn begin_call(&self, out: &mut Vec<u8>, form: Form) {
        let is_hash = form == Form::Hash;
        out.extend_from_slice(if is_hash {
            b"$7\r\nEVALSHA\r\n"
        } else {
            b"$4\r\nEVAL\r\n"
        });
        resp::push(out, if is_hash { self.sha1 } else { self.text }.as_bytes());
        out.extend_from_slice(b"$1\r\n1\r\n");
    }
}

/// The lines of these files that are no comments, and how many bytes they have.
pub(super) const fn code<const LENGTH: usize>(files: &str) -> ([u8; LENGTH], usize) {
    let files = files.as_bytes();
    let mut code = [0; LENGTH];
    let mut length = 0;
    let mut index = 0;
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
    use super::super::kinds::{SCRIPTS, plain};

    #[test]
    fn the_wire_gets_code_without_comments() {
        let extend = plain::EXTEND;
        assert!(
            extend.starts_with("local owner = redis.pcall('GET', KEYS[1])\n"),
            "{extend}"
        );
        assert!(extend.ends_with("return redis.pcall('PEXPIRE', KEYS[1], ARGV[2])\n"));
        let openings = [
            "local value = redis.pcall('GET', KEYS[1])\n",
            "local key = KEYS[1]\n",
            "local key = KEYS[1]\n",
            "local room = 64\n",
        ];
        assert_eq!(SCRIPTS.len(), openings.len());
        for (index, (script, opening)) in SCRIPTS.into_iter().zip(openings).enumerate() {
            assert_eq!(script.index, index);
            assert!(script.text.starts_with(opening), "{script:?}");
            assert!(
                script.text.ends_with("first_entry() or '', 1, 48)\n")
                    && !script.text.contains("--"),
                "{script:?}"
            );
        }
    }
}
