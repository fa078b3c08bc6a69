//! `nodes` as a probe: it finds out what a lock would meet.

use super::deployment::{Deployment, Ended, run};
use crate::clients::ask;
use crate::support::server::Answer;

fn nodes(deployment: &Deployment) -> Ended {
    let ended = run(deployment.tool(&["nodes"]));
    assert_eq!(
        ended.out.lines().count(),
        deployment.servers.len(),
        "{}",
        ended.all()
    );
    ended
}

#[test]
fn nodes_with_a_full_memory_do_not_vote() {
    let deployment = Deployment::of(3);
    let fine = nodes(&deployment);
    assert_eq!(
        (fine.code, deployment.keys()),
        (Some(0), 0),
        "{}",
        fine.all()
    );
    for (full, code) in [(1, 1), (2, 2), (3, 2)] {
        let limit = ["CONFIG", "SET", "maxmemory", "1"];
        assert_eq!(
            deployment.servers[full - 1].command(&limit).unwrap(),
            Answer::Text("OK".into())
        );
        let found = nodes(&deployment);
        assert_eq!(found.code, Some(code), "{}", found.all());
        assert_eq!(
            found.out.matches("out of memory").count(),
            full,
            "{}",
            found.all()
        );
        assert_eq!(
            found.out.matches(": voting, ").count(),
            3 - full,
            "{}",
            found.all()
        );
    }
    let json = run(deployment.tool(&["nodes", "--json"]));
    assert_eq!(
        json.out.matches("\"state\":\"rejected\"").count(),
        3,
        "{}",
        json.all()
    );
}

#[test]
fn nodes_that_may_not_write_do_not_vote() {
    let deployment = Deployment::of(3);
    for server in &deployment.servers[..2] {
        ask(server, &["CONFIG", "SET", "min-replicas-to-write", "1"]);
    }
    let found = nodes(&deployment);
    assert!(
        found.code == Some(2) && found.out.matches("too few replicas").count() == 2,
        "{}",
        found.all()
    );
}

/// The client is a moment old, and so is what it knows.
#[test]
fn how_long_a_state_is_known_does_not_read_as_how_long_it_lasts() {
    let deployment = Deployment::of(1);
    let found = nodes(&deployment);
    assert!(
        !found.out.contains("voting for") && found.out.contains(": voting, known for "),
        "{}",
        found.all()
    );
}

#[test]
fn locks_that_are_tried_last_no_longer_than_any_may() {
    let deployment = Deployment::of(3);
    for command in ["nodes", "doctor"] {
        let found = run(deployment.tool(&[command, "--max-ttl", "500ms"]));
        assert_eq!(found.code, Some(0), "{}", found.all());
    }
}
