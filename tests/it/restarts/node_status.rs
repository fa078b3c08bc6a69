//! The status of nodes: [`Redlock::nodes`], and the events of an observer.

use super::*;
use crate::faults::keeps_secrets;
use quorumlock::NodeNote;

/// An event about a node, in words.
fn words(event: &Event) -> Option<String> {
    let word = match event {
        Event::NodeDown { .. } => "down",
        Event::NodeMayEvict { policy, .. } => policy,
        Event::NodeNotDurable { .. } => "not durable",
        Event::NodeQuarantined { remaining, .. } => {
            let most = MAX_TTL;
            assert!(*remaining <= most && *remaining > most / 2, "{event:?}");
            "quarantined"
        }
        Event::NodeUp { .. } => "up",
        Event::QuarantineEnded { .. } => "ended",
        _ => return None,
    };
    Some(format!("{word} {}", event.node()?))
}

/// How many of these events begin with a word.
fn count(journal: &Seen<String>, word: &str) -> usize {
    let all = journal.all().into_iter();
    all.filter(|words| words.starts_with(word)).count()
}

#[test]
fn a_quarantine_is_reported_when_it_begins_and_ends() {
    let mut server = [Server::start().unwrap()];
    let journal = Seen::nothing();
    let client = brief(&server).observer(journal.by(words)).build().unwrap();
    acquaint(&client);
    let address = server[0].address();
    server[0].kill();
    failure(&longest(&client));
    server[0].restart().unwrap();
    let begun = Instant::now();
    let is_back = || can_take(&longest(&client));
    assert_soon!(is_back(), "{:?}", client.nodes());
    assert!(begun.elapsed() >= MAX_TTL);
    assert_eq!(
        journal.all(),
        ["up", "down", "quarantined", "ended", "up"].map(|word| format!("{word} {address}"))
    );
}

#[test]
fn a_node_that_evicts_keys_is_reported_once_for_each_connection_and_goes_on_voting() {
    let server =
        [Server::with(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]).unwrap()];
    let journal = Seen::nothing();
    let client = client_with(&server, |builder| builder.observer(journal.by(words)));
    let warnings = || count(&journal, "allkeys-lru ");
    for connections in 1..4 {
        // Asked for by itself a second later; by `connect` at once.
        if connections < 3 {
            client.connect(SOON).unwrap();
        } else {
            let _ = take(&client.mutex(KEY)).unlock().unwrap();
            assert_eq!(warnings(), connections - 1, "{:?}", journal.all());
            thread::sleep(Duration::from_millis(1100));
        }
        for _ in 0..3 {
            let _ = take(&client.mutex(KEY)).unlock().unwrap();
        }
        assert_eq!(warnings(), connections, "{:?}", journal.all());
        let status = first_node(&client);
        assert_eq!(
            (status.state(), status.eviction()),
            (NodeState::Voting, Some("allkeys-lru"))
        );
        shows(&status, "may evict locks (allkeys-lru)");
        cut(&server[0]);
        thread::sleep(Duration::from_millis(20));
    }
    // Without a limit, or without a policy, nothing is evicted.
    let no_limit = ["--maxmemory", "0", "--maxmemory-policy", "allkeys-lru"];
    for arguments in [&no_limit[..], &["--maxmemory", "100mb"]] {
        let harmless = [Server::with(arguments).unwrap()];
        let client = builder(&harmless).build().unwrap();
        assert_eq!(client.connect(SOON).unwrap()[0].eviction(), None);
    }
}

#[test]
fn a_node_that_contradicts_its_declaration_is_reported_once_for_each_connection_and_goes_on_voting()
{
    let server = [Server::start().unwrap()];
    let journal = Seen::nothing();
    let client = client_with(&server, |builder| {
        builder.durable(true).observer(journal.by(words))
    });
    assert!(first_node(&client).is_durable(), "it was not asked yet");
    let warnings = || count(&journal, "not durable ");
    for connections in 1..3 {
        for _ in 0..3 {
            let _ = take(&client.mutex(KEY)).unlock().unwrap();
        }
        assert_eq!(warnings(), connections, "{:?}", journal.all());
        let status = first_node(&client);
        assert_eq!(
            (status.state(), status.is_durable()),
            (NodeState::Voting, false)
        );
        shows(
            &status,
            "declared durable but appends nothing to disk (aof_enabled:0)",
        );
        cut(&server[0]);
        thread::sleep(Duration::from_millis(20));
    }
    // One that appends, and one that nothing is declared of.
    let durable = [Server::with(&["--appendonly", "yes"]).unwrap()];
    for builder in [builder(&durable).durable(true), builder(&server)] {
        let journal = Seen::nothing();
        let client = builder.observer(journal.by(words)).build().unwrap();
        unlock(take(&client.mutex(KEY)));
        assert_eq!(count(&journal, "not durable "), 0, "{:?}", journal.all());
    }
}

#[test]
fn the_time_for_which_votes_have_counted_goes_on_without_a_look() {
    let mut server = [Server::start().unwrap()];
    let client = builder(&server).build().unwrap();
    assert_eq!(
        (
            first_node(&client).note(),
            first_node(&client).counted_for()
        ),
        (NodeNote::Unknown, None)
    );
    let _ = take(&client.mutex(KEY)).unlock().unwrap();
    let wait = Duration::from_millis(300);
    thread::sleep(wait);
    let status = first_node(&client);
    let counted = status.counted_for().unwrap();
    assert!(
        counted >= wait && status.note() == (NodeNote::Founder { age: counted }),
        "{status:?}"
    );
    shows(&status, ", votes counted for ");
    server[0].kill();
    failure(&client.mutex(KEY));
    let status = first_node(&client);
    assert_eq!(
        (status.note(), status.counted_for()),
        (NodeNote::Unknown, None)
    );
}

#[test]
fn nodes_are_shown_as_they_are() {
    let mut servers = Server::several(2).unwrap();
    servers.insert(0, durable().start().unwrap());
    let replica = replica_of(&servers[0]);
    let locked = Server::with(&["--requirepass", "hunter2"]).unwrap();
    let unused = free_port().unwrap();
    let urls: Vec<String> = servers.each(Server::url);
    let client = Redlock::builder()
        .node(format!("{}?durable=true", urls[0]))
        .nodes(&urls[1..])
        .node(replica.url())
        .node(format!("redis://:hunter3@{}", locked.address()))
        .node(format!("redis://127.0.0.1:{unused}"))
        // The same server by another name.
        .node(format!("redis://localhost:{}", servers[1].port()))
        .ttl(MAX_TTL)
        .max_ttl(MAX_TTL)
        .node_timeout(Duration::from_secs(1))
        .build()
        .unwrap();
    let is_unknown = |node: &NodeStatus| node.state() == NodeState::Unknown && !node.is_connected();
    assert!(all_nodes(&client, is_unknown), "{:?}", client.nodes());
    let is_unasked = |server: &Server| connections(server) == 1;
    assert!(servers[1..].all(is_unasked), "no node was asked");

    let states = || -> Vec<NodeState> {
        let nodes = client.nodes().unwrap();
        nodes.iter().map(NodeStatus::state).collect()
    };
    let twin = |state: &NodeState| matches!(state, NodeState::Rejected(Cause::Duplicate(_)));
    let settled = || {
        // Three of seven can vote.
        let _ = longest(&client).try_lock();
        let states = states();
        let expected = [
            NodeState::Voting,
            NodeState::Rejected(Cause::NotMaster),
            NodeState::Rejected(Cause::Auth),
            NodeState::Down(Cause::Refused),
        ];
        let one_of_two = twin(&states[1]) != twin(&states[6]);
        one_of_two
            && [0, 3, 4, 5].map(|node: usize| states[node]) == expected
            && states[2] == NodeState::Voting
    };
    assert_soon!(settled(), "{:?}", client.nodes());
    let nodes = client.nodes().unwrap();
    let run_id = servers[0].info("run_id").unwrap();
    assert_eq!(nodes[0].run_id().as_deref(), Some(&run_id[..8]));
    assert_eq!(nodes[0].address(), servers[0].address());
    assert!(nodes[0].is_durable() && !nodes[2].is_durable() && nodes[0].is_connected());
    let version = |field| Some(servers[0].info(field).unwrap()).filter(|text| !text.is_empty());
    let version = version("valkey_version").or(version("redis_version"));
    let ours = nodes[0].server().unwrap();
    assert!(ours.ends_with(&format!(" {}", version.unwrap())), "{ours}");
    assert_eq!(
        (nodes[0].is_master(), nodes[3].is_master()),
        (Some(true), Some(false))
    );
    let fault = nodes[4].last_fault().unwrap();
    assert_eq!(
        (fault.phase(), fault.cause(), nodes[2].last_fault()),
        (Phase::Handshake, Cause::Auth, None)
    );
    assert!(nodes[2].state_age() < SOON);
    keeps_secrets(&[&nodes, &client]);
    for node in &nodes {
        let (shown, state) = (node.to_string(), node.state().to_string());
        let expected = format!("{}: {}", node.address(), state.split(',').next().unwrap());
        assert!(shown.starts_with(&expected) && !shown.contains("hunter"));
    }

    // One is restarted, and the durable one too.
    for index in [0, 2] {
        servers[index].restart().unwrap();
    }
    let noticed = || {
        let _ = longest(&client).try_lock();
        let states = states();
        matches!(states[2], NodeState::Quarantined { remaining } if remaining > MAX_TTL / 2 && remaining <= MAX_TTL)
            && states[0] == NodeState::Voting
            && first_node(&client)
                .run_id()
                .is_some_and(|id| id != run_id[..8])
    };
    assert_soon!(noticed(), "{:?}", client.nodes());
}

#[test]
fn reading_the_status_waits_for_no_node() {
    let (servers, client) = deployment(3);
    acquaint(&client);
    pause(&servers);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| client.mutex(KEY).try_lock());
        thread::sleep(Duration::from_millis(200));
        let begun = Instant::now();
        let nodes = client.nodes().unwrap();
        assert!(begun.elapsed() < Duration::from_millis(500) && nodes.len() == 3);
        assert!(!waiting.is_finished(), "nothing was shown");
        fails(waiting.join().unwrap(), ErrorKind::Unavailable);
    });
    failure(&client.mutex(KEY));
    let state = first_node(&client).state();
    assert_eq!(state, NodeState::Down(Cause::TimedOut));
    resume(&servers);
    let server = &servers[0];
    assert_soon!(matches!(server.command(&["PING"]), Ok(Answer::Text(_))));
}
