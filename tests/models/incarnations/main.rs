//! What nodes remember of themselves, searched through: all states that one, two or three nodes,
//! and the programs that come and go, can come to.
//!
//! The rules are the library's own, `algorithm::incarnation`. Around them is a world of nodes, each
//! with its key and one lock, and of programs that know nothing when they begin ([`world`]). Nodes
//! lose what they have, or get an older copy of it; they do not reply; their clocks are set
//! ([`faults`]). [`note`] stores a key by ages, [`judge`] asks the rules. What must hold in every
//! state that [`search`] reaches:
//! 1. At most one program holds the lock.
//! 2. When no program is at work, one that begins finds that all nodes count, at the latest when
//!    `max_ttl` has passed twice; and that enough of them count at once, where nothing was lost.
//!
//! What the design leaves open is passed over ([`scope::open`]). A search that does not pass over
//! one of these finds its trace, and with `Strict` there is none.
//!
//! | open by default | with `Strict` |
//! |---|---|
//! | all that answer lost the key or never had it | closed |
//! | a loss while a deployment is founded, or a moment later | closed |
//! | a loss without a new process, between a look and what is done because of it | closed, unless a clock is set then |
//! | every node that knew of a longer `max_ttl` is lost or silent | open |
//!
//! Not in any scope, as it takes 7.4 million states: a node's clock that is set back and forward
//! again, while the node waits, ends the wait a second early.
//!
//! The rules without one of their clauses ([`rules`]) are searched by the same code, and each is
//! refuted by the shortest trace there is. One that is not weaker holds: a longer `max_ttl` that is
//! stored only at nodes whose votes count, as no program counts an age before all nodes have
//! replied.
//!
//! ```text
//!   cargo test --release -p models --test incarnations -- --nocapture        figures and traces
//!   QUORUMLOCK_INCARNATION_MODEL=full cargo test --release -p models --test incarnations -- --nocapture
//! ```

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test"
)]

mod faults;
mod judge;
mod note;
mod rules;
mod scope;
#[path = "../search.rs"]
mod search;
mod steps;
mod world;

use quorumlock::algorithm::quarantine::RestartPolicy;
use rules::Rule;
use scope::Fault::{Deleted, Demoted, Empty, Flushed, Hang, Lost, Renamed, Saved, Step, Unheard};
use scope::{Scope, open};
use world::World;

const ONE: Scope = Scope {
    nodes: 1,
    policy: RestartPolicy::Observed,
    founders: 0,
    faults: 2,
    kinds: &[Empty],
    longer: false,
    extends: false,
    apart: false,
    patience: 0,
    prompt: false,
    open: open::ALL,
};
const TWO: Scope = ONE.nodes(2);
const THREE: Scope = ONE.nodes(3);
/// No attempt takes a tick.
const PROMPT: Scope = THREE.prompt();
const STRICT: Scope = Scope {
    policy: RestartPolicy::Strict,
    open: open::NONE,
    ..THREE
};

fn holds(scope: Scope) {
    search::holds::<World>(Rule::Proved, scope);
}

fn is_refuted(rule: Rule, scope: Scope) {
    search::is_refuted::<World>(rule, scope);
}

fn is_full() -> bool {
    search::is_full("QUORUMLOCK_INCARNATION_MODEL")
}

#[test]
fn one_node() {
    let kinds = &[
        Deleted, Demoted, Empty, Flushed, Hang, Lost, Renamed, Saved, Unheard,
    ];
    holds(ONE.faults(3).kinds(kinds).patience(1));
    holds(ONE.kinds(kinds).apart());
    holds(ONE.kinds(&[Empty, Saved, Step]).extends());
}

#[test]
fn two_nodes() {
    holds(TWO.kinds(&[Empty, Hang, Saved]));
    holds(TWO.kinds(&[Empty, Step]));
    holds(TWO.kinds(&[Empty, Hang]).longer());
}

#[test]
fn three_nodes_that_restart() {
    holds(PROMPT.faults(3).kinds(&[Empty, Hang]));
    holds(PROMPT.kinds(&[Empty, Hang, Lost, Unheard]));
    holds(PROMPT.kinds(&[Deleted, Empty, Saved]));
    if !cfg!(debug_assertions) {
        holds(THREE.kinds(&[Empty, Hang]));
    }
    if is_full() {
        holds(THREE.kinds(&[Empty, Hang]).patience(1));
        holds(THREE.kinds(&[Empty, Hang, Saved]));
    }
}

#[test]
fn three_nodes_that_lose_data_in_one_process() {
    holds(PROMPT.faults(1).kinds(&[Deleted, Demoted, Flushed]).apart());
    if !cfg!(debug_assertions) {
        holds(PROMPT.kinds(&[Deleted, Demoted, Empty, Flushed, Hang]));
    }
    if is_full() {
        holds(THREE.faults(1).kinds(&[Flushed]).apart());
    }
}

#[test]
fn three_nodes_whose_clocks_are_set() {
    holds(PROMPT.kinds(&[Empty, Hang, Step]));
    holds(THREE.founders(2).kinds(&[Empty, Step]));
    if is_full() {
        holds(THREE.kinds(&[Empty, Step]));
    }
}

#[test]
fn three_nodes_and_programs_with_a_longer_time_to_live() {
    holds(PROMPT.faults(1).longer());
    search::holds::<World>(Rule::StoresAtVotes, PROMPT.faults(1).longer());
    if !cfg!(debug_assertions) {
        holds(PROMPT.kinds(&[Empty, Hang]).longer());
    }
    if is_full() {
        search::holds::<World>(Rule::StoresAtVotes, PROMPT.kinds(&[Empty, Hang]).longer());
        holds(PROMPT.kinds(&[Empty, Hang]).longer().extends());
        holds(THREE.faults(1).longer());
    }
}

#[test]
fn three_nodes_and_holders_that_extend_and_repair() {
    holds(PROMPT.kinds(&[Empty, Hang]).extends());
    if is_full() {
        holds(THREE.kinds(&[Empty, Hang]).extends());
    }
}

#[test]
fn nothing_is_passed_over_with_strict() {
    let kinds = &[
        Deleted, Demoted, Empty, Flushed, Hang, Lost, Renamed, Saved, Unheard,
    ];
    holds(STRICT.nodes(1).kinds(kinds).apart().patience(1));
    holds(
        STRICT
            .nodes(1)
            .kinds(&[Empty, Hang, Lost, Saved, Step])
            .apart()
            .patience(1),
    );
    holds(STRICT.kinds(&[Empty, Hang]).prompt());
    holds(STRICT.kinds(&[Empty, Step]).prompt());
    if !cfg!(debug_assertions) {
        holds(
            STRICT
                .nodes(2)
                .faults(1)
                .kinds(&[Demoted, Empty, Flushed, Saved])
                .apart(),
        );
        holds(STRICT.kinds(&[Empty, Hang]));
        holds(STRICT.faults(1).kinds(&[Demoted, Flushed]).apart().prompt());
    }
    if is_full() {
        holds(STRICT.nodes(1).faults(3).kinds(kinds).apart().patience(1));
        holds(STRICT.kinds(&[Empty, Hang]).extends());
        holds(
            STRICT
                .kinds(&[Empty, Hang])
                .longer()
                .prompt()
                .open(open::LONGER),
        );
    }
}

#[test]
fn the_open_cases_are_there() {
    let without = |case: u8, scope: Scope| is_refuted(Rule::Proved, scope.open(open::ALL & !case));
    without(open::ALL_LOST, ONE.faults(1));
    without(open::ALL_LOST, PROMPT.founders(2).kinds(&[Empty, Hang]));
    without(open::FOUNDING, PROMPT.faults(1));
    without(
        open::MOMENT,
        PROMPT.founders(3).faults(1).kinds(&[Flushed]).apart(),
    );
    without(
        open::MOMENT,
        PROMPT.founders(3).faults(1).kinds(&[Demoted]).apart(),
    );
    without(
        open::LONGER,
        PROMPT.founders(3).kinds(&[Empty, Hang]).faults(3).longer(),
    );
    // These are open with `Strict` too.
    let longer = STRICT.kinds(&[Empty, Hang]).faults(3).longer().prompt();
    is_refuted(Rule::Proved, longer.founders(3));
    is_refuted(
        Rule::Proved,
        STRICT.nodes(1).kinds(&[Flushed, Step]).apart().patience(1),
    );
}

#[test]
fn weaker_rules_are_refuted() {
    let longer = PROMPT.founders(3).longer();
    for (rule, scope) in [
        (Rule::FirstQuorum, PROMPT),
        (Rule::FirstQuorum, PROMPT.founders(2).faults(1)),
        (Rule::AnyIncarnation, ONE.faults(1).kinds(&[Saved])),
        (
            Rule::AnyIncarnation,
            PROMPT.founders(3).faults(1).kinds(&[Saved]),
        ),
        (Rule::FoundsUnheard, PROMPT.faults(3).kinds(&[Empty, Lost])),
        (Rule::OwnTtl, longer.faults(1)),
        (Rule::OwnNote, longer.kinds(&[Empty, Hang])),
        (Rule::CountsEarly, longer.kinds(&[Empty, Hang])),
        (Rule::ClockOfNode, PROMPT.founders(3).kinds(&[Empty, Step])),
        (
            Rule::YoungByEither,
            PROMPT.founders(2).kinds(&[Empty, Step]),
        ),
        (Rule::Unconditional, PROMPT.faults(1).longer()),
        (Rule::LateNotes, THREE.faults(1).kinds(&[Flushed])),
        (Rule::SomeNoteNothing, PROMPT.faults(1)),
        (Rule::StrictFoundsAll, STRICT.nodes(1).faults(1)),
        (
            Rule::StrictReadsNoNames,
            STRICT.nodes(1).faults(1).kinds(&[Demoted]).apart(),
        ),
        (Rule::KeepsAhead, TWO.kinds(&[Empty, Step])),
    ] {
        is_refuted(rule, scope);
    }
}

#[test]
fn waits_without_need_are_refuted() {
    for (rule, scope) in [
        (Rule::IdAlone, PROMPT.nodes(1).kinds(&[Renamed])),
        (Rule::IdAlone, PROMPT.kinds(&[Renamed])),
        (Rule::NothingYoung, PROMPT.faults(0).kinds(&[])),
        (Rule::WithoutQuorum, PROMPT.kinds(&[Hang])),
    ] {
        is_refuted(rule, scope);
    }
    holds(PROMPT.kinds(&[Hang, Renamed]));
}
