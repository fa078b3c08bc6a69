//! Each script leaves a real server and the embedded node the same, for any requests in any order:
//! the same replies, messages, keys and queues. The node has the scripts written out in Rust, so
//! this compares them with the Lua.

use super::sequence::{Kind, Sequence, channel};
use super::*;
use crate::storm::number;
use quorumlock::embedded::Condition;

/// `QUORUMLOCK_QUEUE_STEPS` makes the run longer.
const STEPS: u64 = 600;

/// A node, as one client that asks and one that receives.
struct Side {
    asks: Raw,
    receives: Raw,
}

impl Side {
    fn new(address: &str) -> Side {
        Side {
            asks: Raw::connect(address),
            receives: Raw::connect(address),
        }
    }

    /// Receives from no channel any more.
    fn reconnect(&mut self, address: &str) {
        self.receives = Raw::connect(address);
        (1..=6).for_each(|client| self.asks.await_no_receiver(&channel(client)));
    }

    fn say<W: AsRef<[u8]>>(&mut self, words: &[W]) -> String {
        without_time(&self.asks.say(words))
    }

    /// The messages since the last time, with their channels.
    fn messages(&mut self) -> Vec<String> {
        let mut messages = Vec::new();
        let mut reply = self.receives.say(&["PING"]);
        while !reply.to_lowercase().contains("pong") {
            messages.push(reply);
            reply = in_short(&self.receives.ask(b""));
        }
        messages
    }

    /// The keys and the queue, and whether each of them ends.
    fn stored(&mut self, kind: Kind) -> Vec<String> {
        let mut stored = Vec::new();
        for key in [kind.keys(), &[kind.queue()]].concat() {
            stored.extend([
                self.say(&["GET", key]),
                self.say(&["ZRANGE", key, "0", "-1", "WITHSCORES"]),
                format!("{} bytes of time", self.say(&["PTTL", key]).len()),
            ]);
        }
        stored
    }
}

/// Without what differs between two nodes that are asked one after the other: times, and tickets
/// and numbers that are the time.
fn without_time(text: &str) -> String {
    let mut words = Vec::new();
    for word in text.split_inclusive([' ', ':', '\n']) {
        let number = word.trim_end_matches([' ', ':', '\n', '\r']);
        let is_time = match number.parse::<f64>() {
            Ok(number) => (1.6e12..2.2e12).contains(&number) || (1.6e15..2.2e15).contains(&number),
            Err(_) => false,
        };
        words.push(if is_time {
            word.replace(number, "TIME")
        } else {
            word.to_owned()
        });
    }
    words.concat()
}

/// Lets the nodes go through the same: full memory, or a master that is lost.
fn set_condition(condition: Condition, server: &Server, node: &EmbeddedNode) {
    let memory = if condition == Condition::OutOfMemory {
        "1"
    } else {
        "0"
    };
    ask(server, &["CONFIG", "SET", "maxmemory", memory]);
    let master = if condition == Condition::Replica {
        ["127.0.0.1", "1"]
    } else {
        ["NO", "ONE"]
    };
    ask(server, &["REPLICAOF", master[0], master[1]]);
    node.set_condition(condition);
}

fn both_are_the_same(kind: Kind) {
    let steps = number("QUORUMLOCK_QUEUE_STEPS").unwrap_or(STEPS);
    for (server, node) in pairs() {
        let addresses = [server.address(), address_of(&node)];
        let mut sides = addresses.each_ref().map(|address| Side::new(address));
        let mut sequence = Sequence::new(kind);
        let mut seen = [0_u64; 7];
        for step in 0..steps {
            sequence.step = step;
            let condition = match step % 200 {
                150..170 => Condition::OutOfMemory,
                190..200 => Condition::Replica,
                _ => Condition::Serving,
            };
            if step % 10 == 0 {
                set_condition(condition, &server, &node);
            }
            if step % 276 == 253 {
                sides
                    .iter_mut()
                    .zip(&addresses)
                    .for_each(|(side, address)| side.reconnect(address));
            } else if step % 23 == 0 {
                let channel = channel(sequence.choice.of(&[1, 2, 3, 4, 5, 6]));
                let words = ["SUBSCRIBE", &channel];
                let confirmed = sides.each_mut().map(|side| side.receives.say(&words));
                assert_eq!(confirmed[0], confirmed[1]);
            }
            let damage = sequence.damage();
            let key = sequence.choice.of(kind.keys()).to_owned();
            let arguments = sequence.request();
            let script = [
                "EVAL".to_owned(),
                kind.script().to_owned(),
                "1".to_owned(),
                key,
            ];
            let request = [&script, &arguments[..]].concat();
            let replies = sides.each_mut().map(|side| {
                let damage = damage.as_ref().map(|words| side.say(words));
                (damage, without_remaining(&side.say(&request)))
            });
            if sequence.needs_pause {
                // It is over on both when they are asked next.
                thread::sleep(Duration::from_millis(3));
            }
            let [real, embedded] = sides
                .each_mut()
                .map(|side| (side.messages(), side.stored(kind)));
            let shown = format!(
                "step {step}: {:?} {arguments:?} after {damage:?}, {condition:?}",
                script[3]
            );
            assert_eq!(replies[0], replies[1], "{shown}");
            assert_eq!(real, embedded, "{shown}");
            let reply = &replies[0].1;
            let (messages, _) = &real;
            let is_queued = reply.split(' ').count() >= 7;
            if is_queued {
                let first = reply.trim_end().splitn(7, ' ').last().unwrap_or_default();
                first.clone_into(&mut sequence.first);
            }
            let takes = arguments[0] == "take";
            let is_granted = !is_queued && !reply.starts_with(['-', ':']) || reply == ":1\r\n";
            if is_granted && matches!(&*arguments[0], "take" | "acquire") {
                arguments[1][..40].clone_into(&mut sequence.holder);
            }
            seen[0] += u64::from(takes && !is_queued && !reply.starts_with('-'));
            seen[1] += u64::from(is_queued);
            seen[2] += u64::from(!messages.is_empty());
            seen[3] += u64::from(messages.iter().any(|message| message.contains("\r\n?")));
            seen[4] += u64::from(messages.len() > 2);
            seen[5] += u64::from(matches!(&**reply, ":2\r\n" | ":-2\r\n"));
            seen[6] += u64::from(
                reply.contains(" o ") || reply.contains("\no ") || reply.starts_with('-'),
            );
        }
        // For 4000 steps.
        let least = [100, 800, 300, 20, 5, 50, 20];
        assert!(
            seen.iter()
                .zip(least)
                .all(|(seen, least)| *seen > least * steps / 4000),
            "{seen:?}"
        );
    }
}

/// More entries than a script removes or sends a message to.
#[test]
fn long_queues_are_the_same() {
    for (server, node) in pairs() {
        let mut sides = [server.address(), address_of(&node)].map(|address| Side::new(&address));
        let kinds = [Kind::Fenced, Kind::Permit, Kind::Plain, Kind::ReadWrite];
        for (has_receiver, kind) in [false, true]
            .into_iter()
            .flat_map(|has_receiver| kinds.map(|kind| (has_receiver, kind)))
        {
            if has_receiver {
                sides.iter_mut().for_each(|side| {
                    side.receives.say(&["SUBSCRIBE", &channel(1)]);
                });
            }
            let letters = match kind {
                Kind::Fenced => "f",
                Kind::Permit => "s300:",
                Kind::Plain => "m",
                Kind::ReadWrite => "r",
            };
            let key = kind.keys()[0];
            let queue = kind.queue();
            let extra = ["600000", "3", "300", "", "r"];
            let extra: &[&str] = match kind {
                Kind::Fenced => &extra[..2],
                Kind::Permit => &extra[2..3],
                Kind::Plain => &[],
                Kind::ReadWrite => &extra[4..],
            };
            let token = "1".repeat(40);
            let first = format!("{:016x}{letters}0", 1);
            let last = format!("{:016x}{letters}299", 1);
            let take = |mode, challenged| {
                [
                    &["take", &token, "600000", &last, "299", mode, challenged],
                    extra,
                ]
                .concat()
            };
            let requests = [
                vec!["leave"],
                vec!["release", &token, &last, "299", "600000"],
                take("p", ""),
                take("f", &first),
                take("f", "none"),
            ];
            for words in &requests {
                let [real, embedded] = sides.each_mut().map(|side| {
                    let mut say = |words: &[&str]| side.say(words);
                    say(&["DEL", key, queue]);
                    for call in 0..300 {
                        say(&[
                            "ZADD",
                            queue,
                            &call.to_string(),
                            &format!("{:016x}{letters}{call}", 1),
                        ]);
                    }
                    let call = [&["EVAL", kind.script(), "1", key], &words[..]].concat();
                    let replies = [say(&call), say(&call)];
                    let stored = [
                        say(&["GET", key]),
                        say(&["ZCARD", queue]),
                        say(&["ZRANGE", queue, "0", "5"]),
                    ];
                    (
                        replies.map(|reply| without_remaining(&reply)),
                        side.messages(),
                        stored.map(|text| without_time(&text)),
                    )
                });
                assert_eq!(real, embedded, "{kind:?} {words:?} {has_receiver}");
            }
        }
    }
}

#[test]
fn fenced_locks_are_the_same() {
    both_are_the_same(Kind::Fenced);
}

#[test]
fn permits_are_the_same() {
    both_are_the_same(Kind::Permit);
}

#[test]
fn plain_locks_are_the_same() {
    both_are_the_same(Kind::Plain);
}

#[test]
fn read_write_locks_are_the_same() {
    both_are_the_same(Kind::ReadWrite);
}
