//! The wait in the queue of this process, before the servers are asked.

use super::{Acquisition, Queued};
use crate::algorithm::acquire::WaitLimit;
use crate::algorithm::time::Timestamp;
use crate::api::wait::Wait;
use crate::engine::local_queue::{QueuePosition, QueueTicket};
use crate::engine::watchdog_thread::LONGEST_SLEEP;
use crate::events::error::Result;

impl Acquisition<'_> {
    /// Waits to become the first of this process's queue, with no guard of this process in front. Permanent faults that leave
    /// no quorum end this wait as they end that of the first.
    pub(super) fn queue(&mut self, place: &QueueTicket<'_>, mut turn: QueuePosition, wait: &Wait) -> Result<Queued> {
        let engine = self.mutex.client.engine();
        let deadline = match self.patience {
            // Without time to wait, the call still makes its one attempt.
            WaitLimit::Until(deadline) if deadline > self.started => deadline,
            WaitLimit::Until(_) | WaitLimit::Once => return Ok(Queued::FirstInLine),
            WaitLimit::WhileAvailable(_) => Timestamp::NEVER,
        };
        // No attempt lasts longer; before one can have ended, nothing is known.
        let attempt = (engine.node_timeout() * 2).min(self.ttl.validity());
        let mut bell = None;
        let mut held_here = false;
        let mut clocks = self.called_at;
        let mut now = self.started;
        loop {
            let until = match turn {
                QueuePosition::Head(_) if now >= deadline => return Ok(Queued::OutOfTime(place.trouble())),
                QueuePosition::Head(available_at) => {
                    // While a guard of this process held the lock, no thread asked whether the nodes were there.
                    self.is_handed_on = held_here;
                    self.started = if held_here { now } else { available_at };
                    return Ok(Queued::FirstInLine);
                }
                QueuePosition::HeldHere(until) => {
                    held_here = true;
                    clocks.steady_at(until).min(deadline)
                }
                QueuePosition::Behind(available_at) => match self.patience {
                    // A thread in front may have a longer limit.
                    WaitLimit::WhileAvailable(limit) => {
                        let until = available_at.after(limit.max(attempt));
                        match place.trouble() {
                            Some(trouble) if now >= until => return Ok(Queued::OutOfTime(Some(trouble))),
                            _ => until.max(now.after(attempt)),
                        }
                    }
                    WaitLimit::Once | WaitLimit::Until(_) => {
                        let limit = self.mutex.client.settings().unavailable_after;
                        match place.trouble().and_then(|trouble| Some((trouble.hopeless_since?, trouble))) {
                            Some((since, trouble)) => {
                                let until = since.max(self.started).after(limit);
                                if now >= until {
                                    return Ok(Queued::OutOfTime(Some(trouble)));
                                }
                                until.min(deadline)
                            }
                            None => now.after(limit.max(attempt)).min(deadline),
                        }
                    }
                },
            };
            if now >= deadline {
                return Ok(Queued::OutOfTime(place.trouble()));
            }
            match &bell {
                // NodeStateSnapshot again with the bell in place, before relying on it.
                None => bell = Some(place.bell()),
                Some(bell) => {
                    if wait.sleep(bell, until.since(now).min(LONGEST_SLEEP)) {
                        return Err(self.cancelled());
                    }
                }
            }
            clocks = engine.readings();
            now = clocks.steady;
            turn = place.turn(clocks.lease);
        }
    }
}
