//! Releases that were written and not answered: what the thread costs that waits for the answers.
//! That it finds out which were lost, though no call is under way, is a rule of the simulator.

use crate::prelude::*;

const GUARDS: usize = 20;
const OUTAGE: Duration = Duration::from_secs(2);
const HELPER: &str = "quorumlock rele";

#[test]
fn a_node_that_hangs_is_waited_for_without_processor_time_until_the_keys_end() {
    alone(|| {
        let servers = Server::several(3).unwrap();
        let client = client_of(servers.iter().map(Server::url));
        let short = |number| {
            take(
                &client
                    .mutex(format!("k{number}"))
                    .ttl(Duration::from_secs(4)),
            )
        };
        let guards: Vec<_> = (0..GUARDS).map(short).collect();
        servers[0].pause().unwrap();
        drop(guards);
        thread::sleep(OUTAGE);
        let helper = threads_named(HELPER).pop().expect("answers are missing");
        let used = helper.processor_time();
        assert!(used < OUTAGE / 20, "{used:?} in {OUTAGE:?}");
        assert_soon!(threads_named(HELPER).is_empty(), "the keys have ended");
        servers[0].resume().unwrap();
    });
}
