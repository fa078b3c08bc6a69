//! Why the votes of a node count, or not yet: for people, and as JSON.

use crate::json::{Object, list, maybe, object, quoted};
use quorumlock::algorithm::time::Human;
use quorumlock::{NodeNote, NodeState, NodeStatus, RestartPolicy};

/// Why the votes of a node that answers count, and since when. None if they do not.
pub(crate) fn reason(status: &NodeStatus, policy: RestartPolicy) -> Option<String> {
    let NodeState::Voting = status.state() else {
        return None;
    };
    match (status.counted_for(), status.note()) {
        (_, note) if status.is_durable() => Some(format!(
            "votes count, because it is declared durable; {note}"
        )),
        (_, note) if policy == RestartPolicy::Off => {
            Some(format!("votes count, by restart policy off; {note}"))
        }
        (Some(time), note) => Some(format!("votes counted for {}; {note}", Human(time))),
        (None, note @ NodeNote::Withheld) => Some(format!("votes count; {note}")),
        (None, _) => None,
    }
}

/// What a node remembers, and what follows from that.
pub(crate) fn json(status: &NodeStatus) -> Object {
    let (note, age) = match status.note() {
        NodeNote::Founder { age } => ("founder", Some(age)),
        NodeNote::Missing => ("missing", None),
        NodeNote::Since { age } => ("since", Some(age)),
        NodeNote::Withheld => ("withheld", None),
        _ => ("unknown", None),
    };
    let quarantine = match status.state() {
        NodeState::Quarantined { remaining } => Some(remaining.as_millis()),
        _ => None,
    };
    let mismatches = status.mismatches();
    object! {
        "quarantine_ms": maybe(quarantine),
        "votes_counted_ms": maybe(status.counted_for().map(|time| time.as_millis())),
        "note" = note,
        "note_age_ms": maybe(age.map(|age| age.as_millis())),
        "mismatches": list(mismatches.iter().map(|mismatch| quoted(mismatch.kind()))),
    }
}
