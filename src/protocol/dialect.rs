//! Requests that can be put in several ways, and which ways a node has been tried in.
//!
//! Servers differ in how they can be asked to compare a key with our token and act on it. A node that does not know a way,
//! or may not be asked in it by our user, is asked in the next one, within the same call (rule 7.6):
//!
//! ```text
//!    preferred ── not understood ──► the likeliest untried ── … ──► none left: a fault
//!        └── understood ──► a vote          └── understood ──► a vote, and preferred from now on
//! ```

use crate::algorithm::detail::Detail;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::vote::Vote;

/// What a node said to a request in one dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes, no, or an error that another dialect would meet as well.
    Vote(Vote),
    /// The node does not know this dialect, or the user may not speak it: worth another one.
    WrongDialect(Cause),
}

/// The ways to put one kind of request.
pub(super) trait Dialects: Copy + PartialEq + 'static {
    /// All of them, the likeliest first.
    const CHOICE: &'static [Self];
    /// The commands that a user needs for one of them, for a message.
    const COMMANDS: &'static str;

    /// A number below 8 of its own.
    fn number(self) -> u8;
}

/// The dialects that a request has been tried in, as a bit each; the last one; and whether permission was the trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempted<D> {
    last: D,
    set: u8,
    denied: bool,
}

impl<D: Dialects> Attempted<D> {
    /// A request that has not been sent yet. `first` is the dialect it is to be tried in first.
    pub(super) fn nothing(first: D) -> Attempted<D> {
        Attempted { last: first, set: 0, denied: false }
    }

    /// The dialect it was sent in last.
    pub(super) fn last(self) -> D {
        self.last
    }

    /// Picks the dialect to send it in now, and prefers that one from now on.
    pub(super) fn in_next(mut self, preferred: &mut D) -> Attempted<D> {
        *preferred = self.next(*preferred).unwrap_or(*preferred);
        self.last = *preferred;
        self.set |= 1 << self.last.number();
        self
    }

    /// The vote in an answer to the last one, or `None` when it is worth another dialect.
    pub(super) fn vote(&mut self, answer: Answer) -> Option<Vote> {
        let cause = match answer {
            Answer::Vote(vote) => return Some(vote),
            Answer::WrongDialect(cause) => cause,
        };
        self.denied |= cause == Cause::NoPermission;
        match self.next(self.last) {
            Some(_) => None,
            None => {
                // Of all the reasons, permission is the one that somebody can mend.
                let cause = if self.denied { Cause::NoPermission } else { cause };
                Some(Vote::Fault(Fault::new(Phase::Reply, cause).with(Detail::Command(D::COMMANDS))))
            }
        }
    }

    /// A dialect that has not been tried: `preferred`, or else the likeliest.
    fn next(self, preferred: D) -> Option<D> {
        let all = std::iter::once(preferred).chain(D::CHOICE.iter().copied());
        all.into_iter().find(|dialect| self.set & (1 << dialect.number()) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Way {
        First,
        Second,
        Third,
    }

    impl Dialects for Way {
        const CHOICE: &'static [Way] = &[Way::First, Way::Second, Way::Third];
        const COMMANDS: &'static str = "THIS or THAT";

        fn number(self) -> u8 {
            self as u8
        }
    }

    const UNKNOWN: Answer = Answer::WrongDialect(Cause::Server("ERR"));
    const DENIED: Answer = Answer::WrongDialect(Cause::NoPermission);

    /// The dialects that a node is asked in when it says this, and the vote that comes of it.
    fn asked(preferred: &mut Way, answers: &[Answer]) -> (Vec<Way>, Option<Vote>) {
        let (mut tried, mut ways) = (Attempted::nothing(*preferred), Vec::new());
        for &answer in answers {
            tried = tried.in_next(preferred);
            ways.push(tried.last());
            if let Some(vote) = tried.vote(answer) {
                return (ways, Some(vote));
            }
        }
        (ways, None)
    }

    #[test]
    fn each_dialect_is_tried_once_and_what_was_understood_is_preferred() {
        use Way::*;
        let mut preferred = Second;
        let granted = Answer::Vote(Vote::Granted);
        assert_eq!(asked(&mut preferred, &[granted]), (vec![Second], Some(Vote::Granted)));
        assert_eq!(asked(&mut preferred, &[UNKNOWN, DENIED, granted]), {
            (vec![Second, First, Third], Some(Vote::Granted))
        });
        assert_eq!(preferred, Third);
        assert_eq!(asked(&mut preferred, &[granted]).0, [Third]);
        assert_eq!(asked(&mut preferred, &[UNKNOWN]), (vec![Third], None));
    }

    #[test]
    fn when_no_dialect_is_left_permission_is_the_reason_to_tell() {
        let fault = |cause| Some(Vote::Fault(Fault::new(Phase::Reply, cause)));
        assert_eq!(asked(&mut Way::First.clone(), &[UNKNOWN; 3]).1, fault(Cause::Server("ERR")));
        assert_eq!(asked(&mut Way::First.clone(), &[UNKNOWN, DENIED, UNKNOWN]).1, fault(Cause::NoPermission));
    }

    #[test]
    fn requests_under_way_together_settle_on_one_dialect() {
        let mut preferred = Way::First;
        let mut first = Attempted::nothing(preferred).in_next(&mut preferred);
        let mut second = Attempted::nothing(preferred).in_next(&mut preferred);
        assert_eq!((first.vote(UNKNOWN), second.vote(UNKNOWN)), (None, None));
        assert_eq!(first.in_next(&mut preferred).last(), Way::Second);
        assert_eq!(second.in_next(&mut preferred).last(), Way::Second);
    }
}
