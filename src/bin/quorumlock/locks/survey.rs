//! What each node has under which key.

use super::kind::Kind;
use super::reading::{Question, Reader};
use super::sighting::{Keys, Sighting};
use crate::connection::Trouble;
use crate::deployment::Deployment;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicUsize;

/// What all nodes have: of each its keys, or why it could not be asked.
pub(crate) struct Survey {
    pub(crate) nodes: Vec<Result<Keys, Trouble>>,
    pub(crate) quorum: usize,
}

impl Survey {
    /// Reads the keys of one lock: one for each kind that it may be of, and their queues.
    pub(crate) fn of_lock(deployment: &Deployment, name: &str) -> Survey {
        Survey::of_keys(deployment, &Kind::marks().map(|mark| mark + name).collect::<Vec<_>>())
    }

    /// Reads these keys, given without the prefix.
    pub(crate) fn of_keys(deployment: &Deployment, names: &[String]) -> Survey {
        Survey::read(deployment, Question::Names(names), &AtomicUsize::new(0))
    }

    /// Reads all keys whose names match the pattern, by `SCAN`, and counts those that it has found so far.
    pub(crate) fn of_pattern(deployment: &Deployment, pattern: &str, found: &AtomicUsize) -> Survey {
        let prefix = deployment.settings.prefix();
        // What the prefix has of a pattern's signs is meant as it stands.
        let escaped: String = prefix.chars().flat_map(escaped).collect();
        // A star in front stands for each mark as well.
        let count = if pattern.starts_with('*') { 1 } else { usize::MAX };
        let patterns: Vec<String> = Kind::marks().take(count).map(|mark| format!("{escaped}{mark}{pattern}")).collect();
        Survey::read(deployment, Question::Patterns(&patterns), found)
    }

    /// Names of all keys that any node has.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        self.nodes.iter().flatten().flat_map(BTreeMap::keys).map(String::as_str).collect()
    }

    /// What each node has under a name, in the order of the nodes.
    pub(crate) fn sightings<'s>(
        &'s self,
        name: &'s str,
    ) -> impl Iterator<Item = Result<Option<&'s Sighting>, &'s Trouble>> {
        self.nodes.iter().map(move |node| node.as_ref().map(|keys| keys.get(name)))
    }

    /// How many wait for the fair lock with this key, given without the prefix, by the node that knows of most.
    pub(crate) fn waiting(&self, name: &str) -> usize {
        let queue = format!("{}{name}", Kind::Queue.mark());
        self.sightings(&queue).flatten().flatten().map(|seen| seen.waiting).max().unwrap_or_default()
    }

    fn read(deployment: &Deployment, question: Question<'_>, found: &AtomicUsize) -> Survey {
        let reader = Reader { question, prefix: deployment.settings.prefix(), found };
        Survey { nodes: deployment.ask(|connection| reader.read(connection)), quorum: deployment.quorum() }
    }
}

fn escaped(letter: char) -> impl Iterator<Item = char> {
    let mark = matches!(letter, '*' | '?' | '[' | ']' | '\\' | '^').then_some('\\');
    mark.into_iter().chain([letter])
}
