//! The rule of read-write locks, searched through: all states that three nodes, two readers and two
//! writers can come to.
//!
//! The world has no time: every message arrives at any time, in any order, or never, and every
//! lease ends at any time ([`world`]). An entry on a node lasts as long as the lease that it was
//! set or extended for, and no longer than that for certain. What must hold in every state that
//! [`search`] reaches: while a writer is inside its lease, no other client is inside its own.
//! Readers extend, a writer extends and is downgraded, keys are set again after an extension, and a
//! node loses all it has.
//!
//! The queue of those that wait is left out: all it does is refuse a grant, and every message may
//! be lost here.
//!
//! The weaker rules ([`rules`]) are searched by the same code, and each is refuted by the shortest
//! trace there is.
//!
//! ```text
//!   cargo test --release -p models --test shared -- --nocapture     all scopes, with figures and traces
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

fn holds(scope: Scope) {
    search::holds::<World>(Rule::Proved, scope);
}

fn is_refuted(rule: Rule, scope: Scope) {
    search::is_refuted::<World>(rule, scope);
}

const PLAIN: Scope = Scope {
    readers: 2,
    writers: 2,
    extends: false,
    downgrades: false,
    loses: false,
};

#[test]
fn two_readers_and_two_writers() {
    holds(PLAIN);
}

#[test]
fn two_readers_and_two_writers_and_the_loss_of_a_node() {
    holds(Scope {
        loses: true,
        ..PLAIN
    });
}

#[test]
fn a_writer_that_is_extended_and_downgraded() {
    holds(Scope {
        readers: 1,
        writers: 2,
        extends: true,
        downgrades: true,
        loses: false,
    });
    if !cfg!(debug_assertions) {
        holds(Scope {
            downgrades: true,
            ..PLAIN
        });
        holds(Scope {
            readers: 1,
            writers: 2,
            extends: true,
            downgrades: true,
            loses: true,
        });
    }
}

#[test]
fn all_at_once() {
    holds(Scope {
        extends: true,
        ..PLAIN
    });
    if !cfg!(debug_assertions) {
        holds(Scope {
            extends: true,
            downgrades: true,
            loses: true,
            ..PLAIN
        });
    }
}

#[test]
fn one_time_to_live_for_all_readers_is_refuted() {
    is_refuted(Rule::SharedTtl, PLAIN);
}

#[test]
fn a_write_that_ignores_readers_on_one_node_is_refuted() {
    is_refuted(Rule::WriteIgnoresReadersAtOne, PLAIN);
}

#[test]
fn a_read_that_ignores_a_writer_on_one_node_is_refuted() {
    is_refuted(Rule::ReadIgnoresWriterAtOne, PLAIN);
}

#[test]
fn an_extension_that_sets_what_has_ended_is_refuted() {
    is_refuted(
        Rule::ExtendsWhatHasEnded,
        Scope {
            extends: true,
            ..PLAIN
        },
    );
}

#[test]
fn an_extension_that_makes_a_reader_a_writer_again_is_refuted() {
    is_refuted(
        Rule::ExtensionUpgrades,
        Scope {
            extends: true,
            downgrades: true,
            ..PLAIN
        },
    );
}

#[test]
fn votes_of_a_node_that_has_lost_its_keys_are_refuted() {
    is_refuted(
        Rule::NoQuarantine,
        Scope {
            loses: true,
            ..PLAIN
        },
    );
}
