//! Many requests that wait for their answers on one connection, as from many threads to a node that
//! is far away.

use crate::prelude::*;
use std::thread::Builder;

const THREADS: usize = 1500;
/// Each asks for a key with a name of its own. Bytes of the shortest such request.
const REQUEST: usize = 90;

#[test]
fn a_long_backlog_of_a_node_that_answers_in_time_is_no_fault() {
    let (_server, proxy) = Proxy::and_server();
    let client = client_within([proxy.url()], SOON * 3);
    drop(take(&long_lock(&client, "first")));
    proxy.stall(Direction::ToClient);
    let before = proxy.bytes(Direction::ToServer);
    let attempts: Vec<_> = (0..THREADS)
        .map(|number| {
            let mutex = long_lock(&client, &format!("k{number}"));
            Builder::new()
                .stack_size(128 * 1024)
                .spawn(move || mutex.try_lock())
                .unwrap()
        })
        .collect();
    // All are asked for, and none is answered.
    let asked = || proxy.bytes(Direction::ToServer) - before >= (THREADS * REQUEST) as u64;
    let are_asked = eventually(SOON, asked);
    proxy.flow(Direction::ToClient);
    let outcomes: Vec<_> = attempts
        .into_iter()
        .map(|attempt| attempt.join().unwrap())
        .collect();
    let failed: Vec<_> = outcomes
        .iter()
        .filter(|outcome| !matches!(outcome, Ok(Some(_))))
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {THREADS} failed, {:?}",
        failed.len(),
        failed[0]
    );
    assert!(are_asked, "fewer were under way than the test needs");
}

/// A connection that is merely closed leaves the node with what was sent on it.
#[test]
fn a_connection_with_too_many_unsent_bytes_is_given_up_and_reset() {
    let servers = Server::several(2).unwrap();
    // A new deployment waits for every node. This one is not new: it began while the third node was
    // down.
    let urls = servers.iter().map(Server::url);
    client_of(urls.clone().chain([dead()]))
        .connect(SOON)
        .unwrap();
    // It accepts, and reads nothing.
    let hung = TcpListener::bind("127.0.0.1:0").unwrap();
    let urls = urls.chain([format!("redis://{}", hung.local_addr().unwrap())]);
    // As long as the node is not late, it is asked.
    let client = client_within(urls, SOON * 6);
    let mutex = long_lock(&client, &"k".repeat(4096));
    drop(take(&mutex));
    let (mut first, _) = hung.accept().unwrap();
    first.set_read_timeout(Some(SOON)).unwrap();
    hung.set_nonblocking(true).unwrap();
    let is_another_made = || {
        (0..100).for_each(|_| drop(take(&mutex)));
        hung.accept().is_ok()
    };
    assert!(
        eventually(SOON * 6, is_another_made),
        "it is never given up"
    );
    let end = io::copy(&mut first, &mut io::sink());
    assert_eq!(
        end.map_err(|error| error.kind()),
        Err(io::ErrorKind::ConnectionReset)
    );
    // The last handle waits for the answers of a node that hangs, and for none of one that is gone.
    drop(hung);
}
