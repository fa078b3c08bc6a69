//! Resources in a ring, and a process for each pair of neighbours, while servers hang and die.
//!
//! Under each resource a worker writes a number that nothing else protects. Then no update of any
//! resource is lost, no two holders overlap in time, every worker gets its share, and no key is
//! left. Of each pair, one worker in two names the resources in the opposite order; others want one
//! resource alone, and rest in between: sets wait in vain for resources that are never free
//! together.
//!
//! `QUORUMLOCK_SETS_SECONDS` makes the run longer.

use crate::prelude::*;
use crate::storm::{Counter, Stay, Storm, Story, Worker, got, judge, now, number};

const SERVERS: usize = 5;
/// As many workers want two neighbours. Those behind them want one resource alone.
const RESOURCES: usize = 5;
const TTL: Duration = Duration::from_secs(2);
/// A holder with less time left does not write.
const NEEDED: Duration = Duration::from_millis(700);
/// Longest time that a worker which wants one resource leaves it alone.
const REST: Duration = Duration::from_millis(10);

#[test]
fn neighbours_in_a_ring_share_and_never_overlap() {
    run(
        "sets::ring::neighbours_in_a_ring_share_and_never_overlap",
        0,
    );
}

#[test]
fn neighbours_in_a_ring_and_single_locks_share_and_never_overlap() {
    run(
        "sets::ring::neighbours_in_a_ring_and_single_locks_share_and_never_overlap",
        RESOURCES,
    );
}

#[allow(clippy::print_stdout)]
fn run(test: &'static str, singles: usize) {
    if let Some(worker) = Worker::this() {
        return work(&worker);
    }
    let seconds = number("QUORUMLOCK_SETS_SECONDS").unwrap_or(3);
    let mut storm = Storm::begin(
        test,
        Server::several(SERVERS).unwrap(),
        RESOURCES + singles,
        seconds,
    );
    // With the strict policy, no node of a new deployment votes before.
    thread::sleep(TTL);
    thread::sleep(Duration::from_secs(seconds) / 4);
    storm.servers[3].pause().unwrap();
    storm.servers[4].kill();
    thread::sleep(Duration::from_secs(seconds) * 3 / 4);
    storm.workers.end();
    storm.servers[3].resume().unwrap();

    let directories = (0..RESOURCES).map(|resource| place(storm.workers.directory(), resource));
    let stories = directories.map(|directory| {
        let story = Story::read(&directory);
        judge::no_update_is_lost(&story, Counter::of(&directory).read(), 0);
        story
    });
    let stories: Vec<Story> = stories.collect();
    let taken = |number: usize| {
        stories[number % RESOURCES]
            .done
            .iter()
            .filter(|stay| stay.process == number)
            .count()
    };
    for workers in [0..RESOURCES, RESOURCES..RESOURCES + singles] {
        let shares: Vec<usize> = workers.map(taken).collect();
        let mean = shares.iter().sum::<usize>() as f64 / RESOURCES as f64;
        let least = shares.iter().min();
        let least = least.map_or(1.0, |&least| least as f64 / mean);
        println!("{shares:?}, the least {least:.2} of the mean");
        // A short run on a busy machine shows little of shares.
        assert!(least >= if seconds >= 30 { 0.8 } else { 0.2 }, "{shares:?}");
    }
    let living = &storm.servers[..4];
    let client = client_at(living.iter().map(Server::url), |builder| {
        builder.max_ttl(TTL)
    });
    judge::nothing_is_left(living, || {
        for resource in 0..RESOURCES {
            drop(
                client
                    .mutex(name(resource))
                    .ttl(TTL)
                    .lock()
                    .unwrap()
                    .unlock(),
            );
        }
    });
}

fn name(resource: usize) -> String {
    format!("ring/{resource}")
}

/// Where a resource has its number, and its holders write what they did.
fn place(directory: &Path, resource: usize) -> PathBuf {
    directory.join(format!("resource-{resource}"))
}

/// What a worker process does.
fn work(worker: &Worker) {
    let client = worker.strict(TTL).build().unwrap();
    let number = worker.number;
    let is_single = number >= RESOURCES;
    let mut resources = vec![number % RESOURCES, (number + 1) % RESOURCES];
    resources.truncate(if is_single { 1 } else { 2 });
    if number % 2 == 1 {
        resources.reverse();
    }
    let mutex = client
        .mutex_set(resources.iter().copied().map(name))
        .ttl(TTL);
    let places = resources.iter().map(|&resource| {
        let place = place(&worker.directory, resource);
        (worker.log_in(&place, 0), Counter::of(&place))
    });
    let places: Vec<_> = places.collect();
    let mut random = worker.random(0);
    while !worker.is_over() {
        let wanted = now();
        let Some(guard) = got(mutex.lock_timeout(Duration::from_millis(500))) else {
            continue;
        };
        let since = now();
        if guard.ensure(NEEDED).is_err() {
            continue;
        }
        let values: Vec<u64> = places
            .iter()
            .map(|(_, counter)| counter.read() + 1)
            .collect();
        thread::sleep(random.up_to(Duration::from_millis(3)));
        if guard.ensure(NEEDED / 2).is_err() {
            continue;
        }
        for ((log, counter), value) in places.iter().zip(values) {
            counter.write(value);
            log.done(Stay::new(number, [wanted, since, now()], value));
        }
        drop(guard);
        if is_single {
            thread::sleep(random.up_to(REST));
        }
    }
    client.flush_releases(Duration::from_millis(100)).ok();
}
