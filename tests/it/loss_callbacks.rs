//! What is called when a lock is lost: once, in time, with nothing in its way.

use crate::prelude::*;
use crossbeam_channel::{Receiver, Sender, TryRecvError, unbounded};

const KEY: &str = "k";
const SHORT: Duration = Duration::from_millis(300);

/// Has the name of the calling thread sent. The channel ends when the callback is gone.
fn calls(guard: &MutexGuard) -> Receiver<String> {
    let (sender, receiver): (Sender<String>, _) = unbounded();
    let tell = move || drop(sender.send(thread::current().name().unwrap_or_default().to_owned()));
    guard.on_lost(tell).unwrap();
    receiver
}

/// Called once, on that thread, and then gone.
#[track_caller]
fn called_once(calls: &Receiver<String>, thread: &str) {
    called_once_on_one(calls, &[thread]);
}

#[track_caller]
fn called_once_on_one(calls: &Receiver<String>, threads: &[&str]) {
    let thread = calls.recv_timeout(SOON).unwrap();
    assert!(threads.contains(&&*thread), "{thread}, not {threads:?}");
    assert_eq!(calls.recv_timeout(SOON).ok(), None, "it is called once");
    assert_eq!(
        calls.try_recv(),
        Err(TryRecvError::Disconnected),
        "and dropped"
    );
}

const WATCHDOG: &str = "quorumlock watchdog";

#[test]
fn every_callback_is_called_once_at_the_end_with_and_without_a_watchdog() {
    let (_servers, client) = deployment(3);
    for mutex in [
        client.mutex(KEY),
        client
            .mutex("watched")
            .watchdog(Watchdog::new().max_extensions(0)),
    ] {
        let guard = wait_for(&mutex.ttl(SHORT));
        let first = calls(&guard);
        let second = calls(&guard);
        called_once(&first, WATCHDOG);
        called_once(&second, WATCHDOG);
        let late = calls(&guard);
        called_once(&late, thread::current().name().unwrap());
    }
}

#[test]
fn a_key_that_is_gone_calls_from_the_thread_that_finds_out() {
    let (servers, client) = deployment(3);
    let forget = |key| ask_each(&servers, &["DEL", key]);
    let guard = take(&long_lock(&client, KEY));
    let by_hand = calls(&guard);
    forget(KEY);
    assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Lost);
    called_once(&by_hand, thread::current().name().unwrap());

    let watched = take(
        &client
            .mutex("watched")
            .ttl(Duration::from_secs(1))
            .watchdog(Watchdog::new()),
    );
    let by_watchdog = calls(&watched);
    forget("watched");
    called_once(&by_watchdog, WATCHDOG);
}

#[test]
fn a_guard_that_is_released_first_is_not_called() {
    let (servers, client) = deployment(3);
    let mutex = long_lock(&client, KEY).watchdog(Watchdog::new());
    let unlock = |guard: MutexGuard| unlock(guard);
    let ends: [fn(MutexGuard); 3] = [unlock, drop, |guard| drop(guard.detach().unwrap())];
    for end in ends {
        let guard = take(&mutex);
        let calls = calls(&guard);
        end(guard);
        assert!(calls.recv_timeout(SOON).is_err());
        assert_eq!(
            calls.try_recv(),
            Err(TryRecvError::Disconnected),
            "dropped, not called"
        );
        ask_each(&servers, &["DEL", KEY]);
    }
}

#[test]
fn a_callback_may_use_the_client_and_panic() {
    let (servers, client) = deployment(3);
    // What the callback takes is watched: for that it needs what the watchdog's thread has when it
    // finds the loss.
    let guard = wait_for(&client.mutex(KEY).ttl(SHORT));
    let other = long_lock(&client, "other").watchdog(Watchdog::new());
    guard
        .on_lost(|| panic!("a callback panics, and nothing comes of it"))
        .unwrap();
    guard
        .on_lost(move || assert_eq!(take(&other).unlock().unwrap(), ReleaseOutcome::Released))
        .unwrap();
    called_once(&calls(&guard), WATCHDOG);
    // The thread goes on.
    called_once(
        &calls(&wait_for(&client.mutex("next").ttl(SHORT))),
        WATCHDOG,
    );
    gone_for_good(&servers, "other");
}

/// What a callback has captured, and panics.
struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

#[test]
fn callbacks_that_panic_when_they_are_dropped_uncalled_end_no_thread() {
    let (servers, client) = deployment(3);
    let watchdog = Watchdog::new().period(SHORT / 10);
    let mutex = client.mutex(KEY).ttl(SHORT * 10).watchdog(watchdog.clone());
    let guards = [
        take(&mutex).erase(),
        take(&client.read_mutex(KEY).ttl(SHORT * 10)).erase(),
    ];
    for guard in guards.iter().chain(&guards) {
        let captured = PanicsWhenDropped;
        guard.on_lost(move || drop(captured)).unwrap();
    }
    pause(&servers);
    // An extension is under way, and its thread has the first lock last.
    thread::sleep(SHORT / 3);
    drop(guards);
    resume(&servers);
    let other = take(&client.mutex("other").ttl(SHORT).watchdog(watchdog));
    thread::sleep(SHORT * 2);
    assert!(other.ensure(Duration::ZERO).is_ok());
}
