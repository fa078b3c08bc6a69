//! What the clients do: threads that take locks in every way there is, hold, extend and release them, and when all
//! faults have ended want the lock once more.

use crate::algorithm::kind::Access;
use crate::api::client::Client;
use crate::api::redlock::Redlock;
use crate::api::wait::{CancelHandle, Wait};
use crate::api::watchdog::Watchdog;
use crate::clients::open_client;
use crate::endings::{self, Ending};
use crate::events::error::{ErrorKind, Result};
use crate::events::extension::ExtendOutcome;
use crate::events::release::ReleaseOutcome;
use crate::fences;
use crate::holds::{self, Taken};
use crate::kernel::{self, sleep_until, with};
use crate::locks::{Guard, Lock, Sort};
use crate::plan::{MILLISECOND, SECOND};
use crate::random::Random;
use crate::waits::Awaited;
use crate::world::World;
use std::time::Duration;

/// Longest that a thread holds a lock for its work.
const LONGEST_HOLD: u64 = 3 * SECOND;

/// Starts every thread of every client.
pub(crate) fn begin() {
    let threads: Vec<usize> = with(|world| world.plan.clients.iter().map(|client| client.threads).collect());
    for (client, count) in threads.into_iter().enumerate() {
        kernel::spawn(client, move || {
            sleep_until(with(|world| world.plan.clients[client].begins_at));
            let handle = open_client(client);
            let sharing = Redlock::new(handle.clone());
            for place in 0..count {
                // Those that share leases to read have the same handle.
                let shares_leases = with(|world| world.plan.shares_leases);
                let redlock = if shares_leases { sharing.clone() } else { Redlock::new(handle.clone()) };
                let handle = handle.clone();
                let random = with(|world| world.random.fork(2));
                let is_flooding = place > 0 && with(|world| world.plan.clients[client].callback > 0);
                let flooding = is_flooding.then_some(place as u64);
                kernel::spawn(client, move || Worker { handle, redlock, random, flooding }.run());
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
            let idle = if self.flooding.is_some() { MILLISECOND / 5 } else { with(|world| world.plan.idle) };
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
            (plan.resources, plan.ttls_of(world.current_client()).to_vec(), plan.watchdog_rarity, plan.node_timeout)
        });
        if self.flooding.is_none() && self.random.once_in(30) {
            self.connect();
        }
        let resource = self.flooding.map_or_else(|| self.random.below(resources), |own| own % resources) as usize;
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
        let has_time = |patience: Option<u64>| is_long_enough && patience.is_none_or(|time| time > 3 * node_timeout);
        let delivered = with(|world| world.delivered());
        let way = if self.flooding.is_some() { 0 } else { self.random.below(4) };
        let waiting = |patience, call: &mut dyn FnMut() -> Result<Option<Guard>>| {
            let _: Option<u64> = patience;
            waiting(sort.awaited(resource), call)
        };
        let drawn = with(|world| world.judge.tokens.len());
        // Connections may have to be made first, and a fence may take a second round trip. A thread that wants to
        // share a lease waits for others that do, asks for it, and then for one of its own.
        let round_trips = match access {
            Access::Read if with(|world| world.plan.shares_leases) => 12,
            Access::Read => 4,
            // The search for a slot asks three times at most.
            Access::Write if sort == Sort::Permit => 4,
            Access::Write if sort.has_fence() => 3,
            Access::Write => 2,
        };
        let (what, allowed, result) = match way {
            0 => ("try_lock", Some(round_trips * node_timeout), mutex.try_lock()),
            1 if is_long_enough => ("lock", None, waiting(None, &mut || mutex.lock().map(Some))),
            2 => {
                let (cancel, time) = (CancelHandle::new(), self.random.magnitude(10_000, SECOND));
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
                let taken = Taken { resource, is_set: sort == Sort::Set, access, reads_by: shares.0 };
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
                let is_expected = matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Unavailable);
                let (now, client) = (world.now, world.current_client());
                let task = world.current_task();
                world.trace.note(now, || format!("client {client} thread {task}: {what} failed: {error}"));
                world.got_nothing(false, true);
                world.saw(match error.kind() {
                    ErrorKind::Cancelled => "a wait that is cancelled",
                    _ if error.to_string().contains("too short") => "an attempt that is won too late",
                    _ => "a call that finds too few nodes",
                });
                if !is_expected {
                    world.violate("errors", format!("{what}: {error}"));
                } else if error.kind() == ErrorKind::Unavailable && has_time(patience) && world.may_lock() {
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

    fn hold(&mut self, what: Taken, mut guard: Guard, ttl: u64, is_watched: bool, begun: (u64, u64)) {
        let at_first = remaining(&guard);
        let mut hold = holds::took(what, at_first, begun);
        fences::given(hold, guard.fence());
        let longest = if is_watched { 5 * ttl } else { ttl + ttl / 4 } * MILLISECOND;
        let holds_on = with(|world| world.plan.clients[world.current_client()].holds_on) && !self.random.once_in(4);
        let length = match self.random.once_in(3) {
            _ if self.flooding.is_some() => 0,
            _ if holds_on => LONGEST_HOLD,
            true => 0,
            false => self.random.magnitude(1_000, longest.min(LONGEST_HOLD)),
        };
        let until = with(|world| world.now) + length;
        let (extension_rarity, node_timeout, stride) =
            with(|world| (world.plan.extension_rarity, world.plan.node_timeout, world.plan.stride));
        // Another thread extends the lease, too, and may get the signal of its loss.
        let mut is_shared = with(|world| world.judge.holds[hold].is_shared);
        let mut was_extended = false;
        let mut lost = (is_watched || self.random.once_in(8)).then(|| guard.lost().unwrap());
        let mut signals = 0;
        while has_faults() && with(|world| world.now) < until {
            let step = match stride {
                0 => self.random.magnitude(100_000, length.max(200_000)),
                stride => self.random.between(stride / 2, stride),
            };
            let now = with(|world| world.now);
            // Some wait with what they want to do until it is almost too late.
            let end = now + remaining(&guard).as_nanos() as u64;
            let is_late = !is_watched && self.random.once_in(extension_rarity * 2);
            let brink = end.saturating_sub(self.random.magnitude(50_000, node_timeout));
            let next = if is_late && brink > now { brink } else { (now + step).min(until) };
            let next = next.min(self.next_look(now, end, ttl));
            self.rest(next);
            let remaining = remaining(&guard);
            // Taken at once, because the channel has room for one signal only and would hide a second one.
            signals += u32::from(lost.as_ref().is_some_and(|lost| lost.try_recv().is_ok()));
            holds::still(hold, remaining, is_shared || is_watched && was_extended);
            if !remaining.is_zero() {
                kernel::may_be_interrupted();
                with(|world| world.writes(hold));
                if self.random.once_in(3) && guard.is_writer() {
                    drop(lost.take());
                    let Some((reader, reads)) = self.downgrade(hold, guard, what) else { return };
                    (guard, hold, was_extended) = (reader, reads, true);
                    is_shared = with(|world| world.judge.holds[hold].is_shared);
                    continue;
                }
            }
            if holds_on && remaining.is_zero() {
                break;
            }
            if self.random.once_in(extension_rarity) {
                was_extended = true;
                let is_lost = self.extend(hold, &guard, is_watched || is_shared);
                // Some ask for the channel of a loss that they know of.
                if is_lost && lost.is_none() && self.random.once_in(2) {
                    lost = guard.lost().ok();
                }
            }
        }
        let remaining = remaining(&guard);
        holds::still(hold, remaining, true);
        if let Some(lost) = lost {
            signals += u32::from(lost.try_recv().is_ok());
            with(|world| {
                if signals > 1 {
                    let token = world.judge.holds[hold].token;
                    world.violate(
                        "signalled once",
                        format!("the loss of attempt {token} was signalled {signals} times"),
                    );
                }
                if signals > 0 {
                    world.reported_by_channel(world.judge.holds[hold].reported_as);
                    world.saw("a loss that the channel reports");
                } else if remaining.is_zero()
                    && is_watched
                    && !is_shared
                    && !was_extended
                    && at_first.as_nanos() / 40 > u128::from(world.plan.lateness)
                    && at_first.as_nanos() > 2 * u128::from(world.plan.node_timeout)
                {
                    // The watchdog's thread may wait for the answers about another lock, for the node timeout.
                    // Without a watchdog the loss is reported at the very end, by a thread that may be woken late.
                    world.was_not_reported(hold, begun);
                }
            });
        }
        let by_dropping = self.flooding.is_some() || self.random.once_in(2);
        with(|world| world.gives_back(hold, by_dropping));
        let delivered = with(|world| world.delivered());
        if by_dropping {
            drop(guard);
            with(|world| world.has_delivered("drop", delivered));
            return;
        }
        let (begun, pauses) = moment();
        let end = holds::end_of(remaining);
        let outcome = guard.unlock();
        // With a watchdog, the loss may have been reported meanwhile, before the end by the clock.
        let is_in_force = !is_watched && !remaining.is_zero() && holds::end_of(Duration::ZERO) < end;
        with(|world| {
            if is_in_force && matches!(outcome, Ok(ReleaseOutcome::Expired)) {
                world.check_loss(world.judge.holds[hold].token, "was released as expired");
            }
            if !matches!(outcome, Ok(ReleaseOutcome::StillHeld(_))) {
                world.reported_unlock(world.judge.holds[hold].reported_as, outcome.as_ref().ok().copied());
            }
            match outcome {
                Ok(ReleaseOutcome::StillHeld(_)) => world.saw("a guard of several that goes"),
                Ok(ReleaseOutcome::Released) => {
                    world.saw("an unlock that says released");
                    world.said_released(hold, begun);
                }
                Ok(ReleaseOutcome::Expired) => world.saw("an unlock that says expired"),
                Err(_) => world.saw("an unlock that finds too few nodes"),
            }
            let allowed = world.plan.node_timeout;
            world.took_time("unlock", begun, allowed, pauses);
            world.has_delivered("unlock", delivered);
        });
    }

    /// Makes a writer a reader. None when the lock was lost.
    fn downgrade(&mut self, hold: usize, writer: Guard, what: Taken) -> Option<(Guard, usize)> {
        let token = with(|world| {
            world.saw("a writer that becomes a reader");
            world.gives_back(hold, true);
            world.judge.holds[hold].token
        });
        let begun = moment();
        let outcome = writer.downgrade();
        with(|world| {
            let allowed = world.plan.node_timeout;
            world.took_time("downgrade", begun.0, allowed, begun.1);
        });
        match outcome {
            Ok(reader) => {
                let what = Taken { access: Access::Read, reads_by: Some((token, false)), ..what };
                let hold = holds::took(what, remaining(&reader), (0, 0));
                Some((reader, hold))
            }
            Err(error) => {
                let is_expected = error.kind() == ErrorKind::LeaseLost;
                with(|world| match is_expected {
                    true => world.saw("a writer that does not become a reader"),
                    false => world.violate("errors", format!("downgrade: {error}")),
                });
                None
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
                Ok(nodes) if nodes.len() == world.nodes.len() => world.saw("a check that finds a quorum"),
                Err(error) if error.kind() == ErrorKind::Unavailable => world.saw("a check that finds too few nodes"),
                other => world.violate("errors", format!("connect: {other:?}")),
            }
        });
    }

    /// When to look at a lock at the latest whose lease ends then: often, near the end.
    fn next_look(&mut self, now: u64, end: u64, ttl: u64) -> u64 {
        match with(|world| world.plan.attention) {
            0 => u64::MAX,
            longest => (end.saturating_sub(ttl * MILLISECOND / 8)).max(now + self.random.between(1, longest)),
        }
    }

    /// Extends by hand. True when that finds the lock lost.
    fn extend(&mut self, hold: usize, guard: &Guard, is_watched: bool) -> bool {
        let ttl = {
            let ttls = with(|world| world.plan.ttls_of(world.current_client()).to_vec());
            let longest = self.random.pick(&ttls);
            if self.random.once_in(4) { self.random.between(longest / 2, longest).max(4) } else { longest }
        };
        let left = remaining(guard);
        let old_end = (!is_watched).then(|| holds::end_of(left));
        // A lease that lasts for so long already is left as it is, and nothing is sent. The watchdog may have extended
        // it meanwhile.
        let may_suffice = is_watched || left * 2 > Duration::from_millis(ttl);
        holds::will_change(hold);
        with(|world| {
            let (now, client) = (world.now, world.current_client());
            world.trace.note(now, || format!("client {client} extends by hand for {ttl} ms"));
        });
        let reported_as = with(|world| world.judge.holds[hold].reported_as);
        let reported = with(|world| world.reported_extensions(reported_as));
        let (begun, pauses) = moment();
        let watch = old_end.map(|old_end| holds::Extending { hold, old_end, begun, pauses });
        holds::begins_to_extend(watch);
        let outcome = guard.extend(Duration::from_millis(ttl));
        holds::begins_to_extend(None);
        with(|world| {
            let (now, client) = (world.now, world.current_client());
            world.trace.note(now, || format!("client {client}: extension by hand for {ttl} ms: {outcome:?}"));
            if let (Ok(outcome), false) = (&outcome, may_suffice || matches!(guard, Guard::Read(_))) {
                world.reported_extend(reported_as, reported, outcome);
            }
            match &outcome {
                Ok(ExtendOutcome::Extended) => {
                    world.saw("an extension by hand that succeeds");
                    if !may_suffice && !matches!(guard, Guard::Read(_)) {
                        world.said_extended(hold, begun);
                    }
                }
                Ok(ExtendOutcome::Failed(_)) => world.saw("an extension by hand that fails"),
                Ok(ExtendOutcome::Lost) => world.saw("an extension by hand that finds the lock lost"),
                Err(error) => world.violate("errors", format!("extend: {error}")),
            }
            // The extensions of a lease that threads share go one after the other.
            let sharing = if matches!(guard, Guard::Read(_)) { world.plan.clients[client].threads as u64 } else { 1 };
            let allowed = world.plan.node_timeout * sharing;
            world.took_time("extend", begun, allowed, pauses);
        });
        if let (Ok(ExtendOutcome::Lost), Some(old_end)) = (&outcome, old_end)
            && holds::end_of(Duration::ZERO) < old_end
        {
            with(|world| world.check_loss(world.judge.holds[hold].token, "could not be extended"));
        }
        if let (Ok(ExtendOutcome::Extended), Some(old_end)) = (&outcome, old_end) {
            holds::was_extended(hold, old_end, (begun, pauses));
        }
        holds::still(hold, remaining(guard), is_watched);
        matches!(outcome, Ok(ExtendOutcome::Lost))
    }

    /// After all faults: every thread gets the lock, and goes on to use the client for a while.
    fn settle(&mut self) {
        let (fault_time, patience, end, ttl) = with(|world| {
            let plan = &world.plan;
            (plan.fault_time, plan.settling_time(), plan.end(), plan.settling_ttl())
        });
        sleep_until(fault_time);
        let deadline = fault_time + patience;
        let sort = self.draw_sort();
        let mutex = || Lock::of(&self.redlock, 0, sort).ttl(Duration::from_millis(ttl));
        let taken = |guard: &Guard, reads_by| Taken {
            resource: sort.resource(0) + guard.slot(),
            is_set: sort == Sort::Set,
            access: sort.access(),
            reads_by,
        };
        loop {
            let left = deadline.saturating_sub(with(|world| world.now));
            let begun = moment();
            let drawn = with(|world| world.judge.tokens.len());
            let outcome = waiting(sort.awaited(0), || mutex().lock_timeout(Duration::from_nanos(left)));
            let shares = Shares::of(&outcome, drawn);
            with(|world| world.reported_call("lock_timeout", &outcome, shares.is_joined()));
            match outcome {
                Ok(Some(guard)) => {
                    let hold = holds::took(taken(&guard, shares.0), remaining(&guard), begun);
                    fences::given(hold, guard.fence());
                    with(|world| world.gives_back(hold, true));
                    drop(guard);
                    with(|world| {
                        let took = world.now - world.plan.fault_time;
                        world.judge.longest_recovery = world.judge.longest_recovery.max(took);
                    });
                    break;
                }
                Ok(None) | Err(_) => with(|world| {
                    world.got_nothing(false, true);
                    let client = world.current_client();
                    if world.now >= deadline && !world.clients[client].is_gone {
                        let why = outcome.err().map_or("held".to_owned(), |error| error.to_string());
                        world.violate(
                            "progress",
                            format!("client {client} did not get r0 after all faults had ended: {why}"),
                        );
                    }
                }),
            }
            if is_gone() {
                return;
            }
        }
        // The next requests to nodes send their pending releases.
        let soon = (1..15).map(|second| fault_time + second * SECOND);
        for time in soon.chain([end - 3 * SECOND, end - SECOND]) {
            sleep_until(time + self.random.below(100 * MILLISECOND));
            if is_gone() {
                return;
            }
            let begun = moment();
            let drawn = with(|world| world.judge.tokens.len());
            let outcome = mutex().lock_timeout(Duration::from_millis(400));
            let shares = Shares::of(&outcome, drawn);
            with(|world| world.reported_call("lock_timeout", &outcome, shares.is_joined()));
            match outcome {
                Ok(Some(guard)) => {
                    let hold = holds::took(taken(&guard, shares.0), remaining(&guard), begun);
                    fences::given(hold, guard.fence());
                    with(|world| world.gives_back(hold, false));
                    // A program that ends waits for its last release.
                    let outcome = guard.unlock();
                    if !matches!(outcome, Ok(ReleaseOutcome::StillHeld(_))) {
                        with(|world| world.reported_unlock(world.judge.holds[hold].reported_as, outcome.ok()));
                    }
                }
                Ok(None) | Err(_) => with(|world| world.got_nothing(false, true)),
            }
        }
    }
}

/// The attempt that a lease to read belongs to, and whether the call that returned it has made it.
struct Shares(Option<(usize, bool)>);

impl Shares {
    /// Of the result of a call before which so many tokens had been drawn.
    fn of(result: &Result<Option<Guard>>, drawn: usize) -> Shares {
        let Ok(Some(guard)) = result else { return Shares(None) };
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

/// For how long a guard says it is valid, asked until no time passed meanwhile: what it says is true when it reads the
/// clock, and its thread may stand still before it has said so.
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
