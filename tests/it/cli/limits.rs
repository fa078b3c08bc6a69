//! Servers that hold long values, or whose `SCAN` does not end: what is read of them has a limit.

use super::inspection::OURS;
use super::*;

const LEFT: &str = "50000";
/// How long a program may take that shall end by itself.
const SOON: Duration = Duration::from_secs(120);

/// How many bytes a server has sent.
fn sent(deployment: &Deployment) -> u64 {
    figure(&deployment.servers[0], "total_net_output_bytes")
}

#[test]
fn values_are_read_as_far_as_a_lock_is_long() {
    let deployment = Deployment::of(1);
    let long = "x".repeat(400_000);
    for index in 0..100 {
        let set = ["SET", &format!("k{index}"), &long, "PX", LEFT];
        ok(&deployment.servers[0], &set);
    }
    for words in ["ls", "scan", "show k1", "break k1"] {
        let before = sent(&deployment);
        let ended = deployment.run(words);
        let bytes = sent(&deployment) - before;
        assert!(bytes < 1_000_000, "{words}: {bytes} bytes; {}", ended.err);
    }
    deployment.run("ls").prints_times("another library", 100);
}

#[test]
fn a_long_value_leaves_other_locks_as_they_are() {
    let deployment = Deployment::of(3);
    let long = "x".repeat(1_200_000);
    command_each(&deployment.servers, &["SET", "held", OURS, "PX", LEFT]);
    command_each(&deployment.servers[1..], &["SET", "long", &long]);
    let listed = deployment.succeeds("ls");
    let line = listed.out.lines().find(|line| line.starts_with("held "));
    assert!(
        line.is_some_and(|line| line.contains(" held ") && line.contains(" 3/3 ")),
        "{}",
        listed.all()
    );
    deployment
        .succeeds("show long")
        .begins("lock \"long\": foreign")
        .prints_times("longer than any lock", 2);
    deployment
        .run("scan")
        .prints_times(": foreign: \"long\", ", 2);
}

#[test]
fn a_scan_that_does_not_end_is_given_up() {
    // Another place each time: without a key, and with many, because a limit of parts alone is no
    // limit of keys.
    for count in [0, 500] {
        let mut step = 0;
        let fake = Fake::on_command(move |command| {
            if !is(command, "SCAN") {
                return vec![Act::Say(healthy(command))];
            }
            step += 1;
            let keys: String = (0..count)
                .map(|number| bulk(&format!("{step}-{number}")))
                .collect();
            vec![say(&format!(
                "*2\r\n{}*{count}\r\n{keys}",
                bulk(&step.to_string())
            ))]
        });
        let mut running = Running::start(tool(&format!("ls --nodes {}", fake.url())));
        // It writes little: no pipe is full.
        assert_soon!(running.is_over(), "{count}: it does not end");
        running.wait().exits(69).reports("SCAN");
    }
}
