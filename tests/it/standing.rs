//! Locks that are held for some time at least, however early they are released.

use crate::prelude::*;

const D: Duration = Duration::from_secs(2);
/// By how much the nodes' clocks may be ahead after that time: `drift_factor` and 2 ms.
const DRIFT: Duration = Duration::from_millis(22);

/// Both kinds of lock, with the key of each.
fn kinds(client: &Redlock) -> [(Mutex<Any>, &'static str); 2] {
    let plain = long_lock(client, "k").min_hold(D);
    [
        (plain.clone().erase(), "k"),
        (plain.fenced().erase(), "quorumlock-fence:k"),
    ]
}

/// How long a quorum has the lock with this key, if it is held.
fn time_left(client: &Redlock, key: &str) -> Option<Duration> {
    let mutex = client.mutex("k");
    let holder = if key == "k" {
        mutex.holder()
    } else {
        mutex.fenced().holder()
    };
    holder
        .unwrap()
        .map(|holder| holder.remaining().expect("it ends"))
}

#[test]
fn a_release_before_its_time_shortens_the_lock_and_does_not_free_it() {
    for servers in threes() {
        let (client, other) = (client(&servers), client(&servers));
        for (mutex, key) in kinds(&client) {
            for is_dropped in [false, true] {
                let begun = Instant::now();
                let guard = take(&mutex);
                assert!(time_left(&client, key).unwrap() > LONG_TTL - SOON);
                match is_dropped {
                    true => drop(guard),
                    false => unlock(guard),
                }
                assert_soon!(
                    time_left(&client, key).is_none_or(|left| left <= D + Duration::from_millis(1))
                );
                assert!(begun.elapsed() > D || is_held(&mutex));
                let next = wait_for(&fenced_if(key != "k", other.mutex("k")));
                assert!(begun.elapsed() >= D - DRIFT, "{:?}", begun.elapsed());
                unlock(next);
            }
        }
    }
}

/// A reader's release ends its own entry alone, and a writer's keeps all others out until then.
#[test]
fn readers_and_writers_keep_their_entries_as_well() {
    const KEY: &str = "quorumlock-rw:k";
    for servers in threes() {
        let (client, other) = (client(&servers), client(&servers));
        let writer = client.write_mutex("k").ttl(LONG_TTL).min_hold(D);
        let kinds = [
            client.read_mutex("k").ttl(LONG_TTL).min_hold(D).erase(),
            writer.clone().erase(),
            writer.fenced().erase(),
        ];
        for (mutex, is_read) in kinds.into_iter().zip([true, false, false]) {
            let begun = Instant::now();
            let guard = take(&mutex);
            // The slowest node may not have been asked yet.
            assert_soon!(servers.all(|server| value(server, KEY).is_some()));
            assert!(servers.all(|server| left(server, KEY).is_some()));
            unlock(guard);
            if begun.elapsed() < D / 2 {
                assert!(is_held(&other.write_mutex("k")));
                assert_eq!(other.read_mutex("k").try_lock().unwrap().is_some(), is_read);
            }
            let next = wait_for(&other.write_mutex("k"));
            assert!(begun.elapsed() >= D - DRIFT, "{:?}", begun.elapsed());
            unlock(next);
        }
    }
}

/// A thread that shares a lock keeps it for its own least time, whatever the one that has taken it
/// wants.
#[test]
fn who_shares_a_lock_keeps_it_as_well() {
    let servers = Server::several(3).unwrap();
    let (client, other) = (client(&servers), client(&servers));
    let reader = client.read_mutex("k").ttl(LONG_TTL);
    let levels = long_lock(&client, "levels").reentrant();
    let begun = Instant::now();
    let first = take(&reader);
    let second = take(&reader.clone().min_hold(D));
    let outer = levels.lock().unwrap();
    let inner = levels.clone().min_hold(D).lock().unwrap();
    drop((first, outer));
    unlock(second);
    unlock(inner);
    drop(wait_for(&other.write_mutex("k")));
    assert!(begun.elapsed() >= D - DRIFT, "{:?}", begun.elapsed());
    drop(wait_for(&other.mutex("levels")));
    assert!(begun.elapsed() >= D - DRIFT, "{:?}", begun.elapsed());
}

#[test]
fn a_release_after_its_time_frees_the_lock() {
    let (servers, client) = deployment(3);
    let mutex = long_lock(&client, "k").min_hold(Duration::from_millis(20));
    let guard = take(&mutex);
    thread::sleep(Duration::from_millis(21));
    unlock(guard);
    nowhere(&servers, "k");
    unlock(take(&long_lock(&client, "other").min_hold(Duration::ZERO)));
    let error = failure(&client.mutex("k").min_hold(LONG_TTL * 3));
    let says = "min_hold of 3 min is longer than max_ttl (2 min): raise max_ttl to 3 min in every \
                client of these nodes";
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Config, says)
    );
}

#[test]
fn a_short_ttl_is_made_longer_and_no_watchdog_extends_what_is_kept() {
    let (server, client) = single();
    let ttl = Duration::from_millis(300);
    let mutex = client
        .mutex("k")
        .ttl(ttl)
        .watchdog(Watchdog::new())
        .min_hold(D);
    unlock(take(&mutex));
    let first = left(&server, "k").expect("it ends");
    assert!(first > ttl && first <= D, "{first:?}");
    thread::sleep(ttl * 2);
    assert!(left(&server, "k").expect("it ends") < first - ttl);
}

#[test]
fn a_release_that_a_node_does_not_get_deletes_nothing_later() {
    let mut servers = vec![durable().start().unwrap()];
    servers.extend(Server::several(2).unwrap());
    let client = client(&servers);
    let guard = take(&long_lock(&client, "k").min_hold(D * 20));
    assert_soon!(value(&servers[0], "k").is_some());
    servers[0].kill();
    unlock(guard);
    servers[0].restart().unwrap();
    drop(client.mutex("other").try_lock());
    assert!(client.flush_releases(SOON).is_ok());
    assert!(value(&servers[0], "k").is_some() && value(&servers[1], "k").is_some());
}

#[test]
fn twenty_clients_that_start_a_short_job_at_once_run_it_once() {
    let servers = Server::several(3).unwrap();
    let barrier = Barrier::new(20);
    let runs = AtomicUsize::new(0);
    let held = AtomicUsize::new(0);
    thread::scope(|scope| {
        for index in 0..20 {
            let client = client(&servers);
            let (barrier, runs, held) = (&barrier, &runs, &held);
            scope.spawn(move || {
                client.connect(SOON).unwrap();
                let mutex = client.mutex("nightly").min_hold(Duration::from_secs(30));
                barrier.wait();
                // Clocks that are up to 40 ms apart. Votes may split among those that start
                // together.
                thread::sleep(Duration::from_millis(10 * (index % 5)));
                for _ in 0..50 {
                    if let Some(guard) = mutex.try_lock().unwrap() {
                        thread::sleep(Duration::from_millis(1));
                        runs.fetch_add(1, Ordering::Relaxed);
                        unlock(guard);
                        return;
                    }
                    thread::sleep(Duration::from_millis(5));
                }
                held.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    assert_eq!((runs.into_inner(), held.into_inner()), (1, 19));
}

/// Its client is shut down when it has joined the other thread.
#[test]
fn a_thread_that_is_not_granted_what_another_one_holds_does_not_keep_it() {
    let servers = Server::several(3).unwrap();
    let own: Arc<OnceLock<Redlock>> = Arc::default();
    let shut_down = {
        let own = Arc::clone(&own);
        let acquired = AtomicUsize::new(0);
        move |event: &Event| {
            if matches!(event, Event::Acquired { .. })
                && acquired.fetch_add(1, Ordering::SeqCst) == 1
            {
                _ = own.get().unwrap().shutdown(Duration::ZERO);
            }
        }
    };
    let client = client_with(&servers, |builder| builder.observer(shut_down));
    own.set(client.clone()).unwrap();
    let other = crate::clients::client(&servers);
    let writer = take(&other.write_mutex("k").ttl(LONG_TTL));
    let reader = client.read_mutex("k").ttl(LONG_TTL);
    thread::scope(|scope| {
        let first = scope.spawn(|| wait_for(&reader));
        thread::sleep(Duration::from_millis(100));
        let second = scope.spawn(|| reader.clone().min_hold(LONG_TTL).lock_timeout(SOON));
        thread::sleep(Duration::from_millis(100));
        unlock(writer);
        let guard = first.join().unwrap();
        fails(second.join().unwrap(), ErrorKind::ShutDown);
        unlock(guard);
    });
    drop(take(&other.write_mutex("k")));
}
