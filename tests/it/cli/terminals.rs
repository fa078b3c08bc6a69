//! A line of progress on a terminal, for what takes longer than a second; and none where there is
//! no terminal.

use super::deployment::{Deployment, Ended, run};
use crate::clients::ask;
use crate::support::process::eventually;
use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::Read;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// What wipes a line.
const WIPE: &str = "\r\x1b[K";

/// Runs a program whose standard error is a terminal: what the terminal shows.
pub(super) fn on_terminal(mut tool: Command) -> Ended {
    let terminal = openpty(None, None).unwrap();
    tool.stderr(terminal.slave);
    let running = tool.spawn().unwrap();
    // The terminal is closed when no process has it any more, and this one has it in the command.
    drop(tool);
    let mut master = File::from(terminal.master);
    let reader = thread::spawn(move || {
        let mut shown = Vec::new();
        let mut chunk = [0; 4096];
        // A terminal that is closed is an error to read from.
        while let Ok(count @ 1..) = master.read(&mut chunk) {
            shown.extend_from_slice(&chunk[..count]);
        }
        String::from_utf8(shown).unwrap()
    });
    let output = running.wait_with_output().unwrap();
    Ended {
        err: reader.join().unwrap(),
        ..Ended::of(&output)
    }
}

#[test]
fn what_takes_longer_than_a_second_shows_its_progress_on_a_terminal_alone() {
    let deployment = Deployment::of(3);
    let held = deployment
        .tool(&["run", "held", "--", "sleep", "99"])
        .spawn()
        .unwrap();
    assert!(eventually(Duration::from_secs(10), || deployment.keys() == 3));
    let wait = ["run", "--wait", "1500ms", "held", "--", "true"];
    let waits: [(&[&str], &str, i32); 3] = [
        (&wait, "waiting for held, 1 s", 75),
        (
            &["doctor", "--watch", "1500ms"],
            "watching the clocks, 1 s",
            0,
        ),
        (
            &["bench", "--duration", "1500ms"],
            "locking and unlocking, 1 s",
            0,
        ),
    ];
    for (words, line, code) in waits {
        let shown = on_terminal(deployment.tool(words));
        assert!(
            shown.code == Some(code) && shown.err.contains(&format!("{WIPE}{line}")),
            "{words:?}: {}",
            shown.all()
        );
        // Nothing of it is left in front of the next line.
        let rest = shown.err.rsplit(line).next().unwrap();
        assert!(
            rest.starts_with(WIPE) && !shown.out.contains('\x1b'),
            "{words:?}: {}",
            shown.all()
        );
    }
    assert!(
        !run(deployment.tool(&wait)).err.contains('\x1b'),
        "without a terminal"
    );
    let quiet = on_terminal(deployment.tool(&[&["run", "-q"], &wait[1..]].concat()));
    assert_eq!((quiet.code, quiet.err.as_str()), (Some(75), ""));
    let quick = on_terminal(deployment.tool(&["ls"]));
    assert_eq!(
        (quick.code, quick.err.as_str()),
        (Some(0), ""),
        "less than a second"
    );
    kill(Pid::from_raw(held.id().cast_signed()), Signal::SIGTERM).unwrap();
    drop(super::deployment::wait(held));
}

#[test]
fn a_node_that_hangs_is_waited_for_with_a_line_of_progress() {
    let deployment = Deployment::of(3);
    ask(&deployment.servers[1], &["SET", "a", "word"]);
    deployment.servers[0].pause().unwrap();
    let listed = on_terminal(deployment.tool(&["ls"]));
    assert!(
        listed
            .err
            .contains("asking the nodes for their keys: 1 found, 1 s"),
        "{}",
        listed.all()
    );
    for words in [
        &["scan"][..],
        &["show", "a"],
        &["break", "b", "--yes"],
        &["nodes", "--timeout", "3s"],
    ] {
        let shown = on_terminal(deployment.tool(words));
        assert!(shown.err.contains(", 1 s"), "{words:?}: {}", shown.all());
    }
}
