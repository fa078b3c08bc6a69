//! The harness under test: disturbed wires, servers that misbehave, and what a killed program
//! leaves. All else of it is used by every other test.

use crate::prelude::*;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;

use crate::support::process;

/// Long enough for anything that is to happen on a busy machine.
const SOON: Duration = Duration::from_secs(10);
/// Short enough to wait for what must not happen.
const MOMENT: Duration = Duration::from_millis(80);

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\ntoken\r\n";

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}

/// Sends a request and reads as many bytes as the expected answer has.
fn ask(mut stream: &TcpStream, request: &[u8], answer: &str) {
    stream.write_all(request).unwrap();
    hear(stream, answer);
}

fn hear(mut stream: &TcpStream, answer: &str) {
    let mut bytes = vec![0; answer.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), answer);
}

/// That nothing arrives now.
fn hear_nothing(mut stream: &TcpStream) {
    stream.set_read_timeout(Some(MOMENT)).unwrap();
    let error = stream.read(&mut [0]).expect_err("nothing is to be read");
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    stream.set_read_timeout(Some(SOON)).unwrap();
}

/// Not a test of its own: the program that the next test starts and kills.
#[test]
fn helper_that_waits_to_be_killed() {
    let Some(report) = std::env::var_os("QUORUMLOCK_TEST_REPORT") else {
        return;
    };
    let server = Server::start().unwrap();
    server.pause().unwrap();
    let text = format!(
        "{}\n{}\n",
        server.pid().unwrap(),
        server.directory().display()
    );
    let draft = server.directory().join("draft");
    fs::write(&draft, text).unwrap();
    fs::rename(draft, report).unwrap();
    thread::sleep(SOON);
}

#[test]
fn a_server_ends_even_when_its_program_is_killed() {
    let scratch = Server::start().unwrap();
    let report = scratch.directory().join("report");
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args(["harness::helper_that_waits_to_be_killed", "--exact"])
        .env("QUORUMLOCK_TEST_REPORT", &report)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let reported = process::eventually(SOON, || report.exists());
    program.kill().unwrap();
    assert_eq!(program.wait().unwrap().signal(), Some(9));
    assert!(reported);
    let text = fs::read_to_string(report).unwrap();
    let (pid, directory) = text.trim_end().split_once('\n').unwrap();
    let pid: u32 = pid.parse().unwrap();
    // The process that inherits orphans here may be slow to collect them: a zombie serves no
    // client.
    let gone = || {
        fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
    };
    assert!(process::eventually(SOON, gone), "{pid} is still there");
    assert!(
        process::eventually(SOON, || !fs::exists(directory).unwrap()),
        "{directory} is still there"
    );
}

/// Otherwise the server of a test that comes to it later cannot be started now and then.
#[test]
#[cfg(target_os = "linux")]
fn a_free_port_is_none_that_a_connection_gets() {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let first: u16 = range.split_whitespace().next().unwrap().parse().unwrap();
    if first < 32_768 {
        // This system was told to give other ports to connections than Linux does.
        return;
    }
    for _ in 0..100 {
        let port = free_port().unwrap();
        assert!(port < first && port + 10_000 < first, "{port}, {range}");
    }
}

#[test]
fn fakes_misbehave_as_their_names_say() {
    for (fake, answer) in [
        (
            Fake::echoing(),
            "-ERR what do you mean by 'SET' 'k' 'token'?\r\n",
        ),
        (
            Fake::flooding(),
            "+11111111111111111111111111111111111111111111111111111111111111111",
        ),
        (Fake::http(), "HTTP/1.1 400 Bad Request\r\n"),
        (Fake::resp3(), "%1\r\n+state\r\n"),
        (Fake::talkative(), "+OK\r\n+OK\r\n"),
    ] {
        ask(&connect(fake.port()), SET, answer);
    }
    let fake = Fake::closing();
    assert_eq!(connect(fake.port()).read(&mut [0]).unwrap(), 0);
    let fake = Fake::silent();
    let stream = connect(fake.port());
    (&stream).write_all(SET).unwrap();
    hear_nothing(&stream);
}

#[test]
fn a_late_fake_answers_after_the_next_request() {
    let fake = Fake::late();
    let stream = connect(fake.port());
    let other = connect(fake.port());
    (&stream).write_all(SET).unwrap();
    hear_nothing(&stream);
    ask(&other, PING, "+PONG\r\n");
    ask(&stream, PING, "+OK\r\n+PONG\r\n");
}

#[test]
fn a_proxy_stalls_each_way() {
    let (server, proxy) = Proxy::and_server();
    for direction in [Direction::ToServer, Direction::ToClient] {
        let stream = connect(proxy.port());
        proxy.stall(direction);
        (&stream).write_all(SET).unwrap();
        hear_nothing(&stream);
        let expected = if direction == Direction::ToServer {
            Answer::Nil
        } else {
            Answer::Text("token".into())
        };
        assert_eq!(server.command(&["GET", "k"]).unwrap(), expected);
        proxy.flow(direction);
        hear(&stream, "+OK\r\n");
        server.command(&["DEL", "k"]).unwrap();
    }
}

#[test]
fn a_proxy_resets_both_sides() {
    let (server, proxy) = Proxy::and_server();
    let mut streams = [connect(proxy.port()), connect(proxy.port())];
    for stream in &streams {
        ask(stream, PING, "+PONG\r\n");
    }
    proxy.stall(Direction::ToClient);
    (&streams[0]).write_all(PING).unwrap();
    proxy.reset_all();
    for stream in &mut streams {
        assert_eq!(
            stream.read(&mut [0]).unwrap_err().kind(),
            io::ErrorKind::ConnectionReset
        );
    }
    assert_eq!(proxy.open(), 0);
    // The one client that the server still has is the one that asks.
    let alone = || server.info("connected_clients").unwrap() == "1";
    assert!(process::eventually(SOON, alone));
    proxy.flow(Direction::ToClient);
    ask(&connect(proxy.port()), PING, "+PONG\r\n");
}

#[test]
fn a_proxy_cuts_in_the_middle_of_a_reply() {
    let (_server, proxy) = Proxy::and_server();
    let stream = connect(proxy.port());
    proxy.cut_after(Direction::ToClient, 10);
    ask(&stream, PING, "+PONG\r\n");
    ask(&stream, PING, "+PO");
    assert_eq!((&stream).read(&mut [0]).unwrap(), 0);
    ask(&connect(proxy.port()), PING, "+PONG\r\n");
}

#[test]
fn a_proxy_trickles_each_way() {
    let (_server, proxy) = Proxy::and_server();
    for direction in [Direction::ToServer, Direction::ToClient] {
        let stream = connect(proxy.port());
        proxy.trickle(direction, MOMENT);
        let start = Instant::now();
        ask(&stream, PING, "+PONG\r\n");
        assert!(start.elapsed() >= MOMENT * 7, "7 bytes at least");
        proxy.flow(direction);
        ask(&stream, PING, "+PONG\r\n");
    }
}

#[test]
fn a_proxy_leaves_connections_half_open() {
    let (server, proxy) = Proxy::and_server();
    let stream = connect(proxy.port());
    ask(&stream, PING, "+PONG\r\n");
    proxy.lose_all();
    (&stream).write_all(SET).unwrap();
    hear_nothing(&stream);
    assert_eq!(server.command(&["GET", "k"]).unwrap(), Answer::Nil);
    assert_eq!(proxy.open(), 1);
    ask(&connect(proxy.port()), PING, "+PONG\r\n");
}
