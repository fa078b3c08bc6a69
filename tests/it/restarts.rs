//! Nodes that were restarted and have forgotten what they promised: their votes do not count until
//! it has ended.
//!
//! A client that has met a node before it was restarted is *acquainted* here. [`node_status`] is
//! about the status of nodes, [`replicas`] about masters that were replicas meanwhile.

mod node_status;
mod replicas;

use crate::clients::{SOON, builder, calls, causes, failure, gone_for_good, take, value};
use crate::support::capable::has_slow_loading;
use crate::support::fake::{Act, Fake, healthy, say};
use crate::support::process::eventually;
use crate::support::server::{Answer, Server};
use quorumlock::ServerError;
use quorumlock::{
    Builder, Cause, ErrorKind, ExtendOutcome, Mutex, MutexGuard, NodeState, Phase, Redlock,
    ReleaseOutcome, RestartPolicy, Watchdog,
};
use std::thread;
use std::time::{Duration, Instant};

const KEY: &str = "k";
/// Long enough to be restarted in, and short enough to be waited for.
const MAX_TTL: Duration = Duration::from_secs(4);

/// The settings of a client of these servers, under which quarantines end within a test.
fn brief<'s>(servers: impl IntoIterator<Item = &'s Server>) -> Builder {
    builder(servers).ttl(MAX_TTL).max_ttl(MAX_TTL)
}

/// The lock, for as long as it may last.
fn longest(client: &Redlock) -> Mutex {
    client.mutex(KEY).ttl(MAX_TTL)
}

/// Lets a client meet all of its nodes.
#[track_caller]
fn acquaint(client: &Redlock) {
    let met = || {
        drop(take(&client.mutex("before").ttl(Duration::from_secs(1))));
        client
            .nodes()
            .unwrap()
            .iter()
            .all(|node| node.state() == NodeState::Voting)
    };
    assert!(eventually(SOON, met), "{:?}", client.nodes());
}

/// Whether all of these servers have been asked for the lock since they were started, and not only
/// for their note.
fn asked(servers: &[Server]) -> bool {
    servers.iter().all(|server| calls(server, "set") > 1)
}

/// The classic: A, B and C grant the lock, C is restarted without its data, and another client asks
/// when only C, D and E can grant it. A and B refuse.
fn classic(policy: RestartPolicy) -> (Vec<Server>, MutexGuard, Mutex) {
    let mut servers = Server::several(5).unwrap();
    let theirs = brief(&servers).restart_policy(policy).build().unwrap();
    acquaint(&theirs);
    servers[3..]
        .iter()
        .for_each(|server| server.pause().unwrap());
    let held = take(&longest(&brief(&servers).build().unwrap()));
    assert!(eventually(SOON, || servers[..3]
        .iter()
        .all(|server| value(server, KEY).is_some())));
    servers[2].restart().unwrap();
    // What the holder had asked of the last two comes as late as if it had been lost.
    for server in &servers[3..] {
        server.resume().unwrap();
        assert!(eventually(SOON, || value(server, KEY).is_some()));
        server.command(&["DEL", KEY]).unwrap();
    }
    (servers, held, longest(&theirs))
}

#[test]
fn a_node_that_forgot_a_lock_does_not_give_it_away_a_second_time() {
    let (servers, held, theirs) = classic(RestartPolicy::default());
    let mut tries = 0;
    while held.remaining() > Duration::from_millis(100) {
        // Two reply that it is held, two grant it, and the fifth would make it three.
        let attempt = theirs.try_lock();
        assert!(
            matches!(attempt, Ok(None)),
            "two at once: {attempt:?} and {held:?}"
        );
        tries += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(tries > 1 && asked(&servers[2..]), "{tries} tries");
    drop(held);
    // When max_ttl has passed it votes again.
    assert!(
        eventually(SOON, || all_count(&theirs, &servers)),
        "it never counts again"
    );
}

#[test]
fn without_the_guard_it_does() {
    let (_servers, held, theirs) = classic(RestartPolicy::Off);
    let second = || matches!(theirs.try_lock(), Ok(Some(guard)) if !guard.remaining().is_zero());
    assert!(eventually(MAX_TTL / 2, second), "no node gave it away");
    assert!(!held.remaining().is_zero(), "nothing was shown");
}

/// Whether a lock is granted by just those nodes that are left when the others hang: the last
/// three.
fn all_count(mutex: &Mutex, servers: &[Server]) -> bool {
    servers[..2]
        .iter()
        .for_each(|server| server.pause().unwrap());
    let attempt = mutex.try_lock();
    let all_count = matches!(attempt, Ok(Some(_)));
    drop(attempt);
    servers[..2]
        .iter()
        .for_each(|server| server.resume().unwrap());
    all_count
}

#[test]
fn a_single_node_is_unavailable_until_all_that_it_may_have_forgotten_has_ended() {
    let mut server = [Server::start().unwrap()];
    let client = brief(&server).build().unwrap();
    let mutex = longest(&client);
    drop(take(&mutex));
    server[0].restart().unwrap();
    let restarted = Instant::now();
    let expected = (server[0].address(), Phase::Reply, Cause::Quarantined);
    let error = failure(&mutex);
    assert_eq!(
        (error.kind(), causes(&error)),
        (ErrorKind::Unavailable, vec![expected])
    );
    for word in [
        "1 of 1 nodes failed, 1 must answer",
        "may have forgotten locks, does not vote for another ",
        "max_ttl (4 s)",
        "durable",
    ] {
        assert!(error.to_string().contains(word), "{error}");
    }
    // It was asked, not only for its note, and its key was released again.
    assert!(calls(&server[0], "set") > 1);
    gone_for_good(&server, KEY);
    assert!(eventually(SOON, || mutex
        .try_lock()
        .is_ok_and(|guard| guard.is_some())));
    assert!(
        restarted.elapsed() >= MAX_TTL,
        "too soon: {:?}",
        restarted.elapsed()
    );
    assert!(
        restarted.elapsed() < MAX_TTL + SOON / 2,
        "too late: {:?}",
        restarted.elapsed()
    );
    // A second restart counts like the first.
    server[0].restart().unwrap();
    assert_eq!(causes(&failure(&mutex))[0].2, Cause::Quarantined);
}

#[test]
fn a_wait_for_a_node_in_quarantine_fails_though_others_wait_too() {
    let mut server = [Server::start().unwrap()];
    let clients = [0; 2].map(|_| {
        let client = builder(&server)
            .unavailable_after(Duration::from_millis(500))
            .build()
            .unwrap();
        acquaint(&client);
        client
    });
    server[0].restart().unwrap();
    // Each would find the other's key now and then, and take it for a holder's.
    std::thread::scope(|scope| {
        let waiting = clients.map(|client| scope.spawn(move || client.mutex(KEY).lock().map(drop)));
        for waiting in waiting {
            assert_eq!(
                waiting.join().unwrap().unwrap_err().kind(),
                ErrorKind::Unavailable
            );
        }
    });
}

#[test]
fn a_durable_node_counts_at_once_and_has_its_keys() {
    let start = || Server::with(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap();
    let mut server = [start()];
    let build = |node: String| Redlock::builder().node(node).node_timeout(SOON / 10);
    let client = build(server[0].url()).durable(true).build().unwrap();
    let theirs = build(format!("{}?durable=true", server[0].url()))
        .build()
        .unwrap();
    assert!(client.nodes().unwrap()[0].is_durable() && theirs.nodes().unwrap()[0].is_durable());
    acquaint(&theirs);
    let guard = take(&client.mutex(KEY));
    server[0].restart().unwrap();
    assert!(
        eventually(SOON, || matches!(theirs.mutex(KEY).try_lock(), Ok(None))),
        "it is still held"
    );
    assert!(eventually(SOON, || guard.extend(MAX_TTL).unwrap()
        == ExtendOutcome::Extended));
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    assert_eq!(
        take(&theirs.mutex(KEY)).unlock().unwrap(),
        ReleaseOutcome::Released
    );
}

/// While a server loads its append-only file, its `INFO` contains `aof_enabled:0`.
#[test]
fn a_durable_node_that_is_met_while_it_loads_its_data_is_durable() {
    if !has_slow_loading() {
        return;
    }
    let slowly = [
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
        "--key-load-delay",
        "300",
    ];
    let mut server = Server::with(&slowly).unwrap();
    let fill = "for i = 1, 4000 do redis.call('SET', 'filler:' .. i, i) end";
    server.command(&["EVAL", fill, "0"]).unwrap();
    let client = Redlock::builder()
        .node(server.url())
        .durable(true)
        .node_timeout(SOON)
        .build()
        .unwrap();
    acquaint(&client);
    let mut was_loading = false;
    thread::scope(|scope| {
        let restart = scope.spawn(|| server.restart().unwrap());
        while !restart.is_finished() {
            let failed = client.mutex(KEY).try_lock().err();
            was_loading |= failed
                .is_some_and(|error| causes(&error).iter().any(|cause| cause.2 == Cause::Loading));
            assert!(client.nodes().unwrap()[0].is_durable());
        }
    });
    assert!(was_loading, "no attempt has met the node while it loads");
    assert!(
        eventually(SOON, || matches!(client.mutex(KEY).try_lock(), Ok(Some(_)))),
        "it counts at once"
    );
}

/// A declaration that the server itself contradicts does not count: not in this process of it, nor
/// in the next.
#[test]
fn a_node_declared_durable_that_appends_nothing_to_disk_is_not() {
    for (parameter, are_durable) in [("", true), ("?durable=true", false)] {
        let mut servers = Server::several(3).unwrap();
        let urls = servers
            .iter()
            .map(|server| format!("{}{parameter}", server.url()));
        let client = brief([]).nodes(urls).durable(are_durable).build().unwrap();
        acquaint(&client);
        assert!(
            client
                .nodes()
                .unwrap()
                .iter()
                .all(|node| !node.is_durable())
        );
        for server in &mut servers {
            server.restart().unwrap();
        }
        assert!(
            causes(&failure(&longest(&client)))
                .iter()
                .all(|cause| cause.2 == Cause::Quarantined)
        );
    }
}

#[test]
fn an_extension_does_not_count_on_a_restarted_node_even_where_it_finds_its_key() {
    let mut servers = Server::several(3).unwrap();
    let client = builder(&servers).build().unwrap();
    acquaint(&client);
    let guard = take(&client.mutex(KEY).ttl(SOON * 6));
    assert!(eventually(SOON, || servers
        .iter()
        .all(|server| value(server, KEY).is_some())));
    servers[2].restart().unwrap();
    let is_repaired = || {
        assert_eq!(guard.extend(SOON * 6).unwrap(), ExtendOutcome::Extended);
        value(&servers[2], KEY).is_some()
    };
    assert!(eventually(SOON, is_repaired));
    servers[1].pause().unwrap();
    // One has the key and counts, one has it and does not, one is silent.
    let ExtendOutcome::Failed(faults) = guard.extend(SOON * 6).unwrap() else {
        panic!("it counted")
    };
    assert!(
        faults
            .iter()
            .any(|fault| fault.cause() == Cause::Quarantined),
        "{faults:?}"
    );
    assert!(!guard.remaining().is_zero(), "the old lease holds");
    servers[1].resume().unwrap();
    assert!(eventually(SOON, || guard.extend(SOON * 6).unwrap()
        == ExtendOutcome::Extended));
    // It is released there as everywhere.
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    gone_for_good(&servers, KEY);
}

#[test]
fn a_watchdog_keeps_a_lock_while_a_minority_is_in_quarantine_and_counts_it_afterwards() {
    let mut servers = Server::several(3).unwrap();
    let ttl = Duration::from_secs(1);
    let client = builder(&servers).ttl(ttl).max_ttl(ttl).build().unwrap();
    acquaint(&client);
    let guard = take(&client.mutex(KEY).ttl(ttl).watchdog(Watchdog::new()));
    let lost = guard.lost().unwrap();
    // One after the other, each when the one before counts again.
    for (index, server) in servers.iter_mut().enumerate() {
        server.restart().unwrap();
        let state = || client.nodes().unwrap()[index].state();
        let is_quarantined = || matches!(state(), NodeState::Quarantined { .. });
        assert!(eventually(SOON, is_quarantined), "{:?}", client.nodes());
        assert!(
            eventually(SOON, || value(server, KEY).is_some()),
            "it was not repaired"
        );
        assert!(
            eventually(SOON, || state() == NodeState::Voting),
            "{:?}",
            client.nodes()
        );
        assert!(lost.try_recv().is_err() && !guard.remaining().is_zero());
    }
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    gone_for_good(&servers, KEY);
}

#[test]
fn in_strict_mode_a_node_that_withholds_its_name_does_not_count() {
    // After each release it ends the connection. Whatever is at the other end of the next one may
    // be another.
    let withholds = |command: &Vec<String>| match command[0].as_str() {
        "INFO" => vec![say(
            "-NOPERM this user has no permissions to run the 'info' command\r\n",
        )],
        "EVAL" => vec![Act::Say(healthy(command)), Act::Close],
        _ => vec![Act::Say(healthy(command))],
    };
    for (policy, counts) in [
        (RestartPolicy::Observed, true),
        (RestartPolicy::Strict, false),
    ] {
        let fake = Fake::on_command(withholds);
        let client = Redlock::builder()
            .node(fake.url())
            .restart_policy(policy)
            .build()
            .unwrap();
        for _ in 0..3 {
            let attempt = client.mutex(KEY).try_lock();
            assert_eq!(
                matches!(attempt, Ok(Some(_))),
                counts,
                "{policy:?}: {attempt:?}"
            );
            drop(attempt);
            assert!(fake.wait_for_open(0, SOON));
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(fake.connections(), 3);
        assert_eq!(client.nodes().unwrap()[0].run_id(), None);
    }
}

#[test]
fn a_replica_that_has_lost_its_master_gives_itself_away_to_a_script_too() {
    let node = [Server::start().unwrap()];
    let client = brief(&node).build().unwrap();
    let mutex = client.mutex(KEY).ttl(MAX_TTL).fenced();
    drop(take(&mutex));
    node[0]
        .command(&["CONFIG", "SET", "replica-serve-stale-data", "no"])
        .unwrap();
    // No server is there.
    node[0].command(&["REPLICAOF", "127.0.0.1", "1"]).unwrap();
    assert_eq!(
        causes(&failure(&mutex)),
        [(
            node[0].address(),
            Phase::Reply,
            Cause::Server(ServerError::MasterDown)
        )]
    );
    node[0].command(&["REPLICAOF", "NO", "ONE"]).unwrap();
    let promoted = Instant::now();
    assert!(eventually(SOON, || mutex
        .try_lock()
        .is_ok_and(|guard| guard.is_some())));
    assert!(promoted.elapsed() >= MAX_TTL, "its data may be another's");
}

#[test]
fn a_node_that_turns_out_to_be_a_replica_is_sent_away_and_does_not_count_when_it_is_a_master_again()
{
    let master = Server::start().unwrap();
    let node = [Server::start().unwrap()];
    let client = brief(&node).build().unwrap();
    let mutex = longest(&client);
    let held = take(&mutex);
    // It keeps its connections and its run id, and loses its keys.
    let run_id = node[0].info("run_id").unwrap();
    node[0]
        .command(&["REPLICAOF", "127.0.0.1", &master.port().to_string()])
        .unwrap();
    assert!(eventually(SOON, || node[0]
        .info("master_link_status")
        .unwrap()
        == "up"));
    let refused = failure(&client.mutex("other").ttl(MAX_TTL));
    // It refuses to write, or was asked first what it is, as after a second of silence.
    let cause = causes(&refused)[0].2;
    assert!(
        matches!(cause, Cause::NotMaster | Cause::ReadOnly),
        "{refused}"
    );
    assert_eq!(
        client.nodes().unwrap()[0].state(),
        NodeState::Rejected(cause)
    );
    node[0].command(&["REPLICAOF", "NO", "ONE"]).unwrap();
    assert_eq!(node[0].command(&["GET", KEY]).unwrap(), Answer::Nil);
    let promoted = Instant::now();
    let is_quarantined =
        || causes(&failure(&client.mutex("other").ttl(MAX_TTL)))[0].2 == Cause::Quarantined;
    assert!(eventually(SOON, is_quarantined));
    assert_eq!(node[0].info("run_id").unwrap(), run_id);
    drop(held);
    assert!(eventually(SOON, || mutex
        .try_lock()
        .is_ok_and(|guard| guard.is_some())));
    assert!(promoted.elapsed() >= MAX_TTL);
}
