//! Short scenes: one client, three nodes, and one thing that goes wrong at the moment where it
//! matters. Random plans seldom get there, or break no rule by it.

use crate::algorithm::node::NodeSet;
use crate::api::guard::MutexGuard;
use crate::api::node_status::NodeStatus;
use crate::api::redlock::Redlock;
use crate::api::shutdown::ShutdownOutcome;
use crate::api::wait::{CancelHandle, Wait};
use crate::api::watchdog::Watchdog;
use crate::engine::nodes::status::NodeState;
use crate::events::error::{ErrorKind, Result};
use crate::events::extension::ExtendOutcome;
use crate::kernel::with;
use crate::plan::{Data, Fault, Kind, MILLISECOND, Plan, SECOND};
use crate::recovery::{self, quiet};
use crate::wire::Connection;
use crate::world::World;
use crate::{clients, kernel, machine};
use quorumlock::embedded::store::Store;
use quorumlock::embedded::{Condition, ServerKind};
use quorumlock::{Cause, RestartPolicy};
use std::time::Duration;

mod restarts;
mod waiting;
mod watchdog;

const SEEDS: u64 = 10;

/// Plays a scene in which nothing happens but what it does itself.
fn play_quiet(scene: fn(Redlock)) -> Box<World> {
    play(|_| {}, scene)
}

/// Plays a scene with several seeds, and returns the last world. What a thread asserts in it is a
/// finding.
fn play(change: impl Fn(&mut Plan), scene: fn(Redlock)) -> Box<World> {
    let mut last = None;
    for seed in 0..SEEDS {
        let mut plan = quiet(seed, 3);
        // Its locks are not the judge's.
        plan.clients[0].is_observed = false;
        plan.restart_policy = RestartPolicy::Off;
        plan.ttls = vec![20_000];
        plan.fault_time = 30 * SECOND;
        change(&mut plan);
        last = Some(recovery::play(plan, move || scene(clients::open(0))));
    }
    last.expect("there are seeds")
}

fn strike(fault: Fault) {
    with(|world| world.strike(&fault));
}

fn pass(millis: u64) {
    let until = with(|world| world.now) + millis * MILLISECOND;
    kernel::sleep_until(until);
}

/// Connections of the client to this node so far.
fn connections(node: usize) -> usize {
    with(|world| {
        let to_it = |connection: &&Connection| connection.node == node && !connection.is_subscriber;
        world.connections.iter().filter(to_it).count()
    })
}

fn keys(node: usize) -> Vec<String> {
    with(|world| {
        let node = &world.nodes[node];
        let keys = node.store.keys(node.millis(world.now));
        keys.map(|key| String::from_utf8_lossy(key).into_owned())
            .collect()
    })
}

fn has_key(node: usize, key: &str) -> bool {
    keys(node).iter().any(|other| other == key)
}

/// So many as the one there is, each with paths as that one has.
fn has_clients(clients: usize) -> impl Fn(&mut Plan) {
    move |plan| {
        plan.clients = vec![plan.clients[0].clone(); clients];
        plan.paths = vec![plan.paths.clone(); clients].concat();
    }
}

/// A command of another program. Returns the reply.
fn execute(node: usize, words: &[&[u8]]) -> String {
    let reply = with(|world| {
        let node = &mut world.nodes[node];
        let millis = node.millis(world.now);
        machine::run(&mut node.store, words, millis)
    });
    String::from_utf8_lossy(&reply).into_owned()
}

/// These nodes have given a lock to another program.
fn give_away(nodes: &[usize], name: &str) {
    for &node in nodes {
        let key = name.as_bytes();
        execute(node, &[b"SET", key, b"another", b"PX", b"60000"]);
    }
}

/// A socket takes a part of a command at a time.
fn narrow(plan: &mut Plan) {
    plan.window = 64;
}

/// Every reply takes ten milliseconds.
fn far(plan: &mut Plan) {
    set_delay(plan, 5);
}

/// Each way to a node and back takes so many milliseconds.
fn set_delay(plan: &mut Plan, millis: u64) {
    for path in &mut plan.paths {
        path.delay = millis * MILLISECOND;
    }
}

fn watched(redlock: &Redlock) -> MutexGuard {
    let mutex = redlock.mutex("r0").watchdog(Watchdog::new());
    mutex.lock().unwrap()
}

/// The call fails for this reason.
#[track_caller]
fn assert_fails<T>(result: Result<T>, kind: ErrorKind) {
    let error = result.map(drop).expect_err("it fails");
    assert_eq!(error.kind(), kind, "{error}");
}

/// No node has the key.
#[track_caller]
fn assert_gone(key: &str) {
    assert!((0..3).all(|node| !has_key(node, key)), "{key}");
}

/// The metrics of the client.
fn metrics() -> String {
    let counters = with(|world| world.clients[0].counters.clone());
    counters.expect("it is counted").prometheus_text()
}

/// What the client has counted under this name.
fn counted(name: &str) -> u64 {
    let text = metrics();
    let number = text.lines().find_map(|line| line.strip_prefix(name));
    number.map_or(0, |number| number.parse().expect("a number"))
}

/// The counters of the client show one dropped guard, whose release had this outcome.
#[track_caller]
fn assert_dropped(outcome: &str) {
    let text = metrics();
    let line = format!("outcome=\"{outcome}\",dropped=\"true\"}} 1\n");
    assert!(text.contains(&line), "{text}");
}

/// The path of this client to the first node.
fn blocked(client: usize, time: u64) -> Fault {
    let block = Kind::Block([true, true]);
    block.between(Some(client), Some(0)).lasting(time)
}

fn crashed(node: usize, time: u64) -> Fault {
    Kind::Crash(Data::Kept).of_node(node).lasting(time)
}

/// It is back in a moment, without its data.
fn emptied(node: usize) -> Fault {
    let crash = Kind::Crash(Data::Lost).of_node(node);
    crash.lasting(100 * MILLISECOND)
}

/// The connections of the client to the first node are lost.
fn cut_first() {
    strike(Kind::Cut.between(Some(0), Some(0)));
}

fn flush(nodes: impl IntoIterator<Item = usize>) {
    for node in nodes {
        strike(Kind::Flush.of_node(node));
    }
}

fn hang(nodes: impl IntoIterator<Item = usize>, time: u64) {
    for node in nodes {
        strike(Kind::Hang.of_node(node).lasting(time));
    }
}

/// What had arrived before an attempt is no sign that a node is slow, in however many pieces.
#[test]
fn a_node_whose_replies_come_byte_by_byte_is_up() {
    let in_bytes = |plan: &mut Plan| {
        plan.piece = 1;
        plan.paths[0].delay = MILLISECOND;
    };
    play(in_bytes, |redlock| {
        for _ in 0..4 {
            drop(redlock.mutex("r0").fenced().lock().unwrap());
            pass(1_000);
        }
        let nodes = redlock.nodes().unwrap();
        let states = nodes.iter().map(NodeStatus::state);
        assert_eq!(states.collect::<Vec<_>>(), [NodeState::Voting; 3]);
    });
}

/// Rule 4.4: the connection was lost while the lock was held, and the one that the release is
/// queued on is still being made when the program ends.
#[test]
fn the_last_handle_waits_for_a_release_on_a_connection_that_is_being_made() {
    let one_far = |plan: &mut Plan| plan.paths[0].delay = 10 * MILLISECOND;
    play(one_far, |redlock| {
        let guard = redlock.mutex("r0").lock().unwrap();
        pass(100);
        cut_first();
        pass(50);
        assert!(has_key(0, "r0"));
        drop((guard, redlock));
        pass(1);
        assert!(!has_key(0, "r0"), "it has not waited");
    });
}

/// Rule 4.4: for as long as the key may live, and not only for a part of that.
#[test]
fn a_node_that_is_away_for_most_of_a_lease_is_sent_its_release() {
    play_quiet(|redlock| {
        let guard = redlock
            .mutex("r0")
            .ttl(Duration::from_secs(10))
            .lock()
            .unwrap();
        pass(1_000);
        strike(crashed(0, 7 * SECOND));
        pass(100);
        drop(guard);
        pass(8_500);
        assert!(!has_key(0, "r0"), "the release was dropped");
    });
}

/// A connection that is not made is given up after three seconds, and another one is begun.
#[test]
fn connects_that_hang_are_begun_again_while_a_release_is_pending() {
    play_quiet(|redlock| {
        let guard = redlock.mutex("r0").lock().unwrap();
        pass(100);
        cut_first();
        pass(50);
        strike(blocked(0, 15 * SECOND));
        drop(guard);
        pass(14_000);
        assert!(connections(0) > 3, "{} connections", connections(0));
        pass(5_000);
        assert!(!has_key(0, "r0"));
    });
}

/// The program does nothing more after the drop. Two nodes hang, so that no reply decides it.
#[test]
fn the_outcome_of_a_dropped_guard_is_counted_without_another_call() {
    play_quiet(|redlock| {
        let guard = redlock.mutex("r0").lock().unwrap();
        pass(100);
        hang([0, 1], 10 * SECOND);
        drop(guard);
        pass(2_000);
        assert_dropped("unconfirmed");
    });
}

/// Replies come in the time that they have, though the program does something else before.
#[test]
fn a_release_that_is_on_its_way_is_not_given_up_by_the_next_call() {
    play(far, |redlock| {
        let other = redlock.mutex("r1");
        drop(redlock.mutex("r0").lock().unwrap());
        assert!(other.lock().unwrap().unlock().is_ok());
        pass(100);
        assert_dropped("released");
    });
}

/// What refuses to store a key is rejected, whatever it replies to releases.
#[test]
fn a_node_that_refuses_votes_is_rejected() {
    play_quiet(|redlock| {
        let states = || {
            redlock
                .nodes()
                .unwrap()
                .iter()
                .map(NodeStatus::state)
                .collect::<Vec<_>>()
        };
        drop(redlock.mutex("r0").lock().unwrap());
        pass(20);
        with(|world| world.nodes[0].store.set_condition(Condition::OutOfMemory));
        for _ in 0..3 {
            drop(redlock.mutex("r0").lock().unwrap());
            pass(20);
            assert_eq!(
                states(),
                [
                    NodeState::Rejected(Cause::OutOfMemory),
                    NodeState::Voting,
                    NodeState::Voting
                ]
            );
        }
        with(|world| world.nodes[0].store.set_condition(Condition::Serving));
        drop(redlock.mutex("r0").lock().unwrap());
        pass(20);
        assert_eq!(states(), [NodeState::Voting; 3]);
    });
}

/// Commands are encoded once for all nodes, from when all were looked at.
#[test]
fn nodes_that_are_alike_follow_one_log() {
    play_quiet(|_| {
        let client = clients::open_client(0);
        let mutex = Redlock::new(client.clone()).mutex("r0");
        for round in 0..10 {
            let guard = mutex.lock().unwrap();
            let while_held = client.engine.followers();
            drop(guard.unlock());
            let found = (while_held, client.engine.followers());
            assert!(round < 5 || found == (3, 3), "round {round}: {found:?}");
            pass(400);
        }
    });
}

/// The others do not keep what it has not answered.
#[test]
fn a_node_that_hangs_leaves_the_log() {
    play_quiet(|_| {
        let client = clients::open_client(0);
        let mutex = Redlock::new(client.clone()).mutex("r0");
        let lock = || {
            drop(mutex.lock().unwrap());
            pass(400);
            client.engine.followers()
        };
        let all = [(); 6].map(|()| lock());
        assert_eq!(all[5], 3);
        strike(blocked(0, 3 * SECOND));
        assert_eq!([lock(), lock()], [2, 2]);
    });
}

/// Rule 7.2: what it would reply is known. It is asked again on another connection, now and then.
#[test]
fn a_replica_is_not_sent_what_it_would_refuse() {
    let world = play_quiet(|redlock| {
        with(|world| world.nodes[0].store.set_condition(Condition::Replica));
        for _ in 0..100 {
            drop(redlock.mutex("r0").lock().unwrap());
            pass(1);
        }
    });
    let times = |what| world.seen.get(what).copied().unwrap_or(0);
    let granted = times("a SET that is granted");
    let refused = times("a SET that is answered with an error");
    assert!(
        granted >= 200 && refused <= 5,
        "{granted} granted, {refused} refused: {:?}",
        world.seen
    );
}

/// Rule 2.9: the bytes of the release are lost with the connection.
#[test]
fn a_release_that_a_lost_connection_has_not_delivered_is_sent_on_the_next_one() {
    play_quiet(|redlock| {
        let guard = redlock.mutex("r0").lock().unwrap();
        strike(blocked(0, 50 * MILLISECOND));
        drop(guard);
        pass(10);
        cut_first();
        assert!(has_key(0, "r0"));
        pass(2_000);
        assert!(!has_key(0, "r0"));
    });
}

/// A thread polls while another one drops guards, and a socket takes a part of a command at a time:
/// no reply is on its way that would end the poll.
#[test]
fn what_a_full_socket_has_not_taken_is_sent_by_the_thread_that_polls() {
    play(narrow, |redlock| {
        let other = clients::open(0).mutex("r0").lock().unwrap();
        let names = ["r1", "r2", "r3"];
        let guards = names.map(|name| redlock.mutex(name).lock().unwrap());
        let waiting = redlock.mutex("r0");
        kernel::spawn(0, move || {
            drop(waiting.lock_timeout(Duration::from_secs(5)))
        });
        pass(300);
        drop(guards);
        pass(100);
        names.into_iter().for_each(assert_gone);
        drop(other);
    });
}

/// While no thread polls.
fn drops_guards_and_leaves_no_key(redlock: Redlock) {
    let names = ["r1", "r2", "r3"];
    let guards = names.map(|name| redlock.mutex(name).lock().unwrap());
    pass(300);
    drop(guards);
    pass(50);
    names.into_iter().for_each(assert_gone);
}

/// The same where no thread polls: releases that were not sent are sent at once, and not when no
/// thread has looked for their answers for a while.
#[test]
fn what_a_full_socket_has_not_taken_is_sent_without_a_thread_that_polls() {
    play(narrow, drops_guards_and_leaves_no_key);
}

/// What a poll of the socket does not show any more: all of it counts, and not a piece at a time.
#[test]
fn what_tls_has_read_ahead_is_read_at_once() {
    let has_tls = |plan: &mut Plan| plan.has_tls = true;
    play(has_tls, |redlock| {
        let guard = redlock.mutex("r0").try_lock().unwrap();
        assert!(guard.is_some());
    });
}

/// Rule 7.4: nor when they follow the log again, where votes are counted as they are read.
#[test]
fn nodes_that_have_lost_a_lock_do_not_give_it_away() {
    let is_observed = |plan: &mut Plan| {
        plan.restart_policy = RestartPolicy::Observed;
        // The others are judged when it has replied, and reply to more meanwhile.
        plan.paths[2].delay = 10 * MILLISECOND;
    };
    play(is_observed, |redlock| {
        for losses in [
            [0, 1].map(|node| Kind::Flush.of_node(node)),
            [0, 1].map(emptied),
        ] {
            let other = clients::open(0);
            // Until the third node has been looked at as well.
            for _ in 0..5 {
                drop(other.mutex("r1").lock().unwrap());
                pass(30);
            }
            let held = redlock.mutex("r0").lock().unwrap();
            losses.into_iter().for_each(strike);
            // A look detects a flush. The next one is due a second after the last.
            pass(1_200);
            // While the nodes are judged, some have replied to requests for others already.
            for (start, name) in [(0, "r1"), (1, "r2"), (2, "r3"), (4, "r0")] {
                let other = other.clone();
                kernel::spawn(0, move || {
                    pass(start);
                    for _ in 0..20 {
                        let taken = other.mutex(name).try_lock();
                        let is_taken = matches!(taken, Ok(Some(_)));
                        assert!(name != "r0" || !is_taken, "{taken:?}");
                    }
                });
            }
            pass(2_000);
            drop(held);
            pass(21_000);
        }
    });
}

/// Rule 5.6: long before its lease would be extended next.
#[test]
fn a_watched_lock_is_repaired_when_a_node_has_come_back_without_it() {
    play_quiet(|redlock| {
        let guard = watched(&redlock);
        strike(emptied(0));
        assert!(!has_key(0, "r0"));
        pass(4_000);
        assert!(has_key(0, "r0"));
        drop(guard);
    });
}

/// Rule 4.5: each of two extensions is granted by one node, in time.
#[test]
fn grants_of_two_renewals_do_not_add_up() {
    play_quiet(|redlock| {
        let guard = watched(&redlock);
        pass(4_000);
        hang([1], 6 * SECOND);
        hang([2], 30 * SECOND);
        pass(5_000);
        assert!(!guard.remaining().is_zero());
        hang([0], 20 * SECOND);
        pass(12_000);
        assert!(guard.remaining().is_zero(), "no quorum has extended it");
        drop(guard);
    });
}

/// Rule 7.4: it is not judged before a quorum replies, and its user is told that it replies.
#[test]
fn a_node_that_replies_is_up_though_too_few_do_to_judge_it() {
    let has_two_nodes = |plan: &mut Plan| {
        plan.restart_policy = RestartPolicy::Observed;
        plan.nodes.truncate(2);
        plan.paths.truncate(2);
    };
    play(has_two_nodes, |redlock| {
        strike(crashed(1, 10 * SECOND));
        for _ in 0..5 {
            // One votes.
            assert_fails(redlock.mutex("r0").try_lock(), ErrorKind::Unavailable);
            pass(300);
        }
        let nodes = redlock.nodes().unwrap();
        assert_eq!(nodes[0].state(), NodeState::Voting);
        pass(12_000);
    });
}

/// Rule 4.6: where a node has lost its key, the lock's own number is the floor. Without it, this
/// node and another one that has lost its keys would give out a smaller number next, as the clock
/// of the program was set back.
#[test]
fn a_repaired_node_does_not_count_from_the_beginning() {
    play_quiet(|redlock| {
        let mutex = redlock.mutex("r0").fenced();
        let guard = mutex.lock().unwrap();
        let fence = guard.fence();
        let by = -3_600 * SECOND.cast_signed();
        strike(Kind::SetWallClock(by).of_client(0));
        flush([0]);
        let extended = guard.extend(Duration::from_secs(20)).unwrap();
        assert_eq!(extended, ExtendOutcome::Extended);
        pass(100);
        drop(guard);
        flush([1]);
        strike(crashed(2, SECOND));
        assert!(mutex.lock().unwrap().fence() > fence);
    });
}

/// Rule 7.3: two URLs lead to one server, and the other node is down.
#[test]
fn one_server_has_one_vote() {
    play_quiet(|redlock| {
        with(|world| {
            for node in &mut world.nodes[..2] {
                let millis = node.millis(world.now);
                node.store = Store::new(ServerKind::Redis, "a".repeat(40), millis - 1_000_000);
            }
        });
        strike(crashed(2, SECOND));
        for _ in 0..3 {
            // One vote of three.
            assert_fails(redlock.mutex("r0").try_lock(), ErrorKind::Unavailable);
            pass(20);
        }
    });
}

/// The first release has run, its replies are lost, and the second one finds no key. That is no
/// proof that the lease had ended.
#[test]
fn a_release_that_is_sent_twice_does_not_show_that_the_lease_had_ended() {
    play(far, |redlock| {
        let guard = redlock.mutex("r0").lock().unwrap();
        kernel::spawn(0, || {
            pass(7);
            with(|world| {
                for index in 0..world.connections.len() {
                    if !world.connections[index].is_subscriber {
                        world.lose_replies(index);
                    }
                }
            });
        });
        assert_fails(guard.unlock(), ErrorKind::Unavailable);
        assert_gone("r0");
    });
}

/// A quorum of nodes replies that other programs have the lock. A minority still has it.
#[test]
fn a_lock_that_a_quorum_of_nodes_gave_to_others_is_lost() {
    play_quiet(|redlock| {
        let guard = redlock.mutex("r0").lock().unwrap();
        give_away(&[1, 2], "r0");
        assert_eq!(
            guard.extend(Duration::from_secs(20)).unwrap(),
            ExtendOutcome::Lost
        );
        assert_eq!(guard.remaining(), Duration::ZERO);
        for node in [1, 2] {
            execute(node, &[b"DEL", b"r0"]);
        }
    });
}

/// Before the watchdog has extended it.
#[test]
fn a_watched_lock_that_is_extended_by_hand_lasts_as_long() {
    play_quiet(|redlock| {
        let guard = watched(&redlock);
        pass(4_000);
        let whole = Duration::from_secs(20);
        assert_eq!(guard.extend(whole).unwrap(), ExtendOutcome::Extended);
        assert!(guard.remaining() > Duration::from_secs(19));
        drop(guard);
    });
}

/// A writer whose entries are gone does not become a reader.
#[test]
fn a_writer_that_is_lost_is_not_downgraded() {
    play_quiet(|redlock| {
        let guard = redlock.write_mutex("r0").lock().unwrap();
        flush([0, 1]);
        assert_fails(guard.downgrade(), ErrorKind::LeaseLost);
    });
}

/// A thread waits for a lock of its own program, and then for a lock of another one.
#[test]
fn a_wait_ends_when_it_is_cancelled() {
    play_quiet(|redlock| {
        let guard = redlock.mutex("r0").lock().unwrap();
        let other = clients::open(0);
        for client in [redlock, other] {
            let handle = CancelHandle::new();
            let wait = Wait::unlimited().cancelled_by(&handle);
            let cancelled_at = with(|world| world.now) + 500 * MILLISECOND;
            kernel::spawn(0, move || {
                kernel::sleep_until(cancelled_at);
                handle.cancel();
            });
            assert_fails(client.mutex("r0").lock_with(&wait), ErrorKind::Cancelled);
            assert!(with(|world| world.now) < cancelled_at + 50 * MILLISECOND);
        }
        drop(guard);
    });
}

/// Nodes that reply within the call's time may not be judged within it.
#[test]
fn a_call_tells_why_nodes_that_granted_do_not_count() {
    let is_far = |plan: &mut Plan| {
        plan.restart_policy = RestartPolicy::Observed;
        set_delay(plan, 20);
    };
    play(is_far, |redlock| {
        for _ in 0..5 {
            drop(redlock.mutex("r1").lock().unwrap());
            pass(100);
        }
        flush([1, 2]);
        pass(1_200);
        strike(blocked(0, 200 * MILLISECOND));
        let error = redlock.mutex("r0").try_lock().expect_err("none votes");
        let text = error.to_string();
        assert!(text.contains("may have forgotten locks"), "{text}");
        pass(3_000);
    });
}

/// The first of its threads waits for the nodes, and the others for that one.
#[test]
fn a_shutdown_ends_every_wait_for_a_permit() {
    play(has_clients(2), |redlock| {
        let held = clients::open(1).semaphore("r0", 1).lock().unwrap();
        for _ in 0..3 {
            let waiting = redlock.semaphore("r0", 1);
            kernel::spawn(0, move || {
                assert_fails(waiting.lock(), ErrorKind::ShutDown);
                assert!(with(|world| world.now) < 600 * MILLISECOND);
            });
        }
        kernel::sleep_until(500 * MILLISECOND);
        let outcome = redlock.shutdown(Duration::from_secs(1)).unwrap();
        assert_eq!(outcome, ShutdownOutcome::Complete);
        pass(1_000);
        drop(held);
    });
}

#[test]
fn nodes_that_reply_vote_as_far_as_is_known() {
    play_quiet(|_| {
        let client = clients::open_client(0);
        let mutex = Redlock::new(client.clone()).mutex("r0");
        drop(mutex.lock().unwrap());
        pass(100);
        assert_eq!(client.engine.voting(), NodeSet::first(3));
        strike(crashed(2, 20 * SECOND));
        drop(mutex.lock().unwrap());
        pass(100);
        assert_eq!(client.engine.voting(), NodeSet::first(2));
    });
}

#[test]
fn a_flush_names_the_nodes_that_have_not_run_a_release() {
    play_quiet(|redlock| {
        let guard = redlock.mutex("r0").lock().unwrap();
        strike(blocked(0, 2 * SECOND));
        drop(guard);
        let wait = |time| redlock.flush_releases(Duration::from_millis(time));
        let error = wait(500).expect_err("a node hangs");
        assert_eq!(error.causes().len(), 1, "{error}");
        assert!(wait(10_000).is_ok());
    });
}

/// All of it is handed to TLS, and what the socket does not take is left there.
#[test]
fn what_tls_holds_back_is_sent_without_a_thread_that_polls() {
    let has_tls = |plan: &mut Plan| {
        plan.has_tls = true;
        narrow(plan);
    };
    play(has_tls, drops_guards_and_leaves_no_key);
}
