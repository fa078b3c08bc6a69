//! `scan`: which keys it finds, and which belong to others.

use super::super::deployment::{Deployment, command_each};
use super::*;
use crate::embedded_vs_real::foreign::fenced_values;
use crate::read_write::as_embedded;

#[test]
fn scan_finds_each_kind_of_key_that_should_not_be() {
    let deployment = Deployment::of(3);
    deployment.succeeds("scan").writes_nothing();
    let faults: [(&[&str], &str); 5] = [
        (&["SET", "x", OURS], "no-expiry"),
        (&["SET", "x", OURS, "PX", "90000"], "too-long"),
        (&["SET", "x", "word", "PX", "9000"], "foreign"),
        (&["HSET", "x", "a", "b"], "no-expiry"),
        (
            &["SET", "quorumlock-fence:x", "7 0 ", "PX", "9000"],
            "fence-at-rest",
        ),
    ];
    for (words, kind) in faults {
        command_each(&deployment.servers[1..2], "FLUSHALL");
        command_each(&deployment.servers[1..2], words);
        let found = deployment.ends(1, "scan").out;
        assert_eq!(found.split(": ").nth(1), Some(kind), "{words:?}");
    }
    deployment.succeeds("scan --ignore fence-at-rest");
    // Keys without the prefix belong to others.
    deployment.succeeds("scan --prefix jobs/");
}

#[test]
fn a_prefix_is_behind_the_marker_and_not_shown() {
    let deployment = Deployment::of(1);
    let keys = [
        "jobs/a",
        "quorumlock-fence:jobs/a",
        "quorumlock-rw:jobs/a",
        "jobs/quorumlock-rw:a",
    ];
    let values = [
        OURS.to_owned(),
        format!("7 9999999999999 {OURS}"),
        format!("w 9999999999999 {OURS}"),
    ];
    for (key, value) in keys.iter().zip(values.iter().chain([&values[0]])) {
        set(&deployment, &[0], key, value, "50000");
    }
    for key in ["a", "quorumlock-fence:a", "quorumlock-fence:other:jobs/a"] {
        set(&deployment, &[0], key, "word", "50000");
    }
    let listed = |words: &str| {
        let json = deployment.run(&format!("{words} --prefix jobs/ --json"));
        let names = json
            .out
            .split("\"name\":\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(listed("ls"), ["a", "quorumlock-rw:a", "a", "a"]);
    for words in ["ls a", "ls a*", "show a"] {
        assert_eq!(listed(words), ["a", "a", "a"], "{words}");
    }
    assert_eq!(listed("ls b*"), [""; 0]);
    deployment
        .run("scan --prefix jobs/ --max-ttl 1d --ignore too-long")
        .writes_nothing();
    set(&deployment, &[0], keys[1], "7 0 ", "50000");
    deployment
        .run("scan --prefix jobs/ --ignore too-long --json")
        .prints("\"name\":\"a\",\"key\":\"quorumlock-fence:jobs/a\",\"kind\":\"fence-at-rest\"");
    deployment.succeeds("break a --prefix jobs/ --yes");
    let left = |key: &str| deployment.servers[0].command(&["EXISTS", key]).unwrap();
    let gone = [keys[0], keys[2]].map(left);
    assert_eq!(
        (gone, left(keys[3])),
        ([Answer::Number(0), Answer::Number(0)], Answer::Number(1))
    );
}

#[test]
fn scan_goes_through_more_keys_than_one_reply_has() {
    let deployment = Deployment::of(1);
    let script = "for i = 1, 5000 do redis.call('SET', 'k' .. i, ARGV[1], 'PX', 50000) end";
    ask(&deployment.servers[0], &["EVAL", script, "0", OURS]);
    assert_eq!(deployment.run("ls").out.lines().count(), 5001);
}

/// What the scripts take for a lock of their kind is one here, and what they leave alone is
/// foreign.
#[test]
fn scan_calls_foreign_what_the_scripts_call_so() {
    let deployment = Deployment::of(1);
    let tables = [
        ("quorumlock-rw:", as_embedded::values()),
        ("quorumlock-fence:", fenced_values()),
    ];
    for (mark, values) in tables {
        for (index, (value, _)) in values.iter().enumerate() {
            let key = format!("{mark}{index}.");
            set(&deployment, &[0], &key, value, "50000");
        }
        let scanned = deployment.run("scan").out;
        for (index, (value, is_read)) in values.iter().enumerate() {
            let is_foreign = scanned.contains(&format!(": foreign: \"{mark}{index}.\", "));
            assert_eq!(is_foreign, !is_read, "{mark} {value:?}");
        }
        command_each(&deployment.servers, "FLUSHALL");
    }
}
