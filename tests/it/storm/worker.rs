//! A worker process, from inside: its order, its threads, and a number that nothing but a lock
//! protects.

use super::log::Log;
use super::random::Random;
use crate::prelude::*;

/// Set in worker processes: a number, the directory and the nodes, separated by spaces.
pub(super) const VARIABLE: &str = "QUORUMLOCK_STORM_WORKER";
/// When this file is in the directory, workers end.
pub(super) const STOP: &str = "stop";

pub(crate) struct Worker {
    /// No other worker of the storm has it.
    pub(crate) number: usize,
    pub(crate) directory: PathBuf,
    pub(crate) urls: Vec<String>,
}

impl Worker {
    /// This process, if a storm has started it.
    pub(crate) fn this() -> Option<Worker> {
        let order = std::env::var(VARIABLE).ok()?;
        // A process that is paused would not see that the test has ended.
        #[cfg(target_os = "linux")]
        nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).unwrap();
        let mut words = order.split(' ');
        let number = words.next().unwrap().parse().unwrap();
        let directory = PathBuf::from(words.next().unwrap());
        Some(Worker {
            number,
            directory,
            urls: words.map(str::to_owned).collect(),
        })
    }

    /// The nodes, each of which is configured to write to disk before it replies.
    pub(crate) fn durable_urls(&self) -> impl Iterator<Item = String> {
        self.urls.iter().map(|url| format!("{url}?durable=true"))
    }

    /// A client's settings, by which no server votes that may have forgotten something.
    pub(crate) fn strict(&self, ttl: Duration) -> Builder {
        let builder = Redlock::builder().nodes(&self.urls).ttl(ttl).max_ttl(ttl);
        builder.restart_policy(RestartPolicy::Strict)
    }

    /// Whether the storm has ended. The directory is removed with the test that started this
    /// process, however it ends.
    pub(crate) fn is_over(&self) -> bool {
        self.directory.join(STOP).exists() || !self.directory.exists()
    }

    /// Runs threads, and waits for their end. Each gets its number.
    pub(crate) fn threads(&self, count: usize, work: impl Fn(usize) + Sync) {
        let work = &work;
        thread::scope(|scope| (0..count).for_each(|thread| _ = scope.spawn(move || work(thread))));
    }

    /// The log of a thread.
    pub(crate) fn log(&self, thread: usize) -> Log {
        self.log_in(&self.directory, thread)
    }

    /// The log of a thread in a directory of its own.
    pub(crate) fn log_in(&self, directory: &Path, thread: usize) -> Log {
        Log::open(directory, format_args!("{}.{thread}", self.number))
    }

    /// The choices of a thread.
    pub(crate) fn random(&self, thread: usize) -> Random {
        Random::from_seed((self.number * 1000 + thread) as u64)
    }
}

/// What was got while everything breaks, in which too few nodes may answer.
pub(crate) fn got<T>(result: quorumlock::Result<Option<T>>) -> Option<T> {
    match result {
        Ok(got) => got,
        Err(error) if error.kind() == ErrorKind::Unavailable => None,
        Err(error) => panic!("{error}"),
    }
}

/// A number in a directory that nothing but a lock protects.
pub(crate) struct Counter(PathBuf);

impl Counter {
    pub(crate) fn of(directory: &Path) -> Counter {
        Counter(directory.to_owned())
    }

    /// Zero if it was never written.
    pub(crate) fn read(&self) -> u64 {
        fs::read_to_string(self.0.join("counter")).map_or(0, |text| text.parse().unwrap())
    }

    pub(crate) fn write(&self, value: u64) {
        let new = self.0.join("new");
        fs::write(&new, value.to_string()).unwrap();
        let renamed = fs::rename(new, self.0.join("counter"));
        renamed.expect(
            "the file that was just written, which only another holder could have taken away",
        );
    }
}
