//! Hand-offs of fair locks that none of the waiting programs may miss: each of them would be made
//! up for only when a call asks unasked, after `place_lease`, which takes longer here than these
//! tests do. [`embedded_vs_real`](crate::embedded_vs_real) compares what nodes tell the calls that
//! wait. That none of these misses it is a rule of the simulator.

use super::*;
use crate::support::queues::channels;

/// The owner token of what holds the lock.
pub(super) const TOKEN: &str = "0123456789012345678901234567890123456789";

/// A client whose calls ask in ten minutes, unless they are told.
fn patient(urls: impl IntoIterator<Item = String>) -> Redlock {
    let builder = builder_of(urls).node_timeout(SOON / 2);
    builder.place_lease(SOON * 60).build().unwrap()
}

/// Lets a program wait until it is subscribed, and has its entry on each server, and then frees the
/// lock. Returns how long the program waits from then on.
pub(super) fn time_to_notice<K: Kind + Send>(
    lock: fn(&Redlock) -> Mutex<K>,
    servers: &[Server],
    free: impl FnOnce() -> Instant,
) -> Duration {
    let waiter = patient(servers.iter().map(Server::url));
    let free = || {
        let is_settled =
            || servers.all(|server| channels(server).len() == 1 && places(server) == 1);
        assert_soon!(is_settled(), "it does not wait");
        // It asks when its subscription is confirmed.
        thread::sleep(Duration::from_millis(100));
        free()
    };
    let (guard, late) = lag(|| lock(&waiter).lock_timeout(SOON * 6).unwrap(), free);
    assert!(guard.is_some(), "it has the lock");
    late
}

/// The next call of a program asks in its turn, although the lock is free for a moment.
#[test]
fn a_program_that_releases_and_wants_the_lock_again_is_behind_the_one_that_waits() {
    let locks = [fair, |client: &Redlock| long_lock(client, "k")];
    for (lock, kind) in locks.into_iter().zip(["fair", "plain"]) {
        let servers = Server::several(3).unwrap();
        let [ours, theirs] = [(); 2].map(|()| patient(servers.iter().map(Server::url)));
        for _ in 0..20 {
            let held = lock(&ours).lock().unwrap();
            let order = Guarded::new(Vec::new());
            thread::scope(|scope| {
                scope.spawn(|| {
                    let guard = lock(&theirs).lock().unwrap();
                    order.lock().unwrap().push("other");
                    drop(guard.unlock());
                });
                has_places(&servers, 1);
                // Without a receiver, its entry counts as dead.
                assert_soon!(
                    servers.all(|server| !channels(server).is_empty()),
                    "it is not subscribed"
                );
                thread::sleep(Duration::from_millis(5));
                assert!(held.unlock().is_ok());
                let guard = lock(&ours).lock().unwrap();
                order.lock().unwrap().push("again");
                drop(guard.unlock());
            });
            assert_eq!(order.into_inner().unwrap(), ["other", "again"], "{kind}");
            no_entry_stays(&servers);
        }
    }
}
