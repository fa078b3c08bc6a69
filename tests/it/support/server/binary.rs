//! Which programs and which ports servers run on.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::PathBuf;

/// Names the server to use, instead of what the PATH has.
const BINARY_VARIABLE: &str = "QUORUMLOCK_REDIS_SERVER";
/// Names further servers, separated by colons, for tests that compare versions.
const BINARIES_VARIABLE: &str = "QUORUMLOCK_SERVERS";
/// The ports of servers. Linux assigns ports above 32 768 to connections: so a server in cluster
/// mode, which also binds its port plus 10 000, finds both free.
const PORTS: Range<u16> = 10_240..22_240;

/// The server to test with: `QUORUMLOCK_REDIS_SERVER`, else `redis-server` or `valkey-server` on
/// the PATH.
pub fn find_binary() -> io::Result<PathBuf> {
    if let Some(binary) = std::env::var_os(BINARY_VARIABLE).map(PathBuf::from) {
        let problem = || {
            missing(format!(
                "{BINARY_VARIABLE} names {}, which is not a file",
                binary.display()
            ))
        };
        return if binary.is_file() {
            Ok(binary)
        } else {
            Err(problem())
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    for name in ["redis-server", "valkey-server"] {
        if let Some(binary) = std::env::split_paths(&path)
            .map(|folder| folder.join(name))
            .find(|file| file.is_file())
        {
            return Ok(binary);
        }
    }
    Err(missing(format!(
        "neither redis-server nor valkey-server is on the PATH: install one (Debian, Ubuntu: `apt-get install \
         redis-server`; macOS: `brew install redis`), or set {BINARY_VARIABLE} to the path of one"
    )))
}

/// Every server to test with: the usual one, then those of `QUORUMLOCK_SERVERS`.
pub fn binaries() -> io::Result<Vec<PathBuf>> {
    let further = std::env::var_os(BINARIES_VARIABLE).unwrap_or_default();
    let mut all = vec![find_binary()?];
    for path in std::env::split_paths(&further).filter(|path| !path.as_os_str().is_empty()) {
        if !path.is_file() {
            return Err(missing(format!(
                "{BINARIES_VARIABLE} names {}, which is not a file",
                path.display()
            )));
        }
        all.push(path);
    }
    Ok(all)
}

fn missing(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, message)
}

/// A port of 127.0.0.1 that no program uses at this moment, and that no connection of a program
/// gets: a server that is started later finds it free.
pub fn free_port() -> io::Result<u16> {
    loop {
        let draw = RandomState::new().hash_one(()) % PORTS.len() as u64;
        let port = PORTS.start + draw as u16;
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
    }
}
