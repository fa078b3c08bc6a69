//! Stops this program as a signal of job control does where nothing takes it.
//!
//! A program that is stopped extends no lease. It could not end its command in time either, and a
//! shell that continues it continues the command at the same moment if both are in one process
//! group. So the kernel is asked to continue this program at a given time: a timer sends SIGCONT.
//! Only Linux has that here. Elsewhere the caller finds out too late that the time has passed.

use super::events::boot_time;
use nix::sys::signal::{SigSet, Signal, raise};
use std::time::Duration;

/// A signal of job control that was taken, and waits again to be delivered.
///
/// The kernel stops this program when it is let through. It does not if the program was continued
/// in between, or if no shell could ever continue it (an orphaned process group).
pub(super) struct Suspension(Signal);

impl Suspension {
    pub(super) fn of(signal: Signal) -> Suspension {
        // It is blocked, so it waits.
        let _ = raise(signal);
        Suspension(signal)
    }

    /// Stops, until this program is continued.
    pub(super) fn stop(self) {
        let set = SigSet::from(self.0);
        let _ = set.thread_unblock().and_then(|()| set.thread_block());
    }

    /// Stops for this long at most. Whether the time has passed.
    pub(super) fn stop_for(self, longest: Duration) -> bool {
        let end = boot_time().saturating_add(longest);
        let timer = timer::continue_after(longest);
        self.stop();
        drop(timer);
        boot_time() >= end
    }
}

#[cfg(target_os = "linux")]
mod timer {
    use nix::sys::signal::{SigEvent, SigevNotify, Signal};
    use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
    use nix::time::ClockId;
    use std::time::Duration;

    /// Continues this process after a time, also if the machine is suspended meanwhile.
    pub(super) fn continue_after(time: Duration) -> Option<Timer> {
        let event = SigEvent::new(SigevNotify::SigevSignal {
            signal: Signal::SIGCONT,
            si_value: 0,
        });
        let mut timer = Timer::new(ClockId::CLOCK_BOOTTIME, event).ok()?;
        // Zero would switch it off.
        let time = time.max(Duration::from_nanos(1));
        timer
            .set(Expiration::OneShot(time.into()), TimerSetTimeFlags::empty())
            .ok()?;
        Some(timer)
    }
}

#[cfg(not(target_os = "linux"))]
mod timer {
    use std::time::Duration;

    pub(super) fn continue_after(_: Duration) {}
}
