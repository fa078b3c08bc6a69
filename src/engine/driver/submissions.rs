//! Submissions: what threads want done, on its way to the thread that does it.
//!
//! The queue has a lock of its own, which is held for a few instructions. While it is *open*, a
//! thread has the duty to begin what is in it, and other threads leave their submissions there and
//! sleep: no thread but one needs the connections. A thread that finds it closed opens it, and has
//! the duty.

use super::reactor::Reactor;
use super::wait_cell::WaitCell;
use std::sync::Arc;

/// The queue of one client.
pub(super) struct Submissions<R: Reactor> {
    pub(super) list: Vec<Submitted<R>>,
    /// Never without a hold, unless a thread is on its way to the mutex of the connections.
    pub(super) is_open: bool,
}

pub(super) enum Submitted<R: Reactor> {
    /// A thread sleeps on the cell until there is a verdict.
    Awaited(R::Submission, Arc<WaitCell<R::Verdict>>),
    /// No thread waits for it.
    Posted(R::Posting),
}

impl<R: Reactor> Submissions<R> {
    /// Empty, and closed.
    pub(super) const NONE: Submissions<R> = Submissions {
        list: Vec::new(),
        is_open: false,
    };

    /// The cell of the first thread in the queue.
    pub(super) fn first_awaited(&self) -> Option<Arc<WaitCell<R::Verdict>>> {
        self.list.iter().find_map(|submitted| match submitted {
            Submitted::Awaited(_, cell) => Some(Arc::clone(cell)),
            Submitted::Posted(_) => None,
        })
    }
}
