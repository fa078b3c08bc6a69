//! A permit of a semaphore: one of its slots, each of which has the key and the value of a [plain
//! lock](super::plain). All slots have one queue.

use super::plain;
use super::wire::{Wire, Word, Words};
use crate::algorithm::kind::Kind;
use crate::protocol::operation::{Operation, Verb};
use crate::protocol::script::{Script, script};

/// The marker of semaphores, in the keys of their queues.
pub const MARKER: &str = "quorumlock-permits:";

/// All but `SET NX PX` and [`EXTEND`](plain::EXTEND): `EVAL SCRIPT 1 key verb token …`.
pub const SCRIPT: Script = Script {
    text: script!(
        "../lua/permit_names.lua",
        "../lua/token_key.lua",
        "../lua/permit.lua",
        "../lua/queue.lua"
    ),
    sha1: "3ec7bc42fcb71fa425e7a6ada63c49e5f4515aa3",
    index: 1,
};

pub(super) static WIRE: Wire = Wire {
    script: SCRIPT,
    write_tail,
    ..plain::WIRE
};

/// A take names the number of permits.
fn write_tail(words: &mut Words<'_>, operation: &Operation) {
    if let (Verb::Take { .. }, Kind::Permit(permits)) = (operation.verb, operation.kind) {
        words.extend(&[Word::Number(permits.into())]);
    }
}

/// The semaphore and the number in the key of a slot; none for a key of another form.
pub fn slot(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = key.iter().rposition(|&byte| byte == b'#')?;
    let semaphore = &key[..at];
    let number = &key[at + 1..];
    (!number.is_empty() && number.iter().all(u8::is_ascii_digit)).then_some((semaphore, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_slot_ends_in_its_number() {
        assert_eq!(slot(b"orders/42#17"), Some((&b"orders/42"[..], &b"17"[..])));
        assert_eq!(slot(b"a#1#2"), Some((&b"a#1"[..], &b"2"[..])));
        for other in ["orders/42", "orders/42#", "orders/42#a1", "orders#1/42"] {
            assert!(slot(other.as_bytes()).is_none(), "{other}");
        }
    }
}
