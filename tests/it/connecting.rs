//! `Redlock::connect`: all connections at once, what each node is, and whether there is a quorum of
//! them.

use crate::prelude::*;

fn states(nodes: &[NodeStatus]) -> Vec<NodeState> {
    nodes.iter().map(NodeStatus::state).collect()
}

#[test]
fn all_nodes_are_connected_to_and_no_lock_is_taken() {
    let (servers, client) = deployment(3);
    let nodes = client.connect(SOON).unwrap();
    assert_eq!(states(&nodes), [NodeState::Voting; 3]);
    assert!(
        nodes
            .iter()
            .all(|node| node.is_connected() && node.server().is_some()),
        "{nodes:?}"
    );
    // Nothing is written but what each node remembers of itself.
    assert!(servers.all(|server| server.keys().unwrap().is_empty() && calls(server, "set") == 1));
    unlock(take(&long_lock(&client, "k")));
}

#[test]
fn nodes_that_will_never_vote_are_named() {
    let healthy = Server::several(3).unwrap();
    let locked = Server::with(&["--requirepass", "secret"]).unwrap();
    let replica = replica_of(&healthy[0]);
    let duplicate = format!("redis://localhost:{}", healthy[2].port());
    let urls = [
        healthy[0].url(),
        locked.url(),
        healthy[1].url(),
        replica.url(),
        healthy[2].url(),
        dead(),
        duplicate,
    ];
    // Three of seven can vote.
    let client = client_of(urls.clone());
    let error = client.connect(SOON).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().starts_with("cannot connect: "), "{error}");
    assert_eq!(error.causes().len(), 4, "{error}");
    let named = states(&client.nodes().unwrap());
    let at = |index: usize| named[index];
    assert_eq!(
        (at(1), at(3)),
        (
            NodeState::Rejected(Cause::Auth),
            NodeState::Rejected(Cause::NotMaster)
        )
    );
    assert_eq!(at(5), NodeState::Down(Cause::Refused));
    assert_eq!([at(0), at(2)], [NodeState::Voting; 2]);
    // Of two ways to one server, either may be the first.
    let is_duplicate = |state| matches!(state, NodeState::Rejected(Cause::Duplicate(_)));
    assert_eq!(
        [at(4), at(6)]
            .into_iter()
            .filter(|&state| is_duplicate(state))
            .count(),
        1,
        "{named:?}"
    );

    // Three of five can.
    let client = client_of(urls[..5].to_vec());
    let named = states(&client.connect(SOON).unwrap());
    let auth = NodeState::Rejected(Cause::Auth);
    let not_master = NodeState::Rejected(Cause::NotMaster);
    assert_eq!(
        named,
        [
            NodeState::Voting,
            auth,
            NodeState::Voting,
            not_master,
            NodeState::Voting
        ]
    );
}

#[test]
fn on_open_connections_it_asks_and_so_finds_what_has_become_of_nodes() {
    let (servers, client) = deployment(3);
    for round in 1..=3 {
        client.connect(SOON).unwrap();
        // The handshake asks three times, and each check once.
        assert!(
            servers.all(|server| calls(server, "info") >= 2 + round),
            "{round}"
        );
    }
    // A replica, without notice on its open connections.
    ask(&servers[0], &["REPLICAOF", "127.0.0.1", "1"]);
    let nodes = client.connect(SOON).unwrap();
    assert_eq!(
        states(&nodes),
        [
            NodeState::Rejected(Cause::NotMaster),
            NodeState::Voting,
            NodeState::Voting
        ]
    );
    servers[1].pause().unwrap();
    let error = promptly(NODE_TIMEOUT + SLACK, || {
        client.connect(NODE_TIMEOUT).unwrap_err()
    });
    let hung = (servers[1].address(), Phase::Reply, Cause::TimedOut);
    assert!(causes(&error).contains(&hung), "{error}");
    assert_eq!(
        client.nodes().unwrap()[1].state(),
        NodeState::Down(Cause::TimedOut)
    );
    servers[1].resume().unwrap();
    assert_soon!(client.connect(SOON).is_ok());
}

#[test]
fn a_minority_that_is_down_is_waited_for_by_no_one_and_one_that_hangs_no_longer_than_asked() {
    let servers = Server::several(2).unwrap();
    let client = client_of([servers[0].url(), servers[1].url(), dead()]);
    let nodes = promptly(Duration::from_secs(1), || client.connect(SOON).unwrap());
    assert_eq!(nodes[2].state(), NodeState::Down(Cause::Refused));
    servers[1].pause().unwrap();
    let client = plain_client(servers[..2].each(Server::url));
    let error = client.connect(NODE_TIMEOUT).unwrap_err();
    let hung = servers[1].address();
    has_cause(&error, &hung, Phase::Handshake, Cause::TimedOut);
}
