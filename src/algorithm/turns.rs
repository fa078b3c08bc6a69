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
use std::collections::HashMap;
use std::time::Duration;

/// How long the waiters are given to take a lock that was released: an attempt on nodes that are near, and as long
/// again.
pub(super) const SHORT_DELAY: Duration = Duration::from_millis(2);
/// How long a waiter whose turn it is delays its attempt at most, for one that was overtaken. It is longer than the
/// time by which one program is woken before another.
pub(super) const DUE_DELAY: Duration = Duration::from_micros(300);
/// For how long it counts that others waited for a lock.
const CONTENTION_LASTS: Duration = Duration::from_millis(100);
/// For how long a holder may announce how many others waited.
const CROWD_LASTS: Duration = Duration::from_secs(2);
/// So many waiters should not all ask at once.
const MANY: u8 = 4;
/// Most locks of which that is known. It bounds the memory.
const CONTENDED_LOCKS: usize = 1024;
/// How long waiters are given to take a lock, before the program that released it may take it again.
const TIME_TO_TAKE: Duration = Duration::from_millis(3);
/// How long after the first node the other nodes may announce a release.
const STRAGGLERS: Duration = Duration::from_millis(10);
/// How often the threads of a program pass a contended lock on, before they defer to other programs.
const LONGEST_RUN: u32 = 8;

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

/// The locks that this client has released lately while other programs waited for them.
#[derive(Clone, Debug, Default)]
pub struct Contention {
    locks: HashMap<Box<[u8]>, ContendedLock>,
}

#[derive(Clone, Debug, Default)]
struct ContendedLock {
    waiters: u8,
    /// How many waited when this client last acquired the lock after a wait, as others have announced, and when that
    /// was.
    heard: (u8, Timestamp),
    /// How many of them did not take the lock when they were let go first. Others than waiters may subscribe: to all
    /// keys, or to the same name in another database of the server.
    idle: u8,
    noted_at: Timestamp,
    /// When this client last deferred.
    deferred_at: Timestamp,
    /// How often its threads have passed the lock on since one of them last waited for another program.
    run: u32,
}

impl Contention {
    /// Whether no lock is contended.
    pub fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    /// Notes how many programs received the announcement of a release by this client. Gives whether that are many more
    /// than it announced.
    pub fn note_waiters(&mut self, key: &[u8], waiters: u8, now: Timestamp) -> bool {
        let announced = self.waiters(key, now);
        let lock = self.lock(key);
        (lock.waiters, lock.noted_at) = (waiters, now);
        lock.idle = lock.idle.min(waiters);
        waiters >= MANY && announced < waiters / 2
    }

    /// Notes how many others wait for a lock that this client has waited for and acquired.
    pub fn note_others(&mut self, key: &[u8], others: u8, now: Timestamp) {
        self.lock(key).heard = (others, now);
    }

    /// How many programs wait for a lock, as far as is known.
    pub fn waiters(&self, key: &[u8], now: Timestamp) -> u8 {
        let lock = if self.locks.is_empty() { None } else { self.locks.get(key) };
        let recent = |(waiters, noted_at)| if now.since(noted_at) < CROWD_LASTS { waiters } else { 0 };
        lock.map_or(0, |lock| recent((lock.waiters, lock.noted_at)).max(recent(lock.heard)))
    }

    fn lock(&mut self, key: &[u8]) -> &mut ContendedLock {
        if self.locks.len() >= CONTENDED_LOCKS && !self.locks.contains_key(key) {
            self.locks.clear();
        }
        self.locks.entry(key.into()).or_default()
    }

    /// A thread of this client waits for another program: the run of its threads is over.
    pub fn note_wait(&mut self, key: &[u8]) {
        if let Some(lock) = self.locks.get_mut(key) {
            lock.run = 0;
        }
    }

    /// Another program has released the lock: deferring to the waiters was not in vain.
    pub fn note_release(&mut self, key: &[u8]) {
        if let Some(lock) = self.locks.get_mut(key) {
            lock.idle = 0;
        }
    }

    /// How many programs a thread that has not waited for another one is to let go first, by deferring its first
    /// attempt. `is_handed_on`: it has waited for another thread of this client.
    pub fn defers_to(&mut self, key: &[u8], is_handed_on: bool, now: Timestamp) -> u8 {
        let Some(lock) = self.locks.get_mut(key) else { return 0 };
        if now.since(lock.noted_at) >= CONTENTION_LASTS {
            if self.waiters(key, now) == 0 {
                self.locks.remove(key);
            }
            return 0;
        }
        lock.run += 1;
        let had_no_time = now.since(lock.noted_at) < TIME_TO_TAKE;
        let is_new = lock.noted_at > lock.deferred_at;
        let was_in_vain = lock.waiters <= lock.idle && now.since(lock.deferred_at) < CONTENTION_LASTS;
        let must_defer = had_no_time && is_new && !was_in_vain && (!is_handed_on || lock.run > LONGEST_RUN);
        if !must_defer {
            return 0;
        }
        lock.deferred_at = now;
        // In vain, until a release by one of them is announced.
        lock.idle = lock.waiters;
        lock.waiters
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

    #[test]
    fn a_program_defers_once_for_each_time_that_others_waited() {
        let mut contention = Contention::default();
        assert_eq!(contention.defers_to(b"k", false, at(1)), 0);
        contention.note_waiters(b"k", 2, at(10));
        assert_eq!([11, 11].map(|time| contention.defers_to(b"k", false, at(time))), [2, 0]);
        assert_eq!(contention.waiters(b"k", at(11)), 2);
        contention.note_waiters(b"k", 2, at(20));
        assert_eq!(contention.defers_to(b"k", false, at(23)), 0, "they had time");
        assert_eq!((contention.defers_to(b"k", false, at(120)), contention.waiters(b"k", at(120))), (0, 2));
        assert_eq!((contention.defers_to(b"k", false, at(2020)), contention.waiters(b"k", at(2020))), (0, 0));
        assert!(contention.is_empty());
        // Threads that pass the lock on do so a few times.
        let deferred = (0..30).filter(|&time| {
            contention.note_waiters(b"k", 1, at(3000 + time));
            contention.note_release(b"k");
            contention.defers_to(b"k", true, at(3000 + time)) > 0
        });
        assert_eq!(deferred.count(), 30 - LONGEST_RUN as usize, "until one of them waits, which begins a new run");
        contention.note_wait(b"k");
        contention.note_waiters(b"k", 1, at(3100));
        assert_eq!(contention.defers_to(b"k", true, at(3100)), 0);
    }

    #[test]
    fn subscribers_that_take_nothing_are_deferred_to_seldom() {
        let mut contention = Contention::default();
        let mut deferred = |times: std::ops::Range<u64>, hears: bool, waiters| {
            let must_defer = |&time: &u64| {
                contention.note_waiters(b"k", waiters, at(time));
                let must_defer = contention.defers_to(b"k", false, at(time)) > 0;
                if hears {
                    contention.note_release(b"k");
                }
                must_defer
            };
            times.filter(must_defer).count()
        };
        assert_eq!(deferred(200..300, false, 1), 1, "a monitor that subscribes to all");
        assert_eq!(deferred(300..400, false, 1), 1, "once in a while");
        assert_eq!(deferred(400..401, false, 2), 1, "one more");
        assert_eq!(deferred(401..411, true, 2), 9, "a waiter that takes the lock");
    }
}
