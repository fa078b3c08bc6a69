//! A server that a unit test plays, at times that the test names, and what such tests share.

use super::interrupt::Interrupt;
use super::node_connection::NodeConnection;
use super::nodes::EngineConfig;
use crate::algorithm::incarnation::Rules;
use crate::algorithm::node::NodeId;
use crate::algorithm::quarantine::{Quarantine, RestartPolicy};
use crate::algorithm::time::{Clock, LeaseTime, Timestamp};
use crate::os::stream::would_block;
#[cfg(feature = "embedded-tls")]
use crate::os::tls::{Roots, TlsSettings};
use crate::os::transport::TransportConfig;
use crate::os::waker::Waker;
use crate::protocol::endpoint::Endpoint;
use crate::protocol::moved::NamedMaster;
use crate::protocol::session::Ticket;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// What servers report about themselves: their process, and whether they are masters.
pub(super) const SERVER: &str = concat!(
    "redis_version:7.0.15\r\nredis_mode:standalone\r\n",
    "run_id:0123456789012345678901234567890123456789",
);
pub(super) const MASTER: &str = concat!(
    "role:master\r\nmaster_replid:0123456789012345678901234567890123456789\r\n",
    "master_replid2:0000000000000000000000000000000000000000",
);
pub(super) const REPLICA: &str = "role:slave";

pub(super) fn at(millis: u64) -> Timestamp {
    Timestamp::ORIGIN.after(Duration::from_millis(millis))
}

pub(super) fn ticket(slot: u32) -> Ticket {
    Ticket {
        slot,
        generation: 0,
    }
}

pub(super) fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// The replies to a handshake by the process of this number, in this role.
pub(super) fn introduction(number: usize, role: &str) -> String {
    let server = SERVER.replace("run_id:0", &format!("run_id:{number}"));
    bulk(&server) + &bulk(role)
}

/// An interrupt of no driver.
pub(super) fn interrupt() -> Arc<Interrupt> {
    Arc::new(Interrupt::new(&Arc::new(Waker::new().unwrap())))
}

/// The configuration of an engine that never spins.
pub(super) fn config(rules: Rules, node_timeout: Duration) -> EngineConfig {
    EngineConfig {
        spin: Duration::ZERO,
        release_notifications: true,
        retention: Duration::ZERO,
        rules,
        node_timeout,
        provider: None,
        renewal: None,
        events: None,
    }
}

/// No connection yet to the node of this URL.
pub(super) fn closed(url: &str, node_timeout: Duration) -> NodeConnection {
    NodeConnection::new(
        NodeId::new(0),
        Endpoint::parse(url).unwrap(),
        TransportConfig::Plain,
        Quarantine::new(RestartPolicy::Off, Duration::ZERO),
        node_timeout,
        Arc::new(Waker::new().unwrap()),
    )
}

/// Protected by TLS, by a certificate of which no server has the key.
#[cfg(feature = "embedded-tls")]
pub(super) fn by_tls() -> TransportConfig {
    let root = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let mut roots = Roots::new();
    roots.add_pem(root.cert.pem().as_bytes()).unwrap();
    let settings = TlsSettings::new(roots, None).unwrap();
    TransportConfig::Tls(Arc::new(settings.target("127.0.0.1").unwrap()))
}

/// What `get` returns, within two seconds.
pub(super) fn soon<T>(mut get: impl FnMut() -> Option<T>) -> T {
    let found = (0..2000).find_map(|_| {
        let found = get();
        if found.is_none() {
            thread::sleep(Duration::from_millis(1));
        }
        found
    });
    found.expect("it does not happen")
}

/// A clock that does not advance.
pub(super) struct Stopped(pub(super) Timestamp);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        self.0
    }

    fn lease_now(&self) -> LeaseTime {
        LeaseTime::ORIGIN
    }
}

/// A server, with the connection that was made to it last.
pub(super) struct PlayedServer {
    pub(super) listener: TcpListener,
    pub(super) stream: Option<TcpStream>,
}

impl PlayedServer {
    pub(super) fn new() -> PlayedServer {
        PlayedServer {
            listener: TcpListener::bind(("127.0.0.1", 0)).unwrap(),
            stream: None,
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    pub(super) fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// The same server, for connections beside the one that it has.
    pub(super) fn beside(&self) -> PlayedServer {
        PlayedServer {
            listener: self.listener.try_clone().unwrap(),
            stream: None,
        }
    }

    /// This server, as another one names it.
    pub(super) fn as_master(&self) -> NamedMaster {
        let address = self.address();
        NamedMaster {
            host: address.ip().to_string(),
            port: address.port(),
        }
    }

    /// Another connection.
    pub(super) fn accept(&mut self) {
        self.stream = Some(self.listener.accept().unwrap().0);
    }

    pub(super) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let mut stream = self.stream.as_ref().unwrap();
        stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Replies to the handshake.
    pub(super) fn introduce(&mut self, number: usize, role: &str) {
        self.send(introduction(number, role));
    }

    /// What has arrived: something must have been sent.
    pub(super) fn received(&mut self) -> String {
        let mut received = vec![0; 1 << 16];
        let count = self.stream.as_ref().unwrap().read(&mut received).unwrap();
        String::from_utf8(received[..count].to_vec()).unwrap()
    }

    /// Whether nothing has arrived, and the connection is there.
    pub(super) fn has_received_nothing(&self) -> bool {
        let mut stream = self.stream.as_ref().unwrap();
        stream.set_nonblocking(true).unwrap();
        let is_silent = stream
            .read(&mut [0])
            .is_err_and(|error| would_block(&error));
        stream.set_nonblocking(false).unwrap();
        is_silent
    }

    /// Sends no more.
    pub(super) fn end(&mut self) {
        let stream = self.stream.as_ref().unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    }
}
