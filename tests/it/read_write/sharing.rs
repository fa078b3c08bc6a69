//! Threads of one client that read share one lease, and so one entry on each node.

use super::*;
use crossbeam_channel::TryRecvError;

/// Longer than a lease is shared without asking the nodes.
const MOMENT: Duration = Duration::from_millis(30);

#[test]
fn threads_of_a_program_have_one_entry_and_the_last_one_releases_it() {
    let (servers, client) = deployment(3);
    let guards: Vec<_> = (0..8).map(|_| read(&long(&client))).collect();
    assert_soon!(servers.all(|server| entries(server) == ('r', 1)));
    let mut guards = guards.into_iter().rev();
    let last = guards.next().unwrap();
    for guard in guards {
        assert!(matches!(
            guard.unlock().unwrap(),
            ReleaseOutcome::StillHeld(_)
        ));
    }
    assert!(!can_write(&long(&client)));
    unlock(last);
    gone_for_good(&servers, KEY);
}

#[test]
fn a_lease_is_shared_for_a_moment_without_asking_and_then_asked_for_again() {
    let server = Server::start().unwrap();
    let mutex = long(&client([&server]));
    let scripts = || scripts_run(&server);
    let first = read(&mutex);
    let many: Vec<_> = (0..100).map(|_| read(&mutex)).collect();
    // A hundred that were asked for would be a hundred scripts, however slow the machine.
    let asked = scripts();
    assert!(asked < 20, "{asked} scripts");
    thread::sleep(Duration::from_millis(200));
    assert!(first.remaining() < LONG_TTL * 99 / 100 - Duration::from_millis(150));
    let second = read(&mutex);
    assert_eq!(scripts(), asked + 1);
    assert!(second.remaining() > LONG_TTL * 98 / 100 - Duration::from_millis(150));
    assert_eq!(entries(&server), ('r', 1));
    drop((first, many, second));
    gone_for_good([&server], KEY);
}

#[test]
fn a_thread_that_shares_a_short_lease_has_three_quarters_of_it_at_least() {
    let (_servers, client) = deployment(1);
    let ttl = Duration::from_millis(30);
    let validity = ttl * 99 / 100 - Duration::from_millis(2);
    let short = Sides::of(&client, "k").ttl(ttl);
    for step in 0..60 {
        let first = short.read.try_lock().unwrap();
        thread::sleep(Duration::from_micros(step * 200));
        let called = Instant::now();
        if let (Some(_first), Some(second)) = (first, short.read.try_lock().unwrap()) {
            let remaining = second.remaining();
            // It may have ended since, where this thread got no processor time.
            let lasts = remaining + called.elapsed();
            assert!(
                remaining.is_zero() || lasts >= validity * 3 / 4,
                "{lasts:?}"
            );
        }
    }
}

/// A client that is connected to these servers over wires with this delay.
fn far(servers: &[Server], delay: Duration) -> (Vec<Proxy>, Redlock) {
    let proxies = Proxy::before_each(servers);
    proxies.iter().for_each(|proxy| proxy.delay(delay));
    let client = client_of(proxies.iter().map(Proxy::url));
    client.connect(SOON).unwrap();
    (proxies, client)
}

#[test]
fn a_thread_with_a_longer_time_to_live_gets_it() {
    let (_servers, client) = deployment(3);
    let five = Sides::of(&client, "k").ttl(Duration::from_secs(5));
    let short = read(&five);
    let long = read(&long(&client));
    assert!(long.remaining() > LONG_TTL / 2);
    assert!(short.remaining() > LONG_TTL / 2, "they share it");
    let watched = read(&five.watchdog(Watchdog::new()));
    assert!(watched.remaining() > LONG_TTL / 2, "it is not cut short");
}

/// Its question is under way when the watchdog of the other thread extends the lease, once.
#[test]
fn a_thread_with_a_longer_time_to_live_keeps_it_though_the_watchdog_of_another_asks_for_less() {
    let servers = Server::several(3).unwrap();
    let (_proxies, client) = far(&servers, Duration::from_millis(400));
    let period = Duration::from_secs(1);
    let begun = Instant::now();
    let watchdog = Watchdog::new().period(period).max_extensions(1);
    let short = Sides::of(&client, "k").ttl(period * 5).watchdog(watchdog);
    let watched = wait_for(&short.read);
    thread::sleep((period * 8 / 10).saturating_sub(begun.elapsed()));
    let long = wait_for(&long(&client).read);
    thread::sleep((period * 2).saturating_sub(begun.elapsed()));
    assert!(long.remaining() > LONG_TTL / 2, "{:?}", long.remaining());
    assert!(watched.remaining() > LONG_TTL / 2, "they share it");
}

#[test]
fn a_thread_with_a_watchdog_does_not_share_a_lease_that_is_watched_without() {
    let servers = Server::several(3).unwrap();
    let mutex = long(&client(&servers));
    let first = read(&mutex);
    let lost = first.lost().unwrap();
    let watched = wait_for(&mutex.clone().watchdog(Watchdog::new()).read);
    assert_soon!(servers.all(|server| entries(server) == ('r', 2)));
    assert!(watched.remaining() > LONG_TTL / 2 && lost.try_recv().is_err());
    drop((first, watched));
    gone_for_good(&servers, KEY);
}

#[test]
fn threads_that_begin_together_share_one_attempt_over_a_long_wire() {
    let servers = Server::several(3).unwrap();
    let (_proxies, client) = far(&servers, Duration::from_millis(80));
    // One stores the note that each node of a new deployment gets. Those that a busy machine
    // starts late ask for themselves.
    let is_shared = || {
        let before = servers.each(scripts_run);
        assert_eq!(most_inside(&client), 8, "they are inside at once");
        let mut counts = servers.iter().zip(before);
        counts.all(|(server, before)| scripts_run(server) - before <= 5)
    };
    assert!(
        (0..3).any(|_| is_shared()),
        "{:?}",
        servers.each(scripts_run)
    );
    gone_for_good(&servers, KEY);
}

/// How many of eight threads that begin together read at once.
fn most_inside(client: &Redlock) -> usize {
    let barrier = Barrier::new(8);
    let inside = AtomicUsize::new(0);
    let most = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                let guard = wait_for(&long(client).read);
                most.fetch_max(
                    inside.fetch_add(1, Ordering::Relaxed) + 1,
                    Ordering::Relaxed,
                );
                barrier.wait();
                inside.fetch_sub(1, Ordering::Relaxed);
                drop(guard);
            });
        }
    });
    most.into_inner()
}

#[test]
fn a_thread_that_was_refused_for_a_writer_leaves_the_others_their_lease() {
    let servers = Server::several(3).unwrap();
    let reader = long(&client(&servers));
    // Its place lasts, also when nothing runs for a moment.
    let writer = long(&client_with(&servers, |builder| builder.place_lease(SOON)));
    let guard = read(&reader);
    thread::scope(|scope| {
        let writes = scope.spawn(|| writer.write.lock().unwrap());
        assert_soon!(servers.all(is_marked));
        thread::sleep(Duration::from_millis(30));
        assert!(!can_read(&reader));
        assert!(servers.all(|server| entries(server) == ('r', 1)));
        assert!(guard.remaining() > LONG_TTL / 2);
        unlock(guard);
        drop(writes.join().unwrap());
    });
}

#[test]
fn a_lease_that_others_share_is_not_detached() {
    let servers = Server::several(3).unwrap();
    let mutex = long(&client(&servers));
    let one = read(&mutex);
    let other = read(&mutex);
    // Another thread reads.
    fails(one.detach(), ErrorKind::Config);
    assert!(other.remaining() > LONG_TTL / 2);
    let lease = other.detach().expect("it is the last");
    assert!(!can_write(&mutex));
    drop(mutex.read.attach(lease).unwrap());
    gone_for_good(&servers, KEY);
}

#[test]
fn a_lease_that_goes_on_elsewhere_is_shared_by_threads_that_wait() {
    let servers = Server::several(3).unwrap();
    let mutex = long(&client(&servers));
    let guard = mutex.read.attach(read(&mutex).detach().unwrap()).unwrap();
    thread::sleep(MOMENT);
    let other = wait_for(&mutex.read);
    assert!(servers.all(|server| entries(server).1 <= 1));
    drop((guard, other));
    gone_for_good(&servers, KEY);
}

#[test]
fn a_lease_longer_than_the_mutex_gives_is_not_cut_short_by_a_thread_that_shares_it() {
    let (_servers, client) = deployment(3);
    let short = Sides::of(&client, "k").ttl(LONG_TTL / 10);
    let is_long = |guard: &RwReadGuard| {
        thread::sleep(MOMENT);
        let other = wait_for(&short.read);
        guard.remaining() > LONG_TTL / 2 && other.remaining() > LONG_TTL / 2
    };
    let attached = short
        .read
        .attach(read(&long(&client)).detach().unwrap())
        .unwrap();
    assert!(is_long(&attached));
    drop(attached);
    let writes = wait_for(&short.write);
    extend(&writes, LONG_TTL);
    let downgraded = writes.downgrade().unwrap();
    assert!(is_long(&downgraded));
    // Nor by one that is extended automatically.
    let brief = Sides::of(&client, "k").ttl(Duration::from_millis(300));
    let watched = read(&brief.watchdog(Watchdog::new()));
    thread::sleep(Duration::from_millis(500));
    assert!(downgraded.remaining() > LONG_TTL / 2 && watched.remaining() > LONG_TTL / 2);
}

/// As on any lock, a watchdog extends for as long as it allows from when its own thread has locked.
#[test]
fn the_limits_of_one_watchdog_do_not_end_the_lease_of_another_thread() {
    const TTL: Duration = Duration::from_millis(900);
    let servers = Server::several(3).unwrap();
    let mutex = Sides::of(&client(&servers), "k").ttl(TTL);
    let limited = [
        Watchdog::new().max_extensions(2),
        Watchdog::new().max_duration(TTL / 2),
    ];
    for (first, second) in limited
        .into_iter()
        .zip([Watchdog::new(), Watchdog::new().max_duration(SOON * 10)])
    {
        // The machine may hold up any of them.
        let is_held = (0..3).any(|_| {
            let first = wait_for(&mutex.clone().watchdog(first.clone()).read);
            thread::sleep(TTL / 9);
            let second = wait_for(&mutex.clone().watchdog(second.clone()).read);
            assert!(servers.all(|server| entries(server).1 <= 1));
            thread::sleep(TTL * 3);
            let is_held = !second.remaining().is_zero();
            drop((first, second));
            gone_for_good(&servers, KEY);
            is_held
        });
        assert!(is_held, "{second:?}");
    }
}

#[test]
fn each_guard_is_told_of_the_loss_as_long_as_it_is_there() {
    let servers = Server::several(3).unwrap();
    let mutex = long(&client(&servers));
    let one = read(&mutex);
    let other = read(&mutex);
    let gone = read(&mutex);
    let kept = Arc::new(AtomicUsize::new(0));
    let left = Arc::new(AtomicUsize::new(0));
    let early = gone.lost().unwrap();
    for (guard, calls) in [(&one, &kept), (&gone, &left)] {
        let calls = Arc::clone(calls);
        guard
            .on_lost(move || _ = calls.fetch_add(1, Ordering::Relaxed))
            .unwrap();
    }
    let signals = [
        one.lost().unwrap(),
        one.lost().unwrap(),
        other.lost().unwrap(),
    ];
    assert!(
        matches!(gone.unlock().unwrap(), ReleaseOutcome::StillHeld(_)),
        "others read on"
    );
    assert_eq!(
        (Arc::strong_count(&left), early.try_recv()),
        (1, Err(TryRecvError::Disconnected)),
        "it has gone"
    );
    assert_soon!(servers.all(|server| entries(server) == ('r', 1)));
    ask_each(&servers, &["DEL", KEY]);
    assert_eq!(other.extend(LONG_TTL * 2).unwrap(), ExtendOutcome::Lost);
    assert!(
        signals[0].try_recv().is_ok() && signals[2].try_recv().is_ok(),
        "each guard has its own"
    );
    assert_eq!(
        signals[1].try_recv(),
        Err(TryRecvError::Empty),
        "of one guard there is one message"
    );
    let late = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&late);
    one.on_lost(move || _ = calls.fetch_add(1, Ordering::Relaxed))
        .unwrap();
    let called = [kept, left, late].map(|calls| calls.load(Ordering::Relaxed));
    assert_eq!(called, [1, 0, 1]);
}

/// A reader that has waited since before a writer of its client had the lock does not take the
/// writer's time for an answer of the nodes: it has its own time to live.
#[test]
fn a_reader_that_waited_for_a_downgrade_has_its_own_time_to_live() {
    let servers = Server::several(3).unwrap();
    // The machine may hold up any of them.
    let has_its_own_time = || time_of_a_reader(&servers).is_some_and(|left| left > OWN_TTL * 2 / 3);
    assert!((0..3).any(|_| has_its_own_time()));
}

const OWN_TTL: Duration = Duration::from_secs(2);

/// The time that is left to a reader that has waited for a downgrade, unless the writer has lost
/// its lock before.
fn time_of_a_reader(servers: &[Server]) -> Option<Duration> {
    let (client, other) = (client(servers), client(servers));
    let first = wait_for(&long(&other).write);
    thread::scope(|scope| {
        let brief = Sides::of(&client, "k").ttl(OWN_TTL / 4);
        let watched = brief.watchdog(Watchdog::new()).write;
        let writer = scope.spawn(move || wait_for(&watched));
        thread::sleep(OWN_TTL / 10);
        let reads = scope.spawn(|| wait_for(&client.read_mutex("k").ttl(OWN_TTL)).remaining());
        thread::sleep(OWN_TTL / 10);
        drop(first);
        let writer = writer.join().unwrap();
        thread::sleep(OWN_TTL * 3 / 2);
        let _reads_now = writer.downgrade().ok()?;
        Some(reads.join().unwrap())
    })
}
