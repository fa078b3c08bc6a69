//! Scenes of nodes that were restarted, or have lost their keys.

use super::{emptied, flush, has_clients, pass, play, strike};
use crate::api::redlock::Redlock;
use crate::kernel::with;
use crate::locks::Access;
use crate::plan::{Kind, MILLISECOND, Plan};
use crate::waits::Awaited;
use crate::world::World;
use crate::{clients, kernel};
use quorumlock::RestartPolicy;
use std::time::Duration;

/// No program may read what the nodes remember, and each goes by what it has met itself.
fn hide_notes() {
    with(|world| {
        for node in &mut world.nodes {
            node.hides_note = true;
        }
    });
}

fn has_policy(policy: RestartPolicy) -> impl Fn(&mut Plan) {
    move |plan| {
        has_clients(2)(plan);
        plan.restart_policy = policy;
    }
}

#[track_caller]
fn assert_not_taken(redlock: &Redlock) {
    let taken = redlock.mutex("r0").try_lock();
    assert!(!matches!(taken, Ok(Some(_))), "{taken:?}");
}

/// Rule 7.4: for as long as a lock may last.
#[test]
fn a_program_does_not_count_nodes_that_it_has_met_as_other_processes() {
    play(has_policy(RestartPolicy::Observed), |redlock| {
        hide_notes();
        drop(redlock.mutex("r1").lock().unwrap());
        pass(100);
        let held = clients::open(1).mutex("r0").lock().unwrap();
        strike(emptied(0));
        strike(emptied(1));
        for _ in 0..19 {
            pass(1_000);
            assert_not_taken(&redlock);
        }
        drop(held);
        pass(5_000);
        assert!(redlock.mutex("r0").try_lock().unwrap().is_some());
    });
}

/// Rule 7.4: in strict mode, a program that begins counts none that was restarted lately.
#[test]
fn a_strict_program_does_not_count_nodes_that_it_first_meets_soon_after_a_restart() {
    play(has_policy(RestartPolicy::Strict), |_| {
        hide_notes();
        let held = clients::open(1).mutex("r0").lock().unwrap();
        strike(emptied(0));
        strike(emptied(1));
        pass(1_000);
        let begun = clients::open(0);
        for _ in 0..18 {
            assert_not_taken(&begun);
            pass(1_000);
        }
        drop(held);
    });
}

/// Until then no call has a place in the queue, and it is not the queue that keeps it waiting.
#[test]
fn a_call_that_waits_while_no_node_of_a_new_deployment_votes_is_not_overtaken_by_that() {
    let is_slower = |plan: &mut Plan| {
        has_policy(RestartPolicy::Strict)(plan);
        plan.clients[0].rate = -4_000;
    };
    play(is_slower, |redlock| {
        let other = clients::open(1).mutex("r0");
        let long = Duration::from_secs(60);
        pass(1);
        kernel::spawn(0, move || {
            with(|world| world.begins_to_wait(Awaited::one(0, Access::Write)));
            drop(redlock.mutex("r0").lock_timeout(long).unwrap());
            with(World::ends_waiting);
        });
        let held = other.lock_timeout(long).unwrap();
        pass(1_000);
        drop(held);
        pass(1_000);
    });
}

/// Two nodes are flushed, and the third one knows of more. A program that begins is paused at any
/// time, and reads the replies late, one after the other.
#[test]
fn a_reply_that_has_arrived_counts_though_it_is_read_late() {
    let are_far = |plan: &mut Plan| {
        has_policy(RestartPolicy::Observed)(plan);
        for (node, delay) in [5, 8, 8].into_iter().enumerate() {
            plan.paths[node].delay = delay * MILLISECOND;
        }
    };
    play(are_far, |_| {
        let held = clients::open(1).mutex("r0").lock().unwrap();
        pass(1_500);
        for offset in 0..40 {
            flush([0, 1]);
            kernel::spawn(0, || assert_not_taken(&clients::open(0)));
            pass(offset);
            strike(Kind::Pause.of_client(0).lasting(60 * MILLISECOND));
            pass(400);
        }
        drop(held);
    });
}
