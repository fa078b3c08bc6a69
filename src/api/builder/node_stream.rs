//! A connection to one node that blocks, for what is no lock: `INFO`, `SCAN`, `TIME`.

use super::Builder;
use super::transports::transports;
use crate::engine::credentials::{Provider, called};
use crate::engine::node_connection::probe::Probe;
use crate::events::error::{Error, ErrorKind, NodeFault, Result, config_error};
use crate::fault::{Cause, Fault, Phase};
use crate::os::blocking::BlockingStream;
use crate::os::stream::{Stream, cause_of};
use crate::os::transport::TransportConfig;
use crate::protocol::command;
use crate::protocol::credentials::Credentials;
use crate::protocol::endpoint::{Address, Endpoint};
use crate::protocol::error_reply::ErrorReply;
use crate::protocol::moved::NamedMaster;
use crate::protocol::resp::{self, Reply};
use crate::protocol::server_info::ServerInfo;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::ToSocketAddrs;
use std::time::{Duration, Instant};

/// Part of the limit after which a server that is silent in the handshake of TLS is asked whether
/// it speaks TLS.
const PROBE_PART: u32 = 8;
/// How much of a reply is read at once.
const CHUNK: usize = 1 << 10;

/// A connection to a node that is logged in and serves its caller alone: [`Builder::open`] makes
/// it. `Read` and `Write` wait, each call for as long as `open` was allowed to. An error contains
/// the [`Cause`], for [`io::Error::get_ref`].
pub struct NodeStream(BlockingStream);

impl Builder {
    /// Connects to the node of this index and logs in, for what is no lock: the commands of the
    /// server in RESP. A replica in cluster mode leads to the master of its shard, as for locks.
    /// The limit counts for each step: for a connection to each address of the node, and for each
    /// reply.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// use quorumlock::Redlock;
    /// use std::{io::{Read, Write}, time::Duration};
    ///
    /// let mut stream = Redlock::builder().node(node.url()).open(0, Duration::from_secs(1))?;
    /// stream.write_all(b"*1\r\n$4\r\nPING\r\n")?;
    /// let mut reply = [0; 7];
    /// stream.read_exact(&mut reply)?;
    /// assert_eq!(&reply, b"+PONG\r\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config): no such node, or as for [`build`](Builder::build) of nodes,
    /// credentials and TLS. [`Unavailable`](ErrorKind::Unavailable), with one cause, which tells
    /// how far it came.
    pub fn open(&self, index: usize, timeout: Duration) -> Result<NodeStream> {
        let endpoints = self.endpoints()?;
        let transports = transports(self, &endpoints)?;
        let provider = self.provider(&endpoints)?;
        let (Some(endpoint), Some(transport)) = (endpoints.get(index), transports.get(index))
        else {
            return Err(config_error(format!("no node {index}")));
        };
        let address = endpoint.to_string();
        let opened = || {
            let mut node = Node {
                endpoint: endpoint.clone(),
                transport: transport.clone(),
                provider,
                timeout,
            };
            let mut stream = node.log_in()?;
            if let Some(master) = stream.master()? {
                node.lead_to(&master);
                stream = node.log_in()?;
            }
            Ok(stream)
        };
        opened().map_err(|fault| {
            let cause = NodeFault::new(address.clone(), fault);
            Error::new(ErrorKind::Unavailable, "cannot connect").with_causes_of(1, vec![cause])
        })
    }
}

/// Where to connect to, and how.
struct Node {
    endpoint: Endpoint,
    transport: TransportConfig,
    provider: Option<Provider>,
    timeout: Duration,
}

impl Node {
    /// To the master that one of its servers has named.
    fn lead_to(&mut self, master: &NamedMaster) {
        self.endpoint = self.endpoint.clone().at(master);
        if let Address::Tcp(host, _) = self.endpoint.address()
            && self.endpoint.server_name().is_none()
        {
            self.transport = self.transport.named(host);
        }
    }

    fn log_in(&self) -> Result<NodeStream, Fault> {
        let mut stream = NodeStream(self.connect()?);
        if let Some(credentials) = self.credentials()? {
            let login = |out: &mut Vec<u8>| {
                command::auth(out, credentials.user_name(), credentials.password());
            };
            stream.demand(login, Cause::Auth)?;
        }
        let database = self.endpoint.handshake().database;
        if database != 0 {
            stream.demand(|out| command::select(out, database), Cause::Database)?;
        }
        Ok(stream)
    }

    /// What to log in with: what the URL contains, or what the provider returns now.
    fn credentials(&self) -> Result<Option<Credentials>, Fault> {
        match (&self.endpoint.handshake().credentials, &self.provider) {
            (None, Some(provider)) => {
                let credentials = called(provider, &self.endpoint.to_string())
                    .map_err(|error| Fault::new(Phase::Handshake, Cause::Credentials(error)))?;
                Ok(Some(credentials.or_user(self.endpoint.user())))
            }
            (credentials, _) => Ok(credentials.clone()),
        }
    }

    fn connect(&self) -> Result<BlockingStream, Fault> {
        let (host, port) = match self.endpoint.address() {
            Address::Tcp(host, port) => (host.as_str(), *port),
            Address::Unix(path) => return self.protect(Stream::connect_unix(path), || None),
        };
        let mut last = Fault::new(Phase::Resolve, Cause::UnknownHost);
        for address in (host, port).to_socket_addrs().map_err(|_| last)? {
            let connect = || Stream::connect_tcp(address);
            match self.protect(connect(), || connect().ok()) {
                Ok(stream) => return Ok(stream),
                Err(fault) => last = fault,
            }
        }
        Err(last)
    }

    /// With TLS where the URL requires it. Another connection shows whether the server speaks it.
    fn protect(
        &self,
        stream: io::Result<Stream>,
        another: impl Fn() -> Option<Stream>,
    ) -> Result<BlockingStream, Fault> {
        let mut probe = Probe::NotBegun;
        let mut phase = Phase::Connect;
        let is_hopeless = |silent: Duration| {
            phase = Phase::Handshake;
            if matches!(probe, Probe::NotBegun) && silent >= self.timeout / PROBE_PART {
                probe = Probe::by_ping(another());
            }
            probe.advance()
        };
        let opened = stream.and_then(|stream| {
            BlockingStream::open(stream, &self.transport, self.timeout, is_hopeless)
        });
        match opened {
            Ok(Some(stream)) => Ok(stream),
            Ok(None) => Err(Fault::new(Phase::Handshake, Cause::NotTls)),
            Err(error) => Err(Fault::new(phase, cause_of(&error))),
        }
    }
}

impl NodeStream {
    /// Asks a command that must be accepted; an error that tells nothing else has this cause.
    fn demand(&mut self, write: impl FnOnce(&mut Vec<u8>), cause: Cause) -> Result<(), Fault> {
        let refusal = self.ask(write, |reply| match reply {
            Reply::Error(text) => Some(ErrorReply::read(text).cause),
            _ => None,
        })?;
        match refusal {
            None => Ok(()),
            Some(known @ (Cause::Loading | Cause::NoPermission | Cause::TooManyClients)) => {
                Err(Fault::new(Phase::Handshake, known))
            }
            Some(_) => Err(Fault::new(Phase::Handshake, cause)),
        }
    }

    /// The master of the only shard, if this server is another one of it.
    fn master(&mut self) -> Result<Option<NamedMaster>, Fault> {
        // No lock needs this key; any would do.
        let any_key = |out: &mut Vec<u8>| resp::encode(out, &[b"GET", b"quorumlock-node:"]);
        let named = self.ask(any_key, |reply| match reply {
            Reply::Error(text) => NamedMaster::read(text),
            _ => None,
        })?;
        if named.is_none() {
            return Ok(None);
        }
        let has_only_shard = self.ask(command::cluster_info, |reply| {
            let mut server = ServerInfo::default();
            if let Reply::Bulk(Some(section)) = reply {
                server.learn(section);
            }
            server.has_only_shard()
        })?;
        Ok(named.filter(|_| has_only_shard))
    }

    fn ask<T>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>),
        read: impl FnOnce(Reply<'_>) -> T,
    ) -> Result<T, Fault> {
        let failed = |cause| Fault::new(Phase::Reply, cause);
        let mut command = Vec::new();
        write(&mut command);
        let written = self.0.write_all(&command);
        written.map_err(|error| failed(cause_of(&error)))?;
        let mut bytes = Vec::new();
        let mut chunk = [0; CHUNK];
        let begun = Instant::now();
        loop {
            let decoded = resp::decode(&bytes);
            if let Some((reply, _)) = decoded.map_err(|_| failed(Cause::Protocol))? {
                return Ok(read(reply));
            }
            match self.0.read(&mut chunk) {
                Ok(0) => return Err(failed(Cause::Closed)),
                Ok(_) if begun.elapsed() > self.0.timeout => return Err(failed(Cause::TimedOut)),
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
                Err(error) => return Err(failed(cause_of(&error))),
            }
        }
    }
}

impl Read for NodeStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(with_cause)
    }
}

impl Write for NodeStream {
    /// Writes all of it.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(bytes).map_err(with_cause)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for NodeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeStream").finish_non_exhaustive()
    }
}

fn with_cause(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), cause_of(&error))
}
