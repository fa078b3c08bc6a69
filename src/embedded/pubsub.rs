//! Publish and subscribe, as far as the library uses them: channels by name, one connection that
//! listens, another that tells.
//!
//! The store knows subscribers only by number; what is published waits here until the server has
//! handed it out.

use std::collections::BTreeMap;

use super::reply::Reply;
use crate::protocol::resp;

/// What was published and not handed out yet, and how many listen to what.
#[derive(Clone, Debug, Default)]
pub(super) struct Exchange {
    listeners: BTreeMap<Vec<u8>, usize>,
    messages: Vec<Message>,
    /// How many messages there were.
    published: u64,
}

/// Something that was published.
#[derive(Clone, Debug)]
pub struct Message {
    number: u64,
    channel: Vec<u8>,
    payload: Vec<u8>,
}

/// The channels of one connection, and how many messages there had been when it began to listen.
pub(super) type Subscriptions = BTreeMap<Vec<u8>, u64>;

impl Exchange {
    /// Publishes, and returns how many clients will receive it.
    pub(super) fn publish(&mut self, channel: Vec<u8>, payload: &[u8]) -> usize {
        let Some(&listeners) = self.listeners.get(&channel) else {
            return 0;
        };
        self.published += 1;
        self.messages.push(Message {
            number: self.published,
            channel,
            payload: payload.to_vec(),
        });
        listeners
    }

    /// What is to be handed out.
    pub(super) fn take(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.messages)
    }

    pub(super) fn subscribe(
        &mut self,
        subscriptions: &mut Subscriptions,
        channels: &[&[u8]],
    ) -> Reply {
        let subscribe = |&channel: &&[u8]| {
            if !subscriptions.contains_key(channel) {
                subscriptions.insert(channel.to_vec(), self.published);
                *self.listeners.entry(channel.to_vec()).or_default() += 1;
            }
            let count = Reply::count(subscriptions.len());
            Reply::Array(vec![Reply::bulk("subscribe"), Reply::bulk(channel), count])
        };
        Reply::Each(channels.iter().map(subscribe).collect())
    }

    /// A connection has come to its end.
    pub(super) fn forget(&mut self, subscriptions: &mut Subscriptions) {
        for channel in std::mem::take(subscriptions).into_keys() {
            if let Some(listeners) = self.listeners.get_mut(&channel) {
                *listeners -= 1;
            }
        }
        self.listeners.retain(|_, listeners| *listeners > 0);
    }

    /// All of them have.
    pub(super) fn clear(&mut self) {
        self.listeners.clear();
        self.messages.clear();
    }
}

/// Writes what the connection is to hear of it.
pub(super) fn hear(subscriptions: &Subscriptions, message: &Message, out: &mut Vec<u8>) {
    let since = subscriptions.get(&message.channel);
    if since.is_some_and(|&since| message.number > since) {
        resp::encode(out, &[b"message", &message.channel, &message.payload]);
    }
}
