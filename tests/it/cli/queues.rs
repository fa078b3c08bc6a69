//! The queues of those that wait, as `show`, `ls`, `scan` and `break` see them.

use super::inspection::OURS;
use super::*;

const FIRST: &str = "00112233445566aa";
const SECOND: &str = "00112233445566bb";

/// Lets a call of a client wait on some nodes that began so many seconds ago.
fn waits(deployment: &Deployment, nodes: &[usize], key: &str, member: &str, seconds: u64) {
    let score = (micros() - seconds * 1_000_000).to_string();
    enters(deployment, nodes, key, member, &score);
}

fn enters(deployment: &Deployment, nodes: &[usize], key: &str, member: &str, score: &str) {
    let queue = format!("quorumlock-queue:{key}");
    for &node in nodes {
        let server = &deployment.servers[node..=node];
        command_each(server, &["ZADD", &queue, score, member]);
        command_each(server, &["PEXPIRE", &queue, "60000"]);
    }
}

fn set(deployment: &Deployment, key: &str, value: &str) {
    command_each(&deployment.servers, &["SET", key, value, "PX", "50000"]);
}

#[test]
fn who_waits_is_shown_behind_the_holder_of_each_kind_of_lock() {
    let deployment = Deployment::of(3);
    let end = micros() / 1000 + 50_000;
    let fenced = format!("7 {end} {OURS}");
    let reader = format!("r {end}:{OURS}");
    let writer = format!("w {end} {OURS} +x");
    let kinds = [
        ("k", OURS, "k", "m1", ""),
        (
            "quorumlock-fence:f",
            &fenced,
            "quorumlock-fence:f",
            "f1",
            "",
        ),
        (
            "quorumlock-rw:r",
            &reader,
            "quorumlock-rw:r",
            "w1",
            " to write",
        ),
        (
            "quorumlock-rw:w",
            &writer,
            "quorumlock-rw:w",
            "r1",
            " to read",
        ),
        ("s#1", OURS, "quorumlock-permits:s", "s2:1", " for a permit"),
    ];
    for (key, value, queue, call, wants) in kinds {
        set(&deployment, key, value);
        waits(&deployment, &[0, 1, 2], queue, &format!("{FIRST}{call}"), 5);
        let name = key.rsplit(':').next().unwrap();
        let first = format!(", first {FIRST}{wants}, for 5");
        for command in ["ls", "show"] {
            deployment
                .run(&[command, name])
                .prints(&format!("111111…, 1 waits{first}"));
        }
        waits(&deployment, &[0, 1], queue, &format!("{SECOND}{call}"), 3);
        deployment
            .run("ls")
            .prints(&format!("111111…, 2 wait{first}"));
        // A line about the lock, and one for each node.
        deployment
            .run(&["show", name])
            .prints_times(" 2 wait, first ", 3)
            .prints_times(" 1 waits, first ", 1);
    }
    let listed = deployment.run("ls");
    assert_eq!(
        listed.out.lines().count(),
        kinds.len() + 1,
        "a queue is no lock: {}",
        listed.all()
    );
    let first = format!(
        "\"waiting\":2,\"first_waiter\":{{\"client\":\"{FIRST}\",\"wants\":\"write\",\"waiting_ms\":"
    );
    deployment
        .run("show r --json")
        .prints_times(&first, 3)
        .hides("writer_waits");
    // Entries of queues are no fault of a key, also where they stay.
    deployment.succeeds("scan --max-ttl 1m").writes_nothing();
}

#[test]
fn the_queue_of_a_free_lock_and_of_a_semaphore_is_shown_by_name() {
    let deployment = Deployment::of(3);
    let writer = format!("{FIRST}w1");
    let permit = format!("{FIRST}s2:1");
    waits(&deployment, &[0, 2], "quorumlock-rw:r", &writer, 5);
    waits(&deployment, &[0, 1, 2], "quorumlock-permits:s", &permit, 5);
    for (words, expected) in [
        (
            "show r",
            &*format!("read-write lock \"r\": free, 1 waits, first {FIRST} to write, for 5"),
        ),
        (
            "show s",
            &format!("lock \"s\": free, 1 waits, first {FIRST} for a permit, for 5"),
        ),
        ("show none", "lock \"none\": free\n"),
        ("show none --json", "\"waiting\":0,\"first_waiter\":null"),
    ] {
        deployment.run(words).prints(expected);
    }
    let listed = deployment.run("ls").out;
    assert_eq!(listed.lines().count(), 1, "no lock has a key");
    set(&deployment, "app/s#0", OURS);
    waits(&deployment, &[0], "quorumlock-permits:app/s", &permit, 5);
    let first = format!("…, 1 waits, first {FIRST} for a permit, for 5");
    for words in ["ls --prefix app/", "show s#0 --prefix=app/"] {
        deployment.run(words).prints(&first);
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
    let first = format!("…, 3 wait, first {SECOND}, for 5");
    deployment.run("ls").prints(&first);
}

#[test]
fn nothing_in_a_queue_is_trusted() {
    let deployment = Deployment::of(1);
    set(&deployment, "k", OURS);
    let member = format!("{FIRST}m1");
    for score in ["inf", "1e300", "9007199254740993"] {
        enters(&deployment, &[0], "k", &member, score);
        let shown = format!("1 waits, first {FIRST}, for 0 s");
        deployment.run("ls").prints(&shown);
    }
    for score in ["-inf", "-1e300", "-1", "0"] {
        enters(&deployment, &[0], "k", &member, score);
        let shown = format!("1 waits, first {FIRST}, for 2");
        deployment.run("show k").prints(&shown);
    }
    let remove = "DEL quorumlock-queue:k";
    for member in ["\u{1b}[2J", "", "é", &"x".repeat(100_000)] {
        enters(&deployment, &[0], "k", member, "-inf");
        let other = format!("ZREM quorumlock-queue:k {FIRST}m1");
        command_each(&deployment.servers, &other);
        deployment
            .run("show k")
            .prints("lock \"k\": held by 111111…, 1 waits, on 1");
        command_each(&deployment.servers, remove);
    }
    // One that is too long to be read leaves the lock as it is, and so does what is no queue.
    enters(&deployment, &[0], "k", &"x".repeat(3_000_000), "1");
    deployment
        .run("show k")
        .prints("lock \"k\": held by 111111…");
    deployment.run("ls").prints("k     held");
    for command in ["SET", "LPUSH"] {
        command_each(&deployment.servers, remove);
        command_each(
            &deployment.servers,
            &[command, "quorumlock-queue:k", "word"],
        );
        deployment.succeeds("show k").hides("wait");
        deployment.succeeds("scan").writes_nothing();
    }
}

#[test]
fn breaking_a_lock_removes_those_in_its_queue_that_are_gone() {
    let deployment = Deployment::of(3);
    set(&deployment, "k", OURS);
    waits(&deployment, &[0, 1, 2], "k", &format!("{FIRST}m1"), 5);
    // It has a name of its own that is none of a lock.
    deployment
        .run("break quorumlock-queue:k --yes --force")
        .prints("is not held");
    deployment
        .succeeds("break k --yes --json")
        .prints("\"waiting\":1");
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
    skip_unless!(has_users());
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
        let user = format!("ACL SETUSER few reset on >few {rights}");
        command_each(&deployment.servers, &user);
        for words in ["ls", "show k"] {
            deployment
                .succeeds(&format!("{words} --nodes {url}"))
                .prints("111111…")
                .hides("first");
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
        let shown =
            |words: &str, text: &str| eventually(SOON, || deployment.run(words).out.contains(text));
        let is_shown = shown("show k", "…, 2 wait, first ") && shown("show r", " to write, for ");
        let last = ["show k", "show r"].map(|words| deployment.run(words).all());
        let broken = deployment.run("break k --yes");
        let is_passed_on = eventually(SOON, || deployment.run("ls k").out.lines().count() == 1);
        cancel.cancel();
        drop(held);
        assert!(
            is_shown && is_passed_on && broken.code == Some(0),
            "{last:?}"
        );
        assert!(writer.join().unwrap().is_err());
    });
    drop(reader);
    let shown = || deployment.run("show r").out;
    let is_over = eventually(SOON, || !shown().contains("wait"));
    assert!(is_over, "{}", shown());
}
