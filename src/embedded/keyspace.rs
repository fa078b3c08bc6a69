//! One database: keys, their values, and when they end. A value is a string or a sorted set.
//!
//! A key ends as it does on a real server when it is looked at: it is still there in the
//! millisecond of its deadline, and gone in the next. The database is told the time before each
//! command. A key whose end has come is gone from that moment on, whether or not its memory has
//! been given back; a clock that is set back before that brings it back. Memory is given back by a
//! sweep over the whole database whenever it has doubled since the last one, so that each insertion
//! pays for a constant share of it.
//!
//! A sorted set has its members in the order of their scores, and of their bytes where the scores
//! are the same. Queues are such sets. All is linear: a queue has as many members as there are
//! calls that wait. A set without members is not stored: its key does not exist.
//!
//! The map is ordered, so that two runs of a simulation see the same thing.

use super::numbers::{integer, signed};
use super::reply::{Failure, WRONG_TYPE};
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
    now: Millis,
}

#[derive(Clone)]
struct Entry {
    value: Value,
    /// The last millisecond of the key's life; `None` lives for ever.
    deadline: Option<Millis>,
}

#[derive(Clone)]
enum Value {
    Set(Vec<Member>),
    String(Box<[u8]>),
}

/// A member of a sorted set. The score is a number or infinite.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) struct Member {
    pub(super) score: f64,
    pub(super) name: Box<[u8]>,
}

impl Keyspace {
    /// The time of the next command. Drops what has ended by then, if it is time to.
    pub(super) fn advance(&mut self, now: Millis) {
        self.now = now;
        if self.entries.len() >= self.sweep_at.max(SMALLEST_SWEEP) {
            self.entries.retain(|_, entry| entry.is_live(now));
            self.sweep_at = self.entries.len() * 2;
        }
    }

    /// Whether there is such a key.
    pub(super) fn exists(&self, key: &[u8]) -> bool {
        self.live(key, self.now).is_some()
    }

    /// The string under the key.
    ///
    /// # Errors
    /// The key holds something else.
    pub(super) fn string(&self, key: &[u8]) -> Result<Option<&[u8]>, Failure> {
        self.string_at(key, self.now)
    }

    /// The string under the key at another time.
    ///
    /// # Errors
    /// The key holds something else.
    pub(super) fn string_at(&self, key: &[u8], now: Millis) -> Result<Option<&[u8]>, Failure> {
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
    pub(super) fn members(&self, key: &[u8]) -> Result<&[Member], Failure> {
        match self.live(key, self.now).map(|entry| &entry.value) {
            None => Ok(&[]),
            Some(Value::Set(members)) => Ok(members),
            Some(Value::String(_)) => Err(WRONG_TYPE),
        }
    }

    /// Stores a member of a sorted set, or its new score; false if the member was there.
    ///
    /// # Errors
    /// The key holds something else.
    pub(super) fn add(&mut self, key: &[u8], score: f64, name: &[u8]) -> Result<bool, Failure> {
        self.change_set(key, |members| {
            let is_new = !remove(members, name);
            // A server keeps no sign of zero, as long as the set is small.
            let score = score + 0.0;
            let name = name.into();
            let member = Member { score, name };
            let rank = members.partition_point(|other| *other < member);
            members.insert(rank, member);
            is_new
        })
    }

    /// Removes a member of a sorted set; false if there was none.
    ///
    /// # Errors
    /// The key holds something else.
    pub(super) fn remove_member(&mut self, key: &[u8], name: &[u8]) -> Result<bool, Failure> {
        self.change_set(key, |members| remove(members, name))
    }

    /// Removes all members of a sorted set with a greater score.
    ///
    /// # Errors
    /// The key holds something else.
    pub(super) fn remove_above(&mut self, key: &[u8], score: f64) -> Result<(), Failure> {
        self.change_set(key, |members| {
            members.retain(|member| member.score <= score);
        })
    }

    /// Changes the sorted set under the key. Without a key it is empty, and if it is empty
    /// afterwards there is no key.
    fn change_set<T>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut Vec<Member>) -> T,
    ) -> Result<T, Failure> {
        let fresh = || Entry {
            value: Value::Set(Vec::new()),
            deadline: None,
        };
        let entry = self.entries.entry(key.into()).or_insert_with(fresh);
        if !entry.is_live(self.now) {
            *entry = fresh();
        }
        let Value::Set(members) = &mut entry.value else {
            return Err(WRONG_TYPE);
        };
        let result = change(members);
        if members.is_empty() {
            self.entries.remove(key);
        }
        Ok(result)
    }

    /// The key's last millisecond, at this time: `None` without a key, `Some(None)` for a key that
    /// lives for ever.
    pub(super) fn deadline_at(&self, key: &[u8], now: Millis) -> Option<Option<Millis>> {
        self.live(key, now).map(|entry| entry.deadline)
    }

    /// What `PTTL` replies: -2 without a key, -1 for a key that has no end.
    pub(super) fn remaining(&self, key: &[u8]) -> i64 {
        match self.deadline_at(key, self.now) {
            None => -2,
            Some(None) => -1,
            Some(Some(deadline)) => signed(deadline.saturating_sub(self.now)),
        }
    }

    /// The end of a key that is set for a number of milliseconds from now on.
    ///
    /// # Errors
    /// What a server replies to a number that it cannot use.
    pub(super) fn deadline_of_set(&self, milliseconds: &[u8]) -> Result<Millis, Failure> {
        let delay = integer(milliseconds)?;
        let deadline = signed(self.now).checked_add(delay).filter(|_| delay > 0);
        let invalid = "ERR invalid expire time in 'set' command";
        Ok(deadline.ok_or(invalid)?.unsigned_abs())
    }

    /// Sets the key, whatever it held before.
    pub(super) fn set(&mut self, key: &[u8], value: &[u8], deadline: Option<Millis>) {
        let value = Value::String(value.into());
        self.entries.insert(key.into(), Entry { value, deadline });
    }

    /// Does what `PEXPIRE` does; false without a key. An end that is not in the future deletes it.
    ///
    /// # Errors
    /// What a server replies to a number that it cannot use.
    pub(super) fn expire(&mut self, key: &[u8], milliseconds: &[u8]) -> Result<bool, Failure> {
        let invalid = "ERR invalid expire time in 'pexpire' command";
        let deadline = signed(self.now).checked_add(integer(milliseconds)?);
        let deadline = deadline.ok_or(invalid)?.max(0).unsigned_abs();
        if deadline <= self.now {
            return Ok(self.remove(key));
        }
        let entry = self.entries.get_mut(key);
        let live = entry.filter(|entry| entry.is_live(self.now));
        Ok(live.map(|entry| entry.deadline = Some(deadline)).is_some())
    }

    /// Deletes the key; false when there was none.
    pub(super) fn remove(&mut self, key: &[u8]) -> bool {
        let removed = self.entries.remove(key);
        removed.is_some_and(|entry| entry.is_live(self.now))
    }

    /// The keys at a time, in byte order.
    pub(super) fn keys_at(&self, now: Millis) -> impl Iterator<Item = &[u8]> {
        let live = self
            .entries
            .iter()
            .filter(move |(_, entry)| entry.is_live(now));
        live.map(|(key, _)| &**key)
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

fn remove(members: &mut Vec<Member>, name: &[u8]) -> bool {
    let rank = members.iter().position(|member| *member.name == *name);
    rank.map(|rank| members.remove(rank)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_a_value_of_one_kind() {
        let mut keyspace = Keyspace::default();
        assert_eq!(keyspace.remove_member(b"k", b"m"), Ok(false));
        assert!(!keyspace.exists(b"k"), "a set without members is none");
        assert_eq!(keyspace.add(b"k", 1.0, b"m"), Ok(true));
        assert_eq!(keyspace.string(b"k"), Err(WRONG_TYPE));
        assert_eq!(keyspace.members(b"k").map(<[_]>::len), Ok(1));
        assert_eq!(keyspace.expire(b"k", b"5"), Ok(true));
        keyspace.advance(6);
        assert_eq!(
            keyspace.add(b"k", 1.0, b"n"),
            Ok(true),
            "the other one has ended"
        );
        assert_eq!(
            (
                keyspace.members(b"k").map(<[_]>::len),
                keyspace.deadline_at(b"k", 6)
            ),
            (Ok(1), Some(None))
        );
        keyspace.set(b"k", b"v", None);
        assert_eq!(keyspace.members(b"k"), Err(WRONG_TYPE));
        assert_eq!(keyspace.add(b"k", 1.0, b"m"), Err(WRONG_TYPE));
        assert_eq!(keyspace.string(b"k"), Ok(Some(b"v".as_slice())));
    }

    #[test]
    fn members_are_in_the_order_of_scores_and_then_of_bytes() {
        let mut keyspace = Keyspace::default();
        for (name, score) in [
            ("c", 2.0),
            ("b", 1.0),
            ("d", f64::INFINITY),
            ("a", 2.0),
            ("e", f64::NEG_INFINITY),
        ] {
            assert_eq!(keyspace.add(b"k", score, name.as_bytes()), Ok(true));
        }
        assert_eq!(keyspace.add(b"k", 2.0, b"b"), Ok(false), "it is moved");
        let names = |keyspace: &Keyspace| {
            keyspace
                .members(b"k")
                .unwrap()
                .iter()
                .map(|member| member.name[0] as char)
                .collect::<String>()
        };
        assert_eq!(names(&keyspace), "eabcd");
        assert_eq!(keyspace.members(b"k").unwrap()[3].score, 2.0);
        assert_eq!(keyspace.remove_member(b"k", b"a"), Ok(true));
        assert_eq!(keyspace.remove_member(b"k", b"a"), Ok(false));
        keyspace.remove_above(b"k", 2.0).unwrap();
        assert_eq!(names(&keyspace), "ebc");
    }

    #[test]
    fn dead_keys_do_not_pile_up() {
        let mut keyspace = Keyspace::default();
        for now in 0..100_000u64 {
            keyspace.advance(now);
            keyspace.set(&now.to_be_bytes(), b"token", Some(now + 10));
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
            keyspace.advance(1);
            keyspace.set(&number.to_be_bytes(), b"token", None);
        }
        assert_eq!(keyspace.keys_at(keyspace.now).count(), 1000);
        assert!(keyspace.sweep_at >= 1000);
    }
}
