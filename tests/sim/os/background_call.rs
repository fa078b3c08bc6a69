//! The library's calls that may block: nothing is called, as no client of the simulation has a
//! provider or a file.

use std::io;
use std::time::Duration;

pub(crate) struct BackgroundCall;

impl BackgroundCall {
    pub(crate) fn start(
        _name: &str,
        _call: impl FnMut() -> Option<Duration> + Send + 'static,
    ) -> io::Result<BackgroundCall> {
        Ok(BackgroundCall)
    }

    pub(crate) fn ask_after(&self, _time: Duration) {}
}
