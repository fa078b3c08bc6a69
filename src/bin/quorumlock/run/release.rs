//! The end of the locks of a command that has run.

use super::acquire::Held;
use super::events::Events;
use quorumlock::ReleaseOutcome;

/// Releases the locks, the last first. Each of them stands for as long as `--min-hold` asks for. Whether one was lost.
pub(super) fn release(events: &Events, mut held: Held) -> bool {
    let mut is_lost = false;
    for guard in std::mem::take(&mut held.guards).into_iter().rev() {
        match guard.unlock() {
            Ok(outcome) => is_lost |= outcome == ReleaseOutcome::Expired,
            Err(error) => events.say(&format!("{error}; the lock ends with its time to live")),
        }
    }
    is_lost
}
