//! Each reply goes to its own request however records are cut, and none waits inside TLS while no
//! byte arrives.

use super::peer::{Cut, Peer};
use super::*;

/// An answer that waits in TLS is as late as that.
const NODE_TIMEOUT: Duration = Duration::from_secs(4);
const THREADS: usize = 8;

/// How many pairs of lock and unlock each test makes.
fn pairs() -> usize {
    std::env::var("QUORUMLOCK_TLS_PAIRS").map_or(400, |pairs| pairs.parse().unwrap())
}

fn client_of_peer(peer: &Peer, authority: &Authority) -> Redlock {
    client_at([peer.url()], |builder| {
        let builder = builder.tls(authority.roots());
        builder.node_timeout(NODE_TIMEOUT)
    })
}

/// Pairs through such a peer, by so many threads on one connection. Each `SET` that must be granted
/// is followed by one that must be refused, and then by a release that must delete: replies that
/// are mixed up show.
fn exchange(cut: Cut, threads: usize) -> Peer {
    let authority = Authority::with(&["node"]);
    let server = Server::start().unwrap();
    if let Cut::Ends = cut {
        // The first grant of a new deployment is followed by the note that it waits for. The end is
        // to be behind one that counts at once.
        drop(take(&long_lock(&client([&server]), "first")));
    }
    let peer = Peer::before(server.port(), &authority, cut);
    let redlock = client_of_peer(&peer, &authority);
    thread::scope(|scope| {
        for thread in 0..threads {
            let mutex = redlock.mutex(format!("{cut:?} {thread}"));
            scope.spawn(move || {
                for _ in 0..pairs().div_ceil(threads) {
                    let guard = take(&mutex);
                    assert!(is_held(&mutex));
                    unlock(guard);
                }
            });
        }
    });
    redlock.flush_releases(NODE_TIMEOUT).unwrap();
    assert_eq!(*peer.seen.errors.lock().unwrap(), [""; 0]);
    peer
}

#[test]
fn two_replies_in_one_record() {
    let peer = exchange(Cut::Together, THREADS);
    let shared = peer.seen.shared.load(Ordering::Relaxed);
    assert!(
        shared > pairs() / 4,
        "only {shared} records had two replies"
    );
}

#[test]
fn one_reply_in_twenty_records() {
    exchange(Cut::Pieces(20), 1);
    exchange(Cut::Pieces(20), THREADS);
}

#[test]
fn records_that_arrive_byte_by_byte() {
    exchange(Cut::Bytes, 1);
    exchange(Cut::Bytes, THREADS);
}

/// The second piece is longer than the room behind the first one, and nothing follows.
#[test]
fn a_long_reply_in_two_records() {
    let authority = Authority::with(&["node"]);
    let fake = Fake::on_command(|command| {
        let answer = healthy(command);
        if !is(command, "INFO") {
            return vec![Act::Say(answer)];
        }
        let answer = String::from_utf8(answer).unwrap();
        let info = answer.split_once("\r\n").unwrap().1;
        let long = format!("{info}{}\r\n", "x:".repeat(12_000));
        vec![say(&bulk(&long))]
    });
    let peer = Peer::before(fake.port(), &authority, Cut::Pieces(2));
    let client = client_of_peer(&peer, &authority);
    let begun = Instant::now();
    let nodes = client.connect(NODE_TIMEOUT).unwrap();
    assert_eq!(nodes[0].state(), NodeState::Voting);
    assert!(begun.elapsed() < NODE_TIMEOUT);
}

/// Only TLS sends such an end. What is asked next goes over another connection.
#[test]
fn an_end_behind_a_reply_is_noticed_at_once() {
    let peer = exchange(Cut::Ends, 1);
    assert!(peer.seen.has_happened(), "nothing was shown");
}

/// The client answers each one before its next request, which the peer could not read otherwise.
#[test]
fn key_updates_alone_and_behind_replies() {
    exchange(Cut::KeyUpdates, 1);
    exchange(Cut::KeyUpdates, THREADS);
}
