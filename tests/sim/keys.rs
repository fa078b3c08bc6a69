//! What keys and their values contain: which lock a key is of, which attempts have an entry there,
//! and until when. All of it is read here and not by the library.

use crate::locks::Access;
use crate::machine::Node;
use crate::plan::SHARED_KEY;
use crate::waits::SHARED;

/// What the numbers of locks begin with: one name has a lock of each kind. Each slot of a semaphore
/// is a lock.
pub(crate) const FENCED: usize = 100;
pub(crate) const READ_WRITE: usize = 200;
pub(crate) const SLOT: usize = 300;
/// Most slots of a semaphore.
pub(crate) const SLOTS: usize = 10;

/// One attempt's part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) attempt: usize,
    /// In milliseconds of its node's clock, the last one that counts; none where the key expires
    /// with it.
    pub(crate) until: Option<u64>,
    pub(crate) access: Access,
}

/// A value of a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    pub(crate) entries: Vec<Entry>,
    /// The last number that a writer was given, and until when it is kept.
    pub(crate) fence: Option<(u64, u64)>,
}

impl Content {
    pub(crate) fn of(value: &[u8]) -> Content {
        let text = String::from_utf8_lossy(value);
        let mut words: Vec<&str> = text.split(' ').collect();
        let mut fence = None;
        if let ["f", last, until, ..] = words[..] {
            fence = last.parse().ok().zip(until.parse().ok());
            words.drain(..3);
        }
        let entry = |token: &str, until: Option<&str>, access| {
            Some(Entry {
                attempt: attempt_of(token.as_bytes())?,
                until: until.and_then(|time| time.parse().ok()),
                access,
            })
        };
        let entries = match words[..] {
            ["r", ref readers @ ..] => {
                let reader = |word: &&str| {
                    word.split_once(':')
                        .and_then(|(until, token)| entry(token, Some(until), Access::Read))
                };
                readers.iter().filter_map(reader).collect()
            }
            // A writer's, and a fenced lock's.
            [_, until, token] => Vec::from_iter(entry(token, Some(until), Access::Write)),
            [token] => Vec::from_iter(entry(token, None, Access::Write)),
            _ => Vec::new(),
        };
        Content { entries, fence }
    }

    /// The entries that have not ended by then.
    pub(crate) fn live(&self, millis: u64) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(move |entry| entry.until.is_none_or(|until| until >= millis))
    }

    /// Whether the attempt has the lock to read at this time.
    pub(crate) fn is_reader(&self, attempt: usize, millis: u64) -> bool {
        self.live(millis)
            .any(|entry| entry.attempt == attempt && entry.access == Access::Read)
    }

    pub(crate) fn entry(&self, attempt: usize) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.attempt == attempt)
    }
}

/// The number of the attempt that has this token.
pub(crate) fn attempt_of(token: &[u8]) -> Option<usize> {
    usize::from_str_radix(std::str::from_utf8(token.get(..16)?).ok()?, 16)
        .ok()
        .map(|beginning| beginning >> 1)
}

/// What a token begins with. Its last bit is set: what is made of it in the library leaves that
/// out.
pub(crate) fn beginning(attempt: usize) -> [u8; 8] {
    (attempt as u64 * 2 + 1).to_be_bytes()
}

/// The number of the lock that a key is of.
pub(crate) fn resource_of(key: &[u8]) -> Option<usize> {
    let key = std::str::from_utf8(key).ok()?;
    let number = |text: &str| text.parse::<usize>().ok();
    if key == SHARED_KEY {
        Some(SHARED)
    } else if let Some(name) = key.strip_prefix("quorumlock-fence:r") {
        Some(FENCED + number(name)?)
    } else if let Some(name) = key.strip_prefix("quorumlock-rw:r") {
        Some(READ_WRITE + number(name)?)
    } else if let Some((semaphore, slot)) =
        key.strip_prefix('s').and_then(|name| name.split_once('#'))
    {
        Some(SLOT + SLOTS * number(semaphore)? + number(slot)?)
    } else {
        number(key.strip_prefix('r')?)
    }
}

/// The key of the lock with this number.
pub(crate) fn key_of(resource: usize) -> String {
    match resource {
        SHARED => SHARED_KEY.to_owned(),
        SLOT.. => format!(
            "s{}#{}",
            (resource - SLOT) / SLOTS,
            (resource - SLOT) % SLOTS
        ),
        READ_WRITE.. => format!("quorumlock-rw:r{}", resource - READ_WRITE),
        FENCED.. => format!("quorumlock-fence:r{}", resource - FENCED),
        _ => format!("r{resource}"),
    }
}

/// Whether this is the number of a read-write lock.
pub(crate) fn is_read_write(resource: usize) -> bool {
    (READ_WRITE..SLOT).contains(&resource)
}

impl Node {
    /// What a key contains; nothing when it is not there.
    pub(crate) fn content(&self, key: &[u8], now: u64) -> Content {
        self.store
            .value(key, self.millis(now))
            .map(Content::of)
            .unwrap_or_default()
    }

    /// For how long a key goes on to be of this attempt, in true time; none when it is not, or not
    /// for that.
    pub(crate) fn time_left(
        &self,
        key: &[u8],
        (attempt, access): (usize, Access),
        now: u64,
    ) -> Option<i64> {
        let entry = *self.content(key, now).entry(attempt)?;
        if access == Access::Write && entry.access == Access::Read {
            return None;
        }
        let deadline = match entry.until {
            None => self.store.deadline(key, self.millis(now)).flatten()?,
            Some(until) => until,
        };
        self.true_time_until(deadline, now)
    }

    /// For how long a key goes on to refuse what is asked for.
    pub(crate) fn refuses_for(&self, key: &[u8], access: Access, now: u64) -> Option<u64> {
        let Content { entries, .. } = self.content(key, now);
        let refuses = |entry: &&Entry| access == Access::Write || entry.access == Access::Write;
        let expires = self.store.deadline(key, self.millis(now)).flatten();
        let latest = entries
            .iter()
            .filter(refuses)
            .filter_map(|entry| entry.until.or(expires))
            .max()?;
        self.true_time_until(latest, now)
            .and_then(|left| u64::try_from(left).ok())
    }
}
