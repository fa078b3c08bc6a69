//! What is shown: a line for each part of the story, and a verdict.

use crate::work::Notes;
use std::fmt::Display;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Writes to standard output what happens, and remembers it for the verdict. A closed output is no
/// error.
pub struct Report {
    began: Instant,
    parts: Vec<Part>,
    added: u64,
    unsure: u64,
}

/// How long the lock took in one part of the story.
struct Part {
    p50: Option<Duration>,
    p99: Option<Duration>,
}

impl Report {
    pub fn begin() -> Report {
        say("quorumlock quickstart\n\n");
        Report {
            began: Instant::now(),
            parts: Vec::new(),
            added: 0,
            unsure: 0,
        }
    }

    /// Prints what is worth knowing before it begins.
    pub fn fact(&self, name: &str, fact: impl Display) {
        say(format!("  {name:<7}  {fact}\n"));
    }

    /// Heads the columns. Time counts from here.
    pub fn headings(&mut self) {
        say(format!(
            "\n  {:>7}  {:<24}{:>12}{:>12}{:>12}{:>12}\n",
            "time", "what happens", "increments", "so far", "lock p50", "lock p99"
        ));
        self.began = Instant::now();
    }

    /// Begins a part, and its line.
    pub fn part(&mut self, what: &str) {
        say(format!("  {}  {what:<24}", self.time()));
    }

    /// Ends a part, and its line.
    pub fn numbers(&mut self, mut notes: Notes) {
        self.count(&notes);
        let p50 = percentile(&mut notes.latencies, 50);
        let p99 = percentile(&mut notes.latencies, 99);
        say(format!(
            "{:>12}{:>12}{:>12}{:>12}\n",
            notes.added,
            self.added,
            millis(p50),
            millis(p99)
        ));
        self.parts.push(Part { p50, p99 });
    }

    /// Adds to what the verdict is about.
    pub fn count(&mut self, notes: &Notes) {
        self.added += notes.added;
        self.unsure += notes.unsure;
    }

    pub fn interrupted(&self) {
        say(format!("  {}  interrupted\n", self.time()));
    }

    /// Compares what was added with the number in the file. True when no update was lost.
    pub fn verdict(&self, found: u64) -> bool {
        let expected = self.added;
        let lost = if found == expected {
            "no update was lost".into()
        } else {
            "UPDATES WERE LOST".to_owned()
        };
        say(format!(
            "  {}  the end\n\n  counter  expected {expected}, found {found}: {lost}\n",
            self.time()
        ));
        if self.unsure > 0 {
            say(format!(
                "           {} releases could not confirm that the lock was held to the end\n",
                self.unsure
            ));
        }
        // The story begins well, and is at its worst in the last part but one.
        if let [well, .., worst, _] = &self.parts[..] {
            say(format!(
                "  latency  {:<24}{:>12}{:>12}{:>12}\n",
                "", "well", "two sick", "ratio"
            ));
            for (name, well, worst) in [
                ("lock p50", well.p50, worst.p50),
                ("lock p99", well.p99, worst.p99),
            ] {
                say(format!(
                    "           {name:<24}{:>12}{:>12}{:>12}\n",
                    millis(well),
                    millis(worst),
                    ratio(worst, well)
                ));
            }
        }
        found == expected
    }

    fn time(&self) -> String {
        format!("{:>5.1} s", self.began.elapsed().as_secs_f64())
    }
}

/// The smallest value that this percentage of all values do not exceed.
fn percentile(values: &mut [Duration], percent: usize) -> Option<Duration> {
    values.sort_unstable();
    values
        .get((values.len() * percent).div_ceil(100).checked_sub(1)?)
        .copied()
}

fn millis(time: Option<Duration>) -> String {
    time.map_or("-".to_owned(), |time| {
        format!("{:.2} ms", time.as_secs_f64() * 1000.0)
    })
}

fn ratio(of: Option<Duration>, to: Option<Duration>) -> String {
    match (of, to) {
        (Some(of), Some(to)) if !to.is_zero() => {
            format!("{:.2}", of.as_secs_f64() / to.as_secs_f64())
        }
        _ => "-".to_owned(),
    }
}

/// Writes and flushes: half a line is to be seen too.
fn say(text: impl AsRef<str>) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_ref().as_bytes());
    let _ = out.flush();
}
