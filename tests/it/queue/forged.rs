//! Entries and messages that others have forged cost rounds, and no lock its turn.

use super::kinds::KINDS;
use super::*;
use crate::support::queues::forge_member;

/// An entry of a client that is alive, for a call that it does not have: it is told, and removes
/// it.
#[test]
fn an_entry_for_a_call_that_a_client_does_not_have_is_removed_by_that() {
    for kind in &KINDS {
        let servers = Server::several(3).unwrap();
        let took = time_to_hand_over(&servers, kind, &patient(&servers), || {
            for server in &servers {
                let own = entries(server, kind.key).remove(0);
                for number in [1_000_000, u64::MAX] {
                    forge_member(
                        server,
                        kind.key,
                        &format!("{}{}{number}", &own[..16], kind.letters),
                        "7",
                    );
                }
            }
        });
        assert_in_time(took, LATE, kind.name);
        nothing_stays(&servers, kind);
    }
}

/// For two seconds. Messages to calls that wait, to ones that have ended and to none cost rounds
/// and leaves; the client goes on, also with other locks.
#[test]
fn a_thousand_forged_messages_a_second_are_borne() {
    for kind in [&KINDS[0], &KINDS[2], &KINDS[4], &KINDS[5]] {
        let (servers, [theirs, mine]) = programs(3);
        let before = connect(&servers, [&theirs, &mine]);
        let held = kind.hold(&theirs);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| (kind.acquire)(&mine, SOON * 2).unwrap());
            has_entries(&servers, kind.key, 1);
            has_all_channels(&servers);
            thread::sleep(Duration::from_millis(100));
            let is_over = AtomicBool::new(false);
            let sent = AtomicU32::new(0);
            let others = AtomicU32::new(0);
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
            assert_kept(&before, &servers, kind.name);
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
                let guard = long_lock(client, "k")
                    .fair()
                    .lock_timeout(SOON * 3)
                    .unwrap()
                    .expect("it has its turn");
                order.lock().unwrap().push(number);
                drop(guard);
            });
            let is_there = || {
                servers.all(|server| {
                    entries(server, "k")
                        .iter()
                        .filter(|entry| !is_forged(entry))
                        .count()
                        == number + 1
                })
            };
            assert_soon!(is_there());
            thread::sleep(Duration::from_millis(50));
        }
        drop(held);
    });
    assert_eq!(order.into_inner().unwrap(), [0, 1, 2]);
    servers[0].command(&["DEL", "quorumlock-queue:k"]).unwrap();
    no_entry_stays(&servers);
}
