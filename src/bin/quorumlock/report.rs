//! What the program writes: lines, complaints, a line of progress on a terminal. A closed pipe is
//! no failure.
//!
//! All of it may hold text of servers, keys and names, so that all of it is [`printable`], apart
//! from a [`page`].

use crate::printable::printable;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long something takes before its progress is shown, and how often that is renewed.
const PERIOD: Duration = Duration::from_secs(1);

/// Writes a line to standard output.
pub(crate) fn line(text: impl Display) {
    // The reader may have seen enough.
    drop(writeln!(
        std::io::stdout().lock(),
        "{}",
        printable(&text.to_string())
    ));
}

/// Writes a line to standard output, made as by `format!`.
macro_rules! write_line {
    ($($parts:tt)*) => { crate::report::line(format_args!($($parts)*)) };
}

pub(crate) use write_line;

/// Writes lines of this program's own to standard output: a help text, a script.
pub(crate) fn page(text: &str) {
    drop(writeln!(std::io::stdout().lock(), "{}", text.trim_end()));
}

/// Writes a line to standard error, with the name of the program.
pub(crate) fn complain(message: &str) {
    to_stderr(&complaint(message));
}

/// That line.
pub(crate) fn complaint(message: &str) -> String {
    format!("quorumlock: {}\n", printable(message))
}

pub(crate) fn to_stderr(text: &str) {
    drop(std::io::stderr().lock().write_all(text.as_bytes()));
}

/// The time since 1970, by the wall clock of this machine.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// A time since 1970 as UTC, to the second: `2026-11-22T15:04:05Z`.
pub(crate) fn utc(since_1970: Duration) -> String {
    let days = since_1970.as_secs() / 86_400;
    let seconds = since_1970.as_secs() % 86_400;
    // Years that begin in March, so that a leap day is the last one: eras of 400 years.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = (month + 2) % 12 + 1;
    let hour = seconds / 3600;
    let minute = seconds / 60 % 60;
    let second = seconds % 60;
    format!(
        "{:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z",
        era * 400 + year + u64::from(month < 3)
    )
}

/// Does something, [with a line of progress](with_progress).
pub(crate) fn during<T>(what: &str, work: impl FnOnce() -> T) -> T {
    with_progress(|| what, to_stderr, work)
}

/// Does something. If standard error is a terminal, writes meanwhile a line of progress there: not
/// before a second has passed, and once a second from then on. It is wiped in the end.
pub(crate) fn with_progress<P: Display, T>(
    progress: impl Fn() -> P + Send,
    write: impl Fn(&str) + Send,
    work: impl FnOnce() -> T,
) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    let begun = Instant::now();
    let (done, waiting) = mpsc::channel::<()>();
    let show = move || {
        let mut wipe = "";
        while waiting.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            let seconds = begun.elapsed().as_secs();
            let line = printable(&progress().to_string());
            write(&format!("\r\x1b[K{line}, {seconds} s"));
            wipe = "\r\x1b[K";
        }
        write(wipe);
    };
    thread::scope(|scope| {
        // Without a thread nothing is shown.
        drop(thread::Builder::new().spawn_scoped(scope, show));
        let result = work();
        drop(done);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_utc() {
        let table = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_795_361_689, "2026-11-22T15:34:49Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, shown) in table {
            assert_eq!(utc(Duration::from_secs(seconds)), shown);
        }
    }
}
