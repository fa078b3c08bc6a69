//! The releases that a node has not run and is to be sent again.
//!
//! A release is kept no longer than its key can live. A node that answers that it cannot run one at
//! present gets none for a pause that grows, and then a single one to find out. An error that may
//! concern a single key tells nothing of other releases: those that were answered so have a pause
//! of their own, and hold up no other one.

use crate::algorithm::pending_release::concerns_all_releases;
use crate::algorithm::time::Timestamp;
use crate::fault::Fault;
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
    /// Those that a lost connection left, or that the node cannot run at present, and those with
    /// errors of their own.
    lanes: [Lane; 2],
    /// The last one that was sent of those with errors of their own. When the node runs it, the
    /// others may be run too.
    probe: Option<Ticket>,
    /// When the last key has ended of the releases that were queued on the present connection and
    /// whose keys may be on the node. While the connection is being made, such a release counts as
    /// unanswered ([`awaits_release`](super::NodeConnection::awaits_release)).
    pub(super) carried_until: Timestamp,
}

/// Releases that share a pause.
#[derive(Debug, Default)]
struct Lane {
    by_end: BTreeSet<(Timestamp, Ticket)>,
    /// Refusals in a row, and why the last one was refused.
    refusals: u32,
    refusal: Option<Fault>,
    paused_until: Timestamp,
    /// The one that was taken last, of several that are refused: the next one is another one.
    last: Option<(Timestamp, Ticket)>,
}

impl PendingReleases {
    /// Keeps a release, which the node has refused if there is a fault. Returns another one that is
    /// dropped for it, if there is no room.
    pub(in crate::engine) fn insert(
        &mut self,
        ticket: Ticket,
        end: Timestamp,
        refusal: Option<(Fault, Timestamp)>,
    ) -> Option<Ticket> {
        let is_own = refusal.is_some_and(|(fault, _)| !concerns_all_releases(fault.cause));
        let lane = &mut self.lanes[usize::from(is_own)];
        if let Some((fault, now)) = refusal {
            lane.refused(fault, now);
        }
        lane.by_end.insert((end, ticket));
        let count: usize = self.lanes.iter().map(|lane| lane.by_end.len()).sum();
        if count <= LIMIT {
            None
        } else {
            self.first_lane()?
                .by_end
                .pop_first()
                .map(|(_, ticket)| ticket)
        }
    }

    /// Takes the release that can be sent now and whose key lasts longest.
    pub(in crate::engine) fn take(&mut self, now: Timestamp) -> Option<Ticket> {
        let [others, own] = &mut self.lanes;
        others
            .take(now)
            .or_else(|| own.take(now).inspect(|&ticket| self.probe = Some(ticket)))
    }

    /// Takes a release whose key has ended by itself.
    pub(in crate::engine) fn take_ended(&mut self, now: Timestamp) -> Option<Ticket> {
        let lane = self.first_lane()?;
        let &(end, ticket) = lane.by_end.first()?;
        if now < end {
            return None;
        }
        lane.by_end.pop_first();
        if lane.by_end.is_empty() {
            lane.resume();
        }
        Some(ticket)
    }

    /// There is another connection, perhaps to another process: one release is enough to find out.
    pub(in crate::engine) fn reconnected(&mut self) {
        self.lanes
            .iter_mut()
            .for_each(|lane| lane.paused_until = Timestamp::ORIGIN);
        self.carried_until = Timestamp::ORIGIN;
    }

    /// The node has run a release.
    pub(in crate::engine) fn resume(&mut self, ticket: Ticket) {
        let [others, own] = &mut self.lanes;
        others.resume();
        if self.probe == Some(ticket) {
            own.resume();
        }
    }

    /// A release is queued on the present connection whose key may be on the node, until then.
    pub(in crate::engine) fn carry(&mut self, end: Timestamp) {
        self.carried_until = self.carried_until.max(end);
    }

    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.by_end.is_empty())
    }

    pub(in crate::engine) fn tickets(&self) -> impl Iterator<Item = Ticket> + '_ {
        self.lanes
            .iter()
            .flat_map(|lane| &lane.by_end)
            .map(|&(_, ticket)| ticket)
    }

    /// Why the node has not run them, if it was asked.
    pub(in crate::engine) fn refusal(&self) -> Option<Fault> {
        self.lanes.iter().find_map(|lane| lane.refusal)
    }

    /// The end of the first pause.
    pub(in crate::engine) fn paused_until(&self) -> Timestamp {
        let lanes = self.lanes.iter().filter(|lane| !lane.by_end.is_empty());
        lanes
            .map(|lane| lane.paused_until)
            .min()
            .unwrap_or(Timestamp::ORIGIN)
    }

    /// When the first of the keys ends by itself.
    pub(in crate::engine) fn first_end(&self) -> Timestamp {
        self.lanes
            .iter()
            .map(Lane::first_end)
            .min()
            .unwrap_or(Timestamp::NEVER)
    }

    /// The lane with the key that ends first.
    fn first_lane(&mut self) -> Option<&mut Lane> {
        self.lanes.iter_mut().min_by_key(|lane| lane.first_end())
    }
}

impl Lane {
    fn take(&mut self, now: Timestamp) -> Option<Ticket> {
        if now < self.paused_until {
            return None;
        }
        let next = self
            .last
            .and_then(|last| self.by_end.range(..last).next_back());
        let next = *next.or(self.by_end.last())?;
        if self.refusals > 0 {
            // One is enough to find out; its answer, or the end of the pause, allows the next.
            self.refusals = self.refusals.saturating_add(1);
            self.paused_until = now.after(self.pause());
            self.last = Some(next);
        }
        self.by_end.remove(&next);
        Some(next.1)
    }

    fn refused(&mut self, fault: Fault, now: Timestamp) {
        // Several that were sent together are refused together: only those that are sent later
        // count.
        self.refusals = self.refusals.max(1);
        self.refusal = Some(fault);
        self.paused_until = now.after(self.pause());
    }

    fn resume(&mut self) {
        self.refusals = 0;
        self.refusal = None;
        self.last = None;
        self.paused_until = Timestamp::ORIGIN;
    }

    fn first_end(&self) -> Timestamp {
        self.by_end
            .first()
            .map_or(Timestamp::NEVER, |&(end, _)| end)
    }

    fn pause(&self) -> Duration {
        FIRST_PAUSE
            .saturating_mul(1 << self.refusals.saturating_sub(1).min(8))
            .min(LONGEST_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::{at, ticket};
    use crate::fault::server_error::ServerError;
    use crate::fault::{Cause, Phase};

    const BUSY: Fault = Fault::new(Phase::Reply, Cause::Server(ServerError::Busy));
    const DENIED: Fault = Fault::new(Phase::Reply, Cause::NoPermission);

    #[test]
    fn a_release_is_kept_until_its_key_has_ended() {
        let mut pending = PendingReleases::default();
        for (slot, end) in [(0, 30), (1, 10), (2, 20)] {
            assert_eq!(pending.insert(ticket(slot), at(end), None), None);
        }
        assert_eq!(pending.take_ended(at(9)), None);
        assert_eq!(pending.take_ended(at(10)), Some(ticket(1)));
        assert_eq!(
            (pending.take_ended(at(10)), pending.first_end()),
            (None, at(20))
        );
        assert_eq!(
            [pending.take(at(11)), pending.take(at(11))],
            [Some(ticket(0)), Some(ticket(2))]
        );
        assert!(pending.is_empty() && pending.take(at(11)).is_none());
    }

    #[test]
    fn where_there_is_no_room_the_release_whose_key_ends_first_is_dropped() {
        let mut pending = PendingReleases::default();
        for slot in 0..LIMIT as u32 {
            assert_eq!(
                pending.insert(ticket(slot), at(u64::from(slot) + 10), None),
                None
            );
        }
        assert_eq!(
            pending.insert(ticket(u32::MAX), at(1_000_000), None),
            Some(ticket(0))
        );
        assert_eq!(
            pending.insert(ticket(0), at(5), Some((DENIED, at(0)))),
            Some(ticket(0)),
            "whatever its error"
        );
    }

    #[test]
    fn a_node_that_refuses_is_asked_for_one_release_per_growing_pause() {
        let mut pending = PendingReleases::default();
        for slot in 0..1000 {
            pending.insert(ticket(slot), at(1_000_000), None);
        }
        let mut taken = 0;
        let mut taken_at = Vec::new();
        pending.insert(ticket(1000), at(1_000_000), Some((BUSY, at(0))));
        for now in 0..5000 {
            while let Some(ticket) = pending.take(at(now)) {
                taken += 1;
                taken_at.push(now);
                pending.insert(ticket, at(1_000_000), Some((BUSY, at(now))));
            }
        }
        assert_eq!(
            (taken, &taken_at[..4]),
            (taken_at.len(), &[100, 300, 700, 1500][..]),
            "{taken_at:?}"
        );
        assert!(
            taken_at
                .windows(2)
                .skip(3)
                .all(|pair| pair[1] - pair[0] == 1000),
            "{taken_at:?}"
        );
        assert_eq!(pending.refusal(), Some(BUSY));
        pending.resume(ticket(2000));
        assert!((0..100).all(|_| pending.take(at(5000)).is_some()));
    }

    #[test]
    fn errors_that_may_concern_a_single_key_hold_up_no_other_release() {
        let mut pending = PendingReleases::default();
        for slot in 0..3 {
            pending.insert(
                ticket(slot),
                at(1_000_000 + u64::from(slot)),
                Some((DENIED, at(0))),
            );
        }
        pending.insert(ticket(9), at(10), None);
        assert_eq!(
            [pending.take(at(1)), pending.take(at(1))],
            [Some(ticket(9)), None]
        );
        let mut taken = Vec::new();
        for now in 1..10_000 {
            // Others are run all the time.
            pending.resume(ticket(9));
            while let Some(denied) = pending.take(at(now)) {
                taken.push(denied.slot);
                pending.insert(
                    denied,
                    at(1_000_000 + u64::from(denied.slot)),
                    Some((DENIED, at(now))),
                );
            }
        }
        assert!(
            taken.len() <= 13 && taken.starts_with(&[2, 1, 0, 2, 1, 0]),
            "{taken:?}"
        );
        let probe = pending.take(at(20_000)).unwrap();
        pending.resume(probe);
        assert!(
            pending.take(at(20_000)).is_some() && pending.take(at(20_000)).is_some(),
            "they may all be run now"
        );
    }
}
