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

/// What a release or a leave has found in the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wake {
    /// No other client was told.
    #[default]
    Nobody,
    /// Another client was told.
    Other,
    /// More entries may be in front whose clients are gone: it is asked again.
    More,
    /// The user may not publish.
    Denied,
}

impl Wake {
    /// Reads the reply of a script.
    pub(super) fn by(reply: Reply<'_>) -> Wake {
        match reply {
            Reply::Integer(2 | -2) => Wake::Other,
            Reply::Integer(3 | -3) => Wake::More,
            Reply::Integer(4 | -4) => Wake::Denied,
            _ => Wake::Nobody,
        }
    }
}
