//! Whoever waits, polls: how threads hand on the driving of one shared world.
//!
//! The world (connections, rounds in flight) stands under one mutex that is never held across a wait. Of the threads that
//! wait for something in it, one is the *driver*: it polls, takes the mutex, lets the world absorb what is ready, and
//! rings those whose rounds are decided now. The others are parked.
//!
//! ```text
//!            decided, or out of time ──────────────────────────────► leave
//!           ╱                                                        ▲  │ nobody drives, somebody
//!   wait ──┤   nobody drives ──► drive: poll, absorb, gather ─┐      │  │ sleeps: ring one
//!           ╲                                                 ├─► ───┘  ▼
//!            somebody drives ──► park until rung, or time ────┘       gone
//! ```
//!
//! Threads whose requests go out together are mostly answered together. So they sleep on one bell, and one system call
//! wakes them all; and the driver that has rung them lets them go first, to send what they begin next together again.
//!
//! Invariants, each of which a model test breaks on purpose to see it fail:
//! 1. While a thread sleeps undecided, somebody drives, or somebody who will look again is awake. Therefore whoever
//!    leaves, for whatever reason, rings a sleeper if nobody drives.
//! 2. A decision is stored before its owner is rung, under the same mutex under which the owner looks. A bell that is rung
//!    wakes all who sleep on it; those who are not decided look, and go to sleep again or drive.
//! 3. A thread sleeps no longer than to its own deadline, whoever drives and however long.
//! 4. What was begun is sent before the mutex is left, unless another thread has promised to come and send it, together
//!    with its own and everybody else's, in one write to each node. A thread promises by being on its way to the mutex, or
//!    by having been rung to drive. The last of those who come leaves nothing unsent, and nobody polls before sending; and
//!    who waits for a reply does not trust for long.
//! 5. While releases are left that a thread could send, a thread is here that does: the last one that leaves starts it.

// Named, because model checks include this file from elsewhere.
mod helper;

use crate::algorithm::time::Timestamp;
use crate::os::sync::{AtomicUsize, Condvar, JoinHandle, Mutex, MutexGuard, Ordering, lock, yield_now};
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

/// How long a thread that waits for a reply trusts in another one's promise to send its command. A promise is kept in
/// microseconds, unless the processor is given to others; then the thread sends for itself. Longer than the answers of
/// many threads take together, because a thread that looks after its command is woken for nothing.
const TRUST: Duration = Duration::from_millis(5);
/// How often a driver looks for more answers before it sends and sleeps. It stops at the first look that brings none.
const LOOKS: u32 = 4;
/// How many bells there are. Each flush moves on to the next; who sleeps longer than it takes to come round may be woken
/// for nothing.
const BELLS: usize = 32;

/// What is driven.
pub(crate) trait Reactor {
    /// Names something to wait for.
    type Ticket: Copy + PartialEq;
    /// What one poll waits for and what it found: taken out of the world, so that the world is free meanwhile.
    type Watch;

    /// The present time.
    fn now(&self) -> Timestamp;
    /// Whether there is nothing left to wait for.
    fn is_decided(&self, ticket: Self::Ticket) -> bool;
    /// Says which bell to ring when the ticket is decided.
    fn assign(&mut self, ticket: Self::Ticket, bell: WaitSlot);
    /// The owner's deadline has come: decides the ticket, unless there is more to wait for.
    fn expire(&mut self, ticket: Self::Ticket, bells: &mut WaitSlots);
    /// Whether something was begun that was not sent.
    fn has_unsent(&self) -> bool;
    /// Sends what was begun.
    fn flush(&mut self, bells: &mut WaitSlots);
    /// Says what to wait for. `alone`: no other thread is here.
    fn watch(&mut self, alone: bool) -> Self::Watch;
    /// Waits, with the mutex free, until something is ready or the time is up. No time is a look.
    fn poll(watch: &mut Self::Watch, patience: Duration);
    /// Takes in what is ready.
    fn absorb(&mut self, watch: Self::Watch, bells: &mut WaitSlots);
    /// Makes a poll that is under way look again, if what there is to wait for has changed since.
    fn interrupt(&mut self);
    /// Whether there are releases to send, now or later.
    fn has_releases_left(&self) -> bool;
    /// When to drive for them next: now, while they are on their way out. None when nothing is left to do.
    fn releases_due(&self, now: Timestamp) -> Option<Timestamp>;
    /// Something to wait for that is decided when no release is on its way out.
    fn await_releases(&mut self, now: Timestamp, bells: &mut WaitSlots) -> Self::Ticket;
    /// Waits for that no more.
    fn leave_releases(&mut self, ticket: Self::Ticket);
    /// Decides all that is waited for in this way, and ends a poll that is under way.
    fn interrupt_releases(&mut self, bells: &mut WaitSlots);
}

/// What a thread sleeps on until its ticket is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitSlot(u8);

/// The bells of tickets that are decided now. Whatever acts on the world may decide tickets of others on the way, and
/// notes their bells here.
#[derive(Debug, Default)]
pub(crate) struct WaitSlots(u32);

impl WaitSlots {
    pub(crate) fn insert(&mut self, bell: WaitSlot) {
        self.0 |= 1 << bell.0;
    }

    fn is_empty(&self) -> bool {
        self.0 == 0
    }

    fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let first = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (first < BELLS).then_some(first)
        })
    }
}

/// A world that threads drive in turn.
pub(crate) struct Driver<W: Reactor> {
    state: Mutex<State<W>>,
    bells: [Condvar; BELLS],
    /// How many times a thread has set out for the mutex, and how many times one has come to it.
    departures: AtomicUsize,
    arrivals: AtomicUsize,
    /// What the helper sleeps on, and its thread.
    helper_bell: Condvar,
    helper_thread: Mutex<Option<JoinHandle<()>>>,
    /// For the helper to hold.
    this: Weak<Driver<W>>,
}

struct State<W: Reactor> {
    world: W,
    driver: DriverState,
    /// One of the sleepers on this bell has been rung to drive, and none of them has come since.
    appointed: Option<WaitSlot>,
    /// The bell for what is begun now, until the next flush.
    bell: WaitSlot,
    sleepers: [Sleepers; BELLS],
    /// The bells that somebody sleeps on.
    slept_on: WaitSlots,
    /// The bells to ring once the mutex is free. Nobody counts as asleep on them any more.
    ringing: WaitSlots,
    /// How many sleep on those.
    rung: u32,
    helper: Helper,
    /// No helper is started any more.
    is_closing: bool,
}

/// What the thread is at that drives when no other does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Helper {
    Absent,
    Asleep,
    Awake,
}

/// What the driver is at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DriverState {
    /// There is none.
    Absent,
    /// It has rung those whose rounds are decided, and lets them go first: what they begin next it will send.
    Gathering,
    /// It waits for replies.
    Polling,
}

/// Who sleeps on one bell.
#[derive(Clone, Copy, Default)]
struct Sleepers {
    number: u32,
    /// How many times the bell was rung for all of them.
    rung: u32,
}

/// Whom to ring: all who sleep on some bells, and one who sleeps on another.
#[derive(Default)]
struct Call {
    all: WaitSlots,
    one: Option<WaitSlot>,
}

impl<W: Reactor + Send + 'static> Driver<W> {
    pub(crate) fn new(world: W) -> Arc<Driver<W>> {
        Arc::new_cyclic(|this| Driver {
            this: Weak::clone(this),
            helper_bell: Condvar::new(),
            helper_thread: Mutex::new(None),
            state: Mutex::new(State {
                world,
                driver: DriverState::Absent,
                appointed: None,
                bell: WaitSlot(0),
                sleepers: [Sleepers::default(); BELLS],
                slept_on: WaitSlots::default(),
                ringing: WaitSlots::default(),
                rung: 0,
                helper: Helper::Absent,
                is_closing: false,
            }),
            bells: std::array::from_fn(|_| Condvar::new()),
            departures: AtomicUsize::new(0),
            arrivals: AtomicUsize::new(0),
        })
    }

    /// Does something in the world that does not wait.
    pub(crate) fn enter<R>(&self, act: impl FnOnce(&mut W, Timestamp, &mut WaitSlots) -> R) -> R {
        let mut state = self.arrive();
        let now = state.world.now();
        let result = state.act(|world, bells| act(world, now, bells));
        self.leave(state, None);
        result
    }

    /// Does something in the world that concerns no driver and waits for nobody, unless somebody has the mutex.
    pub(crate) fn try_enter(&self, act: impl FnOnce(&mut W)) {
        if let Ok(mut state) = self.state.try_lock() {
            act(&mut state.world);
        }
    }

    /// Begins something in the world, waits until it is decided, and collects it. `begin` is given the time, and gives the
    /// ticket and when the wait ends at the latest.
    pub(crate) fn run<R>(
        &self,
        begin: impl FnOnce(&mut W, Timestamp, &mut WaitSlots) -> (W::Ticket, Timestamp),
        collect: impl FnOnce(&mut W, W::Ticket) -> R,
    ) -> R {
        let mut state = self.arrive();
        let mut now = state.world.now();
        let (ticket, deadline) = state.act(|world, bells| begin(world, now, bells));
        let bell = state.bell;
        state.world.assign(ticket, bell);
        let mut trusting = true;
        let mut looks = LOOKS;
        while !state.world.is_decided(ticket) {
            if now >= deadline {
                state.act(|world, bells| world.expire(ticket, bells));
                break;
            }
            let mut patience = deadline.since(now);
            // Sending may decide something by itself, when a connection turns out to be broken.
            if state.is_driven() && trusting && self.is_promised(&state) {
                patience = patience.min(TRUST);
            } else if !state.is_driven() && looks > 0 && !state.slept_on.is_empty() && state.world.has_unsent() {
                // What has been answered meanwhile lets others begin something that can be sent with this.
                let was_rung;
                (state, was_rung) = self.drive(state, Duration::ZERO);
                looks = if was_rung { looks - 1 } else { 0 };
                if !state.world.is_decided(ticket) {
                    now = state.world.now();
                }
                continue;
            } else {
                state.flush();
            }
            state = if !state.ringing.is_empty() {
                self.gather(state)
            } else if state.world.is_decided(ticket) {
                break;
            } else if state.is_driven() {
                trusting = false;
                self.park(state, bell, patience)
            } else {
                looks = LOOKS;
                self.drive(state, patience).0
            };
            if !state.world.is_decided(ticket) {
                now = state.world.now();
            }
        }
        let result = collect(&mut state.world, ticket);
        let one = state.appoint();
        self.leave(state, one);
        result
    }

    /// Leaves the mutex: nothing stays unsent, and a thread drives if one has to.
    fn leave(&self, mut state: MutexGuard<'_, State<W>>, one: Option<WaitSlot>) {
        self.flush_unless_promised(&mut state);
        let all = state.take_ringing();
        let is_help_needed = self.needs_helper(&mut state);
        drop(state);
        self.ring(&Call { all, one });
        if is_help_needed {
            self.start_helper();
        }
    }

    /// One turn at driving: poll, absorb, ring, gather. Everything that was begun has been sent, or this is but a look. True
    /// when somebody was rung.
    fn drive<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<W>>,
        patience: Duration,
    ) -> (MutexGuard<'a, State<W>>, bool) {
        let alone = state.slept_on.is_empty() && !self.is_promised(&state);
        let mut watch = state.world.watch(alone);
        state.driver = DriverState::Polling;
        drop(state);
        W::poll(&mut watch, patience);
        let mut state = self.arrive();
        state.driver = DriverState::Gathering;
        state.act(|world, bells| world.absorb(watch, bells));
        let was_rung = !state.ringing.is_empty();
        if was_rung {
            state = self.gather(state);
        }
        state.driver = DriverState::Absent;
        (state, was_rung)
    }

    /// Rings with the mutex free, so that nobody wakes up only to wait for it; and when several were rung, lets them go
    /// first, for as long as they come, so that what they begin next is sent together.
    fn gather<'a>(&'a self, mut state: MutexGuard<'a, State<W>>) -> MutexGuard<'a, State<W>> {
        let several = state.rung > 1;
        let all = state.take_ringing();
        self.departures.fetch_add(1, Ordering::SeqCst);
        let arrivals = self.arrivals.load(Ordering::SeqCst);
        drop(state);
        self.ring(&Call { all, one: None });
        if several {
            self.give_way(arrivals);
        }
        let state = lock(&self.state);
        self.arrivals.fetch_add(1, Ordering::SeqCst);
        state
    }

    /// Lets others run, for as long as one of them comes to the mutex each time.
    fn give_way(&self, mut arrivals: usize) {
        loop {
            yield_now();
            let before = std::mem::replace(&mut arrivals, self.arrivals.load(Ordering::SeqCst));
            if arrivals == before {
                return;
            }
        }
    }

    /// Sleeps until rung, or for that long.
    fn park<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<W>>,
        bell: WaitSlot,
        patience: Duration,
    ) -> MutexGuard<'a, State<W>> {
        let index = usize::from(bell.0);
        state.sleepers[index].number += 1;
        state.slept_on.insert(bell);
        let rung = state.sleepers[index].rung;
        let (mut state, _) = self.bells[index].wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner);
        if state.sleepers[index].rung == rung {
            state.sleepers[index].number -= 1;
            if state.sleepers[index].number == 0 {
                state.slept_on.0 &= !(1 << index);
            }
        }
        // Whoever of them was meant: this thread is awake, and looks.
        if state.appointed == Some(bell) {
            state.appointed = None;
        }
        state
    }

    /// Takes the mutex, having promised to come.
    fn arrive(&self) -> MutexGuard<'_, State<W>> {
        self.departures.fetch_add(1, Ordering::SeqCst);
        let state = lock(&self.state);
        self.arrivals.fetch_add(1, Ordering::SeqCst);
        state
    }

    /// Sends what was begun, unless somebody has promised to come.
    fn flush_unless_promised(&self, state: &mut State<W>) {
        if !self.is_promised(state) {
            state.flush();
        }
    }

    /// Whether somebody will come and send what was begun. Whoever was rung to drive has promised it only for as long as
    /// nobody else drives.
    fn is_promised(&self, state: &State<W>) -> bool {
        (state.driver == DriverState::Absent && state.appointed.is_some())
            || self.departures.load(Ordering::SeqCst) != self.arrivals.load(Ordering::SeqCst)
    }

    fn ring(&self, call: &Call) {
        for index in call.all.iter() {
            self.bells[index].notify_all();
        }
        if let Some(bell) = call.one {
            self.bells[usize::from(bell.0)].notify_one();
        }
    }
}

impl<W: Reactor> State<W> {
    /// Acts on the world, and notes which bells to ring for it once the mutex is free.
    fn act<R>(&mut self, act: impl FnOnce(&mut W, &mut WaitSlots) -> R) -> R {
        let mut bells = WaitSlots::default();
        let result = act(&mut self.world, &mut bells);
        bells.0 &= self.slept_on.0;
        for index in bells.iter() {
            let sleepers = &mut self.sleepers[index];
            self.rung += sleepers.number;
            *sleepers = Sleepers { number: 0, rung: sleepers.rung.wrapping_add(1) };
        }
        self.slept_on.0 &= !bells.0;
        self.ringing.0 |= bells.0;
        if self.driver == DriverState::Polling {
            self.world.interrupt();
        }
        result
    }

    /// Sends what was begun. What is begun from now on sleeps on another bell.
    fn flush(&mut self) {
        self.act(|world, bells| world.flush(bells));
        self.bell = WaitSlot((self.bell.0 + 1) % BELLS as u8);
    }

    fn is_driven(&self) -> bool {
        self.driver != DriverState::Absent
    }

    fn take_ringing(&mut self) -> WaitSlots {
        self.rung = 0;
        std::mem::take(&mut self.ringing)
    }

    /// Names who shall drive when the caller leaves, if anybody must and nobody is on the way to it: one of those who have
    /// slept the longest.
    fn appoint(&mut self) -> Option<WaitSlot> {
        if self.is_driven() || self.appointed.is_some() || self.slept_on.is_empty() {
            return None;
        }
        // The bell after the present one is the one that was left the longest ago.
        let next = u32::from(self.bell.0) + 1;
        let oldest = (self.slept_on.0.rotate_right(next).trailing_zeros() + next) % BELLS as u32;
        self.appointed = Some(WaitSlot(oldest as u8));
        self.appointed
    }
}
