//! The label in the value of a fenced lock: every script accepts it, and each keeps it but for an
//! acquisition.

use crate::clients::{SOON, address_of, client_of, long_lock, ok, take, value};
use crate::support::process::eventually;
use crate::support::server::{Answer, Server};
use crate::support::versions::servers;
use quorumlock::embedded::EmbeddedNode;
use quorumlock::protocol::kinds;
use quorumlock::{ExtendOutcome, ReleaseOutcome};
use std::io::{Read, Write};
use std::net::TcpStream;

const KEY: &str = "quorumlock-fence:k";
/// The script of a version that does not know labels.
const BEFORE: &str = include_str!("fence_before_labels.lua");
const NOW: &str = kinds::fenced::SCRIPT.text;
const TTL: &str = "60000";
const KEPT: &str = "86400000";

/// Runs an operation by this text of the script.
fn run(server: &Server, text: &str, operation: &[&str]) -> Answer {
    let answer = server.command(&words(text, operation)).unwrap();
    assert_ne!(
        answer,
        Answer::Number(-2),
        "{operation:?} takes {:?} for something else",
        value(server, KEY)
    );
    answer
}

/// The words of an operation. The two versions have them in another order.
fn words<'w>(text: &'w str, operation: &[&'w str]) -> Vec<&'w str> {
    let [what, owner, rest @ ..] = operation else {
        panic!("{operation:?}")
    };
    let arguments = match rest {
        _ if text == BEFORE => [&[KEPT], rest].concat(),
        [ttl, least] => vec![ttl, KEPT, least],
        [number] => vec![number, KEPT],
        _ => vec!["", "", KEPT],
    };
    [&["EVAL", text, "1", KEY, what, owner], &arguments[..]].concat()
}

/// What follows the deadline in the value.
fn holder(server: &Server) -> String {
    value(server, KEY)
        .unwrap()
        .splitn(3, ' ')
        .nth(2)
        .unwrap()
        .to_owned()
}

/// Two clients in turn, each with its text of the script and its signature: each sees what the
/// other one holds, and takes over what the other one has left.
fn alternate(server: &Server, sides: [(&str, &str); 2]) {
    for round in 0..4 {
        let [(text, owner), (other_text, other)] = [sides[round % 2], sides[(round + 1) % 2]];
        let acquire = ["acquire", owner, TTL, "1"];
        assert!(
            matches!(run(server, text, &acquire), Answer::Text(_)),
            "{round}"
        );
        assert_eq!(holder(server), owner);
        assert!(matches!(
            run(server, other_text, &["acquire", other, TTL, "1"]),
            Answer::Number(..=-4)
        ));
        assert_eq!(
            run(server, other_text, &["extend", other, TTL]),
            Answer::Number(-1)
        );
        assert_eq!(
            run(server, other_text, &["raise", other, "9"]),
            Answer::Number(-1)
        );
        assert!(matches!(
            run(server, other_text, &["release", other]),
            Answer::Number(-1 | 0)
        ));
        assert_eq!(
            run(server, text, &["extend", owner, TTL]),
            Answer::Number(1)
        );
        assert_eq!(run(server, text, &["raise", owner, "9"]), Answer::Number(1));
        assert_eq!(holder(server), owner, "kept");
        assert_eq!(run(server, text, &["release", owner]), Answer::Number(1));
        assert_eq!(holder(server), owner[40..], "the token is gone");
    }
}

#[test]
fn scripts_with_and_without_labels_share_a_lock() {
    let [first, second] = ["1", "2"].map(|digit| digit.repeat(40));
    let labelled = format!("{first} billing@host7/4711");
    for server in servers() {
        alternate(&server, [(BEFORE, &first), (NOW, &second)]);
        alternate(&server, [(NOW, &labelled), (NOW, &second)]);
        alternate(
            &server,
            [
                (NOW, &labelled),
                (NOW, &format!("{second} {}", "~".repeat(64))),
            ],
        );
    }
}

#[test]
fn a_client_without_a_label_takes_extends_and_releases_what_has_one() {
    // Held by a token with a label that this client does not know, free with one, and held by the
    // lease of its own.
    for server in servers() {
        let mutex = long_lock(&client_of([server.url()]), "k").fenced();
        ok(&server, &["SET", KEY, "5 0  host7"]);
        let guard = take(&mutex);
        assert_eq!(
            holder(&server).len(),
            40,
            "no holder has the label of another one"
        );
        let own = value(&server, KEY).unwrap();
        ok(&server, &["SET", KEY, &format!("{own} host7")]);
        assert_eq!(
            guard.extend(crate::clients::LONG_TTL).unwrap(),
            ExtendOutcome::Extended
        );
        assert!(holder(&server).ends_with(" host7"), "kept");
        assert!(mutex.try_lock().unwrap().is_none());
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
        assert_eq!(holder(&server), " host7");
        assert_eq!(take(&mutex).unlock().unwrap(), ReleaseOutcome::Released);
        assert!(eventually(SOON, || holder(&server).is_empty()));
    }
}

#[test]
fn the_embedded_node_writes_the_values_that_servers_write() {
    let server = Server::start().unwrap();
    let node = EmbeddedNode::start().unwrap();
    let mut embedded = TcpStream::connect(address_of(&node)).unwrap();
    let mut ask = |words: &[&str]| {
        let mut request = format!("*{}\r\n", words.len());
        words
            .iter()
            .for_each(|word| request.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        embedded.write_all(request.as_bytes()).unwrap();
        let mut reply = [0; 512];
        let length = embedded.read(&mut reply).unwrap();
        String::from_utf8(reply[..length].to_vec()).unwrap()
    };
    let [ours, theirs] = ["1", "2"].map(|digit| digit.repeat(40));
    let labelled = format!("{ours} host7");
    for operation in [
        ["acquire", &labelled, TTL, "1"].as_slice(),
        &["acquire", &theirs, TTL, "1"],
        &["extend", &ours, TTL],
        &["raise", &ours, "9"],
        &["release", &labelled],
        &["acquire", &theirs, TTL, "1"],
        &["release", &theirs],
    ] {
        run(&server, NOW, operation);
        ask(&words(NOW, operation));
        let stored = ask(&["GET", KEY]);
        let stored = stored.split("\r\n").nth(1).unwrap();
        assert_eq!(
            stored.splitn(3, ' ').nth(2).unwrap(),
            holder(&server),
            "{operation:?}"
        );
    }
}
