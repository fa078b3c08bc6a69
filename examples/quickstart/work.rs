//! What the threads do with the lock, and what they note down.

use crate::counter::Counter;
use quorumlock::{CancelHandle, ErrorKind, Mutex, ReleaseOutcome, Wait};
use std::error::Error;
use std::mem;
use std::sync::{self, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The other work of a thread, before it wants the counter again.
const REST: Duration = Duration::from_millis(10);
/// The pause between two measurements.
const PAUSE: Duration = Duration::from_millis(2);

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// Adds 1 to the counter, again and again, each time under the lock.
pub fn increment(
    mutex: &Mutex,
    counter: &Counter,
    record: &Record,
    stop: &CancelHandle,
) -> Outcome {
    let wait = Wait::unlimited().cancelled_by(stop);
    while !stop.is_cancelled() {
        let Some(guard) = mutex.lock_with(&wait)? else {
            continue;
        };
        let number = counter.read()?;
        // The last look before what must not be done twice: is there still time?
        if guard.remaining().is_zero() {
            continue;
        }
        counter.write(number + 1)?;
        // Dropping the guard would do. This also tells whether the lock was ours to the end.
        let unsure = guard.unlock().ok() != Some(ReleaseOutcome::Released);
        record.note(|notes| {
            notes.added += 1;
            notes.unsure += u64::from(unsure);
        });
        thread::sleep(REST);
    }
    Ok(())
}

/// Takes and releases an uncontended lock, and measures how long it takes to get it.
pub fn measure(mutex: &Mutex, record: &Record, stop: &CancelHandle) -> Outcome {
    let wait = Wait::unlimited().cancelled_by(stop);
    while !stop.is_cancelled() {
        let asked = Instant::now();
        let guard = mutex.lock_with(&wait)?;
        let latency = asked.elapsed();
        drop(guard);
        record.note(|notes| notes.latencies.push(latency));
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// What all threads note down, and why one of them stopped.
#[derive(Default)]
pub struct Record {
    notes: sync::Mutex<Notes>,
    failure: sync::Mutex<Option<Box<dyn Error + Send + Sync>>>,
}

/// What was noted since the last look.
#[derive(Default)]
pub struct Notes {
    /// Increments.
    pub added: u64,
    /// How long the lock that is always free took.
    pub latencies: Vec<Duration>,
    /// Releases that could not confirm that the lock was ours to the end.
    pub unsure: u64,
}

impl Record {
    /// Returns what was noted, and begins a new page.
    pub fn take(&self) -> Notes {
        let mut taken = Notes::default();
        self.note(|notes| mem::swap(notes, &mut taken));
        taken
    }

    /// Records the end of a thread. If it failed, all threads stop.
    pub fn outcome(&self, outcome: Outcome, stop: &CancelHandle) {
        let Err(error) = outcome else { return };
        let cancelled =
            error.downcast_ref().map(quorumlock::Error::kind) == Some(ErrorKind::Cancelled);
        if !cancelled {
            self.failure
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(error);
            stop.cancel();
        }
    }

    /// Why a thread could not go on, if one could not.
    pub fn failure(&self) -> Option<Box<dyn Error + Send + Sync>> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn note(&self, note: impl FnOnce(&mut Notes)) {
        note(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
