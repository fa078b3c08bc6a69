//! Simulated time and the coroutines that live in it: one of them runs at a time, and the seed
//! determines which one.
//!
//! A task is a thread of a simulated client. It runs until it waits: for a lock, a notification, a
//! poll, a channel, or time. When no task can run, time moves on to the next event. Coroutines are
//! shuttle's, which has safe ones; none of its scheduling is used, because never more than one of
//! them can run.
//!
//! A client that is paused runs none of its tasks. A client that is gone runs all of them to their
//! end, in a world of its own: its waits cost no time, and nothing that it sends arrives. So is
//! every client when the run is over.

use crate::world::{Event, World};
use crossbeam_channel::{Receiver, TryRecvError};
use shuttle::thread::{self, Thread};
use std::cell::RefCell;
use std::time::Duration;

thread_local! {
    static WORLD: RefCell<Option<Box<World>>> = const { RefCell::new(None) };
}

/// Switches after which a run that is over counts as one that does not end.
const ENDLESS: u64 = 5_000_000;

/// What a task waits for, in addition to time.
#[derive(Clone, Debug)]
pub(crate) enum Reason {
    Channel {
        wake: Receiver<()>,
        cancelled: Receiver<()>,
    },
    Condvar(usize),
    Mutex(usize),
    Nothing,
    Poll {
        list: Vec<(usize, bool)>,
        waker: usize,
    },
    Task(usize),
    Waker(usize),
}

/// A thread of a simulated client.
#[derive(Default)]
pub(crate) struct Task {
    pub(crate) client: usize,
    thread: Option<Thread>,
    state: State,
    /// Distinguishes an old timer from the present one.
    generation: u64,
    is_in_callback: bool,
}

#[derive(Default)]
enum State {
    Done,
    #[default]
    Ready,
    Waiting {
        reason: Reason,
        until: Option<u64>,
    },
}

/// Tasks, and which of them runs.
#[derive(Default)]
pub(crate) struct Tasks {
    all: Vec<Task>,
    ready: Vec<usize>,
    channels: usize,
    alive: usize,
    current: Option<usize>,
    driver: Option<Thread>,
    pub(crate) switches: u64,
}

/// Acts on the world. Never wait inside.
pub(crate) fn with<R>(act: impl FnOnce(&mut World) -> R) -> R {
    WORLD.with_borrow_mut(|world| act(world.as_mut().expect("a simulation runs")))
}

/// Runs a world to its end, and returns it. `begin` is called inside it.
pub(crate) fn run(world: World, begin: impl Fn() + Send + Sync + 'static) -> Box<World> {
    let mut config = shuttle::Config::new();
    config.stack_size = 128 * 1024;
    config.max_steps = shuttle::MaxSteps::None;
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.silence_warnings = true;
    WORLD.set(Some(Box::new(world)));
    let scheduler = shuttle::scheduler::RoundRobinScheduler::new(1);
    shuttle::Runner::new(scheduler, config).run(move || {
        with(|world| world.tasks.driver = Some(thread::current()));
        begin();
        drive();
    });
    WORLD.take().expect("the world is taken only here")
}

fn drive() {
    loop {
        if let Some(thread) = with(World::next_task) {
            thread.unpark();
            // Shuttle lets a parked thread wake up for no reason now and then.
            while with(|world| world.tasks.current.is_some()) {
                thread::park();
            }
            with(World::look_at_channels);
            continue;
        }
        if with(|world| world.tasks.alive == 0 && world.is_over()) {
            return;
        }
        with(World::next_event);
    }
}

/// Whether a task of a simulation is running: not so in the unit tests of the library's own files.
pub(crate) fn is_inside() -> bool {
    WORLD.with_borrow(|world| {
        world
            .as_ref()
            .is_some_and(|world| world.tasks.current.is_some())
    })
}

pub(crate) fn current_client() -> usize {
    with(|world| world.current_client())
}

pub(crate) fn is_done(task: usize) -> bool {
    with(|world| matches!(world.tasks.all[task].state, State::Done))
}

/// Starts a task of a client. It runs when its turn comes.
pub(crate) fn spawn(client: usize, work: impl FnOnce() + Send + 'static) -> usize {
    let index = with(|world| {
        let index = world.tasks.all.len();
        world.tasks.all.push(Task {
            client,
            ..Task::default()
        });
        world.tasks.alive += 1;
        index
    });
    let handle = thread::spawn(move || {
        park_until_current(index);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        let driver = with(|world| {
            if let Err(panic) = outcome {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text
                    .or(panic.downcast_ref::<&str>().copied())
                    .unwrap_or("?");
                world.violate(
                    "panic",
                    format!("a thread of client {client} panicked: {text}"),
                );
            }
            world.tasks.all[index].state = State::Done;
            world.tasks.alive -= 1;
            world.tasks.current = None;
            world.wake(&Reason::Task(index), usize::MAX);
            world.tasks.driver.clone()
        });
        driver.expect("a simulation runs").unpark();
    });
    with(|world| {
        world.tasks.all[index].thread = Some(handle.thread().clone());
        world.tasks.ready.push(index);
    });
    index
}

/// Waits until woken for this reason, or until then in true time. True when woken.
pub(crate) fn wait(reason: Reason, until: Option<u64>) -> bool {
    let (task, driver) = with(|world| (world.current_task(), world.suspend(reason, until)));
    driver.unpark();
    park_until_current(task);
    with(|world| until.is_none_or(|until| world.now < until))
}

fn park_until_current(task: usize) {
    while with(|world| world.tasks.current != Some(task)) {
        thread::park();
    }
}

/// The same for so long by the client's clock. A waiting thread is woken a little late.
pub(crate) fn wait_for(reason: Reason, time: Duration) -> bool {
    let until = with(|world| {
        let client = world.current_client();
        if world.clients[client].is_gone {
            world.clients[client].pass(time);
            return None;
        }
        Some(world.timer_for(client, time))
    });
    match until {
        Some(until) => wait(reason, Some(until)),
        None => {
            yield_now();
            false
        }
    }
}

/// Lets other tasks run.
pub(crate) fn yield_now() {
    let now = with(|world| world.now);
    wait(Reason::Nothing, Some(now));
}

pub(crate) fn sleep_until(until: u64) {
    while with(|world| world.now < until && !world.clients[world.current_client()].is_gone) {
        wait(Reason::Nothing, Some(until));
    }
}

pub(crate) fn wake(reason: &Reason, most: usize) {
    if is_inside() {
        with(|world| world.wake(reason, most));
    }
}

/// A point at which the thread may lose the processor for a while, or its whole process may.
pub(crate) fn may_be_interrupted() {
    if is_inside()
        && let Some(until) = with(World::interruption)
    {
        wait(Reason::Nothing, Some(until));
    }
}

impl World {
    pub(crate) fn current_task(&self) -> usize {
        self.tasks.current.expect("called by a task")
    }

    pub(crate) fn is_in_callback(&self) -> bool {
        self.tasks.all[self.current_task()].is_in_callback
    }

    pub(crate) fn set_in_callback(&mut self, is_in_callback: bool) {
        let task = self.current_task();
        self.tasks.all[task].is_in_callback = is_in_callback;
    }

    pub(crate) fn current_client(&self) -> usize {
        self.tasks.all[self.current_task()].client
    }

    /// The client that a task belongs to.
    pub(crate) fn client_of(&self, task: usize) -> usize {
        self.tasks.all[task].client
    }

    /// Picks one of the tasks that can run.
    fn next_task(&mut self) -> Option<Thread> {
        self.tasks.current = None;
        let runnable = |world: &World, task: usize| {
            let client = &world.clients[world.tasks.all[task].client];
            client.is_gone || client.paused_until <= world.now && !client.is_asleep()
        };
        let count = self.tasks.ready.len();
        if count == 0 {
            return None;
        }
        let first = if count == 1 {
            0
        } else {
            self.random.index(count)
        };
        let place = (0..count)
            .map(|step| (first + step) % count)
            .find(|&at| runnable(self, self.tasks.ready[at]))?;
        let task = self.tasks.ready.swap_remove(place);
        self.tasks.current = Some(task);
        self.tasks.switches += 1;
        if self.is_over() && self.tasks.switches > ENDLESS {
            panic!("seed {}: the run does not end", self.plan.seed);
        }
        self.tasks.all[task].thread.clone()
    }

    /// Takes the present task off the processor. Returns the thread that schedules.
    fn suspend(&mut self, reason: Reason, until: Option<u64>) -> Thread {
        let task = self.current_task();
        let present = &mut self.tasks.all[task];
        present.generation += 1;
        let generation = present.generation;
        self.tasks.channels += usize::from(matches!(reason, Reason::Channel { .. }));
        self.tasks.all[task].state = State::Waiting { reason, until };
        if let Some(until) = until {
            if until <= self.now || self.clients[self.tasks.all[task].client].is_gone {
                self.make_ready(task);
            } else {
                self.schedule(until, Event::Timer { task, generation });
            }
        }
        self.tasks.current = None;
        self.tasks.driver.clone().expect("a simulation runs")
    }

    fn make_ready(&mut self, task: usize) {
        if let State::Waiting { reason, .. } = &self.tasks.all[task].state {
            self.tasks.channels -= usize::from(matches!(reason, Reason::Channel { .. }));
            self.tasks.all[task].state = State::Ready;
            self.tasks.ready.push(task);
        }
    }

    pub(crate) fn timer(&mut self, task: usize, generation: u64) {
        if self.tasks.all[task].generation == generation {
            self.make_ready(task);
        }
    }

    /// A machine that slept: its timers stood still meanwhile.
    pub(crate) fn put_off_timers(&mut self, client: usize, by: u64) {
        for task in 0..self.tasks.all.len() {
            let present = &mut self.tasks.all[task];
            if let State::Waiting {
                until: Some(until), ..
            } = &mut present.state
                && present.client == client
            {
                *until += by;
                present.generation += 1;
                let until = *until;
                let generation = present.generation;
                self.schedule(until, Event::Timer { task, generation });
            }
        }
    }

    /// Lets every task of a client run, whatever it waits for.
    pub(crate) fn rouse(&mut self, client: usize) {
        for task in 0..self.tasks.all.len() {
            if self.tasks.all[task].client == client {
                self.make_ready(task);
            }
        }
    }

    pub(crate) fn wake(&mut self, reason: &Reason, most: usize) {
        let mut left = most;
        for task in 0..self.tasks.all.len() {
            let State::Waiting { reason: other, .. } = &self.tasks.all[task].state else {
                continue;
            };
            let meant = match (reason, other) {
                (Reason::Mutex(place), Reason::Mutex(other))
                | (Reason::Condvar(place), Reason::Condvar(other)) => place == other,
                (Reason::Task(task), Reason::Task(other)) => task == other,
                (Reason::Waker(place), Reason::Poll { waker, .. }) => place == waker,
                _ => false,
            };
            if meant && left > 0 {
                left -= 1;
                self.make_ready(task);
            }
        }
    }

    /// Something happened to a connection: wakes the tasks that poll it.
    pub(crate) fn wake_pollers(&mut self, connection: usize) {
        let (readable, writable) = self.readiness(connection);
        for task in 0..self.tasks.all.len() {
            if let State::Waiting {
                reason: Reason::Poll { list, .. },
                ..
            } = &self.tasks.all[task].state
                && list.iter().any(|&(listed, wants)| {
                    listed == connection && (readable || (wants && writable))
                })
            {
                self.make_ready(task);
            }
        }
    }

    fn look_at_channels(&mut self) {
        if self.tasks.channels == 0 {
            return;
        }
        for task in 0..self.tasks.all.len() {
            if let State::Waiting {
                reason: Reason::Channel { wake, cancelled },
                ..
            } = &self.tasks.all[task].state
                && (wake.try_recv() != Err(TryRecvError::Empty)
                    || cancelled.try_recv() != Err(TryRecvError::Empty))
            {
                self.make_ready(task);
            }
        }
    }

    /// Whether nothing can happen any more.
    pub(crate) fn is_stuck(&self) -> bool {
        self.tasks.alive > 0
    }
}
