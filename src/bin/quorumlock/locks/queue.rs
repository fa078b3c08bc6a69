//! The queue of a lock: how many calls wait, which one is first, and for how long.
//!
//! A queue is a sorted set of entries. The score is the time at which the call began to wait, in
//! microseconds since
//! 1970. Any program may have written something else there, so nothing of it is relied on.

use crate::connection::Value;
use crate::json::{Object, maybe, object};
use quorumlock::algorithm::queue::Entry;
use quorumlock::algorithm::time::Human;
use quorumlock::protocol::key_space;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The queue of a lock, on one node or on all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queue {
    /// How many calls wait.
    pub(crate) count: u64,
    first: Option<First>,
}

/// The call that is first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct First {
    entry: Entry,
    waits: Duration,
}

/// The keys of the queues in which calls wait for the lock with this key: its own, and if it is a
/// slot, the semaphore's. With `is_name`, also the key of the semaphore of the same name.
pub(super) fn keys(key: &str, is_name: bool) -> impl Iterator<Item = String> {
    let is_plain = key_space::is_plain(key);
    let semaphores = [key_space::semaphore_of_slot(key), is_name.then_some(key)];
    let semaphores = semaphores
        .into_iter()
        .flatten()
        .filter(move |_| is_plain)
        .map(key_space::semaphore);
    [key.to_owned()]
        .into_iter()
        .chain(semaphores)
        .map(|key| key_space::queue(&key))
}

impl Queue {
    /// From the replies to `ZCARD` and to `ZRANGE 0 0 WITHSCORES`, by the clock of the server. None
    /// if no call waits, or if the user may not ask.
    pub(super) fn of(count: Value, first: Value, server_micros: u64) -> Option<Queue> {
        let Value::Integer(count @ 1..) = count else {
            return None;
        };
        let first = first.array().unwrap_or_default();
        let first = match first.as_slice() {
            [Value::Bulk(member), score] => Entry::parse(member).map(|entry| First {
                entry,
                waits: waits(&score.text().unwrap_or_default(), server_micros),
            }),
            _ => None,
        };
        Some(Queue {
            count: count.unsigned_abs(),
            first,
        })
    }

    /// What several nodes have: the greatest count, and the call that is first on most of them.
    pub(super) fn of_nodes(queues: impl Iterator<Item = Queue>) -> Queue {
        let (mut count, mut firsts) = (0, BTreeMap::<Entry, Vec<Duration>>::new());
        for queue in queues {
            count = count.max(queue.count);
            if let Some(first) = queue.first {
                firsts.entry(first.entry).or_default().push(first.waits);
            }
        }
        let firsts = firsts.into_iter().map(|(entry, mut waits)| {
            // The clocks of nodes differ.
            waits.sort_unstable();
            (waits.len(), waits[waits.len() / 2], entry)
        });
        let first = firsts.max();
        let first = first.map(|(_, waits, entry)| First { entry, waits });
        Queue { count, first }
    }

    /// The queue as part of an object: `waiting`, and `first_waiter`.
    pub(crate) fn json(&self) -> Object {
        object! { "waiting": self.count, "first_waiter": maybe(self.first.as_ref().map(First::json)) }
    }
}

impl First {
    /// The client that waits.
    fn client(&self) -> String {
        format!("{:016x}", self.entry.client)
    }

    fn json(&self) -> Object {
        object! {
            "client" = self.client(),
            "wants" = self.entry.kind.wants(),
            "waiting_ms": self.waits.as_millis(),
        }
    }
}

/// How long a call waits that began at this score: not at all for one that is ahead or no time, and
/// not since before 1970.
fn waits(score: &str, server_micros: u64) -> Duration {
    let begun = score.parse::<f64>().ok().filter(|score| !score.is_nan());
    // A conversion of a float saturates.
    let begun = begun.map_or(server_micros, |score| score as u64);
    Duration::from_millis(server_micros.saturating_sub(begun) / 1000)
}

/// What waits, with a comma in front; empty if no call does.
impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.count {
            0 => return Ok(()),
            1 => "waits",
            _ => "wait",
        };
        write!(f, ", {} {word}", self.count)?;
        let Some(first) = &self.first else {
            return Ok(());
        };
        let wants = match first.entry.kind.wants() {
            "lock" => String::new(),
            "permit" => " for a permit".to_owned(),
            verb => format!(" to {verb}"),
        };
        write!(
            f,
            ", first {}{wants}, for {}",
            first.client(),
            Human(first.waits)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_754_000_000_000_000;

    fn first(member: &str, score: &str) -> Value {
        Value::Array(
            [member, score]
                .map(|text| Value::Bulk(text.as_bytes().to_vec()))
                .into(),
        )
    }

    fn shown(member: &str, score: &str) -> String {
        Queue::of(Value::Integer(3), first(member, score), NOW)
            .unwrap()
            .to_string()
    }

    #[test]
    fn the_first_call_is_shown_with_what_it_wants_and_for_how_long() {
        let score = "1753999998500000";
        for (call, wants) in [
            ("m7", ""),
            ("f7", ""),
            ("r7", " to read"),
            ("w7", " to write"),
            ("s3:7", " for a permit"),
        ] {
            let member = format!("00112233445566aa{call}");
            assert_eq!(
                shown(&member, score),
                format!(", 3 wait, first 00112233445566aa{wants}, for 1.5 s")
            );
        }
        let one = Queue::of(Value::Integer(1), first("00112233445566aas3:7", score), NOW).unwrap();
        assert_eq!(
            one.to_string(),
            ", 1 waits, first 00112233445566aa for a permit, for 1.5 s"
        );
        let json = one.json().to_string();
        let object = "{\"client\":\"00112233445566aa\",\"wants\":\"permit\",\"waiting_ms\":1500}";
        assert_eq!(json, format!("{{\"waiting\":1,\"first_waiter\":{object}}}"));
        assert_eq!(
            Queue::default().json().to_string(),
            "{\"waiting\":0,\"first_waiter\":null}"
        );
    }

    #[test]
    fn a_hostile_queue_does_no_harm() {
        for score in [
            "inf",
            "+inf",
            "nan",
            "-nan",
            "",
            "word",
            "1e300",
            "1.7976931348623157e+308",
            "1754000000000001",
        ] {
            assert!(
                shown("00112233445566aam7", score).ends_with(", for 0 s"),
                "{score}"
            );
        }
        for score in ["-inf", "-1", "-1e300", "0", "-0"] {
            let since_1970 = format!(", for {}", Human(Duration::from_micros(NOW)));
            assert!(
                shown("00112233445566aam7", score).ends_with(&since_1970),
                "{score}"
            );
        }
        let members = [
            "",
            "x",
            "00112233445566a",
            "00112233445566aa",
            "00112233445566aam",
            "00112233445566aax7",
            "é0112233445566aam7",
        ];
        for member in members.into_iter().chain([
            "00112233445566AAm7",
            "00112233445566aas7",
            "00112233445566aam\u{1b}[2J",
        ]) {
            assert_eq!(shown(member, "1"), ", 3 wait", "{member:?}");
        }
        for count in [
            Value::Integer(0),
            Value::Integer(-1),
            Value::Nil,
            Value::Bulk(b"3".to_vec()),
        ] {
            assert_eq!(
                Queue::of(count, first("00112233445566aam7", "1"), NOW),
                None
            );
        }
        let most = Queue::of(Value::Integer(i64::MAX), Value::Nil, 0).unwrap();
        assert_eq!(most.to_string(), format!(", {} wait", i64::MAX));
    }

    #[test]
    fn several_nodes_have_the_greatest_count_and_the_first_of_most() {
        let node = |count, member: &str, score: &str| {
            Queue::of(Value::Integer(count), first(member, score), NOW).unwrap()
        };
        let a = "00000000000000aam1";
        let b = "00000000000000bbm1";
        let nodes = [
            node(2, a, "1753999999000000"),
            node(9, b, "1753999998000000"),
            node(1, a, "1753999999000000"),
        ];
        assert_eq!(
            Queue::of_nodes(nodes.into_iter()).to_string(),
            ", 9 wait, first 00000000000000aa, for 1 s"
        );
        assert_eq!(Queue::of_nodes([].into_iter()), Queue::default());
    }

    #[test]
    fn a_lock_has_its_queue_and_a_slot_that_of_its_semaphore() {
        for (key, is_name, queues) in [
            ("quorumlock-rw:a#1", true, "quorumlock-rw:a#1"),
            ("a", false, "a"),
            ("a", true, "a quorumlock-permits:a"),
            ("a#1", false, "a#1 quorumlock-permits:a"),
        ] {
            let found: Vec<_> = keys(key, is_name).collect();
            let expected = queues.split(' ').map(|of| format!("quorumlock-queue:{of}"));
            assert!(expected.eq(found.iter().cloned()), "{key}: {found:?}");
        }
    }
}
