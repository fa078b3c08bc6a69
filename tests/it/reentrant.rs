//! Reentrant locks: levels, owners, and what a re-entry does to the lease.

mod hopping;

use crate::prelude::*;

const RELEASED: ReleaseOutcome = ReleaseOutcome::Released;
const EXPIRED: ReleaseOutcome = ReleaseOutcome::Expired;
/// A lease that a test waits for to end.
const SHORT: Duration = Duration::from_millis(300);

fn reentrant(client: &Redlock, ttl: Duration) -> ReentrantMutex {
    client.mutex("k").ttl(ttl).reentrant()
}

#[test]
fn a_thousand_levels_are_one_acquisition_and_one_release() {
    let servers = Server::several(3).unwrap();
    let mutex = reentrant(&client(&servers), LONG_TTL);
    let mut guards: Vec<_> = (0..1000).map(|_| mutex.lock().unwrap()).collect();
    for left in (1..1000).rev() {
        // In no particular order.
        let guard = guards.swap_remove(left / 2);
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::StillHeld(left));
    }
    assert!(servers.all(|server| value(server, "k").is_some()));
    assert_eq!(guards.pop().unwrap().unlock().unwrap(), RELEASED);
    gone_for_good(&servers, "k");
    for server in &servers {
        // One is the note that each node of a new deployment gets.
        assert_eq!((calls(server, "set"), calls(server, "pexpire")), (2, 0));
    }
}

#[test]
fn an_owner_is_a_thread_or_an_object_and_excludes_all_others() {
    let (servers, client) = deployment(3);
    let mutex = reentrant(&client, LONG_TTL);
    let request = Owner::new();
    let other = Owner::new();
    let mine = take(&mutex);
    // The plain lock of the same thread, an owner of the same thread, another client.
    assert!(is_held(&client.mutex("k")));
    let now = Wait::timeout(Duration::ZERO);
    assert!(mutex.lock_as(&request, &now).unwrap().is_none());
    assert!(is_held(&self::client(&servers).mutex("k")));
    // The system reuses the identity of a thread that has ended for the next.
    for _ in 0..20 {
        assert!(elsewhere(|| is_held(&mutex)));
    }
    assert_eq!(mine.unlock().unwrap(), RELEASED);

    let unlimited = Wait::unlimited();
    let first = mutex.lock_as(&request, &unlimited).unwrap().unwrap();
    assert!(is_held(&mutex) && mutex.lock_as(&other, &now).unwrap().is_none());
    let (request, second) = elsewhere(|| {
        let request = request;
        let second = mutex.lock_as(&request, &now).unwrap().unwrap();
        (request, second)
    });
    drop(first);
    assert_eq!(elsewhere(|| second.unlock().unwrap()), RELEASED);
    assert!(mutex.lock_as(&request, &now).unwrap().is_some());
}

#[test]
fn two_clients_and_two_resources_are_different_locks() {
    let (_servers, [one, two]) = programs(3);
    let guard = take(&reentrant(&one, LONG_TTL));
    assert!(is_held(&reentrant(&two, LONG_TTL)));
    let others: Vec<_> = (0..100)
        .map(|n| one.mutex(format!("k{n}")).reentrant().lock().unwrap())
        .collect();
    drop(others);
    assert_eq!(
        take(&reentrant(&one, LONG_TTL)).unlock().unwrap(),
        ReleaseOutcome::StillHeld(1)
    );
    drop(guard);
    drop(wait_for(&reentrant(&two, LONG_TTL)));
}

/// A re-entry at every depth, with every time to live, with and without a quorum, while the lease
/// lasts.
#[test]
fn a_longer_time_to_live_extends_first_and_a_shorter_one_changes_nothing() {
    let servers = Server::several(3).unwrap();
    let client = builder(&servers).node_timeout(SOON / 20).build().unwrap();
    let outer_ttl = LONG_TTL / 2;
    let ttls = [
        (outer_ttl / 4, false),
        (outer_ttl, false),
        (outer_ttl * 2, true),
    ];
    for (depth, (ttl, extends), has_quorum) in [1, 2, 5]
        .into_iter()
        .flat_map(|d| ttls.map(|t| (d, t)))
        .flat_map(|(d, t)| [true, false].map(|q| (d, t, q)))
    {
        let outer: Vec<_> = (0..depth)
            .map(|_| take(&reentrant(&client, outer_ttl)))
            .collect();
        let before = calls(&servers[0], "pexpire");
        if !has_quorum {
            pause(&servers[1..]);
        }
        let entered = reentrant(&client, ttl).try_lock();
        if !has_quorum {
            resume(&servers[1..]);
        }
        let case = format!("depth {depth}, ttl {ttl:?}, quorum {has_quorum}");
        match entered {
            Ok(guard) => {
                assert!(has_quorum || !extends, "{case}");
                let guard = guard.unwrap();
                let remaining = guard.remaining();
                assert_eq!(remaining > outer_ttl, extends, "{case}: {remaining:?}");
                assert!(remaining > outer_ttl / 2, "{case}: {remaining:?}");
                assert_eq!(
                    guard.unlock().unwrap(),
                    ReleaseOutcome::StillHeld(depth),
                    "{case}"
                );
            }
            Err(error) => {
                assert!(!has_quorum && extends, "{case}: {error}");
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{case}");
                assert_eq!(error.causes().len(), 2, "{case}: {error}");
                let other = format!("{}: answered", servers[0].address());
                assert!(error.to_string().contains(&other), "{case}: {error}");
            }
        }
        assert_eq!(calls(&servers[0], "pexpire") > before, extends, "{case}");
        // No end of an inner level has shortened what the outer ones have.
        assert!(outer[0].remaining() > outer_ttl / 2, "{case}");
        assert!(left(&servers[0], "k").unwrap() > outer_ttl / 2, "{case}");
        drop(outer);
        gone_for_good(&servers, "k");
    }
}

#[test]
fn a_level_extends_first_once_less_than_two_thirds_of_its_time_to_live_remain() {
    let (server, client) = single();
    let mutex = reentrant(&client, Duration::from_secs(3));
    let outer = take(&mutex);
    thread::sleep(Duration::from_millis(1100));
    assert!(outer.remaining() < Duration::from_secs(2));
    let inner = take(&mutex);
    assert!(outer.remaining() > Duration::from_secs(2), "{outer:?}");
    assert_eq!(calls(&server, "pexpire"), 1);
    drop((outer, inner));
}

#[test]
fn a_lost_lock_is_not_entered_again_and_not_taken_anew_under_its_guards() {
    let (servers, client) = deployment(3);
    for (depth, ttl) in [1, 3]
        .into_iter()
        .flat_map(|depth| [SHORT / 2, SHORT, LONG_TTL].map(|ttl| (depth, ttl)))
    {
        let mutex = reentrant(&client, SHORT);
        let mut outer: Vec<_> = (0..depth).map(|_| take(&mutex)).collect();
        assert_soon!(outer[0].remaining().is_zero());
        nowhere(&servers, "k");
        for refused in [
            reentrant(&client, ttl).lock(),
            reentrant(&client, ttl)
                .lock_timeout(SOON)
                .map(Option::unwrap),
        ] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::LeaseLost);
        }
        assert!(matches!(outer[0].extend(ttl), Ok(ExtendOutcome::Lost)));
        let last = outer.pop().unwrap();
        drop(outer);
        assert_eq!(mutex.try_lock().unwrap_err().kind(), ErrorKind::LeaseLost);
        assert_eq!(last.unlock().unwrap(), EXPIRED);
        assert_eq!(take(&mutex).unlock().unwrap(), RELEASED);
    }
}

#[test]
fn a_lock_that_the_nodes_lost_is_lost_at_every_level() {
    let servers = Server::several(3).unwrap();
    let mutex = reentrant(&client(&servers), LONG_TTL);
    let outer = take(&mutex);
    let inner = take(&mutex);
    let lost = outer.lost().unwrap();
    for server in &servers[..2] {
        assert_soon!(value(server, "k").is_some());
        server.command(&["FLUSHALL"]).unwrap();
    }
    assert!(matches!(inner.extend(LONG_TTL), Ok(ExtendOutcome::Lost)));
    assert!(lost.recv_timeout(SOON).is_ok());
    assert_eq!(mutex.try_lock().unwrap_err().kind(), ErrorKind::LeaseLost);
    assert_eq!(inner.unlock().unwrap(), ReleaseOutcome::StillHeld(1));
    assert_eq!(outer.unlock().unwrap(), EXPIRED);
}

#[test]
fn an_extension_that_would_shorten_the_lease_changes_nothing() {
    let servers = Server::several(3).unwrap();
    let mutex = reentrant(&client(&servers), LONG_TTL);
    let outer = take(&mutex);
    let inner = take(&mutex);
    extend(&inner, SHORT);
    assert!(outer.remaining() > LONG_TTL / 2);
    extend(&inner, LONG_TTL * 2);
    assert!(outer.remaining() > LONG_TTL);
    drop(inner);
    assert!(outer.remaining() > LONG_TTL && left(&servers[0], "k").unwrap() > LONG_TTL);
}

#[test]
fn the_watchdog_of_an_inner_level_works_until_the_last_guard_goes() {
    let (_servers, client) = deployment(3);
    let ttl = SHORT * 4;
    let with = |watchdog| client.mutex("k").ttl(ttl).watchdog(watchdog).reentrant();
    let watched = with(Watchdog::new());
    for outer in [
        reentrant(&client, ttl),
        // The inner level has no limit.
        with(Watchdog::new().max_extensions(0)),
    ] {
        let outer = take(&outer);
        drop(take(&watched));
        assert!(stays_for(ttl * 2, || !outer.remaining().is_zero()));
        assert_eq!(outer.unlock().unwrap(), RELEASED);
    }

    // A receiver would miss the loss that another watch finds.
    let outer = take(&reentrant(&client, LONG_TTL));
    let lost = outer.lost().unwrap();
    assert_eq!(watched.try_lock().unwrap_err().kind(), ErrorKind::Config);
    assert!(lost.is_empty() && !outer.remaining().is_zero());
}

/// Takes the lock again in each event of an extension.
#[derive(Default)]
struct Reentering {
    mutex: OnceLock<ReentrantMutex>,
    found: OnceLock<ErrorKind>,
}

impl Reentering {
    fn event(&self, event: &Event) {
        if let (Event::Extended { .. }, Some(mutex)) = (event, self.mutex.get()) {
            let _ = self.found.set(mutex.try_lock().unwrap_err().kind());
        }
    }
}

#[test]
fn a_callback_of_an_extension_is_refused_and_does_not_wait_for_itself() {
    let servers = Server::several(3).unwrap();
    let observer = Arc::new(Reentering::default());
    let client = client_with(&servers, |builder| {
        builder.observer(calling(&observer, Reentering::event))
    });
    let mutex = reentrant(&client, LONG_TTL);
    drop(observer.mutex.set(mutex.clone()));
    let guard = take(&mutex);
    extend(&guard, LONG_TTL);
    assert_eq!(observer.found.get(), Some(&ErrorKind::Config));
    assert_eq!(guard.unlock().unwrap(), RELEASED);
}
