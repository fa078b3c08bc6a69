//! The releases that a node has not run and is to be sent again.
//!
//! A release is kept no longer than its key can live. A node that answers that it cannot run one at present gets
//! none for a pause that grows, and then a single one to find out.

use crate::algorithm::time::Timestamp;
use crate::protocol::session::Ticket;
use std::collections::BTreeSet;
use std::time::Duration;

/// Most releases that are kept for one node. Beyond that the one whose key ends first is dropped.
const LIMIT: usize = 65_536;
/// Pause after the first of several refusals in a row; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The releases to send again, each with the time at which its key has ended by itself.
#[derive(Debug, Default)]
pub(in crate::engine) struct PendingReleases {
    by_end: BTreeSet<(Timestamp, Ticket)>,
    /// Refusals in a row.
    refusals: u32,
    paused_until: Timestamp,
    /// Of the present connection, since it was begun: whether a release was queued on it whose key may be on the node.
    /// While it is being made, such a release counts as unanswered
    /// ([`awaits_release`](super::NodeConnection::awaits_release)).
    pub(in crate::engine) is_carried: bool,
}

impl PendingReleases {
    /// Keeps a release. Gives another one that is dropped for it, if there is no room.
    pub(in crate::engine) fn insert(&mut self, ticket: Ticket, end: Timestamp) -> Option<Ticket> {
        self.by_end.insert((end, ticket));
        if self.by_end.len() <= LIMIT { None } else { self.by_end.pop_first().map(|(_, ticket)| ticket) }
    }

    /// Takes the release that can be sent now and whose key lasts longest.
    pub(in crate::engine) fn take(&mut self, now: Timestamp) -> Option<Ticket> {
        if now < self.paused_until {
            return None;
        }
        if self.refusals > 0 {
            // One is enough to find out; its answer, or the end of the pause, allows the next.
            self.refusals = self.refusals.saturating_add(1);
            self.paused_until = now.after(self.pause());
        }
        self.by_end.pop_last().map(|(_, ticket)| ticket)
    }

    /// Takes a release whose key has ended by itself.
    pub(in crate::engine) fn take_ended(&mut self, now: Timestamp) -> Option<Ticket> {
        let &(end, ticket) = self.by_end.first()?;
        if now < end {
            return None;
        }
        self.by_end.pop_first();
        Some(ticket)
    }

    /// The node could not run a release.
    pub(in crate::engine) fn refused(&mut self, now: Timestamp) {
        // Several that were sent together are refused together: only those that are sent later count.
        self.refusals = self.refusals.max(1);
        self.paused_until = now.after(self.pause());
    }

    /// There is another connection, perhaps to another process: one release is enough to find out.
    pub(in crate::engine) fn reconnected(&mut self) {
        (self.paused_until, self.is_carried) = (Timestamp::ORIGIN, false);
    }

    /// The node has run a release.
    pub(in crate::engine) fn resume(&mut self) {
        (self.refusals, self.paused_until) = (0, Timestamp::ORIGIN);
    }

    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.by_end.is_empty()
    }

    pub(in crate::engine) fn tickets(&self) -> impl Iterator<Item = Ticket> + '_ {
        self.by_end.iter().map(|&(_, ticket)| ticket)
    }

    /// The end of the pause.
    pub(in crate::engine) fn paused_until(&self) -> Timestamp {
        self.paused_until
    }

    /// When the first of the keys ends by itself.
    pub(in crate::engine) fn first_end(&self) -> Timestamp {
        self.by_end.first().map_or(Timestamp::NEVER, |&(end, _)| end)
    }

    fn pause(&self) -> Duration {
        FIRST_PAUSE.saturating_mul(1 << self.refusals.saturating_sub(1).min(8)).min(LONGEST_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::ORIGIN.after(Duration::from_millis(millis))
    }

    fn ticket(slot: u32) -> Ticket {
        Ticket { slot, generation: 0 }
    }

    #[test]
    fn a_release_is_kept_until_its_key_has_ended() {
        let mut pending = PendingReleases::default();
        for (slot, end) in [(0, 30), (1, 10), (2, 20)] {
            assert_eq!(pending.insert(ticket(slot), at(end)), None);
        }
        assert_eq!(pending.take_ended(at(9)), None);
        assert_eq!(pending.take_ended(at(10)), Some(ticket(1)));
        assert_eq!((pending.take_ended(at(10)), pending.first_end()), (None, at(20)));
        assert_eq!([pending.take(at(11)), pending.take(at(11))], [Some(ticket(0)), Some(ticket(2))]);
        assert!(pending.is_empty() && pending.take(at(11)).is_none());
    }

    #[test]
    fn where_there_is_no_room_the_release_whose_key_ends_first_is_dropped() {
        let mut pending = PendingReleases::default();
        for slot in 0..LIMIT as u32 {
            assert_eq!(pending.insert(ticket(slot), at(u64::from(slot) + 10)), None);
        }
        assert_eq!(pending.insert(ticket(u32::MAX), at(1_000_000)), Some(ticket(0)));
    }

    #[test]
    fn a_node_that_refuses_is_asked_for_one_release_per_growing_pause() {
        let mut pending = PendingReleases::default();
        for slot in 0..1000 {
            pending.insert(ticket(slot), at(1_000_000));
        }
        let (mut taken, mut taken_at) = (0, Vec::new());
        pending.refused(at(0));
        for now in 0..5000 {
            while pending.take(at(now)).is_some() {
                taken += 1;
                taken_at.push(now);
                pending.refused(at(now));
            }
        }
        assert_eq!((taken, &taken_at[..4]), (taken_at.len(), &[100, 300, 700, 1500][..]), "{taken_at:?}");
        assert!(taken_at.windows(2).skip(3).all(|pair| pair[1] - pair[0] == 1000), "{taken_at:?}");
        pending.resume();
        assert!((0..100).all(|_| pending.take(at(5000)).is_some()));
    }
}
