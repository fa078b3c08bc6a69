//! Letting our key live longer: how a node is asked, and what its reply means (rule 4.5).
//!
//! ```text
//!    the key is        the reply to EXTEND     the vote
//!    ours              :1                      Granted
//!    another token's   :-1, -WRONGTYPE         Refused
//!    gone              :0                      Absent
//! ```
//!
//! The script extends with `PEXPIRE`: a server whose memory is full refuses `SET` and would let a lock run out that it
//! holds. It creates no key, so an extension that runs late, after the release of its lock, does nothing. But it sets
//! the time to live to what it was asked for, even if that is less than was left. A holder that asks for less must rely
//! on the shorter lease from then on, even if too few nodes answer: those that did not may have done it.

use super::resp;
use super::script;
use crate::algorithm::lease::OwnerToken;

/// Lets the key live for `ttl_millis` from now on if it is ours.
pub fn extend(out: &mut Vec<u8>, key: &[u8], token: &OwnerToken, ttl_millis: u64) {
    let mut digits = [0; 20];
    let ttl = resp::decimal(ttl_millis, &mut digits);
    resp::encode(out, &[b"EVAL", script::EXTEND.as_bytes(), b"1", key, &token.value(), ttl]);
}

#[cfg(test)]
mod tests {
    use super::super::form::{Answer, Form};
    use super::super::operation::{Kind, Operation, Verb};
    use super::super::reply;
    use super::super::resp::Reply;
    use super::*;
    use crate::algorithm::fault::Cause;
    use crate::algorithm::protocol_error::ProtocolError;
    use crate::algorithm::vote::Vote;

    #[test]
    fn extensions_go_out_as_servers_expect_them() {
        let mut out = Vec::new();
        extend(&mut out, b"k", &OwnerToken::from_entropy([0xab; 20]), 30_000);
        let digits = "ab".repeat(20);
        assert_eq!(
            String::from_utf8(out).unwrap().replace("\r\n", " "),
            format!("*6 $4 EVAL ${} {} $1 1 $1 k $40 {digits} $5 30000 ", script::EXTEND.len(), script::EXTEND)
        );
    }

    #[test]
    fn a_reply_means_what_the_script_makes_of_it() {
        type Meaning = Result<Answer, ProtocolError>;
        const UNEXPECTED: Meaning = Err(ProtocolError::UnexpectedReply);
        let vote = |vote| Ok(Answer::Vote(vote));
        let fault = |cause| Ok(Answer::fault(cause));
        let table: [(Reply<'_>, Meaning); 20] = [
            (Reply::Integer(1), vote(Vote::Granted)),
            (Reply::Integer(0), vote(Vote::Absent)),
            (Reply::Integer(-1), vote(Vote::Refused)),
            (Reply::Integer(2), UNEXPECTED),
            (Reply::Integer(-2), UNEXPECTED),
            (Reply::Simple(b"OK"), UNEXPECTED),
            (Reply::Bulk(None), UNEXPECTED),
            (Reply::Bulk(Some(b"OK")), UNEXPECTED),
            (Reply::Array(None), UNEXPECTED),
            (Reply::Error(b"WRONGTYPE Operation against a key holding the wrong kind of value"), vote(Vote::Refused)),
            (
                Reply::Error(
                    b"WRONGTYPE Operation against a key holding the wrong kind of value script: 1f, on @user_script:1.",
                ),
                vote(Vote::Refused),
            ),
            (Reply::Error(b"ERR unknown command 'EVAL', with args beginning with: 'l' "), fault(Cause::NoScripts)),
            (Reply::Error(b"ERR unknown command `EVAL`, with args beginning with: "), fault(Cause::NoScripts)),
            (Reply::Error(b"ERR Could not find scripting engine 'lua'"), fault(Cause::NoScripts)),
            (Reply::Error(b"ERR syntax error"), fault(Cause::Server("ERR"))),
            (Reply::Error(b"NOPERM this user has no permissions to run the 'eval' command"), fault(Cause::NoScripts)),
            (
                Reply::Error(b"ERR The user executing the script can't run this command or subcommand script: 1f"),
                fault(Cause::NoPermission),
            ),
            (Reply::Error(b"OOM command not allowed"), fault(Cause::OutOfMemory)),
            (Reply::Error(b"READONLY no"), fault(Cause::ReadOnly)),
            (Reply::Error(b"BUSY no"), fault(Cause::Server("BUSY"))),
        ];
        let operation = Operation { verb: Verb::Extend { ttl_millis: 1 }, kind: Kind::Plain };
        for (bytes, meaning) in table {
            assert_eq!(reply::meaning(Form::Text, operation.asked(), bytes), meaning, "{bytes:?}");
        }
    }
}
