//! What a node remembers of itself, for people.

use super::{Origin, Rules, Seen};
use crate::algorithm::time::Human;
use std::fmt;
use std::time::Duration;

/// What a node remembers of itself, for programs that have just started: from
/// [`NodeStatus::note`](crate::NodeStatus::note). `Display` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeNote {
    /// The deployment began with the node, and it has lost no key since.
    Founder {
        /// How long ago that was noted.
        age: Duration,
    },
    /// No note about the node as it is now: it has joined or lost its keys, and fewer than a quorum
    /// of nodes reply, so that nothing is noted. Its votes do not count.
    Missing,
    /// The node has joined or lost its keys, and has lost none since. Its votes count when
    /// [`max_ttl`](crate::Builder::max_ttl) has passed, the longest of any program.
    Since {
        /// How long ago that was noted.
        age: Duration,
    },
    /// Not known: the client is not connected to it.
    Unknown,
    /// The node tells nothing: the user may not use its key, `quorumlock-node:` and the prefix, or
    /// withholds `INFO`, or the server has no scripts. Only a loss of keys that a program itself
    /// detects keeps the node from voting.
    Withheld,
}

impl Rules {
    /// What was seen of a node, a while after that.
    pub fn summary(&self, seen: &Seen, passed: Duration) -> NodeNote {
        let look = match seen {
            Seen::Silent => return NodeNote::Unknown,
            Seen::Untold => return NodeNote::Withheld,
            Seen::Look(look) => look,
        };
        let Some(note) = self.note(look) else {
            return NodeNote::Missing;
        };
        let age = look.age(note) + passed;
        match note.origin {
            Origin::Founder => NodeNote::Founder { age },
            Origin::Since => NodeNote::Since { age },
        }
    }
}

impl fmt::Display for NodeNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeNote::Founder { age } => {
                write!(f, "the deployment began with it {} ago", Human(*age))
            }
            NodeNote::Missing => {
                f.write_str("it joined or lost its keys, and fewer than a quorum of nodes reply")
            }
            NodeNote::Since { age } => write!(
                f,
                "it joined or lost its keys {} ago or earlier",
                Human(*age)
            ),
            NodeNote::Unknown => f.write_str("it was not asked"),
            NodeNote::Withheld => f.write_str(
                "it tells nothing of losses (no right to its key, no INFO or no scripts)",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_note_says_what_a_person_can_act_on() {
        let age = Duration::from_secs(90);
        for (note, words) in [
            (NodeNote::Founder { age }, "began with it 90 s ago"),
            (NodeNote::Missing, "fewer than a quorum"),
            (NodeNote::Since { age }, "lost its keys 90 s ago or earlier"),
            (NodeNote::Unknown, "not asked"),
            (NodeNote::Withheld, "no right to its key"),
        ] {
            assert!(note.to_string().contains(words), "{note}");
        }
    }
}
