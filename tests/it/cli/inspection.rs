//! `nodes`, `show`, `ls`, `break` and `bench`. [`scans`] is about `scan`, [`read_write`] about
//! read-write locks.

use crate::clients::{ask, resume};
mod read_write;
mod scans;

use super::deployment::{Deployment, run, wait};
use crate::support::capable::has_users;
use crate::support::process::eventually;
use crate::support::server::Answer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::Child;
use std::time::Duration;

const OURS: &str = "1111111111111111111111111111111111111111";
const THEIRS: &str = "2222222222222222222222222222222222222222";

/// Sets a key on some nodes, for so many milliseconds.
fn set(deployment: &Deployment, nodes: &[usize], key: &str, value: &str, millis: &str) {
    for &node in nodes {
        let set = deployment.servers[node]
            .command(&["SET", key, value, "PX", millis])
            .unwrap();
        assert_eq!(set, Answer::Text("OK".into()));
    }
}

fn hold(deployment: &Deployment, words: &[&str]) -> Child {
    let tool = deployment
        .tool(&[&["run"], words, &["--", "sleep", "99"]].concat())
        .spawn()
        .unwrap();
    let before = deployment.servers.len();
    assert!(eventually(Duration::from_secs(10), || deployment.keys() >= before));
    tool
}

fn end(tool: Child) {
    kill(Pid::from_raw(tool.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(wait(tool).code, Some(143));
}

#[test]
fn nodes_is_a_probe() {
    let mut deployment = Deployment::of(3);
    let code = |deployment: &Deployment| {
        let ended = run(deployment.tool(&["nodes"]));
        assert_eq!(ended.out.lines().count(), 3, "{}", ended.all());
        ended.code
    };
    assert_eq!(code(&deployment), Some(0));
    deployment.servers[0].kill();
    assert_eq!(code(&deployment), Some(1));
    let json = run(deployment.tool(&["nodes", "--json"]));
    assert!(
        json.out.contains("\"state\":\"down\"") && json.out.contains("\"state\":\"voting\""),
        "{}",
        json.out
    );
    deployment.servers[1].kill();
    assert_eq!(code(&deployment), Some(2));
}

#[test]
fn ls_tells_held_split_and_orphaned_locks_apart() {
    let deployment = Deployment::of(5);
    set(&deployment, &[0, 1, 2], "held", OURS, "50000");
    set(&deployment, &[3], "held", THEIRS, "90000");
    set(&deployment, &[0, 1], "split", OURS, "50000");
    set(&deployment, &[2, 3], "split", THEIRS, "50000");
    set(&deployment, &[4], "orphan", OURS, "50000");
    set(
        &deployment,
        &[0, 1, 2, 3, 4],
        "quorumlock-fence:rest",
        "7 0 ",
        "50000",
    );
    ask(&deployment.servers[0], &["SET", "other", "no lock"]);
    let ended = run(deployment.tool(&["ls"]));
    let lines: Vec<Vec<&str>> = ended
        .out
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect())
        .collect();
    let line = |name: &str| {
        lines
            .iter()
            .find(|line| line[0] == name)
            .unwrap_or_else(|| panic!("{}", ended.all()))
    };
    assert_eq!(
        line("held")[1..5],
        ["held", "3/5:", "1,2,3", "49.9"].map(|word| if word == "49.9" {
            line("held")[4]
        } else {
            word
        })
    );
    assert_eq!(
        (line("held").last(), line("split")[1], line("orphan")[1]),
        (Some(&"111111…"), "split", "orphan")
    );
    assert_eq!(line("orphan")[2..4], ["1/5:", "5"]);
    assert_eq!(
        (line("rest")[1], line("rest").contains(&"fenced")),
        ("free", true)
    );
    assert!(
        lines.iter().all(|line| line[0] != "other"),
        "what is no lock is for scan"
    );
    assert!(!ended.all().contains("1111111"), "more than six digits");
    let some = run(deployment.tool(&["ls", "sp*", "--json"]));
    assert!(
        some.out.contains("\"split\"") && !some.out.contains("\"held\""),
        "{}",
        some.out
    );
}

#[test]
fn a_holder_with_a_label_is_shown_by_it() {
    let deployment = Deployment::of(3);
    for kind in [
        &["--label", "billing@host7", "a"][..],
        &["--fenced", "--label", "billing@host7", "a"],
    ] {
        let holder = hold(&deployment, kind);
        let ended = run(deployment.tool(&["ls"]));
        assert!(
            ended
                .out
                .lines()
                .any(|line| line.contains("held") && line.ends_with("billing@host7")),
            "{}",
            ended.all()
        );
        end(holder);
        deployment
            .servers
            .iter()
            .for_each(|server| drop(server.command(&["FLUSHALL"]).unwrap()));
    }
}

#[test]
fn show_gives_the_holder_of_each_node_and_the_time_of_a_quorum() {
    let deployment = Deployment::of(3);
    set(&deployment, &[0], "a", OURS, "10000");
    set(&deployment, &[1, 2], "a", OURS, "50000");
    let ended = run(deployment.tool(&["show", "a", "--json"]));
    let remaining = ended
        .out
        .split("\"remaining_ms\":")
        .nth(1)
        .and_then(|text| text.split(',').next())
        .unwrap();
    assert!(
        (40_000..50_000).contains(&remaining.parse::<u32>().unwrap()),
        "two of three have it so long: {remaining}"
    );
    deployment.servers[2].pause().unwrap();
    let ended = run(deployment.tool(&["show", "a"]));
    assert!(
        ended.out.contains("held by 111111…, on 2 of 3 nodes")
            && ended.out.contains("unknown, no reply")
    );
    deployment.servers[1].pause().unwrap();
    let ended = run(deployment.tool(&["show", "a"]));
    assert!(
        ended.code == Some(69) && ended.out.contains("\"a\": unknown"),
        "{}",
        ended.all()
    );
    resume(&deployment.servers);
}

#[test]
fn break_deletes_what_was_read_and_keeps_the_fence() {
    if !has_users() {
        return;
    }
    let deployment = Deployment::of(3);
    let holder = hold(&deployment, &["--fenced", "a"]);
    let value = |node: usize| match deployment.servers[node]
        .command(&["GET", "quorumlock-fence:a"])
        .unwrap()
    {
        Answer::Text(value) => value,
        other => panic!("{other:?}"),
    };
    let fence = value(0).split(' ').next().unwrap().to_owned();
    let unsaid = run(deployment.tool(&["break", "a"]));
    assert!(
        unsaid.code == Some(64) && value(0).len() > 40,
        "{}",
        unsaid.all()
    );
    // Servers that compare and delete by themselves would delete the fence.
    for server in &deployment.servers {
        ask(
            server,
            &[
                "ACL", "SETUSER", "few", "on", ">few", "~*", "+@all", "-eval",
            ],
        );
    }
    let few = deployment.urls().replace("redis://", "redis://few:few@");
    let refused = run(deployment.tool(&["break", "a", "--yes", "--nodes", &few]));
    assert!(
        refused.code == Some(1) && value(0).len() > 40,
        "{}",
        refused.all()
    );
    let broken = run(deployment.tool(&["break", "a", "--yes"]));
    assert_eq!(broken.code, Some(0), "{}", broken.all());
    assert!(
        broken
            .out
            .contains("the holder may believe in its lock for another"),
        "{}",
        broken.all()
    );
    assert_eq!(value(1), format!("{fence} 0 "));
    assert_eq!(
        wait(holder).code,
        Some(70),
        "the holder finds out at its next extension"
    );
    set(&deployment, &[0, 1], "plain", OURS, "50000");
    assert_eq!(
        run(deployment.tool(&["break", "plain", "--yes"])).code,
        Some(0)
    );
    assert_eq!(
        deployment.servers[0].command(&["EXISTS", "plain"]).unwrap(),
        Answer::Number(0)
    );
    // On one node, it has ended by itself.
    for (server, deadline) in deployment
        .servers
        .iter()
        .zip(["1", "9000000000000", "9000000000000"])
    {
        let value = format!("7 {deadline} {OURS}");
        let words = ["SET", "quorumlock-fence:a", &value, "PX", "50000"];
        server.command(&words).unwrap();
    }
    let broken = run(deployment.tool(&["break", "a", "--yes"]));
    assert_eq!(
        broken.out.matches(": deleted\n").count(),
        2,
        "{}",
        broken.all()
    );
    assert_eq!(broken.code, Some(0));
    let free = run(deployment.tool(&["break", "plain", "--yes"]));
    assert!(
        free.code == Some(0) && free.out.contains("is not held"),
        "{}",
        free.all()
    );
}

#[test]
fn a_closed_pipe_and_a_holder_that_goes_on_are_no_failures() {
    let deployment = Deployment::of(1);
    let holder = hold(&deployment, &["a"]);
    let program = env!("CARGO_BIN_EXE_quorumlock");
    let mut shell = std::process::Command::new("sh");
    shell
        .args([
            "-c",
            "\"$0\" ls | true; \"$0\" --help | head -1 >/dev/null; echo done",
        ])
        .arg(program);
    let ended = run({
        shell.env("QUORUMLOCK_NODES", deployment.urls());
        shell
    });
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("done\n", ""));
    end(holder);
}

#[test]
fn bench_measures_pairs() {
    let deployment = Deployment::of(3);
    let ended = run(deployment.tool(&["bench", "--duration", "200ms", "--threads", "2", "--json"]));
    assert!(
        ended.code == Some(0) && ended.out.contains("\"pairs_per_second\":"),
        "{}",
        ended.all()
    );
    assert_eq!(deployment.keys(), 0);
}
