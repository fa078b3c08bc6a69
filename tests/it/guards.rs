//! The end of a lock: released, dropped, expired, lost, in whatever thread and whatever state.

use crate::prelude::*;
use std::panic::resume_unwind;

const SHORT: Duration = Duration::from_millis(300);

#[test]
fn a_guard_that_expires_lets_the_next_one_in() {
    let (servers, [mine, theirs]) = programs(3);
    for next in [&mine, &theirs] {
        let start = Instant::now();
        let expired = wait_for(&mine.mutex("k").ttl(SHORT));
        assert!(expired.remaining() <= SHORT);
        let guard = wait_for(&long_lock(next, "k"));
        // The servers' clocks count whole milliseconds, and may round down.
        let waited = start.elapsed();
        assert!(
            waited >= SHORT - Duration::from_millis(2) && waited < SHORT + SOON / 10,
            "{waited:?}"
        );
        assert_eq!(expired.remaining(), Duration::ZERO);

        // On at least two: a third whose clock was behind may have refused, and may have the old
        // key.
        let values: Vec<_> = servers.each(|server| value(server, "k"));
        let theirs = values
            .iter()
            .find(|one| values.iter().filter(|other| other == one).count() >= 2);
        let theirs = theirs
            .cloned()
            .flatten()
            .expect("a majority has the successor's key");
        assert_eq!(expired.unlock().unwrap(), ReleaseOutcome::Expired);
        for (server, _) in servers
            .iter()
            .zip(values)
            .filter(|(_, value)| value.as_ref() == Some(&theirs))
        {
            assert_eq!(
                value(server, "k").as_ref(),
                Some(&theirs),
                "the successor's key is touched"
            );
        }
        unlock(guard);
        gone_for_good(&servers, "k");
    }
}

#[test]
fn a_release_that_no_quorum_confirms_is_an_error_and_happens_later() {
    let (servers, client) = deployment(3);
    let guard = take(&long_lock(&client, "k"));
    everywhere(&servers, "k");
    pause(&servers[..2]);
    let error = guard.unlock().unwrap_err();
    assert_eq!(
        (error.kind(), error.causes().len()),
        (ErrorKind::Unavailable, 2),
        "{error}"
    );
    resume(&servers[..2]);
    gone_for_good(&servers, "k");
}

#[test]
fn a_dropped_guard_is_released_without_waiting() {
    let (servers, client) = deployment(3);
    let hold_and_hang = || {
        resume(&servers);
        assert_soon!(can_take(&client.mutex("before")));
        let guard = long_lock(&client, "k").lock().unwrap();
        everywhere(&servers, "k");
        pause(&servers);
        guard
    };
    promptly_from(SLACK, hold_and_hang, drop);
    resume(&servers);
    gone_for_good(&servers, "k");
}

#[test]
fn a_panic_releases() {
    let (servers, client) = deployment(3);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _guard = take(&long_lock(&client, "k"));
        // Not panic!, which would only add a message to the test's output.
        resume_unwind(Box::new("in the critical section"));
    }));
    assert!(outcome.is_err());
    gone_for_good(&servers, "k");
    unlock(take(&long_lock(&client, "k")));
}

#[test]
fn the_time_left_runs_down_from_the_time_to_live_less_the_drift() {
    let server = Server::start().unwrap();
    let client: Redlock = builder([&server]).drift_factor(0.1).build().unwrap();
    let guard = take(&client.mutex("k").ttl(Duration::from_secs(1)));
    // A tenth and 2 ms.
    let most = Duration::from_millis(898);
    let mut last = guard.remaining();
    assert!(
        last <= most && last > most - Duration::from_millis(200),
        "{last:?}"
    );
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(3));
        let now = guard.remaining();
        assert!(
            now + Duration::from_millis(3) <= last,
            "{now:?} after {last:?}"
        );
        last = now;
    }
}
