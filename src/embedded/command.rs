//! The commands that the embedded node knows by name, and what a server checks before it runs one.
//!
//! What is not here is an unknown command, as it would be on a server that does not have it.

use Needs::{Data, Memory, Nothing, Writes};

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

/// A command: its name, and what it needs.
pub(super) type Command = (&'static str, Needs);

static COMMANDS: [Command; 17] = [
    ("AUTH", Nothing),
    ("DEL", Writes),
    ("EVAL", Data),
    ("EVALSHA", Data),
    ("GET", Data),
    ("GETRANGE", Data),
    ("INFO", Nothing),
    ("PING", Data),
    ("PTTL", Data),
    ("PUBLISH", Nothing),
    ("SELECT", Nothing),
    ("SET", Memory),
    ("SUBSCRIBE", Nothing),
    ("TIME", Nothing),
    ("ZADD", Memory),
    ("ZCARD", Data),
    ("ZRANGE", Data),
];

/// The command of this name, in whatever case.
pub(super) fn named(name: &[u8]) -> Option<&'static Command> {
    COMMANDS
        .iter()
        .find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_case() {
        for name in ["publish", "PUBLISH", "Publish"] {
            assert_eq!(
                named(name.as_bytes()).map(|(name, _)| *name),
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
