//! A process whose limit of descriptors is lowered below what it has open: poll fails for good.

use crate::prelude::*;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};

/// How long nodes that hang are waited for.
const NODE_TIMEOUT: Duration = Duration::from_secs(2);

/// How often this process has gone to sleep. What a thread uses of a processor is no measure: on a
/// busy machine one that never sleeps gets little of it.
fn sleeps() -> i64 {
    getrusage(UsageWho::RUSAGE_SELF)
        .unwrap()
        .voluntary_context_switches()
}

#[test]
fn where_poll_fails_for_good_the_driver_sleeps_and_loses_no_answer() {
    alone(|| {
        let (mut servers, client) =
            deployment_with(3, |builder| builder.node_timeout(NODE_TIMEOUT));
        drop(take(&long_lock(&client, "k")));
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        // The waker and three nodes are four.
        setrlimit(Resource::RLIMIT_NOFILE, 3, hard).unwrap();

        servers
            .iter_mut()
            .for_each(|server| server.pause().unwrap());
        let begun = Instant::now();
        let before = sleeps();
        assert!(client.mutex("hung").try_lock().is_err());
        assert!(begun.elapsed() >= NODE_TIMEOUT);
        // 10 ms each, and then some on a busy machine.
        let slept = sleeps() - before;
        assert!(
            (20..=250).contains(&slept),
            "the driver slept {slept} times in {:?}",
            begun.elapsed()
        );

        servers
            .iter_mut()
            .for_each(|server| server.resume().unwrap());
        let guard = long_lock(&client, "another").lock().unwrap();
        unlock(guard);
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    });
}
