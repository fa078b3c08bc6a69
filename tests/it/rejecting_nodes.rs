//! Nodes that answer, and refuse every lock with an error: their status, and the events about them.

use crate::prelude::*;

/// An event about a node, in words behind its address.
fn about_node(event: &Event) -> Option<String> {
    match event {
        Event::NodeDown { node, fault, .. } => Some(format!("{node} is down, {}", fault.cause())),
        Event::NodeUp { node, .. } => Some(format!("{node} is up")),
        _ => None,
    }
}

fn about(seen: &Seen<String>, address: &str) -> Vec<String> {
    seen.all()
        .iter()
        .filter_map(|words| words.strip_prefix(address))
        .map(|words| words.trim().to_owned())
        .collect()
}

fn state(client: &Redlock) -> NodeState {
    first_node(client).state()
}

/// Takes and releases locks until the first node, which a quorum does not wait for, looks like
/// this.
fn becomes(client: &Redlock, expected: NodeState) {
    let looks = || {
        let _ = take(&long_lock(client, "k")).unlock().unwrap();
        state(client) == expected
    };
    assert_soon!(looks(), "{:?}", client.nodes());
}

#[test]
fn a_node_that_refuses_every_lock_is_rejected_until_it_serves_again() {
    let table: [(&[&str], Cause, &[&str]); 3] = [
        (
            &["CONFIG", "SET", "maxmemory", "1"],
            Cause::OutOfMemory,
            &["CONFIG", "SET", "maxmemory", "0"],
        ),
        (
            &["CONFIG", "SET", "min-replicas-to-write", "1"],
            Cause::Server(ServerError::NoReplicas),
            &["CONFIG", "SET", "min-replicas-to-write", "0"],
        ),
        (
            &["ACL", "SETUSER", "default", "-set"],
            Cause::NoPermission,
            &["ACL", "SETUSER", "default", "+set"],
        ),
    ];
    // The last is for servers that have users.
    for (ail, cause, heal) in table
        .into_iter()
        .filter(|(_, cause, _)| *cause != Cause::NoPermission || has_users())
    {
        let servers = Server::several(3).unwrap();
        let journal = Seen::nothing();
        let client = client_with(&servers, |builder| builder.observer(journal.by(about_node)));
        becomes(&client, NodeState::Voting);
        let held = take(&long_lock(&client, "held"));
        servers[0].command(ail).unwrap();
        becomes(&client, NodeState::Rejected(cause));
        assert_eq!(
            first_node(&client).last_fault().map(|fault| fault.cause()),
            Some(cause)
        );
        // What else it answers does not make it one that votes.
        for _ in 0..3 {
            extend(&held, Duration::from_secs(60));
        }
        assert_eq!(state(&client), NodeState::Rejected(cause), "{cause}");
        servers[0].command(heal).unwrap();
        becomes(&client, NodeState::Voting);
        assert_eq!(
            about(&journal, &servers[0].address()),
            ["is up", &format!("is down, {cause}"), "is up"]
        );
    }
}

#[test]
fn a_place_that_is_left_does_not_make_a_node_one_that_votes() {
    let servers = Server::several(3).unwrap();
    let journal = Seen::nothing();
    let client = client_with(&servers, |builder| builder.observer(journal.by(about_node)));
    becomes(&client, NodeState::Voting);
    ask(&servers[0], &["CONFIG", "SET", "maxmemory", "1"]);
    becomes(&client, NodeState::Rejected(Cause::OutOfMemory));
    let other = crate::clients::client(&servers);
    let held = take(&long_lock(&other, "fair").fair());
    for _ in 0..3 {
        assert!(is_held_for(
            &long_lock(&client, "fair").fair(),
            Duration::from_millis(50)
        ));
        client.flush_releases(SOON).unwrap();
        // What the node has answered by now is read.
        client.connect(SOON).unwrap();
        assert_eq!(state(&client), NodeState::Rejected(Cause::OutOfMemory));
    }
    let _ = held.unlock().unwrap();
    assert_eq!(
        about(&journal, &servers[0].address()),
        ["is up", &format!("is down, {}", Cause::OutOfMemory)]
    );
}

/// Errors that a test cannot make a server give: those that do not pass by themselves, and those
/// that do.
#[test]
fn errors_that_pass_by_themselves_are_no_rejection() {
    let down = NodeState::Down;
    let table = [
        (
            "-MISCONF Redis is configured to save RDB snapshots",
            NodeState::Rejected(Cause::Server(ServerError::Misconf)),
        ),
        (
            "-BUSY Redis is busy running a script.",
            down(Cause::Server(ServerError::Busy)),
        ),
        (
            "-LOADING Redis is loading the dataset in memory",
            down(Cause::Loading),
        ),
    ];
    for (answer, expected) in table {
        let answer = Arc::new(Guarded::new(Some(answer)));
        let script = {
            let answer = Arc::clone(&answer);
            move |command: &Vec<String>| match *answer.lock().unwrap() {
                Some(error) if is(command, "SET") => vec![say(&format!("{error}\r\n"))],
                _ => vec![Act::Say(healthy(command))],
            }
        };
        let fake = Fake::on_command(script);
        let servers = Server::several(2).unwrap();
        let urls = servers.iter().map(Server::url);
        let client = client_of([fake.url()].into_iter().chain(urls));
        becomes(&client, expected);
        *answer.lock().unwrap() = None;
        becomes(&client, NodeState::Voting);
    }
}

#[test]
fn a_server_that_was_killed_is_not_shown_as_connected() {
    let (mut servers, client) = deployment(3);
    becomes(&client, NodeState::Voting);
    assert!(first_node(&client).is_connected());
    // A server that is killed with a release unanswered is down.
    client.flush_releases(SOON).unwrap();
    servers[0].kill();
    let is_gone = || !first_node(&client).is_connected();
    assert_soon!(is_gone(), "{:?}", client.nodes());
    let nodes = client.nodes().unwrap();
    assert!(
        nodes[0].to_string().contains("not connected"),
        "{}",
        nodes[0]
    );
    assert!(
        nodes[1..].iter().all(|node| node.is_connected()),
        "{nodes:?}"
    );
    becomes(&client, NodeState::Down(Cause::Refused));
}
