//! For how long a waiter sleeps to which releases are announced.
//!
//! 1. While one holder keeps the lock, there is nothing to ask for: each attempt that finds the same holder doubles the
//!    sleep. It ends with the holder's key at the latest.
//! 2. Where a release may be ignored, because a single node would announce it that has announced others in vain, the
//!    sleep does not grow.
//! 3. If the lock changes hands and no release was announced, its holders do not announce any: another library has it,
//!    or a node does not permit it. Then the sleep is short again, and grows only while the holder stays the same.

use crate::algorithm::backoff::Backoff;
use crate::algorithm::holder::HolderTag;
use crate::algorithm::time::Timestamp;
use std::time::Duration;

/// Longest sleep: an announcement may be lost.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);
/// After so many doublings the sleep is the longest one, whatever the delays are.
const MOST_DOUBLINGS: u32 = 16;

/// What the next wait goes by, besides the tally of an attempt.
#[derive(Clone, Copy, Debug)]
pub struct WaitBounds {
    /// When so many keys have expired that a quorum may be free; never, if that is not known.
    pub free_at: Timestamp,
    /// Whether every release by a quorum ends the wait.
    pub is_attentive: bool,
    /// Whether a majority of nodes refused for a key without expiry.
    pub is_endless: bool,
    /// Which holder the nodes refused for, if they have said.
    pub holder: Option<HolderTag>,
    /// Whether the lock has changed hands lately, and no release was announced.
    pub misses_releases: bool,
    /// Whether the attempt followed what one node had announced in vain again and again.
    pub is_rumour: bool,
    /// Whether a release may be ignored, for a while, as what a single node announces.
    pub may_ignore: bool,
}

impl WaitBounds {
    /// Nothing is known.
    pub const NONE: WaitBounds = WaitBounds {
        free_at: Timestamp::NEVER,
        is_attentive: false,
        is_endless: false,
        holder: None,
        misses_releases: false,
        is_rumour: false,
        may_ignore: false,
    };
}

/// What the attempts of one call have found out about the holder.
#[derive(Clone, Debug, Default)]
pub(super) struct Listening {
    /// The holder that the last attempt was refused for, if the nodes have said.
    holder: Option<HolderTag>,
    /// How many attempts before it were refused for the same one.
    unchanged: u32,
    /// Whether a release was announced since the last attempt.
    has_heard: bool,
    /// Whether every release since the last attempt should have been announced.
    was_attentive: bool,
    has_missed: bool,
    /// Whether the next release will be announced, and nothing was announced that has not happened.
    hears_releases: bool,
    /// Whether it may be ignored all the same.
    may_ignore: bool,
}

impl Listening {
    /// A release was announced.
    pub(super) fn announced(&mut self) {
        self.has_heard = true;
    }

    /// An attempt was lost. One that has not asked for the holder says nothing about it. `is_unsettled`: it was made
    /// because the lock was free a moment before, or has found no holder. Gives whether the lock changes hands unheard.
    pub(super) fn attempted(&mut self, bounds: &WaitBounds, is_unsettled: bool) -> bool {
        let is_known = self.holder.is_some() && bounds.holder.is_some();
        let is_same = is_known && self.holder == bounds.holder;
        let is_unheard = is_known && !is_same && !self.has_heard;
        self.has_missed = is_unheard && self.was_attentive;
        self.hears_releases = bounds.is_attentive && !bounds.misses_releases && !is_unsettled && !self.has_missed;
        self.may_ignore = bounds.may_ignore;
        if bounds.holder.is_some() {
            self.unchanged = if is_same { self.unchanged + 1 } else { 0 };
            (self.holder, self.was_attentive, self.has_heard) = (bounds.holder, bounds.is_attentive, false);
        }
        self.has_missed || is_unheard && bounds.misses_releases
    }

    /// Whether the last attempt has found that a release was not announced.
    pub(super) fn has_missed(&self) -> bool {
        self.has_missed
    }

    /// How long to sleep before the next attempt; up to `longest`, where the delays are not longer.
    pub(super) fn delay(&self, backoff: &mut Backoff, longest: Duration, random: u64) -> Duration {
        if !self.hears_releases {
            return backoff.next_delay(random);
        }
        let delay = backoff.long_delay(random);
        if self.may_ignore {
            return delay;
        }
        delay.saturating_mul(1 << self.unchanged.min(MOST_DOUBLINGS)).min(longest.min(LONGEST_SLEEP).max(delay))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_millis(250);

    fn bounds(holder: &str) -> WaitBounds {
        WaitBounds { holder: HolderTag::of(holder.as_bytes()), is_attentive: true, ..WaitBounds::NONE }
    }

    fn delay(listening: &Listening, longest: Duration) -> Duration {
        listening.delay(&mut Backoff::new(Duration::from_millis(2), MAX), longest, u64::MAX)
    }

    #[test]
    fn the_sleep_doubles_while_the_holder_stays() {
        let mut listening = Listening::default();
        let delays: Vec<u128> = (0..8)
            .map(|_| {
                assert!(!listening.attempted(&bounds("holder one"), false));
                delay(&listening, Duration::MAX).as_millis()
            })
            .collect();
        assert_eq!(delays, [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
        assert_eq!(delay(&listening, Duration::from_secs(3)), Duration::from_secs(3));
        assert_eq!(delay(&listening, Duration::ZERO), MAX, "the delays are as they are set");
    }

    #[test]
    fn the_sleep_does_not_double_where_a_release_may_be_ignored() {
        let mut listening = Listening::default();
        let delays: Vec<u128> = [false, true, true, false]
            .map(|may_ignore| {
                listening.attempted(&WaitBounds { may_ignore, ..bounds("holder one") }, false);
                delay(&listening, Duration::MAX).as_millis()
            })
            .into();
        assert_eq!(delays, [250, 250, 250, 2000]);
    }

    #[test]
    fn a_holder_that_follows_an_announced_release_is_no_surprise() {
        let mut listening = Listening::default();
        listening.attempted(&bounds("holder one"), false);
        listening.announced();
        assert!(!listening.attempted(&bounds("holder two"), false));
        assert_eq!(delay(&listening, Duration::MAX), MAX);
    }

    #[test]
    fn a_change_that_was_not_announced_shortens_the_sleep() {
        let mut listening = Listening::default();
        listening.attempted(&bounds("holder one"), false);
        assert!(listening.attempted(&bounds("holder two"), false) && listening.has_missed());
        assert_eq!(delay(&listening, Duration::MAX), Duration::from_millis(6));
        // The client remembers it for a while.
        let remembered = WaitBounds { misses_releases: true, ..bounds("holder three") };
        assert!(listening.attempted(&remembered, false));
        assert!(!listening.attempted(&remembered, false), "the holder has stayed");
        assert_eq!(delay(&listening, Duration::MAX), Duration::from_millis(6));
    }

    #[test]
    fn a_holder_that_is_not_known_says_nothing() {
        let mut listening = Listening::default();
        for (holder, millis) in [("", 250), ("holder one", 250), ("free", 250), ("holder one", 500), ("", 500)] {
            assert!(!listening.attempted(&bounds(holder), false));
            assert_eq!(delay(&listening, Duration::MAX), Duration::from_millis(millis));
        }
        // A release that was announced before an attempt that has not asked is remembered.
        listening.announced();
        assert!(!listening.attempted(&bounds(""), true) && !listening.attempted(&bounds("holder two"), false));
        assert!(listening.attempted(&bounds("holder three"), false), "unheard");
    }
}
