//! A program that is stopped past its lease cannot end its command: the resource must refuse the
//! late write, by the fence. With `--fenced` a database does, without it does not.

use super::*;

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
    let start = |name: &str, go: &str| {
        let option = if fenced { "--fenced" } else { "" };
        let mut tool = deployment.tool(&format!("run --ttl 1s {option} report --"));
        tool.args(["python3", "-c", WRITER, &database, name, &path(name), go]);
        Running::start(tool)
    };
    let comes = |name: &str| {
        let file = path(name);
        assert!(eventually(Duration::from_secs(30), || Path::new(&file).exists()));
    };
    let slow = start("slow", &go);
    comes("slow");
    slow.send(Signal::SIGSTOP);
    // Its lease ends, and another program takes the lock and writes.
    let quick = start("quick", "").wait().exits(0);
    assert_eq!(quick.out.trim(), "1", "{}", quick.err);
    // The command of the stopped program goes on.
    fs::write(&go, "").unwrap();
    comes("slow.done");
    slow.send(Signal::SIGCONT);
    // The stopped program finds its loss.
    slow.wait().exits(70);
    python(
        "print(c.execute('SELECT writer FROM report').fetchone()[0])",
        &database,
    )
}

fn python(body: &str, database: &str) -> String {
    let script =
        format!("import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\n{body}\nc.commit()");
    let mut command = program("python3");
    command.args(["-c", &script, database]);
    run(command).exits(0).out.trim().to_owned()
}

#[test]
fn a_late_write_is_refused_by_its_fence_and_by_nothing_else() {
    assert_eq!(last_writer(true), "quick");
    assert_eq!(last_writer(false), "slow");
}
