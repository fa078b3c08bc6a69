//! Locks of other libraries, and keys that are no lock at all: what the nodes hold, as `show`,
//! `ls`, `break` and `run -n` report it.

use super::deployment::{Deployment, run};
use crate::support::server::Answer;

/// A token as redis-py writes it.
const UUID: &str = "2b7c1f0e-9d9e-4d61-a2cb-5a4d6a1f7c11";
const LEFT: &str = "19000";
/// Longer than any value of a lock.
const LONG: usize = 1_200_000;

fn on_each(deployment: &Deployment, words: &[&str]) {
    for server in &deployment.servers {
        let answer = server.command(words).unwrap();
        assert!(!matches!(answer, Answer::Error(_)), "{words:?}: {answer:?}");
    }
}

/// How many `SET` a server has run since its counts were reset.
fn sets(deployment: &Deployment, node: usize) -> u32 {
    let Answer::Text(stats) = deployment.servers[node]
        .command(&["INFO", "commandstats"])
        .unwrap()
    else {
        panic!("no INFO");
    };
    let calls = stats
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_set:calls="))
        .unwrap_or("0,");
    calls.split(',').next().unwrap().parse().unwrap()
}

#[test]
fn a_lock_of_another_library_is_held_by_it_for_as_long_as_its_key_lives() {
    let deployment = Deployment::of(3);
    on_each(&deployment, &["SET", "k", UUID, "NX", "PX", LEFT]);
    let shown = run(deployment.tool(&["show", "k"]));
    let head = "lock \"k\": held by another library, on 3 of 3 nodes, by a majority for another 1";
    assert!(shown.out.starts_with(head), "{}", shown.all());
    assert_eq!(
        shown.out.matches(": another library, 1").count(),
        3,
        "{}",
        shown.all()
    );
    let listed = run(deployment.tool(&["ls"]));
    let line = listed.out.lines().nth(1).unwrap_or_default();
    let is_listed =
        line.starts_with("k ") && line.contains(" held ") && line.ends_with("another library");
    assert!(is_listed, "{}", listed.all());
    let json = run(deployment.tool(&["ls", "--json"]));
    assert!(
        json.out.contains("\"state\":\"held\",\"token\":null")
            && json.out.contains("\"other_library\":true")
    );
    // A minority leaves the lock to others, and a majority does so whatever the values are.
    deployment.servers[0]
        .command(&["SET", "one", UUID, "PX", LEFT])
        .unwrap();
    for (server, value) in deployment.servers.iter().zip(["1", "2", "3"]) {
        server.command(&["SET", "each", value, "PX", LEFT]).unwrap();
    }
    let states = run(deployment.tool(&["ls"]));
    let is = |name: &str, state: &str| {
        states
            .out
            .lines()
            .any(|line| line.starts_with(name) && line.contains(state))
    };
    assert!(
        is("one ", " orphan ") && is("each ", " held "),
        "{}",
        states.all()
    );
    assert_eq!(
        run(deployment.tool(&["run", "one", "--", "true"])).code,
        Some(0)
    );
    // It is taken from its holder as any other lock.
    assert_eq!(run(deployment.tool(&["break", "k"])).code, Some(64));
    let broken = run(deployment.tool(&["break", "k", "--yes"]));
    let is_said = broken
        .out
        .contains("the holder may believe in its lock for another 1");
    assert!(broken.code == Some(0) && is_said, "{}", broken.all());
    assert_eq!(
        deployment.servers[1].command(&["EXISTS", "k"]).unwrap(),
        Answer::Number(0)
    );
}

#[test]
fn a_lock_of_another_library_is_refused_after_one_attempt() {
    let deployment = Deployment::of(3);
    // The first program notes the nodes, by one more each.
    for (values, expected) in [([UUID; 3], 2), (["1", "2", "3"], 1)] {
        for (server, value) in deployment.servers.iter().zip(values) {
            server.command(&["SET", "k", value, "PX", LEFT]).unwrap();
            server.command(&["CONFIG", "RESETSTAT"]).unwrap();
        }
        let ended = run(deployment.tool(&["run", "-n", "k", "--", "true"]));
        assert_eq!(ended.code, Some(75), "{}", ended.all());
        assert_eq!(
            [0, 1, 2].map(|node| sets(&deployment, node)),
            [expected; 3],
            "one attempt"
        );
    }
}

#[test]
fn what_is_no_lock_is_deleted_by_force_alone() {
    let deployment = Deployment::of(3);
    let long = "x".repeat(LONG);
    let table: [(&str, &[&[&str]], &str); 5] = [
        (
            "a string without expiry",
            &[&["SET", "k", "precious"]],
            "without expiry",
        ),
        ("a hash", &[&["HSET", "k", "a", "b"]], "another type"),
        (
            "a list with an expiry",
            &[&["RPUSH", "k", "a"], &["PEXPIRE", "k", LEFT]],
            "another type",
        ),
        (
            "a long string",
            &[&["SET", "k", &long]],
            "longer than any lock",
        ),
        (
            "a long string with an expiry",
            &[&["SET", "k", &long, "PX", LEFT]],
            "longer than any lock",
        ),
    ];
    for (what, commands, reason) in table {
        commands
            .iter()
            .for_each(|words| on_each(&deployment, words));
        for words in [
            &["break", "k", "--yes"][..],
            &["break", "k"],
            &["break", "k", "--force"],
        ] {
            let refused = run(deployment.tool(words));
            assert_eq!(
                (refused.code, deployment.keys()),
                (Some(64), 3),
                "{what} {words:?}: {}",
                refused.all()
            );
            let is_explained = words.contains(&"--force") || refused.all().contains(reason);
            assert!(
                is_explained && !refused.all().contains("precious"),
                "{what}: {}",
                refused.all()
            );
        }
        let forced = run(deployment.tool(&["break", "k", "--yes", "--force"]));
        assert_eq!(
            (forced.code, deployment.keys()),
            (Some(0), 0),
            "{what}: {}",
            forced.all()
        );
        assert_eq!(
            forced.out.matches(": deleted").count(),
            3,
            "{what}: {}",
            forced.all()
        );
    }
    // A lock of ours without expiry is one: to delete it is what the manual advises.
    on_each(&deployment, &["SET", "k", &"ab".repeat(20)]);
    assert_eq!(
        (
            run(deployment.tool(&["break", "k", "--yes"])).code,
            deployment.keys()
        ),
        (Some(0), 0)
    );
}
