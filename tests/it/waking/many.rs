//! Many waiters: for a thousand locks at once.

use super::*;

#[test]
fn a_thousand_locks_are_waited_for_on_one_connection_each_and_nothing_stays() {
    alone(|| {
        const LOCKS: usize = 1000;
        let servers = Server::several(3).unwrap();
        // A node that the machine holds up for longer than its timeout misses entries, until
        // their calls ask again.
        let mine = client(&servers);
        let theirs = client(&servers);
        let name = |number: usize| format!("k{number}");
        let held: Vec<_> = (0..LOCKS)
            .map(|number| take(&long_lock(&theirs, &name(number))))
            .collect();
        thread::scope(|scope| {
            let waiting: Vec<_> = (0..LOCKS)
                .map(|number| {
                    let mutex = long_lock(&mine, &name(number));
                    let thread = thread::Builder::new().stack_size(256 * 1024);
                    thread
                        .spawn_scoped(scope, move || {
                            drop(mutex.lock_timeout(SOON * 6).unwrap().unwrap())
                        })
                        .unwrap()
                })
                .collect();
            let has_all =
                |server: &Server| (0..LOCKS).all(|number| count(server, &name(number)) == 1);
            assert!(eventually(SOON * 2, || servers.all(has_all)));
            has_channels(&servers, 1);
            assert!(
                servers.all(|server| subscribers(server) == 1),
                "one connection for all"
            );
            drop(held);
            for thread in waiting {
                thread.join().unwrap();
            }
        });
        no_entry_stays(&servers);
        // What the program has subscribed to goes with it.
        drop(mine);
        has_channels(&servers, 0);
    });
}
