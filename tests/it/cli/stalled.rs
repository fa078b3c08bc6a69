//! A reader of what `run` writes has stalled: a pipe is full, or a terminal shows nothing after
//! Ctrl-S. `run` extends its lock, ends its command in time and ends.

use super::deployment::{Deployment, boot_time_us, folder, run};
use super::loss::{STUBBORN, last_sign};
use crate::clients::pause;
use crate::support::process::eventually;
use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::io::ioctl_fionbio;
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const TTL: Duration = Duration::from_secs(3);
/// Far longer than a program takes to end.
const SOON: Duration = Duration::from_secs(20);

/// A program that does not outlive its test.
struct Running(Child);

impl Running {
    /// Its exit code, if it ends soon.
    fn code(&mut self) -> Option<i32> {
        assert!(
            eventually(SOON, || self.0.try_wait().unwrap().is_some()),
            "it does not end"
        );
        self.0.try_wait().unwrap().and_then(|status| status.code())
    }

    fn send(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().cast_signed()), signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fills a pipe, so that it takes nothing more.
fn fill(mut writer: &PipeWriter) {
    ioctl_fionbio(writer, true).unwrap();
    while writer.write(&[b'.'; 4096]).is_ok() {}
    while writer.write(b".").is_ok() {}
    ioctl_fionbio(writer, false).unwrap();
}

/// A pipe that takes nothing more.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = pipe().unwrap();
    fill(&writer);
    (reader, writer)
}

/// Extends when what it writes to stalls, and the command is gone before its lease ends when the
/// nodes hang.
fn keeps_its_promises(prepare: impl FnOnce(&mut Command), stall: impl FnOnce(), options: &[&str]) {
    let deployment = Deployment::of(3);
    let stamp = folder().join("stamp");
    let words = ["run", "--ttl", "3s", "--grace", "900ms"];
    let command = [
        "a",
        "--",
        "python3",
        "-c",
        STUBBORN,
        stamp.to_str().unwrap(),
    ];
    // Its standard output is the descriptor of events.
    let mut tool = Command::new("sh");
    tool.args(["-c", "exec 9>&1 >/dev/null; exec \"$@\"", "sh"])
        .arg(env!("CARGO_BIN_EXE_quorumlock"));
    tool.args(words)
        .args(options)
        .args(command)
        .env("QUORUMLOCK_NODES", deployment.urls());
    tool.stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    prepare(&mut tool);
    let mut running = Running(tool.spawn().unwrap());
    assert!(eventually(SOON, || last_sign(&stamp) > 0));
    stall();
    let begun = Instant::now();
    while begun.elapsed() < 2 * TTL {
        assert!(
            deployment.keys() == 3 && running.0.try_wait().unwrap().is_none(),
            "the lock is not extended"
        );
        thread::sleep(Duration::from_millis(50));
    }
    pause(&deployment.servers[..2]);
    let paused = boot_time_us();
    assert_eq!(running.code(), Some(70));
    let end = paused + u64::try_from(TTL.as_micros()).unwrap();
    let last = last_sign(&stamp);
    assert!(
        last < end,
        "alive {} µs after the end of the lease",
        last - end
    );
}

#[test]
fn a_full_pipe_of_messages_keeps_no_promise_from_being_kept() {
    let (_reader, writer) = pipe().unwrap();
    keeps_its_promises(
        |tool| _ = tool.stderr(writer.try_clone().unwrap()),
        || fill(&writer),
        &["-v"],
    );
}

#[test]
fn a_full_pipe_of_events_keeps_no_promise_from_being_kept() {
    let (_reader, writer) = pipe().unwrap();
    let options = ["--json-events", "9"];
    keeps_its_promises(
        |tool| _ = tool.stdout(writer.try_clone().unwrap()),
        || fill(&writer),
        &options,
    );
}

#[test]
fn a_terminal_after_ctrl_s_keeps_no_promise_from_being_kept() {
    let terminal = openpty(None, None).unwrap();
    let mut master = File::from(terminal.master);
    keeps_its_promises(
        |tool| _ = tool.stderr(terminal.slave),
        || master.write_all(b"\x13").unwrap(),
        &["-v"],
    );
}

#[test]
fn a_program_ends_although_its_messages_are_not_read() {
    let deployment = Deployment::of(3);
    let holder = Running(
        deployment
            .tool(&["run", "held", "--", "sleep", "99"])
            .spawn()
            .unwrap(),
    );
    assert!(eventually(SOON, || deployment.keys() == 3));
    let silenced = |words: &[&str]| {
        let (reader, writer) = full_pipe();
        (
            reader,
            Running(deployment.tool(words).stderr(writer).spawn().unwrap()),
        )
    };
    let (_reader, mut refused) = silenced(&["run", "-n", "held", "--", "true"]);
    assert_eq!(refused.code(), Some(75));
    let (_reader, mut wrong) = silenced(&["run", "--nodes", "http://h", "held", "--", "true"]);
    assert_eq!(wrong.code(), Some(78));
    // It waits, and the message of that cannot be written.
    let (_reader, mut waiting) = silenced(&["run", "-v", "--fair", "held", "--", "true"]);
    assert!(eventually(SOON, || run(deployment.tool(&["ls"]))
        .out
        .contains(", 1 wait")));
    waiting.send(Signal::SIGTERM);
    assert_eq!(waiting.code(), Some(143));
    drop(holder);
}
