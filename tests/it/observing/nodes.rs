//! Nodes that reply late, that may not vote, and that close idle connections.

use super::*;

/// Time for a node to answer: soon over, and still enough for one that is well, on a busy machine.
const NODE_TIMEOUT: Duration = Duration::from_millis(300);

/// Locks and unlocks until something is so.
#[track_caller]
fn busy_until(client: &Redlock, recorder: &Recorder, condition: impl Fn() -> bool) {
    let reached = || {
        let _ = client.mutex("busy").ttl(TTL).try_lock();
        condition()
    };
    assert_soon!(reached(), "{:?}", recorder.events());
}

fn busy_for(client: &Redlock, times: u32) {
    for _ in 0..times {
        let _ = client.mutex("busy").ttl(TTL).try_lock();
        thread::sleep(Duration::from_millis(5));
    }
}

#[track_caller]
fn all_up(client: &Redlock, servers: &[Server], recorder: &Recorder) {
    busy_until(client, recorder, || {
        recorder.node_words().len() >= servers.len()
    });
    let mut expected: Vec<String> = servers.each(|server| format!("up {}", server.address()));
    let mut words = recorder.node_words();
    expected.sort();
    words.sort();
    assert_eq!(words, expected);
    recorder.forget();
}

/// Whose answers are read only with the next call, because the others were quicker.
#[test]
fn a_node_whose_answers_no_call_waits_for_is_up_as_well() {
    let servers = Server::several(3).unwrap();
    let recorder = Recorder::new();
    let slow = Proxy::before(servers[2].port());
    let nodes = Redlock::builder()
        .node(servers[0].url())
        .node(servers[1].url())
        .node(slow.url());
    let client = observed_by(nodes.node_timeout(NODE_TIMEOUT), &recorder);
    for _ in 0..4 {
        slow.stall(Direction::ToClient);
        drop(take(&long_lock(&client, KEY)));
        slow.flow(Direction::ToClient);
        thread::sleep(NODE_TIMEOUT * 2);
    }
    let up = format!("up {}", slow.url().trim_start_matches("redis://"));
    assert_eq!(
        recorder
            .node_words()
            .iter()
            .filter(|word| **word == up)
            .count(),
        1,
        "{:?}",
        recorder.node_words()
    );
}

#[test]
fn a_node_that_may_not_vote_goes_down_once_however_often_it_is_asked() {
    let servers = Server::several(3).unwrap();
    let recorder = Recorder::new();
    let replica = replica_of(&servers[0]);
    let twin = format!("redis://localhost:{}", servers[0].port());
    let nodes = builder(&servers).node(replica.url()).node(twin);
    let client = observed_by(nodes, &recorder);
    busy_until(&client, &recorder, || recorder.node_words().len() == 5);
    busy_for(&client, 100);
    let downs = recorder
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::NodeDown { node, fault, .. } => Some((node.to_string(), fault.cause())),
            _ => None,
        });
    let downs: Vec<_> = downs.collect();
    assert_eq!(
        recorder.node_words().len(),
        5,
        "{:?}",
        recorder.node_words()
    );
    assert!(
        downs.contains(&(replica.address(), Cause::NotMaster)),
        "{downs:?}"
    );
    assert!(
        downs
            .iter()
            .any(|(_, cause)| matches!(cause, Cause::Duplicate(_))),
        "{downs:?}"
    );
}

#[test]
fn idle_connections_that_servers_close_are_no_news() {
    let (servers, recorder, client) = recorded();
    all_up(&client, &servers, &recorder);
    nowhere(&servers, "busy");
    for _ in 0..5 {
        for server in &servers {
            ask(server, &["CLIENT", "KILL", "TYPE", "normal"]);
            assert_soon!(server.info("connected_clients").unwrap() == "1");
        }
        thread::sleep(Duration::from_millis(20));
        let guard = take(&long_lock(&client, KEY));
        everywhere(&servers, KEY);
        unlock(guard);
        // What is closed next has answered everything.
        nowhere(&servers, KEY);
    }
    assert!(recorder.node_words().is_empty(), "{:?}", recorder.events());
}
