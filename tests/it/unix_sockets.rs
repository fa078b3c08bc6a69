//! Nodes on Unix domain sockets: the same lock, without a port.

use crate::prelude::*;

fn start() -> Server {
    Server::plan().unix_socket("node.sock").start().unwrap()
}

#[test]
fn a_lock_over_unix_sockets_excludes_and_is_released() {
    let servers = [start(), start(), start()];
    assert!(servers.all(|server| server.url().starts_with("unix://") && server.port() == 0));
    let mine = client(&servers);
    let theirs = client(&servers);
    let guard = take(&long_lock(&mine, "k"));
    assert!(is_held(&long_lock(&theirs, "k")));
    unlock(guard);
    drop(take(&long_lock(&theirs, "k")));
    gone_for_good(&servers, "k");
}

#[test]
fn sockets_and_ports_mix() {
    let servers = [start(), Server::start().unwrap(), start()];
    let mutex = long_lock(&client(&servers), "k");
    for _ in 0..10 {
        unlock(take(&mutex));
    }
    servers[0].pause().unwrap();
    for _ in 0..10 {
        unlock(take(&mutex));
    }
}

#[test]
fn a_socket_that_is_not_there_is_refused_until_it_is() {
    let mut server = start();
    let mutex = long_lock(&client([&server]), "k");
    let path = server.socket().unwrap();
    server.kill();
    // A killed server leaves its socket behind, on which no process listens; a new one finds no
    // file at all.
    for _ in 0..2 {
        let refused = (
            format!("unix:{}", path.display()),
            Phase::Connect,
            Cause::Refused,
        );
        assert_eq!(causes(&failure(&mutex)), [refused]);
        let _ = std::fs::remove_file(&path);
    }
    server.restart().unwrap();
    assert_soon!(can_take(&mutex));
}

#[test]
fn a_database_and_a_password_reach_a_socket_too() {
    let server = Server::plan()
        .unix_socket("node.sock")
        .arguments(&["--requirepass", "hunter2"])
        .start()
        .unwrap();
    let path = server.socket().unwrap();
    let client = client_of([format!("unix://:hunter2@{}?db=3", path.display())]);
    let guard = take(&long_lock(&client, "k"));
    // The key of the lock, and the node's note.
    assert!(server.info("db3").unwrap().starts_with("keys=2"));
    unlock(guard);
    let error = failure(&long_lock(&client_of([server.url()]), "k"));
    assert_eq!(causes(&error)[0].1, Phase::Handshake);
    assert_eq!(causes(&error)[0].2, Cause::Auth);
}
