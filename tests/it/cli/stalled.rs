//! A reader of what `run` writes has stalled: a pipe is full, or a terminal shows nothing after
//! Ctrl-S. `run` extends its lock, ends its command in time and ends.

use super::loss::{STUBBORN, last_sign};
use super::*;
use nix::pty::openpty;
use rustix::io::ioctl_fionbio;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};

const TTL: Duration = Duration::from_secs(3);
/// Far longer than a program takes to end.
const SOON: Duration = Duration::from_secs(20);

/// Fills a pipe, so that it takes nothing more.
fn fill(mut writer: &PipeWriter) {
    ioctl_fionbio(writer, true).unwrap();
    while writer.write(&[b'.'; 4096]).is_ok() {}
    while writer.write(b".").is_ok() {}
    ioctl_fionbio(writer, false).unwrap();
}

/// A pipe that takes nothing more.
pub(super) fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = pipe().unwrap();
    fill(&writer);
    (reader, writer)
}

/// Extends when what it writes to stalls, and the command is gone before its lease ends when the
/// nodes hang.
fn keeps_its_promises(prepare: impl FnOnce(&mut Command), stall: impl FnOnce(), options: &str) {
    let deployment = Deployment::of(3);
    let stamp = folder().join("stamp");
    // Its standard output is the descriptor of events.
    let script = "exec 9>&1 >/dev/null; exec \"$@\"";
    let mut tool = in_script(&deployment, script, Path::new("sh"));
    tool.args("run --ttl 3s --grace 900ms".split(' '))
        .args(options.split(' '))
        .args(["a", "--", "python3", "-c", STUBBORN])
        .arg(&stamp);
    prepare(&mut tool);
    let mut running = Running::start(tool);
    assert_soon!(last_sign(&stamp) > 0);
    stall();
    let begun = Instant::now();
    while begun.elapsed() < 2 * TTL {
        assert!(
            deployment.keys() == 3 && !running.is_over(),
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
    let clone = writer.try_clone().unwrap();
    keeps_its_promises(|tool| _ = tool.stderr(clone), || fill(&writer), "-v");
}

#[test]
fn a_full_pipe_of_events_keeps_no_promise_from_being_kept() {
    let (_reader, writer) = pipe().unwrap();
    let clone = writer.try_clone().unwrap();
    let options = "--json-events 9";
    keeps_its_promises(|tool| _ = tool.stdout(clone), || fill(&writer), options);
}

#[test]
fn a_terminal_after_ctrl_s_keeps_no_promise_from_being_kept() {
    let terminal = openpty(None, None).unwrap();
    let mut master = File::from(terminal.master);
    keeps_its_promises(
        |tool| _ = tool.stderr(terminal.slave),
        || master.write_all(b"\x13").unwrap(),
        "-v",
    );
}

#[test]
fn a_program_ends_although_its_messages_are_not_read() {
    let deployment = Deployment::of(3);
    let _holder = deployment.hold("held");
    let silenced = |words: &str| {
        let (reader, writer) = full_pipe();
        let mut tool = deployment.tool(words);
        tool.stderr(writer);
        (reader, Running::start(tool))
    };
    let (_reader, mut refused) = silenced("run -n held -- true");
    assert_eq!(refused.code(), Some(75));
    let (_reader, mut wrong) = silenced("run --nodes http://h held -- true");
    assert_eq!(wrong.code(), Some(78));
    // It waits, and the message of that cannot be written.
    let (_reader, mut waiting) = silenced("run -v --fair held -- true");
    let waits = || deployment.run("ls").out.contains(", 1 wait");
    assert_soon!(waits());
    waiting.send(Signal::SIGTERM);
    assert_eq!(waiting.code(), Some(143));
}

#[test]
fn a_full_pipe_that_does_not_block_costs_no_line() {
    let deployment = Deployment::of(1);
    let (mut reader, writer) = full_pipe();
    ioctl_fionbio(&writer, true).unwrap();
    let mut tool = deployment.tool("run -v --json-events 1 a -- sleep 1");
    tool.stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut running = Running::start(tool);
    deployment.wait_for_keys(1);
    thread::sleep(Duration::from_millis(200));
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(running.code(), Some(0));
    for event in ["the command is started", "the command has ended"] {
        let count = text.matches(event).count();
        assert_eq!(count, 2, "{event}: {}", text.trim_matches('.'));
    }
}
