//! Waiting for a lock, searched through: the queues of its nodes, the messages to those that wait,
//! and what may fail.
//!
//! The client's side of a call is the library's own, `algorithm::queue`; [`call`] stores what the
//! search needs of it, and decides when a round ends, as the engine does. The scripts are functions
//! over a node's state, step for step as they are in `src/protocol/lua`: [`node`] is `queue.lua`,
//! [`shares`] what depends on the kind of the lock. [`world`] has what is under way, [`faults`]
//! what may fail, and [`judge`] what must hold: the order of calls ([`order`]), no stall, progress,
//! and no entry that stays.
//!
//! | property | where it is searched |
//! |---|---|
//! | order: while a quorum of nodes keeps the ticket of a call, none wins that begins later | N = 3, two calls |
//! | progress: when nothing fails any more, every call that waits wins, whichever nodes are left | every settled state |
//! | no stall: in a quiet state no call waits that would be granted | all kinds, N = 1; mutex, read-write, N = 3 |
//! | no garbage: no entry stays whose call has ended | every settled state |
//! | exclusion, of readers and writers too | wherever a call wins; `fences` and `tests/proofs` for leases |
//! | no message is lost between two waits, no interrupt is slept through | `waiting`, with the library's driver |
//!
//! The rules that look as good ([`rules`]) are searched by the same code. Each is refuted by the
//! shortest trace.
//!
//! ```text
//!   cargo test --release -p models --test queue -- --nocapture                               figures and traces
//!   QUORUMLOCK_QUEUE_MODEL=full cargo test --release -p models --test queue -- --nocapture   every scope, an hour
//! ```

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test"
)]

mod call;
mod faults;
mod judge;
mod node;
mod order;
mod pipe;
mod rules;
mod scope;
#[path = "../search.rs"]
mod search;
mod shares;
mod world;

use node::Kind;
use rules::Rule;
use scope::Fault::{Cut, Down, GiveUp, Hang, Kill, Late, Lose, Newcomer, Poll, QueueLost, Unheard};
use scope::{ALL, Fault, Scope};
use world::World;

/// One node, three calls.
const ONE: Scope = Scope {
    nodes: 1,
    kind: Kind::Mutex,
    calls: 3,
    faults: 1,
    kinds: &ALL,
    clocks: 1,
    subscribed: true,
    timely: false,
};
/// Three nodes, two calls.
const THREE: Scope = ONE.nodes(3).calls(2);
const PERMITS: Kind = Kind::Permits(2);
/// The first two calls write.
const READ_WRITE: Kind = Kind::ReadWrite(0b11);
/// What may fail where several calls hold at once.
const SHARED: [Fault; 7] = [Cut, GiveUp, Hang, Kill, Lose, Poll, Unheard];

fn holds(scope: Scope) {
    search::holds::<World>(Rule::Proved, scope);
}

fn is_refuted(rule: Rule, scope: Scope) {
    search::is_refuted::<World>(rule, scope);
}

fn is_full() -> bool {
    search::is_full("QUORUMLOCK_QUEUE_MODEL")
}

#[test]
fn three_calls_wait_for_one_node() {
    holds(ONE.timely());
    if is_full() {
        holds(ONE.subscribed(false));
        holds(ONE.clocks(2));
        holds(ONE.faults(2).timely());
    }
}

#[test]
fn two_calls_wait_for_three_nodes() {
    for kind in &[Cut, GiveUp, Hang, Kill, Poll, QueueLost] {
        holds(THREE.kinds(std::slice::from_ref(kind)));
    }
    for kind in &[Down, Lose, Unheard] {
        holds(THREE.kinds(std::slice::from_ref(kind)).timely());
    }
    if is_full() {
        holds(THREE.timely());
        holds(THREE.clocks(2).faults(0));
    }
}

#[test]
fn no_call_waits_for_a_permit_that_it_would_be_granted() {
    let scope = ONE.kind(PERMITS).calls(4).kinds(&SHARED);
    holds(scope.kinds(&[Kill]));
    if is_full() {
        holds(scope);
    }
}

#[test]
fn no_call_waits_to_read_or_write_that_would_be_granted() {
    let scope = ONE.kind(READ_WRITE).calls(4).kinds(&SHARED);
    holds(scope.kinds(&[Kill]));
    if is_full() {
        holds(scope);
    }
}

#[test]
fn readers_and_writers_wait_for_three_nodes() {
    for writers in [0b01, 0b11] {
        let scope = THREE.kind(Kind::ReadWrite(writers)).timely().kinds(&SHARED);
        for kind in &[GiveUp, Kill] {
            holds(scope.kinds(std::slice::from_ref(kind)));
        }
        if !cfg!(debug_assertions) {
            holds(scope);
            holds(scope.nodes(2).calls(3).faults(0));
        }
        if is_full() {
            holds(scope.nodes(2).calls(3).kinds(&[Kill]));
        }
    }
}

#[test]
fn a_grant_that_removes_its_entry_is_refuted() {
    // A million states.
    if is_full() || !cfg!(debug_assertions) {
        is_refuted(
            Rule::GrantRemoves,
            THREE.faults(2).kinds(&[Newcomer]).timely(),
        );
    }
}

#[test]
fn a_command_of_a_call_that_no_quorum_found_to_be_first_is_refuted() {
    let scope = THREE
        .faults(2)
        .kinds(&[Newcomer])
        .subscribed(false)
        .timely();
    is_refuted(Rule::ConfirmedIsFirst, scope);
    if is_full() {
        holds(scope);
    }
}

#[test]
fn weaker_rules_are_refuted() {
    let four = ONE.calls(4).faults(2).timely();
    for (rule, scope) in [
        (
            Rule::NoAgreement,
            THREE.faults(2).kinds(&[Cut, Down]).timely(),
        ),
        (Rule::LeaveWakesNone, four.kinds(&[GiveUp])),
        (Rule::OnlySecondPasses, four.kinds(&[Hang, Kill])),
        (Rule::BlocksWhileAway, ONE.kinds(&[Kill])),
        (Rule::PassedWhileAway, ONE.kinds(&[Cut])),
        (Rule::NoNext, ONE.kinds(&[Kill])),
        (Rule::RefusedIsNotNext, ONE.kinds(&[Kill])),
        (Rule::UndoWakesNoNext, ONE.faults(2).kinds(&[Kill, Unheard])),
        (Rule::EndedIgnoresNext, ONE.faults(2).kinds(&[Kill, Late])),
        (Rule::NoUndoWhereSilent, ONE.kinds(&[Unheard])),
        (Rule::SilenceWaits, ONE.kinds(&[Lose])),
    ] {
        is_refuted(rule, scope);
    }
}

#[test]
fn weaker_rules_of_shares_are_refuted() {
    let scope = |kind| ONE.kind(kind).calls(4).kinds(&[Kill]);
    for kind in [PERMITS, READ_WRITE] {
        is_refuted(Rule::NoNext, scope(kind));
        is_refuted(Rule::BlocksWhileAway, scope(kind));
    }
    is_refuted(Rule::NextMayBeDead, scope(READ_WRITE));
}
