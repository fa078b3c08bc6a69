//! What client processes write down, line by line and at once: what a killed process did until then is known.
//!
//! A line `done START END VALUE` is a time during which a client relied on the lock, in nanoseconds of the monotonic
//! clock, and the number that was written meanwhile. Every other line is something that happened, in words, to be
//! counted.

use super::text;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A file to which one thread writes.
pub(crate) struct Log(File);

impl Log {
    pub(crate) fn open(directory: &Path, name: &str) -> Log {
        let path = directory.join(format!("log.{name}"));
        Log(OpenOptions::new().create(true).append(true).open(path).unwrap())
    }

    pub(crate) fn say(&self, line: &str) {
        // In one piece: the file may have several writers.
        (&self.0).write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub(crate) fn done(&self, interval: Interval) {
        self.say(&format!("done {} {} {}", interval.start, interval.end, interval.value));
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) value: u64,
}

/// All that was written down.
#[derive(Debug, Default)]
pub(crate) struct Story {
    /// In the order of their beginnings.
    pub(crate) done: Vec<Interval>,
    pub(crate) counts: BTreeMap<String, usize>,
}

impl Story {
    pub(crate) fn read(directory: &Path) -> Story {
        let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let is_log = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log."));
        let mut story = Story::default();
        paths.filter(is_log).for_each(|path| story.add(&text(&path)));
        story.done.sort_by_key(|interval| interval.start);
        story
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.counts.get(what).copied().unwrap_or_default()
    }

    /// The longest time without a holder, as a beginning and an end.
    pub(crate) fn longest_gap(&self) -> (u64, u64) {
        let gaps = self.done.windows(2).map(|pair| (pair[0].end, pair[1].start));
        gaps.max_by_key(|(start, end)| end.saturating_sub(*start)).unwrap_or_default()
    }

    /// Half a line, the last one of a killed process, does not count.
    fn add(&mut self, text: &str) {
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            match line.strip_prefix("done ") {
                None => *self.counts.entry(line.to_owned()).or_default() += 1,
                Some(numbers) => {
                    let numbers: Vec<u64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
                    self.done.push(Interval { start: numbers[0], end: numbers[1], value: numbers[2] });
                }
            }
        }
    }
}

/// Nanoseconds of the clock that all processes of the machine share and that cannot be set.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
