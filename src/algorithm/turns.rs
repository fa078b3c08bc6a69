//! Turns: the order in which programs take a lock that was released.
//!
//! A release is announced by each node that ran it. The announcement says how many programs waited for the lock when
//! its holder last knew, and whether the holder had waited itself. Rules:
//!
//! 1. The announcements of one release by several nodes count once. A node that announces again announces another
//!    release. So does a node that announces more than `STRAGGLERS` after the first one.
//! 2. A waiter counts the holders that had waited and have released since it began to wait. While fewer of them than
//!    waited before it have gone, it delays its attempt, and leaves the lock to those that have waited for longer.
//! 3. One more attempt is due when a quorum has announced a release: the attempt that the first announcement led to may
//!    have come too early.
//! 4. A program that wants a lock again that it has just released defers its first attempt, if others wait. Threads of
//!    one program that pass a lock on among themselves defer only after `LONGEST_RUN` passes.
//! 5. Deferring is in vain when no waiter takes the lock: others may subscribe that never lock. Then it is repeated
//!    only once in `CONTENTION_LASTS`.
//!
//! Turns only decide which program tries first, and for how long. They never decide which one gets the lock.

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

    /// How long to delay the next attempt; `None` is not at all. `random` is drawn evenly from all of `u64`.
    pub fn delay(self, random: u64) -> Option<Duration> {
        match self {
            WakeOrder::After(in_front) => Some(short_delay(random) * u32::from(in_front.min(4))),
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
    /// How many holders that had waited have released the lock.
    departed: u8,
    /// How many programs waited, by the last announcement.
    waiting: u8,
}

impl AnnouncedReleases {
    /// Takes a node's announcement: how many waited, and whether the holder had waited. Gives this waiter's turn, if
    /// the announcement is a reason to try.
    pub fn announced(
        &mut self,
        node: NodeId,
        (waiting, had_waited): (u8, bool),
        quorum: usize,
        now: Timestamp,
    ) -> Option<WakeOrder> {
        let is_late = now.since(self.announced_at) > STRAGGLERS;
        let is_another = self.announced_by.is_empty() || is_late || !self.announced_by.insert(node);
        if is_another {
            self.announced_by = NodeSet::from_iter([node]);
            self.announced_at = now;
            // A holder that had not waited was not among those in front.
            self.departed = self.departed.saturating_add(had_waited.into());
            // Other holders may know of more waiters, and known ones leave.
            self.waiting = waiting.max(self.waiting.saturating_sub(1));
        }
        let order = WakeOrder::of(self.waiting.saturating_sub(1), self.departed);
        let is_complete = self.announced_by.len() == quorum && !matches!(order, WakeOrder::After(_));
        (is_another || is_complete).then_some(order)
    }
}

/// The locks that this client has released lately while other programs waited for them.
#[derive(Clone, Debug, Default)]
pub struct Contention {
    locks: HashMap<Box<[u8]>, ContendedLock>,
}

#[derive(Clone, Debug)]
struct ContendedLock {
    waiters: u8,
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

    /// Notes how many programs received the announcement of a release by this client.
    pub fn note_waiters(&mut self, key: &[u8], waiters: u8, now: Timestamp) {
        if let Some(lock) = self.locks.get_mut(key) {
            (lock.waiters, lock.noted_at) = (waiters, now);
            lock.idle = lock.idle.min(waiters);
            return;
        }
        if self.locks.len() >= CONTENDED_LOCKS {
            self.locks.clear();
        }
        let lock = ContendedLock { waiters, idle: 0, noted_at: now, deferred_at: Timestamp::ORIGIN, run: 0 };
        self.locks.insert(key.into(), lock);
    }

    /// How many programs waited for a lock when this client last released it.
    pub fn waiters(&self, key: &[u8], now: Timestamp) -> u8 {
        let lock = if self.locks.is_empty() { None } else { self.locks.get(key) };
        lock.filter(|lock| now.since(lock.noted_at) < CONTENTION_LASTS).map_or(0, |lock| lock.waiters)
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

    /// Whether a thread that has not waited for another program is to defer its first attempt. `is_handed_on`: it has
    /// waited for another thread of this client.
    pub fn must_defer(&mut self, key: &[u8], is_handed_on: bool, now: Timestamp) -> bool {
        let Some(lock) = self.locks.get_mut(key) else { return false };
        if now.since(lock.noted_at) >= CONTENTION_LASTS {
            self.locks.remove(key);
            return false;
        }
        lock.run += 1;
        let had_no_time = now.since(lock.noted_at) < TIME_TO_TAKE;
        let is_new = lock.noted_at > lock.deferred_at;
        let was_in_vain = lock.waiters <= lock.idle && now.since(lock.deferred_at) < CONTENTION_LASTS;
        let must_defer = had_no_time && is_new && !was_in_vain && (!is_handed_on || lock.run > LONGEST_RUN);
        if must_defer {
            lock.deferred_at = now;
            // In vain, until a release by one of them is announced.
            lock.idle = lock.waiters;
        }
        must_defer
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
    fn a_program_defers_once_for_each_time_that_others_waited() {
        let mut contention = Contention::default();
        assert!(!contention.must_defer(b"k", false, at(1)));
        contention.note_waiters(b"k", 2, at(10));
        assert!(contention.must_defer(b"k", false, at(11)) && !contention.must_defer(b"k", false, at(11)));
        assert_eq!(contention.waiters(b"k", at(11)), 2);
        contention.note_waiters(b"k", 2, at(20));
        assert!(!contention.must_defer(b"k", false, at(23)), "they had time");
        assert!(!contention.must_defer(b"k", false, at(120)) && contention.waiters(b"k", at(120)) == 0);
        assert!(contention.is_empty());
        // Threads that pass the lock on do so a few times.
        let deferred = (0..30).filter(|&time| {
            contention.note_waiters(b"k", 1, at(200 + time));
            contention.note_release(b"k");
            contention.must_defer(b"k", true, at(200 + time))
        });
        assert_eq!(deferred.count(), 30 - LONGEST_RUN as usize, "until one of them waits, which begins a new run");
        contention.note_wait(b"k");
        contention.note_waiters(b"k", 1, at(300));
        assert!(!contention.must_defer(b"k", true, at(300)));
    }

    #[test]
    fn subscribers_that_take_nothing_are_deferred_to_seldom() {
        let mut contention = Contention::default();
        let mut deferred = |times: std::ops::Range<u64>, hears: bool, waiters| {
            let must_defer = |&time: &u64| {
                contention.note_waiters(b"k", waiters, at(time));
                let must_defer = contention.must_defer(b"k", false, at(time));
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
