//! Permits: at most k are held at once, what finding one costs, and which thread gets one that is
//! released.

mod crowd;
mod faults;
mod passing;

use crate::handing_over::copied;
use crate::prelude::*;
use quorumlock::{Permit, Semaphore};

const NAME: &str = "permits";

fn semaphore(client: &Redlock, permits: usize) -> Semaphore {
    client.semaphore(NAME, permits).ttl(LONG_TTL)
}

fn slots(permits: &[Permit]) -> Vec<usize> {
    let mut slots: Vec<usize> = permits.iter().map(Permit::slot).collect();
    slots.sort_unstable();
    slots
}

/// How many permits are out, by the keys on the first server.
fn out(server: &Server) -> usize {
    server.keys().unwrap().len()
}

#[test]
fn permits_are_slots_and_a_slot_is_an_ordinary_lock() {
    let (servers, [mine, theirs]) = programs(3);
    let here = semaphore(&mine, 3);
    let there = semaphore(&theirs, 3);
    assert_eq!((here.name(), here.permits()), (NAME, 3));
    let mut permits = vec![take(&here), take(&there), take(&here)];
    assert_eq!(slots(&permits), [0, 1, 2]);
    assert!(is_held(&here) && is_held(&there));
    for permit in &permits {
        let key = format!("{NAME}#{}", permit.slot());
        assert_eq!(permit.name(), key);
        // On a majority: an attempt of the other client may have kept it from the third node.
        let has_key = |server: &&Server| value(server, &key).is_some();
        assert!(servers.iter().filter(has_key).count() >= 2, "{key}");
        assert!(is_held(&long_lock(&mine, &key)));
    }
    assert!(servers.all(|server| value(server, NAME).is_none()));
    // The permit that one client releases, the other one gets.
    let freed = permits.remove(1);
    let slot = freed.slot();
    unlock(freed);
    permits.push(take(&here));
    assert_eq!(permits[2].slot(), slot);
    // A plain lock of a slot is a permit less.
    drop(permits);
    let lock = long_lock(&theirs, &format!("{NAME}#1")).lock().unwrap();
    assert_eq!(slots(&[take(&here), take(&here)]), [0, 2]);
    let both = [take(&here), take(&here)];
    assert!(is_held(&here));
    drop((lock, both));
    (0..3).for_each(|slot| gone_for_good(&servers, &format!("{NAME}#{slot}")));
}

#[test]
fn a_number_of_permits_or_a_name_that_cannot_be_used_is_refused() {
    let (servers, client) = deployment(1);
    for permits in [0, 257, usize::MAX] {
        let error = client.semaphore(NAME, permits).try_lock().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        shows(&error, "it must have 1 to 256");
    }
    fails(client.semaphore("", 1).lock(), ErrorKind::Config);
    let too_long = client.semaphore(NAME, 1).ttl(LONG_TTL * 9);
    fails(too_long.lock(), ErrorKind::Config);
    assert_eq!(calls(&servers[0], "set"), 0);
    let all = client.semaphore(NAME, 256);
    let permits: Vec<Permit> = (0..256).map(|_| take(&all)).collect();
    assert_eq!(slots(&permits), (0..256).collect::<Vec<_>>());
    assert!(is_held(&all));
}

#[test]
fn of_different_numbers_the_largest_counts() {
    let (_servers, [mine, theirs]) = programs(3);
    let few = semaphore(&mine, 2);
    let many = semaphore(&theirs, 3);
    let mut permits: Vec<Permit> = (0..2).map(|_| take(&few)).collect();
    assert!(is_held(&few));
    permits.push(take(&many));
    assert!(is_held(&many) && is_held(&semaphore(&mine, 3)));
    assert_eq!(slots(&permits), [0, 1, 2]);
    // What those that know of more hold is not given out among fewer.
    permits.retain(|permit| permit.slot() == 2);
    assert_eq!((take(&few).slot() < 2, slots(&permits)), (true, vec![2]));
    permits.extend([take(&few), take(&many)]);
    assert!(is_held(&few) && is_held(&many));
}

#[test]
fn an_uncrowded_permit_takes_one_round_trip_and_a_crowded_one_three_at_most() {
    let servers = Server::several(3).unwrap();
    let trips = Seen::nothing();
    let pick = picked!(Event::Acquired { round_trips, .. } => *round_trips);
    let mine = client_with(&servers, |builder| builder.observer(trips.by(pick)));
    let here = semaphore(&mine, 8);
    let all = || ["set", "pttl", "getrange"].map(|command| calls(&servers[0], command));
    // Whatever this client holds itself is no crowd.
    let held: Vec<Permit> = (0..8).map(|_| take(&here)).collect();
    drop(held);
    for _ in 0..8 {
        unlock(take(&here));
    }
    // One SET is the note that each node of a new deployment gets. A quorum does not wait for the
    // other node.
    assert_soon!(all() == [17, 0, 0], "{:?}", all());
    assert_eq!(trips.all(), [1; 16]);
    assert_soon!(out(&servers[0]) == 0);

    // Others hold all but one, and this client knows nothing of them: seven times of eight it finds
    // out by asking, and the reply names the free slot.
    trips.forget();
    for round in 0..12 {
        let theirs = client(&servers);
        let mut others: Vec<Permit> = (0..8).map(|_| take(&semaphore(&theirs, 8))).collect();
        let left = others.swap_remove(round % 8);
        let slot = left.slot();
        unlock(left);
        let permit = take(&here);
        assert_eq!(permit.slot(), slot);
        unlock(permit);
        drop(others);
        theirs.flush_releases(SOON).unwrap();
    }
    let trips = trips.all();
    assert!(
        trips.len() == 12
            && trips.iter().all(|trips| (1..=3).contains(trips))
            && trips.contains(&3),
        "{trips:?}"
    );
}

#[test]
fn a_call_without_time_to_wait_finds_the_free_slot_as_an_attempt_does() {
    let (servers, theirs) = deployment(3);
    let there = semaphore(&theirs, 32);
    let _held: Vec<Permit> = (0..31).map(|_| take(&there)).collect();
    type Call = fn(&Semaphore) -> quorumlock::Result<Option<Permit>>;
    let calls: [Call; 3] = [
        |here| here.try_lock(),
        |here| here.lock_timeout(Duration::ZERO),
        |here| here.lock_with(&Wait::deadline(Instant::now())),
    ];
    for call in calls {
        // It has released no slot, and so begins with any.
        let here = semaphore(&client(&servers), 32);
        unlock(call(&here).unwrap().expect("a slot is free"));
    }
}

#[test]
fn a_slot_that_a_minority_of_nodes_still_has_is_free() {
    let servers = Server::several(3).unwrap();
    let here = semaphore(&client(&servers), 2);
    // One node kept both keys, another one has the first.
    ask(&servers[0], &["MSET", "permits#0", "x", "permits#1", "x"]);
    servers[1].command(&["SET", "permits#0", "x"]).unwrap();
    for _ in 0..8 {
        assert_eq!(take(&here).slot(), 1);
    }
    servers[1].command(&["SET", "permits#1", "x"]).unwrap();
    let patience = Duration::from_millis(50);
    // All without expiry: that is never freed.
    assert!(is_held_for(&here, patience));
    fails(here.lock_timeout(SOON), ErrorKind::Unavailable);
}

#[test]
fn a_permit_is_a_guard() {
    let (servers, client) = deployment(3);
    let short = client.semaphore(NAME, 2).ttl(Duration::from_secs(5));
    let permit = short.lock().unwrap();
    assert!(
        permit.remaining() > Duration::from_secs(4)
            && permit.ensure(Duration::from_secs(6)).is_err()
    );
    extend(&permit, LONG_TTL);
    let key = permit.name().to_owned();
    assert!(
        permit.remaining() > Duration::from_secs(50)
            && left(&servers[0], &key).unwrap() > Duration::from_secs(50)
    );
    assert!(format!("{permit:?}").contains(&key) && permit.lost().unwrap().try_recv().is_err());
    // A lease of the slot's lock: the permit stays out until it is given back.
    let lease = permit.detach().unwrap();
    let other = short.lock().unwrap();
    assert!(is_held(&short));
    unlock(client.attach(lease).unwrap());
    drop(short.try_lock().unwrap().unwrap());
    drop(other);

    let watched = client
        .semaphore("watched", 1)
        .ttl(Duration::from_millis(300))
        .watchdog(Watchdog::new());
    // The machine may hold up the watchdog.
    let extended = (0..TRIES).find_map(|_| {
        let permit = watched.lock().unwrap();
        thread::sleep(Duration::from_millis(900));
        is_held(&watched).then_some(permit)
    });
    let permit = extended.expect("it is extended");
    assert_eq!(short.permits(), 2);
    let (sender, receiver) = std::sync::mpsc::channel();
    permit.on_lost(move || sender.send(()).unwrap()).unwrap();
    ask_each(&servers, &["FLUSHALL"]);
    receiver.recv_timeout(SOON).unwrap();
    assert_eq!(permit.unlock().unwrap(), ReleaseOutcome::Expired);

    // Two in a time, however short they work.
    let rate = client
        .semaphore("rate", 2)
        .ttl(LONG_TTL)
        .min_hold(Duration::from_secs(30));
    (0..2).for_each(|_| drop(take(&rate)));
    assert!(is_held(&rate));
}

#[test]
fn a_waiting_thread_gets_the_permit_that_any_thread_of_its_client_releases() {
    let (servers, mine) = deployment(3);
    let here = semaphore(&mine, 3);
    let mut held: Vec<Permit> = (0..3).map(|_| take(&here)).collect();
    for round in 0..6 {
        let freed = held.remove(round % 3);
        let slot = freed.slot();
        let release = || {
            thread::sleep(Duration::from_millis(20));
            let_go(freed)
        };
        let (permit, late) = lag(|| here.lock().unwrap(), release);
        assert_eq!(permit.slot(), slot);
        assert!(late < Duration::from_secs(2));
        held.push(permit);
    }
    // Nothing but the attempts went over the wire, and the note that each node of a new deployment
    // gets.
    assert_eq!(
        (calls(&servers[0], "set"), calls(&servers[0], "pttl")),
        (10, 0)
    );
    assert_eq!(calls(&servers[0], "subscribe"), 0);
}

#[test]
fn a_release_of_any_slot_by_another_program_ends_the_wait() {
    let (_servers, [mine, theirs]) = programs(3);
    let here = semaphore(&mine, 3);
    let there = semaphore(&theirs, 3);
    let mut held: Vec<Permit> = (0..3).map(|_| take(&there)).collect();
    for slot in [2, 0, 1, 0, 2] {
        // On a busy machine one of three.
        let is_quick = (0..3).any(|_| {
            let mut slots = held.iter().map(Permit::slot);
            let freed = held.remove(slots.position(|held| held == slot).unwrap());
            let release = || {
                // It has asked again after it had subscribed, and asks in a second unless it is
                // told.
                thread::sleep(Duration::from_millis(300));
                let_go(freed)
            };
            let (permit, late) = lag(|| here.lock().unwrap(), release);
            assert_eq!(permit.slot(), slot);
            drop(permit);
            held.push(there.lock().unwrap());
            late < Duration::from_millis(60)
        });
        assert!(is_quick, "slot {slot}");
    }
}

/// An attached lease is released as the permit would have been. Its text contains nothing of
/// permits: that one the waiter finds by itself.
#[test]
fn the_release_of_a_lease_of_a_permit_ends_the_wait() {
    for (is_text, place_lease) in [(false, SOON * 60), (true, Duration::from_secs(1))] {
        let (servers, [theirs, other]) = programs(3);
        let mine = builder(&servers).place_lease(place_lease).build().unwrap();
        let held = take(&semaphore(&theirs, 2));
        let lease = take(&semaphore(&theirs, 2)).detach().unwrap();
        let lease = if is_text { copied(lease) } else { lease };
        let release = || {
            queues::has_entries(&servers, &format!("quorumlock-permits:{NAME}"), 1);
            queues::has_channels(&servers, 1);
            thread::sleep(Duration::from_millis(100));
            let at = Instant::now();
            unlock(other.attach(lease).unwrap());
            at
        };
        let is_had = || {
            semaphore(&mine, 2)
                .lock_timeout(SOON * 2)
                .unwrap()
                .is_some()
        };
        let (is_had, late) = lag(is_had, release);
        assert!(is_had && late < Duration::from_secs(2), "after {late:?}");
        drop(held);
        queues::no_entry_stays(&servers);
    }
}

#[test]
fn a_waiter_asks_seldom_while_nothing_happens() {
    const WHILE: Duration = Duration::from_secs(3);
    let (servers, [mine, theirs]) = programs(3);
    let held: Vec<Permit> = (0..3).map(|_| take(&semaphore(&theirs, 3))).collect();
    let here = semaphore(&mine, 3);
    let cancel = CancelHandle::new();
    thread::scope(|threads| {
        // One of them asks for all.
        let waiting: Vec<_> = (0..8)
            .map(|_| threads.spawn(|| here.lock_with(&Wait::unlimited().cancelled_by(&cancel))))
            .collect();
        // All of them have asked, and the first one is subscribed.
        thread::sleep(Duration::from_millis(500));
        let before = asked(&servers[0]);
        thread::sleep(WHILE);
        let asked = asked(&servers[0]) - before;
        assert!(asked <= WHILE.as_secs() + 1, "{asked}");
        cancel.cancel();
        for thread in waiting {
            fails(thread.join().unwrap(), ErrorKind::Cancelled);
        }
    });
    drop(held);
    (0..3).for_each(|slot| gone_for_good(&servers, &format!("{NAME}#{slot}")));
}

#[test]
fn that_this_program_has_all_permits_is_known_to_each_of_its_threads() {
    let servers = Server::several(3).unwrap();
    let here = semaphore(&client(&servers), 2);
    let held = [take(&here), take(&here)];
    thread::scope(|threads| {
        let waits: Vec<_> = (0..3)
            .map(|_| threads.spawn(|| here.lock_timeout(Duration::from_millis(50)).unwrap()))
            .collect();
        assert!(waits.into_iter().all(|wait| wait.join().unwrap().is_none()));
    });
    drop(held);
}
