//! One connection to a server that the test plays, at times that the test names.

// There are no sockets in the simulator, where other unit tests are run too.
#![cfg(not(feature = "simulated"))]

use super::*;
use crate::algorithm::kind::Kind;
use crate::algorithm::lease::OwnerToken;
use crate::engine::node_connection::login::Login;
use crate::engine::tests::{MASTER, PlayedServer, REPLICA, SERVER, at, bulk, closed, soon, ticket};
use crate::fault::detail::Detail;
use crate::fault::tls_error::TlsError;
use crate::os::background_call::BackgroundCall;
use crate::protocol::lock_key::LockKey;
use crate::protocol::operation::{Operation, Verb};
use crate::protocol::session::SessionEvent;

mod faults;
mod releases;
mod states;

const NODE_TIMEOUT: Duration = Duration::from_millis(100);

/// Queues an operation on one key.
fn queue(connection: &mut NodeConnection, verb: Verb, now: Timestamp) {
    let operation = Operation {
        verb,
        kind: Kind::Plain,
        retention_millis: 1,
    };
    let key = LockKey::One("k".into());
    let token = OwnerToken::from_entropy([1; OwnerToken::ENTROPY]);
    connection.queue(&Command::new(ticket(0), &operation, &key, &token), now);
}

/// One of which nothing listens.
fn unmade() -> NodeConnection {
    closed("redis://10.0.0.1", NODE_TIMEOUT)
}

/// A connection, and the server at its other end.
struct Played {
    connection: NodeConnection,
    log: Log,
    server: PlayedServer,
}

impl Played {
    fn closed_with(node_timeout: Duration) -> Played {
        let server = PlayedServer::new();
        let connection = closed(&server.url(), node_timeout);
        let log = Log::default();
        Played {
            connection,
            log,
            server,
        }
    }

    fn awaiting_credentials() -> Played {
        let mut played = Played::closed_with(NODE_TIMEOUT);
        await_credentials(&mut played.connection, at(1));
        played
    }

    fn connecting(now: Timestamp) -> Played {
        let mut played = Played::closed_with(NODE_TIMEOUT);
        played.connect(now);
        played
    }

    /// Begins to connect.
    fn connect(&mut self, now: Timestamp) {
        self.connection.open(now).unwrap();
        self.server.accept();
    }

    /// Connected, without a reply yet.
    fn open(now: Timestamp) -> Played {
        let mut played = Played::connecting(now);
        played.made(now);
        played
    }

    fn made(&mut self, now: Timestamp) {
        soon(|| {
            self.connection.advance(now).unwrap();
            self.connection.is_open().then_some(())
        });
        self.flush(now);
    }

    /// After a handshake in which the server has reported this role.
    fn with_role(role: &str, now: Timestamp) -> Played {
        let mut played = Played::open(now);
        let event = played.introduced(role, now).remove(0);
        match event {
            SessionEvent::Accepted => assert_eq!(role, MASTER),
            SessionEvent::Rejected(fault) => played.connection.reject(fault, now),
            event => panic!("{event:?}"),
        }
        played
    }

    fn in_use(now: Timestamp) -> Played {
        Played::with_role(MASTER, now)
    }

    fn flush(&mut self, now: Timestamp) -> bool {
        self.connection.flush(&self.log, now).unwrap()
    }

    /// What one read brings, when something has arrived.
    fn read(&mut self, now: Timestamp) -> Result<Received, Fault> {
        soon(|| match self.connection.read(now) {
            Ok(Received::NOTHING) => None,
            read => Some(read),
        })
    }

    /// What a reply amounts to.
    fn replied(&mut self, reply: &str, now: Timestamp) -> Vec<SessionEvent> {
        self.server.send(reply);
        self.events(now)
    }

    /// What the replies to the handshake amount to, in this role.
    fn introduced(&mut self, role: &str, now: Timestamp) -> Vec<SessionEvent> {
        self.server.introduce(0, role);
        self.events(now)
    }

    /// What the replies that have arrived amount to.
    fn events(&mut self, now: Timestamp) -> Vec<SessionEvent> {
        self.read(now).unwrap();
        let session = &mut self.connection.session;
        std::iter::from_fn(|| session.next_event(&self.log).unwrap()).collect()
    }

    fn queue(&mut self, verb: Verb, now: Timestamp) {
        queue(&mut self.connection, verb, now);
    }

    fn acquire(&mut self, now: Timestamp) {
        self.queue(Verb::Acquire { ttl_millis: 1000 }, now);
    }

    fn close(&mut self, fault: Fault, now: Timestamp) {
        self.connection.session.abandon().for_each(drop);
        self.connection.close(fault, now);
    }
}

const CLOSED: Fault = Fault::new(Phase::Reply, Cause::Closed);
const CLOSED_EARLY: Fault = Fault::new(Phase::Handshake, Cause::Closed);

/// Begins to connect, with a provider that returns nothing.
fn await_credentials(connection: &mut NodeConnection, now: Timestamp) {
    connection.link.login = Some(Login::new(BackgroundCall::start("test", || None).unwrap()));
    connection.open(now).unwrap();
}

/// One that was begun at the origin, whose provider returns nothing.
fn awaiting_credentials() -> NodeConnection {
    let mut connection = unmade();
    await_credentials(&mut connection, Timestamp::ORIGIN);
    connection
}

/// A failure is reported with the phase of its connection.
#[test]
fn a_connection_that_awaits_credentials_is_in_its_handshake() {
    assert_eq!(unmade().phase(), Phase::Connect);
    let mut connection = awaiting_credentials();
    assert_eq!(connection.phase(), Phase::Handshake);
    connection.link.login = None;
    assert_eq!(connection.phase(), Phase::Resolve);
}

#[test]
fn a_connection_that_is_not_made_in_time_is_given_up() {
    let connection = awaiting_credentials();
    let fault_after = |time| connection.exceeded_limit(Timestamp::ORIGIN.after(time));
    assert_eq!(fault_after(Duration::ZERO), None);
    assert_eq!(fault_after(CONNECT_LIMIT - Duration::from_nanos(1)), None);
    let late = Cause::Credentials(CredentialsError::TimedOut);
    let fault = Fault::new(Phase::Handshake, late);
    assert_eq!(fault_after(CONNECT_LIMIT), Some(fault));
    assert_eq!(unmade().exceeded_limit(Timestamp::NEVER), None);
}

#[test]
fn each_request_to_an_overdue_node_lengthens_its_pause() {
    let mut connection = unmade();
    let mut asked_at = |millis| {
        let now = Timestamp::ORIGIN.after(Duration::from_millis(millis));
        queue(&mut connection, Verb::Acquire { ttl_millis: 1000 }, now);
        connection.health.not_before().since(now)
    };
    assert_eq!([0, 100].map(&mut asked_at), [Duration::ZERO; 2], "in time");
    let [first, second] = [101, 150].map(asked_at);
    assert!(!first.is_zero());
    assert!(second > first);
}

#[test]
fn silence_does_not_hide_what_a_port_has_shown_before() {
    let faults = [
        (Phase::Handshake, Cause::TimedOut),
        (Phase::Handshake, Cause::Closed),
        (Phase::Handshake, Cause::Refused),
        (Phase::Connect, Cause::TimedOut),
        (Phase::Reply, Cause::Closed),
    ];
    let kept_after = |known| {
        let mut connection = unmade();
        let known = Fault::new(Phase::Handshake, known);
        connection.health.failed(known, Timestamp::ORIGIN);
        faults.map(|(phase, cause)| connection.most_specific(Fault::new(phase, cause)) == known)
    };
    let only_vague = [true, true, false, false, false];
    assert_eq!(kept_after(Cause::NotTls), only_vague);
    assert_eq!(kept_after(Cause::Protocol), only_vague);
    assert_eq!(kept_after(Cause::Tls(TlsError::Required)), only_vague);
    assert_eq!(kept_after(Cause::Auth), [false; 5]);
}

#[test]
fn a_connection_is_made_with_what_the_provider_has_returned_and_logs_in_anew() {
    let mut played = Played::awaiting_credentials();
    let learn = |played: &mut Played, password: &str| {
        let returned = Ok(Credentials::new(password));
        played.connection.learn_credentials(returned, at(2))
    };
    assert_eq!(learn(&mut played, "one"), Ok(Use::Begin));
    played.connection.log_in(Use::Begin, at(2)).unwrap();
    played.server.accept();
    played.made(at(2));
    let log_in = |password: &str| format!("*2\r\n$4\r\nAUTH\r\n$3\r\n{password}\r\n");
    let sent = played.server.received();
    assert!(sent.starts_with(&log_in("one")), "{sent}");
    assert!(played.connection.link.credentials().is_none(), "not yet");
    played.replied("+OK\r\n", at(3));
    played.introduced(MASTER, at(3));
    played.connection.link.login.as_mut().unwrap().accepted();
    assert_eq!(
        played.connection.link.credentials().unwrap().password(),
        "one"
    );
    assert_eq!(learn(&mut played, "two"), Ok(Use::Replace));
    played.connection.log_in(Use::Replace, at(4)).unwrap();
    played.flush(at(4));
    assert_eq!(played.server.received(), log_in("two"));
}

/// The subscriber connection logs in with what the server has accepted.
#[test]
fn an_accepted_log_in_is_the_one_that_was_sent_first() {
    let mut played = Played::awaiting_credentials();
    for password in ["one", "two", "three"] {
        let returned = Ok(Credentials::new(password));
        let used = played.connection.learn_credentials(returned, at(2));
        played.connection.log_in(used.unwrap(), at(2)).unwrap();
        if password == "one" {
            played.server.accept();
            played.made(at(2));
        }
    }
    played.flush(at(2));
    let login = |played: &mut Played, act: fn(&mut Login)| {
        act(played.connection.link.login.as_mut().unwrap());
        let accepted = played.connection.link.credentials().unwrap();
        accepted.password().to_owned()
    };
    assert_eq!(login(&mut played, Login::accepted), "one");
    assert_eq!(login(&mut played, Login::refused), "one");
    assert_eq!(login(&mut played, Login::accepted), "three");
}

#[test]
fn credentials_that_are_replaced_while_a_connection_is_being_made_are_never_sent() {
    let mut played = Played::awaiting_credentials();
    played.close(CLOSED_EARLY, at(1));
    for (password, used) in [("one", Use::Keep), ("two", Use::Replace)] {
        let returned = Ok(Credentials::new(password));
        let learned = played.connection.learn_credentials(returned, at(2));
        assert_eq!(learned, Ok(used));
        if used == Use::Keep {
            // What came too late for one connection is for the next one.
            played.connection.open(at(2)).unwrap();
        } else {
            played.connection.log_in(used, at(2)).unwrap();
        }
    }
    played.server.accept();
    played.made(at(2));
    let sent = played.server.received();
    let log_in = "*2\r\n$4\r\nAUTH\r\n$3\r\ntwo\r\n";
    assert!(sent.starts_with(log_in), "{sent}");
    assert_eq!(sent.matches("AUTH").count(), 1, "{sent}");
}
