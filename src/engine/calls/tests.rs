//! What a client asks of the network, with servers that the test plays.

// There are no sockets in the simulator, where other unit tests are run too.
#![cfg(not(feature = "simulated"))]

use super::*;
use crate::algorithm::incarnation::Rules;
use crate::algorithm::quarantine::RestartPolicy;
use crate::engine::credentials::Provider;
use crate::engine::rounds::Purpose;
use crate::engine::tests::{MASTER, PlayedServer, Stopped, at, config, soon};
use crate::protocol::credentials::Credentials;
use std::io::Read;

const NODE_TIMEOUT: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_secs(10);

/// A client, and one server.
struct Played {
    engine: Engine,
    server: PlayedServer,
}

impl Played {
    /// Not connected.
    fn new() -> Played {
        let server = PlayedServer::new();
        let engine = engine(&[server.url()], None);
        Played { engine, server }
    }

    /// The client connects, and reads what the server replies to the handshake.
    fn connected() -> Played {
        let mut played = Played::new();
        begin_to_connect(&played.engine);
        accept(&mut played.server);
        played.heard();
        played.server.introduce(0, MASTER);
        let is_open = |nodes: &Nodes| nodes.connections[NodeId::new(0)].is_open().then_some(());
        soon(|| drive(&played.engine, is_open));
        played
    }

    /// What the server receives next.
    fn heard(&mut self) -> String {
        heard(&self.engine, &mut self.server)
    }

    fn seat(&self) -> Seat<'_> {
        self.engine.sit(&"k".into(), Kind::Plain, 7)
    }
}

fn engine(urls: &[String], provider: Option<Provider>) -> Engine {
    let node = |url: &String| {
        (
            Endpoint::parse(url).unwrap(),
            TransportConfig::Plain,
            Quarantine::new(RestartPolicy::Off, TTL),
        )
    };
    let config = EngineConfig {
        provider,
        ..config(Rules::new(RestartPolicy::Off, TTL), NODE_TIMEOUT)
    };
    let nodes = urls.iter().map(node).collect();
    Engine::new(nodes, NODE_TIMEOUT, Arc::new(Stopped(at(1))), config).unwrap()
}

fn begin_to_connect(engine: &Engine) {
    let token = OwnerToken::from_entropy([1; OwnerToken::ENTROPY]);
    engine.adopt(token, Kind::Plain);
}

/// Reads what has arrived, and sends what is to be sent.
fn drive<R>(engine: &Engine, get: impl FnOnce(&Nodes) -> R) -> R {
    engine.driver.run(
        |nodes, now| (nodes.rounds.open(Purpose::Wait), now),
        |nodes, ticket| {
            nodes.rounds.unrefer(ticket);
            get(nodes)
        },
    )
}

/// A connection that is made soon.
fn accept(server: &mut PlayedServer) {
    server.listener.set_nonblocking(true).unwrap();
    let stream = soon(|| server.listener.accept().ok()).0;
    stream.set_nonblocking(true).unwrap();
    server.stream = Some(stream);
}

/// What a server receives soon: nothing at the end of the connection.
fn heard(engine: &Engine, server: &mut PlayedServer) -> String {
    let mut heard = [0; 4096];
    let count = soon(|| {
        drive(engine, |_| ());
        server.stream.as_ref().unwrap().read(&mut heard).ok()
    });
    String::from_utf8_lossy(&heard[..count]).into_owned()
}

#[test]
fn a_child_made_by_fork_closes_its_connections() {
    let mut played = Played::connected();
    played.engine.close_inherited();
    assert_eq!(played.heard(), "");
}

#[test]
fn a_call_that_steps_aside_has_its_entry_removed() {
    let mut played = Played::connected();
    played.seat().step_aside(NodeSet::first(1));
    assert!(played.heard().contains("EVAL"));
}

#[test]
fn the_ticket_of_a_call_is_stored_without_a_wait() {
    let mut played = Played::connected();
    let entry = played.seat().entry();
    let nodes = NodeSet::first(1);
    played
        .engine
        .store(&"k".into(), Kind::Plain, entry, 123_456, nodes);
    assert!(played.heard().contains("EVAL"));
}

#[test]
fn a_call_that_has_won_names_the_nodes_that_may_have_its_entry() {
    let played = Played::new();
    let mut seat = played.seat();
    seat.record_stored(NodeSet::first(1));
    assert_eq!(seat.win(at(1000)), NodeSet::first(1));
}

#[test]
fn a_call_learns_which_nodes_deny_it_messages() {
    let played = Played::new();
    let seat = played.seat();
    assert_eq!(seat.denied(), None);
    let denied = NodeSet::first(1);
    played
        .engine
        .driver
        .enter(|nodes, _| nodes.subscribers.subscribe_denied = denied);
    assert_eq!(seat.denied(), Some(denied));
}

#[test]
fn a_call_whose_lock_has_changed_hands_without_a_message_relies_on_none() {
    let played = Played::new();
    let seat = played.seat();
    seat.record_missed_message();
    let confirm = |nodes: &mut Nodes, now| {
        let registry = &mut nodes.subscribers.registry;
        registry.on_confirmed(NodeId::new(0), now);
    };
    played.engine.driver.enter(confirm);
    assert!(seat.is_attentive(NodeSet::EMPTY), "none could be there");
    seat.record_missed_message();
    assert!(!seat.is_attentive(NodeSet::EMPTY));
}

#[test]
fn credentials_of_a_provider_are_those_of_nodes_whose_urls_have_none() {
    let [mut with, mut without] = [(); 2].map(|()| PlayedServer::new());
    let provider: Provider = Arc::new(|_: &str| Ok(Credentials::new("provided")));
    let urls = [with.url().replace("//", "//:own@"), without.url()];
    let engine = engine(&urls, Some(provider));
    begin_to_connect(&engine);
    for (server, password) in [(&mut with, "own"), (&mut without, "provided")] {
        accept(server);
        let heard = heard(&engine, server);
        assert!(heard.contains(password), "{heard}");
    }
}
