//! The commands that a script runs, as `redis.pcall` runs them: on the node's keys and channels, under its condition.
//!
//! A node that may not write refuses a script where it writes, and no sooner: a replica each write, one whose memory is
//! full a write that needs some. A script that has written runs to its end: nothing is refused after its first write,
//! even if that one had no effect.

use super::config::Condition;
use super::expire;
use super::failure::ScriptFailure;
use super::keyspace::{Keyspace, Millis};
use super::numbers::number;
use super::pubsub::Exchange;
use super::reply::{NO_ARGUMENT, OUT_OF_MEMORY, READ_ONLY};
use super::set::deadline_of_set;
use super::sorted_set::Member;

/// A running script.
pub(super) struct Calls<'s> {
    condition: Condition,
    database: &'s mut Keyspace,
    exchange: &'s mut Exchange,
    has_written: bool,
    pub(super) now: Millis,
    script: &'static str,
}

impl<'s> Calls<'s> {
    /// The script of this text begins.
    pub(super) fn of(
        script: &'static str,
        database: &'s mut Keyspace,
        exchange: &'s mut Exchange,
        condition: Condition,
        now: Millis,
    ) -> Calls<'s> {
        Calls { condition, database, exchange, has_written: false, now, script }
    }

    /// `TIME`, in microseconds.
    pub(super) fn clock(&self) -> u64 {
        self.now.saturating_mul(1000)
    }

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<&[u8]>, ScriptFailure> {
        Ok(self.database.string(key, self.now)?)
    }

    pub(super) fn exists(&self, key: &[u8]) -> bool {
        self.database.exists(key, self.now)
    }

    pub(super) fn pttl(&self, key: &[u8]) -> i64 {
        expire::remaining(self.database, key, self.now)
    }

    /// `DEL`: whether there was such a key.
    pub(super) fn del(&mut self, key: &[u8]) -> Result<bool, ScriptFailure> {
        self.write("redis.pcall('DEL'", false)?;
        Ok(self.database.remove(key, self.now))
    }

    /// `SET key value PX milliseconds`.
    pub(super) fn set(&mut self, key: &[u8], value: &[u8], milliseconds: &[u8]) -> Result<(), ScriptFailure> {
        self.write("redis.pcall('SET'", true)?;
        self.database.set(key, value, Some(deadline_of_set(milliseconds, self.now)?), self.now);
        Ok(())
    }

    /// `PEXPIRE`: whether there is such a key.
    pub(super) fn pexpire(&mut self, key: &[u8], milliseconds: &[u8]) -> Result<bool, ScriptFailure> {
        self.write("redis.pcall('PEXPIRE'", false)?;
        Ok(expire::expire(self.database, key, milliseconds, self.now)?)
    }

    /// `PUBLISH`: how many connections receive it.
    pub(super) fn publish(&mut self, channel: Vec<u8>, message: &[u8]) -> usize {
        self.exchange.publish(channel, message)
    }

    /// The members of a sorted set with their scores, in order: `ZCARD`, `ZRANGE`, `ZRANK` and `ZSCORE`.
    pub(super) fn members(&self, key: &[u8]) -> Result<&[Member], ScriptFailure> {
        Ok(self.database.members(key, self.now)?)
    }

    pub(super) fn zadd(&mut self, key: &[u8], score: f64, member: &[u8]) -> Result<(), ScriptFailure> {
        self.write("redis.pcall('ZADD'", true)?;
        self.database.change_set(key, self.now, |set| set.add(member, score))?;
        Ok(())
    }

    /// `ZREM`: whether there was such a member.
    pub(super) fn zrem(&mut self, key: &[u8], member: &[u8]) -> Result<bool, ScriptFailure> {
        self.write("redis.pcall('ZREM'", false)?;
        Ok(self.database.change_set(key, self.now, |set| set.remove(member))?)
    }

    /// `ZREMRANGEBYSCORE key (score +inf`.
    pub(super) fn remove_above(&mut self, key: &[u8], score: f64) -> Result<(), ScriptFailure> {
        self.write("redis.pcall('ZREMRANGEBYSCORE'", false)?;
        Ok(self.database.change_set(key, self.now, |set| set.remove_above(score))?)
    }

    /// A command that writes is about to run; `grows`: one that servers refuse when their memory is full.
    fn write(&mut self, call: &str, grows: bool) -> Result<(), ScriptFailure> {
        let refusal = match self.condition {
            Condition::OutOfMemory if grows => Some(OUT_OF_MEMORY),
            Condition::Replica => Some(READ_ONLY),
            Condition::Loading | Condition::OutOfMemory | Condition::Serving => None,
        };
        match refusal {
            Some(error) if !self.has_written => Err(ScriptFailure::of_call(error, self.script, call)),
            _ => {
                self.has_written = true;
                Ok(())
            }
        }
    }
}

/// The arguments of a script, counted from 1 as there. To Lua, one that is missing is `nil`, which equals no string and
/// which no command takes for an argument.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a>(pub(super) &'a [&'a [u8]]);

impl<'a> Arguments<'a> {
    /// `ARGV[index]`.
    pub(super) fn at(self, index: usize) -> Option<&'a [u8]> {
        self.0.get(index.wrapping_sub(1)).copied()
    }

    /// `ARGV[index] or ''`.
    pub(super) fn or_empty(self, index: usize) -> &'a [u8] {
        self.at(index).unwrap_or_default()
    }

    /// `ARGV[index]`, where a script calculates with it.
    pub(super) fn number(self, index: usize) -> Result<u64, ScriptFailure> {
        Ok(self.at(index).and_then(number).ok_or(NO_ARGUMENT)?)
    }
}
