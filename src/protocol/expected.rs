//! The requests of one connection whose replies are expected, oldest first: servers answer in that order.

use crate::algorithm::time::Timestamp;
use std::collections::VecDeque;

/// The requests whose replies are expected.
pub(super) struct Expected<R> {
    requests: VecDeque<Request<R>>,
}

struct Request<R> {
    request: R,
    asked_at: Timestamp,
    /// How many bytes there were on the connection before it.
    begin: u64,
}

impl<R> Expected<R> {
    pub(super) const fn new() -> Expected<R> {
        Expected { requests: VecDeque::new() }
    }

    /// Expects one more reply. `begin`: how many bytes there were before the command that it is the reply to.
    pub(super) fn push(&mut self, request: R, asked_at: Timestamp, begin: u64) {
        self.requests.push_back(Request { request, asked_at, begin });
    }

    /// The request that is answered next.
    pub(super) fn front(&self) -> Option<&R> {
        self.requests.front().map(|first| &first.request)
    }

    /// The request that was answered, and when it was made.
    pub(super) fn pop(&mut self) -> Option<(R, Timestamp)> {
        self.requests.pop_front().map(|first| (first.request, first.asked_at))
    }

    /// How many replies are expected.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// When the request was made that is answered next.
    pub(super) fn waiting_since(&self) -> Option<Timestamp> {
        self.requests.front().map(|first| first.asked_at)
    }

    /// The connection is made, and the server can answer from now on: what was queued before counts as asked now.
    pub(super) fn connected(&mut self, now: Timestamp) {
        self.requests.iter_mut().for_each(|request| request.asked_at = now);
    }

    /// Expects nothing any more. Yields the requests, each with whether one of the first `sent` bytes may belong to it.
    pub(super) fn abandon(&mut self, sent: u64) -> impl Iterator<Item = (R, bool)> + '_ {
        self.requests.drain(..).map(move |abandoned| (abandoned.request, abandoned.begin < sent))
    }
}

#[cfg(test)]
mod tests {
    use super::super::traffic::Traffic;
    use super::*;

    #[test]
    fn a_request_counts_as_written_from_its_first_byte_on() {
        // Three requests of four bytes each, the last one with two replies.
        let written = |bytes: usize, replies: usize| {
            let (mut traffic, mut expected) = (Traffic::new(1024), Expected::new());
            for replies in [1, 1, 2] {
                traffic.end().extend_from_slice(b"ask\n");
                (0..replies).for_each(|_| expected.push((), Timestamp::ORIGIN, traffic.begin()));
            }
            (0..bytes).for_each(|_| traffic.sent(1));
            (0..replies).for_each(|_| assert!(expected.pop().is_some()));
            expected.abandon(traffic.all_sent()).filter(|&((), is_written)| is_written).count()
        };
        let all: Vec<usize> = (0..=12).map(|bytes| written(bytes, 0)).collect();
        assert_eq!(all, [0, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4]);
        assert_eq!([written(4, 1), written(5, 1), written(8, 2), written(9, 2), written(12, 4)], [0, 1, 0, 2, 0]);
    }
}
