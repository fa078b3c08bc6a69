//! Real servers that will not serve: each is named by what is wrong with it, and as one of three
//! costs nothing. [`messages`](crate::messages) has those whose whole message is checked.

use crate::prelude::*;

/// Checks that the node at this URL is named with this fault when it is alone, in the first attempt
/// and in later ones, and that two healthy nodes beside it get by without it.
#[track_caller]
pub(crate) fn is_named(url: &str, phase: Phase, cause: Cause) {
    let expected = [(address(url).to_owned(), phase, cause)];
    let check = |mutex: Mutex| {
        let error = failure(&mutex);
        assert_eq!(
            (error.kind(), causes(&error)),
            (ErrorKind::Unavailable, expected.to_vec())
        );
        shows(&error, &expected[0].0);
        keeps_secrets(&[&error, &mutex]);
        mutex
    };
    let limit = NODE_TIMEOUT + SLACK;
    // A node that hangs must be found out in time; any other node must not fail because of a busy
    // machine.
    let client = || {
        if cause == Cause::TimedOut {
            client_within([url], NODE_TIMEOUT)
        } else {
            client_of([url])
        }
    };
    let mutex = promptly_from(
        NODE_TIMEOUT + limit,
        || long_lock(&client(), "alone"),
        check,
    );
    for _ in 0..2 {
        promptly(limit, || check(mutex.clone()));
    }
    let healthy = Server::several(2).unwrap();
    let client = client_of([healthy[0].url(), url.to_owned(), healthy[1].url()]);
    for _ in 0..10 {
        let guard = take(&long_lock(&client, "among"));
        keeps_secrets(&[&guard, &client]);
        unlock(guard);
    }
    gone_for_good(&healthy, "among");
}

/// That no password, and nothing that looks like an owner token, can be seen in any of these.
#[track_caller]
pub(crate) fn keeps_secrets(shown: &[&dyn std::fmt::Debug]) {
    for shown in shown {
        let text = format!("{shown:?}");
        let longest = text
            .split(|letter: char| !letter.is_ascii_hexdigit())
            .map(str::len)
            .max()
            .unwrap_or(0);
        assert!(!text.contains(SECRET) && longest < 40, "{text}");
    }
}

/// What an error calls the node at this URL.
pub(crate) fn address(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

#[test]
fn the_right_password() {
    skip_unless!(has_users());
    let server = Server::with(&["--requirepass", SECRET]).unwrap();
    for login in [format!(":{SECRET}"), format!("default:{SECRET}")] {
        // The first lock waits until the node is noted.
        let builder = Redlock::builder()
            .node(with_login(&server, &login))
            .node_timeout(SOON);
        keeps_secrets(&[&builder]);
        let guard = take(&long_lock(&builder.build().unwrap(), "k"));
        keeps_secrets(&[&guard]);
        unlock(guard);
    }
}

#[test]
fn a_user_that_may_not_ask_for_info() {
    skip_unless!(has_users());
    let server = Server::start().unwrap();
    let client = client_of([user(&server, "~* +set +eval +get +del")]);
    for _ in 0..3 {
        unlock(take(&long_lock(&client, "k")));
    }
    gone_for_good([&server], "k");
}

#[test]
fn a_replica() {
    let master = Server::start().unwrap();
    let replica = replica_of(&master);
    is_named(&replica.url(), Phase::Handshake, Cause::NotMaster);
    // One that takes writes would grant anything.
    ask(&replica, &["CONFIG", "SET", "replica-read-only", "no"]);
    is_named(&replica.url(), Phase::Handshake, Cause::NotMaster);
}

#[test]
fn a_replica_that_became_a_master() {
    let master = Server::start().unwrap();
    let replica = replica_of(&master);
    let max_ttl = Duration::from_millis(500);
    let mutex = client_with([&replica], |builder| builder.ttl(max_ttl).max_ttl(max_ttl))
        .mutex("k")
        .ttl(max_ttl);
    failure(&mutex);
    promote(&replica);
    counts_when_locks_have_ended(&mutex, max_ttl);
}

/// That the only node of this lock, a master since a moment ago, counts when `max_ttl` has passed.
/// It knows what its master had let it know, and no more.
#[track_caller]
pub(crate) fn counts_when_locks_have_ended(mutex: &Mutex, max_ttl: Duration) {
    let promoted = Instant::now();
    assert_soon!(cause(mutex) == Cause::Quarantined);
    assert_soon!(can_take(mutex));
    assert!(promoted.elapsed() >= max_ttl);
}

#[test]
fn a_server_that_is_loading() {
    skip_unless!(has_slow_loading());
    // Half a millisecond and 4 KiB for each key; connections are served after each 2 MiB, eight
    // times until it is done.
    let mut server = Server::with(&["--key-load-delay", "500", "--rdbcompression", "no"]).unwrap();
    let fill =
        "for number = 1, 4000 do redis.call('SET', 'ballast' .. number, string.rep('x', 4096)) end";
    server.command(&["EVAL", fill, "0"]).unwrap();
    server.command(&["SAVE"]).unwrap();
    let url = server.url();
    let address = server.address();
    server.kill();
    thread::scope(|scope| {
        let mutex = long_lock(&client_of([url]), "k");
        let restart = scope.spawn(|| server.restart().unwrap());
        let loading = || {
            let error = failure(&mutex);
            // Until it listens, it refuses.
            causes(&error) == [(address.clone(), Phase::Reply, Cause::Loading)]
        };
        assert_soon!(loading());
        assert!(!restart.is_finished());
        restart.join().unwrap();
        assert_soon!(can_take(&mutex));
    });
}

#[test]
fn a_database_that_is_not_there() {
    let server = Server::start().unwrap();
    is_named(
        &format!("{}/99", server.url()),
        Phase::Handshake,
        Cause::Database,
    );
    // The SET that was on its way behind the SELECT went to the wrong database, and was taken back.
    gone_for_good([&server], "alone");
    gone_for_good([&server], "among");
}

#[test]
fn a_database_that_is_there() {
    let server = Server::start().unwrap();
    let guard = take(&long_lock(&client_of([format!("{}/7", server.url())]), "k"));
    assert_eq!(server.command(&["GET", "k"]).unwrap(), Answer::Nil);
    // The lock, and the note of the node, which stays and does not expire.
    assert!(server.info("db7").unwrap().starts_with("keys=2,expires=1,"));
    unlock(guard);
    assert!(server.info("db7").unwrap().starts_with("keys=1,expires=0,"));
    assert_eq!(server.info("db0").unwrap(), "");
}

#[test]
fn a_server_with_too_many_clients() {
    let server = Server::with(&["--maxclients", "1"]).unwrap();
    let only = TcpStream::connect(server.address()).unwrap();
    is_named(&server.url(), Phase::Handshake, Cause::TooManyClients);
    let mutex = long_lock(&client([&server]), "k");
    failure(&mutex);
    drop(only);
    assert_soon!(can_take(&mutex));
}
