//! Fair locks when programs and nodes fail.

use super::hand_offs::TOKEN;
use super::{FENCED_QUEUE, QUEUE, fair, no_place_stays, order, order_of, places};
use crate::clients::{LONG_TTL, SOON, builder, client, long_lock, take};
use crate::support::child::{Child, End};
use crate::support::fake::{Act, Fake, healthy};
use crate::support::process::{alone, eventually};
use crate::support::proxy::{Direction, Proxy};
use crate::support::server::{Answer, Server};
use quorumlock::protocol::script;
use quorumlock::{Mutex, Redlock};
use std::thread;
use std::time::{Duration, Instant};

/// Runs something that must be done in time, up to three times: the machine may stand still.
#[track_caller]
pub(super) fn in_time(limit: Duration, mut action: impl FnMut() -> Duration) {
    let mut taken = Vec::new();
    while taken.len() < 3 {
        taken.push(action());
        if taken.last().is_some_and(|took| *took <= limit) {
            println!("took {taken:?}");
            return;
        }
    }
    panic!("not within {limit:?}: {taken:?}");
}

/// Releases what is held, and gives how long it takes until another client, which waits already, has the lock.
fn time_to_pass(waiter: &Redlock, servers: &[&Server], before: usize, release: impl FnOnce() -> Instant) -> Duration {
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let guard = fair(waiter).lock().unwrap();
            let at = Instant::now();
            drop(guard.unlock());
            at
        });
        assert!(eventually(SOON, || servers.iter().all(|server| places(server) == before + 1)), "it has no place");
        thread::sleep(Duration::from_millis(50));
        let released = release();
        waiting.join().unwrap().saturating_duration_since(released)
    })
}

#[test]
fn dead_programs_in_front_cost_the_lease_of_a_place_once() {
    alone("fair::faults::dead_programs_in_front_cost_the_lease_of_a_place_once", || {
        in_time(Duration::from_millis(1200), || {
            let servers = Server::several(3).unwrap();
            let all: Vec<&Server> = servers.iter().collect();
            let held = take(&fair(&client(&servers)));
            let builder = builder(&servers);
            let wait = || Child::fork(End::Vanish, |_| drop(fair(&builder.clone().build().unwrap()).lock()));
            let children: Vec<Child> = (0..5).map(|_| wait()).collect();
            assert!(eventually(SOON, || all.iter().all(|server| places(server) == 5)), "they have no places");
            let took = time_to_pass(&client(&servers), &all, 5, || {
                children.into_iter().for_each(Child::kill);
                let released = Instant::now();
                drop(held.unlock());
                released
            });
            no_place_stays(&servers);
            took
        });
    });
}

#[test]
fn the_order_stays_with_a_hung_node_and_one_that_comes_back_empty() {
    let mut servers = Server::several(5).unwrap();
    let clients: Vec<Redlock> = (0..5).map(|_| builder(&servers).place_lease(SOON).build().unwrap()).collect();
    let held = take(&long_lock(&client(&servers), "k"));
    servers[3].pause().unwrap();
    let (healthy, rest) = servers.split_at_mut(3);
    let all: Vec<&Server> = healthy.iter().collect();
    let order = order(&clients, &all, || {
        rest[1].restart().unwrap();
        drop(held.unlock());
    });
    assert_eq!(order, [0, 1, 2, 3, 4]);
    servers[3].resume().unwrap();
    no_place_stays(&servers);
}

#[test]
fn without_notifications_the_order_is_the_same_and_the_next_one_notices_in_a_third_of_the_lease() {
    let servers = Server::several(3).unwrap();
    let all: Vec<&Server> = servers.iter().collect();
    let deaf = || builder(&servers).release_notifications(false).build().unwrap();
    let clients: Vec<Redlock> = (0..4).map(|_| deaf()).collect();
    let held = take(&fair(&client(&servers)));
    assert_eq!(order(&clients, &all, || drop(held.unlock())), [0, 1, 2, 3]);
    in_time(Duration::from_millis(1000 / 3), || {
        let held = take(&fair(&client(&servers)));
        time_to_pass(&clients[0], &all, 0, || {
            let released = Instant::now();
            drop(held.unlock());
            released
        })
    });
}

/// The greatest ticket that a queue has room for: one more would be a digit longer, on all nodes.
#[test]
fn a_node_with_the_greatest_ticket_costs_no_lock() {
    for fenced in [false, true] {
        let servers = Server::several(3).unwrap();
        let lock = |client: &Redlock| if fenced { fair(client).fenced().into() } else { fair(client) };
        let queue = if fenced { FENCED_QUEUE } else { QUEUE };
        let clients: Vec<Redlock> = (0..3).map(|_| builder(&servers).place_lease(SOON).build().unwrap()).collect();
        let locks: Vec<Mutex> = clients.iter().map(lock).collect();
        let held = take(&lock(&client(&servers)));
        let damaged = format!("{} {}:{:013}:{:016x}", "9".repeat(15), "9".repeat(15), 0, 0xab);
        servers[0].command(&["SET", queue, &damaged, "PX", "60000"]).unwrap();
        let all: Vec<&Server> = servers.iter().collect();
        let mut order = order_of(&locks, &all, || drop(held.unlock()), |_| ());
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2]);
        no_place_stays(&servers);
    }
}

#[test]
fn a_node_that_answers_nonsense_costs_no_lock() {
    let (most, id) = (u64::MAX, "00000000000000ab");
    let answers = [
        format!("0 1 1 0 {id}"),
        format!("{most} 999999999999999 4294967295 {most} {id}"),
        format!("-1 7 1 {most} {id}"),
        format!("0 {most} 1 0 {id}"),
        format!("250 7 {most} 900 {id}"),
        format!("250 7 2 -5 {id}"),
        format!("250 7 0 900 {}", "f".repeat(10_000)),
        "x".repeat(100_000),
        String::new(),
    ];
    for answer in answers {
        let servers = Server::several(2).unwrap();
        let bulk = format!("${}\r\n{answer}\r\n", answer.len());
        let fake = Fake::on_command(move |command| match command[0].starts_with("EVAL") {
            true => vec![Act::Say(bulk.clone().into_bytes())],
            false => vec![Act::Say(healthy(command))],
        });
        let urls = || servers.iter().map(Server::url).chain([fake.url()]);
        let clients = [(); 3].map(|()| Redlock::builder().nodes(urls()).max_ttl(LONG_TTL * 2).build().unwrap());
        thread::scope(|scope| {
            for client in &clients {
                scope.spawn(|| {
                    for _ in 0..5 {
                        drop(fair(client).lock_timeout(SOON).unwrap().expect("two nodes are well"));
                    }
                });
            }
        });
        no_place_stays(&servers);
    }
}

/// The key of a call that reaches too few nodes would be refreshed for ever where it can be, and no other call could
/// win where one more node is gone.
#[test]
fn a_call_that_reaches_no_quorum_gives_up_its_place() {
    let servers = Server::several(3).unwrap();
    let proxy = Proxy::before(servers[1].port());
    let (holder, next) = (client(&servers), client(&servers));
    let urls = [servers[0].url(), proxy.url(), servers[2].url()];
    // It does not give up, and knows soon that a node does not answer.
    let cut_off = Redlock::builder().nodes(urls).node_timeout(Duration::from_millis(100)).unavailable_after(SOON * 6);
    let cut_off = cut_off.build().unwrap();
    let held = take(&fair(&holder));
    let all: Vec<&Server> = servers.iter().collect();
    thread::scope(|scope| {
        scope.spawn(|| drop(fair(&cut_off).lock()));
        assert!(eventually(SOON, || all.iter().all(|server| places(server) == 1)), "it has no place");
        thread::sleep(Duration::from_millis(50));
        let took = time_to_pass(&next, &all[..2], 1, || {
            proxy.stall(Direction::ToServer);
            servers[2].pause().unwrap();
            let released = Instant::now();
            drop(held.unlock());
            released
        });
        println!("behind a call that reaches one node of three: {took:?}");
        servers[2].resume().unwrap();
        proxy.flow(Direction::ToServer);
        // Then it has its turn.
    });
}

#[test]
fn a_queue_of_256_is_small() {
    let server = Server::start().unwrap();
    let fenced_key = ("quorumlock-fence:k", FENCED_QUEUE, script::FENCED_FAIR);
    let held = format!("5 9999999999999 {}", "cd".repeat(20));
    for ((key, queue, script), held) in [(("k", QUEUE, script::FAIR), "held"), (fenced_key, &held)] {
        server.command(&["SET", key, held]).unwrap();
        let take = |number: usize, ticket: &str| {
            let id = format!("{number:016x}");
            let mut words = vec!["EVAL", script, "2", key, queue, "take", "token", "1000", &id, ticket, "600000"];
            words.extend(["", "", "86400000", "1"]);
            let Answer::Text(place) = server.command(&words).unwrap() else { panic!() };
            place.split(' ').skip(1).take(2).map(|field| field.parse().unwrap()).collect::<Vec<usize>>()
        };
        for number in 1..=256 {
            assert_eq!(take(number, "0"), [number, number]);
        }
        assert!(matches!(server.command(&["STRLEN", queue]).unwrap(), Answer::Number(..=16_384)));
        server.command(&["CONFIG", "RESETSTAT"]).unwrap();
        for number in 1..=256 {
            assert_eq!(take(number, &number.to_string()), [number, number]);
        }
        let Answer::Text(statistics) = server.command(&["INFO", "commandstats"]).unwrap() else { panic!() };
        let line = statistics.lines().find(|line| line.starts_with("cmdstat_eval:")).unwrap();
        println!("takes in a queue of 256 beside {key}: {line}");
    }
}

/// A node that is free grants, and notes no place. Without one there, the order would hang on those that are left.
#[test]
fn a_call_that_waits_has_its_place_on_nodes_that_were_free_as_well() {
    let servers = Server::several(5).unwrap();
    let waiter = builder(&servers).place_lease(SOON * 60).build().unwrap();
    servers[..3].iter().for_each(|server| _ = server.command(&["SET", "k", TOKEN, "PX", "600000"]).unwrap());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| fair(&waiter).lock_timeout(SOON * 6).unwrap());
        assert!(eventually(SOON, || servers.iter().all(|server| places(server) == 1)), "it has no place on each");
        servers[..3].iter().for_each(|server| _ = server.command(&["DEL", "k"]).unwrap());
        let next = client(&servers);
        assert!(fair(&next).try_lock().unwrap().is_none(), "another one is first, or has it");
        servers[..3].iter().for_each(|server| _ = server.command(&["PUBLISH", "quorumlock:k", "0"]).unwrap());
        assert!(waiting.join().unwrap().is_some(), "it has the lock");
    });
    no_place_stays(&servers);
}

/// A lock that nothing else uses, for as long as a test lasts.
#[test]
fn a_holder_that_dies_is_followed_when_its_lock_ends() {
    let servers = Server::several(3).unwrap();
    let short = |client: &Redlock| -> Mutex { client.mutex("k").ttl(Duration::from_secs(1)).fair() };
    in_time(Duration::from_millis(1300), || {
        let held = take(&short(&client(&servers)));
        let begun = Instant::now();
        // Detached, it is never released.
        drop(held.detach());
        let guard = short(&client(&servers)).lock().unwrap();
        drop(guard.unlock());
        begun.elapsed()
    });
    no_place_stays(&servers);
}

/// A place that lapses before the call can ask again would never be granted: that takes exactly its ticket.
#[test]
fn a_call_that_is_far_from_its_nodes_has_its_turn() {
    for fenced in [false, true] {
        let servers = Server::several(3).unwrap();
        let proxies: Vec<Proxy> = servers.iter().map(|server| Proxy::before(server.port())).collect();
        proxies.iter().for_each(|proxy| proxy.delay(Duration::from_millis(300)));
        let lock = |client: &Redlock| if fenced { fair(client).fenced().into() } else { fair(client) };
        let millis = Duration::from_millis;
        let far = Redlock::builder().nodes(proxies.iter().map(Proxy::url)).max_ttl(LONG_TTL * 2).node_timeout(SOON);
        let far = far.retry_delay(millis(1), millis(25)).place_lease(millis(100)).build().unwrap();
        let held = take(&lock(&client(&servers)));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| lock(&far).lock_timeout(SOON).unwrap());
            assert!(eventually(SOON, || servers.iter().any(|server| places(server) == 1)), "it has no place");
            thread::sleep(millis(500));
            drop(held.unlock());
            assert!(waiting.join().unwrap().is_some(), "fenced: {fenced}");
        });
    }
}
