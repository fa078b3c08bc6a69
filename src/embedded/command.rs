//! The commands that the embedded node knows by name, and what a server checks before it runs one.
//!
//! What is not here is an unknown command, as it would be on a server that does not have it.

use Needs::{Data, Memory, Nothing, Writes};
use std::ops::RangeInclusive;

/// What a node must be able to do for a command, each what the one before it needs, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Needs {
    /// Answered even while the data set is loaded.
    Nothing,
    /// The data set. `PING` needs it, and so do scripts: they are refused where they write, and no
    /// sooner.
    Data,
    /// To be a master.
    Writes,
    /// Memory that is not full.
    Memory,
}

/// A command: its name, how many words a request has, the name included, and what it needs.
pub(super) type Command = (&'static str, RangeInclusive<usize>, Needs);

/// As many words as there are.
const MANY: usize = usize::MAX;

static COMMANDS: [Command; 26] = [
    ("AUTH", 2..=MANY, Nothing),
    ("DBSIZE", 1..=1, Data),
    ("DEL", 2..=MANY, Writes),
    ("ECHO", 2..=2, Nothing),
    ("EVAL", 3..=MANY, Data),
    ("EVALSHA", 3..=MANY, Data),
    ("EXISTS", 2..=MANY, Data),
    ("FLUSHALL", 1..=MANY, Writes),
    ("GET", 2..=2, Data),
    ("GETRANGE", 4..=4, Data),
    ("INFO", 1..=MANY, Nothing),
    ("PEXPIRE", 3..=MANY, Writes),
    ("PING", 1..=2, Data),
    ("PTTL", 2..=2, Data),
    ("PUBLISH", 3..=3, Nothing),
    ("ROLE", 1..=1, Nothing),
    ("SELECT", 2..=2, Nothing),
    ("SET", 3..=MANY, Memory),
    ("SUBSCRIBE", 2..=MANY, Nothing),
    ("TIME", 1..=1, Nothing),
    ("UNSUBSCRIBE", 1..=MANY, Nothing),
    ("ZADD", 4..=MANY, Memory),
    ("ZCARD", 2..=2, Data),
    ("ZRANGE", 4..=MANY, Data),
    ("ZREM", 3..=MANY, Writes),
    ("ZSCORE", 3..=3, Data),
];

/// The command of this name, in whatever case.
pub(super) fn named(name: &[u8]) -> Option<&'static Command> {
    COMMANDS
        .iter()
        .find(|(known, ..)| name.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_case() {
        for name in ["flushall", "FLUSHALL", "FlushAll"] {
            assert_eq!(
                named(name.as_bytes()).map(|(name, ..)| *name),
                Some("FLUSHALL")
            );
        }
    }

    #[test]
    fn other_names_are_unknown() {
        for name in [
            "",
            "SE",
            "SETX",
            "FLUSHALLX",
            "HELLO",
            "a much longer name",
            "SET\0",
        ] {
            assert_eq!(named(name.as_bytes()), None, "{name}");
        }
    }
}
