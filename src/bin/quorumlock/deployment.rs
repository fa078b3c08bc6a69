//! The nodes of one deployment, each asked on a thread of its own.

use crate::connection::{Connection, Node, Trouble};
use crate::exit::Failure;
use crate::settings::Settings;
use quorumlock::Builder;
use quorumlock::protocol::endpoint::Endpoint;
use std::thread;

/// All nodes, in the order in which they are named.
pub(crate) struct Deployment {
    pub(crate) settings: Settings,
    builder: Builder,
    endpoints: Vec<Endpoint>,
}

impl Deployment {
    pub(crate) fn new(settings: Settings) -> Result<Deployment, Failure> {
        // Its settings are checked before any node is asked.
        settings.client()?;
        Ok(Deployment {
            builder: settings.builder()?,
            endpoints: settings.endpoints(),
            settings,
        })
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        let node = |(index, endpoint)| Node {
            builder: &self.builder,
            index,
            endpoint,
        };
        self.endpoints.iter().enumerate().map(node)
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.endpoints.iter().map(Endpoint::to_string).collect()
    }

    /// How many nodes are a majority.
    pub(crate) fn quorum(&self) -> usize {
        self.endpoints.len() / 2 + 1
    }

    /// Asks all nodes at once. A node that cannot be asked keeps none of the others waiting.
    pub(crate) fn ask<T: Send>(
        &self,
        ask: impl Fn(&mut Connection) -> Result<T, Trouble> + Sync,
    ) -> Vec<Result<T, Trouble>> {
        at_once(self.nodes(), |node| ask(&mut Connection::open(&node)?))
    }
}

/// Does something for each of these, each on a thread of its own. The results are in their order.
pub(crate) fn at_once<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = items
            .into_iter()
            .map(|item| scope.spawn(move || work(item)))
            .collect();
        let join = |panicked| std::panic::resume_unwind(panicked);
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(join))
            .collect()
    })
}
