//! Signals: they end a wait, start nothing, and go to the command.

use super::deployment::{Deployment, boot_time_us, events, folder, rounds, wait, with_signals};
use crate::support::preload;
use crate::support::process::eventually;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

/// Programs that run at the same time.
const AT_ONCE: usize = 8;

fn send(tool: &Child, signal: Signal) {
    kill(Pid::from_raw(tool.id().cast_signed()), signal).unwrap();
}

/// Times in `0..limit`, the same in each run.
fn times(limit: u64) -> impl Iterator<Item = Duration> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Duration::from_micros(state % limit)
    })
}

/// One program that gets SIGTERM after a while: whether its command started, and whether that was a
/// fault.
fn terminated(
    deployment: &Deployment,
    folder: &Path,
    number: usize,
    after: Duration,
) -> (bool, Option<String>) {
    let log = folder.join(format!("{number}.events"));
    let stamp = folder.join(format!("{number}.stamp"));
    let script = "exec 9>\"$0\"; exec \"$@\"";
    let mut tool = std::process::Command::new("sh");
    tool.args(["-c", script])
        .arg(&log)
        .arg(env!("CARGO_BIN_EXE_quorumlock"));
    tool.args([
        "run",
        "--json-events",
        "9",
        &format!("lock-{number}"),
        "--",
        "sh",
        "-c",
        ": > \"$0\"",
    ])
    .arg(&stamp);
    tool.env("QUORUMLOCK_NODES", deployment.urls())
        .stdin(std::process::Stdio::null());
    let mut tool = tool.stderr(std::process::Stdio::null()).spawn().unwrap();
    std::thread::sleep(after);
    send(&tool, Signal::SIGTERM);
    let sent = boot_time_us();
    let status = tool.wait().unwrap();
    let events = events(&fs::read_to_string(&log).unwrap_or_default());
    let started = events
        .iter()
        .find(|(name, _)| name == "started")
        .map(|(_, numbers)| numbers["looked_us"]);
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    let fault = match started {
        _ if ![0, 143].contains(&code) => Some(format!("exit {code}")),
        None if stamp.exists() => Some("a command that was never started has run".to_owned()),
        None if code == 0 => Some("exit 0 without a command".to_owned()),
        Some(looked) if sent < looked => {
            Some(format!("started {} µs after the signal", looked - sent))
        }
        _ => None,
    };
    (started.is_some(), fault)
}

#[test]
#[allow(clippy::print_stdout)]
fn no_command_starts_after_a_signal_and_no_key_is_left() {
    let deployment = Deployment::of(5);
    let folder = folder();
    let mut started = 0;
    let mut number = 0;
    let mut times = times(60_000);
    for _ in 0..5 * rounds() {
        let batch: Vec<(usize, Duration)> = (0..AT_ONCE)
            .map(|index| (number + index, times.next().unwrap()))
            .collect();
        number += AT_ONCE;
        let results = std::thread::scope(|scope| {
            let deployment = &deployment;
            let folder = &folder;
            let run = |(number, after)| {
                scope.spawn(move || terminated(deployment, folder, number, after))
            };
            let threads: Vec<_> = batch.into_iter().map(run).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect::<Vec<_>>()
        });
        for (has_started, fault) in results {
            assert_eq!(fault, None);
            started += usize::from(has_started);
        }
        // Far sooner than a key ends by itself.
        assert!(
            eventually(Duration::from_secs(5), || deployment.keys() == 0),
            "a key is left"
        );
    }
    println!("{number} signals: {started} commands had started before, none afterwards");
}

#[test]
fn each_stopping_signal_ends_a_wait() {
    let deployment = Deployment::of(3);
    let mut holder = deployment
        .tool(&["run", "a", "--", "sleep", "99"])
        .spawn()
        .unwrap();
    assert!(eventually(Duration::from_secs(10), || deployment.keys() == 3));
    for (signal, code) in [
        (Signal::SIGHUP, 129),
        (Signal::SIGINT, 130),
        (Signal::SIGQUIT, 131),
        (Signal::SIGTERM, 143),
    ] {
        let waiting = with_signals(&deployment.tool(&["run", "-v", "a", "--", "echo", "started"]))
            .spawn()
            .unwrap();
        let is_waiting = || {
            // It has blocked its signals once its thread for them is there.
            let tasks = fs::read_dir(format!("/proc/{}/task", waiting.id()))
                .unwrap()
                .flatten();
            tasks
                .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
                .any(|name| name == "signals\n")
        };
        assert!(eventually(Duration::from_secs(10), is_waiting));
        // It means nothing to a program that waits.
        send(&waiting, Signal::SIGUSR1);
        send(&waiting, signal);
        let ended = wait(waiting);
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (Some(code), ""),
            "{}",
            ended.err
        );
    }
    send(&holder, Signal::SIGTERM);
    holder.wait().unwrap();
}

#[test]
fn signals_go_to_the_group_and_not_past_it() {
    let deployment = Deployment::of(1);
    let folder = folder();
    for foreground in [false, true] {
        let file = folder.join(format!("{foreground}"));
        // Each signal leaves its name; the last one ends it.
        let script = "for s in HUP INT QUIT USR1 USR2; do trap \"echo $s >> '$0'\" $s; done; trap 'echo TERM >> \
                      \"$0\"; exit 9' TERM; echo ready > \"$0\"; while :; do sleep 0.01; done";
        let mut words = vec!["run"];
        words.extend(foreground.then_some("--foreground"));
        words.extend(["a", "--", "sh", "-c", script, file.to_str().unwrap()]);
        let tool = with_signals(&deployment.tool(&words)).spawn().unwrap();
        let lines = || {
            fs::read_to_string(&file)
                .unwrap_or_default()
                .lines()
                .count()
        };
        assert!(eventually(Duration::from_secs(10), || lines() == 1));
        let signals = [
            Signal::SIGHUP,
            Signal::SIGINT,
            Signal::SIGQUIT,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
        ];
        for (index, signal) in signals.into_iter().enumerate() {
            send(&tool, signal);
            assert!(
                eventually(Duration::from_secs(10), || lines() == index + 2),
                "{signal}"
            );
        }
        send(&tool, Signal::SIGTERM);
        assert_eq!(wait(tool).code, Some(9));
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            ["ready", "HUP", "INT", "QUIT", "USR1", "USR2", "TERM"]
        );
    }
}

#[test]
fn a_parent_that_ignored_sigchld_changes_nothing() {
    let deployment = Deployment::of(1);
    let start = |script: &str| {
        let mut tool = with_signals(&deployment.tool(&["run", "a", "--", "sh", "-c", script]));
        // The last of its operands is the program, the others are options.
        let mut ignoring = std::process::Command::new("env");
        ignoring
            .arg("--ignore-signal=CHLD")
            .arg(tool.get_program())
            .args(tool.get_args());
        ignoring
            .env("QUORUMLOCK_NODES", deployment.urls())
            .stdin(std::process::Stdio::null());
        tool = ignoring;
        tool.stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let ended = |mut tool: Child| {
        let is_over = eventually(Duration::from_secs(20), || {
            tool.try_wait().unwrap().is_some()
        });
        if !is_over {
            tool.kill().unwrap();
        }
        assert!(is_over, "it does not end");
        wait(tool)
    };
    assert_eq!(ended(start("exit 3")).code, Some(3));
    let running = start("exec sleep 99");
    assert!(eventually(Duration::from_secs(10), || deployment.keys() == 1));
    send(&running, Signal::SIGTERM);
    assert_eq!(ended(running).code, Some(143));
    // The command does not inherit it: SIGCHLD is the bit of 0x10000.
    let ignored = ended(start("grep SigIgn /proc/self/status")).out;
    let mask =
        u64::from_str_radix(ignored.trim().trim_start_matches("SigIgn:").trim(), 16).unwrap();
    assert_eq!(mask & 0x10000, 0, "{ignored}");
}

#[test]
fn nothing_is_signalled_after_it_was_reaped() {
    let deployment = Deployment::of(1);
    let folder = folder();
    let library = preload::library("cli/reaped.c");
    for round in 0..10 * rounds() {
        let path = |name: &str| folder.join(format!("{round}.{name}"));
        // It ends among signals, and leaves a process behind that ends among signals.
        let script = "trap '' USR1; : > \"$0\"; (trap '' TERM; sleep 0.04) & sleep 0.02; exit 3";
        let mut words = vec!["run"];
        words.extend((round % 2 == 1).then_some("--foreground"));
        words.extend(["a", "--", "sh", "-c", script]);
        let mut tool = deployment.tool(&words);
        tool.arg(path("ready"))
            .env(preload::VARIABLE, &library)
            .env("SIGNALS_FILE", path("signals"));
        let mut tool = tool.stderr(std::process::Stdio::inherit()).spawn().unwrap();
        assert!(eventually(Duration::from_secs(30), || path("ready").exists()));
        let code = loop {
            match tool.try_wait().unwrap() {
                Some(status) => break status.code(),
                None => send(&tool, Signal::SIGUSR1),
            }
        };
        assert_eq!(code, Some(3));
        // The one that opens the gate is always there. How many more arrive apart, the machine
        // decides.
        assert!(
            fs::metadata(path("signals")).unwrap().len() >= 1,
            "no signal was looked at"
        );
    }
}

/// A signal without a name of its own, as programs use real-time signals.
#[test]
fn the_lock_is_held_while_the_group_lives_whichever_signal_ends_a_part_of_it() {
    let deployment = Deployment::of(1);
    let folder = folder();
    let file = folder.join("left");
    let script = "(trap '' TERM; sleep 1; : > \"$0\") & sh -c 'kill -40 $$'; kill -40 $$";
    let words = ["run", "a", "--", "sh", "-c", script, file.to_str().unwrap()];
    let tool = deployment.tool(&words).spawn().unwrap();
    assert!(eventually(Duration::from_secs(10), || deployment.keys() == 1));
    let ended = wait(tool);
    assert!(file.exists(), "released before: {}", ended.all());
    assert_eq!(ended.code, Some(128 + 40));
    assert_eq!(deployment.keys(), 0);
}

#[test]
fn an_ignored_hang_up_stays_ignored() {
    let deployment = Deployment::of(1);
    let mut tool = std::process::Command::new("nohup");
    tool.arg(env!("CARGO_BIN_EXE_quorumlock"))
        .args(["run", "a", "--", "sleep", "0.5"]);
    tool.env("QUORUMLOCK_NODES", deployment.urls())
        .stdin(std::process::Stdio::null());
    let tool = tool
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(eventually(Duration::from_secs(10), || deployment.keys() == 1));
    send(&tool, Signal::SIGHUP);
    assert_eq!(wait(tool).code, Some(0));
}
