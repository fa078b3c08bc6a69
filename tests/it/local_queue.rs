//! Threads of one process that want one lock: first come, first served, and only the first asks the
//! servers.

use crate::prelude::*;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::cell::Cell;

const THREADS: usize = 6;
/// Long enough for a thread that has announced that it will queue to have queued.
const ARRIVAL: Duration = Duration::from_millis(30);

type Lock = fn(&Mutex) -> MutexGuard;

/// Lets threads arrive one after the other while another thread holds the lock, and returns the
/// order in which they get it.
fn order_of_service(mutex: &Mutex, held: MutexGuard) -> Vec<usize> {
    let ways: [Lock; 2] = [
        |mutex| mutex.lock().unwrap(),
        |mutex| mutex.lock_timeout(crate::clients::SOON).unwrap().unwrap(),
    ];
    let (served, order) = mpsc::channel();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (arriving, arrived) = mpsc::channel();
            let served = served.clone();
            scope.spawn(move || {
                arriving.send(()).unwrap();
                let guard = ways[number % 2](mutex);
                served.send(number).unwrap();
                thread::sleep(Duration::from_millis(2));
                unlock(guard);
            });
            arrived.recv().unwrap();
            thread::sleep(ARRIVAL);
        }
        unlock(held);
    });
    drop(served);
    order.iter().collect()
}

#[test]
fn first_come_first_served_behind_a_guard_of_the_same_process_and_of_another_one() {
    let (servers, mine) = deployment(3);
    for (whose, holder) in [("mine", mine.clone()), ("another's", client(&servers))] {
        let held = take(&long_lock(&holder, "k"));
        let served = order_of_service(&long_lock(&mine, "k"), held);
        assert_eq!(served, (0..THREADS).collect::<Vec<_>>(), "{whose}");
        gone_for_good(&servers, "k");
    }
}

#[test]
fn a_waiter_behind_a_guard_of_the_same_process_asks_no_node() {
    let server = Server::start().unwrap();
    let mutex = long_lock(&client([&server]), "k");
    let held = take(&mutex);
    let before = calls(&server, "set");
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| unlock(mutex.lock().unwrap()));
        }
        thread::sleep(ARRIVAL * 4);
        assert_eq!(calls(&server, "set"), before);
        unlock(held);
    });
    // Behind the release on every connection, each one's first attempt wins.
    assert_eq!(calls(&server, "set"), before + THREADS as u64);
}

#[test]
fn a_waiter_behind_a_guard_that_is_extended_asks_no_node_either() {
    let server = Server::start().unwrap();
    let ttl = Duration::from_secs(1);
    let client = client([&server]);
    let watched = client.mutex("watched").ttl(ttl).watchdog(Watchdog::new());
    let by_hand = client.mutex("by hand").ttl(ttl);
    let first = take(&watched);
    let second = take(&by_hand);
    let before = calls(&server, "set");
    thread::scope(|scope| {
        for mutex in [&watched, &by_hand] {
            scope.spawn(|| unlock(mutex.lock().unwrap()));
        }
        thread::sleep(ARRIVAL);
        assert!(matches!(
            second.extend(LONG_TTL),
            Ok(ExtendOutcome::Extended)
        ));
        thread::sleep(2 * ttl);
        assert_eq!(calls(&server, "set"), before);
        for guard in [first, second] {
            unlock(guard);
        }
    });
    assert_eq!(calls(&server, "set"), before + 2);
}

#[test]
fn a_waiter_behind_a_guard_that_has_lost_its_lock_gets_it() {
    let server = Server::start().unwrap();
    let mutex = long_lock(&client([&server]), "k").watchdog(Watchdog::new().period(ARRIVAL));
    let lost = take(&mutex);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| mutex.lock_timeout(SOON).unwrap().is_some());
        server.command(&["DEL", "k"]).unwrap();
        assert!(
            waiting.join().unwrap(),
            "the lock that was lost is waited for"
        );
    });
    assert_eq!(lost.unlock().unwrap(), ReleaseOutcome::Expired);
}

#[test]
fn a_thread_in_the_queue_sleeps_though_nodes_may_be_unavailable_for_no_time_at_all() {
    let server = Server::start().unwrap();
    let waiting = client_with([&server], |builder| {
        builder.unavailable_after(Duration::ZERO)
    });
    let other = client([&server]);
    let _held = take(&long_lock(&other, "k"));
    let wait = || {
        assert!(is_held_for(
            &long_lock(&waiting, "k"),
            Duration::from_secs(1)
        ));
        let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
        usage.user_time().num_milliseconds() + usage.system_time().num_milliseconds()
    };
    let used = thread::scope(|scope| {
        let threads = [(); 3].map(|()| scope.spawn(wait));
        threads.map(|thread| thread.join().unwrap())
    });
    // A thread that does not sleep uses a processor all the time, or its share of one.
    assert!(
        used.iter().all(|&millis| millis < 60),
        "{used:?} ms of a processor in a second"
    );
}

/// A program may lock where a value of its thread is dropped, behind the values of the library.
#[test]
fn a_thread_that_ends_can_lock() {
    struct Last(Mutex);
    impl Drop for Last {
        fn drop(&mut self) {
            drop(self.0.lock().unwrap());
        }
    }
    thread_local! {
        static LAST: Cell<Option<Last>> = const { Cell::new(None) };
    }
    let node = EmbeddedNode::start().unwrap();
    let mutex = plain_client([node.url()]).mutex("ending");
    let thread = thread::spawn({
        let mutex = mutex.clone();
        move || {
            // What is made first is dropped last.
            LAST.set(Some(Last(mutex.clone())));
            drop(mutex.lock().unwrap());
        }
    });
    thread.join().unwrap();
    assert!(mutex.try_lock().unwrap().is_some(), "both were released");
}
