//! Many requests that wait for their answers on one connection, as from many threads to a node that is far away.

use crate::clients::{SOON, lasting, take};
use crate::support::process::eventually;
use crate::support::proxy::{Direction, Proxy};
use crate::support::server::Server;
use quorumlock::Redlock;
use std::thread::Builder;

const THREADS: usize = 1500;
/// Each asks for a key with a name of its own. Bytes of the shortest such request.
const REQUEST: usize = 90;

#[test]
fn a_long_backlog_of_a_node_that_answers_in_time_is_no_fault() {
    let server = Server::start().unwrap();
    let proxy = Proxy::before(server.port());
    let client = Redlock::builder().node(proxy.url()).node_timeout(SOON * 3).build().unwrap();
    drop(take(&lasting(&client, "first")));
    proxy.stall(Direction::ToClient);
    let before = proxy.bytes(Direction::ToServer);
    let attempts: Vec<_> = (0..THREADS)
        .map(|number| {
            let mutex = lasting(&client, &format!("k{number}"));
            Builder::new().stack_size(128 * 1024).spawn(move || mutex.try_lock()).unwrap()
        })
        .collect();
    // All are asked for, and none is answered.
    let asked = || proxy.bytes(Direction::ToServer) - before >= (THREADS * REQUEST) as u64;
    let are_asked = eventually(SOON, asked);
    proxy.flow(Direction::ToClient);
    let outcomes: Vec<_> = attempts.into_iter().map(|attempt| attempt.join().unwrap()).collect();
    let failed: Vec<_> = outcomes.iter().filter(|outcome| !matches!(outcome, Ok(Some(_)))).collect();
    assert!(failed.is_empty(), "{} of {THREADS} failed, {:?}", failed.len(), failed[0]);
    assert!(are_asked, "fewer were under way than the test needs");
}
