//! A line of progress on a terminal, for what takes longer than a second; and none where there is
//! no terminal.

use super::*;
use nix::pty::openpty;

/// What wipes a line.
const WIPE: &str = "\r\x1b[K";

/// Runs a program whose standard error is a terminal: what the terminal shows.
pub(super) fn on_terminal(mut tool: Command) -> Ended {
    let terminal = openpty(None, None).unwrap();
    tool.stderr(terminal.slave);
    // The terminal is closed when no process has it any more, and this one had it in the command.
    let running = Running::start(tool);
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
    let ended = running.wait();
    Ended {
        err: reader.join().unwrap(),
        ..ended
    }
}

#[test]
fn what_takes_longer_than_a_second_shows_its_progress_on_a_terminal_alone() {
    let deployment = Deployment::of(3);
    let held = deployment.hold("held");
    let wait = "run --wait 1500ms held -- true";
    for (words, line, code) in [
        (wait, "waiting for held, 1 s", 75),
        ("doctor --watch 1500ms", "watching the clocks, 1 s", 0),
        ("bench --duration 1500ms", "locking and unlocking, 1 s", 0),
    ] {
        let shown = on_terminal(deployment.tool(words))
            .exits(code)
            .reports(&format!("{WIPE}{line}"));
        // Nothing of it is left in front of the next line.
        let rest = shown.err.rsplit(line).next().unwrap();
        assert!(
            rest.starts_with(WIPE) && !shown.out.contains('\x1b'),
            "{words}: {}",
            shown.all()
        );
    }
    let elsewhere = deployment.run(wait).err;
    assert!(!elsewhere.contains('\x1b'), "without a terminal");
    let quiet = on_terminal(deployment.tool("run -q --wait 1500ms held -- true"));
    assert_eq!(quiet.exits(75).err, "");
    let quick = on_terminal(deployment.tool("ls"));
    assert_eq!(quick.exits(0).err, "", "less than a second");
    held.terminate();
}

#[test]
fn a_node_that_hangs_is_waited_for_with_a_line_of_progress() {
    let deployment = Deployment::of(3);
    command_each(&deployment.servers[1..2], "SET a word");
    deployment.servers[0].pause().unwrap();
    on_terminal(deployment.tool("ls")).reports("asking the nodes for their keys: 1 found, 1 s");
    for words in ["scan", "show a", "break b --yes", "nodes --timeout 3s"] {
        on_terminal(deployment.tool(words)).reports(", 1 s");
    }
}
