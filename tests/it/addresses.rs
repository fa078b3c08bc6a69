//! Addresses that lead astray: two to one server, which then still has one vote, and a name that
//! leads nowhere.

use crate::prelude::*;

/// The same server as `localhost`.
fn by_name(server: &Server) -> String {
    format!("redis://localhost:{}", server.port())
}

#[test]
fn one_server_has_one_vote_under_two_names() {
    let server = Server::start().unwrap();
    let named = format!("localhost:{}", server.port());
    for urls in [
        [server.url(), by_name(&server)],
        [by_name(&server), server.url()],
    ] {
        let addresses = urls.each_ref().map(|url| url.replace("redis://", ""));
        assert!(addresses.contains(&named));
        let mutex = long_lock(&client_of(urls), "k");
        // Either is the duplicate of the other: the one whose handshake was first has the vote.
        let duplicates = [0, 1].map(|index| {
            (
                addresses[index].clone(),
                Phase::Handshake,
                Cause::Duplicate(1 - index),
            )
        });
        let told = || {
            let attempt = mutex.try_lock();
            assert!(!matches!(attempt, Ok(Some(_))), "one server gave two votes");
            attempt.is_err_and(|error| {
                causes(&error)
                    .iter()
                    .any(|cause| duplicates.contains(cause))
            })
        };
        assert_soon!(told());
        assert_soon!(value(&server, "k").is_none());
    }
}

#[test]
fn two_databases_of_one_server_have_one_vote_whichever_answers_first() {
    let server = Server::start().unwrap();
    for stalled in [0, 1] {
        let proxies = [0, 1].map(|_| Proxy::before(server.port()));
        let urls = [proxies[0].url(), format!("{}/1", proxies[1].url()), dead()];
        let client = client_within(urls, NODE_TIMEOUT * 10);
        proxies[stalled].stall(Direction::ToClient);
        std::thread::scope(|scope| {
            let attempt = scope.spawn(|| long_lock(&client, "k").try_lock());
            // The other one has replied everything by now.
            assert_soon!(proxies[1 - stalled].bytes(Direction::ToClient) > 0);
            std::thread::sleep(Duration::from_millis(50));
            proxies[stalled].flow(Direction::ToClient);
            let attempt = attempt.join().unwrap();
            assert!(
                !matches!(attempt, Ok(Some(_))),
                "one server was a majority of three: {attempt:?}"
            );
        });
    }
}

/// A name that leads to another server, as after a fail-over; while the server before is still
/// there, and when the resolver hangs or fails.
#[test]
fn a_name_is_looked_up_again_for_each_connection() {
    const VARIABLE: &str = "QUORUMLOCK_TEST_RESOLVER";
    let file = std::env::var_os(VARIABLE).map_or_else(
        || Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("names.{}", std::process::id())),
        PathBuf::from,
    );
    let library = preload::library("addresses/resolver.c");
    let variables = [(preload::VARIABLE, &*library), (VARIABLE, &*file)];
    alone_with(&variables, || {
        let leads_to = |answer: &str| fs::write(&file, answer).unwrap();
        let [old, new] = [(); 2].map(|()| Server::start().unwrap());
        let port = old.port();
        // The new server has the same port at another address.
        let listener = TcpListener::bind(("127.0.0.2", port)).unwrap();
        let target = new.address();
        thread::spawn(move || {
            listener
                .incoming()
                .for_each(|stream| pass_on(stream, &target))
        });
        leads_to("127.0.0.1");
        let redlock = Redlock::builder()
            .node(format!("redis://node.test:{port}"))
            .node_timeout(Duration::from_millis(500))
            // The new server does not vote for so long.
            .max_ttl(Duration::from_millis(300))
            .build()
            .unwrap();
        let mutex = redlock.mutex("k");
        let is_on = |server: &Server| {
            let Ok(Some(guard)) = mutex.try_lock() else {
                return false;
            };
            let is_here = value(server, "k").is_some();
            drop(guard);
            is_here
        };
        assert_soon!(is_on(&old));
        leads_to("127.0.0.2");
        assert!(is_on(&old), "an open connection stays");
        cut(&old);
        assert_soon!(is_on(&new));
        assert!(!is_on(&old));
        for answer in ["fail", "hang"] {
            leads_to(answer);
            cut(&new);
            assert_soon!(is_on(&new), "{answer}");
        }
        fs::remove_file(&file).unwrap();
    });
}

/// Lets bytes flow between a connection and a server.
fn pass_on(stream: io::Result<TcpStream>, target: &str) {
    let client = stream.unwrap();
    let server = TcpStream::connect(target).unwrap();
    for (mut from, mut to) in [
        (client.try_clone().unwrap(), server.try_clone().unwrap()),
        (server, client),
    ] {
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
}

#[test]
fn a_name_that_leads_nowhere_delays_no_call() {
    let server = Server::start().unwrap();
    let unknown = || "redis://no-such-host.invalid:6379".to_owned();
    let client = client_within([unknown()], NODE_TIMEOUT);
    let mut last = None;
    let told = || {
        // The look-up is a part of connecting.
        let error = promptly(NODE_TIMEOUT * 2 + SLACK, || {
            failure(&long_lock(&client, "k"))
        });
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let [(address, phase, cause)] = &causes(&error)[..] else {
            panic!("{error}")
        };
        assert_eq!(
            (address.as_str(), *phase),
            ("no-such-host.invalid:6379", Phase::Resolve)
        );
        assert!(
            [Cause::UnknownHost, Cause::TimedOut].contains(cause),
            "{error}"
        );
        last = Some(*cause);
        *cause == Cause::UnknownHost
    };
    // A resolver may take its time to refuse, but this test does not wait for it.
    assert!(eventually(SOON, told) || last == Some(Cause::TimedOut));

    let servers = [Server::start().unwrap(), server];
    let mutex = long_lock(
        &client_of([servers[0].url(), unknown(), servers[1].url()]),
        "k",
    );
    for _ in 0..20 {
        assert_eq!(
            promptly(NODE_TIMEOUT, || take(&mutex).unlock().unwrap()),
            ReleaseOutcome::Released
        );
    }
}

/// A name leads to two addresses, and the servers listen on the second one alone, as where
/// `localhost` is `::1` first.
#[test]
fn all_addresses_of_a_name_are_tried_in_one_attempt() {
    const NAME: &str = "two-addresses.test";
    let library = preload::library("addresses/names.c");
    let variables = [
        (preload::VARIABLE, &*library),
        ("QUORUMLOCK_TEST_NAME", Path::new(NAME)),
        (
            "QUORUMLOCK_TEST_ADDRESSES",
            Path::new("127.0.0.2,127.0.0.1"),
        ),
    ];
    alone_with(&variables, || {
        let servers = Server::several(3).unwrap();
        let urls = || {
            servers
                .iter()
                .map(|server| format!("redis://{NAME}:{}", server.port()))
        };
        for _ in 0..4 {
            let mutex = long_lock(&client_of(urls()), "k");
            unlock(take(&mutex));
        }
        // All of them refuse.
        drop(servers);
        let client = client_within(
            [format!("redis://{NAME}:{}", free_port().unwrap())],
            NODE_TIMEOUT,
        );
        for _ in 0..3 {
            assert_eq!(cause(&long_lock(&client, "k")), Cause::Refused);
        }
    });
}
