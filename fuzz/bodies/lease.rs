//! Any text in the place of a lease.
//!
//! Input: the text. Rules:
//! 1. Reading never panics, and neither does asking for the end and the remaining time.
//! 2. There is one text for a lease: what is read is written as it was.
//! 3. No beginning of the text of a lease is one: a text that was cut short is refused.
//! 4. What is shown of a lease does not contain its token.

use quorumlock::{ErrorKind, Lease, kind};

/// Longer texts are not cut at each byte.
const LONG: usize = 512;
const TOKEN: usize = 40;

pub(crate) fn run(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else {
        return;
    };
    let lease = match read(text) {
        Ok(lease) => lease,
        Err(kind) => return assert_eq!(kind, ErrorKind::Config),
    };
    assert!(lease.remaining() <= lease.ttl());
    let _ = lease.end();
    let (before, token) = text.split_at(text.len() - TOKEN);
    // The name is shown, and may be anything.
    let is_shown = format!("{lease:?}").contains(token);
    assert!(before.contains(token) || !is_shown, "a token is shown");
    let again = lease.into_text();
    assert_eq!(again.expose(), text, "two texts for one lease");
    for length in 0..text.len().min(LONG) {
        assert!(read(&text[..length]).is_err(), "cut to {length}: {text}");
    }
}

fn read(text: &str) -> Result<Lease<kind::Any>, ErrorKind> {
    text.parse::<Lease<kind::Any>>()
        .map_err(|error| error.kind())
}
