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

/// What the command of this name, in capitals, needs; none for an unknown one.
pub(super) fn needs(name: &str) -> Option<Needs> {
    Some(match name {
        "AUTH" | "INFO" | "PUBLISH" | "SELECT" | "SUBSCRIBE" | "TIME" => Nothing,
        "EVAL" | "EVALSHA" | "GET" | "GETRANGE" | "PING" | "PTTL" | "ZCARD" | "ZRANGE" => Data,
        "DEL" => Writes,
        "SET" | "ZADD" => Memory,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_are_unknown() {
        assert_eq!(needs("PUBLISH"), Some(Nothing));
        for name in [
            "",
            "SE",
            "SETX",
            "PUBLISHX",
            "HELLO",
            "A MUCH LONGER NAME",
            "SET\0",
        ] {
            assert_eq!(needs(name), None, "{name}");
        }
    }
}
