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
    pub(crate) mod child;
    pub(crate) mod process;
    pub(crate) mod server;
}

use quorumlock::{FenceChecker, Redlock};
use rusqlite::{Connection, params};
use std::path::Path;
use std::time::Duration;
use support::child::{Child, End, Parent};
use support::server::Server;

const RESOURCE: &str = "account/1";
const TTL: Duration = Duration::from_millis(400);
/// Long enough for anything that is to happen on a busy machine.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_stale_holder_is_refused_by_the_fence_and_by_nothing_else() {
    let servers = Server::several(3).unwrap();
    let urls: Vec<String> = servers.iter().map(Server::url).collect();
    for is_fenced in [true, false] {
        let path = servers[0].directory().join(format!("bank.{is_fenced}"));
        // Before there is a connection to the database, or a client.
        let mut holder = Child::fork(End::Vanish, |parent| hold(&path, is_fenced, &urls, parent));
        let database = open(&path);
        let table = "CREATE TABLE account (id INTEGER PRIMARY KEY, state TEXT, fence INTEGER)";
        database.execute(table, ()).unwrap();
        let row = "INSERT INTO account VALUES (1, 'new', 0)";
        database.execute(row, ()).unwrap();

        holder.let_continue();
        let digits = std::iter::repeat_with(|| holder.receive());
        let stale: String = digits.take_while(|letter| *letter != '\n').collect();
        let stale: i64 = stale.parse().unwrap();
        holder.stop();
        let mutex = client(&urls).mutex(RESOURCE).ttl(TTL).fenced();
        let guard = mutex
            .lock_timeout(SOON)
            .unwrap()
            .expect("the lease of the stopped process ends");
        let token = guard.fence().get() as i64;
        assert!(token > stale);
        assert_eq!(write(&database, "second", is_fenced.then_some(token)), 1);
        assert!(!guard.remaining().is_zero());
        holder.go_on();
        holder.let_continue();
        let changed = holder.end(SOON);

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

/// What the holder does, when the table is there. It sends its fence, and then how many rows its
/// write has changed.
fn hold(path: &Path, is_fenced: bool, urls: &[String], parent: &mut Parent) {
    parent.wait();
    let database = open(path);
    let mutex = client(urls).mutex(RESOURCE).ttl(TTL).fenced();
    let guard = mutex.lock().unwrap();
    let token = guard.fence().get() as i64;
    assert!(!guard.remaining().is_zero(), "it looks, and all is well");
    parent.send(&format!("{token}\n"));
    // Here it is stopped. What it has to do next is to write.
    parent.wait();
    let changed = write(&database, "first", is_fenced.then_some(token));
    parent.send(&changed.to_string());
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
fn client(urls: &[String]) -> Redlock {
    Redlock::builder()
        .nodes(urls.iter().map(String::as_str))
        .node_timeout(Duration::from_secs(1))
        .build()
        .unwrap()
}

fn open(path: &Path) -> Connection {
    let database = Connection::open(path).unwrap();
    database.busy_timeout(SOON).unwrap();
    database
}
