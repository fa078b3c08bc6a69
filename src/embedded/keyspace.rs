//! One database: keys, their values, and when they end.
//!
//! A key whose end has come is gone for every reader from that moment on, whether or not its memory has been given
//! back. Memory is given back by a sweep over the whole database whenever it has doubled since the last one, so that
//! each insertion pays for a constant share of it and dead keys never outnumber what was alive at the last sweep by
//! more than that.
//!
//! A key ends as it does on a real server when it is looked at: it is still there in the millisecond of its deadline,
//! and gone in the next.
//!
//! The map is ordered, so that two runs of a simulation see the same thing.

use std::collections::BTreeMap;

/// Below this many keys a sweep is not worth its while.
const SMALLEST_SWEEP: usize = 64;

/// A point of the node's own time, in milliseconds. A server counts from the Unix epoch, which shows in `TIME` only.
pub type Millis = u64;

/// One database of a store.
#[derive(Clone, Default)]
pub(super) struct Keyspace {
    entries: BTreeMap<Box<[u8]>, Entry>,
    /// The number of entries, dead ones included, at which the next sweep is due.
    sweep_at: usize,
}

#[derive(Clone)]
struct Entry {
    value: Box<[u8]>,
    /// The last millisecond of the key's life; `None` lives for ever.
    deadline: Option<Millis>,
}

impl Keyspace {
    /// The key's value.
    pub(super) fn value(&self, key: &[u8], now: Millis) -> Option<&[u8]> {
        self.live(key, now).map(|entry| &*entry.value)
    }

    /// The key's last millisecond: `None` without a key, `Some(None)` for a key that lives for ever.
    pub(super) fn deadline(&self, key: &[u8], now: Millis) -> Option<Option<Millis>> {
        self.live(key, now).map(|entry| entry.deadline)
    }

    /// Sets the key, whatever it held before.
    pub(super) fn set(&mut self, key: &[u8], value: &[u8], deadline: Option<Millis>, now: Millis) {
        if let Some(entry) = self.entries.get_mut(key) {
            // A lock's key gets a new token of the same length again and again: keep the allocation if it fits.
            if entry.value.len() == value.len() {
                entry.value.copy_from_slice(value);
            } else {
                entry.value = value.into();
            }
            entry.deadline = deadline;
            return;
        }
        if self.entries.len() >= self.sweep_at.max(SMALLEST_SWEEP) {
            self.entries.retain(|_, entry| entry.is_live(now));
            self.sweep_at = self.entries.len() * 2;
        }
        self.entries.insert(key.into(), Entry { value: value.into(), deadline });
    }

    /// Moves the key's end; false without a key. An end that is not in the future deletes it.
    pub(super) fn expire(&mut self, key: &[u8], deadline: Millis, now: Millis) -> bool {
        if deadline <= now {
            return self.remove(key, now);
        }
        match self.entries.get_mut(key) {
            Some(entry) if entry.is_live(now) => {
                entry.deadline = Some(deadline);
                true
            }
            _ => false,
        }
    }

    /// Deletes the key; false when there was none.
    pub(super) fn remove(&mut self, key: &[u8], now: Millis) -> bool {
        self.entries.remove(key).is_some_and(|entry| entry.is_live(now))
    }

    /// The live keys, in byte order.
    pub(super) fn keys(&self, now: Millis) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().filter(move |(_, entry)| entry.is_live(now)).map(|(key, _)| &**key)
    }

    /// Deletes every key.
    pub(super) fn clear(&mut self) {
        *self = Keyspace::default();
    }

    fn live(&self, key: &[u8], now: Millis) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| entry.is_live(now))
    }
}

impl Entry {
    fn is_live(&self, now: Millis) -> bool {
        self.deadline.is_none_or(|deadline| now <= deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_lives_through_the_millisecond_of_its_deadline() {
        let mut keyspace = Keyspace::default();
        keyspace.set(b"k", b"v", Some(10), 0);
        assert_eq!(keyspace.value(b"k", 10), Some(b"v".as_slice()));
        assert_eq!(keyspace.value(b"k", 11), None);
        assert_eq!((keyspace.keys(10).count(), keyspace.keys(11).count()), (1, 0));
        assert!(!keyspace.expire(b"k", 50, 11), "a dead key is not brought back");
        assert!(!keyspace.remove(b"k", 11));
    }

    #[test]
    fn an_end_that_has_come_deletes() {
        let mut keyspace = Keyspace::default();
        keyspace.set(b"k", b"v", None, 5);
        assert!(keyspace.expire(b"k", 5, 5));
        assert_eq!(keyspace.value(b"k", 5), None);
    }

    #[test]
    fn dead_keys_do_not_pile_up() {
        let mut keyspace = Keyspace::default();
        for now in 0..100_000u64 {
            keyspace.set(&now.to_be_bytes(), b"token", Some(now + 10), now);
            assert!(keyspace.entries.len() <= SMALLEST_SWEEP, "{} entries", keyspace.entries.len());
        }
    }

    #[test]
    fn live_keys_are_swept_seldom() {
        let mut keyspace = Keyspace::default();
        for number in 0..1000u64 {
            keyspace.set(&number.to_be_bytes(), b"token", None, 0);
        }
        assert_eq!(keyspace.keys(0).count(), 1000);
        assert!(keyspace.sweep_at >= 1000);
    }
}
