//! Programs that tests start: what they write, and how they end.

use crate::prelude::*;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use std::borrow::BorrowMut;
use std::io::{ErrorKind, Read};
use std::process::Child;

/// How long a program may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(100);
/// How long a program may take that builds something, on a machine with much to do.
pub(crate) const BUILD_LIMIT: Duration = Duration::from_secs(500);
/// Far longer than what is waited for takes, on a busy machine too.
const SOON: Duration = Duration::from_secs(20);

/// A program with nothing to read, and what it writes is read.
pub(crate) fn program(path: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(path);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Takes the variables of this environment away that begin so.
pub(crate) fn without_variables(command: &mut Command, beginning: &str) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with(beginning) {
            command.env_remove(name);
        }
    }
}

/// A program that runs, and does not outlive its test.
pub(crate) struct Running {
    pub(crate) child: Child,
    /// The words behind the program's name.
    words: String,
    pipes: [Pipe; 2],
}

/// What a program has written so far.
struct Pipe {
    bytes: Arc<Guarded<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Running {
    #[track_caller]
    pub(crate) fn start(mut command: impl BorrowMut<Command>) -> Running {
        let command = command.borrow_mut();
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = match command.spawn() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                panic!("{name} is missing: {}", how_to_install(&name))
            }
            child => child.unwrap_or_else(|error| panic!("{name}: {error}")),
        };
        let words = command.get_args().map(OsStr::to_string_lossy);
        Running {
            words: words.collect::<Vec<_>>().join(" "),
            pipes: [
                Pipe::read(child.stdout.take()),
                Pipe::read(child.stderr.take()),
            ],
            child,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.status().is_some()
    }

    /// Its exit code, if it ends soon.
    #[track_caller]
    pub(crate) fn code(&mut self) -> Option<i32> {
        let is_over = eventually(SOON, || self.is_over());
        assert!(is_over, "{} does not end", self.words);
        self.status().flatten()
    }

    /// Waits until it has printed this.
    #[track_caller]
    pub(crate) fn heard(&self, words: &str) {
        let said = || self.pipes[0].text().contains(words);
        assert!(eventually(LIMIT, said), "{}", self.pipes[1].text());
    }

    /// Waits for it, and returns what it has written.
    #[track_caller]
    pub(crate) fn wait(self) -> Ended {
        self.end(BUILD_LIMIT)
    }

    /// The same, if it takes no longer than that.
    #[track_caller]
    pub(crate) fn end(mut self, limit: Duration) -> Ended {
        let has_ended = eventually(limit, || self.is_over());
        let _ = self.child.kill();
        let [out, err] = self.pipes.each_mut().map(Pipe::end);
        assert!(has_ended, "it did not end within {limit:?}\n{out}{err}");
        Ended {
            words: std::mem::take(&mut self.words),
            code: self.status().flatten(),
            out,
            err,
        }
    }

    /// Ends it by SIGTERM, of which its command dies.
    #[track_caller]
    pub(crate) fn terminate(self) {
        self.send(Signal::SIGTERM);
        self.wait().exits(143);
    }

    /// Ends it by SIGKILL.
    #[track_caller]
    pub(crate) fn stopped(self) -> Ended {
        self.send(Signal::SIGKILL);
        self.wait()
    }

    /// The exit code, if it has ended and has one.
    fn status(&mut self) -> Option<Option<i32>> {
        let status = self.child.try_wait().expect("it is a child of ours");
        status.map(|status| status.code())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Pipe {
    /// Reads what is written to a pipe, if it is one.
    fn read(pipe: Option<impl Read + Send + 'static>) -> Pipe {
        let bytes = Arc::<Guarded<Vec<u8>>>::default();
        let read = Arc::clone(&bytes);
        let reader = pipe.map(|mut pipe| {
            thread::spawn(move || {
                let mut more = [0; 4096];
                while let Ok(length @ 1..) = pipe.read(&mut more) {
                    read.lock().unwrap().extend_from_slice(&more[..length]);
                }
            })
        });
        Pipe { bytes, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    /// All of it.
    fn end(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.text()
    }
}

pub(crate) fn send(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

/// What a program has written, and how it ended.
pub(crate) struct Ended {
    /// The words behind the program's name.
    pub(crate) words: String,
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }

    /// The same for messages, behind the words of the program.
    fn shown(&self) -> String {
        format!("{}: {}", self.words, self.all())
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Ended {
        assert_eq!(self.code, Some(code), "{}", self.shown());
        self
    }

    /// Its standard output contains this.
    #[track_caller]
    pub(crate) fn prints(self, text: &str) -> Ended {
        assert!(self.out.contains(text), "{text:?}: {}", self.shown());
        self
    }

    /// Its standard output contains each of these.
    #[track_caller]
    pub(crate) fn prints_all(mut self, texts: &[&str]) -> Ended {
        for text in texts {
            self = self.prints(text);
        }
        self
    }

    /// Its standard output contains this so often.
    #[track_caller]
    pub(crate) fn prints_times(self, text: &str, times: usize) -> Ended {
        let count = self.out.matches(text).count();
        assert_eq!(count, times, "{text:?}: {}", self.shown());
        self
    }

    /// Its standard output begins with this.
    #[track_caller]
    pub(crate) fn begins(self, text: &str) -> Ended {
        assert!(self.out.starts_with(text), "{text:?}: {}", self.shown());
        self
    }

    /// Its standard error contains this.
    #[track_caller]
    pub(crate) fn reports(self, text: &str) -> Ended {
        assert!(self.err.contains(text), "{text:?}: {}", self.shown());
        self
    }

    /// It does not write this.
    #[track_caller]
    pub(crate) fn hides(self, text: &str) -> Ended {
        assert!(!self.all().contains(text), "{text:?}: {}", self.shown());
        self
    }

    #[track_caller]
    pub(crate) fn writes_nothing(self) -> Ended {
        assert_eq!(self.all(), "", "{}", self.words);
        self
    }
}

/// Runs a program to its end.
#[track_caller]
pub(crate) fn run(command: impl BorrowMut<Command>) -> Ended {
    Running::start(command).wait()
}

fn how_to_install(program: &str) -> String {
    let package = match program {
        "cc" => "gcc",
        "c++" => "g++",
        "nm" | "strip" => "binutils",
        other => other,
    };
    format!("on Debian and Ubuntu, `apt-get install {package}`")
}
