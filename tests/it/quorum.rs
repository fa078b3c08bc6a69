//! Whether an attempt wins when some nodes are taken: every set of taken nodes, for one to six
//! nodes.
//!
//! A lost attempt is undone without waiting for it, and a won one does not wait for stragglers. So
//! the keys on the servers are checked until they are as they should be.

use crate::prelude::*;

const KEY: &str = "k";
const OTHER: &str = "other";

#[test]
fn the_free_majority_decides_and_nothing_is_left_behind() {
    let servers = Server::several(6).unwrap();
    // A node that joined more than a second later than the others would not vote.
    drop(long_lock(&client(&servers), "all").lock().unwrap());
    for count in 1..=servers.len() {
        let servers = &servers[..count];
        let mutex = long_lock(&client(servers), KEY);
        for set in 0..1_u32 << count {
            let taken = |index: usize| set & (1 << index) != 0;
            for (index, server) in servers.iter().enumerate() {
                if taken(index) {
                    server.command(&["SET", KEY, OTHER]).unwrap();
                }
            }
            let free = (0..count).filter(|&index| !taken(index)).count();
            let case = format!("{count} nodes, taken: {set:0count$b}");

            let guard = mutex.try_lock().unwrap();
            assert_eq!(guard.is_some(), free > count / 2, "{case}");
            if let Some(guard) = guard {
                let ours = servers
                    .iter()
                    .filter_map(|server| value(server, KEY))
                    .filter(|value| value != OTHER);
                assert!(ours.count() > count / 2, "{case}");
                assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released, "{case}");
            }

            let untouched = |index: usize| {
                value(&servers[index], KEY).as_deref() == taken(index).then_some(OTHER)
            };
            assert_soon!((0..count).all(untouched), "{case}");
            ask_each(servers, &["DEL", KEY]);
        }
    }
}
