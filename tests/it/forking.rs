//! What `fork` does to a client, its guards and its watchdog: nothing in the parent, and nothing
//! for the child.
//!
//! Each test runs alone in a process, and forks it. What a child has sent shows in the servers' own
//! counts, or in the record of a fake.

use crate::prelude::*;
use crate::support::child::Parent;
use crate::support::queues::subscribers;

const KEY: &str = "k";
const TTL: Duration = Duration::from_secs(2);

/// How long a child may take that has nothing to wait for. One that hangs takes for ever.
const LIMIT: Duration = Duration::from_secs(10);

/// Everything that the servers have been asked, connections included, but for what it takes to ask
/// this.
fn traffic(servers: &[Server]) -> Vec<String> {
    let mut all = Vec::new();
    for server in servers {
        let statistics = server.text(&["INFO", "commandstats"]);
        let lines = statistics
            .lines()
            .filter_map(|line| Some(line.split_once(",usec")?.0));
        // What the tests ask.
        let asked =
            |line: &&str| !line.starts_with("cmdstat_info") && !line.starts_with("cmdstat_get");
        all.extend(lines.filter(asked).map(str::to_owned));
        all.push(server.info("connected_clients").unwrap());
    }
    all
}

/// The kind that an operation is refused with.
#[track_caller]
fn refused<T>(result: Result<T, Error>) -> ErrorKind {
    result.map(drop).expect_err("refused").kind()
}

/// That this is refused to a child.
#[track_caller]
fn is_forked<T>(result: Result<T, Error>) {
    assert_eq!(refused(result), ErrorKind::Forked);
}

/// Does this in a child, which has nothing to wait for.
#[track_caller]
fn in_child(end: End, work: impl FnOnce()) {
    let child = Child::fork(end, |parent| {
        work();
        parent.send("done");
    });
    assert_eq!(child.end(LIMIT), "done");
}

/// Every operation that a child can think of. Panics when one is not refused.
fn is_refused_everywhere(client: &Redlock, guard: &mut MutexGuard) {
    let mutex = long_lock(client, "other").watchdog(Watchdog::new());
    let refusals = [
        refused(mutex.try_lock()),
        refused(mutex.lock()),
        refused(mutex.lock_timeout(SOON)),
        refused(mutex.lock_with(&Wait::deadline(Instant::now() + SOON))),
        refused(mutex.lock_with(&Wait::unlimited().cancelled_by(&CancelHandle::new()))),
        refused(mutex.lock_with(&Wait::unlimited().cancelled_by(&CancelHandle::new()))),
        refused(guard.extend(LONG_TTL)),
        refused(guard.ensure(Duration::ZERO)),
        refused(guard.lost()),
        refused(client.nodes()),
    ];
    assert_eq!(refusals, [ErrorKind::Forked; 10]);
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert_eq!((guard.name(), mutex.name()), (KEY, "other"));
    assert!(format!("{guard:?} {mutex:?} {client:?}").contains("0ns"));
}

/// Locks and unlocks with a client of the child's own.
fn locks_with_its_own(urls: &[String], resource: &str) {
    let own = client_of(urls);
    unlock(take(&long_lock(&own, resource).watchdog(Watchdog::new())));
}

#[test]
fn a_child_is_refused_and_the_parent_is_not_disturbed() {
    alone(|| {
        for end in [End::Exit, End::Vanish] {
            let (servers, client) = deployment(3);
            // A node whose handshake is not done when a quorum has answered would not have the
            // key.
            drop(client.connect(SOON).unwrap());
            let mut plain = Some(take(&long_lock(&client, KEY)));
            let cancel = CancelHandle::new();
            let watched = take(&long_lock(&client, "watched").watchdog(Watchdog::new()));
            let lost = watched.lost().unwrap();
            everywhere(&servers, "watched");
            let mut second = Some(take(&long_lock(&client, "second")));
            let at_rest = take(&long_lock(&client, "third")).detach().unwrap();
            let at_rest = at_rest.into_text();
            let at_rest = || at_rest.expose().parse::<Lease>().unwrap();
            let levels = long_lock(&client, "levels").reentrant();
            let outer = levels.lock().unwrap();
            let mut inner = levels.try_lock().unwrap();
            let before = traffic(&servers);
            let token = value(&servers[0], KEY);
            in_child(end, || {
                let mut guard = plain.take().unwrap();
                is_refused_everywhere(&client, &mut guard);
                is_forked(guard.unlock());
                is_forked(inner.take().unwrap().unlock());
                is_forked(client.attach(at_rest()));
                assert!(lost.try_recv().is_err());
                let own = client_of(servers.iter().map(Server::url));
                is_forked(second.take().unwrap().detach());
                // What the parent cancels by is the parent's as well, and no wait of the
                // child's.
                let wait = Wait::unlimited().cancelled_by(&cancel);
                is_forked(own.mutex(KEY).lock_with(&wait));
                cancel.cancel();
                drop(cancel.clone());
            });
            assert_eq!(traffic(&servers), before);
            assert_eq!(value(&servers[0], KEY), token);
            assert!(!cancel.is_cancelled());
            let guard = plain.take().unwrap();
            extend(&guard, LONG_TTL);
            assert!(is_held(&client.mutex(KEY)));
            unlock(guard);
            unlock(watched);
            assert_eq!(
                inner.take().unwrap().unlock().unwrap(),
                ReleaseOutcome::StillHeld(1)
            );
            unlock(outer);
            unlock(second.take().unwrap());
            unlock(client.attach(at_rest()).unwrap());
            gone_for_good(&servers, KEY);
        }
    });
}

#[test]
fn what_a_child_drops_is_still_the_parents() {
    alone(|| {
        for end in [End::Exit, End::Vanish] {
            let (servers, client) = deployment(3);
            let mutex = client.mutex(KEY).ttl(TTL).watchdog(Watchdog::new());
            let guards = (take(&mutex), take(&long_lock(&client, "plain")));
            let extensions = || all_calls(&servers, "pexpire");
            assert_soon!(extensions() >= 6, "the watchdog runs");
            let tokens = || [KEY, "plain"].map(|key| value(&servers[0], key));
            let before = tokens();
            let deleted = all_calls(&servers, "del");
            let mut all = Some((guards, mutex, client));
            let child = Child::fork(end, |parent| {
                // With the last of them ends what they share.
                drop(all.take());
                parent.send("dropped");
                // A thread of the child's would extend by now.
                thread::sleep(TTL);
            });
            let limit = Instant::now() + TTL * 3;
            assert_eq!(child.end(LIMIT), "dropped");
            assert_eq!(tokens(), before, "released by the child");
            let (guards, mutex, client) = all.take().unwrap();
            let extended = extensions();
            assert_soon!(extensions() >= extended + 6, "no extension comes any more");
            thread::sleep(limit.saturating_duration_since(Instant::now()));
            assert!(!guards.0.remaining().is_zero());
            assert!(guards.0.lost().unwrap().try_recv().is_err());
            assert_eq!(all_calls(&servers, "del"), deleted);
            assert!(is_held(&mutex));
            unlock(guards.0);
            unlock(guards.1);
            drop((mutex, client));
            gone_for_good(&servers, KEY);
        }
    });
}

/// To the byte, and to the connection.
#[test]
fn a_node_receives_nothing_from_a_child() {
    alone(|| {
        let fake = Fake::healthy();
        let client = client_of([fake.url()]);
        let mut guard = Some(take(&long_lock(&client, KEY)));
        let watched = take(&long_lock(&client, "watched").watchdog(Watchdog::new()));
        let before = fake.commands();
        let mut all = Some((client, watched));
        in_child(End::Exit, || {
            is_refused_everywhere(&all.as_ref().unwrap().0, guard.as_mut().unwrap());
            drop((guard.take(), all.take()));
        });
        thread::sleep(TTL / 6);
        assert_eq!(fake.commands(), before);
        assert_eq!((fake.connections(), fake.open()), (1, 1));
        unlock(guard.take().unwrap());
        let (_client, watched) = all.take().unwrap();
        unlock(watched);
        assert_eq!((fake.connections(), fake.open()), (1, 1));
    });
}

/// Whatever the parent's other threads are at in the moment of the fork, and whatever they have
/// locked.
#[test]
#[allow(clippy::print_stdout)]
fn children_do_not_hang_that_are_forked_while_the_client_is_busy() {
    alone(|| {
        const FORKS: usize = 200;
        const THREADS: usize = 6;
        let servers = Server::several(3).unwrap();
        let urls: Vec<String> = servers.each(Server::url);
        let client = client(&servers);
        let mut guard = Some(take(&long_lock(&client, KEY)));
        let watched = client.mutex("watched").ttl(TTL * 5);
        let watched = take(&watched.watchdog(Watchdog::new()));
        let stop = AtomicBool::new(false);
        let pairs = AtomicUsize::new(0);
        let cancel = CancelHandle::new();
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (client, stop, pairs, cancel) = (&client, &stop, &pairs, &cancel);
                scope.spawn(move || {
                    let own = format!("busy/{thread}");
                    let wait = Wait::timeout(SOON).cancelled_by(cancel);
                    while !stop.load(Ordering::Relaxed) {
                        let mutex = long_lock(client, &own).watchdog(Watchdog::new());
                        let guard = mutex.lock().unwrap();
                        // A wrong reply would change the result of one of them.
                        assert!(is_held(&client.mutex(&own)));
                        unlock(guard);
                        let guard = long_lock(client, "shared").lock_with(&wait).unwrap();
                        unlock(guard.unwrap());
                        pairs.fetch_add(2, Ordering::Relaxed);
                    }
                });
            }
            // Whatever fails here, the threads are to end.
            let stop = StopAtEnd(&stop);
            for round in 0..FORKS {
                let end = [End::Exit, End::Vanish][round % 2];
                let mut handle = Some(client.clone());
                let child = Child::fork(end, |parent: &mut Parent| {
                    is_refused_everywhere(&client, guard.as_mut().unwrap());
                    cancel.cancel();
                    if round % 4 == 0 {
                        is_forked(guard.take().unwrap().unlock());
                    }
                    drop((guard.take(), handle.take()));
                    if round % 5 == 0 {
                        locks_with_its_own(&urls, "of a child");
                    }
                    parent.send("done");
                });
                assert_eq!(child.end(LIMIT), "done", "fork {round}");
            }
            drop(stop);
        });
        println!(
            "{FORKS} forks while {} locks were taken and released",
            pairs.load(Ordering::Relaxed)
        );
        assert!(pairs.load(Ordering::Relaxed) > FORKS, "nothing was shown");
        assert!(!watched.remaining().is_zero());
        unlock(watched);
        unlock(guard.take().unwrap());
        for server in &servers {
            assert_soon!(server.keys().unwrap().is_empty());
        }
    });
}

#[test]
fn children_and_their_children_lock_with_clients_of_their_own() {
    alone(|| {
        let servers = Server::several(3).unwrap();
        let urls: Vec<String> = servers.each(Server::url);
        let client = client(&servers);
        let mut guard = take(&client.mutex(KEY).ttl(TTL).watchdog(Watchdog::new()));
        in_child(End::Exit, || {
            let own = client_of(&urls);
            assert!(is_held(&own.mutex(KEY)), "the parent has it");
            let mine = take(&own.mutex("mine").ttl(TTL).watchdog(Watchdog::new()));
            in_child(End::Vanish, || {
                is_refused_everywhere(&client, &mut guard);
                assert_eq!(
                    (mine.remaining(), refused(mine.extend(TTL))),
                    (Duration::ZERO, ErrorKind::Forked)
                );
                is_forked(own.mutex("theirs").try_lock());
                locks_with_its_own(&urls, "theirs");
            });
            thread::sleep(TTL * 2);
            assert!(mine.lost().unwrap().try_recv().is_err() && !mine.remaining().is_zero());
            unlock(mine);
            // A wait of the child's own, which the parent's lock holds up and the child ends.
            let cancel = CancelHandle::new();
            let mutex = long_lock(&own, KEY);
            let wait = Wait::unlimited().cancelled_by(&cancel);
            let waiting = thread::spawn(move || refused(mutex.lock_with(&wait)));
            thread::sleep(TTL / 6);
            cancel.cancel();
            assert_eq!(waiting.join().unwrap(), ErrorKind::Cancelled);
        });
        // What goes on to another program has nothing of ours.
        succeeds(&mut Command::new("true"));
        assert!(!guard.remaining().is_zero());
        unlock(guard);
        gone_for_good(&servers, KEY);
        gone_for_good(&servers, "mine");
    });
}

#[test]
fn a_lock_ends_with_its_holder_though_a_child_lives_on() {
    alone(|| {
        let servers = Server::several(3).unwrap();
        // The holder, which is killed, and its child, which has the guard and lives until the
        // test ends it.
        let mut holder = Child::fork(End::Vanish, |parent| {
            let client = client(&servers);
            let mut guard = take(&client.mutex(KEY).ttl(TTL).watchdog(Watchdog::new()));
            everywhere(&servers, KEY);
            let mut child = Child::fork(End::Exit, |middle| {
                middle.send("i");
                while !parent.may_continue() {
                    is_refused_everywhere(&client, &mut guard);
                    thread::sleep(TTL / 60);
                }
                parent.send("o");
            });
            child.receive();
            parent.send("h");
            // Its destructor would end it.
            std::mem::forget(child);
        });
        assert_eq!(holder.receive(), 'h');
        gone_for_good(&servers, KEY);
        holder.let_continue();
        assert_eq!(holder.receive(), 'o', "the child was there to the end");
        assert_eq!(holder.end(LIMIT), "");
    });
}

#[test]
fn a_child_that_has_let_go_keeps_no_connection_open() {
    alone(|| {
        let servers = Server::several(3).unwrap();
        let clients = || servers.each(|server| server.info("connected_clients").unwrap());
        let before = clients();
        let client = client(&servers);
        unlock(take(&long_lock(&client, KEY)));
        let mut handle = Some(client);
        let mut child = Child::fork(End::Vanish, |parent| {
            drop(handle.take());
            parent.send("d");
            parent.wait();
        });
        assert_eq!(child.receive(), 'd');
        assert_ne!(clients(), before, "the parent's connections are there");
        unlock(take(&long_lock(handle.as_ref().unwrap(), KEY)));
        drop(handle);
        assert_soon!(clients() == before, "{:?}, not {before:?}", clients());
        child.let_continue();
        assert_eq!(child.end(LIMIT), "");
    });
}

#[test]
fn a_node_inside_the_parent_outlives_its_child() {
    alone(|| {
        let mut node = Some(EmbeddedNode::start().unwrap());
        let client = client_of([node.as_ref().unwrap().url()]);
        let guard = take(&long_lock(&client, KEY));
        in_child(End::Exit, || {
            let node = node.take().unwrap();
            node.kill();
            assert!(node.revive().is_err());
            drop(node);
        });
        assert_eq!(node.as_ref().unwrap().keys(), [KEY]);
        unlock(guard);
    });
}

#[test]
fn a_child_of_a_waiting_process_leaves_its_subscription_alone() {
    alone(|| {
        let (servers, [mine, theirs]) = programs(3);
        let held = take(&long_lock(&theirs, KEY));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| wait_for(&long_lock(&mine, KEY)).unlock().unwrap());
            assert_soon!(servers.all(|server| subscribers(server) == 1));
            let before = traffic(&servers);
            in_child(End::Exit, || {
                is_forked(long_lock(&mine, KEY).lock());
            });
            // A waiter may have asked again meanwhile, and no client has subscribed or
            // disconnected.
            let lines = |traffic: Vec<String>| -> Vec<String> {
                traffic
                    .into_iter()
                    .filter(|line| line.contains("subscribe") || !line.contains("cmdstat"))
                    .collect()
            };
            assert_eq!(lines(traffic(&servers)), lines(before));
            drop(held);
            assert_eq!(waiting.join().unwrap(), ReleaseOutcome::Released);
        });
    });
}
