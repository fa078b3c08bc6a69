//! What happens, for `--json-events` and `-v`: events of the library, and those of this program.

use super::options::Options;
use crate::exit::Failure;
use crate::json::Object;
use crate::report;
use quorumlock::Observer;
use quorumlock::event::Event;
use rustix::time::{ClockId, clock_gettime};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where events go.
pub(super) struct Events {
    json: Option<Mutex<File>>,
    is_verbose: bool,
}

impl Events {
    /// # Errors
    /// The descriptor of `--json-events` is not open for writing.
    pub(super) fn open(options: &Options) -> Result<Events, Failure> {
        let open = |descriptor: u32| {
            // Appending, because a file that is opened again has a position of its own.
            let file = OpenOptions::new().append(true).open(format!("/dev/fd/{descriptor}"));
            let failed = |error| Failure::usage(format!("--json-events: descriptor {descriptor}: {error}"));
            file.map(Mutex::new).map_err(failed)
        };
        let json = options.events_descriptor.map(open).transpose()?;
        Ok(Events { json, is_verbose: options.is_verbose && !options.is_quiet })
    }

    /// Reports an event of this program: its name, what it is about, and its line.
    pub(super) fn report(&self, event: &str, about: Object, message: &str) {
        if let Some(file) = &self.json {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
            let object = Object::new().raw("time_unix_ms", now).raw("boot_time_us", boot_time().as_micros());
            let object = object.text("event", event).text("message", message);
            let line = format!("{}\n", object.and(about));
            // The reader may have gone.
            drop(file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes()));
        }
        if self.is_verbose {
            report::complain(message);
        }
    }
}

impl Observer for Events {
    fn event(&self, event: &Event) {
        let about = event.resource().map_or_else(Object::new, |resource| Object::new().text("name", resource));
        self.report(name(event), about, &event.to_string());
    }
}

/// The time since the machine was started, where the system has such a clock: leases go by it.
pub(super) fn boot_time() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// The name of a kind of event.
fn name(event: &Event) -> &'static str {
    match event {
        Event::Acquired(_) => "acquired",
        Event::AttemptLost(_) => "attempt_lost",
        Event::EventsDropped(_) => "events_dropped",
        Event::Extended(_) => "extended",
        Event::ExtensionFailed(_) => "extension_failed",
        Event::GaveUp(_) => "gave_up",
        Event::KeyWithoutExpiry(_) => "key_without_expiry",
        Event::Lost(_) => "lost",
        Event::NodeDown(_) => "node_down",
        Event::NodeMayEvict(_) => "node_may_evict",
        Event::NodeNotDurable(_) => "node_not_durable",
        Event::NodeQuarantined(_) => "node_quarantined",
        Event::NodeUp(_) => "node_up",
        Event::QuarantineEnded(_) => "quarantine_ended",
        Event::ReleaseFailed(_) => "release_failed",
        Event::ReleaseNotificationsRefused(_) => "release_notifications_refused",
        Event::Released(_) => "released",
        Event::Repaired(_) => "repaired",
        Event::Waiting(_) => "waiting",
        Event::WaitingForItself(_) => "waiting_for_itself",
        _ => "other",
    }
}
