//! What the sightings of one lock come to: held, split, an orphan, free.

use super::content::{Content, Token};
use super::survey::{Lifetime, Sighting, Survey};
use crate::json::{self, Object};
use quorumlock::Human;
use quorumlock::protocol::fenced::{self, FENCED_KEY_PREFIX};
use std::fmt;
use std::time::Duration;

/// What a lock is, by all nodes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No node has a key of it, or a fence alone.
    Free,
    /// A majority has the key of one holder.
    Held,
    /// Fewer than a majority have a key: what is left of an attempt that lost, or of a holder whose nodes forgot.
    Orphan,
    /// Several tokens, and none has a majority.
    Split,
    /// Too few nodes answered to tell.
    Unknown,
    /// What stands under the key is no lock of this library.
    Foreign,
}

/// A lock, as the nodes have it.
pub(crate) struct Verdict {
    /// The name of the lock, without prefix and mark.
    pub(crate) name: String,
    pub(crate) is_fenced: bool,
    pub(crate) state: State,
    /// The token of the holder, or of the largest part.
    pub(crate) token: Option<Token>,
    pub(crate) label: Option<String>,
    /// Which nodes have it, in their order: their numbers from 0.
    pub(crate) nodes: Vec<usize>,
    /// Until when a majority has it; for what no majority has, until the last node has it no more.
    pub(crate) remaining: Duration,
    pub(crate) has_expiry: bool,
    pub(crate) fence: Option<u64>,
}

impl Verdict {
    /// Judges the key of this name.
    pub(crate) fn of(survey: &Survey, name: &str) -> Verdict {
        let sightings: Vec<_> = survey.sightings(name).collect();
        let unknown = sightings.iter().filter(|sighting| sighting.is_err()).count();
        let seen: Vec<(usize, &Sighting)> =
            sightings.into_iter().enumerate().filter_map(|(node, seen)| Some((node, seen.ok()??))).collect();
        let held = || seen.iter().filter(|(_, sighting)| !sighting.remaining.is_zero());
        let mut tokens: Vec<&Token> = held().filter_map(|(_, sighting)| sighting.content.token()).collect();
        tokens.sort();
        tokens.dedup();
        let holders = |token: &Token| held().filter(|(_, sighting)| sighting.content.token() == Some(token)).count();
        let token = tokens.iter().copied().max_by_key(|token| holders(token)).cloned();
        let with_token: Vec<&(usize, &Sighting)> =
            held().filter(|(_, sighting)| sighting.content.token() == token.as_ref() && token.is_some()).collect();
        // A read-write lock has no one holder to show.
        let is_other = |content: &Content| matches!(content, Content::Foreign | Content::ReadWrite);
        let is_foreign = tokens.is_empty() && seen.iter().any(|(_, sighting)| is_other(&sighting.content));
        let state = match with_token.len() {
            count if count >= survey.quorum => State::Held,
            count if count + unknown >= survey.quorum => State::Unknown,
            _ if is_foreign => State::Foreign,
            0 => State::Free,
            _ if tokens.len() > 1 => State::Split,
            _ => State::Orphan,
        };
        let mut times: Vec<Duration> = with_token.iter().map(|(_, sighting)| sighting.remaining).collect();
        times.sort_unstable_by(|a, b| b.cmp(a));
        let deciding = if state == State::Held { survey.quorum - 1 } else { 0 };
        let fences = seen.iter().filter_map(|(_, sighting)| match sighting.content {
            Content::Fenced { fence, .. } => Some(fence),
            _ => None,
        });
        let nodes = if is_foreign { seen.iter().map(|&(node, _)| node).collect() } else { nodes_of(&with_token) };
        Verdict {
            name: fenced::resource(name).to_owned(),
            is_fenced: name.starts_with(FENCED_KEY_PREFIX),
            state,
            label: with_token.iter().find_map(|(_, sighting)| sighting.content.label()).map(str::to_owned),
            token,
            nodes,
            remaining: times.get(deciding).copied().unwrap_or_default(),
            has_expiry: seen.iter().all(|(_, sighting)| sighting.lifetime != Lifetime::Forever),
            fence: fences.max(),
        }
    }

    /// The holder as far as it is shown: its label, or the first digits of its token.
    pub(crate) fn holder(&self) -> String {
        match (&self.label, &self.token) {
            (Some(label), _) => label.clone(),
            (None, Some(token)) => format!("{}…", token.shown()),
            (None, None) => "-".to_owned(),
        }
    }

    /// How long it is held, in words.
    pub(crate) fn time_left(&self) -> String {
        match self.state {
            _ if !self.has_expiry => "for ever".to_owned(),
            State::Free | State::Foreign => "-".to_owned(),
            _ => Human(whole_millis(self.remaining)).to_string(),
        }
    }

    pub(crate) fn json(&self, addresses: &[String]) -> Object {
        let nodes = self.nodes.iter().filter_map(|&node| addresses.get(node)).map(|address| json::quoted(address));
        Object::new()
            .text("name", &self.name)
            .raw("fenced", self.is_fenced)
            .text("state", self.state)
            .maybe("token", self.token.as_ref().map(Token::shown))
            .maybe("label", self.label.as_ref())
            .list("nodes", nodes)
            .raw("remaining_ms", if self.has_expiry { self.remaining.as_millis() } else { 0 })
            .raw("has_expiry", self.has_expiry)
            .maybe_raw("fence", self.fence)
    }
}

fn nodes_of(seen: &[&(usize, &Sighting)]) -> Vec<usize> {
    seen.iter().map(|&&(node, _)| node).collect()
}

fn whole_millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
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
    use crate::locks::survey::Keys;

    /// A node that has this token for so many milliseconds, nothing, or does not answer.
    fn node(state: Option<(u8, u64)>) -> Result<Keys, Trouble> {
        let sighting = |(token, millis): (u8, u64)| {
            let value = format!("{token:02x}").repeat(20).into_bytes();
            let time = Duration::from_millis(millis);
            let content = Content::of("x", &value);
            Sighting { content, lifetime: Lifetime::For(time), remaining: time, value: Some(value) }
        };
        Ok(state.map(|state| ("x".to_owned(), sighting(state))).into_iter().collect())
    }

    fn verdict(nodes: Vec<Result<Keys, Trouble>>) -> Verdict {
        let quorum = nodes.len() / 2 + 1;
        Verdict::of(&Survey { nodes, quorum }, "x")
    }

    #[test]
    fn a_majority_decides_what_a_lock_is() {
        let down = || Err(Trouble::new(Step::Connect, "down"));
        let (a, b) = (|millis| node(Some((1, millis))), |millis| node(Some((2, millis))));
        let none = || node(None);
        let table = [
            (vec![a(5), a(9), a(7), none(), none()], State::Held, 3, 5),
            (vec![a(5), a(9), a(7), a(8), b(1)], State::Held, 4, 7),
            (vec![a(5), a(9), none(), none(), none()], State::Orphan, 2, 9),
            (vec![a(5), a(9), b(7), b(8), none()], State::Split, 2, 8),
            (vec![a(5), a(9), down(), none(), none()], State::Unknown, 2, 9),
            (vec![a(5), a(9), a(3), down(), down()], State::Held, 3, 3),
            (vec![none(), none(), none(), down(), down()], State::Free, 0, 0),
            (vec![none(), none(), down(), down(), down()], State::Unknown, 0, 0),
        ];
        for (index, (nodes, state, count, millis)) in table.into_iter().enumerate() {
            let verdict = verdict(nodes);
            assert_eq!((verdict.state, verdict.nodes.len()), (state, count), "{index}");
            assert_eq!(verdict.remaining.as_millis(), millis, "{index}");
        }
    }

    #[test]
    fn no_more_than_six_digits_of_a_token_are_shown() {
        let held = verdict(vec![node(Some((0xab, 5)))]);
        assert_eq!(held.holder(), "ababab…");
        assert!(!held.json(&[]).to_string().contains("abababa"));
    }
}
