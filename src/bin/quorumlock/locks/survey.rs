//! What each node has under which key.

use super::queue::{self, Queue};
use super::reading::Reader;
use super::sighting::{Keys, Sighting};
use crate::connection::Trouble;
use crate::deployment::Deployment;
use crate::exit::{self, Exit};
use crate::report;
use quorumlock::protocol::endpoint::Endpoint;
use quorumlock::protocol::{key_space, kinds};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a node has under a key.
pub(crate) type Seen<'s> = Result<Option<&'s Sighting>, &'s Trouble>;

/// What all nodes have: of each its keys, or why it could not be asked.
pub(crate) struct Survey {
    pub(crate) nodes: Vec<Result<Keys, Trouble>>,
    /// How each node is called, in their order.
    pub(crate) addresses: Vec<String>,
    pub(crate) prefix: String,
}

impl Survey {
    /// Reads the keys of one lock, one for each kind that it may be of, and their queues.
    pub(crate) fn of_lock(deployment: &Deployment, name: &str) -> Survey {
        let keys = kinds::KEYS.map(|kind| kind.key(deployment.prefix(), name));
        // No lock has a name that begins with a marker: such a key is the key of a queue.
        let keys = keys
            .into_iter()
            .filter(|key| key_space::lock(key).is_some());
        let keys: Vec<String> = keys.collect();
        report::during("asking the nodes", || Survey::of_keys(deployment, &keys))
    }

    /// Reads these keys of locks, and their queues.
    pub(crate) fn of_keys(deployment: &Deployment, keys: &[String]) -> Survey {
        Survey::read(deployment, keys, false, &AtomicUsize::new(0))
    }

    /// Reads all keys of locks whose names match the pattern, by `SCAN`.
    pub(crate) fn of_pattern(deployment: &Deployment, pattern: &str) -> Survey {
        let prefix = deployment.prefix();
        // A pattern's signs in the prefix are literal.
        let escaped: String = prefix.chars().flat_map(escaped).collect();
        // Without a prefix, a star in front matches each marker as well.
        let count = if prefix.is_empty() && pattern.starts_with('*') {
            1
        } else {
            usize::MAX
        };
        let kinds = kinds::KEYS.into_iter().take(count);
        let patterns: Vec<String> = kinds.map(|kind| kind.key(&escaped, pattern)).collect();
        let found = AtomicUsize::new(0);
        let progress = || {
            let found = found.load(Ordering::Relaxed);
            format!("asking the nodes for their keys: {found} found")
        };
        report::with_progress(progress, report::to_stderr, || {
            Survey::read(deployment, &patterns, true, &found)
        })
    }

    /// How many nodes are a majority.
    pub(crate) fn quorum(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    /// Whether too few nodes have answered.
    pub(crate) fn lacks_quorum(&self) -> bool {
        self.nodes.iter().flatten().count() < self.quorum()
    }

    /// This exit code, unless too few nodes have answered.
    pub(crate) fn exit(&self, exit: Exit) -> Exit {
        if self.lacks_quorum() {
            exit::UNAVAILABLE
        } else {
            exit
        }
    }

    /// Names the nodes that could not be asked.
    pub(crate) fn complain_of_silent(&self) {
        for (node, address) in self.nodes.iter().zip(&self.addresses) {
            if let Err(trouble) = node {
                report::complain(&format!("{address}: {trouble}"));
            }
        }
    }

    /// All keys of locks that any node has.
    pub(crate) fn keys(&self) -> BTreeSet<&str> {
        self.nodes
            .iter()
            .flatten()
            .flat_map(|node| node.locks.keys())
            .map(String::as_str)
            .collect()
    }

    /// What each node has under a key, in the order of the nodes.
    pub(crate) fn sightings<'s>(&'s self, key: &'s str) -> impl Iterator<Item = Seen<'s>> {
        self.nodes
            .iter()
            .map(move |node| node.as_ref().map(|keys| keys.locks.get(key)))
    }

    /// The name of the lock with this key.
    pub(crate) fn name_of<'k>(&self, key: &'k str) -> &'k str {
        key_space::name(key, self.prefix.len())
    }

    /// The queue of the lock with this key, on each node in their order.
    pub(crate) fn queues(&self, key: &str) -> impl Iterator<Item = Queue> {
        let keys: Vec<String> = queue::keys(key, true).collect();
        self.nodes.iter().map(move |node| {
            let queues = node
                .iter()
                .flat_map(|node| keys.iter().filter_map(|key| node.queues.get(key)));
            queues
                .max_by_key(|queue| queue.count)
                .cloned()
                .unwrap_or_default()
        })
    }

    /// The queue of the lock with this key, on all nodes together.
    pub(crate) fn queue(&self, key: &str) -> Queue {
        Queue::of_nodes(self.queues(key))
    }

    fn read(
        deployment: &Deployment,
        wanted: &[String],
        is_listing: bool,
        found: &AtomicUsize,
    ) -> Survey {
        let prefix = deployment.prefix();
        let reader = Reader {
            wanted,
            is_listing,
            prefix,
            found,
        };
        let nodes = deployment.ask(|connection| reader.read(connection));
        Survey {
            nodes,
            addresses: deployment
                .endpoints
                .iter()
                .map(Endpoint::to_string)
                .collect(),
            prefix: prefix.to_owned(),
        }
    }
}

fn escaped(letter: char) -> impl Iterator<Item = char> {
    let mark = matches!(letter, '*' | '?' | '[' | ']' | '\\' | '^').then_some('\\');
    mark.into_iter().chain([letter])
}
