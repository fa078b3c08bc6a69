//! Contention: which locks of this client other programs wait for, and when its threads leave them to those.
//!
//! Rules 4 and 6 of [`turns`](super::turns) are decided here.

use super::time::Timestamp;
use super::turns::MANY;
use std::collections::HashMap;
use std::time::Duration;

/// For how long it counts that others waited for a lock.
const CONTENTION_LASTS: Duration = Duration::from_millis(100);
/// For how long a holder may announce how many others waited.
const CROWD_LASTS: Duration = Duration::from_secs(2);
/// Most locks of which that is known. It bounds the memory.
const CONTENDED_LOCKS: usize = 1024;
/// How long waiters are given to take a lock, before the program that released it may take it again.
pub const TIME_TO_TAKE: Duration = Duration::from_millis(3);
/// How often the threads of a program pass a contended lock on, before they defer to other programs.
const LONGEST_RUN: u32 = 8;

/// How a lock goes on that a thread of this client releases while another one wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handover {
    /// The release is announced, and the thread tries as well as other programs.
    Open,
    /// The thread takes it. Other programs would ask in vain, so nothing is announced.
    Passed,
    /// The release is announced, and the threads of this client leave the lock to other programs.
    Left,
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

    /// How a lock goes on that a thread of this client releases while another one of its threads wants it.
    pub fn hand_over(&mut self, key: &[u8], now: Timestamp) -> Handover {
        let Some(lock) = self.locks.get_mut(key) else { return Handover::Open };
        if lock.waiters == 0 || now.since(lock.noted_at) >= CONTENTION_LASTS {
            return Handover::Open;
        }
        if lock.run < LONGEST_RUN {
            lock.run += 1;
            return Handover::Passed;
        }
        if lock.was_left_in_vain(now) {
            return Handover::Open;
        }
        (lock.run, lock.idle, lock.deferred_at) = (0, lock.waiters, now);
        Handover::Left
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
        let must_defer =
            had_no_time && is_new && !lock.was_left_in_vain(now) && (!is_handed_on || lock.run > LONGEST_RUN);
        if !must_defer {
            return 0;
        }
        lock.deferred_at = now;
        // In vain, until a release by one of them is announced.
        lock.idle = lock.waiters;
        lock.waiters
    }
}

impl ContendedLock {
    /// Whether other programs were let go first a moment ago, and none has released the lock since.
    fn was_left_in_vain(&self, now: Timestamp) -> bool {
        self.waiters <= self.idle && now.since(self.deferred_at) < CONTENTION_LASTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::ORIGIN.after(Duration::from_millis(millis))
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

    #[test]
    fn a_lock_is_passed_on_unannounced_for_so_long_and_then_left_to_others() {
        let mut contention = Contention::default();
        assert_eq!(contention.hand_over(b"k", at(0)), Handover::Open, "no other program waits");
        contention.note_waiters(b"k", 1, at(0));
        let run = |contention: &mut Contention, now| {
            let passes = (0..100).take_while(|_| contention.hand_over(b"k", at(now)) == Handover::Passed).count();
            assert_eq!(passes, LONGEST_RUN as usize);
        };
        run(&mut contention, 1);
        // What follows on those was left to others.
        run(&mut contention, 2);
        assert_eq!(contention.hand_over(b"k", at(3)), Handover::Open, "no other program has had it");
        contention.note_release(b"k");
        assert_eq!(contention.hand_over(b"k", at(4)), Handover::Left);
        assert_eq!(contention.hand_over(b"k", at(99)), Handover::Passed);
        assert_eq!(contention.hand_over(b"k", at(100)), Handover::Open, "whether others still wait is found out");
    }
}
