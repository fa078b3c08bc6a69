//! A fake node on loopback that answers what its script returns, when its script requires it.
//!
//! A script gets what happens on a connection ([`Event`]) and returns what to do about it (a list
//! of [`Act`]s). One thread per connection reads a command, asks the script, does the acts, and
//! only then reads on: like a real server, a fake that takes its time over one command keeps those
//! behind it waiting. Scripts for the usual misdeeds have names: [`Fake::http`],
//! [`Fake::flooding`], and so on. [`healthy`] is what a well-behaved, empty master would reply, for
//! scripts that misbehave at one command only.
//!
//! Every command is recorded with the connection that it came on. Dropping the fake closes its
//! connections and joins its threads, whatever they are doing.

use super::listener::{Listener, bind, lock, spawn};
use crate::prelude::*;
use std::io::{BufRead, Read, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The words of one command, as text.
pub(crate) type Command = Vec<String>;

/// What happens on a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event<'a> {
    /// It was accepted; nothing has been read yet.
    Connected,
    /// A whole command arrived.
    Received(&'a Command),
}

/// What a script can do about it.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Closes the connection; the acts after it are not done.
    Close,
    /// Sends the first bytes, then the second ones over and over, as fast as they are taken.
    Flood(&'static [u8], &'static [u8]),
    /// Sends the bytes.
    Say(Vec<u8>),
    /// Sends the bytes one by one with this pause before each.
    Trickle(Vec<u8>, Duration),
    /// Does nothing for so long.
    Wait(Duration),
}

/// Sends this text: `say("+OK\r\n")`.
pub(crate) fn say(text: &str) -> Act {
    Act::Say(text.as_bytes().to_vec())
}

/// The text as one string of a reply.
pub(crate) fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// A listening fake.
pub(crate) struct Fake {
    shared: Arc<Shared>,
    listener: Listener,
}

impl Fake {
    /// Behaves as the script requires. `connection` counts from 0 in the order of accepting.
    pub(crate) fn scripted(
        script: impl FnMut(usize, Event<'_>) -> Vec<Act> + Send + 'static,
    ) -> Fake {
        let shared = Arc::new(Shared {
            changed: Condvar::new(),
            script: Mutex::new(Box::new(script)),
            state: Mutex::new(State::default()),
        });
        let accepting = Arc::clone(&shared);
        let accept = move |listener: &TcpListener| accept(listener, &accepting);
        let listener = Listener::accepting("fake listener", bind(), accept);
        Fake { shared, listener }
    }

    /// A well-behaved, empty master: every SET succeeds.
    pub(crate) fn healthy() -> Fake {
        Fake::on_command(|command| vec![Act::Say(healthy(command))])
    }

    /// Well-behaved, except that this command (`"SET"`, in any case) gets these acts in place of
    /// its answer.
    pub(crate) fn healthy_but(name: &'static str, acts: Vec<Act>) -> Fake {
        Fake::on_command(move |command| match is(command, name) {
            true => acts.clone(),
            false => vec![Act::Say(healthy(command))],
        })
    }

    /// Accepts and never sends anything.
    pub(crate) fn silent() -> Fake {
        Fake::on_command(|_| Vec::new())
    }

    /// Accepts and closes.
    pub(crate) fn closing() -> Fake {
        Fake::scripted(|_, event| match event {
            Event::Connected => vec![Act::Close],
            Event::Received(_) => Vec::new(),
        })
    }

    /// Answers the first command with a line that never ends.
    pub(crate) fn flooding() -> Fake {
        Fake::on_command(|_| vec![Act::Flood(b"+", b"1111111111111111")])
    }

    /// Sends the right answers at one byte a second.
    pub(crate) fn trickling() -> Fake {
        Fake::on_command(|command| vec![Act::Trickle(healthy(command), Duration::from_secs(1))])
    }

    /// A web server that was taken for a node.
    pub(crate) fn http() -> Fake {
        let page = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        Fake::on_command(move |_| vec![say(page), Act::Close])
    }

    /// Sends every right answer, and after the answer to a SET another `+OK` that no request asked
    /// for.
    pub(crate) fn talkative() -> Fake {
        Fake::on_command(|command| {
            let mut acts = vec![Act::Say(healthy(command))];
            if is(command, "SET") {
                acts.push(say("+OK\r\n"));
            }
            acts
        })
    }

    /// Answers a SET with the types that only RESP3 has.
    pub(crate) fn resp3() -> Fake {
        Fake::healthy_but("SET", vec![say("%1\r\n+state\r\n#t\r\n_\r\n")])
    }

    /// Refuses everything with an error that repeats what it was sent, passwords and tokens
    /// included.
    pub(crate) fn echoing() -> Fake {
        Fake::on_command(|command| {
            vec![say(&format!(
                "-ERR what do you mean by '{}'?\r\n",
                command.join("' '")
            ))]
        })
    }

    /// Answers a SET only when the next command on its connection has arrived, and that one right
    /// after it.
    pub(crate) fn late() -> Fake {
        let mut owed: Vec<(usize, Vec<u8>)> = Vec::new();
        Fake::scripted(move |connection, event| {
            let Event::Received(command) = event else {
                return Vec::new();
            };
            let mut acts = Vec::new();
            owed.retain(|(owner, answer)| {
                if *owner == connection {
                    acts.push(Act::Say(answer.clone()));
                }
                *owner != connection
            });
            if is(command, "SET") {
                owed.push((connection, healthy(command)));
            } else {
                acts.push(Act::Say(healthy(command)));
            }
            acts
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.listener.port
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}:{}", Ipv4Addr::LOCALHOST, self.listener.port)
    }

    /// Everything received so far, in order, on all connections.
    pub(crate) fn commands(&self) -> Vec<Command> {
        self.received(|_| true)
    }

    /// What was received on the connection with this number, counting from 0.
    pub(crate) fn commands_on(&self, connection: usize) -> Vec<Command> {
        self.received(|on| on == connection)
    }

    fn received(&self, is_on: impl Fn(usize) -> bool) -> Vec<Command> {
        let state = self.shared.state();
        let received = state.received.iter().filter(|(on, _)| is_on(*on));
        received.map(|(_, command)| command.clone()).collect()
    }

    /// Waits until at least `count` commands with this name have arrived; false when they have not
    /// in time.
    pub(crate) fn wait_for(&self, name: &str, count: usize, timeout: Duration) -> bool {
        self.shared.wait_until(timeout, |state| {
            let commands = state.received.iter().map(|(_, command)| command);
            commands.filter(|command| is(command, name)).count() >= count
        })
    }

    /// How many connections were ever accepted.
    pub(crate) fn connections(&self) -> usize {
        self.shared.state().accepted
    }

    /// How many connections are open, as far as this side has noticed.
    pub(crate) fn open(&self) -> usize {
        self.shared.state().open.len()
    }

    /// Waits for the end of the connection with this number, and returns how the other side ended
    /// it: a close is `UnexpectedEof`, a reset `ConnectionReset`. None when it has not ended in
    /// time.
    pub(crate) fn wait_for_end(
        &self,
        connection: usize,
        timeout: Duration,
    ) -> Option<io::ErrorKind> {
        let end = |state: &State| {
            state
                .ended
                .iter()
                .find(|(ended, _)| *ended == connection)
                .map(|&(_, end)| end)
        };
        self.shared
            .wait_until(timeout, |state| end(state).is_some());
        end(&self.shared.state())
    }

    /// Waits until so many connections are open; false when they are not in time.
    pub(crate) fn wait_for_open(&self, count: usize, timeout: Duration) -> bool {
        self.shared
            .wait_until(timeout, |state| state.open.len() == count)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.stopping = true;
            for (_, stream) in &state.open {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        self.shared.changed.notify_all();
        self.listener.end();
    }
}

/// What a well-behaved, empty master replies to this command.
pub(crate) fn healthy(command: &Command) -> Vec<u8> {
    const INFO: &str = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n\
        run_id:0123456789abcdef0123456789abcdef01234567\r\nuptime_in_seconds:864000\r\n\
        # Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n# Persistence\r\nloading:0\r\naof_enabled:0\r\n\
        # Replication\r\nrole:master\r\nconnected_slaves:0\r\n# Cluster\r\ncluster_enabled:0\r\n";
    let name = command
        .first()
        .map(|name| name.to_ascii_uppercase())
        .unwrap_or_default();
    match name.as_str() {
        "AUTH" | "CLIENT" | "SELECT" | "SET" => b"+OK\r\n".to_vec(),
        "DEL" | "EVAL" | "PEXPIRE" | "PUBLISH" => b":1\r\n".to_vec(),
        "GET" => b"$-1\r\n".to_vec(),
        "INFO" => bulk(INFO).into_bytes(),
        "PING" => b"+PONG\r\n".to_vec(),
        "PTTL" => b":-2\r\n".to_vec(),
        "ROLE" => b"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n".to_vec(),
        _ => b"-ERR unknown command\r\n".to_vec(),
    }
}

/// What a node replies to this command where another client holds each lock; none for a command
/// that asks for none.
pub(crate) fn refusal(command: &Command) -> Option<Vec<u8>> {
    let is_script = is(command, "EVAL") || is(command, "EVALSHA");
    match command.get(4).map(String::as_str) {
        _ if is(command, "SET") => Some(b"$-1\r\n".to_vec()),
        Some("take") if is_script => {
            // Its entry is the only one there, with the ticket that it has, or would have.
            let ticket = if command[9] == "n" { "0" } else { &command[8] };
            let text = format!("n {ticket} 0 600000 abcdefgh - {}", command[7]);
            Some(bulk(&text).into_bytes())
        }
        _ => None,
    }
}

impl Fake {
    /// A script that minds neither the connection nor its beginning.
    pub(crate) fn on_command(
        mut answer: impl FnMut(&Command) -> Vec<Act> + Send + 'static,
    ) -> Fake {
        Fake::scripted(move |_, event| match event {
            Event::Connected => Vec::new(),
            Event::Received(command) => answer(command),
        })
    }
}

type Script = Box<dyn FnMut(usize, Event<'_>) -> Vec<Act> + Send>;

struct Shared {
    changed: Condvar,
    script: Mutex<Script>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    accepted: usize,
    /// The connections that are over, each with the error that ended it.
    ended: Vec<(usize, io::ErrorKind)>,
    open: Vec<(usize, Arc<TcpStream>)>,
    received: Vec<(usize, Command)>,
    stopping: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn wait_until(&self, timeout: Duration, condition: impl Fn(&State) -> bool) -> bool {
        let waiting = self
            .changed
            .wait_timeout_while(self.state(), timeout, |state| !condition(state));
        let (state, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        condition(&state)
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads = Vec::new();
    for stream in listener.incoming() {
        let mut state = shared.state();
        if state.stopping {
            break;
        }
        let Ok(stream) = stream.map(Arc::new) else {
            continue;
        };
        let number = state.accepted;
        state.accepted += 1;
        state.open.push((number, Arc::clone(&stream)));
        drop(state);
        shared.changed.notify_all();
        let shared = Arc::clone(shared);
        threads.push(spawn("fake connection", move || {
            let end = Connection {
                number,
                shared: &shared,
                stream: &stream,
            }
            .serve();
            let _ = stream.shutdown(Shutdown::Both);
            let mut state = shared.state();
            state.open.retain(|(open, _)| *open != number);
            state
                .ended
                .extend(end.err().map(|error| (number, error.kind())));
            drop(state);
            shared.changed.notify_all();
        }));
    }
    for thread in threads {
        let _ = thread.join();
    }
}

struct Connection<'a> {
    number: usize,
    shared: &'a Shared,
    stream: &'a TcpStream,
}

impl Connection<'_> {
    fn serve(&self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        self.react(Event::Connected)?;
        let mut reader = BufReader::new(self.stream);
        loop {
            let command = read_command(&mut reader)?;
            self.shared
                .state()
                .received
                .push((self.number, command.clone()));
            self.shared.changed.notify_all();
            self.react(Event::Received(&command))?;
        }
    }

    fn react(&self, event: Event<'_>) -> io::Result<()> {
        let acts = lock(&self.shared.script)(self.number, event);
        acts.into_iter().try_for_each(|act| self.perform(act))
    }

    fn perform(&self, act: Act) -> io::Result<()> {
        let mut stream = self.stream;
        match act {
            Act::Close => Err(io::ErrorKind::ConnectionAborted.into()),
            Act::Flood(first, forever) => {
                stream.write_all(first)?;
                let block = forever.repeat(4096);
                loop {
                    stream.write_all(&block)?;
                }
            }
            Act::Say(bytes) => stream.write_all(&bytes),
            Act::Trickle(bytes, pause) => bytes.iter().try_for_each(|&byte| {
                self.wait(pause)?;
                stream.write_all(&[byte])
            }),
            Act::Wait(pause) => self.wait(pause),
        }
    }

    /// Sleeps, but not through the end of the fake.
    fn wait(&self, pause: Duration) -> io::Result<()> {
        let stopping = self.shared.wait_until(pause, |state| state.stopping);
        if stopping {
            Err(io::ErrorKind::ConnectionAborted.into())
        } else {
            Ok(())
        }
    }
}

/// Reads an array of bulk strings. Anything else ends the connection: this library sends nothing
/// else.
fn read_command(reader: &mut impl BufRead) -> io::Result<Command> {
    let words = read_length(reader, '*')?;
    (0..words)
        .map(|_| {
            let length = read_length(reader, '$')?;
            let mut bytes = vec![0; length + 2];
            reader.read_exact(&mut bytes)?;
            bytes.truncate(length);
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        })
        .collect()
}

fn read_length(reader: &mut impl BufRead, kind: char) -> io::Result<usize> {
    let mut line = String::new();
    if reader.take(32).read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let digits = line
        .strip_suffix("\r\n")
        .and_then(|line| line.strip_prefix(kind));
    let length = digits
        .and_then(|digits| digits.parse().ok())
        .filter(|&length| length <= 1 << 20);
    length.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

pub(crate) fn is(command: &Command, name: &str) -> bool {
    command
        .first()
        .is_some_and(|first| first.eq_ignore_ascii_case(name))
}
