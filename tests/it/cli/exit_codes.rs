//! Every exit code of `run`, and what the command finds in its environment.

use super::*;
use std::fs::Permissions;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;

#[test]
fn every_exit_code_says_what_happened() {
    let deployment = Deployment::of(3);
    let held = deployment.hold("held");
    let dead = dead();
    let unavailable = format!("run --nodes {dead} --unavailable-after 100ms a -- true");
    let table = [
        ("run a -- true", 0),
        ("run --shell a -- exit 4", 4),
        ("run -n held -- true", 75),
        ("run --wait 100ms held -- true", 75),
        ("run -n -E 42 held -- true", 42),
        ("run -n free held -- true", 75),
        ("run a", 64),
        ("run -- true", 64),
        ("run --wait 5 a -- true", 64),
        ("run --json-events 77 a -- true", 64),
        ("nonsense", 64),
        ("run --nodes http://h a -- true", 78),
        ("run --ttl 2h a -- true", 78),
        ("run --grace 29s a -- true", 78),
        ("run a -- no-such-program", 127),
        ("run a -- /dev/null", 126),
        (&unavailable, 69),
    ];
    for (words, expected) in table {
        deployment.ends(expected, words);
    }
    for (names, script, code) in [("a b", "exit 3", 3), ("a", "kill -9 $$", 137)] {
        let words = format!("run {names} -- sh -c");
        deployment.ends(code, &(&*words, [script]));
    }
    run(tool("run a -- true")).exits(78);
    held.terminate();
    deployment.wait_until_left(0);
}

#[test]
fn a_key_that_never_ends_is_named_however_long_one_waits() {
    let deployment = Deployment::of(3);
    // A token of this library, and what another one writes; on all nodes, and on a majority.
    for (value, count) in [
        ("0123456789abcdef0123456789abcdef01234567", 3),
        ("worker-7", 2),
    ] {
        command_each(&deployment.servers[..count], &format!("SET a {value}"));
        for options in [
            "",
            "-n",
            "-q -n -E 0",
            "--wait 50ms",
            "--wait 900ms",
            "-n --fair",
        ] {
            let begun = Instant::now();
            let ended = deployment.run(&format!("run {options} a -- true"));
            let ended = ended.exits(69);
            // A majority decides; the third node may answer too late to be counted.
            let message = "quorumlock: cannot lock \"a\": its key \"a\" has no expiry on ";
            assert!(ended.err.starts_with(message), "{options}: {}", ended.err);
            assert!(begun.elapsed() < Duration::from_secs(20));
        }
        command_each(&deployment.servers, "DEL a");
    }
}

#[test]
fn messages_name_options() {
    let deployment = Deployment::of(3);
    let message = |options: &str| deployment.run(&format!("run {options} a -- true")).err;
    let table = [
        (
            "--grace 29s",
            "--grace of 29 s is not less than half of the validity of a lock of 30 s",
        ),
        (
            "--ttl 2h",
            "--ttl of 2 h is longer than --max-ttl (60 s): raise --max-ttl to 2 h in every client of these nodes, or \
             name a shorter one: the lock is extended while the command runs",
        ),
        (
            "--ttl 2ms",
            "--ttl of 2 ms is no longer than the allowance for clock drift (--drift-factor and 2 ms)",
        ),
        (
            "--min-hold 2h",
            "--min-hold is longer than --max-ttl (60 s): raise --max-ttl in every client of these nodes",
        ),
    ];
    for (options, expected) in table {
        assert_eq!(message(options), format!("quorumlock: {expected}\n"));
    }
    let holder = deployment.start("run b -- sleep 2");
    deployment.wait_for_keys(3);
    pause(&deployment.servers);
    let unavailable = message("--unavailable-after 100ms");
    let unconfirmed = holder.wait().exits(0).err;
    for message in [unavailable, unconfirmed] {
        let named = "within 100 ms (--node-timeout)";
        assert!(message.contains(named), "{message}");
    }
}

#[test]
fn a_lock_that_is_deleted_ends_the_command_and_the_code_is_70() {
    let deployment = Deployment::of(3);
    let running = deployment.start(&("run --ttl 1s a -- sh -c", ["trap '' TERM; sleep 99"]));
    deployment.wait_for_keys(3);
    command_each(&deployment.servers, "DEL a");
    running.wait().exits(70).reports("the lock was lost");
}

#[test]
fn a_job_that_is_over_at_once_runs_on_one_machine() {
    let deployment = Deployment::of(5);
    let at_least = Duration::from_secs(2);
    let is_judged = (0..10).any(|round| {
        let job = format!("run --min-hold 2s --no-wait nightly-{round} -- echo done");
        let begun = Instant::now();
        let started: Vec<_> = (0..20).map(|_| deployment.start(&job)).collect();
        let ended: Vec<Ended> = started.into_iter().map(Running::wait).collect();
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
            let with_code = |ended: &&Ended| ended.code == Some(code);
            ended.iter().filter(with_code).count()
        };
        let runs = ended.iter().filter(|ended| ended.out == "done\n").count();
        assert_eq!((runs, count(0), count(75)), (1, 1, 19));
        true
    });
    assert!(is_judged, "the machine stands still all the time");
    deployment.succeeds("run --min-hold 100ms short -- true");
    // Far sooner than its time to live.
    deployment.wait_until_left(0);
    deployment.ends(78, "run --min-hold 61s a -- true");
}

#[test]
fn a_job_that_was_not_started_leaves_no_lock_and_one_that_has_run_leaves_it_long_enough() {
    let deployment = Deployment::of(3);
    let held = deployment.hold("held");
    // The first lock is taken, and the second one is not.
    let words = "run -n --min-hold 50s free held -- true";
    deployment.ends(75, words);
    deployment.wait_until_left(3);
    // A machine that fails while the command runs leaves the lock no shorter.
    drop(deployment.hold("--ttl 1s --min-hold 50s a"));
    let left = deployment.servers[0].command(&["PTTL", "a"]).unwrap();
    assert!(matches!(left, Answer::Number(30_000..=50_000)), "{left:?}");
    held.terminate();
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
        let ended = deployment.ends(expected, &words);
        for event in ["the command is started", "the command has ended"] {
            assert_eq!(ended.err.contains(event), keys > 0, "{}", ended.all());
        }
        deployment.wait_until_left(keys);
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
        let mut tool = deployment.tool("run -v --min-hold 50s a -- true");
        tool.env("PATH", &path).current_dir(&folder);
        let running = Running::start(tool);
        // The process of the command has passed its gate if it has run for so long.
        let is_searching = || {
            let mut times = children_of(running.pid())
                .into_iter()
                .map(processor_time_of);
            times.any(|time| time >= Duration::from_millis(100))
        };
        assert!(eventually(Duration::from_secs(20), is_searching));
        running.send(signal);
        let ended = running.wait().exits(128 + signal as i32);
        ended.hides("the command is started");
        assert_eq!(deployment.keys(), 0);
    }
}

#[test]
fn the_command_inherits_what_run_has_inherited_and_no_other_descriptor() {
    let deployment = Deployment::of(1);
    let list = "for n in 3 4 5 6 7 8 9; do ! test -e /proc/$$/fd/$n || echo $n; done";
    let listed = |words: &[&str]| {
        // Events go to a file: a reader of a pipe waits for all of its writers.
        let mut shell = deployment.tool_at("sh", &["-c", "exec 8>/dev/null; exec \"$@\"", "sh"]);
        shell.args(words).args(["sh", "-c", list]);
        let Ended { out, err, .. } = run(shell).exits(0);
        assert_eq!(err, "");
        out
    };
    let all = listed(&[]);
    assert!(all.contains("8\n"));
    assert_eq!(listed(&[PRESENT, "run", "a", "--"]), all);
    let tool = [PRESENT, "run", "--json-events", "8", "a", "--"];
    assert_eq!(listed(&tool), all.replace("8\n", ""));
}

#[test]
fn events_on_standard_output_or_error_leave_both_to_the_command() {
    let deployment = Deployment::of(1);
    for descriptor in ["1", "2"] {
        let words = format!("run --json-events {descriptor} a -- sh -c");
        let ended = deployment.succeeds(&(&*words, ["echo to output && echo to error >&2"]));
        let ended = ended.prints("to output\n").reports("to error\n");
        let Ended { out, err, .. } = ended;
        let events = if descriptor == "1" { &out } else { &err };
        assert!(events.contains("\"event\":\"started\""), "{events}");
    }
}

#[test]
fn events_are_in_one_order_with_what_others_write_to_the_same_file() {
    let deployment = Deployment::of(1);
    let log = folder().join("log");
    let script = "exec 3>\"$0\"; echo before >&3; \"$@\" >&3; echo after >&3";
    for descriptor in ["1", "3"] {
        let mut tool = in_script(&deployment, script, &log);
        let words = format!("run --json-events {descriptor} a -- echo inside");
        tool.args(words.split(' '));
        run(tool).exits(0);
        let text = fs::read_to_string(&log).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let [first, between @ .., last] = &*lines else {
            panic!("{text}")
        };
        assert_eq!((*first, *last), ("before", "after"), "{text}");
        let (said, events): (Vec<&str>, Vec<_>) = between.iter().partition(|l| **l == "inside");
        assert_eq!(said.len(), 1, "{text}");
        assert!(events.iter().all(|line| line.starts_with('{')), "{text}");
        let names = events.iter().flat_map(|line| super::events(line));
        assert!(
            names.map(|(name, _)| name).any(|name| name == "ended"),
            "{text}"
        );
    }
}

#[test]
fn events_go_to_what_is_open_for_writing_and_nowhere_else() {
    let deployment = Deployment::of(1);
    // As systemd passes standard output.
    let (mut reader, writer) = UnixStream::pair().unwrap();
    let mut tool = deployment.tool("run --json-events 1 a -- true");
    tool.stdout(OwnedFd::from(writer));
    run(tool).exits(0);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(text.contains("\"event\":\"ended\""), "{text}");
    let file = folder().join("input");
    fs::write(&file, "precious").unwrap();
    let mut tool = in_script(&deployment, "exec 3<\"$0\"; exec \"$@\"", &file);
    tool.args("run --json-events 3 a -- true".split(' '));
    run(tool).exits(64);
    assert_eq!(fs::read(&file).unwrap(), b"precious");
}

#[test]
fn the_command_finds_name_fence_and_end_and_no_nodes() {
    let deployment = Deployment::of(3);
    let fenced = deployment.succeeds("run --fenced orders/42 -- env").out;
    let value = |name: &str| {
        fenced
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    };
    assert_eq!(value("QUORUMLOCK_NAME"), Some("orders/42"));
    let number = |name: &str| value(name).unwrap().parse::<u64>().unwrap();
    assert!(number("QUORUMLOCK_FENCE").abs_diff(micros()) < 60_000_000);
    assert!((1..30_000).contains(&(number("QUORUMLOCK_EXPIRES_UNIX_MS") - micros() / 1000)));
    assert_eq!(value("QUORUMLOCK_NODES"), None);
    // Each of several locks has its line; an outer run's line is not the inner run's.
    let mut outer = deployment.tool("run --fenced --keep-nodes outer --");
    outer.args([PRESENT, "run", "b", "a", "--", "env"]);
    let inner = run(outer).exits(0).out;
    assert!(
        inner.contains("QUORUMLOCK_NAME=a\nb\n") && !inner.contains("QUORUMLOCK_FENCE"),
        "{inner}"
    );
    deployment
        .succeeds("run --keep-nodes a -- env")
        .prints("QUORUMLOCK_NODES=redis://");
}

#[test]
fn options_count_over_a_file_and_a_file_over_the_environment() {
    let deployment = Deployment::of(1);
    let file = folder().join("quorumlock.env");
    let text = "# a comment\nQUORUMLOCK_PREFIX=\"file:\"\nQUORUMLOCK_TTL=20s\n";
    fs::write(&file, text).unwrap();
    let key = |options: &str| {
        let mut tool = deployment.tool("run --config");
        tool.arg(&file)
            .args(options.split_whitespace())
            .args(["a", "--", "sleep", "99"])
            .env("QUORUMLOCK_PREFIX", "environment:");
        let running = Running::start(tool);
        deployment.wait_for_keys(1);
        let keys = deployment.servers[0].keys().unwrap().concat();
        running.terminate();
        deployment.wait_until_left(0);
        keys
    };
    assert!(key("").contains("file:a"));
    assert!(key("--prefix option:").contains("option:a"));
}

/// A default in its place may be shorter than what other programs go by.
#[test]
fn a_file_with_a_setting_that_does_not_exist_is_refused() {
    let file = folder().join("quorumlock.env");
    fs::write(&file, "PATH=/bin\nQUORUMLOCK_MAX_TLL=5m\n").unwrap();
    let mut tool = tool("nodes --nodes redis://127.0.0.1:1 --config");
    let why = format!(
        "{}: no setting has the name QUORUMLOCK_MAX_TLL",
        file.display()
    );
    run(tool.arg(&file)).exits(78).reports(&why);
}

#[test]
fn a_file_with_a_password_that_others_can_read_is_refused() {
    let file = folder().join("quorumlock.env");
    fs::write(&file, "QUORUMLOCK_NODES=redis://:hunter2@127.0.0.1:1\n").unwrap();
    let nodes = |mode| {
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let mut tool = tool("nodes --config");
        tool.arg(&file);
        run(tool).hides("hunter2")
    };
    nodes(0o644).exits(78).reports("chmod o-r");
    // It is read, and no node answers.
    nodes(0o640).exits(2).hides("chmod o-r");
}
