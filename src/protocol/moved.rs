//! The master that a replica names, in cluster mode: `-MOVED slot host:port`.

use super::host::{is_host, write_address};
use core::net::SocketAddr;
use std::fmt;

/// Where the master of a shard listens, as one of its servers has named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedMaster {
    /// A host name or an IP address. Empty: the host of the server that has named it.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl NamedMaster {
    /// What this error reply names, if it redirects to another server.
    pub fn read(error: &[u8]) -> Option<NamedMaster> {
        let text = std::str::from_utf8(error.strip_prefix(b"MOVED ")?).ok()?;
        let (_slot, address) = text.split_once(' ')?;
        // An IPv6 address has no brackets here.
        let (host, port) = address.rsplit_once(':')?;
        let port = port.parse().ok().filter(|&port| port != 0)?;
        is_host(host).then(|| NamedMaster {
            host: host.to_owned(),
            port,
        })
    }

    /// Its address, unless that is a host name.
    pub fn address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.host.parse().ok()?, self.port))
    }
}

/// As an operator would write it.
impl fmt::Display for NamedMaster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_address(f, &self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_master_is_named_by_host_and_port() {
        for (error, expected) in [
            ("MOVED 3999 127.0.0.1:6381", Some(("127.0.0.1", 6381))),
            ("MOVED 0 ::1:6381", Some(("::1", 6381))),
            (
                "MOVED 16383 redis-1.example.com:6379",
                Some(("redis-1.example.com", 6379)),
            ),
            ("MOVED 3999 :6380", Some(("", 6380))),
            ("MOVED 3999 ?:6380", None),
            ("MOVED 3999 host:0", None),
            ("MOVED 3999 host:65536", None),
            ("MOVED 3999 host", None),
            ("MOVED 3999", None),
            ("MOVED 3999 a/b@c:1", None),
            ("ASK 3999 127.0.0.1:6381", None),
            ("READONLY no", None),
        ] {
            let named = NamedMaster::read(error.as_bytes());
            let named = named.as_ref().map(|named| (&*named.host, named.port));
            assert_eq!(named, expected, "{error}");
        }
    }
}
