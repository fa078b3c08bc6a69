//! One database: keys, their values, and when they end. A value is a string or a sorted set.
//!
//! A key whose end has come is gone for every reader from that moment on, whether or not its memory
//! has been given back. Memory is given back by a sweep over the whole database whenever it has
//! doubled since the last one, so that each insertion pays for a constant share of it and dead keys
//! never outnumber what was alive at the last sweep by more than that.
//!
//! A key ends as it does on a real server when it is looked at: it is still there in the
//! millisecond of its deadline, and gone in the next.
//!
//! The map is ordered, so that two runs of a simulation see the same thing.

use super::reply::WRONG_TYPE;
use super::sorted_set::{Member, SortedSet};
use std::collections::BTreeMap;

/// Below this many keys a sweep is not worth its while.
const SMALLEST_SWEEP: usize = 64;

/// A point of the node's own time, in milliseconds. A server counts from the Unix epoch, which
/// shows in `TIME` only.
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
    value: Value,
    /// The last millisecond of the key's life; `None` lives for ever.
    deadline: Option<Millis>,
}

#[derive(Clone)]
enum Value {
    Set(SortedSet),
    String(Box<[u8]>),
}

impl Keyspace {
    /// Whether there is such a key.
    pub(super) fn exists(&self, key: &[u8], now: Millis) -> bool {
        self.live(key, now).is_some()
    }

    /// The string under the key.
    ///
    /// # Errors
    /// The key holds something else.
    pub(super) fn string(&self, key: &[u8], now: Millis) -> Result<Option<&[u8]>, &'static str> {
        match self.live(key, now).map(|entry| &entry.value) {
            None => Ok(None),
            Some(Value::String(value)) => Ok(Some(value)),
            Some(Value::Set(_)) => Err(WRONG_TYPE),
        }
    }

    /// The members of the sorted set under the key; none without a key.
    ///
    /// # Errors
    /// The key holds something else.
    pub(super) fn members(&self, key: &[u8], now: Millis) -> Result<&[Member], &'static str> {
        match self.live(key, now).map(|entry| &entry.value) {
            None => Ok(&[]),
            Some(Value::Set(set)) => Ok(&set.members),
            Some(Value::String(_)) => Err(WRONG_TYPE),
        }
    }

    /// Changes the sorted set under the key. Without a key it is empty, and if it is empty
    /// afterwards there is no key.
    ///
    /// # Errors
    /// The key holds something else.
    pub(super) fn change_set<T>(
        &mut self,
        key: &[u8],
        now: Millis,
        change: impl FnOnce(&mut SortedSet) -> T,
    ) -> Result<T, &'static str> {
        self.make_room(now);
        let fresh = || Entry {
            value: Value::Set(SortedSet::default()),
            deadline: None,
        };
        let entry = self.entries.entry(key.into()).or_insert_with(fresh);
        if !entry.is_live(now) {
            *entry = fresh();
        }
        let Value::Set(set) = &mut entry.value else {
            return Err(WRONG_TYPE);
        };
        let result = change(set);
        if set.members.is_empty() {
            self.entries.remove(key);
        }
        Ok(result)
    }

    /// The key's last millisecond: `None` without a key, `Some(None)` for a key that lives for
    /// ever.
    pub(super) fn deadline(&self, key: &[u8], now: Millis) -> Option<Option<Millis>> {
        self.live(key, now).map(|entry| entry.deadline)
    }

    /// Sets the key, whatever it held before.
    pub(super) fn set(&mut self, key: &[u8], value: &[u8], deadline: Option<Millis>, now: Millis) {
        self.make_room(now);
        self.entries.insert(
            key.into(),
            Entry {
                value: Value::String(value.into()),
                deadline,
            },
        );
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
        self.entries
            .remove(key)
            .is_some_and(|entry| entry.is_live(now))
    }

    /// The live keys, in byte order.
    pub(super) fn keys(&self, now: Millis) -> impl Iterator<Item = &[u8]> {
        self.entries
            .iter()
            .filter(move |(_, entry)| entry.is_live(now))
            .map(|(key, _)| &**key)
    }

    /// Deletes every key.
    pub(super) fn clear(&mut self) {
        *self = Keyspace::default();
    }

    /// Sweeps, if it is time to.
    fn make_room(&mut self, now: Millis) {
        if self.entries.len() >= self.sweep_at.max(SMALLEST_SWEEP) {
            self.entries.retain(|_, entry| entry.is_live(now));
            self.sweep_at = self.entries.len() * 2;
        }
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
        assert_eq!(keyspace.string(b"k", 10), Ok(Some(b"v".as_slice())));
        assert_eq!(keyspace.string(b"k", 11), Ok(None));
        assert_eq!(
            (keyspace.keys(10).count(), keyspace.keys(11).count()),
            (1, 0)
        );
        assert!(
            !keyspace.expire(b"k", 50, 11),
            "a dead key is not brought back"
        );
        assert!(!keyspace.remove(b"k", 11));
    }

    #[test]
    fn an_end_that_has_come_deletes() {
        let mut keyspace = Keyspace::default();
        keyspace.set(b"k", b"v", None, 5);
        assert!(keyspace.expire(b"k", 5, 5));
        assert!(!keyspace.exists(b"k", 5));
    }

    #[test]
    fn a_key_has_a_value_of_one_kind() {
        let mut keyspace = Keyspace::default();
        assert_eq!(
            keyspace.change_set(b"k", 0, |set| set.remove(b"m")),
            Ok(false)
        );
        assert!(!keyspace.exists(b"k", 0), "a set without members is none");
        assert_eq!(
            keyspace.change_set(b"k", 0, |set| set.add(b"m", 1.0)),
            Ok(true)
        );
        assert_eq!(keyspace.string(b"k", 0), Err(WRONG_TYPE));
        assert_eq!(keyspace.members(b"k", 0).map(<[_]>::len), Ok(1));
        assert!(keyspace.expire(b"k", 5, 0));
        assert_eq!(
            keyspace.change_set(b"k", 6, |set| set.add(b"n", 1.0)),
            Ok(true),
            "the other one has ended"
        );
        assert_eq!(
            (
                keyspace.members(b"k", 6).map(<[_]>::len),
                keyspace.deadline(b"k", 6)
            ),
            (Ok(1), Some(None))
        );
        keyspace.set(b"k", b"v", None, 6);
        assert_eq!(keyspace.members(b"k", 6), Err(WRONG_TYPE));
        assert_eq!(
            keyspace.change_set(b"k", 6, |set| set.add(b"m", 1.0)),
            Err(WRONG_TYPE)
        );
        assert_eq!(keyspace.string(b"k", 6), Ok(Some(b"v".as_slice())));
    }

    #[test]
    fn dead_keys_do_not_pile_up() {
        let mut keyspace = Keyspace::default();
        for now in 0..100_000u64 {
            keyspace.set(&now.to_be_bytes(), b"token", Some(now + 10), now);
            assert!(
                keyspace.entries.len() <= SMALLEST_SWEEP,
                "{} entries",
                keyspace.entries.len()
            );
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
