//! The rules about guards: what each guard reports that it holds, for how long, and whether that is
//! possible.
//!
//! What a guard reports counts for the moment of its report. Two guards of one resource must never
//! be valid at the same moment of true time. The other rules are in [`judge`](crate::judge).

use crate::algorithm::time::LeaseTime;
use crate::judge::{State, Token, count};
use crate::keys;
use crate::locks::Access;
use crate::machine::Node;
use crate::observer_rules::MOST_DELIVERED;
use crate::plan::{Bounds, MILLISECOND};
use crate::world::World;
use crate::{kernel, machine, plan, waits};
use std::time::Duration;

/// A command that a thread leaves to another thread to send, it sends itself after less than this.
/// A thread that polls so often without sleeping, while nothing is ready, would go on for ever.
const MOST_IDLE_POLLS: u32 = 10_000;
const MOMENT: Duration = Duration::from_millis(6);

/// One guard.
pub(crate) struct Hold {
    pub(crate) resource: usize,
    pub(crate) client: usize,
    pub(crate) token: usize,
    pub(crate) access: Access,
    /// Whether other threads of its client may have guards of the same attempt.
    pub(crate) is_shared: bool,
    /// Which lock it is, among those that an observer was called for.
    pub(crate) reported_as: Option<usize>,
    pub(crate) since: u64,
    pub(crate) fence: Option<u64>,
    /// When it was last seen to be valid; never, when it came too late.
    pub(crate) valid_at: Option<u64>,
    /// The end of its validity by its client's clock, as it was reported last; none when it may
    /// have been shortened since.
    pub(crate) ends: Option<LeaseTime>,
    pub(crate) is_over: bool,
    /// Whether it also has the [`SHARED_KEY`](crate::plan::SHARED_KEY).
    pub(crate) is_set: bool,
}

/// An extension by hand that is under way, of a lock without a watchdog.
pub(crate) struct Extending {
    pub(crate) hold: usize,
    pub(crate) old_end: LeaseTime,
    /// When it was begun, and how often its client had lost time by then.
    pub(crate) begun: u64,
    pub(crate) pauses: u64,
}

/// The running thread begins to extend a lock by hand, or has done so.
pub(crate) fn begins_to_extend(extending: Option<Extending>) {
    kernel::with(|world| {
        let task = world.current_task();
        match extending {
            Some(extending) => world.judge.extending.insert(task, extending),
            None => world.judge.extending.remove(&task),
        }
    });
}

/// The running client is about to write. What it writes for locks whose leases have ended comes too
/// late.
pub(crate) fn about_to_write() {
    let client = kernel::current_client();
    // Where connections take little at a time, what is written may have been queued long before.
    if kernel::with(|world| {
        world.judge.extending.is_empty()
            || world.window < 64 * 1024
            || world.clients[client].is_gone
    }) {
        return;
    }
    let clock = machine::lease_time(client);
    kernel::with(|world| {
        let judge = &mut world.judge;
        let present = &world.clients[client];
        let now = world.now;
        for Extending {
            hold,
            old_end,
            begun,
            pauses,
        } in judge.extending.values()
        {
            let Hold {
                client: owner,
                token,
                ..
            } = judge.holds[*hold];
            let is_undisturbed = owner == client && present.is_undisturbed((*begun, *pauses));
            if is_undisturbed && clock > old_end.after(MOMENT) {
                judge.tokens[token].ended_at.get_or_insert(now);
            }
        }
    });
}

/// What a call has taken.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) resource: usize,
    pub(crate) is_set: bool,
    pub(crate) access: Access,
    /// The attempt that a lease to read belongs to, and whether this call has made it.
    pub(crate) reads_by: Option<(usize, bool)>,
}

impl Taken {
    /// A lock of one resource that no other thread has.
    pub(crate) fn alone(resource: usize) -> Taken {
        Taken {
            resource,
            is_set: false,
            access: Access::Write,
            reads_by: None,
        }
    }
}

/// A call has returned a guard that reports that it is valid for so long. Returns the hold.
pub(crate) fn took(taken: Taken, remaining: Duration, (begun, pauses): (u64, u64)) -> usize {
    let Taken {
        resource,
        is_set,
        access,
        reads_by,
    } = taken;
    let clock = machine::lease_time(kernel::current_client());
    let (hold, others) = kernel::with(|world| {
        let task = world.current_task();
        let client = world.current_client();
        let now = world.now;
        let (token, is_own) = reads_by.unwrap_or_else(|| {
            (
                world.judge.latest(task).expect("a guard without a token"),
                true,
            )
        });
        let reported_as = world.reported_share(token, is_own);
        world.judge.close_attempts(task, now);
        world.judge.tokens[token].state = State::Held;
        world.judge.acquired += 1;
        let hold = world.judge.holds.len();
        world.record_attempt(token, || {
            format!(
                "client {client} thread {task} HOLDS r{resource} to {access:?} by attempt {token} for {}",
                plan::seconds(remaining.as_nanos() as u64)
            )
        });
        let ends = Some(clock.after(remaining));
        let valid_at = (!remaining.is_zero()).then_some(now);
        world.judge.holds.push(Hold {
            resource,
            client,
            token,
            access,
            is_shared: access == Access::Read && world.plan.shares_leases,
            reported_as,
            since: now,
            fence: None,
            valid_at,
            ends,
            is_over: false,
            is_set,
        });
        if remaining.is_zero() && world.has_run_promptly(client, (begun, pauses)) && begun > 0 {
            world.violate(
                "valid when given",
                format!("attempt {token} was won, and is not valid"),
            );
        }
        let granted = count(&world.judge.tokens[token].set_at, 0);
        if granted < world.judge.majority && !world.clients[client].is_gone {
            world.violate(
                "true quorum",
                format!("attempt {token} was won with {granted} nodes that set its key"),
            );
        }
        world.check_cover(hold, remaining);
        if is_own {
            world.check_memory(client, token);
            let taken = [resource, if is_set { waits::SHARED } else { resource }];
            world.note_change(client, &taken, token, begun);
        }
        (hold, world.others_of(hold))
    });
    check_exclusion(hold, remaining, &others);
    hold
}

/// A guard reports that it is valid for so long. `may_shrink`: that may become less by itself.
pub(crate) fn still(hold: usize, remaining: Duration, may_shrink: bool) {
    if remaining.is_zero() {
        return;
    }
    let clock = machine::lease_time(kernel::current_client());
    let others = kernel::with(|world| {
        let now = world.now;
        let present = &mut world.judge.holds[hold];
        present.valid_at = Some(now);
        present.ends = (!may_shrink).then(|| clock.after(remaining));
        world.check_cover(hold, remaining);
        world.others_of(hold)
    });
    check_exclusion(hold, remaining, &others);
}

/// A guard is about to be shortened, or has been.
pub(crate) fn will_change(hold: usize) {
    kernel::with(|world| world.judge.holds[hold].ends = None);
}

/// By the running client's clock, when a guard ends that reports now that it is valid for so long.
pub(crate) fn end_of(remaining: Duration) -> LeaseTime {
    machine::lease_time(kernel::current_client()).after(remaining)
}

/// `extend` returned that the lock was extended whose lease ended then.
pub(crate) fn was_extended(hold: usize, old_end: LeaseTime, moment: (u64, u64)) {
    let now = machine::lease_time(kernel::current_client());
    kernel::with(|world| {
        let Hold { client, token, .. } = world.judge.holds[hold];
        // While the answer is handed on, a moment may pass.
        if now > old_end.after(Duration::from_millis(1)) && world.has_run_promptly(client, moment) {
            world.violate(
                "ended for good",
                format!("attempt {token} was extended after its lease had ended"),
            );
        }
    });
}

fn check_exclusion(hold: usize, remaining: Duration, others: &[usize]) {
    if remaining.is_zero() {
        return;
    }
    for &other in others {
        let (client, ends) = kernel::with(|world| {
            (
                world.judge.holds[other].client,
                world.judge.holds[other].ends,
            )
        });
        let is_valid = ends.is_some_and(|ends| machine::lease_time(client) < ends);
        kernel::with(|world| {
            let judge = &world.judge;
            let other_hold = other;
            let present = &judge.holds[hold];
            let other = &judge.holds[other];
            if world.clients[present.client].is_gone || world.is_open(hold, other_hold) {
                return;
            }
            let overlaps =
                other.valid_at > Some(present.since) && Some(other.since) < present.valid_at;
            if (is_valid && !other.is_over) || overlaps {
                let text = format!(
                    "r{}: client {} by attempt {} and client {} by attempt {} are both valid{}",
                    present.resource,
                    present.client,
                    present.token,
                    other.client,
                    other.token,
                    if overlaps {
                        format!(", since {}", plan::seconds(other.since.max(present.since)))
                    } else {
                        String::new()
                    }
                );
                world.violate("exclusion", text);
            }
        });
    }
}

impl World {
    /// Other guards of the same resource, or of sets that share one, that matter still.
    fn others_of(&self, hold: usize) -> Vec<usize> {
        let present = &self.judge.holds[hold];
        let matters = |other: &Hold| {
            let is_of_both = other.resource == present.resource || other.is_set && present.is_set;
            let excludes = other.access == Access::Write || present.access == Access::Write;
            is_of_both && excludes && (!other.is_over || other.valid_at > Some(present.since))
        };
        (0..self.judge.holds.len())
            .filter(|&other| other != hold && matters(&self.judge.holds[other]))
            .collect()
    }

    /// A guard reports that it is valid for so long: then a quorum of nodes keeps its key for that
    /// long, in true time.
    fn check_cover(&mut self, hold: usize, remaining: Duration) {
        let Hold {
            resource,
            client,
            token,
            access,
            ..
        } = self.judge.holds[hold];
        let is_promised = self.plan.bounds == Bounds::Kept
            && !self.plan.faults.iter().any(|fault| fault.kind.loses_data());
        if remaining.is_zero() || self.clients[client].is_gone || !is_promised {
            return;
        }
        let remaining = remaining.as_nanos() as i128 * 1_000_000
            / i128::from(1_000_000 + self.plan.clients[client].rate);
        let key = keys::key_of(resource);
        let keeps = |node: &Node| {
            node.time_left(key.as_bytes(), (token, access), self.now)
                .is_some_and(|left| i128::from(left) >= remaining)
        };
        let count = self.nodes.iter().filter(|node| keeps(node)).count();
        if count < self.judge.majority {
            let text = format!(
                "attempt {token} is said to be valid for {} ms, and {count} nodes keep its key for that long",
                remaining / 1_000_000
            );
            self.violate("covered lease", text);
        }
    }

    /// The guard is about to be released.
    pub(crate) fn gives_back(&mut self, hold: usize, by_dropping: bool) {
        let now = self.now;
        let Hold {
            client,
            token,
            resource,
            reported_as,
            is_shared,
            ..
        } = self.judge.holds[hold];
        self.reported_leaving(reported_as, Some(by_dropping).filter(|_| !is_shared));
        self.record_attempt(token, || {
            format!("client {client} releases r{resource}, attempt {token}")
        });
        self.judge.holds[hold].is_over = true;
        self.waits_since_release(client, resource);
        let shares = |other: &Hold| other.token == token && !other.is_over;
        if self.judge.holds.iter().any(shares) {
            return;
        }
        self.judge.tokens[token].state = State::Released;
        self.judge.tokens[token].closed_at = now;
    }

    /// A client writes to what the lock protects, having seen a moment ago that its guard was
    /// valid. Guards have numbers in the order in which they were had, as fencing tokens have.
    pub(crate) fn writes(&mut self, hold: usize) {
        let Hold {
            resource,
            client,
            token,
            ..
        } = self.judge.holds[hold];
        if self.judge.holds[hold].access == Access::Read {
            return;
        }
        let last = self.judge.writers.insert(resource, hold);
        if last.is_some_and(|last| last > hold) && !self.clients[client].is_gone {
            self.judge.late_writes += 1;
            if self.plan.bounds == Bounds::Writes {
                self.violate(
                    "late write",
                    format!(
                        "client {client} wrote to r{resource} by attempt {token}, after attempt {} had",
                        self.judge.holds[last.unwrap()].token
                    ),
                );
            }
        }
    }

    /// A watched guard is no longer valid, and no loss was reported.
    pub(crate) fn was_not_reported(&mut self, hold: usize, moment: (u64, u64)) {
        let Hold { client, token, .. } = self.judge.holds[hold];
        if self.clients[client].is_undisturbed(moment) {
            self.violate(
                "reported in time",
                format!("the lock of attempt {token} has ended, and no loss was reported"),
            );
        }
    }

    /// `unlock` returned that the lock was released.
    pub(crate) fn said_released(&mut self, hold: usize, since: u64) {
        let token = self.judge.holds[hold].token;
        let deleted = count(&self.judge.tokens[token].deleted_at, since);
        if deleted < self.judge.majority {
            self.violate(
                "true quorum",
                format!("attempt {token} was released on {deleted} nodes"),
            );
        }
    }

    /// A lock was called lost while its lease was in force. So many nodes must have denied it that
    /// a quorum cannot hold it: a node that never had the key, or one that did not answer, proves
    /// nothing.
    pub(crate) fn check_loss(&mut self, token: usize, what: &str) {
        let Token {
            client, denied_at, ..
        } = &self.judge.tokens[token];
        let denied = count(denied_at, 0);
        let nodes = self.nodes.len();
        if nodes - denied >= self.judge.majority && !self.clients[*client].is_gone {
            self.violate(
                "true loss",
                format!("attempt {token} {what}, and {denied} of {nodes} nodes denied it"),
            );
        }
    }

    /// Whether a call of the client that began then lost no time by itself: the client did not
    /// stand still, and has no slow observer.
    fn has_run_promptly(&self, client: usize, moment: (u64, u64)) -> bool {
        self.clients[client].is_undisturbed(moment) && self.plan.clients[client].callback == 0
    }

    /// A call that began then returned that its lease ended before it could return.
    pub(crate) fn said_ended(&mut self, what: &str, moment: (u64, u64)) {
        if self.has_run_promptly(self.current_client(), moment) {
            let text = format!("{what} returned too late by itself");
            self.violate("valid when given", text);
        }
    }

    /// `extend` returned that the lock was extended.
    pub(crate) fn said_extended(&mut self, hold: usize, since: u64) {
        self.judge.extended += 1;
        let token = self.judge.holds[hold].token;
        let extended = count(&self.judge.tokens[token].extended_at, since);
        if extended < self.judge.majority {
            self.violate(
                "true quorum",
                format!("attempt {token} was extended on {extended} nodes"),
            );
        }
    }

    /// A call for the lock returned without a guard.
    pub(crate) fn got_nothing(&mut self, said_held: bool, may_be_local: bool) {
        self.reported_none();
        let task = self.current_task();
        let mine = |token: &&Token| token.task == task && token.state == State::Open;
        let refused = self
            .judge
            .tokens
            .iter()
            .filter(mine)
            .any(|token| token.refused);
        self.judge.close_attempts(task, self.now);
        if said_held && !refused && !may_be_local && !self.clients[self.current_client()].is_gone {
            self.violate(
                "true refusal",
                "a call said that the lock is held, and no node had refused it".to_owned(),
            );
        }
    }

    /// A call that may wait for so long has found the lock held. It has not given up before, by its
    /// client's steady clock.
    pub(crate) fn gave_up(&mut self, what: &str, begun: u64, patience: u64) {
        let client = &self.clients[self.current_client()];
        // That clock may be fast by as much as the clocks of leases may.
        let took = self.now - begun;
        let least = patience - patience / 100;
        if took < least && !client.is_gone && self.plan.bounds != Bounds::WildClocks {
            let took = plan::seconds(took);
            let patience = plan::seconds(patience);
            self.violate(
                "patient",
                format!("{what} gave up after {took} and had {patience}"),
            );
        }
    }

    /// The present thread polls. `is_idle`: nothing is ready, and it does not sleep until something
    /// is.
    pub(crate) fn note_poll(&mut self, is_idle: bool) {
        self.idle_polls = if is_idle { self.idle_polls + 1 } else { 0 };
        if self.idle_polls == MOST_IDLE_POLLS {
            self.violate(
                "restful",
                format!("polled {MOST_IDLE_POLLS} times in vain without sleeping"),
            );
            // Its deadlines would never come.
            self.finish();
        }
        let client = self.current_client();
        if is_idle && self.clients[client].is_gone {
            self.clients[client].pass(Duration::from_millis(1));
        }
    }

    /// A call has returned after this time, of which so much was allowed.
    pub(crate) fn took_time(&mut self, what: &str, begun: u64, allowed: u64, pauses: u64) {
        let client = &self.clients[self.current_client()];
        // A call that waits delivers events after each attempt; the last one may be just before its
        // deadline.
        let deliveries =
            u64::from(2 * MOST_DELIVERED) * self.plan.clients[self.current_client()].callback;
        let slack = 10 * MILLISECOND + 10 * self.plan.lateness + allowed / 50 + deliveries;
        let took = self.now - begun;
        // A clock that runs wildly has other milliseconds.
        let is_judged = self.plan.bounds != Bounds::WildClocks;
        if is_judged && took > allowed + slack && client.is_undisturbed((begun, pauses)) {
            let took = plan::seconds(took);
            let allowed = plan::seconds(allowed);
            self.violate("punctual", format!("{what} took {took} and had {allowed}"));
        }
    }
}
