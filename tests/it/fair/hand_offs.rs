//! Hand-offs of fair locks that none of the waiting programs may miss: each of them would be made up for only when a
//! place is refreshed, which takes longer here than these tests do.

use super::{QUEUE, fair, no_place_stays, places};
use crate::clients::{SOON, value};
use crate::support::process::eventually;
use crate::support::proxy::{Direction, Proxy};
use crate::support::server::Server;
use quorumlock::Redlock;
use std::thread;
use std::time::{Duration, Instant};

/// A client whose places are refreshed no sooner than in a quarter of ten minutes.
fn patient(urls: impl IntoIterator<Item = String>) -> Redlock {
    let builder = Redlock::builder().nodes(urls).max_ttl(SOON * 12).node_timeout(SOON / 2);
    builder.place_lease(SOON * 60).build().unwrap()
}

/// Puts as many places of others into the queue of a server.
fn crowd(server: &Server, places: usize) {
    let place = |number: usize| format!(" {number:015}:9999999999999:{number:016x}");
    let queue = format!("{places:015}") + &(1..=places).map(place).collect::<String>();
    server.command(&["SET", QUEUE, &queue]).unwrap();
}

/// A waiter whose answers are late does not take its place for what it was when the node answered.
#[test]
fn a_waiter_that_reads_late_that_many_are_in_front_asks_when_it_listens() {
    const OTHERS: usize = 1000;
    let servers = Server::several(3).unwrap();
    let proxies: Vec<Proxy> = servers.iter().map(|server| Proxy::before(server.port())).collect();
    let waiter = patient(proxies.iter().map(Proxy::url));
    drop(waiter.mutex("another").lock().unwrap().unlock());
    for server in &servers {
        server.command(&["SET", "k", "held"]).unwrap();
        crowd(server, OTHERS);
    }
    thread::scope(|scope| {
        proxies.iter().for_each(|proxy| proxy.stall(Direction::ToClient));
        let waiting = scope.spawn(|| fair(&waiter).lock_timeout(SOON * 6).unwrap().is_some().then(Instant::now));
        assert!(eventually(SOON, || servers.iter().all(|server| places(server) == OTHERS + 1)), "it has no place");
        // All the others have had the lock, before the waiter listens.
        for server in &servers {
            let queue = value(server, QUEUE).unwrap();
            server.command(&["SET", QUEUE, &(queue[..15].to_owned() + &queue[queue.len() - 47..])]).unwrap();
            server.command(&["DEL", "k"]).unwrap();
        }
        thread::sleep(Duration::from_millis(300));
        let free_since = Instant::now();
        proxies.iter().for_each(|proxy| proxy.flow(Direction::ToClient));
        let had = waiting.join().unwrap().expect("it has the lock");
        assert!(had - free_since < SOON, "after {:?}", had - free_since);
    });
    no_place_stays(&servers);
}
