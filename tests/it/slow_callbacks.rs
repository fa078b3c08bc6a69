//! Observers and callbacks that take their time: a guard that is returned is valid, and no call
//! that only looks waits.

use crate::prelude::*;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

const KEY: &str = "slow";
const TTL: Duration = Duration::from_millis(300);

/// Takes longer than a lease lasts over each event of this kind, while it is on.
struct Slow {
    is_slow: fn(&Event) -> bool,
    is_on: AtomicBool,
    lost: AtomicU32,
    gave_up: AtomicU32,
}

impl Slow {
    fn over(is_slow: fn(&Event) -> bool) -> Arc<Slow> {
        Arc::new(Slow {
            is_slow,
            is_on: true.into(),
            lost: 0.into(),
            gave_up: 0.into(),
        })
    }

    fn event(&self, event: &Event) {
        match event {
            Event::Lost { .. } => _ = self.lost.fetch_add(1, Ordering::Relaxed),
            Event::GaveUp { .. } => _ = self.gave_up.fetch_add(1, Ordering::Relaxed),
            _ => {}
        }
        if (self.is_slow)(event) && self.is_on.load(Ordering::Relaxed) {
            thread::sleep(TTL * 2);
        }
    }
}

#[test]
fn a_guard_that_is_returned_is_valid_however_slow_an_observer_is() {
    let servers = Server::several(3).unwrap();
    let slow = Slow::over(|event| matches!(event, Event::Acquired { .. }));
    let client = client_with(&servers, |builder| {
        builder.observer(calling(&slow, Slow::event))
    });
    let mutex = client.mutex(KEY).ttl(TTL);
    type Call = fn(&Mutex) -> quorumlock::Result<Option<Duration>>;
    let calls: [Call; 3] = [
        |mutex| Ok(mutex.try_lock()?.map(|guard| guard.remaining())),
        |mutex| mutex.lock().map(|guard| Some(guard.remaining())),
        |mutex| {
            Ok(mutex
                .clone()
                .reentrant()
                .lock_timeout(SOON)?
                .map(|guard| guard.remaining()))
        },
    ];
    for (count, call) in (1..).zip(calls) {
        let error = call(&mutex).expect_err("the lease has ended");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        shows(&error, "its lease ended before the call returned");
        // The call has one end in the events, and the loss of the lock is another.
        let losses = || slow.lost.load(Ordering::Relaxed);
        assert_soon!(losses() == count);
        assert_eq!(slow.gave_up.load(Ordering::Relaxed), 0);
    }
    let permit = client.semaphore(KEY, 2).ttl(TTL).try_lock();
    fails(permit, ErrorKind::Unavailable);
    gone_for_good(&servers, KEY);
    gone_for_good(&servers, "slow#0");
    slow.is_on.store(false, Ordering::Relaxed);
    assert!(take(&mutex).remaining() > Duration::ZERO);
}

#[test]
fn a_guard_that_took_an_extension_is_valid_too() {
    let servers = Server::several(3).unwrap();
    let slow = Slow::over(|event| matches!(event, Event::Extended { .. }));
    let client = client_with(&servers, |builder| {
        builder.observer(calling(&slow, Slow::event))
    });
    let written = client.write_mutex(KEY).ttl(TTL).lock().unwrap();
    fails(written.downgrade(), ErrorKind::LeaseLost);
    let reentrant = client.mutex(KEY).ttl(TTL).reentrant();
    let outer = reentrant.lock().unwrap();
    thread::sleep(TTL / 2);
    fails(reentrant.lock(), ErrorKind::LeaseLost);
    assert!(outer.remaining().is_zero());
}

/// Stops in each extension until the test goes on.
struct Stopping {
    begun: SyncSender<()>,
    go_on: std::sync::Mutex<Receiver<()>>,
    is_inside: AtomicBool,
}

impl Stopping {
    fn new() -> (Arc<Stopping>, Receiver<()>, SyncSender<()>) {
        let (begun, has_begun) = sync_channel(1);
        let (go_on, is_to_go_on) = sync_channel(1);
        let stopping = Stopping {
            begun,
            go_on: is_to_go_on.into(),
            is_inside: false.into(),
        };
        (Arc::new(stopping), has_begun, go_on)
    }

    fn stop(&self) {
        self.is_inside.store(true, Ordering::SeqCst);
        self.begun.send(()).unwrap();
        // A test that waits for this callback fails.
        _ = self.go_on.lock().unwrap().recv_timeout(SOON);
        self.is_inside.store(false, Ordering::SeqCst);
    }

    fn event(&self, event: &Event) {
        if matches!(event, Event::Extended { .. }) {
            self.stop();
        }
    }
}

#[test]
fn what_looks_at_a_shared_lock_does_not_wait_for_an_extension() {
    let servers = Server::several(3).unwrap();
    let (stopping, has_begun, go_on) = Stopping::new();
    let client = client_with(&servers, |builder| {
        builder.observer(calling(&stopping, Stopping::event))
    });
    let readers = Sides::of(&client, KEY).ttl(SOON);
    let (one, other): (RwReadGuard, RwReadGuard) =
        (readers.read.lock().unwrap(), readers.read.lock().unwrap());
    let owner = Owner::new();
    let reentrant = long_lock(&client, "reentrant").reentrant();
    let level = || {
        reentrant
            .lock_as(&owner, &Wait::unlimited())
            .unwrap()
            .unwrap()
    };
    let outer = level();
    let inner = level();
    let extensions: [Box<dyn Fn() -> ExtendOutcome + Send>; 2] = [
        Box::new(move || one.extend(SOON * 2).unwrap()),
        Box::new(move || outer.extend(SOON * 10).unwrap()),
    ];
    for extension in extensions {
        let extending = thread::spawn(extension);
        has_begun.recv_timeout(SOON).unwrap();
        assert!(other.remaining() > SOON / 2 && other.ensure(SOON / 2).is_ok());
        assert!(inner.remaining() > SOON / 2 && inner.ensure(SOON / 2).is_ok());
        assert!(format!("{other:?} {inner:?}").contains("remaining"));
        assert!(
            stopping.is_inside.load(Ordering::SeqCst),
            "it has waited for the callback"
        );
        go_on.send(()).unwrap();
        assert_eq!(extending.join().unwrap(), ExtendOutcome::Extended);
    }
}

#[test]
fn what_looks_at_a_shared_lock_does_not_wait_for_nodes() {
    let servers = Server::several(3).unwrap();
    let client = builder(&servers).node_timeout(SOON / 2).build().unwrap();
    let readers = Sides::of(&client, KEY).ttl(SOON * 2);
    let one = readers.read.lock().unwrap();
    let other = readers.read.lock().unwrap();
    pause(&servers);
    let extending = thread::spawn(move || (one.extend(SOON * 6), one));
    let mut looks = 0;
    while !extending.is_finished() {
        let begun = Instant::now();
        assert!(other.remaining() > SOON && other.ensure(SOON).is_ok());
        // Those that begin within the extension and end behind it would have waited for it.
        looks += u32::from(begun.elapsed() < SOON / 10 && !extending.is_finished());
        thread::sleep(SOON / 100);
    }
    assert!(looks > 10, "{looks} looks while the nodes hang");
    resume(&servers);
    assert!(matches!(
        extending.join().unwrap().0.unwrap(),
        ExtendOutcome::Failed(_)
    ));
}

/// Stops when it is dropped.
struct StopsWhenDropped(Arc<Stopping>);

impl Drop for StopsWhenDropped {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[test]
fn the_end_of_a_client_waits_for_the_drop_of_a_callback_for_a_limited_time() {
    let servers = Server::several(3).unwrap();
    let (stopping, has_begun, go_on) = Stopping::new();
    let client = client(&servers);
    let watchdog = Watchdog::new().period(TTL / 10);
    let guard = take(&client.mutex(KEY).ttl(SOON).watchdog(watchdog));
    let captured = StopsWhenDropped(Arc::clone(&stopping));
    guard.on_lost(move || drop(captured)).unwrap();
    pause(&servers);
    // An extension is under way, and its thread has the lock last.
    thread::sleep(TTL / 2);
    drop(guard);
    resume(&servers);
    has_begun.recv_timeout(SOON).unwrap();
    drop(client);
    assert!(
        stopping.is_inside.load(Ordering::SeqCst),
        "it has waited for the drop"
    );
    go_on.send(()).unwrap();
    assert_soon!(Arc::strong_count(&stopping) == 1, "the thread has ended");
}

#[test]
fn the_end_of_a_client_waits_for_a_callback_for_a_limited_time() {
    let servers = Server::several(3).unwrap();
    let (stopping, has_begun, go_on) = Stopping::new();
    let client = client(&servers);
    let guard = take(&client.mutex(KEY).ttl(TTL));
    let other = take(&long_lock(&client, "other"));
    let stopped = Arc::clone(&stopping);
    guard.on_lost(move || stopped.stop()).unwrap();
    has_begun.recv_timeout(SOON).unwrap();
    drop(guard);
    drop(other);
    drop(client);
    assert!(
        stopping.is_inside.load(Ordering::SeqCst),
        "it has waited for the callback"
    );
    // Nothing else is left to the thread that is in the callback.
    gone_for_good(&servers, "other");
    assert!(stopping.is_inside.load(Ordering::SeqCst));
    go_on.send(()).unwrap();
    assert_soon!(Arc::strong_count(&stopping) == 1, "the thread has ended");
}

/// Another thread that shares the lock may be in a callback for as long as it likes.
#[test]
fn a_call_to_read_does_not_wait_for_a_callback() {
    let servers = Server::several(3).unwrap();
    let (stopping, has_begun, go_on) = Stopping::new();
    let client = client_with(&servers, |builder| {
        builder
            .node_timeout(TTL)
            .observer(calling(&stopping, Stopping::event))
    });
    let read = client.read_mutex(KEY).ttl(SOON * 2);
    type Call = fn(&Mutex<quorumlock::kind::Read>) -> quorumlock::Result<bool>;
    let calls: [Call; 5] = [
        |read| Ok(read.try_lock()?.is_some()),
        |read| Ok(read.lock_timeout(Duration::ZERO)?.is_some()),
        |read| {
            let wait = Wait::deadline(Instant::now());
            Ok(read.lock_with(&wait)?.is_some())
        },
        |read| Ok(read.lock_timeout(SOON)?.is_some()),
        |read| read.lock().map(|_| true),
    ];
    for call in calls {
        let guard = take(&read);
        let extending = thread::spawn(move || (guard.extend(SOON * 6), guard));
        has_begun.recv_timeout(SOON).unwrap();
        // Longer than a lease is shared without asking the nodes.
        thread::sleep(Duration::from_millis(30));
        let begun = Instant::now();
        assert!(call(&read).unwrap());
        // An attempt may last for two node timeouts, and so may the wait for the other thread.
        assert!(begun.elapsed() < TTL * 10, "{:?}", begun.elapsed());
        assert!(
            stopping.is_inside.load(Ordering::SeqCst),
            "it has waited for the callback"
        );
        go_on.send(()).unwrap();
        let (outcome, _guard) = extending.join().unwrap();
        assert_eq!(outcome.unwrap(), ExtendOutcome::Extended);
    }
}

/// The nodes have answered the thread in front, which has the lock.
#[test]
fn a_thread_behind_one_that_is_in_a_callback_waits_for_it() {
    let servers = Server::several(3).unwrap();
    let slow = Slow::over(|event| matches!(event, Event::Acquired { .. }));
    let client = client_with(&servers, |builder| {
        builder
            .node_timeout(TTL / 6)
            .unavailable_after(TTL / 3)
            .observer(calling(&slow, Slow::event))
    });
    let read = client.read_mutex(KEY).ttl(SOON);
    client.connect(SOON).unwrap();
    thread::scope(|scope| {
        let front = scope.spawn(|| wait_for(&read));
        thread::sleep(TTL / 10);
        assert!(read.lock().unwrap().remaining() > Duration::ZERO);
        drop(front.join().unwrap());
    });
}
