//! Notifications that do not come: connections cut, commands denied, nodes hung. Every waiter gets
//! the lock all the same.

use super::{ARRIVAL, LONG, PROMPT, patient, time_to_wake};
use crate::clients::{SOON, Seen, client, gone_for_good, long_lock, take};
use crate::support::capable::has_users;
use crate::support::fake::{Act, Fake, healthy, refusal, say};
use crate::support::queues::{cut_subscribers, has_channels, no_entry_stays, subscribers};
use crate::support::server::Server;
use crossbeam_channel::bounded;
use quorumlock::event::Event;
use quorumlock::{Cause, Redlock, ReleaseOutcome};
use std::thread;
use std::time::{Duration, Instant};

/// A call that is not told asks after so long by default, or after a delay that is shorter; and
/// time for a busy machine.
const BOUND: Duration = Duration::from_millis(1000 + 50 + 500);

/// What was refused: which side, by which node, and why.
fn refusal_of(event: &Event) -> Option<(bool, String, Cause)> {
    match event {
        Event::ReleaseNotificationsRefused {
            node,
            fault,
            is_publishing,
            ..
        } => Some((*is_publishing, node.to_string(), fault.cause())),
        _ => None,
    }
}

fn urls<'s>(servers: &'s [Server], user: &str) -> impl Iterator<Item = String> + use<'s> {
    let user = user.to_owned();
    servers
        .iter()
        .map(move |server| format!("redis://{user}:secret@{}", server.address()))
}

#[test]
fn connections_that_are_cut_are_made_again() {
    let servers = Server::several(3).unwrap();
    let mine = patient(&servers).build().unwrap();
    let theirs = client(&servers);
    let held = take(&long_lock(&theirs, "k"));
    let took = time_to_wake(&mine, "k", || {
        for _ in 0..3 {
            servers.iter().for_each(cut_subscribers);
            has_channels(&servers, 1);
        }
        drop(held);
    });
    assert!(took < PROMPT, "{took:?}");
}

#[test]
fn a_node_that_closes_them_each_time_is_not_flooded() {
    let node = Fake::on_command(|command| match &*command[0] {
        "SUBSCRIBE" => {
            let channel = &command[1];
            let answer = format!(
                "*3\r\n$9\r\nsubscribe\r\n${}\r\n{channel}\r\n:1\r\n",
                channel.len()
            );
            vec![say(&answer), Act::Close]
        }
        _ => vec![Act::Say(
            refusal(command).unwrap_or_else(|| healthy(command)),
        )],
    });
    let client = Redlock::builder()
        .node(node.url())
        .retry_delay(LONG, LONG)
        .place_lease(LONG)
        .build()
        .unwrap();
    assert!(
        long_lock(&client, "k")
            .lock_timeout(Duration::from_secs(1))
            .unwrap()
            .is_none()
    );
    // 10 ms, 20 ms, and so on, less a quarter at most.
    let connections = node.connections();
    let commands = node.commands().len();
    assert!(connections > 3, "it is tried again");
    assert!(
        connections < 16 && commands < 80,
        "{connections} connections, {commands} commands"
    );
}

/// A node that refuses SUBSCRIBE with this error for so many times, and permits it then.
fn refusing_to_subscribe(error: &'static str, times: usize) -> Fake {
    let mut refused = 0;
    Fake::on_command(move |command| match &*command[0] {
        "SUBSCRIBE" if refused < times => {
            refused += 1;
            vec![say(error)]
        }
        "SUBSCRIBE" => {
            let channel = &command[1];
            vec![say(&format!(
                "*3\r\n$9\r\nsubscribe\r\n${}\r\n{channel}\r\n:1\r\n",
                channel.len()
            ))]
        }
        _ => vec![Act::Say(
            refusal(command).unwrap_or_else(|| healthy(command)),
        )],
    })
}

#[test]
fn an_error_that_passes_is_no_denial_and_the_node_is_asked_again_soon() {
    for error in [
        "-ERR max number of clients reached\r\n",
        "-BUSY a script runs\r\n",
        "-LOADING its data\r\n",
    ] {
        let refusals = Seen::nothing();
        let wait = |node: &Fake, limit| {
            let client = Redlock::builder().node(node.url()).retry_delay(LONG, LONG);
            let client = client.observer(refusals.by(refusal_of)).build().unwrap();
            assert!(
                long_lock(&client, "k")
                    .lock_timeout(limit)
                    .unwrap()
                    .is_none()
            );
            node.commands()
                .iter()
                .filter(|command| command[0] == "SUBSCRIBE")
                .count()
        };
        assert_eq!(
            wait(&refusing_to_subscribe(error, 3), Duration::from_secs(1)),
            4,
            "{error}"
        );
        let asked = wait(
            &refusing_to_subscribe(error, usize::MAX),
            Duration::from_secs(1),
        );
        assert!(
            (4..16).contains(&asked),
            "{error} {asked}: 10 ms, 20 ms, and so on"
        );
        assert_eq!(refusals.all(), [], "{error}");
    }
}

#[test]
fn connections_that_are_cut_again_and_again_are_made_again_at_once_and_a_fair_lock_is_asked_for() {
    const TIMES: usize = 9;
    const APART: Duration = Duration::from_millis(200);
    // After so many failures in a row, a node is left alone for longer.
    const AT_ONCE: Duration = Duration::from_millis(300);
    let servers = Server::several(3).unwrap();
    let fair = |client: &Redlock| long_lock(client, "k").fair();
    let mine = patient(&servers).place_lease(LONG).build().unwrap();
    let theirs = client(&servers);
    let _held = take(&fair(&theirs));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            fair(&mine)
                .lock_timeout(SOON)
                .unwrap()
                .map(|_| Instant::now())
        });
        let kill = || servers.iter().for_each(cut_subscribers);
        let back = || {
            let begun = Instant::now();
            has_channels(&servers, 1);
            begun.elapsed()
        };
        back();
        let longest = (0..TIMES).map(|_| {
            thread::sleep(APART);
            kill();
            back()
        });
        let longest = longest.max().unwrap();
        assert!(longest < AT_ONCE, "{longest:?}");
        // What the last subscription made the waiter ask is answered.
        thread::sleep(APART);
        // No node tells of this.
        servers
            .iter()
            .for_each(|server| _ = server.command(&["DEL", "k"]).unwrap());
        thread::sleep(APART);
        assert!(!waiting.is_finished());
        kill();
        let killed = Instant::now();
        let acquired = waiting.join().unwrap().expect("it was released");
        assert!(acquired < killed + PROMPT, "{:?}", acquired - killed);
    });
}

#[test]
fn what_was_released_while_the_connections_were_cut_is_noticed_when_they_are_back() {
    let servers = Server::several(3).unwrap();
    let mine = patient(&servers).build().unwrap();
    let theirs = client(&servers);
    let _held = take(&long_lock(&theirs, "k"));
    let took = time_to_wake(&mine, "k", || {
        // No node tells of this.
        servers
            .iter()
            .for_each(|server| _ = server.command(&["DEL", "k"]).unwrap());
        thread::sleep(ARRIVAL);
        servers.iter().for_each(cut_subscribers);
    });
    assert!(took < PROMPT, "{took:?}");
}

#[test]
fn a_user_that_may_not_subscribe_waits_by_the_clock_and_is_reported_once() {
    if !has_users() {
        return;
    }
    let servers = Server::several(3).unwrap();
    for server in &servers {
        server
            .command(&[
                "ACL",
                "SETUSER",
                "deaf",
                "on",
                ">secret",
                "~*",
                "&*",
                "+@all",
                "-subscribe",
            ])
            .unwrap();
    }
    let refusals = Seen::nothing();
    let mine = Redlock::builder()
        .nodes(urls(&servers, "deaf"))
        .observer(refusals.by(refusal_of));
    let mine = mine.node_timeout(Duration::from_secs(1)).build().unwrap();
    let theirs = client(&servers);
    for _ in 0..3 {
        let held = take(&long_lock(&theirs, "k"));
        let took = time_to_wake(&mine, "k", || drop(held));
        assert!(took < BOUND, "{took:?}");
    }
    no_entry_stays(&servers);
    assert!(servers.iter().all(|server| subscribers(server) == 0));
    // A server that denies SUBSCRIBE is not asked again for longer than a wait.
    for server in &servers {
        let statistics = server.text(&["INFO", "commandstats"]);
        let line = statistics
            .lines()
            .find(|line| line.starts_with("cmdstat_subscribe:"))
            .unwrap();
        assert!(line.contains("rejected_calls=1,"), "{line}");
    }
    reported_once(&refusals, &servers, false);
}

#[test]
fn a_user_that_may_not_publish_releases_as_well_and_is_reported_once() {
    if !has_users() {
        return;
    }
    let servers = Server::several(3).unwrap();
    for server in &servers {
        server
            .command(&[
                "ACL",
                "SETUSER",
                "mute",
                "on",
                ">secret",
                "~*",
                "resetchannels",
                "+@all",
            ])
            .unwrap();
    }
    let refusals = Seen::nothing();
    let theirs = Redlock::builder()
        .nodes(urls(&servers, "mute"))
        .observer(refusals.by(refusal_of));
    let theirs = theirs.node_timeout(Duration::from_secs(1)).build().unwrap();
    let mine = client(&servers);
    for _ in 0..3 {
        let held = take(&long_lock(&theirs, "k"));
        let took = time_to_wake(&mine, "k", || {
            assert_eq!(held.unlock().unwrap(), ReleaseOutcome::Released)
        });
        assert!(took < BOUND, "{took:?}");
    }
    // Whatever the third node replied, it has replied by now.
    drop(take(&long_lock(&theirs, "other")).unlock());
    reported_once(&refusals, &servers, true);
}

#[track_caller]
fn reported_once(refusals: &Seen<(bool, String, Cause)>, servers: &[Server], is_publishing: bool) {
    let mut told = refusals.all();
    told.sort_by(|one, other| one.1.cmp(&other.1));
    let mut expected: Vec<_> = servers
        .iter()
        .map(|server| (is_publishing, server.address(), Cause::NoPermission))
        .collect();
    expected.sort_by(|one, other| one.1.cmp(&other.1));
    assert_eq!(told, expected);
}

#[test]
fn a_node_that_hangs_does_not_prevent_a_wake_up() {
    for hung in 0..3 {
        let servers = Server::several(3).unwrap();
        let slow_retries = || {
            Redlock::builder()
                .nodes(servers.iter().map(Server::url))
                .retry_delay(LONG, LONG)
        };
        let mine = slow_retries().build().unwrap();
        let theirs = slow_retries().build().unwrap();
        for (client, name) in [(&mine, "a"), (&theirs, "b")] {
            drop(take(&long_lock(client, name)));
        }
        servers[hung].pause().unwrap();
        let held = long_lock(&theirs, "k").lock().unwrap();
        let took = time_to_wake(&mine, "k", || drop(held));
        assert!(took < PROMPT, "node {hung}: {took:?}");
        servers[hung].resume().unwrap();
    }
}

#[test]
fn a_node_that_hangs_during_a_subscription_does_not_prevent_a_wake_up() {
    let servers = Server::several(5).unwrap();
    let slow_retries = || {
        Redlock::builder()
            .nodes(servers.iter().map(Server::url))
            .retry_delay(LONG, LONG)
    };
    let mine = slow_retries().build().unwrap();
    let theirs = slow_retries().build().unwrap();
    let held = take(&long_lock(&theirs, "k"));
    let took = time_to_wake(&mine, "k", || {
        servers[0].pause().unwrap();
        servers[3].pause().unwrap();
        drop(held);
    });
    assert!(took < PROMPT, "{took:?}");
    servers[0].resume().unwrap();
    servers[3].resume().unwrap();
    gone_for_good(&servers, "k");
}

/// The release falls into every moment there is around the beginning of a wait: before the first
/// attempt, between it and the subscription, before and after the confirmation. A missed release
/// would be waited for until the limit.
#[test]
fn a_release_between_a_lost_attempt_and_the_subscription_is_not_missed() {
    const ROUNDS: u32 = 1000;
    let servers = Server::several(3).unwrap();
    let mine = patient(&servers).build().unwrap();
    let theirs = client(&servers);
    let waited = thread::scope(|scope| {
        // Not a barrier: a side that fails ends the other one.
        let (ready, is_ready) = bounded(0);
        let (done, is_done) = bounded(0);
        let theirs = &theirs;
        let holder = scope.spawn(move || {
            for round in 0..ROUNDS {
                let held = long_lock(theirs, "k").lock().unwrap();
                ready.send(()).unwrap();
                // 0 to 1.5 ms: an attempt, a connection and a confirmation take about as long.
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_micros(u64::from(round % 100) * 15) {
                    std::hint::spin_loop();
                }
                assert_eq!(held.unlock().unwrap(), ReleaseOutcome::Released);
                is_done.recv().unwrap();
            }
        });
        let mut waited = 0;
        for round in 0..ROUNDS {
            is_ready.recv().unwrap();
            let begun = Instant::now();
            let guard = long_lock(&mine, "k")
                .lock_timeout(SOON)
                .unwrap()
                .expect("every waiter gets the lock");
            waited += u32::from(begun.elapsed() > Duration::from_micros(500));
            assert!(
                begun.elapsed() < PROMPT,
                "round {round}: {:?}",
                begun.elapsed()
            );
            assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
            done.send(()).unwrap();
        }
        holder.join().unwrap();
        waited
    });
    assert!(
        waited > ROUNDS / 20,
        "in {waited} of {ROUNDS} rounds a thread waited at all"
    );
}
