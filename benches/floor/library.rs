//! The library as a contender: as a user has it, with its default settings.

use crate::comparison::{Pair, timed};
use quorumlock::kind::Kind;
use quorumlock::{ErrorKind, Mutex, MutexGuard, Redlock, Result};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

static FAILURES: AtomicU64 = AtomicU64::new(0);

/// A client of these nodes.
pub(crate) fn client(nodes: &[SocketAddr]) -> Redlock {
    let urls = nodes.iter().map(|node| format!("redis://{node}"));
    Redlock::builder().nodes(urls).build().expect("a client")
}

/// A client of these nodes whose threads always sleep until replies come.
pub(crate) fn sleeping_client(nodes: &[SocketAddr]) -> Redlock {
    let urls = nodes.iter().map(|node| format!("redis://{node}"));
    Redlock::builder()
        .nodes(urls)
        .spin(Duration::ZERO)
        .build()
        .expect("a client")
}

/// A lock of the client. It lasts as long as a client permits by default, so that nothing here ends
/// it by time.
pub(crate) fn mutex(client: &Redlock, resource: &str) -> Mutex {
    client.mutex(resource).ttl(Duration::from_secs(60))
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

/// How often a quorum did not answer in time.
pub(crate) fn failures() -> u64 {
    FAILURES.load(Ordering::Relaxed)
}
