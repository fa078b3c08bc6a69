//! What the clients do: threads that take locks in every way there is, hold, extend and release
//! them, and when all faults have ended want the lock once more. [`holding`] is what they do with a
//! lock, [`settling`] how they end.

mod holding;
mod settling;

use crate::api::client::Client;
use crate::api::redlock::Redlock;
use crate::api::wait::{CancelHandle, Wait};
use crate::api::watchdog::Watchdog;
use crate::clients::open_client;
use crate::endings::{self, Ending};
use crate::events::error::{ErrorKind, Result};
use crate::holds::Taken;
use crate::kernel::{self, sleep_until, with};
use crate::locks::Access;
use crate::locks::{Guard, Lock, Sort};
use crate::plan::{MILLISECOND, SECOND};
use crate::random::Random;
use crate::waits::Awaited;
use crate::world::World;
use std::time::Duration;

/// Starts every thread of every client.
pub(crate) fn begin() {
    let threads: Vec<usize> = with(|world| {
        world
            .plan
            .clients
            .iter()
            .map(|client| client.threads)
            .collect()
    });
    for (client, count) in threads.into_iter().enumerate() {
        kernel::spawn(client, move || {
            sleep_until(with(|world| world.plan.clients[client].begins_at));
            let handle = open_client(client);
            let sharing = Redlock::new(handle.clone());
            for place in 0..count {
                // Those that share leases to read have the same handle.
                let shares_leases = with(|world| world.plan.shares_leases);
                let redlock = if shares_leases {
                    sharing.clone()
                } else {
                    Redlock::new(handle.clone())
                };
                let handle = handle.clone();
                let random = with(|world| world.random.fork(2));
                let is_flooding =
                    place > 0 && with(|world| world.plan.clients[client].callback > 0);
                let flooding = is_flooding.then_some(place as u64);
                kernel::spawn(client, move || {
                    Worker {
                        handle,
                        redlock,
                        random,
                        flooding,
                    }
                    .run()
                });
            }
        });
    }
}

struct Worker {
    handle: Client,
    redlock: Redlock,
    random: Random,
    /// Takes this lock and drops it as fast as it can, so that there are many events.
    flooding: Option<u64>,
}

impl Worker {
    fn run(mut self) {
        while has_faults() && !endings::is_quitting() {
            self.turn();
            let idle = if self.flooding.is_some() {
                MILLISECOND / 5
            } else {
                with(|world| world.plan.idle)
            };
            let until = with(|world| world.now) + self.random.magnitude(10_000, idle);
            self.rest(until);
        }
        match with(|world| world.plan.ending) {
            Ending::GoesOn => self.settle(),
            Ending::Idles => {}
            Ending::Quits => return,
        }
        endings::settled(&self.handle);
    }

    fn rest(&self, until: u64) {
        let fault_time = with(|world| world.plan.fault_time);
        if has_faults() {
            sleep_until(until.min(fault_time));
        }
    }

    /// Takes a lock in one of the ways, and holds it.
    fn turn(&mut self) {
        let (resources, ttls, watchdog_rarity, node_timeout) = with(|world| {
            let plan = &world.plan;
            (
                plan.resources,
                plan.ttls_of(world.current_client()).to_vec(),
                plan.watchdog_rarity,
                plan.node_timeout,
            )
        });
        if self.flooding.is_none() && self.random.once_in(30) {
            self.connect();
        }
        let resource = self
            .flooding
            .map_or_else(|| self.random.below(resources), |own| own % resources)
            as usize;
        let ttl = self.random.pick(&ttls);
        let sort = self.draw_sort();
        let access = sort.access();
        let mut mutex = Lock::of(&self.redlock, resource, sort);
        mutex = mutex.ttl(Duration::from_millis(ttl));
        let is_watched = self.random.once_in(watchdog_rarity);
        if is_watched {
            mutex = mutex.watchdog(Watchdog::new());
        }
        let (begun, pauses) = moment();
        // With a time to live that is shorter than the answers take, one may wait for ever.
        let is_long_enough = ttl * MILLISECOND > node_timeout / 2 + 10 * MILLISECOND;
        let mut patience = None;
        let has_time = |patience: Option<u64>| {
            is_long_enough && patience.is_none_or(|time| time > 3 * node_timeout)
        };
        let delivered = with(|world| world.delivered());
        let way = if self.flooding.is_some() {
            0
        } else {
            self.random.below(4)
        };
        let waiting = |patience, call: &mut dyn FnMut() -> Result<Option<Guard>>| {
            let _: Option<u64> = patience;
            waiting(sort.awaited(resource), call)
        };
        let drawn = with(|world| world.judge.tokens.len());
        // Connections may have to be made first, and a fence may take a second round trip. A thread
        // that wants to share a lease waits for others that do, asks for it, and then for one of
        // its own.
        let round_trips = match access {
            Access::Read if with(|world| world.plan.shares_leases) => 12,
            Access::Read => 4,
            // The search for a slot asks three times at most.
            Access::Write if sort == Sort::Permit => 4,
            Access::Write if sort.has_fence() => 3,
            Access::Write => 2,
        };
        let (what, allowed, result) = match way {
            0 => (
                "try_lock",
                Some(round_trips * node_timeout),
                mutex.try_lock(),
            ),
            1 if is_long_enough => ("lock", None, waiting(None, &mut || mutex.lock().map(Some))),
            2 => {
                let cancel = CancelHandle::new();
                let time = self.random.magnitude(10_000, SECOND);
                let handle = cancel.clone();
                kernel::spawn(kernel::current_client(), move || {
                    sleep_until(with(|world| world.now) + time);
                    handle.cancel();
                });
                let wait = Wait::unlimited().cancelled_by(&cancel);
                let mut lock = || mutex.lock_with(&wait);
                ("a wait that is cancelled", None, waiting(None, &mut lock))
            }
            _ => {
                let time = self.random.magnitude(MILLISECOND, 5 * SECOND);
                patience = Some(time);
                let mut lock = || mutex.lock_timeout(Duration::from_nanos(time));
                ("lock_timeout", Some(time), waiting(patience, &mut lock))
            }
        };
        let shares = Shares::of(&result, drawn);
        with(|world| world.reported_call(what, &result, shares.is_joined()));
        if let Some(allowed) = allowed {
            with(|world| {
                world.took_time(what, begun, allowed, pauses);
                if what == "try_lock" {
                    world.has_delivered(what, delivered);
                }
            });
        }
        match result {
            Ok(Some(guard)) => {
                let resource = sort.resource(resource) + guard.slot();
                let taken = Taken {
                    resource,
                    is_set: sort == Sort::Set,
                    access,
                    reads_by: shares.0,
                };
                self.hold(taken, guard, ttl, is_watched, (begun, pauses));
            }
            Ok(None) => with(|world| {
                world.saw("a call that finds the lock held");
                if let Some(patience) = patience {
                    world.gave_up(what, begun, patience);
                }
                // Other threads of the client may have all permits.
                world.got_nothing(true, what != "try_lock" || sort == Sort::Permit);
            }),
            Err(error) => with(|world| {
                let is_expected =
                    matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Unavailable);
                let client = world.current_client();
                let task = world.current_task();
                world.record(|| format!("client {client} thread {task}: {what} failed: {error}"));
                world.got_nothing(false, true);
                world.saw(match error.kind() {
                    ErrorKind::Cancelled => "a wait that is cancelled",
                    _ if error.to_string().contains("too short") => {
                        "an attempt that is won too late"
                    }
                    _ => "a call that finds too few nodes",
                });
                if error.to_string().contains("so slow") {
                    world.said_ended(what, (begun, pauses));
                }
                if !is_expected {
                    world.violate("errors", format!("{what}: {error}"));
                } else if error.kind() == ErrorKind::Unavailable
                    && has_time(patience)
                    && world.may_lock()
                {
                    world.violate("available", format!("{what}: {error}"));
                }
            }),
        }
    }

    /// Which lock of a name: one of those that this run has. A thread that floods takes no set.
    fn draw_sort(&mut self) -> Sort {
        let sorts = with(|world| world.plan.sorts());
        loop {
            let sort = self.random.pick(&sorts);
            if self.flooding.is_none() || sort != Sort::Set {
                return sort;
            }
        }
    }

    /// Asks all nodes what they are.
    fn connect(&mut self) {
        let allowed = self.random.magnitude(MILLISECOND, SECOND);
        let (begun, pauses) = moment();
        let outcome = self.redlock.connect(Duration::from_nanos(allowed));
        with(|world| {
            world.took_time("connect", begun, allowed, pauses);
            match outcome {
                Ok(nodes) if nodes.len() == world.nodes.len() => {
                    world.saw("a check that finds a quorum")
                }
                Err(error) if error.kind() == ErrorKind::Unavailable => {
                    world.saw("a check that finds too few nodes")
                }
                other => world.violate("errors", format!("connect: {other:?}")),
            }
        });
    }
}

/// The attempt that a lease to read belongs to, and whether the call that returned it has made it.
struct Shares(Option<(usize, bool)>);

impl Shares {
    /// From the result of a call before which so many tokens had been drawn.
    fn of(result: &Result<Option<Guard>>, drawn: usize) -> Shares {
        let Ok(Some(guard)) = result else {
            return Shares(None);
        };
        let token = guard.reads_by();
        with(|world| {
            let task = world.current_task();
            let is_own = |token: usize| token >= drawn && world.judge.tokens[token].task == task;
            Shares(token.map(|token| (token, is_own(token))))
        })
    }

    /// Whether another thread has taken the lock.
    fn is_joined(&self) -> bool {
        self.0.is_some_and(|(_, is_own)| !is_own)
    }
}

/// A call that waits.
fn waiting<R>(what: Awaited, call: impl FnOnce() -> R) -> R {
    with(|world| world.begins_to_wait(what));
    let result = call();
    with(World::ends_waiting);
    result
}

/// A guard's remaining time, asked until no time passed meanwhile: it is true when the guard reads
/// the clock, and its thread may pause before it returns.
fn remaining(guard: &Guard) -> Duration {
    loop {
        let before = moment().0;
        let remaining = guard.remaining();
        if moment().0 == before {
            return remaining;
        }
    }
}

fn has_faults() -> bool {
    with(|world| world.has_faults() && !world.clients[world.current_client()].is_gone)
}

fn is_gone() -> bool {
    with(|world| world.clients[world.current_client()].is_gone)
}

/// The present, and how often this client has lost time so far.
fn moment() -> (u64, u64) {
    with(|world| (world.now, world.clients[world.current_client()].pauses))
}
