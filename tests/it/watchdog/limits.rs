//! Limits of how often and for how long a lock is extended.

use super::*;
use crossbeam_channel::RecvTimeoutError;

#[test]
fn a_limited_number_of_extensions_is_kept_and_then_the_lock_is_lost() {
    let (servers, client) = deployment(3);
    for at_most in [0, 1, 4] {
        let watchdog = Watchdog::new().max_extensions(at_most);
        let mutex = client.mutex(KEY).ttl(TTL).watchdog(watchdog);
        let before = extensions(&servers);
        let start = Instant::now();
        let guard = take(&mutex);
        let taken = runs_out(&guard).duration_since(start);
        // The last one begins at so many periods, and holds for a whole time to live less drift and
        // margin.
        let expected = TTL / 3 * at_most + TTL * 9 / 10;
        assert!(
            taken + TTL / 20 >= expected && taken < expected + SOON / 10,
            "{taken:?}, not {expected:?}"
        );
        assert!(extensions(&servers) - before <= u64::from(at_most) * 3);
        assert!(extensions(&servers) - before >= u64::from(at_most) * 2);
        drop(guard);
        gone_for_good(&servers, KEY);
    }
}

#[test]
fn a_limited_time_of_extension_is_kept_and_then_the_lock_is_lost() {
    let (servers, client) = deployment(3);
    let limit = TTL * 3 / 2;
    let mutex = client.mutex(KEY).ttl(TTL);
    let guard = take(&mutex.watchdog(Watchdog::new().max_duration(limit)));
    let start = Instant::now();
    let taken = runs_out(&guard).duration_since(start);
    // No extension begins after the limit, and the last one does not begin long before.
    assert!(taken < limit + TTL + TTL / 6, "{taken:?}");
    assert!(taken > limit + TTL / 3, "{taken:?}");
    drop(guard);
    gone_for_good(&servers, KEY);
}

/// When the loss was reported.
#[track_caller]
fn runs_out(guard: &MutexGuard) -> Instant {
    let lost = guard.lost().unwrap();
    assert_eq!(lost.recv_timeout(SOON), Ok(()));
    let reported_at = Instant::now();
    assert_eq!(
        lost.recv_timeout(TTL),
        Err(RecvTimeoutError::Timeout),
        "reported twice"
    );
    assert!(
        guard.remaining().is_zero(),
        "extended after its loss was reported"
    );
    reported_at
}
