//! The end of the locks: released, or shortened to what `--at-least` asks for.
//!
//! A job that is over at once is not repeated by a machine whose clock is a little late: its lock stays. It is given a
//! shorter time to live, and ends by itself; this program does not wait for that.

use super::acquire::Held;
use super::options::Options;
use quorumlock::{MutexGuard, ReleaseOutcome};
use std::time::Duration;

/// Shortest time for which it is worth leaving a lock: less is no more than the allowance for clock drift.
const SHORTEST: Duration = Duration::from_millis(5);

/// Ends the locks of a command that has run, the last first. Whether one of them was lost.
pub(super) fn release(options: &Options, held: Held) -> bool {
    let left = options.at_least.saturating_sub(held.since.elapsed());
    let end = |guard| if left < SHORTEST { unlock(options, guard) } else { leave(options, guard, left) };
    held.guards.into_iter().rev().map(end).fold(false, |any, is_lost| any | is_lost)
}

/// Releases the locks of a command that was not started.
pub(super) fn undo(options: &Options, held: Held) {
    held.guards.into_iter().rev().for_each(|guard| {
        unlock(options, guard);
    });
}

fn unlock(options: &Options, guard: MutexGuard) -> bool {
    match guard.unlock() {
        Ok(outcome) => outcome == ReleaseOutcome::Expired,
        Err(error) => {
            options.say(&format!("{error}; the lock ends with its time to live"));
            false
        }
    }
}

/// Shortens the lock, and lets go of it without a release.
fn leave(options: &Options, mut guard: MutexGuard, left: Duration) -> bool {
    let is_lost = guard.remaining().is_zero();
    if let Err(error) = guard.extend(left) {
        options.say(&format!("{error}; the lock ends with its time to live"));
    }
    drop(guard.detach());
    is_lost
}
