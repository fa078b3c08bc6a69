//! Extensions by hand whose result is not known, beside automatic ones.
//!
//! A node goes by the command that it executed last, in whichever order the replies arrive. So an
//! automatic extension that was sent before one by hand makes the lock last no longer than that one
//! asks for.

use crate::algorithm::time::LeaseTime;

/// The extensions by hand of one lock that nodes may have executed, though none counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtensionsByHand {
    /// The end that one asks for while its owner waits for the replies.
    awaited: Option<LeaseTime>,
    /// Those without a result since the last extension that counts.
    unanswered: Option<Unanswered>,
}

#[derive(Clone, Copy, Debug)]
struct Unanswered {
    /// When the last of them was sent.
    sent_at: LeaseTime,
    /// The earliest end that any of them asks for.
    end: LeaseTime,
}

impl ExtensionsByHand {
    /// One begins that asks for this end. Nothing is sent automatically until its result is noted.
    pub fn begin(&mut self, end: LeaseTime) {
        self.awaited = Some(end);
    }

    /// Whether one has begun, and its result was not noted.
    pub fn is_awaited(&self) -> bool {
        self.awaited.is_some()
    }

    /// The one that has begun was sent then, and has no result.
    pub fn on_unanswered(&mut self, sent_at: LeaseTime) {
        if let Some(end) = self.awaited.take() {
            let end = self.unanswered.map_or(end, |earlier| earlier.end.min(end));
            self.unanswered = Some(Unanswered { sent_at, end });
        }
    }

    /// The one that has begun counts, and nodes go by none before it.
    pub fn on_extended(&mut self) {
        *self = ExtensionsByHand::default();
    }

    /// An automatic extension counts that was sent at `start`. Returns the end of its lease: the
    /// one it asks for, or an earlier one.
    pub fn on_automatic_extension(&mut self, start: LeaseTime, end: LeaseTime) -> LeaseTime {
        // With the same start as one by hand, it was sent before that.
        self.unanswered = self
            .unanswered
            .filter(|unanswered| start <= unanswered.sent_at);
        // Nothing is sent automatically while one is awaited: this was sent before.
        end.min(self.awaited.unwrap_or(LeaseTime::NEVER))
            .min(self.unanswered.map_or(LeaseTime::NEVER, |other| other.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(millis: u64) -> LeaseTime {
        LeaseTime::ORIGIN.after(Duration::from_millis(millis))
    }

    /// What is sent and noted for one lock, one step a millisecond.
    #[derive(Clone)]
    struct Lock {
        by_hand: ExtensionsByHand,
        now: u64,
        /// The start and end of the extension that counts.
        counted: (LeaseTime, LeaseTime),
        /// When an automatic extension was sent whose result was not noted, and its end.
        automatic: Option<(LeaseTime, LeaseTime)>,
        /// The same of one by hand.
        awaited: Option<(LeaseTime, LeaseTime)>,
        unanswered: Vec<(LeaseTime, LeaseTime)>,
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        SendAutomatic,
        CountAutomatic,
        Begin(u64),
        EndUnanswered,
        EndCounted,
    }

    const STEPS: [Step; 6] = [
        Step::SendAutomatic,
        Step::CountAutomatic,
        Step::Begin(60),
        Step::Begin(200),
        Step::EndUnanswered,
        Step::EndCounted,
    ];

    impl Lock {
        /// Takes a step; false where it is not possible.
        fn take(&mut self, step: Step) -> bool {
            self.now += 1;
            let sent = |ttl| (at(self.now), at(self.now + ttl));
            match step {
                Step::SendAutomatic => {
                    let is_possible = !self.by_hand.is_awaited() && self.automatic.is_none();
                    self.automatic = Some(sent(100));
                    is_possible
                }
                Step::CountAutomatic => {
                    let Some((start, end)) = self.automatic.take() else {
                        return false;
                    };
                    let end = self.by_hand.on_automatic_extension(start, end);
                    if start > self.counted.0 {
                        self.counted = (start, end);
                    }
                    true
                }
                Step::Begin(ttl) => {
                    let sent = sent(ttl);
                    self.by_hand.begin(sent.1);
                    sent.1 > self.counted.1 && self.awaited.replace(sent).is_none()
                }
                Step::EndUnanswered => {
                    let Some(sent) = self.awaited.take() else {
                        return false;
                    };
                    self.by_hand.on_unanswered(sent.0);
                    self.unanswered.push(sent);
                    true
                }
                Step::EndCounted => {
                    self.by_hand.on_extended();
                    self.awaited.take().is_some_and(|sent| {
                        self.counted = sent;
                        true
                    })
                }
            }
        }

        /// No node goes by a command that ends earlier than what is relied on: it may have executed
        /// the one that counts, or any that was sent later.
        fn check(&self, steps: &[Step]) {
            let (start, end) = self.counted;
            let mut later = self.unanswered.iter().chain(&self.awaited);
            let earlier = later.find(|&&(sent_at, other)| sent_at >= start && other < end);
            assert_eq!(earlier, None, "{:?} counts after {steps:?}", self.counted);
        }
    }

    #[test]
    fn what_counts_ends_no_later_than_what_nodes_may_go_by() {
        fn search(lock: &Lock, steps: &mut Vec<Step>, visited: &mut usize) {
            *visited += 1;
            lock.check(steps);
            for step in STEPS {
                let mut next = lock.clone();
                if steps.len() < 12 && next.take(step) {
                    steps.push(step);
                    search(&next, steps, visited);
                    steps.pop();
                }
            }
        }
        let mut visited = 0;
        let lock = Lock {
            by_hand: ExtensionsByHand::default(),
            now: 0,
            counted: (at(0), at(50)),
            automatic: None,
            awaited: None,
            unanswered: Vec::new(),
        };
        search(&lock, &mut Vec::new(), &mut visited);
        assert!(visited > 20_000, "{visited}");
    }

    #[test]
    fn an_automatic_extension_counts_fully_once_it_was_sent_after_all_by_hand() {
        let mut by_hand = ExtensionsByHand::default();
        by_hand.begin(at(50));
        by_hand.on_unanswered(at(10));
        assert_eq!(by_hand.on_automatic_extension(at(10), at(90)), at(50));
        assert_eq!(by_hand.on_automatic_extension(at(11), at(90)), at(90));
        // One more by hand: the earlier one restricts nothing any more.
        by_hand.begin(at(140));
        assert_eq!(by_hand.on_automatic_extension(at(12), at(150)), at(140));
        by_hand.on_unanswered(at(100));
        assert_eq!(by_hand.on_automatic_extension(at(99), at(150)), at(140));
        by_hand.begin(at(300));
        by_hand.on_extended();
        assert_eq!(by_hand.on_automatic_extension(at(99), at(400)), at(400));
    }
}
