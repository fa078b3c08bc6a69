//! Releases that are on their way when a client is dropped or its program ends: all of them arrive.
//!
//! Closing a socket on which replies are unread resets the connection, and throws away what was not
//! sent. What a socket does not take at once is sent by a thread of its own while no call is under
//! way.

use crate::prelude::*;

/// The round trip to a far node.
const FAR: Duration = Duration::from_millis(40);
const HELPER: &str = "quorumlock rele";

#[test]
fn a_release_survives_the_end_of_its_client() {
    let servers = Server::several(5).unwrap();
    for round in 0..100 {
        let client = plain_client(servers.each(Server::url));
        let mutex = long_lock(&client, &format!("client-exit/{round}"));
        let guard = mutex.lock().unwrap();
        drop(client);
        // The last handle of the client: its connections are closed when this returns.
        drop(guard);
    }
    for server in &servers {
        let is_empty = || server.keys().unwrap().is_empty();
        assert!(
            eventually(Duration::from_secs(2), is_empty),
            "{:?}",
            server.keys()
        );
    }
}

/// A Unix socket holds a number of writes, however small.
#[test]
fn many_guards_that_are_dropped_in_a_row_are_released_while_the_process_is_idle() {
    alone(|| {
        let directory =
            std::env::temp_dir().join(format!("quorumlock-leaving-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let socket = |number: usize| directory.join(format!("{number}.sock"));
        let servers: Vec<_> = (0..3)
            .map(|number| {
                Server::with(&["--unixsocket", socket(number).to_str().unwrap()]).unwrap()
            })
            .collect();
        let client = client_of((0..3).map(|number| format!("unix://{}", socket(number).display())));
        for round in 0..3 {
            let guards = many(&client, 400);
            pause(&servers);
            drop(guards);
            resume(&servers);
            assert_soon!(
                key_counts(&servers) == [0; 3],
                "round {round}: {:?} keys stay",
                key_counts(&servers)
            );
            // It waits for the answers, and is gone.
            assert_soon!(threads_named(HELPER).is_empty(), "round {round}");
        }
        std::fs::remove_dir_all(&directory).unwrap();
    });
}

/// The helper sleeps, and looks later whether answers are missing.
#[test]
fn guards_that_are_dropped_and_released_at_once_start_a_thread_now_and_then() {
    alone(|| {
        let (servers, client) = deployment(3);
        let begun = Instant::now();
        let mut seen = HashSet::new();
        for _ in 0..200 {
            drop(take(&long_lock(&client, "k")));
            let threads = threads_named(HELPER);
            assert!(
                threads.len() <= 2,
                "one, and one that has just ended: {threads:?}"
            );
            seen.extend(threads.into_iter().map(|thread| thread.id));
            while key_counts(&servers) != [0; 3] {}
        }
        let most = 2 + begun.elapsed().as_millis() / 100;
        assert!(
            seen.len() as u128 <= most,
            "{} threads in {:?}",
            seen.len(),
            begun.elapsed()
        );
        assert_soon!(threads_named(HELPER).is_empty());
    });
}

/// A program that drops so many guards, and then does this, comes to its end.
#[track_caller]
fn ends(proxies: &[Proxy], guards: usize, last: fn(Redlock)) {
    let program = Child::fork(End::Exit, |_| {
        let client = far_client(proxies);
        drop(many(&client, guards));
        last(client);
    });
    program.end(Duration::from_secs(60));
}

#[test]
fn a_program_that_ends_with_releases_on_their_way_leaves_no_key() {
    alone(|| {
        let servers = Server::several(3).unwrap();
        let proxies = far(&servers);
        for guards in [1, 500] {
            ends(&proxies, guards, drop);
            thread::sleep(FAR);
            assert_eq!(key_counts(&servers), [0; 3], "of {guards}");
        }
    });
}

/// A node that answers nothing any more costs one node timeout, and one that answers on and on a
/// limit.
#[test]
fn the_drop_of_the_last_handle_has_limits() {
    const DROP_LIMIT: Duration = Duration::from_secs(5);
    let (server, proxy) = Proxy::and_server();
    let dropped = |direction: Option<Direction>| {
        let timeout = Duration::from_millis(500);
        let client = client_within([proxy.url()], timeout);
        // Releases go by the hash of their script from now on.
        assert!(take(&long_lock(&client, "first")).unlock().is_ok());
        let guards: Vec<_> = (0..100)
            .map(|number| take(&long_lock(&client, &format!("d{number}"))))
            .collect();
        match direction {
            Some(direction) => proxy.trickle(direction, Duration::from_millis(50)),
            None => server.pause().unwrap(),
        }
        drop(guards);
        let begun = Instant::now();
        drop(client);
        begun.elapsed()
    };
    let hung = dropped(None);
    server.resume().unwrap();
    assert!(
        hung >= Duration::from_millis(400) && hung < Duration::from_millis(950),
        "{hung:?}"
    );
    // The answers take 20 s.
    let slow = dropped(Some(Direction::ToClient));
    assert!(
        slow >= DROP_LIMIT - FAR && slow < DROP_LIMIT + Duration::from_secs(2),
        "{slow:?}"
    );
}

#[test]
fn a_program_that_exits_without_a_drop_can_wait_for_its_releases() {
    alone(|| {
        let servers = Server::several(3).unwrap();
        let proxies = far(&servers);
        ends(&proxies, 500, |client| {
            client.flush_releases(SOON).unwrap();
            std::process::exit(0);
        });
        assert_eq!(key_counts(&servers), [0; 3]);
    });
}

#[test]
fn a_client_that_is_closed_says_why_a_node_does_not_run_a_release() {
    for (error, cause) in [
        (
            "NOPERM this user has no permissions to run the 'eval' command",
            Cause::NoScripts,
        ),
        ("MOVED 1 127.0.0.1:1", Cause::NotMaster),
        ("ERR something went wrong", Cause::Server(ServerError::Err)),
        ("WHAT is that", Cause::Server(ServerError::Unrecognised)),
    ] {
        let fake = Fake::on_command(move |command| match command[0].as_str() {
            "EVAL" | "EVALSHA" => vec![say(&format!("-{error}\r\n"))],
            _ => vec![Act::Say(healthy(command))],
        });
        let client = client_at([fake.url()], |builder| builder.release_notifications(false));
        drop(take(&long_lock(&client, "k")));
        let failed = client
            .flush_releases(Duration::from_millis(300))
            .expect_err(error);
        let causes: Vec<_> = failed
            .causes()
            .iter()
            .map(quorumlock::NodeFault::cause)
            .collect();
        assert_eq!(
            (failed.kind(), causes),
            (ErrorKind::Unavailable, vec![cause]),
            "{error}"
        );
    }
}

fn far(servers: &[Server]) -> Vec<Proxy> {
    let proxies = Proxy::before_each(servers);
    proxies.iter().for_each(|proxy| proxy.delay(FAR));
    proxies
}

fn far_client(proxies: &[Proxy]) -> Redlock {
    client_within(proxies.iter().map(Proxy::url), Duration::from_secs(2))
}

/// So many locks, on all nodes.
fn many(client: &Redlock, count: usize) -> Vec<MutexGuard> {
    let take_some = |thread: usize| -> Vec<_> {
        let numbers = (0..count).filter(|number| number % 20 == thread);
        let names = numbers.map(|number| format!("m{number:0500}"));
        names
            .map(|name| long_lock(client, &name).lock().unwrap())
            .collect()
    };
    at_once(20, take_some).into_iter().flatten().collect()
}
