//! How far a node's clock is from the clock of this machine, and how fast that changes.

use crate::connection::{Connection, Trouble};
use crate::report;
use std::time::{Duration, Instant};

/// How often the clock is asked for: the quickest answer is the most exact.
const SAMPLES: usize = 8;
/// What is no more than this is no finding: locks do not need clocks that show the same, only those
/// that run alike.
const TOLERANCE: f64 = 0.5;

/// How far a clock is ahead, in seconds. The truth is no farther away than the error.
#[derive(Clone, Copy)]
pub(super) struct Offset {
    pub(super) seconds: f64,
    pub(super) error: f64,
}

/// How much faster a clock runs, as a part. The truth is no farther away than the error.
#[derive(Clone, Copy)]
pub(super) struct Rate {
    pub(super) part: f64,
    pub(super) error: f64,
}

/// Asks for the clock of a node. None if the user may not.
pub(super) fn offset(connection: &mut Connection) -> Result<Option<Offset>, Trouble> {
    let mut best: Option<Offset> = None;
    for _ in 0..SAMPLES {
        let before = report::since_1970();
        let begun = Instant::now();
        let reply = connection.ask(&[b"TIME"])?;
        let round_trip = begun.elapsed().as_secs_f64();
        let Some(micros) = reply.micros() else {
            return Ok(None);
        };
        let theirs = micros as f64 / 1e6;
        let ours = before.as_secs_f64() + round_trip / 2.0;
        let offset = Offset {
            seconds: theirs - ours,
            error: round_trip / 2.0,
        };
        if best.is_none_or(|best| offset.error < best.error) {
            best = Some(offset);
        }
    }
    Ok(best)
}

impl Offset {
    /// How much faster the clock runs, by this look and a later one.
    pub(super) fn rate(self, later: Offset, passed: Duration) -> Rate {
        let passed = passed.as_secs_f64().max(f64::MIN_POSITIVE);
        Rate {
            part: (later.seconds - self.seconds) / passed,
            error: (self.error + later.error) / passed,
        }
    }

    /// Whether it is certain that the clocks differ by more than what is tolerated.
    pub(super) fn is_off(self) -> bool {
        self.seconds.abs() - self.error > TOLERANCE
    }

    pub(super) fn shown(self) -> String {
        format!("{:+.1} ms ± {:.1} ms", self.seconds * 1e3, self.error * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_off_when_its_error_does_not_explain_it() {
        let off = |seconds, error| Offset { seconds, error }.is_off();
        assert!(off(3.0, 0.001) && off(-3.0, 0.001));
        assert!(!off(0.4, 0.001) && !off(3.0, 2.6));
    }

    #[test]
    fn a_rate_has_the_errors_of_both_looks() {
        let offset = |seconds| Offset {
            seconds,
            error: 0.01,
        };
        let rate = offset(0.0).rate(offset(0.2), Duration::from_secs(10));
        assert!((rate.part - 0.02).abs() < 1e-9 && (rate.error - 0.002).abs() < 1e-9);
    }
}
