//! Whether a node's yes counts for a program that has never met the node: what the node remembers
//! of itself decides.
//!
//! Each node has one key that names the node's *incarnation*: the time in which it has lost no
//! data. A program reads the key on each connection, and again once a second: a *look*. Its value,
//! the *note*, tells since when the node has lost nothing, or that the node is a *founder*, one of
//! those with which a deployment began.
//!
//! ```text
//!   looked at ── noted as it is ── founder, or noted for max_ttl ─────► counts
//!       │               └───────── otherwise ──────────────► waits for what is missing
//!       └── no note, or one of an earlier incarnation ── judged: noted as founder, or as of now
//!       └── no right to the key, or no INFO ─────────► the rules of `quarantine` alone
//! ```
//!
//! # Contract
//! 1. A node is in the incarnation that is noted if its run id is, and it was not promoted since
//!    ([`Incarnation::is_still`]).
//! 2. Its age is the lesser of those by the node's clock and by the wall clocks of programs: a
//!    node's clock that is set forward ends no wait. It counts as a founder, or when its age is the
//!    longest `max_ttl` of this program and of all notes that it has read ([`Rules::standing`]). A
//!    node that is slower may know of a longer one: until all were looked at, have failed, or did
//!    not reply in time, only founders count, and notes of a day ([`Rules::counts_early`]).
//! 3. A note whose time lies more than a second ahead, and whose age counts, is of no use: the node
//!    is noted anew.
//! 4. Nodes are judged when each was looked at, has failed, or did not reply in time
//!    ([`Rules::notes`]). One that was a moment slower may know better.
//! 5. If a quorum has answered, and nothing was found but founders that were noted within a second
//!    by any clock, the deployment is new: the nodes are noted as founders. Two programs that begin
//!    at once do not make each other wait. Otherwise they are noted as of now. With less than a
//!    quorum, nothing is noted. A node that was noted as of now is no sign of a new deployment,
//!    however lately: the program that did it has found something older.
//! 6. A note is written only where the node still has the one that was read. A node counts by what
//!    is there then, and not before the reply.
//! 7. A program with a longer `max_ttl` stores it at each node whose note it has read before a vote
//!    of any counts. A node without a note counts when it has one, which contains it.
//! 8. With [`RestartPolicy::Strict`] no node is a founder. With [`RestartPolicy::Off`] each node
//!    counts all the same, and is noted for the other programs.
//!
//! `tests/models/incarnations` searches what these rules allow, and refutes the rules without each
//! of them.

pub mod mismatch;
pub mod run_id;
pub mod summary;

use super::node::NodeId;
use super::quarantine::RestartPolicy;
use run_id::{ReplicationIds, RunId};
use std::time::Duration;

/// A younger note may come from a program that begins at the same time. No note is stored because
/// of an older look.
pub const MOMENT: Duration = Duration::from_secs(1);

/// No program may have longer locks: a note that names a longer time is damage.
pub const LONGEST_MAX_TTL: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Locks that last longer are rare: by a note of this age, a node counts though others have not
/// replied yet.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The time in which a node has lost no data, identified by what its server reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// The id of the server's process.
    pub run_id: RunId,
    /// The ids of its replication history.
    pub replication: ReplicationIds,
}

impl Incarnation {
    /// Whether a server that has these names now has kept its data since it had the noted ones.
    pub fn is_still(&self, noted: &Incarnation) -> bool {
        self.run_id == noted.run_id && !self.replication.show_a_promotion_since(&noted.replication)
    }
}

/// As what a node was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The deployment began with it.
    Founder,
    /// It joined, or has lost its data.
    Since,
}

/// What is stored at a node. Times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The incarnation that it is about.
    pub incarnation: Incarnation,
    /// As what it was noted.
    pub origin: Origin,
    /// When, by the node's clock.
    pub time: u64,
    /// When, by the wall clock of the program that wrote it.
    pub wall: u64,
    /// The longest time that a lock may last, by all programs that have written here.
    pub max_ttl: Duration,
    /// Of how many nodes the deployment is, by the program that wrote it.
    pub nodes: u8,
}

/// What was read of a node's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// There is no key.
    Nothing,
    /// A value that no program has written.
    Damage,
    /// A note, of this incarnation or of another.
    Note(Note),
}

/// One look at a node. Times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// What its key held.
    pub found: Found,
    /// The incarnation that it is in now.
    pub present: Incarnation,
    /// Its clock.
    pub time: u64,
    /// This program's wall clock.
    pub wall: u64,
}

impl Look {
    /// Whether the node has kept its data since an earlier look, as far as these two show.
    pub fn continues(&self, earlier: &Look) -> bool {
        let kept = |note: &Note| (note.origin, note.time, note.wall);
        let is_same_note = earlier
            .note()
            .is_none_or(|noted| self.note().map(kept) == Some(kept(noted)));
        self.present.is_still(&earlier.present) && is_same_note
    }

    /// The note, if it is about the present incarnation.
    fn note(&self) -> Option<&Note> {
        let Found::Note(note) = &self.found else {
            return None;
        };
        self.present.is_still(&note.incarnation).then_some(note)
    }

    fn is_ahead(&self, note: &Note) -> bool {
        let limit = MOMENT.as_micros() as u64;
        note.time > self.time.saturating_add(limit) || note.wall > self.wall.saturating_add(limit)
    }

    /// For how long the note has been there, by the node's clock and by the wall clocks of
    /// programs.
    fn ages(&self, note: &Note) -> [Duration; 2] {
        let ages = [
            self.time.saturating_sub(note.time),
            self.wall.saturating_sub(note.wall),
        ];
        ages.map(Duration::from_micros)
    }

    /// For how long the note has been there at least.
    fn age(&self, note: &Note) -> Duration {
        let [by_node, by_wall] = self.ages(note);
        by_node.min(by_wall)
    }

    /// Whether a deployment that has this node may have begun a moment ago: by either clock, as one
    /// that was set back makes no old note young.
    fn is_fresh(&self) -> bool {
        match &self.found {
            Found::Nothing => true,
            Found::Damage => false,
            Found::Note(note) => {
                let is_young =
                    !self.is_ahead(note) && self.ages(note).iter().all(|&age| age < MOMENT);
                note.origin == Origin::Founder && is_young
            }
        }
    }
}

/// What is known of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "there are few, and most were looked at"
)]
pub enum Seen {
    /// It has not replied, or failed.
    Silent,
    /// It does not name itself, or the user has no right to the key.
    Untold,
    /// It was looked at.
    Look(Look),
}

impl Seen {
    /// The look, if there was one.
    pub fn look(&self) -> Option<&Look> {
        if let Seen::Look(look) = self {
            Some(look)
        } else {
            None
        }
    }
}

/// Whether a node counts, as of the look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its votes count.
    Counts,
    /// They count after this time.
    Waits(Duration),
    /// It is to be noted first.
    Unnoted,
}

/// What to write at a node. The node adds the time, unless the note keeps its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewNote {
    /// The note, with the times of the look.
    pub note: Note,
    /// Whether it is the note that was read, with a longer `max_ttl`, and keeps its times.
    pub keeps_times: bool,
}

/// By what a program judges nodes.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// What is done about nodes that may have forgotten locks.
    pub policy: RestartPolicy,
    /// The longest that a lock of this program may last.
    pub max_ttl: Duration,
}

impl Rules {
    /// The rules of a program whose locks last for so long at most. Nodes remember whole
    /// milliseconds.
    pub fn new(policy: RestartPolicy, max_ttl: Duration) -> Rules {
        let millis = u64::try_from(max_ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        Rules {
            policy,
            max_ttl: Duration::from_millis(millis),
        }
    }

    /// The longest that any lock may last that a node may have forgotten, as far as this program
    /// and the notes that it has read know.
    pub fn longest(&self, seen: &[Seen]) -> Duration {
        let noted = seen
            .iter()
            .filter_map(Seen::look)
            .filter_map(|look| match look.found {
                Found::Note(note) => Some(note.max_ttl),
                Found::Nothing | Found::Damage => None,
            });
        noted.fold(self.max_ttl, Duration::max)
    }

    /// Whether a node counts that was looked at, where no lock lasts longer than `longest`.
    pub fn standing(&self, look: &Look, longest: Duration) -> Standing {
        match self.note(look) {
            None => Standing::Unnoted,
            Some(note) if note.max_ttl < self.max_ttl => Standing::Unnoted,
            Some(note) if self.is_founder(note) => Standing::Counts,
            Some(note) => match longest.saturating_sub(look.age(note)) {
                Duration::ZERO => Standing::Counts,
                left => Standing::Waits(left),
            },
        }
    }

    /// Whether a node counts that was looked at, while others have not replied: one of them may
    /// know of a longer time than `longest`, and a node does not know of the locks that it has
    /// lost.
    pub fn counts_early(&self, look: &Look, longest: Duration) -> bool {
        self.standing(look, longest.max(DAY)) == Standing::Counts
    }

    /// Whether a node that was looked at counts, and not before the others have replied.
    pub fn awaits_others(&self, seen: &[Seen]) -> bool {
        let longest = self.longest(seen);
        let is_late = |look: &Look| {
            self.standing(look, longest) == Standing::Counts && !self.counts_early(look, longest)
        };
        seen.iter().filter_map(Seen::look).any(is_late)
    }

    /// Whether a node that was looked at has noted a shorter time to live than this program's: then
    /// no vote counts before that is stored.
    pub fn is_longer(&self, seen: &[Seen]) -> bool {
        let is_shorter = |look: &Look| {
            self.note(look)
                .is_some_and(|note| note.max_ttl < self.max_ttl)
        };
        seen.iter().filter_map(Seen::look).any(is_shorter)
    }

    /// Whether the nodes are to be judged: one that was looked at is to be noted.
    pub fn is_open(&self, seen: &[Seen]) -> bool {
        let longest = self.longest(seen);
        seen.iter()
            .filter_map(Seen::look)
            .any(|look| self.standing(look, longest) == Standing::Unnoted)
    }

    /// What to write at which nodes, where no lock lasts longer than `longest`: once each was
    /// looked at, has failed, or has not replied in time.
    pub fn notes(&self, seen: &[Seen], longest: Duration) -> Vec<(NodeId, NewNote)> {
        let looks: Vec<(NodeId, &Look)> = seen
            .iter()
            .enumerate()
            .filter_map(|(index, seen)| Some((NodeId::new(index), seen.look()?)))
            .collect();
        // A node that does not tell votes as well, by other rules.
        let answered = seen.iter().filter(|seen| **seen != Seen::Silent).count();
        if answered < seen.len() / 2 + 1 {
            return Vec::new();
        }
        let is_new = self.may_found() && looks.iter().all(|(_, look)| look.is_fresh());
        let nodes = seen.len() as u8;
        let origin = if is_new {
            Origin::Founder
        } else {
            Origin::Since
        };
        let new_note = |look: &Look| match self.note(look) {
            Some(note) => NewNote {
                note: Note {
                    max_ttl: longest,
                    ..*note
                },
                keeps_times: true,
            },
            None => {
                let incarnation = look.present;
                let time = look.time;
                let wall = look.wall;
                let note = Note {
                    incarnation,
                    origin,
                    time,
                    wall,
                    max_ttl: longest,
                    nodes,
                };
                NewNote {
                    note,
                    keeps_times: false,
                }
            }
        };
        let unnoted = looks
            .iter()
            .filter(|(_, look)| self.standing(look, longest) == Standing::Unnoted);
        unnoted
            .map(|&(node, look)| (node, new_note(look)))
            .collect()
    }

    /// For how long a node has counted that was looked at, where no lock lasts longer than
    /// `longest`; none if it does not count.
    pub fn counted_for(&self, look: &Look, longest: Duration) -> Option<Duration> {
        let note = self
            .note(look)
            .filter(|_| self.standing(look, longest) == Standing::Counts)?;
        Some(look.age(note).saturating_sub(if self.is_founder(note) {
            Duration::ZERO
        } else {
            longest
        }))
    }

    /// The note of a node, if it is of use: one by which the node would have to wait is not ahead.
    fn note<'l>(&self, look: &'l Look) -> Option<&'l Note> {
        look.note()
            .filter(|note| self.is_founder(note) || !look.is_ahead(note))
    }

    fn is_founder(&self, note: &Note) -> bool {
        self.may_found() && note.origin == Origin::Founder
    }

    fn may_found(&self) -> bool {
        self.policy != RestartPolicy::Strict
    }
}

#[cfg(test)]
mod tests;
