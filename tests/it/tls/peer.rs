//! A peer that ends TLS before a real server, and cuts what that one answers into records as a test
//! requires.

use super::*;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::io::{ErrorKind, Read, Write};

/// How long a second reply is waited for that goes with the first.
const TOGETHER: Duration = Duration::from_millis(1);

/// How replies become records, and records segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Each segment has one byte.
    Bytes,
    /// The end of TLS goes with the first grant, and the end of the stream does not.
    Ends,
    /// A record that was not encrypted takes the place of the first reply to a release.
    Forged,
    /// A `KeyUpdate` goes alone before each reply, and another one behind it. Each asks for one of
    /// the client.
    KeyUpdates,
    /// Each reply takes this many records, if it has so many bytes.
    Pieces(usize),
    /// Two replies share a record.
    Together,
}

/// A record of application data.
const FORGED: [u8; 29] = [
    23, 3, 3, 0, 24, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6,
];

/// What a peer has seen of its clients.
#[derive(Default)]
pub(super) struct Seen {
    /// What ended a connection, as rustls reports it.
    pub(super) errors: Guarded<Vec<String>>,
    is_once: AtomicBool,
    /// Records with more than one reply.
    pub(super) shared: AtomicUsize,
}

impl Seen {
    /// Whether what happens once has happened.
    pub(super) fn has_happened(&self) -> bool {
        self.is_once.load(Ordering::Relaxed)
    }
}

/// A listening peer. Its threads end with their connections, or the process.
pub(super) struct Peer {
    port: u16,
    pub(super) seen: Arc<Seen>,
}

/// One connection.
struct Wire {
    cut: Cut,
    tls: Guarded<ServerConnection>,
    client: TcpStream,
    server: TcpStream,
    seen: Arc<Seen>,
}

impl Peer {
    /// Shows the certificate `node`, and leads to this port of 127.0.0.1.
    pub(super) fn before(server: u16, authority: &Authority, cut: Cut) -> Peer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::<Seen>::default();
        let config = config(authority);
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else {
                    continue;
                };
                [&client, &server]
                    .into_iter()
                    .for_each(|stream| stream.set_nodelay(true).unwrap());
                let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
                let tls = Guarded::new(tls);
                let seen = Arc::clone(&shared);
                let wire = Arc::new(Wire {
                    cut,
                    tls,
                    client,
                    server,
                    seen,
                });
                let same = Arc::clone(&wire);
                thread::spawn(move || same.pass_requests());
                thread::spawn(move || wire.pass_replies());
            }
        });
        Peer { port, seen }
    }

    pub(super) fn url(&self) -> String {
        format!("rediss://127.0.0.1:{}", self.port)
    }
}

/// The settings of a server with the certificate `node`.
pub(super) fn config(authority: &Authority) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let certificate = CertificateDer::from_pem_slice(&authority.read("node.crt")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(&authority.read("node.key")).unwrap();
    Arc::new(
        config
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap(),
    )
}

impl Wire {
    fn pass_requests(&self) {
        let mut bytes = [0; 16 * 1024];
        while let Ok(count @ 1..) = (&self.client).read(&mut bytes) {
            let mut tls = self.tls.lock().unwrap();
            let connection = &mut *tls;
            let mut rest = &bytes[..count];
            let mut requests = Vec::new();
            while !rest.is_empty() {
                connection.read_tls(&mut rest).unwrap();
                if let Err(error) = connection.process_new_packets() {
                    self.seen.errors.lock().unwrap().push(error.to_string());
                }
                // An error means that there is no more.
                let _ = connection.reader().read_to_end(&mut requests);
            }
            self.send(connection);
            drop(tls);
            if (&self.server).write_all(&requests).is_err() {
                break;
            }
        }
        self.close();
    }

    fn pass_replies(&self) {
        let mut replies = Vec::new();
        let mut bytes = [0; 16 * 1024];
        loop {
            let whole = whole_replies(&replies);
            let is_enough = whole.len() > if self.cut == Cut::Together { 1 } else { 0 };
            let patience = if whole.is_empty() {
                None
            } else {
                Some(TOGETHER)
            };
            if !is_enough {
                self.server.set_read_timeout(patience).unwrap();
                match (&self.server).read(&mut bytes) {
                    Ok(count @ 1..) => {
                        replies.extend_from_slice(&bytes[..count]);
                        continue;
                    }
                    Err(error)
                        if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                    }
                    _ => return self.close(),
                }
            }
            self.pass(&replies, &whole);
            replies.drain(..whole.last().copied().unwrap_or_default());
        }
    }

    /// Sends the replies that end there.
    fn pass(&self, replies: &[u8], ends: &[usize]) {
        let mut begin = 0;
        if self.cut == Cut::Together {
            for pair in ends.chunks(2) {
                self.seen
                    .shared
                    .fetch_add(pair.len() - 1, Ordering::Relaxed);
                let end = pair[pair.len() - 1];
                self.send_record(&replies[begin..end]);
                begin = end;
            }
            return;
        }
        for &end in ends {
            let reply = &replies[begin..end];
            begin = end;
            match self.cut {
                Cut::KeyUpdates => {
                    let mut tls = self.tls.lock().unwrap();
                    tls.refresh_traffic_keys().unwrap();
                    self.send(&mut tls);
                    // The client reads it alone.
                    thread::sleep(TOGETHER);
                    tls.writer().write_all(reply).unwrap();
                    tls.refresh_traffic_keys().unwrap();
                    self.send(&mut tls);
                }
                Cut::Pieces(count) => reply
                    .chunks(reply.len().div_ceil(count))
                    .for_each(|piece| self.send_record(piece)),
                Cut::Forged
                    if reply == b":1\r\n" && !self.seen.is_once.swap(true, Ordering::Relaxed) =>
                {
                    (&self.client).write_all(&FORGED).unwrap();
                }
                Cut::Ends
                    if reply == b"+OK\r\n" && !self.seen.is_once.swap(true, Ordering::Relaxed) =>
                {
                    let mut tls = self.tls.lock().unwrap();
                    tls.writer().write_all(reply).unwrap();
                    tls.send_close_notify();
                    self.send(&mut tls);
                }
                Cut::Bytes | Cut::Ends | Cut::Forged | Cut::Together => self.send_record(reply),
            }
        }
    }

    fn send_record(&self, plaintext: &[u8]) {
        let mut tls = self.tls.lock().unwrap();
        tls.writer().write_all(plaintext).unwrap();
        self.send(&mut tls);
    }

    fn send(&self, connection: &mut ServerConnection) {
        let mut bytes = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut bytes).unwrap();
        }
        let size = if self.cut == Cut::Bytes {
            1
        } else {
            bytes.len().max(1)
        };
        // A client that is gone shows where it is read from.
        let _ = bytes
            .chunks(size)
            .try_for_each(|piece| (&self.client).write_all(piece));
    }

    fn close(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

/// Where each whole reply at the beginning of these bytes ends.
fn whole_replies(bytes: &[u8]) -> Vec<usize> {
    let ends = std::iter::successors(Some(0), |&begin| reply_end(bytes, begin));
    ends.skip(1).collect()
}

/// Where the reply ends that begins there.
fn reply_end(bytes: &[u8], begin: usize) -> Option<usize> {
    let line = bytes.get(begin..)?;
    let length = line.windows(2).position(|pair| pair == b"\r\n")?;
    let number = || {
        std::str::from_utf8(&line[1..length])
            .unwrap()
            .parse::<i64>()
            .unwrap()
    };
    let end = begin + length + 2;
    match line[0] {
        b'$' if number() >= 0 => {
            Some(end + number() as usize + 2).filter(|&end| end <= bytes.len())
        }
        b'*' => (0..number()).try_fold(end, |end, _| reply_end(bytes, end)),
        _ => Some(end),
    }
}
