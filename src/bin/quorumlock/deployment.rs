//! The nodes of one deployment, each asked on a thread of its own.

use crate::connection::{Connection, Trouble};
pub(crate) use crate::settings::Deployment;
use std::thread;

impl Deployment {
    /// Connects to the node of this index and logs in.
    pub(crate) fn open(&self, index: usize) -> Result<Connection, Trouble> {
        Connection::open(&self.builder, index)
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
        at_once(0..self.endpoints.len(), |index| ask(&mut self.open(index)?))
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
