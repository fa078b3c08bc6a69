//! Worker processes: this program again, with one test, which finds its order in the environment.

use super::process::eventually;
use super::server::Server;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The file that appears in the directory when the workers are to end.
pub(crate) const STOP: &str = "stop";
/// How long a worker may take for that.
const LONGEST_END: Duration = Duration::from_secs(20);

pub(crate) struct Workers {
    test: &'static str,
    variable: &'static str,
    directory: PathBuf,
    urls: Vec<String>,
    processes: Vec<Child>,
    started: usize,
}

impl Workers {
    /// Starts so many. Each finds in the variable its number, the directory and the nodes, separated by spaces.
    pub(crate) fn start(
        (test, variable): (&'static str, &'static str),
        directory: PathBuf,
        servers: &[Server],
        count: usize,
    ) -> Workers {
        let urls = servers.iter().map(Server::url).collect();
        let mut workers = Workers { test, variable, directory, urls, processes: Vec::new(), started: 0 };
        (0..count).for_each(|_| workers.start_one());
        workers
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Kills one, and starts another in its place.
    pub(crate) fn replace(&mut self, index: usize) {
        let mut worker = self.processes.swap_remove(index);
        assert!(worker.try_wait().unwrap().is_none(), "a client failed");
        worker.kill().unwrap();
        worker.wait().unwrap();
        self.start_one();
    }

    /// Lets all end, and waits for it.
    pub(crate) fn end(&mut self) {
        fs::write(self.directory.join(STOP), "").unwrap();
        for mut worker in self.processes.drain(..) {
            let mut status = None;
            let has_ended = || {
                status = worker.try_wait().unwrap();
                status.is_some()
            };
            assert!(eventually(LONGEST_END, has_ended), "a client does not end");
            assert!(status.unwrap().success(), "a client failed");
        }
    }

    fn start_one(&mut self) {
        let worker = Command::new(std::env::current_exe().unwrap())
            .args([self.test, "--exact", "--nocapture", "--test-threads=1"])
            .env(self.variable, format!("{} {} {}", self.started, self.directory.display(), self.urls.join(" ")))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        self.processes.push(worker);
        self.started += 1;
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.processes {
            // After a failure: it may have ended by itself.
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}
