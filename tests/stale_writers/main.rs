//! The holder that was stopped, and went on when its lease had ended: refused by the fence, and by
//! nothing else.
//!
//! A process takes a lock and is stopped by SIGSTOP before it writes. Its lease ends, another
//! process takes the lock and writes to the same row of a database. Then the process continues, and
//! writes: its check of the lock was before the stop.

#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test"
)]

#[path = "../it/support"]
#[allow(dead_code, reason = "a part of it is used here")]
mod support {
    pub(crate) mod process;
    pub(crate) mod server;
}

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use quorumlock::{FenceChecker, Redlock};
use rusqlite::{Connection, params};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;
use support::process::eventually;
use support::server::Server;

const TEST: &str = "a_stale_holder_is_refused_by_the_fence_and_by_nothing_else";
/// Set in the holder: the file of the database, whether it has a fence, and the nodes.
const VARIABLE: &str = "QUORUMLOCK_STALE_WRITER";
const RESOURCE: &str = "account/1";
const TTL: Duration = Duration::from_millis(400);
/// Long enough for anything that is to happen on a busy machine.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_stale_holder_is_refused_by_the_fence_and_by_nothing_else() {
    if let Ok(order) = std::env::var(VARIABLE) {
        let words: Vec<&str> = order.split(' ').collect();
        return hold(Path::new(words[0]), words[1] == "fenced", &words[2..]);
    }
    let servers = Server::several(3).unwrap();
    for is_fenced in [true, false] {
        let path = servers[0].directory().join(format!("bank.{is_fenced}"));
        let database = open(&path);
        database
            .execute(
                "CREATE TABLE account (id INTEGER PRIMARY KEY, state TEXT, fence INTEGER)",
                (),
            )
            .unwrap();
        database
            .execute("INSERT INTO account VALUES (1, 'new', 0)", ())
            .unwrap();

        let mut holder = Holder::start(&path, is_fenced, &servers);
        let stale: i64 = holder.hear("holds ").parse().unwrap();
        kill(holder.pid(), Signal::SIGSTOP).unwrap();
        let urls = servers.iter().map(Server::url);
        let mutex = client(urls).mutex(RESOURCE).ttl(TTL).fenced();
        let guard = mutex
            .lock_timeout(SOON)
            .unwrap()
            .expect("the lease of the stopped process ends");
        let token = guard.fence().get() as i64;
        assert!(token > stale);
        assert_eq!(write(&database, "second", is_fenced.then_some(token)), 1);
        assert!(!guard.remaining().is_zero());
        kill(holder.pid(), Signal::SIGCONT).unwrap();
        holder.say("write");
        let changed = holder.hear("changed ");
        holder.end();

        let state: String = database
            .query_row("SELECT state FROM account WHERE id = 1", (), |row| {
                row.get(0)
            })
            .unwrap();
        if is_fenced {
            assert_eq!(
                (changed.as_str(), state.as_str()),
                ("0", "second"),
                "the late write is refused"
            );
            assert_eq!(
                write(&database, "third", Some(token)),
                1,
                "the holder of the lock may write again"
            );
        } else {
            assert_eq!(
                (changed.as_str(), state.as_str()),
                ("1", "first"),
                "without a fence the late write is the last"
            );
        }
        // In front of something that is no database.
        let guard = FenceChecker::new();
        assert!(guard.check(RESOURCE, token.try_into().unwrap()).is_ok());
        assert!(guard.check(RESOURCE, stale.try_into().unwrap()).is_err());
    }
}

/// What the holder does.
fn hold(path: &Path, is_fenced: bool, urls: &[&str]) {
    let database = open(path);
    let guard = client(urls.iter().copied())
        .mutex(RESOURCE)
        .ttl(TTL)
        .fenced()
        .lock()
        .unwrap();
    let token = guard.fence().get() as i64;
    assert!(!guard.remaining().is_zero(), "it looks, and all is well");
    announce(&format!("holds {token}"));
    // Here it is stopped. What it has to do next is to write.
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let changed = write(&database, "first", is_fenced.then_some(token));
    announce(&format!("changed {changed}"));
}

/// Writes to the row, with the fence or without, and returns how many rows were changed.
fn write(database: &Connection, state: &str, fence: Option<i64>) -> usize {
    match fence {
        Some(fence) => database.execute(
            "UPDATE account SET state = ?1, fence = ?2 WHERE id = 1 AND fence <= ?2",
            params![state, fence],
        ),
        None => database.execute("UPDATE account SET state = ?1 WHERE id = 1", params![state]),
    }
    .unwrap()
}

/// A client with a long node timeout: a busy machine is no reason to fail.
fn client<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Redlock {
    Redlock::builder()
        .nodes(urls)
        .node_timeout(Duration::from_secs(1))
        .build()
        .unwrap()
}

fn open(path: &Path) -> Connection {
    let database = Connection::open(path).unwrap();
    database.busy_timeout(SOON).unwrap();
    database
}

fn announce(line: &str) {
    let mut out = std::io::stdout();
    out.write_all(format!("\n{line}\n").as_bytes())
        .and_then(|()| out.flush())
        .unwrap();
}

struct Holder {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Holder {
    fn start(path: &Path, is_fenced: bool, servers: &[Server]) -> Holder {
        let urls: Vec<String> = servers.iter().map(Server::url).collect();
        let kind = if is_fenced { "fenced" } else { "plain" };
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([TEST, "--exact", "--nocapture", "--test-threads=1"])
            .env(
                VARIABLE,
                format!("{} {kind} {}", path.display(), urls.join(" ")),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Holder { process, lines }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.process.id().cast_signed())
    }

    /// What follows these words in the next line that begins with them.
    fn hear(&mut self, words: &str) -> String {
        let rest =
            |line: std::io::Result<String>| line.unwrap().strip_prefix(words).map(str::to_owned);
        self.lines
            .by_ref()
            .find_map(rest)
            .expect("the holder lives")
    }

    fn say(&mut self, line: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn end(&mut self) {
        let has_ended = || self.process.try_wait().unwrap().is_some();
        assert!(eventually(SOON, has_ended));
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // After a failure it may be stopped, or waiting.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
