//! Releases that a node has not run: they are sent again, while their keys can live, and only to
//! nodes that can run them.

mod outages;

use crate::clients::{
    SOON, builder, calls, causes, client, client_of, hang_and_fill, long_lock, take, value,
};
use crate::support::fake::{Act, Command, Event, Fake, healthy, say};
use crate::support::process::eventually;
use crate::support::server::Server;
use quorumlock::{Cause, ErrorKind, ExtendOutcome, Redlock, ReleaseOutcome};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What servers reply when they cannot run a release now, and may later.
const REFUSALS_OF_RELEASES: [&str; 12] = [
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "LOADING Redis is loading the dataset in memory",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
    "NOREPLICAS Not enough good replicas to write.",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "NOAUTH Authentication required.",
    "NOPERM this user has no permissions to run the 'del' command",
    "MOVED 3999 127.0.0.1:6381",
    "CLUSTERDOWN The cluster is down",
    "ERR something went wrong",
    "WHAT no client knows",
];

#[test]
fn a_release_that_a_node_could_not_run_is_sent_again_until_it_is_run() {
    const REFUSALS: usize = 3;
    for error in REFUSALS_OF_RELEASES {
        let mut refused = 0;
        let fake = Fake::on_command(move |command| match is_release_of(command, "k") {
            // No other way to release.
            _ if command[0].starts_with("DEL") => vec![say("-ERR unknown command\r\n")],
            true if refused < REFUSALS => {
                refused += 1;
                vec![say(&format!("-{error}\r\n"))]
            }
            true => vec![say(":1\r\n")],
            false => vec![Act::Say(healthy(command))],
        });
        let client = client_of([fake.url()]);
        let unlocked = take(&long_lock(&client, "k")).unlock();
        assert_eq!(unlocked.expect_err(error).kind(), ErrorKind::Unavailable);
        let is_run = || {
            drop(long_lock(&client, "another").try_lock());
            releases(&fake, "k") > REFUSALS
        };
        assert!(
            eventually(SOON, is_run),
            "{error}: sent {} times",
            releases(&fake, "k")
        );
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(100));
            drop(long_lock(&client, "another").try_lock());
        }
        assert_eq!(releases(&fake, "k"), REFUSALS + 1, "{error}");
    }
}

/// A node refuses one release for good, and runs others: that one is tried again once a second, the
/// others at once.
#[test]
fn a_release_that_is_never_run_is_sent_at_a_bounded_rate_and_holds_up_no_other() {
    let is_down = Arc::new(AtomicBool::new(false));
    let script = Arc::clone(&is_down);
    let fake = Fake::scripted(move |_, event| match event {
        Event::Received(command) if is_release_of(command, "denied") => {
            vec![say("-ERR not for you\r\n")]
        }
        _ if script.load(Ordering::SeqCst) => vec![Act::Close],
        Event::Connected => Vec::new(),
        Event::Received(command) => vec![Act::Say(healthy(command))],
    });
    let client = client_of([fake.url()]);
    let short = client.mutex("denied").ttl(Duration::from_secs(4));
    drop(take(&short));
    let begun = Instant::now();
    let mut pairs = 0;
    let mut others = 0;
    while begun.elapsed() < Duration::from_secs(2) {
        // A release that is run is no information about the one that is not.
        if let Ok(Some(guard)) = long_lock(&client, "other").try_lock() {
            pairs += u32::from(guard.unlock().is_ok());
        }
        thread::sleep(Duration::from_millis(5));
        others += 1;
    }
    let sent = releases(&fake, "denied");
    assert!(
        (2..=8).contains(&sent),
        "sent {sent} times in {:?}, beside {pairs} pairs of {others}",
        begun.elapsed()
    );
    let guards: Vec<_> = (0..20)
        .map(|number| take(&long_lock(&client, &format!("k{number}"))))
        .collect();
    is_down.store(true, Ordering::SeqCst);
    drop(guards);
    thread::sleep(Duration::from_millis(100));
    is_down.store(false, Ordering::SeqCst);
    let all = || (0..20).all(|number| releases(&fake, &format!("k{number}")) > 0);
    assert!(
        eventually(SOON, all),
        "those that are pending as well are held up"
    );
    client.flush_releases(SOON).unwrap();
    let sent = releases(&fake, "denied");
    assert!(sent <= 12, "sent {sent} times in {:?}", begun.elapsed());
}

#[test]
fn a_server_without_its_replicas_releases_when_it_has_them_again() {
    let server = Server::start().unwrap();
    let client = client([&server]);
    let guard = take(&long_lock(&client, "k"));
    server
        .command(&["CONFIG", "SET", "min-replicas-to-write", "1"])
        .unwrap();
    if server.info("redis_version").unwrap().starts_with("5.") {
        // It counts its replicas for plain commands only. A release is a script.
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
        return;
    }
    assert_eq!(guard.unlock().unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(value(&server, "k").is_some());
    server
        .command(&["CONFIG", "SET", "min-replicas-to-write", "0"])
        .unwrap();
    let released = || {
        drop(long_lock(&client, "another").try_lock());
        value(&server, "k").is_none()
    };
    assert!(eventually(SOON, released), "the former holder's key stays");
}

#[test]
fn an_unlock_survives_connections_that_are_closed_at_the_same_moment() {
    let servers = Server::several(3).unwrap();
    let mutex = long_lock(&client(&servers), "k");
    let failed = (0..20).filter(|_| {
        let guard = loop {
            if let Ok(Some(guard)) = mutex.try_lock() {
                break guard;
            }
        };
        for server in &servers {
            server
                .command(&["CLIENT", "KILL", "TYPE", "normal"])
                .unwrap();
        }
        guard.unlock().is_err()
    });
    assert_eq!(failed.count(), 0, "of 20");
}

#[test]
fn an_unlock_does_not_wait_for_a_node_that_closes_and_comes_not_back() {
    let fake = Fake::healthy_but("EVAL", vec![Act::Close]);
    let client = Redlock::builder()
        .node(fake.url())
        .node_timeout(Duration::from_secs(60))
        .build()
        .unwrap();
    let guard = take(&long_lock(&client, "k"));
    let begun = Instant::now();
    assert_eq!(causes(&guard.unlock().unwrap_err())[0].2, Cause::Closed);
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(releases(&fake, "k"), 2, "once more, and not for ever");
}

#[test]
fn a_node_that_got_no_byte_of_an_attempt_gets_no_release_of_it() {
    const PAIRS: u64 = 50;
    let mut servers = [
        Server::start().unwrap(),
        Server::start().unwrap(),
        Server::with(&["--tcp-backlog", "1"]).unwrap(),
    ];
    let queued = hang_and_fill(&servers[2]);
    // The connection to the third is neither made nor refused. As long as it is not late, it is
    // asked.
    let client = builder(&servers)
        .node_timeout(Duration::from_secs(60))
        .build()
        .unwrap();
    for number in 0..PAIRS {
        assert_eq!(
            take(&long_lock(&client, &format!("k{number}")))
                .unlock()
                .unwrap(),
            ReleaseOutcome::Released
        );
    }
    servers[2].kill();
    drop(queued);
    servers[2].restart().unwrap();
    let is_asked = || {
        drop(long_lock(&client, "after").try_lock());
        calls(&servers[2], "set") > 0
    };
    assert!(eventually(SOON, is_asked));
    thread::sleep(Duration::from_millis(100));
    drop(long_lock(&client, "after").try_lock());
    let asked = calls(&servers[2], "set");
    let released = calls(&servers[2], "eval") + calls(&servers[2], "evalsha");
    // The node is noted as well, by a script that sets a key, unless the node was looked at long
    // before.
    assert!(
        released <= asked + 1,
        "{released} releases of {asked} attempts, after {PAIRS} that never left"
    );
}

#[test]
fn a_release_is_pending_no_longer_than_its_key_can_live() {
    let is_down = Arc::new(AtomicBool::new(false));
    let fake = Fake::closing_while(&is_down);
    let servers = Server::several(2).unwrap();
    let client = client_of(servers.iter().map(Server::url).chain([fake.url()]));
    let mutex = |key: &str, millis| client.mutex(key).ttl(Duration::from_millis(millis));
    let short = take(&mutex("short", 2000));
    let long = take(&mutex("long", 60_000));
    assert!(eventually(SOON, || ["short", "long"]
        .iter()
        .all(|key| sets(&fake, key) == 1)));
    is_down.store(true, Ordering::SeqCst);
    drop((short, long));
    thread::sleep(Duration::from_millis(2500));
    let short = releases(&fake, "short");
    let long = releases(&fake, "long");
    is_down.store(false, Ordering::SeqCst);
    let released = || {
        drop(mutex("another", 60_000).try_lock());
        releases(&fake, "long") > long
    };
    assert!(eventually(SOON, released), "the other is still pending");
    assert_eq!(releases(&fake, "short"), short);
}

/// A node may run the extension whose answer never came, and then the key lives for as long as the
/// extension requires.
#[test]
fn after_an_extension_that_failed_the_release_is_pending_for_as_long_as_that_may_last() {
    let is_down = Arc::new(AtomicBool::new(false));
    let script = Arc::clone(&is_down);
    let fake = Fake::scripted(move |_, event| match event {
        _ if script.load(Ordering::SeqCst) => vec![Act::Close],
        Event::Received(command) if command[0] == "EVAL" && command[1].contains("PEXPIRE") => {
            script.store(true, Ordering::SeqCst);
            vec![Act::Close]
        }
        Event::Connected => Vec::new(),
        Event::Received(command) => vec![Act::Say(healthy(command))],
    });
    let client = client_of([fake.url()]);
    let guard = take(&client.mutex("k").ttl(Duration::from_millis(1000)));
    assert!(matches!(
        guard.extend(Duration::from_secs(60)).unwrap(),
        ExtendOutcome::Failed(_)
    ));
    let sent = releases(&fake, "k");
    drop(guard);
    thread::sleep(Duration::from_millis(1500));
    is_down.store(false, Ordering::SeqCst);
    let is_released = || {
        drop(long_lock(&client, "another").try_lock());
        releases(&fake, "k") > sent
    };
    assert!(
        eventually(SOON, is_released),
        "the key may live for a minute"
    );
}

/// The node refuses the release with the handshake, or closes before it answers the release.
#[test]
fn a_release_behind_a_rejected_handshake_is_sent_on_the_next_good_connection() {
    const LOADING: &str = "-LOADING Redis is loading the dataset in memory\r\n";
    const NO_AUTH: &str = "-NOAUTH Authentication required.\r\n";
    for is_fenced in [false, true] {
        for (refusal, closes) in [
            (LOADING, false),
            (LOADING, true),
            (NO_AUTH, false),
            (NO_AUTH, true),
        ] {
            is_sent_on_the_next_good_connection(is_fenced, refusal, closes);
        }
    }
}

#[track_caller]
fn is_sent_on_the_next_good_connection(is_fenced: bool, refusal: &'static str, closes: bool) {
    /// The first connection closes at the release, these reject the handshake, the next one is
    /// good.
    const REJECTED: RangeInclusive<usize> = 1..=2;
    let is_release = move |command: &Command| match is_fenced {
        true => command[0].starts_with("EVAL") && command[4] == "release",
        false => is_release_of(command, "k"),
    };
    let fake = Fake::scripted(move |connection, event| match event {
        Event::Connected => Vec::new(),
        Event::Received(command) if connection == 0 && is_release(command) => vec![Act::Close],
        Event::Received(command) if REJECTED.contains(&connection) => {
            match closes && is_release(command) {
                true => vec![Act::Close],
                false => vec![say(refusal)],
            }
        }
        Event::Received(command)
            if is_fenced && command[0] == "EVAL" && command[4] == "acquire" =>
        {
            // The floor is a fence that the node can give.
            vec![say(&format!("${}\r\n{}\r\n", command[8].len(), command[8]))]
        }
        Event::Received(command) => vec![Act::Say(healthy(command))],
    });
    let client = Redlock::builder()
        .node(fake.url())
        .node_timeout(SOON)
        .release_notifications(false)
        .build()
        .unwrap();
    let mutex = long_lock(&client, "k");
    let guard = take(&if is_fenced {
        mutex.fenced().erase()
    } else {
        mutex.erase()
    });
    assert_eq!(guard.unlock().unwrap_err().kind(), ErrorKind::Unavailable);
    // No call of the program is under way from here on.
    let sent_on = |connection| {
        fake.commands_on(connection)
            .iter()
            .filter(|command| is_release(command))
            .count()
    };
    let good = REJECTED.end() + 1;
    let case = format!("fenced {is_fenced}, {refusal:?}, closes {closes}");
    assert!(
        eventually(SOON, || sent_on(good) > 0),
        "{case}: never on a good one of {}",
        fake.connections()
    );
    assert!(
        REJECTED.map(sent_on).sum::<usize>() > 0,
        "{case}: none waited behind a handshake"
    );
    client.flush_releases(SOON).unwrap();
    assert_eq!((sent_on(good), fake.connections()), (1, good + 1), "{case}");
}

fn is_release_of(command: &[String], key: &str) -> bool {
    command[0].starts_with("EVAL") && command.get(3).is_some_and(|word| word == key)
}

fn releases(fake: &Fake, key: &str) -> usize {
    fake.commands()
        .iter()
        .filter(|command| is_release_of(command, key))
        .count()
}

fn sets(fake: &Fake, key: &str) -> usize {
    fake.commands()
        .iter()
        .filter(|command| command[0] == "SET" && command[1] == key)
        .count()
}
