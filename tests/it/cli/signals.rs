//! Signals: they end a wait, start nothing, and go to the command.

use super::*;
use std::os::unix::process::ExitStatusExt;

/// Far longer than a process takes to do what it is asked for.
const SOON: Duration = Duration::from_secs(10);
/// Programs that run at the same time.
const AT_ONCE: usize = 8;

/// Times in `0..limit`, the same in each run.
fn times(limit: u64) -> impl Iterator<Item = Duration> {
    let mut random = Random::from_seed(0);
    std::iter::repeat_with(move || Duration::from_micros(random.below(limit)))
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
    let mut tool = in_script(deployment, "exec 9>\"$0\"; exec \"$@\"", &log);
    tool.args("run --json-events 9".split(' '))
        .arg(format!("lock-{number}"))
        .args(["--", "sh", "-c", ": > \"$0\""])
        .arg(&stamp);
    let mut tool = Running::start(tool);
    thread::sleep(after);
    tool.send(Signal::SIGTERM);
    let sent = boot_time_us();
    let status = tool.child.wait().unwrap();
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
        let results = at_once(AT_ONCE, |index| {
            let (number, after) = batch[index];
            terminated(&deployment, &folder, number, after)
        });
        for (has_started, fault) in results {
            assert_eq!(fault, None);
            started += usize::from(has_started);
        }
        deployment.wait_until_left(0);
    }
    println!("{number} signals: {started} commands had started before, none afterwards");
}

#[test]
fn each_stopping_signal_ends_a_wait() {
    let deployment = Deployment::of(3);
    let holder = deployment.hold("a");
    for (signal, code) in [
        (Signal::SIGHUP, 129),
        (Signal::SIGINT, 130),
        (Signal::SIGQUIT, 131),
        (Signal::SIGTERM, 143),
    ] {
        let tool = with_signals(&deployment.tool("run -v a -- echo started"));
        let waiting = Running::start(tool);
        assert_soon!(has_thread(waiting.pid(), "signals"));
        // It means nothing to a program that waits.
        waiting.send(Signal::SIGUSR1);
        waiting.send(signal);
        assert_eq!(waiting.wait().exits(code).out, "");
    }
    drop(holder);
}

#[test]
fn signals_go_to_the_group_and_not_past_it() {
    let deployment = Deployment::of(1);
    let folder = folder();
    for options in ["", "--foreground"] {
        let file = folder.join(format!("group{options}"));
        // Each signal leaves its name; the last one ends it.
        let script = "for s in HUP INT QUIT USR1 USR2; do trap \"echo $s >> '$0'\" $s; done; trap 'echo TERM >> \
                      \"$0\"; exit 9' TERM; echo ready > \"$0\"; while :; do sleep 0.01; done";
        let mut tool = deployment.tool(&format!("run {options} a -- sh -c"));
        tool.arg(script).arg(&file);
        let running = Running::start(with_signals(&tool));
        let text = || fs::read_to_string(&file).unwrap_or_default();
        let shows = |count| eventually(SOON, || text().lines().count() == count);
        assert!(shows(1));
        let signals = [
            Signal::SIGHUP,
            Signal::SIGINT,
            Signal::SIGQUIT,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
        ];
        for (index, signal) in signals.into_iter().enumerate() {
            running.send(signal);
            assert!(shows(index + 2), "{signal}");
        }
        running.send(Signal::SIGTERM);
        running.wait().exits(9);
        assert_eq!(text(), "ready\nHUP\nINT\nQUIT\nUSR1\nUSR2\nTERM\n");
    }
}

#[test]
fn a_parent_that_ignored_sigchld_changes_nothing() {
    let deployment = Deployment::of(1);
    let start = |script: &str| {
        // The last of its operands is the program, the others are options.
        let options = "--ignore-signal=CHLD --default-signal=HUP,INT,QUIT";
        let mut tool = deployment.tool_at("env", options);
        tool.args([PRESENT, "run", "a", "--", "sh", "-c", script]);
        Running::start(tool)
    };
    let ended = |mut tool: Running| -> Ended {
        let is_over = eventually(2 * SOON, || tool.is_over());
        assert!(is_over, "it does not end");
        tool.wait()
    };
    ended(start("exit 3")).exits(3);
    let running = start("exec sleep 99");
    deployment.wait_for_keys(1);
    running.send(Signal::SIGTERM);
    ended(running).exits(143);
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
        let option = ["", "--foreground"][round % 2];
        let mut tool = deployment.tool(&format!("run {option} a -- sh -c"));
        tool.arg(script)
            .arg(path("ready"))
            .env(preload::VARIABLE, &library)
            .env("SIGNALS_FILE", path("signals"))
            .stderr(Stdio::inherit());
        let mut running = Running::start(tool);
        assert!(eventually(3 * SOON, || path("ready").exists()));
        while !running.is_over() {
            running.send(Signal::SIGUSR1);
        }
        running.wait().exits(3);
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
    let running = deployment.start(&("run a -- sh -c", [script, file.to_str().unwrap()]));
    deployment.wait_for_keys(1);
    let ended = running.wait();
    assert!(file.exists(), "released before: {}", ended.all());
    ended.exits(128 + 40);
    assert_eq!(deployment.keys(), 0);
}

#[test]
fn an_ignored_hang_up_stays_ignored() {
    let deployment = Deployment::of(1);
    let words = [PRESENT, "run", "a", "--", "sleep", "0.5"];
    let mut tool = deployment.tool_at("nohup", &words);
    tool.stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running::start(tool);
    deployment.wait_for_keys(1);
    running.send(Signal::SIGHUP);
    running.wait().exits(0);
}
