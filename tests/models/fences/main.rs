//! The rule of fencing, searched through: all states that three nodes and two or three attempts can
//! come to.
//!
//! The rule is the library's own, `algorithm::fence`; around it is a world without time, in which
//! every message arrives at any time, in any order, or never ([`world`]). What must hold in every
//! state that [`search`] reaches:
//! 1. No two attempts are won with the same fence.
//! 2. An attempt that began when another had been won is won with a greater one.
//! 3. No attempt is won with a fence that is further ahead than a clock explains, although one node
//!    has such a fence.
//!
//! The lock may be a read-write lock: readers and writers without a fence then come to any node at
//! any time that has no entry of an attempt any more, and winners are downgraded.
//!
//! The weaker rules ([`rules`]) are searched by the same code, and each is refuted by the shortest
//! trace there is. Three that are not weaker hold: that replies which come late may join, if they
//! are not above the fence, that a winner's key is set again on nodes that had lost it, and that a
//! raise is done where a downgrade has been. The attempt has won by then, and counts no
//! acknowledgement any more.
//!
//! ```text
//!   cargo test --release -p models --test fences -- --nocapture                               figures and traces
//!   QUORUMLOCK_FENCE_MODEL=full cargo test --release -p models --test fences -- --nocapture   all scopes
//! ```

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test"
)]

mod rules;
#[path = "../search.rs"]
mod search;
mod world;

use rules::Rule;
use world::{Scope, World};

fn holds(rule: Rule, scope: Scope) {
    search::holds::<World>(rule, scope);
}

fn is_full() -> bool {
    search::is_full("QUORUMLOCK_FENCE_MODEL")
}

const TWO: Scope = Scope {
    attempts: 2,
    floors: true,
    repairs: false,
    shares: false,
    ahead: false,
};
const THREE: Scope = Scope {
    attempts: 3,
    floors: false,
    ..TWO
};
/// A read-write lock.
const SHARED: Scope = TWO.shares();

#[test]
fn the_rule_holds_for_two_attempts() {
    holds(Rule::Proved, TWO);
    holds(Rule::Proved, TWO.repairs());
    holds(Rule::LateRepliesJoin, TWO);
}

#[test]
fn the_rule_holds_with_readers_in_between() {
    holds(Rule::Proved, SHARED);
    holds(Rule::DowngradedRaises, SHARED);
    if !cfg!(debug_assertions) {
        holds(Rule::Proved, SHARED.repairs().floors(false));
    }
    if is_full() {
        holds(Rule::Proved, SHARED.repairs());
        holds(Rule::DowngradedRaises, SHARED.repairs());
        holds(Rule::Proved, THREE.shares());
    }
}

#[test]
fn the_rule_holds_for_three_attempts() {
    if is_full() {
        holds(Rule::Proved, THREE.floors(true));
        holds(Rule::Proved, THREE.repairs());
        holds(Rule::LateRepliesJoin, THREE);
    }
    if !cfg!(debug_assertions) {
        holds(Rule::Proved, THREE);
    }
}

#[test]
fn the_rule_holds_with_a_node_that_is_far_ahead_and_left_out() {
    holds(Rule::Proved, TWO.ahead());
    holds(Rule::Proved, TWO.ahead().repairs());
    if !cfg!(debug_assertions) {
        holds(Rule::Proved, THREE.ahead());
    }
}

#[test]
fn weaker_rules_are_refuted() {
    for (rule, scope) in [
        (Rule::AheadCounts, TWO.ahead()),
        (Rule::AheadAcknowledges, TWO.ahead()),
        (Rule::PlainMaximum, TWO),
        (Rule::RaiseUncounted, TWO),
        (Rule::RaiseUnseen, TWO),
        (Rule::RaiseUnacknowledged, TWO),
        (Rule::LateGrantsCount, TWO),
        (Rule::ReleaseForgets, TWO),
        (Rule::ReaderForgets, SHARED),
        (Rule::UnfencedForgets, SHARED),
        (Rule::RaiseWhereFree, SHARED),
    ] {
        search::is_refuted::<World>(rule, scope);
    }
}
