//! Watches over the command: passes signals on, ends it in time when the lock is lost, and sees its group to the end.
//!
//! ```text
//!     time ──────────────────────────────────────────────────────────────►
//!     lease      … extended … ─┬───────── grace ─────────┬─ kill lead ─┤ end
//!     group                 SIGTERM                   SIGKILL        gone
//! ```
//!
//! One thread does all of it, in a loop around one poll: signals, the loss, and the next time at which something is
//! due. What is due is computed anew each time from the lease itself, so a late wake-up costs time and nothing else.

use super::acquire::Held;
use super::events::Events;
use super::group::Group;
use super::signals::Signals;
use crate::exit::Exit;
use crate::json::Object;
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::PipeReader;
use std::time::{Duration, Instant};

/// How long before the end of the lease the group is killed: time for the kernel to end it, on a machine that is busy.
const KILL_LEAD: Duration = Duration::from_millis(500);
/// Part of the grace that it is at most.
const KILL_LEAD_PART: u32 = 3;
/// How often the lease is looked at: a sleep does not count the time for which the machine is suspended.
const LOOK: Duration = Duration::from_secs(1);
/// How often a group is looked at that was killed.
const KILLED_PAUSE: Duration = Duration::from_millis(5);

/// How the command ended.
pub(super) struct Outcome {
    pub(super) exit: Exit,
    pub(super) is_lost: bool,
}

/// The command and the locks that it runs under.
pub(super) struct Supervisor<'a> {
    pub(super) group: Group,
    pub(super) held: &'a Held,
    /// Readable when a lock is lost.
    pub(super) loss: &'a PipeReader,
    pub(super) signals: &'a Signals,
    pub(super) events: &'a Events,
    pub(super) grace: Duration,
    /// Whether the command is in the process group of this program, and gets what a terminal sends.
    pub(super) shares_group: bool,
}

impl Supervisor<'_> {
    /// Comes back when nothing of the group is left.
    pub(super) fn run(mut self) -> Outcome {
        let kill_lead = KILL_LEAD.min(self.grace / KILL_LEAD_PART);
        let (mut is_lost, mut is_killed) = (false, false);
        // When what the command has left behind is killed.
        let mut sweep_at: Option<Instant> = None;
        loop {
            self.group.reap();
            if self.group.is_gone() {
                break;
            }
            let left = self.held.remaining().saturating_sub(kill_lead);
            if !is_lost && (is_readable(self.loss) || left.is_zero()) {
                is_lost = true;
                self.ask_to_stop();
                self.report("stopping", "the lock is lost: SIGTERM to the command");
            }
            if sweep_at.is_none() && self.group.exit().is_some() {
                sweep_at = Some(Instant::now() + self.grace);
                self.ask_to_stop();
            }
            let sweep_left = sweep_at.map(|end| end.saturating_duration_since(Instant::now()));
            let is_due = left.is_zero() || sweep_left.is_some_and(|left| left.is_zero());
            if is_due {
                self.group.signal(Signal::SIGKILL);
                if !std::mem::replace(&mut is_killed, true) {
                    self.report("killing", "the time is up: SIGKILL to the command");
                }
            }
            self.pass_signals_on();
            self.sleep(if is_killed { KILLED_PAUSE } else { left.min(sweep_left.unwrap_or(left)).min(LOOK) }, is_lost);
        }
        // A command that ended by itself just before may have outlived the lock.
        is_lost |= self.held.remaining().is_zero();
        Outcome { exit: self.group.exit().unwrap_or(Exit::SYSTEM), is_lost }
    }

    /// Reports what is done, and how long the lease still lasts.
    fn report(&self, event: &str, message: &str) {
        self.events.report(event, Object::new().raw("left_us", self.held.remaining().as_micros()), message);
    }

    /// Continues what is stopped, so that it can act on it.
    fn ask_to_stop(&self) {
        self.group.signal(Signal::SIGTERM);
        self.group.signal(Signal::SIGCONT);
    }

    fn pass_signals_on(&self) {
        while let Some(received) = self.signals.take() {
            let has_it = self.shares_group && received.is_from_terminal;
            if !received.is_about_children() && !has_it {
                self.group.signal(received.signal);
                let message = format!("{} to the command", received.signal);
                self.events.report("signal", Object::new().text("signal", received.signal), &message);
            }
        }
    }

    /// Sleeps until a signal arrives, the lock is lost, or the time is up.
    fn sleep(&self, time: Duration, is_lost: bool) {
        let timeout =
            Timespec { tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() };
        let mut ready = [PollFd::new(self.signals, PollFlags::IN), PollFd::new(self.loss, PollFlags::IN)];
        // A loss that is known stays readable.
        let watched = if is_lost { 1 } else { 2 };
        // An interruption is a wake-up.
        let _ = poll(&mut ready[..watched], Some(&timeout));
    }
}

/// Whether something was written into a pipe: a loss has been signalled.
pub(super) fn is_readable(pipe: &PipeReader) -> bool {
    let mut ready = [PollFd::new(pipe, PollFlags::IN)];
    poll(&mut ready, Some(&Timespec::default())) == Ok(1)
}
