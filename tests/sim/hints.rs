//! What becomes of a message on its way to its client, and what a stranger publishes.
//!
//! A message is lost, late, delivered twice, or overtaken by a later one. Publishing promises
//! nothing, so all of that goes on when the other faults have ended; only the stranger stops.
//! Replies are not affected, and stay in order.

use crate::machine::run;
use crate::plan::MILLISECOND;
use crate::random::Random;
use crate::wire::Connection;
use crate::world::{Event, World};
use quorumlock::embedded::store::Message;
use std::collections::BTreeMap;

/// What becomes of messages, for a whole run.
#[derive(Clone, Debug, Default)]
pub(crate) struct HintPlan {
    /// One in so many is lost; zero is none.
    pub(crate) loss: u64,
    /// One in so many is delivered twice; zero is none.
    pub(crate) repetition: u64,
    /// How late each is.
    pub(crate) delay: u64,
    /// By how much more at most. Each message has a lateness of its own, so that they overtake each
    /// other.
    pub(crate) disorder: u64,
    pub(crate) strays: Option<Strays>,
}

/// A stranger publishes on the channels of clients, at one node: messages for calls that wait, hold
/// the lock or have ended.
#[derive(Clone, Debug)]
pub(crate) struct Strays {
    pub(crate) node: usize,
    pub(crate) interval: u64,
}

/// Messages that are late, and the connections that they go to.
#[derive(Default)]
pub(crate) struct LateHints {
    messages: BTreeMap<u64, (usize, Message)>,
    count: u64,
}

impl HintPlan {
    /// All messages arrive, in order and as soon as the path allows, and nothing else does.
    pub(crate) fn is_whole(&self) -> bool {
        self.loss == 0
            && self.repetition == 0
            && self.delay == 0
            && self.disorder == 0
            && self.strays.is_none()
    }

    /// Most of the kinds are off.
    pub(crate) fn draw(random: &mut Random) -> HintPlan {
        HintPlan {
            loss: random.pick(&[0, 0, 0, 0, 1, 3]),
            repetition: random.pick(&[0, 0, 0, 0, 1, 3]),
            delay: random.pick(&[0, 0, 0, 0, 0, 100 * MILLISECOND]),
            disorder: random.pick(&[0, 0, 0, 0, 5 * MILLISECOND, 100 * MILLISECOND]),
            strays: None,
        }
    }
}

impl World {
    /// Delivers what was published to all subscribers.
    pub(crate) fn deliver_messages(&mut self, node: usize) {
        for message in self.nodes[node].store.take_messages() {
            for index in self.live_connections(None, Some(node)) {
                self.deliver(index, &message);
            }
        }
    }

    /// Delivers one message to one subscriber, as the plan requires.
    fn deliver(&mut self, index: usize, message: &Message) {
        let HintPlan {
            loss,
            repetition,
            delay,
            disorder,
            ..
        } = self.plan.hints;
        if self.heard(index, message).is_empty() {
            return;
        }
        if self.random.once_in(loss) {
            return self.saw("a notification that is lost");
        }
        let is_repeated = self.random.once_in(repetition);
        if is_repeated {
            self.saw("a notification that is repeated");
        }
        for _ in 0..1 + u32::from(is_repeated) {
            if delay + disorder == 0 {
                self.hear(index, message);
                continue;
            }
            self.saw("a notification that is late");
            let at = self.now + delay + self.random.below(disorder + 1);
            self.late_hints.count += 1;
            let number = self.late_hints.count;
            self.late_hints
                .messages
                .insert(number, (index, message.clone()));
            self.schedule(at, Event::Hint { number });
        }
    }

    /// A message that is late arrives at its connection, if that is still there.
    pub(crate) fn deliver_late(&mut self, number: u64) {
        let Some((index, message)) = self.late_hints.messages.remove(&number) else {
            return;
        };
        let node = self.connections[index].node;
        if self.live_connections(None, Some(node)).contains(&index) {
            self.hear(index, &message);
        }
    }

    /// What a subscriber receives of a message.
    fn heard(&self, index: usize, message: &Message) -> Vec<u8> {
        let mut heard = Vec::new();
        self.connections[index].session.hear(message, &mut heard);
        heard
    }

    fn hear(&mut self, index: usize, message: &Message) {
        let heard = self.heard(index, message);
        if !heard.is_empty() {
            self.saw("a notification that a subscriber receives");
            let Connection { client, node, .. } = self.connections[index];
            self.record(|| {
                let text: Vec<_> = heard
                    .split(|byte| *byte == b'\n')
                    .map(String::from_utf8_lossy)
                    .collect();
                let text = text
                    .get(6)
                    .map(|text| text.trim_end().to_owned())
                    .unwrap_or_default();
                format!("node {node} → client {client}: message {text:?}")
            });
            let service = self.nodes[self.connections[index].node].service;
            self.send_to_client(index, heard, service);
        }
    }

    /// A stranger publishes, until all faults end.
    pub(crate) fn publish_stray(&mut self) {
        let Some(Strays { node, interval }) = self.plan.hints.strays else {
            return;
        };
        if !self.has_faults() {
            return;
        }
        if self.nodes[node].is_up
            && !self.nodes[node].is_hung
            && let Some((channel, text)) = self.forged()
        {
            let millis = self.nodes[node].millis(self.now);
            let words: [&[u8]; 3] = [b"PUBLISH", &channel, &text];
            run(&mut self.nodes[node].store, &words, millis);
            self.saw("a notification by a stranger");
            self.deliver_messages(node);
        }
        self.schedule(self.now + interval, Event::Stray);
    }
}
