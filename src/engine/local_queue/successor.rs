//! The place at the nodes that a call for a fair lock leaves to the next one in the queue of its program.
//!
//! The thread that is the head then takes it. If none comes, it is kept until a call of the client that ends gives it
//! back.

use super::{QueueTable, QueueTicket, Queues, Waiters};
use crate::algorithm::place::Successor;
use crate::os::sync::lock;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Queues {
    /// Takes the places that were left to threads that have not come to be the head.
    pub(crate) fn unclaimed(&self) -> Vec<(Arc<str>, Successor)> {
        match self.has_unclaimed.swap(false, Ordering::Acquire) {
            true => std::mem::take(&mut lock(&self.table).unclaimed),
            false => Vec::new(),
        }
    }
}

impl QueueTicket<'_> {
    /// Leaves a place at the nodes to the next thread, if there is one. It is taken by the one that is the head then.
    pub(crate) fn leave_to_next(&self, successor: Successor) -> bool {
        let leave = |waiters: &mut Waiters| {
            let has_next = waiters.waiting.len() > 1;
            if has_next {
                waiters.successor = Some(successor);
            }
            has_next
        };
        self.queues.has_left_places.store(true, Ordering::Relaxed);
        self.with_waiters(leave).unwrap_or(false)
    }

    /// Takes the place that the head before has left, if this thread is the head, in the queue of this key.
    pub(crate) fn take_over(&self) -> Option<(&Arc<str>, Successor)> {
        // The mutex orders this: the thread that left a place was the head before.
        if !self.queues.has_left_places.load(Ordering::Relaxed) {
            return None;
        }
        let take = |waiters: &mut Waiters| {
            let is_head = waiters.head().is_some_and(|head| head.id == self.id);
            waiters.successor.take_if(|_| is_head)
        };
        Some((self.key, self.with_waiters(take).flatten()?))
    }
}

impl QueueTable {
    pub(super) fn note_unclaimed(&mut self, ticket: &QueueTicket<'_>, unclaimed: Option<Successor>) {
        if let Some(successor) = unclaimed {
            self.unclaimed.push((Arc::clone(ticket.key), successor));
            ticket.queues.has_unclaimed.store(true, Ordering::Release);
        }
    }
}
