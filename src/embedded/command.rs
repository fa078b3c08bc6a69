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

static COMMANDS: [Command; 17] = [
    ("AUTH", 2..=MANY, Nothing),
    ("DEL", 2..=MANY, Writes),
    ("EVAL", 3..=MANY, Data),
    ("EVALSHA", 3..=MANY, Data),
    ("GET", 2..=2, Data),
    ("GETRANGE", 4..=4, Data),
    ("INFO", 1..=MANY, Nothing),
    ("PING", 1..=1, Data),
    ("PTTL", 2..=2, Data),
    ("PUBLISH", 3..=3, Nothing),
    ("SELECT", 2..=2, Nothing),
    ("SET", 3..=MANY, Memory),
    ("SUBSCRIBE", 2..=MANY, Nothing),
    ("TIME", 1..=1, Nothing),
    ("ZADD", 4..=MANY, Memory),
    ("ZCARD", 2..=2, Data),
    ("ZRANGE", 4..=MANY, Data),
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
        for name in ["publish", "PUBLISH", "Publish"] {
            assert_eq!(
                named(name.as_bytes()).map(|(name, ..)| *name),
                Some("PUBLISH")
            );
        }
    }

    #[test]
    fn other_names_are_unknown() {
        for name in [
            "",
            "SE",
            "SETX",
            "PUBLISHX",
            "HELLO",
            "a much longer name",
            "SET\0",
        ] {
            assert_eq!(named(name.as_bytes()), None, "{name}");
        }
    }
}
