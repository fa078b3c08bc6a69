//! A subscriber connection's conversation: which keys it listens for, and the hints that arrive.
//!
//! In RESP2 a connection that listens can do nothing else, so each node has one besides its ordered one, for all keys.
//! What the server sends there is of two kinds: answers, in the order of what was asked, and hints, which may stand
//! between any two answers. A hint says that a lock was released, and nothing more; it is no vote, and a lost one costs
//! time only.
//!
//! ```text
//!   absent ── subscribe ──► asked ── confirmed ──► live ── unsubscribe ──► leaving ── confirmed ──► absent
//!                             └── refused: this connection cannot be used
//! ```
//!
//! Parsing is strict: a hint on a channel that is not live, an answer without a request or one that names another
//! channel, is a protocol error, after which the connection is given up.
//!
//! A connection that has listened once is never without a channel: before it leaves the last one, it subscribes to a
//! placeholder, on which nothing is published. Redis 8 with I/O threads moves a connection from one thread to another
//! when it leaves its last channel, and back when it subscribes again. Each move stops one thread while another spins,
//! and on few processors that takes longer than a lock is held.
//!
//! How to drive it: as a [`Session`](super::session::Session), with [`subscribe`](Subscription::subscribe) and
//! [`unsubscribe`](Subscription::unsubscribe) for requests. When the connection is lost, make another one: this one is
//! thrown away with it.

use super::command;
use super::error_reply;
use super::handshake::Handshake;
use super::publish::{self, Message};
use super::resp::{Elements, Reply};
use super::traffic::Traffic;
use crate::algorithm::detail::Detail;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::time::Timestamp;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

/// Size of the receive buffer: room for a few dozen hints.
const MESSAGE_BUFFER: usize = 4 * 1024;
/// What the name of the placeholder ends with.
const PLACEHOLDER: &[u8] = b"#subscriber";

/// A key that is listened for.
pub type Key = Arc<[u8]>;

/// What the bytes received so far amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriptionEvent {
    /// From now on every hint on this key is received.
    Confirmed(Key),
    /// A lock on this key was released, here at least, or so many wait for it.
    Received(Key, Message),
    /// We may not listen here. The connection cannot be used.
    Refused(Fault),
}

/// One subscriber connection's conversation.
pub struct Subscription {
    /// The bytes, and since when answers are expected.
    pub traffic: Traffic,
    /// The requests whose answers are expected, oldest first.
    expected: VecDeque<SubscriptionRequest>,
    channels: HashMap<Key, Channel>,
    /// What names the placeholder, once it was asked for.
    placeholder: Option<Key>,
}

enum SubscriptionRequest {
    Auth,
    Placeholder(Key),
    Subscribe(Key),
    Unsubscribe(Key),
}

/// What is known of a channel.
#[derive(Default)]
struct Channel {
    /// Whether the server counts us in, as far as its answers go.
    is_live: bool,
    /// Whether we want it to.
    is_wanted: bool,
    /// How many answers are to come.
    pending: u32,
}

impl Subscription {
    /// Begins a conversation by queueing what logs us in.
    pub fn open(handshake: &Handshake, now: Timestamp) -> Subscription {
        let mut subscription = Subscription {
            traffic: Traffic::new(MESSAGE_BUFFER),
            expected: VecDeque::new(),
            channels: HashMap::new(),
            placeholder: None,
        };
        if let Some(password) = &handshake.password {
            command::auth(subscription.traffic.end(), handshake.user.as_deref(), password);
            subscription.await_reply(SubscriptionRequest::Auth, now);
        }
        subscription
    }

    /// Begins to listen for a key, unless that is so.
    pub fn subscribe(&mut self, key: &Key, now: Timestamp) {
        let channel = self.channels.entry(Arc::clone(key)).or_default();
        if !std::mem::replace(&mut channel.is_wanted, true) {
            channel.pending += 1;
            publish::subscribe(self.traffic.end(), key);
            self.await_reply(SubscriptionRequest::Subscribe(Arc::clone(key)), now);
        }
    }

    /// Listens for a key no more.
    pub fn unsubscribe(&mut self, key: &[u8], now: Timestamp) {
        let Some((key, _)) = self.channels.get_key_value(key) else { return };
        let key = Arc::clone(key);
        if self.channels.len() == 1 {
            self.hold_place(&key, now);
        }
        let Some(channel) = self.channels.get_mut(&key) else { return };
        if std::mem::take(&mut channel.is_wanted) {
            channel.pending += 1;
            publish::unsubscribe(self.traffic.end(), &key);
            self.await_reply(SubscriptionRequest::Unsubscribe(key), now);
        }
    }

    /// Subscribes to the placeholder, unless that was done before. Its name begins with a key that is listened for: a
    /// server that permits the one by a pattern is likely to permit the other.
    fn hold_place(&mut self, key: &[u8], now: Timestamp) {
        if self.placeholder.is_none() {
            let name = Key::from([key, PLACEHOLDER].concat());
            publish::subscribe(self.traffic.end(), &name);
            self.placeholder = Some(Arc::clone(&name));
            self.await_reply(SubscriptionRequest::Placeholder(name), now);
        }
    }

    /// Whether every hint on this key is received.
    pub fn is_live(&self, key: &[u8]) -> bool {
        self.channels.get(key).is_some_and(|channel| channel.is_live && channel.is_wanted)
    }

    /// How many channels the server may count us in on.
    pub fn len(&self) -> usize {
        self.channels.len()
    }

    /// Whether nothing is listened for, and nothing is left to be said about it.
    pub fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    /// The next thing that the received bytes mean, or `None` until more are received.
    ///
    /// # Errors
    /// The bytes are neither a hint nor what was asked for. The connection must be given up.
    pub fn next_event(&mut self) -> Result<Option<SubscriptionEvent>, ProtocolError> {
        while self.traffic.has_input() {
            // Even half an answer is too much when nothing is expected and nothing is listened for.
            if self.expected.is_empty() && self.channels.is_empty() && self.placeholder.is_none() {
                return Err(ProtocolError::Unrequested);
            }
            let Some((reply, length)) = self.traffic.decode()? else { return Ok(None) };
            let said = Said::by(reply)?;
            let is_message = matches!(said, Said::Message(..));
            let event = match said {
                Said::Message(key, message) => match self.channels.get_key_value(key) {
                    Some((key, channel)) if channel.is_live => {
                        // While an answer is to come, no waiter relies on this channel. It is confirmed again when that
                        // is certain.
                        (channel.pending == 0).then(|| SubscriptionEvent::Received(Arc::clone(key), message))
                    }
                    None if self.placeholder.as_deref() == Some(key) => None,
                    _ => return Err(ProtocolError::Unrequested),
                },
                answer => {
                    let request = self.expected.pop_front().ok_or(ProtocolError::Unrequested)?;
                    take(&mut self.channels, request, answer)?
                }
            };
            match is_message {
                true => self.traffic.taken(length),
                false => _ = self.traffic.answered(length),
            }
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    fn await_reply(&mut self, request: SubscriptionRequest, now: Timestamp) {
        self.expected.push_back(request);
        self.traffic.note_request(now);
    }
}

/// What a server says on a subscriber connection.
enum Said<'b> {
    Message(&'b [u8], Message),
    Fine,
    Left(&'b [u8]),
    Listening(&'b [u8]),
    No(Cause),
}

impl<'b> Said<'b> {
    fn by(reply: Reply<'b>) -> Result<Said<'b>, ProtocolError> {
        match reply {
            Reply::Array(Some(elements)) => Said::by_array(elements),
            Reply::Error(text) => Ok(Said::No(error_reply::cause(text))),
            Reply::Simple(b"OK") => Ok(Said::Fine),
            _ => Err(ProtocolError::UnexpectedReply),
        }
    }

    fn by_array(mut elements: Elements<'b>) -> Result<Said<'b>, ProtocolError> {
        let said = (elements.next(), elements.next(), elements.next(), elements.next());
        let (Some(Reply::Bulk(Some(kind))), Some(Reply::Bulk(Some(channel))), Some(last), None) = said else {
            return Err(ProtocolError::UnexpectedReply);
        };
        let key = channel.strip_prefix(publish::CHANNEL).ok_or(ProtocolError::Unrequested)?;
        match (kind, last) {
            (b"message", Reply::Bulk(Some(said))) => Ok(Said::Message(key, Message::parse(said))),
            (b"subscribe", Reply::Integer(1..)) => Ok(Said::Listening(key)),
            (b"unsubscribe", Reply::Integer(0..)) => Ok(Said::Left(key)),
            _ => Err(ProtocolError::UnexpectedReply),
        }
    }
}

/// Takes the answer to a request.
fn take(
    channels: &mut HashMap<Key, Channel>,
    request: SubscriptionRequest,
    said: Said<'_>,
) -> Result<Option<SubscriptionEvent>, ProtocolError> {
    let (key, is_live) = match (request, said) {
        (SubscriptionRequest::Auth, Said::Fine) => return Ok(None),
        (SubscriptionRequest::Auth, Said::No(cause)) => {
            let cause = if cause == Cause::Server("ERR") { Cause::Auth } else { cause };
            return Ok(Some(SubscriptionEvent::Refused(Fault::new(Phase::Handshake, cause))));
        }
        // A server that does not permit it has the cost of the moves, and no other fault.
        (SubscriptionRequest::Placeholder(_), Said::No(_)) => return Ok(None),
        (SubscriptionRequest::Placeholder(key), Said::Listening(named)) if *key == *named => return Ok(None),
        (SubscriptionRequest::Subscribe(_), Said::No(cause)) => {
            let fault = Fault::new(Phase::Reply, cause).with(Detail::Command("SUBSCRIBE"));
            return Ok(Some(SubscriptionEvent::Refused(fault)));
        }
        (SubscriptionRequest::Subscribe(key), Said::Listening(named)) if *key == *named => (key, true),
        (SubscriptionRequest::Unsubscribe(key), Said::Left(named)) if *key == *named => (key, false),
        _ => return Err(ProtocolError::UnexpectedReply),
    };
    // It is there for as long as an answer is to come.
    let Some(channel) = channels.get_mut(&key) else { return Err(ProtocolError::Unrequested) };
    channel.is_live = is_live;
    channel.pending -= 1;
    if channel.pending == 0 && !channel.is_wanted {
        channels.remove(&key);
        return Ok(None);
    }
    let is_confirmed = is_live && channel.is_wanted && channel.pending == 0;
    Ok(is_confirmed.then_some(SubscriptionEvent::Confirmed(key)))
}

/// Shows counts only: the buffers hold passwords.
impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("channels", &self.channels.len())
            .field("expected", &self.expected.len())
            .field("unsent", &self.traffic.unsent().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::publish::Hint;

    const NOW: Timestamp = Timestamp::ORIGIN;
    const HINT: Hint = Hint { crowd: 7, has_waited: true };

    fn key(name: &str) -> Key {
        name.as_bytes().into()
    }

    fn said(kind: &str, name: &str, last: &str) -> String {
        let channel = format!("quorumlock:{name}");
        format!("*3\r\n${}\r\n{kind}\r\n${}\r\n{channel}\r\n{last}\r\n", kind.len(), channel.len())
    }

    fn hint(name: &str) -> String {
        said("message", name, "$2\r\n7w")
    }

    fn receive(subscription: &mut Subscription, text: &str) -> Result<Vec<SubscriptionEvent>, ProtocolError> {
        let mut events = Vec::new();
        // Byte by byte: what is split by the network means the same.
        for byte in text.bytes() {
            subscription.traffic.space()[0] = byte;
            subscription.traffic.received(1);
            while let Some(event) = subscription.next_event()? {
                events.push(event);
            }
        }
        Ok(events)
    }

    fn listening(names: &[&str]) -> Subscription {
        let mut subscription = Subscription::open(&Handshake::default(), NOW);
        for name in names {
            subscription.subscribe(&key(name), NOW);
            let events = receive(&mut subscription, &said("subscribe", name, ":1")).unwrap();
            assert_eq!(events, [SubscriptionEvent::Confirmed(key(name))]);
        }
        let length = subscription.traffic.unsent().len();
        subscription.traffic.sent(length);
        subscription
    }

    #[test]
    fn hints_arrive_between_answers_and_name_their_keys() {
        let mut subscription = listening(&["a"]);
        subscription.subscribe(&key("b"), NOW);
        subscription.subscribe(&key("b"), NOW);
        assert_eq!(subscription.traffic.unsent(), b"*2\r\n$9\r\nSUBSCRIBE\r\n$12\r\nquorumlock:b\r\n");
        let text = hint("a") + &said("subscribe", "b", ":2") + &hint("a") + &hint("b");
        let [a, b] = ["a", "b"].map(key);
        let received = [
            SubscriptionEvent::Received(a.clone(), Message::Released(HINT)),
            SubscriptionEvent::Confirmed(b.clone()),
            SubscriptionEvent::Received(a, Message::Released(HINT)),
            SubscriptionEvent::Received(b, Message::Released(HINT)),
        ];
        assert_eq!(receive(&mut subscription, &text).unwrap(), received);
        assert!(subscription.is_live(b"a") && subscription.is_live(b"b") && !subscription.is_live(b"c"));
    }

    #[test]
    fn a_channel_that_is_left_gives_no_hint_and_is_forgotten() {
        let mut subscription = listening(&["a"]);
        subscription.unsubscribe(b"a", NOW);
        subscription.unsubscribe(b"a", NOW);
        assert!(!subscription.is_live(b"a") && !subscription.is_empty());
        let placed = said("subscribe", "a#subscriber", ":2");
        let text = hint("a") + &placed + &said("unsubscribe", "a", ":1");
        assert!(receive(&mut subscription, &text).unwrap().is_empty());
        assert!(subscription.is_empty() && subscription.traffic.waiting_since().is_none());
        assert_eq!(receive(&mut subscription, &hint("a")), Err(ProtocolError::Unrequested), "it was left");
    }

    #[test]
    fn the_last_channel_is_left_behind_a_placeholder_that_stays() {
        let mut subscription = listening(&["a", "b"]);
        let sent = |subscription: &mut Subscription| {
            let text = String::from_utf8(subscription.traffic.unsent().to_vec()).unwrap();
            subscription.traffic.sent(text.len());
            text.lines().filter(|line| line.ends_with("SUBSCRIBE") || line.contains(':')).collect::<Vec<_>>().join(" ")
        };
        subscription.unsubscribe(b"a", NOW);
        assert_eq!(sent(&mut subscription), "UNSUBSCRIBE quorumlock:a", "another channel is left");
        receive(&mut subscription, &said("unsubscribe", "a", ":1")).unwrap();
        subscription.unsubscribe(b"b", NOW);
        assert_eq!(sent(&mut subscription), "SUBSCRIBE quorumlock:b#subscriber UNSUBSCRIBE quorumlock:b");
        let placed = said("subscribe", "b#subscriber", ":2") + &said("unsubscribe", "b", ":1");
        assert!(receive(&mut subscription, &(placed + &hint("b#subscriber"))).unwrap().is_empty());
        subscription.subscribe(&key("a"), NOW);
        subscription.unsubscribe(b"a", NOW);
        assert_eq!(sent(&mut subscription), "SUBSCRIBE quorumlock:a UNSUBSCRIBE quorumlock:a");
    }

    #[test]
    fn a_placeholder_that_is_not_permitted_is_no_fault() {
        let mut subscription = listening(&["a"]);
        subscription.unsubscribe(b"a", NOW);
        let text = "-NOPERM no permissions\r\n".to_owned() + &said("unsubscribe", "a", ":0");
        assert!(receive(&mut subscription, &text).unwrap().is_empty());
        subscription.subscribe(&key("a"), NOW);
        let events = receive(&mut subscription, &said("subscribe", "a", ":1")).unwrap();
        assert_eq!(events, [SubscriptionEvent::Confirmed(key("a"))]);
    }

    #[test]
    fn a_channel_that_is_wanted_again_is_confirmed_when_that_is_certain() {
        let mut subscription = listening(&["a"]);
        subscription.unsubscribe(b"a", NOW);
        subscription.subscribe(&key("a"), NOW);
        subscription.unsubscribe(b"a", NOW);
        subscription.subscribe(&key("a"), NOW);
        assert!(receive(&mut subscription, &said("subscribe", "a#subscriber", ":2")).unwrap().is_empty());
        let [left, back] = [said("unsubscribe", "a", ":1"), said("subscribe", "a", ":2")];
        // A hint on what the server still counts us in on: it cannot be used before we are confirmed.
        assert!(receive(&mut subscription, &hint("a")).unwrap().is_empty());
        assert!(receive(&mut subscription, &(left.clone() + &back + &left)).unwrap().is_empty());
        assert_eq!(receive(&mut subscription, &back).unwrap(), [SubscriptionEvent::Confirmed(key("a"))]);
    }

    #[test]
    fn a_refused_subscription_says_why() {
        let mut subscription = Subscription::open(&Handshake::default(), NOW);
        subscription.subscribe(&key("a"), NOW);
        let denied = SubscriptionEvent::Refused(Fault::new(Phase::Reply, Cause::NoPermission));
        assert_eq!(receive(&mut subscription, "-NOPERM this user has no permissions\r\n").unwrap(), [denied]);
        let password = Handshake { password: Some("wrong".into()), ..Handshake::default() };
        let mut subscription = Subscription::open(&password, NOW);
        assert_eq!(subscription.traffic.unsent(), b"*2\r\n$4\r\nAUTH\r\n$5\r\nwrong\r\n");
        let denied = SubscriptionEvent::Refused(Fault::new(Phase::Handshake, Cause::Auth));
        assert_eq!(receive(&mut subscription, "-WRONGPASS no\r\n").unwrap(), [denied]);
        assert!(!format!("{subscription:?}").contains("wrong"));
    }

    #[test]
    fn what_answers_no_request_is_an_error() {
        use ProtocolError::*;
        let table = [
            (hint("b"), Unrequested),
            (said("subscribe", "a", ":1"), Unrequested),
            ("+OK\r\n".to_owned(), Unrequested),
            (said("pmessage", "a", "$0\r\n"), UnexpectedReply),
            (said("message", "a", ":1"), UnexpectedReply),
            (":1\r\n".to_owned(), UnexpectedReply),
            ("*2\r\n$7\r\nmessage\r\n$12\r\nquorumlock:a\r\n".to_owned(), UnexpectedReply),
            ("*3\r\n$7\r\nmessage\r\n$7\r\nanother\r\n$0\r\n\r\n".to_owned(), Unrequested),
            (">".to_owned(), UnknownType),
        ];
        for (text, error) in table {
            assert_eq!(receive(&mut listening(&["a"]), &text), Err(error), "{text:?}");
        }
        // An answer about another channel, or to another request.
        for text in [said("subscribe", "c", ":2"), said("unsubscribe", "b", ":1"), "+OK\r\n".to_owned()] {
            let mut subscription = listening(&["a"]);
            subscription.subscribe(&key("b"), NOW);
            assert_eq!(receive(&mut subscription, &text), Err(UnexpectedReply), "{text:?}");
        }
    }
}
