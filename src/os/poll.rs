//! Waiting for sockets: fills a [`Watch`] with what is ready.

use crate::algorithm::node::{MAX_NODES, NodeId, NodeSet};
use crate::os::watch::Watch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// How long the driver sleeps where poll fails. Short against any node timeout, and long against
/// the time for a look.
const PAUSE: Duration = Duration::from_millis(10);

impl Watch {
    /// Waits until something is ready or the time is up.
    pub(crate) fn poll(&mut self, timeout: Duration) {
        match self.streams.len() + self.subscribers.len() {
            ..=7 => self.poll_some::<8>(timeout),
            8..=15 => self.poll_some::<16>(timeout),
            _ => self.poll_some::<{ 2 * MAX_NODES + 1 }>(timeout),
        }
    }

    /// Polls the waker and up to `SIZE - 1` streams. The list of descriptors is on the stack.
    fn poll_some<const SIZE: usize>(&mut self, timeout: Duration) {
        self.readable = NodeSet::EMPTY;
        self.writable = NodeSet::EMPTY;
        self.woken = false;
        self.readable_subscribers = NodeSet::EMPTY;
        let woken = PollFd::new(self.waker.source(), PollFlags::IN);
        let mut descriptors: [PollFd<'_>; SIZE] = std::array::from_fn(|_| woken.clone());
        let mut nodes = [0; SIZE];
        let mut size = 1;
        for (index, interest) in self.streams.iter().chain(&self.subscribers).enumerate() {
            let Some(interest) = interest else { continue };
            let flags = if interest.writable {
                PollFlags::IN | PollFlags::OUT
            } else {
                PollFlags::IN
            };
            descriptors[size] = PollFd::new(interest.stream.source(), flags);
            nodes[size] = index;
            size += 1;
        }
        let descriptors = &mut descriptors[..size];
        let (spun, left) = spin(descriptors, self.spin.min(timeout), timeout);
        if !spun {
            match poll(descriptors, Timespec::try_from(left).ok().as_ref()) {
                Ok(_) => {}
                // A signal. Nothing is ready, and the caller looks at its deadline.
                Err(Errno::INTR) => return,
                Err(_) => return self.look_without_poll(left),
            }
        }
        self.woken = !descriptors[0].revents().is_empty();
        for (descriptor, &node) in descriptors[1..].iter().zip(&nodes[1..]) {
            let found = descriptor.revents();
            if let Some(subscriber) = node.checked_sub(self.streams.len()) {
                if !found.is_empty() {
                    self.readable_subscribers.insert(NodeId::new(subscriber));
                }
                continue;
            }
            let node = NodeId::new(node);
            let broken = found.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
            if broken || found.contains(PollFlags::IN) {
                self.readable.insert(node);
            }
            if broken || found.contains(PollFlags::OUT) {
                self.writable.insert(node);
            }
        }
    }

    /// Poll fails, and perhaps for good: there is no memory, or the limit of descriptors
    /// (RLIMIT_NOFILE) was lowered below their number. Sleeps for a moment, because the caller
    /// would ask again at once and use a whole processor. Then each stream may be ready: reading
    /// from one that is not does no harm, so requests are answered all the same.
    fn look_without_poll(&mut self, left: Duration) {
        std::thread::sleep(left.min(PAUSE));
        self.woken = true;
        for (index, interest) in self.streams.iter().enumerate() {
            let Some(interest) = interest else { continue };
            self.readable.insert(NodeId::new(index));
            // A connection that is still being made is not ready, and would be taken for one that
            // is.
            if interest.writable && interest.stream.is_settled() {
                self.writable.insert(NodeId::new(index));
            }
        }
        for index in (0..self.subscribers.len()).filter(|&index| self.subscribers[index].is_some())
        {
            self.readable_subscribers.insert(NodeId::new(index));
        }
    }
}

/// Polls without sleeping, for this long at most; true when something is ready, and the rest of the
/// timeout.
fn spin(descriptors: &mut [PollFd<'_>], time: Duration, timeout: Duration) -> (bool, Duration) {
    if time.is_zero() {
        return (false, timeout);
    }
    let began = Instant::now();
    loop {
        let ready = poll(descriptors, Some(&Timespec::default()));
        let passed = began.elapsed();
        match ready {
            Ok(0) if passed < time => std::hint::spin_loop(),
            ready => {
                return (
                    ready.is_ok_and(|ready| ready > 0),
                    timeout.saturating_sub(passed),
                );
            }
        }
    }
}
