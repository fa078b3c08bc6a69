//! The numbers of writers on real servers: they grow whatever readers and other writers do in between, and stay in the
//! key when the lock is free.

use super::{KEY, ask, can_read, entries, is_marked, long, read, servers, write};
use crate::clients::{LONG_TTL, SOON, builder, calls, causes, client, left, value};
use crate::support::process::eventually;
use crate::support::server::{Answer, Server};
use crate::support::sides::{FencedSides, Sides};
use quorumlock::algorithm::fence::LEAD_LIMIT;
use quorumlock::kind::{Fenced, Read, Write};
use quorumlock::{
    CancelHandle, Cause, ErrorKind, ExtendOutcome, FencedRwWriteGuard, FencingToken, Lease, Phase, Redlock,
    ReleaseOutcome, RestartPolicy, Wait, Watchdog,
};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const HOUR: u64 = 3_600_000_000;
const SHORT: Duration = Duration::from_millis(500);

fn fenced(client: &Redlock) -> FencedSides {
    long(client).fenced()
}

#[track_caller]
fn number(mutex: &FencedSides) -> FencedRwWriteGuard {
    mutex.write.lock_timeout(SOON).expect("enough nodes answer").expect("the lock is free")
}

fn micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64
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
    assert_eq!(server.command(&["SET", KEY, text]).unwrap(), Answer::Text("OK".into()));
}

fn scripts_run(server: &Server) -> u64 {
    calls(server, "eval") + calls(server, "evalsha")
}

#[test]
fn every_writer_has_a_greater_number_whatever_comes_in_between() {
    let servers = Server::several(3).unwrap();
    let [one, other] = [client(&servers), client(&servers)].map(|client| fenced(&client));
    let plain = long(&client(&servers));
    let mut last = FencingToken::try_from(micros()).unwrap();
    for round in 0..40 {
        let guard = number(if round % 2 == 0 { &one } else { &other });
        assert!(guard.fence() > last && guard.fence().get() < micros() + 1000, "{last} {guard:?}");
        last = guard.fence();
        assert!(
            !can_read(&plain) && plain.write.try_lock().unwrap().is_none() && other.write.try_lock().unwrap().is_none()
        );
        match round % 4 {
            0 => assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released),
            1 => {
                let (reader, another) = (guard.downgrade().unwrap(), read(&plain));
                assert!(one.write.try_lock().unwrap().is_none(), "readers keep it out");
                drop((reader, another));
            }
            2 => {
                drop(guard);
                let writer = plain.write.lock_timeout(SOON).unwrap().expect("it is released");
                assert_eq!(writer.erase().fence(), None);
            }
            _ => {
                drop(guard);
                drop(one.read.lock_timeout(SOON).unwrap().expect("it is released"));
            }
        }
    }
    assert!(eventually(SOON, || servers.iter().all(is_free)));
    assert!(servers.iter().all(|server| stored(server).is_some()), "it is kept");
}

#[test]
fn a_pair_takes_one_round_trip_each_way() {
    let servers = Server::several(3).unwrap();
    let mutex = fenced(&client(&servers));
    drop(mutex.write.lock().unwrap());
    // One of these stores the note that each node of a new deployment gets.
    assert!(eventually(SOON, || servers.iter().all(|server| scripts_run(server) == 3)));
    for _ in 0..20 {
        assert_eq!(mutex.write.lock_timeout(SOON).unwrap().unwrap().unlock().unwrap(), ReleaseOutcome::Released);
        assert!(eventually(SOON, || servers.iter().all(is_free)));
    }
    assert!(eventually(SOON, || servers.iter().all(|server| scripts_run(server) == 43)));
}

#[test]
fn the_number_stays_in_the_key_for_its_time_and_no_write_of_another_changes_that() {
    let is_kept = |server: &Server, time: Duration| {
        left(server, KEY).is_some_and(|left| left > time - SOON && left <= time + Duration::from_millis(1))
    };
    for server in servers() {
        let mutex = fenced(&client([&server]));
        let guard = number(&mutex);
        let (last, until) = stored(&server).expect("it has a number");
        assert_eq!((last, entries(&server)), (guard.fence().get(), ('w', 1)));
        assert!(is_kept(&server, DAY));
        thread::scope(|scope| {
            let waits = scope.spawn(|| fenced(&client([&server])).write.lock_timeout(SHORT).unwrap().is_none());
            assert!(
                eventually(SOON, || is_marked(&server)) && stored(&server) == Some((last, until)),
                "a writer waits"
            );
            assert!(waits.join().unwrap());
        });
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
        assert_eq!(stored(&server), Some((last, until)));
        // Neither a reader nor a writer without a number takes it away or keeps it for longer.
        let plain = long(&client([&server]));
        let reader = plain.read.lock_timeout(SOON).unwrap().expect("no writer waits");
        assert_eq!((entries(&server), stored(&server)), (('r', 1), Some((last, until))));
        drop(reader);
        drop(plain.write.lock_timeout(SOON).unwrap().expect("it is released"));
        assert!(eventually(SOON, || is_free(&server)));
        assert!(stored(&server) == Some((last, until)) && is_kept(&server, DAY));
        // An extension of a writer with a number keeps it for longer.
        let kept = builder([&server]).fence_retention(2 * DAY).build().unwrap();
        let guard = number(&fenced(&kept));
        let before = stored(&server).unwrap();
        thread::sleep(Duration::from_millis(5));
        assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Extended);
        let after = stored(&server).unwrap();
        assert!(before.0 == after.0 && before.1 < after.1 && is_kept(&server, 2 * DAY), "{before:?} {after:?}");
        drop(guard);
        // One with a shorter time takes nothing away.
        assert!(eventually(SOON, || is_free(&server)));
        drop(number(&mutex));
        assert!(eventually(SOON, || is_free(&server)) && is_kept(&server, 2 * DAY));
    }
}

#[test]
fn a_number_ends_with_its_time_and_not_with_readers() {
    for server in servers() {
        let now = micros() / 1000;
        set(&server, &format!("f {} {}", micros() + HOUR, now + 2000));
        let plain = long(&client([&server]));
        let reader = read(&plain);
        assert!(stored(&server).is_some());
        // Readers that are there all the time do not keep it.
        let has_ended = || {
            drop(read(&long(&client([&server]))));
            value(&server, KEY).is_some() && stored(&server).is_none()
        };
        assert!(eventually(SOON, has_ended));
        drop(reader);
        assert!(eventually(SOON, || value(&server, KEY).is_none()), "nothing is left of it");
    }
}

#[test]
fn numbers_that_differ_are_raised_to_the_greatest() {
    for count in [3, 5] {
        let servers = Server::several(count).unwrap();
        let mutex = fenced(&client(&servers));
        drop(number(&mutex));
        assert!(eventually(SOON, || servers.iter().all(is_free)));
        // A client with a clock that is ahead by a day had it, and no other client saw that.
        let (ahead, late) = (micros() + 86_400_000_000, micros() / 1000 + 600_000);
        for (index, server) in servers.iter().enumerate() {
            set(server, &format!("f {} {late}", ahead + 10 * index as u64));
        }
        let before: u64 = servers.iter().map(scripts_run).sum();
        let guard = number(&mutex);
        let has_it = |server: &&Server| stored(server).is_some_and(|(last, _)| last == guard.fence().get());
        assert!(guard.fence().get() > ahead, "of a quorum, one other's");
        assert!(servers.iter().filter(has_it).count() > count / 2, "a quorum has it before it is known");
        let last = guard.fence();
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
        let ran = servers.iter().map(scripts_run).sum::<u64>() - before;
        assert!(ran > 2 * count as u64, "{ran}: some were raised");
        drop(mutex.read.lock_timeout(SOON).unwrap());
        assert!(number(&mutex).fence() > last);
    }
}

#[test]
fn a_raise_needs_the_entry_of_its_own_writer() {
    for server in servers() {
        let [ours, theirs] = ["1", "2"].map(|digit| digit.repeat(40));
        let acquire = |token: &str, access: &str| {
            let least = ["600000", "1"];
            ask(&server, &[&["acquire", token, "60000", access], &least[..if access == "w" { 2 } else { 0 }]].concat())
        };
        let raise = |token: &str, to: u64| ask(&server, &["extend", token, "0", "w", "600000", &to.to_string()]);
        let given = |answer: Answer| match answer {
            Answer::Text(number) => number.parse::<u64>().unwrap(),
            other => panic!("{other:?}"),
        };
        let far = micros() + HOUR;
        // That of another writer: its number was decided without us.
        assert_eq!(raise(&ours, far), Answer::Number(0));
        let first = given(acquire(&theirs, "w"));
        assert_eq!(raise(&ours, far), Answer::Number(-1));
        assert_eq!(given(acquire(&theirs, "w")), first, "it has not moved");
        // With its own entry, it is raised.
        assert_eq!(raise(&theirs, far), Answer::Number(1));
        assert_eq!((given(acquire(&theirs, "w")), raise(&theirs, 1)), (far, Answer::Number(1)), "and not lowered");
        assert_eq!(given(acquire(&theirs, "w")), far);
        // As a reader, it has no number any more.
        assert_eq!(ask(&server, &["extend", &theirs, "60000", "r"]), Answer::Number(1));
        assert_eq!(raise(&theirs, far + 1), Answer::Number(-1));
        assert_eq!(acquire(&ours, "r"), Answer::Number(1));
        assert_eq!(
            [&ours, &theirs].map(|token| ask(&server, &["release", token])),
            [Answer::Number(1), Answer::Number(1)]
        );
        assert_eq!(raise(&theirs, far + 1), Answer::Number(0));
        assert_eq!(given(acquire(&ours, "w")), far + 1, "the next one");
        // An entry that has ended is no entry.
        set(&server, &format!("f {far} {} w 1 {ours}", micros() / 1000 + 60_000));
        assert_eq!(raise(&ours, far + 1), Answer::Number(0));
        assert_eq!(stored(&server).map(|(last, _)| last), Some(far));
    }
}

#[test]
fn a_floor_is_no_further_than_a_minute_before_the_servers_clock() {
    for server in servers() {
        let acquire = |floor: &str| match ask(&server, &["acquire", &"1".repeat(40), "1", "w", "600000", floor]) {
            Answer::Text(number) => number.parse::<u64>().unwrap(),
            answer => panic!("{answer:?}"),
        };
        let first = acquire("9007199254740991");
        let ahead = first.checked_sub(micros()).expect("ahead of the clock");
        assert!((50_000_000..=60_000_000).contains(&ahead), "{ahead}");
        thread::sleep(Duration::from_millis(5));
        assert_eq!(acquire("1"), first + 1, "the number that was given out counts all the same");
    }
}

#[test]
fn a_number_too_far_ahead_costs_its_node_alone_and_is_left_as_it_is() {
    let servers = Server::several(3).unwrap();
    let absurd = format!("f {} {}", FencingToken::MAX, micros() / 1000 + 600_000);
    set(&servers[1], &absurd);
    let mutex = fenced(&client(&servers));
    let mut last = FencingToken::try_from(0_u64).unwrap();
    for _ in 0..10 {
        let guard = number(&mutex);
        assert!(guard.fence() > last && guard.fence().get() < micros() + HOUR, "{guard:?}");
        last = guard.fence();
        assert_eq!(value(&servers[1], KEY).as_deref(), Some(&*absurd));
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    }
    // The node counts for all others.
    drop(read(&long(&client(&servers[1..2]))));
    assert_eq!(write(&long(&client(&servers[1..2]))).unlock().unwrap(), ReleaseOutcome::Released);
    assert!(eventually(SOON, || value(&servers[1], KEY).as_deref() == Some(&*absurd)));
    let error = fenced(&client(&servers[1..2])).write.try_lock().unwrap_err();
    assert_eq!(causes(&error), [(servers[1].address(), Phase::Reply, Cause::FenceAhead)]);
    // What a node gives out is no more than a day and a minute ahead.
    for (lead, is_given) in [(LEAD_LIMIT, true), (LEAD_LIMIT + HOUR, false)] {
        set(&servers[1], &format!("f {} {}", micros() + lead, micros() / 1000 + 600_000));
        let answer = ask(&servers[1], &["acquire", &"1".repeat(40), "60000", "w", "600000", "1"]);
        assert_eq!(matches!(answer, Answer::Text(_)), is_given, "{lead} {answer:?}");
    }
}

#[test]
fn a_node_that_lost_its_data_gets_the_entry_again_and_no_smaller_number() {
    let mut servers = Server::several(3).unwrap();
    let guard = number(&fenced(&client(&servers)));
    assert!(eventually(SOON, || servers.iter().all(|server| value(server, KEY).is_some())));
    servers[0].restart().unwrap();
    assert_eq!(value(&servers[0], KEY), None);
    let is_repaired = || {
        assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Extended);
        value(&servers[0], KEY).is_some()
    };
    assert!(eventually(SOON, is_repaired));
    assert!(stored(&servers[0]).unwrap().0 >= guard.fence().get());
    assert_eq!(entries(&servers[0]), ('w', 1));
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    assert!(eventually(SOON, || servers.iter().all(is_free)));
}

#[test]
fn nodes_that_all_lost_their_data_go_on_above_what_they_gave_out() {
    let mut servers = Server::several(3).unwrap();
    // What they gave out is forgotten, and no client guards against that.
    let client = builder(&servers).restart_policy(RestartPolicy::Off).build().unwrap();
    let before = number(&fenced(&client)).fence();
    servers.iter_mut().for_each(|server| server.restart().unwrap());
    let mut after = None;
    assert!(eventually(SOON, || {
        after = fenced(&client).write.try_lock().ok().flatten().map(|guard| guard.fence());
        after.is_some()
    }));
    assert!(after > Some(before), "by the clock alone");
}

#[test]
fn a_minority_that_hangs_or_is_gone_costs_no_number() {
    let durable = |_| Server::with(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap();
    let mut servers: Vec<Server> = (0..5).map(durable).collect();
    let nodes = servers.iter().map(|server| format!("{}?durable=true", server.url()));
    let client = Redlock::builder().nodes(nodes).node_timeout(Duration::from_secs(1)).build().unwrap();
    let mutex = Sides::of(&client, "k").fenced();
    let mut last = number(&mutex).fence();
    let mut next = || {
        drop(mutex.read.lock_timeout(SOON).unwrap().expect("a majority answers"));
        let guard = number(&mutex);
        assert!(guard.fence() > last);
        last = guard.fence();
    };
    for round in 0..5 {
        servers[round].pause().unwrap();
        servers[(round + 1) % 5].kill();
        next();
        servers[round].resume().unwrap();
        next();
        servers[(round + 1) % 5].restart().unwrap();
        next();
    }
}

#[test]
fn full_memory_costs_nothing_that_is_held() {
    for server in servers() {
        let client = client([&server]);
        let mutex = fenced(&client);
        let guard = number(&mutex);
        server.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
        assert_eq!(guard.extend(LONG_TTL * 2).unwrap(), ExtendOutcome::Extended);
        let last = guard.fence();
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
        assert_eq!((entries(&server), stored(&server).map(|(last, _)| last)), (('-', 0), Some(last.get())));
        assert_eq!(causes(&mutex.write.try_lock().unwrap_err())[0].2, Cause::OutOfMemory);
        server.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
        assert!(number(&mutex).fence() > last);
    }
}

#[test]
fn a_lease_that_ended_gives_way_to_a_greater_number() {
    let servers = Server::several(3).unwrap();
    let short = Sides::of(&client(&servers), "k").ttl(SHORT).fenced();
    let late = number(&short);
    thread::sleep(SHORT);
    let next = number(&short);
    assert!(next.fence() > late.fence() && late.remaining().is_zero());
    assert_eq!(late.unlock().unwrap(), ReleaseOutcome::Expired);
    let watched = Sides::of(&client(&servers), "watched").ttl(SHORT).fenced().watchdog(Watchdog::new());
    // The machine may hold up any of them.
    let lasts = |_| {
        let guard = number(&watched);
        thread::sleep(SHORT * 3);
        (!guard.remaining().is_zero()).then_some(guard)
    };
    let guard = (0..3).find_map(lasts).expect("the watchdog is that of the mutex");
    assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Extended);
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
}

#[test]
fn a_writer_changes_hands_with_its_number() {
    let servers = Server::several(3).unwrap();
    let (mine, theirs) = (client(&servers), client(&servers));
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
        theirs.write_mutex("other").fenced().attach(text.expose().parse().unwrap()).map(drop),
    ];
    assert!(refusals.iter().all(|refused| refused.as_ref().is_err_and(|error| error.kind() == ErrorKind::Config)));
    let guard = fenced(&theirs).write.attach(text.expose().parse().unwrap()).unwrap();
    assert_eq!((guard.fence(), guard.name()), (last, "k"));
    assert_eq!(guard.extend(LONG_TTL * 2).unwrap(), ExtendOutcome::Extended);
    // A reader has no number, and neither has its lease.
    let lease = guard.downgrade().unwrap().detach().expect("no other thread shares it");
    let reader = long(&mine).read.attach(lease).unwrap();
    assert_eq!(reader.unlock().unwrap(), ReleaseOutcome::Released);
    assert!(number(&fenced(&mine)).fence() > last);
    // One without a number is no lease for guards that have one.
    let plain = long(&mine).write.lock_timeout(SOON).unwrap().unwrap().detach().unwrap().into_text();
    assert_eq!(plain.expose().parse::<Lease<Fenced<Write>>>().unwrap_err().kind(), ErrorKind::Config);
}

#[test]
fn each_way_to_write_has_a_greater_number() {
    let servers = Server::several(1).unwrap();
    let mutex = fenced(&client(&servers)).write;
    assert_eq!(mutex.name(), "k");
    let cancel = CancelHandle::new();
    let ways: [&dyn Fn() -> FencedRwWriteGuard; 5] = [
        &|| mutex.lock().unwrap(),
        &|| mutex.lock_timeout(SOON).unwrap().unwrap(),
        &|| mutex.lock_with(&Wait::deadline(Instant::now() + SOON)).unwrap().unwrap(),
        &|| mutex.lock_with(&Wait::timeout(SOON)).unwrap().unwrap(),
        &|| mutex.lock_with(&Wait::unlimited().cancelled_by(&cancel)).unwrap().unwrap(),
    ];
    let numbers = ways.map(|way| way().fence());
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    assert!(mutex.erase().lock().unwrap().fence() > numbers.last().copied());
}
