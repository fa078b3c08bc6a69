//! How waiting threads hand on the driving of one shared reactor: a leader polls, and its followers sleep.
//!
//! The reactor (connections, rounds in flight) stands under one mutex that is never held across a wait. Of the threads
//! that wait for something in it, one is the *driver*: it polls, takes the mutex, lets the reactor absorb what is
//! ready, and notifies the threads whose rounds are decided. The others are parked.
//!
//! ```text
//!            decided, or deadline ─────────────────────────────────► leave
//!           ╱                                                        ▲  │ no driver, and a thread
//!   wait ──┤   no driver ──► drive: poll, absorb, gather ──────┐     │  │ is parked: notify one
//!           ╲                                                  ├─► ──┘  ▼
//!            a driver ──► park until notified, or deadline ────┘      gone
//! ```
//!
//! Threads whose requests go out together are mostly answered together. So they sleep on one wait slot, and one system
//! call wakes them all. The driver that has notified them lets them run first, to send what they begin next together
//! again.
//!
//! Invariants, each of which a model test breaks on purpose to see it fail:
//! 1. While a thread sleeps undecided, there is a driver, or a thread is awake that will look again. Therefore a thread
//!    that leaves, for whatever reason, notifies a sleeping one if there is no driver.
//! 2. A decision is stored before its owner is notified, under the same mutex under which the owner looks. Notifying a
//!    slot wakes all its waiters; those that are not decided look, and sleep again or drive.
//! 3. A thread sleeps no longer than to its own deadline, whichever thread drives and however long.
//! 4. What was begun is sent before the mutex is left, unless another thread has a flush pending: it will send that
//!    together with its own, in one write to each node. A thread has a flush pending while it is entering the mutex, or
//!    after it was named the next leader. The last thread to enter leaves nothing unsent, no thread polls before
//!    sending, and a thread that waits for a reply relies on a pending flush only for [`FLUSH_GRACE`].
//! 5. While releases are left that a thread could send, there is a thread that does: the last one that leaves starts
//!    it.

// Named, because model checks include this file from elsewhere.
mod helper;
mod wait_slot;

use crate::algorithm::time::Timestamp;
use crate::os::sync::{AtomicUsize, Condvar, JoinHandle, Mutex, MutexGuard, Ordering, lock, yield_now};
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;
use wait_slot::SLOTS;
pub(crate) use wait_slot::{WaitSlot, WaitSlots};

/// How long a thread that waits for a reply relies on another thread's pending flush. A flush follows within
/// microseconds, unless the processor runs other programs; then the thread sends for itself. Longer than the answers of
/// many threads take together, because a thread that wakes up to check its command is woken needlessly.
const FLUSH_GRACE: Duration = Duration::from_millis(5);
/// How often a driver polls for more answers before it sends and sleeps. It stops at the first poll that brings none.
const BUSY_POLLS: u32 = 4;
/// What is driven.
pub(crate) trait Reactor {
    /// Names something to wait for.
    type Ticket: Copy + PartialEq;
    /// What one poll waits for and what it found: taken out of the reactor, so that the reactor is free meanwhile.
    type Watch;

    /// The present time.
    fn now(&self) -> Timestamp;
    /// Whether there is nothing left to wait for.
    fn is_decided(&self, ticket: Self::Ticket) -> bool;
    /// Says which slot to notify when the ticket is decided.
    fn assign(&mut self, ticket: Self::Ticket, slot: WaitSlot);
    /// The owner's deadline has come: decides the ticket, unless there is more to wait for.
    fn expire(&mut self, ticket: Self::Ticket, notify: &mut WaitSlots);
    /// Whether something was begun that was not sent.
    fn has_unsent(&self) -> bool;
    /// Sends what was begun.
    fn flush(&mut self, notify: &mut WaitSlots);
    /// Says what to wait for. `alone`: no other thread is here.
    fn watch(&mut self, alone: bool) -> Self::Watch;
    /// Waits, with the mutex free, until something is ready or the time is up. With no time, it does not wait.
    fn poll(watch: &mut Self::Watch, timeout: Duration);
    /// Processes what is ready.
    fn absorb(&mut self, watch: Self::Watch, notify: &mut WaitSlots);
    /// Ends a poll that is under way, if what there is to wait for has changed since.
    fn interrupt(&mut self);
    /// Whether there are releases to send, now or later.
    fn has_releases_left(&self) -> bool;
    /// When to drive for them next: now, while they are on their way out. None when nothing is left to do.
    fn releases_due(&self, now: Timestamp) -> Option<Timestamp>;
    /// Something to wait for that is decided when no release is on its way out.
    fn await_releases(&mut self, now: Timestamp, notify: &mut WaitSlots) -> Self::Ticket;
    /// Ends that wait.
    fn leave_releases(&mut self, ticket: Self::Ticket);
    /// Decides all that is waited for in this way, and ends a poll that is under way.
    fn interrupt_releases(&mut self, notify: &mut WaitSlots);
}

/// A reactor that threads drive in turn.
pub(crate) struct Driver<R: Reactor> {
    state: Mutex<State<R>>,
    slots: [Condvar; SLOTS],
    /// How many times a thread has begun to enter the mutex, and how many times one has entered it.
    entering: AtomicUsize,
    entered: AtomicUsize,
    /// What the helper sleeps on, and its thread.
    helper_signal: Condvar,
    helper_thread: Mutex<Option<JoinHandle<()>>>,
    /// For the helper to hold.
    this: Weak<Driver<R>>,
}

struct State<R: Reactor> {
    reactor: R,
    driver: DriverState,
    /// One of the waiters on this slot was notified to drive, and none of them has come since.
    next_leader: Option<WaitSlot>,
    /// The slot for what is begun now, until the next flush.
    slot: WaitSlot,
    waiters: [SlotWaiters; SLOTS],
    /// The slots that threads sleep on.
    occupied: WaitSlots,
    /// The slots to notify once the mutex is free. Their waiters no longer count as asleep.
    to_notify: WaitSlots,
    /// How many threads sleep on those.
    notified: u32,
    helper: Helper,
    /// No helper is started any more.
    is_closing: bool,
}

/// The thread that drives when no other does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Helper {
    Absent,
    Asleep,
    Awake,
}

/// What the driver does at present.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DriverState {
    /// There is none.
    Absent,
    /// It has notified the threads whose rounds are decided, and lets them run first: it will send what they begin
    /// next.
    Gathering,
    /// It waits for replies.
    Polling,
}

/// The threads that sleep on one slot.
#[derive(Clone, Copy, Default)]
struct SlotWaiters {
    number: u32,
    /// How many times all of them were notified.
    notifications: u32,
}

/// What to notify: all waiters of some slots, and one of another.
#[derive(Default)]
struct Notification {
    all: WaitSlots,
    one: Option<WaitSlot>,
}

/// One thread's wait for its ticket.
struct Wait<T> {
    ticket: T,
    deadline: Timestamp,
    slot: WaitSlot,
    now: Timestamp,
    /// Whether the thread still relies on another one's pending flush.
    relies_on_flush: bool,
    /// How many more times to poll before sending.
    busy_polls: u32,
}

impl<R: Reactor + Send + 'static> Driver<R> {
    pub(crate) fn new(reactor: R) -> Arc<Driver<R>> {
        Arc::new_cyclic(|this| Driver {
            this: Weak::clone(this),
            helper_signal: Condvar::new(),
            helper_thread: Mutex::new(None),
            state: Mutex::new(State {
                reactor,
                driver: DriverState::Absent,
                next_leader: None,
                slot: WaitSlot(0),
                waiters: [SlotWaiters::default(); SLOTS],
                occupied: WaitSlots::default(),
                to_notify: WaitSlots::default(),
                notified: 0,
                helper: Helper::Absent,
                is_closing: false,
            }),
            slots: std::array::from_fn(|_| Condvar::new()),
            entering: AtomicUsize::new(0),
            entered: AtomicUsize::new(0),
        })
    }

    /// Does something in the reactor that does not wait.
    pub(crate) fn enter<T>(&self, act: impl FnOnce(&mut R, Timestamp, &mut WaitSlots) -> T) -> T {
        let mut state = self.lock_state();
        let now = state.reactor.now();
        let result = state.act(|reactor, notify| act(reactor, now, notify));
        self.leave(state, None);
        result
    }

    /// Does something in the reactor that concerns no driver and does not wait, unless another thread has the mutex.
    pub(crate) fn try_enter(&self, act: impl FnOnce(&mut R)) {
        if let Ok(mut state) = self.state.try_lock() {
            act(&mut state.reactor);
        }
    }

    /// Begins something in the reactor, waits until it is decided, and collects it. `begin` is given the time, and
    /// gives the ticket and the deadline of the wait.
    pub(crate) fn run<T>(
        &self,
        begin: impl FnOnce(&mut R, Timestamp, &mut WaitSlots) -> (R::Ticket, Timestamp),
        collect: impl FnOnce(&mut R, R::Ticket) -> T,
    ) -> T {
        let mut state = self.lock_state();
        let now = state.reactor.now();
        let (ticket, deadline) = state.act(|reactor, notify| begin(reactor, now, notify));
        let slot = state.slot;
        state.reactor.assign(ticket, slot);
        let mut wait = Wait { ticket, deadline, slot, now, relies_on_flush: true, busy_polls: BUSY_POLLS };
        while !state.reactor.is_decided(ticket) {
            if wait.now >= deadline {
                state.act(|reactor, notify| reactor.expire(ticket, notify));
                break;
            }
            state = self.wait_once(state, &mut wait);
            if !state.reactor.is_decided(ticket) {
                wait.now = state.reactor.now();
            }
        }
        let result = collect(&mut state.reactor, ticket);
        let one = state.name_next_leader();
        self.leave(state, one);
        result
    }

    /// One step of a wait: sends what was begun, then drives or sleeps.
    fn wait_once<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<R>>,
        wait: &mut Wait<R::Ticket>,
    ) -> MutexGuard<'a, State<R>> {
        let mut timeout = wait.deadline.since(wait.now);
        let is_driven = state.is_driven();
        if !is_driven && wait.busy_polls > 0 && !state.occupied.is_empty() && state.reactor.has_unsent() {
            // What has been answered meanwhile lets other threads begin something that can be sent with this.
            let (state, has_notified) = self.drive(state, Duration::ZERO);
            wait.busy_polls = if has_notified { wait.busy_polls - 1 } else { 0 };
            return state;
        }
        if is_driven && wait.relies_on_flush && self.is_flush_pending(&state) {
            timeout = timeout.min(FLUSH_GRACE);
        } else {
            state.flush();
        }
        // Sending may decide something by itself, when a connection turns out to be broken.
        if !state.to_notify.is_empty() {
            self.gather(state)
        } else if state.reactor.is_decided(wait.ticket) {
            state
        } else if is_driven {
            wait.relies_on_flush = false;
            self.park(state, wait.slot, timeout)
        } else {
            wait.busy_polls = BUSY_POLLS;
            self.drive(state, timeout).0
        }
    }

    /// Leaves the mutex: nothing stays unsent, and a thread drives if one has to.
    fn leave(&self, mut state: MutexGuard<'_, State<R>>, one: Option<WaitSlot>) {
        self.flush_unless_pending(&mut state);
        let all = state.take_notified();
        let is_help_needed = self.needs_helper(&mut state);
        drop(state);
        self.notify(&Notification { all, one });
        if is_help_needed {
            self.start_helper();
        }
    }

    /// Drives once: poll, absorb, notify, gather. Everything that was begun has been sent, or this poll does not wait.
    /// True when a thread was notified.
    fn drive<'a>(&'a self, mut state: MutexGuard<'a, State<R>>, timeout: Duration) -> (MutexGuard<'a, State<R>>, bool) {
        let alone = state.occupied.is_empty() && !self.is_flush_pending(&state);
        let mut watch = state.reactor.watch(alone);
        state.driver = DriverState::Polling;
        drop(state);
        R::poll(&mut watch, timeout);
        let mut state = self.lock_state();
        state.driver = DriverState::Gathering;
        state.act(|reactor, notify| reactor.absorb(watch, notify));
        let has_notified = !state.to_notify.is_empty();
        if has_notified {
            state = self.gather(state);
        }
        state.driver = DriverState::Absent;
        (state, has_notified)
    }

    /// Notifies with the mutex free, so that no thread wakes up only to wait for it. When several threads were
    /// notified, lets them run first, for as long as they come, so that what they begin next is sent together.
    fn gather<'a>(&'a self, mut state: MutexGuard<'a, State<R>>) -> MutexGuard<'a, State<R>> {
        let several = state.notified > 1;
        let all = state.take_notified();
        self.entering.fetch_add(1, Ordering::SeqCst);
        let entered = self.entered.load(Ordering::SeqCst);
        drop(state);
        self.notify(&Notification { all, one: None });
        if several {
            self.yield_while_entered(entered);
        }
        let state = lock(&self.state);
        self.entered.fetch_add(1, Ordering::SeqCst);
        state
    }

    /// Lets other threads run, for as long as one of them enters the mutex each time.
    fn yield_while_entered(&self, mut entered: usize) {
        loop {
            yield_now();
            let before = std::mem::replace(&mut entered, self.entered.load(Ordering::SeqCst));
            if entered == before {
                return;
            }
        }
    }

    /// Sleeps until notified, or for that long.
    fn park<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<R>>,
        slot: WaitSlot,
        timeout: Duration,
    ) -> MutexGuard<'a, State<R>> {
        let index = usize::from(slot.0);
        state.waiters[index].number += 1;
        state.occupied.insert(slot);
        let before = state.waiters[index].notifications;
        let (mut state, _) = self.slots[index].wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner);
        if state.waiters[index].notifications == before {
            state.waiters[index].number -= 1;
            if state.waiters[index].number == 0 {
                state.occupied.0 &= !(1 << index);
            }
        }
        // Whichever waiter of the slot was meant: this thread is awake, and looks.
        if state.next_leader == Some(slot) {
            state.next_leader = None;
        }
        state
    }

    /// Takes the mutex. Threads that hold it meanwhile know that this one enters, and will send what was begun.
    fn lock_state(&self) -> MutexGuard<'_, State<R>> {
        self.entering.fetch_add(1, Ordering::SeqCst);
        let state = lock(&self.state);
        self.entered.fetch_add(1, Ordering::SeqCst);
        state
    }

    /// Sends what was begun, unless another thread has a flush pending.
    fn flush_unless_pending(&self, state: &mut State<R>) {
        if !self.is_flush_pending(state) {
            state.flush();
        }
    }

    /// Whether another thread will enter the mutex and send what was begun. That a thread was named the next leader
    /// counts only while there is no driver.
    fn is_flush_pending(&self, state: &State<R>) -> bool {
        (state.driver == DriverState::Absent && state.next_leader.is_some())
            || self.entering.load(Ordering::SeqCst) != self.entered.load(Ordering::SeqCst)
    }

    fn notify(&self, notification: &Notification) {
        for index in notification.all.iter() {
            self.slots[index].notify_all();
        }
        if let Some(slot) = notification.one {
            self.slots[usize::from(slot.0)].notify_one();
        }
    }
}

impl<R: Reactor> State<R> {
    /// Acts on the reactor, and notes which slots to notify for it once the mutex is free.
    fn act<T>(&mut self, act: impl FnOnce(&mut R, &mut WaitSlots) -> T) -> T {
        let mut decided = WaitSlots::default();
        let result = act(&mut self.reactor, &mut decided);
        decided.0 &= self.occupied.0;
        for index in decided.iter() {
            let waiters = &mut self.waiters[index];
            self.notified += waiters.number;
            *waiters = SlotWaiters { number: 0, notifications: waiters.notifications.wrapping_add(1) };
        }
        self.occupied.0 &= !decided.0;
        self.to_notify.0 |= decided.0;
        if self.driver == DriverState::Polling {
            self.reactor.interrupt();
        }
        result
    }

    /// Sends what was begun. What is begun from now on sleeps on another slot.
    fn flush(&mut self) {
        self.act(|reactor, notify| reactor.flush(notify));
        self.slot = WaitSlot((self.slot.0 + 1) % SLOTS as u8);
    }

    fn is_driven(&self) -> bool {
        self.driver != DriverState::Absent
    }

    fn take_notified(&mut self) -> WaitSlots {
        self.notified = 0;
        std::mem::take(&mut self.to_notify)
    }

    /// Names the thread that drives when the caller leaves, if one must and none is about to: one of those that have
    /// slept the longest.
    fn name_next_leader(&mut self) -> Option<WaitSlot> {
        if self.is_driven() || self.next_leader.is_some() || self.occupied.is_empty() {
            return None;
        }
        // The slot after the present one is the one that was left the longest ago.
        let next = u32::from(self.slot.0) + 1;
        let oldest = (self.occupied.0.rotate_right(next).trailing_zeros() + next) % SLOTS as u32;
        self.next_leader = Some(WaitSlot(oldest as u8));
        self.next_leader
    }
}
