//! Nodes that come back, or seem to: they are owed what they missed, and are not asked without end.

use crate::clients::{SOON, client_of, lasting, take};
use crate::support::fake::{Act, Event, Fake, healthy, say};
use crate::support::process::eventually;
use crate::support::server::Server;
use quorumlock::Redlock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn a_node_that_is_owed_many_releases_comes_back_and_gets_them() {
    // Together they are longer than what may wait to be sent on one connection.
    let (guards, key) = (4000, "x".repeat(4000));
    let down = Arc::new(AtomicBool::new(false));
    let script = Arc::clone(&down);
    let fake = Fake::scripted(move |_, event| match event {
        _ if script.load(Ordering::SeqCst) => vec![Act::Close],
        Event::Connected => Vec::new(),
        // Far enough away that what is owed has to wait for the greeting.
        Event::Received(command) if command[0] == "INFO" => {
            vec![Act::Wait(Duration::from_millis(10)), Act::Say(healthy(command))]
        }
        Event::Received(command) => vec![Act::Say(healthy(command))],
    });
    let servers = Server::several(2).unwrap();
    let client = client_with(&servers, &fake);
    let count = |name: &str| fake.commands().iter().filter(|command| command[0].starts_with(name)).count();
    let taking_part = || {
        drop(take(&lasting(&client, "before")));
        count("SET") > 0 && count("EVAL") > 0
    };
    assert!(eventually(SOON, taking_part));

    let held: Vec<_> = (0..guards).map(|number| take(&lasting(&client, &format!("{key}{number}")))).collect();
    let (set, released) = (count("SET"), count("EVAL"));
    down.store(true, Ordering::SeqCst);
    drop(held);
    let noticed = || {
        drop(lasting(&client, "meanwhile").try_lock());
        fake.connections() > 1
    };
    assert!(eventually(SOON, noticed));
    down.store(false, Ordering::SeqCst);
    let back = || {
        drop(lasting(&client, "after").try_lock());
        count("SET") > set && count("EVAL") >= released + guards
    };
    assert!(
        eventually(6 * SOON, back),
        "on connection {}: {} of {set} SETs, {} of {guards} releases",
        fake.connections(),
        count("SET"),
        count("EVAL") - released
    );
}

#[test]
fn a_node_that_takes_part_in_nothing_but_releases_is_asked_less_and_less_often() {
    for acts in [vec![Act::Close], vec![say("+WHAT\r\n")], vec![say("*0\r\n"), Act::Close]] {
        let servers = Server::several(2).unwrap();
        let fake = Fake::healthy_but("SET", acts.clone());
        let client = client_with(&servers, &fake);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            drop(take(&lasting(&client, "k")));
            thread::sleep(Duration::from_millis(2));
        }
        // With 10 ms, then twice as long each time, up to 1 s, after one that is free.
        assert!((3..=12).contains(&fake.connections()), "{} connections in 2 s: {acts:?}", fake.connections());
    }
}

fn client_with(servers: &[Server], fake: &Fake) -> Redlock {
    client_of(servers.iter().map(Server::url).chain([fake.url()]))
}
