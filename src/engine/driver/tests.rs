//! Tests of what is under the driver's mutex: which batches are held, what is begun with them, and
//! which thread is named.

use super::reactor::Reactor;
use super::state::{Helper, State};
use super::submissions::{Submissions, Submitted};
use super::wait_cell::{WaitCell, WaitSlot};
use super::{Driver, OwnWait, POLL_PATIENCE, Timestamp};
use crate::os::sync::{Condvar, Mutex, lock};
use std::any::TypeId;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A reactor that writes down what is done with it. A ticket is the submission itself, and is
/// decided when that is said.
#[derive(Default)]
struct Notes {
    begun: Vec<u32>,
    decided: Vec<u32>,
    /// The slots of those that were decided, and have not been reported.
    reported: Vec<WaitSlot>,
    slots: Vec<(u32, WaitSlot)>,
    flushes: usize,
    interrupts: usize,
    ended_polls: usize,
    solitary_waits: usize,
    looks: usize,
    /// The time.
    now: Timestamp,
    work_due: Option<Timestamp>,
}

impl Notes {
    fn decide(&mut self, ticket: u32) {
        self.decided.push(ticket);
        let slots = self.slots.iter().filter(|(other, _)| *other == ticket);
        self.reported.extend(slots.map(|(_, slot)| *slot));
    }
}

impl Reactor for Notes {
    type Ticket = u32;
    type Submission = u32;
    type Verdict = u32;
    type Posting = u32;
    type Watch = ();

    fn now(&self) -> Timestamp {
        self.now
    }

    fn begin(&mut self, submission: &u32, _now: Timestamp) -> (u32, bool) {
        self.begun.push(*submission);
        (*submission, false)
    }

    fn begin_posted(&mut self, posting: u32, _now: Timestamp) {
        self.begun.push(posting);
    }

    fn conclude(&mut self, ticket: u32) -> u32 {
        ticket
    }

    fn is_decided(&self, ticket: u32) -> bool {
        self.decided.contains(&ticket)
    }

    fn assign(&mut self, ticket: u32, slot: Option<WaitSlot>) {
        self.slots.extend(slot.map(|slot| (ticket, slot)));
    }

    fn next_decided(&mut self) -> Option<WaitSlot> {
        self.reported.pop()
    }

    fn flush(&mut self) {
        self.flushes += 1;
    }

    fn interrupt(&mut self) {
        self.interrupts += 1;
    }

    fn end_polls(&mut self) {
        self.ended_polls += 1;
    }

    fn record_solitary_wait(&mut self, _time: Duration) {
        self.solitary_waits += 1;
    }

    fn has_work_left(&self) -> bool {
        self.work_due.is_some()
    }

    fn work_due(&self, _now: Timestamp) -> Option<Timestamp> {
        self.work_due
    }

    fn await_work(&mut self, _now: Timestamp) -> u32 {
        u32::MAX
    }

    fn absorb(&mut self, _watch: (), _now: Timestamp) {
        self.looks += 1;
    }

    fn watch(&mut self, _alone: bool, _now: Timestamp) {}
    fn poll(_watch: &mut (), _timeout: Duration) {}
    fn expire(&mut self, _ticket: u32, _now: Timestamp) {}
    fn leave_work(&mut self, _ticket: u32) {}
    fn interrupt_work(&mut self) {}
}

fn awaited(submission: u32) -> (Submitted<Notes>, Arc<WaitCell<u32>>) {
    let cell = WaitCell::new();
    (Submitted::Awaited(submission, Arc::clone(&cell)), cell)
}

/// Several threads use the client, and a batch has begun: the next one is held.
fn held() -> (State<Notes>, Mutex<Submissions<Notes>>) {
    let mut state = State::new(Notes::default());
    state.sleepers.on_other_thread();
    state.begin_batch();
    assert!(state.batch.is_held());
    let submissions = Submissions {
        is_open: true,
        ..Submissions::NONE
    };
    (state, Mutex::new(submissions))
}

#[test]
fn a_batch_that_a_poll_is_held_for_takes_what_is_submitted_meanwhile() {
    for (is_held, polls, will_wait, is_part_of_it) in [
        (true, true, true, true),
        (true, false, true, false),
        (false, true, true, false),
        (false, false, true, false),
        (true, false, false, true),
    ] {
        let (mut state, submissions) = held();
        if !is_held {
            state.batch.end_hold();
        }
        if polls {
            state.driving.begin_poll(is_held);
        }
        let number = state.batch.number;
        lock(&submissions).list = vec![awaited(1).0, Submitted::Posted(2), awaited(3).0];
        state.begin_submitted(&submissions, will_wait);
        let case = (is_held, polls, will_wait);
        assert_eq!(state.batch.number == number, is_part_of_it, "{case:?}");
        assert_eq!(state.reactor.begun, [1, 2, 3], "{case:?}");
        assert_eq!(lock(&submissions).is_open, state.batch.is_held());
    }
}

#[test]
fn a_batch_that_nothing_was_submitted_for_is_followed_by_no_hold() {
    let (mut state, submissions) = held();
    state.begin_submitted(&submissions, true);
    assert!(state.batch.is_held(), "the thread submits something itself");
    state.begin_next_batch(&submissions);
    assert!(!state.batch.is_held() && !lock(&submissions).is_open);
    lock(&submissions).list.push(Submitted::Posted(1));
    state.begin_next_batch(&submissions);
    assert!(state.batch.is_held() && lock(&submissions).is_open);
}

#[test]
fn a_verdict_wakes_its_thread_and_a_poll_is_interrupted_only_while_there_is_one() {
    let (mut state, submissions) = held();
    let (submitted, cell) = awaited(1);
    lock(&submissions).list.push(submitted);
    state.begin_submitted(&submissions, false);
    state.driving.name(cell.slot);
    state.act(|reactor, _| reactor.decide(1));
    assert_eq!(cell.wait(Duration::ZERO), Some(1));
    assert!(state.driving.is_absent(), "it does not come to drive");
    assert_eq!(state.reactor.interrupts, 0);
    state.driving.begin_poll(false);
    let cell = state.sleep(2, false);
    state.act(|reactor, _| reactor.decide(2));
    assert_eq!(cell.wait(Duration::ZERO), None, "it looks for itself");
    assert!(state.sleepers.is_empty());
    assert_eq!(state.reactor.interrupts, 1);
}

#[test]
fn what_is_decided_at_once_has_its_verdict_at_once() {
    let (mut state, submissions) = held();
    state.reactor.decided.push(1);
    let (submitted, cell) = awaited(1);
    lock(&submissions).list.push(submitted);
    state.begin_submitted(&submissions, false);
    assert_eq!(cell.wait(Duration::ZERO), Some(1));
}

#[test]
fn a_thread_that_leaves_names_the_first_in_the_queue_or_one_that_takes_a_verdict() {
    let (mut state, submissions) = held();
    let (first, named) = awaited(1);
    lock(&submissions).list = vec![Submitted::Posted(0), first, awaited(2).0];
    state.sleep(3, true);
    let next = state.hand_over(&submissions).unwrap();
    assert!(state.reactor.begun.is_empty() && state.batch.is_held());
    assert_eq!(next.slot, named.slot);
    state.driving.forget_named(named.slot);
    assert!(state.driving.is_absent(), "it was named");

    let (mut state, submissions) = held();
    let [takes_none, takes_one] = [false, true].map(|takes| state.sleep(3, takes));
    state.sleep(4, false);
    lock(&submissions).list.push(Submitted::Posted(0));
    let next = state.hand_over(&submissions).unwrap();
    assert_eq!(next.slot, takes_one.slot);
    assert_eq!(state.reactor.begun, [0], "no thread waits for it");
    assert!(!state.batch.is_held() && state.reactor.flushes == 1);
    state.driving.forget_named(takes_none.slot);
    assert!(!state.driving.is_absent());
    state.driving.forget_named(takes_one.slot);
    assert!(state.driving.is_absent());
}

#[test]
fn a_thread_that_leaves_a_driver_behind_names_none_and_leaves_it_the_hold_it_ends() {
    for ends_hold in [false, true] {
        let (mut state, submissions) = held();
        state.sleep(1, true);
        state.driving.begin_poll(ends_hold);
        assert!(state.hand_over(&submissions).is_none());
        assert!(state.driving.poll().is_some());
        assert_eq!(state.batch.is_held(), ends_hold);
        assert_eq!(state.reactor.ended_polls, 0);
        state.driving.depose();
        assert!(state.hand_over(&submissions).is_some());
        assert_eq!(state.reactor.ended_polls, 1, "it may swallow a reply");
    }
}

#[test]
fn only_a_wait_without_other_threads_is_solitary() {
    let mut state = State::new(Notes::default());
    state.learn(Timestamp::ORIGIN);
    assert_eq!(state.reactor.solitary_waits, 1);
    state.sleep(1, true);
    state.learn(Timestamp::ORIGIN);
    assert_eq!(state.reactor.solitary_waits, 1);
    state.act(|reactor, _| reactor.decide(1));
    state.sleepers.on_other_thread();
    (0..64).for_each(|_| state.learn(Timestamp::ORIGIN));
    assert_eq!(state.reactor.solitary_waits, 2, "the last one");
}

#[test]
fn the_last_thread_starts_a_helper_where_there_is_work() {
    let driver = Driver::new(Notes::default());
    let starts = |change: fn(&mut State<Notes>)| {
        let mut state = State::new(Notes::default());
        state.reactor.work_due = Some(state.now);
        change(&mut state);
        (driver.needs_helper(&mut state), state.helper)
    };
    assert_eq!(starts(|_| {}), (true, Helper::Awake));
    for change in [
        (|state| state.is_closing = true) as fn(&mut State<Notes>),
        |state| state.reactor.work_due = None,
        |state| drop(state.sleep(1, true)),
        |state| {
            state.driving.begin_poll(false);
        },
    ] {
        assert_eq!(starts(change), (false, Helper::Absent));
    }
    for helper in [
        (|state| state.helper = Helper::Awake) as fn(&mut State<Notes>),
        |state| state.helper = Helper::Asleep(Timestamp::NEVER),
    ] {
        assert!(!starts(helper).0, "there is one");
    }
}

/// Time for the thread to be called is over at once, and by the clock its patience is too.
#[test]
fn a_thread_that_is_not_called_in_time_looks_where_another_one_polls_and_drives_itself_otherwise() {
    for (polls, looks) in [(true, 1), (false, 0)] {
        let driver = Driver::new(Notes::default());
        let mut state = lock(&driver.state);
        if polls {
            state.driving.begin_poll(false);
        } else {
            state.driving.name(WaitCell::<u32>::new().slot);
        }
        state.reactor.now = Timestamp::ORIGIN.after(POLL_PATIENCE);
        let mut wait = OwnWait {
            ticket: 1,
            takes_verdict: true,
            patience: POLL_PATIENCE,
        };
        let slept = driver.sleep(state, &mut wait, Timestamp::ORIGIN);
        let state = slept.unwrap_or_else(|_| panic!("there is no verdict"));
        assert_eq!(state.reactor.looks, looks);
        assert_eq!(state.driving.is_absent(), !polls);
        assert_eq!(wait.patience, 2 * POLL_PATIENCE);
    }
}

#[test]
fn what_concerns_no_driver_is_done_unless_another_thread_has_the_mutex() {
    let driver = Driver::new(Notes::default());
    let mut tries = 0;
    driver.try_enter(|_| tries += 1);
    assert_eq!(tries, 1);
    let state = lock(&driver.state);
    driver.try_enter(|_| tries += 1);
    assert_eq!(tries, 1);
    drop(state);
}

#[test]
fn a_driver_that_is_closed_starts_no_helper() {
    let driver = Driver::new(Notes::default());
    driver.close();
    let mut state = lock(&driver.state);
    state.reactor.work_due = Some(state.now);
    assert!(!driver.needs_helper(&mut state));
}

/// Whether a test may start threads: the simulator and the models have locks of their own, for
/// threads of their own.
fn has_locks_of_the_system() -> bool {
    TypeId::of::<Condvar>() == TypeId::of::<std::sync::Condvar>()
}

#[test]
fn a_helper_that_sleeps_is_woken_where_there_is_work_before_its_time() {
    if !has_locks_of_the_system() {
        return;
    }
    let at = |millis| Timestamp::ORIGIN.after(Duration::from_millis(millis));
    for (now, due, until, is_woken) in [
        (5, 5, 9, true),
        (5, 8, 9, true),
        (5, 9, 9, false),
        (9, 9, 9, true),
    ] {
        let driver = Driver::new(Notes::default());
        let mut state = lock(&driver.state);
        state.helper = Helper::Asleep(at(until));
        state.reactor.now = at(now);
        state.reactor.work_due = Some(at(due));
        let limit = Duration::from_millis(if is_woken { 5_000 } else { 100 });
        let began = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| driver.enter(|_, _| ()));
            drop(driver.helper_signal.wait_timeout(state, limit));
        });
        assert_eq!(began.elapsed() < limit, is_woken, "{now} {due} {until}");
    }
}

#[test]
fn a_driver_that_is_closed_waits_for_its_helper_to_end() {
    if !has_locks_of_the_system() {
        return;
    }
    let driver = Driver::new(Notes::default());
    driver.enter(|reactor, now| reactor.work_due = Some(now.after(Duration::from_secs(9))));
    assert_eq!(Arc::strong_count(&driver), 2);
    driver.close();
    assert_eq!(Arc::strong_count(&driver), 1);
}
