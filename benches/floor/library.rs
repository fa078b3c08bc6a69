//! The library as a contender: as a user has it, with its default settings.

use crate::comparison::{Pair, Spread, repeat, timed};
use quorumlock::kind::Kind;
use quorumlock::{Builder, ErrorKind, Mutex, MutexGuard, Redlock, Result};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Scope};
use std::time::Duration;

#[global_allocator]
pub(crate) static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

static FAILURES: AtomicU64 = AtomicU64::new(0);

/// A client of these nodes.
pub(crate) fn client(nodes: &[SocketAddr]) -> Redlock {
    builder(nodes).build().expect("a client")
}

/// A client of these nodes that is to have settings.
pub(crate) fn builder(nodes: &[SocketAddr]) -> Builder {
    Redlock::builder().nodes(nodes.iter().map(|node| format!("redis://{node}")))
}

/// A lock of the client. It lasts as long as a client permits by default, so that nothing here ends
/// it by time.
pub(crate) fn mutex(client: &Redlock, resource: &str) -> Mutex {
    client.mutex(resource).ttl(Duration::from_secs(60))
}

/// Takes this many locks of the client.
pub(crate) fn hold(client: &Redlock, number: usize, prefix: &str) -> Vec<Option<MutexGuard>> {
    (0..number)
        .map(|index| lock(&mutex(client, &format!("{prefix}/{index}"))))
        .collect()
}

/// Takes a lock. `None` is counted as a failure: on a busy machine a quorum may be too slow. Any
/// other error is one of the benches themselves.
pub(crate) fn lock<K: Kind>(mutex: &Mutex<K>) -> Option<MutexGuard<K>> {
    taken(mutex.lock())
}

fn taken<G>(result: Result<G>) -> Option<G> {
    match result {
        Ok(guard) => Some(guard),
        Err(error) if error.kind() == ErrorKind::Unavailable => {
            FAILURES.fetch_add(1, Ordering::Relaxed);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Releases a lock, and waits for the quorum's answers.
pub(crate) fn unlock<K: Kind>(guard: Option<MutexGuard<K>>) {
    if guard.is_some_and(|guard| guard.unlock().is_err()) {
        FAILURES.fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes and releases a lock.
pub(crate) fn pair<K: Kind>(mutex: &Mutex<K>) -> Pair {
    timed(|| lock(mutex), unlock)
}

/// Takes a lock and drops the guard, which waits for no answer.
pub(crate) fn dropped_pair(mutex: &Mutex) -> Pair {
    timed(|| lock(mutex), drop)
}

/// Starts a thread that waits for a lock. Its stack is small, as there are many of them.
pub(crate) fn spawn_waiting<'scope>(
    scope: &'scope Scope<'scope, '_>,
    wait: impl FnOnce() + Send + 'scope,
) {
    thread::Builder::new()
        .stack_size(256 * 1024)
        .spawn_scoped(scope, wait)
        .expect("a thread");
}

/// How many allocations of heap memory one operation makes, in several runs. They differ: buffers
/// grow to their size at first, and an operation that fails on a busy machine reports why.
pub(crate) fn allocations<R>(operations: usize, mut operation: impl FnMut() -> R) -> Spread {
    let mut count = || {
        let before = ALLOCATOR.stats();
        repeat(operations, &mut operation);
        let made = ALLOCATOR.stats() - before;
        (made.allocations + made.reallocations) as f64 / operations as f64
    };
    Spread::of((0..9).map(|_| count()))
}

/// How often a quorum did not answer in time.
pub(crate) fn failures() -> u64 {
    FAILURES.load(Ordering::Relaxed)
}
