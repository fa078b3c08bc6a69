//! Fenced mutexes and their guards: each way to lock returns a number, and nothing of a plain lock
//! is missing. And what a guard ensures.

use crate::clients::{SOON, client, long_lock, unlock};
use crate::support::process::eventually;
use crate::support::server::Server;
use crossbeam_channel::Receiver;
use quorumlock::kind::Any;
use quorumlock::{
    CancelHandle, ErrorKind, ExtendOutcome, FencedGuard, FencedMutex, FencingToken, Lease, Mutex,
    MutexGuard, ReleaseOutcome, Wait, Watchdog,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

const KEY: &str = "quorumlock-fence:k";

#[test]
fn every_way_to_lock_gives_a_greater_number() {
    let servers = Server::several(3).unwrap();
    let client = client(&servers);
    let mutex: FencedMutex = client.mutex("k").fenced().ttl(Duration::from_secs(30));
    assert_eq!((mutex.name(), mutex.clone().ttl(SOON).name()), ("k", "k"));
    let cancel = CancelHandle::new();
    let ways: [&dyn Fn() -> FencedGuard; 7] = [
        &|| mutex.lock().unwrap(),
        &|| mutex.try_lock().unwrap().unwrap(),
        &|| mutex.lock_timeout(SOON).unwrap().unwrap(),
        &|| {
            mutex
                .lock_with(&Wait::deadline(Instant::now() + SOON))
                .unwrap()
                .unwrap()
        },
        &|| mutex.lock_with(&Wait::unlimited()).unwrap().unwrap(),
        &|| {
            mutex
                .lock_with(&Wait::unlimited().cancelled_by(&cancel))
                .unwrap()
                .unwrap()
        },
        &|| {
            mutex
                .attach(mutex.lock().unwrap().detach().unwrap())
                .unwrap()
        },
    ];
    let mut last = FencingToken::try_from(0_u64).unwrap();
    for (way, lock) in ways.iter().enumerate() {
        let guard = lock();
        let fence = guard.fence();
        assert!(fence > last, "{way}");
        last = fence;
        // Another one is refused meanwhile, whichever way it asks.
        assert!(
            mutex.try_lock().unwrap().is_none()
                && mutex.lock_timeout(Duration::ZERO).unwrap().is_none()
        );
        assert!(
            mutex
                .lock_with(&Wait::deadline(Instant::now()))
                .unwrap()
                .is_none(),
            "{way}"
        );
        assert!(
            mutex
                .lock_with(&Wait::timeout(Duration::ZERO))
                .unwrap()
                .is_none(),
            "{way}"
        );
        assert_eq!(
            guard.extend(Duration::from_secs(40)).unwrap(),
            ExtendOutcome::Extended
        );
        assert!(
            guard.remaining() > Duration::from_secs(30) && guard.fence() == fence,
            "{way}"
        );
        unlock(guard);
    }
    let watched = mutex
        .clone()
        .ttl(Duration::from_millis(900))
        .watchdog(Watchdog::new())
        .lock()
        .unwrap();
    thread::sleep(Duration::from_millis(1200));
    watched.ensure(Duration::from_millis(1)).unwrap();
    unlock(watched);
}

#[test]
fn a_fenced_lock_can_be_held_as_a_plain_one_and_keeps_its_number() {
    let servers = Server::several(3).unwrap();
    let client = client(&servers);
    let fenced = long_lock(&client, "k").fenced();
    let mutexes: [Mutex<Any>; 2] = [long_lock(&client, "k").erase(), fenced.clone().erase()];
    let [plain, held] = mutexes.each_ref().map(|mutex| mutex.lock().unwrap());
    assert!(
        plain.fence().is_none() && held.fence().is_some(),
        "two different locks"
    );
    let number = held.fence();
    let lease: Lease<Any> = held.detach().unwrap();
    assert_eq!((lease.key(), lease.fence()), (KEY, number));
    assert_eq!(
        fenced
            .clone()
            .erase()
            .attach(plain.detach().unwrap())
            .unwrap_err()
            .kind(),
        ErrorKind::Config,
        "that of a plain lock"
    );
    let guard: MutexGuard<Any> = fenced.clone().erase().attach(lease).unwrap();
    assert_eq!(guard.fence(), number);
    assert!(
        format!(
            "{:?}",
            fenced
                .lock_with(&Wait::unlimited().cancelled_by(&cancelled()))
                .unwrap_err()
        )
        .starts_with("Cancelled")
    );
    let shown = format!("{fenced:?}");
    assert!(shown.starts_with("Mutex { name: \"k\""), "{shown}");
}

fn cancelled() -> CancelHandle {
    let cancel = CancelHandle::new();
    cancel.cancel();
    cancel
}

#[test]
fn the_loss_of_a_fenced_guard_is_reported() {
    let server = Server::start().unwrap();
    let client = client([&server]);
    let guard = client
        .mutex("k")
        .ttl(Duration::from_millis(150))
        .fenced()
        .lock()
        .unwrap();
    let told = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&told);
    guard
        .on_lost(move || flag.store(true, Ordering::SeqCst))
        .unwrap();
    let lost: Receiver<()> = guard.lost().unwrap();
    lost.recv_timeout(SOON).unwrap();
    assert!(eventually(SOON, || told.load(Ordering::SeqCst)));
    let number = guard.fence();
    assert_eq!(
        guard.ensure(Duration::ZERO).unwrap_err().kind(),
        ErrorKind::LeaseLost
    );
    assert_eq!(
        (guard.fence(), guard.unlock().unwrap()),
        (number, ReleaseOutcome::Expired)
    );
}

#[test]
fn a_guard_ensures_what_is_left_and_nothing_once_its_loss_was_reported() {
    let servers = Server::several(3).unwrap();
    let client = client(&servers);
    let guard = client
        .mutex("k")
        .ttl(Duration::from_secs(10))
        .lock()
        .unwrap();
    guard.ensure(Duration::ZERO).unwrap();
    guard.ensure(Duration::from_secs(8)).unwrap();
    let error = guard.ensure(Duration::from_secs(11)).unwrap_err();
    // The lock is held, and longer once it is extended.
    assert_eq!(
        (error.kind(), error.is_permanent()),
        (ErrorKind::LeaseTooShort, false)
    );
    assert!(
        error
            .to_string()
            .starts_with("the lock of \"k\" lasts for 9")
            && error.to_string().ends_with(" ms, and 11000 ms are needed"),
        "{error}"
    );
    assert!(guard.ensure(Duration::MAX).is_err());
    assert_eq!(
        guard.extend(Duration::from_secs(20)).unwrap(),
        ExtendOutcome::Extended
    );
    guard.ensure(Duration::from_secs(11)).unwrap();
    // Decided by the answer to an extension, when there is time left.
    servers
        .iter()
        .for_each(|server| drop(server.command(&["DEL", "k"]).unwrap()));
    assert_eq!(
        guard.extend(Duration::from_secs(20)).unwrap(),
        ExtendOutcome::Lost
    );
    let error = guard.ensure(Duration::ZERO).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::LeaseLost, "the lock of \"k\" is lost".to_owned())
    );

    // Reported before the end, by the margin. The channel brings it in the same moment.
    let watchdog = Watchdog::new()
        .max_extensions(0)
        .notify_before(Duration::from_millis(400));
    let guard = client
        .mutex("other")
        .ttl(Duration::from_secs(1))
        .watchdog(watchdog)
        .lock()
        .unwrap();
    let lost = guard.lost().unwrap();
    guard.ensure(Duration::ZERO).unwrap();
    lost.recv_timeout(SOON).unwrap();
    assert_eq!(
        guard.ensure(Duration::ZERO).unwrap_err().kind(),
        ErrorKind::LeaseLost
    );
}

#[test]
fn a_wait_without_a_limit_ends_with_a_guard_or_is_cancelled() {
    let server = Server::start().unwrap();
    let mutex = long_lock(&client([&server]), "k");
    let guard = mutex
        .lock_with(&Wait::unlimited().cancelled_by(&CancelHandle::new()))
        .unwrap();
    let (sender, results) = mpsc::channel();
    let handles = [CancelHandle::new(), CancelHandle::new()];
    thread::scope(|scope| {
        for (index, handle) in handles.iter().enumerate() {
            let sender = sender.clone();
            let mutex = &mutex;
            scope.spawn(move || {
                sender
                    .send((
                        index,
                        mutex.lock_with(&Wait::unlimited().cancelled_by(handle)),
                    ))
                    .unwrap()
            });
        }
        thread::sleep(Duration::from_millis(100));
        handles[1].cancel();
        let (index, result) = results.recv_timeout(SOON).unwrap();
        assert_eq!(
            (index, result.unwrap_err().kind()),
            (1, ErrorKind::Cancelled)
        );
        drop(guard);
        let (index, result) = results.recv_timeout(SOON).unwrap();
        assert_eq!((index, result.unwrap().unwrap().name()), (0, "k"));
    });
}
