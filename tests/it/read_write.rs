//! Read-write locks on real servers: which entries exclude which, when they end, and how they are
//! handed over.
//!
//! [`waiting`] is about writers that wait, [`downgrades`] about writers that become readers,
//! [`scripts`] about the script and its errors, [`fenced`] about the numbers of writers,
//! [`sharing`] about threads that share a lease, [`under_faults`] about processes while everything
//! breaks. [`as_embedded`] compares real servers with the embedded node.

pub(crate) mod as_embedded;
mod downgrades;
mod fenced;
mod scripts;
mod sharing;
mod under_faults;
mod waiting;

use crate::prelude::*;
use quorumlock::RwWriteGuard;
use quorumlock::kind::{Read, Write};

const KEY: &str = "quorumlock-rw:k";
const TTL: Duration = Duration::from_secs(1);
/// Long enough for anything that follows at once, on a machine that pauses for a moment.
const AT_ONCE: Duration = Duration::from_secs(1);

pub(crate) fn long(client: &Redlock) -> Sides {
    Sides::of(client, "k").ttl(LONG_TTL)
}

/// Three servers, and the lock of two programs.
fn two_programs() -> (Vec<Server>, [Sides; 2]) {
    let (servers, clients) = programs(3);
    (servers, clients.map(|client: Redlock| long(&client)))
}

#[track_caller]
fn read(mutex: &Sides) -> RwReadGuard {
    take(&mutex.read)
}

#[track_caller]
fn write(mutex: &Sides) -> RwWriteGuard {
    take(&mutex.write)
}

#[track_caller]
fn can_read(mutex: &Sides) -> bool {
    !is_held(&mutex.read)
}

#[track_caller]
fn can_write(mutex: &Sides) -> bool {
    !is_held(&mutex.write)
}

/// How many entries a key has, and of which kind they are.
fn entries(server: &Server) -> (char, usize) {
    let value = value(server, KEY).unwrap_or_default();
    let words = value
        .split(' ')
        .skip(if value.starts_with("f ") { 3 } else { 0 });
    let words: Vec<&str> = words.take_while(|word| *word != "q").collect();
    match words.first() {
        Some(&"w") => ('w', 1),
        Some(&"r") => ('r', words.len() - 1),
        _ => ('-', 0),
    }
}

/// Whether a writer waits.
fn is_marked(server: &Server) -> bool {
    queues::entries(server, KEY)
        .iter()
        .any(|entry| entry[16..].starts_with('w'))
}

/// Runs the script, as another program would.
fn ask(server: &Server, words: &[&str]) -> Answer {
    let words = [&["EVAL", kinds::read_write::SCRIPT.text, "1", KEY], words].concat();
    server.command(&words).unwrap()
}

#[test]
fn readers_share_the_lock_and_a_writer_has_it_alone() {
    let (servers, [one, other]) = two_programs();
    let first = read(&one);
    let second = read(&other);
    assert_soon!(servers.all(|server| entries(server) == ('r', 2)));
    assert!(!can_write(&one) && !can_write(&other));
    unlock(first);
    assert!(!can_write(&one));
    drop(second);
    // A node that ran that too late would be without the writer.
    assert_soon!(servers.all(|server| entries(server).1 == 0));
    assert!(can_write(&one));
    let guard = wait_for(&one.write);
    assert_soon!(servers.all(|server| entries(server) == ('w', 1)));
    assert!(!can_read(&one) && !can_read(&other) && !can_write(&other) && !can_write(&one));
    unlock(guard);
    gone_for_good(&servers, KEY);
}

#[test]
fn a_reader_that_has_gone_costs_its_own_time_and_no_more() {
    let (_servers, [dead, alive, writer]) = programs(3);
    let writer = Sides::of(&writer, "k").ttl(TTL);
    let is_early = |begun: Instant| begun.elapsed() < TTL * 98 / 100;
    let crash = || {
        let begun = Instant::now();
        // Its program crashes.
        drop(wait_for(&dead.read_mutex("k").ttl(TTL)).detach().unwrap());
        let guard = wait_for(&long(&alive).read);
        extend(&guard, LONG_TTL * 2);
        drop(guard);
        // An extension and an end of another reader change nothing about it: neither more nor less.
        assert!(!can_write(&writer) || !is_early(begun));
        begun
    };
    promptly_from(TTL * 2, crash, |begun| {
        drop(wait_for(&writer.write));
        assert!(!is_early(begun), "{:?}", begun.elapsed());
    });
}

#[test]
fn a_lease_of_a_reader_or_a_writer_goes_on_elsewhere() {
    let (_servers, [one, other]) = programs(3);
    let text = write(&long(&one)).detach().unwrap().into_text();
    fails(text.expose().parse::<Lease>(), ErrorKind::Config);
    fails(text.expose().parse::<Lease<Read>>(), ErrorKind::Config);
    let guard = long(&other)
        .write
        .attach(text.expose().parse().unwrap())
        .unwrap();
    assert!(!can_read(&long(&one)));
    unlock(guard);
    let text = read(&long(&one)).detach().unwrap().into_text();
    fails(text.expose().parse::<Lease<Write>>(), ErrorKind::Config);
    // A client attaches it without the name.
    let guard = other
        .attach(text.expose().parse::<Lease<Read>>().unwrap())
        .unwrap();
    assert!(!can_write(&long(&one)) && can_read(&long(&one)));
    unlock(guard);
    assert_soon!(can_write(&long(&one)));
}

#[test]
fn a_watched_reader_is_extended_and_reports_its_loss() {
    let (mut servers, [one, other]) = programs(3);
    let mutex = Sides::of(&one, "k").ttl(TTL).watchdog(Watchdog::new());
    let guard = mutex.read.lock().unwrap();
    let lost = guard.lost().unwrap();
    servers[0].kill();
    let until = Instant::now() + TTL * 2;
    while Instant::now() < until && lost.is_empty() {
        assert!(!can_write(&Sides::of(&other, "k").ttl(TTL)) || guard.remaining().is_zero());
        thread::sleep(Duration::from_millis(20));
    }
    servers[1].kill();
    assert!(lost.recv_timeout(SOON).is_ok());
    assert!(guard.ensure(Duration::ZERO).is_err());
}

#[test]
fn a_plain_lock_does_not_get_into_its_keys() {
    let (_servers, client) = deployment(1);
    let error = client.mutex(KEY).try_lock().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    shows(&error, "read-write");
    assert_eq!(
        (long(&client).read.name(), long(&client).write.name()),
        ("k", "k")
    );
    let plain = client.mutex("k").try_lock().unwrap();
    let guard = write(&long(&client));
    assert!(plain.is_some(), "another lock");
    drop(guard);
    let no_time = Wait::timeout(Duration::ZERO);
    assert_soon!(long(&client).write.lock_with(&no_time).unwrap().is_some());
}
