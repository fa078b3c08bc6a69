//! Nodes that are no servers, or hostile ones: errors name what they do. The library never trusts
//! their answers, never waits longer for them, and never repeats what they sent.

use crate::faults::{is_named, keeps_secrets};
use crate::prelude::*;
use crate::support::fake::Event;

#[test]
fn a_web_server() {
    is_named(&Fake::http().url(), Phase::Handshake, Cause::Protocol);
}

#[test]
fn a_node_that_closes_every_connection() {
    is_named(&Fake::closing().url(), Phase::Handshake, Cause::Closed);
}

#[test]
fn a_node_that_says_nothing() {
    is_named(&Fake::silent().url(), Phase::Handshake, Cause::TimedOut);
}

#[test]
fn a_node_that_says_a_byte_a_second() {
    let fake = Fake::trickling();
    is_named(&fake.url(), Phase::Handshake, Cause::TimedOut);
}

/// Each byte comes in time, and the reply does not.
#[cfg(feature = "cli")]
#[test]
fn a_reply_that_comes_byte_by_byte_keeps_no_connection_that_blocks() {
    let reply = bulk(&"x".repeat(500)).into_bytes();
    let trickle = Act::Trickle(reply, Duration::from_millis(10));
    let fake = Fake::healthy_but("GET", vec![trickle]);
    let builder = Redlock::builder().node(fake.url());
    let error = promptly(NODE_TIMEOUT * 2 + SLACK, || {
        builder.open(0, NODE_TIMEOUT).unwrap_err()
    });
    let address = fake.url().replace("redis://", "");
    has_cause(&error, &address, Phase::Reply, Cause::TimedOut);
}

#[test]
fn a_node_that_speaks_resp3() {
    let fake = Fake::resp3();
    let mutex = long_lock(&client_of([fake.url()]), "k");
    let error = failure(&mutex);
    let [(_, phase, cause)] = causes(&error)[..] else {
        panic!("{error}")
    };
    // All of the handshake's answers and the strange one may come at once.
    assert!(
        [Phase::Handshake, Phase::Reply].contains(&phase) && cause == Cause::Protocol,
        "{error}"
    );
    shows(&error, "not a RESP2 reply");
    among_three(&fake.url());
}

#[test]
fn a_node_that_answers_set_with_something_else() {
    for answer in [
        "+QUEUED\r\n",
        "+ok\r\n",
        "$2\r\nOK\r\n",
        ":1\r\n",
        "*-1\r\n",
        "*0\r\n",
        "+OK \r\n",
        "+\r\n",
    ] {
        let fake = Fake::healthy_but("SET", vec![say(answer)]);
        let error = failure(&long_lock(&client_of([fake.url()]), "k"));
        assert_eq!(causes(&error)[0].2, Cause::Protocol, "{answer:?}: {error}");
        shows(&error, "unexpected type of reply");
        among_three(&fake.url());
    }
}

#[test]
fn a_line_that_never_ends_takes_neither_time_nor_memory() {
    alone(|| {
        let fake = Fake::flooding();
        let client = client_of([fake.url()]);
        let mutex = long_lock(&client, "k");
        // The fake's own threads and buffers are there before the measurement.
        failure(&mutex);
        let before = resident_kilobytes();
        for _ in 0..20 {
            let error = promptly(NODE_TIMEOUT + SLACK, || failure(&mutex));
            let address = fake.url().replace("redis://", "");
            has_cause(&error, &address, Phase::Handshake, Cause::Protocol);
            shows(&error, "line too long");
            thread::sleep(Duration::from_millis(20));
        }
        assert!(fake.connections() > 2, "it was asked again");
        let grown = resident_kilobytes().saturating_sub(before);
        assert!(grown < 2048, "{grown} kB more");
    });
    among_three(&Fake::flooding().url());
}

/// It would keep a thread reading at full speed, and the end of a client waiting.
#[test]
fn a_value_that_is_longer_than_servers_store_ends_its_connection() {
    let flood = Act::Flood(b"$536870913\r\n", b"1111111111111111");
    let fake = Fake::healthy_but("GET", vec![flood]);
    is_named(&fake.url(), Phase::Handshake, Cause::Protocol);
    let healthy = Server::several(2).unwrap();
    let used = || {
        let client = client_of([fake.url(), healthy[0].url(), healthy[1].url()]);
        drop(take(&long_lock(&client, "k")));
        client
    };
    promptly_from(Duration::from_secs(1), used, drop);
}

/// To every program that stores its `max_ttl`, it replies that another one was quicker, with a
/// shorter one.
#[test]
fn a_node_that_changes_what_it_remembers_with_each_note_takes_no_votes_from_the_others() {
    let names = "a".repeat(40);
    let mut max_ttl = 1000;
    let fake = Fake::on_command(move |command| {
        let is_note = command[0] == "GET"
            || command[0] == "EVAL" && command.iter().any(|word| word.contains("-node:"));
        let reply = match command[0].as_str() {
            "INFO" => bulk(&format!(
                "role:master\r\nrun_id:{names}\r\nmaster_replid:{names}\r\nmaster_replid2:{names}\r\n"
            )),
            "TIME" => "*2\r\n$10\r\n1700000600\r\n$1\r\n0\r\n".to_owned(),
            _ if is_note => {
                max_ttl += 1;
                bulk(&format!(
                    "1 f 1700000000000000 1700000000000000 {max_ttl} 3 {names} {names} {names}"
                ))
            }
            _ => return vec![Act::Say(healthy(command))],
        };
        vec![say(&reply)]
    });
    let healthy = Server::several(2).unwrap();
    drop(take(&long_lock(&client(&healthy), "founds")));
    let client = client_of([fake.url(), healthy[0].url(), healthy[1].url()]);
    for _ in 0..10 {
        drop(take(&long_lock(&client, "among")));
    }
}

#[test]
fn a_talkative_node_is_given_up() {
    let fake = Fake::talkative();
    let client = client_of([fake.url()]);
    let mut unrequested_count = 0;
    for _ in 0..20 {
        let error = match long_lock(&client, "k").try_lock() {
            Ok(None) => panic!("there is no other client"),
            Ok(Some(guard)) => guard.unlock().err(),
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            assert_eq!(causes(&error)[0].2, Cause::Protocol, "{error}");
            let is_unrequested = error.to_string().contains("a reply without a request");
            assert!(
                is_unrequested || error.to_string().contains("unexpected type of reply"),
                "{error}"
            );
            unrequested_count += usize::from(is_unrequested);
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert!(
        unrequested_count > 0 && fake.connections() > 1,
        "it was never found out"
    );
    among_three(&fake.url());
}

/// A connection that is merely closed leaves the node with its half of it.
#[test]
fn a_connection_that_is_given_up_is_reset() {
    let table = [
        ("%1\r\n", "not a RESP2 reply"),
        (":1\r\n", "unexpected type of reply"),
    ];
    for (answer, expected) in table {
        // The connection sends nothing after that answer: bytes that are not read would make any
        // close a reset.
        let mut is_strange = false;
        let fake = Fake::scripted(move |connection, event| match event {
            Event::Received(_) if connection == 0 && is_strange => Vec::new(),
            Event::Received(command) if connection == 0 && command[0] == "SET" => {
                is_strange = true;
                vec![say(answer)]
            }
            Event::Received(command) => vec![Act::Say(healthy(command))],
            Event::Connected => Vec::new(),
        });
        let client = client_at([fake.url()], |builder| {
            builder.node_timeout(SOON).release_notifications(false)
        });
        let error = failure(&long_lock(&client, "k"));
        assert_eq!(causes(&error)[0].2, Cause::Protocol, "{answer:?}: {error}");
        assert!(error.to_string().contains(expected), "{answer:?}: {error}");
        assert!(
            fake.commands_on(0)
                .iter()
                .any(|command| command[0] == "SET"),
            "{answer:?}"
        );
        assert_eq!(
            fake.wait_for_end(0, SOON),
            Some(io::ErrorKind::ConnectionReset),
            "{answer:?}"
        );
    }
}

#[test]
fn errors_that_repeat_what_they_were_sent_are_not_repeated() {
    let fake = Fake::echoing();
    is_named(
        &format!("redis://:hunter2@127.0.0.1:{}", fake.port()),
        Phase::Handshake,
        Cause::Auth,
    );
    is_named(
        &fake.url(),
        Phase::Handshake,
        Cause::Server(ServerError::Err),
    );
    // Behind a handshake that went well, the owner token is what is repeated.
    let fake = Fake::on_command(|command| match command[0].as_str() {
        "SET" | "EVAL" => vec![say(&format!("-{} is no good\r\n", command.join(" ")))],
        _ => vec![Act::Say(healthy(command))],
    });
    let client = client_of([format!("redis://me:hunter2@127.0.0.1:{}", fake.port())]);
    let error = failure(&long_lock(&client, "k"));
    keeps_secrets(&[&error, &client]);
    assert_eq!(
        causes(&error)[0].2,
        Cause::Server(ServerError::Unrecognised)
    );
}

/// Two healthy nodes do without the one at this URL.
#[track_caller]
fn among_three(url: &str) {
    let healthy = Server::several(2).unwrap();
    let client = client_of([url.to_owned(), healthy[0].url(), healthy[1].url()]);
    for _ in 0..10 {
        unlock(take(&long_lock(&client, "among")));
    }
    let gone = || healthy.all(|server| crate::clients::value(server, "among").is_none());
    assert_soon!(gone());
}

fn resident_kilobytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
