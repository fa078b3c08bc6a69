//! Every exit code of `run`, and what the command finds in its environment.

use super::deployment::{Deployment, Ended, folder, prints, run, tool, wait};
use super::stopped::children_of;
use crate::clients::pause;
use crate::support::process::{eventually, processor_time_of};
use crate::support::server::{Answer, free_port};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, Instant};

fn code(deployment: &Deployment, words: &[&str]) -> Option<i32> {
    run(deployment.tool(words)).code
}

#[test]
fn every_exit_code_says_what_happened() {
    let deployment = Deployment::of(3);
    let held = deployment
        .tool(&["run", "held", "--", "sleep", "99"])
        .spawn()
        .unwrap();
    assert!(eventually(Duration::from_secs(10), || deployment.keys() == 3));
    let table: [(&[&str], i32); 18] = [
        (&["run", "a", "--", "true"], 0),
        (&["run", "a", "b", "--", "sh", "-c", "exit 3"], 3),
        (&["run", "a", "--", "sh", "-c", "kill -9 $$"], 137),
        (&["run", "--shell", "a", "--", "exit", "4"], 4),
        (&["run", "-n", "held", "--", "true"], 75),
        (&["run", "--wait", "100ms", "held", "--", "true"], 75),
        (&["run", "-n", "-E", "42", "held", "--", "true"], 42),
        (&["run", "-n", "free", "held", "--", "true"], 75),
        (&["run", "a"], 64),
        (&["run", "--", "true"], 64),
        (&["run", "--wait", "5", "a", "--", "true"], 64),
        (&["run", "--json-events", "77", "a", "--", "true"], 64),
        (&["nonsense"], 64),
        (&["run", "--nodes", "http://h", "a", "--", "true"], 78),
        (&["run", "--ttl", "2h", "a", "--", "true"], 78),
        (&["run", "--grace", "29s", "a", "--", "true"], 78),
        (&["run", "a", "--", "no-such-program"], 127),
        (&["run", "a", "--", "/dev/null"], 126),
    ];
    for (words, expected) in table {
        let ended = run(deployment.tool(words));
        assert_eq!(ended.code, Some(expected), "{words:?}: {}", ended.all());
    }
    assert_eq!(
        run(tool(&["run", "a", "--", "true"])).code,
        Some(78),
        "no nodes"
    );
    let dead = format!("redis://127.0.0.1:{}", free_port().unwrap());
    let words = [
        "run",
        "--nodes",
        &dead,
        "--unavailable-after",
        "100ms",
        "a",
        "--",
        "true",
    ];
    assert_eq!(code(&deployment, &words), Some(69));
    kill(Pid::from_raw(held.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(wait(held).code, Some(143));
    assert!(
        eventually(Duration::from_secs(5), || deployment.keys() == 0),
        "a key is left"
    );
}

#[test]
fn a_key_that_never_ends_is_named_however_long_one_waits() {
    let deployment = Deployment::of(3);
    let job = ["a", "--", "true"];
    let waits: [&[&str]; 6] = [
        &[],
        &["-n"],
        &["-q", "-n", "-E", "0"],
        &["--wait", "50ms"],
        &["--wait", "900ms"],
        &["-n", "--fair"],
    ];
    // A token of this library, and what another one writes; on all nodes, and on a majority.
    for (value, count) in [
        ("0123456789abcdef0123456789abcdef01234567", 3),
        ("worker-7", 2),
    ] {
        for server in &deployment.servers[..count] {
            server.command(&["SET", "a", value]).unwrap();
        }
        for words in waits {
            let begun = Instant::now();
            let ended = run(deployment.tool(&[&["run"], words, &job].concat()));
            assert_eq!(ended.code, Some(69), "{words:?}: {}", ended.all());
            // A majority decides; the third node may answer too late to be counted.
            let message = "quorumlock: cannot lock \"a\": its key \"a\" has no expiry on ";
            assert!(ended.err.starts_with(message), "{words:?}: {}", ended.err);
            assert!(begun.elapsed() < Duration::from_secs(20));
        }
        deployment
            .servers
            .iter()
            .for_each(|server| drop(server.command(&["DEL", "a"]).unwrap()));
    }
}

#[test]
fn messages_name_options() {
    let deployment = Deployment::of(3);
    let message = |words: &[&str]| {
        run(deployment.tool(&[&["run"], words, &["a", "--", "true"]].concat())).err
    };
    let table: [(&[&str], &str); 4] = [
        (
            &["--grace", "29s"],
            "--grace of 29 s is not less than half of the validity of a lock of 30 s",
        ),
        (
            &["--ttl", "2h"],
            "--ttl of 2 h is longer than --max-ttl (60 s): raise --max-ttl to 2 h in every client of these nodes, or \
             name a shorter one: the lock is extended while the command runs",
        ),
        (
            &["--ttl", "2ms"],
            "--ttl of 2 ms is no longer than the allowance for clock drift (--drift-factor and 2 ms)",
        ),
        (
            &["--min-hold", "2h"],
            "--min-hold is longer than --max-ttl (60 s)",
        ),
    ];
    for (words, expected) in table {
        assert_eq!(message(words), format!("quorumlock: {expected}\n"));
    }
    pause(&deployment.servers);
    let unavailable = message(&["--unavailable-after", "100ms"]);
    assert!(
        unavailable.contains("within 100 ms (--node-timeout)"),
        "{unavailable}"
    );
}

#[test]
fn a_lock_that_is_deleted_ends_the_command_and_the_code_is_70() {
    let deployment = Deployment::of(3);
    let tool = deployment.tool(&[
        "run",
        "--ttl",
        "1s",
        "a",
        "--",
        "sh",
        "-c",
        "trap '' TERM; sleep 99",
    ]);
    let running = { tool }.spawn().unwrap();
    assert!(eventually(Duration::from_secs(10), || deployment.keys() == 3));
    for server in &deployment.servers {
        server.command(&["DEL", "a"]).unwrap();
    }
    let ended = wait(running);
    assert_eq!(ended.code, Some(70), "{}", ended.all());
    assert!(ended.err.contains("the lock was lost"), "{}", ended.err);
}

#[test]
fn a_job_that_is_over_at_once_runs_on_one_machine() {
    let deployment = Deployment::of(5);
    let at_least = Duration::from_secs(2);
    let is_judged = (0..10).any(|round| {
        let name = format!("nightly-{round}");
        let job = [
            "run",
            "--min-hold",
            "2s",
            "--no-wait",
            &name,
            "--",
            "echo",
            "done",
        ];
        let begun = Instant::now();
        let started: Vec<_> = (0..20)
            .map(|_| deployment.tool(&job).spawn().unwrap())
            .collect();
        let ended: Vec<Ended> = started.into_iter().map(wait).collect();
        let passed = begun.elapsed();
        // It was shortened, and ends by itself.
        let is_free = || deployment.keys() == 0;
        assert!(
            eventually(at_least * 5, is_free),
            "its time to live is 30 s"
        );
        // A machine that stood still for so long has started some of them too late.
        if passed > at_least * 9 / 10 {
            return false;
        }
        assert!(begun.elapsed() > at_least * 9 / 10, "{:?}", begun.elapsed());
        let count = |code| {
            ended
                .iter()
                .filter(|ended| ended.code == Some(code))
                .count()
        };
        let runs = ended.iter().filter(|ended| ended.out == "done\n").count();
        assert_eq!((runs, count(0), count(75)), (1, 1, 19));
        true
    });
    assert!(is_judged, "the machine stands still all the time");
    assert_eq!(
        code(
            &deployment,
            &["run", "--min-hold", "100ms", "short", "--", "true"]
        ),
        Some(0)
    );
    let exists =
        || deployment.servers[0].command(&["EXISTS", "short"]).unwrap() == Answer::Number(1);
    assert!(
        eventually(Duration::from_secs(5), || !exists()),
        "far sooner than its time to live"
    );
    assert_eq!(
        code(
            &deployment,
            &["run", "--min-hold", "61s", "a", "--", "true"]
        ),
        Some(78)
    );
}

#[test]
fn a_job_that_was_not_started_leaves_no_lock_and_one_that_has_run_leaves_it_long_enough() {
    let deployment = Deployment::of(3);
    let keys = || deployment.servers[0].keys().unwrap();
    let at_least = |words: &[&str]| {
        code(
            &deployment,
            &[&["run", "-n", "--min-hold", "50s"], words].concat(),
        )
    };
    let held = deployment
        .tool(&["run", "held", "--", "sleep", "99"])
        .spawn()
        .unwrap();
    assert!(eventually(Duration::from_secs(10), || deployment.keys() == 3));
    // The first lock is taken, and the second one is not.
    assert_eq!(at_least(&["free", "held", "--", "true"]), Some(75));
    assert!(
        eventually(Duration::from_secs(5), || deployment.keys() == 3),
        "{:?}",
        keys()
    );
    // A machine that fails while the command runs leaves the lock no shorter.
    let running = deployment.tool(&[
        "run",
        "--ttl",
        "1s",
        "--min-hold",
        "50s",
        "a",
        "--",
        "sleep",
        "99",
    ]);
    let mut running = { running }.spawn().unwrap();
    assert!(eventually(Duration::from_secs(10), || deployment.keys() == 6));
    running.kill().unwrap();
    running.wait().unwrap();
    let left = deployment.servers[0].command(&["PTTL", "a"]).unwrap();
    assert!(matches!(left, Answer::Number(30_000..=50_000)), "{left:?}");
    kill(Pid::from_raw(held.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(wait(held).code, Some(143));
}

#[test]
fn a_command_that_cannot_be_run_leaves_no_lock_and_one_that_exits_alike_does() {
    let deployment = Deployment::of(3);
    let table: [(&[&str], i32, usize); 4] = [
        (&["no-such-program"], 127, 0),
        (&["/dev/null"], 126, 0),
        (&["sh", "-c", "exit 127"], 127, 3),
        (&["sh", "-c", "no-such-program"], 127, 6),
    ];
    for (command, expected, keys) in table {
        let name = command.concat();
        let words = [&["run", "-v", "--min-hold", "50s", &name, "--"], command].concat();
        let ended = prints(&deployment, &words, expected, &[]);
        for event in ["the command is started", "the command has ended"] {
            assert_eq!(ended.err.contains(event), keys > 0, "{}", ended.all());
        }
        assert!(
            eventually(Duration::from_secs(5), || deployment.keys() == keys),
            "{command:?}: {:?}",
            deployment.servers[0].keys().unwrap()
        );
    }
}

#[test]
fn a_signal_before_the_command_is_executed_leaves_no_lock() {
    let deployment = Deployment::of(1);
    let folder = folder();
    // Each entry of PATH is a way through so many links that the search takes seconds.
    symlink("./".repeat(2000), folder.join("s")).unwrap();
    let path = format!("{}s:", "s/".repeat(38)).repeat(1500);
    for signal in [Signal::SIGTERM, Signal::SIGUSR1] {
        let mut tool = deployment.tool(&["run", "-v", "--min-hold", "50s", "a", "--", "true"]);
        let tool = tool.env("PATH", &path).current_dir(&folder);
        let tool = tool.spawn().unwrap();
        // The process of the command has passed its gate if it has run for so long.
        let is_searching = || {
            let mut times = children_of(tool.id()).into_iter().map(processor_time_of);
            times.any(|time| time >= Duration::from_millis(100))
        };
        assert!(eventually(Duration::from_secs(20), is_searching));
        kill(Pid::from_raw(tool.id().cast_signed()), signal).unwrap();
        let ended = wait(tool);
        assert_eq!(ended.code, Some(128 + signal as i32), "{}", ended.all());
        let is_started = ended.err.contains("the command is started");
        assert!(!is_started, "{}", ended.all());
        assert_eq!(deployment.keys(), 0);
    }
}

#[test]
fn the_command_inherits_what_run_has_inherited_and_no_other_descriptor() {
    let deployment = Deployment::of(1);
    let list = [
        "sh",
        "-c",
        "for n in 3 4 5 6 7 8 9; do ! test -e /proc/$$/fd/$n || echo $n; done",
    ];
    let listed = |words: &[&str]| {
        // Events go to a file: a reader of a pipe waits for all of its writers.
        let mut shell = deployment.tool_at("sh", &["-c", "exec 8>/dev/null; exec \"$@\"", "sh"]);
        shell.args(words).args(list);
        let Ended { code, out, err } = run(shell);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        out
    };
    let all = listed(&[]);
    let tool = [env!("CARGO_BIN_EXE_quorumlock"), "run", "a", "--"];
    assert!(all.contains("8\n"));
    assert_eq!(listed(&tool), all);
    let tool = [&tool[..2], &["--json-events", "8"], &tool[2..]].concat();
    assert_eq!(listed(&tool), all.replace("8\n", ""));
}

#[test]
fn events_on_standard_output_or_error_leave_both_to_the_command() {
    let deployment = Deployment::of(1);
    for descriptor in ["1", "2"] {
        let words = ["run", "--json-events", descriptor, "a", "--", "sh", "-c"];
        let script = "echo to output && echo to error >&2";
        let Ended { code, out, err } = run(deployment.tool(&[&words[..], &[script]].concat()));
        assert_eq!(code, Some(0), "{descriptor}: {out}{err}");
        assert!(out.contains("to output\n") && err.contains("to error\n"));
        let events = if descriptor == "1" { &out } else { &err };
        assert!(events.contains("\"event\":\"started\""), "{events}");
    }
}

#[test]
fn the_command_finds_name_fence_and_end_and_no_nodes() {
    let deployment = Deployment::of(3);
    let environment = |words: &[&str]| {
        let Ended { code, out, .. } = run(deployment.tool(words));
        assert_eq!(code, Some(0));
        out
    };
    let fenced = environment(&["run", "--fenced", "orders/42", "--", "env"]);
    let value = |name: &str| {
        fenced
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    };
    assert_eq!(value("QUORUMLOCK_NAME"), Some("orders/42"));
    let micros = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_micros();
    let number = |name: &str| {
        value(name)
            .and_then(|text| text.parse::<u128>().ok())
            .unwrap()
    };
    assert!(number("QUORUMLOCK_FENCE").abs_diff(micros) < 60_000_000);
    assert!((1..30_000).contains(&(number("QUORUMLOCK_EXPIRES_UNIX_MS") - micros / 1000)));
    assert_eq!(value("QUORUMLOCK_NODES"), None);
    // Each of several locks has its line; an outer run's line is not the inner run's.
    let nested = [
        env!("CARGO_BIN_EXE_quorumlock"),
        "run",
        "b",
        "a",
        "--",
        "env",
    ];
    let inner = environment(
        &[
            &["run", "--fenced", "--keep-nodes", "outer", "--"],
            nested.as_slice(),
        ]
        .concat(),
    );
    assert!(
        inner.contains("QUORUMLOCK_NAME=a\nb\n") && !inner.contains("QUORUMLOCK_FENCE"),
        "{inner}"
    );
    assert!(
        environment(&["run", "--keep-nodes", "a", "--", "env"])
            .contains("QUORUMLOCK_NODES=redis://")
    );
}

#[test]
fn options_count_over_a_file_and_a_file_over_the_environment() {
    let deployment = Deployment::of(1);
    let folder = folder();
    let file = folder.join("quorumlock.env");
    fs::write(
        &file,
        "# a comment\nQUORUMLOCK_PREFIX=\"file:\"\nQUORUMLOCK_TTL=20s\n",
    )
    .unwrap();
    let key = |words: &[&str]| {
        let mut tool = deployment.tool(&["run", "--config", file.to_str().unwrap()]);
        tool.env("QUORUMLOCK_PREFIX", "environment:")
            .args(words)
            .args(["a", "--", "sleep", "99"]);
        let running = tool.spawn().unwrap();
        let mut keys = String::new();
        assert!(eventually(Duration::from_secs(10), || {
            keys = deployment.servers[0].keys().unwrap().concat();
            !keys.is_empty()
        }));
        kill(Pid::from_raw(running.id().cast_signed()), Signal::SIGTERM).unwrap();
        assert_eq!(wait(running).code, Some(143));
        assert!(eventually(Duration::from_secs(5), || deployment.keys() == 0));
        keys
    };
    assert!(key(&[]).contains("file:a"));
    assert!(key(&["--prefix", "option:"]).contains("option:a"));
}

#[test]
fn a_file_with_a_password_that_others_can_read_is_refused() {
    let folder = folder();
    let file = folder.join("quorumlock.env");
    fs::write(&file, "QUORUMLOCK_NODES=redis://:hunter2@127.0.0.1:1\n").unwrap();
    let refusal = |mode| {
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let ended = run(tool(&["nodes", "--config", file.to_str().unwrap()]));
        assert!(!ended.all().contains("hunter2"));
        (ended.code, ended.err.contains("chmod o-r"))
    };
    assert_eq!(refusal(0o644), (Some(78), true));
    assert_eq!(
        refusal(0o640),
        (Some(2), false),
        "it is read, and no node answers"
    );
}
