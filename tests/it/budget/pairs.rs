//! Locks and unlocks, with a mutex that is kept, on one thread that never spins. `rustc` compiles
//! it for the test.
//!
//!     pairs KIND PAIRS URL...

use quorumlock::kind::Kind;
use quorumlock::{Mutex, Redlock, ReleaseOutcome};
use std::time::Duration;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap();
    let pairs: usize = arguments.next().unwrap().parse().unwrap();
    let client = Redlock::builder()
        .nodes(arguments)
        .node_timeout(Duration::from_secs(5))
        .max_ttl(Duration::from_secs(100))
        .spin(Duration::ZERO)
        .build()
        .unwrap();
    match &*kind {
        "plain" => repeat(&client.mutex("budget"), pairs),
        "fenced" => repeat(&client.mutex("budget").fenced(), pairs),
        "write" => repeat(&client.write_mutex("budget"), pairs),
        "read" => repeat(&client.read_mutex("budget"), pairs),
        "set" => repeat(&client.mutex_set(["budget", "other"]), pairs),
        other => panic!("no kind {other}"),
    }
}

fn repeat<K: Kind>(mutex: &Mutex<K>, pairs: usize) {
    let mutex = mutex.clone().ttl(Duration::from_secs(60));
    for _ in 0..pairs {
        assert_eq!(mutex.lock().unwrap().unlock().unwrap(), ReleaseOutcome::Released);
    }
}
