//! Nodes as the command line asks them: by connections of its own, which block. What they ask is no
//! lock: `INFO`, `SCAN`, `TIME`.

use super::Builder;
use super::transports::transports;
use crate::engine::credentials::{Provider, called};
use crate::engine::node_connection::probe::Probe;
use crate::events::error::Result;
use crate::fault::credentials_error::CredentialsError;
use crate::fault::{Cause, Fault, Phase};
use crate::os::blocking::BlockingStream;
use crate::os::stream::{Stream, cause_of};
use crate::os::transport::TransportConfig;
use crate::protocol::credentials::Credentials;
use crate::protocol::endpoint::{Address, Endpoint};
use crate::protocol::moved::NamedMaster;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// Part of the limit after which a server that is silent in the handshake of TLS is asked whether
/// it speaks TLS.
const PROBE_PART: u32 = 8;

/// A node, and how connections to it are protected.
pub struct NodeTarget {
    endpoint: Endpoint,
    transport: TransportConfig,
    provider: Option<Provider>,
}

/// A connection to a node, before the log-in.
pub struct NodeStream(BlockingStream);

impl Builder {
    /// The nodes, in the order in which they are named.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config): as for [`build`](Builder::build), of nodes and TLS.
    #[doc(hidden)]
    pub fn targets(&self) -> Result<Vec<NodeTarget>> {
        let endpoints = self.endpoints()?;
        let transports = transports(self, &endpoints)?;
        let provider = self.provider(&endpoints)?;
        let target = |(endpoint, transport)| NodeTarget {
            endpoint,
            transport,
            provider: provider.clone(),
        };
        Ok(endpoints.into_iter().zip(transports).map(target).collect())
    }
}

impl NodeTarget {
    /// Where the node is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The same node, at the master that one of its servers has named.
    #[must_use]
    pub fn at(&self, master: &NamedMaster) -> NodeTarget {
        let endpoint = self.endpoint.clone().at(master);
        let transport = match endpoint.address() {
            Address::Tcp(host, _) if endpoint.server_name().is_none() => self.transport.named(host),
            _ => self.transport.clone(),
        };
        NodeTarget {
            endpoint,
            transport,
            provider: self.provider.clone(),
        }
    }

    /// What to log in with, if anything: what the URL contains, or what the provider returns now.
    ///
    /// # Errors
    /// Why the provider returns nothing.
    pub fn credentials(&self) -> Result<Option<Credentials>, CredentialsError> {
        match (&self.endpoint.handshake().credentials, &self.provider) {
            (Some(credentials), _) => Ok(Some(credentials.clone())),
            (None, Some(provider)) => {
                let credentials = called(provider, &self.endpoint.to_string())?;
                Ok(Some(credentials.or_user(self.endpoint.user())))
            }
            (None, None) => Ok(None),
        }
    }

    /// Connects, with TLS where the URL requires it. The limit counts for each address of the node,
    /// and for each call of the connection.
    ///
    /// # Errors
    /// How far it came, and why no farther.
    pub fn connect(&self, timeout: Duration) -> Result<NodeStream, Fault> {
        let (host, port) = match self.endpoint.address() {
            Address::Tcp(host, port) => (host.as_str(), *port),
            Address::Unix(path) => return self.open(Stream::connect_unix(path), timeout, || None),
        };
        let mut last = Fault::new(Phase::Resolve, Cause::UnknownHost);
        for address in (host, port).to_socket_addrs().map_err(|_| last)? {
            match self.open(Stream::connect_tcp(address), timeout, || {
                Stream::connect_tcp(address).ok()
            }) {
                Ok(stream) => return Ok(stream),
                Err(fault) => last = fault,
            }
        }
        Err(last)
    }

    /// Where the host name leads to; nothing for a Unix domain socket, or if it is unknown.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        match self.endpoint.address() {
            Address::Tcp(host, port) => (host.as_str(), *port)
                .to_socket_addrs()
                .map(Iterator::collect),
            Address::Unix(_) => Ok(Vec::new()),
        }
        .unwrap_or_default()
    }

    fn open(
        &self,
        stream: io::Result<Stream>,
        timeout: Duration,
        another: impl Fn() -> Option<Stream>,
    ) -> Result<NodeStream, Fault> {
        let mut probe = Probe::NotBegun;
        let mut phase = Phase::Connect;
        let is_hopeless = |silent: Duration| {
            phase = Phase::Handshake;
            if matches!(probe, Probe::NotBegun) && silent >= timeout / PROBE_PART {
                probe = Probe::by_ping(another());
            }
            probe.advance()
        };
        let opened = stream
            .and_then(|stream| BlockingStream::open(stream, &self.transport, timeout, is_hopeless));
        match opened {
            Ok(Some(stream)) => Ok(NodeStream(stream)),
            Ok(None) => Err(Fault::new(Phase::Handshake, Cause::NotTls)),
            Err(error) => Err(Fault::new(phase, cause_of(&error))),
        }
    }
}

impl NodeStream {
    /// Reads what comes next; 0 bytes mean that the node has closed the connection.
    ///
    /// # Errors
    /// The connection has failed, or the time is up.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Cause> {
        self.0.read(buffer).map_err(|error| cause_of(&error))
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// As [`read`](NodeStream::read).
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<(), Cause> {
        self.0.write_all(bytes).map_err(|error| cause_of(&error))
    }
}
