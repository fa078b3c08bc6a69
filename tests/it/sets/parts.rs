//! Attempts of which nodes do a part: keys that are held on some nodes, other libraries.

use super::*;
use crate::embedded_vs_real::say_once;

const KEYS: [&str; 3] = ["a", "b", "c"];
const THEIRS: &str = "theirs";

/// The bits of each node's number are the keys that another client holds there.
fn attempt_where(addresses: &[String], client: &Redlock, keys: &[&str], held: &[usize]) {
    let held_keys = |bits: usize| {
        keys.iter()
            .enumerate()
            .filter(move |(index, _)| bits & 1 << index != 0)
    };
    for (address, &bits) in addresses.iter().zip(held) {
        held_keys(bits)
            .for_each(|(_, key)| assert_eq!(say_once(address, &["SET", key, THEIRS]), "+OK\r\n"));
    }
    let has_quorum = held.iter().filter(|&&bits| bits == 0).count() > addresses.len() / 2;
    let guard = set(client, keys).try_lock().unwrap();
    assert_eq!(guard.is_some(), has_quorum, "{held:?}");
    drop(guard);
    client.flush_releases(SOON).unwrap();
    for (address, &bits) in addresses.iter().zip(held) {
        for (index, key) in keys.iter().enumerate() {
            let expected = if bits & 1 << index != 0 {
                format!("$6\r\n{THEIRS}\r\n")
            } else {
                "$-1\r\n".to_owned()
            };
            assert_eq!(
                say_once(address, &["GET", key]),
                expected,
                "{held:?}: {key} is not as it was"
            );
        }
        say_once(address, &[&["DEL"], keys].concat());
    }
}

/// Every subset of the keys on every subset of the nodes, and different keys on each.
fn attempts_wherever(addresses: &[String], client: &Redlock) {
    // The nodes have reported what they are.
    client.connect(SOON).unwrap();
    for (keys, nodes) in (0..8).flat_map(|keys| (0..8).map(move |nodes| (keys, nodes))) {
        let held = [0, 1, 2].map(|node| if nodes & 1 << node == 0 { 0 } else { keys });
        attempt_where(addresses, client, &KEYS, &held);
    }
    for number in 0..64 {
        attempt_where(
            addresses,
            client,
            &KEYS[..2],
            &[number % 4, number / 4 % 4, number / 16],
        );
    }
}

#[test]
fn whatever_is_held_on_whichever_nodes_a_quorum_of_free_ones_decides_and_nothing_is_left() {
    for servers in threes() {
        let addresses: Vec<String> = servers.each(Server::address);
        attempts_wherever(&addresses, &client(&servers));
    }
}

#[test]
fn embedded_nodes_decide_so_and_keep_nothing_either() {
    let nodes = [(); 3].map(|()| EmbeddedNode::start().unwrap());
    let client = client_of(nodes.iter().map(EmbeddedNode::url));
    attempts_wherever(&nodes.each_ref().map(address_of), &client);
}

#[test]
fn a_waiter_finds_out_which_key_it_waits_for_and_a_node_that_lost_one_key_is_repaired() {
    for servers in threes() {
        // Nothing that is asked runs out of time.
        let [mine, theirs] =
            [(); 2].map(|()| builder(&servers).node_timeout(SOON).build().unwrap());
        [&mine, &theirs]
            .into_iter()
            .for_each(|client| drop(client.connect(SOON).unwrap()));
        let held = ["b", "c"].map(|key| long_lock(&theirs, key).lock().unwrap());
        let guard = thread::scope(|threads| {
            let waiting =
                threads.spawn(|| set(&mine, &KEYS).lock_timeout(SOON * 3).unwrap().unwrap());
            for guard in held {
                thread::sleep(Duration::from_millis(150));
                // An attempt sets it for as long as the machine takes to undo that.
                nowhere(&servers, "a");
                assert!(!waiting.is_finished());
                unlock(guard);
            }
            waiting.join().unwrap()
        });
        // At a node where "c" was released last, its key may be missing from the start. Two such
        // nodes are a loss.
        if servers.all(|server| value(server, "c").is_some()) {
            servers[0].command(&["DEL", "c"]).unwrap();
        }
        // An extension does not wait for a node that the machine holds up.
        assert_soon!({
            extend(&guard, LONG_TTL);
            let values: Vec<_> = servers.each(|server| value(server, "c"));
            values[0].is_some() && values.iter().all(|value| *value == values[0])
        });
        unlock(guard);
        all_gone_for_good(&servers, &KEYS);
    }
}

/// What node-redlock sends for several resources: one script that sets all of them unless one
/// exists, and one that deletes its own.
const SET_ALL: &str = "for i, key in ipairs(KEYS) do if redis.call('exists', key) == 1 then return 0 end end \
    for i, key in ipairs(KEYS) do redis.call('set', key, ARGV[1], 'PX', ARGV[2]) end return #KEYS";
const DELETE_OWN: &str = "local count = 0 for i, key in ipairs(KEYS) do if redis.call('get', key) == ARGV[1] then \
    redis.pcall('del', key) count = count + 1 end end return count";

fn call(servers: &[Server], script: &str, keys: &[&str], arguments: &[&str]) -> Vec<Answer> {
    let count = keys.len().to_string();
    let command = [&["EVAL", script, &count], keys, arguments].concat();
    servers.each(|server| server.command(&command).unwrap())
}

#[test]
fn multi_locks_of_node_redlock_exclude_sets_and_are_excluded_by_them() {
    let (servers, client) = deployment(3);
    let mutex = set(&client, &KEYS);
    for theirs in [&["c", "d"][..], &["b"], &["d", "a", "c"]] {
        let guard = take(&mutex);
        everywhere(&servers, "c");
        assert_eq!(
            call(&servers, SET_ALL, theirs, &["5f1d7a84", "60000"]),
            [const { Answer::Number(0) }; 3]
        );
        assert_eq!(
            call(&servers, DELETE_OWN, &KEYS, &["5f1d7a84"]),
            [const { Answer::Number(0) }; 3]
        );
        unlock(guard);
        client.flush_releases(SOON).unwrap();

        let count = Answer::Number(theirs.len() as i64);
        assert!(
            call(&servers, SET_ALL, theirs, &["5f1d7a84", "60000"])
                .iter()
                .all(|answer| *answer == count)
        );
        assert!(is_held(&mutex));
        client.flush_releases(SOON).unwrap();
        assert!(
            call(&servers, DELETE_OWN, theirs, &["5f1d7a84"])
                .iter()
                .all(|answer| *answer == count)
        );
        assert!(servers.all(|server| server.keys().unwrap().is_empty()));
    }
}
