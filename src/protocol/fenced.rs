//! What a node is asked about the key of a fenced lock, and what its reply means (rules, section 6).
//!
//! ```text
//!    the key is              acquire    extend     raise, release     its reply is
//!    nobody's, or has ended  Fence      Absent     Refused            the fence; :0
//!    ours                    Fence      Granted    Granted            the fence; :1, or more when others were told
//!    somebody else's         Held       Refused    Refused            :-4 - n, for n milliseconds more; :-1
//!    not a fenced lock       Foreign    Foreign    Foreign            :-2; what stands there is not touched
//!    free, its fence ahead   FenceAhead -          -                  :-3; what stands there is not touched
//!    ours, raised too far    -          -          FenceAhead         :-3; what stands there is not touched
//! ```
//!
//! All is one script, [`FENCE`](script::FENCE), because no command does it. A server that has answered it once on a connection
//! is called by the script's hash from then on, unless it keeps forgetting. A node without scripts, or one that does not
//! let our user run them, cannot hold fenced locks: [`Cause::NoScripts`].

use super::command::is_unknown_command;
use super::error_reply;
use super::hint::{CHANNEL, Hint};
use super::resp::{self, Reply};
use super::script;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::fence::FencingToken;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::vote::Vote;
use std::time::Duration;

/// What stands between the prefix and the resource in the key of a fenced lock. No name of a plain lock begins with it.
pub const FENCED_KEY_PREFIX: &str = "quorumlock-fence:";
/// How often on one connection a server may not know a script that it has run, before it is always told the text.
const HASH_REFUSALS: u8 = 3;

/// What a node is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FencedRequest {
    /// What is to be done.
    pub deed: FencedOp,
    /// How long the key is kept from now on. No shorter than any time to live.
    pub retention_millis: u64,
}

/// What is to be done with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FencedOp {
    /// To take it for so long, with this fence at least.
    Acquire {
        /// From now on, by the server's clock.
        ttl_millis: u64,
        /// The server takes none that is more than a minute before its own clock.
        floor: FencingToken,
    },
    /// To hold it for so long from now on.
    Extend {
        /// From now on, by the server's clock.
        ttl_millis: u64,
    },
    /// To have this fence at least, if it is ours.
    Raise(FencingToken),
    /// To let it go, if it is ours, and to tell those who wait for it, if that is wanted.
    Release(Option<Hint>),
}

impl FencedOp {
    /// Whether those who wait are to be told.
    pub(super) fn tells(self) -> bool {
        matches!(self, FencedOp::Release(Some(_)))
    }
}

/// What a node said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FencedReply {
    /// The key is ours, with this fence.
    Fence(FencingToken),
    /// Somebody else holds the key, for so long at most, counted from now.
    Held(Duration),
    /// It does not know the script by its hash, or does not let us call it so: worth asking again by its text.
    NotByHash,
    /// Anything else.
    Vote(Vote),
}

/// Whether a server is called by the script's hash, on one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptCache {
    has_run: bool,
    refusals: u8,
}

impl ScriptCache {
    /// Whether the next request goes by the hash.
    pub(super) fn by_hash(self) -> bool {
        self.has_run && self.refusals < HASH_REFUSALS
    }

    /// The meaning of a reply to a request, taken in.
    ///
    /// # Errors
    /// A reply that is never given.
    pub(super) fn hear(
        &mut self,
        by_hash: bool,
        ask: FencedRequest,
        answer: Reply<'_>,
    ) -> Result<FencedReply, ProtocolError> {
        let said = reply(by_hash, ask.deed, answer)?;
        self.learn(by_hash, said);
        Ok(said)
    }

    fn learn(&mut self, by_hash: bool, said: FencedReply) {
        match said {
            // Of several that were under way together, one counts.
            FencedReply::NotByHash if self.has_run => {
                (self.has_run, self.refusals) = (false, self.refusals.saturating_add(1))
            }
            FencedReply::NotByHash | FencedReply::Vote(Vote::Fault(_)) => {}
            FencedReply::Fence(_) | FencedReply::Held(_) | FencedReply::Vote(_) => self.has_run |= !by_hash,
        }
    }
}

/// The name of the resource in what follows the prefix in a lock's key.
pub fn resource(name: &str) -> &str {
    name.strip_prefix(FENCED_KEY_PREFIX).unwrap_or(name)
}

/// Asks a node.
pub fn ask(out: &mut Vec<u8>, by_hash: bool, key: &[u8], token: &OwnerToken, ask: &FencedRequest) {
    let (command, script): (&[u8], _) =
        if by_hash { (b"EVALSHA", script::FENCE_SHA1) } else { (b"EVAL", script::FENCE) };
    let [mut kept, mut first, mut second] = [[0; 20]; 3];
    let kept = resp::decimal(ask.retention_millis, &mut kept);
    let token = &token.digits();
    let mut send = |words: &[&[u8]]| resp::encode(out, words);
    let script = script.as_bytes();
    match ask.deed {
        FencedOp::Acquire { ttl_millis, floor } => {
            let (ttl, floor) = (resp::decimal(ttl_millis, &mut first), resp::decimal(floor.get(), &mut second));
            send(&[command, script, b"1", key, b"acquire", token, kept, ttl, floor]);
        }
        FencedOp::Extend { ttl_millis } => {
            send(&[command, script, b"1", key, b"extend", token, kept, resp::decimal(ttl_millis, &mut first)]);
        }
        FencedOp::Raise(fence) => {
            send(&[command, script, b"1", key, b"raise", token, kept, resp::decimal(fence.get(), &mut first)]);
        }
        FencedOp::Release(None) => send(&[command, script, b"1", key, b"release", token, kept]),
        FencedOp::Release(Some(hint)) => {
            send(&[command, script, b"1", key, b"release", token, kept, CHANNEL, hint.text(&mut first)]);
        }
    }
}

/// The meaning of a reply to [`ask`].
///
/// # Errors
/// A reply that the script never gives.
pub fn reply(by_hash: bool, deed: FencedOp, reply: Reply<'_>) -> Result<FencedReply, ProtocolError> {
    const UNEXPECTED: Result<FencedReply, ProtocolError> = Err(ProtocolError::UnexpectedReply);
    let fault = |cause| FencedReply::Vote(Vote::Fault(Fault::new(Phase::Reply, cause)));
    let is_acquire = matches!(deed, FencedOp::Acquire { .. });
    if let (Reply::Bulk(Some(digits)), FencedOp::Acquire { floor, .. }) = (reply, deed) {
        return match FencingToken::from_digits(digits) {
            // The node's own clock and value agree, and this machine's clock disagrees. If the fence counted, the other nodes
            // would be raised to it.
            Some(fence) if fence.is_ahead_of(floor) => Ok(fault(Cause::FenceAhead)),
            Some(fence) => Ok(FencedReply::Fence(fence)),
            None => UNEXPECTED,
        };
    }
    Ok(match reply {
        // More than that says who was told.
        Reply::Integer(2..) if deed.tells() => FencedReply::Vote(Vote::Granted),
        Reply::Integer(1) if !is_acquire => FencedReply::Vote(Vote::Granted),
        Reply::Integer(0) if matches!(deed, FencedOp::Extend { .. }) => FencedReply::Vote(Vote::Absent),
        Reply::Integer(0) if !is_acquire => FencedReply::Vote(Vote::Refused),
        // It is held through the last millisecond of its time.
        Reply::Integer(left @ ..=-4) if is_acquire => FencedReply::Held(Duration::from_millis(left.unsigned_abs() - 3)),
        Reply::Integer(-3) if matches!(deed, FencedOp::Acquire { .. } | FencedOp::Raise(_)) => fault(Cause::FenceAhead),
        Reply::Integer(-1) if !is_acquire => FencedReply::Vote(Vote::Refused),
        // Whatever it is, it is not held with our token.
        Reply::Integer(-2) if matches!(deed, FencedOp::Release(_)) => FencedReply::Vote(Vote::Refused),
        Reply::Integer(-2) => fault(Cause::UnexpectedValue),
        Reply::Error(text) => {
            let cause = error_reply::cause(text);
            let is_barred = is_unknown_command(text) || is_no_permission_to_run(text);
            match cause {
                _ if by_hash && (is_barred || cause == Cause::Server("NOSCRIPT")) => FencedReply::NotByHash,
                _ if is_barred => fault(Cause::NoScripts),
                _ => FencedReply::Vote(Vote::Fault(error_reply::fault(text, "EVAL with GET, SET and TIME"))),
            }
        }
        _ => return UNEXPECTED,
    })
}

/// Whether the user may not run scripts at all. What else it may not do, touch the key for one, has another remedy.
fn is_no_permission_to_run(text: &[u8]) -> bool {
    let says = |words: &[u8]| text.windows(words.len()).any(|window| window == words);
    text.starts_with(b"NOPERM") && says(b" run the 'eval")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::fence::LEAD_LIMIT;

    const ACQUIRE: FencedOp = FencedOp::Acquire { ttl_millis: 30_000, floor: FencingToken::GREATEST };
    const EXTEND: FencedOp = FencedOp::Extend { ttl_millis: 30_000 };

    #[test]
    fn requests_go_out_as_the_script_expects_them() {
        let digits = "ab".repeat(20);
        let sent = |by_hash, deed| {
            let mut out = Vec::new();
            let wish = FencedRequest { deed, retention_millis: 86_400_000 };
            ask(&mut out, by_hash, b"k", &OwnerToken::from_entropy([0xab; 20]), &wish);
            String::from_utf8(out).unwrap().replace("\r\n", " ")
        };
        let hash = script::FENCE_SHA1;
        assert_eq!(
            sent(true, ACQUIRE),
            format!(
                "*9 $7 EVALSHA $40 {hash} $1 1 $1 k $7 acquire $40 {digits} $8 86400000 $5 30000 $16 9007199254740991 "
            )
        );
        assert_eq!(
            sent(true, EXTEND),
            format!("*8 $7 EVALSHA $40 {hash} $1 1 $1 k $6 extend $40 {digits} $8 86400000 $5 30000 ")
        );
        assert_eq!(
            sent(true, FencedOp::Raise(7.into())),
            format!("*8 $7 EVALSHA $40 {hash} $1 1 $1 k $5 raise $40 {digits} $8 86400000 $1 7 ")
        );
        let (length, text) = (script::FENCE.len(), script::FENCE.replace("\r\n", " "));
        assert_eq!(
            sent(false, FencedOp::Release(None)),
            format!("*7 $4 EVAL ${length} {text} $1 1 $1 k $7 release $40 {digits} $8 86400000 ")
        );
        assert_eq!(
            sent(true, FencedOp::Release(Some(Hint { crowd: 3, has_waited: true }))),
            format!("*9 $7 EVALSHA $40 {hash} $1 1 $1 k $7 release $40 {digits} $8 86400000 $11 quorumlock: $2 3w ")
        );
    }

    #[test]
    fn a_reply_means_what_its_deed_makes_of_it() {
        const UNEXPECTED: Result<FencedReply, ProtocolError> = Err(ProtocolError::UnexpectedReply);
        let vote = |vote| Ok(FencedReply::Vote(vote));
        let fault = |cause| Ok(FencedReply::Vote(Vote::Fault(Fault::new(Phase::Reply, cause))));
        let [granted, refused, absent] = [Vote::Granted, Vote::Refused, Vote::Absent].map(vote);
        let [ahead, foreign, no_scripts] = [Cause::FenceAhead, Cause::UnexpectedValue, Cause::NoScripts].map(fault);
        let [denied, full] = [Cause::NoPermission, Cause::OutOfMemory].map(fault);
        let fence = Ok(FencedReply::Fence(1_700_000_000_000_000.into()));
        let held = |millis| Ok(FencedReply::Held(Duration::from_millis(millis)));
        let all = |meaning| [meaning; 4];
        let eval = b"NOPERM this user has no permissions to run the 'eval' command".as_slice();
        let table: [(Reply<'_>, [Result<FencedReply, ProtocolError>; 4]); 19] = [
            (Reply::Bulk(Some(b"1700000000000000")), [fence, UNEXPECTED, UNEXPECTED, UNEXPECTED]),
            (Reply::Bulk(Some(b"9007199254740992")), all(UNEXPECTED)),
            (Reply::Bulk(Some(b"1.7e+15")), all(UNEXPECTED)),
            (Reply::Bulk(None), all(UNEXPECTED)),
            (Reply::Integer(1), [UNEXPECTED, granted, granted, granted]),
            (Reply::Integer(0), [UNEXPECTED, absent, refused, refused]),
            (Reply::Integer(-1), [UNEXPECTED, refused, refused, refused]),
            (Reply::Integer(-3), [ahead, UNEXPECTED, ahead, UNEXPECTED]),
            (Reply::Integer(-4), [held(1), UNEXPECTED, UNEXPECTED, UNEXPECTED]),
            (Reply::Integer(i64::MIN), [held(i64::MAX as u64 - 2), UNEXPECTED, UNEXPECTED, UNEXPECTED]),
            (Reply::Integer(-2), [foreign, foreign, foreign, refused]),
            (Reply::Integer(2), all(UNEXPECTED)),
            (Reply::Simple(b"OK"), all(UNEXPECTED)),
            (Reply::Error(b"ERR unknown command 'EVAL', with args beginning with: 'l' "), all(no_scripts)),
            (Reply::Error(b"ERR Could not find scripting engine 'lua'"), all(no_scripts)),
            (Reply::Error(eval), all(no_scripts)),
            (Reply::Error(b"NOPERM No permissions to access a key"), all(denied)),
            (Reply::Error(b"ERR The user executing the script can't run this command or subcommand"), all(denied)),
            (Reply::Error(b"OOM command not allowed when used memory > 'maxmemory'."), all(full)),
        ];
        for (bytes, meanings) in table {
            for (deed, meaning) in
                [ACQUIRE, EXTEND, FencedOp::Raise(1.into()), FencedOp::Release(None)].into_iter().zip(meanings)
            {
                assert_eq!(reply(false, deed, bytes), meaning, "{bytes:?} to {deed:?}");
            }
        }
        let fence_after = |floor: u64| {
            let deed = FencedOp::Acquire { ttl_millis: 30_000, floor: floor.into() };
            reply(false, deed, Reply::Bulk(Some(b"1700000000000000")))
        };
        assert_eq!([1_700_000_000_000_000 - LEAD_LIMIT, 1].map(fence_after), [fence, ahead]);
        for (deed, meaning) in
            [(FencedOp::Release(Some(Hint::default())), granted), (FencedOp::Release(None), UNEXPECTED)]
        {
            assert_eq!(reply(false, deed, Reply::Integer(5)), meaning);
        }
        for text in [b"NOSCRIPT No matching script.".as_slice(), b"ERR unknown command 'EVALSHA'", eval] {
            assert_eq!(reply(true, ACQUIRE, Reply::Error(text)), Ok(FencedReply::NotByHash));
        }
    }

    #[test]
    fn a_server_is_called_by_the_hash_when_it_has_run_the_script_unless_it_keeps_forgetting() {
        let mut memory = ScriptCache::default();
        assert!(!memory.by_hash());
        memory.learn(false, FencedReply::Vote(Vote::Fault(Fault::new(Phase::Reply, Cause::TimedOut))));
        assert!(!memory.by_hash(), "an error says nothing of the script");
        for round in 0..HASH_REFUSALS {
            memory.learn(false, FencedReply::Vote(Vote::Refused));
            assert!(memory.by_hash(), "{round}");
            memory.learn(true, FencedReply::NotByHash);
            memory.learn(true, FencedReply::NotByHash);
            assert!(!memory.by_hash(), "{round}");
        }
        memory.learn(false, FencedReply::Fence(1.into()));
        assert!(!memory.by_hash(), "it forgets all the time");
    }
}
