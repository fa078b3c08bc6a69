//! `nodes`, `show`, `ls`, `break` and `bench`. [`scans`] is about `scan`, [`read_write`] about
//! read-write locks.

mod read_write;
mod scans;

use super::*;

pub(super) const OURS: &str = "1111111111111111111111111111111111111111";
const THEIRS: &str = "2222222222222222222222222222222222222222";

/// Sets a key on some nodes, for so many milliseconds.
fn set(deployment: &Deployment, nodes: &[usize], key: &str, value: &str, millis: &str) {
    for &node in nodes {
        ok(
            &deployment.servers[node],
            &["SET", key, value, "PX", millis],
        );
    }
}

#[test]
fn nodes_is_a_probe() {
    let mut deployment = Deployment::of(3);
    let nodes = |deployment: &Deployment, code| {
        let ended = deployment.ends(code, "nodes");
        assert_eq!(ended.out.lines().count(), 3, "{}", ended.all());
    };
    nodes(&deployment, 0);
    deployment.servers[0].kill();
    nodes(&deployment, 1);
    deployment
        .run("nodes --json")
        .prints("\"state\":\"down\"")
        .prints("\"state\":\"voting\"");
    deployment.servers[1].kill();
    nodes(&deployment, 2);
}

#[test]
fn ls_tells_held_split_and_orphaned_locks_apart() {
    let deployment = Deployment::of(5);
    set(&deployment, &[0, 1, 2], "held", OURS, "50000");
    set(&deployment, &[3], "held", THEIRS, "90000");
    set(&deployment, &[0, 1], "split", OURS, "50000");
    set(&deployment, &[2, 3], "split", THEIRS, "50000");
    set(&deployment, &[4], "orphan", OURS, "50000");
    let all = [0, 1, 2, 3, 4];
    set(&deployment, &all, "quorumlock-fence:rest", "7 0 ", "50000");
    ok(&deployment.servers[0], &["SET", "other", "no lock"]);
    // More than six digits of a token are not shown.
    let ended = deployment.run("ls").hides("1111111");
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
    assert_eq!(line("held")[1..4], ["held", "3/5:", "1,2,3"]);
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
    deployment
        .run("ls sp* --json")
        .prints("\"split\"")
        .hides("\"held\"");
}

#[test]
fn a_holder_with_a_label_is_shown_by_it() {
    let deployment = Deployment::of(3);
    for options in ["", "--fenced"] {
        let holder = deployment.hold(&format!("{options} --label billing@host7 a"));
        let ended = deployment.run("ls");
        let is_shown = |line: &str| line.contains("held") && line.ends_with("billing@host7");
        assert!(ended.out.lines().any(is_shown), "{}", ended.all());
        holder.terminate();
        command_each(&deployment.servers, "FLUSHALL");
    }
}

#[test]
fn show_gives_the_holder_of_each_node_and_the_time_of_a_quorum() {
    let deployment = Deployment::of(3);
    set(&deployment, &[0], "a", OURS, "10000");
    set(&deployment, &[1, 2], "a", OURS, "50000");
    let ended = deployment.run("show a --json");
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
    deployment
        .run("show a")
        .prints("held by 111111…, on 2 of 3 nodes")
        .prints("unknown, no reply");
    deployment.servers[1].pause().unwrap();
    deployment.ends(69, "show a").prints("\"a\": unknown");
    resume(&deployment.servers);
}

#[test]
fn break_deletes_what_was_read_and_keeps_the_fence() {
    skip_unless!(has_users());
    let deployment = Deployment::of(3);
    let holder = deployment.hold("--fenced a");
    let value = |node: usize| deployment.servers[node].text(&["GET", "quorumlock-fence:a"]);
    let fence = value(0).split(' ').next().unwrap().to_owned();
    deployment.ends(64, "break a");
    assert!(value(0).len() > 40);
    // Servers that compare and delete by themselves would delete the fence.
    let few = "ACL SETUSER few on >few ~* +@all -eval";
    command_each(&deployment.servers, few);
    let few = deployment.urls().replace("redis://", "redis://few:few@");
    deployment.ends(1, &format!("break a --yes --nodes {few}"));
    assert!(value(0).len() > 40);
    deployment
        .succeeds("break a --yes")
        .prints("the holder may believe in its lock for another");
    assert_eq!(value(1), format!("{fence} 0 "));
    // The holder finds out at its next extension.
    holder.wait().exits(70);
    set(&deployment, &[0, 1], "plain", OURS, "50000");
    deployment.succeeds("break plain --yes");
    assert_eq!(
        deployment.servers[0].command(&["EXISTS", "plain"]).unwrap(),
        Answer::Number(0)
    );
    // On one node, it has ended by itself.
    for (node, deadline) in ["1", "9000000000000", "9000000000000"].iter().enumerate() {
        let value = format!("7 {deadline} {OURS}");
        set(&deployment, &[node], "quorumlock-fence:a", &value, "50000");
    }
    deployment
        .succeeds("break a --yes")
        .prints_times(": deleted\n", 2);
    deployment
        .succeeds("break plain --yes")
        .prints("is not held");
}

#[test]
fn a_closed_pipe_and_a_holder_that_goes_on_are_no_failures() {
    let deployment = Deployment::of(1);
    let holder = deployment.hold("a");
    let script = "\"$0\" ls | true; \"$0\" --help | head -1 >/dev/null; echo done";
    let mut shell = program("sh");
    shell
        .args(["-c", script, PRESENT])
        .env("QUORUMLOCK_NODES", deployment.urls());
    let ended = run(shell);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("done\n", ""));
    holder.terminate();
}

#[test]
fn bench_measures_pairs() {
    let deployment = Deployment::of(3);
    deployment
        .succeeds("bench --duration 200ms --threads 2 --json")
        .prints("\"pairs_per_second\":");
    assert_eq!(deployment.keys(), 0);
}
