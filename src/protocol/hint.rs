//! Hints: that a lock was released, from those who release it to those who wait for it, on a channel of the key's own.
//!
//! A hint ends a wait early and decides nothing. So it goes with the release, behind it and with no wish for an answer but to
//! know whether it may be given at all, and how many hear it.

use super::command::Dialect;
use super::error_reply;
use super::resp::{self, Reply};
use super::script;
use crate::algorithm::fault::Cause;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::protocol_error::ProtocolError;

/// What the name of a key's channel begins with, on which hints go from those who release a lock to those who wait for it.
/// The key is the rest.
pub const CHANNEL: &[u8] = b"quorumlock:";

/// What those who wait are told with a release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// How many waited when the holder last knew.
    pub crowd: u8,
    /// Whether the holder had waited himself, among them.
    pub has_waited: bool,
}

impl Hint {
    /// As it is sent: a number, and a letter behind it if the holder had waited.
    pub(super) fn text(self, space: &mut [u8; 20]) -> &[u8] {
        // The letter comes last, so it is put where the digits of a number that is ten times as large would end.
        let length = resp::decimal(u64::from(self.crowd) * 10, space).len();
        let start = space.len() - length.max(2);
        space[19] = b'w';
        if length < 2 {
            space[18] = b'0';
        }
        if self.has_waited { &space[start..] } else { &space[start..19] }
    }

    /// What was sent. Other programs may say something else: it is still a hint.
    pub(super) fn parse(text: &[u8]) -> Hint {
        let (number, has_waited) = text.strip_suffix(b"w").map_or((text, false), |number| (number, true));
        let crowd = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
        crowd.map_or(Hint::default(), |crowd| Hint { crowd, has_waited })
    }
}

/// [`release`](super::command::release), and tells those who listen on the key's [channel](CHANNEL) a [`Hint`]: within the script, or, in a
/// dialect that [publishes apart](Dialect::publishes_apart), by a command of its own, which has a reply of its own.
pub fn release_and_tell(out: &mut Vec<u8>, dialect: Dialect, key: &[u8], token: &OwnerToken, hint: Hint) {
    let mut space = [0; 20];
    let hint = hint.text(&mut space);
    let token = &token.digits();
    match dialect {
        Dialect::Delex | Dialect::Delifeq => {
            let release = if dialect == Dialect::Delex {
                &[b"DELEX", key, b"IFEQ", token][..]
            } else {
                &[b"DELIFEQ", key, token]
            };
            resp::encode(out, release);
            resp::encode_joined(out, b"PUBLISH", (CHANNEL, key), &[hint]);
        }
        Dialect::Evalsha => {
            resp::encode(out, &[b"EVALSHA", script::RELEASE_SHA1.as_bytes(), b"1", key, token, CHANNEL, hint]);
        }
        Dialect::Eval => {
            resp::encode(out, &[b"EVAL", script::RELEASE.as_bytes(), b"1", key, token, CHANNEL, hint]);
        }
    }
}

/// What became of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishOutcome {
    /// So many were told of the release; none, if nobody listened.
    Listeners(u8),
    /// Nobody may be told.
    Nobody(Cause),
}

/// What became of the hint within a release that was granted.
pub(super) fn told_by_script(reply: Reply<'_>) -> PublishOutcome {
    match reply {
        Reply::Integer(2) => PublishOutcome::Nobody(Cause::NoPermission),
        Reply::Integer(more @ 3..) => PublishOutcome::Listeners(u8::try_from(more - 2).unwrap_or(u8::MAX)),
        _ => PublishOutcome::Listeners(0),
    }
}

/// The meaning of a reply to a `PUBLISH`.
///
/// # Errors
/// A reply that `PUBLISH` never gives.
pub fn publish_reply(reply: Reply<'_>) -> Result<PublishOutcome, ProtocolError> {
    match reply {
        Reply::Integer(number @ 0..) => Ok(PublishOutcome::Listeners(u8::try_from(number).unwrap_or(u8::MAX))),
        Reply::Error(text) => Ok(PublishOutcome::Nobody(error_reply::cause(text))),
        _ => Err(ProtocolError::UnexpectedReply),
    }
}

/// Listens for hints that a lock is free: `SUBSCRIBE channel`.
pub fn subscribe(out: &mut Vec<u8>, key: &[u8]) {
    resp::encode_joined(out, b"SUBSCRIBE", (CHANNEL, key), &[]);
}

/// Listens no more: `UNSUBSCRIBE channel`.
pub fn unsubscribe(out: &mut Vec<u8>, key: &[u8]) {
    resp::encode_joined(out, b"UNSUBSCRIBE", (CHANNEL, key), &[]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const HINT: Hint = Hint { crowd: 7, has_waited: true };

    fn token() -> OwnerToken {
        OwnerToken::from_entropy([0xab; 20])
    }

    fn sent(encode: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        encode(&mut out);
        String::from_utf8(out).unwrap().replace("\r\n", " ")
    }

    #[test]
    fn a_release_tells_within_its_script_or_by_a_command_behind_it() {
        let digits = "ab".repeat(20);
        let publish = "*3 $7 PUBLISH $12 quorumlock:k $2 7w ";
        assert_eq!(
            sent(|out| release_and_tell(out, Dialect::Delifeq, b"k", &token(), HINT)),
            format!("*3 $7 DELIFEQ $1 k $40 {digits} {publish}")
        );
        assert_eq!(
            sent(|out| release_and_tell(out, Dialect::Delex, b"k", &token(), HINT)),
            format!("*4 $5 DELEX $1 k $4 IFEQ $40 {digits} {publish}")
        );
        assert_eq!(
            sent(|out| release_and_tell(out, Dialect::Eval, b"k", &token(), HINT)),
            format!(
                "*7 $4 EVAL ${} {} $1 1 $1 k $40 {digits} $11 quorumlock: $2 7w ",
                script::RELEASE.len(),
                script::RELEASE
            )
        );
        assert_eq!(
            sent(|out| release_and_tell(out, Dialect::Evalsha, b"k", &token(), HINT)),
            format!("*7 $7 EVALSHA $40 {} $1 1 $1 k $40 {digits} $11 quorumlock: $2 7w ", script::RELEASE_SHA1)
        );
        assert_eq!(sent(|out| subscribe(out, b"k")), "*2 $9 SUBSCRIBE $12 quorumlock:k ");
        assert_eq!(sent(|out| unsubscribe(out, b"k")), "*2 $11 UNSUBSCRIBE $12 quorumlock:k ");
    }

    #[test]
    fn what_became_of_a_hint_is_told_by_the_script_or_by_a_reply_of_its_own() {
        let table = [(1, 0), (3, 1), (9, 7), (1000, 255)];
        for (number, heard) in table {
            assert_eq!(told_by_script(Reply::Integer(number)), PublishOutcome::Listeners(heard));
        }
        assert_eq!(told_by_script(Reply::Integer(2)), PublishOutcome::Nobody(Cause::NoPermission));
        assert_eq!(publish_reply(Reply::Integer(3)), Ok(PublishOutcome::Listeners(3)));
        assert_eq!(publish_reply(Reply::Error(b"NOPERM no")), Ok(PublishOutcome::Nobody(Cause::NoPermission)));
        assert_eq!(publish_reply(Reply::Integer(-1)), Err(ProtocolError::UnexpectedReply));
    }

    #[test]
    fn hints_say_what_they_mean_and_others_are_hints_too() {
        for crowd in 0..=u8::MAX {
            for has_waited in [false, true] {
                let hint = Hint { crowd, has_waited };
                let (mut space, letter) = ([0; 20], if has_waited { "w" } else { "" });
                let text = hint.text(&mut space);
                assert_eq!(text, format!("{crowd}{letter}").as_bytes());
                assert_eq!(Hint::parse(text), hint);
            }
        }
        for text in ["", "w", "256", "-1w", "released", "7ww", "\u{e9}"] {
            assert_eq!(Hint::parse(text.as_bytes()), Hint::default(), "{text}");
        }
    }
}
