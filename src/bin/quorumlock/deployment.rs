//! The nodes of one deployment, each asked on a thread of its own.

use crate::connection::{Connection, Trouble};
use crate::exit::Failure;
use crate::settings::Settings;
use quorumlock::NodeTarget;
use std::thread;

/// All nodes, in the order in which they are named.
pub(crate) struct Deployment {
    pub(crate) settings: Settings,
    pub(crate) targets: Vec<NodeTarget>,
}

impl Deployment {
    pub(crate) fn new(settings: Settings) -> Result<Deployment, Failure> {
        Ok(Deployment {
            targets: settings.targets()?,
            settings,
        })
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.targets
            .iter()
            .map(|target| target.endpoint().to_string())
            .collect()
    }

    /// How many nodes are a majority.
    pub(crate) fn quorum(&self) -> usize {
        self.targets.len() / 2 + 1
    }

    /// Asks all nodes at once. A node that cannot be asked keeps none of the others waiting.
    pub(crate) fn ask<T: Send>(
        &self,
        ask: impl Fn(&mut Connection) -> Result<T, Trouble> + Sync,
    ) -> Vec<Result<T, Trouble>> {
        self.each(|target| ask(&mut Connection::open(target)?))
    }

    /// Does something for each node, all at once.
    pub(crate) fn each<T: Send>(&self, work: impl Fn(&NodeTarget) -> T + Sync) -> Vec<T> {
        at_once(&self.targets, work)
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
