//! Extension by hand: when it wins, what it does to every key, and what a failed or late one leaves
//! in force.
//!
//! A won extension does not wait for its repairs, nor a release for stragglers. So what is on the
//! servers is looked at until it is as it should be; what must not have happened shows in the
//! servers' own counts.

use crate::clients::{
    LONG_TTL, NODE_TIMEOUT, SLACK, SOON, builder, calls, client, client_of, failure, gone_for_good,
    left, long_lock, ok, take, value,
};
use crate::support::fake::{Act, Event, Fake, healthy, say};
use crate::support::process::eventually;
use crate::support::server::{Answer, Server};
use quorumlock::{
    Cause, ErrorKind, ExtendOutcome, MutexGuard, Phase, Redlock, ReleaseOutcome, RestartPolicy,
    Watchdog,
};
use std::thread;
use std::time::{Duration, Instant};

const KEY: &str = "k";
const OTHER: &str = "other";
/// Longer than [`LONG_TTL`], so that it shows.
const LONGER: Duration = Duration::from_secs(90);
const SHORT: Duration = Duration::from_millis(300);

/// What has become of the key on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Ours,
    Gone,
    /// Another program's, without an expiry.
    Taken,
}

impl Fate {
    /// Every way in which the nodes can differ.
    fn all(nodes: u32) -> impl Iterator<Item = Vec<Fate>> {
        let fates = [Fate::Ours, Fate::Gone, Fate::Taken];
        (0..3_usize.pow(nodes)).map(move |case| {
            (0..nodes)
                .map(|node| fates[case / 3_usize.pow(node) % 3])
                .collect()
        })
    }
}

/// A lock whose key is on every one of the servers, and the key's value.
#[track_caller]
fn take_everywhere(client: &Redlock, ttl: Duration, servers: &[Server]) -> (MutexGuard, String) {
    let guard = take(&client.mutex(KEY).ttl(ttl));
    let mut tokens = Vec::new();
    let is_everywhere = || {
        tokens = servers
            .iter()
            .filter_map(|server| value(server, KEY))
            .collect();
        tokens.len() == servers.len()
    };
    assert!(eventually(SOON, is_everywhere));
    tokens.dedup();
    assert_eq!(tokens.len(), 1);
    (guard, tokens.remove(0))
}

fn extensions(servers: &[Server]) -> Vec<u64> {
    servers
        .iter()
        .map(|server| calls(server, "eval") + calls(server, "evalsha") + calls(server, "set"))
        .collect()
}

#[test]
fn the_nodes_where_the_key_is_ours_decide_and_the_gone_ones_are_repaired_after_a_win() {
    let servers = Server::several(5).unwrap();
    let client = client(&servers);
    // The note of each node is one.
    let mut sets = [1_u64; 5];
    for fates in Fate::all(5) {
        let case = format!("{fates:?}");
        let (guard, token) = take_everywhere(&client, LONG_TTL, &servers);
        for (server, fate) in servers.iter().zip(&fates) {
            match fate {
                Fate::Ours => {}
                Fate::Gone => assert_eq!(server.command(&["DEL", KEY]).unwrap(), Answer::Number(1)),
                Fate::Taken => ok(server, &["SET", KEY, OTHER]),
            }
        }
        let ours = fates.iter().filter(|fate| **fate == Fate::Ours).count();
        let is_won = ours >= 3;

        let before = guard.remaining();
        let extension = guard.extend(LONGER).unwrap();
        assert_eq!(
            extension,
            if is_won {
                ExtendOutcome::Extended
            } else {
                ExtendOutcome::Lost
            },
            "{case}"
        );
        let remaining = guard.remaining();
        // All of the new time but for the allowance for drift, a hundredth; or nothing.
        let whole = LONGER * 98 / 100..LONGER;
        assert!(
            if is_won {
                remaining > before && whole.contains(&remaining)
            } else {
                remaining.is_zero()
            },
            "{case}"
        );

        for (index, (server, fate)) in servers.iter().zip(&fates).enumerate() {
            // One is the lock's own.
            sets[index] += 1 + u64::from(*fate == Fate::Taken || *fate == Fate::Gone && is_won);
            let expected = match fate {
                Fate::Taken => Some(OTHER),
                Fate::Gone if !is_won => None,
                Fate::Gone | Fate::Ours => Some(token.as_str()),
            };
            assert!(
                eventually(SOON, || value(server, KEY).as_deref() == expected),
                "{case}: node {index}"
            );
            if is_won && expected == Some(&token) {
                assert!(left(server, KEY) > Some(LONG_TTL), "{case}: node {index}");
            }
            if *fate == Fate::Taken {
                assert_eq!(left(server, KEY), None, "{case}: node {index}");
            }
        }

        let release = guard.unlock().unwrap();
        assert_eq!(
            release,
            if is_won {
                ReleaseOutcome::Released
            } else {
                ReleaseOutcome::Expired
            },
            "{case}"
        );
        for (server, fate) in servers.iter().zip(&fates) {
            let expected = (*fate == Fate::Taken).then_some(OTHER);
            assert!(
                eventually(SOON, || value(server, KEY).as_deref() == expected),
                "{case}"
            );
            server.command(&["DEL", KEY]).unwrap();
        }
    }
    let counted: Vec<u64> = servers.iter().map(|server| calls(server, "set")).collect();
    assert_eq!(counted, sets, "more, or less, was repaired than should be");
}

#[test]
fn a_key_of_another_type_belongs_to_another_program() {
    let servers = Server::several(3).unwrap();
    let client = client(&servers);
    for taken in 0..=3 {
        let (guard, _) = take_everywhere(&client, LONG_TTL, &servers);
        for server in &servers[..taken] {
            server.command(&["DEL", KEY]).unwrap();
            server.command(&["RPUSH", KEY, OTHER]).unwrap();
        }
        let expected = if taken <= 1 {
            ExtendOutcome::Extended
        } else {
            ExtendOutcome::Lost
        };
        assert_eq!(guard.extend(LONGER).unwrap(), expected, "{taken} of 3");
        drop(guard);
        for server in &servers[..taken] {
            assert_eq!(server.command(&["LLEN", KEY]).unwrap(), Answer::Number(1));
            server.command(&["DEL", KEY]).unwrap();
        }
        gone_for_good(&servers, KEY);
    }
}

#[test]
fn a_failed_extension_names_its_causes_and_leaves_the_old_lease_in_force() {
    let servers = Server::several(5).unwrap();
    let client = builder(&servers)
        .node_timeout(NODE_TIMEOUT * 4)
        .build()
        .unwrap();
    let (guard, token) = take_everywhere(&client, LONG_TTL, &servers);
    assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Extended);
    let (hung, healthy) = servers.split_at(3);
    let before = end(&guard);
    for server in hung {
        server.pause().unwrap();
    }
    let start = Instant::now();
    let ExtendOutcome::Failed(causes) = guard.extend(LONGER).unwrap() else {
        panic!("two of five are no quorum")
    };
    assert!(start.elapsed() < NODE_TIMEOUT * 4 + SOON / 10);
    let named: Vec<_> = causes
        .iter()
        .map(|cause| (cause.address().to_owned(), cause.phase(), cause.cause()))
        .collect();
    let expected: Vec<_> = hung
        .iter()
        .map(|server| (server.address(), Phase::Reply, Cause::TimedOut))
        .collect();
    assert_eq!(named, expected);
    assert_same_end(before, end(&guard));
    for server in healthy {
        assert_eq!(
            value(server, KEY).as_ref(),
            Some(&token),
            "a failed extension deletes nothing"
        );
    }
    // They are known to hang now, and still nothing is lost.
    assert!(
        matches!(guard.extend(LONGER).unwrap(), ExtendOutcome::Failed(causes) if causes.len() == 3)
    );
    assert_same_end(before, end(&guard));

    for server in hung {
        server.resume().unwrap();
    }
    let works_again = || matches!(guard.extend(LONGER).unwrap(), ExtendOutcome::Extended);
    assert!(eventually(SOON, works_again));
    assert!(guard.remaining() > LONG_TTL);
    for server in &servers {
        assert_eq!(value(server, KEY).as_ref(), Some(&token));
    }
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    gone_for_good(&servers, KEY);
}

/// When the lease ends: not before the one and not after the other.
fn end(guard: &MutexGuard) -> (Instant, Instant) {
    let earliest = Instant::now();
    let remaining = guard.remaining();
    (earliest + remaining, Instant::now() + remaining)
}

#[track_caller]
fn assert_same_end(one: (Instant, Instant), other: (Instant, Instant)) {
    // The lease's clock counts what the wall clock gains.
    let noise = Duration::from_millis(2);
    assert!(
        one.0 <= other.1 + noise && other.0 <= one.1 + noise,
        "{one:?} {other:?}"
    );
}

#[test]
fn nothing_revives_an_expired_lease() {
    let servers = Server::several(3).unwrap();
    let client = client(&servers);
    for servers_forget in [true, false] {
        let (guard, _) = take_everywhere(&client, SHORT, &servers);
        for server in servers.iter().filter(|_| !servers_forget) {
            assert_eq!(
                server.command(&["PERSIST", KEY]).unwrap(),
                Answer::Number(1)
            );
        }
        thread::sleep(SHORT);
        assert_eq!(guard.remaining(), Duration::ZERO);
        let before = extensions(&servers);
        for ttl in [LONG_TTL, SHORT, LONGER] {
            assert_eq!(guard.extend(ttl).unwrap(), ExtendOutcome::Lost);
            assert_eq!(guard.remaining(), Duration::ZERO);
        }
        assert_eq!(
            extensions(&servers),
            before,
            "an expired lease has nothing to say to the servers"
        );
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Expired);
        gone_for_good(&servers, KEY);
    }
}

#[test]
fn a_quorum_that_agrees_after_the_end_comes_too_late() {
    let servers = Server::several(3).unwrap();
    let mine = client(&servers);
    let theirs = client(&servers);
    let (guard, _) = take_everywhere(&mine, SHORT, &servers);
    for server in &servers {
        // Without an expiry the key stays until the extension arrives.
        assert_eq!(
            server.command(&["PERSIST", KEY]).unwrap(),
            Answer::Number(1)
        );
        server.pause().unwrap();
    }
    let extension = thread::scope(|scope| {
        let extension = scope.spawn(|| guard.extend(LONG_TTL).unwrap());
        thread::sleep(SHORT + SLACK);
        for server in &servers {
            server.resume().unwrap();
        }
        extension.join().unwrap()
    });
    assert_eq!(extension, ExtendOutcome::Lost);
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Lost);
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Expired);
    gone_for_good(&servers, KEY);
    assert_eq!(
        take(&long_lock(&theirs, KEY)).unlock().unwrap(),
        ReleaseOutcome::Released
    );
}

#[test]
fn a_restarted_node_is_repaired_so_that_two_others_may_be_lost() {
    let mut servers = Server::several(5).unwrap();
    // Without the guard against restarts, which does not let a repaired node count at once.
    let trusting = |servers: &[Server]| {
        builder(servers)
            .restart_policy(RestartPolicy::Off)
            .build()
            .unwrap()
    };
    let mine = trusting(&servers);
    let theirs = trusting(&servers);
    let (guard, token) = take_everywhere(&mine, LONG_TTL, &servers);
    servers[4].restart().unwrap();
    assert_eq!(value(&servers[4], KEY), None);
    // A connection with something left to read is found closed only when it has been written to.
    // The next one is made then.
    let is_repaired = || {
        assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Extended);
        value(&servers[4], KEY).as_ref() == Some(&token)
    };
    assert!(eventually(SOON, is_repaired));
    assert!(left(&servers[4], KEY) > Some(LONG_TTL / 2));

    for server in &mut servers[..2] {
        server.kill();
    }
    assert!(long_lock(&theirs, KEY).try_lock().unwrap().is_none());
    assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Extended);
    // They come back with nothing. Had the fifth not been repaired, a majority would be free.
    for server in &mut servers[..2] {
        server.restart().unwrap();
    }
    let asked = || {
        assert!(long_lock(&theirs, KEY).try_lock().unwrap().is_none());
        servers[..2].iter().all(|server| calls(server, "set") > 0)
    };
    assert!(
        eventually(SOON, asked),
        "no client has asked the nodes that were lost"
    );
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    gone_for_good(&servers, KEY);
}

#[test]
fn a_node_is_repaired_though_another_one_hangs() {
    let servers = Server::several(5).unwrap();
    let client = builder(&servers)
        .node_timeout(NODE_TIMEOUT * 4)
        .build()
        .unwrap();
    for by_a_watchdog in [false, true] {
        let mutex = long_lock(&client, KEY);
        let watchdog = Watchdog::new().period(NODE_TIMEOUT * 4);
        let guard = take(&if by_a_watchdog {
            mutex.watchdog(watchdog)
        } else {
            mutex
        });
        assert!(eventually(SOON, || servers
            .iter()
            .all(|server| value(server, KEY).is_some())));
        servers[0].command(&["DEL", KEY]).unwrap();
        servers[4].pause().unwrap();
        if !by_a_watchdog {
            assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Extended);
        }
        let is_repaired = || value(&servers[0], KEY).is_some();
        assert!(
            eventually(NODE_TIMEOUT * 10, is_repaired),
            "by a watchdog: {by_a_watchdog}"
        );
        servers[4].resume().unwrap();
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
        gone_for_good(&servers, KEY);
    }
}

#[test]
fn what_was_repaired_is_released_where_the_lock_was_not_taken() {
    let mut servers = Server::several(3).unwrap();
    let client = client(&servers);
    servers[2].kill();
    let guard = take(&long_lock(&client, KEY));
    servers[2].restart().unwrap();
    let is_repaired = || {
        assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Extended);
        value(&servers[2], KEY).is_some()
    };
    assert!(eventually(SOON, is_repaired));
    // It hangs while the release is sent, and runs it when it goes on.
    servers[2].pause().unwrap();
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    servers[2].resume().unwrap();
    gone_for_good(&servers, KEY);
}

#[test]
fn a_full_memory_prevents_neither_extension_nor_release() {
    let servers: Vec<Server> = (0..3)
        .map(|_| Server::with(&["--maxmemory-policy", "noeviction"]).unwrap())
        .collect();
    let client = client(&servers);
    let (guard, token) = take_everywhere(&client, LONG_TTL, &servers);
    for server in &servers {
        ok(server, &["CONFIG", "SET", "maxmemory", "1"]);
    }
    let error = failure(&long_lock(&client, "another"));
    assert!(
        error
            .causes()
            .iter()
            .all(|node| node.cause() == Cause::OutOfMemory),
        "{error}"
    );
    assert_eq!(guard.extend(LONGER).unwrap(), ExtendOutcome::Extended);
    for server in &servers {
        assert_eq!(value(server, KEY).as_ref(), Some(&token));
        assert!(left(server, KEY) > Some(LONG_TTL));
    }
    // A repair has nowhere to go, and costs nothing.
    servers[0].command(&["DEL", KEY]).unwrap();
    assert_eq!(guard.extend(LONGER).unwrap(), ExtendOutcome::Extended);
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    gone_for_good(&servers, KEY);
}

#[test]
fn a_shorter_time_to_live_changes_nothing_and_sends_nothing() {
    let servers = Server::several(3).unwrap();
    let client = client(&servers);
    let (guard, _) = take_everywhere(&client, LONG_TTL, &servers);
    let sent = extensions(&servers);
    assert_eq!(guard.extend(SHORT).unwrap(), ExtendOutcome::Extended);
    assert!(guard.remaining() > LONG_TTL / 2);
    assert_eq!(extensions(&servers), sent);
    assert!(
        servers
            .iter()
            .all(|server| left(server, KEY) > Some(LONG_TTL / 2))
    );
    assert!(client.mutex(KEY).try_lock().unwrap().is_none());
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
}

#[test]
fn an_unusable_time_to_live_is_refused_and_changes_nothing() {
    let servers = Server::several(3).unwrap();
    let client = builder(&servers).max_ttl(LONGER).build().unwrap();
    let (guard, _) = take_everywhere(&client, LONG_TTL, &servers);
    let before = end(&guard);
    let sent = extensions(&servers);
    let unusable = [
        Duration::ZERO,
        Duration::from_micros(999),
        Duration::from_millis(2),
        LONGER + Duration::from_millis(1),
        Duration::MAX,
    ];
    for ttl in unusable {
        assert_eq!(
            guard.extend(ttl).unwrap_err().kind(),
            ErrorKind::Config,
            "{ttl:?}"
        );
    }
    assert_same_end(before, end(&guard));
    assert_eq!(extensions(&servers), sent);
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
}

#[test]
fn nodes_that_are_far_are_repaired_too() {
    let far = |number: u32, delay, reply: &'static str| {
        Fake::scripted(move |_, event| match event {
            Event::Connected => Vec::new(),
            Event::Received(command) if command[0] == "EVAL" => {
                vec![Act::Wait(Duration::from_millis(delay)), say(reply)]
            }
            Event::Received(command) => {
                let text = String::from_utf8(healthy(command)).unwrap();
                let Some(at) = text.find("run_id:") else {
                    return vec![say(&text)];
                };
                let (before, after) = text.split_at(at + 7);
                vec![say(&format!("{before}{number}{}", &after[1..]))]
            }
        })
    };
    let fakes = [
        far(1, 60, ":1\r\n"),
        far(2, 60, ":1\r\n"),
        far(3, 80, ":0\r\n"),
    ];
    let client = client_of(fakes.each_ref().map(Fake::url));
    let guard = take(&long_lock(&client, "k"));
    let sets = || {
        fakes[2]
            .commands()
            .iter()
            .filter(|command| command[0] == "SET")
            .count()
    };
    assert!(eventually(SOON, || sets() == 1));
    for _ in 0..10 {
        assert_eq!(guard.extend(LONGER).unwrap(), ExtendOutcome::Extended);
        thread::sleep(Duration::from_millis(100));
    }
    assert!(sets() > 1, "never repaired");
}
