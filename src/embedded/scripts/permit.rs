//! A permit of a semaphore, as its [script](crate::protocol::kinds::permit::SCRIPT) leaves it,
//! written out in Rust. The part about the queue is [`queue`](crate::embedded::queue).

use super::plain::run_owned;
use crate::algorithm::queue::MOST_SLOTS;
use crate::embedded::calls::{Calls, QUEUE};
use crate::embedded::queue::{LockKind, MOST_TOLD};
use crate::embedded::reply::{Answer, Failure, NO_ARGUMENT, Reply, Reply::Integer};
use crate::protocol::kinds;

/// What the name of a semaphore follows in the key of its queue.
const PERMITS: &[u8] = kinds::permit::MARKER.as_bytes();
/// Most permits.
const MOST: u64 = MOST_SLOTS as u64;

struct Permit<'a> {
    /// The semaphore's name.
    name: &'a [u8],
    is_held: bool,
    permits: u64,
    /// A number of permits, and how many of them are free.
    free: Option<(u64, usize)>,
}

/// Runs the script.
///
/// # Errors
/// What keeps it from an answer.
pub(super) fn run(calls: &mut Calls<'_>) -> Answer {
    let name = kinds::permit::slot(calls.key).map_or(calls.key, |(semaphore, _)| semaphore);
    let asked = calls
        .argument(8)
        .filter(|_| calls.argument(1) == Some(b"take"));
    calls.queue = [QUEUE, PERMITS, name].concat();
    run_owned(calls, |is_held| {
        let permits = asked.map_or(Some(0), digits).ok_or(NO_ARGUMENT)?;
        Ok(Permit {
            name,
            is_held,
            permits,
            free: None,
        })
    })
}

impl Permit<'_> {
    fn slot_keys(&self, count: u64) -> impl Iterator<Item = Vec<u8>> {
        (0..count.min(MOST)).map(|slot| [self.name, b"#", slot.to_string().as_bytes()].concat())
    }

    /// For how long each slot is held, as `PTTL` replies it.
    fn times(&self, calls: &Calls<'_>) -> impl Iterator<Item = i64> {
        self.slot_keys(self.permits)
            .map(move |key| calls.database.remaining(&key))
    }
}

/// The kind of an entry is the number of permits that it counts with.
impl LockKind for Permit<'_> {
    fn asked(&self) -> u64 {
        self.permits
    }

    /// What no client has written is sent a message, and so found to be without a receiver.
    fn kind_of(&self, member: &[u8]) -> u64 {
        permits_of(member).unwrap_or(MOST)
    }

    fn fits(&mut self, calls: &Calls<'_>, count: u64, rank: usize, _: Option<u64>) -> bool {
        let known = self.free.filter(|(known, _)| *known == count);
        let free = known.map_or_else(
            || {
                self.slot_keys(count)
                    .filter(|key| !calls.database.exists(key))
                    .count()
            },
            |known| known.1,
        );
        self.free = Some((count, free));
        rank < free
    }

    fn grant(&mut self, calls: &mut Calls<'_>) -> Result<Option<Reply>, Failure> {
        if self.is_held {
            return Ok(None);
        }
        calls.set(calls.text(2), calls.text(3))?;
        self.free = self.free.map(|(count, free)| (count, free - 1));
        Ok(Some(Integer(1)))
    }

    fn keeps_entry(&self) -> bool {
        false
    }

    fn grant_tells(&self) -> bool {
        self.free.is_some_and(|(_, free)| free >= MOST_TOLD)
    }

    fn is_known(&self, calls: &Calls<'_>, rank: usize) -> bool {
        calls.argument(1) != Some(b"take") && self.free.is_some_and(|(_, free)| rank + 1 < free)
    }

    fn held_for(&self, calls: &Calls<'_>) -> i64 {
        let is_free = self.times(calls).any(|time| time == -2);
        if is_free {
            0
        } else {
            self.times(calls)
                .filter(|time| *time >= 0)
                .min()
                .map_or(-1, |time| time + 1)
        }
    }

    fn slots(&self, calls: &Calls<'_>) -> String {
        let letter = |time| match time {
            -2 => 'f',
            -1 => 'e',
            _ => 't',
        };
        self.times(calls).map(letter).collect()
    }
}

/// The number of permits in an entry: behind the digits of a client, of any number and case.
fn permits_of(member: &[u8]) -> Option<u64> {
    let is_other = |byte: &u8| !byte.is_ascii_hexdigit();
    let client = member
        .iter()
        .position(is_other)
        .filter(|&client| client > 0)?;
    let permits = member[client..].strip_prefix(b"s")?;
    let colon = permits.iter().position(|&byte| byte == b':')?;
    digits(&permits[..colon]).filter(|_| permits[0] != b'0')
}

/// A number of any length; the greatest that fits represents all that are greater.
fn digits(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}
