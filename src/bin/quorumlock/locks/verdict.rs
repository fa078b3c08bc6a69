//! What the sightings of one lock come to: held, split, an orphan, free.

use super::queue::Queue;
use super::sighting::Sighting;
use super::survey::Survey;
use super::token::{self, Token};
use crate::json::{Object, list, maybe, object, quoted};
use quorumlock::algorithm::time::Human;
use quorumlock::protocol::key_space;
use quorumlock::protocol::kinds::key_kind::KeyKind;
use quorumlock::protocol::kinds::{fenced, plain, read_write};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What a lock is, by all nodes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No node has a key of it, or a fence alone.
    Free,
    /// A majority has the key of one holder.
    Held,
    /// Fewer than a majority have a key: the rest of an attempt that lost, or of a holder whose
    /// nodes forgot.
    Orphan,
    /// Several tokens, and none has a majority.
    Split,
    /// Too few nodes answered to tell.
    Unknown,
    /// The value of the key is no lock.
    Foreign,
}

/// That a node has a holder: for how long, and what it has.
type Held<'s> = (Duration, &'s Sighting);

/// A lock, as the nodes have it.
pub(crate) struct Verdict {
    pub(crate) key: String,
    /// The name of the lock, without prefix and mark.
    pub(crate) name: String,
    pub(crate) kind: &'static KeyKind,
    pub(crate) state: State,
    /// The token of the holder, or of the largest part; of several readers, the token of the one
    /// that stays longest.
    pub(crate) token: Option<Token>,
    /// How many readers have a majority, or any node if none has. Zero beside a token: that is a
    /// writer's.
    readers: usize,
    /// The calls that wait. For a slot, also those that wait for any slot of its semaphore.
    pub(crate) queue: Queue,
    label: Option<String>,
    /// Which nodes have it, in their order: their numbers from 0.
    pub(crate) nodes: Vec<usize>,
    /// Until when a majority has it; for what no majority has, until the last node has it no more.
    remaining: Duration,
    has_expiry: bool,
    pub(crate) fence: Option<u64>,
}

impl Verdict {
    /// Judges this key.
    pub(crate) fn of(survey: &Survey, key: &str) -> Verdict {
        let quorum = survey.quorum();
        let unknown = survey.nodes.iter().filter(|node| node.is_err()).count();
        let seen: Vec<(usize, &Sighting)> = survey
            .sightings(key)
            .enumerate()
            .filter_map(|(node, seen)| Some((node, seen.ok()??)))
            .collect();
        let mut holders: BTreeMap<&Token, Vec<Held<'_>>> = BTreeMap::new();
        for &(_, sighting) in &seen {
            for (token, left) in &sighting.holders {
                holders.entry(token).or_default().push((*left, sighting));
            }
        }
        holders
            .values_mut()
            .for_each(|held| held.sort_by_key(|&(left, _)| std::cmp::Reverse(left)));
        // How long a node has it, and so many others.
        let left = |held: &[Held<'_>], others: usize| held.get(others).map(|&(left, _)| left);
        let largest = holders
            .iter()
            .max_by_key(|(_, held)| (held.len().min(quorum), left(held, quorum - 1)));
        let (token, with_token) = largest
            .map(|(token, held)| (*token, held.as_slice()))
            .unzip();
        let with_token = with_token.unwrap_or_default();
        let is_foreign =
            holders.is_empty() && seen.iter().any(|(_, sighting)| sighting.lock.is_none());
        let is_reader = |held: &[Held<'_>]| held.iter().any(|(_, seen)| seen.has_readers());
        let is_one = holders.len() == 1 || holders.values().all(|held| is_reader(held));
        let state = match with_token.len() {
            count if count >= quorum => State::Held,
            count if count + unknown >= quorum => State::Unknown,
            _ if is_foreign => State::Foreign,
            0 => State::Free,
            _ if !is_one => State::Split,
            _ => State::Orphan,
        };
        let others = if state == State::Held { quorum - 1 } else { 0 };
        let readers = holders
            .values()
            .filter(|held| is_reader(held) && held.len() > others)
            .count();
        let is_holder = |(holder, _): &(Token, Duration)| Some(holder) == token;
        let nodes = seen
            .iter()
            .filter(|(_, seen)| is_foreign || seen.holders.iter().any(is_holder))
            .map(|&(node, _)| node)
            .collect();
        Verdict {
            key: key.to_owned(),
            name: survey.name_of(key).to_owned(),
            kind: key_space::lock(key).map_or(&plain::KEYS, |(kind, _)| kind),
            state,
            label: with_token
                .iter()
                .find_map(|(_, sighting)| sighting.label())
                .map(str::to_owned),
            token: token.cloned(),
            readers: if is_reader(with_token) { readers } else { 0 },
            queue: survey.queue(key),
            nodes,
            remaining: left(with_token, others).unwrap_or_default(),
            has_expiry: seen
                .iter()
                .all(|(_, sighting)| sighting.expires_in.is_some()),
            fence: seen.iter().filter_map(|(_, sighting)| sighting.fence).max(),
        }
    }

    /// The holder as far as it is shown: its label, or the first digits of its token. And what
    /// waits.
    pub(crate) fn holder(&self) -> String {
        let holder = match (&self.label, &self.token) {
            (Some(label), _) => label.clone(),
            (None, Some(token)) => token.to_string(),
            (None, None) => "-".to_owned(),
        };
        holder + &self.queue.to_string()
    }

    /// The kind of lock, in a word or two: of a read-write lock that is held, what its holders are.
    pub(crate) fn kind(&self) -> String {
        match (self.readers, &self.token) {
            (0, Some(_)) if self.is_read_write() => "writer".to_owned(),
            (0, _) => self.kind.word.to_owned(),
            (1, _) => "1 reader".to_owned(),
            (readers, _) => format!("{readers} readers"),
        }
    }

    pub(crate) fn is_read_write(&self) -> bool {
        *self.kind == read_write::KEYS
    }

    /// How long it is held, in words.
    pub(crate) fn time_left(&self) -> String {
        match self.state {
            _ if !self.has_expiry => "for ever".to_owned(),
            State::Free | State::Foreign => "-".to_owned(),
            _ => Human(self.remaining).to_string(),
        }
    }

    pub(crate) fn json(&self, addresses: &[String]) -> Object {
        let nodes = self
            .nodes
            .iter()
            .filter_map(|&node| addresses.get(node))
            .map(quoted);
        let remaining = if self.has_expiry {
            self.remaining.as_millis()
        } else {
            0
        };
        object! {
            "name" = self.name,
            "fenced": *self.kind == fenced::KEYS,
            "read_write": self.is_read_write(),
            "state" = self.state,
            _: token::json(self.token.as_ref(), self.label.as_deref()),
            "readers": self.readers,
            _: self.queue.json(),
            "nodes": list(nodes),
            "remaining_ms": remaining,
            "has_expiry": self.has_expiry,
            "fence": maybe(self.fence),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            State::Foreign => "foreign",
            State::Free => "free",
            State::Held => "held",
            State::Orphan => "orphan",
            State::Split => "split",
            State::Unknown => "unknown",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Step, Trouble};
    use crate::locks::sighting::{Keys, Stored};

    fn token(number: u8) -> String {
        format!("{number:02x}").repeat(20)
    }

    /// A node that has this value under a key for so many milliseconds, by its clock at 1 s.
    fn node(key: &str, value: String, millis: u64) -> Result<Keys, Trouble> {
        let lives = Some(Duration::from_millis(millis));
        let sighting = Sighting::of(key, Stored::Text(value.into_bytes()), lives, 1000);
        Ok(Keys {
            locks: [(key.to_owned(), sighting)].into(),
            ..Keys::default()
        })
    }

    fn verdict(key: &str, nodes: Vec<Result<Keys, Trouble>>) -> Verdict {
        let survey = Survey {
            nodes,
            addresses: Vec::new(),
            prefix: String::new(),
        };
        Verdict::of(&survey, key)
    }

    #[test]
    fn a_majority_decides_what_a_lock_is() {
        let one = |word: &str| match word.split_at(1) {
            ("x", _) => Err(Trouble::new(Step::Connect, "down")),
            ("-", _) => Ok(Keys::default()),
            (holder, millis) => node("x", token(holder.as_bytes()[0]), millis.parse().unwrap()),
        };
        for (words, state, count, millis) in [
            ("a5 a9 a7 - -", State::Held, 3, 5),
            ("a5 a9 a7 a8 b1", State::Held, 4, 7),
            ("a5 a9 - - -", State::Orphan, 2, 9),
            ("a5 a9 b7 b8 -", State::Split, 2, 8),
            ("a5 a9 x - -", State::Unknown, 2, 9),
            ("a5 a9 a3 x x", State::Held, 3, 3),
            ("- - - x x", State::Free, 0, 0),
            ("- - x x x", State::Unknown, 0, 0),
        ] {
            let verdict = verdict("x", words.split(' ').map(one).collect());
            assert_eq!(
                (verdict.state, verdict.nodes.len()),
                (state, count),
                "{words}"
            );
            assert_eq!(verdict.remaining.as_millis(), millis, "{words}");
        }
    }

    #[test]
    fn readers_that_have_a_majority_are_counted() {
        let key = "quorumlock-rw:x";
        // Each reader is a number, and behind it the end of its hold.
        let held = |readers: &str| {
            let entry = |reader: &str| {
                let (number, deadline) = reader.split_once(':').unwrap();
                format!(" {deadline}:{}", token(number.parse().unwrap()))
            };
            let entries: String = readers.split(' ').map(entry).collect();
            node(key, format!("r{entries}"), 60_000)
        };
        for (readers, state) in [
            (
                ["1:1005 2:1007", "1:1004 2:1009 3:1099", "1:1006"],
                State::Held,
            ),
            (["1:1005", "2:1007", "3:1000"], State::Orphan),
        ] {
            let verdict = verdict(key, readers.map(held).into());
            assert_eq!(
                (verdict.state, &*verdict.kind(), &*verdict.holder()),
                (state, "2 readers", "020202…")
            );
            assert_eq!(verdict.remaining.as_millis(), 7);
        }
    }

    #[test]
    fn no_more_than_six_digits_of_a_token_are_shown() {
        let held = verdict("x", vec![node("x", token(0xab), 5)]);
        assert_eq!(held.holder(), "ababab…");
        assert!(!held.json(&[]).to_string().contains("abababa"));
    }
}
