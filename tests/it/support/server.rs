//! A real `redis-server` or `valkey-server` process as a value.
//!
//! `Server::start()` returns an empty server on a free port of 127.0.0.1, with a directory of its
//! own. Faults are methods: [`pause`](Server::pause) (it hangs, its connections stay open),
//! [`kill`](Server::kill) (it ends at once) and [`restart`](Server::restart) (it runs again on the
//! same address, empty unless its arguments keep the data). Dropping the value ends the process and
//! removes the directory.
//!
//! A server never outlives the program that started it, even one that is itself killed: each has a
//! keeper, a shell that waits for the end of its input. That end comes when this process closes the
//! pipe or ceases to exist; the keeper then kills the server and removes its directory. Server and
//! keeper run in process groups of their own, so that a Ctrl-C in the terminal reaches neither: it
//! ends the program, and the keepers do the rest.
//!
//! Only what it started is signalled, by its process id, and only while that id cannot have been
//! given to another process: until this process has waited for it, it is the server's, running or
//! ended.
//!
//! This file and its folder need nothing but `std` and `nix`, so that an example can include them
//! as they are.

// Each program that includes this file uses a part of it.
#![allow(dead_code, unreachable_pub)]

// By paths, so that they are found wherever this file is included from.
#[path = "server/answer.rs"]
mod answer;
#[path = "server/binary.rs"]
mod binary;
#[path = "server/process.rs"]
mod process;

pub use answer::Answer;
#[allow(unused_imports)]
pub use binary::{binaries, find_binary, free_port};

use answer::{ask, malformed};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use process::{Directory, Process};
use std::ffi::OsString;
use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// How long a server may take to report that it is ready. Far more than it needs, for machines that
/// are busy.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long [`Server::command`] waits for its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// How many ports are tried before giving up. Another process takes a port between our look and the
/// bind, rarely.
const PORT_TRIES: usize = 10;
/// Names a directory with `node.crt`, `node.key` and `ca.crt`. Then servers listen by TLS, if
/// nothing else was set.
pub const TLS_VARIABLE: &str = "QUORUMLOCK_TEST_TLS";

/// A running server, or one that was killed and can be restarted.
#[derive(Debug)]
pub struct Server {
    plan: Plan,
    directory: Directory,
    process: Option<Process>,
}

impl Server {
    /// An empty server on a free port, without a password.
    pub fn start() -> io::Result<Server> {
        Plan::default().start()
    }

    /// The same with arguments of its own: `Server::with(&["--requirepass", "secret"])`.
    pub fn with(arguments: &[&str]) -> io::Result<Server> {
        Plan::default().arguments(arguments).start()
    }

    /// As many servers as asked for.
    pub fn several(count: usize) -> io::Result<Vec<Server>> {
        Plan::default().several(count)
    }

    /// The place to set more than arguments: the binary, the port, a Unix socket.
    pub fn plan() -> Plan {
        Plan::default()
    }

    /// The TCP port, or 0 for a server that listens on a Unix socket alone.
    pub fn port(&self) -> u16 {
        self.plan.port.unwrap_or(0)
    }

    /// `127.0.0.1:port`, or the path of the Unix socket.
    pub fn address(&self) -> String {
        match self.socket().filter(|_| !self.plan.has_tls) {
            Some(path) => path.display().to_string(),
            None => format!("{}:{}", Ipv4Addr::LOCALHOST, self.port()),
        }
    }

    /// `redis://127.0.0.1:port`, `rediss://127.0.0.1:port` or `unix:///path`, without user and
    /// password.
    pub fn url(&self) -> String {
        match self.socket() {
            _ if self.plan.has_tls => format!("rediss://{}", self.address()),
            Some(path) => format!("unix://{}", path.display()),
            None => format!("redis://{}", self.address()),
        }
    }

    /// The Unix socket, where one was asked for.
    pub fn socket(&self) -> Option<PathBuf> {
        self.plan
            .socket
            .as_ref()
            .map(|path| self.directory.0.join(path))
    }

    /// The server's own directory: its log, its dump files, a relative Unix socket.
    pub fn directory(&self) -> &Path {
        &self.directory.0
    }

    /// What the server has written to its log since it was last started.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// The process id, or `None` after [`kill`](Server::kill).
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.id())
    }

    /// Stops the process where it is. The kernel still accepts connections and bytes for it;
    /// nothing is answered.
    pub fn pause(&self) -> io::Result<()> {
        let pid = self.signal(Signal::SIGSTOP)?;
        // The signal is sent before it is felt: only a stop that was reported is sure to answer
        // nothing any more.
        #[cfg(target_os = "linux")]
        {
            use nix::sys::wait::{Id, WaitPidFlag, waitid};
            waitid(
                Id::Pid(pid),
                WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT,
            )?;
        }
        #[cfg(not(target_os = "linux"))]
        let _ = pid;
        Ok(())
    }

    /// Lets a paused process go on; it begins with what has arrived meanwhile.
    pub fn resume(&self) -> io::Result<()> {
        self.signal(Signal::SIGCONT).map(drop)
    }

    /// Ends the process as `kill -9` does and waits until it is gone. Does nothing to one that was
    /// killed before.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts the server again with the same arguments and on the same address, after killing it if
    /// it still runs.
    pub fn restart(&mut self) -> io::Result<()> {
        self.kill();
        self.launch()
    }

    /// Waits until the server, started a moment ago, accepts commands; fails with its log when it
    /// does not.
    pub fn wait_ready(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            // The log and not a PING: a PING can be answered by another program that took the port.
            // KeyDB logs the first of these only if it has TLS.
            let log = self.log().to_ascii_lowercase();
            if ["ready to accept connections", "thread 0 alive"]
                .iter()
                .any(|line| log.contains(line))
            {
                return Ok(());
            }
            let process = self.process.as_mut().ok_or_else(not_running)?;
            if let Some(status) = process.try_wait()? {
                let log = self.log();
                let kind = if log.contains("Address already in use") {
                    io::ErrorKind::AddrInUse
                } else {
                    io::ErrorKind::Other
                };
                return Err(io::Error::new(
                    kind,
                    format!("the server ended with {status}; its log:\n{log}"),
                ));
            }
            if Instant::now() > deadline {
                let message = format!(
                    "the server was not ready within {START_TIMEOUT:?}; its log:\n{}",
                    self.log()
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            thread::sleep(Duration::from_millis(3));
        }
    }

    /// The keys, without what the server remembers of itself.
    pub fn keys(&self) -> io::Result<Vec<String>> {
        let Answer::List(keys) = self.command(&["KEYS", "*"])? else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let text = |answer| {
            if let Answer::Text(text) = answer {
                Some(text)
            } else {
                None
            }
        };
        Ok(keys
            .into_iter()
            .filter_map(text)
            .filter(|key| !key.starts_with("quorumlock-node:"))
            .collect())
    }

    /// Sends one command on a connection of its own and returns the answer:
    /// `server.command(&["GET", "key"])`.
    ///
    /// A password among the server's arguments is used. An answer that takes longer than two
    /// seconds is an error.
    pub fn command(&self, words: &[&str]) -> io::Result<Answer> {
        match self.socket() {
            Some(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
                stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
                self.converse(stream, words)
            }
            None => {
                let stream = TcpStream::connect_timeout(
                    &(Ipv4Addr::LOCALHOST, self.port()).into(),
                    ANSWER_TIMEOUT,
                )?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
                stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
                self.converse(stream, words)
            }
        }
    }

    /// The text that the server replies.
    #[track_caller]
    pub fn text(&self, words: &[&str]) -> String {
        match self.command(words) {
            Ok(Answer::Text(text)) => text,
            answer => panic!("{words:?}: {answer:?}"),
        }
    }

    /// One field of the server's INFO, such as `run_id`; empty when there is no such field.
    pub fn info(&self, field: &str) -> io::Result<String> {
        let Answer::Text(all) = self.command(&["INFO"])? else {
            return Err(malformed());
        };
        let value = all
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        Ok(value.unwrap_or_default().to_owned())
    }

    fn converse<S: Read + Write>(&self, stream: S, words: &[&str]) -> io::Result<Answer> {
        let mut stream = BufReader::new(stream);
        if let Some(password) = self.plan.password() {
            let answer = ask(&mut stream, &["AUTH", password])?;
            if answer != Answer::Text("OK".into()) {
                return Ok(answer);
            }
        }
        ask(&mut stream, words)
    }

    fn signal(&self, signal: Signal) -> io::Result<Pid> {
        let pid = self.process.as_ref().ok_or_else(not_running)?.pid()?;
        signal::kill(pid, signal)?;
        Ok(pid)
    }

    fn log_path(&self) -> PathBuf {
        self.directory.0.join("server.log")
    }

    fn launch(&mut self) -> io::Result<()> {
        // An old log shows that an old server was ready.
        remove_if_present(&self.log_path())?;
        let command = self.plan.command(&self.directory.0)?;
        self.process = Some(Process::start(command, &self.directory.0)?);
        self.wait_ready()
    }
}

/// What a server is started with. Each method sets one thing more; [`start`](Plan::start) starts
/// the server.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    arguments: Vec<String>,
    binary: Option<PathBuf>,
    port: Option<u16>,
    socket: Option<PathBuf>,
    has_tls: bool,
    variables: Vec<(String, OsString)>,
}

impl Plan {
    /// Adds arguments; the last one for a setting wins.
    pub fn arguments(mut self, arguments: &[&str]) -> Plan {
        self.arguments
            .extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    /// Starts this binary, not the one that [`find_binary`] finds.
    pub fn binary(mut self, path: impl Into<PathBuf>) -> Plan {
        self.binary = Some(path.into());
        self
    }

    /// Listens on this port or not at all. Without it, a free port is found.
    pub fn port(mut self, port: u16) -> Plan {
        self.port = Some(port);
        self
    }

    /// Listens on a Unix socket, and on TCP only if a port was chosen. A relative path is in the
    /// server's directory.
    pub fn unix_socket(mut self, path: impl Into<PathBuf>) -> Plan {
        self.socket = Some(path.into());
        self
    }

    /// Listens on its port by TLS, with the certificates of this directory, and lets clients in
    /// without one.
    fn tls_of(mut self, directory: &Path) -> Plan {
        let named = std::mem::take(&mut self.arguments);
        let mut plan =
            self.tls()
                .arguments(&["--tls-auth-clients", "no", "--tls-replication", "yes"]);
        for (setting, file) in [
            ("cert", "node.crt"),
            ("key", "node.key"),
            ("ca-cert", "ca.crt"),
        ] {
            let path = directory.join(file).display().to_string();
            plan = plan.arguments(&[&format!("--tls-{setting}-file"), &path]);
        }
        plan.arguments.extend(named);
        plan
    }

    /// Listens on its port by TLS, and for [`Server::command`] on a Unix socket. The arguments name
    /// the certificates.
    pub fn tls(mut self) -> Plan {
        self.has_tls = true;
        self.socket = Some("plain.sock".into());
        self
    }

    /// Adds a variable to the server's environment.
    pub fn variable(mut self, name: &str, value: impl Into<OsString>) -> Plan {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// Does not know these commands.
    pub fn without(self, commands: &[&str]) -> Plan {
        commands.iter().fold(self, |plan, command| {
            plan.arguments(&["--rename-command", command, ""])
        })
    }

    /// Starts as many as asked for.
    pub fn several(&self, count: usize) -> io::Result<Vec<Server>> {
        (0..count).map(|_| self.clone().start()).collect()
    }

    /// Starts the server and waits until it accepts commands.
    pub fn start(mut self) -> io::Result<Server> {
        if self.binary.is_none() {
            self.binary = Some(find_binary()?);
        }
        if let (Some(directory), None) = (std::env::var_os(TLS_VARIABLE), &self.socket) {
            self = self.tls_of(Path::new(&directory));
        }
        let any_port = self.port.is_none() && (self.has_tls || self.socket.is_none());
        let mut server = Server {
            plan: self,
            directory: Directory::create()?,
            process: None,
        };
        let mut tries = 0;
        loop {
            if any_port {
                server.plan.port = Some(free_port()?);
            }
            tries += 1;
            match server.launch() {
                Ok(()) => return Ok(server),
                Err(error)
                    if any_port
                        && error.kind() == io::ErrorKind::AddrInUse
                        && tries < PORT_TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The command that starts it in its directory.
    fn command(&self, directory: &Path) -> io::Result<Command> {
        let binary = self.binary.as_ref().ok_or_else(not_running)?;
        let mut command = Command::new(binary);
        let port = self.port.unwrap_or(0).to_string();
        let none = "0".to_owned();
        let (plain, tls) = if self.has_tls {
            (none, port)
        } else {
            (port, none)
        };
        command.args(["--bind", "127.0.0.1", "--port", &plain]);
        if self.has_tls {
            command.args(["--tls-port", &tls]);
        }
        command.args([
            "--save",
            "",
            "--appendonly",
            "no",
            "--daemonize",
            "no",
            "--protected-mode",
            "no",
        ]);
        command
            .arg("--dir")
            .arg(directory)
            .arg("--logfile")
            .arg(directory.join("server.log"));
        if let Some(path) = &self.socket {
            command.arg("--unixsocket").arg(directory.join(path));
        }
        command.args(&self.arguments).current_dir(directory);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }

    fn password(&self) -> Option<&str> {
        let at = self
            .arguments
            .iter()
            .rposition(|argument| argument == "--requirepass")?;
        self.arguments.get(at + 1).map(String::as_str)
    }
}

fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn not_running() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the server is not running")
}
