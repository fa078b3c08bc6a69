//! Watches over the command: passes signals on, ends it in time when the lock is lost, and sees its
//! group to the end.
//!
//! ```text
//!     time ──────────────────────────────────────────────────────────────►
//!     lease      … extended … ─┬───────── grace ─────────┬─ kill lead ─┤ end
//!     group                 SIGTERM                   SIGKILL        gone
//! ```
//!
//! One thread does all of it, in a loop around one poll: signals, the loss, and the next time at
//! which something is due. What is due is computed anew each time from the lease itself, so a late
//! wake-up costs time and nothing else.

use super::acquire::{Held, Job};
use super::group::Group;
use super::not_started;
use super::options::usual_grace;
use super::signals::Received;
use super::suspend::Suspension;
use crate::exit::{self, Exit};
use crate::json::object;
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::PipeReader;
use std::time::{Duration, Instant};

/// How long before the end of the lease the group is killed: time for the kernel to end it, on a
/// machine that is busy.
const KILL_LEAD: Duration = Duration::from_millis(500);
/// Part of the grace that it is at most: of the grace of the time to live, if that is longer. A
/// command that is asked to end late, or not at all, does not outlive the lease either.
const KILL_LEAD_PART: u32 = 3;
/// How often the lease is looked at: a sleep does not count the time for which the machine is
/// suspended.
const LOOK: Duration = Duration::from_secs(1);
/// How often a group is looked at that was killed.
const KILLED_PAUSE: Duration = Duration::from_millis(5);

/// How the command ended.
pub(super) struct Outcome {
    pub(super) exit: Exit,
    /// Whether it had begun.
    pub(super) was_started: bool,
    /// Why the lock did not protect it to its end.
    pub(super) loss: Option<&'static str>,
}

/// That the lock ended before the command.
pub(super) const LOST: &str = "the lock was lost while the command ran";

/// The command and the locks that it runs under.
pub(super) struct Supervisor<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) group: Group,
    pub(super) held: &'a Held,
    pub(super) not_started: &'a PipeReader,
    /// When the signals were looked at for the last time before the gate was opened.
    pub(super) looked: Duration,
    /// Readable when a lock is lost.
    pub(super) loss: &'a PipeReader,
}

impl Supervisor<'_> {
    /// Comes back when nothing of the group is left.
    pub(super) fn run(mut self) -> Outcome {
        let kill_lead = self.kill_lead();
        let mut loss = None;
        let mut is_killed = false;
        // When what was asked to end is killed, however long the lease lasts.
        let mut kill_at: Option<Instant> = None;
        let mut was_started = None;
        loop {
            self.group.reap();
            was_started = was_started.or_else(|| self.look_for_start());
            if self.group.is_gone() {
                break;
            }
            let is_overdue = self.take_signals(loss.is_some() || kill_at.is_some());
            let left = self.held.remaining().saturating_sub(kill_lead);
            if loss.is_none() && (is_overdue || left.is_zero() || is_readable(self.loss)) {
                loss = Some(if is_overdue {
                    "stopped until the lease was about to end: the command was ended"
                } else {
                    LOST
                });
                // The watchdog may extend the lease again, and the command ends all the same.
                kill_at = kill_at.or(is_overdue.then(|| Instant::now() + self.job.grace));
                // When it is too late, what is stopped must not run for a moment.
                if !left.is_zero() {
                    self.ask_to_end();
                }
                let why = if is_overdue {
                    "the lease is about to end"
                } else {
                    "the lock is lost"
                };
                self.report("stopping", &format!("{why}: SIGTERM to the command"));
            }
            if kill_at.is_none() && self.group.exit().is_some() {
                kill_at = Some(Instant::now() + self.job.grace);
                self.ask_to_end();
            }
            let left = kill_at.map_or(left, |end| {
                end.saturating_duration_since(Instant::now()).min(left)
            });
            if left.is_zero() {
                self.group.signal(Signal::SIGKILL);
                if !std::mem::replace(&mut is_killed, true) {
                    self.report("killing", "the time is up: SIGKILL to the command");
                }
            }
            self.sleep(
                if is_killed {
                    KILLED_PAUSE
                } else {
                    left.min(LOOK)
                },
                loss.is_some(),
                was_started.is_some(),
            );
        }
        // A copy of the pipe may be open elsewhere, and nothing was written into it.
        let was_started = was_started.unwrap_or_else(|| self.report_start());
        // A command that ended by itself just before may have outlived the lock.
        let loss = loss.or(self.held.remaining().is_zero().then_some(LOST));
        Outcome {
            was_started,
            exit: self.group.exit().unwrap_or(exit::SYSTEM),
            loss,
        }
    }

    /// How long before the end of the lease the group is killed.
    fn kill_lead(&self) -> Duration {
        let Job { grace, ttl, .. } = *self.job;
        KILL_LEAD.min(grace.max(usual_grace(ttl)) / KILL_LEAD_PART)
    }

    /// Whether the command was started, once that is known.
    fn look_for_start(&self) -> Option<bool> {
        let was_started = not_started::was_started(self.not_started)?;
        Some(was_started && self.report_start())
    }

    fn report_start(&self) -> bool {
        let about = object! { "pid": self.group.pid(), "looked_us": self.looked.as_micros() };
        self.job
            .events
            .report("started", about, "the command is started");
        true
    }

    /// Reports what is done, and how long the lease still lasts.
    fn report(&self, event: &str, message: &str) {
        let about = object! { "left_us": self.held.remaining().as_micros() };
        self.job.events.report(event, about, message);
    }

    /// Continues what is stopped, so that it can act on it.
    fn ask_to_end(&self) {
        self.group.signal(Signal::SIGTERM);
        self.group.signal(Signal::SIGCONT);
    }

    /// Acts on the signals that have arrived. Whether this program was stopped until its lease was
    /// about to end.
    fn take_signals(&self, is_ending: bool) -> bool {
        let mut is_overdue = false;
        while let Some(received) = self.job.signals.take() {
            match received {
                _ if received.signal == Signal::SIGCHLD => {}
                _ if received.suspends() => {
                    is_overdue |= self.suspend(received, is_ending || is_overdue)
                }
                _ => self.pass_on(received),
            }
        }
        is_overdue
    }

    /// Whether the command has got what this program received.
    fn has(&self, received: Received) -> bool {
        !self.group.has_own_group && received.is_from_terminal
    }

    fn pass_on(&self, received: Received) {
        let has_it = self.has(received);
        if !has_it {
            self.group.signal(received.signal);
        }
        // A command that is stopped does not act on it.
        if received.stops() {
            self.group.signal(Signal::SIGCONT);
        }
        if !has_it {
            let message = format!("{} to the command", received.signal);
            let about = object! { "signal" = received.signal };
            self.job.events.report("signal", about, &message);
        }
    }

    /// Stops the command and this program; when it is continued, lets the command continue if the
    /// lease lasts. Whether it does not.
    fn suspend(&self, received: Received, is_ending: bool) -> bool {
        let grace = self.job.grace.max(self.kill_lead());
        let longest = || self.held.remaining().saturating_sub(grace);
        if is_ending || longest().is_zero() {
            // This program has to end the command. A terminal may have stopped it.
            self.group.signal(Signal::SIGCONT);
            return false;
        }
        let suspension = Suspension::of(received.signal);
        self.group.stop(received.signal, self.has(received));
        self.report(
            "stopped",
            &format!(
                "{}: the command and this program are stopped",
                received.signal
            ),
        );
        let is_overdue = suspension.stop_for(longest());
        if !is_overdue {
            self.group.signal(Signal::SIGCONT);
            self.report("continued", "continued: SIGCONT to the command");
        }
        is_overdue
    }

    /// Sleeps until a signal arrives, the lock is lost, the command is started, or the time is up.
    fn sleep(&self, time: Duration, is_lost: bool, is_start_known: bool) {
        // A time that the system cannot express is as good as none.
        let timeout = Timespec::try_from(time).ok();
        let mut ready = vec![PollFd::new(self.job.signals, PollFlags::IN)];
        // What is known stays readable.
        if !is_lost {
            ready.push(PollFd::new(self.loss, PollFlags::IN));
        }
        if !is_start_known {
            ready.push(PollFd::new(self.not_started, PollFlags::IN));
        }
        // An interruption is a wake-up.
        let _ = poll(&mut ready, timeout.as_ref());
    }
}

/// Whether something was written into a pipe: a loss has been signalled.
pub(super) fn is_readable(pipe: &PipeReader) -> bool {
    let mut ready = [PollFd::new(pipe, PollFlags::IN)];
    poll(&mut ready, Some(&Timespec::default())) == Ok(1)
}
