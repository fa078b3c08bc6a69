//! Whoever waits, polls: how threads hand on the driving of one shared world.
//!
//! The world (connections, rounds in flight) stands under one mutex that is never held across a wait. Of the threads that
//! wait for something in it, one is the *driver*: it polls, takes the mutex, lets the world absorb what is ready, and
//! rings those whose rounds are decided now. The others are parked.
//!
//! ```text
//!            decided, or out of time ──────────────────────────────► leave
//!           ╱                                                        ▲  │ nobody drives, somebody is
//!   wait ──┤   nobody drives ──► drive: poll, absorb, ring ──┐       │  │ parked undecided: ring one
//!           ╲                                                ├─► ────┘  ▼
//!            somebody drives ──► park until rung, or time ───┘        gone
//! ```
//!
//! Invariants, each of which a model test breaks on purpose to see it fail:
//! 1. While a thread is parked undecided, somebody drives, or somebody who will look again is awake. Therefore whoever
//!    leaves, for whatever reason, rings a parked thread if nobody drives.
//! 2. A decision is stored before its owner is rung, under the same mutex under which the owner looks.
//! 3. A thread sleeps no longer than to its own deadline, whoever drives and however long.
//! 4. What was begun is sent before the mutex is left, unless another thread has promised to come and send it, together
//!    with its own and everybody else's, in one write to each node. A thread promises by being on its way to the mutex, or
//!    by having been rung to drive. The last of those who come leaves nothing unsent, and nobody polls before sending; and
//!    who waits for a reply does not trust for long.

use crate::proto::time::Timestamp;
use crate::sync::{Arc, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, lock, yield_now};
use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::Duration;

/// How long a thread that waits for a reply trusts in another one's promise to send its command. A promise is kept in
/// microseconds, unless the processor is given to others; then the thread sends for itself.
const TRUST: Duration = Duration::from_micros(500);

/// What is driven.
pub(super) trait World {
    /// Names something to wait for.
    type Ticket: Copy + PartialEq;
    /// What one poll waits for and what it found: taken out of the world, so that the world is free meanwhile.
    type Watch: Default;

    /// The present time.
    fn now(&self) -> Timestamp;
    /// Whether there is nothing left to wait for.
    fn is_decided(&self, ticket: Self::Ticket) -> bool;
    /// The owner's deadline has come: decides the ticket, and lists what else is decided on the way.
    fn expire(&mut self, ticket: Self::Ticket, decided: &mut Vec<Self::Ticket>);
    /// Sends what was begun, and lists what is decided on the way.
    fn flush(&mut self, decided: &mut Vec<Self::Ticket>);
    /// Says what to wait for.
    fn watch(&mut self, watch: &mut Self::Watch);
    /// Waits, with the mutex free, until something is ready or the time is up.
    fn poll(watch: &mut Self::Watch, patience: Duration);
    /// Takes in what is ready, and lists what is decided now.
    fn absorb(&mut self, watch: &mut Self::Watch, decided: &mut Vec<Self::Ticket>);
    /// Makes a poll that is under way look again, if what there is to wait for has changed since.
    fn interrupt(&mut self);
}

/// A world that threads drive in turn.
pub(super) struct Relay<W: World> {
    state: Mutex<State<W>>,
    /// How many threads are on their way to the mutex.
    arriving: AtomicUsize,
}

struct State<W: World> {
    world: W,
    /// Somebody polls.
    driven: bool,
    /// How many parked threads have been rung to drive and have not come yet.
    appointed: usize,
    /// Who is parked, the longest wait first.
    parked: VecDeque<Seat<W::Ticket>>,
    /// Bells of threads that are gone, to be used again.
    bells: Vec<Arc<Condvar>>,
    /// Buffers of the driver, kept from turn to turn.
    watch: W::Watch,
    decided: Vec<W::Ticket>,
    ringing: Vec<Arc<Condvar>>,
}

struct Seat<T> {
    ticket: T,
    bell: Arc<Condvar>,
    appointed: bool,
}

impl<W: World> Relay<W> {
    pub(super) fn new(world: W) -> Relay<W> {
        Relay {
            state: Mutex::new(State {
                world,
                driven: false,
                appointed: 0,
                parked: VecDeque::new(),
                bells: Vec::new(),
                watch: W::Watch::default(),
                decided: Vec::new(),
                ringing: Vec::new(),
            }),
            arriving: AtomicUsize::new(0),
        }
    }

    /// Does something in the world that does not wait. `act` lists the tickets that it decided on the way.
    pub(super) fn enter<R>(&self, act: impl FnOnce(&mut W, &mut Vec<W::Ticket>) -> R) -> R {
        let mut state = self.arrive();
        let result = state.act(act);
        self.flush_unless_promised(&mut state);
        let ringing = state.take_ringing();
        drop(state);
        ring_all(&ringing);
        result
    }

    /// Begins something in the world, waits until it is decided, and collects it. `begin` gives the ticket and the time
    /// at which the wait ends at the latest.
    pub(super) fn run<R>(
        &self,
        begin: impl FnOnce(&mut W, &mut Vec<W::Ticket>) -> (W::Ticket, Timestamp),
        collect: impl FnOnce(&mut W, W::Ticket) -> R,
    ) -> R {
        let mut state = self.arrive();
        let (ticket, deadline) = state.act(begin);
        self.settle(state, ticket, deadline, collect)
    }

    /// Waits until something that was begun by [`enter`](Relay::enter) is decided, and collects it.
    pub(super) fn wait<R>(
        &self,
        ticket: W::Ticket,
        deadline: Timestamp,
        collect: impl FnOnce(&mut W, W::Ticket) -> R,
    ) -> R {
        self.settle(self.arrive(), ticket, deadline, collect)
    }

    fn settle<'a, R>(
        &'a self,
        mut state: MutexGuard<'a, State<W>>,
        ticket: W::Ticket,
        deadline: Timestamp,
        collect: impl FnOnce(&mut W, W::Ticket) -> R,
    ) -> R {
        let mut trusting = true;
        while !state.world.is_decided(ticket) {
            let now = state.world.now();
            if now >= deadline {
                state.act(|world, decided| world.expire(ticket, decided));
                break;
            }
            let mut patience = deadline.since(now);
            // Sending may decide something by itself, when a connection turns out to be broken.
            if state.driven && trusting && self.is_promised(&state) {
                patience = patience.min(TRUST);
            } else {
                state.act(|world, decided| world.flush(decided));
            }
            state = if !state.ringing.is_empty() {
                self.ring(state)
            } else if state.world.is_decided(ticket) {
                break;
            } else if state.driven {
                trusting = false;
                park(state, ticket, patience)
            } else {
                self.drive(state, patience)
            };
        }
        let result = collect(&mut state.world, ticket);
        let successor = state.appoint();
        self.flush_unless_promised(&mut state);
        let mut ringing = state.take_ringing();
        ringing.extend(successor);
        drop(state);
        ring_all(&ringing);
        result
    }

    /// One turn at driving: poll, absorb, ring. Everything that was begun has been sent.
    fn drive<'a>(&'a self, mut state: MutexGuard<'a, State<W>>, patience: Duration) -> MutexGuard<'a, State<W>> {
        let mut watch = std::mem::take(&mut state.watch);
        state.world.watch(&mut watch);
        state.driven = true;
        drop(state);
        W::poll(&mut watch, patience);
        let mut state = self.arrive();
        state.driven = false;
        state.act(|world, decided| world.absorb(&mut watch, decided));
        state.watch = watch;
        if state.ringing.is_empty() { state } else { self.ring(state) }
    }

    /// Takes the mutex, having promised to come.
    fn arrive(&self) -> MutexGuard<'_, State<W>> {
        self.arriving.fetch_add(1, Ordering::SeqCst);
        let state = lock(&self.state);
        self.arriving.fetch_sub(1, Ordering::SeqCst);
        state
    }

    /// Sends what was begun, unless somebody has promised to come.
    fn flush_unless_promised(&self, state: &mut State<W>) {
        if !self.is_promised(state) {
            state.act(|world, decided| world.flush(decided));
        }
    }

    /// Whether somebody will come and send what was begun. Whoever was rung to drive has promised it only for as long as
    /// nobody else drives.
    fn is_promised(&self, state: &State<W>) -> bool {
        (!state.driven && state.appointed > 0) || self.arriving.load(Ordering::SeqCst) > 0
    }

    /// Rings with the mutex free, so that nobody wakes up only to wait for it; and lets several who were rung go first, so
    /// that what they begin next is sent together.
    fn ring<'a>(&'a self, mut state: MutexGuard<'a, State<W>>) -> MutexGuard<'a, State<W>> {
        let mut ringing = state.take_ringing();
        self.arriving.fetch_add(1, Ordering::SeqCst);
        drop(state);
        ring_all(&ringing);
        if ringing.len() > 1 {
            yield_now();
        }
        ringing.clear();
        state = lock(&self.state);
        self.arriving.fetch_sub(1, Ordering::SeqCst);
        state.ringing = ringing;
        state
    }
}

impl<W: World> State<W> {
    /// Acts on the world, and notes whose bells to ring for it once the mutex is free.
    fn act<R>(&mut self, act: impl FnOnce(&mut W, &mut Vec<W::Ticket>) -> R) -> R {
        let mut decided = std::mem::take(&mut self.decided);
        let result = act(&mut self.world, &mut decided);
        for ticket in decided.drain(..) {
            if let Some(seat) = self.parked.iter().find(|seat| seat.ticket == ticket) {
                self.ringing.push(Arc::clone(&seat.bell));
            }
        }
        self.decided = decided;
        if self.driven {
            self.world.interrupt();
        }
        result
    }

    fn take_ringing(&mut self) -> Vec<Arc<Condvar>> {
        std::mem::take(&mut self.ringing)
    }

    /// Names who shall drive when the caller leaves, if anybody must and nobody is on the way to it.
    fn appoint(&mut self) -> Option<Arc<Condvar>> {
        if self.driven || self.appointed > 0 {
            return None;
        }
        let world = &self.world;
        let seat = self.parked.iter_mut().find(|seat| !world.is_decided(seat.ticket))?;
        seat.appointed = true;
        self.appointed += 1;
        Some(Arc::clone(&seat.bell))
    }
}

/// Sleeps until rung, or for that long.
fn park<W: World>(
    mut state: MutexGuard<'_, State<W>>,
    ticket: W::Ticket,
    patience: Duration,
) -> MutexGuard<'_, State<W>> {
    let bell = state.bells.pop().unwrap_or_default();
    state.parked.push_back(Seat { ticket, bell: Arc::clone(&bell), appointed: false });
    let (mut state, _) = bell.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner);
    let index = state.parked.iter().position(|seat| seat.ticket == ticket);
    if let Some(seat) = index.and_then(|index| state.parked.remove(index))
        && seat.appointed
    {
        state.appointed -= 1;
    }
    state.bells.push(bell);
    state
}

fn ring_all(bells: &[Arc<Condvar>]) {
    for bell in bells {
        bell.notify_one();
    }
}
