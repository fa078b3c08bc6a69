//! The queue of a lock that something has damaged, or that others fill: locks of every kind are handed over all the
//! same, other locks notice nothing, and nothing is left.

mod rights;

use crate::clients::{LONG_TTL, SOON, builder, client, long_lock, take};
use crate::support::process::{Socket, SocketState, connections_to, eventually};
use crate::support::queues::{
    Stranger, channels, count, entries, forge, forge_member, has_entries, no_entry_stays, no_entry_stays_behind,
};
use crate::support::server::Server;
use quorumlock::{Builder, Redlock};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Short enough to wait for it several times, and longer than any round trip.
const PLACE_LEASE: Duration = Duration::from_millis(400);
/// How late a thread may be.
const LATE: Duration = Duration::from_millis(500);
/// The client of entries that no client of ours has.
const OTHER: &str = "00000000000000ab";

/// A guard of any kind: dropped, it releases.
trait Guard: Send {}

impl<G: Send> Guard for G {}

type Held = Box<dyn Guard>;

/// A kind of lock, or of access to one.
struct Kind {
    name: &'static str,
    /// What the key of its queue ends with.
    key: &'static str,
    /// What names the kind in an entry.
    letters: &'static str,
    acquire: fn(&Redlock, Duration) -> quorumlock::Result<Option<Held>>,
}

/// The locks of all kinds. Those of a set and of a plain lock share a queue.
const KINDS: [Kind; 7] = [
    Kind {
        name: "plain",
        key: "k",
        letters: "m",
        acquire: |client, limit| held(client.mutex("k").ttl(LONG_TTL).lock_timeout(limit)),
    },
    Kind {
        name: "fair",
        key: "k",
        letters: "m",
        acquire: |client, limit| held(client.mutex("k").ttl(LONG_TTL).fair().lock_timeout(limit)),
    },
    Kind {
        name: "fenced",
        key: "quorumlock-fence:k",
        letters: "f",
        acquire: |client, limit| held(client.mutex("k").ttl(LONG_TTL).fenced().lock_timeout(limit)),
    },
    Kind {
        name: "to read",
        key: "quorumlock-rw:k",
        letters: "r",
        acquire: |client, limit| held(client.read_mutex("k").ttl(LONG_TTL).lock_timeout(limit)),
    },
    Kind {
        name: "to write",
        key: "quorumlock-rw:k",
        letters: "w",
        acquire: |client, limit| held(client.write_mutex("k").ttl(LONG_TTL).lock_timeout(limit)),
    },
    Kind {
        name: "permit",
        key: "quorumlock-permits:k",
        letters: "s1:",
        acquire: |client, limit| held(client.semaphore("k", 1).ttl(LONG_TTL).lock_timeout(limit)),
    },
    Kind {
        name: "set",
        key: "k",
        letters: "m",
        acquire: |client, limit| held(client.mutex_set(["k", "l"]).ttl(LONG_TTL).lock_timeout(limit)),
    },
];

fn held<G: Send + 'static>(result: quorumlock::Result<Option<G>>) -> quorumlock::Result<Option<Held>> {
    result.map(|guard| guard.map(|guard| Box::new(guard) as Held))
}

impl Kind {
    fn queue(&self) -> String {
        format!("quorumlock-queue:{}", self.key)
    }

    /// An entry of this client for a lock of the kind.
    fn member(&self, client: &str) -> String {
        format!("{client}{}7", self.letters)
    }

    /// What keeps the lock from a call of the kind.
    fn hold(&self, client: &Redlock) -> Held {
        let holds = if self.name == "to read" { &KINDS[4] } else { self };
        (holds.acquire)(client, SOON).unwrap().expect("it is free")
    }
}

/// Connects these clients, and returns the connections that they have, but for those of subscribers.
fn connect(servers: &[Server], clients: [&Redlock; 2]) -> Vec<Socket> {
    clients.iter().for_each(|client| drop(client.connect(SOON).unwrap()));
    let all = connections(servers);
    assert!(all.len() >= clients.len() * servers.len(), "{all:?}");
    all
}

/// The connections of this process to the servers.
fn connections(servers: &[Server]) -> Vec<Socket> {
    let mut all = connections_to(&servers.iter().map(Server::port).collect::<Vec<_>>());
    all.retain(|socket| socket.state == SocketState::Established);
    all
}

/// A client holds a lock, and another one waits for it; then something is done, and the lock is released. Returns how
/// long the other one waits from then on. No connection is closed meanwhile, and other locks go on.
fn time_to_hand_over(servers: &[Server], kind: &Kind, builder: &Builder, meanwhile: impl FnOnce()) -> Duration {
    let [theirs, mine] = [(); 2].map(|()| builder.clone().build().unwrap());
    let before = connect(servers, [&theirs, &mine]);
    let held = kind.hold(&theirs);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let guard = (kind.acquire)(&mine, SOON * 2).unwrap();
            (guard, Instant::now())
        });
        let is_there = || servers.iter().all(|server| entries(server, kind.key).iter().any(|entry| !is_forged(entry)));
        assert!(eventually(SOON, is_there), "{}: it has no entry", kind.name);
        has_all_channels(servers);
        // It asks when it is subscribed.
        thread::sleep(Duration::from_millis(50));
        meanwhile();
        let begun = Instant::now();
        drop(held);
        for _ in 0..5 {
            assert!(take(&long_lock(&mine, "other")).unlock().is_ok(), "{}: another lock notices", kind.name);
        }
        let (guard, had) = waiting.join().unwrap();
        let left: Vec<usize> = servers.iter().map(|server| entries(server, kind.key).len()).collect();
        assert!(guard.is_some(), "{}: it does not get the lock: {left:?}", kind.name);
        let after = connections(servers);
        let is_kept = |one: &Socket| after.iter().any(|other| other.local_port == one.local_port);
        assert!(before.iter().all(is_kept), "{}: {before:?} {after:?}", kind.name);
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
        let real = |server: &Server| channels(server).iter().any(|channel| !channel.contains(":0000000000"));
        servers.iter().all(real)
    };
    assert!(eventually(SOON, are_there), "no client is subscribed");
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
    builder(servers).place_lease(SOON * 60).retry_delay(SOON, SOON)
}

#[test]
fn a_queue_of_another_type_is_deleted() {
    const DAMAGES: [&[&str]; 4] = [&["SET", "x"], &["LPUSH", "x"], &["HSET", "x", "y"], &["XADD", "*", "x", "y"]];
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
    let long = "0".repeat(200_000);
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
    let scores = ["-inf", "inf", "0", "1.5", "-7", "1e300", "9007199254740993", "1700000000000000"];
    for kind in &KINDS {
        let servers = Server::several(3).unwrap();
        let damage = || {
            for (number, server) in servers.iter().enumerate() {
                for (index, member) in members.iter().enumerate() {
                    forge_member(server, kind.key, member, scores[(index + number) % scores.len()]);
                }
            }
        };
        damage();
        // The reply about a queue with a long member is long.
        let took = time_to_hand_over(&servers, kind, &prompt(&servers), damage);
        assert_in_time(took, PLACE_LEASE * 2, kind.name);
        if kind.name == "permit" {
            // Entries for more permits than there are count as told when fewer were free.
            servers.iter().for_each(|server| _ = server.command(&["DEL", &kind.queue()]).unwrap());
        }
        nothing_stays(&servers, kind);
    }
}

/// What is first in a queue, and looks alive: it costs one challenge.
#[test]
fn entries_of_any_form_whose_channel_has_a_receiver_cost_two_challenges_at_most() {
    for kind in &KINDS {
        let servers = Server::several(3).unwrap();
        let strangers: Vec<Stranger> = servers.iter().map(Stranger::on_all).collect();
        let members = [kind.member(OTHER), "0000000000000001q7".to_owned(), "x".to_owned(), "a b c".to_owned()];
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
        let words = (0..dead).flat_map(|number| [number.to_string(), format!("{number:016x}{}7", kind.letters)]);
        let words: Vec<String> = words.collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        server.command(&[&["ZADD", &kind.queue()], &words[..]].concat()).unwrap();
        assert!(count(server, kind.key) >= dead);
    }
}

#[test]
fn dead_entries_in_front_that_one_script_removes_cost_no_challenge() {
    for kind in &KINDS {
        let servers = Server::several(3).unwrap();
        let took = time_to_hand_over(&servers, kind, &patient(&servers), || add_dead(&servers, kind, 250));
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

/// An entry of a client that is alive, for a call that it does not have: it is told, and removes it.
#[test]
fn an_entry_for_a_call_that_a_client_does_not_have_is_removed_by_that() {
    for kind in &KINDS {
        let servers = Server::several(3).unwrap();
        let took = time_to_hand_over(&servers, kind, &patient(&servers), || {
            for server in &servers {
                let own = entries(server, kind.key).remove(0);
                for number in [1_000_000, u64::MAX] {
                    forge_member(server, kind.key, &format!("{}{}{number}", &own[..16], kind.letters), "7");
                }
            }
        });
        assert_in_time(took, LATE, kind.name);
        nothing_stays(&servers, kind);
    }
}

/// It is told again and again, and reads nothing.
#[test]
fn a_subscriber_that_reads_nothing_costs_a_challenge_for_each_entry() {
    for kind in &KINDS {
        let servers = Server::several(3).unwrap();
        let strangers: Vec<Stranger> = servers.iter().map(|server| Stranger::on_channel_of(server, OTHER)).collect();
        for _ in 0..2 {
            let took = time_to_hand_over(&servers, kind, &prompt(&servers), || {
                servers.iter().for_each(|server| forge_member(server, kind.key, &kind.member(OTHER), "7"));
            });
            assert_in_time(took, PLACE_LEASE * 2, kind.name);
        }
        drop(strangers);
        nothing_stays(&servers, kind);
    }
}

/// All of them look alive, and a challenge removes all that are in front.
#[test]
fn a_subscriber_to_everything_makes_the_dead_cost_a_challenge() {
    for kind in &KINDS {
        let servers = Server::several(3).unwrap();
        let strangers: Vec<Stranger> = servers.iter().map(Stranger::on_all).collect();
        let took = time_to_hand_over(&servers, kind, &prompt(&servers), || {
            for server in &servers {
                for number in 0..100 {
                    forge_member(server, kind.key, &format!("{number:016x}{}7", kind.letters), &number.to_string());
                }
            }
        });
        assert_in_time(took, PLACE_LEASE * 2, kind.name);
        drop(strangers);
        nothing_stays(&servers, kind);
    }
}

/// For two seconds. What is said to calls that wait, to ones that have ended and to none costs rounds and leaves; the
/// client goes on, also with other locks.
#[test]
fn a_thousand_forged_messages_a_second_are_borne() {
    for kind in [&KINDS[0], &KINDS[2], &KINDS[4], &KINDS[5]] {
        let servers = Server::several(3).unwrap();
        let [theirs, mine] = [client(&servers), client(&servers)];
        let before = connect(&servers, [&theirs, &mine]);
        let held = kind.hold(&theirs);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| (kind.acquire)(&mine, SOON * 2).unwrap());
            has_entries(&servers, kind.key, 1);
            has_all_channels(&servers);
            thread::sleep(Duration::from_millis(100));
            let (is_over, sent, others) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
            let own = entries(&servers[0], kind.key).remove(0);
            let channel = format!("quorumlock:{}", &own[..16]);
            let call = &own[16..];
            let key = kind.key;
            let messages = [
                format!("{call} {key}"),
                format!("?{call} {key}"),
                format!("{}9999 {key}", kind.letters),
                format!("m9999 {key} and more"),
                format!("f9999 {key}"),
                format!("s256:9999 {key}#255"),
                format!("r9999 {key}"),
                "x".repeat(1000),
                String::new(),
                ". .".to_owned(),
            ];
            thread::scope(|scope| {
                for server in &servers[..2] {
                    let (messages, channel, is_over, sent) = (&messages, &channel, &is_over, &sent);
                    scope.spawn(move || {
                        // Twenty in each of fifty commands a second.
                        for round in 0.. {
                            let texts = (0..20).map(|index| &messages[(round + index) % messages.len()]);
                            let script = "for _, text in ipairs(ARGV) do redis.call('PUBLISH', KEYS[1], text) end";
                            let mut words = vec!["EVAL", script, "1", channel];
                            words.extend(texts.map(String::as_str));
                            server.command(&words).unwrap();
                            sent.fetch_add(20, Ordering::Relaxed);
                            thread::sleep(Duration::from_millis(20));
                            if is_over.load(Ordering::Relaxed) {
                                break;
                            }
                        }
                    });
                }
                let until = Instant::now() + Duration::from_secs(2);
                while Instant::now() < until {
                    assert!(take(&long_lock(&mine, "other")).unlock().is_ok());
                    others.fetch_add(1, Ordering::Relaxed);
                }
                is_over.store(true, Ordering::Relaxed);
            });
            assert!(others.into_inner() > 100, "{}: other locks wait", kind.name);
            assert!(!waiting.is_finished(), "{}: it is held", kind.name);
            drop(held);
            let begun = Instant::now();
            assert!(waiting.join().unwrap().is_some());
            assert_in_time(begun.elapsed(), LATE, kind.name);
            let after = connections(&servers);
            let is_kept = |one: &Socket| after.iter().any(|other| other.local_port == one.local_port);
            assert!(before.iter().all(is_kept), "{}: {before:?} {after:?}", kind.name);
        });
        no_entry_stays(&servers);
    }
}

/// A ticket of the far future, by a node or by a client, moves no other one: the order stays.
#[test]
fn a_ticket_far_ahead_at_one_node_changes_no_order() {
    let servers = Server::several(3).unwrap();
    let clients: Vec<Redlock> = (0..3).map(|_| patient(&servers).build().unwrap()).collect();
    let held = take(&long_lock(&client(&servers), "k"));
    let _alive = Stranger::on_channel_of(&servers[0], OTHER);
    forge(&servers[0], "k", OTHER, "9007199254740991");
    let order = std::sync::Mutex::new(Vec::new());
    thread::scope(|scope| {
        for (number, client) in clients.iter().enumerate() {
            let order = &order;
            scope.spawn(move || {
                let guard = long_lock(client, "k").fair().lock_timeout(SOON * 3).unwrap().expect("it has its turn");
                order.lock().unwrap().push(number);
                drop(guard);
            });
            let is_there = || {
                servers
                    .iter()
                    .all(|server| entries(server, "k").iter().filter(|entry| !is_forged(entry)).count() == number + 1)
            };
            assert!(eventually(SOON, is_there));
            thread::sleep(Duration::from_millis(50));
        }
        drop(held);
    });
    assert_eq!(order.into_inner().unwrap(), [0, 1, 2]);
    servers[0].command(&["DEL", "quorumlock-queue:k"]).unwrap();
    no_entry_stays(&servers);
}
