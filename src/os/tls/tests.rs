//! What a session takes and keeps back, with a server of rustls on a real socket.

// Clippy allows it in test functions; here every function is part of a test.
#![allow(clippy::unwrap_used)]

use super::*;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use rustls::{ServerConfig, ServerConnection};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// A client's clock, ahead by so many seconds.
#[derive(Debug, Default)]
struct Ahead(AtomicU64);

impl TimeProvider for Ahead {
    fn current_time(&self) -> Option<UnixTime> {
        let ahead = Duration::from_secs(self.0.load(Ordering::Relaxed));
        Some(UnixTime::since_unix_epoch(
            Duration::from_secs(UnixTime::now().as_secs()) + ahead,
        ))
    }
}

/// A node whose certificate is valid for an hour, and what its client knows of it.
struct Node {
    target: Arc<TlsTarget>,
    config: Arc<ServerConfig>,
    clock: Arc<Ahead>,
}

/// Both ends of a connection whose handshake has not begun.
struct Ends {
    session: TlsSession,
    stream: Stream,
    server: ServerConnection,
    socket: TcpStream,
}

impl Node {
    fn new() -> Node {
        let mut root = CertificateParams::new(Vec::new()).unwrap();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root_key = KeyPair::generate().unwrap();
        let key = KeyPair::generate().unwrap();
        let mut roots = Roots::new();
        roots
            .add_pem(root.self_signed(&root_key).unwrap().pem().as_bytes())
            .unwrap();
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.not_after =
            date_time_ymd(1970, 1, 1) + Duration::from_secs(UnixTime::now().as_secs()) + HOUR;
        let certificate = params
            .signed_by(&key, &Issuer::new(root, root_key))
            .unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = config
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let clock = Arc::new(Ahead::default());
        let mut settings = TlsSettings::new(roots, None).unwrap();
        settings.config.time_provider = Arc::clone(&clock) as Arc<dyn TimeProvider>;
        Node {
            target: Arc::new(settings.target("127.0.0.1").unwrap()),
            config: Arc::new(config),
            clock,
        }
    }

    /// A connection.
    fn connect(&self) -> Ends {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = Stream::connect_tcp(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let server = ServerConnection::new(Arc::clone(&self.config)).unwrap();
        Ends {
            session: self.target.begin().unwrap(),
            stream,
            server,
            socket,
        }
    }
}

impl Ends {
    fn new() -> Ends {
        Node::new().connect()
    }

    /// Lets both sides do what they can at once. Returns what the server has read.
    fn exchange(&mut self) -> Vec<u8> {
        let mut received = Vec::new();
        for _ in 0..100 {
            let _ = self.session.read(&self.stream, &mut [0; 100]);
            let _ = self.session.flush(&self.stream);
            while self
                .server
                .read_tls(&mut self.socket)
                .is_ok_and(|count| count > 0)
            {
                // An alert is an error as well.
                let _ = self.server.process_new_packets();
                let _ = self.server.reader().read_to_end(&mut received);
            }
            while self.server.wants_write() {
                self.server.write_tls(&mut self.socket).unwrap();
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        received
    }
}

#[test]
fn nothing_is_taken_before_the_handshake_is_over() {
    let mut ends = Ends::new();
    assert!(would_block(
        &ends.session.write(&ends.stream, b"SET").unwrap_err()
    ));
    assert!(ends.session.awaits_first_byte() && !ends.session.takes_bytes());
    assert!(ends.exchange().is_empty());
    assert!(ends.session.takes_bytes() && !ends.session.has_unsent());
    assert_eq!(ends.session.write(&ends.stream, b"SET").unwrap(), 3);
    assert_eq!(ends.exchange(), b"SET");
}

/// Some bytes stay with TLS when the socket takes no more. They count as written, because they may
/// be sent at any time.
#[test]
fn what_tls_has_taken_counts_as_written_and_goes_once() {
    let mut ends = Ends::new();
    ends.exchange();
    let mut taken = 0;
    let last = loop {
        match ends.session.write(&ends.stream, &[7; 50_000]) {
            Ok(count) => taken += count,
            Err(error) => break error,
        }
        assert!(taken < 1 << 30, "the socket takes all");
    };
    assert!(would_block(&last) && ends.session.has_unsent());
    let mut received = 0;
    while ends.session.has_unsent() {
        received += ends.exchange().len();
    }
    received += ends.exchange().len();
    assert_eq!(received, taken);
}

/// As the copy of it in a child made by `fork`.
#[test]
fn a_session_is_dropped_without_a_word() {
    let mut ends = Ends::new();
    ends.exchange();
    drop((ends.session, ends.stream));
    let mut bytes = Vec::new();
    ends.socket.set_nonblocking(false).unwrap();
    ends.socket.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, [0; 0]);
}

/// The certificate of a resumed session was checked when the session began.
#[test]
fn a_certificate_that_has_expired_since_resumes_no_session() {
    let node = Node::new();
    let connected = |expected| {
        let mut ends = node.connect();
        ends.exchange();
        assert_eq!(ends.session.connection.handshake_kind(), Some(expected));
        (ends.session.takes_bytes(), ends.session.failure)
    };
    assert_eq!(connected(HandshakeKind::Full), (true, None));
    assert_eq!(connected(HandshakeKind::Resumed), (true, None));
    node.clock.0.store(HOUR.as_secs() * 2, Ordering::Relaxed);
    let expired = Some(Cause::Tls(TlsError::CertificateExpired));
    assert_eq!(connected(HandshakeKind::Resumed), (false, expired));
    // No ticket is left that would keep a certificate that the node has got meanwhile from being
    // seen.
    assert_eq!(connected(HandshakeKind::Full), (false, expired));
}

/// A certificate for the host of the URL is none for a server that another one has named.
#[test]
fn a_server_that_was_named_needs_a_certificate_for_its_name() {
    let node = Node::new();
    let named = node.target.named("10.0.0.2");
    assert_eq!(named.name, ServerName::try_from("10.0.0.2").unwrap());
    assert_eq!(node.target.named("a..b").name, node.target.name);
}
