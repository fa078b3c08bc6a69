//! Several programs that want one lock, each with a client of its own.
//!
//! Each competitor is this program again, as a child. The children share the client's core, as programs of one machine
//! do. They record when they had the lock, by the clock that all processes of a machine share. Each competitor's waits,
//! and how long the lock was free between two of them, follow from that.

use crate::comparison::Times;
use crate::competitor::{MARK, Means, now};
use crate::servers::Servers;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// From the parent's start message until all begin.
const HEAD_START: Duration = Duration::from_millis(30);

/// What competitors do, and for how long.
#[derive(Clone, Copy)]
pub(crate) struct Workload {
    pub(crate) competitors: usize,
    /// Of each competitor that uses the library, where it competes for a time.
    pub(crate) threads: usize,
    pub(crate) means: Means,
    /// So many more competitors are programs that poll.
    pub(crate) polling: usize,
    pub(crate) held: Duration,
    /// Over and over for so long, or so many times with all starting at the same instant.
    pub(crate) length: Length,
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
    pub(crate) commands: f64,
}

impl Extend<Outcome> for Outcome {
    fn extend<I: IntoIterator<Item = Outcome>>(&mut self, more: I) {
        for outcome in more {
            self.turns.extend(outcome.turns);
            self.seconds += outcome.seconds;
            self.commands += outcome.commands;
        }
    }
}

impl Outcome {
    /// From the beginning of a release to when another competitor has the lock, where that one was waiting by then.
    pub(crate) fn gaps(&self) -> Times {
        let mut gaps = Times::default();
        for pair in self.turns.windows(2) {
            let [before, after] = pair else { continue };
            if before.competitor != after.competitor && after.wanted < before.released && after.had > before.released {
                gaps.push(Duration::from_nanos(after.had - before.released));
            }
        }
        gaps
    }

    pub(crate) fn waits(&self) -> Times {
        let mut waits = Times::default();
        self.turns.iter().for_each(|turn| waits.push(Duration::from_nanos(turn.had.saturating_sub(turn.wanted))));
        waits
    }

    pub(crate) fn rate(&self) -> f64 {
        self.turns.len() as f64 / self.seconds
    }

    pub(crate) fn commands_each(&self) -> f64 {
        self.commands / self.turns.len() as f64
    }

    /// What the first so many competitors did.
    pub(crate) fn of_first(&self, competitors: usize) -> Outcome {
        let turns = self.turns.iter().filter(|turn| turn.competitor < competitors).copied().collect();
        Outcome { turns, ..*self }
    }

    pub(crate) fn mean_wait(&self) -> f64 {
        let sum: f64 = self.turns.iter().map(|turn| turn.had.saturating_sub(turn.wanted) as f64 / 1000.0).sum();
        sum / self.turns.len() as f64
    }

    /// Of every start at the same instant: the time until the first competitor had the lock, and its attempts.
    pub(crate) fn firsts(&self) -> (Times, Times) {
        let (mut times, mut attempts) = (Times::default(), Times::default());
        let starts: BTreeSet<u64> = self.turns.iter().map(|turn| turn.wanted).collect();
        for start in starts {
            let first = self.turns.iter().filter(|turn| turn.wanted == start).min_by_key(|turn| turn.had);
            let Some(first) = first else { continue };
            times.push(Duration::from_nanos(first.had.saturating_sub(start)));
            attempts.push(Duration::from_micros(first.attempts.into()));
        }
        (times, attempts)
    }
}

/// Runs the workload.
pub(crate) fn run(servers: &Servers, addresses: &[SocketAddr], workload: Workload) -> Outcome {
    let program = std::env::current_exe().expect("the path of this program");
    let (kind, length) = match workload.length {
        Length::Rounds(rounds) => ("rounds", rounds.to_string()),
        Length::Time(time) => ("time", time.as_millis().to_string()),
    };
    let all = workload.competitors + workload.polling;
    let mut children: Vec<Child> = (0..all)
        .map(|index| {
            let means = if index < workload.competitors { workload.means } else { Means::Poll };
            let mut command = Command::new(&program);
            command.args([
                MARK,
                kind,
                &length,
                &all.to_string(),
                &index.to_string(),
                means.name(),
                &workload.held.as_micros().to_string(),
                &workload.threads.to_string(),
            ]);
            command.args(addresses.iter().map(ToString::to_string));
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a competitor")
        })
        .collect();
    let mut outputs: Vec<_> =
        children.iter_mut().map(|child| BufReader::new(child.stdout.take().expect("its output"))).collect();
    for output in &mut outputs {
        let mut line = String::new();
        output.read_line(&mut line).expect("a line once it is ready");
    }
    let commands = || match workload.means {
        Means::Fair => servers.commands_of_fair_locks(),
        _ => servers.commands().1,
    };
    let before = commands();
    let start = now() + HEAD_START.as_nanos() as u64;
    for child in &mut children {
        writeln!(child.stdin.as_mut().expect("its input"), "{start}").expect("a competitor that reads");
    }
    let mut outcome = Outcome::default();
    for (competitor, output) in outputs.into_iter().enumerate() {
        for line in output.lines() {
            let line = line.expect("a line");
            let numbers: Vec<u64> = line.split(' ').filter_map(|number| number.parse().ok()).collect();
            let [wanted, had, released, attempts] = numbers[..] else { continue };
            outcome.turns.push(Turn { competitor, wanted, had, released, attempts: attempts as u32 });
        }
    }
    for child in &mut children {
        child.wait().expect("its end");
    }
    outcome.turns.sort_by_key(|turn| turn.had);
    outcome.commands = commands() - before;
    let end = outcome.turns.last().map_or(start, |turn| turn.released);
    outcome.seconds = end.saturating_sub(start) as f64 / 1e9;
    outcome
}
