//! What a session takes and keeps back, with a server of rustls on a real socket.

// Clippy allows it in test functions; here every function is part of a test.
#![allow(clippy::unwrap_used)]

use super::*;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{ServerConfig, ServerConnection};
use std::net::{TcpListener, TcpStream};

/// Both ends of a connection whose handshake has not begun.
struct Ends {
    session: TlsSession,
    stream: Stream,
    server: ServerConnection,
    socket: TcpStream,
}

impl Ends {
    fn new() -> Ends {
        let mut root = CertificateParams::new(Vec::new()).unwrap();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let (root_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let mut roots = Roots::new();
        roots.add_pem(root.self_signed(&root_key).unwrap().pem().as_bytes()).unwrap();
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &Issuer::new(root, root_key)).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = config.with_single_cert(vec![certificate.der().clone()], key).unwrap();

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = Stream::connect_tcp(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let session = TlsSettings::new(roots, None).unwrap().target("127.0.0.1").unwrap().begin().unwrap();
        Ends { session, stream, server: ServerConnection::new(Arc::new(config)).unwrap(), socket }
    }

    /// Lets both sides do what they can at once. Gives what the server has read.
    fn exchange(&mut self) -> Vec<u8> {
        let mut received = Vec::new();
        for _ in 0..100 {
            let _ = self.session.read(&self.stream, &mut [0; 100]);
            let _ = self.session.flush(&self.stream);
            while self.server.read_tls(&mut self.socket).is_ok_and(|count| count > 0) {
                self.server.process_new_packets().unwrap();
                let _ = self.server.reader().read_to_end(&mut received);
            }
            while self.server.wants_write() {
                self.server.write_tls(&mut self.socket).unwrap();
            }
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        received
    }
}

#[test]
fn nothing_is_taken_before_the_handshake_is_over() {
    let mut ends = Ends::new();
    assert!(would_block(&ends.session.write(&ends.stream, b"SET").unwrap_err()));
    assert!(ends.session.awaits_first_byte() && !ends.session.takes_bytes());
    assert!(ends.exchange().is_empty());
    assert!(ends.session.takes_bytes() && !ends.session.has_unsent());
    assert_eq!(ends.session.write(&ends.stream, b"SET").unwrap(), 3);
    assert_eq!(ends.exchange(), b"SET");
}

/// Some bytes stay with TLS when the socket takes no more. They count as written, because they may be sent at any time.
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
