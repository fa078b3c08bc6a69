//! Submissions: what threads want done, on its way to the thread that does it.
//!
//! The queue has a lock of its own, which is held for a few instructions. While it is *open*, a thread has the duty to
//! begin what is in it, and other threads leave their submissions there and sleep: no thread but one needs the
//! connections. A thread that finds it closed opens it, and has the duty.

use super::reactor::Reactor;
use super::wait_cell::WaitCell;
use crate::algorithm::time::Timestamp;
use crate::os::sync::{Mutex, MutexGuard, lock};
use std::sync::Arc;

/// The queue of one client.
pub(super) struct Submissions<R: Reactor> {
    queue: Mutex<SubmissionQueue<R>>,
}

pub(super) struct SubmissionQueue<R: Reactor> {
    pub(super) list: Vec<Submitted<R>>,
    is_open: bool,
}

pub(super) enum Submitted<R: Reactor> {
    /// A thread has slept on the cell since then, until there is a verdict.
    Awaited(R::Submission, Timestamp, Arc<WaitCell<R::Verdict>>),
    Posted(R::Posting),
}

impl<R: Reactor> Submissions<R> {
    pub(super) fn new() -> Submissions<R> {
        Submissions { queue: Mutex::new(SubmissionQueue { list: Vec::new(), is_open: false }) }
    }

    /// The queue, to leave something in it for the thread that has the duty. None: no thread has it, and from now on
    /// the caller has.
    pub(super) fn open(&self) -> Option<MutexGuard<'_, SubmissionQueue<R>>> {
        let mut queue = lock(&self.queue);
        std::mem::replace(&mut queue.is_open, true).then_some(queue)
    }

    /// Moves all submissions to an empty list, in their order. `stays_open` says, given whether there was none, whether
    /// the caller keeps the duty for what comes from now on.
    pub(super) fn take(&self, list: &mut Vec<Submitted<R>>, stays_open: impl FnOnce(bool) -> bool) -> bool {
        let mut queue = lock(&self.queue);
        queue.is_open = stays_open(queue.list.is_empty());
        std::mem::swap(&mut queue.list, list);
        queue.is_open
    }

    /// The cell of the first thread that waits.
    pub(super) fn first_waiting(&self) -> Option<Arc<WaitCell<R::Verdict>>> {
        lock(&self.queue).list.iter().find_map(|submitted| match submitted {
            Submitted::Awaited(.., cell) => Some(Arc::clone(cell)),
            Submitted::Posted(_) => None,
        })
    }

    /// Gives up the duty, unless there is something to do.
    pub(super) fn close_if_empty(&self) -> bool {
        let mut queue = lock(&self.queue);
        let is_empty = queue.list.is_empty();
        queue.is_open &= !is_empty;
        is_empty
    }
}
