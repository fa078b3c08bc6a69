//! A script that runs: its key and arguments, and the commands in it, as `redis.pcall` runs them:
//! on the node's keys and channels, under its condition.
//!
//! A node that may not write refuses a script where it writes, and no sooner: a replica each write,
//! one whose memory is full a write that needs some. A script that has written runs to its end:
//! nothing is refused after its first write, even if that one had no effect.

use super::command;
use super::command::Needs::{self, Memory, Writes};
use super::config::{Condition, ServerKind};
use super::keyspace::{Keyspace, Member, Millis};
use super::options;
use super::pubsub::Exchange;
use super::reply::{Failure, NO_ARGUMENT};
use crate::protocol::key_space;
use crate::protocol::kinds::number::number;

/// What the key of a queue begins with; the key of the lock follows.
pub(super) const QUEUE: &[u8] = key_space::QUEUE.as_bytes();

/// A running script.
pub(super) struct Calls<'s> {
    /// The arguments. To Lua, one that is missing is `nil`, which equals no string and which no
    /// command takes for an argument.
    pub(super) arguments: &'s [&'s [u8]],
    pub(super) condition: Condition,
    pub(super) database: &'s mut Keyspace,
    pub(super) exchange: &'s mut Exchange,
    pub(super) has_written: bool,
    /// `KEYS[1]`.
    pub(super) key: &'s [u8],
    pub(super) kind: ServerKind,
    pub(super) now: Millis,
    /// The key of the lock's queue.
    pub(super) queue: Vec<u8>,
    /// The text of the script.
    pub(super) script: &'static str,
}

impl<'s> Calls<'s> {
    /// `ARGV[index]`.
    pub(super) fn argument(&self, index: usize) -> Option<&'s [u8]> {
        self.arguments.get(index.wrapping_sub(1)).copied()
    }

    /// `ARGV[index] or ''`.
    pub(super) fn text(&self, index: usize) -> &'s [u8] {
        self.argument(index).unwrap_or_default()
    }

    /// `ARGV[index]`, where a script calculates with it.
    pub(super) fn number(&self, index: usize) -> Result<u64, Failure> {
        self.argument(index).and_then(number).ok_or(NO_ARGUMENT)
    }

    /// `TIME`, in microseconds.
    pub(super) fn clock(&self) -> u64 {
        self.now.saturating_mul(1000)
    }

    /// `GET`, of a string.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<&[u8]>, Failure> {
        self.database.string(key)
    }

    /// What the key of the lock holds; none if that is no value of such a lock.
    pub(super) fn stored<V: Default>(&self, parse: fn(&[u8]) -> Option<V>) -> Option<V> {
        let value = self.get(self.key).ok()?;
        value.map_or_else(|| Some(V::default()), parse)
    }

    /// `DEL`: whether there was such a key.
    pub(super) fn del(&mut self, key: &[u8]) -> Result<bool, Failure> {
        Ok(self.write("DEL", Writes)?.remove(key))
    }

    /// `SET KEYS[1] value PX milliseconds`.
    pub(super) fn set(&mut self, value: &[u8], milliseconds: &[u8]) -> Result<(), Failure> {
        self.set_with(value, &[b"PX", milliseconds])
    }

    /// `SET KEYS[1] value`, with these options.
    pub(super) fn set_with(&mut self, value: &[u8], options: &[&[u8]]) -> Result<(), Failure> {
        let key = self.key;
        options::set(self.write("SET", Memory)?, key, value, options).map(drop)
    }

    /// Sets a key that is there, also if the memory of the node is full: after any write it is not
    /// refused.
    pub(super) fn set_again(&mut self, value: &[u8], milliseconds: &[u8]) -> Result<(), Failure> {
        let done = self.set(value, milliseconds);
        if done.is_err() && self.pexpire(self.key, milliseconds) == Ok(true) {
            return self.set(value, milliseconds);
        }
        done
    }

    /// `PEXPIRE`: whether there is such a key.
    pub(super) fn pexpire(&mut self, key: &[u8], milliseconds: &[u8]) -> Result<bool, Failure> {
        self.write("PEXPIRE", Writes)?.expire(key, milliseconds)
    }

    /// `PUBLISH`: whether a connection receives it.
    pub(super) fn publish(&mut self, channel: Vec<u8>, message: &[u8]) -> bool {
        self.exchange.publish(channel, message) > 0
    }

    /// The entries of the queue with their scores, in order: `ZCARD`, `ZRANGE`, `ZRANK` and
    /// `ZSCORE`. A key that holds something else has none.
    pub(super) fn members(&self) -> &[Member] {
        self.database.members(&self.queue).unwrap_or_default()
    }

    /// `ZADD`, to the queue.
    pub(super) fn zadd(&mut self, score: f64, member: &[u8]) -> Result<bool, Failure> {
        self.write("ZADD", Memory)?;
        self.database.add(&self.queue, score, member)
    }

    /// `ZREM`, from the queue: whether there was such a member, and it is removed.
    pub(super) fn zrem(&mut self, member: &[u8]) -> Result<bool, Failure> {
        self.write("ZREM", Writes)?;
        self.database.remove_member(&self.queue, member)
    }

    /// `ZREMRANGEBYSCORE queue (score +inf`.
    pub(super) fn remove_above(&mut self, score: f64) -> Result<(), Failure> {
        self.write("ZREMRANGEBYSCORE", Writes)?;
        self.database.remove_above(&self.queue, score)
    }

    /// The database, for a command that writes and is about to run. Before Redis 7.0, the error of
    /// a command that the server did not run names the line of the script.
    fn write(&mut self, command: &str, needs: Needs) -> Result<&mut Keyspace, Failure> {
        let refusal = command::check(needs, self.condition, self.kind);
        let Some(error) = refusal.err().filter(|_| !self.has_written) else {
            self.has_written = true;
            return Ok(&mut *self.database);
        };
        if self.kind != ServerKind::Redis62 {
            return Err(error);
        }
        let before = self
            .script
            .split(&format!("redis.pcall('{command}'"))
            .next()
            .unwrap_or_default();
        Err(format!(
            "@user_script: {}: -{error}",
            before.matches('\n').count() + 1
        )
        .into())
    }
}
