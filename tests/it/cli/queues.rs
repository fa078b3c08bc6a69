//! The queues of those that wait, as `show`, `ls`, `scan` and `break` see them.

use super::deployment::{Deployment, run};
use crate::clients::{LONG_TTL, SOON, ask, client, ok};
use crate::support::capable::has_users;
use crate::support::process::eventually;
use crate::support::server::Answer;
use quorumlock::{CancelHandle, Redlock, Wait};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const OURS: &str = "1111111111111111111111111111111111111111";
const FIRST: &str = "00112233445566aa";
const SECOND: &str = "00112233445566bb";

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// Lets a call wait on some nodes that began so many seconds ago.
fn waits(deployment: &Deployment, nodes: &[usize], key: &str, member: &str, seconds: u64) {
    enters(
        deployment,
        nodes,
        key,
        member,
        &(now() - Duration::from_secs(seconds))
            .as_micros()
            .to_string(),
    );
}

fn enters(deployment: &Deployment, nodes: &[usize], key: &str, member: &str, score: &str) {
    let queue = format!("quorumlock-queue:{key}");
    for &node in nodes {
        let added = deployment.servers[node]
            .command(&["ZADD", &queue, score, member])
            .unwrap();
        assert!(matches!(added, Answer::Number(_)), "{added:?}");
        ask(&deployment.servers[node], &["PEXPIRE", &queue, "60000"]);
    }
}

fn set(deployment: &Deployment, key: &str, value: &str) {
    for server in &deployment.servers {
        ok(server, &["SET", key, value, "PX", "50000"]);
    }
}

#[track_caller]
fn shows(deployment: &Deployment, words: &[&str], expected: &str) {
    let shown = run(deployment.tool(words));
    assert!(
        shown.out.contains(expected),
        "{words:?}, {expected:?}: {}",
        shown.all()
    );
}

#[test]
fn who_waits_is_shown_behind_the_holder_of_each_kind_of_lock() {
    let deployment = Deployment::of(3);
    let end = (now() + Duration::from_secs(50)).as_millis();
    let kinds = [
        ("k", OURS.to_owned(), "m1", ""),
        ("quorumlock-fence:f", format!("7 {end} {OURS}"), "f1", ""),
        (
            "quorumlock-rw:r",
            format!("r {end}:{OURS}"),
            "w1",
            " to write",
        ),
        (
            "quorumlock-rw:w",
            format!("w {end} {OURS} +x"),
            "r1",
            " to read",
        ),
        ("s#1", OURS.to_owned(), "s2:1", " for a permit"),
    ];
    for (key, value, call, wants) in &kinds {
        set(&deployment, key, value);
        let queue = if *key == "s#1" {
            "quorumlock-permits:s"
        } else {
            key
        };
        waits(&deployment, &[0, 1, 2], queue, &format!("{FIRST}{call}"), 5);
        let name = key.rsplit(':').next().unwrap();
        for words in [["ls", name], ["show", name]] {
            shows(
                &deployment,
                &words,
                &format!("111111…, 1 waits, first {FIRST}{wants}, for 5"),
            );
        }
        waits(&deployment, &[0, 1], queue, &format!("{SECOND}{call}"), 3);
        shows(
            &deployment,
            &["ls"],
            &format!("111111…, 2 wait, first {FIRST}{wants}, for 5"),
        );
        let shown = run(deployment.tool(&["show", name])).out;
        let nodes = [" 2 wait, first ", " 1 waits, first "].map(|text| shown.matches(text).count());
        assert_eq!(
            nodes,
            [3, 1],
            "a line about the lock, and one for each node: {shown}"
        );
    }
    let listed = run(deployment.tool(&["ls"]));
    assert_eq!(
        listed.out.lines().count(),
        kinds.len() + 1,
        "a queue is no lock: {}",
        listed.all()
    );
    let json = run(deployment.tool(&["show", "r", "--json"])).out;
    let first = format!(
        "\"waiting\":2,\"first_waiter\":{{\"client\":\"{FIRST}\",\"wants\":\"write\",\"waiting_ms\":"
    );
    assert!(
        json.matches(&first).count() == 3 && !json.contains("writer_waits"),
        "{json}"
    );
    // Entries of queues are no fault of a key, also where they stay.
    let scanned = run(deployment.tool(&["scan", "--max-ttl", "1m"]));
    assert_eq!((scanned.code, scanned.all().as_str()), (Some(0), ""));
}

#[test]
fn the_queue_of_a_free_lock_and_of_a_semaphore_is_shown_by_name() {
    let deployment = Deployment::of(3);
    waits(
        &deployment,
        &[0, 2],
        "quorumlock-rw:r",
        &format!("{FIRST}w1"),
        5,
    );
    shows(
        &deployment,
        &["show", "r"],
        &format!("read-write lock \"r\": free, 1 waits, first {FIRST} to write, for 5"),
    );
    waits(
        &deployment,
        &[0, 1, 2],
        "quorumlock-permits:s",
        &format!("{FIRST}s2:1"),
        5,
    );
    shows(
        &deployment,
        &["show", "s"],
        &format!("lock \"s\": free, 1 waits, first {FIRST} for a permit, for 5"),
    );
    shows(&deployment, &["show", "none"], "lock \"none\": free\n");
    shows(
        &deployment,
        &["show", "none", "--json"],
        "\"waiting\":0,\"first_waiter\":null",
    );
    assert_eq!(
        run(deployment.tool(&["ls"])).out.lines().count(),
        1,
        "no lock has a key"
    );
    set(&deployment, "app/s#0", OURS);
    waits(
        &deployment,
        &[0],
        "quorumlock-permits:app/s",
        &format!("{FIRST}s2:1"),
        5,
    );
    for words in
        [["ls", "--prefix", "app/"], ["show", "s#0", "--prefix=app/"]].map(|words| words.to_vec())
    {
        shows(
            &deployment,
            &words,
            &format!("…, 1 waits, first {FIRST} for a permit, for 5"),
        );
    }
}

#[test]
fn the_greatest_number_and_the_first_of_most_nodes_are_shown() {
    let deployment = Deployment::of(3);
    set(&deployment, "k", OURS);
    waits(&deployment, &[0, 2], "k", &format!("{SECOND}m1"), 5);
    waits(&deployment, &[1], "k", &format!("{FIRST}m1"), 8);
    waits(&deployment, &[1], "k", &format!("{FIRST}m2"), 1);
    waits(&deployment, &[1], "k", &format!("{FIRST}m3"), 1);
    shows(
        &deployment,
        &["ls"],
        &format!("…, 3 wait, first {SECOND}, for 5"),
    );
}

#[test]
fn nothing_in_a_queue_is_trusted() {
    let deployment = Deployment::of(1);
    set(&deployment, "k", OURS);
    let member = format!("{FIRST}m1");
    for (score, time) in [
        ("inf", "0 s"),
        ("1e300", "0 s"),
        ("9007199254740993", "0 s"),
    ] {
        enters(&deployment, &[0], "k", &member, score);
        shows(
            &deployment,
            &["ls"],
            &format!("1 waits, first {FIRST}, for {time}"),
        );
    }
    for score in ["-inf", "-1e300", "-1", "0"] {
        enters(&deployment, &[0], "k", &member, score);
        shows(
            &deployment,
            &["show", "k"],
            &format!("1 waits, first {FIRST}, for 2"),
        );
    }
    for member in ["\u{1b}[2J", "", "é", &"x".repeat(100_000)] {
        enters(&deployment, &[0], "k", member, "-inf");
        ask(
            &deployment.servers[0],
            &["ZREM", "quorumlock-queue:k", &format!("{FIRST}m1")],
        );
        let shown = run(deployment.tool(&["show", "k"]));
        assert!(
            shown
                .out
                .contains("lock \"k\": held by 111111…, 1 waits, on 1"),
            "{}",
            shown.all()
        );
        ask(&deployment.servers[0], &["DEL", "quorumlock-queue:k"]);
    }
    // One that is too long to be read leaves the lock as it is, and so does what is no queue.
    enters(&deployment, &[0], "k", &"x".repeat(3_000_000), "1");
    shows(&deployment, &["show", "k"], "lock \"k\": held by 111111…");
    shows(&deployment, &["ls"], "k     held");
    for words in [
        ["SET", "quorumlock-queue:k", "word"],
        ["LPUSH", "quorumlock-queue:k", "word"],
    ] {
        ask(&deployment.servers[0], &["DEL", "quorumlock-queue:k"]);
        deployment.servers[0].command(&words).unwrap();
        let shown = run(deployment.tool(&["show", "k"]));
        assert!(
            shown.code == Some(0) && !shown.out.contains("wait"),
            "{}",
            shown.all()
        );
        let scanned = run(deployment.tool(&["scan"]));
        assert_eq!((scanned.code, scanned.all().as_str()), (Some(0), ""));
    }
}

#[test]
fn breaking_a_lock_removes_those_in_its_queue_that_are_gone() {
    let deployment = Deployment::of(3);
    set(&deployment, "k", OURS);
    waits(&deployment, &[0, 1, 2], "k", &format!("{FIRST}m1"), 5);
    // It has a name of its own that is none of a lock.
    let named = run(deployment.tool(&["break", "quorumlock-queue:k", "--yes", "--force"]));
    assert!(named.out.contains("is not held"), "{}", named.all());
    let broken = run(deployment.tool(&["break", "k", "--yes", "--json"]));
    assert!(
        broken.code == Some(0) && broken.out.contains("\"waiting\":1"),
        "{}",
        broken.all()
    );
    for server in &deployment.servers {
        assert_eq!(
            server.command(&["ZCARD", "quorumlock-queue:k"]).unwrap(),
            Answer::Number(0)
        );
        assert_eq!(server.command(&["EXISTS", "k"]).unwrap(), Answer::Number(0));
    }
}

#[test]
fn a_user_without_the_right_to_queues_sees_the_lock() {
    if !has_users() {
        return;
    }
    let deployment = Deployment::of(1);
    set(&deployment, "k", OURS);
    waits(&deployment, &[0], "k", &format!("{FIRST}m1"), 5);
    let url = deployment.servers[0]
        .url()
        .replace("redis://", "redis://few:few@");
    for rights in [
        "~k ~quorumlock-fence:k ~quorumlock-rw:k +@all",
        "~* +@all -zcard",
        "~* +@all -zrange",
    ] {
        let words = format!("ACL SETUSER few reset on >few {rights}");
        ask(
            &deployment.servers[0],
            &words.split(' ').collect::<Vec<_>>(),
        );
        for words in [
            ["ls", "--nodes", &url].as_slice(),
            &["show", "k", "--nodes", &url],
        ] {
            let shown = run(deployment.tool(words));
            let is_shown = shown.out.contains("111111…") && !shown.out.contains("first");
            assert!(
                shown.code == Some(0) && is_shown,
                "{rights}: {}",
                shown.all()
            );
        }
    }
}

/// Programs that wait for a lock, and for a read-write lock, are shown as such until they have it
/// or give up.
#[test]
fn programs_that_wait_are_shown() {
    let deployment = Deployment::of(3);
    let clients: Vec<Redlock> = (0..3).map(|_| client(&deployment.servers)).collect();
    let held = clients[0].mutex("k").ttl(LONG_TTL).lock().unwrap();
    let reader = clients[0].read_mutex("r").ttl(LONG_TTL).lock().unwrap();
    let cancel = CancelHandle::new();
    thread::scope(|scope| {
        for client in &clients[1..] {
            scope.spawn(|| drop(client.mutex("k").ttl(LONG_TTL).lock().unwrap()));
        }
        let writer = scope.spawn(|| {
            clients[1]
                .write_mutex("r")
                .ttl(LONG_TTL)
                .lock_with(&Wait::unlimited().cancelled_by(&cancel))
                .map(drop)
        });
        let shown = |name: &str, text: &str| {
            eventually(SOON, || {
                run(deployment.tool(&["show", name])).out.contains(text)
            })
        };
        let is_shown = shown("k", "…, 2 wait, first ") && shown("r", " to write, for ");
        let last = [["show", "k"], ["show", "r"]].map(|words| run(deployment.tool(&words)).all());
        let broken = run(deployment.tool(&["break", "k", "--yes"]));
        let is_passed_on = eventually(SOON, || {
            run(deployment.tool(&["ls", "k"])).out.lines().count() == 1
        });
        cancel.cancel();
        drop(held);
        assert!(
            is_shown && is_passed_on && broken.code == Some(0),
            "{last:?}"
        );
        assert!(writer.join().unwrap().is_err());
    });
    drop(reader);
    let is_over = eventually(SOON, || {
        !run(deployment.tool(&["show", "r"])).out.contains("wait")
    });
    assert!(is_over, "{}", run(deployment.tool(&["show", "r"])).all());
}
