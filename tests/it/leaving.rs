//! A program that ends right after its last guard: what is still on the way arrives.
//!
//! Closing a socket on which replies are unread resets the connection. The release that was queued before must be run all
//! the same, or a short-lived program would leave its locks to expire.

use crate::support::process::eventually;
use crate::support::server::{Answer, Server};
use quorumlock::Redlock;
use std::time::Duration;

#[test]
fn a_release_survives_the_end_of_its_client() {
    let servers = Server::several(5).unwrap();
    for round in 0..100 {
        let redlock = Redlock::builder().nodes(servers.iter().map(Server::url)).build().unwrap();
        let resource = format!("leaving/{round}");
        let guard = redlock.mutex(&resource).ttl(Duration::from_secs(60)).lock().unwrap();
        drop(redlock);
        // The last handle of the client: its connections are closed when this returns.
        drop(guard);
    }
    for server in &servers {
        let is_empty = || server.command(&["DBSIZE"]).unwrap() == Answer::Number(0);
        assert!(eventually(Duration::from_secs(2), is_empty), "{:?}", server.command(&["KEYS", "*"]));
    }
}
