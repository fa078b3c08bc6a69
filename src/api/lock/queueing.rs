//! The wait in the queue of this client, before the servers are asked.

use super::account::CallAccount;
use super::call::LockCall;
use crate::algorithm::acquire::WaitLimit;
use crate::algorithm::time::{Readings, Timestamp};
use crate::api::wait::Wait;
use crate::engine::local_queue::{QueuePosition, QueueTicket, Unavailability};
use crate::engine::watchdog_thread::CLOCK_CHECK_INTERVAL;
use crate::events::error::Result;

/// Waits to become the head of this client's queue, with no guard of this client in front. False:
/// the time is up before, and the lock is known to be held.
///
/// # Errors
/// The wait is cancelled; or it is over, and it is not known that the lock is held: its time is up,
/// or permanent faults leave no quorum. They end this wait as they end the head's wait.
pub(super) fn wait_in_queue(
    call: &mut LockCall<'_>,
    ticket: &QueueTicket<'_>,
    mut position: QueuePosition,
    mut now: Readings,
    wait: &Wait,
    account: &mut CallAccount<'_>,
) -> Result<bool> {
    let engine = &call.client().engine;
    // Without time to wait, the call still makes its one attempt.
    let Some(deadline) = call.wait_deadline() else {
        return Ok(true);
    };
    let mut notifications = None;
    let mut was_held_here = false;
    loop {
        let until = match position {
            QueuePosition::Head(available_at) if now.steady < deadline => {
                // While a guard of this client held the lock, no thread asked whether the nodes
                // were there.
                call.started = if was_held_here {
                    now.steady
                } else {
                    available_at
                };
                return Ok(true);
            }
            QueuePosition::Head(_) => deadline,
            QueuePosition::HeldHere(until) => {
                was_held_here = true;
                if call.lock.permits.is_some() {
                    // No guard holds anything in the queue of a semaphore.
                    ticket.record_answer(now.steady);
                }
                now.steady_at(until)
            }
            QueuePosition::Behind(available_at) => {
                wait_behind(call, ticket, available_at, now.steady)
                    .map_err(|found| call.unavailable(found))?
            }
        };
        if now.steady >= deadline {
            return ticket
                .is_known_held()
                .map(|()| false)
                .map_err(|found| call.unavailable(found));
        }
        match &notifications {
            // The position is read again after the registration: a change before it sent no
            // notification.
            None => notifications = Some(ticket.notifications()),
            Some(notifications) => {
                account.begin_to_wait(call, now.lease);
                // A suspended machine does not count a sleep's time, so a sleep is short and the
                // clock is read again.
                let time = until
                    .min(deadline)
                    .since(now.steady)
                    .min(CLOCK_CHECK_INTERVAL);
                if wait.sleep(notifications, time) {
                    return Err(call.cancelled());
                }
            }
        }
        // A shutdown notifies all threads, also this one if it is registered.
        if call.client().shutdown.has_begun() {
            return Err(call.cancelled());
        }
        now = engine.readings();
        position = call.position(ticket, now.lease);
    }
}

/// Until when to wait behind other threads, before the queue is looked at again. An error when the
/// wait is over, because too few nodes can answer the head.
fn wait_behind(
    call: &LockCall<'_>,
    ticket: &QueueTicket<'_>,
    available_at: Timestamp,
    now: Timestamp,
) -> std::result::Result<Timestamp, Unavailability> {
    // No attempt lasts longer; before one can have ended, nothing is known.
    let attempt = (call.client().engine.node_timeout() * 2).min(call.ttl.validity());
    let found = ticket.is_known_held().err();
    match call.limit {
        // The head may have a longer limit, so a thread behind it applies its own.
        WaitLimit::WhileAvailable(limit) => {
            let until = available_at.after(limit.max(attempt));
            match found {
                Some(found) if now >= until => Err(found),
                _ => Ok(until.max(now.after(attempt))),
            }
        }
        // With a deadline, only permanent faults end the wait before it.
        WaitLimit::Once | WaitLimit::Until(_) => {
            let limit = call.client().settings.unavailable_after;
            match found.and_then(|found| Some((found.quorum_impossible_since?, found))) {
                None => Ok(now.after(limit.max(attempt))),
                Some((since, found)) => {
                    let until = since.max(call.started).after(limit);
                    if now >= until { Err(found) } else { Ok(until) }
                }
            }
        }
    }
}
