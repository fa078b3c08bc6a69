//! What workers log, line by line and at once: what a killed process did until then is known.
//!
//! A line `done PROCESS WANTED SINCE UNTIL VALUE` is a time during which a thread relied on a lock.
//! Every other line is something that happened, in words, to be counted.

use crate::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use std::fs::OpenOptions;

/// The file of one thread.
pub(crate) struct Log(File);

impl Log {
    /// Creates the file, and the directory.
    pub(crate) fn open(directory: &Path, name: impl Display) -> Log {
        fs::create_dir_all(directory).unwrap();
        let path = directory.join(format!("log.{name}"));
        Log(OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap())
    }

    pub(crate) fn say(&self, line: &str) {
        // In one piece: the file may have several writers.
        (&self.0).write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub(crate) fn done(&self, stay: Stay) {
        let times = format!("{} {} {}", stay.wanted, stay.since, stay.until);
        self.say(&format!("done {} {times} {}", stay.process, stay.value));
    }
}

/// A time during which a thread relied on a lock, in nanoseconds of [`now`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stay {
    /// The number of the thread's process.
    pub(crate) process: usize,
    /// Since when the thread wanted the lock; `since` in a storm that does not measure it.
    pub(crate) wanted: u64,
    pub(crate) since: u64,
    pub(crate) until: u64,
    /// The number that the storm is about: a counter, a fence or a slot.
    pub(crate) value: u64,
}

impl Stay {
    /// The times are those at which the thread wanted the lock, had it, and let go of it.
    pub(crate) fn new(process: usize, [wanted, since, until]: [u64; 3], value: u64) -> Stay {
        Stay {
            process,
            wanted,
            since,
            until,
            value,
        }
    }

    pub(crate) fn waited(&self) -> Duration {
        Duration::from_nanos(self.since - self.wanted)
    }
}

/// All that was logged in a directory.
#[derive(Debug, Default)]
pub(crate) struct Story {
    /// In the order of their beginnings.
    pub(crate) done: Vec<Stay>,
    pub(crate) counts: BTreeMap<String, usize>,
}

impl Story {
    pub(crate) fn read(directory: &Path) -> Story {
        let mut story = Story::default();
        logs(directory).for_each(|entry| story.add(&fs::read_to_string(entry.path()).unwrap()));
        story.done.sort_by_key(|stay| stay.since);
        story
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.counts.get(what).copied().unwrap_or_default()
    }

    /// The longest time without a holder, as a beginning and an end.
    pub(crate) fn longest_gap(&self) -> (u64, u64) {
        let gaps = self
            .done
            .windows(2)
            .map(|pair| (pair[0].until, pair[1].since));
        gaps.max_by_key(|(start, end)| end.saturating_sub(*start))
            .unwrap_or_default()
    }

    /// Half a line, the last one of a killed process, does not count.
    fn add(&mut self, text: &str) {
        for line in text
            .split_inclusive('\n')
            .filter_map(|line| line.strip_suffix('\n'))
        {
            match line.strip_prefix("done ") {
                None => *self.counts.entry(line.to_owned()).or_default() += 1,
                Some(numbers) => {
                    let numbers: Vec<u64> = numbers
                        .split(' ')
                        .map(|number| number.parse().unwrap())
                        .collect();
                    let [process, wanted, since, until, value] = numbers[..] else {
                        panic!("{line}")
                    };
                    let times = [wanted, since, until];
                    self.done.push(Stay::new(process as usize, times, value));
                }
            }
        }
    }
}

/// The size of all logs in a directory: how much was logged, without reading it.
pub(crate) fn bytes(directory: &Path) -> u64 {
    logs(directory)
        .map(|entry| entry.metadata().unwrap().len())
        .sum()
}

fn logs(directory: &Path) -> impl Iterator<Item = fs::DirEntry> {
    // The first worker that logs creates it.
    let entries = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .map(Result::unwrap);
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("log."))
}

/// Nanoseconds of the clock that all processes of the machine share and that cannot be set.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
