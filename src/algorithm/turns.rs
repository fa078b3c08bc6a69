//! Turns: the order in which programs take a lock that was released.
//!
//! A release is announced by each node that ran it. The announcement says how many programs waited for the lock when
//! its holder last knew, and whether the holder had waited itself. Rules:
//!
//! 1. The announcements of one release by several nodes count once. A node that announces again announces another
//!    release. So does a node that announces more than `STRAGGLERS` after the first one.
//! 2. A waiter counts the holders that had waited and have released since it began to wait. While fewer of them than
//!    waited before it have gone, it delays its attempt, and leaves the lock to those that have waited for longer. Each
//!    announcement begins that delay anew. So of many programs the first few ask, and if those have stopped, the next
//!    ones. Each node announces each release that it runs, so that the node counts which has announced the most.
//!    A holder knows how many wait from its own last release, or from what others have announced while it waited. If it
//!    has announced much less than there are, it says so behind the release.
//! 3. One more attempt is due when a quorum has announced a release: the attempt that the first announcement led to may
//!    have come too early. Where many wait, it is the only one: the others would be refused, which each node has to
//!    answer.
//! 4. A program that wants a lock again that it has just released defers its first attempt, if others wait. Threads of
//!    one program that pass a lock on among themselves defer only after `LONGEST_RUN` passes.
//! 5. What a single node announces again and again, and no attempt confirms, is no release. After two of them an
//!    announcement counts if a second node repeats it; otherwise only after a delay that grows eightfold. A single node
//!    has four, and a delay that doubles.
//! 6. Deferring is in vain when no waiter takes the lock: others may subscribe that never lock. Then it is repeated
//!    only once in `CONTENTION_LASTS`.
//!
//! Turns only decide which program tries first, and for how long. They never decide which one gets the lock.

use super::distrust::Distrust;
use super::node::{NodeId, NodeSet};
use super::time::Timestamp;
use std::time::Duration;

/// How long the waiters are given to take a lock that was released: an attempt on nodes that are near, and as long
/// again.
pub(super) const SHORT_DELAY: Duration = Duration::from_millis(2);
/// How long a waiter whose turn it is delays its attempt at most, for one that was overtaken. It is longer than the
/// time by which one program is woken before another.
pub(super) const DUE_DELAY: Duration = Duration::from_micros(300);
/// So many waiters should not all ask at once.
pub(super) const MANY: u8 = 4;
/// How long after the first node the other nodes may announce a release.
const STRAGGLERS: Duration = Duration::from_millis(10);

/// The turn of a waiter when a lock was released, as far as it is known which others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeOrder {
    /// So many have waited for longer.
    After(u8),
    /// This waiter's, or that of one that was overtaken.
    Due,
    /// This waiter's, when more nodes have announced the release.
    Early,
    /// This waiter's, for some time, or no other waits.
    Overdue,
}

impl WakeOrder {
    /// Of a waiter that began to wait behind so many others, after so many of them have had the lock.
    pub fn of(others: u8, departed: u8) -> WakeOrder {
        match others.saturating_sub(departed) {
            0 if others == 0 || departed > others => WakeOrder::Overdue,
            0 => WakeOrder::Due,
            in_front => WakeOrder::After(in_front),
        }
    }

    /// Whether others have waited for longer.
    pub fn is_after_others(self) -> bool {
        matches!(self, WakeOrder::After(_))
    }

    /// How long to delay the next attempt; `None` is not at all. `random` is drawn evenly from all of `u64`.
    pub fn delay(self, random: u64) -> Option<Duration> {
        match self {
            WakeOrder::After(in_front) => Some(short_delay(random) * u32::from(in_front)),
            WakeOrder::Early => Some(short_delay(random)),
            WakeOrder::Due => Some(DUE_DELAY.mul_f64(random as f64 / u64::MAX as f64)),
            WakeOrder::Overdue => None,
        }
    }
}

/// `SHORT_DELAY`, or up to half as long again.
pub(super) fn short_delay(random: u64) -> Duration {
    SHORT_DELAY + SHORT_DELAY.mul_f64(random as f64 / u64::MAX as f64 / 2.0)
}

/// The announced releases of one lock, since a program began to wait for it.
#[derive(Clone, Debug, Default)]
pub struct AnnouncedReleases {
    /// The nodes that have announced the last release, and when the first of them did.
    announced_by: NodeSet,
    announced_at: Timestamp,
    /// How many attempts in a row have followed announcements of a single node in vain, and until when it is
    /// distrusted.
    vain: u32,
    distrusted_until: Timestamp,
    line: Line,
}

/// The programs that wait for a lock, or for any of several, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// How many holders that had waited have released a lock, by node.
    departed: Vec<u8>,
    /// How many programs waited, by the last announcement.
    waiting: u8,
}

impl AnnouncedReleases {
    /// Takes another line for its own: that of several locks which the same programs wait for.
    pub fn swap_line(&mut self, line: &mut Line) {
        std::mem::swap(&mut self.line, line);
    }

    /// Takes a node's announcement: how many waited, and whether the holder had waited. Gives this waiter's turn, if
    /// the announcement is a reason to try.
    pub fn announced(
        &mut self,
        node: NodeId,
        (waiting, had_waited): (u8, bool),
        quorum: usize,
        now: Timestamp,
    ) -> Option<WakeOrder> {
        if had_waited {
            // A holder that had not waited was not among those in front.
            let departed = &mut self.line.departed;
            departed.resize(departed.len().max(node.index() + 1), 0);
            departed[node.index()] = departed[node.index()].saturating_add(1);
        }
        let is_late = now.since(self.announced_at) > STRAGGLERS;
        let is_another = self.announced_by.is_empty() || is_late || !self.announced_by.insert(node);
        if is_another {
            self.announced_by = NodeSet::from_iter([node]);
            self.announced_at = now;
            // Other holders may know of more waiters, and known ones leave.
            self.line.waiting = waiting.max(self.line.waiting.saturating_sub(1));
        }
        let departed = self.line.departed.iter().copied().max().unwrap_or(0);
        let order = WakeOrder::of(self.others(), departed);
        let is_complete = self.announced_by.len() == quorum && !order.is_after_others();
        if self.distrusts(quorum, now) {
            // Of the nodes that announce it, the second one confirms it.
            return (self.announced_by.len() == 2 && !is_another).then_some(order);
        }
        let is_early = self.line.waiting >= MANY && self.announced_by.len() < quorum && !order.is_after_others();
        (is_another || is_complete).then_some(if is_early { WakeOrder::Early } else { order })
    }

    /// Takes a node's announcement to a waiter of a fair lock whose turn it is. `is_named`: it says so itself. Gives
    /// when to try, if it is a reason to.
    pub fn due(&mut self, node: NodeId, is_named: bool, quorum: usize, now: Timestamp) -> Option<WakeOrder> {
        let order = self.announced(node, (0, false), quorum, now);
        // What a node announces behind a quorum matters where the attempt has come before its release.
        let order = order.or(is_named.then_some(WakeOrder::Early))?;
        // The other nodes announce it in a moment. Before a quorum has released the lock, no attempt can win.
        Some(if self.announced_by.len() < quorum { WakeOrder::Early } else { order })
    }

    /// Whether what a single node announces is ignored.
    pub fn distrusts(&self, quorum: usize, now: Timestamp) -> bool {
        self.vain >= Distrust::with_quorum(quorum).most_vain && now < self.distrusted_until
    }

    /// How many others wait when this program has the lock, by the last announcement.
    pub fn others(&self) -> u8 {
        self.line.waiting.saturating_sub(1)
    }

    /// This program has had its turn, and waits on: all others are in front.
    pub fn had_turn(&mut self) {
        self.line.departed.clear();
    }

    /// A holder has said behind its release how many wait.
    pub fn counted(&mut self, waiting: u8) {
        self.line.waiting = self.line.waiting.max(waiting);
    }

    /// An attempt has followed an announcement. `is_refused`: a quorum refused it. Gives whether the
    /// announcement was of a single node that is distrusted.
    pub fn followed(&mut self, is_refused: bool, quorum: usize, now: Timestamp) -> bool {
        if !is_refused || self.announced_by.len() > 1 {
            self.vain = 0;
            return false;
        }
        let distrust = Distrust::with_quorum(quorum);
        self.vain += 1;
        let doublings = distrust.growth * self.vain.saturating_sub(distrust.most_vain);
        self.distrusted_until = now.after((SHORT_DELAY * (1 << doublings.min(16))).min(distrust.longest));
        self.vain > distrust.most_vain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::ORIGIN.after(Duration::from_millis(millis))
    }

    /// The turns after announcements by these nodes, of the only waiter.
    fn announced(releases: &mut AnnouncedReleases, nodes: &[usize], quorum: usize, now: u64) -> Vec<Option<WakeOrder>> {
        nodes.iter().map(|&node| releases.announced(NodeId::new(node), (1, false), quorum, at(now))).collect()
    }

    const TRY: Option<WakeOrder> = Some(WakeOrder::Overdue);

    #[test]
    fn a_release_is_a_reason_to_try_when_it_is_announced_first_and_when_it_is_complete() {
        let mut releases = AnnouncedReleases::default();
        assert_eq!(announced(&mut releases, &[3, 1, 0, 2], 3, 1), [TRY, None, TRY, None]);
        assert_eq!(announced(&mut releases, &[4], 3, 1), [None]);
        assert_eq!(announced(&mut releases, &[4, 4], 3, 1), [TRY, TRY], "two other releases");
    }

    #[test]
    fn many_wait_until_a_quorum_has_announced_it() {
        let of_many = |quorum, nodes: &[usize]| {
            let mut releases = AnnouncedReleases::default();
            let hint = |&node: &usize| releases.announced(NodeId::new(node), (MANY, false), quorum, at(1));
            nodes.iter().map(hint).collect::<Vec<_>>()
        };
        let in_front = Some(WakeOrder::After(MANY - 1));
        assert_eq!(of_many(2, &[0, 1, 2]), [in_front, None, None]);
        let mut releases = AnnouncedReleases::default();
        releases.line.departed = vec![MANY + 1; 3];
        let order = |node| releases.announced(NodeId::new(node), (MANY, false), 2, at(1));
        assert_eq!([0, 1, 2].map(order), [Some(WakeOrder::Early), TRY, None]);
        assert_eq!(of_many(1, &[0]), [in_front]);
    }

    #[test]
    fn a_late_announcement_is_of_another_release() {
        let mut releases = AnnouncedReleases::default();
        assert_eq!(announced(&mut releases, &[0, 1], 2, 5), [TRY, TRY]);
        assert_eq!(announced(&mut releases, &[2], 2, 15), [None], "a straggler");
        let mut releases = AnnouncedReleases::default();
        assert_eq!(announced(&mut releases, &[0, 1], 2, 5), [TRY, TRY]);
        // The next holder had one of them, which hangs, and the third.
        assert_eq!(announced(&mut releases, &[2], 2, 16), [TRY]);
    }

    #[test]
    fn turns_go_by_the_holders_that_had_waited() {
        let mut releases = AnnouncedReleases::default();
        let order = |had_waited| releases.announced(NodeId::new(0), (3, had_waited), 1, at(1));
        let orders = [false, true, false, true, true].map(order);
        let expected =
            [WakeOrder::After(2), WakeOrder::After(1), WakeOrder::After(1), WakeOrder::Due, WakeOrder::Overdue];
        assert_eq!(orders, expected.map(Some));
    }

    #[test]
    fn releases_that_follow_each_other_at_once_are_all_counted() {
        let mut releases = AnnouncedReleases::default();
        let mut last = None;
        // Each release is announced by another quorum first.
        for nodes in [[0, 1], [2, 1], [0, 2]] {
            for node in nodes {
                last = releases.announced(NodeId::new(node), (4, true), 2, at(1)).or(last);
            }
        }
        assert_eq!(last, Some(WakeOrder::After(1)), "node 0, 1 or 2 has announced two of them");
    }

    #[test]
    fn what_one_node_announces_in_vain_is_believed_less_and_less() {
        // Each second one node announces something a hundred times, and no attempt finds the lock free.
        let attempts = |quorum, seconds: u64| {
            let mut releases = AnnouncedReleases::default();
            let mut attempts = 0;
            for time in (1..seconds * 1000).step_by(10) {
                if releases.announced(NodeId::new(0), (1, false), quorum, at(time)).is_some() {
                    attempts += 1;
                    releases.followed(true, quorum, at(time));
                }
            }
            (attempts, releases)
        };
        let (many, mut releases) = attempts(2, 60);
        assert!(many <= 12, "{many}");
        let (alone, _) = attempts(1, 60);
        assert!((200..300).contains(&alone), "{alone}");
        // A release is announced by several nodes.
        assert_eq!(announced(&mut releases, &[0, 1, 2], 2, 60_001), [None, TRY, None]);
        releases.followed(false, 2, at(60_002));
        assert_eq!(announced(&mut releases, &[0], 2, 60_020), [TRY], "it is believed again");
    }
}
