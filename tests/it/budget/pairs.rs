//! Locks and unlocks, with a mutex that is kept, on one thread that never spins. `rustc` compiles it for the test.
//!
//!     pairs PAIRS URL...

use quorumlock::{Redlock, ReleaseOutcome};
use std::time::Duration;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let pairs: usize = arguments.next().unwrap().parse().unwrap();
    let client = Redlock::builder()
        .nodes(arguments)
        .node_timeout(Duration::from_secs(5))
        .max_ttl(Duration::from_secs(100))
        .spin(Duration::ZERO)
        .build()
        .unwrap();
    let mutex = client.mutex("budget").ttl(Duration::from_secs(60));
    for _ in 0..pairs {
        assert_eq!(mutex.lock().unwrap().unlock().unwrap(), ReleaseOutcome::Released);
    }
}
