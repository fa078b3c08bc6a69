//! A note as the search stores it, by ages, and the look at it that the library's rules judge.

use crate::rules::Rule;
use quorumlock::algorithm::incarnation::run_id::{ReplicationIds, RunId};
use quorumlock::algorithm::incarnation::{Found, Incarnation, Look, MOMENT, Note, Origin};
use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

/// The `max_ttl` of most programs, and of some, in ticks of one [`MOMENT`].
pub(crate) const SHORT: i8 = 2;
pub(crate) const LONG: i8 = 4;
/// Older notes are alike.
pub(crate) const OLD: i8 = LONG;
/// A time that lies so far ahead that it does not come.
pub(crate) const AHEAD: i8 = -9;
/// What a node's clock may be set to: the age that its note has then.
pub(crate) const SET_TO: [i8; 6] = [AHEAD, -1, 0, 1, 2, OLD];
/// The clocks of programs show this.
const NOW: u64 = 1_000_000_000_000;

/// How the names of a node have changed since the note.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Names {
    #[default]
    Same,
    /// Another replication id, without a former one.
    Renamed,
    /// Another replication id, and a former one.
    Promoted,
    /// Another run id.
    Other,
}

/// What a node's key holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Memo {
    pub(crate) origin: Option<Origin>,
    pub(crate) names: Names,
    /// The longer `max_ttl`.
    pub(crate) is_long: bool,
    /// By the node's clock, and by the programs' clocks, in ticks.
    pub(crate) age: i8,
    pub(crate) wall: i8,
}

pub(crate) fn ttl(is_long: bool) -> i8 {
    if is_long { LONG } else { SHORT }
}

pub(crate) fn duration(ticks: i8) -> Duration {
    MOMENT * ticks.unsigned_abs().into()
}

pub(crate) fn ticks_before_now(time: u64) -> i8 {
    ((NOW - time) / MOMENT.as_micros() as u64) as i8
}

fn aged(age: i8) -> i8 {
    if age == AHEAD {
        AHEAD
    } else {
        (age + 1).min(OLD)
    }
}

/// As the note has it, and as the node has it now.
static SAME: LazyLock<Incarnation> = LazyLock::new(|| incarnation(b'p', b'a', b'0'));
static RENAMED: LazyLock<Incarnation> = LazyLock::new(|| incarnation(b'p', b'b', b'0'));
static PROMOTED: LazyLock<Incarnation> = LazyLock::new(|| incarnation(b'p', b'b', b'a'));
static OTHER: LazyLock<Incarnation> = LazyLock::new(|| incarnation(b'q', b'b', b'0'));

fn incarnation(run: u8, current: u8, former: u8) -> Incarnation {
    let run_id = RunId::new(&[run; 40]);
    let replication = ReplicationIds::new(&[current; 40], &[former; 40]);
    Incarnation {
        run_id: run_id.unwrap(),
        replication: replication.unwrap(),
    }
}

impl Memo {
    pub(crate) fn is_there(&self) -> bool {
        self.origin.is_some()
    }

    pub(crate) fn ticked(self) -> Memo {
        if self.is_there() {
            Memo {
                age: aged(self.age),
                wall: aged(self.wall),
                ..self
            }
        } else {
            self
        }
    }

    /// A founder's, that was written not more than so many ticks ago by the node's clock, or so
    /// many by others.
    pub(crate) fn is_young_founder(&self, age: u8, wall: u8) -> bool {
        let is_young = (0..=age as i8).contains(&self.age) || self.wall <= wall as i8;
        self.origin == Some(Origin::Founder) && is_young
    }

    /// What a program reads that goes by this rule.
    pub(crate) fn look(&self, rule: Rule, own_ttl: Duration) -> Look {
        let present = match (self.names, rule) {
            (_, Rule::AnyIncarnation) | (Names::Same, _) => *SAME,
            (Names::Renamed, Rule::IdAlone) | (Names::Other, _) => *OTHER,
            (Names::Renamed, _) => *RENAMED,
            (Names::Promoted, _) => *PROMOTED,
        };
        let time = |age: i8| NOW.saturating_add_signed(-i64::from(age) * MOMENT.as_micros() as i64);
        let found = self.origin.map_or(Found::Nothing, |origin| {
            let age = if rule == Rule::KeepsAhead {
                self.age.max(0)
            } else {
                self.age
            };
            let wall = if rule == Rule::ClockOfNode {
                self.age
            } else {
                self.wall
            };
            let noted = duration(ttl(self.is_long));
            let max_ttl = if rule == Rule::OwnTtl { own_ttl } else { noted };
            Found::Note(Note {
                incarnation: *SAME,
                origin,
                time: time(age),
                wall: time(wall),
                max_ttl,
                nodes: 3,
            })
        });
        Look {
            found,
            present,
            time: NOW,
            wall: NOW,
        }
    }
}

/// `-` is nothing, `f` a founder, `s` a later one; the age by the node's clock, and by others where
/// it differs; `L` the longer `max_ttl`; what has changed of the names.
impl fmt::Display for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.origin {
            None => return f.write_str("-"),
            Some(Origin::Founder) => "f",
            Some(Origin::Since) => "s",
        };
        write!(f, "{letter}{}", self.age)?;
        if self.wall != self.age {
            write!(f, "/{}", self.wall)?;
        }
        f.write_str(if self.is_long { "L" } else { "" })?;
        f.write_str(match self.names {
            Names::Same => "",
            Names::Renamed => " renamed",
            Names::Promoted => " promoted",
            Names::Other => " other",
        })
    }
}
