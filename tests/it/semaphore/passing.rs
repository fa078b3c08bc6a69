//! How permits pass among the threads of a program, and from one program to another.

use super::*;
use crate::support::fake::refusal;

const PERMITS: usize = 3;
const TIME: Duration = Duration::from_millis(700);

/// How many permits the three threads of each of two clients acquire, and how many commands each
/// takes at a node.
fn shared(servers: &[Server]) -> ([u64; 2], f64) {
    let before = asked(&servers[0]);
    let end = Instant::now() + TIME;
    let acquired = [client(servers), client(servers)].map(|client| {
        let acquired = AtomicU64::new(0);
        (client, acquired)
    });
    thread::scope(|threads| {
        for (client, acquired) in acquired.iter().flat_map(|each| [each; PERMITS]) {
            threads.spawn(move || {
                let semaphore = semaphore(client, PERMITS);
                while Instant::now() < end {
                    let _ = semaphore.lock().unwrap().unlock().unwrap();
                    acquired.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let acquired = acquired.map(|(_, acquired)| acquired.into_inner());
    let sent = (asked(&servers[0]) - before) as f64;
    (acquired, sent / acquired.iter().sum::<u64>() as f64)
}

#[test]
fn a_thread_that_takes_over_the_wait_asks_nothing_that_is_known_and_both_programs_get_permits() {
    let servers = Server::several(3).unwrap();
    // On a busy machine, what was known is out of date: one of three.
    let found: Vec<_> = (0..3).map(|_| shared(&servers)).collect();
    let is_known = found.iter().any(|(_, commands)| *commands < 4.0);
    let is_shared = found
        .iter()
        .any(|(acquired, _)| acquired.iter().all(|one| one * 5 > acquired.iter().sum()));
    assert!(is_known && is_shared, "{found:?}");
}

/// A node answers each of the three questions just in time: a slot that is held, one that is free,
/// and that one.
#[test]
fn an_attempt_finds_a_slot_of_far_nodes_and_lasts_three_node_timeouts_at_most() {
    const NODE_TIMEOUT: Duration = Duration::from_millis(500);
    let late = NODE_TIMEOUT * 7 / 10;
    for hangs_at_last in [false, true] {
        let mut attempts = 0;
        let node = Fake::on_command(move |command| {
            let is_attempt = refusal(command).is_some();
            attempts += u32::from(is_attempt);
            match attempts {
                _ if !is_attempt => vec![Act::Say(healthy(command))],
                1 => vec![Act::Wait(late), say("$-1\r\n")],
                2 => vec![Act::Wait(late), say("$13\r\nn 0 0 0 - ff \r\n")],
                _ if hangs_at_last => vec![Act::Wait(NODE_TIMEOUT * 9)],
                _ => vec![Act::Wait(late), say(":1\r\n")],
            }
        });
        let client = client_within([node.url()], NODE_TIMEOUT);
        client.connect(NODE_TIMEOUT * 4).unwrap();
        let begun = Instant::now();
        let ended = semaphore(&client, 2).try_lock();
        let took = begun.elapsed();
        assert_eq!(matches!(ended, Ok(Some(_))), !hangs_at_last, "{ended:?}");
        assert!(took >= late * 2 && took < NODE_TIMEOUT * 3, "{took:?}");
    }
}
