//! Releases that a node has not run: they are sent again, while their keys can live, and only to
//! nodes that can run them.

mod outages;

use crate::prelude::*;
use crate::support::fake::Event;

#[test]
fn a_server_without_its_replicas_releases_when_it_has_them_again() {
    let (server, client) = single();
    let guard = take(&long_lock(&client, "k"));
    ask(&server, &["CONFIG", "SET", "min-replicas-to-write", "1"]);
    if server.info("redis_version").unwrap().starts_with("5.") {
        // It counts its replicas for plain commands only. A release is a script.
        unlock(guard);
        return;
    }
    assert_eq!(guard.unlock().unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(value(&server, "k").is_some());
    ask(&server, &["CONFIG", "SET", "min-replicas-to-write", "0"]);
    let released = || {
        drop(long_lock(&client, "another").try_lock());
        value(&server, "k").is_none()
    };
    assert_soon!(released(), "the former holder's key stays");
}

#[test]
fn an_unlock_does_not_wait_for_a_node_that_closes_and_comes_not_back() {
    let fake = Fake::healthy_but("EVAL", vec![Act::Close]);
    let client = client_within([fake.url()], Duration::from_secs(60));
    let guard = take(&long_lock(&client, "k"));
    let begun = Instant::now();
    assert_eq!(causes(&guard.unlock().unwrap_err())[0].2, Cause::Closed);
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(releases(&fake, "k"), 2, "once more, and not for ever");
}

#[test]
fn a_node_that_got_no_byte_of_an_attempt_gets_no_release_of_it() {
    const PAIRS: u64 = 50;
    let mut servers = [
        Server::start().unwrap(),
        Server::start().unwrap(),
        Server::with(&["--tcp-backlog", "1"]).unwrap(),
    ];
    let queued = hang_and_fill(&servers[2]);
    // The connection to the third is neither made nor refused. As long as it is not late, it is
    // asked.
    let client = client_within(servers.each(Server::url), Duration::from_secs(60));
    for number in 0..PAIRS {
        unlock(take(&long_lock(&client, &format!("k{number}"))));
    }
    servers[2].kill();
    drop(queued);
    servers[2].restart().unwrap();
    let is_asked = || {
        drop(long_lock(&client, "after").try_lock());
        calls(&servers[2], "set") > 0
    };
    assert_soon!(is_asked());
    thread::sleep(Duration::from_millis(100));
    drop(long_lock(&client, "after").try_lock());
    let asked = calls(&servers[2], "set");
    let released = calls(&servers[2], "eval") + calls(&servers[2], "evalsha");
    // The node is noted as well, by a script that sets a key, unless the node was looked at long
    // before.
    assert!(
        released <= asked + 1,
        "{released} releases of {asked} attempts, after {PAIRS} that never left"
    );
}

/// A node may run the extension whose answer never came, and then the key lives for as long as the
/// extension requires.
#[test]
fn after_an_extension_that_failed_the_release_is_pending_for_as_long_as_that_may_last() {
    let is_down = Arc::new(AtomicBool::new(false));
    let script = Arc::clone(&is_down);
    let fake = Fake::scripted(move |_, event| match event {
        _ if script.load(Ordering::SeqCst) => vec![Act::Close],
        Event::Received(command) if command[0] == "EVAL" && command[1].contains("PEXPIRE") => {
            script.store(true, Ordering::SeqCst);
            vec![Act::Close]
        }
        Event::Connected => Vec::new(),
        Event::Received(command) => vec![Act::Say(healthy(command))],
    });
    let client = client_of([fake.url()]);
    let guard = take(&client.mutex("k").ttl(Duration::from_millis(1000)));
    assert!(matches!(
        guard.extend(Duration::from_secs(60)).unwrap(),
        ExtendOutcome::Failed(_)
    ));
    let sent = releases(&fake, "k");
    drop(guard);
    thread::sleep(Duration::from_millis(1500));
    is_down.store(false, Ordering::SeqCst);
    let is_released = || {
        drop(long_lock(&client, "another").try_lock());
        releases(&fake, "k") > sent
    };
    assert_soon!(is_released(), "the key may live for a minute");
}

fn is_release_of(command: &[String], key: &str) -> bool {
    command[0].starts_with("EVAL") && command.get(3).is_some_and(|word| word == key)
}

fn releases(fake: &Fake, key: &str) -> usize {
    fake.commands()
        .iter()
        .filter(|command| is_release_of(command, key))
        .count()
}
