//! `nodes` as a probe: it finds out what a lock would meet.

use super::deployment::{Deployment, Ended, command_each};

fn nodes(deployment: &Deployment) -> Ended {
    let ended = deployment.run("nodes");
    let lines = ended.out.lines().count();
    assert_eq!(lines, deployment.servers.len(), "{}", ended.all());
    ended
}

#[test]
fn nodes_with_a_full_memory_do_not_vote() {
    let deployment = Deployment::of(3);
    nodes(&deployment).exits(0);
    assert_eq!(deployment.keys(), 0);
    for (full, code) in [(1, 1), (2, 2), (3, 2)] {
        command_each(&deployment.servers[..full], "CONFIG SET maxmemory 1");
        nodes(&deployment)
            .exits(code)
            .prints_times("out of memory", full)
            .prints_times(": voting, ", 3 - full);
    }
    deployment
        .run("nodes --json")
        .prints_times("\"state\":\"rejected\"", 3);
}

#[test]
fn nodes_that_may_not_write_do_not_vote() {
    let deployment = Deployment::of(3);
    let insist = "CONFIG SET min-replicas-to-write 1";
    command_each(&deployment.servers[..2], insist);
    nodes(&deployment)
        .exits(2)
        .prints_times("too few replicas", 2);
}

/// The client is a moment old, and so is what it knows.
#[test]
fn how_long_a_state_is_known_does_not_read_as_how_long_it_lasts() {
    let deployment = Deployment::of(1);
    nodes(&deployment)
        .hides("voting for")
        .prints(": voting, known for ");
}

#[test]
fn locks_that_are_tried_last_no_longer_than_any_may() {
    let deployment = Deployment::of(3);
    for command in ["nodes", "doctor"] {
        deployment.succeeds(&[command, "--max-ttl", "500ms"]);
    }
}
