//! What a thread does when all faults have ended.

use super::{Shares, Worker, is_gone, moment, remaining, waiting};
use crate::events::release::ReleaseOutcome;
use crate::fences;
use crate::holds::{self, Taken};
use crate::kernel::{sleep_until, with};
use crate::locks::{Guard, Lock, Sort};
use crate::plan::{MILLISECOND, SECOND};
use std::time::Duration;

impl Worker {
    /// After all faults: every thread gets the lock, and goes on to use the client for a while.
    pub(super) fn settle(&mut self) {
        let (fault_time, patience, end, ttl) = with(|world| {
            let plan = &world.plan;
            (
                plan.fault_time,
                plan.settling_time(),
                plan.end(),
                plan.settling_ttl(),
            )
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
            let outcome = waiting(sort.awaited(0), || {
                mutex().lock_timeout(Duration::from_nanos(left))
            });
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
                Ok(None) | Err(_) => {
                    with(|world| {
                        world.got_nothing(false, true);
                        let client = world.current_client();
                        if world.now >= deadline && !world.clients[client].is_gone {
                            let why = outcome
                                .err()
                                .map_or("held".to_owned(), |error| error.to_string());
                            world.violate(
                            "progress",
                            format!("client {client} did not get r0 after all faults had ended: {why}"),
                        );
                        }
                    })
                }
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
                        with(|world| {
                            world.reported_unlock(world.judge.holds[hold].reported_as, outcome.ok())
                        });
                    }
                }
                Ok(None) | Err(_) => with(|world| world.got_nothing(false, true)),
            }
        }
    }
}
