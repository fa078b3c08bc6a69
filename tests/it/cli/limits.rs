//! Servers that hold long values, or whose `SCAN` does not end: what is read of them has a limit.

use super::deployment::{Deployment, Ended, run, tool};
use crate::clients::ask;
use crate::support::fake::{Fake, healthy, is, say};
use crate::support::process::eventually;
use std::io::Read;
use std::time::Duration;

const OURS: &str = "1111111111111111111111111111111111111111";
const LEFT: &str = "50000";
/// How long a program may take that shall end by itself.
const SOON: Duration = Duration::from_secs(120);

/// How many bytes a server has sent.
fn sent(deployment: &Deployment) -> u64 {
    deployment.servers[0]
        .info("total_net_output_bytes")
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn values_are_read_as_far_as_a_lock_is_long() {
    let deployment = Deployment::of(1);
    let long = "x".repeat(400_000);
    for index in 0..100 {
        ask(
            &deployment.servers[0],
            &["SET", &format!("k{index}"), &long, "PX", LEFT],
        );
    }
    for words in [&["ls"][..], &["scan"], &["show", "k1"], &["break", "k1"]] {
        let before = sent(&deployment);
        let ended = run(deployment.tool(words));
        let bytes = sent(&deployment) - before;
        assert!(bytes < 1_000_000, "{words:?}: {bytes} bytes; {}", ended.err);
    }
    assert_eq!(
        run(deployment.tool(&["ls"]))
            .out
            .matches("another library")
            .count(),
        100
    );
}

#[test]
fn a_long_value_leaves_other_locks_as_they_are() {
    let deployment = Deployment::of(3);
    let long = "x".repeat(1_200_000);
    for server in &deployment.servers {
        server.command(&["SET", "held", OURS, "PX", LEFT]).unwrap();
    }
    for server in &deployment.servers[1..] {
        server.command(&["SET", "long", &long]).unwrap();
    }
    let listed = run(deployment.tool(&["ls"]));
    let line = listed
        .out
        .lines()
        .find(|line| line.starts_with("held "))
        .unwrap_or_default();
    assert!(
        line.contains(" held ") && line.contains(" 3/3 ") && listed.code == Some(0),
        "{}",
        listed.all()
    );
    let shown = run(deployment.tool(&["show", "long"]));
    assert!(
        shown.code == Some(0) && shown.out.starts_with("lock \"long\": foreign"),
        "{}",
        shown.all()
    );
    assert_eq!(
        shown.out.matches("longer than any lock").count(),
        2,
        "{}",
        shown.all()
    );
    let scanned = run(deployment.tool(&["scan"]));
    assert_eq!(
        scanned.out.matches(": foreign: \"long\", ").count(),
        2,
        "{}",
        scanned.all()
    );
}

/// As long as it may take, what it wrote, or none if it does not end.
fn ends(words: &[&str], url: &str) -> Option<Ended> {
    let mut running = tool(&[words, &["--nodes", url]].concat()).spawn().unwrap();
    // It writes little: no pipe is full.
    if !eventually(SOON, || running.try_wait().unwrap().is_some()) {
        running.kill().unwrap();
        running.wait().unwrap();
        return None;
    }
    let mut out = String::new();
    let mut err = String::new();
    running
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    running
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    Some(Ended {
        code: running.wait().unwrap().code(),
        out,
        err,
    })
}

#[test]
fn a_scan_that_does_not_end_is_given_up() {
    // Another place each time: without a key, and with many, because a limit of parts alone is no
    // limit of keys.
    for count in [0, 500] {
        let mut step = 0;
        let fake = Fake::on_command(move |command| {
            if !is(command, "SCAN") {
                return vec![say(&String::from_utf8(healthy(command)).unwrap())];
            }
            step += 1;
            let bulk = |text: String| format!("${}\r\n{text}\r\n", text.len());
            let keys: String = (0..count)
                .map(|number| bulk(format!("{step}-{number}")))
                .collect();
            vec![say(&format!(
                "*2\r\n{}*{count}\r\n{keys}",
                bulk(step.to_string())
            ))]
        });
        let ended =
            ends(&["ls"], &fake.url()).unwrap_or_else(|| panic!("{count}: it does not end"));
        assert!(
            ended.code == Some(69) && ended.err.contains("SCAN"),
            "{count}: {}",
            ended.all()
        );
    }
}
