//! Nodes that come back, or seem to: they get the releases that they missed, and are not asked
//! without end.

use crate::prelude::*;
use crate::support::fake::Event;

#[test]
fn a_node_that_missed_many_releases_comes_back_and_gets_them() {
    // Together they are longer than what may wait to be sent on one connection.
    let guards = 4000;
    let key = "x".repeat(4000);
    let down = Arc::new(AtomicBool::new(false));
    let script = Arc::clone(&down);
    let fake = Fake::scripted(move |_, event| match event {
        _ if script.load(Ordering::SeqCst) => vec![Act::Close],
        Event::Connected => Vec::new(),
        // Far enough away that pending releases have to wait for the handshake.
        Event::Received(command) if command[0] == "INFO" => {
            vec![
                Act::Wait(Duration::from_millis(10)),
                Act::Say(healthy(command)),
            ]
        }
        Event::Received(command) => vec![Act::Say(healthy(command))],
    });
    let servers = Server::several(2).unwrap();
    let client = client_with(&servers, &fake);
    let count = |name: &str| {
        fake.commands()
            .iter()
            .filter(|command| command[0].starts_with(name))
            .count()
    };
    let taking_part = || {
        drop(take(&long_lock(&client, "before")));
        count("SET") > 0 && count("EVAL") > 0
    };
    assert_soon!(taking_part());

    let held: Vec<_> = (0..guards)
        .map(|number| take(&long_lock(&client, &format!("{key}{number}"))))
        .collect();
    let set = count("SET");
    let released = count("EVAL");
    down.store(true, Ordering::SeqCst);
    drop(held);
    let noticed = || {
        drop(long_lock(&client, "meanwhile").try_lock());
        fake.connections() > 1
    };
    assert_soon!(noticed());
    down.store(false, Ordering::SeqCst);
    let back = || {
        drop(long_lock(&client, "after").try_lock());
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
fn a_pending_release_survives_a_connection_refused_while_a_thread_polls() {
    let plan = durable().arguments(&["--tcp-backlog", "1"]);
    let mut server = plan.start().unwrap();
    let client = client_within([server.url()], Duration::from_secs(3));
    let guard = take(&long_lock(&client, "k"));
    server.restart().unwrap();
    assert!(value(&server, "k").is_some());
    let connections = hang_and_fill(&server);
    // Finds its connection closed, and begins another one, which the full queue neither takes nor
    // refuses.
    drop(guard);
    thread::scope(|scope| {
        scope.spawn(|| drop(long_lock(&client, "another").try_lock()));
        thread::sleep(Duration::from_millis(200));
        // The next packet of it is refused.
        server.kill();
        drop(connections);
    });
    // From its file, with the key: it was stopped when the release came. The release may be there
    // at once.
    server.restart().unwrap();
    let gone = || {
        drop(long_lock(&client, "another").try_lock());
        value(&server, "k").is_none()
    };
    assert!(eventually(SOON / 3, gone), "the release was lost");
}

#[test]
fn a_node_that_takes_part_in_nothing_but_releases_is_asked_less_and_less_often() {
    for acts in [
        vec![Act::Close],
        vec![say("+WHAT\r\n")],
        vec![say("*0\r\n"), Act::Close],
    ] {
        let servers = Server::several(2).unwrap();
        let fake = Fake::healthy_but("SET", acts.clone());
        let client = client_with(&servers, &fake);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            drop(take(&long_lock(&client, "k")));
            thread::sleep(Duration::from_millis(2));
        }
        // With 10 ms, then twice as long each time, up to 1 s, after one that is free.
        assert!(
            (3..=12).contains(&fake.connections()),
            "{} connections in 2 s: {acts:?}",
            fake.connections()
        );
    }
}

fn client_with(servers: &[Server], fake: &Fake) -> Redlock {
    client_of(servers.iter().map(Server::url).chain([fake.url()]))
}
