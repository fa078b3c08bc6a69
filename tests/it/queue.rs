//! The queue of a lock that something has damaged, or that others fill: locks of every kind are
//! handed over all the same, other locks notice nothing, and nothing is left.
//!
//! [`kinds`] are the locks, [`forged`] is about entries and messages of others, [`rights`] about
//! users and memory.

mod forged;
mod kinds;
mod rights;

use crate::prelude::*;
use crate::support::queues::{channels, connections, forge_member, no_entry_stays_behind};
use kinds::{KINDS, Kind};

/// Short enough to wait for it several times, and longer than any round trip.
const PLACE_LEASE: Duration = Duration::from_millis(400);
/// How late a thread may be.
const LATE: Duration = Duration::from_millis(500);
/// The client of entries that no client of ours has.
const OTHER: &str = "00000000000000ab";

/// Connects these clients, and returns the connections that the servers have then.
fn connect(servers: &[Server], clients: [&Redlock; 2]) -> Vec<Vec<String>> {
    clients
        .iter()
        .for_each(|client| drop(client.connect(SOON).unwrap()));
    // Servers may still have others, which are closed.
    let mut all = Vec::new();
    let are_alone = eventually(SOON, || {
        all = open_connections(servers);
        all.iter().all(|numbers| numbers.len() == clients.len())
    });
    assert!(are_alone, "{all:?}");
    all
}

/// The numbers of the connections that each server has, without subscribers and this test.
fn open_connections(servers: &[Server]) -> Vec<Vec<String>> {
    let numbers = |server: &Server| {
        let all = connections(server, &["TYPE", "normal"]).into_iter();
        let others = all.filter(|line| !line.contains(" cmd=client"));
        others
            .map(|line| line.split(' ').next().unwrap().to_owned())
            .collect()
    };
    servers.each(numbers)
}

/// No connection has been closed since.
#[track_caller]
fn assert_kept(before: &[Vec<String>], servers: &[Server], what: &str) {
    let after = open_connections(servers);
    let is_kept =
        |(before, after): (&Vec<String>, &Vec<String>)| before.iter().all(|id| after.contains(id));
    assert!(
        before.iter().zip(&after).all(is_kept),
        "{what}: {before:?} {after:?}"
    );
}

/// A client holds a lock, and another one waits for it; then something is done, and the lock is
/// released. Returns how long the other one waits from then on. No connection is closed meanwhile,
/// and other locks go on.
fn time_to_hand_over(
    servers: &[Server],
    kind: &Kind,
    builder: &Builder,
    meanwhile: impl FnOnce(),
) -> Duration {
    let [theirs, mine] = [(); 2].map(|()| builder.clone().build().unwrap());
    let before = connect(servers, [&theirs, &mine]);
    let held = kind.hold(&theirs);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let guard = (kind.acquire)(&mine, SOON * 2).unwrap();
            (guard, Instant::now())
        });
        let is_there = || {
            servers.all(|server| {
                entries(server, kind.key)
                    .iter()
                    .any(|entry| !is_forged(entry))
            })
        };
        assert_soon!(is_there(), "{}: it has no entry", kind.name);
        has_all_channels(servers);
        // It asks when it is subscribed.
        thread::sleep(Duration::from_millis(50));
        meanwhile();
        let begun = Instant::now();
        drop(held);
        for _ in 0..5 {
            assert!(
                take(&long_lock(&mine, "other")).unlock().is_ok(),
                "{}: another lock notices",
                kind.name
            );
        }
        let (guard, had) = waiting.join().unwrap();
        let left: Vec<usize> = servers.each(|server| entries(server, kind.key).len());
        assert!(
            guard.is_some(),
            "{}: it does not get the lock: {left:?}",
            kind.name
        );
        assert_kept(&before, servers, kind.name);
        had.saturating_duration_since(begun)
    })
}

/// Waits until no entry is left. What is dead the next release removes, on all nodes.
fn nothing_stays(servers: &[Server], kind: &Kind) {
    let client = client(servers);
    no_entry_stays_behind(servers, || drop((kind.acquire)(&client, SOON).unwrap()));
}

fn is_forged(entry: &str) -> bool {
    entry.starts_with("0000000000") || entry.len() < 18 || !entry.is_char_boundary(16)
}

/// Waits until a client is subscribed on each server.
fn has_all_channels(servers: &[Server]) {
    let are_there = || {
        let real = |server: &Server| {
            channels(server)
                .iter()
                .any(|channel| !channel.contains(":0000000000"))
        };
        servers.all(real)
    };
    assert_soon!(are_there(), "no client is subscribed");
}

#[track_caller]
fn assert_in_time(took: Duration, limit: Duration, what: impl std::fmt::Debug) {
    assert!(took <= limit + LATE, "{what:?}: {took:?}, not {limit:?}");
}

fn prompt(servers: &[Server]) -> Builder {
    builder(servers).place_lease(PLACE_LEASE)
}

/// A client that asks in ten minutes, unless it is told.
fn patient(servers: &[Server]) -> Builder {
    builder(servers)
        .place_lease(SOON * 60)
        .retry_delay(SOON, SOON)
}

#[test]
fn a_queue_of_another_type_is_deleted() {
    const DAMAGES: [&[&str]; 4] = [
        &["SET", "x"],
        &["LPUSH", "x"],
        &["HSET", "x", "y"],
        &["XADD", "*", "x", "y"],
    ];
    for kind in &KINDS {
        let servers = Server::several(3).unwrap();
        let damage = |words: &[&str]| {
            for server in &servers {
                let queue = kind.queue();
                server.command(&["DEL", &queue]).unwrap();
                let words = [&[words[0], &queue], &words[1..]].concat();
                server.command(&words).unwrap();
            }
        };
        for (number, words) in DAMAGES.into_iter().enumerate() {
            damage(words);
            // Before a call waits, and while it does: then its entry is lost, and it is not told.
            let while_waiting = || {
                if number % 2 == 1 {
                    damage(words)
                }
            };
            let took = time_to_hand_over(&servers, kind, &prompt(&servers), while_waiting);
            assert_in_time(took, PLACE_LEASE * 2, (kind.name, words));
            no_entry_stays(&servers);
        }
    }
}

/// What is first in a queue, of any form and with any score, and dead: it costs a message.
#[test]
fn members_of_any_form_with_any_score_are_removed() {
    let long = "0".repeat(2_000_000);
    let members = [
        "x",
        "",
        "a b c",
        "\u{0}\r\n",
        "ä",
        "0000000000000001",
        "0000000000000001m",
        "0000000000000001q7",
        "0000000000000001r7",
        "0000000000000001w7",
        "0000000000000001s0:7",
        "0000000000000001s256:7",
        "0000000000000001s99999999999999999999:7",
        "0000000000000001s-1:7",
        "0000000000000001s1:7",
        &long,
    ];
    let scores = [
        "-inf",
        "inf",
        "0",
        "1.5",
        "-7",
        "1e300",
        "9007199254740993",
        "1700000000000000",
    ];
    for kind in &KINDS {
        let servers = Server::several(3).unwrap();
        let damage = || {
            for (number, server) in servers.iter().enumerate() {
                for (index, member) in members.iter().enumerate() {
                    forge_member(
                        server,
                        kind.key,
                        member,
                        scores[(index + number) % scores.len()],
                    );
                }
            }
        };
        damage();
        // The reply about a queue with a long member is long.
        let took = time_to_hand_over(&servers, kind, &prompt(&servers), damage);
        assert_in_time(took, PLACE_LEASE * 2, kind.name);
        if kind.name == "permit" {
            // Entries for more permits than there are count as told when fewer were free.
            ask_each(&servers, &["DEL", &kind.queue()]);
        }
        nothing_stays(&servers, kind);
    }
}

/// What is first in a queue, and looks alive: it costs one challenge.
#[test]
fn entries_of_any_form_whose_channel_has_a_receiver_cost_two_challenges_at_most() {
    for kind in &KINDS {
        let servers = Server::several(3).unwrap();
        let strangers: Vec<Stranger> = servers.each(Stranger::on_all);
        let members = [
            kind.member(OTHER),
            "0000000000000001q7".to_owned(),
            "x".to_owned(),
            "a b c".to_owned(),
        ];
        let took = time_to_hand_over(&servers, kind, &prompt(&servers), || {
            for server in &servers {
                for (member, score) in members.iter().zip(["7", "-inf", "1.5", "-7"]) {
                    forge_member(server, kind.key, member, score);
                }
            }
        });
        assert_in_time(took, PLACE_LEASE * 2, kind.name);
        drop(strangers);
        nothing_stays(&servers, kind);
    }
}

/// Puts so many dead entries in front.
fn add_dead(servers: &[Server], kind: &Kind, dead: usize) {
    for server in servers {
        let words = (0..dead).flat_map(|number| {
            [
                number.to_string(),
                format!("{number:016x}{}7", kind.letters),
            ]
        });
        let words: Vec<String> = words.collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        ask(server, &[&["ZADD", &kind.queue()], &words[..]].concat());
        assert!(count(server, kind.key) >= dead);
    }
}

#[test]
fn dead_entries_in_front_that_one_script_removes_cost_no_challenge() {
    for kind in &KINDS {
        let servers = Server::several(3).unwrap();
        let took = time_to_hand_over(&servers, kind, &patient(&servers), || {
            add_dead(&servers, kind, 250)
        });
        assert_in_time(took, LATE, kind.name);
        nothing_stays(&servers, kind);
    }
}

/// Each release and each call that asks removes some hundred of them.
#[test]
fn a_thousand_dead_entries_in_front_are_removed() {
    for kind in &KINDS {
        let servers = Server::several(3).unwrap();
        let builder = builder(&servers).place_lease(PLACE_LEASE / 8);
        let took = time_to_hand_over(&servers, kind, &builder, || add_dead(&servers, kind, 1000));
        assert_in_time(took, SOON / 2, kind.name);
        nothing_stays(&servers, kind);
    }
}
