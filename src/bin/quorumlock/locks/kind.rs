//! Which lock a key belongs to, by the key's name.

use quorumlock::protocol::fair::QUEUE_KEY_PREFIX;
use quorumlock::protocol::fenced::FENCED_KEY_PREFIX;
use quorumlock::protocol::read_write::READ_WRITE_KEY_PREFIX;

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A lock whose key has its name: also a permit, one of a set, and a fair lock.
    Plain,
    Fenced,
    ReadWrite,
    /// The places of those that wait for a fair lock: no lock itself.
    Queue,
}

impl Kind {
    /// All of them.
    pub(crate) const ALL: [Kind; 4] = [Kind::Plain, Kind::Fenced, Kind::ReadWrite, Kind::Queue];

    /// What stands in front of the name of the lock.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Kind::Plain => "",
            Kind::Fenced => FENCED_KEY_PREFIX,
            Kind::ReadWrite => READ_WRITE_KEY_PREFIX,
            Kind::Queue => QUEUE_KEY_PREFIX,
        }
    }

    /// All that may stand in front of the name of a lock: in its key, and in that of its queue.
    pub(crate) fn marks() -> impl Iterator<Item = String> {
        let fenced_queue = format!("{QUEUE_KEY_PREFIX}{FENCED_KEY_PREFIX}");
        Kind::ALL.into_iter().map(|kind| kind.mark().to_owned()).chain([fenced_queue])
    }

    /// The kind of a key, given without the prefix, and the name of its lock.
    pub(crate) fn of(key: &str) -> (Kind, &str) {
        // The one without a mark is the last resort.
        let found = Kind::ALL.into_iter().rev().find_map(|kind| Some((kind, key.strip_prefix(kind.mark())?)));
        match found.unwrap_or((Kind::Plain, key)) {
            (Kind::Queue, lock) => (Kind::Queue, lock.strip_prefix(FENCED_KEY_PREFIX).unwrap_or(lock)),
            other => other,
        }
    }
}
