//! What callbacks may do: use the client, panic, drop its last handle.

use super::*;
use std::sync::{Mutex, Weak};

/// A client without restart protection.
fn unprotected(servers: &[Server], recorder: &Arc<Recorder>) -> Redlock {
    observed_by(
        builder(servers).restart_policy(RestartPolicy::Off),
        recorder,
    )
}

/// Causes every event that a client without restart protection can report, and checks the result of
/// each call.
fn everything(servers: &mut [Server], client: &Redlock, recorder: &Recorder) {
    // Held by another client.
    let theirs = take(&long_lock(&super::client(&*servers), KEY));
    everywhere(servers, KEY);
    assert!(is_held(&client.mutex(KEY)));
    unlock(theirs);
    gone_for_good(&*servers, KEY);
    // Taken, extended and repaired by hand, released.
    let guard = take(&long_lock(client, KEY));
    everywhere(servers, KEY);
    ask_each(&servers[..1], &["DEL", KEY]);
    extend(&guard, LONG_TTL);
    unlock(guard);
    // Dropped.
    drop(take(&long_lock(client, "dropped")));
    assert_soon!({
        let _ = take(&long_lock(client, "another")).unlock().unwrap();
        recorder.count("released dropped") == 1
    });
    // Watched, for longer than it lives, and then lost.
    let guard = take(
        &client
            .mutex("watched")
            .ttl(TTL * 3)
            .watchdog(Watchdog::new().period(TTL / 3)),
    );
    assert_soon!(recorder.count("extended watched automatically") >= 5);
    everywhere(servers, "watched");
    ask_each(&*servers, &["DEL", "watched"]);
    guard.lost().unwrap().recv_timeout(SOON).unwrap();
    assert_soon!(recorder.count("lost watched") == 1);
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Expired);
    // Two of three nodes go, and come back.
    let guard = take(&long_lock(client, KEY));
    servers[1].kill();
    servers[2].kill();
    assert!(matches!(
        guard.extend(LONG_TTL).unwrap(),
        ExtendOutcome::Failed(_)
    ));
    assert!(guard.unlock().is_err());
    assert!(client.mutex("another").try_lock().is_err());
    servers[1].restart().unwrap();
    servers[2].restart().unwrap();
    let back =
        || matches!(client.mutex("back").try_lock(), Ok(Some(_))) && recorder.count("up ") == 5;
    assert_soon!(back(), "{:?}", recorder.node_words());
    for kind in [
        "acquired",
        "attempt lost",
        "extended",
        "extension failed",
        "lost",
        "down",
        "up",
        "release failed",
        "released",
        "repaired",
    ] {
        assert!(recorder.count(kind) > 0, "{kind} was not reported");
    }
}

#[test]
fn each_observer_gets_every_event_in_order_whatever_another_does() {
    let mut servers = Server::several(3).unwrap();
    let calls: Arc<Mutex<Vec<(usize, String)>>> = Arc::default();
    let recorders = [0, 1, 2].map(|index| {
        let calls = Arc::clone(&calls);
        Recorder::acting(move |event| {
            calls.lock().unwrap().push((index, words(event)));
            assert!(index == 2, "the first two panic on purpose");
        })
    });
    let add = |builder: Builder, recorder| builder.observer(calling(recorder, Recorder::event));
    let client = recorders
        .iter()
        .fold(builder(&servers), add)
        .build()
        .unwrap();
    unlock(take(&long_lock(&client, KEY)));
    drop(take(&long_lock(&client, "dropped")));
    servers[1].kill();
    servers[2].kill();
    assert!(client.mutex(KEY).try_lock().is_err());
    drop(client);
    let calls = calls.lock().unwrap();
    for kind in [
        "acquired k",
        "released k",
        "acquired dropped",
        "up ",
        "down ",
        "attempt lost k",
    ] {
        assert!(
            calls.iter().any(|(_, words)| words.starts_with(kind)),
            "{kind}: {calls:?}"
        );
    }
    for of_one_event in calls.chunks(3) {
        let expected: Vec<_> = (0..3)
            .map(|index| (index, of_one_event[0].1.clone()))
            .collect();
        assert_eq!(of_one_event, expected);
    }
}

#[test]
fn what_a_callback_throws_may_throw_again_when_it_goes() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !thread::panicking() {
                panic!("another");
            }
        }
    }
    let servers = Server::several(3).unwrap();
    let recorder = Recorder::acting(|_| std::panic::panic_any(Bomb));
    let client = observed(&servers, &recorder);
    for _ in 0..3 {
        unlock(take(&long_lock(&client, KEY)));
    }
    assert_eq!(recorder.count("released"), 3);
}

/// Every callback locks, unlocks, drops and extends with the client of the event, waits for a lock,
/// and builds and drops another client. None of it is reported, as there would be no end to it.
#[test]
fn a_callback_may_use_the_client() {
    let mut servers = Server::several(3).unwrap();
    let client: Arc<OnceLock<(Redlock, Vec<String>)>> = Arc::default();
    let recorder = Recorder::acting({
        let client = Arc::downgrade(&client);
        move |event| {
            let client = Weak::upgrade(&client).unwrap();
            let (client, urls) = client.get().unwrap();
            let resource = format!("inner/{:?}", thread::current().id());
            for _ in 0..2 {
                if let Ok(Some(guard)) = client.mutex(&resource).ttl(TTL).try_lock() {
                    let _ = guard.extend(LONG_TTL).unwrap();
                    let _ = guard.unlock();
                }
                drop(
                    client
                        .mutex(&resource)
                        .ttl(TTL)
                        .lock_timeout(Duration::from_millis(20)),
                );
            }
            let inner = plain_client(urls).mutex(&resource).ttl(TTL);
            drop(inner.watchdog(Watchdog::new()).try_lock());
            assert!(!words(event).contains("inner"), "{event:?}");
        }
    });
    let urls = servers.each(Server::url);
    assert!(client.set((unprotected(&servers, &recorder), urls)).is_ok());
    let (observed, _) = client.get().unwrap();
    everything(&mut servers, observed, &recorder);
    assert_eq!(
        recorder
            .words()
            .iter()
            .filter(|words| words.contains("inner"))
            .count(),
        0
    );
}

#[test]
fn a_callback_on_the_watchdogs_thread_may_drop_the_last_handle() {
    const THREAD: &str = "quorumlock watc";
    alone(|| {
        let servers = Server::several(3).unwrap();
        let handles: Arc<Mutex<Option<_>>> = Arc::default();
        let recorder = Recorder::acting({
            let handles = Arc::downgrade(&handles);
            move |event| {
                if let (Event::Lost { .. }, Some(handles)) = (event, Weak::upgrade(&handles)) {
                    drop(handles.lock().unwrap().take());
                }
            }
        });
        let client = observed(&servers, &recorder);
        let guard = take(&long_lock(&client, KEY).watchdog(Watchdog::new().period(TTL)));
        assert_soon!(threads_named(THREAD).len() == 1);
        everywhere(&servers, KEY);
        *handles.lock().unwrap() = Some((client, guard));
        ask_each(&servers, &["DEL", KEY]);
        assert_soon!(recorder.count("lost k") == 1);
        assert_soon!(threads_named(THREAD).is_empty(), "a thread is left");
        assert!(handles.lock().unwrap().is_none());
        assert_soon!(
            Arc::strong_count(&recorder) == 1,
            "the observer is still kept"
        );
    });
}
