//! What a thread does with a lock that it holds: it extends it, makes a writer a reader, and
//! releases it.

use super::{Worker, has_faults, moment, remaining};
use crate::events::error::ErrorKind;
use crate::events::extension::ExtendOutcome;
use crate::events::release::ReleaseOutcome;
use crate::fences;
use crate::holds::{self, Taken};
use crate::kernel::{self, with};
use crate::locks::Access;
use crate::locks::Guard;
use crate::plan::{MILLISECOND, SECOND};
use std::time::Duration;

/// Longest that a thread holds a lock for its work.
const LONGEST_HOLD: u64 = 3 * SECOND;

impl Worker {
    pub(super) fn hold(
        &mut self,
        what: Taken,
        mut guard: Guard,
        ttl: u64,
        is_watched: bool,
        begun: (u64, u64),
    ) {
        let at_first = remaining(&guard);
        let mut hold = holds::took(what, at_first, begun);
        fences::given(hold, guard.fence());
        let longest = if is_watched { 5 * ttl } else { ttl + ttl / 4 } * MILLISECOND;
        let holds_on = with(|world| world.plan.clients[world.current_client()].holds_on)
            && !self.random.once_in(4);
        let length = match self.random.once_in(3) {
            _ if self.flooding.is_some() => 0,
            _ if holds_on => LONGEST_HOLD,
            true => 0,
            false => self.random.magnitude(1_000, longest.min(LONGEST_HOLD)),
        };
        let until = with(|world| world.now) + length;
        let (extension_rarity, node_timeout, stride) = with(|world| {
            (
                world.plan.extension_rarity,
                world.plan.node_timeout,
                world.plan.stride,
            )
        });
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
            let next = if is_late && brink > now {
                brink
            } else {
                (now + step).min(until)
            };
            let next = next.min(self.next_look(now, end, ttl));
            self.rest(next);
            let remaining = remaining(&guard);
            // Taken at once, because the channel has room for one signal only and would hide a
            // second one.
            signals += u32::from(lost.as_ref().is_some_and(|lost| lost.try_recv().is_ok()));
            holds::still(hold, remaining, is_shared || is_watched && was_extended);
            if !remaining.is_zero() {
                kernel::may_be_interrupted();
                with(|world| world.writes(hold));
                if self.random.once_in(3) && guard.is_writer() {
                    drop(lost.take());
                    let Some((reader, reads)) = self.downgrade(hold, guard, what) else {
                        return;
                    };
                    guard = reader;
                    hold = reads;
                    was_extended = true;
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
                    // The watchdog's thread may wait for the answers about another lock, for the
                    // node timeout. Without a watchdog the loss is reported at the very end, by a
                    // thread that may be woken late.
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
        let is_in_force =
            !is_watched && !remaining.is_zero() && holds::end_of(Duration::ZERO) < end;
        with(|world| {
            if is_in_force && matches!(outcome, Ok(ReleaseOutcome::Expired)) {
                world.check_loss(world.judge.holds[hold].token, "was released as expired");
            }
            if !matches!(outcome, Ok(ReleaseOutcome::StillHeld(_))) {
                world.reported_unlock(
                    world.judge.holds[hold].reported_as,
                    outcome.as_ref().ok().copied(),
                );
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
                let what = Taken {
                    access: Access::Read,
                    reads_by: Some((token, false)),
                    ..what
                };
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

    /// When to look at a lock at the latest whose lease ends then: often, near the end.
    fn next_look(&mut self, now: u64, end: u64, ttl: u64) -> u64 {
        match with(|world| world.plan.attention) {
            0 => u64::MAX,
            longest => (end.saturating_sub(ttl * MILLISECOND / 8))
                .max(now + self.random.between(1, longest)),
        }
    }

    /// Extends by hand. True when that finds the lock lost.
    fn extend(&mut self, hold: usize, guard: &Guard, is_watched: bool) -> bool {
        let ttl = {
            let ttls = with(|world| world.plan.ttls_of(world.current_client()).to_vec());
            let longest = self.random.pick(&ttls);
            if self.random.once_in(4) {
                self.random.between(longest / 2, longest).max(4)
            } else {
                longest
            }
        };
        let left = remaining(guard);
        let old_end = (!is_watched).then(|| holds::end_of(left));
        // A lease that lasts for so long already is left as it is, and nothing is sent. The
        // watchdog may have extended it meanwhile.
        let may_suffice = is_watched || left * 2 > Duration::from_millis(ttl);
        holds::will_change(hold);
        with(|world| {
            let client = world.current_client();
            world.record(|| format!("client {client} extends by hand for {ttl} ms"));
        });
        let reported_as = with(|world| world.judge.holds[hold].reported_as);
        let reported = with(|world| world.reported_extensions(reported_as));
        let (begun, pauses) = moment();
        let watch = old_end.map(|old_end| holds::Extending {
            hold,
            old_end,
            begun,
            pauses,
        });
        holds::begins_to_extend(watch);
        let outcome = guard.extend(Duration::from_millis(ttl));
        holds::begins_to_extend(None);
        with(|world| {
            let client = world.current_client();
            world
                .record(|| format!("client {client}: extension by hand for {ttl} ms: {outcome:?}"));
            if let (Ok(outcome), false) = (&outcome, may_suffice || matches!(guard, Guard::Read(_)))
            {
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
                Ok(ExtendOutcome::Lost) => {
                    world.saw("an extension by hand that finds the lock lost")
                }
                Err(error) => world.violate("errors", format!("extend: {error}")),
            }
            // The extensions of a lease that threads share go one after the other.
            let sharing = if matches!(guard, Guard::Read(_)) {
                world.plan.clients[client].threads as u64
            } else {
                1
            };
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
}
