//! The numbers of writers on real servers: what they cost, and how they are handed over.
//!
//! [`scripts`] is about the number in the key. [`fencing`](crate::fencing) has nodes that differ,
//! fail or lose their data, for writers as well.

mod scripts;

use super::*;
use crate::support::sides::FencedSides;
use quorumlock::FencedRwWriteGuard;
use quorumlock::kind::{Read, Write};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const HOUR: u64 = 3_600_000_000;

fn fenced(client: &Redlock) -> FencedSides {
    long(client).fenced()
}

#[track_caller]
fn number(mutex: &FencedSides) -> FencedRwWriteGuard {
    wait_for(&mutex.write)
}

/// The number that a node has, and until when it is kept.
fn stored(server: &Server) -> Option<(u64, u64)> {
    let value = value(server, KEY)?;
    let mut words = value.split(' ');
    let is_number = words.next() == Some("f");
    let mut next = || words.next()?.parse().ok();
    is_number.then_some((next()?, next()?))
}

/// Whether a node has a number and no entries.
fn is_free(server: &Server) -> bool {
    value(server, KEY).is_none_or(|value| value.starts_with("f ") && value.split(' ').count() == 3)
}

fn set(server: &Server, text: &str) {
    ok(server, &["SET", KEY, text]);
}

#[test]
fn a_pair_takes_one_round_trip_each_way() {
    let servers = Server::several(3).unwrap();
    let mutex = fenced(&client(&servers));
    drop(mutex.write.lock().unwrap());
    // One of these stores the note that each node of a new deployment gets.
    assert_soon!(servers.all(|server| scripts_run(server) == 3));
    for _ in 0..20 {
        unlock(wait_for(&mutex.write));
        assert_soon!(servers.all(is_free));
    }
    assert_soon!(servers.all(|server| scripts_run(server) == 43));
}

#[test]
fn a_writer_changes_hands_with_its_number() {
    let (_servers, [mine, theirs]) = programs(3);
    let guard = number(&fenced(&mine));
    let last = guard.fence();
    let lease = guard.detach().unwrap();
    assert_eq!((lease.key(), lease.fence()), (KEY, last));
    let text = lease.into_text();
    assert!(text.expose().starts_with("quorumlock-lease:9:"));
    let refusals = [
        text.expose().parse::<Lease<Write>>().map(drop),
        text.expose().parse::<Lease<Read>>().map(drop),
        text.expose().parse::<Lease<Fenced>>().map(drop),
        text.expose().parse::<Lease>().map(drop),
        theirs
            .write_mutex("other")
            .fenced()
            .attach(text.expose().parse().unwrap())
            .map(drop),
    ];
    assert!(refusals.iter().all(|refused| {
        refused
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::Config)
    }));
    let guard = fenced(&theirs)
        .write
        .attach(text.expose().parse().unwrap())
        .unwrap();
    assert_eq!((guard.fence(), guard.name()), (last, "k"));
    extend(&guard, LONG_TTL * 2);
    // A reader has no number, and neither has its lease.
    let lease = guard
        .downgrade()
        .unwrap()
        .detach()
        .expect("no other thread shares it");
    let reader = long(&mine).read.attach(lease).unwrap();
    unlock(reader);
    assert!(number(&fenced(&mine)).fence() > last);
    // One without a number is no lease for guards that have one.
    let plain = wait_for(&long(&mine).write).detach().unwrap().into_text();
    fails(
        plain.expose().parse::<Lease<Fenced<Write>>>(),
        ErrorKind::Config,
    );
}
