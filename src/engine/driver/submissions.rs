//! Submissions: what threads want done, on its way to the thread that does it.
//!
//! The queue has a lock of its own, which is held for a few instructions. While it is *open*, a thread has the duty to
//! begin what is in it, and other threads leave their submissions there and sleep: no thread but one needs the
//! connections. A thread that finds it closed opens it, and has the duty.

use super::reactor::Reactor;
use super::wait_cell::WaitCell;
use crate::os::sync::{Mutex, MutexGuard, lock};
use std::sync::Arc;

/// How many unused cells are kept.
const KEPT: usize = 64;

/// The queue of one client.
pub(super) struct Submissions<R: Reactor> {
    queue: Mutex<SubmissionQueue<R>>,
}

pub(super) struct SubmissionQueue<R: Reactor> {
    list: Vec<Submitted<R>>,
    is_open: bool,
    /// The cells that no thread sleeps on.
    unused: Vec<Arc<WaitCell<R::Verdict>>>,
}

pub(super) enum Submitted<R: Reactor> {
    /// A thread sleeps on the cell until there is a verdict.
    Awaited(R::Submission, Arc<WaitCell<R::Verdict>>),
    Posted(R::Posting),
}

/// What is in the queue.
pub(super) enum Next<R: Reactor> {
    /// Something that a thread waits for, on this cell.
    Awaited(Arc<WaitCell<R::Verdict>>),
    /// Only what no thread waits for.
    Posted,
    /// Nothing, and no thread has the duty any more.
    Nothing,
}

impl<R: Reactor> SubmissionQueue<R> {
    /// Adds a submission, and returns the cell to sleep on.
    pub(super) fn submit(&mut self, submission: R::Submission) -> Arc<WaitCell<R::Verdict>> {
        let cell = self.take_cell();
        self.list.push(Submitted::Awaited(submission, Arc::clone(&cell)));
        cell
    }

    /// Adds something that no thread waits for.
    pub(super) fn post(&mut self, posting: R::Posting) {
        self.list.push(Submitted::Posted(posting));
    }

    fn take_cell(&mut self) -> Arc<WaitCell<R::Verdict>> {
        self.unused.pop().unwrap_or_else(|| Arc::new(WaitCell::new()))
    }
}

impl<R: Reactor> Submissions<R> {
    pub(super) fn new() -> Submissions<R> {
        Submissions { queue: Mutex::new(SubmissionQueue { list: Vec::new(), is_open: false, unused: Vec::new() }) }
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

    /// What is in the queue. If that is nothing, no thread has the duty any more.
    pub(super) fn next(&self) -> Next<R> {
        let mut queue = lock(&self.queue);
        let first_awaited = queue.list.iter().find_map(|submitted| match submitted {
            Submitted::Awaited(.., cell) => Some(Arc::clone(cell)),
            Submitted::Posted(_) => None,
        });
        queue.is_open &= !queue.list.is_empty();
        match first_awaited {
            Some(cell) => Next::Awaited(cell),
            None if queue.is_open => Next::Posted,
            None => Next::Nothing,
        }
    }

    /// A cell to sleep on.
    pub(super) fn take_cell(&self) -> Arc<WaitCell<R::Verdict>> {
        lock(&self.queue).take_cell()
    }

    /// Takes a cell back that no waiter is registered with any more.
    pub(super) fn put_cell(&self, cell: Arc<WaitCell<R::Verdict>>) {
        cell.reset();
        // A thread that has its verdict does not wait for another one.
        if let Ok(mut queue) = self.queue.try_lock()
            && queue.unused.len() < KEPT
        {
            queue.unused.push(cell);
        }
    }
}
