//! How many events one call delivers, and what becomes of those that it leaves.

use super::{KEY, Recorder, observed, words};
use crate::clients::{SOON, long_lock, take};
use crate::support::process::eventually;
use crate::support::server::Server;
use quorumlock::event::Event;
use quorumlock::{Redlock, Watchdog};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Most events that one call delivers for others, and two of its own.
const MOST: usize = 32 + 2;

thread_local! {
    /// How many events this thread has delivered.
    static DELIVERED: Cell<usize> = const { Cell::new(0) };
}

/// What a call returns, and how many events it has delivered.
fn counted<R>(call: impl FnOnce() -> R) -> (R, usize) {
    let before = DELIVERED.get();
    let result = call();
    (result, DELIVERED.get() - before)
}

/// Many threads drop guards, and each event takes a millisecond: more happens than one thread can
/// deliver. No call delivers more than its share, watched locks stay held, and when all calls have
/// returned, the rest is delivered all the same.
#[test]
fn a_slow_observer_captures_no_thread() {
    const THREADS: usize = 6;
    const WATCHED: usize = 3;
    let servers = Server::several(3).unwrap();
    let delivered = Arc::new(AtomicUsize::new(0));
    let recorder = Recorder::acting({
        let delivered = Arc::clone(&delivered);
        move |event| {
            DELIVERED.set(DELIVERED.get() + 1);
            thread::sleep(Duration::from_millis(1));
            let words = words(event);
            let is_end =
                words.starts_with("released busy") || words.starts_with("release failed busy");
            delivered.fetch_add(usize::from(is_end), Ordering::Relaxed);
        }
    });
    let client = observed(&servers, &recorder);
    let watched = (0..WATCHED).map(|index| {
        let watchdog = Watchdog::new().period(Duration::from_millis(400));
        take(
            &client
                .mutex(format!("watched {index}"))
                .ttl(Duration::from_secs(2))
                .watchdog(watchdog),
        )
    });
    let watched: Vec<_> = watched.collect();
    let most = Mutex::new((0, ""));
    let dropped = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let note = |delivered: usize, call: &'static str| {
        let mut most = most.lock().unwrap();
        *most = (*most).max((delivered, call));
    };
    thread::scope(|scope| {
        for index in 0..THREADS {
            let client = &client;
            let note = &note;
            let dropped = &dropped;
            let is_over = &is_over;
            scope.spawn(move || {
                let mutex = long_lock(client, &format!("busy {index}"));
                while !is_over.load(Ordering::Relaxed) {
                    let (guard, delivered) = counted(|| mutex.try_lock());
                    note(delivered, "try_lock");
                    // A node that is slow on a busy machine is no matter.
                    let Ok(Some(guard)) = guard else { continue };
                    let ((), delivered) = counted(|| drop(guard));
                    note(delivered, "drop");
                    dropped.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // Longer than the watched locks last that are not extended.
        thread::sleep(Duration::from_millis(2500));
        is_over.store(true, Ordering::Relaxed);
    });
    let (most, call) = *most.lock().unwrap();
    assert!(most <= MOST, "one {call} delivered {most} events");
    assert!(
        watched.iter().all(|guard| !guard.remaining().is_zero()),
        "a watched lock was lost"
    );
    assert_eq!(recorder.count("lost watched"), 0);
    assert!(
        recorder.count("extended watched") > WATCHED,
        "nothing was extended"
    );

    // No call comes any more. Each release has one outcome: it was confirmed, or it was not.
    let dropped = dropped.load(Ordering::Relaxed);
    let delivered = || delivered.load(Ordering::Relaxed);
    assert!(
        eventually(SOON * 3, || delivered() == dropped),
        "{} of {dropped} releases were reported",
        delivered()
    );
}

/// How many guards of one name are dropped for a backlog: more than two calls deliver, one that
/// takes a lock and one that drops it.
const DROPPED: usize = 2 * MOST + 20;

/// A client that knows the outcomes of releases that it has not delivered; and how many guards were
/// dropped in all. Of one of those the outcome may not be known.
fn with_a_backlog(
    servers: &[Server],
    recorder: &Arc<Recorder>,
    is_stopped: &AtomicBool,
) -> (Redlock, usize) {
    let firsts = AtomicUsize::new(1);
    let client = observed(servers, recorder);
    is_stopped.store(true, Ordering::SeqCst);
    thread::scope(|scope| {
        // The first thread that delivers is stopped in the middle of it, and the others return at
        // once.
        drop(take(&long_lock(&client, "first")));
        scope.spawn(|| {
            while recorder.count("released first") == 0 {
                drop(take(&long_lock(&client, "first")));
                firsts.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert!(eventually(SOON, || recorder.count("released first") == 1));
        for _ in 0..DROPPED {
            drop(take(&long_lock(&client, KEY)));
        }
        // With an answer to this one, all of them are answered.
        let _ = take(&long_lock(&client, KEY)).unlock().unwrap();
        is_stopped.store(false, Ordering::SeqCst);
    });
    let delivered = recorder.count("released k Released dropped");
    assert!(delivered < DROPPED, "one call delivered all");
    (client, DROPPED + firsts.into_inner())
}

#[test]
fn the_end_of_a_client_delivers_what_is_left() {
    let servers = Server::several(1).unwrap();
    let is_stopped = Arc::new(AtomicBool::new(false));
    let recorder = Recorder::acting({
        let is_stopped = Arc::clone(&is_stopped);
        move |event| {
            while words(event).starts_with("released first") && is_stopped.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let (client, _) = with_a_backlog(&servers, &recorder, &is_stopped);
    let delivered = recorder.count("released k Released dropped");
    drop(client);
    assert_eq!(
        recorder.count("released k Released dropped"),
        DROPPED,
        "{delivered} before the end"
    );
    assert!(
        !recorder
            .events()
            .iter()
            .any(|event| matches!(event, Event::EventsDropped { .. }))
    );
}

/// There is one node timeout for the remaining events when a client ends. What does not get its
/// turn is counted.
#[test]
fn the_end_of_a_client_does_not_wait_for_ever_for_its_observer() {
    let servers = Server::several(1).unwrap();
    let is_stopped = Arc::new(AtomicBool::new(false));
    let is_slow = Arc::new(AtomicBool::new(false));
    let recorder = Recorder::acting({
        let is_stopped = Arc::clone(&is_stopped);
        let is_slow = Arc::clone(&is_slow);
        move |event| {
            while words(event).starts_with("released first") && is_stopped.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(1));
            }
            if is_slow.load(Ordering::SeqCst) {
                // The node timeout is a second.
                thread::sleep(Duration::from_millis(600));
            }
        }
    });
    let (client, all) = with_a_backlog(&servers, &recorder, &is_stopped);
    let is_dropped = |event: &&Event| {
        matches!(
            event,
            Event::Released {
                is_dropped: true,
                ..
            }
        )
    };
    let delivered = || recorder.events().iter().filter(is_dropped).count();
    let before = delivered();
    is_slow.store(true, Ordering::SeqCst);
    drop(client);
    let after = delivered();
    assert!(
        (1..=2).contains(&(after - before)),
        "{before} events were delivered before, and {after} after"
    );
    let events = recorder.events();
    let Some(Event::EventsDropped { count, .. }) = events.last() else {
        panic!("{:?}", events.last())
    };
    let counted = after + usize::try_from(*count).unwrap();
    assert!(
        counted == all || counted + 1 == all,
        "{after} delivered, {count} dropped, {all} in all"
    );
}
