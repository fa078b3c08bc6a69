//! What names a call in the queues of a lock, and how it is written there.

use crate::algorithm::digits;
use crate::algorithm::kind::EntryKind;
use std::fmt;

/// Digits of a client's id.
pub const CLIENT_DIGITS: usize = 16;

/// A call's entry in the queues of a lock. It is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// The client: a random number, which names its channel.
    pub client: u64,
    /// What the call waits for.
    pub kind: EntryKind,
    /// The call: no other one of the client has this number.
    pub number: u64,
}

impl Entry {
    /// The member of a queue: the client in 16 digits, a letter, of a permit the number of permits,
    /// and the call.
    pub fn member(&self) -> Member {
        let Entry {
            client,
            kind,
            number,
        } = *self;
        let letter = kind.letter();
        let text = match kind {
            EntryKind::Permit(permits) => format!("{client:016x}{letter}{permits}:{number}"),
            _ => format!("{client:016x}{letter}{number}"),
        };
        Member::new(text.as_bytes()).unwrap_or(Member::NONE)
    }

    /// Reads a member of a queue.
    pub fn parse(member: &[u8]) -> Option<Entry> {
        let (digits, call) = member.split_at_checked(CLIENT_DIGITS)?;
        let is_client = digits
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let digits = std::str::from_utf8(digits).ok().filter(|_| is_client)?;
        Entry::of_client(u64::from_str_radix(digits, 16).ok()?, call)
    }

    /// Reads what follows the client's digits.
    pub fn of_client(client: u64, call: &[u8]) -> Option<Entry> {
        let (&letter, rest) = call.split_first()?;
        let (kind, number) = match EntryKind::of_letter(letter.into())? {
            EntryKind::Permit(_) => {
                let colon = rest.iter().position(|&byte| byte == b':')?;
                (
                    EntryKind::Permit(digits::number(&rest[..colon])?.try_into().ok()?),
                    &rest[colon + 1..],
                )
            }
            kind => (kind, rest),
        };
        Some(Entry {
            client,
            kind,
            number: digits::number(number)?,
        })
    }
}

/// The bytes of a member of a queue, of any program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    length: u8,
    bytes: [u8; Member::LONGEST],
}

impl Member {
    /// Longer ones are of no program of ours: 16 digits, a letter, 5 digits, ":" and 20 digits.
    pub const LONGEST: usize = 47;
    /// No member.
    pub const NONE: Member = Member {
        length: 0,
        bytes: [0; Member::LONGEST],
    };

    /// A member with these bytes, unless they are too many.
    pub fn new(text: &[u8]) -> Option<Member> {
        let mut bytes = [0; Member::LONGEST];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Member {
            length: text.len() as u8,
            bytes,
        })
    }

    /// As it is sent.
    pub fn text(&self) -> &[u8] {
        self.bytes.get(..self.length.into()).unwrap_or_default()
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.text().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_it_is_written() {
        for (kind, call) in [
            (EntryKind::Mutex, "m7"),
            (EntryKind::Fenced, "f7"),
            (EntryKind::Read, "r7"),
            (EntryKind::Write, "w7"),
            (EntryKind::Permit(256), "s256:7"),
        ] {
            let entry = Entry {
                client: 0xab,
                kind,
                number: 7,
            };
            assert_eq!(
                entry.member().text(),
                format!("00000000000000ab{call}").as_bytes()
            );
            assert_eq!(Entry::of_client(0xab, call.as_bytes()), Some(entry));
            assert_eq!(Entry::parse(entry.member().text()), Some(entry));
        }
        let longest = Entry {
            client: u64::MAX,
            kind: EntryKind::Permit(u16::MAX),
            number: u64::MAX,
        };
        assert!(longest.member().text().len() < Member::LONGEST);
    }

    #[test]
    fn what_no_client_writes_is_no_entry() {
        for call in "|m|x7|m-7|m 7|s7|s:7|s70000:7|m18446744073709551616".split('|') {
            assert_eq!(Entry::of_client(1, call.as_bytes()), None, "{call:?}");
            assert_eq!(
                Entry::parse(format!("0000000000000001{call}").as_bytes()),
                None,
                "{call:?}"
            );
        }
        for member in "|m7|00000000000000am7|00000000000000ABm7|+00000000000000am7".split('|') {
            assert_eq!(Entry::parse(member.as_bytes()), None, "{member:?}");
        }
        assert_eq!(Member::new(&[b'x'; Member::LONGEST + 1]), None);
    }
}
