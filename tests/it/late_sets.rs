//! A `SET` that a hung master runs long after its client has given up: the release behind it takes
//! the key away again.
//!
//! A timeout is never a "no": the bytes are in the server's socket, and neither waiting nor closing
//! takes them back. Each test sees by the server's own count that the `SET` did run late, so that a
//! missing key proves something.

use crate::prelude::*;

/// So many nodes, and how many of them hang: the only one, and a majority.
const HUNG: [(usize, usize); 2] = [(1, 1), (5, 3)];

#[test]
fn sets_that_run_late_are_undone() {
    for ((nodes, hung), are_open) in HUNG
        .into_iter()
        .flat_map(|hung| [(hung, false), (hung, true)])
    {
        at_row(format_args!("{hung} of {nodes} hang, are_open: {are_open}"));
        let servers = Server::several(nodes).unwrap();
        let hung = &servers[..hung];
        let client = client_within(servers.each(Server::url), NODE_TIMEOUT * 4);
        if are_open {
            open_all(&client, &servers);
        }
        let before = sets(hung);
        pause(hung);
        fails(
            long_lock(&client, "late").try_lock(),
            ErrorKind::Unavailable,
        );
        resume(hung);
        ran_again(hung, &before);
        gone_for_good(&servers, "late");
    }
}

#[test]
fn sets_that_run_late_behind_a_reset_are_undone() {
    for (nodes, hung) in HUNG {
        at_row(format_args!("{hung} of {nodes} hang"));
        undone_over_a_new_connection(nodes, hung);
    }
}

/// The connections break when the `SET`s have been forwarded and the releases have not.
fn undone_over_a_new_connection(nodes: usize, hung: usize) {
    let servers = Server::several(nodes).unwrap();
    let proxies = Proxy::before_each(&servers);
    // The connections are to break within it, on a machine with much to do too.
    let node_timeout = NODE_TIMEOUT * 20;
    let client = client_within(proxies.iter().map(Proxy::url), node_timeout);
    open_all(&client, &servers);
    let (hung, cut) = (&servers[..hung], &proxies[..hung]);
    let before = sets(hung);
    pause(hung);

    let forwarded: Vec<u64> = cut
        .iter()
        .map(|proxy| proxy.bytes(Direction::ToServer))
        .collect();
    let attempt = thread::spawn({
        let mutex = long_lock(&client, "late");
        move || failure(&mutex)
    });
    for (proxy, forwarded) in cut.iter().zip(forwarded) {
        assert!(eventually(node_timeout / 2, || proxy
            .bytes(Direction::ToServer)
            > forwarded));
        proxy.stall(Direction::ToServer);
    }
    assert!(
        !attempt.is_finished(),
        "the releases may have gone through as well"
    );
    assert_eq!(attempt.join().unwrap().kind(), ErrorKind::Unavailable);
    let connections: Vec<u64> = cut.iter().map(|proxy| proxy.connections() as u64).collect();
    for proxy in cut {
        proxy.reset_all();
        proxy.flow(Direction::ToServer);
    }

    // The release follows with the next use that finds the connection broken, and that end of the
    // connection may arrive late.
    let connected_anew = || {
        let another = long_lock(&client, "another").try_lock();
        fails(another, ErrorKind::Unavailable);
        cut.iter()
            .zip(&connections)
            .all(|(proxy, before)| proxy.connections() as u64 > *before)
    };
    assert_soon!(connected_anew(), "the client does not connect again");
    resume(hung);
    ran_again(hung, &before);
    gone_for_good(&servers, "late");
    gone_for_good(&servers, "another");
}

/// A lock is won by the quick; all must be connected.
fn open_all(client: &Redlock, servers: &[Server]) {
    let before = sets(servers);
    let mutex = long_lock(client, "before");
    let connected = || {
        unlock(take(&mutex));
        sets(servers)
            .iter()
            .zip(&before)
            .all(|(now, before)| now > before)
    };
    assert_soon!(connected());
}

fn sets(servers: &[Server]) -> Vec<u64> {
    servers.each(|server| calls(server, "set"))
}

#[track_caller]
fn ran_again(servers: &[Server], before: &[u64]) {
    let ran = || {
        sets(servers)
            .iter()
            .zip(before)
            .all(|(now, before)| now > before)
    };
    assert_soon!(ran(), "no SET ran late: nothing was shown");
}
