//! What an operator reads when locking fails: the whole message, on servers that refuse, hang, or
//! are something else.
//!
//! `src/docs/messages.md` lists every message; a unit test keeps that page true.

use crate::faults::{address, keeps_secrets};
use crate::prelude::*;
use crate::support::fake::Event;

/// That this is the whole message about the only node, also when it is tried again, and that two
/// healthy nodes beside it get by without it.
#[track_caller]
fn alone_it_says(url: &str, words: &str) {
    let address = address(url);
    let client = client_of([url]);
    for _ in 0..3 {
        let error = failure(&long_lock(&client, "orders/42"));
        let expected = format!(
            "cannot lock \"orders/42\": 1 of 1 nodes failed, 1 must answer [{address}: {words}]"
        );
        assert_eq!(error.to_string(), expected);
        keeps_secrets(&[&error]);
    }
    let healthy = Server::several(2).unwrap();
    let among = client_of([&healthy[0].url(), url, &healthy[1].url()]);
    unlock(take(&long_lock(&among, "among")));
}

#[test]
fn logins_that_fail_are_distinguished() {
    let open = Server::start().unwrap();
    let closed = Server::with(&["--requirepass", "right"]).unwrap();
    let required = "the server requires a password, and the URL has none";
    alone_it_says(&closed.url(), required);
    let wrong = "wrong password, or unknown or disabled user";
    let password = format!(":{SECRET}");
    alone_it_says(&with_login(&closed, &password), wrong);
    let unset = "the URL has a password, and the server has none set";
    alone_it_says(&with_login(&open, &password), unset);
    let user = match knows_users(&open) {
        true => wrong,
        false => "the URL has a user, and the server supports passwords only (Redis before 6)",
    };
    alone_it_says(&with_login(&open, &format!("alice:{SECRET}")), user);
}

#[test]
fn what_a_user_may_not_do_is_named() {
    skip_unless!(has_users());
    let server = Server::start().unwrap();
    let allow = |user: &str, rights: &str| user_named(&server, user, rights);
    let denied = allow("reader", "~* +info +get");
    alone_it_says(&denied, "the user may not run SET");
    let other = allow("other", "~theirs:* +@all");
    alone_it_says(&other, "the user may not use this key (SET)");
    let select = format!("{}/1", allow("zero", "~* +@all -select"));
    alone_it_says(&select, "the user may not run SELECT");
    let setter = client_of([allow("setter", "~* +set +info")]);
    let guard = take(&long_lock(&setter, "k"));
    let error = guard.unlock().unwrap_err().to_string();
    let address = server.address();
    let words = "runs no scripts, or none for this user, and a lock needs them";
    assert_eq!(
        error,
        format!(
            "cannot confirm the release of \"k\": 1 of 1 nodes failed, 1 must answer [{address}: {words}]"
        )
    );
}

#[test]
fn a_command_that_was_renamed_is_named() {
    let renamed = |commands: &[&str]| {
        let plan = Server::plan().without(commands);
        plan.start().unwrap()
    };
    let server = renamed(&["SET"]);
    alone_it_says(
        &server.url(),
        "the server does not know SET; it may be renamed or too old",
    );
    let server = renamed(&["DEL"]);
    let error = take(&long_lock(&client_of([server.url()]), "k"))
        .unlock()
        .unwrap_err()
        .to_string();
    let words = "the server does not know EVAL with GET and DEL; it may be renamed or too old";
    assert!(
        error.ends_with(&format!("[{}: {words}]", server.address())),
        "{error}"
    );
    let server = renamed(&["TIME"]);
    let error = client_of([server.url()])
        .mutex("k")
        .fenced()
        .try_lock()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the server does not know ") && error.contains("TIME"),
        "{error}"
    );
}

#[test]
fn servers_that_do_not_serve_say_why() {
    let master = Server::start().unwrap();
    let no_such = format!("{}/99", master.url());
    alone_it_says(&no_such, "no such database on this server");
    alone_it_says(&replica_of(&master).url(), "not a master");
    let cluster = Server::with(&["--cluster-enabled", "yes"]).unwrap();
    alone_it_says(
        &cluster.url(),
        "in cluster mode, and its shard owns 0 of 16384 slots; assign all",
    );
    let full = Server::with(&["--maxmemory", "1", "--maxmemory-policy", "noeviction"]).unwrap();
    alone_it_says(&full.url(), "out of memory (maxmemory)");
    alone_it_says(&dead(), "connection refused");
    let fake = Fake::closing();
    let words = "connection closed in the handshake; perhaps a TLS port, or a proxy that does not know INFO";
    alone_it_says(&fake.url(), words);
}

/// A web server that answers the first connection, and lets the later ones wait.
#[test]
fn silence_does_not_hide_that_it_is_no_redis_server() {
    let fake = Fake::scripted(|connection, event| match event {
        Event::Received(_) if connection == 0 => {
            vec![say("HTTP/1.1 400 Bad Request\r\n\r\n"), Act::Close]
        }
        Event::Received(_) | Event::Connected => Vec::new(),
    });
    let client = client_within([fake.url()], Duration::from_millis(100));
    let words = "not a RESP2 reply in the handshake; perhaps no Redis server, or a TLS port";
    let message = || failure(&client.mutex("k")).to_string();
    assert_soon!(message().contains(words), "{}", message());
    let mut since_the_second_connection = 0;
    assert_soon!({
        let message = message();
        assert!(message.contains(words), "{message}");
        since_the_second_connection += u32::from(fake.connections() > 1);
        since_the_second_connection > 5
    });
}

#[test]
fn a_node_that_hangs_is_named_with_the_limit_and_its_setting() {
    let server = [Server::start().unwrap()];
    let client = client_with(&server, |builder| {
        builder.node_timeout(Duration::from_millis(300))
    });
    let mutex = client.mutex("k");
    assert_soon!(can_take(&mutex));
    server[0].pause().unwrap();
    let expected = format!(
        "cannot lock \"k\": 1 of 1 nodes failed, 1 must answer [{}: no reply within 300 ms (node_timeout)]",
        server[0].address()
    );
    for _ in 0..3 {
        assert_eq!(failure(&mutex).to_string(), expected);
    }
    let status = first_node(&client).to_string();
    assert!(
        status.contains(": down, known for ")
            && status.contains(", no reply within 300 ms (node_timeout)"),
        "{status}"
    );
    // An attempt with less time than that.
    let brief = failure(&client.mutex("k").ttl(Duration::from_millis(50))).to_string();
    assert!(
        brief.contains("no reply within 300 ms (node_timeout)"),
        "the older question counts: {brief}"
    );
}

#[test]
fn nodes_that_did_not_fail_are_named_as_such() {
    let (mut servers, client) = deployment(3);
    assert_soon!(take(&client.mutex("k")).unlock().is_ok() && all_vote(&client));
    servers[..2].iter_mut().for_each(Server::kill);
    let [first, second, third] = [0, 1, 2].map(|index: usize| servers[index].address());
    let expected = format!(
        "cannot lock \"k\": 2 of 3 nodes failed, 2 must answer \
         [{first}: connection refused; {second}: connection refused; {third}: healthy, not asked]"
    );
    let message = || {
        client
            .mutex("k")
            .try_lock()
            .map(drop)
            .map_err(|error| error.to_string())
    };
    assert_soon!(message() == Err(expected.clone()), "{:?}", message());
}
