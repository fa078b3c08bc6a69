//! Requests in one order: the bytes of their commands until they are sent, and what the meaning of
//! each reply depends on until it is answered.
//!
//! ```text
//!               cut               answered           sent                 end
//!   requests    ├─────────────────┼──────────────────┼───────────────────┤
//!               answered by all     awaited            to be sent
//! ```

use super::backlog::Backlog;
use super::request::Request;
use crate::algorithm::time::Timestamp;
use std::collections::VecDeque;

/// Requests, behind those that were cut off.
#[derive(Default)]
pub(super) struct Requests {
    bytes: Vec<u8>,
    /// How many bytes there were before those.
    cut_bytes: u64,
    awaited: VecDeque<Awaited>,
    /// How many requests there were before those.
    cut_requests: u64,
    /// How many releases there were ever.
    releases: u64,
}

/// A request whose reply is expected.
#[derive(Clone, Copy)]
pub(super) struct Awaited {
    pub(super) request: Request,
    pub(super) asked_at: Timestamp,
    /// How many bytes there were before its command.
    pub(super) begin: u64,
}

/// How far a server has come in them.
#[derive(Clone, Copy, Default)]
pub struct Cursor {
    /// How many bytes were sent.
    pub(super) sent: u64,
    /// How many requests were answered.
    answered: u64,
    /// How many of those were releases.
    releases: u64,
}

impl Requests {
    /// Asks what `write` appends, and expects the replies to the requests that it returns.
    pub(super) fn ask<R: IntoIterator<Item = Request>>(
        &mut self,
        now: Timestamp,
        write: impl FnOnce(&mut Vec<u8>) -> R,
    ) {
        let begin = self.end().sent;
        let requests = write(&mut self.bytes);
        requests.into_iter().for_each(|request| {
            self.releases += u64::from(request.is_release());
            self.awaited.push_back(Awaited {
                request,
                asked_at: now,
                begin,
            });
        });
    }

    /// Asks this before all others, of which nothing may have been sent.
    pub(super) fn ask_first(&mut self, now: Timestamp, command: &[u8], request: Request) {
        self.bytes.splice(..0, command.iter().copied());
        for awaited in &mut self.awaited {
            awaited.begin += command.len() as u64;
        }
        self.awaited.push_front(Awaited {
            request,
            asked_at: now,
            begin: self.cut_bytes,
        });
    }

    /// The place behind all of them.
    pub(super) fn end(&self) -> Cursor {
        Cursor {
            sent: self.cut_bytes + self.bytes.len() as u64,
            answered: self.cut_requests + self.awaited.len() as u64,
            releases: self.releases,
        }
    }

    /// Forgets what was sent and answered up to this cursor.
    pub(super) fn cut(&mut self, cursor: Cursor) {
        while self.cut_requests < cursor.answered {
            self.awaited.pop_front();
            self.cut_requests += 1;
        }
        let sent = (cursor.sent - self.cut_bytes) as usize;
        if sent == self.bytes.len() {
            self.bytes.clear();
        } else if sent > self.bytes.len() / 2 {
            self.bytes.drain(..sent);
        } else {
            return;
        }
        self.cut_bytes = cursor.sent;
    }

    /// What is not cut off.
    pub(super) fn backlog(&self) -> Backlog {
        let oldest = self.awaited.front().map(|first| first.asked_at);
        Backlog {
            requests: self.awaited.len(),
            unsent: self.bytes.len(),
            oldest,
        }
    }

    /// What is behind a cursor.
    pub(super) fn backlog_at(&self, cursor: &Cursor) -> Backlog {
        let mut unanswered = self.awaited.range(self.place(cursor)..);
        let requests = unanswered.len();
        Backlog {
            requests,
            unsent: self.unsent(cursor).len(),
            oldest: unanswered.next().map(|first| first.asked_at),
        }
    }

    /// The request that is answered next at a cursor.
    #[inline]
    pub(super) fn next(&self, cursor: &Cursor) -> Option<&Awaited> {
        self.awaited.get(self.place(cursor))
    }

    /// The first request that is not cut off.
    pub(super) fn first(&self) -> Option<&Awaited> {
        self.awaited.front()
    }

    /// The bytes behind a cursor.
    pub(super) fn unsent(&self, cursor: &Cursor) -> &[u8] {
        &self.bytes[(cursor.sent - self.cut_bytes) as usize..]
    }

    /// How many releases are behind a cursor.
    pub(super) fn unanswered_releases(&self, cursor: &Cursor) -> usize {
        (self.releases - cursor.releases) as usize
    }

    /// There was no server yet: all counts as asked now.
    pub(super) fn restart(&mut self, now: Timestamp) {
        self.awaited
            .iter_mut()
            .for_each(|awaited| awaited.asked_at = now);
    }

    /// Takes over what is behind a cursor of others. There must be none left.
    pub(super) fn take_over(&mut self, others: &Requests, cursor: &Cursor) {
        self.bytes.extend_from_slice(others.unsent(cursor));
        self.awaited
            .extend(others.awaited.range(others.place(cursor)..).copied());
        self.cut_bytes = cursor.sent;
        self.cut_requests = cursor.answered;
        self.releases = others.releases;
    }

    /// Expects nothing any more at this cursor. Yields the requests, each with whether a byte of it
    /// may have been sent.
    pub(super) fn abandon(
        &mut self,
        cursor: &mut Cursor,
    ) -> impl Iterator<Item = (Request, bool)> + '_ {
        let sent = cursor.sent;
        *cursor = Cursor { sent, ..self.end() };
        self.cut_requests = cursor.answered;
        self.awaited
            .drain(..)
            .map(move |awaited| (awaited.request, awaited.begin < sent))
    }

    fn place(&self, cursor: &Cursor) -> usize {
        (cursor.answered - self.cut_requests) as usize
    }
}

impl Cursor {
    /// The next request was answered, which is a release if so.
    #[inline]
    pub(super) fn advance(&mut self, is_release: bool) {
        self.answered += 1;
        self.releases += u64::from(is_release);
    }

    /// The place that both have reached.
    pub(super) fn least(self, other: Cursor) -> Cursor {
        Cursor {
            sent: self.sent.min(other.sent),
            answered: self.answered.min(other.answered),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(requests: &mut Requests, command: &[u8]) {
        requests.ask(Timestamp::ORIGIN, |out| {
            out.extend_from_slice(command);
            [Request::Note]
        });
    }

    fn sent(sent: u64) -> Cursor {
        Cursor {
            sent,
            ..Cursor::default()
        }
    }

    #[test]
    fn what_was_sent_is_forgotten_once_it_is_more_than_half() {
        let mut requests = Requests::default();
        ask(&mut requests, b"0123456789");
        for (cut, kept) in [(0, 10), (4, 10), (5, 10), (6, 4), (7, 4), (9, 1), (10, 0)] {
            requests.cut(sent(cut));
            assert_eq!(requests.backlog().unsent, kept, "{cut}");
            assert_eq!(requests.unsent(&sent(cut)), &b"0123456789"[cut as usize..]);
        }
    }

    #[test]
    fn what_was_not_sent_is_told_when_nothing_is_expected_any_more() {
        let mut requests = Requests::default();
        ask(&mut requests, b"second");
        requests.ask_first(Timestamp::ORIGIN, b"first", Request::Note);
        let mut cursor = sent(5);
        let written: Vec<bool> = requests.abandon(&mut cursor).map(|(_, is)| is).collect();
        assert_eq!(written, [true, false]);
        assert_eq!(requests.unsent(&cursor), b"second");
        assert!(requests.next(&cursor).is_none());
    }

    #[test]
    fn two_cursors_have_reached_the_lesser_place_of_each_kind() {
        let mut requests = Requests::default();
        for command in [b"a", b"b"] {
            ask(&mut requests, command);
        }
        let (mut answered, ahead) = (sent(1), sent(2));
        answered.advance(false);
        for (one, other) in [(answered, ahead), (ahead, answered)] {
            let least = one.least(other);
            assert_eq!((least.sent, least.answered), (1, 0));
        }
    }
}
