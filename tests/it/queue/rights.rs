//! Users without the right to a queue, to a channel or to a command, and servers without memory for
//! one.

use super::kinds::{Held, KINDS, Kind};
use super::*;

/// The longest delay between attempts of a call that is not told, and its attempts.
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// A client of users with these rights, beside those that locks of all kinds need.
fn user(servers: &[Server], rights: &str) -> Redlock {
    let rights = format!("resetchannels {rights}");
    let urls = servers.each(|server| crate::clients::user(server, &rights));
    builder_of(urls).place_lease(PLACE_LEASE).build().unwrap()
}

/// How long a client waits when another one has released the lock.
fn time_to_wait(kind: &Kind, mine: &Redlock, theirs: &Redlock) -> Duration {
    let held = kind.hold(theirs);
    let release = || {
        thread::sleep(Duration::from_millis(300));
        let_go(held)
    };
    time_to_acquire(kind, mine, release)
}

/// The same, while this releases it.
fn time_to_acquire(kind: &Kind, mine: &Redlock, release: impl FnOnce() -> Instant) -> Duration {
    let (guard, late) = lag(|| (kind.acquire)(mine, SOON).unwrap(), release);
    assert!(guard.is_some(), "{}", kind.name);
    late
}

/// What plain and fenced locks, permits and sets need; `~` and `&` are left out.
const WAITS_BY_THE_CLOCK: [usize; 4] = [0, 2, 5, 6];

#[test]
fn without_the_right_to_queues_plain_locks_and_permits_are_waited_for_by_the_clock() {
    skip_unless!(has_users());
    for kind in [0, 5, 6].map(|index| &KINDS[index]) {
        let servers = Server::several(3).unwrap();
        let mine = user(&servers, "~k ~k#* ~l &* +@all");
        let took = time_to_wait(kind, &mine, &client(&servers));
        assert_in_time(took, LONGEST_DELAY, kind.name);
        // Its own release goes through, and leaves those that wait to the clock.
        let took = time_to_wait(kind, &prompt(&servers).build().unwrap(), &mine);
        assert_in_time(took, PLACE_LEASE + LONGEST_DELAY, kind.name);
        no_entry_stays(&servers);
    }
}

#[test]
fn without_the_right_to_the_channel_waits_go_by_the_clock_and_fair_locks_are_refused() {
    skip_unless!(has_users());
    for rights in ["~* +@all", "~* &* +@all -subscribe"] {
        for kind in WAITS_BY_THE_CLOCK.map(|index| &KINDS[index]) {
            let servers = Server::several(3).unwrap();
            let mine = user(&servers, rights);
            let took = time_to_wait(kind, &mine, &client(&servers));
            assert_in_time(took, LONGEST_DELAY, kind.name);
            no_entry_stays(&servers);
        }
        let servers = Server::several(3).unwrap();
        let mine = user(&servers, rights);
        let held = take(&long_lock(&client(&servers), "k"));
        let error = long_lock(&mine, "k").fair().lock_timeout(SOON).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(count_causes(&error, Cause::NoPermission) > 0, "{error}");
        drop(held);
        no_entry_stays(&servers);
    }
}

/// What is full neither stores an entry nor grants; a release runs there.
#[test]
fn a_node_whose_memory_is_full_is_one_that_does_not_count() {
    for kind in &KINDS {
        let servers = Server::several(3).unwrap();
        let [mine, theirs] = [(); 2].map(|()| prompt(&servers).build().unwrap());
        let held = kind.hold(&theirs);
        ask(&servers[1], &["CONFIG", "SET", "maxmemory", "1"]);
        let took = time_to_pass(kind, &servers, &mine, held, 2);
        assert_in_time(took, PLACE_LEASE + LONGEST_DELAY, kind.name);
        ask(&servers[1], &["CONFIG", "SET", "maxmemory", "0"]);
        no_entry_stays(&servers);
    }
}

/// The wait goes on by the clock, and ends with the lock when there is memory again, or at its
/// limit.
#[test]
fn waits_end_where_the_memory_of_all_nodes_is_full() {
    for kind in &KINDS {
        let servers = Server::several(3).unwrap();
        let [mine, theirs] = [(); 2].map(|()| prompt(&servers).build().unwrap());
        let held = kind.hold(&theirs);
        let set_memory = |limit| ask_each(&servers, &["CONFIG", "SET", "maxmemory", limit]);
        set_memory("1");
        let begun = Instant::now();
        let ended = (kind.acquire)(&mine, Duration::from_millis(700));
        assert!(
            !matches!(ended, Ok(Some(_))) && begun.elapsed() < SOON,
            "{}",
            kind.name
        );
        thread::scope(|scope| {
            let waiting = scope.spawn(|| ((kind.acquire)(&mine, SOON).unwrap(), Instant::now()));
            thread::sleep(Duration::from_millis(300));
            drop(held);
            thread::sleep(Duration::from_millis(300));
            assert!(!waiting.is_finished(), "{}: nothing can be set", kind.name);
            set_memory("0");
            let begun = Instant::now();
            let (guard, had) = waiting.join().unwrap();
            assert!(guard.is_some(), "{}", kind.name);
            let took = had.saturating_duration_since(begun);
            assert_in_time(took, PLACE_LEASE + LONGEST_DELAY, kind.name);
        });
        no_entry_stays(&servers);
    }
}

/// Its client is there for another call, so it is no entry of a client that is gone.
#[test]
fn an_entry_that_nodes_refused_to_remove_holds_up_no_other_call() {
    for kind in [&KINDS[0], &KINDS[2], &KINDS[4], &KINDS[5]] {
        let servers = Server::several(3).unwrap();
        let [theirs, first, second] = [(); 3].map(|()| patient(&servers).build().unwrap());
        let all_have = |count| {
            let has = |server: &Server| entries(server, kind.key).len() == count;
            assert_soon!(servers.all(has), "{count}");
        };
        let set_replicas = |count| {
            let words = ["CONFIG", "SET", "min-replicas-to-write", count];
            ask_each(&servers, &words);
        };
        let held = kind.hold(&theirs);
        let other = take(&long_lock(&theirs, "other"));
        thread::scope(|scope| {
            let stays = scope.spawn(|| long_lock(&first, "other").lock_timeout(SOON * 2));
            let ends = scope.spawn(|| (kind.acquire)(&first, Duration::from_secs(2)));
            all_have(1);
            let waiting = scope.spawn(|| {
                let guard = (kind.acquire)(&second, SOON).unwrap();
                (guard.is_some(), Instant::now())
            });
            all_have(2);
            thread::sleep(Duration::from_millis(300));
            assert!(!ends.is_finished());
            set_replicas("1");
            assert!(!matches!(ends.join().unwrap(), Ok(Some(_))));
            thread::sleep(Duration::from_millis(300));
            set_replicas("0");
            let begun = Instant::now();
            drop(held);
            let (is_had, had) = waiting.join().unwrap();
            let took = had.saturating_duration_since(begun);
            assert!(is_had && took < LATE, "{}: {took:?}", kind.name);
            drop(other);
            assert!(stays.join().unwrap().unwrap().is_some());
        });
    }
}

/// Lets a call wait that has its entry on so many nodes, and releases the lock. Returns how long it
/// waits from then on.
fn time_to_pass(
    kind: &Kind,
    servers: &[Server],
    mine: &Redlock,
    held: Held,
    nodes: usize,
) -> Duration {
    let has_entry = |server: &&Server| count(server, kind.key) == 1;
    let found = || servers.iter().filter(has_entry).count();
    let release = || {
        assert_soon!(found() >= nodes, "{}: {}", kind.name, found());
        thread::sleep(Duration::from_millis(100));
        let_go(held)
    };
    time_to_acquire(kind, mine, release)
}
