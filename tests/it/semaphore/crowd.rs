//! Processes of many threads want one of three permits, while servers hang and die and holders are
//! killed.
//!
//! Each thread logs from when to when it relied on a permit, and of which slot. Then no four
//! overlap, no two of one slot, and no key is left.
//!
//! `QUORUMLOCK_SEMAPHORE_SECONDS` makes the run longer, and larger: eight processes of eight
//! threads.

use crate::prelude::*;
use crate::storm::{Log, Stay, Storm, Story, Worker, judge, now, number};
use quorumlock::Semaphore;

const TEST: &str = "semaphore::crowd::no_four_are_inside";
const SERVERS: usize = 5;
const PERMITS: usize = 3;
const TTL: Duration = Duration::from_secs(2);
/// A thread with less time left does not go inside.
const NEEDED: Duration = Duration::from_millis(700);

#[test]
#[allow(clippy::print_stdout)]
fn no_four_are_inside() {
    // Workers have the same environment.
    let wanted = number("QUORUMLOCK_SEMAPHORE_SECONDS");
    let (processes, threads) = if wanted.is_some() { (8, 8) } else { (3, 4) };
    if let Some(worker) = Worker::this() {
        let semaphore = semaphore(&client_of(&worker.urls));
        return worker.threads(threads, |thread| {
            let log = worker.log(thread);
            let mut random = worker.random(thread);
            while !worker.is_over() {
                go_inside(&semaphore, worker.number, &log, &mut random);
            }
        });
    }
    let seconds = wanted.unwrap_or(5);
    let mut storm = Storm::begin(TEST, Server::several(SERVERS).unwrap(), processes, seconds);
    let end = Instant::now() + Duration::from_secs(seconds);
    // One is dead for the whole run, and of the others one hangs at a time.
    storm.servers[SERVERS - 1].kill();
    while Instant::now() < end {
        let hung = storm.random.below(SERVERS as u64 - 1) as usize;
        storm.hang(&[hung], 400);
        storm.rest(800);
        // A worker that is killed leaves the permits of its threads behind.
        storm.replace_any();
    }
    let killed = storm.workers.end();
    let story = Story::read(storm.workers.directory());
    let most = judge::most_at_once(&story.done);
    println!(
        "{} times inside, {most} at once, {killed} killed, {:?}",
        story.done.len(),
        story.counts
    );
    assert!(most <= PERMITS, "{most} are inside");
    for slot in 0..PERMITS as u64 {
        let most = judge::most_at_once(story.done.iter().filter(|stay| stay.value == slot));
        assert!(most == 1, "{most} are inside by slot {slot}");
    }
    assert!(story.done.len() as u64 > seconds * 10 && most == PERMITS);
    let living = &storm.servers[..SERVERS - 1];
    let semaphore = semaphore(&client_of(storm.servers.iter().map(Server::url)));
    judge::nothing_is_left(living, || {
        _ = semaphore
            .lock_timeout(TTL)
            .unwrap()
            .map(|permit| permit.unlock().unwrap())
    });
}

fn client_of(urls: impl IntoIterator<Item = impl Into<String>>) -> Redlock {
    client_at(urls, |builder| {
        builder
            .restart_policy(RestartPolicy::Off)
            .ttl(TTL)
            .max_ttl(TTL)
    })
}

fn semaphore(client: &Redlock) -> Semaphore {
    client.semaphore("doors", PERMITS).ttl(TTL)
}

fn go_inside(semaphore: &Semaphore, process: usize, log: &Log, random: &mut Random) {
    let wanted = now();
    let permit = match semaphore.lock_timeout(Duration::from_secs(1)) {
        Ok(Some(permit)) => permit,
        Ok(None) => return log.say("timed out"),
        Err(error) if error.kind() == ErrorKind::Unavailable => return log.say("unavailable"),
        Err(error) => panic!("{error}"),
    };
    let since = now();
    if permit.ensure(NEEDED).is_err() {
        return log.say("late");
    }
    thread::sleep(random.up_to(Duration::from_millis(3)));
    let until = now();
    // A machine that stood still for longer than that shows nothing.
    if permit.ensure(Duration::ZERO).is_ok() {
        let times = [wanted, since, until];
        log.done(Stay::new(process, times, permit.slot() as u64));
    }
    match random.below(2) {
        0 => drop(permit),
        _ => drop(permit.unlock()),
    }
}
