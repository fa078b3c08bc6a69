//! Waits that another thread ends: at once, wherever they are, and without leaving a key.

#![allow(clippy::print_stdout, reason = "the figures of a run")]

use crate::prelude::*;

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
        assert_eq!(
            (error.kind(), error.causes()),
            (ErrorKind::Cancelled, &[][..]),
            "{error}"
        );
        assert!(returned_at >= cancelled_at);
        returned_at - cancelled_at
    })
}

/// By every means there is; one of several tries is in time, as in [`crate::clients::promptly`].
#[track_caller]
fn is_cancelled_within(limit: Duration, mutex: &Mutex) {
    let by_handle = || {
        let handle = CancelHandle::new();
        let wait = Wait::unlimited().cancelled_by(&handle);
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
        let wait = Wait::unlimited().cancelled_by_channel(receiver);
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
    let (servers, [mine, theirs]) = programs(3);
    let held = take(&long_lock(&theirs, "k"));
    is_cancelled_within(SLACK, &long_lock(&mine, "k"));
    unlock(held);
    gone_for_good(&servers, "k");
}

/// A thread that waits for a channel beside its sockets looks at neither in vain.
#[test]
fn waits_that_a_channel_may_cancel_cost_no_more_than_those_with_a_handle() {
    const WAIT: Duration = Duration::from_secs(2);
    const WAITS: usize = 16;
    alone(|| {
        let (_servers, [mine, theirs]) = programs(3);
        let names: Vec<String> = (0..WAITS).map(|number| format!("k{number}")).collect();
        let _held: Vec<_> = names
            .iter()
            .map(|name| take(&long_lock(&theirs, name)))
            .collect();
        let cost = |wait: &Wait, helpers: usize| {
            thread::scope(|scope| {
                for name in &names {
                    let mutex = long_lock(&mine, name);
                    scope.spawn(move || assert!(mutex.lock_with(wait).unwrap().is_none()));
                }
                thread::sleep(MOMENT * 2);
                assert_soon!(
                    threads_named("quorumlock").len() == helpers,
                    "not {helpers}"
                );
                let before = processor_time();
                thread::sleep(WAIT / 2);
                processor_time() - before
            })
        };
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let by_handle = cost(&Wait::timeout(WAIT).cancelled_by(&CancelHandle::new()), 0);
        let by_channel = cost(&Wait::timeout(WAIT).cancelled_by_channel(receiver), 1);
        println!(
            "{WAITS} waits for {:?}: {by_handle:?} with a handle, {by_channel:?} with a channel",
            WAIT / 2
        );
        assert!(
            by_channel < by_handle * 2 + WAIT / 50,
            "{by_channel:?}, {by_handle:?} with a handle"
        );
        drop(sender);
        assert_soon!(threads_named("quorumlock").is_empty(), "a thread is left");
    });
}

/// One message ends one wait.
#[test]
fn a_channel_of_several_waits_ends_one_of_them_with_each_message() {
    let (servers, [mine, theirs]) = programs(3);
    let held = ["a", "b", "c"].map(|key| take(&long_lock(&theirs, key)));
    let (sender, receiver) = crossbeam_channel::bounded(1);
    thread::scope(|scope| {
        let waiting = ["a", "b", "c"].map(|key| {
            let wait = Wait::timeout(SOON * 10).cancelled_by_channel(receiver.clone());
            let mutex = long_lock(&mine, key);
            scope.spawn(move || mutex.lock_with(&wait).unwrap_err().kind())
        });
        let ended = || waiting.iter().filter(|thread| thread.is_finished()).count();
        for count in 1..=2 {
            thread::sleep(MOMENT);
            sender.send(()).unwrap();
            assert_soon!(ended() == count, "{count}");
        }
        thread::sleep(MOMENT);
        assert_eq!(ended(), 2);
        drop(sender);
        assert!(
            waiting
                .into_iter()
                .all(|thread| thread.join().unwrap() == ErrorKind::Cancelled)
        );
    });
    drop(held);
    all_gone_for_good(&servers, &["a", "b", "c"]);
}

#[test]
fn while_a_guard_of_the_same_client_holds_the_lock() {
    let servers = Server::several(3).unwrap();
    let mutex = long_lock(&client(&servers), "k");
    let held = take(&mutex);
    is_cancelled_within(SLACK, &mutex);
    unlock(held);
    gone_for_good(&servers, "k");
}

#[test]
fn while_all_nodes_hang() {
    let servers = Server::several(3).unwrap();
    let client = client_within(servers.iter().map(Server::url), NODE_TIMEOUT);
    let mutex = long_lock(&client, "k");
    assert_soon!(can_take(&mutex));
    pause(&servers);
    is_cancelled_within(NODE_TIMEOUT + SLACK, &mutex);
    resume(&servers);
    // They run what was sent to them while they hung, the undo last.
    client.flush_releases(SOON).unwrap();
    gone_for_good(&servers, "k");
}

#[test]
fn before_it_began() {
    let server = Server::start().unwrap();
    let mutex = long_lock(&client([&server]), "k");
    unlock(take(&mutex));
    let before = calls(&server, "set");
    let handle = CancelHandle::new();
    handle.cancel();
    let error = mutex
        .lock_with(&Wait::unlimited().cancelled_by(&handle))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(
        (calls(&server, "set"), value(&server, "k")),
        (before, None),
        "nothing was asked"
    );
}

#[test]
fn a_handle_without_a_wait_cancels_nothing() {
    let server = Server::start().unwrap();
    let mutex = long_lock(&client([&server]), "k");
    let wait = Wait::unlimited().cancelled_by(&CancelHandle::new());
    for _ in 0..3 {
        unlock(mutex.lock_with(&wait).unwrap().unwrap());
    }
}
