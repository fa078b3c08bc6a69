//! Fair locks that are fenced as well: what is not as with others.

use super::faults::in_time;
use super::hand_offs::{TOKEN, time_to_notice};
use super::{FENCED_KEY as KEY, no_entry_stays};
use crate::clients::{SOON, builder, long_lock, ok, take};
use crate::support::capable::has_users;
use crate::support::queues::has_entries;
use crate::support::server::{Answer, Server};
use quorumlock::protocol::kinds;
use quorumlock::{FencedGuard, FencedMutex, FencingToken, Redlock, ReleaseOutcome};
use std::thread;
use std::time::{Duration, Instant};

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
