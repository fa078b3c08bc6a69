//! Fenced locks on real servers: what a node stores, which numbers grow, how a lock is extended.
//!
//! [`nodes`] is about nodes that differ, fail or lose their data, [`scripts`] about the script and
//! its errors.
//!
//! `QUORUMLOCK_SERVERS` names further servers, separated by colons; where a server's version could
//! matter, all are asked.

mod nodes;
mod scripts;

use crate::prelude::*;

const KEY: &str = "quorumlock-fence:k";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const SHORT: Duration = Duration::from_millis(300);

/// Fence, deadline and owner, as a node has them.
fn fields(server: &Server) -> (u64, u64, String) {
    let value = value(server, KEY).expect("the key stays");
    let fields: Vec<_> = value.split(' ').collect();
    (
        fields[0].parse().unwrap(),
        fields[1].parse().unwrap(),
        fields[2].to_owned(),
    )
}

fn set(server: &Server, text: &str) {
    ok(server, &["SET", KEY, text]);
}

#[test]
fn every_acquisition_has_a_greater_number_whichever_client_makes_it() {
    let servers = Server::several(3).unwrap();
    let mutexes =
        [client(&servers), client(&servers)].map(|client| long_lock(&client, "k").fenced());
    let begun = micros();
    let mut last = FencingToken::try_from(begun).unwrap();
    for round in 0..50 {
        let guard = take(&mutexes[round % 2]);
        assert!(
            guard.fence() > last && guard.fence().get() < micros() + 1000,
            "{last} {guard:?}"
        );
        last = guard.fence();
        unlock(guard);
    }
    // One to take and one to release: one round trip each. And the note of each node, once.
    assert_soon!(servers.all(|server| scripts_run(server) == 100 + 1));
    let _held = take(&mutexes[0]);
    assert!(is_held(&mutexes[1]));
    assert!(
        long_lock(&client(&servers), "k")
            .try_lock()
            .unwrap()
            .unwrap()
            .erase()
            .fence()
            .is_none()
    );
}

#[test]
fn a_node_keeps_fence_deadline_and_owner_and_after_the_release_the_fence() {
    for server in servers() {
        let mutex = client([&server])
            .mutex("k")
            .ttl(Duration::from_secs(60))
            .fenced();
        let guard = take(&mutex);
        let (fence, deadline, owner) = fields(&server);
        assert_eq!((fence, owner.len()), (guard.fence().get(), 40));
        let now = micros() / 1000;
        assert!(
            (now + 50_000..=now + 61_000).contains(&deadline),
            "{deadline}"
        );
        let is_kept = |time: Duration| time > DAY - SOON && time <= DAY;
        assert!(left(&server, KEY).is_some_and(is_kept));
        unlock(guard);
        assert_eq!(fields(&server), (fence, 0, String::new()));
        assert!(left(&server, KEY).is_some_and(is_kept));
        let kept = builder([&server]).fence_retention(2 * DAY).build().unwrap();
        drop(take(&long_lock(&kept, "k").fenced()));
        assert_soon!(fields(&server).2.is_empty());
        assert!(left(&server, KEY).is_some_and(|time| time > 2 * DAY - SOON));
        let long = builder([&server]).max_ttl(3 * DAY).build().unwrap();
        drop(take(&long_lock(&long, "k").fenced()));
        // As long as any lock lasts, and two minutes more.
        let least = 3 * DAY + Duration::from_secs(120);
        assert_soon!(left(&server, KEY).is_some_and(|time| time > least - SOON && time <= least));
    }
}

#[test]
fn a_plain_lock_of_the_same_name_is_another_lock() {
    let server = Server::start().unwrap();
    let client = builder([&server]).prefix("app:").build().unwrap();
    let plain = long_lock(&client, "k");
    let fenced = long_lock(&client, "k").fenced();
    assert_eq!(
        (plain.name(), fenced.name(), fenced.clone().erase().name()),
        ("k", "k", "k")
    );
    let one = take(&plain);
    let other = take(&fenced);
    assert_eq!((one.name(), other.name()), ("k", "k"));
    let one = one.erase();
    let other = other.erase();
    assert_eq!((one.fence(), other.fence().is_some()), (None, true));
    assert!(
        value(&server, "app:k").is_some() && value(&server, "quorumlock-fence:app:k").is_some()
    );
}

#[test]
fn a_fenced_lock_is_extended_and_watched() {
    for server in servers() {
        let client = client([&server]);
        let guard = take(&client.mutex("k").ttl(Duration::from_secs(5)).fenced());
        let number = guard.fence();
        extend(&guard, LONG_TTL);
        let (fence, deadline, _) = fields(&server);
        assert!(
            fence == number.get() && guard.fence() == number && deadline > micros() / 1000 + 50_000
        );
        // Another client has taken it away.
        set(
            &server,
            &format!("{} {deadline} {}", fence + 1, "0".repeat(40)),
        );
        assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Lost);
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Expired);
        assert_eq!(fields(&server).0, fence + 1);
        set(&server, "1 0 ");

        let mutex = client.mutex("k").ttl(SHORT).fenced();
        let watched = mutex.watchdog(Watchdog::new());
        // The machine may hold up the watchdog.
        let is_extended = (0..TRIES).any(|_| {
            let guard = wait_for(&watched);
            thread::sleep(SHORT * 3);
            let is_held = !guard.remaining().is_zero();
            is_held && fields(&server).0 == guard.fence().get() && guard.unlock().is_ok()
        });
        assert!(is_extended);
    }
}
