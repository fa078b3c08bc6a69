//! Tests of the embedded node over real sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::*;
use crate::protocol::kinds;
use crate::protocol::resp::{MAX_ARRAY, MAX_BULK, encode};

/// Long enough for anything that is to happen.
const PATIENCE: Duration = Duration::from_secs(10);
/// Long enough to see that nothing happens.
const SILENCE: Duration = Duration::from_millis(60);

fn connect(node: &EmbeddedNode) -> TcpStream {
    let client = TcpStream::connect(node.shared.address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client
}

/// A request that is written as words with spaces between them; a script goes by the name of its
/// constant.
pub(super) fn request(words: &str) -> Vec<u8> {
    let word = |word| match word {
        "PLAIN" => kinds::plain::SCRIPT.text,
        word => word,
    };
    let words: Vec<&[u8]> = words.split(' ').map(|text| word(text).as_bytes()).collect();
    let mut bytes = Vec::new();
    encode(&mut bytes, &words);
    bytes
}

#[track_caller]
fn expect_reply(client: &mut TcpStream, reply: &str) {
    let mut bytes = vec![0; reply.len()];
    client.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), reply);
}

#[track_caller]
fn ask(client: &mut TcpStream, words: &str, reply: &str) {
    client.write_all(&request(words)).unwrap();
    expect_reply(client, reply);
}

/// All that comes until the node closes the connection.
fn read_to_close(client: &mut TcpStream) -> String {
    let mut text = Vec::new();
    match client.read_to_end(&mut text) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    String::from_utf8(text).unwrap()
}

#[track_caller]
fn eventually(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "did not happen");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_lock_is_taken_seen_and_released() {
    let node = EmbeddedNode::start().unwrap();
    assert_eq!(
        node.url(),
        format!("redis://127.0.0.1:{}", node.shared.address.port())
    );
    let mut one = connect(&node);
    let mut two = connect(&node);
    ask(&mut one, "SET orders:42 token NX PX 60000", "+OK\r\n");
    ask(&mut two, "SET orders:42 other NX PX 60000", "$-1\r\n");
    assert_eq!(
        (node.keys(), node.value("orders:42")),
        (vec!["orders:42".to_owned()], Some(b"token".to_vec()))
    );
    ask(&mut one, "EVAL PLAIN 1 orders:42 release token", ":1\r\n");
    assert_eq!((node.keys(), node.value("orders:42")), (vec![], None));
}

#[test]
fn time_passes() {
    let node = EmbeddedNode::start().unwrap();
    ask(&mut connect(&node), "SET k v PX 20", "+OK\r\n");
    eventually(|| node.keys().is_empty());
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let node = EmbeddedNode::start().unwrap();
    let mut client = connect(&node);
    let mut bytes = Vec::new();
    let mut replies = String::new();
    for number in 0..2000 {
        let text = number.to_string();
        bytes.extend(request(&format!("SET {text} {text}")));
        bytes.extend(request(&format!("GET {text}")));
        replies.push_str(&format!("+OK\r\n${}\r\n{text}\r\n", text.len()));
    }
    client.write_all(&bytes).unwrap();
    expect_reply(&mut client, &replies);
}

#[test]
fn requests_may_come_byte_by_byte() {
    let node = EmbeddedNode::start().unwrap();
    let mut client = connect(&node);
    client.set_nodelay(true).unwrap();
    for byte in [
        request("SET k a\r\nb"),
        b"*0\r\n".to_vec(),
        request("GET k"),
    ]
    .concat()
    {
        client.write_all(&[byte]).unwrap();
    }
    expect_reply(&mut client, "+OK\r\n$4\r\na\r\nb\r\n");
}

#[test]
fn a_client_that_does_not_read_loses_nothing() {
    const REPLIES: usize = 64;
    let node = EmbeddedNode::start().unwrap();
    let mut client = connect(&node);
    let value = "x".repeat(MAX_BULK);
    ask(&mut client, &format!("SET k {value}"), "+OK\r\n");
    client.write_all(&request("GET k").repeat(REPLIES)).unwrap();
    // Others are served while it dawdles.
    ask(&mut connect(&node), "PING", "+PONG\r\n");
    thread::sleep(SILENCE);
    let reply = format!("${MAX_BULK}\r\n{value}\r\n");
    for _ in 0..REPLIES {
        let mut bytes = vec![0; reply.len()];
        client.read_exact(&mut bytes).unwrap();
        assert!(bytes == reply.as_bytes());
    }
    ask(&mut client, "PING", "+PONG\r\n");
}

#[test]
fn what_is_not_a_request_ends_the_connection() {
    let too_many = format!("*{}\r\n", MAX_ARRAY + 1);
    let cases = [
        "PING\r\n",
        "$4\r\nPING\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n$-1\r\n",
        "*1\r\n$999999999999\r\n",
        "*1\r\n$4\r\nPINGxx",
        &too_many,
    ];
    let node = EmbeddedNode::start().unwrap();
    for bytes in cases {
        let mut client = connect(&node);
        client
            .write_all(&[&request("PING"), bytes.as_bytes()].concat())
            .unwrap();
        assert_eq!(
            read_to_close(&mut client),
            "+PONG\r\n-ERR Protocol error: expected an array of bulk strings\r\n",
            "{bytes}"
        );
    }
    eventually(|| node.connections() == 0);
}

#[test]
fn connections_are_counted_and_clients_may_vanish() {
    let node = EmbeddedNode::start().unwrap();
    let clients: Vec<TcpStream> = (0..5).map(|_| connect(&node)).collect();
    eventually(|| node.connections() == 5);
    // One in the middle of a request, one with replies that it will never read.
    (&clients[0]).write_all(b"*2\r\n$3\r\nGE").unwrap();
    (&clients[1])
        .write_all(&request("PING").repeat(100))
        .unwrap();
    clients[2].shutdown(Shutdown::Write).unwrap();
    eventually(|| node.connections() == 4);
    drop(clients);
    eventually(|| node.connections() == 0);
    ask(&mut connect(&node), "PING", "+PONG\r\n");
}

#[test]
fn a_hung_node_answers_after_it_resumes() {
    let node = EmbeddedNode::start().unwrap();
    let mut before = connect(&node);
    ask(&mut before, "PING", "+PONG\r\n");
    node.hang();
    let mut during = connect(&node);
    for client in [&mut before, &mut during] {
        client.write_all(&request("PING")).unwrap();
        client.set_read_timeout(Some(SILENCE)).unwrap();
        let error = client.read(&mut [0]).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
            "{error}"
        );
        client.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    assert_eq!(node.connections(), 1);
    node.resume();
    expect_reply(&mut before, "+PONG\r\n");
    expect_reply(&mut during, "+PONG\r\n");
}

#[test]
fn a_killed_node_refuses_and_comes_back_empty_and_renamed() {
    let node = EmbeddedNode::builder().password("secret").start().unwrap();
    let run_id = |client: &mut TcpStream| {
        ask(client, "AUTH secret", "+OK\r\n");
        client.write_all(&request("INFO server")).unwrap();
        let mut bytes = [0; 1024];
        let length = client.read(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        text.lines()
            .find_map(|line| line.strip_prefix("run_id:").map(str::to_owned))
            .unwrap()
    };
    for hung in [false, true] {
        let mut client = connect(&node);
        let first_run = run_id(&mut client);
        assert_eq!(first_run.len(), 40);
        ask(&mut client, "SET k v", "+OK\r\n");
        if hung {
            node.hang();
        }
        node.kill();
        node.kill();
        node.hang();
        node.resume();
        assert_eq!(read_to_close(&mut client), "");
        assert_eq!((node.connections(), node.keys()), (0, vec![]));
        assert_eq!(
            TcpStream::connect(node.shared.address).unwrap_err().kind(),
            ErrorKind::ConnectionRefused
        );
        node.revive().unwrap();
        node.revive().unwrap();
        let mut client = connect(&node);
        assert_ne!(run_id(&mut client), first_run);
        ask(&mut client, "GET k", "$-1\r\n");
    }
}

#[test]
fn conditions_and_flavours_reach_the_wire() {
    let node = EmbeddedNode::builder()
        .kind(ServerKind::Valkey9)
        .without_scripts()
        .start()
        .unwrap();
    let mut client = connect(&node);
    ask(&mut client, "EVAL x 0", "-ERR unknown command 'EVAL'\r\n");
    node.set_condition(Condition::Loading);
    ask(
        &mut client,
        "GET k",
        "-LOADING Valkey is loading the dataset in memory\r\n",
    );
}

#[test]
fn dropping_leaves_nothing_behind() {
    for prepare in [
        |_: &EmbeddedNode| {},
        EmbeddedNode::hang,
        EmbeddedNode::kill,
    ] {
        let node = EmbeddedNode::start().unwrap();
        let address = node.shared.address;
        let client = TcpStream::connect(address).ok();
        prepare(&node);
        let shared = Arc::downgrade(&node.shared);
        drop(node);
        assert!(
            shared.upgrade().is_none(),
            "the thread still holds its state"
        );
        assert!(TcpStream::connect(address).is_err());
        assert_eq!(
            client.map(|mut client| read_to_close(&mut client)),
            Some(String::new())
        );
    }
}

#[test]
fn a_poisoned_store_is_still_of_use() {
    let node = EmbeddedNode::start().unwrap();
    let shared = Arc::clone(&node.shared);
    let panicked = thread::spawn(move || {
        let _guard = shared.store();
        std::panic::resume_unwind(Box::new("on purpose"));
    })
    .join();
    assert!(panicked.is_err() && node.shared.store.is_poisoned());
    ask(&mut connect(&node), "PING", "+PONG\r\n");
    assert!(node.keys().is_empty());
}

#[test]
fn nothing_shows_the_password() {
    let builder = EmbeddedNode::builder().password("hunter2");
    assert!(!format!("{builder:?}").contains("hunter2"));
    let node = builder.start().unwrap();
    assert!(!format!("{node:?} {}", node.url()).contains("hunter2"));
}
