//! What is asked on one connection: the commands still to be sent, and the requests whose replies are expected, oldest
//! first: servers answer in that order.
//!
//! A session that follows a [log](super::log) sends and expects what is there, and nothing of its own.

use super::backlog::Backlog;
use super::log::{Cursor, Log};
use super::request::{Awaited, Request};
use crate::algorithm::time::Timestamp;
use crate::protocol::traffic::Outgoing;
use std::collections::VecDeque;

/// The requests of one session.
#[derive(Default)]
pub struct Pipeline {
    outgoing: Outgoing,
    awaited: VecDeque<Awaited>,
    /// How many of those are releases.
    releases: usize,
    /// While the session follows a log, how far it has come.
    cursor: Option<Cursor>,
}

impl Pipeline {
    /// Asks what `write` appends, and expects the replies to the requests that it returns.
    pub(super) fn ask<R: IntoIterator<Item = Request>>(
        &mut self,
        now: Timestamp,
        write: impl FnOnce(&mut Vec<u8>) -> R,
    ) {
        let begin = self.outgoing.all();
        for request in write(self.outgoing.end()) {
            self.push(Awaited { request, asked_at: now, begin });
        }
    }

    /// The request that is answered next, if there is one. In the log it must have been sent.
    #[inline]
    pub(super) fn front<'a>(&'a self, log: &'a Log) -> Option<&'a Request> {
        match &self.cursor {
            Some(cursor) => log.request(cursor),
            None => self.own_front(),
        }
    }

    /// The same of its own requests.
    pub(super) fn own_front(&self) -> Option<&Request> {
        self.awaited.front().map(|first| &first.request)
    }

    /// The request that was answered, and when it was made.
    #[inline]
    pub(super) fn pop(&mut self, log: &Log) -> Option<(Request, Timestamp)> {
        if let Some(cursor) = &mut self.cursor {
            return cursor.advance(log);
        }
        let Awaited { request, asked_at, .. } = self.awaited.pop_front()?;
        self.releases -= usize::from(request.is_release());
        Some((request, asked_at))
    }

    /// The bytes that are to be sent next.
    pub fn unsent<'a>(&'a self, log: &'a Log) -> &'a [u8] {
        self.cursor.as_ref().map_or_else(|| self.outgoing.unsent(), |cursor| log.unsent(cursor))
    }

    /// Says that the first `count` of those went out.
    pub fn sent(&mut self, count: usize) {
        self.outgoing.sent(count);
        self.cursor.iter_mut().for_each(|cursor| cursor.sent += count as u64);
    }

    /// The connection is made, and the server can answer from now on: what was asked before counts as asked now.
    pub fn connected(&mut self, now: Timestamp) {
        self.awaited.iter_mut().for_each(|awaited| awaited.asked_at = now);
    }

    /// What the server has not replied to, but for what is in the log.
    pub fn backlog(&self) -> Backlog {
        Backlog {
            requests: self.awaited.len(),
            unsent: self.outgoing.unsent().len(),
            oldest: self.awaited.front().map(|first| first.asked_at),
        }
    }

    /// What the server has not replied to in the log.
    pub fn backlog_in(&self, log: &Log) -> Backlog {
        self.cursor.as_ref().map_or(Backlog::default(), |cursor| log.backlog_at(cursor))
    }

    /// How many of the expected replies are to releases.
    pub fn unanswered_releases(&self, log: &Log) -> usize {
        self.releases + self.cursor.map_or(0, |cursor| cursor.unanswered_releases(log))
    }

    /// How far the session has come in the log, if it follows it.
    pub fn cursor(&self) -> Option<Cursor> {
        self.cursor
    }

    /// Follows a log from this place on.
    pub(super) fn follow(&mut self, cursor: Cursor) {
        self.cursor = Some(cursor);
    }

    /// Leaves the log, and takes over what was not sent and not answered of it.
    pub fn leave(&mut self, log: &Log) {
        let Some(cursor) = self.cursor.take() else { return };
        for logged in log.unanswered(&cursor) {
            // Counted in bytes of the connection, which sent others before those of the log.
            let begin = self.outgoing.all_sent() + logged.begin - cursor.sent;
            self.push(Awaited { begin, ..*logged });
        }
        self.outgoing.end().extend_from_slice(log.unsent(&cursor));
    }

    /// Expects nothing any more. Yields the requests, each with whether a byte of it may have been written.
    pub(super) fn abandon(&mut self) -> impl Iterator<Item = (Request, bool)> + '_ {
        debug_assert!(self.cursor.is_none(), "what is in the log is unanswered as well");
        self.releases = 0;
        let sent = self.outgoing.all_sent();
        self.awaited.drain(..).map(move |awaited| (awaited.request, awaited.begin < sent))
    }

    fn push(&mut self, awaited: Awaited) {
        self.releases += usize::from(awaited.request.is_release());
        self.awaited.push_back(awaited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_as_written_from_its_first_byte_on() {
        // Three requests of four bytes each, the last one with two replies.
        let written = |bytes: usize, replies: usize| {
            let (mut pipeline, log) = (Pipeline::default(), Log::default());
            for replies in [1, 1, 2] {
                pipeline.ask(Timestamp::ORIGIN, |out| {
                    out.extend_from_slice(b"ask\n");
                    vec![Request::Note; replies]
                });
            }
            (0..bytes).for_each(|_| pipeline.sent(1));
            (0..replies).for_each(|_| assert!(pipeline.pop(&log).is_some()));
            pipeline.abandon().filter(|&(_, is_written)| is_written).count()
        };
        let all: Vec<usize> = (0..=12).map(|bytes| written(bytes, 0)).collect();
        assert_eq!(all, [0, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4]);
        assert_eq!([written(4, 1), written(5, 1), written(8, 2), written(9, 2), written(12, 4)], [0, 1, 0, 2, 0]);
    }
}
