//! A program that is stopped past its lease cannot end its command: the resource must refuse the
//! late write, by the fence. With `--fenced` a database does, without it does not.

use super::deployment::{Deployment, folder, wait};
use crate::support::process::eventually;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A writer: waits for a file if one is named, then writes its name with its fence, unless a
/// greater one was seen.
const WRITER: &str = "import os, sqlite3, sys, time
database, name, begun, go = sys.argv[1:5]
open(begun, 'w').close()
while go and not os.path.exists(go):
    time.sleep(0.005)
fence = int(os.environ.get('QUORUMLOCK_FENCE', '0'))
with sqlite3.connect(database, timeout=10) as connection:
    changed = connection.execute('UPDATE report SET writer = ?, fence = ? WHERE fence <= ?', (name, fence, fence))
    print(changed.rowcount)
open(begun + '.done', 'w').write(str(changed.rowcount))
";

/// What the database holds after a late write.
fn last_writer(fenced: bool) -> String {
    let deployment = Deployment::of(3);
    let folder = folder();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let database = path("database");
    let go = path("go");
    python(
        "c.execute('CREATE TABLE report (writer TEXT, fence INTEGER)')\n\
         c.execute(\"INSERT INTO report VALUES ('', 0)\")",
        &database,
    );
    let tool = |name: &str, go: &str| {
        let mut words = vec!["run", "--ttl", "1s"];
        words.extend(fenced.then_some("--fenced"));
        let begun = path(name);
        words.extend([
            "report", "--", "python3", "-c", WRITER, &database, name, &begun, go,
        ]);
        deployment.tool(&words).spawn().unwrap()
    };
    let slow = tool("slow", &go);
    assert!(eventually(Duration::from_secs(30), || Path::new(&path(
        "slow"
    ))
    .exists()));
    let pid = Pid::from_raw(slow.id().cast_signed());
    kill(pid, Signal::SIGSTOP).unwrap();
    // Its lease ends, and another program takes the lock and writes.
    let quick = wait(tool("quick", ""));
    assert_eq!(
        (quick.code, quick.out.trim()),
        (Some(0), "1"),
        "{}",
        quick.err
    );
    // The command of the stopped program goes on.
    fs::write(&go, "").unwrap();
    assert!(eventually(Duration::from_secs(30), || Path::new(&path(
        "slow.done"
    ))
    .exists()));
    kill(pid, Signal::SIGCONT).unwrap();
    assert_eq!(
        wait(slow).code,
        Some(70),
        "the stopped program finds its loss"
    );
    python(
        "print(c.execute('SELECT writer FROM report').fetchone()[0])",
        &database,
    )
}

fn python(body: &str, database: &str) -> String {
    let script =
        format!("import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\n{body}\nc.commit()");
    let output = Command::new("python3")
        .args(["-c", &script, database])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_late_write_is_refused_by_its_fence_and_by_nothing_else() {
    assert_eq!(last_writer(true), "quick");
    assert_eq!(last_writer(false), "slow");
}
