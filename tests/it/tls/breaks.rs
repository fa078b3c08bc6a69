//! Connections by TLS that break, stall or trickle at each stage, in the handshake and behind it.

use super::peer::{Cut, Peer};
use super::*;
use quorumlock::TlsError;

const NODE_TIMEOUT: Duration = Duration::from_millis(300);
/// A machine may stop for a second.
const STALL: Duration = Duration::from_secs(2);

/// A server with TLS, what has issued its certificate, and a proxy before it.
fn node() -> (Authority, Server, Proxy) {
    let authority = Authority::with(&["node"]);
    let server = authority.server("node");
    let proxy = Proxy::before(server.port());
    (authority, server, proxy)
}

fn lock(url: &str, authority: &Authority) -> Mutex {
    client(url, authority).mutex("orders/42")
}

fn client(url: &str, authority: &Authority) -> Redlock {
    let url = url.replace("redis://", "rediss://");
    client_at([url], |builder| {
        builder.tls(authority.roots()).node_timeout(NODE_TIMEOUT)
    })
}

/// The fault of the one node, no later than a first attempt may be.
#[track_caller]
fn fault(mutex: &Mutex) -> (Phase, Cause) {
    let begun = Instant::now();
    let error: Error = mutex.try_lock().unwrap_err();
    assert!(
        begun.elapsed() < NODE_TIMEOUT * 2 + STALL,
        "{:?}",
        begun.elapsed()
    );
    let [fault] = error.causes() else {
        panic!("{error}")
    };
    (fault.phase(), fault.cause())
}

#[track_caller]
fn works_again(mutex: &Mutex, server: &Server) {
    unlock(wait_for(mutex));
    gone_for_good([server], "orders/42");
}

/// How many bytes of the server a full handshake has, with the tickets.
fn handshake(authority: &Authority, server: &Server) -> u64 {
    let proxy = Proxy::before(server.port());
    unlock(take(&lock(&proxy.url(), authority)));
    proxy.bytes(Direction::ToClient)
}

#[test]
fn connections_that_are_cut_anywhere_are_made_again() {
    skip_unless!(has_tls());
    let (authority, server, _) = node();
    let whole = handshake(&authority, &server);
    // Each byte of the first record's header, and then a sample up to the last reply.
    for bytes in (1..6).chain((6..whole).step_by(whole as usize / 25)) {
        let proxy = Proxy::before(server.port());
        proxy.cut_after(Direction::ToClient, bytes);
        let mutex = lock(&proxy.url(), &authority);
        // The grant may come before the cut, which is in the reply to the release then.
        let released = mutex.try_lock().and_then(|guard| {
            let guard = guard.expect("no other client has this lock");
            guard.unlock().map(|_| ())
        });
        if let Err(error) = released {
            assert_eq!(
                error.causes()[0].cause(),
                Cause::Closed,
                "after {bytes} of {whole} bytes: {error}"
            );
        }
        // A handshake that is shorter than the measured one has not come to its cut.
        proxy.cut_after(Direction::ToClient, u64::MAX);
        works_again(&mutex, &server);
    }
}

#[test]
fn a_reset_in_the_handshake_is_one() {
    skip_unless!(has_tls());
    let (authority, server, proxy) = node();
    for direction in [Direction::ToClient, Direction::ToServer] {
        let mutex = lock(&proxy.url(), &authority);
        proxy.stall(direction);
        let connections = proxy.connections();
        let attempt = thread::spawn({
            let mutex = mutex.clone();
            move || fault(&mutex)
        });
        assert_soon!(proxy.connections() > connections);
        // Until the first flight has gone, or the answer would have come.
        thread::sleep(NODE_TIMEOUT / 10);
        proxy.reset_all();
        let (phase, cause) = attempt.join().unwrap();
        assert_eq!(phase, Phase::Handshake);
        assert!(
            matches!(cause, Cause::Closed | Cause::TimedOut),
            "{cause:?}"
        );
        proxy.flow(direction);
        works_again(&mutex, &server);
    }
}

/// Sixty threads send more than sockets take. The connection breaks when the server has some of
/// their `SET`s, while others are still inside TLS.
#[test]
fn sets_that_tls_has_sent_in_part_leave_no_key() {
    skip_unless!(has_tls());
    let (authority, server, proxy) = node();
    let redlock = client(&proxy.url(), &authority);
    let mutex = redlock.mutex("orders/42");
    let mut late = 0;
    for passed in [20_000, 60_000, 100_000] {
        works_again(&mutex, &server);
        let before = calls(&server, "set");
        server.pause().unwrap();
        proxy.cut_after(Direction::ToServer, passed);
        thread::scope(|scope| {
            for thread in 0..60 {
                let mutex = redlock.mutex(format!("{thread}{}", "x".repeat(4000)));
                scope.spawn(move || {
                    assert_eq!(mutex.try_lock().unwrap_err().kind(), ErrorKind::Unavailable)
                });
            }
        });
        server.resume().unwrap();
        works_again(&mutex, &server);
        late += calls(&server, "set") - before - 1;
        let keys = || server.keys().unwrap();
        assert_soon!(keys().is_empty(), "after {passed} bytes: {:?}", keys());
    }
    assert!(late > 0, "no SET ran late: nothing was shown");
}

#[test]
fn a_handshake_that_trickles_costs_the_node_timeout_and_no_other_node_anything() {
    skip_unless!(has_tls());
    let (authority, server, proxy) = node();
    let others = [authority.server("node"), authority.server("node")];
    let urls = others
        .iter()
        .map(Server::url)
        .chain([proxy.url().replace("redis://", "rediss://")]);
    let builder = Redlock::builder()
        .nodes(urls)
        .tls(authority.roots())
        .node_timeout(STALL * 2);
    // A new deployment waits for all its nodes once.
    drop(take(&builder.clone().build().unwrap().mutex("first")));
    proxy.trickle(Direction::ToClient, Duration::from_millis(5));
    assert_eq!(
        fault(&lock(&proxy.url(), &authority)),
        (Phase::Handshake, Cause::TimedOut)
    );
    let mutex = builder.build().unwrap().mutex("orders/42");
    let begun = Instant::now();
    for _ in 0..10 {
        unlock(take(&mutex));
    }
    assert!(begun.elapsed() < STALL * 2, "{:?}", begun.elapsed());
    drop(server);
}

/// What breaks TLS is answered by an alert, once, so that the server's log names it as well.
#[test]
fn what_is_wrong_is_told_to_the_server() {
    let authority = Authority::new();
    authority.issue("node", Particulars::named("IP:10.0.0.1"));
    let server = Server::start().unwrap();
    let peer = Peer::before(server.port(), &authority, Cut::Bytes);
    let mutex = lock(&peer.url(), &authority);
    assert_eq!(
        fault(&mutex),
        (Phase::Handshake, Cause::Tls(TlsError::WrongName))
    );
    let told = || peer.seen.errors.lock().unwrap().clone();
    assert_soon!(!told().is_empty(), "no alert came");
    assert_eq!(told(), ["received fatal alert: BadCertificate"]);
}

/// The record takes the place of the reply to a release, which is sent again.
#[test]
fn a_forged_record_ends_the_connection_and_the_server_is_told() {
    let authority = Authority::with(&["node"]);
    let server = Server::start().unwrap();
    let peer = Peer::before(server.port(), &authority, Cut::Forged);
    let mutex = lock(&peer.url(), &authority);
    let error = take(&mutex).unlock().unwrap_err();
    let causes: Vec<_> = error
        .causes()
        .iter()
        .map(|fault| (fault.phase(), fault.cause()))
        .collect();
    assert_eq!(causes, [(Phase::Reply, Cause::Tls(TlsError::Misbehaved))]);
    works_again(&mutex, &server);
    assert_eq!(
        *peer.seen.errors.lock().unwrap(),
        ["received fatal alert: BadRecordMac"]
    );
}
