//! What other threads do meanwhile.

use std::thread;
use std::time::{Duration, Instant};

/// Does this in a thread of its own.
pub(crate) fn elsewhere<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// Does this in so many threads at once, which have numbers, and waits for all.
pub(crate) fn at_once<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let work = &work;
    thread::scope(|scope| {
        let threads = (0..threads).map(|number| scope.spawn(move || work(number)));
        let threads: Vec<_> = threads.collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results.collect()
    })
}

/// Waits in another thread, does something meanwhile, and returns how much later than the instant
/// that this returns the wait ended.
pub(crate) fn lag<R: Send>(
    wait: impl FnOnce() -> R + Send,
    meanwhile: impl FnOnce() -> Instant,
) -> (R, Duration) {
    thread::scope(|scope| {
        let waiting = scope.spawn(|| (wait(), Instant::now()));
        let from = meanwhile();
        let (result, ended) = waiting.join().unwrap();
        (result, ended.saturating_duration_since(from))
    })
}

/// Lets go of something, and returns when.
pub(crate) fn let_go<T>(held: T) -> Instant {
    let now = Instant::now();
    drop(held);
    now
}
