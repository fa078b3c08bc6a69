//! Extensions by hand of locks that are watched.

use super::*;
use crossbeam_channel::RecvTimeoutError;

#[test]
fn extensions_by_hand_and_by_a_watchdog_get_along() {
    let (servers, client) = deployment(3);
    let guard = take(&watched(&client, TTL));
    // From now on it is extended for this long.
    extend(&guard, LONG_TTL);
    assert!(guard.remaining() > LONG_TTL / 2);
    thread::sleep(TTL * 2);
    assert!(guard.remaining() > LONG_TTL / 2);
    drop(guard);
    gone_for_good(&servers, KEY);
    // And by hand for ever longer. Whenever one looks, it is no longer than asked for last.
    let guard = take(&watched(&client, TTL));
    for round in 0..20_u32 {
        let ttl = TTL * 2 + TTL * round / 5;
        assert_eq!(
            guard.extend(ttl).unwrap(),
            ExtendOutcome::Extended,
            "round {round}"
        );
        let until = Instant::now() + Duration::from_millis(u64::from(round) * 13);
        while Instant::now() < until {
            let remaining = guard.remaining();
            assert!(
                remaining <= ttl && !remaining.is_zero(),
                "{remaining:?} of {ttl:?}"
            );
            thread::sleep(Duration::from_millis(1));
        }
    }
    assert_eq!(
        guard.lost().unwrap().recv_timeout(TTL * 5),
        Err(RecvTimeoutError::Timeout)
    );
    unlock(guard);
    gone_for_good(&servers, KEY);
}

/// Others that share the lock, or the thread that took it, rely on the longer time.
#[test]
fn an_extension_by_hand_makes_no_later_renewal_shorter() {
    let (_servers, client) = deployment(3);
    let ttl = Duration::from_secs(3);
    let watchdog = Watchdog::new().period(ttl / 3);
    let guard = take(&client.mutex(KEY).ttl(ttl).watchdog(watchdog));
    let short = Duration::from_millis(2500);
    assert_soon!(guard.remaining() < short * 9 / 10);
    extend(&guard, short);
    assert_soon!(guard.remaining() > short);
}
