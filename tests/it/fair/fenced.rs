//! Fair locks that are fenced as well.

use super::faults::in_time;
use super::hand_offs::{TOKEN, time_to_get};
use super::{FENCED_QUEUE, QUEUE, no_place_stays, order_of, places};
use crate::clients::{LONG_TTL, SOON, builder, calls, client, failure, long_lock, take, value};
use crate::support::capable::has_users;
use crate::support::process::eventually;
use crate::support::server::{Answer, Server};
use quorumlock::embedded::EmbeddedNode;
use quorumlock::protocol::script;
use quorumlock::{
    CancelHandle, Cause, ErrorKind, FencingToken, Mutex, MutexGuard, Redlock, ReleaseOutcome, Wait, Watchdog,
};
use std::sync::Mutex as Guarded;
use std::thread;
use std::time::{Duration, Instant};

const KEY: &str = "quorumlock-fence:k";

fn fenced(client: &Redlock) -> Mutex {
    long_lock(client, "k").fenced().into()
}

fn fair(client: &Redlock) -> Mutex {
    long_lock(client, "k").fenced().fair().into()
}

fn token(guard: &MutexGuard) -> FencingToken {
    guard.fencing_token().expect("the lock is fenced")
}

#[track_caller]
fn grow(fences: &[FencingToken]) {
    assert!(fences.windows(2).all(|two| two[0] < two[1]), "{fences:?}");
}

#[test]
fn programs_are_served_in_their_order_and_fences_grow() {
    for nodes in 1..=5 {
        let servers = Server::several(nodes).unwrap();
        let clients: Vec<Redlock> = (0..6).map(|_| builder(&servers).place_lease(SOON).build().unwrap()).collect();
        // One that does not queue up counts like any other that holds the lock.
        let held = take(&fenced(&client(&servers)));
        let fences = Guarded::new(vec![token(&held)]);
        let (all, locks): (Vec<&Server>, Vec<Mutex>) = (servers.iter().collect(), clients.iter().map(fair).collect());
        let had = |guard: &MutexGuard| fences.lock().unwrap().push(token(guard));
        assert_eq!(order_of(&locks, &all, || drop(held.unlock()), had), [0, 1, 2, 3, 4, 5], "{nodes} nodes");
        grow(&fences.into_inner().unwrap());
        no_place_stays(&servers);
        assert!(value(&servers[0], KEY).is_some_and(|text| text.ends_with(" 0 ")), "the fence stays, and is free");
    }
}

#[test]
fn fair_and_other_fenced_clients_exclude_each_other_and_plain_ones_have_another_queue() {
    let servers = Server::several(3).unwrap();
    let [mine, theirs] = [client(&servers), client(&servers)];
    for (one, other) in [(fair(&mine), fenced(&theirs)), (fenced(&mine), fair(&theirs)), (fair(&mine), fair(&theirs))] {
        let held = take(&one);
        assert!(other.try_lock().unwrap().is_none());
        assert_eq!(held.unlock().unwrap(), ReleaseOutcome::Released);
        assert!(take(&other).unlock().is_ok());
    }
    let held = take(&long_lock(&theirs, "k").fair());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| long_lock(&mine, "k").fair().lock().map(drop));
        assert!(eventually(SOON, || servers.iter().all(|server| value(server, QUEUE).is_some())), "it has its place");
        assert!(servers.iter().all(|server| value(server, FENCED_QUEUE).is_none()));
        assert!(take(&fair(&mine)).unlock().is_ok(), "those of another lock are not in front");
        drop(held.unlock());
        waiting.join().unwrap().unwrap();
    });
    no_place_stays(&servers);
}

/// The judge is the lock itself: what is noted under it is in the order of holding.
#[test]
fn fences_grow_however_many_compete_in_whichever_way() {
    for nodes in [2, 3] {
        let servers = Server::several(nodes).unwrap();
        let end = Instant::now() + Duration::from_secs(1);
        let (fences, by_fair) = (Guarded::new(Vec::new()), Guarded::new(0));
        thread::scope(|scope| {
            for number in 0..6 {
                let (client, fences, by_fair) = (client(&servers), &fences, &by_fair);
                scope.spawn(move || {
                    let is_fair = number > 0;
                    let lock = if is_fair { fair(&client) } else { fenced(&client) };
                    while Instant::now() < end {
                        let guard = lock.lock().unwrap();
                        fences.lock().unwrap().push(token(&guard));
                        *by_fair.lock().unwrap() += u32::from(is_fair);
                        drop(guard.unlock());
                    }
                });
            }
        });
        let (fences, by_fair) = (fences.into_inner().unwrap(), by_fair.into_inner().unwrap());
        println!("{nodes} nodes: {} acquisitions, {by_fair} of them fair", fences.len());
        grow(&fences);
        assert!(by_fair >= 5);
        no_place_stays(&servers);
    }
}

#[test]
fn a_lock_that_is_free_takes_one_round_and_no_place() {
    let servers = Server::several(3).unwrap();
    let client = client(&servers);
    drop(take(&fair(&client)).unlock());
    let scripts = || servers.iter().map(|server| calls(server, "evalsha") + calls(server, "eval")).sum::<u64>();
    let before = scripts();
    let mut fences = Vec::new();
    for _ in 0..10 {
        let guard = fair(&client).lock().unwrap();
        fences.push(token(&guard));
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    }
    grow(&fences);
    assert!(eventually(SOON, || scripts() - before == 2 * 10 * 3), "{} scripts", scripts() - before);
    no_place_stays(&servers);
}

#[test]
fn waits_that_end_without_the_lock_leave_no_place() {
    let servers = Server::several(3).unwrap();
    let [mine, theirs] = [client(&servers), client(&servers)];
    let held = take(&fair(&theirs));
    let has_place = || eventually(SOON, || servers.iter().all(|server| places(server) == 1));
    let cancel = CancelHandle::new();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| fair(&mine).lock_with(&Wait::unlimited().cancelled_by(&cancel)));
        assert!(has_place());
        cancel.cancel();
        assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    });
    no_place_stays(&servers);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| fair(&mine).lock_timeout(Duration::from_secs(1)));
        assert!(has_place());
        assert!(waiting.join().unwrap().unwrap().is_none());
    });
    no_place_stays(&servers);
    drop(held);
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
        assert!(eventually(SOON, || servers.iter().all(|server| places(server) == 1)), "it has no place");
        thread::sleep(Duration::from_millis(50));
        let released = Instant::now();
        drop(held.unlock());
        waiting.join().unwrap().saturating_duration_since(released)
    })
}

#[test]
fn the_next_one_has_it_at_once_by_a_hint_and_in_a_third_of_the_lease_without() {
    let servers = Server::several(3).unwrap();
    let patient = || builder(&servers).place_lease(SOON * 3).build().unwrap();
    let clients = [patient(), patient()];
    // Much less than a third of its place's time.
    in_time(Duration::from_secs(1), || time_to_pass(&clients[0], &clients[1], &servers));
    let deaf = || builder(&servers).release_notifications(false).build().unwrap();
    let clients = [deaf(), deaf()];
    in_time(Duration::from_millis(1000 / 3), || time_to_pass(&clients[0], &clients[1], &servers));
}

/// Its place is refreshed after more time than this takes.
#[test]
fn the_first_one_is_told_in_whichever_way_the_lock_becomes_free_for_it() {
    let other = "0000000000000001";
    let release = ["release", TOKEN, "quorumlock:", "0", "600000"];
    let undo = [&release[..], &[other]].concat();
    let in_front = format!("{:015} {:015}:9999999999999:{other}", 1, 1);
    for (words, is_behind) in [(&release[..], false), (&undo, false), (&["leave", other, "quorumlock:", "0"], true)] {
        let servers = Server::several(3).unwrap();
        for server in &servers {
            server.command(&["SET", KEY, &format!("5 9999999999999 {TOKEN}")]).unwrap();
            if is_behind {
                server.command(&["SET", FENCED_QUEUE, &in_front]).unwrap();
            }
        }
        let took = time_to_get((fair, KEY), &servers, 1 + usize::from(is_behind), || {
            for server in &servers {
                if is_behind {
                    server.command(&["SET", KEY, "5 0 "]).unwrap();
                }
                let words = [&["EVAL", script::FENCED_FAIR, "2", KEY, FENCED_QUEUE], words].concat();
                assert!(matches!(server.command(&words).unwrap(), Answer::Number(1..)), "{words:?}");
            }
        });
        assert!(took < SOON, "{words:?}: after {took:?}");
        no_place_stays(&servers);
    }
}

/// The key outlives the lock, so how long it lives is not how long it is held.
#[test]
fn a_holder_that_dies_is_followed_when_its_lock_ends() {
    let servers = Server::several(3).unwrap();
    let short = |client: &Redlock| -> Mutex { client.mutex("k").ttl(Duration::from_secs(1)).fenced().fair().into() };
    let patient = || builder(&servers).place_lease(SOON * 3).build().unwrap();
    in_time(Duration::from_millis(1300), || {
        let begun = Instant::now();
        let held = take(&short(&patient()));
        let first = token(&held);
        // Detached, it is never released.
        drop(held.detach());
        let guard = short(&patient()).lock_timeout(SOON).unwrap().expect("it is free");
        assert!(begun.elapsed() >= Duration::from_millis(950), "it is held until then");
        grow(&[first, token(&guard)]);
        drop(guard.unlock());
        begun.elapsed()
    });
    no_place_stays(&servers);
}

#[test]
fn it_is_extended_watched_handed_over_and_stands_as_any_lock() {
    let servers = Server::several(3).unwrap();
    let [mine, theirs] = [client(&servers), client(&servers)];
    let watched = mine.mutex("k").ttl(Duration::from_millis(300)).watchdog(Watchdog::new()).fenced().fair();
    let guard = watched.lock().unwrap();
    let first = guard.fence();
    let next = thread::scope(|scope| {
        let waiting = scope.spawn(|| fair(&theirs).lock().unwrap());
        thread::sleep(Duration::from_millis(900));
        assert!(!waiting.is_finished() && !guard.remaining().is_zero(), "it was extended");
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
        waiting.join().unwrap()
    });
    grow(&[first, token(&next)]);
    // Handed over, it keeps its number, and its release wakes the one that waits.
    let (second, lease) = (token(&next), next.detach().into_text());
    let lease = lease.expose().parse().unwrap();
    let mut taken = long_lock(&mine, "k").fenced().fair().attach(lease).unwrap();
    assert_eq!(taken.fence(), second);
    assert!(taken.extend(LONG_TTL).is_ok() && fair(&theirs).try_lock().unwrap().is_none());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| fair(&theirs).lock().unwrap());
        assert!(eventually(SOON, || servers.iter().all(|server| places(server) == 1)), "it has no place");
        assert_eq!(taken.unlock().unwrap(), ReleaseOutcome::Released);
        let third = waiting.join().unwrap();
        grow(&[second, token(&third)]);
    });
    let standing = mine.mutex("k").ttl(LONG_TTL).min_hold(Duration::from_secs(2)).fenced().fair();
    let begun = Instant::now();
    assert!(standing.lock().unwrap().unlock().is_ok());
    drop(fair(&theirs).lock().unwrap());
    assert!(begun.elapsed() >= Duration::from_millis(1900), "it stands for so long");
    // A lock that others have taken is reported as lost.
    let short = mine.mutex("k").ttl(Duration::from_millis(500)).watchdog(Watchdog::new()).fenced().fair();
    let guard = short.lock().unwrap();
    let lost = guard.lost().unwrap();
    let others = format!("{} 9999999999999 {}", guard.fence().get() + 1, "ab".repeat(20));
    servers.iter().for_each(|server| _ = server.command(&["SET", KEY, &others]).unwrap());
    assert!(lost.recv_timeout(SOON).is_ok());
    no_place_stays(&servers);
}

#[test]
fn what_cannot_be_read_or_is_far_ahead_is_a_fault_of_that_node() {
    let node = EmbeddedNode::builder().without_scripts().start().unwrap();
    let error = failure(&fair(&Redlock::builder().node(node.url()).build().unwrap()));
    assert_eq!(error.causes()[0].cause(), Cause::NoScripts);
    let server = Server::start().unwrap();
    let client = client([&server]);
    let ahead = format!("{} 0 ", FencingToken::MAX);
    for (words, cause, is_of_queue) in [
        (&["SET", FENCED_QUEUE, "something else"][..], Cause::UnexpectedValue, true),
        (&["LPUSH", FENCED_QUEUE, "x"], Cause::UnexpectedValue, true),
        (&["SET", KEY, "something else"], Cause::UnexpectedValue, false),
        (&["LPUSH", KEY, "x"], Cause::UnexpectedValue, false),
        (&["SET", KEY, &ahead], Cause::FenceAhead, false),
    ] {
        server.command(&["DEL", FENCED_QUEUE, KEY]).unwrap();
        server.command(words).unwrap();
        assert_eq!(failure(&fair(&client)).causes()[0].cause(), cause, "{words:?}");
        match is_of_queue {
            true => assert!(take(&fenced(&client)).unlock().is_ok(), "one that is not fair does not look at it"),
            false if words[0] == "SET" => assert_eq!(value(&server, KEY).as_deref(), Some(words[2]), "untouched"),
            false => {}
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
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    assert_eq!(failure(&fair(&client([&server]))).causes()[0].cause(), Cause::OutOfMemory);
}

#[test]
fn a_user_needs_the_rights_that_are_listed() {
    if !has_users() {
        return;
    }
    let server = Server::start().unwrap();
    let keys = "~quorumlock-fence:k ~quorumlock-queue:quorumlock-fence:k &quorumlock:quorumlock-fence:k";
    let user = format!(
        "ACL SETUSER locker reset resetchannels on >secret {keys} +@connection +eval +evalsha +get +set +del +pttl"
    );
    let words: Vec<&str> = user.split(' ').chain(["+time", "+publish", "+subscribe", "+unsubscribe"]).collect();
    assert_eq!(server.command(&words).unwrap(), Answer::Text("OK".into()));
    let url = format!("redis://locker:secret@{}", server.address());
    let [one, other] = [(), ()].map(|()| Redlock::builder().node(&url).build().unwrap());
    let held = take(&fair(&one));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| fair(&other).lock().map(drop));
        assert!(eventually(SOON, || places(&server) == 1), "it has no place");
        assert_eq!(held.unlock().unwrap(), ReleaseOutcome::Released);
        waiting.join().unwrap().unwrap();
    });
    no_place_stays(&[server]);
}
