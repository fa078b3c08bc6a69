//! The version, the clock, and results in words.

use super::boundary::call_or;
use super::code::Code;
use super::text::Str;
use std::ffi::c_int;

#[unsafe(no_mangle)]
extern "C" fn quorumlock_version() -> Str {
    Str::of(env!("CARGO_PKG_VERSION"))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_version_number() -> u32 {
    call_or(0, || {
        // `major.minor.patch`, and whatever follows.
        let parts = env!("CARGO_PKG_VERSION").split(['.', '-', '+']).take(3);
        Some(parts.fold(0, |all, part| all * 256 + part.parse().unwrap_or(0)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_now_ms() -> u64 {
    call_or(0, || Some(now_millis()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_result_text(result: c_int) -> Str {
    call_or(Str::default(), || {
        Some(Str::of(
            Code::of(result).map_or("unknown result", Code::text),
        ))
    })
}

/// The clock of deadlines.
#[cfg(unix)]
pub(super) fn now_millis() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    super::times::millis(
        clock_gettime(ClockId::Monotonic)
            .try_into()
            .unwrap_or_default(),
    )
}

#[cfg(not(unix))]
pub(super) fn now_millis() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    super::times::millis(ORIGIN.get_or_init(Instant::now).elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_a_number() {
        let [major, minor, patch] =
            [16, 8, 0].map(|bits| quorumlock_version_number() >> bits & 255);
        assert_eq!(
            format!("{major}.{minor}.{patch}"),
            env!("CARGO_PKG_VERSION")
        );
    }

    #[test]
    fn the_clock_goes_on() {
        let before = now_millis();
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!((5..5000).contains(&(now_millis() - before)));
    }
}
