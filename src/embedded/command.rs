//! The commands that the embedded node knows by name, and what a server checks before it runs one.
//!
//! What is not here is an unknown command, as it would be on a server that does not have it.

use std::ops::RangeInclusive;

/// The longest name below.
const LONGEST_NAME: usize = 11;

/// A command by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Auth,
    Dbsize,
    Del,
    Delex,
    Delifeq,
    Echo,
    Eval,
    Evalsha,
    Exists,
    Flushall,
    Get,
    Getrange,
    Info,
    Msetex,
    Pexpire,
    Ping,
    Pttl,
    Publish,
    Role,
    Select,
    Set,
    Subscribe,
    Time,
    Unsubscribe,
    Zadd,
    Zcard,
    Zrange,
    Zrem,
    Zscore,
}

impl Command {
    /// The command of this name, in whatever case.
    pub(super) fn named(name: &[u8]) -> Option<Command> {
        let mut upper = [0; LONGEST_NAME];
        let upper = upper.get_mut(..name.len())?;
        upper.copy_from_slice(name);
        upper.make_ascii_uppercase();
        Some(match &*upper {
            b"AUTH" => Command::Auth,
            b"DBSIZE" => Command::Dbsize,
            b"DEL" => Command::Del,
            b"DELEX" => Command::Delex,
            b"DELIFEQ" => Command::Delifeq,
            b"ECHO" => Command::Echo,
            b"EVAL" => Command::Eval,
            b"EVALSHA" => Command::Evalsha,
            b"EXISTS" => Command::Exists,
            b"FLUSHALL" => Command::Flushall,
            b"GET" => Command::Get,
            b"GETRANGE" => Command::Getrange,
            b"INFO" => Command::Info,
            b"MSETEX" => Command::Msetex,
            b"PEXPIRE" => Command::Pexpire,
            b"PING" => Command::Ping,
            b"PTTL" => Command::Pttl,
            b"PUBLISH" => Command::Publish,
            b"ROLE" => Command::Role,
            b"SELECT" => Command::Select,
            b"SET" => Command::Set,
            b"SUBSCRIBE" => Command::Subscribe,
            b"TIME" => Command::Time,
            b"UNSUBSCRIBE" => Command::Unsubscribe,
            b"ZADD" => Command::Zadd,
            b"ZCARD" => Command::Zcard,
            b"ZRANGE" => Command::Zrange,
            b"ZREM" => Command::Zrem,
            b"ZSCORE" => Command::Zscore,
            _ => return None,
        })
    }

    /// How many words a request has, the name included.
    pub(super) fn arity(self) -> RangeInclusive<usize> {
        match self {
            Command::Dbsize | Command::Role | Command::Time => 1..=1,
            Command::Ping => 1..=2,
            Command::Flushall | Command::Info | Command::Unsubscribe => 1..=usize::MAX,
            Command::Echo | Command::Get | Command::Pttl | Command::Select | Command::Zcard => 2..=2,
            Command::Auth | Command::Del | Command::Exists | Command::Subscribe => 2..=usize::MAX,
            Command::Delex => 2..=4,
            Command::Getrange => 4..=4,
            Command::Delifeq | Command::Publish | Command::Zscore => 3..=3,
            Command::Eval | Command::Evalsha | Command::Pexpire | Command::Set | Command::Zrem => 3..=usize::MAX,
            Command::Msetex | Command::Zadd | Command::Zrange => 4..=usize::MAX,
        }
    }

    /// Whether a replica refuses it. `EVAL` is not among them: a script is refused where it writes.
    pub(super) fn writes(self) -> bool {
        matches!(
            self,
            Command::Del
                | Command::Delex
                | Command::Delifeq
                | Command::Flushall
                | Command::Msetex
                | Command::Pexpire
                | Command::Set
                | Command::Zadd
                | Command::Zrem
        )
    }

    /// Whether a server refuses it when its memory is full.
    pub(super) fn needs_memory(self) -> bool {
        matches!(self, Command::Msetex | Command::Set | Command::Zadd)
    }

    /// Whether a server answers it while it loads its data set. `PING` it does not.
    pub(super) fn answered_while_loading(self) -> bool {
        matches!(
            self,
            Command::Auth
                | Command::Echo
                | Command::Info
                | Command::Publish
                | Command::Role
                | Command::Select
                | Command::Subscribe
                | Command::Time
                | Command::Unsubscribe
        )
    }

    /// Whether it may be said on a connection that listens.
    pub(super) fn fits_a_listener(self) -> bool {
        matches!(self, Command::Ping | Command::Subscribe | Command::Unsubscribe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_case() {
        for name in ["flushall", "FLUSHALL", "FlushAll"] {
            assert_eq!(Command::named(name.as_bytes()), Some(Command::Flushall));
        }
    }

    #[test]
    fn other_names_are_unknown() {
        for name in ["", "SE", "SETX", "FLUSHALLX", "HELLO", "a much longer name", "SET\0"] {
            assert_eq!(Command::named(name.as_bytes()), None, "{name}");
        }
    }
}
