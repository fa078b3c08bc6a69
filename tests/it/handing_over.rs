//! A held lock changes hands: between threads, clients and processes, and no other client gets it
//! meanwhile.

use crate::prelude::*;

pub(crate) const KEY: &str = "k";
pub(crate) const TTL: Duration = Duration::from_millis(300);
/// A watchdog extends no sooner.
const SHORTEST_PERIOD: Duration = Duration::from_millis(10);

/// A lock whose key is on all servers.
#[track_caller]
pub(crate) fn take_everywhere(client: &Redlock, servers: &[Server]) -> MutexGuard {
    let guard = take(&long_lock(client, KEY));
    everywhere(servers, KEY);
    guard
}

fn is_everywhere(servers: &[Server]) -> bool {
    servers.all(|server| value(server, KEY).is_some())
}

/// As another process sees it.
pub(crate) fn copied<K: Kind>(lease: Lease<K>) -> Lease<K> {
    lease.into_text().expose().parse().unwrap()
}

#[test]
fn a_detached_lock_is_held_by_no_guard_and_given_to_no_other_client() {
    let (servers, [mine, theirs]) = programs(3);
    let guard = take_everywhere(&mine, &servers);
    let tokens = || [0, 1, 2].map(|node: usize| value(&servers[node], KEY));
    let (before_it, before) = (tokens(), guard.remaining());
    let lease = guard.detach().unwrap();
    assert_eq!((lease.key(), lease.ttl()), (KEY, LONG_TTL));
    assert!(lease.remaining() <= before && lease.remaining() + SOON > before);
    let end = SystemTime::now() + lease.remaining();
    let apart = end
        .duration_since(lease.end())
        .unwrap_or_else(|error| error.duration());
    assert!(apart < Duration::from_secs(1), "{apart:?}");
    for client in [&mine, &theirs] {
        assert!(is_held(&long_lock(client, KEY)));
    }
    assert_eq!(tokens(), before_it, "something was sent");
    assert_eq!(all_calls(&servers, "del"), 0);
    drop(lease);
    thread::sleep(SLACK);
    assert!(is_everywhere(&servers), "dropping a lease releases nothing");
}

#[test]
fn a_lock_goes_on_in_the_same_client_in_another_and_in_another_thread() {
    let (servers, mine) = deployment(3);
    let mut lease = take_everywhere(&mine, &servers).detach().unwrap();
    for text in [false, true, false] {
        for client in [mine.clone(), client(&servers)] {
            let before = lease.remaining();
            lease = thread::spawn(move || {
                let lease = if text { copied(lease) } else { lease };
                let guard = client.attach(lease).unwrap();
                assert_eq!(guard.name(), KEY);
                assert!(guard.remaining() <= before && guard.remaining() + SOON > before);
                extend(&guard, LONG_TTL);
                assert!(is_held(&long_lock(&client, KEY)));
                guard.detach().unwrap()
            })
            .join()
            .unwrap();
            assert!(is_everywhere(&servers));
        }
    }
    unlock(client(&servers).attach(lease).unwrap());
    gone_for_good(&servers, KEY);
}

#[test]
fn an_attached_lock_is_released_by_dropping_it() {
    let (servers, mine) = deployment(3);
    let lease = take_everywhere(&mine, &servers).detach().unwrap();
    drop(mine.attach(lease).unwrap());
    gone_for_good(&servers, KEY);

    // By a client that knows no node yet: attaching begins to connect, and the release follows once
    // there is a connection.
    let theirs = client(&servers);
    let guard = theirs
        .attach(copied(take_everywhere(&mine, &servers).detach().unwrap()))
        .unwrap();
    // Mine, theirs, and the one that asks.
    let connected = || servers.all(|server| server.info("connected_clients").unwrap() == "3");
    assert_soon!(connected());
    drop(guard);
    gone_for_good(&servers, KEY);
}

#[test]
fn a_lock_goes_on_in_another_process() {
    const HANDED: &str = "QUORUMLOCK_TEST_HANDOVER";
    if let Ok(handed) = std::env::var(HANDED) {
        // The other process.
        let (text, nodes) = handed.split_once(' ').unwrap();
        let client = client_of(nodes.split(' '));
        let guard = client.attach(text.parse::<Lease>().unwrap()).unwrap();
        extend(&guard, LONG_TTL * 2);
        unlock(guard);
        return;
    }
    let servers = Server::several(3).unwrap();
    let guard = take_everywhere(&client(&servers), &servers);
    let text = guard.detach().unwrap().into_text();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "handing_over::a_lock_goes_on_in_another_process",
        "--exact",
        "--nocapture",
        "--test-threads=1",
    ]);
    let urls: Vec<String> = servers.each(Server::url);
    command.env(HANDED, format!("{} {}", text.expose(), urls.join(" ")));
    let said = succeeds(&mut command);
    assert!(said.contains("1 passed"), "{said}");
    let extensions = all_calls(&servers, "pexpire");
    assert!(extensions >= 2, "it was not extended there");
    gone_for_good(&servers, KEY);
}

/// Nodes that go by a shorter time than their replies are relied on for would let another client
/// have the lock.
#[test]
fn a_watchdog_does_not_shorten_the_lease_that_its_lock_was_attached_to() {
    let (servers, client) = deployment(3);
    let lease = take_everywhere(&client, &servers).detach().unwrap();
    let before = all_calls(&servers, "pexpire");
    let guard = client
        .mutex(KEY)
        .ttl(TTL)
        .watchdog(Watchdog::new().period(SHORTEST_PERIOD))
        .attach(lease)
        .unwrap();
    assert_soon!(all_calls(&servers, "pexpire") >= before + 3);
    assert!(servers.all(|server| left(server, KEY).unwrap() > LONG_TTL / 2));
    assert!(guard.remaining() > LONG_TTL / 2);
}

#[test]
fn a_lock_that_was_reported_lost_is_not_revived_by_detaching_it() {
    let (_servers, client) = deployment(3);
    let watchdog = Watchdog::new().max_extensions(0);
    let watchdog = watchdog.notify_before(Duration::from_millis(400));
    let mutex = client.mutex(KEY).ttl(Duration::from_secs(1));
    let guard = take(&mutex.watchdog(watchdog));
    assert_eq!(guard.lost().unwrap().recv_timeout(SOON), Ok(()));
    assert!(!guard.remaining().is_zero(), "there was to be time left");
    let lease = guard.detach().unwrap();
    assert_eq!(lease.remaining(), Duration::ZERO);
    fails(client.attach(lease), ErrorKind::LeaseLost);
}

#[test]
fn attaching_asks_no_node_and_works_with_all_nodes_down() {
    let mut servers = Server::several(3).unwrap();
    let guard = take_everywhere(&client(&servers), &servers);
    let lease = guard.detach().unwrap();
    servers.iter_mut().for_each(Server::kill);
    let client = client(&servers);
    let guard = client.attach(lease).unwrap();
    assert!(guard.remaining() > LONG_TTL / 2);
    assert!(matches!(
        guard.extend(LONG_TTL).unwrap(),
        ExtendOutcome::Failed(_)
    ));
    assert_eq!(guard.unlock().unwrap_err().kind(), ErrorKind::Unavailable);
    fails(long_lock(&client, KEY).try_lock(), ErrorKind::Unavailable);
}
