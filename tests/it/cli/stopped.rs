//! Programs and commands that are stopped: by Ctrl-Z and other signals of job control, and by
//! SIGSTOP.

use super::loss::{STUBBORN, last_sign};
use super::*;
use nix::pty::openpty;
use std::os::unix::process::CommandExt;

/// Far longer than a process takes to do what it is asked for.
const SOON: Duration = Duration::from_secs(20);
/// Programs that run at the same time.
const AT_ONCE: usize = 8;
/// Options of a command in a group of its own, and in the program's group.
const GROUPS: [&str; 2] = ["", "--foreground"];
/// A command that goes on whatever a terminal sends, and writes the time.
const DEAF: &str = "import signal
for number in signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU: signal.signal(number, signal.SIG_IGN)
";

/// The process of the command, once there is one.
fn command_of(pid: u32) -> u32 {
    let has_one = || !children_of(pid).is_empty();
    assert_soon!(has_one());
    children_of(pid)[0]
}

/// The process of a command `sleep`, once it runs.
fn sleep_of(pid: u32) -> u32 {
    let command = command_of(pid);
    let name = || fs::read_to_string(format!("/proc/{command}/comm")).unwrap_or_default();
    assert_soon!(name() == "sleep\n");
    command
}

/// Whether a process is stopped.
fn is_stopped(pid: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit(')')
        .next()
        .is_some_and(|rest| rest.trim_start().starts_with('T'))
}

/// A program in a process group of its own, as a shell starts it, whose command writes the time to
/// a file.
fn job(deployment: &Deployment, options: &str, stamp: &Path) -> Running {
    let mut tool = deployment.tool(&format!("run {options} a -- python3 -c"));
    tool.arg(format!("{DEAF}{STUBBORN}"))
        .arg(stamp)
        .process_group(0);
    let running = Running::start(tool);
    assert_soon!(last_sign(stamp) > 0);
    running
}

#[test]
fn a_signal_of_job_control_stops_the_command_too() {
    let deployment = Deployment::of(3);
    let folder = folder();
    for (number, options) in GROUPS.into_iter().enumerate() {
        let stamp = folder.join(format!("{number}.stamp"));
        let running = job(&deployment, options, &stamp);
        let command = command_of(running.pid());
        for signal in [Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU] {
            running.send(signal);
            assert_soon!(is_stopped(running.pid()), "{options} {signal}");
            assert_soon!(
                is_stopped(command),
                "{options} {signal}: the command runs, and its lease ends"
            );
            let last = last_sign(&stamp);
            running.send(Signal::SIGCONT);
            assert_soon!(
                last_sign(&stamp) > last,
                "{options} {signal}: the command is stopped"
            );
        }
        drop(running);
        command_each(&deployment.servers, "DEL a");
    }
}

#[test]
fn a_program_that_stays_stopped_ends_its_command_before_the_lease_ends() {
    let folder = folder();
    for (number, options) in GROUPS.into_iter().enumerate() {
        let deployment = Deployment::of(3);
        let stamp = folder.join(format!("{number}.stamp"));
        let options = format!("--ttl 3s --grace 900ms {options}");
        let mut running = job(&deployment, &options, &stamp);
        running.send(Signal::SIGTSTP);
        assert_soon!(is_stopped(running.pid()) || running.is_over());
        let end = boot_time_us() + 3_000_000;
        // This test does not continue it.
        assert_eq!(running.code(), Some(70), "{options}");
        let last = last_sign(&stamp);
        assert!(
            last < end,
            "{options}: alive {} µs after the end of the lease",
            last.saturating_sub(end)
        );
        running
            .wait()
            .reports("stopped until the lease was about to end");
    }
}

#[test]
fn what_no_shell_can_continue_is_not_stopped() {
    let deployment = Deployment::of(1);
    let folder = folder();
    let stamp = folder.join("stamp");
    let messages = folder.join("messages");
    let mut tool = deployment.tool_at("setsid", &[PRESENT, "run", "-v", "a", "--"]);
    tool.args(["python3", "-c", &format!("{DEAF}{STUBBORN}")])
        .arg(&stamp)
        .stderr(File::create(&messages).unwrap());
    let running = Running::start(tool);
    assert_soon!(last_sign(&stamp) > 0);
    running.send(Signal::SIGTSTP);
    let is_continued = || {
        fs::read_to_string(&messages)
            .unwrap()
            .contains("SIGCONT to the command")
    };
    assert_soon!(is_continued(), "it is stopped for ever");
    let last = last_sign(&stamp);
    assert_soon!(last_sign(&stamp) > last, "the command is stopped for ever");
}

#[test]
fn a_stop_at_any_time_ends_with_the_signal_to_continue() {
    let deployment = Deployment::of(3);
    for batch in 0..5 * rounds() {
        let job = |index: usize| {
            // It ignores the signal, so that the program waits for it.
            let mut tool = deployment.tool(&format!("run --shell lock-{index} --"));
            tool.arg("trap '' TSTP; sleep 0.05").process_group(0);
            let mut running = Running::start(tool);
            // At the start, while the lock is taken, at the gate, while the command runs, at its
            // end.
            thread::sleep(Duration::from_millis(
                (batch * AT_ONCE + index) as u64 * 7 % 120,
            ));
            running.send(Signal::SIGTSTP);
            thread::sleep(Duration::from_millis(30));
            running.send(Signal::SIGCONT);
            running.code()
        };
        let codes = at_once(AT_ONCE, job);
        assert_eq!(codes, [Some(0); AT_ONCE]);
    }
}

#[test]
fn a_wait_is_stopped_and_goes_on() {
    let deployment = Deployment::of(1);
    let holder = deployment.hold("a");
    let mut tool = with_signals(&deployment.tool("run a -- true"));
    tool.process_group(0);
    let mut waiting = Running::start(tool);
    assert_soon!(has_thread(waiting.pid(), "signals"));
    waiting.send(Signal::SIGTSTP);
    assert_soon!(is_stopped(waiting.pid()));
    waiting.send(Signal::SIGCONT);
    assert_soon!(!is_stopped(waiting.pid()));
    holder.send(Signal::SIGTERM);
    assert_eq!(waiting.code(), Some(0));
}

#[test]
fn a_command_that_is_stopped_is_ended_by_each_signal_that_ends_it() {
    let deployment = Deployment::of(1);
    for options in GROUPS {
        for (signal, code) in [
            (Signal::SIGHUP, 129),
            (Signal::SIGINT, 130),
            (Signal::SIGQUIT, 131),
            (Signal::SIGTERM, 143),
        ] {
            let tool = deployment.tool(&format!("run {options} a -- sleep 99"));
            let mut running = Running::start(with_signals(&tool));
            let command = sleep_of(running.pid());
            send(command, Signal::SIGSTOP);
            assert_soon!(is_stopped(command));
            running.send(signal);
            assert_eq!(running.code(), Some(code), "{options} {signal}");
        }
    }
}

#[test]
fn ctrl_z_and_fg_in_a_shell_stop_and_continue_a_job() {
    let deployment = Deployment::of(3);
    for input in ["", " </dev/null"] {
        let terminal = openpty(None, None).unwrap();
        let mut master = File::from(terminal.master);
        let words = "--ctty bash --norc --noprofile -i";
        let tool = deployment.tool_at("setsid", words);
        let slave = || terminal.slave.try_clone().unwrap();
        let mut tool = with_signals(&tool);
        tool.stdin(slave()).stdout(slave()).stderr(slave());
        let shell = Running::start(tool);
        let mut shown = master.try_clone().unwrap();
        // What is shown is of no interest, and has to be read.
        thread::spawn(move || while matches!(shown.read(&mut [0; 4096]), Ok(1..)) {});
        let mut type_in = |text: &str| master.write_all(text.as_bytes()).unwrap();
        type_in(&format!("'{PRESENT}' run a -- sleep 99{input}\n"));
        assert_soon!(deployment.keys() == 3);
        let job = command_of(shell.pid());
        let command = sleep_of(job);
        type_in("\x1a");
        assert_soon!(is_stopped(job), "{input:?}");
        assert_soon!(
            is_stopped(command),
            "{input:?}: the command runs, and its lease ends"
        );
        type_in("fg\n");
        assert_soon!(!is_stopped(job) && !is_stopped(command), "{input:?}");
        type_in("\x03");
        assert_soon!(deployment.keys() == 0, "{input:?}");
        shell.send(Signal::SIGKILL);
    }
}
