//! The client processes, from outside: they are started, paused, killed and replaced, and in the end they end.

use super::random::Random;
use super::{text, worker};
use crate::support::process::eventually;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::Duration;

/// The longest that a client may take to end, or to stand still.
const SOON: Duration = Duration::from_secs(30);

pub(crate) struct Clients {
    directory: PathBuf,
    urls: Vec<String>,
    /// By number.
    running: BTreeMap<usize, Child>,
    started: usize,
}

impl Clients {
    pub(crate) fn none_yet(directory: PathBuf, urls: Vec<String>) -> Clients {
        Clients { directory, urls, running: BTreeMap::new(), started: 0 }
    }

    /// Where they write to.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts one more.
    pub(crate) fn start(&mut self) {
        self.running.insert(self.started, worker::start(self.started, &self.directory, &self.urls));
        self.started += 1;
    }

    pub(crate) fn any(&self, random: &mut Random) -> usize {
        let chosen = random.below(self.running.len() as u64) as usize;
        *self.running.keys().nth(chosen).unwrap()
    }

    /// The one that took the lock last, waiting for a moment if it is not there any more.
    pub(crate) fn holder(&self) -> Option<usize> {
        let last = || worker::holder(&self.directory).filter(|number| self.running.contains_key(number));
        eventually(Duration::from_secs(2), || last().is_some());
        last()
    }

    /// Kills it, and starts another.
    pub(crate) fn replace(&mut self, number: usize) {
        let mut client = self.running.remove(&number).unwrap();
        assert!(client.try_wait().unwrap().is_none(), "a client failed: {}", self.complaints());
        client.kill().unwrap();
        client.wait().unwrap();
        self.start();
    }

    /// Stops it wherever it is, and lets it go on.
    pub(crate) fn pause(&self, number: usize, time: Duration) {
        self.signal(number, Signal::SIGSTOP);
        thread::sleep(time);
        self.signal(number, Signal::SIGCONT);
    }

    /// Lets it stop itself where that does no harm, however long it takes.
    pub(crate) fn freeze(&self, number: usize, time: Duration) {
        worker::freeze(number, &self.directory);
        assert!(eventually(SOON, || self.stands_still(number)), "a client does not stop: {}", self.complaints());
        thread::sleep(time);
        self.signal(number, Signal::SIGCONT);
    }

    /// Ends them all, which must have nothing to complain of, and says how many were killed before.
    pub(crate) fn stop(&mut self) -> usize {
        worker::stop(&self.directory);
        for client in self.running.values_mut() {
            let mut status = None;
            let has_ended = eventually(SOON, || {
                status = client.try_wait().unwrap();
                status.is_some()
            });
            assert!(has_ended, "all is well again, and a client does not get the lock");
            assert!(status.unwrap().success(), "a client failed: {}", complaints(&self.directory));
        }
        let living = std::mem::take(&mut self.running).len();
        self.started - living
    }

    fn stands_still(&self, number: usize) -> bool {
        let stat = text(Path::new(&format!("/proc/{}/stat", self.running[&number].id())));
        // Behind the name in parentheses.
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    }

    fn signal(&self, number: usize, signal: Signal) {
        // Not yet waited for, so the number is still that of our child.
        kill(Pid::from_raw(self.running[&number].id() as i32), signal).unwrap();
    }

    fn complaints(&self) -> String {
        complaints(&self.directory)
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        for client in self.running.values_mut() {
            // After a failure: it may have ended by itself.
            let _ = client.kill();
            let _ = client.wait();
        }
    }
}

/// What clients printed.
fn complaints(directory: &Path) -> String {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let outputs =
        paths.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("output.")));
    outputs.map(|path| text(&path)).filter(|text| text.contains("panicked")).collect()
}
