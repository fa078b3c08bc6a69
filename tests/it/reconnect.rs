//! Connections that come late, break and come back: without a call for it, and without costing an
//! attempt.

use crate::prelude::*;

const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_client_that_is_built_before_its_nodes_works_once_they_are_there() {
    let ports = [0; 3].map(|_| free_port().unwrap());
    let client = client_of(ports.map(|port| format!("redis://127.0.0.1:{port}")));
    let mutex = long_lock(&client, "k");
    for _ in 0..3 {
        let error = failure(&mutex);
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        // What a quorum of refusals decides need not wait for the third, and may not know why that
        // one is silent.
        let causes = causes(&error);
        assert!(
            causes.iter().all(|(_, phase, _)| *phase == Phase::Connect),
            "{error}"
        );
        assert!(
            causes
                .iter()
                .filter(|(_, _, cause)| *cause == Cause::Refused)
                .count()
                >= 2,
            "{error}"
        );
        assert!(causes.iter().all(|(address, _, _)| {
            ports
                .iter()
                .any(|port| address.ends_with(&format!(":{port}")))
        }));
    }
    let waiting = thread::spawn({
        let mutex = mutex.clone();
        move || mutex.lock_timeout(SOON)
    });
    thread::sleep(Duration::from_millis(50));
    let _servers = ports.map(|port| Server::plan().port(port).start().unwrap());
    unlock(waiting.join().unwrap().unwrap().unwrap());
    unlock(mutex.lock().unwrap());
}

#[test]
fn a_quorum_that_comes_back_is_noticed_by_attempts_that_never_waited() {
    for nodes in [2, 3, 5] {
        let embedded: Vec<_> = (0..nodes).map(|_| EmbeddedNode::start().unwrap()).collect();
        let client = client_at(embedded.iter().map(EmbeddedNode::url), |builder| {
            builder
                .unavailable_after(Duration::from_millis(300))
                .restart_policy(RestartPolicy::Off)
        });
        let mutex = long_lock(&client, "k");
        drop(mutex.lock().unwrap());
        embedded.iter().for_each(EmbeddedNode::kill);
        failure(&mutex);
        assert!(mutex.lock().is_err());
        embedded.iter().for_each(|node| node.revive().unwrap());
        // Each node is left alone for a second at the most.
        let back = eventually(Duration::from_secs(3), || can_take(&mutex));
        assert!(back, "{nodes} nodes: {:?}", mutex.try_lock());
    }
}

#[test]
fn connections_that_were_closed_do_not_cost_an_attempt() {
    for idle in [JUST_NOW, LONG_AGO] {
        at_row(format_args!("closed {idle:?} ago"));
        let servers = Server::several(3).unwrap();
        let mutex = long_lock(&connected(&servers), "k");
        for _ in 0..3 {
            close_connections(&servers);
            thread::sleep(idle);
            unlock(take(&mutex));
        }
    }
}

/// A lock that is held, on three servers that closed their connections so long ago.
fn held_since_connections_were_closed(idle: Duration) -> (Vec<Server>, Redlock, MutexGuard) {
    at_row(format_args!("closed {idle:?} ago"));
    let servers = Server::several(3).unwrap();
    let client = connected(&servers);
    let guard = take(&long_lock(&client, "k"));
    close_connections(&servers);
    thread::sleep(idle);
    (servers, client, guard)
}

#[test]
fn a_lock_whose_connections_were_closed_is_released() {
    for idle in [JUST_NOW, LONG_AGO] {
        let (servers, client, guard) = held_since_connections_were_closed(idle);
        unlock(guard);
        assert_soon!(is_released_everywhere(&client, &servers));
    }
}

#[test]
fn a_dropped_guard_whose_connections_were_closed_is_released() {
    for idle in [JUST_NOW, LONG_AGO] {
        let (servers, _client, guard) = held_since_connections_were_closed(idle);
        drop(guard);
        // Servers that are near are connected to within the call, and no other call comes.
        nowhere(&servers, "k");
    }
}

#[test]
fn a_connection_that_was_made_while_no_thread_polled_is_used() {
    let mut servers = [
        Server::start().unwrap(),
        Server::start().unwrap(),
        Server::with(&["--tcp-backlog", "1"]).unwrap(),
    ];
    // A new deployment waits for all its nodes once.
    drop(take(&long_lock(&client(&servers), "first")));
    // The third one's queue is full: the kernel lets newcomers try again after a second.
    let queued = hang_and_fill(&servers[2]);
    let mutex = long_lock(&client(&servers), "k");
    unlock(take(&mutex));
    drop(queued);
    servers[2].resume().unwrap();
    thread::sleep(Duration::from_millis(1500));
    servers[0].kill();
    unlock(take(&mutex));
}

/// How long ago a connection was closed when it is used again: so recently that it still seems to
/// be in use, and so long ago that it seems idle.
const JUST_NOW: Duration = Duration::from_millis(20);
const LONG_AGO: Duration = Duration::from_millis(1200);

/// A client that every node knows.
fn connected(servers: &[Server]) -> Redlock {
    let client = builder(servers).build().unwrap();
    let known = || {
        unlock(take(&long_lock(&client, "before")));
        // Ours and the one that asks.
        servers.all(|server| server.info("connected_clients").unwrap() == "2")
    };
    assert_soon!(known());
    client
}

/// Looks after another attempt was made: a connection that is not open yet when a call returns goes
/// on in the next one.
fn is_released_everywhere(client: &Redlock, servers: &[Server]) -> bool {
    let _ = long_lock(client, "another").try_lock();
    servers.all(|server| value(server, "k").is_none())
}

fn close_connections(servers: &[Server]) {
    for server in servers {
        // The server closes a killed client when it comes to it. A release whose reply is lost with
        // the connection has the client connect once more.
        assert_soon!({
            ask(server, &["CLIENT", "KILL", "TYPE", "normal"]);
            server.info("connected_clients").unwrap() == "1"
        });
    }
}

/// The request is not written to a connection that has ended: it goes out on another one.
#[test]
fn a_connection_that_was_closed_a_moment_ago_costs_no_attempt_and_no_extension() {
    for closes_at in ["EVAL", "SET"] {
        let reply = if closes_at == "SET" {
            "+OK\r\n"
        } else {
            ":1\r\n"
        };
        let fake = Fake::healthy_but(closes_at, vec![say(reply), Act::Close]);
        let client = client_at([fake.url()], |builder| {
            builder.node_timeout(SOON).release_notifications(false)
        });
        let closed = || {
            assert!(fake.wait_for_open(0, SOON));
            // Not in the middle of a batch of calls, where a connection is trusted without a look.
            thread::sleep(Duration::from_millis(2));
        };
        let failed = (0..30).filter(|number| {
            let Ok(Some(guard)) = long_lock(&client, &format!("k{number}")).try_lock() else {
                return true;
            };
            let is_extended = closes_at == "EVAL" || {
                closed();
                matches!(guard.extend(LONG), Ok(ExtendOutcome::Extended))
            };
            drop(guard);
            client.flush_releases(SOON).unwrap();
            if closes_at == "EVAL" {
                closed();
            }
            !is_extended
        });
        assert_eq!(
            failed.count(),
            0,
            "of 30, where {closes_at} ends the connection"
        );
    }
}
