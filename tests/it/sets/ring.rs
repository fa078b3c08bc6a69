//! Resources in a ring, and a process for each pair of neighbours, while servers hang and die.
//!
//! Under each resource a worker writes a number that nothing else protects, as in [`nemesis`](crate::nemesis). Then no
//! update of any resource is lost, no two holders overlap in time, every worker gets its share, and no key is left. Of
//! each pair, one worker in two names the resources in the opposite order; others want one resource alone, and rest in
//! between: sets wait in vain for resources that are never free together.
//!
//! `QUORUMLOCK_SETS_SECONDS` makes the run longer.

use crate::clients::SOON;
use crate::nemesis::log::{Interval, Log, Story, now};
use crate::nemesis::{Random, no_two_overlap};
use crate::support::process::eventually;
use crate::support::server::Server;
use quorumlock::{ErrorKind, Redlock, RestartPolicy};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;
use std::{fs, thread};

/// Set in worker processes: a number, whether it wants one resource alone, the directory and the nodes.
const VARIABLE: &str = "QUORUMLOCK_SETS_WORKER";
const SERVERS: usize = 5;
/// As many workers want two neighbours.
const RESOURCES: usize = 5;
const TTL: Duration = Duration::from_secs(2);
/// A holder with less time left does not write.
const NEEDED: Duration = Duration::from_millis(700);
/// Longest time that a worker which wants one resource leaves it alone.
const REST: Duration = Duration::from_millis(10);
/// When this file is there, workers end.
const STOP: &str = "stop";

#[test]
fn neighbours_in_a_ring_share_and_never_overlap() {
    run("sets::ring::neighbours_in_a_ring_share_and_never_overlap", 0);
}

#[test]
fn neighbours_in_a_ring_and_single_locks_share_and_never_overlap() {
    run("sets::ring::neighbours_in_a_ring_and_single_locks_share_and_never_overlap", RESOURCES);
}

#[allow(clippy::print_stdout)]
fn run(test: &str, singles: usize) {
    if let Ok(order) = std::env::var(VARIABLE) {
        return work(&order);
    }
    let seconds = std::env::var("QUORUMLOCK_SETS_SECONDS").ok().and_then(|value| value.parse().ok()).unwrap_or(4);
    let directory = std::env::temp_dir().join(format!("quorumlock-sets-{singles}-{}", std::process::id()));
    (0..RESOURCES).for_each(|resource| fs::create_dir_all(place(&directory, resource)).unwrap());
    let mut servers = Server::several(SERVERS).unwrap();
    let urls: Vec<String> = servers.iter().map(Server::url).collect();
    let worker = |number| start(test, number, number >= RESOURCES, &directory, &urls);
    let mut workers: Vec<_> = (0..RESOURCES + singles).map(worker).collect();

    // With the strict policy, no node of a new deployment votes before.
    thread::sleep(TTL);
    thread::sleep(Duration::from_secs(seconds) / 4);
    servers[3].pause().unwrap();
    servers[4].kill();
    thread::sleep(Duration::from_secs(seconds) * 3 / 4);
    fs::write(directory.join(STOP), "").unwrap();
    for worker in &mut workers {
        assert!(eventually(SOON * 2, || worker.try_wait().unwrap().is_some()), "a worker does not end");
        assert!(worker.wait().unwrap().success());
    }
    servers[3].resume().unwrap();

    let stories: Vec<Story> = (0..RESOURCES).map(|resource| Story::read(&place(&directory, resource))).collect();
    stories.iter().for_each(no_two_overlap);
    let taken = |number: usize| stories[number % RESOURCES].count(&format!("{number}"));
    for workers in [0..RESOURCES, RESOURCES..RESOURCES + singles] {
        let shares: Vec<usize> = workers.map(taken).collect();
        let mean = shares.iter().sum::<usize>() as f64 / RESOURCES as f64;
        let least = shares.iter().copied().min().map_or(1.0, |least| least as f64 / mean);
        println!("{shares:?}, the least {least:.2} of the mean");
        // A short run on a busy machine says little of shares.
        assert!(least >= if seconds >= 30 { 0.8 } else { 0.2 }, "{shares:?}");
    }
    // What the node that hung has run since then, the next release removes: those entries are dead.
    let client = Redlock::builder().nodes(servers[..4].iter().map(Server::url)).max_ttl(TTL).build().unwrap();
    for resource in 0..RESOURCES {
        drop(client.mutex(format!("ring/{resource}")).ttl(TTL).lock().unwrap().unlock());
    }
    for server in &servers[..4] {
        let is_empty = || server.keys().is_ok_and(|keys| keys.is_empty());
        assert!(eventually(SOON, is_empty), "{:?}", server.keys());
    }
    fs::remove_dir_all(directory).unwrap();
}

/// Where a resource has its number, and its holders write what they did.
fn place(directory: &Path, resource: usize) -> PathBuf {
    directory.join(format!("resource-{}", resource % RESOURCES))
}

fn start(test: &str, number: usize, is_single: bool, directory: &Path, urls: &[String]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, format!("{number} {is_single} {} {}", directory.display(), urls.join(" ")))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

/// What a worker process does.
fn work(order: &str) {
    // A worker does not outlive the test.
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).unwrap();
    let mut words = order.split(' ');
    let number: usize = words.next().unwrap().parse().unwrap();
    let is_single: bool = words.next().unwrap().parse().unwrap();
    let directory = PathBuf::from(words.next().unwrap());
    let client =
        Redlock::builder().nodes(words).restart_policy(RestartPolicy::Strict).ttl(TTL).max_ttl(TTL).build().unwrap();
    let mut resources = vec![number % RESOURCES, (number + 1) % RESOURCES];
    resources.truncate(if is_single { 1 } else { 2 });
    if number % 2 == 1 {
        resources.reverse();
    }
    let mutex = client.mutex_set(resources.iter().map(|resource| format!("ring/{resource}"))).ttl(TTL);
    let logs: Vec<_> = resources
        .iter()
        .map(|&resource| {
            let place = place(&directory, resource);
            (Log::open(&place, &number.to_string()), place)
        })
        .collect();
    let mut random = Random::from_seed(number as u64);
    while !directory.join(STOP).exists() {
        let guard = match mutex.lock_timeout(Duration::from_millis(500)) {
            Ok(Some(guard)) => guard,
            Ok(None) => continue,
            Err(error) if error.kind() == ErrorKind::Unavailable => continue,
            Err(error) => panic!("{error}"),
        };
        let start = now();
        if guard.ensure(NEEDED).is_err() {
            continue;
        }
        let values: Vec<u64> = logs.iter().map(|(_, place)| read(place) + 1).collect();
        thread::sleep(random.up_to(Duration::from_millis(3)));
        if guard.ensure(NEEDED / 2).is_err() {
            continue;
        }
        for ((log, place), value) in logs.iter().zip(values) {
            let new = place.join("new");
            fs::write(&new, value.to_string()).unwrap();
            fs::rename(new, place.join("counter")).unwrap();
            log.done(Interval { start, end: now(), value });
        }
        let place = place(&directory, number);
        let own = logs.iter().find(|(_, other)| *other == place);
        own.into_iter().for_each(|(log, _)| log.say(&number.to_string()));
        drop(guard);
        if is_single {
            thread::sleep(random.up_to(REST));
        }
    }
    client.flush_releases(Duration::from_millis(100)).ok();
}

fn read(place: &Path) -> u64 {
    fs::read_to_string(place.join("counter")).map_or(0, |text| text.parse().unwrap())
}
