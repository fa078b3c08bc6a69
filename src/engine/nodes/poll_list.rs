//! What the driver polls: the list of sockets, which is kept from one poll to the next.

use crate::algorithm::node::NodeId;
use crate::engine::busy_poll::Spin;
use crate::engine::node_connection::NodeConnection;
use crate::os::waker::Waker;
use crate::os::watch::Watch;
use std::sync::Arc;
use std::time::Duration;

/// The list of sockets, and what changes it while the driver polls.
pub(super) struct PollList {
    waker: Arc<Waker>,
    spin: Spin,
    /// The list of the last poll. The driver holds it while it polls, and a thread that takes over makes another one.
    watch: Option<Box<Watch>>,
    /// Whether there is something new to poll for since the driver took the list.
    is_changed: bool,
}

impl PollList {
    pub(super) fn new(waker: Arc<Waker>, nodes: usize, spin: Duration) -> PollList {
        let watch = Some(Box::new(Watch::new(&waker, nodes)));
        PollList { waker, spin: Spin::new(spin), watch, is_changed: false }
    }

    /// Gives the list to the driver, with the present stream of each connection.
    pub(super) fn take(&mut self, connections: &[NodeConnection]) -> Box<Watch> {
        // Another thread that polls does not see what this one reads.
        self.is_changed = self.watch.is_none();
        let mut watch = self.watch.take().unwrap_or_else(|| Box::new(Watch::new(&self.waker, connections.len())));
        for (connection, interest) in connections.iter().zip(&mut watch.streams) {
            if !connection.is_interested_in(interest.as_ref()) {
                *interest = connection.interest();
            }
        }
        watch
    }

    /// Takes the list back after a poll, without the streams that were closed meanwhile.
    pub(super) fn put_back(&mut self, watch: Box<Watch>, connections: &[NodeConnection]) {
        self.watch = Some(watch);
        for (index, connection) in connections.iter().enumerate() {
            self.forget_closed(NodeId::new(index), connection);
        }
    }

    /// For how long the next poll may spin.
    pub(super) fn spin_allowance(&self, alone: bool) -> Duration {
        self.spin.allowance(alone)
    }

    /// Counts a wait that a thread has made alone.
    pub(super) fn learn(&mut self, time: Duration) {
        self.spin.learn(time);
    }

    /// Empties the waker, if it has ended the poll. A thread that has taken over may have slept on, and does not know
    /// of the change.
    pub(super) fn drain_waker(&mut self, watch: &Watch) {
        if watch.woken {
            self.waker.drain();
            self.is_changed = true;
        }
    }

    /// Drops a stream that is not the connection's any more: otherwise the list alone would keep it open.
    pub(super) fn forget_closed(&mut self, node: NodeId, connection: &NodeConnection) {
        let Some(watch) = &mut self.watch else { return };
        let interest = &mut watch.streams[node.index()];
        if interest.as_ref().is_some_and(|interest| !connection.is_on(&interest.stream)) {
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
    pub(super) fn note_change(&mut self, is_changed: bool) {
        self.is_changed |= is_changed;
    }

    /// Ends a poll that does not know of a change.
    pub(super) fn interrupt(&mut self) {
        if std::mem::take(&mut self.is_changed) {
            self.waker.wake();
        }
    }

    /// Drops the list, and with it its hold on the streams.
    pub(super) fn clear(&mut self) {
        self.watch = None;
    }
}
