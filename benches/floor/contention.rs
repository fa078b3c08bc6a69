//! Contention: several programs want one lock, each with a client of its own.
//!
//! Each competitor is this program again, as a child. The children share the client's core, as programs of one machine
//! do. They record when they had the lock, by the clock that all processes of a machine share. Each competitor's waits,
//! and how long the lock was free between two of them, follow from that. Two settings take turns: with release
//! notifications, and without, where a waiter gets the lock only by the delay between attempts. Two competitors are
//! also compared with two [bare programs](crate::bare_handoff): a hand-off takes a release, a notification and an
//! attempt, and so more than an attempt alone.

use crate::Setting;
use crate::comparison::{self, Times, interleave, take_turns};
use crate::competitor::{MARK, Means, now};
use crate::library;
use crate::servers::Servers;
use crate::table::{Goal, Row};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// From the parent's start message until all begin.
const HEAD_START: Duration = Duration::from_millis(30);

/// What competitors do, and for how long.
#[derive(Clone, Copy)]
struct Workload {
    competitors: usize,
    means: Means,
    held: Duration,
    /// Over and over for so long, or so many times with all starting at the same instant.
    length: Length,
}

#[derive(Clone, Copy)]
enum Length {
    Rounds(u32),
    Time(Duration),
}

/// One lock and its release, in nanoseconds.
#[derive(Clone, Copy)]
struct Turn {
    competitor: usize,
    wanted: u64,
    had: u64,
    released: u64,
    attempts: u32,
}

/// The result of a workload.
#[derive(Default)]
struct Outcome {
    turns: Vec<Turn>,
    seconds: f64,
    commands: f64,
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
    fn gaps(&self) -> Times {
        let mut gaps = Times::default();
        for pair in self.turns.windows(2) {
            let [before, after] = pair else { continue };
            if before.competitor != after.competitor && after.wanted < before.released && after.had > before.released {
                gaps.push(Duration::from_nanos(after.had - before.released));
            }
        }
        gaps
    }

    fn waits(&self) -> Times {
        let mut waits = Times::default();
        self.turns.iter().for_each(|turn| waits.push(Duration::from_nanos(turn.had.saturating_sub(turn.wanted))));
        waits
    }

    fn mean_wait(&self) -> f64 {
        let sum: f64 = self.turns.iter().map(|turn| turn.had.saturating_sub(turn.wanted) as f64 / 1000.0).sum();
        sum / self.turns.len() as f64
    }

    /// Of every start at the same instant: the time until the first competitor had the lock, and its attempts.
    fn firsts(&self) -> (Times, Times) {
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

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, 5);
    let addresses = servers.addresses(5);
    // For the bare programs.
    servers.load_script();
    let uncontended = uncontended(setting, &addresses);
    let mut rows = Vec::new();
    let time = Length::Time(Duration::from_millis(setting.choose(500, 200)));
    for (name, competitors) in [("2 programs alternate", 2), ("8 programs", 8)] {
        let run = |means| {
            run(&servers, &addresses, Workload { competitors, means, held: Duration::from_millis(1), length: time })
        };
        let contenders: &mut [&mut dyn FnMut() -> Outcome] =
            &mut [&mut || run(Means::WakeUps), &mut || run(Means::Delay), &mut || run(Means::Bare)];
        // There are exactly two bare programs.
        let contenders = if competitors == 2 { contenders } else { &mut contenders[..2] };
        let done = take_turns(setting.choose((5, 1), (2, 1)), contenders);
        let [with, without, bare @ ..] = &done[..] else { continue };
        rows.extend(rows_of((name, competitors), with, without, uncontended));
        for bare in bare {
            rows.extend(floor_of(name, with, bare, uncontended));
        }
    }
    for nodes in [3, 4, 5] {
        for competitors in setting.choose(&[2, 8, 32][..], &[8]) {
            let length = Length::Rounds(setting.choose(12, 4));
            let workload = Workload { competitors: *competitors, means: Means::WakeUps, held: Duration::ZERO, length };
            let outcome = run(&servers, &addresses[..nodes], workload);
            let (times, attempts) = outcome.firsts();
            let name = |what: &str| format!("{competitors} programs start at once, {nodes} nodes: {what}");
            rows.push(
                Row::value(name("first has it, p50"), "µs", times.quantile(0.5)).against("uncontended", uncontended),
            );
            rows.push(
                Row::value(name("first has it, p99"), "µs", times.quantile(0.99)).against("uncontended", uncontended),
            );
            rows.push(Row::value(name("attempts of the first, p50"), "", attempts.quantile(0.5)));
            rows.push(Row::value(name("attempts of the first, most"), "", attempts.quantile(1.0)));
        }
    }
    rows
}

fn rows_of((name, competitors): (&str, usize), with: &[Outcome], without: &[Outcome], uncontended: f64) -> Vec<Row> {
    let against = ("no wake-ups", without);
    let ratio = |figure: &str, unit, of: &dyn Fn(&Outcome) -> f64| {
        Row::ratio(format!("{name}: {figure}"), unit, with, against, |outcome| of(outcome))
    };
    let median = |of: &dyn Fn(&Outcome) -> f64| comparison::Spread::over(with, |outcome| of(outcome)).median;
    let per_lock = |part: f64| {
        let figure = move |outcome: &Outcome| outcome.gaps().quantile(part);
        Row::value(format!("{name}: gap p{}, of an uncontended lock", part * 100.0), "µs", median(&figure))
            .against("uncontended", uncontended)
    };
    vec![
        ratio("gap from unlock to the other's lock, p50", "µs", &|outcome| outcome.gaps().quantile(0.5)),
        ratio("the same, p99", "µs", &|outcome| outcome.gaps().quantile(0.99)),
        // Of many on one core, most must be scheduled before the one whose turn it is.
        if competitors == 2 { per_lock(0.5).goal(Goal::RatioAtMost(2.5)) } else { per_lock(0.5) },
        if competitors == 2 { per_lock(0.99).goal(Goal::RatioAtMost(10.0)) } else { per_lock(0.99) },
        ratio("acquisitions/s", "", &|outcome| outcome.turns.len() as f64 / outcome.seconds),
        ratio("longest wait, of the mean", "", &|outcome| outcome.waits().quantile(1.0) / outcome.mean_wait())
            .goal(Goal::ValueAtMost(10.0)),
        ratio("longest wait", "ms", &|outcome| outcome.waits().quantile(1.0) / 1000.0),
        ratio("commands an acquisition", "", &|outcome| outcome.commands / outcome.turns.len() as f64),
        ratio("attempts an acquisition", "", &|outcome| {
            outcome.turns.iter().map(|turn| f64::from(turn.attempts)).sum::<f64>() / outcome.turns.len() as f64
        }),
    ]
}

/// A bare program's hand-off as a ratio to an uncontended lock, and the library's as a ratio to that.
fn floor_of(name: &str, with: &[Outcome], bare: &[Outcome], uncontended: f64) -> Vec<Row> {
    let gap = |what: &str, part: f64| {
        Row::ratio(format!("{name}: {what}"), "µs", with, ("floor", bare), move |outcome| {
            outcome.gaps().quantile(part)
        })
    };
    let floor = comparison::Spread::over(bare, |outcome| outcome.gaps().quantile(0.5)).median;
    vec![
        gap("gap p50, of a bare program's", 0.5),
        gap("gap p99, of a bare program's", 0.99),
        Row::value(format!("{name}: a bare program's gap p50, of an uncontended lock"), "µs", floor)
            .against("uncontended", uncontended),
    ]
}

/// The median of an uncontended lock, in microseconds.
fn uncontended(setting: &Setting, addresses: &[SocketAddr]) -> f64 {
    let client = library::client(addresses);
    let mutex = library::mutex(&client, "contention/uncontended");
    let plan = comparison::Plan { rounds: 3, turns: setting.choose(10, 2), operations: 50 };
    let samples = interleave(plan, &mut [&mut || library::pair(&mutex)]);
    comparison::Spread::over(&samples[0], |samples| samples.lock.quantile(0.5)).median
}

/// Runs the workload.
fn run(servers: &Servers, addresses: &[SocketAddr], workload: Workload) -> Outcome {
    let program = std::env::current_exe().expect("the path of this program");
    let (kind, length) = match workload.length {
        Length::Rounds(rounds) => ("rounds", rounds.to_string()),
        Length::Time(time) => ("time", time.as_millis().to_string()),
    };
    let mut children: Vec<Child> = (0..workload.competitors)
        .map(|index| {
            let mut command = Command::new(&program);
            command.args([
                MARK,
                kind,
                &length,
                &workload.competitors.to_string(),
                &index.to_string(),
                workload.means.name(),
                &workload.held.as_micros().to_string(),
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
    let before = servers.commands().1;
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
    outcome.commands = servers.commands().1 - before;
    let end = outcome.turns.last().map_or(start, |turn| turn.released);
    outcome.seconds = end.saturating_sub(start) as f64 / 1e9;
    outcome
}
