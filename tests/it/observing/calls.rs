//! What the end of a call, and of a lock, is reported with.

use super::*;
use quorumlock::event::Severity;

const PATIENCE: Duration = Duration::from_millis(100);

/// The ends of calls without the lock that were reported.
fn ends(recorder: &Recorder) -> Vec<Event> {
    recorder
        .events()
        .into_iter()
        .filter(|event| matches!(event, Event::GaveUp { .. }))
        .collect()
}

/// Of such an end: its reason, and how many attempts there were.
fn reason_and_attempts(end: &Event) -> (GaveUpReason, u32) {
    let &Event::GaveUp {
        reason, attempts, ..
    } = end
    else {
        panic!("{end:?}")
    };
    (reason, attempts)
}

/// Each reason, with what the call returned.
#[test]
fn a_call_that_gives_up_says_why() {
    let (mut servers, recorder, client) = recorded();
    let mutex = long_lock(&client, KEY);
    let guard = take(&mutex);
    assert!(is_held(&mutex));
    assert!(is_held_for(&mutex, PATIENCE));
    let cancelled = CancelHandle::new();
    cancelled.cancel();
    assert!(
        mutex
            .lock_with(&Wait::unlimited().cancelled_by(&cancelled))
            .is_err()
    );
    fails(mutex.clone().ttl(Duration::ZERO).lock(), ErrorKind::Config);
    let _ = guard.unlock().unwrap();
    let reader = client.read_mutex(KEY).ttl(Duration::ZERO);
    assert_eq!(reader.lock().unwrap_err().kind(), ErrorKind::Config);
    servers[1].kill();
    servers[2].kill();
    let error = mutex.try_lock().unwrap_err();
    let ends = ends(&recorder);
    assert_eq!(
        ends.iter().map(reason_and_attempts).collect::<Vec<_>>(),
        [
            (GaveUpReason::Held, 1),
            (GaveUpReason::TimedOut, 0),
            (GaveUpReason::Cancelled, 0),
            (GaveUpReason::Failed, 0),
            (GaveUpReason::Failed, 0),
            (GaveUpReason::Unavailable, 1)
        ]
    );
    assert!(
        matches!(&ends[5], Event::GaveUp { causes, .. } if causes == error.causes()),
        "{ends:?}"
    );
    let levels: Vec<Severity> = ends.iter().map(Event::severity).collect();
    assert_eq!(
        levels,
        [
            Severity::Debug,
            Severity::Info,
            Severity::Debug,
            Severity::Error,
            Severity::Error,
            Severity::Error
        ]
    );
}

#[test]
fn the_end_of_a_lock_says_for_how_long_it_was_held() {
    let (_servers, recorder, client) = recorded();
    let begun = std::time::Instant::now();
    let guard = take(&long_lock(&client, KEY));
    thread::sleep(PATIENCE);
    let _ = guard.unlock().unwrap();
    let first = begun.elapsed();
    let begun = std::time::Instant::now();
    let guard = wait_for(&client.mutex("lost").ttl(TTL / 5));
    thread::sleep(TTL / 4);
    assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Lost);
    let second = begun.elapsed();
    thread::sleep(PATIENCE);
    drop(guard);
    let all = begun.elapsed();
    assert_soon!({
        let _ = client.mutex("another").try_lock().unwrap();
        recorder.count("released lost") == 1
    });
    for event in recorder
        .events()
        .into_iter()
        .filter(|event| !is_about_a_node(event))
    {
        match event {
            Event::Lost { held, .. } => {
                assert!((TTL / 4..second).contains(&held), "{held:?} {second:?}")
            }
            Event::Released { name, held, .. } if &*name == KEY => {
                assert!((PATIENCE..first).contains(&held), "{held:?} {first:?}");
            }
            Event::Released { name, held, .. } if &*name == "lost" => {
                assert!(
                    (TTL / 4 + PATIENCE..all).contains(&held),
                    "{held:?} {all:?}"
                );
            }
            _ => {}
        }
    }
}

/// The loss was reported when it was signalled. The downgrade and the end of the guard find it, and
/// report nothing.
#[test]
fn a_loss_that_was_reported_is_not_reported_again_by_a_downgrade() {
    let (_servers, recorder, client) = recorded();
    let guard = client.write_mutex(KEY).ttl(TTL / 5).lock().unwrap();
    guard.lost().unwrap().recv_timeout(SOON).unwrap();
    assert_eq!(guard.downgrade().unwrap_err().kind(), ErrorKind::LeaseLost);
    // The thread of the watchdog reports the loss after it has signalled it.
    assert_soon!({
        let _ = client.mutex("another").try_lock().unwrap();
        recorder.count("released k") == 1 && recorder.count("lost k") > 0
    });
    assert_eq!(recorder.count("lost k"), 1, "{:?}", recorder.events());
}
