//! The commands that are not about one kind of lock, and what their replies mean.
//!
//! A reply of a type that the command never answers with is a [`ProtocolError`]: the connection is
//! out of step, and the next reply on it might be taken for the answer to another request.

use super::error_reply::ErrorReply;
use super::resp::{self, Reply};
use crate::algorithm::digits;
use crate::fault::protocol_error::ProtocolError;
use std::time::Duration;

/// Asks for how long a key will live: `PTTL key`.
pub fn remaining(out: &mut Vec<u8>, key: &[u8]) {
    resp::encode(out, &[b"PTTL", key]);
}

/// How long a key lives at most, counted from now, as [`remaining`] has brought it; none if it has
/// no expiry.
///
/// # Errors
/// A reply that `PTTL` never returns; an error reply is for the caller.
pub fn remaining_reply(reply: Reply<'_>) -> Result<Option<Duration>, ProtocolError> {
    match reply {
        Reply::Integer(-2) => Ok(Some(Duration::ZERO)),
        Reply::Integer(-1) => Ok(None),
        // A key lives through the last millisecond of its time.
        Reply::Integer(millis @ 0..) => Ok(Some(Duration::from_millis(
            millis.unsigned_abs().saturating_add(1),
        ))),
        _ => Err(ProtocolError::UnexpectedReply),
    }
}

/// Logs in: `AUTH [user] password`.
pub fn auth(out: &mut Vec<u8>, user: Option<&str>, password: &str) {
    match user {
        Some(user) => resp::encode(out, &[b"AUTH", user.as_bytes(), password.as_bytes()]),
        None => resp::encode(out, &[b"AUTH", password.as_bytes()]),
    }
}

/// Chooses the database: `SELECT number`.
pub fn select(out: &mut Vec<u8>, database: u32) {
    let mut digits = [0; 20];
    resp::encode(
        out,
        &[b"SELECT", resp::decimal(u64::from(database), &mut digits)],
    );
}

/// Checks the reply to [`auth`] or [`select`]: `+OK`, or an error reply.
///
/// # Errors
/// A reply that neither command returns.
pub fn handshake_reply(reply: Reply<'_>) -> Result<Option<ErrorReply>, ProtocolError> {
    match reply {
        Reply::Simple(b"OK") => Ok(None),
        Reply::Error(text) => Ok(Some(ErrorReply::read(text))),
        _ => Err(ProtocolError::UnexpectedReply),
    }
}

/// Asks for the node's clock: `TIME`.
pub(super) fn time(out: &mut Vec<u8>) {
    resp::encode(out, &[b"TIME"]);
}

/// The node's clock in microseconds, from the reply to [`time`]: seconds, and microseconds of the
/// second.
///
/// # Errors
/// A reply that `TIME` never returns; an error reply is for the caller.
pub(super) fn time_reply(reply: Reply<'_>) -> Result<u64, ProtocolError> {
    let parts = || {
        let Reply::Array(Some(mut elements)) = reply else {
            return None;
        };
        let mut next = || match elements.next() {
            Some(Reply::Bulk(Some(digits))) => digits::number(digits),
            _ => None,
        };
        let seconds = next()?;
        let micros = next()?;
        seconds.checked_mul(1_000_000)?.checked_add(micros)
    };
    parts().ok_or(ProtocolError::UnexpectedReply)
}

/// Asks the server what it is: `INFO section`.
pub fn info(out: &mut Vec<u8>, section: &str) {
    resp::encode(out, &[b"INFO", section.as_bytes()]);
}

/// Asks a server in cluster mode what its cluster is: `CLUSTER INFO`.
pub fn cluster_info(out: &mut Vec<u8>) {
    resp::encode(out, &[b"CLUSTER", b"INFO"]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(encode: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        encode(&mut out);
        String::from_utf8(out).unwrap().replace("\r\n", " ")
    }

    #[test]
    fn commands_go_out_as_servers_expect_them() {
        assert_eq!(sent(|out| remaining(out, b"k")), "*2 $4 PTTL $1 k ");
        assert_eq!(sent(|out| auth(out, None, "pw")), "*2 $4 AUTH $2 pw ");
        assert_eq!(
            sent(|out| auth(out, Some("me"), "pw")),
            "*3 $4 AUTH $2 me $2 pw "
        );
        assert_eq!(sent(|out| select(out, 7)), "*2 $6 SELECT $1 7 ");
        assert_eq!(sent(|out| info(out, "server")), "*2 $4 INFO $6 server ");
        assert_eq!(sent(cluster_info), "*2 $7 CLUSTER $4 INFO ");
    }

    #[test]
    fn how_long_a_key_lives_is_rounded_up() {
        let table = [
            (Reply::Integer(-2), Ok(Some(Duration::ZERO))),
            (Reply::Integer(-1), Ok(None)),
            (Reply::Integer(0), Ok(Some(Duration::from_millis(1)))),
            (
                Reply::Integer(i64::MAX),
                Ok(Some(Duration::from_millis(1 << 63))),
            ),
            (Reply::Integer(-3), Err(ProtocolError::UnexpectedReply)),
            (Reply::Bulk(None), Err(ProtocolError::UnexpectedReply)),
        ];
        for (reply, left) in table {
            assert_eq!(remaining_reply(reply), left, "{reply:?}");
        }
    }
}
