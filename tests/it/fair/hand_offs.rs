//! Hand-offs of fair locks that none of the waiting programs may miss: each of them would be made
//! up for only when a call asks unasked, after `place_lease`, which takes longer here than these
//! tests do.

use super::{fair, no_entry_stays, order_of, places};
use crate::clients::{SOON, client, long_lock, take, value};
use crate::support::process::eventually;
use crate::support::proxy::{Direction, Proxy};
use crate::support::queues::{channels, entries, has_entries};
use crate::support::server::Server;
use quorumlock::kind::{Any, Kind};
use quorumlock::{Mutex, Redlock};
use std::sync::{Mutex as Guarded, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// The owner token of what holds the lock.
pub(super) const TOKEN: &str = "0123456789012345678901234567890123456789";

/// A client whose calls ask in ten minutes, unless they are told.
fn patient(urls: impl IntoIterator<Item = String>) -> Redlock {
    let builder = Redlock::builder()
        .nodes(urls)
        .max_ttl(SOON * 12)
        .node_timeout(SOON / 2);
    builder.place_lease(SOON * 60).build().unwrap()
}

/// Lets a program wait until it is subscribed, and has its entry on each server, and then frees the
/// lock. Returns how long the program waits from then on.
pub(super) fn time_to_notice<K: Kind>(
    lock: fn(&Redlock) -> Mutex<K>,
    servers: &[Server],
    free: impl FnOnce() -> Instant,
) -> Duration {
    let waiter = patient(servers.iter().map(Server::url));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            lock(&waiter)
                .lock_timeout(SOON * 6)
                .unwrap()
                .is_some()
                .then(Instant::now)
        });
        let is_settled = || {
            servers
                .iter()
                .all(|server| channels(server).len() == 1 && places(server) == 1)
        };
        assert!(eventually(SOON, is_settled), "it does not wait");
        // It asks when its subscription is confirmed.
        thread::sleep(Duration::from_millis(100));
        let free_since = free();
        waiting
            .join()
            .unwrap()
            .expect("it has the lock")
            .saturating_duration_since(free_since)
    })
}

/// Each of several calls may have got one node. While that is so, the first one is refused
/// everywhere.
#[test]
fn an_attempt_that_is_undone_tells_the_first_one() {
    let servers = Server::several(3).unwrap();
    let proxies: Vec<Proxy> = servers[1..]
        .iter()
        .map(|server| Proxy::before(server.port()))
        .collect();
    let other = patient(
        [servers[0].url()]
            .into_iter()
            .chain(proxies.iter().map(Proxy::url)),
    );
    drop(other.mutex("another").lock().unwrap().unlock());
    for server in &servers[1..] {
        server
            .command(&["SET", "k", TOKEN, "PX", "600000"])
            .unwrap();
    }
    proxies
        .iter()
        .for_each(|proxy| proxy.stall(Direction::ToClient));
    thread::scope(|scope| {
        let attempt = scope.spawn(|| fair(&other).try_lock().unwrap().is_none());
        assert!(
            eventually(SOON, || value(&servers[0], "k").is_some()),
            "it has not got a node"
        );
        let took = time_to_notice(fair, &servers, || {
            for server in &servers[1..] {
                server.command(&["DEL", "k"]).unwrap();
            }
            let free_since = Instant::now();
            proxies
                .iter()
                .for_each(|proxy| proxy.flow(Direction::ToClient));
            free_since
        });
        assert!(attempt.join().unwrap() && took < SOON, "after {took:?}");
    });
    no_entry_stays(&servers);
}

/// What frees the lock without a word leaves it to the next call that waits. One that does not wait
/// tells no other.
#[test]
fn a_call_that_is_refused_because_of_another_one_tells_that() {
    for is_fenced in [false, true] {
        let servers = Server::several(3).unwrap();
        let other = client(&servers);
        let lock: fn(&Redlock) -> Mutex<Any> = if is_fenced {
            |client| fair(client).fenced().erase()
        } else {
            |client| fair(client).erase()
        };
        let (key, held) = if is_fenced {
            (super::FENCED_KEY, format!("5 9999999999999 {TOKEN}"))
        } else {
            ("k", TOKEN.to_owned())
        };
        servers.iter().for_each(|server| {
            _ = server
                .command(&["SET", key, &held, "PX", "600000"])
                .unwrap()
        });
        let took = time_to_notice(lock, &servers, || {
            servers
                .iter()
                .for_each(|server| _ = server.command(&["DEL", key]).unwrap());
            let free_since = Instant::now();
            assert!(
                lock(&other).try_lock().unwrap().is_none(),
                "another one is first"
            );
            assert!(
                lock(&other).lock_timeout(SOON).unwrap().is_some(),
                "it is behind"
            );
            free_since
        });
        assert!(took < SOON, "fenced: {is_fenced}, after {took:?}");
        no_entry_stays(&servers);
    }
}

/// A program has one place in the order, and each of its threads gets a new one when the thread
/// before it is done.
#[test]
fn a_thread_behind_another_one_of_its_program_is_behind_the_programs_that_waited_already() {
    let servers = Server::several(3).unwrap();
    let [ours, theirs] = [(); 2].map(|()| patient(servers.iter().map(Server::url)));
    let order = Guarded::new(Vec::new());
    let (release, released) = mpsc::channel::<()>();
    let held = take(&fair(&client(&servers)));
    thread::scope(|scope| {
        let order = &order;
        let ours = &ours;
        scope.spawn(move || {
            let guard = fair(ours).lock().unwrap();
            order.lock().unwrap().push("first");
            released.recv().unwrap();
            drop(guard.unlock());
        });
        has_entries(&servers, "k", 1);
        let all = [("second", ours), ("other", &theirs)].map(|(name, client)| {
            let thread = scope.spawn(move || {
                let guard = fair(client).lock().unwrap();
                order.lock().unwrap().push(name);
                drop(guard.unlock());
            });
            thread::sleep(Duration::from_millis(100));
            thread
        });
        has_entries(&servers, "k", 2);
        drop(held.unlock());
        assert!(eventually(SOON, || order.lock().unwrap().len() == 1));
        assert!(
            servers.iter().all(|server| entries(server, "k").len() == 2),
            "the holder keeps its entry"
        );
        release.send(()).unwrap();
        all.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(order.into_inner().unwrap(), ["first", "other", "second"]);
    no_entry_stays(&servers);
}

/// The next call of a program asks in its turn, although the lock is free for a moment.
#[test]
fn a_program_that_releases_and_wants_the_lock_again_is_behind_the_one_that_waits() {
    for is_fair in [true, false] {
        let servers = Server::several(3).unwrap();
        let [ours, theirs] = [(); 2].map(|()| patient(servers.iter().map(Server::url)));
        let lock = |client: &Redlock| {
            if is_fair {
                fair(client)
            } else {
                long_lock(client, "k")
            }
        };
        for _ in 0..20 {
            let held = lock(&ours).lock().unwrap();
            let order = Guarded::new(Vec::new());
            thread::scope(|scope| {
                scope.spawn(|| {
                    let guard = lock(&theirs).lock().unwrap();
                    order.lock().unwrap().push("other");
                    drop(guard.unlock());
                });
                let all: Vec<&Server> = servers.iter().collect();
                assert!(
                    eventually(SOON, || all.iter().all(|server| places(server) >= 1)),
                    "it has no entry"
                );
                thread::sleep(Duration::from_millis(5));
                assert!(held.unlock().is_ok());
                let guard = lock(&ours).lock().unwrap();
                order.lock().unwrap().push("again");
                drop(guard.unlock());
            });
            assert_eq!(
                order.into_inner().unwrap(),
                ["other", "again"],
                "fair: {is_fair}"
            );
            no_entry_stays(&servers);
        }
    }
}

/// The order is by what a quorum of nodes has stored.
#[test]
fn a_node_that_loses_its_queue_changes_no_order() {
    for lost in 0..3 {
        let servers = Server::several(3).unwrap();
        let clients: Vec<Redlock> = (0..4)
            .map(|_| patient(servers.iter().map(Server::url)))
            .collect();
        let held = take(&fair(&client(&servers)));
        let locks: Vec<Mutex> = clients.iter().map(fair).collect();
        let release = || {
            servers[lost]
                .command(&["DEL", "quorumlock-queue:k"])
                .unwrap();
            drop(held.unlock());
        };
        let all: Vec<&Server> = servers.iter().collect();
        assert_eq!(
            order_of(&locks, &all, release, |_| ()),
            [0, 1, 2, 3],
            "node {lost}"
        );
        no_entry_stays(&servers);
    }
}
