//! The commands that the embedded node knows by name, and what a server checks before it runs one.
//!
//! What is not here is an unknown command, as it would be on a server that does not have it.

use super::config::{Condition, ServerKind};
use super::reply::Failure;
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

/// Whether a node in this condition runs a command that needs this.
///
/// # Errors
/// What it replies if not.
pub(super) fn check(needs: Needs, condition: Condition, kind: ServerKind) -> Result<(), Failure> {
    Err(match condition {
        Condition::Loading if needs > Nothing => match kind {
            ServerKind::Valkey9 => "LOADING Valkey is loading the dataset in memory".into(),
            _ => "LOADING Redis is loading the dataset in memory".into(),
        },
        Condition::OutOfMemory if needs == Memory => {
            "OOM command not allowed when used memory > 'maxmemory'.".into()
        }
        Condition::Replica if needs >= Writes => {
            "READONLY You can't write against a read only replica.".into()
        }
        _ => return Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_are_unknown() {
        assert_eq!(needs("PUBLISH"), Some(Nothing));
        for name in "|SE|SETX|PUBLISHX|HELLO|A MUCH LONGER NAME|SET\0".split('|') {
            assert_eq!(needs(name), None, "{name}");
        }
    }
}
