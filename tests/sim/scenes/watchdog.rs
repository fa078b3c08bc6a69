//! Scenes of locks that are watched: extended by the watchdog's thread, lost, and the end of that
//! thread.

use super::{
    connections, counted, cut_first, flush, give_away, hang, has_key, metrics, pass, play,
    play_quiet, set_delay, strike, watched,
};
use crate::api::guard::MutexGuard;
use crate::api::redlock::Redlock;
use crate::api::watchdog::Watchdog;
use crate::events::event::Event;
use crate::events::extension::ExtendOutcome;
use crate::kernel::with;
use crate::plan::{Kind, MILLISECOND, SECOND};
use crate::{clients, kernel};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const KEY_GONE: &str = "quorumlock_lost_total{class=\"all\",reason=\"key_gone\"} ";
const LEASE_ENDED: &str = "quorumlock_lost_total{class=\"all\",reason=\"lease_ended\"} ";
const FOUND_LOST: &str =
    "quorumlock_extensions_total{class=\"all\",result=\"lost\",automatic=\"true\"} ";

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn now() -> u64 {
    with(|world| world.now)
}

/// For so long, as all of a run is.
#[track_caller]
fn await_for(millis: u64, mut is_there: impl FnMut() -> bool) {
    for _ in 0..millis {
        if is_there() {
            return;
        }
        pass(1);
    }
    panic!("it has not happened within {millis} ms");
}

/// What has happened, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<&'static str>>>);

impl Log {
    fn add(&self, what: &'static str) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(what);
    }

    fn all(&self) -> Vec<&'static str> {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.clone()
    }

    /// A client whose observer writes here. It takes so many milliseconds for an acquisition.
    fn client(&self, acquisition: u64) -> Redlock {
        self.slow_client(acquisition, 0)
    }

    /// The same, and so many milliseconds for the end of a release.
    fn slow_client(&self, acquisition: u64, release: u64) -> Redlock {
        let log = self.clone();
        let observe = move |event: &Event| match event {
            Event::Acquired { .. } => {
                pass(acquisition);
                log.add("acquired");
            }
            Event::Extended { .. } => log.add("extended"),
            Event::Released { .. } => {
                pass(release);
                log.add("released");
            }
            Event::EventsDropped { count: 3 } => log.add("three dropped"),
            _ => {}
        };
        Redlock::new(clients::open_with(0, Some(Arc::new(observe))))
    }
}

#[test]
fn a_watched_lock_whose_keys_are_gone_is_lost_once_and_calls_back() {
    play_quiet(|redlock| {
        let guard = watched(&redlock);
        let (signal, log) = (guard.lost().unwrap(), Log::default());
        for what in ["one", "another"] {
            let log = log.clone();
            guard.on_lost(move || log.add(what)).unwrap();
        }
        flush([0, 1]);
        pass(8_000);
        assert!(guard.remaining().is_zero());
        assert_eq!(signal.try_iter().count(), 1);
        assert_eq!(log.all(), ["one", "another"]);
        let late = log.clone();
        guard.on_lost(move || late.add("at once")).unwrap();
        assert_eq!(log.all(), ["one", "another", "at once"]);
        drop(guard);
        pass(100);
        let counts = [KEY_GONE, FOUND_LOST, LEASE_ENDED].map(counted);
        assert_eq!(counts, [1, 1, 0], "{}", metrics());
    });
}

#[test]
fn a_watched_lock_that_cannot_be_extended_is_lost_at_the_end_of_its_lease() {
    play_quiet(|redlock| {
        let guard = watched(&redlock);
        let signal = guard.lost().unwrap();
        hang([0, 1], 25 * SECOND);
        pass(18_000);
        assert!(signal.is_empty());
        pass(2_000);
        assert_eq!(signal.try_iter().count(), 1);
        let counts = [KEY_GONE, FOUND_LOST, LEASE_ENDED].map(counted);
        assert_eq!(counts, [0, 0, 1], "{}", metrics());
    });
}

#[test]
fn an_extension_by_hand_that_finds_a_watched_lock_lost_signals_that() {
    play_quiet(|redlock| {
        let guard = watched(&redlock);
        let (signal, log) = (guard.lost().unwrap(), Log::default());
        let called = log.clone();
        guard.on_lost(move || called.add("called")).unwrap();
        pass(1_000);
        give_away(&[1, 2], "r0");
        assert_eq!(guard.extend(secs(20)).unwrap(), ExtendOutcome::Lost);
        assert!(guard.remaining().is_zero());
        assert_eq!((signal.len(), log.all().len()), (1, 1));
        assert_eq!(counted(KEY_GONE), 1);
        for node in [1, 2] {
            super::execute(node, &[b"DEL", b"r0"]);
        }
    });
}

#[test]
fn a_watched_lock_is_extended_again_after_an_extension_by_hand_without_replies() {
    play_quiet(|redlock| {
        let guard = watched(&redlock);
        pass(1_000);
        hang([0, 1], SECOND);
        let outcome = guard.extend(secs(20)).unwrap();
        assert!(matches!(outcome, ExtendOutcome::Failed(_)), "{outcome:?}");
        pass(22_000);
        guard.ensure(secs(5)).unwrap();
    });
}

/// A margin of 8 seconds would be more than is left.
#[test]
fn the_margin_of_a_lease_that_is_attached_late_is_no_more_than_half_of_what_is_left() {
    play_quiet(|redlock| {
        let mutex = redlock.mutex("r0");
        let lease = mutex.lock().unwrap().detach().unwrap();
        pass(16_000);
        let watchdog = Watchdog::new().notify_before(secs(8));
        let guard = mutex.watchdog(watchdog).attach(lease).unwrap();
        pass(10_000);
        guard.ensure(secs(5)).unwrap();
    });
}

/// The margin of 8 seconds is meant for a lease of 20.
#[test]
fn the_margin_of_a_short_extension_by_hand_is_no_more_than_half_of_its_validity() {
    play_quiet(|redlock| {
        let watchdog = Watchdog::new().notify_before(secs(8)).max_extensions(0);
        let guard = redlock.mutex("r0").watchdog(watchdog).lock().unwrap();
        let signal = guard.lost().unwrap();
        pass(11_000);
        let outcome = guard.extend(secs(10)).unwrap();
        assert_eq!(outcome, ExtendOutcome::Extended);
        pass(4_500);
        assert!(signal.is_empty(), "it lasts for 5.4 s more");
        pass(1_000);
        assert_eq!(signal.len(), 1);
    });
}

/// The thread sleeps for a second at most, and that time does not pass while the machine sleeps.
#[test]
fn a_lock_that_has_ended_while_the_machine_slept_is_lost_when_another_one_is_watched() {
    play_quiet(|redlock| {
        let guard = watched(&redlock);
        let signal = guard.lost().unwrap();
        pass(1_100);
        // 24 s in all.
        for _ in 0..60 {
            strike(Kind::Sleep.of_client(0).lasting(400 * MILLISECOND));
            pass(1);
        }
        assert!(guard.remaining().is_zero() && signal.is_empty());
        let another = redlock.mutex("r1").watchdog(Watchdog::new()).lock();
        pass(5);
        assert_eq!(signal.len(), 1, "it has not noticed");
        drop(another);
    });
}

#[test]
fn a_thread_that_waits_for_a_watched_lock_of_its_program_asks_no_node() {
    play_quiet(|redlock| {
        let guard = watched(&redlock);
        let waiting = redlock.mutex("r0");
        kernel::spawn(0, move || drop(waiting.lock().unwrap()));
        pass(25_000);
        drop(guard);
        pass(500);
        let count = |result| {
            counted(&format!(
                "quorumlock_attempts_total{{class=\"all\",result=\"{result}\"}} "
            ))
        };
        assert_eq!(["won", "held"].map(count), [2, 0], "{}", metrics());
    });
}

/// There is time for one try or two: a node that hangs is not waited for.
#[test]
fn a_lock_whose_end_is_near_is_extended_as_soon_as_a_quorum_has_replied() {
    play_quiet(|redlock| {
        let ttl = Duration::from_millis(160);
        let watchdog = Watchdog::new().period(Duration::from_millis(80));
        let mutex = redlock.mutex("r0").ttl(ttl).watchdog(watchdog);
        let guard = mutex.lock().unwrap();
        pass(60);
        hang([2], 2 * SECOND);
        pass(20);
        guard.ensure(ttl * 3 / 4).unwrap();
        drop(guard);
    });
}

/// It would make the lock last longer when the next holder has it already.
#[test]
fn a_guard_that_is_detached_waits_for_the_extension_that_was_sent() {
    // A reply takes 40 of the 50 milliseconds that a node has.
    play(
        |plan| set_delay(plan, 20),
        |_| {
            let client = clients::open_client(0);
            let validity = client.checked_ttl(secs(20)).unwrap().validity();
            let redlock = Redlock::new(client);
            let watchdog = Watchdog::new().period(secs(5));
            let guard = redlock.mutex("r0").watchdog(watchdog).lock().unwrap();
            let wait = secs(5).saturating_sub(validity - guard.remaining());
            let begun = now() + u64::try_from(wait.as_nanos()).unwrap();
            kernel::sleep_until(begun + MILLISECOND);
            let lease = guard.detach().unwrap();
            let taken = (now() - begun) / MILLISECOND;
            assert!((35..45).contains(&taken), "{taken} ms");
            let guard = redlock.attach(lease).unwrap();
            guard.ensure(secs(19)).unwrap();
        },
    );
}

#[test]
fn a_lock_whose_loss_is_watched_only_has_no_connection_made_for_it() {
    play_quiet(|redlock| {
        let guard = redlock.mutex("r0").lock().unwrap();
        let signal = guard.lost().unwrap();
        let before = connections(0);
        cut_first();
        pass(5_000);
        assert_eq!(connections(0), before);
        pass(15_000);
        assert_eq!(signal.len(), 1);
    });
}

#[test]
fn a_lock_that_is_lost_or_not_extended_is_not_shared_with_a_watchdog() {
    play_quiet(|_| {
        let client = clients::open_client(0);
        let ttl = client.checked_ttl(secs(20)).unwrap();
        let redlock = Redlock::new(client);
        let is_shared = |guard: &MutexGuard| {
            let held = guard.held.lock();
            held.is_extended_for(&Watchdog::new(), ttl)
        };
        let guard = watched(&redlock);
        assert!(is_shared(&guard));
        flush([0, 1]);
        pass(8_000);
        assert!(!is_shared(&guard), "it is lost");
        drop(guard);
        let guard = redlock.mutex("r0").lock().unwrap();
        let _signal = guard.lost().unwrap();
        assert!(!is_shared(&guard), "it is only watched");
    });
}

#[test]
fn what_the_thread_finds_before_the_acquisition_is_reported_is_reported_at_once_after_it() {
    play_quiet(|_| {
        let log = Log::default();
        let redlock = log.client(8_000);
        let guard = watched(&redlock);
        pass(10);
        assert_eq!(log.all(), ["acquired", "extended"]);
        drop(guard);
    });
}

#[test]
fn the_thread_reports_what_no_call_reports_within_a_second() {
    play_quiet(|_| {
        let log = Log::default();
        let redlock = log.client(0);
        let guard = watched(&redlock);
        drop(redlock.mutex("r1").lock().unwrap());
        assert_eq!(log.all(), ["acquired", "acquired"]);
        pass(1_500);
        assert_eq!(log.all(), ["acquired", "acquired", "released"]);
        drop(guard);
    });
}

#[test]
fn the_last_handle_reports_the_events_that_are_left() {
    play_quiet(|_| {
        let log = Log::default();
        let redlock = log.client(0);
        drop(redlock.mutex("r0").lock().unwrap());
        pass(1_000);
        assert_eq!(log.all(), ["acquired"]);
        drop(redlock);
        assert_eq!(log.all(), ["acquired", "released"]);
    });
}

#[test]
fn the_last_handle_delivers_for_no_longer_than_a_node_may_take_and_counts_the_rest() {
    play_quiet(|_| {
        let log = Log::default();
        let redlock = log.slow_client(0, 5_000);
        let guards = ["r0", "r1", "r2", "r3"].map(|name| redlock.mutex(name).lock().unwrap());
        drop(guards);
        pass(1_000);
        drop(redlock);
        assert_eq!(log.all()[4..], ["released", "three dropped"]);
    });
}

/// How long the last handle takes to be dropped while a callback of this time runs, and whether
/// that has returned by then, in milliseconds.
fn drop_in_callback(redlock: Redlock, callback: u64) -> (u64, bool) {
    let log = Log::default();
    let guard = watched(&redlock);
    let of_callback = log.clone();
    let called = move || {
        of_callback.add("begun");
        pass(callback);
        of_callback.add("ended");
    };
    guard.on_lost(called).unwrap();
    flush([0, 1]);
    await_for(10_000, || !log.all().is_empty());
    drop(guard);
    let begun = now();
    drop(redlock);
    ((now() - begun) / MILLISECOND, log.all().len() == 2)
}

#[test]
fn the_last_handle_waits_for_a_callback_that_returns_soon() {
    play_quiet(|redlock| assert!(drop_in_callback(redlock, 30).1, "it runs"));
}

#[test]
fn the_last_handle_waits_for_no_callback_longer_than_a_node_may_take() {
    play_quiet(|redlock| {
        let (taken, has_returned) = drop_in_callback(redlock, 5_000);
        assert!(!has_returned && taken < 200, "{taken} ms");
        pass(6_000);
    });
}

/// Does this where the loss of the lock is reported, and stores how long it took.
fn calls_back(guard: &MutexGuard, work: impl FnOnce() + Send + 'static) -> Arc<AtomicU64> {
    let time = Arc::new(AtomicU64::new(u64::MAX));
    let of_callback = Arc::clone(&time);
    let called = move || {
        let begun = now();
        work();
        of_callback.store(now() - begun, Ordering::Relaxed);
    };
    guard.on_lost(called).unwrap();
    time
}

#[test]
fn a_callback_that_drops_the_last_handle_does_not_wait_for_itself() {
    play_quiet(|redlock| {
        let guard = watched(&redlock);
        let all = Arc::new(Mutex::new(None));
        let taken = Arc::clone(&all);
        let time = calls_back(&guard, move || drop(taken.lock().map(|mut all| all.take())));
        all.lock().unwrap().replace((guard, redlock));
        flush([0, 1]);
        pass(8_000);
        let taken = time.load(Ordering::Relaxed);
        assert!(taken < 20 * MILLISECOND, "{taken} ns");
        assert!(!has_key(2, "r0"), "the release was sent");
    });
}

/// It would wait for a lock that the callback may have to release.
#[test]
fn a_shutdown_in_a_callback_of_the_thread_does_not_wait() {
    play_quiet(|redlock| {
        let other = redlock.mutex("r1").lock().unwrap();
        let guard = watched(&redlock);
        let time = calls_back(&guard, move || drop(redlock.shutdown(secs(5))));
        flush([0, 1]);
        pass(15_000);
        let taken = time.load(Ordering::Relaxed);
        assert!(taken < MILLISECOND, "{taken} ns");
        drop((guard, other));
    });
}
