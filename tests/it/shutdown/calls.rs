//! Calls for locks after the shutdown has begun, and calls that are on their way then.

use super::*;

/// Each way to take a lock is refused.
#[track_caller]
fn is_refused<K: Kind>(mutex: &Mutex<K>) {
    let errors = [
        mutex.lock().map(|_| ()).unwrap_err(),
        mutex.try_lock().map(|_| ()).unwrap_err(),
        mutex.lock_timeout(Duration::ZERO).map(|_| ()).unwrap_err(),
        mutex.lock_timeout(SOON).map(|_| ()).unwrap_err(),
        mutex.lock_with(&Wait::unlimited()).map(|_| ()).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::ShutDown, "{error}");
        assert!(error.is_permanent() && error.causes().is_empty());
        let expected = ": the client is shut down";
        assert!(error.to_string().ends_with(expected), "{error}");
    }
}

#[test]
fn no_lock_of_any_kind_is_granted_and_no_node_is_asked() {
    for nodes in [1, 3] {
        let servers = Server::several(nodes).unwrap();
        let reasons = Seen::nothing();
        let counters = Counters::new();
        let pick = picked!(Event::GaveUp { reason, attempts, .. } => (*reason, *attempts));
        let client = client_with(&servers, |builder| {
            builder.counters(&counters).observer(reasons.by(pick))
        });
        let clone = client.clone();
        let kept = long_lock(&client, "kept");
        let read = client.read_mutex("read").ttl(LONG_TTL);
        // Others may not share it.
        let reader = take(&read);
        // A thread that shares it asks the nodes first.
        thread::sleep(MOMENT);
        begin(&client, &["read"]);
        let before: Vec<u64> = servers.each(asked);
        is_refused(&kept);
        is_refused(&clone.mutex("new"));
        is_refused(&clone.mutex("new").fenced());
        is_refused(&clone.mutex("new").fair());
        is_refused(&clone.mutex("new").reentrant());
        is_refused(&clone.mutex_set(["a", "b"]));
        is_refused(&clone.semaphore("permits", 3));
        is_refused(&clone.write_mutex("written"));
        is_refused(&clone.read_mutex("other"));
        is_refused(&read);
        assert_eq!(servers.each(asked), before);
        let refused = reasons.all();
        assert_eq!(refused.len(), 50);
        assert!(
            refused
                .iter()
                .all(|&reason| reason == (GaveUpReason::ShutDown, 0))
        );
        let series = "quorumlock_wait_seconds_count{class=\"all\",outcome=\"shut_down\"} 50\n";
        let text = counters.prometheus_text();
        assert!(text.contains(series), "{text}");
        drop(reader);
        complete(&client);
    }
}

/// It is released on every node, and its call fails. An observer is slow to learn of it.
#[test]
fn what_an_attempt_acquires_after_the_shutdown_has_begun_is_released() {
    type Attempt = fn(&Redlock) -> quorumlock::Result<bool>;
    let attempts: [Attempt; 3] = [
        |client| {
            let kept = long_lock(client, "a").min_hold(LONG_TTL);
            Ok(kept.try_lock()?.is_some())
        },
        |client| Ok(long_lock(client, "b").lock_timeout(SOON * 2)?.is_some()),
        |client| Ok(client.semaphore("s", 2).ttl(LONG_TTL).lock()?.slot() < 2),
    ];
    let servers = Server::several(3).unwrap();
    let acquired = AtomicUsize::new(0).into();
    let client = builder(&servers)
        .node_timeout(SOON)
        .observer(calling(&acquired, |acquired: &AtomicUsize, event| {
            if let Event::Acquired { name, .. } = event {
                acquired.fetch_add(1, Ordering::SeqCst);
                // The others end before, and the shutdown looks once a second for what has not.
                let is_permit = name.starts_with('s');
                thread::sleep(Duration::from_millis(if is_permit { 1500 } else { 0 }));
            }
        }))
        .build()
        .unwrap();
    client.connect(SOON).unwrap();
    pause(&servers);
    thread::scope(|scope| {
        let client = &client;
        let in_progress = attempts.map(|attempt| scope.spawn(move || attempt(client)));
        thread::sleep(MOMENT);
        let outcome = client.shutdown(Duration::ZERO).unwrap();
        assert_eq!(incomplete(outcome), (Vec::new(), 3, Vec::new()));
        let waiting = scope.spawn(|| client.shutdown(SOON).unwrap());
        thread::sleep(MOMENT);
        assert!(!waiting.is_finished(), "calls are in progress");
        resume(&servers);
        assert_eq!(waiting.join().unwrap(), ShutdownOutcome::Complete);
        let found: Vec<_> = servers.each(keys);
        assert!(found.iter().all(Vec::is_empty), "{found:?}");
        assert_eq!(acquired.load(Ordering::SeqCst), 3);
        for call in in_progress {
            let error = call.join().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ShutDown, "{error}");
        }
    });
}

/// The shutdown begins while an observer learns of another release.
#[test]
fn a_lock_that_is_attached_when_the_shutdown_begins_is_released() {
    let server = Server::start().unwrap();
    let (begin, begun) = crossbeam_channel::bounded(0);
    let (go_on, gone_on) = crossbeam_channel::bounded(0);
    let is_armed = Arc::new(AtomicBool::new(false));
    let armed = Arc::clone(&is_armed);
    let observer = move |_: &Event| {
        if armed.swap(false, Ordering::SeqCst) {
            begin.send(()).unwrap();
            gone_on.recv().unwrap();
        }
    };
    let client = client_with([&server], |builder| builder.observer(observer));
    let lease = take(&long_lock(&client, "k")).detach().unwrap();
    drop(take(&long_lock(&client, "first")));
    // The event of the release waits for a call.
    thread::sleep(MOMENT);
    is_armed.store(true, Ordering::SeqCst);
    thread::scope(|scope| {
        let attached = scope.spawn(|| client.attach(lease).map(|_| ()));
        begun.recv_timeout(SOON).unwrap();
        let _ = client.shutdown(Duration::ZERO).unwrap();
        go_on.send(()).unwrap();
        fails(attached.join().unwrap(), ErrorKind::ShutDown);
    });
    complete(&client);
    assert!(keys(&server).is_empty());
}

/// Whatever threads are at in that moment: when the shutdown is complete, nothing is held, nothing
/// is on its way, and no guard is made any more.
#[test]
fn nothing_escapes_a_shutdown_in_the_middle_of_work() {
    const ROUNDS: u32 = 100;
    let servers = Server::several(3).unwrap();
    let guards = AtomicUsize::new(0);
    for round in 0..ROUNDS {
        let [client, other] = [0, 1].map(|_| client(&servers));
        let is_complete = AtomicBool::new(false);
        thread::scope(|scope| {
            for way in WAYS {
                let (client, is_complete, guards) = (&client, &is_complete, &guards);
                scope.spawn(move || {
                    let error = loop {
                        match way(client) {
                            Ok(Some(guard)) => {
                                assert!(!is_complete.load(Ordering::SeqCst));
                                guards.fetch_add(1, Ordering::SeqCst);
                                drop(guard);
                            }
                            Ok(None) => {}
                            Err(error) => break error,
                        }
                    };
                    assert_eq!(error.kind(), ErrorKind::ShutDown, "{error}");
                });
            }
            // Another program competes.
            let competitor = scope.spawn(|| {
                for _ in 0..20 {
                    drop(other.mutex("a").lock_timeout(MOMENT));
                }
                other.flush_releases(SOON)
            });
            thread::sleep(Duration::from_micros(500) * (round % 40));
            let outcome = client.shutdown(SOON).unwrap();
            is_complete.store(true, Ordering::SeqCst);
            assert_eq!(outcome, ShutdownOutcome::Complete, "round {round}");
            // What the client holds has its keys here; what the other one holds, its own.
            let held: Vec<_> = servers.each(keys);
            competitor.join().unwrap().unwrap();
            assert!(
                held.iter().all(|keys| !keys.iter().any(|key| key != "a")),
                "{held:?}"
            );
            assert!(servers.all(|server| keys(server).is_empty()));
        });
    }
    assert!(guards.into_inner() > 100);
}

#[test]
fn no_guard_is_attached_once_a_shutdown_is_complete() {
    let server = Server::start().unwrap();
    for turn in 0..2000 {
        let client = client([&server]);
        let mutexes = [
            long_lock(&client, "k").erase(),
            client.read_mutex("k").ttl(LONG_TTL).erase(),
        ];
        let mutex = &mutexes[turn % 2];
        let lease = take(mutex).detach().unwrap();
        let both = Barrier::new(2);
        thread::scope(|scope| {
            let attaching = scope.spawn(|| {
                both.wait();
                (0..turn % 50 * 20).for_each(|_| std::hint::spin_loop());
                mutex.attach(lease)
            });
            both.wait();
            let outcome = client.shutdown(Duration::ZERO).unwrap();
            match attaching.join().unwrap() {
                Ok(_guard) => assert_ne!(outcome, ShutdownOutcome::Complete, "turn {turn}"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::ShutDown, "{error}"),
            }
        });
        ask(&server, &["FLUSHALL"]);
    }
}

/// The keys of locks.
fn keys(server: &Server) -> Vec<String> {
    let mut keys = server.keys().unwrap();
    keys.retain(|key| !key.starts_with("quorumlock-queue:"));
    keys
}

type Way = fn(&Redlock) -> quorumlock::Result<Option<MutexGuard<Any>>>;

/// Ways to take locks that compete.
const WAYS: [Way; 7] = [
    |client| erased(long_lock(client, "a").lock_timeout(SOON)),
    |client| erased(long_lock(client, "a").try_lock()),
    |client| erased(client.read_mutex("r").ttl(LONG_TTL).lock_timeout(SOON)),
    |client| erased(client.read_mutex("r").ttl(LONG_TTL).try_lock()),
    |client| erased(client.write_mutex("r").ttl(LONG_TTL).lock_timeout(SOON)),
    |client| erased(client.semaphore("s", 1).ttl(LONG_TTL).lock_timeout(SOON)),
    |client| {
        erased(
            client
                .mutex_set(["a", "b"])
                .ttl(LONG_TTL)
                .lock_timeout(SOON),
        )
    },
];

fn erased<K: Kind + Send>(
    taken: quorumlock::Result<Option<MutexGuard<K>>>,
) -> quorumlock::Result<Option<MutexGuard<Any>>> {
    Ok(taken?.map(MutexGuard::erase))
}
