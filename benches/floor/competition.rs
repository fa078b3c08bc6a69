//! Several programs that want one lock, each with a client of its own.
//!
//! Each competitor is this program again, as a child. The children share the client's core, as
//! programs of one machine do. They record when they had the lock, by the clock that all processes
//! of a machine share. Each competitor's waits, and how long the lock was free between two of them,
//! follow from that.

use crate::clock::now;
use crate::comparison::Times;
use crate::competitor::{MARK, Means};
use crate::monitor::commands_during;
use crate::servers::Servers;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::ops::Range;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

/// From the parent's start message until all begin.
const HEAD_START: Duration = Duration::from_millis(30);

/// What competitors do, and for how long.
#[derive(Clone, Copy)]
pub(crate) struct Workload<'a> {
    /// How many competitors there are of each kind. They are numbered in this order.
    pub(crate) groups: &'a [(Means, usize)],
    /// Of each competitor that uses the library, where it competes for a time.
    pub(crate) threads: usize,
    pub(crate) held: Duration,
    pub(crate) ttl: Duration,
    /// Over and over for so long, or so many times with all starting at the same instant.
    pub(crate) length: Length,
    pub(crate) disturbance: Disturbance,
}

impl Workload<'_> {
    /// One that nothing disturbs. A lock lasts as long as a client permits by default, so that
    /// nothing ends it by time.
    pub(crate) fn new(groups: &[(Means, usize)], length: Length) -> Workload<'_> {
        Workload {
            groups,
            threads: 1,
            held: Duration::from_millis(1),
            ttl: Duration::from_secs(60),
            length,
            disturbance: Disturbance::None,
        }
    }
}

/// What happens to competitors meanwhile.
#[derive(Clone, Copy)]
pub(crate) enum Disturbance {
    None,
    /// So many, from the last one on, are killed each second, evenly.
    Killed(u32),
    /// The last one is stopped for so long, after a quarter of that.
    Stopped(Duration),
}

#[derive(Clone, Copy)]
pub(crate) enum Length {
    Rounds(u32),
    Time(Duration),
}

/// One lock and its release, in nanoseconds.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) competitor: usize,
    pub(crate) wanted: u64,
    pub(crate) had: u64,
    pub(crate) released: u64,
    pub(crate) attempts: u32,
}

/// The result of a workload.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) turns: Vec<Turn>,
    pub(crate) seconds: f64,
}

impl Extend<Outcome> for Outcome {
    fn extend<I: IntoIterator<Item = Outcome>>(&mut self, more: I) {
        for outcome in more {
            self.turns.extend(outcome.turns);
            self.seconds += outcome.seconds;
        }
    }
}

impl Outcome {
    /// From the beginning of a release to when another competitor has the lock, where that one was
    /// waiting by then.
    pub(crate) fn gaps(&self) -> Times {
        let mut gaps = Times::default();
        for pair in self.turns.windows(2) {
            let [before, after] = pair else { continue };
            if before.competitor != after.competitor
                && after.wanted < before.released
                && after.had > before.released
            {
                gaps.push(Duration::from_nanos(after.had - before.released));
            }
        }
        gaps
    }

    pub(crate) fn waits(&self) -> Times {
        let mut waits = Times::default();
        self.turns.iter().for_each(|turn| {
            waits.push(Duration::from_nanos(turn.had.saturating_sub(turn.wanted)))
        });
        waits
    }

    pub(crate) fn gap_p50(&self) -> f64 {
        self.gaps().quantile(0.5)
    }

    pub(crate) fn gap_p99(&self) -> f64 {
        self.gaps().quantile(0.99)
    }

    pub(crate) fn longest_wait_millis(&self) -> f64 {
        self.waits().quantile(1.0) / 1000.0
    }

    /// How many turns there were.
    pub(crate) fn count(&self) -> f64 {
        self.turns.len() as f64
    }

    pub(crate) fn rate(&self) -> f64 {
        self.count() / self.seconds
    }

    /// What these competitors did.
    pub(crate) fn of(&self, competitors: Range<usize>) -> Outcome {
        let turns = self
            .turns
            .iter()
            .filter(|turn| competitors.contains(&turn.competitor))
            .copied()
            .collect();
        Outcome { turns, ..*self }
    }

    pub(crate) fn mean_wait(&self) -> f64 {
        let sum: f64 = self
            .turns
            .iter()
            .map(|turn| turn.had.saturating_sub(turn.wanted) as f64 / 1000.0)
            .sum();
        sum / self.count()
    }

    /// Of every start at the same instant: the time until the first competitor had the lock, and
    /// its attempts.
    pub(crate) fn firsts(&self) -> (Times, Times) {
        let mut times = Times::default();
        let mut attempts = Times::default();
        let starts: BTreeSet<u64> = self.turns.iter().map(|turn| turn.wanted).collect();
        for start in starts {
            let first = self
                .turns
                .iter()
                .filter(|turn| turn.wanted == start)
                .min_by_key(|turn| turn.had);
            let Some(first) = first else { continue };
            times.push(Duration::from_nanos(first.had.saturating_sub(start)));
            attempts.push(Duration::from_micros(first.attempts.into()));
        }
        (times, attempts)
    }
}

/// Runs the workload.
pub(crate) fn run(addresses: &[SocketAddr], workload: Workload) -> Outcome {
    let mut children = start_competitors(addresses, &workload);
    let outputs: Vec<_> = children.iter_mut().map(ready).collect();
    let start = now() + HEAD_START.as_nanos() as u64;
    for child in &mut children {
        writeln!(child.stdin.as_mut().expect("its input"), "{start}")
            .expect("a competitor that reads");
    }
    let mut outcome = Outcome::default();
    thread::scope(|scope| {
        // Each has a reader of its own: a pipe that is full would stop its competitor.
        let readers: Vec<_> = outputs
            .into_iter()
            .enumerate()
            .map(|(index, output)| scope.spawn(move || turns_of(index, output)))
            .collect();
        disturb(&mut children, &workload);
        for reader in readers {
            outcome.turns.extend(reader.join().expect("its turns"));
        }
    });
    for child in &mut children {
        child.wait().expect("its end");
    }
    outcome.turns.sort_by_key(|turn| turn.had);
    let end = outcome.turns.last().map_or(start, |turn| turn.released);
    outcome.seconds = end.saturating_sub(start) as f64 / 1e9;
    outcome
}

/// How many commands an acquisition takes at a node, those to wait included.
pub(crate) fn commands_each(
    servers: &Servers,
    addresses: &[SocketAddr],
    workload: Workload,
) -> f64 {
    let (outcome, commands) = commands_during(&servers.processes[0], || run(addresses, workload));
    commands as f64 / outcome.count()
}

fn start_competitors(addresses: &[SocketAddr], workload: &Workload) -> Vec<Child> {
    let program = std::env::current_exe().expect("the path of this program");
    let (kind, length) = match workload.length {
        Length::Rounds(rounds) => ("rounds", rounds.to_string()),
        Length::Time(time) => ("time", time.as_millis().to_string()),
    };
    let means = workload
        .groups
        .iter()
        .flat_map(|(means, count)| std::iter::repeat_n(means, *count));
    let all: usize = workload.groups.iter().map(|(_, count)| count).sum();
    let start = |(index, means): (usize, &Means)| {
        let mut command = Command::new(&program);
        command.args([
            MARK,
            kind,
            &length,
            &all.to_string(),
            &index.to_string(),
            means.name(),
            &workload.held.as_micros().to_string(),
            &workload.ttl.as_millis().to_string(),
            &workload.threads.to_string(),
        ]);
        command.args(addresses.iter().map(ToString::to_string));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a competitor")
    };
    means.enumerate().map(start).collect()
}

/// Waits until it is ready. Returns its output from then on.
fn ready(child: &mut Child) -> BufReader<ChildStdout> {
    let mut output = BufReader::new(child.stdout.take().expect("its output"));
    let mut line = String::new();
    output
        .read_line(&mut line)
        .expect("a line once it is ready");
    output
}

fn turns_of(competitor: usize, output: BufReader<ChildStdout>) -> Vec<Turn> {
    let turn = |line: String| {
        let numbers: Vec<u64> = line
            .split(' ')
            .filter_map(|number| number.parse().ok())
            .collect();
        let [wanted, had, released, attempts] = numbers[..] else {
            return None;
        };
        Some(Turn {
            competitor,
            wanted,
            had,
            released,
            attempts: attempts as u32,
        })
    };
    output
        .lines()
        .filter_map(|line| turn(line.expect("a line")))
        .collect()
}

fn disturb(children: &mut [Child], workload: &Workload) {
    match workload.disturbance {
        Disturbance::None => {}
        Disturbance::Killed(each_second) => {
            let Length::Time(length) = workload.length else {
                panic!("competitors are killed for a time")
            };
            let pause = Duration::from_secs(1) / each_second;
            let killed = length.as_nanos() / pause.as_nanos();
            for child in children.iter_mut().rev().take(killed as usize) {
                thread::sleep(pause);
                child.kill().expect("a competitor that runs");
            }
        }
        Disturbance::Stopped(time) => {
            let last = children.last().expect("a competitor");
            let pid = Pid::from_raw(last.id() as i32);
            thread::sleep(time / 4);
            kill(pid, Signal::SIGSTOP).expect("a competitor that runs");
            thread::sleep(time);
            kill(pid, Signal::SIGCONT).expect("a competitor that is stopped");
        }
    }
}
