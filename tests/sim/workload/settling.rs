//! What a thread does when all faults have ended.

use super::{Shares, Worker, is_gone, moment, remaining, waiting};
use crate::events::error::Result;
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
        let ttl = Duration::from_millis(ttl);
        loop {
            let left = deadline.saturating_sub(with(|world| world.now));
            let taken = self.take(sort, ttl, |lock| {
                waiting(sort.awaited(0), || {
                    lock().lock_timeout(Duration::from_nanos(left))
                })
            });
            match taken {
                Ok((guard, hold)) => {
                    with(|world| world.gives_back(hold, true));
                    drop(guard);
                    with(|world| {
                        let took = world.now - world.plan.fault_time;
                        world.judge.longest_recovery = world.judge.longest_recovery.max(took);
                    });
                    break;
                }
                Err(why) => with(|world| {
                    let client = world.current_client();
                    if world.now >= deadline && !world.clients[client].is_gone {
                        let text = format!(
                            "client {client} did not get r0 after all faults had ended: {why}"
                        );
                        world.violate("progress", text);
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
            let time = Duration::from_millis(400);
            let taken = self.take(sort, ttl, |lock| lock().lock_timeout(time));
            if let Ok((guard, hold)) = taken {
                with(|world| world.gives_back(hold, false));
                // A program that ends waits for its last release.
                let outcome = guard.unlock();
                if !matches!(outcome, Ok(ReleaseOutcome::StillHeld(_))) {
                    with(|world| {
                        world.reported_unlock(world.judge.holds[hold].reported_as, outcome.ok())
                    });
                }
            }
        }
    }

    /// Takes a lock of the first name by this call. Returns why not, if it does not get it.
    fn take(
        &self,
        sort: Sort,
        ttl: Duration,
        call: impl FnOnce(&dyn Fn() -> Lock) -> Result<Option<Guard>>,
    ) -> std::result::Result<(Guard, usize), String> {
        let begun = moment();
        let drawn = with(|world| world.judge.tokens.len());
        let outcome = call(&|| Lock::of(&self.redlock, 0, sort).ttl(ttl));
        let shares = Shares::of(&outcome, drawn);
        with(|world| world.reported_call("lock_timeout", &outcome, shares.is_joined()));
        let why = match outcome {
            Ok(Some(guard)) => {
                let taken = Taken {
                    resource: sort.resource(0) + guard.slot(),
                    is_set: sort == Sort::Set,
                    access: sort.access(),
                    reads_by: shares.0,
                };
                let hold = holds::took(taken, remaining(&guard), begun);
                fences::given(hold, guard.fence());
                return Ok((guard, hold));
            }
            Ok(None) => "held".to_owned(),
            Err(error) => error.to_string(),
        };
        with(|world| world.got_nothing(false, true));
        Err(why)
    }
}
