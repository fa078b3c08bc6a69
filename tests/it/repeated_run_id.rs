//! A server that repeats the run id of a genuine one, and seems to be the same server by another
//! URL.
//!
//! Whichever of the two is met first has the vote. What the other one grants counts for it all the
//! same, so the server that repeats the run id takes no vote away; and no lock has two holders
//! because of it.

use crate::prelude::*;
use crate::support::fake::Event;

/// Clients that are built one after the other: some connect to the genuine server first, others to
/// the fake.
const CLIENTS: usize = 20;
const NODE_TIMEOUT: Duration = Duration::from_millis(600);
/// Round trip of a server that is met after a near one.
const FAR: Duration = Duration::from_millis(50);

/// Answers INFO as the server does, and every command that sets, extends or deletes a key with
/// `answer`.
fn repeating_fake(server: &Server, set: &'static str, script: &'static str) -> Fake {
    let run_id = server.info("run_id").unwrap();
    Fake::on_command(move |command| match command {
        command if is(command, "INFO") => {
            let text = format!("redis_version:7.0.15\r\nrun_id:{run_id}\r\nrole:master\r\n");
            vec![say(&bulk(&text))]
        }
        command if is(command, "SET") => vec![say(set)],
        command if is(command, "EVAL") || is(command, "EVALSHA") => vec![say(script)],
        command => vec![Act::Say(healthy(command))],
    })
}

/// The deployment begins with the servers. The fake, which keeps no note of itself, is met when
/// they have theirs.
fn note(servers: &[Server]) {
    drop(take(&long_lock(
        &client_of(servers.each(Server::url)),
        "first",
    )));
}

/// A client of two servers and the fake, which repeats the run id of the first one, at any place in
/// the list.
fn client(servers: &[Server], fake: &Fake, number: usize) -> Redlock {
    client_of_urls([servers[0].url(), servers[1].url()], fake, number)
}

fn client_of_urls(servers: [String; 2], fake: &Fake, number: usize) -> Redlock {
    let mut urls = Vec::from(servers);
    urls.insert(number % 3, fake.url());
    client_at(urls, |builder| {
        builder
            .node_timeout(Duration::from_secs(2))
            .release_notifications(false)
    })
}

/// Whether the fake was connected first, and has the vote of the server.
fn has_vote(client: &Redlock, fake: &Fake) -> bool {
    let nodes = client.nodes().unwrap();
    let mut rejected = nodes
        .iter()
        .filter(|node| matches!(node.state(), NodeState::Rejected(Cause::Duplicate(_))));
    rejected.any(|node| !fake.url().ends_with(node.address()))
}

#[test]
fn a_node_with_a_false_run_id_that_refuses_does_not_prevent_a_lock() {
    let servers = Server::several(2).unwrap();
    note(&servers);
    let fake = repeating_fake(&servers[0], "$-1\r\n", ":-1\r\n");
    // The genuine server is met second by half of the clients.
    let far = Proxy::before(servers[0].port());
    far.delay(FAR);
    let mut fake_votes = 0;
    for number in 0..CLIENTS {
        let genuine = if number < CLIENTS / 2 {
            servers[0].url()
        } else {
            far.url()
        };
        let client = client_of_urls([genuine, servers[1].url()], &fake, number);
        for _ in 0..2 {
            let guard = take(&long_lock(&client, "k"));
            let extended = guard.extend(Duration::from_secs(30)).unwrap();
            assert_eq!(extended, ExtendOutcome::Extended, "{:?}", client.nodes());
            let released = guard.unlock().unwrap();
            assert_eq!(released, ReleaseOutcome::Released, "{:?}", client.nodes());
        }
        fake_votes += usize::from(has_vote(&client, &fake));
    }
    assert!(
        fake_votes > 0,
        "the fake was never connected first, so that nothing was shown"
    );
}

#[test]
fn a_node_with_a_false_run_id_that_grants_makes_no_second_holder() {
    let servers = Server::several(2).unwrap();
    note(&servers);
    let fake = repeating_fake(&servers[0], "+OK\r\n", ":1\r\n");
    for number in 0..CLIENTS {
        let [first, second] = [number, number + 1].map(|number| client(&servers, &fake, number));
        let guard = take(&long_lock(&first, "k"));
        assert!(is_held(&long_lock(&second, "k")), "{:?}", second.nodes());
        unlock(guard);
    }
}

/// An attempt that connects first lasts for two node timeouts. One server has one vote in all of
/// it, though the connection on which it has voted is lost, and another URL is connected to only
/// then.
#[test]
fn a_second_url_that_is_met_late_in_an_attempt_brings_no_second_vote() {
    let fence = "$16\r\n1700000000000000\r\n";
    let url = |delay: Duration, closes: bool| {
        Fake::scripted(move |_, event| match event {
            Event::Connected => vec![Act::Wait(delay)],
            Event::Received(command) if is(command, "INFO") => {
                let text = format!("run_id:{}\r\nrole:master\r\n", "a".repeat(40));
                vec![say(&bulk(&text))]
            }
            Event::Received(command) if is(command, "EVAL") && command[4] == "acquire" => {
                match closes {
                    true => vec![say(fence), Act::Close],
                    false => vec![say(fence)],
                }
            }
            Event::Received(command) => vec![Act::Say(healthy(command))],
        })
    };
    let first = url(Duration::ZERO, true);
    let second = url(NODE_TIMEOUT * 3 / 2, false);
    let other = Fake::silent();
    let urls = [&first, &second, &other].map(Fake::url);
    let client = client_at(urls, |builder| {
        builder
            .node_timeout(NODE_TIMEOUT)
            .release_notifications(false)
    });
    let won = long_lock(&client, "k").fenced().try_lock();
    assert!(
        won.is_err(),
        "one server has two votes: {:?}",
        client.nodes()
    );
}
