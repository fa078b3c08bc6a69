//! Fair locks when programs and nodes fail.

use super::*;

/// How late a thread may be.
const LATE: Duration = Duration::from_millis(300);

/// Runs something that must be done in time, up to three times: the machine may pause.
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

/// Releases what is held, when `fault` has happened, and returns how long it takes until another
/// client, which waits already, has the lock.
fn time_to_pass(
    waiter: &Redlock,
    servers: &[Server],
    before: usize,
    held: MutexGuard,
    fault: impl FnOnce(),
) -> Duration {
    let release = || {
        has_places(servers, before + 1);
        thread::sleep(Duration::from_millis(50));
        fault();
        let released = Instant::now();
        drop(held.unlock());
        released
    };
    let (guard, late) = lag(|| fair(waiter).lock().unwrap(), release);
    drop(guard.unlock());
    late
}

/// Programs that wait until they are killed, by clients of this builder. Each has its entry on all
/// servers.
fn children(number: usize, builder: &Builder, servers: &[Server]) -> Vec<Child> {
    let wait = |number| {
        let child = Child::fork(End::Vanish, |_| {
            drop(fair(&builder.clone().build().unwrap()).lock())
        });
        has_places(servers, number + 1);
        child
    };
    (0..number).map(wait).collect()
}

#[test]
fn dead_programs_in_front_cost_little() {
    alone(|| {
        // Far less than a challenge would cost.
        in_time(Duration::from_millis(300), || {
            let servers = Server::several(3).unwrap();
            let held = take(&fair(&client(&servers)));
            let builder = builder(&servers).place_lease(SOON);
            let children = children(5, &builder, &servers);
            let took = time_to_pass(&builder.build().unwrap(), &servers, 5, held, || {
                children.into_iter().for_each(Child::kill);
            });
            no_entry_stays(&servers);
            took
        });
    });
}

/// Their connections stay, and so nodes take them for alive.
#[test]
fn stopped_programs_in_front_cost_two_challenges_at_most() {
    const PLACE_LEASE: Duration = Duration::from_millis(500);
    alone(|| {
        for stopped in [1, 5] {
            in_time(PLACE_LEASE * 2 + LATE, || {
                let servers = Server::several(3).unwrap();
                let held = take(&fair(&client(&servers)));
                let builder = builder(&servers).place_lease(PLACE_LEASE);
                let children = children(stopped, &builder, &servers);
                // One that goes on once more is served before it is killed: it does not wait
                // any longer then.
                let took = time_to_pass(
                    &builder.clone().build().unwrap(),
                    &servers,
                    stopped,
                    held,
                    || {
                        children.iter().for_each(Child::stop);
                    },
                );
                children.into_iter().for_each(Child::kill);
                no_entry_stays(&servers);
                took
            });
        }
    });
}

/// It stores its ticket again, and is served as if it had not been stopped.
#[test]
fn a_program_that_was_stopped_and_goes_on_is_served() {
    const PLACE_LEASE: Duration = Duration::from_millis(200);
    alone(|| {
        let servers = Server::several(3).unwrap();
        let held = take(&fair(&client(&servers)));
        let builder = builder(&servers).place_lease(PLACE_LEASE);
        let children = children(1, &builder, &servers);
        let took = time_to_pass(&builder.build().unwrap(), &servers, 1, held, || {
            children[0].stop();
        });
        println!("behind a program that was stopped: {took:?}");
        children[0].go_on();
        children.into_iter().for_each(|child| _ = child.end(SOON));
        no_entry_stays(&servers);
    });
}

#[test]
fn a_node_that_answers_nonsense_costs_no_lock() {
    let most = u64::MAX;
    let head = "00000000000000abm:7";
    let answers = [
        format!("n 1 1 1 - - {head}"),
        format!("y {most} 4294967295 {most} - - {head}"),
        format!("y 7 1 1 - - {}", "f".repeat(10_000)),
        format!("n {most} 0 0 - - "),
        format!("n 7 {most} 900 abcdefgh - {head}"),
        format!("n 7 2 -5 abcdefgh - {head}"),
        format!("z 7 2 5 abcdefgh - {head}"),
        format!("n 7 2 5 abcdefgh {} {head}", "f".repeat(1_000)),
        "n 7 2 5".to_owned(),
        "x".repeat(100_000),
        String::new(),
    ];
    for answer in answers {
        let servers = Server::several(2).unwrap();
        let fake = Fake::on_command(move |command| match command[0].starts_with("EVAL") {
            true => vec![say(&bulk(&answer))],
            false => vec![Act::Say(healthy(command))],
        });
        let urls = || servers.iter().map(Server::url).chain([fake.url()]);
        let clients = [(); 3].map(|()| client_at(urls(), |builder| builder.max_ttl(LONG_TTL * 2)));
        thread::scope(|scope| {
            for client in &clients {
                scope.spawn(|| {
                    for _ in 0..5 {
                        drop(wait_for(&fair(client)));
                    }
                });
            }
        });
        no_entry_stays(&servers);
    }
}

/// It would have the lock of fewer nodes than a quorum again and again, and its connections make it
/// look alive.
#[test]
fn a_call_that_reaches_no_quorum_lets_others_wait_for_two_challenges_at_most() {
    let servers = Server::several(3).unwrap();
    let proxy = Proxy::before(servers[1].port());
    let holder = client(&servers);
    let next = client(&servers);
    let urls = [servers[0].url(), proxy.url(), servers[2].url()];
    // It does not give up, and knows soon that a node does not answer.
    let cut_off = client_at(urls, |builder| {
        let builder = builder.node_timeout(Duration::from_millis(100));
        builder.unavailable_after(SOON * 6)
    });
    let held = take(&fair(&holder));
    thread::scope(|scope| {
        scope.spawn(|| drop(fair(&cut_off).lock()));
        has_places(&servers, 1);
        thread::sleep(Duration::from_millis(50));
        let took = time_to_pass(&next, &servers[..2], 1, held, || {
            proxy.stall(Direction::ToServer);
            proxy.stall(Direction::ToClient);
            servers[2].pause().unwrap();
        });
        println!("behind a call that reaches one node of three: {took:?}");
        assert!(took < SOON, "{took:?}");
        servers[2].resume().unwrap();
        proxy.flow(Direction::ToServer);
        proxy.flow(Direction::ToClient);
        // Then it has its turn.
    });
}

/// Each reply is older than what lets others challenge it.
#[test]
fn a_call_that_is_far_from_its_nodes_has_its_turn() {
    for fenced in [false, true] {
        let servers = Server::several(3).unwrap();
        let proxies: Vec<Proxy> = servers.each(|server| Proxy::before(server.port()));
        proxies
            .iter()
            .for_each(|proxy| proxy.delay(Duration::from_millis(300)));
        let lock = |client: &Redlock| fenced_if(fenced, fair(client));
        let millis = Duration::from_millis;
        let far = builder_of(proxies.iter().map(Proxy::url)).node_timeout(SOON);
        let far = far.retry_delay(millis(1), millis(25));
        let far = far.place_lease(millis(100)).build().unwrap();
        let held = take(&lock(&client(&servers)));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| lock(&far).lock_timeout(SOON).unwrap());
            assert_soon!(
                servers.iter().any(|server| places(server) == 1),
                "it has no entry"
            );
            thread::sleep(millis(500));
            drop(held.unlock());
            assert!(waiting.join().unwrap().is_some(), "fenced: {fenced}");
        });
    }
}
