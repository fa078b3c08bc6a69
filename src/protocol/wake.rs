//! What a release or a leave by a script replies: whether something was removed, and which other clients were told.

use super::form::Answer;
use super::resp::Reply;
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::vote::Vote;

/// The meaning of a reply to a release or a leave by a script.
pub(super) fn departed(reply: Reply<'_>) -> Result<Answer, ProtocolError> {
    match reply {
        Reply::Integer(1..=4) => Ok(Answer::Vote(Vote::Granted)),
        Reply::Integer(-4..=-2 | 0) => Ok(Answer::Vote(Vote::Refused)),
        _ => Err(ProtocolError::UnexpectedReply),
    }
}

/// What releases and leaves by a script have found in the queues: a bit for each key of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakes {
    /// Another client was told.
    pub told: u64,
    /// More entries may be in front whose clients are gone: it is asked again.
    pub more: u64,
    /// The user may not publish.
    pub is_denied: bool,
}

impl Wakes {
    /// Reads the reply about one key.
    pub(super) fn learn(&mut self, part: u8, reply: Reply<'_>) {
        match reply {
            Reply::Integer(2 | -2) => self.told |= 1 << part,
            Reply::Integer(3 | -3) => self.more |= 1 << part,
            Reply::Integer(4 | -4) => self.is_denied = true,
            _ => {}
        }
    }
}
