//! The worker processes, from outside: they are started, paused, killed and replaced, and in the
//! end they end.

use super::random::Random;
use super::worker::{STOP, VARIABLE};
use crate::prelude::*;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use std::process::Child;

/// The longest time that a worker may take to end, or to stop itself.
const SOON: Duration = Duration::from_secs(30);

pub(crate) struct Workers {
    /// The name of the test.
    test: &'static str,
    directory: PathBuf,
    urls: Vec<String>,
    /// By number.
    running: BTreeMap<usize, Child>,
    started: usize,
}

impl Workers {
    pub(super) fn none_yet(test: &'static str, directory: PathBuf, urls: Vec<String>) -> Workers {
        Workers {
            test,
            directory,
            urls,
            running: BTreeMap::new(),
            started: 0,
        }
    }

    /// Where they write to.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts one more.
    pub(crate) fn start(&mut self) {
        let number = self.started;
        let output = File::create(self.directory.join(format!("output.{number}"))).unwrap();
        let worker = Command::new(std::env::current_exe().unwrap())
            .args([self.test, "--exact", "--nocapture", "--test-threads=1"])
            .env(
                VARIABLE,
                format!(
                    "{number} {} {}",
                    self.directory.display(),
                    self.urls.join(" ")
                ),
            )
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .expect("this test binary runs");
        self.running.insert(number, worker);
        self.started += 1;
    }

    pub(crate) fn any(&self, random: &mut Random) -> usize {
        let chosen = random.below(self.running.len() as u64) as usize;
        *self.running.keys().nth(chosen).unwrap()
    }

    pub(crate) fn is_running(&self, number: usize) -> bool {
        self.running.contains_key(&number)
    }

    /// Kills one, and starts another.
    pub(crate) fn replace(&mut self, number: usize) {
        let mut worker = self.running.remove(&number).unwrap();
        assert!(
            worker.try_wait().unwrap().is_none(),
            "a worker failed: {}",
            self.complaints()
        );
        worker.kill().unwrap();
        worker.wait().unwrap();
        self.start();
    }

    /// Stops one wherever it is, and continues it.
    pub(crate) fn pause(&self, number: usize, time: Duration) {
        self.signal(number, Signal::SIGSTOP);
        thread::sleep(time);
        self.signal(number, Signal::SIGCONT);
    }

    /// Waits until one has stopped itself, and continues it after this time.
    pub(crate) fn let_pause(&self, number: usize, time: Duration) {
        assert_soon!(
            self.is_stopped(number),
            "a worker does not stop: {}",
            self.complaints()
        );
        thread::sleep(time);
        self.signal(number, Signal::SIGCONT);
    }

    /// Ends all, which must not fail, and returns how many were killed before.
    pub(crate) fn end(&mut self) -> usize {
        fs::write(self.directory.join(STOP), "").unwrap();
        let killed = self.started - self.running.len();
        for mut worker in std::mem::take(&mut self.running).into_values() {
            let has_ended = eventually(SOON, || worker.try_wait().unwrap().is_some());
            if !has_ended {
                worker.kill().unwrap();
            }
            let status = worker.wait().unwrap();
            assert!(
                has_ended,
                "all is well again, and a worker does not get the lock"
            );
            assert!(status.success(), "a worker failed: {}", self.complaints());
        }
        killed
    }

    fn is_stopped(&self, number: usize) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.running[&number].id()))
            .unwrap_or_default();
        // Behind the name in parentheses.
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('T'))
    }

    fn signal(&self, number: usize, signal: Signal) {
        // Not yet waited for, so the number is still our child's.
        kill(Pid::from_raw(self.running[&number].id() as i32), signal).unwrap();
    }

    /// What workers printed that failed.
    fn complaints(&self) -> String {
        let paths = (0..self.started).map(|number| self.directory.join(format!("output.{number}")));
        let outputs = paths.map(|path| fs::read_to_string(path).unwrap_or_default());
        outputs.filter(|text| text.contains("panicked")).collect()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in self.running.values_mut() {
            // After a failure: it may have ended by itself.
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}
