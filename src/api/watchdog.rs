//! How locks are extended automatically: the settings.

use crate::algorithm::lease::Ttl;
use crate::algorithm::renewal::RenewalConfig;
use crate::algorithm::time::{Human, LeaseTime};
use crate::engine::local_queue::HoldId;
use crate::engine::watchdog_thread::AutomaticExtension;
use crate::events::error::{Result, config_error};
use std::time::Duration;

/// How long before its end a lease is reported lost by default, as a part of its validity: a tenth,
/// so that its holder has time to stop.
const MARGIN: u32 = 10;
/// Longest margin by default.
const LONGEST_MARGIN: Duration = Duration::from_secs(1);

/// How the locks of a [`Mutex`](crate::Mutex) are extended while their guards live, and when they
/// are reported lost. Given to [`Mutex::watchdog`](crate::Mutex::watchdog).
///
/// One thread for each client, started when it is first needed, extends all its locks, in batches.
/// It blocks all signals and ends with the client. An extension that fails is tried again, several
/// times before the end. Once a second, the thread connects again to nodes whose connections have
/// ended. Where one has lost its data, all locks are extended at once, and set again there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Watchdog {
    period: Option<Duration>,
    margin: Option<Duration>,
    max_extensions: Option<u32>,
    max_duration: Option<Duration>,
}

impl Watchdog {
    /// Extends every lock after a third of its time to live, for as long as its guard lives.
    pub fn new() -> Watchdog {
        Watchdog::default()
    }

    /// How long after an extension the next one follows. Default: a third of the time to live. At
    /// most half of the validity is waited in any case, so that there is time to try again.
    pub fn period(mut self, period: Duration) -> Watchdog {
        self.period = Some(period);
        self
    }

    /// How long before the end of its validity a lock that could not be extended is reported lost,
    /// so that its holder can stop in time. Default: a tenth of the validity, at most 1 s. Less
    /// than half of the validity. When it has been reported, nothing extends the lock any more.
    pub fn notify_before(mut self, margin: Duration) -> Watchdog {
        self.margin = Some(margin);
        self
    }

    /// How often a lock is extended automatically. After the last time it runs out, and is reported
    /// lost. Default: without limit. Extensions by hand do not count, nor does one that is made
    /// early for a node that has lost its data.
    pub fn max_extensions(mut self, extensions: u32) -> Watchdog {
        self.max_extensions = Some(extensions);
        self
    }

    /// For how long a lock is extended automatically, counted from when it was taken. Default:
    /// without limit.
    pub fn max_duration(mut self, time: Duration) -> Watchdog {
        self.max_duration = Some(time);
        self
    }

    /// Checks the settings for locks of this time to live.
    pub(crate) fn check(&self, ttl: Ttl) -> Result<()> {
        if self.period.is_some_and(|period| period.is_zero()) {
            return Err(config_error("a watchdog's period must be more than zero"));
        }
        match self.margin {
            Some(margin) if margin >= ttl.validity() / 2 => {
                let message = format!(
                    "a watchdog's margin of {} is not less than half of the validity of a lock of {}",
                    Human(margin),
                    Human(ttl.duration())
                );
                Err(config_error(message))
            }
            _ => Ok(()),
        }
    }

    /// How the watchdog's thread extends a lock that was taken at `start`.
    pub(crate) fn extension_of(
        &self,
        ttl: Ttl,
        start: LeaseTime,
        hold: HoldId,
    ) -> AutomaticExtension {
        AutomaticExtension {
            ttl,
            hold,
            config: RenewalConfig {
                period: self.period.unwrap_or(RenewalConfig::of(ttl).period),
                max_extensions: self.max_extensions,
                until: self.max_duration.map(|time| start.after(time)),
            },
            margin: self.margin_for(ttl),
        }
    }

    /// How long before the end of a lease it is reported lost.
    pub(crate) fn margin_for(&self, ttl: Ttl) -> Duration {
        self.margin
            .unwrap_or_else(|| (ttl.validity() / MARGIN).min(LONGEST_MARGIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::lease::MAX_TTL;

    fn ttl(millis: u64) -> Ttl {
        Ttl::new(Duration::from_millis(millis), 0.01, MAX_TTL).unwrap()
    }

    #[test]
    fn a_margin_is_a_tenth_of_the_validity_and_no_longer_than_a_second() {
        assert_eq!(
            Watchdog::new().margin_for(ttl(1000)),
            Duration::from_micros(98_800)
        );
        assert_eq!(
            Watchdog::new().margin_for(ttl(60_000)),
            Duration::from_secs(1)
        );
        assert_eq!(
            Watchdog::new()
                .notify_before(Duration::ZERO)
                .margin_for(ttl(1000)),
            Duration::ZERO
        );
    }

    #[test]
    fn settings_that_leave_no_time_are_refused() {
        assert!(Watchdog::new().check(ttl(3)).is_ok());
        let refusal = |watchdog: Watchdog| watchdog.check(ttl(1000)).unwrap_err().to_string();
        assert!(refusal(Watchdog::new().period(Duration::ZERO)).contains("period"));
        assert!(
            refusal(Watchdog::new().notify_before(Duration::from_millis(494))).contains("margin")
        );
        assert!(
            Watchdog::new()
                .notify_before(Duration::from_millis(493))
                .check(ttl(1000))
                .is_ok()
        );
    }
}
