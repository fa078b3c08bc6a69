//! The names by which a server process and the history of its data are distinguished from others.

use std::fmt;

/// The random name that a server process draws at its start: another process, another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunId([u8; 40]);

impl RunId {
    /// The name as a server reports it; none unless it has forty characters.
    pub fn new(name: &[u8]) -> Option<RunId> {
        name.try_into().ok().map(RunId)
    }

    /// The name as the server reported it.
    pub fn as_text(&self) -> &[u8] {
        &self.0
    }
}

/// Shows the beginning, enough to tell one process from another.
impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |&byte: &u8| {
            if byte.is_ascii_hexdigit() {
                char::from(byte)
            } else {
                '?'
            }
        };
        self.0[..8]
            .iter()
            .map(shown)
            .try_for_each(|digit| write!(f, "{digit}"))
    }
}

/// The names of the history that a server's data belong to: the present one, and the one that ended
/// with its last promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicationIds {
    current: [u8; 40],
    former: [u8; 40],
}

impl ReplicationIds {
    /// The present name and the former one, as a server reports them; none unless both have forty
    /// characters.
    pub fn new(current: &[u8], former: &[u8]) -> Option<ReplicationIds> {
        Some(ReplicationIds {
            current: current.try_into().ok()?,
            former: former.try_into().ok()?,
        })
    }

    /// The present name and the former one, as the server reported them.
    pub fn as_text(&self) -> (&[u8], &[u8]) {
        (&self.current, &self.former)
    }

    /// Whether the process that reported `earlier` was a replica between then and now.
    ///
    /// A promotion draws a new name and keeps the former one. A new name without a former one is no
    /// sign: a master draws one when its first replica comes or its backlog is freed, and a process
    /// that has loaded its data keeps the former name of its last life and its own new one.
    pub fn show_a_promotion_since(&self, earlier: &ReplicationIds) -> bool {
        self.current != earlier.current && self.former != [b'0'; 40]
    }
}
