//! Scenes of calls that wait in the queues of locks.

use super::{
    assert_fails, blocked, connections, counted, crashed, execute, far, give_away, has_clients,
    has_key, keys, pass, play, play_quiet, strike,
};
use crate::api::redlock::Redlock;
use crate::api::wait::{CancelHandle, Wait};
use crate::events::error::ErrorKind;
use crate::kernel::with;
use crate::plan::{Kind, MILLISECOND, Plan, SECOND};
use crate::wire::Connection;
use crate::{clients, kernel};
use crossbeam_channel::bounded;
use std::collections::BTreeSet;
use std::time::Duration;

/// The counter of attempts that found the lock held.
const ATTEMPTS_IN_VAIN: &str = "quorumlock_attempts_total{class=\"all\",result=\"held\"} ";

/// The client 0 is five milliseconds away from each node, and another one is near.
fn is_farther_than_another(plan: &mut Plan) {
    has_clients(2)(plan);
    plan.paths[..3]
        .iter_mut()
        .for_each(|path| path.delay = 5 * MILLISECOND);
}

/// It is less than so many milliseconds after that time.
#[track_caller]
fn assert_within(millis: u64, since: u64) {
    let now = with(|world| world.now);
    let until = since + millis * MILLISECOND;
    assert!((since..until).contains(&now), "{now}, not {since}..{until}");
}

/// While the lock is held, a call that waits in turn asks seldom.
fn waits_and_asks_seldom(redlock: Redlock) {
    let held = clients::open(1).mutex("r0").fair().lock().unwrap();
    let waiting = redlock.mutex("r0").fair();
    kernel::spawn(0, move || drop(waiting.lock().unwrap()));
    pass(5_000);
    drop(held);
    pass(500);
    let attempts = counted(ATTEMPTS_IN_VAIN);
    assert!((2..12).contains(&attempts), "{attempts}");
}

/// What the client 0 sends to a node is lost, and the connection with it.
fn cut(node: usize) {
    with(|world| {
        for index in 0..world.connections.len() {
            let connection = &world.connections[index];
            if (connection.client, connection.node) == (0, node) && !connection.is_subscriber {
                world.cut(index);
            }
        }
    });
}

/// The nodes to which the client 0 has a connection that has asked to subscribe.
fn subscriptions() -> BTreeSet<usize> {
    with(|world| {
        let is_open = |connection: &&Connection| {
            connection.client == 0 && connection.is_subscriber && !connection.is_closed_by_client
        };
        let open = world.connections.iter().filter(is_open);
        open.map(|connection| connection.node).collect()
    })
}

/// How many calls have an entry on a node.
fn calls(node: usize) -> String {
    execute(node, &[b"ZCARD", b"quorumlock-queue:r0"])
        .trim()
        .to_owned()
}

/// Rule 3.5: also where a node granted the lock, which kept no entry, for no call waited there.
#[test]
fn a_lost_attempt_leaves_an_entry_on_each_node() {
    play_quiet(|redlock| {
        give_away(&[1, 2], "r0");
        kernel::spawn(0, move || {
            let waited = redlock
                .mutex("r0")
                .fair()
                .lock_timeout(Duration::from_secs(1));
            assert!(waited.unwrap().is_none());
        });
        pass(100);
        assert_eq!([0, 1, 2].map(calls), [":1", ":1", ":1"]);
        pass(2_000);
    });
}

/// A reader waits behind a writer that is cancelled, while another reader has the lock.
#[test]
fn a_call_that_gives_up_tells_the_one_behind_it() {
    play(has_clients(4), |redlock| {
        let held = clients::open(1).read_mutex("r0").lock().unwrap();
        let writer = redlock.write_mutex("r0");
        let handle = CancelHandle::new();
        let wait = Wait::unlimited().cancelled_by(&handle);
        kernel::spawn(0, move || _ = writer.lock_with(&wait).map(drop));
        pass(100);
        let reader = clients::open(3).read_mutex("r0");
        let given_up_at = with(|world| world.now) + 200 * MILLISECOND;
        kernel::spawn(3, move || {
            let guard = reader.lock().unwrap();
            assert_within(20, given_up_at);
            drop(guard);
        });
        kernel::sleep_until(given_up_at);
        handle.cancel();
        pass(1_000);
        drop(held);
    });
}

/// Its removal was lost with the connections to a quorum of nodes.
#[test]
fn an_entry_that_stays_of_an_ended_call_is_removed_when_a_message_arrives_for_it() {
    let is_far = |plan: &mut Plan| {
        has_clients(4)(plan);
        far(plan);
    };
    play(is_far, |redlock| {
        let released_at = 800 * MILLISECOND;
        kernel::spawn(1, move || {
            let holder = clients::open(1);
            let held = holder.mutex("r0").fair().lock().unwrap();
            let other = holder.mutex("r1").fair().lock().unwrap();
            kernel::sleep_until(released_at);
            drop(held);
            pass(2_000);
            drop(other);
        });
        pass(100);
        // Another call of the client waits, so that its subscriptions stay.
        let other = redlock.mutex("r1").fair();
        kernel::spawn(0, move || drop(other.lock().unwrap()));
        let ends = redlock.mutex("r0").fair();
        kernel::spawn(0, move || {
            let waited = ends.lock_timeout(Duration::from_millis(300));
            assert!(waited.unwrap().is_none());
        });
        pass(200);
        kernel::spawn(3, move || {
            let guard = clients::open(3).mutex("r0").fair().lock().unwrap();
            assert_within(200, released_at);
            drop(guard);
        });
        kernel::sleep_until(402 * MILLISECOND);
        cut(0);
        cut(1);
        pass(3_000);
    });
}

/// Rule 3.5: the subscriptions were away for so long that the call asks seldom.
#[test]
fn a_release_just_before_the_subscriptions_are_there_again_is_not_missed() {
    play(is_farther_than_another, |redlock| {
        kernel::spawn(1, || {
            let held = clients::open(1).mutex("r0").fair().lock().unwrap();
            let cut = |node| strike(Kind::CutSubscribers.between(Some(0), Some(node)));
            for _ in 0..40 {
                pass(50);
                (0..3).for_each(cut);
            }
            let before = connections(0);
            while connections(0) == before {
                pass(1);
                (1..3).for_each(cut);
                assert!(with(|world| world.now) < 20 * SECOND);
            }
            drop(held);
            pass(80);
            assert!(
                (0..3).all(|node| has_key(node, "r0")),
                "it is not asked for"
            );
        });
        pass(50);
        let guard = redlock.mutex("r0").fair().lock().unwrap();
        pass(500);
        drop(guard);
    });
}

/// A call is granted by one node, and later by another one. Neither hears that the attempt was lost
/// before its key has ended. A call behind it does not pass.
#[test]
fn an_entry_outlasts_a_grant() {
    play(is_farther_than_another, |redlock| {
        give_away(&[0, 1, 2], "r0");
        let first = redlock.mutex("r0").fair().ttl(Duration::from_millis(500));
        kernel::spawn(0, move || drop(first.lock_timeout(Duration::from_secs(4))));
        pass(300);
        for node in [0, 1] {
            execute(node, &[b"DEL", b"r0"]);
            while !has_key(node, "r0") {
                pass(1);
            }
            let block = Kind::Block([true, true]).between(Some(0), Some(node));
            strike(block.lasting(4 * SECOND));
        }
        pass(600);
        assert!(!has_key(0, "r0") && !has_key(1, "r0"), "they have ended");
        kernel::spawn(1, || {
            let second = clients::open(1).mutex("r0").fair();
            let waited = second.lock_timeout(Duration::from_millis(300));
            assert!(waited.unwrap().is_none());
        });
        pass(5_000);
    });
}

/// With an even number of nodes, half of them are enough to refuse, and not to wait by.
#[test]
fn a_call_in_turn_waits_for_the_replies_of_a_quorum() {
    let has_four_nodes = |plan: &mut Plan| {
        plan.nodes.push(plan.nodes[0].clone());
        plan.paths.push(plan.paths[0].clone());
        has_clients(2)(plan);
        plan.paths[2].delay = 5 * MILLISECOND;
        plan.paths[3].delay = 5 * MILLISECOND;
    };
    play(has_four_nodes, waits_and_asks_seldom);
}

/// One node is away and one refuses: no quorum can grant any more, and one can still reply.
#[test]
fn a_call_in_turn_waits_for_a_quorum_though_a_node_is_away() {
    let is_far_from_one = |plan: &mut Plan| {
        has_clients(2)(plan);
        plan.paths[2].delay = 5 * MILLISECOND;
    };
    play(is_far_from_one, |redlock| {
        strike(crashed(0, 20 * SECOND));
        waits_and_asks_seldom(redlock);
    });
}

/// Two slots are free, each on one node: they are asked for less and less often.
#[test]
fn slots_that_no_quorum_has_free_are_asked_for_ever_more_seldom() {
    play_quiet(|redlock| {
        let token = "7".repeat(40);
        for (node, slots) in [(0, "012"), (1, "01"), (2, "02")] {
            for slot in slots.chars() {
                let key = format!("r0#{slot}");
                let words: [&[u8]; 5] = [b"SET", key.as_bytes(), token.as_bytes(), b"PX", b"5400"];
                execute(node, &words);
            }
        }
        kernel::spawn(0, move || {
            let waited = redlock
                .semaphore("r0", 3)
                .lock_timeout(Duration::from_secs(5));
            assert!(waited.unwrap().is_none());
        });
        pass(6_000);
        let attempts = counted(ATTEMPTS_IN_VAIN);
        assert!((5..60).contains(&attempts), "{attempts}");
    });
}

/// The entry of a call that has won goes with its release, whatever the kind of the lock.
#[test]
fn a_lock_that_was_waited_for_leaves_no_entry() {
    play_quiet(|redlock| {
        for number in 0..2 {
            let other = clients::open(0);
            let held = redlock.mutex("r0").fenced().fair().lock().unwrap();
            kernel::spawn(0, move || {
                pass(300);
                drop(held);
            });
            drop(other.mutex("r0").fenced().fair().lock().unwrap());
            pass(100);
            assert_eq!(
                keys(0),
                ["quorumlock-fence:r0", "quorumlock-node:"],
                "call {number}"
            );
        }
    });
}

/// Two nodes give it one behind the call before it, and the third one, which that call has not
/// reached, is told.
#[test]
fn a_call_has_the_same_ticket_on_each_node() {
    play(has_clients(4), |redlock| {
        let held = redlock.mutex("r0").fair().lock().unwrap();
        strike(blocked(1, SECOND));
        strike(Kind::SetWallClock(5 * SECOND.cast_signed()).of_client(1));
        for client in [1, 3] {
            let waiting = clients::open(client);
            kernel::spawn(client, move || {
                drop(waiting.mutex("r0").fair().lock().unwrap());
            });
            pass(50);
        }
        let last = |node| {
            let queue = b"quorumlock-queue:r0";
            let calls = execute(node, &[b"ZRANGE", queue, b"0", b"-1", b"WITHSCORES"]);
            let words: Vec<_> = calls.lines().map(str::to_owned).collect();
            let [.., call, _, ticket] = &words[..] else {
                panic!("{words:?}");
            };
            (words.len() / 4, call.clone(), ticket.clone())
        };
        let [third, first, second] = [0, 1, 2].map(last);
        assert_eq!((third.0, first.0), (1, 2), "calls");
        assert_eq!([&third.1, &third.2], [&first.1, &first.2]);
        assert_eq!(second, first);
        drop(held);
        pass(2_000);
    });
}

/// Also at a node that has stopped to answer since it has stored the entry, so that the attempt
/// which won did not ask it.
#[test]
fn a_node_that_hangs_when_a_lock_is_won_is_left_no_entry() {
    play(has_clients(2), |redlock| {
        let other = clients::open(1);
        let held = redlock.mutex("r0").fair().lock().unwrap();
        let waiting = other.clone();
        kernel::spawn(1, move || {
            drop(waiting.mutex("r0").fair().lock().unwrap());
        });
        pass(100);
        assert!(has_key(0, "quorumlock-queue:r0"));
        strike(blocked(1, 2 * SECOND));
        // It finds out that the node hangs.
        kernel::spawn(1, move || drop(other.mutex("r1").lock().unwrap()));
        pass(500);
        drop(held);
        pass(3_000);
        assert!(!has_key(0, "quorumlock-queue:r0"), "its entry has stayed");
    });
}

/// What the connection should have removed counts as dead then. The next call that waits subscribes
/// again.
#[test]
fn a_lost_connection_ends_the_subscription_of_calls_that_have_ended() {
    play_quiet(|redlock| {
        let other = clients::open(0);
        let held = redlock.mutex("r0").fair().lock().unwrap();
        kernel::spawn(0, move || {
            pass(100);
            drop(held);
        });
        drop(other.mutex("r0").fair().lock().unwrap());
        assert_eq!(subscriptions(), BTreeSet::from([0, 1, 2]));
        cut(0);
        drop(other.mutex("r1").lock().unwrap());
        pass(100);
        assert_eq!(subscriptions(), BTreeSet::from([1, 2]));
    });
}

/// A thread polls for a vote that does not come while another one begins to wait: a message for
/// that one ends the poll.
#[test]
fn a_message_is_read_by_a_poll_that_began_before_the_wait() {
    play(has_clients(2), |redlock| {
        let other = clients::open(1);
        give_away(&[1], "r1");
        // The subscriber connections are there from the first wait.
        for silence in [0, 40 * MILLISECOND] {
            let held = other.mutex("r0").fair().lock().unwrap();
            strike(blocked(0, silence));
            let (polling, waiting) = (redlock.clone(), redlock.clone());
            kernel::spawn(0, move || drop(polling.mutex("r1").try_lock()));
            let released_at = with(|world| world.now) + 10 * MILLISECOND;
            kernel::spawn(0, move || {
                let guard = waiting.mutex("r0").fair().lock().unwrap();
                assert_within(2, released_at);
                drop(guard);
            });
            kernel::sleep_until(released_at);
            drop(held);
            pass(500);
        }
    });
}

/// While the lock is held, a call tries when its nodes would have to be asked again, and not at the
/// pace of one that is not told.
#[test]
fn a_call_that_is_told_does_not_try_meanwhile() {
    play(has_clients(2), waits_and_asks_seldom);
}

/// What a poll of the socket does not show any more: that it is subscribed is read as a whole.
#[test]
fn what_tls_has_read_ahead_of_a_subscription_is_read_at_once() {
    let has_tls = |plan: &mut Plan| {
        has_clients(2)(plan);
        plan.has_tls = true;
    };
    play(has_tls, waits_and_asks_seldom);
}

/// The thread that would wait for the channel is not there.
#[test]
fn a_channel_ends_a_wait_though_the_system_starts_no_thread() {
    play(has_clients(2), |redlock| {
        let held = clients::open(1).mutex("r0").lock().unwrap();
        with(|world| world.has_no_threads = true);
        let (cancel, channel) = bounded(1);
        let cancelled_at = with(|world| world.now) + 500 * MILLISECOND;
        kernel::spawn(0, move || {
            let wait = Wait::unlimited().cancelled_by_channel(channel);
            assert_fails(redlock.mutex("r0").lock_with(&wait), ErrorKind::Cancelled);
            assert_within(150, cancelled_at);
        });
        kernel::sleep_until(cancelled_at);
        cancel.send(()).unwrap();
        pass(1_000);
        with(|world| world.has_no_threads = false);
        drop(held);
    });
}

/// The ones behind it learn of its release by that.
#[test]
fn the_entry_of_a_call_that_has_won_stays_until_the_lock_is_released_or_detached() {
    play(has_clients(2), |redlock| {
        for detaches in [false, true] {
            let held = redlock.mutex("r0").fair().lock().unwrap();
            let waiting = clients::open(1);
            kernel::spawn(1, move || {
                let guard = waiting.mutex("r0").fair().lock().unwrap();
                pass(300);
                assert_eq!([0, 1, 2].map(calls), [":1", ":1", ":1"]);
                if detaches {
                    drop(guard.detach().unwrap());
                } else {
                    drop(guard);
                }
                pass(100);
                assert_eq!([0, 1, 2].map(calls), [":0", ":0", ":0"]);
            });
            pass(100);
            drop(held);
            pass(1_000);
        }
    });
}

#[test]
fn a_client_that_gets_no_messages_takes_no_fair_locks() {
    play(has_clients(3), |_| {
        // The third client does without.
        kernel::spawn(2, || {
            let taken = clients::open(2).mutex("r0").fair().try_lock();
            assert_fails(taken, ErrorKind::Config);
        });
    });
}
