//! Locks of other libraries, and keys that are no lock at all: what the nodes hold, as `show`,
//! `ls`, `break` and `run -n` report it.

use super::stalled::full_pipe;
use super::*;
use std::io::Read;

/// A token as redis-py writes it.
const UUID: &str = "2b7c1f0e-9d9e-4d61-a2cb-5a4d6a1f7c11";
const LEFT: &str = "19000";
/// Longer than any value of a lock.
const LONG: usize = 1_200_000;

/// Each node has a value of its own.
fn set(deployment: &Deployment, key: &str, values: [&str; 3]) {
    for (server, value) in deployment.servers.iter().zip(values) {
        ok(server, &["SET", key, value, "PX", LEFT]);
    }
}

#[test]
fn a_lock_of_another_library_is_held_by_it_for_as_long_as_its_key_lives() {
    let deployment = Deployment::of(3);
    set(&deployment, "k", [UUID; 3]);
    deployment
        .run("show k")
        .begins("lock \"k\": held by another library, on 3 of 3 nodes, by a majority for another 1")
        .prints_times(": another library, 1", 3);
    let listed = deployment.run("ls");
    let line = listed.out.lines().nth(1).unwrap_or_default();
    let is_listed =
        line.starts_with("k ") && line.contains(" held ") && line.ends_with("another library");
    assert!(is_listed, "{}", listed.all());
    deployment
        .run("ls --json")
        .prints("\"state\":\"held\",\"token\":null")
        .prints("\"other_library\":true");
    // A minority leaves the lock to others, and a majority does so whatever the values are.
    ok(&deployment.servers[0], &["SET", "one", UUID, "PX", LEFT]);
    set(&deployment, "each", ["1", "2", "3"]);
    let states = deployment.run("ls");
    for (name, state) in [("one ", " orphan "), ("each ", " held ")] {
        let is_shown = |line: &str| line.starts_with(name) && line.contains(state);
        assert!(states.out.lines().any(is_shown), "{}", states.all());
    }
    deployment.succeeds("run one -- true");
    // It is taken from its holder as any other lock.
    deployment.ends(64, "break k");
    deployment
        .succeeds("break k --yes")
        .prints("the holder may believe in its lock for another 1");
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
        set(&deployment, "k", values);
        command_each(&deployment.servers, "CONFIG RESETSTAT");
        deployment.ends(75, "run -n k -- true");
        let sets = deployment.servers.each(|server| calls(server, "set"));
        assert_eq!(sets, [expected; 3], "one attempt");
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
    for (name, commands, reason) in table {
        for words in commands {
            command_each(&deployment.servers, *words);
        }
        for words in ["break k --yes", "break k", "break k --force"] {
            let refused = deployment.ends(64, words).hides("precious");
            let what = format!("{name}, {words}: {}", refused.all());
            assert_eq!(deployment.keys(), 3, "{what}");
            let is_explained = words.contains("--force") || refused.all().contains(reason);
            assert!(is_explained, "{what}");
        }
        deployment
            .succeeds("break k --yes --force")
            .prints_times(": deleted", 3);
        assert_eq!(deployment.keys(), 0, "{name}");
    }
    // A lock of ours without expiry is one: to delete it is what the manual advises.
    command_each(&deployment.servers, &["SET", "k", &"ab".repeat(20)]);
    deployment.succeeds("break k --yes");
    assert_eq!(deployment.keys(), 0);
}

#[test]
fn what_has_become_a_lock_is_not_deleted_by_force() {
    let deployment = Deployment::of(1);
    command_each(&deployment.servers, "HSET k a b");
    // It has read the key, and waits for the reader of its first line.
    let (mut reader, writer) = full_pipe();
    let mut tool = deployment.tool("break k --yes --force");
    tool.stdout(writer);
    let mut running = Running::start(tool);
    assert_soon!(calls(&deployment.servers[0], "zcard") > 0);
    command_each(&deployment.servers, "DEL k");
    let token = "ab".repeat(20);
    command_each(&deployment.servers, &["SET", "k", &token, "PX", LEFT]);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    let text = text.trim_matches('.');
    assert!(text.contains("changed meanwhile"), "{text}");
    assert_eq!((running.code(), deployment.keys()), (Some(1), 1), "{text}");
}
