//! The order of a fair lock, searched through: all states that the queues of three nodes, two calls and any number of
//! others can come to.
//!
//! What a node and a call do is written down in `src/algorithm/place.rs`, with the proof. Here it stands once more
//! ([`rules`]), in a world without time, where every message arrives at any time, in any order, or never, and places
//! expire as they like ([`world`]). What must hold in every state:
//! 1. *Order.* While a quorum of nodes holds the ticket of a call, which is fixed, no call wins that began later.
//! 2. *Progress.* When nothing fails any more, one of the calls that wait wins within three rounds, whichever quorum of
//!    nodes is left. This is tried from every state at all, whether it can be reached or not.
//!
//! The rules that look as good are searched by the same code, and each is refuted by the shortest trace there is.
//!
//! ```text
//!   cargo test --release -p models --test fair -- --nocapture                              figures and traces
//!   QUORUMLOCK_FAIR_MODEL=full cargo test --release -p models --test fair -- --nocapture   three tickets
//! ```

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod rules;
#[path = "../search.rs"]
mod search;
mod world;

use rules::Rule;
use world::{Property, Scope, World};

const FORTH: Property = Property::Order { earlier: 0, later: 1 };
/// The later call has the smaller id, which decides between equal tickets.
const BACK: Property = Property::Order { earlier: 1, later: 0 };

fn holds(property: Property, has_stray: bool, tickets: u8) {
    search::holds::<World>(Rule::Proved, Scope { property, has_stray, tickets });
}

fn is_refuted(rule: Rule, property: Property) {
    search::is_refuted::<World>(rule, Scope { property, has_stray: false, tickets: 2 });
}

fn is_full() -> bool {
    std::env::var("QUORUMLOCK_FAIR_MODEL").is_ok_and(|value| value == "full")
}

#[test]
fn the_order_holds() {
    for property in [FORTH, BACK] {
        holds(property, false, 2);
        if !cfg!(debug_assertions) {
            holds(property, true, 2);
        }
        if is_full() {
            holds(property, false, 3);
        }
    }
}

#[test]
fn progress_holds_from_every_state() {
    for tickets in 1..=if is_full() { 3 } else { 2 } {
        match World::progress_everywhere(Rule::Proved, tickets) {
            Ok(states) => println!("3 calls, {tickets} tickets: progress from all of {states} states"),
            Err((world, wrong)) => panic!("{world}: {}", wrong.0),
        }
    }
    // It is not there for lack of what could stop it.
    assert!(World::progress_everywhere(Rule::GrantElsewhere, 2).is_err());
}

#[test]
fn weaker_rules_are_refuted() {
    is_refuted(Rule::ArrivalOrder, Property::Progress);
    is_refuted(Rule::ClientClocks, FORTH);
    is_refuted(Rule::GrantElsewhere, Property::Progress);
    is_refuted(Rule::NameKept, BACK);
    is_refuted(Rule::NoQueue, FORTH);
    is_refuted(Rule::RaisedAgain, BACK);
    is_refuted(Rule::SomeQuorum, BACK);
}
