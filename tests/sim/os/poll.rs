//! The library's poll: waits for simulated connections.

use crate::algorithm::node::{NodeId, NodeSet};
use crate::kernel::{self, Reason};
use crate::os::watch::Watch;
use std::time::Duration;

impl Watch {
    pub(crate) fn poll(&mut self, timeout: Duration) {
        kernel::may_be_interrupted();
        self.look();
        let is_ready = !self
            .readable
            .union(self.writable)
            .union(self.readable_subscribers)
            .is_empty();
        let is_idle = timeout.is_zero() && !self.woken && !is_ready;
        kernel::with(|world| world.note_poll(is_idle));
        if self.woken || is_ready || timeout.is_zero() {
            return;
        }
        let list = self
            .streams
            .iter()
            .chain(&self.subscribers)
            .flatten()
            .map(|interest| (interest.stream.connection(), interest.writable));
        // The timeout goes to the system in whole nanoseconds, and is rounded up.
        kernel::wait_for(
            Reason::Poll {
                list: list.collect(),
                waker: self.waker.place(),
            },
            timeout,
        );
        self.look();
    }

    fn look(&mut self) {
        self.readable = NodeSet::EMPTY;
        self.writable = NodeSet::EMPTY;
        self.woken = self.waker.is_woken();
        self.readable_subscribers = NodeSet::EMPTY;
        kernel::with(|world| {
            for (index, interest) in self.subscribers.iter().enumerate() {
                let Some(interest) = interest else { continue };
                let (readable, writable) = world.readiness(interest.stream.connection());
                if readable || (writable && interest.writable) {
                    self.readable_subscribers.insert(NodeId::new(index));
                }
            }
            for (index, interest) in self.streams.iter().enumerate() {
                let Some(interest) = interest else { continue };
                let (readable, writable) = world.readiness(interest.stream.connection());
                if readable {
                    self.readable.insert(NodeId::new(index));
                }
                if writable && interest.writable {
                    self.writable.insert(NodeId::new(index));
                }
            }
        });
    }
}
