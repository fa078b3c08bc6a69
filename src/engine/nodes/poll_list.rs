//! What the driver polls: the list of sockets, which is kept from one poll to the next. Only what
//! may have changed since the last one is listed anew.

use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::time::Timestamp;
use crate::engine::busy_poll::Spin;
use crate::engine::node_connection::{IDLE_CHECK, NodeConnection};
use crate::os::waker::Waker;
use crate::os::watch::Watch;
use crate::protocol::session::Log;
use std::sync::Arc;
use std::time::Duration;

/// The list of sockets, and what changes it while the driver polls.
pub(super) struct PollList {
    waker: Arc<Waker>,
    pub(super) spin: Spin,
    /// The list of the last poll. The driver holds it while it polls, and a thread that takes over
    /// makes another one.
    pub(super) watch: Option<Box<Watch>>,
    /// How often a list was taken. What is older than the last one is not kept.
    taken: u64,
    /// When the list that is kept was polled.
    polled_at: Timestamp,
    /// The nodes whose connections may have changed since they were listed.
    stale: NodeSet,
    /// Those for which something is due at a time, though their streams are not ready.
    timed: NodeSet,
    /// Those that are listed, or to be listed, as waiting until they can be written to.
    writable: NodeSet,
    /// Whether there is something new to poll for since the driver took the list.
    is_changed: bool,
}

impl PollList {
    pub(super) fn new(waker: Arc<Waker>, nodes: usize, spin: Duration) -> PollList {
        let watch = Some(Box::new(Watch::new(&waker, nodes)));
        let [stale, timed, writable] = [NodeSet::first(nodes), NodeSet::EMPTY, NodeSet::EMPTY];
        PollList {
            waker,
            spin: Spin::new(spin),
            watch,
            taken: 0,
            polled_at: Timestamp::ORIGIN,
            stale,
            timed,
            writable,
            is_changed: false,
        }
    }

    /// Returns the list for the driver, with the present stream of each connection, and when
    /// something is due though no stream is ready. `unsent`: the nodes for which something was
    /// queued that was not written yet.
    #[inline]
    pub(super) fn take(
        &mut self,
        connections: &[NodeConnection],
        log: &Log,
        unsent: NodeSet,
        now: Timestamp,
    ) -> (Box<Watch>, Timestamp) {
        self.taken += 1;
        // Another thread that polls does not see what this one reads.
        self.is_changed = self.watch.is_none();
        let mut watch = self.watch.take().unwrap_or_else(|| {
            self.stale = NodeSet::first(connections.len());
            Box::new(Watch::new(&self.waker, connections.len()))
        });
        watch.number = self.taken;
        let changed = self.stale.union(unsent).union(self.timed);
        let mut due = Timestamp::NEVER;
        self.stale = NodeSet::EMPTY;
        for node in changed.iter() {
            let connection = &connections[node.index()];
            let interest = connection.interest(log);
            let writable = interest.as_ref().is_some_and(|interest| interest.writable);
            self.writable.set(node, writable);
            watch.streams[node.index()] = interest;
            let due_here = connection.due(now);
            self.timed.set(node, due_here < Timestamp::NEVER);
            due = due.min(due_here);
        }
        (watch, due)
    }

    /// Takes the list back after a poll, without the streams that were closed meanwhile.
    #[inline]
    pub(super) fn put_back(
        &mut self,
        watch: Box<Watch>,
        connections: &[NodeConnection],
        now: Timestamp,
    ) {
        if watch.number == self.taken {
            self.polled_at = now;
            self.watch = Some(watch);
            for node in self.stale.iter() {
                self.forget_closed(node, &connections[node.index()]);
            }
        }
    }

    /// Whether the end of a connection would have shown a moment ago.
    pub(super) fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.polled_at) <= IDLE_CHECK
    }

    /// The nodes for which something may be due though their streams are not ready.
    pub(super) fn timed(&self) -> NodeSet {
        self.timed.union(self.stale)
    }

    /// The connection may have changed: it is listed anew for the next poll.
    pub(super) fn mark_stale(&mut self, node: NodeId) {
        self.stale.insert(node);
    }

    /// Whether the stream has to become writable from now on.
    pub(super) fn set_wants_write(&mut self, node: NodeId, wants_write: bool) {
        if self.writable.contains(node) != wants_write {
            self.stale.insert(node);
        }
        self.is_changed |= wants_write;
    }

    /// Empties the waker, if it has ended the poll. A thread that has taken over may have slept on,
    /// and does not know of the change.
    pub(super) fn drain_waker(&mut self, watch: &Watch) {
        if watch.woken {
            self.waker.drain();
            self.is_changed = true;
        }
    }

    /// Drops a stream that is not the connection's any more: otherwise the list alone would keep it
    /// open.
    pub(super) fn forget_closed(&mut self, node: NodeId, connection: &NodeConnection) {
        let Some(watch) = &mut self.watch else { return };
        let interest = &mut watch.streams[node.index()];
        if interest
            .as_ref()
            .is_some_and(|interest| !connection.is_on(&interest.stream))
        {
            *interest = None;
        }
    }

    /// Drops the streams of all subscriber connections.
    pub(super) fn forget_subscribers(&mut self) {
        match &mut self.watch {
            Some(watch) => watch.subscribers = Vec::new(),
            // The driver holds the streams, and drops them when it reads the list again.
            None => self.is_changed = true,
        }
    }

    /// Notes whether there is something new to poll for.
    pub(super) fn record_change(&mut self, is_changed: bool) {
        self.is_changed |= is_changed;
    }

    /// Ends a poll that does not know of a change.
    pub(super) fn interrupt(&mut self) {
        if std::mem::take(&mut self.is_changed) {
            self.waker.wake();
        }
    }
}
