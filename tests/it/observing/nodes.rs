//! Nodes that fail and come back, and the outcome of releases that no call waits for.

use super::{KEY, Recorder, TTL, delete, everywhere, observed, observed_by};
use crate::clients::{SOON, TRIES, builder, gone_for_good, long_lock, take, value};
use crate::support::process::eventually;
use crate::support::proxy::{Direction, Proxy};
use crate::support::server::{Server, free_port};
use quorumlock::event::Event;
use quorumlock::{Cause, Redlock, ReleaseOutcome, RestartPolicy};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Time for a node to answer: soon over, and still enough for one that is well, on a busy machine.
const NODE_TIMEOUT: Duration = Duration::from_millis(300);

fn short_timeout_client(servers: &[Server], recorder: &Arc<Recorder>) -> Redlock {
    observed_by(builder(servers).node_timeout(NODE_TIMEOUT), recorder)
}

/// Locks and unlocks until something is so.
#[track_caller]
fn busy_until(client: &Redlock, recorder: &Recorder, condition: impl Fn() -> bool) {
    let reached = || {
        let _ = client.mutex("busy").ttl(TTL).try_lock();
        condition()
    };
    assert!(eventually(SOON, reached), "{:?}", recorder.events());
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
    let mut expected: Vec<String> = servers
        .iter()
        .map(|server| format!("up {}", server.address()))
        .collect();
    let mut words = recorder.node_words();
    expected.sort();
    words.sort();
    assert_eq!(words, expected);
    recorder.forget();
}

#[test]
fn nodes_that_were_never_there_are_reported_once_and_once_when_they_come() {
    let recorder = Recorder::new();
    let ports = [0; 3].map(|_| free_port().unwrap());
    let urls = ports.map(|port| format!("redis://127.0.0.1:{port}"));
    // One that is connected to late, on a busy machine, would not be one of those that begin
    // together, and wait.
    let client = observed_by(
        Redlock::builder()
            .nodes(urls)
            .node_timeout(NODE_TIMEOUT * 3),
        &recorder,
    );
    busy_for(&client, 40);
    let mut words = recorder.node_words();
    words.sort();
    let mut expected = ports.map(|port| format!("down 127.0.0.1:{port}"));
    expected.sort();
    assert_eq!(words, expected);
    for event in recorder.events() {
        if let Event::NodeDown { node, fault, .. } = event {
            assert_eq!((fault.address(), fault.cause()), (&*node, Cause::Refused));
        }
    }
    recorder.forget();
    let servers = ports.map(|port| Server::plan().port(port).start().unwrap());
    all_up(&client, &servers, &recorder);
    busy_for(&client, 20);
    assert!(recorder.node_words().is_empty(), "{:?}", recorder.events());
}

/// What was reported of one node. On a busy machine, the others may be slow now and then.
fn words_of(recorder: &Recorder, address: &str) -> Vec<String> {
    recorder
        .node_words()
        .into_iter()
        .filter(|words| words.ends_with(address))
        .collect()
}

#[test]
fn a_node_that_is_killed_and_restarted_goes_down_once_and_comes_up_once() {
    let mut servers = Server::several(3).unwrap();
    let recorder = Recorder::new();
    let trusting = builder(&servers)
        .node_timeout(NODE_TIMEOUT)
        .restart_policy(RestartPolicy::Off);
    let client = observed_by(trusting, &recorder);
    all_up(&client, &servers, &recorder);
    for _ in 0..2 {
        let address = servers[0].address();
        servers[0].kill();
        busy_for(&client, 60);
        assert_eq!(words_of(&recorder, &address), [format!("down {address}")]);
        servers[0].restart().unwrap();
        busy_until(&client, &recorder, || {
            words_of(&recorder, &address).len() > 1
        });
        busy_for(&client, 20);
        assert_eq!(
            words_of(&recorder, &address),
            [format!("down {address}"), format!("up {address}")]
        );
        recorder.forget();
    }
}

#[test]
fn a_node_that_hangs_goes_down_once_and_comes_up_once() {
    let servers = Server::several(3).unwrap();
    let recorder = Recorder::new();
    let client = short_timeout_client(&servers, &recorder);
    all_up(&client, &servers, &recorder);
    let address = servers[2].address();
    servers[2].pause().unwrap();
    busy_until(&client, &recorder, || {
        !words_of(&recorder, &address).is_empty()
    });
    busy_for(&client, 100);
    assert_eq!(words_of(&recorder, &address), [format!("down {address}")]);
    let is_down =
        |event: &Event| matches!(event, Event::NodeDown { node, .. } if **node == *address);
    let Some(Event::NodeDown { fault, .. }) = recorder.events().into_iter().find(is_down) else {
        panic!()
    };
    assert_eq!(fault.cause(), Cause::TimedOut);
    servers[2].resume().unwrap();
    busy_until(&client, &recorder, || {
        words_of(&recorder, &address).len() > 1
    });
    busy_for(&client, 20);
    assert_eq!(
        words_of(&recorder, &address),
        [format!("down {address}"), format!("up {address}")]
    );
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
    let replica =
        Server::with(&["--replicaof", "127.0.0.1", &servers[0].port().to_string()]).unwrap();
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
    let servers = Server::several(3).unwrap();
    let recorder = Recorder::new();
    let client = observed(&servers, &recorder);
    all_up(&client, &servers, &recorder);
    assert!(eventually(SOON, || servers
        .iter()
        .all(|server| value(server, "busy").is_none())));
    for _ in 0..5 {
        for server in &servers {
            server
                .command(&["CLIENT", "KILL", "TYPE", "normal"])
                .unwrap();
            assert!(eventually(SOON, || server
                .info("connected_clients")
                .unwrap()
                == "1"));
        }
        thread::sleep(Duration::from_millis(20));
        let guard = take(&long_lock(&client, KEY));
        everywhere(&servers, KEY);
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
        // What is closed next has answered everything.
        assert!(eventually(SOON, || servers
            .iter()
            .all(|server| value(server, KEY).is_none())));
    }
    assert!(recorder.node_words().is_empty(), "{:?}", recorder.events());
}

#[test]
fn a_dropped_guard_is_reported_released_when_the_client_is_used_again() {
    let servers = Server::several(3).unwrap();
    let recorder = Recorder::new();
    let client = observed(&servers, &recorder);
    for _ in 0..10 {
        drop(take(&long_lock(&client, KEY)));
        assert!(eventually(SOON, || servers
            .iter()
            .all(|server| value(server, KEY).is_none())));
        assert!(client.mutex("another").try_lock().unwrap().is_some());
        let told = recorder.count("released k Released dropped");
        assert_eq!(told, 1, "{:?}", recorder.words());
        recorder.forget();
    }
}

#[test]
fn a_dropped_guard_whose_keys_are_gone_is_lost_and_expired() {
    let servers = Server::several(3).unwrap();
    let recorder = Recorder::new();
    let client = observed(&servers, &recorder);
    let guard = take(&long_lock(&client, KEY));
    everywhere(&servers, KEY);
    delete(&servers[1..], KEY);
    drop(guard);
    let another = long_lock(&client, "another");
    assert!(eventually(SOON, || another.try_lock().is_ok()
        && recorder.count("released k") == 1));
    let words: Vec<String> = recorder
        .words()
        .into_iter()
        .filter(|words| words.contains(" k "))
        .collect();
    assert_eq!(words, ["lost k KeyGone", "released k Expired dropped"]);
}

/// No call waits for the release; the next call finds that its time is up.
#[test]
fn a_dropped_guard_whose_nodes_hang_is_reported_as_a_failed_release() {
    let servers = Server::several(3).unwrap();
    let recorder = Recorder::new();
    let client = short_timeout_client(&servers, &recorder);
    all_up(&client, &servers, &recorder);
    let guard = take(&long_lock(&client, KEY));
    everywhere(&servers, KEY);
    servers[1..]
        .iter()
        .for_each(|server| server.pause().unwrap());
    drop(guard);
    thread::sleep(NODE_TIMEOUT * 2);
    assert_eq!(
        recorder.count("release failed"),
        0,
        "no call could have found out"
    );
    let _ = client.mutex("another").try_lock();
    let failed = recorder.events().into_iter().find_map(|event| match event {
        Event::ReleaseFailed {
            name,
            is_dropped: true,
            causes,
            ..
        } => Some((name, causes)),
        _ => None,
    });
    let (name, causes) = failed.unwrap_or_else(|| panic!("{:?}", recorder.words()));
    assert_eq!(&*name, KEY);
    let hung: Vec<(String, Cause)> = causes
        .iter()
        .map(|fault| (fault.address().to_owned(), fault.cause()))
        .collect();
    assert_eq!(
        hung,
        [1, 2].map(|node: usize| (servers[node].address(), Cause::TimedOut))
    );
    servers[1..]
        .iter()
        .for_each(|server| server.resume().unwrap());
    // What was sent is run all the same.
    gone_for_good(&servers, KEY);
    busy_for(&client, 10);
    assert_eq!(recorder.count("release failed k"), 1);
    assert_eq!(recorder.count("released k"), 0);
}

#[test]
fn a_dropped_guard_whose_nodes_are_killed_is_reported_as_a_failed_release() {
    let mut servers = Server::several(3).unwrap();
    let recorder = Recorder::new();
    let client = short_timeout_client(&servers, &recorder);
    all_up(&client, &servers, &recorder);
    let guard = take(&long_lock(&client, KEY));
    servers.iter_mut().for_each(Server::kill);
    drop(guard);
    busy_until(&client, &recorder, || {
        recorder.count("release failed k dropped") == 1
    });
    busy_for(&client, 30);
    assert_eq!(recorder.count("release failed k"), 1);
    assert_eq!(
        (recorder.count("released k"), recorder.count("lost k")),
        (0, 0)
    );
    assert_eq!(recorder.count("down"), 3);
}

/// The answers came while no thread polled, and later than they should: they count all the same. On
/// a busy machine they may come when a thread looks for them.
#[test]
fn answers_that_came_while_no_thread_polled_are_counted_before_the_time_is_up() {
    let servers = Server::several(3).unwrap();
    let recorder = Recorder::new();
    let proxies: Vec<Proxy> = servers
        .iter()
        .map(|server| Proxy::before(server.port()))
        .collect();
    let nodes = Redlock::builder()
        .nodes(proxies.iter().map(Proxy::url))
        .node_timeout(NODE_TIMEOUT);
    let client = observed_by(nodes, &recorder);
    let is_counted = (0..TRIES).any(|_| {
        let guard = take(&long_lock(&client, KEY));
        proxies
            .iter()
            .for_each(|proxy| proxy.stall(Direction::ToClient));
        drop(guard);
        thread::sleep(NODE_TIMEOUT + Duration::from_millis(10));
        proxies
            .iter()
            .for_each(|proxy| proxy.flow(Direction::ToClient));
        thread::sleep(NODE_TIMEOUT * 2);
        let _ = client.mutex("another").try_lock();
        recorder.count("released k Released dropped") == 1
    });
    assert!(is_counted, "{:?}", recorder.words());
}

#[test]
fn every_dropped_guard_of_many_threads_is_reported_once() {
    const THREADS: usize = 8;
    const PAIRS: usize = 100;
    let servers = Server::several(3).unwrap();
    let recorder = Recorder::new();
    let client = observed(&servers, &recorder);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let client = &client;
            scope.spawn(move || {
                for _ in 0..PAIRS {
                    drop(long_lock(client, &format!("many/{thread}")).lock().unwrap());
                }
            });
        }
    });
    let count = THREADS * PAIRS;
    busy_until(&client, &recorder, || {
        recorder.count("released many/") == count
    });
    busy_for(&client, 5);
    assert_eq!(recorder.count("acquired many/"), count);
    assert_eq!(recorder.count("released many/"), count);
    assert_eq!(recorder.count("release failed") + recorder.count("lost"), 0);
}
