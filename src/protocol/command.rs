//! Every command we send, and what its reply means.
//!
//! A reply of a type that the command never answers with is a [`ProtocolError`]: the connection is out of step, and the
//! next reply on it might be taken for the answer to another request.

use super::error_reply;
use super::resp::{self, Reply};
use crate::algorithm::fault::Cause;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::vote::Vote;
use std::time::Duration;

/// Asks for the lock: `SET key token NX PX ttl`.
pub fn acquire(out: &mut Vec<u8>, key: &[u8], token: &OwnerToken, ttl_millis: u64) {
    // What is the same each time is not encoded each time.
    out.extend_from_slice(b"*6\r\n$3\r\nSET\r\n");
    resp::push(out, key);
    resp::push(out, &token.value());
    out.extend_from_slice(b"$2\r\nNX\r\n$2\r\nPX\r\n");
    resp::push(out, resp::decimal(ttl_millis, &mut [0; 20]));
}

/// The vote in a reply to [`acquire`]. Only `+OK` is a grant, only the null string a refusal (rule 2.3).
///
/// # Errors
/// A reply that `SET` never gives.
#[inline]
pub fn acquire_vote(reply: Reply<'_>) -> Result<Vote, ProtocolError> {
    match reply {
        Reply::Simple(b"OK") => Ok(Vote::Granted),
        Reply::Bulk(None) => Ok(Vote::Refused),
        Reply::Error(text) => Ok(Vote::Fault(error_reply::fault(text, "SET"))),
        _ => Err(ProtocolError::UnexpectedReply),
    }
}

/// Asks for how long a key will live: `PTTL key`.
pub fn remaining(out: &mut Vec<u8>, key: &[u8]) {
    resp::encode(out, &[b"PTTL", key]);
}

/// How long a key lives at most, counted from now, as [`remaining`] has brought it; none if it has no expiry.
///
/// # Errors
/// A reply that `PTTL` never gives; an error reply is for the caller.
pub fn remaining_reply(reply: Reply<'_>) -> Result<Option<Duration>, ProtocolError> {
    match reply {
        Reply::Integer(-2) => Ok(Some(Duration::ZERO)),
        Reply::Integer(-1) => Ok(None),
        // A key lives through the last millisecond of its time.
        Reply::Integer(millis @ 0..) => Ok(Some(Duration::from_millis(millis.unsigned_abs().saturating_add(1)))),
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
    resp::encode(out, &[b"SELECT", resp::decimal(u64::from(database), &mut digits)]);
}

/// Checks the reply to [`auth`] or [`select`]: `+OK`, or an error reply, which becomes `refused`.
///
/// # Errors
/// A reply that neither command gives.
pub fn handshake_reply(reply: Reply<'_>, refused: Cause) -> Result<Option<Cause>, ProtocolError> {
    match reply {
        Reply::Simple(b"OK") => Ok(None),
        Reply::Error(text) => Ok(Some(match error_reply::cause(text) {
            Cause::Server("ERR" | "unrecognised") => refused,
            cause => cause,
        })),
        _ => Err(ProtocolError::UnexpectedReply),
    }
}

/// Asks for the node's clock: `TIME`.
pub(super) fn time(out: &mut Vec<u8>) {
    resp::encode(out, &[b"TIME"]);
}

/// The node's clock in microseconds, from the reply to [`time`]: seconds, and microseconds of the second.
///
/// # Errors
/// A reply that `TIME` never gives; an error reply is for the caller.
pub(super) fn time_reply(reply: Reply<'_>) -> Result<u64, ProtocolError> {
    let parts = || {
        let Reply::Array(Some(mut elements)) = reply else { return None };
        let mut next = || match elements.next() {
            Some(Reply::Bulk(Some(digits))) => resp::number(digits),
            _ => None,
        };
        let (seconds, micros) = (next()?, next()?);
        seconds.checked_mul(1_000_000)?.checked_add(micros)
    };
    parts().ok_or(ProtocolError::UnexpectedReply)
}

/// Asks the server what it is: `INFO section`.
pub fn info(out: &mut Vec<u8>, section: &str) {
    resp::encode(out, &[b"INFO", section.as_bytes()]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::fault::{Fault, Phase};

    fn token() -> OwnerToken {
        OwnerToken::from_entropy([0xab; 20])
    }

    fn sent(encode: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        encode(&mut out);
        String::from_utf8(out).unwrap().replace("\r\n", " ")
    }

    #[test]
    fn commands_go_out_as_servers_expect_them() {
        let digits = "ab".repeat(20);
        assert_eq!(
            sent(|out| acquire(out, b"orders/42", &token(), 30_000)),
            format!("*6 $3 SET $9 orders/42 $40 {digits} $2 NX $2 PX $5 30000 ")
        );
        assert_eq!(sent(|out| remaining(out, b"k")), "*2 $4 PTTL $1 k ");
        assert_eq!(sent(|out| auth(out, None, "pw")), "*2 $4 AUTH $2 pw ");
        assert_eq!(sent(|out| auth(out, Some("me"), "pw")), "*3 $4 AUTH $2 me $2 pw ");
        assert_eq!(sent(|out| select(out, 7)), "*2 $6 SELECT $1 7 ");
        assert_eq!(sent(|out| info(out, "server")), "*2 $4 INFO $6 server ");
    }

    #[test]
    fn only_ok_is_a_grant_and_only_null_a_refusal() {
        let fault = |cause| Ok(Vote::Fault(Fault::new(Phase::Reply, cause)));
        let table: [(Reply<'_>, Result<Vote, ProtocolError>); 13] = [
            (Reply::Simple(b"OK"), Ok(Vote::Granted)),
            (Reply::Bulk(None), Ok(Vote::Refused)),
            (Reply::Error(b"OOM command not allowed when used memory > 'maxmemory'."), fault(Cause::OutOfMemory)),
            (Reply::Error(b"READONLY You can't write against a read only replica."), fault(Cause::ReadOnly)),
            (Reply::Error(b"LOADING Redis is loading the dataset in memory"), fault(Cause::Loading)),
            (Reply::Error(b"NOAUTH Authentication required."), fault(Cause::Auth)),
            (Reply::Error(b"NOPERM no permissions to access a key"), fault(Cause::NoPermission)),
            (Reply::Error(b"MOVED 1 127.0.0.1:1"), fault(Cause::ClusterMode)),
            (Reply::Simple(b"QUEUED"), Err(ProtocolError::UnexpectedReply)),
            (Reply::Simple(b"ok"), Err(ProtocolError::UnexpectedReply)),
            (Reply::Bulk(Some(b"OK")), Err(ProtocolError::UnexpectedReply)),
            (Reply::Integer(1), Err(ProtocolError::UnexpectedReply)),
            (Reply::Array(None), Err(ProtocolError::UnexpectedReply)),
        ];
        for (reply, vote) in table {
            assert_eq!(acquire_vote(reply), vote, "{reply:?}");
        }
    }

    #[test]
    fn how_long_a_key_lives_is_rounded_up() {
        let table = [
            (Reply::Integer(-2), Ok(Some(Duration::ZERO))),
            (Reply::Integer(-1), Ok(None)),
            (Reply::Integer(0), Ok(Some(Duration::from_millis(1)))),
            (Reply::Integer(i64::MAX), Ok(Some(Duration::from_millis(1 << 63)))),
            (Reply::Integer(-3), Err(ProtocolError::UnexpectedReply)),
            (Reply::Bulk(None), Err(ProtocolError::UnexpectedReply)),
        ];
        for (reply, left) in table {
            assert_eq!(remaining_reply(reply), left, "{reply:?}");
        }
    }

    #[test]
    fn handshakes_are_accepted_or_refused() {
        assert_eq!(handshake_reply(Reply::Simple(b"OK"), Cause::Auth), Ok(None));
        assert_eq!(handshake_reply(Reply::Error(b"ERR invalid password"), Cause::Auth), Ok(Some(Cause::Auth)));
        assert_eq!(
            handshake_reply(Reply::Error(b"ERR DB index is out of range"), Cause::Database),
            Ok(Some(Cause::Database))
        );
        assert_eq!(
            handshake_reply(Reply::Error(b"NOAUTH Authentication required."), Cause::Database),
            Ok(Some(Cause::Auth))
        );
        assert_eq!(
            handshake_reply(Reply::Error(b"ERR max number of clients reached"), Cause::Auth),
            Ok(Some(Cause::TooManyClients))
        );
        assert_eq!(handshake_reply(Reply::Integer(1), Cause::Auth), Err(ProtocolError::UnexpectedReply));
    }
}
