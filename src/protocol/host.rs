//! What a host name or an IP address may contain.

/// Whether all characters are allowed there.
pub fn is_host(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte))
}
