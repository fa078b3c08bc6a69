//! Letting our key live longer: how a node is asked, and what its reply means (rule 4.5).
//!
//! ```text
//!    the key is        EVAL of EXTEND        SET … IFEQ … PX       the vote
//!    ours              :1                    +OK                   Granted
//!    another token's   :-1, -WRONGTYPE       null, -WRONGTYPE      Refused
//!    gone              :0                    null                  Absent by script, Refused by SET
//!    not looked at     -ERR unknown, -NOPERM -ERR syntax error     none: the other dialect is tried
//! ```
//!
//! The script comes first wherever it works, because it extends with `PEXPIRE`: a server whose memory is full refuses
//! `SET` and would let a lock run out that it holds. `SET IFEQ` is for nodes without scripts. Its null does not say
//! whether the key is another token's or gone, so it counts as not ours, and such a node is not repaired.
//!
//! Neither creates a key, so an extension that runs late, after the release of its lock, does nothing. But either sets
//! the time to live to what it was asked for, even if that is less than was left. A holder that asks for less must rely
//! on the shorter lease from then on, even if too few nodes answer: those that did not may have done it.

use super::dialect::{Answer, Dialect};
use super::error_reply;
use super::resp::{self, Reply};
use super::script;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::vote::Vote;

/// Lets the key live for `ttl_millis` from now on if it is ours: by the script, unless the dialect is
/// [`Dialect::SetIfeq`].
pub fn extend(out: &mut Vec<u8>, dialect: Dialect, key: &[u8], token: &OwnerToken, ttl_millis: u64) {
    let mut digits = [0; 20];
    let (token, ttl) = (&token.value(), resp::decimal(ttl_millis, &mut digits));
    match dialect {
        Dialect::SetIfeq => resp::encode(out, &[b"SET", key, token, b"IFEQ", token, b"PX", ttl]),
        _ => resp::encode(out, &[b"EVAL", script::EXTEND.as_bytes(), b"1", key, token, ttl]),
    }
}

/// The meaning of a reply to [`extend`] in this dialect.
///
/// # Errors
/// A reply that this dialect never gives.
pub fn extend_reply(dialect: Dialect, reply: Reply<'_>) -> Result<Answer, ProtocolError> {
    let by_set = dialect == Dialect::SetIfeq;
    let vote = match (by_set, reply) {
        (false, Reply::Integer(1)) | (true, Reply::Simple(b"OK")) => Vote::Granted,
        (false, Reply::Integer(-1)) | (true, Reply::Bulk(None)) => Vote::Refused,
        (false, Reply::Integer(0)) => Vote::Absent,
        (_, Reply::Error(text)) => match error_reply::cause(text) {
            // A list or a hash stands under our key: whatever it is, it is not our token.
            Cause::Server("WRONGTYPE") => Vote::Refused,
            Cause::NoPermission => return Ok(Answer::WrongDialect(Cause::NoPermission)),
            // `SET` is known everywhere; to a server that does not know `IFEQ`, the word is a syntax error.
            cause if error_reply::is_unknown(text) || by_set && text.starts_with(b"ERR syntax error") => {
                return Ok(Answer::WrongDialect(cause));
            }
            cause => Vote::Fault(Fault::new(Phase::Reply, cause)),
        },
        _ => return Err(ProtocolError::UnexpectedReply),
    };
    Ok(Answer::Vote(vote))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_go_out_as_servers_expect_them() {
        let sent = |dialect| {
            let mut out = Vec::new();
            extend(&mut out, dialect, b"k", &OwnerToken::from_entropy([0xab; 20]), 30_000);
            String::from_utf8(out).unwrap().replace("\r\n", " ")
        };
        let digits = "ab".repeat(20);
        assert_eq!(
            sent(Dialect::Eval),
            format!("*6 $4 EVAL ${} {} $1 1 $1 k $40 {digits} $5 30000 ", script::EXTEND.len(), script::EXTEND)
        );
        assert_eq!(sent(Dialect::SetIfeq), format!("*7 $3 SET $1 k $40 {digits} $4 IFEQ $40 {digits} $2 PX $5 30000 "));
    }

    #[test]
    fn a_reply_means_what_its_dialect_makes_of_it() {
        type Meaning = Result<Answer, ProtocolError>;
        const UNEXPECTED: Meaning = Err(ProtocolError::UnexpectedReply);
        let vote = |vote| Ok(Answer::Vote(vote));
        let fault = |cause| Ok(Answer::Vote(Vote::Fault(Fault::new(Phase::Reply, cause))));
        let wrong = |cause| Ok(Answer::WrongDialect(cause));
        let error = Cause::Server("ERR");
        let table: [(Reply<'_>, Meaning, Meaning); 20] = [
            (Reply::Integer(1), vote(Vote::Granted), UNEXPECTED),
            (Reply::Integer(0), vote(Vote::Absent), UNEXPECTED),
            (Reply::Integer(-1), vote(Vote::Refused), UNEXPECTED),
            (Reply::Integer(2), UNEXPECTED, UNEXPECTED),
            (Reply::Simple(b"OK"), UNEXPECTED, vote(Vote::Granted)),
            (Reply::Bulk(None), UNEXPECTED, vote(Vote::Refused)),
            (Reply::Simple(b"QUEUED"), UNEXPECTED, UNEXPECTED),
            (Reply::Bulk(Some(b"OK")), UNEXPECTED, UNEXPECTED),
            (Reply::Array(None), UNEXPECTED, UNEXPECTED),
            (
                Reply::Error(b"WRONGTYPE Operation against a key holding the wrong kind of value"),
                vote(Vote::Refused),
                vote(Vote::Refused),
            ),
            (
                Reply::Error(
                    b"WRONGTYPE Operation against a key holding the wrong kind of value script: 1f, on @user_script:1.",
                ),
                vote(Vote::Refused),
                vote(Vote::Refused),
            ),
            (Reply::Error(b"ERR unknown command 'EVAL', with args beginning with: 'l' "), wrong(error), wrong(error)),
            (Reply::Error(b"ERR unknown command `EVAL`, with args beginning with: "), wrong(error), wrong(error)),
            (Reply::Error(b"ERR Could not find scripting engine 'lua'"), wrong(error), wrong(error)),
            (Reply::Error(b"ERR syntax error"), fault(error), wrong(error)),
            (
                Reply::Error(b"NOPERM this user has no permissions to run the 'eval' command"),
                wrong(Cause::NoPermission),
                wrong(Cause::NoPermission),
            ),
            (
                Reply::Error(b"ERR The user executing the script can't run this command or subcommand script: 1f"),
                wrong(Cause::NoPermission),
                wrong(Cause::NoPermission),
            ),
            (Reply::Error(b"OOM command not allowed"), fault(Cause::OutOfMemory), fault(Cause::OutOfMemory)),
            (Reply::Error(b"READONLY no"), fault(Cause::ReadOnly), fault(Cause::ReadOnly)),
            (Reply::Error(b"BUSY no"), fault(Cause::Server("BUSY")), fault(Cause::Server("BUSY"))),
        ];
        for (reply, by_script, by_set) in table {
            assert_eq!(extend_reply(Dialect::Eval, reply), by_script, "{reply:?}");
            assert_eq!(extend_reply(Dialect::SetIfeq, reply), by_set, "{reply:?}");
        }
    }
}
