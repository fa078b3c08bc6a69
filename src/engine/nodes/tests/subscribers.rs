//! Calls that wait, and the connections on which they are told.

use super::*;
use crate::algorithm::kind::EntryKind;
use crate::algorithm::queue::{Entry, Message};
use crate::engine::interrupt::Interrupt;
use crate::engine::subscriber::Subscriber;
use crate::engine::tests::interrupt;
use crate::engine::wait_registry::{Note, Reaction};
use crate::protocol::operation::Verb;
use crate::protocol::subscription::SubscriptionEvent;

const CLIENT: u64 = 0xab;

/// What a server sends on the channel.
fn sent(kind: &str, last: &str) -> String {
    let length = kind.len();
    format!("*3\r\n${length}\r\n{kind}\r\n$27\r\nquorumlock:{CLIENT:016x}\r\n{last}\r\n")
}

fn message(text: &str) -> String {
    let length = text.len();
    sent("message", &format!("${length}\r\n{text}"))
}

pub(super) fn entry(number: u64) -> Entry {
    Entry {
        client: CLIENT,
        kind: EntryKind::Mutex,
        number,
    }
}

impl Cluster {
    /// A call begins to wait.
    pub(super) fn enter(&mut self, interrupt: &Arc<Interrupt>, now: Timestamp) -> u64 {
        let Nodes {
            subscribers,
            connections,
            ..
        } = &mut self.nodes;
        let (client, call) = subscribers.enter(interrupt, CLIENT, connections, now);
        assert_eq!(client, CLIENT);
        call
    }

    /// The removal of a call's entry from the only node.
    fn remove(&mut self, call: u64, now: Timestamp) {
        let leave = Verb::Leave(Some(entry(call)));
        let one = NodeSet::first(1);
        self.nodes
            .update_queue(&"k".into(), Kind::Plain, leave, one, now);
    }

    /// Entries may be left on the only node.
    fn leave_entries(&mut self, now: Timestamp) {
        let Nodes {
            subscribers,
            connections,
            ..
        } = &mut self.nodes;
        subscribers.on_left(NodeSet::first(1), &mut connections.poll, now);
    }
}

/// A client of one node, with a call that sleeps, and the node's end of the subscriber connection.
struct Waiting {
    cluster: Cluster,
    channel: PlayedServer,
    call: u64,
}

impl Waiting {
    /// The node has not replied to the subscription.
    fn begun(now: Timestamp) -> Waiting {
        let mut cluster = Cluster::in_use(1, now);
        let call = cluster.enter(&interrupt(), now);
        let mut channel = cluster.servers[0].beside();
        channel.accept();
        let Nodes {
            subscribers,
            connections,
            rounds,
            ..
        } = &mut cluster.nodes;
        subscribers.sleep(call, connections, rounds, now);
        Waiting {
            cluster,
            channel,
            call,
        }
    }

    fn confirmed(now: Timestamp) -> Waiting {
        let mut waiting = Waiting::begun(now);
        waiting.confirm(now);
        waiting
    }

    fn confirm(&mut self, now: Timestamp) {
        assert!(self.channel.received().contains("SUBSCRIBE"));
        self.channel.send(sent("subscribe", ":1"));
        self.cluster
            .drive(now, |nodes| nodes.subscribers.registry.is_attentive());
    }

    fn subscriber(&self) -> &Subscriber {
        &self.cluster.nodes.subscribers.connections[0]
    }

    /// Makes the connection if it may be made.
    fn maintain(&mut self, now: Timestamp) {
        let Nodes {
            subscribers,
            connections,
            ..
        } = &mut self.cluster.nodes;
        subscribers.connections[0].maintain(&connections[node(0)], CLIENT, now);
    }

    /// How many messages are taken at once.
    fn taken(&mut self, now: Timestamp) -> usize {
        let mut count = 0;
        self.cluster.nodes.subscribers.connections[0].ready(now, |event| {
            assert!(matches!(event, SubscriptionEvent::Received(_)));
            count += 1;
        });
        count
    }

    /// The node ends the connection. Returns after which time another one may be made.
    fn cut(&mut self, now: Timestamp) -> Duration {
        self.channel.end();
        soon(|| {
            self.taken(now);
            self.subscriber().is_closed().then_some(())
        });
        let due = self
            .subscriber()
            .due(&self.cluster.nodes.connections[node(0)]);
        due.since(now)
    }

    /// The call has ended.
    fn end(&mut self, now: Timestamp) {
        let registry = &mut self.cluster.nodes.subscribers.registry;
        registry.wake(self.call);
        registry.leave(self.call);
        self.settle(now);
    }

    /// Another call that has waited has ended.
    fn settle(&mut self, now: Timestamp) {
        let Nodes {
            subscribers,
            connections,
            ..
        } = &mut self.cluster.nodes;
        subscribers.on_wait_ended(connections, now);
    }

    /// What is done about a message for the call.
    fn reaction(&mut self, now: Timestamp) -> Reaction {
        let note = Note {
            node: node(0),
            message: Message::Turn(None),
            at: now,
        };
        let registry = &mut self.cluster.nodes.subscribers.registry;
        registry.on_message(self.call, note)
    }

    /// Whether the list to poll has the stream of a subscriber connection.
    fn is_listed(&self) -> bool {
        let watch = self.cluster.nodes.connections.poll.watch.as_ref().unwrap();
        watch.subscribers.iter().any(Option::is_some)
    }
}

#[test]
fn a_call_that_waits_makes_the_connections_and_the_next_one_uses_them() {
    let mut cluster = Cluster::in_use(3, at(1));
    let mut entered = || {
        let watch = cluster.nodes.watch(true, at(2));
        cluster.enter(&interrupt(), at(2));
        cluster.ends_poll(watch, at(2))
    };
    assert!(entered(), "they are polled");
    assert!(!entered());
    assert_eq!(cluster.nodes.subscribers.connections.len(), 3);
}

#[test]
fn connections_are_kept_for_a_minute_after_the_last_wait() {
    let mut waiting = Waiting::confirmed(at(1));
    let is_kept = |waiting: &mut Waiting, millis| {
        let nodes = &mut waiting.cluster.nodes;
        let poll = &mut nodes.connections.poll;
        nodes.subscribers.close_idle(poll, at(millis));
        !waiting.subscriber().is_closed()
    };
    assert!(is_kept(&mut waiting, 60_000), "a call waits");
    waiting.end(at(60_000));
    assert!(is_kept(&mut waiting, 119_999) && waiting.is_listed());
    assert!(!is_kept(&mut waiting, 120_000) && !waiting.is_listed());
    assert_eq!(waiting.channel.received(), "");
}

/// While there is a subscriber, they do not count as dead.
#[test]
fn a_connection_to_where_entries_may_be_left_is_closed_when_no_call_waits() {
    let mut waiting = Waiting::confirmed(at(1));
    waiting.cluster.leave_entries(at(2));
    assert!(!waiting.subscriber().is_closed());
    let watch = waiting.cluster.nodes.watch(true, at(2));
    waiting.end(at(3));
    assert!(waiting.subscriber().is_closed());
    assert!(waiting.cluster.ends_poll(watch, at(3)), "its list has it");
    assert!(!waiting.is_listed());
}

#[test]
fn a_call_that_has_ended_is_removed_where_its_removal_was_not_sent() {
    let mut waiting = Waiting::confirmed(at(1));
    waiting.end(at(2));
    assert_eq!(waiting.reaction(at(2)), Reaction::Leave);
    waiting.cluster.remove(waiting.call, at(2));
    assert_eq!(waiting.reaction(at(2)), Reaction::None);
    waiting.cluster.leave_entries(at(2));
    assert_eq!(waiting.reaction(at(2)), Reaction::Leave, "it may be lost");
}

/// A request that stores an entry may come after its removal.
#[test]
fn a_removal_does_not_count_for_a_minute_where_entries_may_be_left() {
    let mut waiting = Waiting::confirmed(at(1));
    waiting.end(at(1));
    waiting.cluster.leave_entries(at(1));
    for (millis, reaction) in [
        (30_000, Reaction::Leave),
        (60_000, Reaction::Leave),
        (60_001, Reaction::None),
    ] {
        waiting.settle(at(millis));
        waiting.cluster.remove(waiting.call, at(millis));
        assert_eq!(waiting.reaction(at(millis)), reaction, "{millis}");
    }
}

#[test]
fn of_several_messages_for_a_call_that_has_ended_one_is_returned() {
    let mut waiting = Waiting::confirmed(at(1));
    let messages = ["m8 k", "m8 k", "m9 k"].map(message);
    waiting.channel.send(messages.concat());
    let ended = soon(|| {
        let nodes = &mut waiting.cluster.nodes;
        let mut watch = nodes.watch(true, at(2));
        Nodes::poll(&mut watch, Duration::from_millis(1));
        let connections = &mut nodes.connections;
        let rounds = &mut nodes.rounds;
        let ended = nodes
            .subscribers
            .absorb(&mut watch, connections, rounds, at(2));
        (!ended.is_empty()).then_some(ended)
    });
    let entries: Vec<_> = ended.iter().map(|(_, notice)| notice.entry).collect();
    assert_eq!(entries, [8, 9].map(entry));
}

#[test]
fn the_list_keeps_a_connection_until_that_is_replaced() {
    let mut waiting = Waiting::confirmed(at(1));
    assert!(waiting.is_listed());
    let watch = waiting.cluster.nodes.watch(true, at(2));
    assert!(waiting.cut(at(2)).is_zero());
    waiting.maintain(at(2));
    waiting.cluster.nodes.absorb(watch, at(2));
    assert!(!waiting.is_listed(), "it has ended");
    waiting.channel.accept();
    waiting.confirm(at(2));
    assert!(waiting.is_listed());
}

#[test]
fn a_subscription_that_is_not_confirmed_in_time_is_given_up_for_a_while() {
    let mut waiting = Waiting::begun(at(1));
    for (millis, is_closed) in [(3001, false), (3002, true), (3012, false)] {
        waiting.cluster.step(at(millis));
        assert_eq!(waiting.subscriber().is_closed(), is_closed, "{millis}");
    }
}

#[test]
fn a_node_that_denies_the_subscription_is_asked_again_after_a_minute() {
    let mut waiting = Waiting::begun(at(1));
    waiting.channel.send("-NOPERM no right\r\n");
    let is_closed = |nodes: &Nodes| nodes.subscribers.connections[0].is_closed();
    waiting.cluster.drive(at(1), is_closed);
    for (millis, is_closed) in [(60_000, true), (60_001, false)] {
        waiting.maintain(at(millis));
        assert_eq!(waiting.subscriber().is_closed(), is_closed, "{millis}");
    }
}

#[test]
fn a_connection_that_has_lasted_is_made_again_at_once_and_another_one_only_once() {
    let mut waiting = Waiting::confirmed(at(1000));
    let mut opened_at = at(1000);
    for (millis, is_made_at_once) in [(99, true), (99, false), (100, true), (100, true)] {
        let now = opened_at.after(Duration::from_millis(millis));
        let pause = waiting.cut(now);
        assert_eq!(pause.is_zero(), is_made_at_once, "after {millis} ms");
        opened_at = now.after(pause);
        waiting.maintain(opened_at);
        waiting.channel.accept();
    }
}

#[test]
fn many_messages_are_taken_eight_buffers_at_a_time() {
    /// So many fill a buffer.
    const FILLING: usize = 64;
    let mut waiting = Waiting::confirmed(at(1));
    let text = message("m1 abcd");
    assert_eq!(text.len() * FILLING, 4096);
    let is_full = |_| {
        waiting.channel.send(text.repeat(9 * FILLING));
        let at_once = waiting.taken(at(1));
        assert!(at_once <= 8 * FILLING);
        let mut left = 9 * FILLING - at_once;
        soon(|| {
            left -= waiting.taken(at(1));
            (left == 0).then_some(())
        });
        at_once == 8 * FILLING
    };
    assert!((0..20).any(is_full), "all have arrived before, at times");
}

/// While no call waits, it counts as dead where the channel of its client has no subscriber.
#[test]
fn the_connection_is_closed_where_the_removal_of_an_entry_is_refused() {
    let mut cluster = Cluster::in_use(1, at(1));
    for (reply, is_closed) in [(":0\r\n", false), ("-NOPERM no permission\r\n", true)] {
        let call = cluster.enter(&interrupt(), at(1));
        cluster.nodes.subscribers.registry.leave(call);
        cluster.remove(call, at(1));
        cluster.nodes.flush();
        cluster.answer(0, reply, at(if is_closed { 3 } else { 2 }));
        let subscriber = &cluster.nodes.subscribers.connections[0];
        assert_eq!(subscriber.is_closed(), is_closed);
    }
}
