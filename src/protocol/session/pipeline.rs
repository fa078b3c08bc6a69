//! What is asked on one connection: the commands still to be sent, and the requests whose replies
//! are expected, oldest first: servers answer in that order. They are the session's own, or those
//! of a [log](super::log) that it follows.

use super::backlog::Backlog;
use super::log::Log;
use super::request::Request;
use super::requests::{Awaited, Cursor, Requests};
use crate::algorithm::time::Timestamp;

/// The requests of one session.
#[derive(Default)]
pub struct Pipeline {
    /// None while it follows a log.
    pub(super) own: Requests,
    /// How far the server has come in those, or in the log.
    cursor: Cursor,
    follows: bool,
}

impl Pipeline {
    /// The request that is answered next, if there is one. In the log it must have been sent.
    #[inline]
    pub(super) fn front<'a>(&'a self, log: &'a Log) -> Option<&'a Awaited> {
        let next = self.requests(log).next(&self.cursor)?;
        (!self.follows || next.begin < self.cursor.sent).then_some(next)
    }

    /// Whether its own next reply belongs to a look.
    pub(super) fn is_looking(&self) -> bool {
        self.own
            .first()
            .is_some_and(|first| matches!(first.request, Request::Recheck(_)))
    }

    /// That request was answered, which is a release if so.
    #[inline]
    pub(super) fn pop(&mut self, is_release: bool) {
        self.cursor.advance(is_release);
        if !self.follows {
            self.own.cut(self.cursor);
        }
    }

    /// The bytes that are to be sent next.
    pub fn unsent<'a>(&'a self, log: &'a Log) -> &'a [u8] {
        self.requests(log).unsent(&self.cursor)
    }

    /// Records that the first `count` of those were sent.
    pub fn sent(&mut self, count: usize) {
        self.cursor.sent += count as u64;
        if !self.follows {
            self.own.cut(self.cursor);
        }
    }

    /// The connection is made, and the server can answer from now on: what was asked before counts
    /// as asked now.
    pub fn connected(&mut self, now: Timestamp) {
        self.own.restart(now);
    }

    /// What the server has not replied to, but for what is in the log.
    pub fn backlog(&self) -> Backlog {
        if self.follows {
            Backlog::default()
        } else {
            self.own.backlog_at(&self.cursor)
        }
    }

    /// What it has not replied to, if it follows the log.
    pub fn backlog_in(&self, log: &Log) -> Backlog {
        log.requests.backlog_at(&self.cursor)
    }

    /// How many of the expected replies are to releases.
    pub fn unanswered_releases(&self, log: &Log) -> usize {
        self.requests(log).unanswered_releases(&self.cursor)
    }

    /// How far the server has come in the log, if it follows it.
    pub fn cursor(&self) -> Option<Cursor> {
        self.follows.then_some(self.cursor)
    }

    /// Follows a log from this place on.
    pub(super) fn follow(&mut self, cursor: Cursor) {
        self.cursor = cursor;
        self.follows = true;
    }

    /// Leaves the log, and takes over what was not sent and not answered of it.
    pub fn leave(&mut self, log: &Log) {
        if std::mem::take(&mut self.follows) {
            self.own.take_over(&log.requests, &self.cursor);
        }
    }

    /// Expects nothing any more. Yields the requests, each with whether a byte of it may have been
    /// sent.
    pub(super) fn abandon(&mut self) -> impl Iterator<Item = (Request, bool)> + '_ {
        debug_assert!(!self.follows, "what is in the log is unanswered as well");
        self.own.abandon(&mut self.cursor)
    }

    fn requests<'a>(&'a self, log: &'a Log) -> &'a Requests {
        if self.follows {
            &log.requests
        } else {
            &self.own
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_as_written_from_its_first_byte_on() {
        // Three requests of four bytes each, the last one with two replies.
        let written = |bytes: usize, replies: usize| {
            let mut pipeline = Pipeline::default();
            let log = Log::default();
            for replies in [1, 1, 2] {
                pipeline.own.ask(Timestamp::ORIGIN, |out| {
                    out.extend_from_slice(b"ask\n");
                    vec![Request::Note; replies]
                });
            }
            (0..bytes).for_each(|_| pipeline.sent(1));
            (0..replies).for_each(|_| {
                assert!(pipeline.front(&log).is_some());
                pipeline.pop(false);
            });
            pipeline
                .abandon()
                .filter(|&(_, is_written)| is_written)
                .count()
        };
        let all: Vec<usize> = (0..=12).map(|bytes| written(bytes, 0)).collect();
        assert_eq!(all, [0, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4]);
        assert_eq!(
            [
                written(4, 1),
                written(5, 1),
                written(8, 2),
                written(9, 2),
                written(12, 4)
            ],
            [0, 1, 0, 2, 0]
        );
    }
}
