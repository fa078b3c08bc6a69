//! What a node answers, by the rule that is proved and by weaker ones.

use crate::world::CLIENTS;

/// When a node grants, and what an extension does there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// An extension sets an entry that has ended, or was removed, once more.
    ExtendsWhatHasEnded,
    /// The extension of a writer makes its entry a writer's, also when it has been downgraded: the
    /// only entry.
    ExtensionUpgrades,
    /// A node that has lost its keys votes at once.
    NoQuarantine,
    /// The library's.
    Proved,
    /// The last node grants a read while a writer's entry lives.
    ReadIgnoresWriterAtOne,
    /// All entries of a node end together: when the one ends that was set or extended last.
    SharedTtl,
    /// The last node grants a write while readers' entries live.
    WriteIgnoresReadersAtOne,
}

/// The entry of a client on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// Which lease of its client it lasts for: its first, the extended one, or the one of the
    /// downgrade.
    pub(crate) lease: u8,
    pub(crate) writes: bool,
}

/// The entries that live on a node, of each client.
pub(crate) type Entries = [Option<Entry>; CLIENTS];

impl Rule {
    /// Whether a node grants, by the entries of the others that live there.
    pub(crate) fn grants(
        self,
        entries: &Entries,
        client: usize,
        writes: bool,
        is_last_node: bool,
    ) -> bool {
        let mut others = (0..CLIENTS)
            .filter(|&other| other != client)
            .filter_map(|other| entries[other]);
        match (writes, is_last_node) {
            (true, true) if self == Rule::WriteIgnoresReadersAtOne => {
                others.all(|other| !other.writes)
            }
            (false, true) if self == Rule::ReadIgnoresWriterAtOne => true,
            (true, _) => others.next().is_none(),
            (false, _) => others.all(|other| !other.writes),
        }
    }

    /// What an extension leaves of the client's entry, and whether the node acknowledges it.
    pub(crate) fn extended(self, entries: &mut Entries, client: usize, asked: Entry) -> bool {
        let Some(own) = entries[client] else {
            if self == Rule::ExtendsWhatHasEnded {
                entries[client] = Some(asked);
            }
            return self == Rule::ExtendsWhatHasEnded;
        };
        if asked.writes && !own.writes {
            if self == Rule::ExtensionUpgrades {
                // A writer's is the only entry that there can be.
                *entries = [None; CLIENTS];
                entries[client] = Some(asked);
            }
            return self == Rule::ExtensionUpgrades;
        }
        entries[client] = Some(asked);
        true
    }
}
