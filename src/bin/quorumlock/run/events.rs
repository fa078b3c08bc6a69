//! What happens, for `--json-events` and `-v`: events of the library, and those of this program;
//! and messages.

use super::descriptor::take;
use super::options::Options;
use super::output::Output;
use crate::exit::Failure;
use crate::json::{Object, object};
use crate::report;
use quorumlock::event::Event;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// Where events and messages go.
pub(super) struct Events {
    json: Option<Output>,
    messages: Output,
    is_quiet: bool,
    is_verbose: bool,
}

impl Events {
    /// Events go to this file, if there is one.
    pub(super) fn open(options: &Options, json_events: Option<File>) -> Result<Events, Failure> {
        let notice = |count| json("output_dropped", object! {}, &missing(count));
        let json = json_events.map(|file| Output::new(file, notice));
        // Of its own, so that a panic is shown although the thread that writes is blocked.
        let error = std::io::stderr().as_fd().try_clone_to_owned();
        let error = error.map_err(Failure::system("duplicate standard error"))?;
        let messages = Output::new(error.into(), |count| report::complaint(&missing(count)));
        Ok(Events {
            json,
            messages,
            is_quiet: options.quiet,
            is_verbose: options.verbose,
        })
    }

    /// Writes a complaint.
    pub(super) fn complain(&self, message: &str) {
        self.messages.write(&report::complaint(message));
    }

    /// Writes a complaint, unless it is not wanted.
    pub(super) fn say(&self, message: &str) {
        self.write_wanted(&report::complaint(message));
    }

    /// Writes a text to standard error, unless it is not wanted.
    pub(super) fn write_wanted(&self, text: &str) {
        if !self.is_quiet {
            self.messages.write(text);
        }
    }

    /// Waits until all is written, and no longer than for a moment: a reader may have stalled.
    pub(super) fn drain(&self) {
        self.json
            .iter()
            .chain([&self.messages])
            .for_each(Output::drain);
    }

    /// An observer that reports the events of the library.
    pub(super) fn observer(self: &Arc<Events>) -> impl Fn(&Event) + Send + Sync + 'static + use<> {
        let events = Arc::clone(self);
        move |event| {
            let about = event
                .name()
                .map_or_else(|| object! {}, |name| object! { "name" = name });
            events.report(event.code(), about, &event.to_string());
        }
    }

    /// Reports an event of this program: its name, what it is about, and its line.
    pub(super) fn report(&self, event: &str, about: Object, message: &str) {
        if let Some(output) = &self.json {
            output.write(&json(event, about, message));
        }
        if self.is_verbose {
            self.say(message);
        }
    }
}

/// The file of `--json-events`.
///
/// # Errors
/// The descriptor is not open for writing.
pub(super) fn file(descriptor: i32) -> Result<File, Failure> {
    take(descriptor).map_err(|error| {
        let what = format!("descriptor {descriptor} is not open for writing");
        Failure::usage(format!("--json-events: {what}: {error}"))
    })
}

/// An event as a line of JSON.
fn json(event: &str, about: Object, message: &str) -> String {
    let object = object! {
        "time_unix_ms": report::since_1970().as_millis(),
        "boot_time_us": boot_time().as_micros(),
        "event" = event,
        "message" = message,
        _: about,
    };
    format!("{object}\n")
}

/// That so many texts were not written.
fn missing(count: u64) -> String {
    format!("{count} lines are missing here: the reader is too slow")
}

/// The time since the machine was started, where the system has such a clock: leases go by it.
pub(super) fn boot_time() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    clock_gettime(clock).try_into().unwrap_or_default()
}
