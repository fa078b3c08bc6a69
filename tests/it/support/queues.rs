//! The queues of locks on a server, and the channels of those that wait.

use crate::prelude::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// What is in front of the key of a lock, in the key of its queue.
const QUEUE: &str = "quorumlock-queue:";
/// What is in front of the id of a client, in the name of its channel.
const CHANNEL: &str = "quorumlock:";
/// Long enough for what is to be removed without a thread that waits for it.
const SOON: Duration = Duration::from_secs(10);

/// The entries in the queue of the lock with this key, in their order.
pub(crate) fn entries(server: &Server, lock: &str) -> Vec<String> {
    texts(server, &["ZRANGE", &(QUEUE.to_owned() + lock), "0", "-1"])
}

/// How many entries are in the queue of the lock with this key.
pub(crate) fn count(server: &Server, lock: &str) -> usize {
    match server
        .command(&["ZCARD", &(QUEUE.to_owned() + lock)])
        .unwrap()
    {
        Answer::Number(number) => number as usize,
        answer => panic!("{answer:?}"),
    }
}

/// Waits until each server has so many entries in the queue of this lock.
#[track_caller]
pub(crate) fn has_entries<'s>(
    servers: impl IntoIterator<Item = &'s Server> + Clone,
    lock: &str,
    expected: usize,
) {
    let found = || {
        servers
            .clone()
            .into_iter()
            .map(|server| entries(server, lock))
            .collect::<Vec<_>>()
    };
    assert!(
        eventually(SOON, || found().iter().all(|found| found.len() == expected)),
        "{:?}, not {expected}",
        found()
    );
}

/// Stores an entry of this client with this ticket, as if a call of a plain or fair lock had.
pub(crate) fn forge(server: &Server, lock: &str, client: &str, ticket: &str) {
    forge_member(server, lock, &format!("{client}m:7"), ticket);
}

/// Stores this member of a queue.
pub(crate) fn forge_member(server: &Server, lock: &str, member: &str, ticket: &str) {
    let answer = server
        .command(&["ZADD", &(QUEUE.to_owned() + lock), ticket, member])
        .unwrap();
    assert!(matches!(answer, Answer::Number(_)), "{answer:?}");
}

/// Waits until no server has any entry, in the queue of any lock.
#[track_caller]
pub(crate) fn no_entry_stays<'s>(servers: impl IntoIterator<Item = &'s Server> + Clone) {
    let queues = || {
        let of_server = |server| {
            let keys = texts(server, &["KEYS", "quorumlock-queue:*"]).into_iter();
            keys.map(|key| (server.port(), entries(server, &key[QUEUE.len()..])))
        };
        servers
            .clone()
            .into_iter()
            .flat_map(of_server)
            .collect::<Vec<_>>()
    };
    assert!(
        eventually(SOON, || queues().is_empty()),
        "entries stay: {:?}",
        queues()
    );
}

/// Has releases, which do that, remove the entries that are dead, until no server has any. One is
/// alive until its server has noticed that its client is gone.
#[track_caller]
pub(crate) fn no_entry_stays_behind<'s>(
    servers: impl IntoIterator<Item = &'s Server> + Clone,
    mut release: impl FnMut(),
) {
    let is_empty = |server: &Server| texts(server, &["KEYS", "quorumlock-queue:*"]).is_empty();
    let are_empty = || eventually(SOON / 20, || servers.clone().into_iter().all(is_empty));
    let is_done = || {
        release();
        are_empty()
    };
    if !eventually(SOON, is_done) {
        no_entry_stays(servers);
    }
}

/// The channels of clients that a server has.
pub(crate) fn channels(server: &Server) -> Vec<String> {
    texts(server, &["PUBSUB", "CHANNELS", "quorumlock:*"])
}

/// Waits until each server has so many channels of clients.
#[track_caller]
pub(crate) fn has_channels<'s>(
    servers: impl IntoIterator<Item = &'s Server> + Clone,
    expected: usize,
) {
    let found = || {
        servers
            .clone()
            .into_iter()
            .map(|server| channels(server).len())
            .collect::<Vec<_>>()
    };
    assert!(
        eventually(SOON, || found().iter().all(|&found| found == expected)),
        "{:?}, not {expected}",
        found()
    );
}

/// How many connections of subscribers a server has.
pub(crate) fn subscribers(server: &Server) -> usize {
    connections(server, &["TYPE", "pubsub"]).len()
}

/// The lines of `CLIENT LIST`: one for each connection that these words select.
pub(crate) fn connections(server: &Server, which: &[&str]) -> Vec<String> {
    let list = server.text(&[&["CLIENT", "LIST"], which].concat());
    list.lines().map(str::to_owned).collect()
}

/// Cuts all connections of subscribers.
pub(crate) fn cut_subscribers(server: &Server) {
    server
        .command(&["CLIENT", "KILL", "TYPE", "pubsub"])
        .unwrap();
}

/// A connection that is subscribed to a channel, or to a pattern, and is not read from then on.
pub(crate) struct Stranger {
    _stream: Box<dyn ReadWrite>,
}

trait ReadWrite: Read + Write + Send {}

impl<S: Read + Write + Send> ReadWrite for S {}

impl Stranger {
    /// Subscribes to the channel of a client: it looks alive.
    pub(crate) fn on_channel_of(server: &Server, client: &str) -> Stranger {
        Stranger::subscribe(server, &format!("SUBSCRIBE {CHANNEL}{client}\r\n"))
    }

    /// Subscribes to all channels: all clients look alive.
    pub(crate) fn on_all(server: &Server) -> Stranger {
        Stranger::subscribe(server, "PSUBSCRIBE *\r\n")
    }

    fn subscribe(server: &Server, request: &str) -> Stranger {
        // A server that listens by TLS has a socket as well.
        let mut stream: Box<dyn ReadWrite> = match server.socket() {
            Some(path) => Box::new(UnixStream::connect(path).unwrap()),
            None => Box::new(TcpStream::connect(server.address()).unwrap()),
        };
        stream.write_all(request.as_bytes()).unwrap();
        assert!(stream.read(&mut [0; 256]).unwrap() > 0, "it is confirmed");
        Stranger { _stream: stream }
    }
}

fn texts(server: &Server, words: &[&str]) -> Vec<String> {
    let list = match server.command(words).unwrap() {
        Answer::List(list) => list,
        // Of another type it has no entries.
        Answer::Error(error) if error.starts_with("WRONGTYPE") => Vec::new(),
        answer => panic!("{words:?}: {answer:?}"),
    };
    let text = |answer| {
        if let Answer::Text(text) = answer {
            text
        } else {
            panic!("{answer:?}")
        }
    };
    list.into_iter().map(text).collect()
}
