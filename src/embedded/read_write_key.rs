//! The value of the key of a read-write lock, as `read_write.lua` reads and writes it.

use super::keyspace::Millis;
use super::numbers::{is_token, number};

/// What a key holds.
#[derive(Default)]
pub(super) struct ReadWriteKey {
    pub(super) is_write: bool,
    pub(super) holds: Vec<Hold>,
    /// The last number that a writer was given, and until when it is kept; 0 if there is none.
    pub(super) fence: u64,
    pub(super) kept: Millis,
}

/// A writer that has the lock, or one of its readers.
pub(super) struct Hold {
    pub(super) deadline: Millis,
    pub(super) token: Vec<u8>,
}

impl ReadWriteKey {
    /// The value that was written so, if there is one.
    pub(super) fn parse(bytes: &[u8]) -> Option<ReadWriteKey> {
        if bytes.is_empty() {
            return None;
        }
        let bytes = without_mark(bytes);
        if bytes.is_empty() {
            return Some(ReadWriteKey::default());
        }
        let mut words: Vec<&[u8]> = bytes.split(|&byte| byte == b' ').collect();
        let [mut fence, mut kept] = [0; 2];
        if let [b"f", last, deadline, ..] = words[..] {
            (fence, kept) = (number(last).filter(|fence| *fence > 0)?, number(deadline)?);
            words.drain(..3);
        }
        let hold = |deadline: &[u8], token: &[u8]| {
            is_token(token).then_some(Hold { deadline: number(deadline)?, token: token.to_vec() })
        };
        let (is_write, holds) = match words[..] {
            [] => (false, Vec::new()),
            [b"w", deadline, token] => (true, vec![hold(deadline, token)?]),
            [b"r", ref readers @ ..] if !readers.is_empty() => {
                let read = |word: &&[u8]| {
                    let colon = word.iter().position(|&byte| byte == b':')?;
                    hold(&word[..colon], &word[colon + 1..])
                };
                (false, readers.iter().map(read).collect::<Option<_>>()?)
            }
            _ => return None,
        };
        Some(ReadWriteKey { is_write, holds, fence, kept })
    }

    /// The value, as it is stored.
    pub(super) fn written(&self) -> Vec<u8> {
        let mut words = Vec::new();
        let separator = if self.is_write { ' ' } else { ':' };
        if self.fence > 0 {
            words.push(format!("f {} {}", self.fence, self.kept));
        }
        if !self.holds.is_empty() {
            words.push(if self.is_write { "w" } else { "r" }.to_owned());
        }
        for Hold { deadline, token } in &self.holds {
            words.push(format!("{deadline}{separator}{}", String::from_utf8_lossy(token)));
        }
        words.join(" ").into_bytes()
    }

    /// Drops what has ended.
    pub(super) fn expire(&mut self, now: Millis) {
        self.holds.retain(|hold| hold.deadline >= now);
        self.is_write &= !self.holds.is_empty();
        if self.kept < now {
            (self.fence, self.kept) = (0, 0);
        }
    }

    /// The end of what lasts longest, or zero.
    pub(super) fn latest(&self) -> Millis {
        self.ends().chain([self.kept]).max().unwrap_or(0)
    }

    /// When each hold ends.
    pub(super) fn ends(&self) -> impl Iterator<Item = Millis> {
        self.holds.iter().map(|hold| hold.deadline)
    }
}

/// Without "q" and a number at the end, which a version that had no queue has left there.
fn without_mark(bytes: &[u8]) -> &[u8] {
    let digits = bytes.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = &bytes[..bytes.len() - digits];
    match rest.strip_suffix(b" q ") {
        Some(rest) if digits > 0 => rest,
        _ if digits > 0 && rest == b"q " => b"",
        _ => bytes,
    }
}
