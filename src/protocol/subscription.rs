//! A subscriber connection's conversation: the channel of the client, and the messages that arrive
//! on it.
//!
//! In RESP2 a connection that is subscribed can do nothing else, so each node has one in addition
//! to its ordered one. A client has one channel there, for all of its calls. A message names a call
//! and a key: the lock may be free for that call. It is no vote, and a lost one costs time only.
//!
//! Parsing is strict about what the server sends, and not about what programs publish: what names
//! no call is ignored. A reply without a request, or one that names another channel, is a protocol
//! error, after which the connection is given up.
//!
//! How to drive it: as a [`Session`](super::session::Session). When the connection is lost, make
//! another one: this one is thrown away with it.

use super::credentials::Credentials;
use super::error_reply::ErrorReply;
use super::incoming::Incoming;
use super::key_space;
use super::queue::CHANNEL;
use super::resp::{self, Elements, Reply};
use crate::algorithm::kind::EntryKind;
use crate::algorithm::queue::{CLIENT_DIGITS, Entry, Message};
use crate::algorithm::time::Timestamp;
use crate::fault::detail::Detail;
use crate::fault::protocol_error::ProtocolError;
use crate::fault::server_error::ServerError;
use crate::fault::{Cause, Fault, Phase};
use std::fmt;
use std::sync::Arc;

/// Size of the receive buffer: room for a few dozen messages.
const MESSAGE_BUFFER: usize = 4 * 1024;

/// A message for one call of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The call.
    pub entry: Entry,
    /// What it is told.
    pub message: Message,
    /// The lock's key on that node; for a semaphore, the key of a slot.
    pub key: Arc<str>,
}

/// What the bytes received so far amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriptionEvent {
    /// From now on every message is received.
    Confirmed,
    /// A message.
    Received(Notice),
    /// We may not subscribe. The connection cannot be used.
    Refused(Fault),
}

/// One subscriber connection's conversation.
pub struct Subscription {
    /// The bytes received.
    pub incoming: Incoming,
    /// The bytes to be sent.
    pub unsent: Vec<u8>,
    client: u64,
    /// The name of its channel.
    channel: Vec<u8>,
    stage: Stage,
    /// When the requests were made.
    asked_at: Timestamp,
}

/// Which reply is expected next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Auth,
    Subscribe,
    /// None: every message is received.
    Live,
}

impl Subscription {
    /// Begins a conversation by queueing what logs us in, and the subscription to the client's
    /// channel.
    pub fn open(credentials: Option<&Credentials>, client: u64, now: Timestamp) -> Subscription {
        let mut unsent = Vec::new();
        let stage = match credentials {
            Some(credentials) => {
                credentials.log_in(&mut unsent);
                Stage::Auth
            }
            None => Stage::Subscribe,
        };
        let channel = [CHANNEL, format!("{client:0CLIENT_DIGITS$x}").as_bytes()].concat();
        resp::encode(&mut unsent, &[b"SUBSCRIBE", &channel]);
        Subscription {
            incoming: Incoming::new(MESSAGE_BUFFER, now),
            unsent,
            client,
            channel,
            stage,
            asked_at: now,
        }
    }

    /// Whether every message is received.
    pub fn is_live(&self) -> bool {
        self.stage == Stage::Live
    }

    /// When the request was made whose reply is expected next.
    pub fn waiting_since(&self) -> Option<Timestamp> {
        (!self.is_live()).then_some(self.asked_at)
    }

    /// The connection is made: what was queued while there was none counts as asked now.
    pub fn connected(&mut self, now: Timestamp) {
        self.asked_at = now;
    }

    /// The next thing that the received bytes mean, or `None` until more are received.
    ///
    /// # Errors
    /// The bytes are neither a message nor what was asked for. The connection must be given up.
    pub fn next_event(&mut self) -> Result<Option<SubscriptionEvent>, ProtocolError> {
        while !self.incoming.is_empty() {
            let Some((reply, length)) = self.incoming.decode()? else {
                return Ok(None);
            };
            let event = match (self.stage, Received::by(reply, &self.channel)?) {
                (Stage::Live, Received::Message(text)) => {
                    notice(self.client, text).map(SubscriptionEvent::Received)
                }
                (Stage::Live, _) | (_, Received::Message(_)) => {
                    return Err(ProtocolError::Unrequested);
                }
                (Stage::Auth, Received::Ok) => {
                    self.stage = Stage::Subscribe;
                    None
                }
                (Stage::Auth, Received::Error(cause)) => {
                    let cause = if cause == Cause::Server(ServerError::Err) {
                        Cause::Auth
                    } else {
                        cause
                    };
                    Some(SubscriptionEvent::Refused(Fault::new(
                        Phase::Handshake,
                        cause,
                    )))
                }
                (Stage::Subscribe, Received::Subscribed) => {
                    self.stage = Stage::Live;
                    Some(SubscriptionEvent::Confirmed)
                }
                (Stage::Subscribe, Received::Error(cause)) => {
                    let fault = Fault::new(Phase::Reply, cause).with(Detail::Command("SUBSCRIBE"));
                    Some(SubscriptionEvent::Refused(fault))
                }
                _ => return Err(ProtocolError::UnexpectedReply),
            };
            self.incoming.taken(length);
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }
}

/// What a server sends on a subscriber connection.
enum Received<'b> {
    Message(&'b [u8]),
    Ok,
    Subscribed,
    Error(Cause),
}

impl<'b> Received<'b> {
    fn by(reply: Reply<'b>, channel: &[u8]) -> Result<Received<'b>, ProtocolError> {
        match reply {
            Reply::Array(Some(elements)) => Received::by_array(elements, channel),
            Reply::Error(text) => Ok(Received::Error(ErrorReply::read(text).cause)),
            Reply::Simple(b"OK") => Ok(Received::Ok),
            _ => Err(ProtocolError::UnexpectedReply),
        }
    }

    fn by_array(mut elements: Elements<'b>, channel: &[u8]) -> Result<Received<'b>, ProtocolError> {
        let elements = (
            elements.next(),
            elements.next(),
            elements.next(),
            elements.next(),
        );
        let (Some(Reply::Bulk(Some(kind))), Some(Reply::Bulk(Some(name))), Some(last), None) =
            elements
        else {
            return Err(ProtocolError::UnexpectedReply);
        };
        if name != channel {
            return Err(ProtocolError::Unrequested);
        }
        match (kind, last) {
            (b"message", Reply::Bulk(Some(text))) => Ok(Received::Message(text)),
            (b"subscribe", Reply::Integer(1..)) => Ok(Received::Subscribed),
            _ => Err(ProtocolError::UnexpectedReply),
        }
    }
}

/// Reads a message: the call, a space and the key. "?" in front: it is the next one. "." is for the
/// server alone.
fn notice(client: u64, text: &[u8]) -> Option<Notice> {
    let (is_next, text) = text
        .strip_prefix(b"?")
        .map_or((false, text), |rest| (true, rest));
    let space = text.iter().position(|&byte| byte == b' ')?;
    let entry = Entry::of_client(client, &text[..space])?;
    let key = std::str::from_utf8(&text[space + 1..]).ok()?;
    let message = match entry.kind {
        _ if is_next => Message::Next,
        EntryKind::Permit(_) => Message::Turn(key_space::slot(key.as_bytes())),
        _ => Message::Turn(None),
    };
    Some(Notice {
        entry,
        message,
        key: key.into(),
    })
}

/// Shows counts only: the buffers hold passwords.
impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("stage", &self.stage)
            .field("unsent", &self.unsent.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::ORIGIN;
    const CLIENT: u64 = 0xab;

    fn sent(kind: &str, client: u64, last: &str) -> String {
        format!(
            "*3\r\n${}\r\n{kind}\r\n$27\r\nquorumlock:{client:016x}\r\n{last}\r\n",
            kind.len()
        )
    }

    fn message(text: &str) -> String {
        sent("message", CLIENT, &format!("${}\r\n{text}", text.len()))
    }

    fn receive(
        subscription: &mut Subscription,
        text: &str,
    ) -> Result<Vec<SubscriptionEvent>, ProtocolError> {
        let mut events = Vec::new();
        // Byte by byte: what is split by the network means the same.
        for byte in text.bytes() {
            subscription.incoming.space()[0] = byte;
            subscription.incoming.received(1);
            while let Some(event) = subscription.next_event()? {
                events.push(event);
            }
        }
        Ok(events)
    }

    fn subscribed() -> Subscription {
        let mut subscription = Subscription::open(None, CLIENT, NOW);
        assert_eq!(
            subscription.unsent,
            b"*2\r\n$9\r\nSUBSCRIBE\r\n$27\r\nquorumlock:00000000000000ab\r\n"
        );
        assert!(!subscription.is_live());
        let events = receive(&mut subscription, &sent("subscribe", CLIENT, ":1")).unwrap();
        assert_eq!(
            (events, subscription.is_live()),
            (vec![SubscriptionEvent::Confirmed], true)
        );
        subscription
    }

    #[test]
    fn messages_name_a_call_and_a_key() {
        let received = |kind, number, message, key: &str| {
            let entry = Entry {
                client: CLIENT,
                kind,
                number,
            };
            SubscriptionEvent::Received(Notice {
                entry,
                message,
                key: key.into(),
            })
        };
        for (text, event) in [
            (
                "m7 orders/42",
                received(EntryKind::Mutex, 7, Message::Turn(None), "orders/42"),
            ),
            (
                "?f7 a b",
                received(EntryKind::Fenced, 7, Message::Next, "a b"),
            ),
            (
                "s3:9 pool#2",
                received(EntryKind::Permit(3), 9, Message::Turn(Some(2)), "pool#2"),
            ),
            (
                "?s3:9 pool#2",
                received(EntryKind::Permit(3), 9, Message::Next, "pool#2"),
            ),
        ] {
            assert_eq!(
                receive(&mut subscribed(), &message(text)).unwrap(),
                [event],
                "{text}"
            );
        }
    }

    #[test]
    fn what_other_programs_publish_there_is_ignored() {
        for text in [".", "", "m7", "x7 key", "m key", "??m7 key", "\u{e9}"] {
            assert_eq!(
                receive(&mut subscribed(), &message(text)).unwrap(),
                [],
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_refused_subscription_reports_why() {
        let mut subscription = Subscription::open(None, CLIENT, NOW);
        let denied = SubscriptionEvent::Refused(Fault::new(Phase::Reply, Cause::NoPermission));
        assert_eq!(
            receive(
                &mut subscription,
                "-NOPERM this user has no permissions\r\n"
            )
            .unwrap(),
            [denied]
        );
        let wrong = Credentials::new("wrong");
        let mut subscription = Subscription::open(Some(&wrong), CLIENT, NOW);
        assert!(
            subscription
                .unsent
                .starts_with(b"*2\r\n$4\r\nAUTH\r\n$5\r\nwrong\r\n*2\r\n$9\r\nSUBSCRIBE")
        );
        let denied = SubscriptionEvent::Refused(Fault::new(Phase::Handshake, Cause::Auth));
        assert_eq!(
            receive(&mut subscription, "-WRONGPASS no\r\n").unwrap(),
            [denied]
        );
        assert!(!format!("{subscription:?}").contains("wrong"));
    }

    #[test]
    fn what_answers_no_request_is_an_error() {
        use ProtocolError::*;
        let table = [
            (sent("message", 1, "$0\r\n"), Unrequested),
            (sent("subscribe", CLIENT, ":1"), Unrequested),
            ("+OK\r\n".to_owned(), Unrequested),
            (sent("pmessage", CLIENT, "$0\r\n"), UnexpectedReply),
            (sent("message", CLIENT, ":1"), UnexpectedReply),
            (":1\r\n".to_owned(), UnexpectedReply),
            (
                "*2\r\n$7\r\nmessage\r\n$12\r\nquorumlock:a\r\n".to_owned(),
                UnexpectedReply,
            ),
            (
                "*3\r\n$7\r\nmessage\r\n$7\r\nanother\r\n$0\r\n\r\n".to_owned(),
                Unrequested,
            ),
            (">".to_owned(), UnknownType),
        ];
        for (text, error) in table {
            assert_eq!(receive(&mut subscribed(), &text), Err(error), "{text:?}");
        }
        for text in [message("m7 key"), sent("subscribe", 1, ":1")] {
            let mut subscription = Subscription::open(None, CLIENT, NOW);
            assert_eq!(
                receive(&mut subscription, &text),
                Err(Unrequested),
                "{text:?}"
            );
        }
    }
}
