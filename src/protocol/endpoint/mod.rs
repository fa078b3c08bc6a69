//! Where a node is and how to log in there, from a URL.
//!
//! ```text
//!   redis://[user:password@]host[:port][/database][?parameters]
//!   rediss://…                                                    the same, by TLS
//!   unix://[user:password@]path[?parameters]
//!
//!   parameters: db=database, durable=true or false, and for rediss:// server_name=host, with & between them
//! ```
//!
//! User, password and path may be percent-encoded. A password without a user is written
//! `redis://:password@host`. Errors never quote the URL, because the password is in it. Neither
//! `Debug` nor `Display` shows the password.

use crate::protocol::credentials::Credentials;
use crate::protocol::handshake::Handshake;
use crate::protocol::host::{is_host, write_address};
use crate::protocol::moved::NamedMaster;
use std::fmt::{self, Write as _};
use std::path::PathBuf;

/// The port of a URL that names none.
const DEFAULT_PORT: u16 = 6379;

/// One node's address and log-in.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    address: Address,
    is_tls: bool,
    handshake: Handshake,
    user: Option<String>,
    durable: Option<bool>,
    server_name: Option<String>,
}

/// Where to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host name or IP address, and a port.
    Tcp(String, u16),
    /// A Unix domain socket.
    Unix(PathBuf),
}

/// Why a URL does not name a node. Never quotes the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointError {
    /// `%` without two hexadecimal digits after it, or bytes that are not UTF-8.
    BadEncoding,
    /// The database is not a number.
    BadDatabase,
    /// `durable=` with something other than `true` or `false`.
    BadDurable,
    /// The host name or IPv6 address is malformed.
    BadHost,
    /// The port is not a number from 1 to 65535.
    BadPort,
    /// `server_name=` with something that is no host name or IP address.
    BadServerName,
    /// A blank, a line break or another control character.
    Blank,
    /// No host before the port or the path.
    NoHost,
    /// No path after `unix://`.
    NoPath,
    /// A user without a password, which nothing else names.
    NoPassword,
    /// Something other than `redis://`, `rediss://` or `unix://`.
    NoScheme,
    /// A parameter that is given twice, or `db=` behind a path that is a database.
    RepeatedParameter,
    /// `server_name=` of a node that is not reached by TLS.
    ServerNameWithoutTls,
    /// `rediss://`, and this build has no TLS: the feature `tls` is off.
    Tls,
    /// A character that ends the host, which must be percent-encoded in a user or password: `#`,
    /// `/` or `?`.
    Unencoded(char),
    /// A parameter after `?` other than `db=`, `durable=` and `server_name=`.
    UnknownParameter,
    /// A scheme of some other kind of Redis: cluster, sentinel.
    UnsupportedScheme,
    /// Unix domain sockets, on a system that has none.
    #[cfg_attr(unix, allow(dead_code, reason = "only other systems refuse them"))]
    UnixUnsupported,
}

impl Endpoint {
    /// Reads a node's URL.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(url: &str) -> Result<Endpoint, EndpointError> {
        if url.contains(|character: char| character.is_whitespace() || character.is_control()) {
            return Err(EndpointError::Blank);
        }
        let (scheme, rest) = url.split_once("://").ok_or(EndpointError::NoScheme)?;
        if let Some(character) = unencoded(rest, scheme != "unix") {
            return Err(EndpointError::Unencoded(character));
        }
        match scheme {
            "redis" | "valkey" => parse_rest(rest, false, false),
            "rediss" | "valkeys" if cfg!(feature = "tls") => parse_rest(rest, true, false),
            "unix" if cfg!(unix) => parse_rest(rest, false, true),
            "unix" => Err(EndpointError::UnixUnsupported),
            "rediss" | "valkeys" => Err(EndpointError::Tls),
            _ if scheme.starts_with("redis") => Err(EndpointError::UnsupportedScheme),
            _ => Err(EndpointError::NoScheme),
        }
    }

    /// Where to connect to.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The same at the address of this master.
    #[must_use]
    pub fn at(mut self, master: &NamedMaster) -> Endpoint {
        if let Address::Tcp(host, port) = &mut self.address {
            *port = master.port;
            if !master.host.is_empty() {
                host.clone_from(&master.host);
            }
        }
        self
    }

    /// Whether to connect by TLS.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// What to send first.
    pub fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    /// The user, where the URL contains one and no password.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// What the URL declares about durability.
    pub fn durable(&self) -> Option<bool> {
        self.durable
    }

    /// The name that the certificate must be for, if it is not the host.
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// Has connections look at what the node remembers under this key: behind each vote if so, or
    /// once a second.
    #[must_use]
    pub fn look_at(mut self, node_key: String, behind_votes: bool) -> Endpoint {
        self.handshake.node_key = Some(node_key);
        self.handshake.looks_behind_votes = behind_votes;
        self
    }

    /// Declares the node durable, so that the handshake looks for a contradiction.
    #[must_use]
    pub fn check_durability(mut self) -> Endpoint {
        self.handshake.checks_durability = true;
        self
    }
}

/// The address alone, as an operator would write it.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Tcp(host, port) => write_address(f, host, *port),
            Address::Unix(path) => {
                f.write_str("unix:")?; // A line break in a path must not become one in a log.
                path.to_string_lossy().chars().try_for_each(|character| {
                    match character.is_control() {
                        true => write!(f, "{}", character.escape_default()),
                        false => f.write_char(character),
                    }
                })
            }
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unencoded(character) => {
                let code = u32::from(*character);
                let place = "in a user or password write it as";
                return write!(f, "a {character} that is not part of a URL; {place} %{code:02X}");
            }
            Self::BadEncoding => "malformed percent-encoding; write % as %25 in a user, password or path",
            Self::BadDatabase => "the database must be a number, as in redis://host:6379/2",
            Self::BadDurable => "durable takes true or false, as in redis://host:6379?durable=true",
            Self::BadHost => {
                "malformed host; an IPv6 address stands in brackets, a special character in a \
                password is percent-encoded"
            }
            Self::BadPort => "the port must be a number from 1 to 65535",
            Self::BadServerName => {
                "server_name takes a host name or IP address, as in ?server_name=redis-1.example.com"
            }
            Self::Blank => "a blank or line break in the URL; in a user, password or path write a blank as %20",
            Self::NoHost => "no host; write redis://host:port",
            Self::NoPath => "no path; write unix:///path/to/socket",
            Self::NoPassword => "a user without a password; write redis://user:password@host",
            Self::NoScheme => "not a node URL; write redis://host:port, rediss://host:port or unix:///path/to/socket",
            Self::Tls => "rediss:// needs the feature tls of quorumlock, and this program was built without it",
            Self::RepeatedParameter => "a parameter is given twice",
            Self::ServerNameWithoutTls => "server_name is for rediss:// nodes only",
            Self::UnknownParameter => {
                "unknown parameter; known are db=number, durable=true, durable=false and server_name=host"
            }
            Self::UnsupportedScheme => {
                "not an independent master; cluster, sentinel and proxies cannot vote, name each master by \
                redis://host:port"
            }
            Self::UnixUnsupported => "this system has no Unix domain sockets",
        })
    }
}

impl std::error::Error for EndpointError {}

fn parse_rest(rest: &str, is_tls: bool, is_unix: bool) -> Result<Endpoint, EndpointError> {
    let (rest, query) = split_query(rest);
    let (authority, path) = match rest.split_once('/') {
        Some(parts) if !is_unix => parts,
        _ => (rest, ""),
    };
    let Login {
        mut handshake,
        user,
        location,
    } = parse_login(authority)?;
    let by_network = (!is_unix).then(|| parse_location(location)).transpose()?;
    let Parameters {
        database,
        durable,
        server_name,
    } = Parameters::parse(query)?;
    if database.is_some() && !path.is_empty() {
        return Err(EndpointError::RepeatedParameter);
    }
    if server_name.is_some() && !is_tls {
        return Err(EndpointError::ServerNameWithoutTls);
    }
    handshake.database = database.map_or_else(|| parse_database(path), Ok)?;
    Ok(Endpoint {
        address: match by_network {
            Some(address) => address,
            None => parse_path(location)?,
        },
        is_tls,
        handshake,
        user,
        durable,
        server_name,
    })
}

/// A character that ends the location although it is before the last `@`, and so in a user or
/// password. A path may hold slashes; nothing may hold `#`.
fn unencoded(rest: &str, is_slash_special: bool) -> Option<char> {
    let login = rest.rsplit_once('@').map_or("", |(login, _)| login);
    let is_special = |&character: &char| character == '?' || character == '/' && is_slash_special;
    let is_hash = |&character: &char| character == '#';
    rest.chars()
        .find(is_hash)
        .or_else(|| login.chars().find(is_special))
}

/// Splits what follows the first `?` off.
fn split_query(rest: &str) -> (&str, Option<&str>) {
    rest.split_once('?')
        .map_or((rest, None), |(rest, query)| (rest, Some(query)))
}

/// What follows the `?`.
#[derive(Default)]
struct Parameters {
    database: Option<u32>,
    durable: Option<bool>,
    server_name: Option<String>,
}

impl Parameters {
    /// Reads each parameter, which is given once at most.
    fn parse(query: Option<&str>) -> Result<Parameters, EndpointError> {
        let mut parameters = Parameters::default();
        for parameter in query.into_iter().flat_map(|query| query.split('&')) {
            let is_repeated = match parameter.split_once('=') {
                Some(("db", digits)) => parameters
                    .database
                    .replace(parse_database(digits)?)
                    .is_some(),
                Some(("durable", "true")) => parameters.durable.replace(true).is_some(),
                Some(("durable", "false")) => parameters.durable.replace(false).is_some(),
                Some(("durable", _)) => return Err(EndpointError::BadDurable),
                Some(("server_name", name)) if !name.is_empty() && is_host(name) => {
                    parameters.server_name.replace(name.to_owned()).is_some()
                }
                Some(("server_name", _)) => return Err(EndpointError::BadServerName),
                _ => return Err(EndpointError::UnknownParameter),
            };
            if is_repeated {
                return Err(EndpointError::RepeatedParameter);
            }
        }
        Ok(parameters)
    }
}

/// What is in front of the path.
struct Login<'a> {
    handshake: Handshake,
    /// One without a password.
    user: Option<String>,
    location: &'a str,
}

/// Splits `user:password@` off; what follows the last `@` is the location.
fn parse_login(authority: &str) -> Result<Login<'_>, EndpointError> {
    let (login, location) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let user = Some(percent_decoded(user)?).filter(|user| !user.is_empty());
    let password = percent_decoded(password)?;
    if password.is_empty() {
        return Ok(Login {
            handshake: Handshake::default(),
            user,
            location,
        });
    }
    let credentials = Credentials::new(password).or_user(user.as_deref());
    Ok(Login {
        handshake: Handshake {
            credentials: Some(credentials),
            ..Handshake::default()
        },
        user: None,
        location,
    })
}

fn parse_path(location: &str) -> Result<Address, EndpointError> {
    let path = percent_decoded(location)?;
    if path.is_empty() || path.contains('\0') {
        return Err(EndpointError::NoPath);
    }
    Ok(Address::Unix(PathBuf::from(path)))
}

fn parse_location(location: &str) -> Result<Address, EndpointError> {
    let (host, port) = match location.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or(EndpointError::BadHost)?;
            // A zone index (%eth0) belongs to the machine, not to the address.
            host.parse::<core::net::Ipv6Addr>()
                .map_err(|_| EndpointError::BadHost)?;
            match port.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if port.is_empty() => (host, None),
                None => return Err(EndpointError::BadHost),
            }
        }
        None => match location.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (location, None),
        },
    };
    if host.is_empty() {
        return Err(EndpointError::NoHost);
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => port
            .parse()
            .ok()
            .filter(|&port| port != 0)
            .ok_or(EndpointError::BadPort)?,
        Some(_) => return Err(EndpointError::BadPort),
    };
    if !is_host(host) {
        return Err(EndpointError::BadHost);
    }
    Ok(Address::Tcp(host.to_owned(), port))
}

/// Digits, or nothing for database 0.
fn parse_database(digits: &str) -> Result<u32, EndpointError> {
    match digits {
        "" => Ok(0),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().map_err(|_| EndpointError::BadDatabase)
        }
        _ => Err(EndpointError::BadDatabase),
    }
}

/// The text in which each `%` and two hexadecimal digits stood for a byte.
pub fn percent_decoded(text: &str) -> Result<String, EndpointError> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let mut digit = || {
                    bytes
                        .next()
                        .and_then(|byte| char::from(byte).to_digit(16))
                        .ok_or(EndpointError::BadEncoding)
                };
                (digit()? * 16 + digit()?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(decoded).map_err(|_| EndpointError::BadEncoding)
}

/// The URLs of a list, which commas or blanks separate.
pub fn urls(list: &str) -> impl Iterator<Item = &str> {
    list.split(|letter: char| letter == ',' || letter.is_whitespace())
        .filter(|url| !url.is_empty())
}

#[cfg(test)]
mod tests;
