//! Turn-taking among programs: a release publishes a hint on a channel of the key's own, for the clients that wait for
//! the lock.
//!
//! A hint ends a wait early and decides nothing. So it goes out with the release, within its script or directly behind
//! it. Its reply says only whether the node permits publishing, and how many subscribers there are.

use super::error_reply;
use super::resp::{self, Reply};
use crate::algorithm::detail::Detail;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::place::PlaceId;
use crate::algorithm::protocol_error::ProtocolError;

/// What the name of a key's channel begins with. The key is the rest.
pub const CHANNEL: &[u8] = b"quorumlock:";

/// What a release publishes for the clients that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// How many waited when the holder last knew.
    pub crowd: u8,
    /// Whether the holder had waited, too.
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

    /// Reads what was sent. Other programs may publish something else there: it is still a hint.
    pub(super) fn parse(text: &[u8]) -> Hint {
        let (number, has_waited) = text.strip_suffix(b"w").map_or((text, false), |number| (number, true));
        let crowd = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
        crowd.map_or(Hint::default(), |crowd| Hint { crowd, has_waited })
    }
}

/// What a client may hear on a key's channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The lock was released, at one node at least.
    Released(Hint),
    /// The same, of a fair lock: this call is the first.
    Passed(Hint, PlaceId),
    /// So many wait: the release before this message has said much less.
    Waiting(u8),
}

impl Message {
    /// Reads what was published. What other programs publish there counts as a hint.
    pub(super) fn parse(text: &[u8]) -> Message {
        let number = text.strip_prefix(b"=").and_then(|number| std::str::from_utf8(number).ok()?.parse().ok());
        if let Some(number) = number {
            return Message::Waiting(number);
        }
        let place = text.len().checked_sub(PlaceId::LENGTH + 1).and_then(|at| Some((at, text.get(at..)?)));
        let first = place.and_then(|(at, id)| Some((at, PlaceId::parse(id.strip_prefix(b"@")?)?)));
        match first {
            Some((at, first)) => Message::Passed(Hint::parse(&text[..at]), first),
            None => Message::Released(Hint::parse(text)),
        }
    }
}

/// Says how many wait.
pub fn waiting(out: &mut Vec<u8>, key: &[u8], waiting: u8) {
    let mut digits = [0; 20];
    let length = resp::decimal(u64::from(waiting), &mut digits).len();
    let start = digits.len() - length - 1;
    digits[start] = b'=';
    resp::encode_joined(out, b"PUBLISH", (CHANNEL, key), &[&digits[start..]]);
}

/// What became of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishOutcome {
    /// The node does not permit it.
    Denied(Cause),
    /// It went to this many subscribers.
    Subscribers(u8),
}

/// What became of the hint within a release that was granted.
pub(super) fn published_by_script(reply: Reply<'_>) -> PublishOutcome {
    match reply {
        Reply::Integer(2) => PublishOutcome::Denied(Cause::NoPermission),
        Reply::Integer(more @ 3..) => PublishOutcome::Subscribers(u8::try_from(more - 2).unwrap_or(u8::MAX)),
        _ => PublishOutcome::Subscribers(0),
    }
}

/// The meaning of a reply to a `PUBLISH`.
///
/// # Errors
/// A reply that `PUBLISH` never gives.
pub fn publish_reply(reply: Reply<'_>) -> Result<PublishOutcome, ProtocolError> {
    match reply {
        Reply::Integer(number @ 0..) => Ok(PublishOutcome::Subscribers(u8::try_from(number).unwrap_or(u8::MAX))),
        Reply::Error(text) => Ok(PublishOutcome::Denied(error_reply::cause(text))),
        _ => Err(ProtocolError::UnexpectedReply),
    }
}

/// Asks for the hints of a key: `SUBSCRIBE channel`.
pub fn subscribe(out: &mut Vec<u8>, key: &[u8]) {
    resp::encode_joined(out, b"SUBSCRIBE", (CHANNEL, key), &[]);
}

/// Asks for no more hints of a key: `UNSUBSCRIBE channel`.
pub fn unsubscribe(out: &mut Vec<u8>, key: &[u8]) {
    resp::encode_joined(out, b"UNSUBSCRIBE", (CHANNEL, key), &[]);
}

/// What is known about publishing on one connection.
#[derive(Debug, Default)]
pub struct Publisher {
    /// Why the node does not permit it, if that was found out.
    refused: Option<Cause>,
    is_unreported: bool,
    subscriber_count: u8,
}

impl Publisher {
    /// Whether a hint is worth sending.
    pub fn is_permitted(&self) -> bool {
        self.refused.is_none()
    }

    /// Why the node does not permit it, once.
    pub fn take_refusal(&mut self) -> Option<Fault> {
        self.refused
            .filter(|_| std::mem::take(&mut self.is_unreported))
            .map(|cause| Fault::new(Phase::Reply, cause).with(Detail::Command("PUBLISH")))
    }

    /// How many subscribers the hint reached that went out with the release whose answer was the last event.
    pub fn take_subscriber_count(&mut self) -> u8 {
        std::mem::take(&mut self.subscriber_count)
    }

    /// Notes what became of the hint of the release that is being answered.
    pub(super) fn note(&mut self, outcome: PublishOutcome) {
        self.subscriber_count = self.count(outcome);
    }

    /// Notes what became of a hint. Gives how many subscribers it reached.
    pub(super) fn count(&mut self, outcome: PublishOutcome) -> u8 {
        match outcome {
            PublishOutcome::Subscribers(count) => count,
            PublishOutcome::Denied(cause) => {
                self.is_unreported |= self.refused.replace(cause).is_none();
                0
            }
        }
    }
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
    fn subscriptions_name_the_channel_of_the_key() {
        assert_eq!(sent(|out| subscribe(out, b"k")), "*2 $9 SUBSCRIBE $12 quorumlock:k ");
        assert_eq!(sent(|out| unsubscribe(out, b"k")), "*2 $11 UNSUBSCRIBE $12 quorumlock:k ");
    }

    #[test]
    fn what_became_of_a_hint_is_in_the_reply_of_the_script_or_in_one_of_its_own() {
        let table = [(1, 0), (3, 1), (9, 7), (1000, 255)];
        for (number, heard) in table {
            assert_eq!(published_by_script(Reply::Integer(number)), PublishOutcome::Subscribers(heard));
        }
        assert_eq!(published_by_script(Reply::Integer(2)), PublishOutcome::Denied(Cause::NoPermission));
        assert_eq!(publish_reply(Reply::Integer(3)), Ok(PublishOutcome::Subscribers(3)));
        assert_eq!(publish_reply(Reply::Error(b"NOPERM no")), Ok(PublishOutcome::Denied(Cause::NoPermission)));
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
        for text in ["", "w", "256", "-1w", "released", "7ww", "\u{e9}", "=", "=256"] {
            assert_eq!(Message::parse(text.as_bytes()), Message::Released(Hint::default()), "{text}");
        }
        assert_eq!(sent(|out| waiting(out, b"k", 255)), "*3 $7 PUBLISH $12 quorumlock:k $4 =255 ");
        assert_eq!(Message::parse(b"=255"), Message::Waiting(255));
        assert_eq!(Message::parse(b"7w"), Message::Released(Hint { crowd: 7, has_waited: true }));
    }
}
