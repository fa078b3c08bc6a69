//! Fair locks that are fenced as well.

use super::faults::in_time;
use super::hand_offs::{TOKEN, time_to_notice};
use super::{FENCED_KEY as KEY, no_entry_stays, order_of};
use crate::clients::{LONG_TTL, SOON, builder, calls, client, failure, long_lock, ok, take, value};
use crate::support::capable::has_users;
use crate::support::process::eventually;
use crate::support::queues::{count, has_entries};
use crate::support::server::{Answer, Server};
use quorumlock::embedded::EmbeddedNode;
use quorumlock::protocol::kinds;
use quorumlock::{
    Cause, FencedGuard, FencedMutex, FencingToken, Redlock, ReleaseOutcome, Watchdog,
};
use std::sync::Mutex as Guarded;
use std::thread;
use std::time::{Duration, Instant};

fn fenced(client: &Redlock) -> FencedMutex {
    long_lock(client, "k").fenced()
}

fn fair(client: &Redlock) -> FencedMutex {
    long_lock(client, "k").fenced().fair()
}

fn token(guard: &FencedGuard) -> FencingToken {
    guard.fence()
}

#[track_caller]
fn grow(fences: &[FencingToken]) {
    assert!(fences.windows(2).all(|two| two[0] < two[1]), "{fences:?}");
}

#[test]
fn programs_are_served_in_their_order_and_fences_grow() {
    for nodes in 1..=5 {
        let servers = Server::several(nodes).unwrap();
        let clients: Vec<Redlock> = (0..6)
            .map(|_| builder(&servers).place_lease(SOON).build().unwrap())
            .collect();
        // One that does not queue up counts like any other that holds the lock.
        let held = take(&fenced(&client(&servers)));
        let fences = Guarded::new(vec![token(&held)]);
        let (all, locks): (Vec<&Server>, Vec<FencedMutex>) =
            (servers.iter().collect(), clients.iter().map(fair).collect());
        let had = |guard: &FencedGuard| fences.lock().unwrap().push(token(guard));
        assert_eq!(
            order_of(&locks, &all, || drop(held.unlock()), had),
            [0, 1, 2, 3, 4, 5],
            "{nodes} nodes"
        );
        grow(&fences.into_inner().unwrap());
        no_entry_stays(&servers);
        assert!(
            value(&servers[0], KEY).is_some_and(|text| text.ends_with(" 0 ")),
            "the fence stays, and is free"
        );
    }
}

#[test]
fn fair_and_other_fenced_clients_exclude_each_other_and_plain_ones_have_another_queue() {
    let servers = Server::several(3).unwrap();
    let [mine, theirs] = [client(&servers), client(&servers)];
    for (one, other) in [
        (fair(&mine), fenced(&theirs)),
        (fenced(&mine), fair(&theirs)),
        (fair(&mine), fair(&theirs)),
    ] {
        let held = take(&one);
        assert!(other.try_lock().unwrap().is_none());
        assert_eq!(held.unlock().unwrap(), ReleaseOutcome::Released);
        assert!(take(&other).unlock().is_ok());
    }
    let held = take(&long_lock(&theirs, "k").fair());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| long_lock(&mine, "k").fair().lock().map(drop));
        has_entries(&servers, "k", 1);
        assert!(servers.iter().all(|server| count(server, KEY) == 0));
        assert!(
            take(&fair(&mine)).unlock().is_ok(),
            "those of another lock are not in front"
        );
        drop(held.unlock());
        waiting.join().unwrap().unwrap();
    });
    no_entry_stays(&servers);
}

/// The judge is the lock itself: what is noted under it is in the order of holding.
#[test]
fn fences_grow_however_many_compete_in_whichever_way() {
    for nodes in [2, 3] {
        let servers = Server::several(nodes).unwrap();
        let end = Instant::now() + Duration::from_secs(1);
        let fences = Guarded::new(Vec::new());
        let by_fair = Guarded::new(0);
        thread::scope(|scope| {
            for number in 0..6 {
                let client = client(&servers);
                let fences = &fences;
                let by_fair = &by_fair;
                scope.spawn(move || {
                    let is_fair = number > 0;
                    let lock = if is_fair {
                        fair(&client)
                    } else {
                        fenced(&client)
                    };
                    while Instant::now() < end {
                        let guard = lock.lock().unwrap();
                        fences.lock().unwrap().push(token(&guard));
                        *by_fair.lock().unwrap() += u32::from(is_fair);
                        drop(guard.unlock());
                    }
                });
            }
        });
        let fences = fences.into_inner().unwrap();
        let by_fair = by_fair.into_inner().unwrap();
        println!(
            "{nodes} nodes: {} acquisitions, {by_fair} of them fair",
            fences.len()
        );
        grow(&fences);
        assert!(by_fair >= 5);
        no_entry_stays(&servers);
    }
}

#[test]
fn a_lock_that_is_free_takes_one_round_and_no_entry() {
    let servers = Server::several(3).unwrap();
    let client = client(&servers);
    drop(take(&fair(&client)).unlock());
    let scripts = || {
        servers
            .iter()
            .map(|server| calls(server, "evalsha") + calls(server, "eval"))
            .sum::<u64>()
    };
    let before = scripts();
    let mut fences = Vec::new();
    for _ in 0..10 {
        let guard = fair(&client).lock().unwrap();
        fences.push(token(&guard));
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    }
    grow(&fences);
    assert!(
        eventually(SOON, || scripts() - before == 2 * 10 * 3),
        "{} scripts",
        scripts() - before
    );
    no_entry_stays(&servers);
}

/// How long it takes until the one that waits has the lock that these clients hold and want.
fn time_to_pass(holder: &Redlock, waiter: &Redlock, servers: &[Server]) -> Duration {
    let held = take(&fair(holder));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let guard = fair(waiter).lock().unwrap();
            let had = Instant::now();
            drop(guard.unlock());
            had
        });
        has_entries(servers, KEY, 1);
        thread::sleep(Duration::from_millis(50));
        let released = Instant::now();
        drop(held.unlock());
        waiting.join().unwrap().saturating_duration_since(released)
    })
}

#[test]
fn the_next_one_has_it_at_once() {
    let servers = Server::several(3).unwrap();
    let clients = [(); 2].map(|()| builder(&servers).place_lease(SOON * 3).build().unwrap());
    // Much less than the time after which a call asks that is not told.
    in_time(Duration::from_secs(1), || {
        time_to_pass(&clients[0], &clients[1], &servers)
    });
}

/// It asks unasked after more time than this takes.
#[test]
fn the_first_one_is_told_in_whichever_way_the_lock_becomes_free_for_it() {
    let member = "0000000000000001f:7";
    let release = ["release", TOKEN, "", "", "600000"];
    let with_entry = ["release", TOKEN, member, "", "600000"];
    for (words, is_free) in [
        (&release[..], false),
        (&with_entry, false),
        (&["leave", member], true),
    ] {
        let servers = Server::several(3).unwrap();
        for server in &servers {
            server
                .command(&["SET", KEY, &format!("5 9999999999999 {TOKEN}")])
                .unwrap();
        }
        let took = time_to_notice(fair, &servers, || {
            let free_since = Instant::now();
            for server in &servers {
                server
                    .command(&["ZADD", &format!("quorumlock-queue:{KEY}"), "7", member])
                    .unwrap();
                if is_free {
                    server.command(&["SET", KEY, "5 0 "]).unwrap();
                }
                let words = [&["EVAL", kinds::fenced::SCRIPT.text, "1", KEY], words].concat();
                let answer = server.command(&words).unwrap();
                // The waiter may have the lock by now, and have removed the dead entry.
                assert!(
                    matches!(answer, Answer::Number(0..)),
                    "{words:?} {answer:?}"
                );
            }
            free_since
        });
        assert!(took < SOON, "{words:?}: after {took:?}");
        no_entry_stays(&servers);
    }
}

/// The key outlives the lock, so how long it lives is not how long it is held.
#[test]
fn a_holder_that_dies_is_followed_when_its_lock_ends() {
    let servers = Server::several(3).unwrap();
    let short = |client: &Redlock| -> FencedMutex {
        client
            .mutex("k")
            .ttl(Duration::from_secs(1))
            .fenced()
            .fair()
    };
    let patient = || builder(&servers).place_lease(SOON * 3).build().unwrap();
    in_time(Duration::from_millis(1300), || {
        let begun = Instant::now();
        let held = take(&short(&patient()));
        let first = token(&held);
        // Detached, it is never released.
        drop(held.detach().unwrap());
        let guard = short(&patient())
            .lock_timeout(SOON)
            .unwrap()
            .expect("it is free");
        assert!(
            begun.elapsed() >= Duration::from_millis(950),
            "it is held until then"
        );
        grow(&[first, token(&guard)]);
        drop(guard.unlock());
        begun.elapsed()
    });
    no_entry_stays(&servers);
}

#[test]
fn it_is_extended_watched_handed_over_and_stands_as_any_lock() {
    let servers = Server::several(3).unwrap();
    let [mine, theirs] = [client(&servers), client(&servers)];
    let watched = mine
        .mutex("k")
        .ttl(Duration::from_millis(300))
        .watchdog(Watchdog::new())
        .fenced()
        .fair();
    let guard = watched.lock().unwrap();
    let first = guard.fence();
    let next = thread::scope(|scope| {
        let waiting = scope.spawn(|| fair(&theirs).lock().unwrap());
        thread::sleep(Duration::from_millis(900));
        assert!(
            !waiting.is_finished() && !guard.remaining().is_zero(),
            "it was extended"
        );
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
        waiting.join().unwrap()
    });
    grow(&[first, token(&next)]);
    // Handed over, it keeps its number, and its release wakes the one that waits.
    let second = token(&next);
    let lease = next.detach().unwrap().into_text();
    let lease = lease.expose().parse().unwrap();
    let taken = long_lock(&mine, "k").fenced().fair().attach(lease).unwrap();
    assert_eq!(taken.fence(), second);
    assert!(taken.extend(LONG_TTL).is_ok() && fair(&theirs).try_lock().unwrap().is_none());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| fair(&theirs).lock().unwrap());
        has_entries(&servers, KEY, 1);
        assert_eq!(taken.unlock().unwrap(), ReleaseOutcome::Released);
        let third = waiting.join().unwrap();
        grow(&[second, token(&third)]);
    });
    let standing = mine
        .mutex("k")
        .ttl(LONG_TTL)
        .min_hold(Duration::from_secs(2))
        .fenced()
        .fair();
    let begun = Instant::now();
    assert!(standing.lock().unwrap().unlock().is_ok());
    drop(fair(&theirs).lock().unwrap());
    assert!(
        begun.elapsed() >= Duration::from_millis(1900),
        "it stands for so long"
    );
    // A lock that others have taken is reported as lost.
    let short = mine
        .mutex("k")
        .ttl(Duration::from_millis(500))
        .watchdog(Watchdog::new())
        .fenced()
        .fair();
    let guard = short.lock().unwrap();
    let lost = guard.lost().unwrap();
    let others = format!(
        "{} 9999999999999 {}",
        guard.fence().get() + 1,
        "ab".repeat(20)
    );
    servers
        .iter()
        .for_each(|server| _ = server.command(&["SET", KEY, &others]).unwrap());
    assert!(lost.recv_timeout(SOON).is_ok());
    no_entry_stays(&servers);
}

#[test]
fn what_cannot_be_read_or_is_far_ahead_is_a_fault_of_that_node() {
    let node = EmbeddedNode::builder().without_scripts().start().unwrap();
    let error = failure(&fair(&Redlock::builder().node(node.url()).build().unwrap()));
    assert_eq!(error.causes()[0].cause(), Cause::NoScripts);
    let server = Server::start().unwrap();
    let client = client([&server]);
    let ahead = format!("{} 0 ", FencingToken::MAX);
    for (words, cause) in [
        (&["SET", KEY, "something else"][..], Cause::UnexpectedValue),
        (&["LPUSH", KEY, "x"], Cause::UnexpectedValue),
        (&["SET", KEY, &ahead], Cause::FenceAhead),
    ] {
        server.command(&["DEL", KEY]).unwrap();
        server.command(words).unwrap();
        assert_eq!(
            failure(&fair(&client)).causes()[0].cause(),
            cause,
            "{words:?}"
        );
        if words[0] == "SET" {
            assert_eq!(value(&server, KEY).as_deref(), Some(words[2]), "untouched");
        }
    }
    // One of three costs nothing.
    let servers = Server::several(3).unwrap();
    servers[1].command(&["SET", KEY, &ahead]).unwrap();
    let guard = take(&fair(&super::client(&servers)));
    assert!(token(&guard) < FencingToken::MAX);
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
}

#[test]
fn full_memory_does_not_keep_it_from_its_release() {
    let server = Server::start().unwrap();
    let guard = take(&fair(&client([&server])));
    server
        .command(&["CONFIG", "SET", "maxmemory", "1"])
        .unwrap();
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    assert_eq!(
        failure(&fair(&client([&server]))).causes()[0].cause(),
        Cause::OutOfMemory
    );
}

#[test]
fn a_user_needs_the_rights_that_are_listed() {
    if !has_users() {
        return;
    }
    let server = Server::start().unwrap();
    let rights = "+eval +evalsha +get +set +del +pttl +time +exists +publish +subscribe +unsubscribe +zadd +zcard \
                  +zrange +zrank +zrem +zremrangebyscore +zrevrange +zscore +pexpire";
    let user = format!(
        "ACL SETUSER locker reset resetchannels on >secret ~quorumlock-*:k &quorumlock:* {rights}"
    );
    let words: Vec<&str> = user.split(' ').chain(["+@connection"]).collect();
    ok(&server, &words);
    let url = format!("redis://locker:secret@{}", server.address());
    let [one, other] = [(), ()].map(|()| Redlock::builder().node(&url).build().unwrap());
    let held = take(&fair(&one));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| fair(&other).lock().map(drop));
        has_entries([&server], KEY, 1);
        assert_eq!(held.unlock().unwrap(), ReleaseOutcome::Released);
        waiting.join().unwrap().unwrap();
    });
    no_entry_stays(&[server]);
}
