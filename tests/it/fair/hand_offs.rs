//! Hand-offs of fair locks that none of the waiting programs may miss: each of them would be made up for only when a
//! place is refreshed, which takes longer here than these tests do.

use super::{QUEUE, fair, no_place_stays, places};
use crate::clients::{SOON, calls, client, long_lock, take, value};
use crate::support::process::eventually;
use crate::support::proxy::{Direction, Proxy};
use crate::support::server::{Answer, Server};
use quorumlock::protocol::script;
use quorumlock::{CancelHandle, ErrorKind, Mutex, Redlock, Wait};
use std::sync::{Mutex as Guarded, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// The owner token of what holds the lock.
pub(super) const TOKEN: &str = "0123456789012345678901234567890123456789";

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
        server.command(&["SET", "k", TOKEN, "PX", "600000"]).unwrap();
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

/// Whether a server has so many places, and a program listens for the lock with this key there.
fn is_awaited(server: &Server, key: &str, expected: usize) -> bool {
    let subscribers = server.command(&["PUBSUB", "NUMSUB", &format!("quorumlock:{key}")]).unwrap();
    let is_one = matches!(subscribers, Answer::List(list) if matches!(list[1], Answer::Number(1)));
    is_one && places(server) == expected
}

/// Lets a program wait until it listens, with so many places on each server, its own included, and then frees the lock.
/// Gives how long the program waits from then on.
fn time_to_notice(servers: &[Server], places: usize, free: impl FnOnce()) -> Duration {
    time_to_get((fair, "k"), servers, places, free)
}

/// [`time_to_notice`], for this lock with this key.
pub(super) fn time_to_get(
    (lock, key): (fn(&Redlock) -> Mutex, &str),
    servers: &[Server],
    places: usize,
    free: impl FnOnce(),
) -> Duration {
    let waiter = patient(servers.iter().map(Server::url));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| lock(&waiter).lock_timeout(SOON * 6).unwrap().is_some().then(Instant::now));
        let is_settled = || servers.iter().all(|server| is_awaited(server, key, places));
        assert!(eventually(SOON, is_settled), "it does not wait");
        // It asks when it listens.
        thread::sleep(Duration::from_millis(100));
        let free_since = Instant::now();
        free();
        waiting.join().unwrap().expect("it has the lock").saturating_duration_since(free_since)
    })
}

/// Each of several calls may have got one node. While that is so, the first one is refused everywhere.
#[test]
fn an_attempt_that_is_undone_tells_the_first_one() {
    let servers = Server::several(3).unwrap();
    let proxies: Vec<Proxy> = servers[1..].iter().map(|server| Proxy::before(server.port())).collect();
    let other = patient([servers[0].url()].into_iter().chain(proxies.iter().map(Proxy::url)));
    drop(other.mutex("another").lock().unwrap().unlock());
    for server in &servers[1..] {
        server.command(&["SET", "k", TOKEN, "PX", "600000"]).unwrap();
    }
    proxies.iter().for_each(|proxy| proxy.stall(Direction::ToClient));
    thread::scope(|scope| {
        let attempt = scope.spawn(|| fair(&other).try_lock().unwrap().is_none());
        assert!(eventually(SOON, || value(&servers[0], "k").is_some()), "it has not got a node");
        let took = time_to_notice(&servers, 1, || {
            for server in &servers[1..] {
                server.command(&["DEL", "k"]).unwrap();
            }
            proxies.iter().for_each(|proxy| proxy.flow(Direction::ToClient));
        });
        assert!(attempt.join().unwrap() && took < SOON, "after {took:?}");
    });
}

/// Those that come at once agree on an order when the lock is free already. What is the first one then was behind when
/// it asked.
#[test]
fn a_call_that_goes_behind_another_one_tells_that() {
    let servers = Server::several(3).unwrap();
    for server in &servers {
        server.command(&["SET", "k", TOKEN, "PX", "600000"]).unwrap();
        crowd(server, 1);
    }
    let took = time_to_notice(&servers, 2, || {
        let take = ["take", "token", "1000", "0000000000000001", "9", "600000", "quorumlock:", "0"];
        let take = [&["EVAL", script::FAIR, "2", "k", QUEUE], &take[..]].concat();
        servers.iter().for_each(|server| _ = server.command(&["DEL", "k"]).unwrap());
        let said: Vec<Answer> = servers.iter().map(|server| server.command(&take).unwrap()).collect();
        // The waiter may have had the lock, and have left, before the last one says something.
        assert!(matches!(said[0], Answer::Text(_)), "it is not first any more");
    });
    assert!(took < SOON, "after {took:?}");
}

/// A plain client's release names no call. The one that is first asks, so it has to know that it is.
#[test]
fn a_call_that_gives_up_behind_a_plain_client_tells_the_next_one() {
    for nodes in [1, 3, 5] {
        let servers = Server::several(nodes).unwrap();
        let [front, next] = [(); 2].map(|()| patient(servers.iter().map(Server::url)));
        let all_have = |count| assert!(eventually(SOON, || servers.iter().all(|server| places(server) == count)));
        let cancel = CancelHandle::new();
        let held = take(&long_lock(&client(&servers), "k"));
        let took = thread::scope(|scope| {
            let front = scope.spawn(|| fair(&front).lock_with(&Wait::unlimited().cancelled_by(&cancel)).map(drop));
            all_have(1);
            let next = scope.spawn(|| fair(&next).lock_timeout(SOON * 6).unwrap().is_some().then(Instant::now));
            all_have(2);
            // It asks when it listens.
            thread::sleep(Duration::from_millis(100));
            cancel.cancel();
            assert_eq!(front.join().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
            all_have(1);
            thread::sleep(Duration::from_millis(20));
            let free_since = Instant::now();
            drop(held.unlock());
            next.join().unwrap().expect("it has the lock").saturating_duration_since(free_since)
        });
        println!("{nodes} nodes: {took:?}");
        assert!(took < SOON, "{nodes} nodes: after {took:?}");
        no_place_stays(&servers);
    }
}

/// One program has a thread that holds the lock, and one behind it; another program waits, too.
struct Scene {
    servers: Vec<Server>,
    clients: [Redlock; 2],
}

impl Scene {
    /// Lets the threads come to where they wait. The first one has the lock, and waits for a message to release it. The
    /// other program goes on at once when it has had the lock.
    fn play<T: Send>(
        &self,
        second: impl FnOnce(&Redlock) -> T + Send,
        then: impl FnOnce(&[Server]) + Send,
    ) -> (T, Vec<&'static str>) {
        let Scene { servers, clients: [ours, theirs] } = self;
        let (order, (release, released)) = (Guarded::new(Vec::new()), mpsc::channel());
        let all_have = |count| assert!(eventually(SOON, || servers.iter().all(|server| places(server) == count)));
        let held = take(&fair(&client(servers)));
        let result = thread::scope(|scope| {
            let order = &order;
            scope.spawn(move || {
                let guard = fair(ours).lock().unwrap();
                order.lock().unwrap().push("first");
                released.recv().unwrap();
                drop(guard.unlock());
            });
            all_have(1);
            let second = scope.spawn(|| {
                let result = second(ours);
                order.lock().unwrap().push("second");
                result
            });
            scope.spawn(|| {
                let guard = fair(theirs).lock().unwrap();
                order.lock().unwrap().push("other");
                drop(guard.unlock());
            });
            all_have(2);
            thread::sleep(Duration::from_millis(100));
            drop(held.unlock());
            // The thread behind has not asked yet.
            all_have(2);
            assert!(eventually(SOON, || order.lock().unwrap().len() == 1));
            then(servers);
            release.send(()).unwrap();
            second.join().unwrap()
        });
        (result, order.into_inner().unwrap())
    }
}

fn scene() -> Scene {
    let servers = Server::several(3).unwrap();
    let clients = [(); 2].map(|()| patient(servers.iter().map(Server::url)));
    Scene { servers, clients }
}

#[test]
fn a_call_that_wins_leaves_the_next_thread_a_place_and_its_subscription() {
    let scene = scene();
    let unsubscribed = || scene.servers.iter().map(|server| calls(server, "unsubscribe")).sum::<u64>();
    let (unsubscribed, order) = scene.play(
        |client| {
            let guard = fair(client).lock().unwrap();
            let unsubscribed = unsubscribed();
            drop(guard.unlock());
            unsubscribed
        },
        |servers| {
            let last = |server: &Server| value(server, QUEUE).unwrap()[16 + 47..][..15].to_owned();
            assert!(servers.iter().all(|server| last(server) == format!("{:015}", 3)), "a place of its own");
        },
    );
    assert_eq!(order, ["first", "other", "second"]);
    assert_eq!(unsubscribed, 2 * 3, "once for each program and node");
    no_place_stays(&scene.servers);
}

#[test]
fn a_place_that_is_left_to_a_thread_that_gives_up_goes() {
    let scene = scene();
    let cancel = CancelHandle::new();
    let (result, order) = scene.play(
        |client| fair(client).lock_with(&Wait::unlimited().cancelled_by(&cancel)).map(drop).unwrap_err().kind(),
        |servers| {
            cancel.cancel();
            let is_alone = || servers.iter().all(|server| is_awaited(server, "k", 1));
            assert!(eventually(SOON, is_alone), "it stays, or its subscription");
        },
    );
    assert_eq!((result, order), (ErrorKind::Cancelled, vec!["first", "second", "other"]));
    no_place_stays(&scene.servers);
}

/// The place is old by then, so the thread asks at once, and never listens.
#[test]
fn a_thread_that_has_a_place_and_gets_the_lock_at_once_ends_the_subscription() {
    let servers = Server::several(3).unwrap();
    let [ours, theirs] = [client(&servers), client(&servers)];
    let is_awaited = |places| servers.iter().all(|server| is_awaited(server, "k", places));
    let cancel = CancelHandle::new();
    let held = take(&fair(&client(&servers)));
    thread::scope(|scope| {
        let (release, released) = mpsc::channel::<()>();
        let ours = &ours;
        let first = scope.spawn(move || {
            let guard = fair(ours).lock().unwrap();
            released.recv().unwrap();
            drop(guard.unlock());
        });
        assert!(eventually(SOON, || is_awaited(1)));
        let second = scope.spawn(|| drop(fair(ours).lock().unwrap().unlock()));
        let other = scope.spawn(|| fair(&theirs).lock_with(&Wait::unlimited().cancelled_by(&cancel)).map(drop));
        assert!(eventually(SOON, || servers.iter().all(|server| places(server) == 2)));
        thread::sleep(Duration::from_millis(100));
        drop(held.unlock());
        let is_left =
            || servers.iter().all(|server| value(server, QUEUE).is_some_and(|queue| queue[..15].ends_with('3')));
        assert!(eventually(SOON, is_left), "the first thread leaves a place to the second");
        cancel.cancel();
        assert_eq!(other.join().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
        thread::sleep(Duration::from_millis(400));
        release.send(()).unwrap();
        first.join().unwrap();
        second.join().unwrap();
    });
    let channels = |server: &Server| server.command(&["PUBSUB", "CHANNELS"]).unwrap();
    let is_silent = || servers.iter().all(|server| channels(server) == Answer::List(Vec::new()));
    assert!(eventually(SOON, is_silent), "{:?}", servers.iter().map(channels).collect::<Vec<_>>());
    no_place_stays(&servers);
}
