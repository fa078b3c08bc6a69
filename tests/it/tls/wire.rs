//! A proxy that keeps what servers answer at first, where the beginning of a handshake shows
//! whether it resumes a session.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What each connection's server has answered so far.
type Answers = Arc<Mutex<Vec<Vec<u8>>>>;

pub(super) struct Recorder {
    port: u16,
    answers: Answers,
}

impl Recorder {
    /// A proxy that leads to this port of 127.0.0.1. Its threads end with their connections, or the
    /// process.
    pub(super) fn before(server: u16) -> Recorder {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let answers = Answers::default();
        let kept = Arc::clone(&answers);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else {
                    continue;
                };
                let index = {
                    let mut kept = kept.lock().unwrap();
                    kept.push(Vec::new());
                    kept.len() - 1
                };
                let from_client = client.try_clone().unwrap();
                let to_server = server.try_clone().unwrap();
                thread::spawn(move || pump(from_client, to_server, |_| {}));
                let kept = Arc::clone(&kept);
                thread::spawn(move || {
                    pump(server, client, |bytes| {
                        kept.lock().unwrap()[index].extend_from_slice(bytes)
                    })
                });
            }
        });
        Recorder { port, answers }
    }

    pub(super) fn url(&self) -> String {
        format!("rediss://127.0.0.1:{}", self.port)
    }

    /// For each connection that was answered, in order: whether it resumed a session.
    pub(super) fn resumed(&self) -> Vec<bool> {
        let answers = self.answers.lock().unwrap();
        answers
            .iter()
            .filter(|answer| !answer.is_empty())
            .map(|answer| is_resumed(answer))
            .collect()
    }
}

/// Whether the server's first flight resumes a session.
fn is_resumed(answer: &[u8]) -> bool {
    let hello = usize::from(answer[3]) << 8 | usize::from(answer[4]);
    assert_eq!((answer[0], answer[5]), (22, 2), "no ServerHello");
    let hello_ends = 5 + hello;
    // TLS 1.3: the extension pre_shared_key with the index 0. TLS 1.2: no Certificate follows, in
    // that record or the next one.
    let has_pre_shared_key = answer[..hello_ends]
        .windows(6)
        .any(|bytes| bytes == [0, 41, 0, 2, 0, 0]);
    let is_1_3 = answer[..hello_ends]
        .windows(6)
        .any(|bytes| bytes == [0, 43, 0, 2, 3, 4]);
    let message = usize::from(answer[7]) << 8 | usize::from(answer[8]);
    let next = match 9 + message < hello_ends {
        true => answer[9 + message],
        false if answer[hello_ends] == 22 => answer[hello_ends + 5],
        false => 0,
    };
    if is_1_3 {
        has_pre_shared_key
    } else {
        next != 11
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, mut see: impl FnMut(&[u8])) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        see(&bytes[..count]);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
