//! The process of a server, with its keeper and its directory.

use nix::unistd::Pid;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server process and its keeper. Both end when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    server: Child,
    /// Ends the server when this process is no more. Its input is a pipe to which nothing is ever
    /// written.
    keeper: Option<Child>,
}

impl Process {
    /// Runs a server by this command, and a keeper of it and of its directory.
    pub(super) fn start(mut command: Command, directory: &Path) -> io::Result<Process> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        // From here on an early return drops `process`, and with it the server.
        let mut process = Process {
            server: command.spawn()?,
            keeper: None,
        };
        process.keeper = Some(keeper(process.server.id(), directory)?);
        Ok(process)
    }

    pub(super) fn id(&self) -> u32 {
        self.server.id()
    }

    /// How it ended, or `None` while it runs.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.server.try_wait()
    }

    pub(super) fn pid(&self) -> io::Result<Pid> {
        i32::try_from(self.server.id())
            .map(Pid::from_raw)
            .map_err(io::Error::other)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The keeper first: once the server has been waited for, its process id may belong to
        // another process.
        if let Some(keeper) = &mut self.keeper {
            end(keeper);
        }
        end(&mut self.server);
    }
}

/// SIGKILL also ends a paused process, so that there is no need to resume it first.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// A shell that waits until its input ends, then ends the server and removes the directory.
fn keeper(server: u32, directory: &Path) -> io::Result<Child> {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        r#"read -r _; kill -9 "$1"; rm -rf -- "$2""#,
        "keeper",
        &server.to_string(),
    ]);
    command.arg(directory).current_dir("/");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

/// A new directory, removed with everything in it when dropped.
#[derive(Debug)]
pub(super) struct Directory(pub(super) PathBuf);

impl Directory {
    pub(super) fn create() -> io::Result<Directory> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path =
                std::env::temp_dir().join(format!("quorumlock-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Directory(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
