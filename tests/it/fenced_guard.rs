//! Fenced mutexes and their guards: each way to lock returns a number, and nothing of a plain lock
//! is missing. And what a guard ensures.

use crate::prelude::*;

const KEY: &str = "quorumlock-fence:k";

#[test]
fn a_fenced_lock_can_be_held_as_a_plain_one_and_keeps_its_number() {
    let (_servers, client) = deployment(3);
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
    let erased = fenced.clone().erase();
    let of_plain = plain.detach().unwrap();
    fails(erased.attach(of_plain), ErrorKind::Config);
    let guard: MutexGuard<Any> = erased.attach(lease).unwrap();
    assert_eq!(guard.fence(), number);
    let wait = Wait::unlimited().cancelled_by(&cancelled());
    let error = format!("{:?}", fenced.lock_with(&wait).unwrap_err());
    assert!(error.starts_with("Cancelled"), "{error}");
    let shown = format!("{fenced:?}");
    assert!(shown.starts_with("Mutex { name: \"k\""), "{shown}");
}

fn cancelled() -> CancelHandle {
    let cancel = CancelHandle::new();
    cancel.cancel();
    cancel
}

#[test]
fn a_guard_ensures_what_is_left_and_nothing_once_its_loss_was_reported() {
    let (servers, client) = deployment(3);
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
    extend(&guard, Duration::from_secs(20));
    guard.ensure(Duration::from_secs(11)).unwrap();
    // Decided by the answer to an extension, when there is time left.
    ask_each(&servers, &["DEL", "k"]);
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
    fails(guard.ensure(Duration::ZERO), ErrorKind::LeaseLost);
}
