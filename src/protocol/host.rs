//! What a host name or an IP address may contain, and how one is shown with a port.

use std::fmt;

/// Whether all characters are allowed there.
pub fn is_host(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte))
}

/// Writes both as an operator would.
pub(super) fn write_address(f: &mut fmt::Formatter<'_>, host: &str, port: u16) -> fmt::Result {
    if host.contains(':') {
        write!(f, "[{host}]:{port}")
    } else {
        write!(f, "{host}:{port}")
    }
}
