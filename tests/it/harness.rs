//! The harness under test: what the other tests rely on when they blame the library.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::fake::{Act, Event, Fake, say};
use crate::support::process::{self, SocketState};
use crate::support::proxy::{Direction, Proxy};
use crate::support::server::{self, Answer, Server};

/// Long enough for anything that is to happen on a busy machine.
const SOON: Duration = Duration::from_secs(10);
/// Short enough to wait for what must not happen.
const MOMENT: Duration = Duration::from_millis(80);

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\ntoken\r\n";

fn ok() -> Answer {
    Answer::Text("OK".into())
}

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

#[test]
fn a_server_starts_answers_and_leaves_nothing() {
    let server = Server::start().unwrap();
    assert_eq!(server.command(&["SET", "k", "v"]).unwrap(), ok());
    assert_eq!(
        server.command(&["GET", "k"]).unwrap(),
        Answer::Text("v".into())
    );
    assert_eq!(server.command(&["GET", "other"]).unwrap(), Answer::Nil);
    assert_eq!(server.command(&["DEL", "k"]).unwrap(), Answer::Number(1));
    assert!(matches!(
        server.command(&["NO-SUCH"]).unwrap(),
        Answer::Error(_)
    ));
    let keys = server.command(&["CONFIG", "GET", "appendonly"]).unwrap();
    assert_eq!(
        keys,
        Answer::List(vec![
            Answer::Text("appendonly".into()),
            Answer::Text("no".into())
        ])
    );
    assert_eq!(
        server.info("process_id").unwrap(),
        server.pid().unwrap().to_string()
    );
    assert_eq!(server.url(), format!("redis://127.0.0.1:{}", server.port()));

    let pid = server.pid().unwrap();
    let directory = server.directory().to_owned();
    assert!(process::exists(pid) && directory.exists());
    drop(server);
    assert!(!process::exists(pid) && !directory.exists());
}

#[test]
fn every_binary_starts() {
    for binary in server::binaries().unwrap() {
        let server = Server::plan().binary(&binary).start().unwrap();
        assert_eq!(
            server.command(&["PING"]).unwrap(),
            Answer::Text("PONG".into()),
            "{}",
            binary.display()
        );
    }
}

#[test]
fn a_paused_server_accepts_and_says_nothing_until_resumed() {
    let server = Server::start().unwrap();
    server.pause().unwrap();
    let stream = connect(server.port());
    (&stream).write_all(PING).unwrap();
    hear_nothing(&stream);
    assert_eq!(
        server.command(&["PING"]).unwrap_err().kind(),
        io::ErrorKind::TimedOut
    );
    server.resume().unwrap();
    hear(&stream, "+PONG\r\n");
    for _ in 0..20 {
        server.pause().unwrap();
        server.resume().unwrap();
    }
    assert_eq!(
        server.command(&["PING"]).unwrap(),
        Answer::Text("PONG".into())
    );
}

#[test]
fn a_killed_server_is_gone_and_a_restarted_one_is_empty_on_the_same_port() {
    let mut server = Server::start().unwrap();
    server.command(&["SET", "k", "v"]).unwrap();
    let pid = server.pid().unwrap();
    let port = server.port();
    let run_id = server.info("run_id").unwrap();
    server.kill();
    assert_eq!(server.pid(), None);
    assert!(!process::exists(pid));
    assert_eq!(
        server.command(&["PING"]).unwrap_err().kind(),
        io::ErrorKind::ConnectionRefused
    );
    assert!(server.pause().is_err());

    server.restart().unwrap();
    assert_eq!(server.port(), port);
    assert_ne!(server.info("run_id").unwrap(), run_id);
    assert_eq!(server.command(&["GET", "k"]).unwrap(), Answer::Nil);
    // From running to running, and from paused to running.
    server.pause().unwrap();
    server.restart().unwrap();
    assert_eq!(
        server.command(&["PING"]).unwrap(),
        Answer::Text("PONG".into())
    );
}

#[test]
fn a_durable_server_remembers() {
    let mut server = Server::with(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap();
    server.command(&["SET", "k", "v"]).unwrap();
    server.restart().unwrap();
    assert_eq!(
        server.command(&["GET", "k"]).unwrap(),
        Answer::Text("v".into())
    );
}

#[test]
fn a_password_is_asked_for_and_known() {
    let server = Server::with(&["--requirepass", "secret"]).unwrap();
    assert_eq!(
        server.command(&["PING"]).unwrap(),
        Answer::Text("PONG".into())
    );
    let stream = connect(server.port());
    ask(&stream, PING, "-NOAUTH");
}

#[test]
fn a_unix_socket_serves_with_and_without_tcp() {
    let mut server = Server::plan().unix_socket("node.sock").start().unwrap();
    assert_eq!(server.port(), 0);
    assert_eq!(
        server.url(),
        format!("unix://{}/node.sock", server.directory().display())
    );
    assert_eq!(server.command(&["SET", "k", "v"]).unwrap(), ok());
    server.restart().unwrap();
    assert_eq!(server.command(&["GET", "k"]).unwrap(), Answer::Nil);

    let port = server::free_port().unwrap();
    let both = Server::plan()
        .unix_socket("node.sock")
        .port(port)
        .start()
        .unwrap();
    ask(&connect(both.port()), PING, "+PONG\r\n");
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let error = Server::with(&["--no-such-setting", "1"]).unwrap_err();
    assert!(error.to_string().contains("ended with"), "{error}");

    let first = Server::start().unwrap();
    let error = Server::plan().port(first.port()).start().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

#[test]
fn a_missing_binary_is_an_error_that_says_what_to_install() {
    let error = server::choose_binary(None, Some(OsString::from("/nonexistent"))).unwrap_err();
    assert!(
        error.to_string().contains("apt-get install redis-server"),
        "{error}"
    );
    let error =
        server::choose_binary(Some(OsString::from("/nonexistent/server")), None).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/server"), "{error}");
}

#[test]
fn a_server_ends_in_a_panic() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let outcome = thread::spawn(move || {
        let server = Server::start().unwrap();
        sender
            .send((server.pid().unwrap(), server.directory().to_owned()))
            .unwrap();
        std::panic::resume_unwind(Box::new("a test that fails"));
    });
    assert!(outcome.join().is_err());
    let (pid, directory) = receiver.recv().unwrap();
    assert!(!process::exists(pid) && !directory.exists());
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

#[test]
fn a_healthy_fake_answers_and_records() {
    let fake = Fake::healthy();
    let stream = connect(fake.port());
    ask(&stream, &[PING, SET].concat(), "+PONG\r\n+OK\r\n");
    ask(&stream, b"*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n", "$");
    assert!(fake.wait_for("INFO", 1, SOON));
    let names: Vec<String> = fake
        .commands_on(0)
        .iter()
        .map(|command| command[0].clone())
        .collect();
    assert_eq!(names, ["PING", "SET", "INFO"]);
    assert_eq!(fake.commands()[1], ["SET", "k", "token"]);
    assert_eq!((fake.connections(), fake.open()), (1, 1));
    drop(stream);
    assert!(fake.wait_for_open(0, SOON));
    assert!(!fake.wait_for("GET", 1, MOMENT));
}

#[test]
fn a_fake_can_be_slow_to_refuse() {
    let fake = Fake::setting("$-1\r\n", MOMENT);
    let stream = connect(fake.port());
    let start = Instant::now();
    ask(&stream, SET, "$-1\r\n");
    assert!(start.elapsed() >= MOMENT);
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
            ":11111111111111111111111111111111111111111111111111111111111111111",
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
fn a_fake_ends_in_the_middle_of_anything() {
    let start = Instant::now();
    let asked = |fake: &Fake| {
        let stream = connect(fake.port());
        (&stream).write_all(SET).unwrap();
        assert!(fake.wait_for("SET", 1, SOON));
        stream
    };
    let fakes = [
        Fake::flooding(),
        Fake::trickling(),
        Fake::setting("+OK\r\n", SOON * 10),
    ];
    let streams = fakes.each_ref().map(asked);
    drop(fakes);
    drop(streams);
    let fake = Fake::scripted(|connection, event| match event {
        Event::Connected => vec![say(&format!("+{connection}\r\n"))],
        Event::Received(_) => vec![Act::Wait(SOON * 10)],
    });
    hear(&asked(&fake), "+0\r\n");
    hear(&asked(&fake), "+1\r\n");
    drop(fake);
    assert!(start.elapsed() < SOON);
}

#[test]
fn a_proxy_passes_everything_on_and_counts() {
    let server = Server::start().unwrap();
    let proxy = Proxy::before(server.port());
    let stream = connect(proxy.port());
    ask(&stream, PING, "+PONG\r\n");
    assert_eq!((proxy.connections(), proxy.open()), (1, 1));
    let counts = [Direction::ToServer, Direction::ToClient].map(|direction| proxy.bytes(direction));
    assert_eq!(counts, [14, 7]);
    drop(stream);
    assert!(process::eventually(SOON, || proxy.open() == 0));
}

#[test]
fn a_proxy_stalls_each_way() {
    let server = Server::start().unwrap();
    let proxy = Proxy::before(server.port());
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
    let server = Server::start().unwrap();
    let proxy = Proxy::before(server.port());
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
    let server = Server::start().unwrap();
    let proxy = Proxy::before(server.port());
    let stream = connect(proxy.port());
    proxy.cut_after(Direction::ToClient, 10);
    ask(&stream, PING, "+PONG\r\n");
    ask(&stream, PING, "+PO");
    assert_eq!((&stream).read(&mut [0]).unwrap(), 0);
    ask(&connect(proxy.port()), PING, "+PONG\r\n");
}

#[test]
fn a_proxy_trickles_each_way() {
    let server = Server::start().unwrap();
    let proxy = Proxy::before(server.port());
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
    let server = Server::start().unwrap();
    let proxy = Proxy::before(server.port());
    let stream = connect(proxy.port());
    ask(&stream, PING, "+PONG\r\n");
    proxy.lose_all();
    (&stream).write_all(SET).unwrap();
    hear_nothing(&stream);
    assert_eq!(server.command(&["GET", "k"]).unwrap(), Answer::Nil);
    assert_eq!(proxy.open(), 1);
    ask(&connect(proxy.port()), PING, "+PONG\r\n");
}

#[test]
fn a_proxy_ends_while_a_pump_is_stuck() {
    let start = Instant::now();
    let fake = Fake::flooding();
    let proxy = Proxy::before(fake.port());
    let stream = connect(proxy.port());
    ask(&stream, PING, ":111");
    thread::sleep(MOMENT);
    drop(proxy);
    drop(fake);
    assert!(start.elapsed() < SOON);
}

#[test]
fn a_process_knows_its_connections() {
    let servers = Server::several(2).unwrap();
    let ports: Vec<u16> = servers.iter().map(Server::port).collect();
    assert!(process::connections_to(&ports).is_empty());
    let streams: Vec<TcpStream> = ports.iter().map(|&port| connect(port)).collect();
    let found = process::connections_to(&ports);
    assert_eq!(found.len(), 2);
    assert!(
        found
            .iter()
            .all(|socket| socket.state == SocketState::Established)
    );
    assert!(process::descriptors().contains_key(&found[0].descriptor));
    drop(streams);
    assert!(process::connections_to(&ports).is_empty());
}

#[test]
fn a_process_knows_its_threads_and_descriptors_when_alone() {
    process::alone(
        "harness::a_process_knows_its_threads_and_descriptors_when_alone",
        || {
            let before = (process::threads().len(), process::descriptors().len());
            let fake = Fake::healthy();
            let named = || process::threads_named("fake listener").len() == 1;
            assert!(process::eventually(SOON, named), "{:?}", process::threads());
            let stream = connect(fake.port());
            ask(&stream, PING, "+PONG\r\n");
            let during = (process::threads().len(), process::descriptors().len());
            assert_eq!(during, (before.0 + 2, before.1 + 3));
            drop((fake, stream));
            let after = || (process::threads().len(), process::descriptors().len());
            assert!(
                process::eventually(SOON, || after() == before),
                "{:?}",
                process::threads()
            );
        },
    );
}
