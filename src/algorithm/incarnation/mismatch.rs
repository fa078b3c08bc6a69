//! What programs that use one node do not agree on, as far as its note shows. It concerns no single
//! call: locks work.

use super::{Found, Look, Note, Rules, Seen};
use crate::algorithm::time::Human;
use std::fmt;
use std::time::Duration;

/// How what a node remembers does not fit this client: in an
/// [event](crate::event::Event::NodeMismatched), and from
/// [`NodeStatus::mismatches`](crate::NodeStatus::mismatches). `Display` explains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// A program has noted another `max_ttl`. The nodes keep the longest that any program has, and
    /// every program waits for that one after a loss of keys.
    MaxTtl {
        /// The other program's.
        noted: Duration,
        /// This client's.
        own: Duration,
    },
    /// A program has noted that its deployment has another number of nodes. Programs whose nodes
    /// differ may hold a lock at the same time.
    Nodes {
        /// The other program's.
        noted: usize,
        /// This client's.
        own: usize,
    },
    /// The user may not read or write the key of the node, `quorumlock-node:` and the prefix: its
    /// rights may be for another prefix. The client detects losses of keys only after it has
    /// connected to the node.
    Rights,
}

impl Rules {
    /// What does not fit this program, of what was seen of a node. `nodes`: the number of nodes of
    /// this program.
    pub fn mismatches(&self, seen: &Seen, nodes: usize) -> Vec<Mismatch> {
        let Seen::Look(Look {
            found: Found::Note(note),
            ..
        }) = seen
        else {
            return Vec::new();
        };
        let &Note {
            max_ttl,
            nodes: noted,
            ..
        } = note;
        let max_ttl = (max_ttl != self.max_ttl).then_some(Mismatch::MaxTtl {
            noted: max_ttl,
            own: self.max_ttl,
        });
        let noted = usize::from(noted);
        let nodes = (noted != nodes).then_some(Mismatch::Nodes { noted, own: nodes });
        max_ttl.into_iter().chain(nodes).collect()
    }
}

impl Mismatch {
    /// What it is about: `max_ttl`, `nodes` or `rights`.
    pub fn kind(&self) -> &'static str {
        match self {
            Mismatch::MaxTtl { .. } => "max_ttl",
            Mismatch::Nodes { .. } => "nodes",
            Mismatch::Rights => "rights",
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Mismatch::MaxTtl { noted, own } => {
                let longest = Human(noted.max(own));
                let noted = Human(noted);
                let own = Human(own);
                write!(
                    f,
                    "another program has noted a max_ttl of {noted}, this one has {own}: all wait for {longest}"
                )
            }
            Mismatch::Nodes { noted, own } => {
                write!(
                    f,
                    "another program has noted {noted} nodes, this one has {own}: two may hold a lock at once"
                )
            }
            Mismatch::Rights => {
                let effect = "losses of keys before this client has connected are not detected";
                write!(
                    f,
                    "the user may not use the key of the node, quorumlock-node: and the prefix: {effect}"
                )
            }
        }
    }
}
