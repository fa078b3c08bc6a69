//! Waits that another thread ends: at once, wherever they are, and without leaving a key.

use crate::clients::{
    NODE_TIMEOUT, SLACK, SOON, TRIES, calls, client, gone_for_good, long_lock, short_timeout_client_of, take, value,
};
use crate::support::process::eventually;
use crate::support::server::Server;
use quorumlock::{CancelHandle, ErrorKind, Mutex, ReleaseOutcome, Wait};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for a thread to be in the middle of its wait.
const MOMENT: Duration = Duration::from_millis(100);

/// Waits in another thread, ends the wait, and returns the time until the call returned.
#[track_caller]
fn time_to_cancel(mutex: &Mutex, wait: &Wait, cancel: impl FnOnce()) -> Duration {
    thread::scope(|scope| {
        let waiting = scope.spawn(|| (mutex.lock_with(wait).unwrap_err(), Instant::now()));
        thread::sleep(MOMENT);
        assert!(!waiting.is_finished());
        let cancelled_at = Instant::now();
        cancel();
        let (error, returned_at) = waiting.join().unwrap();
        assert_eq!((error.kind(), error.causes()), (ErrorKind::Cancelled, &[][..]), "{error}");
        assert!(returned_at >= cancelled_at);
        returned_at - cancelled_at
    })
}

/// By every means there is; one of several tries is in time, as in [`crate::clients::promptly`].
#[track_caller]
fn is_cancelled_within(limit: Duration, mutex: &Mutex) {
    let by_handle = || {
        let handle = CancelHandle::new();
        let wait = Wait::forever().cancelled_by(&handle);
        time_to_cancel(mutex, &wait, || handle.cancel())
    };
    let with_limit = || {
        let handle = CancelHandle::new();
        let wait = Wait::timeout(SOON).cancelled_by(&handle);
        time_to_cancel(mutex, &wait, || handle.cancel())
    };
    let by_message = || {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let wait = Wait::deadline(Instant::now() + SOON).cancelled_by_channel(receiver);
        time_to_cancel(mutex, &wait, || sender.send(()).unwrap())
    };
    let by_end_of_channel = || {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let wait = Wait::forever().cancelled_by_channel(receiver);
        time_to_cancel(mutex, &wait, || drop(sender))
    };
    let means: [(&str, &dyn Fn() -> Duration); 4] = [
        ("a handle", &by_handle),
        ("a handle, with a limit", &with_limit),
        ("a message", &by_message),
        ("the end of a channel", &by_end_of_channel),
    ];
    for (name, cancel) in means {
        let best = (0..TRIES).map(|_| cancel()).find(|&time| time <= limit);
        assert!(best.is_some(), "not within {limit:?} by {name}");
    }
}

#[test]
fn while_another_client_holds_the_lock() {
    let servers = Server::several(3).unwrap();
    let (mine, theirs) = (client(&servers), client(&servers));
    let held = take(&long_lock(&theirs, "k"));
    is_cancelled_within(SLACK, &long_lock(&mine, "k"));
    assert_eq!(held.unlock().unwrap(), ReleaseOutcome::Released);
    gone_for_good(&servers, "k");
}

#[test]
fn while_a_guard_of_the_same_client_holds_the_lock() {
    let servers = Server::several(3).unwrap();
    let mutex = long_lock(&client(&servers), "k");
    let held = take(&mutex);
    is_cancelled_within(SLACK, &mutex);
    assert_eq!(held.unlock().unwrap(), ReleaseOutcome::Released);
    gone_for_good(&servers, "k");
}

#[test]
fn while_another_thread_is_first_in_line() {
    let servers = Server::several(3).unwrap();
    let (mine, theirs) = (client(&servers), client(&servers));
    let held = take(&long_lock(&theirs, "k"));
    let mutex = long_lock(&mine, "k");
    thread::scope(|scope| {
        let first = scope.spawn(|| mutex.lock());
        thread::sleep(MOMENT);
        is_cancelled_within(SLACK, &mutex);
        // The one in front has not noticed.
        assert!(!first.is_finished());
        assert_eq!(held.unlock().unwrap(), ReleaseOutcome::Released);
        assert_eq!(first.join().unwrap().unwrap().unlock().unwrap(), ReleaseOutcome::Released);
    });
    gone_for_good(&servers, "k");
}

#[test]
fn the_first_in_line_makes_way_for_the_second() {
    let servers = Server::several(3).unwrap();
    let (mine, theirs) = (client(&servers), client(&servers));
    let held = take(&long_lock(&theirs, "k"));
    let mutex = long_lock(&mine, "k");
    let handle = CancelHandle::new();
    thread::scope(|scope| {
        let first = scope.spawn(|| mutex.lock_with(&Wait::forever().cancelled_by(&handle)));
        thread::sleep(MOMENT);
        let second = scope.spawn(|| mutex.lock());
        thread::sleep(MOMENT);
        handle.cancel();
        assert_eq!(first.join().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(held.unlock().unwrap(), ReleaseOutcome::Released);
        assert_eq!(second.join().unwrap().unwrap().unlock().unwrap(), ReleaseOutcome::Released);
    });
    gone_for_good(&servers, "k");
}

#[test]
fn while_all_nodes_hang() {
    let servers = Server::several(3).unwrap();
    let mutex = long_lock(&short_timeout_client_of(servers.iter().map(Server::url)), "k");
    assert!(eventually(SOON, || mutex.try_lock().is_ok_and(|guard| guard.is_some())));
    for server in &servers {
        server.pause().unwrap();
    }
    is_cancelled_within(NODE_TIMEOUT + SLACK, &mutex);
    for server in &servers {
        server.resume().unwrap();
    }
    gone_for_good(&servers, "k");
}

#[test]
fn before_it_began() {
    let server = Server::start().unwrap();
    let mutex = long_lock(&client([&server]), "k");
    assert_eq!(take(&mutex).unlock().unwrap(), ReleaseOutcome::Released);
    let before = calls(&server, "set");
    let handle = CancelHandle::new();
    handle.cancel();
    let error = mutex.lock_with(&Wait::forever().cancelled_by(&handle)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!((calls(&server, "set"), value(&server, "k")), (before, None), "nothing was asked");
}

#[test]
fn a_handle_without_a_wait_cancels_nothing() {
    let server = Server::start().unwrap();
    let mutex = long_lock(&client([&server]), "k");
    let wait = Wait::forever().cancelled_by(&CancelHandle::new());
    for _ in 0..3 {
        assert_eq!(mutex.lock_with(&wait).unwrap().unwrap().unlock().unwrap(), ReleaseOutcome::Released);
    }
}
