//! Which settings a client can be built with.

use super::{Builder, config};
use crate::algorithm::incarnation::LONGEST_MAX_TTL;
use crate::algorithm::time::Human;
use crate::events::error::Result;
use std::time::Duration;

/// Longest that any setting may be: so long that it means "for ever", and still far from any overflow.
const LONGEST_SETTING: Duration = LONGEST_MAX_TTL;
/// Time to live of a lock that names none, by a client that names none.
const DEFAULT_TTL: Duration = Duration::from_secs(10);
const LONGEST_PLACE: Duration = Duration::from_secs(60 * 60);
const LONGEST_SPIN: Duration = Duration::from_millis(10);

impl Builder {
    pub(super) fn default_ttl(&self) -> Duration {
        self.ttl.unwrap_or(DEFAULT_TTL.min(self.max_ttl))
    }

    /// The settings beside each other.
    pub(super) fn check(&self) -> Result<()> {
        let [ttl, longest] = [self.default_ttl(), self.max_ttl].map(Human);
        if ttl.0 > longest.0 {
            return Err(config(format!(
                "ttl ({ttl}) is longer than max_ttl ({longest}): lower ttl, or raise max_ttl in every client of these \
                 nodes"
            )));
        }
        self.check_each()
    }

    /// Each setting by itself.
    pub(super) fn check_each(&self) -> Result<()> {
        let millisecond = Duration::from_millis(1);
        if !(millisecond..=LONGEST_SETTING).contains(&self.node_timeout) {
            return Err(config("node_timeout must be at least 1 ms"));
        }
        if !(0.0..1.0).contains(&self.drift_factor) {
            return Err(config("drift_factor must be at least 0 and less than 1"));
        }
        if self.retry_min.is_zero() || self.retry_min > self.retry_max || self.retry_max > LONGEST_SETTING {
            return Err(config("retry_delay must be more than zero, and the longest no shorter than the shortest"));
        }
        if !(millisecond..=LONGEST_SETTING).contains(&self.max_ttl) {
            return Err(config("max_ttl must be between 1 ms and 366 days"));
        }
        if self.fence_retention > LONGEST_SETTING {
            return Err(config("fence_retention must be at most 366 days"));
        }
        if !(millisecond..=LONGEST_PLACE).contains(&self.place_lease) {
            return Err(config("place_lease must be between 1 ms and 1 h"));
        }
        if self.spin > LONGEST_SPIN {
            return Err(config("spin must be at most 10 ms"));
        }
        Ok(())
    }
}
