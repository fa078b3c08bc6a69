//! Nodes in cluster mode: a cluster of one shard is a node, whichever of its servers the URL names;
//! one of several shards is not.

use crate::faults::counts_when_locks_have_ended;
use crate::prelude::*;
use crate::support::fake;
use crate::support::shard::{CLUSTER, Shard, meet, own, serves};
use std::sync::atomic::AtomicU16;

fn plan(binary: &std::path::Path) -> Plan {
    Server::plan().binary(binary)
}

/// Where each node was led.
fn moves(seen: &Seen<(String, String)>, builder: Builder) -> Builder {
    builder.observer(seen.by(
        picked!(Event::NodeMoved { node, master, .. } => (node.to_string(), master.to_string())),
    ))
}

/// A lock of each kind that one client at a time has.
fn kinds(client: &Redlock) -> Vec<Mutex<Any>> {
    vec![
        long_lock(client, "plain").erase(),
        long_lock(client, "fenced").fenced().erase(),
        long_lock(client, "fair").fair().erase(),
        client.write_mutex("rw").ttl(LONG_TTL).erase(),
        client.write_mutex("rw").fenced().ttl(LONG_TTL).erase(),
        client
            .mutex_set(["set/1", "set/2", "set/3"])
            .ttl(LONG_TTL)
            .erase(),
        client.semaphore("semaphore", 1).ttl(LONG_TTL).erase(),
    ]
}

/// Takes, extends and releases a lock of each kind, and lets another client wait for it meanwhile.
fn lives(mine: &Redlock, theirs: &Redlock) {
    for (mutex, other) in kinds(mine).into_iter().zip(kinds(theirs)) {
        let guard = wait_for(&mutex);
        assert!(is_held(&other), "{other:?}");
        extend(&guard, LONG_TTL);
        let waited = time_to_wake(&other, || unlock(guard));
        // The delay between attempts is much longer.
        assert!(waited < SOON / 2, "{other:?}: {waited:?}");
    }
    let owned = take(&long_lock(mine, "reentrant").reentrant());
    drop(take(&long_lock(mine, "reentrant").reentrant()));
    assert!(is_held(&theirs.mutex("reentrant")));
    drop(owned);
    // Each permit has a key of its own, whose slot is another one.
    let permits = [mine, theirs].map(|client| client.semaphore("permits", 8).ttl(LONG_TTL));
    let acquired = [0, 0, 0, 0, 0, 0, 0, 1].map(|of: usize| wait_for(&permits[of]));
    assert!(is_held(&permits[1]));
    drop(acquired);
    let readers = [mine, theirs].map(|client| take(&client.read_mutex("rw").ttl(LONG_TTL)));
    assert!(is_held(&mine.write_mutex("rw")));
    drop(readers);
    let free = || mine.write_mutex("rw").try_lock().unwrap().is_some();
    assert_soon!(free());
}

#[test]
fn a_lock_of_each_kind_lives_on_clusters_of_one_shard() {
    for binary in binaries().unwrap() {
        let shard = Shard::start(&plan(&binary), 0);
        let plain = [0, 1].map(|_| plan(&binary).start().unwrap());
        let nodes = [shard.master(), &plain[0], &plain[1]];
        // All of them first: those that join one that has been known for a second do not vote yet.
        for nodes in [&nodes[..], &nodes[..1]] {
            let [mine, theirs] = [(); 2].map(|()| patient(nodes.iter().copied()));
            mine.connect(SOON).unwrap();
            assert!(all_vote(&mine));
            lives(&mine, &theirs);
        }
    }
}

/// The first call succeeds, whatever it is.
#[test]
fn a_url_of_a_replica_leads_to_the_master_of_its_shard() {
    for binary in binaries().unwrap() {
        let shard = Shard::start(&plan(&binary), 1);
        let (replica, master) = (shard.replica(), shard.master());
        let moved = [(replica.address(), master.address())];
        let calls: [fn(&Redlock); 4] = [
            |client| drop(take(&long_lock(client, "k"))),
            |client| drop(client.connect(SOON).unwrap()),
            |client| drop(take(&long_lock(client, "k").fenced())),
            |client| drop(take(&client.mutex_set(["k/1", "k/2"]).ttl(LONG_TTL))),
        ];
        for call in calls {
            let seen = Seen::nothing();
            let client = moves(&seen, builder([replica])).build().unwrap();
            call(&client);
            assert_eq!(seen.all(), moved);
            assert_eq!(first_node(&client).state(), NodeState::Voting);
            lives(&client, &patient([master]));
        }
    }
}

/// A client whose delay between attempts would show.
fn patient<'s>(servers: impl IntoIterator<Item = &'s Server>) -> Redlock {
    client_with(servers, |builder| builder.retry_delay(SOON, SOON))
}

/// One server has one vote, by whichever name it is reached, and takes no lock from itself.
#[test]
fn two_servers_of_a_shard_have_one_vote() {
    let shard = Shard::start(&Server::plan(), 1);
    let other = Server::start().unwrap();
    for urls in [
        [shard.replica(), shard.master(), &other],
        [shard.master(), shard.replica(), &other],
    ] {
        let client = client(urls);
        let begun = Instant::now();
        let (mut taken, mut refused) = (0, 0);
        // Long enough for several looks at the servers, and for a machine that is busy.
        let least = Duration::from_secs(3);
        while begun.elapsed() < least || taken <= 100 && begun.elapsed() < 10 * least {
            match long_lock(&client, "k").try_lock().unwrap() {
                Some(guard) => {
                    unlock(guard);
                    taken += 1;
                }
                None => refused += 1,
            }
            thread::sleep(Duration::from_millis(2));
        }
        // One or the other has its vote, and both may have set the key.
        assert!(taken > 100 && refused < taken / 10, "{taken} {refused}");
        // A connection that leads to the replica first is told so before it is found to be one too
        // many.
        assert_soon!({
            let nodes = client.nodes().unwrap();
            let faults = nodes.iter().filter_map(|node| node.last_fault());
            let duplicates = faults.filter(|fault| matches!(fault.cause(), Cause::Duplicate(_)));
            duplicates.count() == 1
        });
    }
}

/// Each shard fails over while locks are taken on all of them: no call fails, and no two holders
/// meet. The shards lose nothing in a fail-over that is asked for, so they are declared durable.
#[test]
fn shards_fail_over_under_load() {
    let mut shards = [0, 1, 2].map(|_| Shard::start(&durable(), 1));
    let addresses: Vec<_> = shards
        .iter()
        .map(|shard| shard.master().address())
        .collect();
    let seen = Seen::nothing();
    let urls = addresses
        .iter()
        .map(|address| format!("redis://{address}?durable=true"));
    let client = moves(&seen, builder_of(urls).max_ttl(LONG_TTL));
    let client = client.build().unwrap();
    let (ends, inside, taken) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for thread in 0..4 {
            let (client, ends, inside, taken) = (&client, &ends, &inside, &taken);
            scope.spawn(move || {
                let watchdog = Watchdog::default();
                let mutex = long_lock(client, "k")
                    .ttl(Duration::from_secs(2))
                    .watchdog(watchdog);
                while !ends.load(Ordering::Relaxed) {
                    let guard = mutex.lock().unwrap();
                    assert_eq!(inside.swap(thread + 1, Ordering::SeqCst), 0);
                    thread::sleep(Duration::from_millis(1));
                    assert_eq!(inside.swap(0, Ordering::SeqCst), thread + 1);
                    unlock(guard);
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _ends = StopAtEnd(&ends);
        for round in 0..2 {
            for shard in &mut shards {
                let before = taken.load(Ordering::Relaxed);
                shard.fail_over();
                let address = shard.master().address();
                let is_led = || {
                    let led = seen.all().into_iter().next_back();
                    led.is_some_and(|(_, master)| master == address)
                };
                assert_soon!(is_led(), "{round}: {:?}", seen.all());
                let is_voting = || {
                    let nodes = client.nodes().unwrap();
                    nodes.iter().all(|node| node.state() == NodeState::Voting)
                };
                assert_soon!(is_voting(), "{:?}", client.nodes());
                let goes_on = || taken.load(Ordering::Relaxed) > before + 10;
                assert_soon!(goes_on());
            }
        }
    });
}

/// What the server that was the master has not run, the new one is asked within the same call.
#[test]
fn a_held_lock_is_extended_and_released_at_the_new_master() {
    let mut shard = Shard::start(&durable(), 1);
    let client = builder([shard.master()]).durable(true).build().unwrap();
    let guards = ["extended", "released"].map(|name| take(&long_lock(&client, name)));
    shard.fail_over();
    let [extended, released] = guards;
    let extend = || extend(&extended, LONG_TTL);
    unlock(released);
    // Without that, a second redirection within a second would have to wait.
    extend();
    shard.fail_over();
    extend();
    unlock(extended);
    assert_eq!(shard.master().keys().unwrap(), [""; 0]);
}

/// The client has asked nothing yet.
#[test]
fn a_release_or_a_question_that_is_the_first_call_reaches_the_master() {
    let shard = Shard::start(&Server::plan(), 1);
    let new = || builder([shard.replica()]).build().unwrap();
    let guard = take(&long_lock(&client([shard.master()]), "k"));
    let holder = new().mutex("k").holder().unwrap();
    assert!(holder.is_some_and(|holder| holder.remaining().is_some()));
    let lease = guard.detach().unwrap();
    let guard = new().attach(lease).unwrap();
    unlock(guard);
    assert_eq!(shard.master().keys().unwrap(), [""; 0]);
}

/// They find out that the server is a replica now, and fail for it no more than the call behind.
#[test]
fn questions_after_a_fail_over_are_answered_by_the_new_master() {
    let mut shard = Shard::start(&durable(), 1);
    let client = builder([shard.master()]).durable(true).build().unwrap();
    drop(take(&long_lock(&client, "k")));
    let questions: [fn(&Redlock); 2] = [
        |client| assert!(client.mutex("k").holder().unwrap().is_none()),
        |client| drop(client.connect(SOON).unwrap()),
    ];
    for question in questions {
        shard.fail_over();
        question(&client);
        unlock(take(&long_lock(&client, "k")));
    }
}

/// The connection for messages leads where the commands go: an entry whose channel the new master
/// does not have counts as dead there.
#[test]
fn calls_that_wait_keep_their_places_at_the_new_master() {
    let mut shard = Shard::start(&durable(), 1);
    let patient = || {
        let builder = builder([shard.master()]).durable(true);
        builder.retry_delay(SOON, SOON).build().unwrap()
    };
    let (mine, theirs) = (patient(), patient());
    let guard = take(&long_lock(&mine, "k"));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| theirs.mutex("k").lock_timeout(SOON * 3).unwrap().is_some());
        has_entries([shard.master()], "k", 1);
        has_channels([shard.master()], 1);
        shard.fail_over();
        // Another call of the client is led to the new master.
        drop(take(&long_lock(&theirs, "other")));
        has_channels([shard.master()], 1);
        has_entries([shard.master()], "k", 1);
        drop(guard);
        assert!(waiting.join().unwrap());
    });
}

/// A shard may lose locks in a fail-over: its votes do not count until `max_ttl` has passed.
#[test]
fn a_new_master_counts_when_all_earlier_locks_have_ended() {
    let mut shard = Shard::start(&Server::plan(), 1);
    let max_ttl = Duration::from_secs(2);
    let client = builder([shard.master()]).max_ttl(max_ttl).build().unwrap();
    drop(take(&client.mutex("k").ttl(max_ttl)));
    shard.fail_over();
    counts_when_locks_have_ended(&client.mutex("k").ttl(max_ttl), max_ttl);
}

/// The master is gone, and the URL names it: the replica that was named before is asked.
#[test]
fn a_master_that_was_named_is_asked_while_the_server_of_the_url_is_gone() {
    let mut shard = Shard::start(&Server::plan(), 1);
    let client = client([shard.replica()]);
    drop(take(&long_lock(&client, "k").ttl(Duration::from_secs(5))));
    let replica = shard
        .servers
        .iter()
        .position(|server| server.port() == shard.replica().port());
    shard.servers[replica.unwrap()].kill();
    for _ in 0..3 {
        let killed = ["CLIENT", "KILL", "TYPE", "normal"];
        shard.master().command(&killed).unwrap();
        let guard = client.mutex("k").lock_timeout(SOON).unwrap();
        assert!(guard.is_some());
    }
}

/// The master is the process that it was, by way of a replica that names it again.
#[test]
fn a_connection_that_fails_once_is_no_restart_of_the_master() {
    let is_down = Arc::new(AtomicBool::new(false));
    let refuses = Arc::clone(&is_down);
    let master = Fake::scripted(move |_, event| match event {
        _ if refuses.load(Ordering::SeqCst) => vec![Act::Close],
        fake::Event::Connected => Vec::new(),
        fake::Event::Received(command) => match command[0].as_str() {
            "INFO" => {
                let ids = ["run_id", "master_replid", "master_replid2"];
                let ids = ids.map(|field| format!("{field}:{}\r\n", "7".repeat(40)));
                let ids = ids.concat();
                vec![say(&bulk(&format!(
                    "redis_mode:cluster\r\nrole:master\r\n{ids}"
                )))]
            }
            "CLUSTER" => vec![say(&bulk(ONE_SHARD))],
            _ => vec![Act::Say(healthy(command))],
        },
    });
    let replica = naming(&Arc::new(AtomicU16::new(master.port())), "slave");
    let client = client_of([replica.url()]);
    let locks = || can_take(&client.mutex("k"));
    assert!(locks());
    is_down.store(true, Ordering::SeqCst);
    for _ in 0..5 {
        assert!(!locks());
        thread::sleep(Duration::from_millis(50));
    }
    is_down.store(false, Ordering::SeqCst);
    assert_soon!(locks(), "{:?}", client.nodes());
}

/// A key is on one of them, so their votes would not be about the same lock.
#[test]
fn a_cluster_of_two_shards_is_an_error_that_says_why() {
    for binary in binaries().unwrap() {
        let servers = [0, 1].map(|_| plan(&binary).arguments(&CLUSTER).start().unwrap());
        own(&servers[0], 0..8192);
        own(&servers[1], 8192..16_384);
        meet(&servers[0], &servers[1]);
        serves(&servers);
        let error = failure(&long_lock(&client(&servers[..1]), "k"));
        let expected = (servers[0].address(), Phase::Handshake, Cause::ClusterMode);
        assert_eq!(
            (error.kind(), causes(&error)),
            (ErrorKind::Unavailable, vec![expected])
        );
        assert!(error.is_permanent());
        let text = "one of 2 shards of a cluster, which hold different keys and are no quorum; name clusters of one \
                    shard, or masters without cluster mode";
        shows(&error, text);
    }
}

/// Whether there is one shard cannot be seen without the right to ask.
#[test]
fn a_user_who_may_not_ask_about_the_cluster_is_told_which_right_is_missing() {
    skip_unless!(has_users());
    let shard = Shard::start(&Server::plan(), 0);
    let master = shard.master();
    let url = user_named(master, "me", "~* &* +@all -cluster");
    let client = plain_client([url]);
    let error = failure(&client.mutex("k"));
    assert_eq!(causes(&error)[0].2, Cause::NoPermission);
    shows(&error, "may not run CLUSTER INFO");
    let allowed = ["ACL", "SETUSER", "me", "+cluster|info"];
    master.command(&allowed).unwrap();
    assert_soon!(can_take(&client.mutex("k")));
}

const ONE_SHARD: &str = "cluster_slots_assigned:16384\r\ncluster_size:1";

/// What a server of one shard replies, in this role, which names the server at this port.
fn naming(port: &Arc<AtomicU16>, role: &'static str) -> Fake {
    let port = Arc::clone(port);
    Fake::on_command(move |command| {
        vec![match command[0].as_str() {
            "INFO" => say(&bulk(&format!("redis_mode:cluster\r\nrole:{role}"))),
            "CLUSTER" => say(&bulk(ONE_SHARD)),
            "TIME" => say("*2\r\n$1\r\n9\r\n$1\r\n5\r\n"),
            "GET" if role == "master" => say("$-1\r\n"),
            _ => {
                let port = port.load(Ordering::SeqCst);
                say(&format!("-MOVED 1 127.0.0.1:{port}\r\n"))
            }
        }]
    })
}

/// Two that name each other are asked as seldom as any node that fails, be they replicas or masters
/// that run no command.
#[test]
fn servers_that_name_each_other_are_not_followed_for_ever() {
    for role in ["slave", "master"] {
        let ports = [(); 2].map(|()| Arc::new(AtomicU16::new(0)));
        let fakes = [naming(&ports[1], role), naming(&ports[0], role)];
        for (fake, port) in fakes.iter().zip(&ports) {
            port.store(fake.port(), Ordering::SeqCst);
        }
        let client = plain_client([fakes[0].url()]);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(1) {
            let error = failure(&client.mutex("k"));
            assert_eq!(causes(&error)[0].2, Cause::NotMaster, "{error}");
            thread::sleep(Duration::from_millis(1));
        }
        let made: usize = fakes.iter().map(Fake::connections).sum();
        assert!((2..=20).contains(&made), "{role}: {made} connections");
    }
}
