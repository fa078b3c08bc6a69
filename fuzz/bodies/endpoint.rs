//! Any text in the place of a node's URL.
//!
//! Input: bytes, read as a URL (what is not UTF-8 becomes so), and written into a URL
//! percent-encoded. Rules:
//! 1. Reading never panics.
//! 2. Nothing that is shown, of a result or an error, depends on user or password: with other
//!    letters in their places, and for a result with quite another password, the very same is
//!    shown. So no part of them can be in it.
//! 3. A result contains all that there is to know: written as a URL again, it is read as the same.
//!    The address is also what an operator would write: what is shown of it, with a scheme before
//!    it, leads to the same place.
//! 4. Every byte can be written: percent-encoded in a password or a path, it comes back as it was.

use quorumlock::protocol::credentials::Credentials;
use quorumlock::protocol::endpoint::{Address, Endpoint, EndpointError};
use std::path::PathBuf;

pub(crate) fn run(input: &[u8]) {
    check_url(&String::from_utf8_lossy(input));
    check_encoding(input);
}

fn check_url(url: &str) {
    let parsed = Endpoint::parse(url);
    let disguised = Endpoint::parse(&disguised(url));
    assert_eq!(
        shown(&parsed),
        shown(&disguised),
        "what is shown of {url:?} depends on a secret"
    );
    let Ok(endpoint) = parsed else { return };

    let password = password_of(&endpoint);
    assert_eq!(
        Endpoint::parse(&written(&endpoint, password)).as_ref(),
        Ok(&endpoint),
        "{url:?} is read in two ways"
    );
    let other = Endpoint::parse(&written(&endpoint, Some("quite another")));
    if password.is_some() {
        assert_eq!(
            shown(&Ok(endpoint.clone())),
            shown(&other),
            "what is shown of {url:?} depends on the password"
        );
    }
    assert_eq!(
        other.as_ref().map(Endpoint::address),
        Ok(endpoint.address())
    );

    let address = endpoint.to_string();
    assert!(
        !address.contains(char::is_control),
        "{address:?} would break a line of a log"
    );
    let again = match endpoint.address() {
        Address::Unix(path) => format!("unix://{}", encoded(path.to_string_lossy().as_bytes())),
        Address::Tcp(..) => format!("redis://{address}"),
    };
    assert_eq!(
        Endpoint::parse(&again).as_ref().map(Endpoint::address),
        Ok(endpoint.address()),
        "{again:?}"
    );
}

fn password_of(endpoint: &Endpoint) -> Option<&str> {
    endpoint
        .handshake()
        .credentials
        .as_ref()
        .map(Credentials::password)
}

fn check_encoding(bytes: &[u8]) {
    let text = str::from_utf8(bytes).map_err(|_| EndpointError::BadEncoding);
    let login = Endpoint::parse(&format!("redis://:{}@host", encoded(bytes)));
    let password = login
        .as_ref()
        .map(|endpoint| password_of(endpoint).unwrap_or_default());
    assert_eq!(password.map_err(|error| *error), text, "as a password");
    if cfg!(unix) {
        let socket = Endpoint::parse(&format!("unix://{}", encoded(bytes)));
        let is_path = |text: &&str| !text.is_empty() && !text.contains('\0');
        let path = text.and_then(|text| Some(text).filter(is_path).ok_or(EndpointError::NoPath));
        assert_eq!(
            socket.map(|endpoint| endpoint.address().clone()),
            path.map(|path| Address::Unix(PathBuf::from(path))),
            "as a path"
        );
    }
}

/// Everything that can be shown.
fn shown(parsed: &Result<Endpoint, EndpointError>) -> String {
    match parsed {
        Ok(endpoint) => format!(
            "{endpoint} {endpoint:?} {:?} {:?}",
            endpoint.address(),
            endpoint.handshake()
        ),
        Err(error) => format!("{error} {error:?}"),
    }
}

/// The URL with other letters in user and password. Only letters that are no hexadecimal digits,
/// which mean nothing but themselves wherever they are, so that the URL is as right or wrong as
/// before, and in the same way.
fn disguised(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url.rfind('@').unwrap_or(0).max(start);
    let other = |letter: char| match letter {
        'g'..'z' | 'G'..'Z' => char::from(letter as u8 + 1),
        'z' => 'g',
        'Z' => 'G',
        same => same,
    };
    format!(
        "{}{}{}",
        &url[..start],
        url[start..end].chars().map(other).collect::<String>(),
        &url[end..]
    )
}

/// A URL that means the same, but perhaps with another password.
fn written(endpoint: &Endpoint, password: Option<&str>) -> String {
    let handshake = endpoint.handshake();
    let user = handshake
        .credentials
        .as_ref()
        .and_then(Credentials::user_name);
    let user = encoded(user.or(endpoint.user()).unwrap_or_default().as_bytes());
    let login = match password {
        Some(password) => format!("{user}:{}@", encoded(password.as_bytes())),
        None if user.is_empty() => String::new(),
        None => format!("{user}@"),
    };
    let scheme = if endpoint.is_tls() { "rediss" } else { "redis" };
    match endpoint.address() {
        Address::Tcp(host, port) if host.contains(':') => {
            format!("{scheme}://{login}[{host}]:{port}/{}", handshake.database)
        }
        Address::Tcp(host, port) => {
            format!("{scheme}://{login}{host}:{port}/{}", handshake.database)
        }
        Address::Unix(path) => {
            format!(
                "unix://{login}{}?db={}",
                encoded(path.to_string_lossy().as_bytes()),
                handshake.database
            )
        }
    }
}

/// Percent-encoded, all but letters and digits.
fn encoded(bytes: &[u8]) -> String {
    let encode = |&byte: &u8| match byte {
        plain if plain.is_ascii_alphanumeric() => char::from(plain).to_string(),
        special => format!("%{special:02x}"),
    };
    bytes.iter().map(encode).collect()
}
