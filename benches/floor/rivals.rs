//! Rivals: several programs want one lock, each with a client of its own.
//!
//! Each rival is this program again, as a child. The children share the client's core, as programs of one machine do. They
//! write down when they had the lock, by the clock that all processes of a machine share; who waited for how long, and how
//! long the lock lay free between two of them, follows from that. What is to be compared takes turns: with wake-ups, and
//! without, where only the delay between attempts brings the lock to somebody else.

use crate::Setting;
use crate::contest::{self, Times, interleave, take_turns};
use crate::ours;
use crate::stand::Stand;
use crate::table::{Goal, Row};
use quorumlock::{Acquired, Observer, Redlock};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// The first argument of a rival.
pub(crate) const MARK: &str = "--rival";

/// How long from the parent's word until all begin.
const HEAD_START: Duration = Duration::from_millis(30);
/// Between two starts at the same instant, for each rival: all of them have had the lock by then.
const PERIOD: Duration = Duration::from_millis(20);

/// What rivals do, and for how long.
#[derive(Clone, Copy)]
struct Game {
    rivals: usize,
    wake_ups: bool,
    held: Duration,
    /// Over and over for so long, or so many times with all starting at the same instant.
    length: Length,
}

#[derive(Clone, Copy)]
enum Length {
    Rounds(u32),
    Time(Duration),
}

/// One possession of the lock, in nanoseconds.
#[derive(Clone, Copy)]
struct Turn {
    rival: usize,
    wanted: u64,
    had: u64,
    released: u64,
    attempts: u32,
}

/// What a game came to.
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
    /// From the beginning of a release to when another rival has the lock, where that one was waiting by then.
    fn gaps(&self) -> Times {
        let mut gaps = Times::default();
        for pair in self.turns.windows(2) {
            let [before, after] = pair else { continue };
            if before.rival != after.rival && after.wanted < before.released && after.had > before.released {
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

    /// Of every start at the same instant: until somebody had the lock, and his attempts.
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
    let stand = Stand::start(setting, 5);
    let addresses = stand.addresses(5);
    let uncontended = uncontended(setting, &addresses);
    let mut rows = Vec::new();
    let time = Length::Time(Duration::from_millis(setting.choose(1000, 200)));
    for (name, rivals) in [("2 programs alternate", 2), ("8 programs", 8)] {
        let game = |wake_ups| Game { rivals, wake_ups, held: Duration::from_millis(1), length: time };
        let played = take_turns(
            setting.choose((7, 1), (2, 1)),
            &mut [&mut || play(&stand, &addresses, game(true)), &mut || play(&stand, &addresses, game(false))],
        );
        let [with, without] = &played[..] else { continue };
        rows.extend(rows_of((name, rivals), with, without, uncontended));
    }
    for nodes in [3, 4, 5] {
        for rivals in setting.choose(&[2, 8, 32][..], &[8]) {
            let length = Length::Rounds(setting.choose(30, 4));
            let game = Game { rivals: *rivals, wake_ups: true, held: Duration::ZERO, length };
            let outcome = play(&stand, &addresses[..nodes], game);
            let (times, attempts) = outcome.firsts();
            let name = |what: &str| format!("{rivals} programs start at once, {nodes} nodes: {what}");
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

fn rows_of((name, rivals): (&str, usize), with: &[Outcome], without: &[Outcome], uncontended: f64) -> Vec<Row> {
    let against = ("no wake-ups", without);
    let ratio = |figure: &str, unit, of: &dyn Fn(&Outcome) -> f64| {
        Row::ratio(format!("{name}: {figure}"), unit, with, against, |outcome| of(outcome))
    };
    let median = |of: &dyn Fn(&Outcome) -> f64| contest::Spread::over(with, |outcome| of(outcome)).median;
    let per_lock = |part: f64| {
        let figure = move |outcome: &Outcome| outcome.gaps().quantile(part);
        Row::value(format!("{name}: gap p{}, of an uncontended lock", part * 100.0), "µs", median(&figure))
            .against("uncontended", uncontended)
    };
    vec![
        ratio("gap from unlock to the other's lock, p50", "µs", &|outcome| outcome.gaps().quantile(0.5)),
        ratio("the same, p99", "µs", &|outcome| outcome.gaps().quantile(0.99)),
        // Of many on one core, most must be scheduled before the one whose turn it is.
        if rivals == 2 { per_lock(0.5).goal(Goal::RatioAtMost(2.5)) } else { per_lock(0.5) },
        if rivals == 2 { per_lock(0.99).goal(Goal::RatioAtMost(10.0)) } else { per_lock(0.99) },
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

/// The median of a lock that nobody else wants, in microseconds.
fn uncontended(setting: &Setting, addresses: &[SocketAddr]) -> f64 {
    let client = ours::client(addresses);
    let mutex = ours::mutex(&client, "rivals/nobody");
    let plan = contest::Plan { rounds: 3, turns: setting.choose(10, 2), operations: 50 };
    let samples = interleave(plan, &mut [&mut || ours::pair(&mutex)]);
    contest::Spread::over(&samples[0], |samples| samples.lock.quantile(0.5)).median
}

/// Lets the rivals play.
fn play(stand: &Stand, addresses: &[SocketAddr], game: Game) -> Outcome {
    let program = std::env::current_exe().expect("the path of this program");
    let (kind, length) = match game.length {
        Length::Rounds(rounds) => ("rounds", rounds.to_string()),
        Length::Time(time) => ("time", time.as_millis().to_string()),
    };
    let mut children: Vec<Child> = (0..game.rivals)
        .map(|_| {
            let mut command = Command::new(&program);
            command.args([
                MARK,
                kind,
                &length,
                &game.rivals.to_string(),
                &game.wake_ups.to_string(),
                &game.held.as_micros().to_string(),
            ]);
            command.args(addresses.iter().map(ToString::to_string));
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a rival")
        })
        .collect();
    let mut words: Vec<_> =
        children.iter_mut().map(|child| BufReader::new(child.stdout.take().expect("its words"))).collect();
    for word in &mut words {
        let mut line = String::new();
        word.read_line(&mut line).expect("that it is ready");
    }
    let before = stand.commands().1;
    let start = now() + HEAD_START.as_nanos() as u64;
    for child in &mut children {
        writeln!(child.stdin.as_mut().expect("its ear"), "{start}").expect("a rival that listens");
    }
    let mut outcome = Outcome::default();
    for (rival, word) in words.into_iter().enumerate() {
        for line in word.lines() {
            let line = line.expect("a line");
            let numbers: Vec<u64> = line.split(' ').filter_map(|number| number.parse().ok()).collect();
            let [wanted, had, released, attempts] = numbers[..] else { continue };
            outcome.turns.push(Turn { rival, wanted, had, released, attempts: attempts as u32 });
        }
    }
    for child in &mut children {
        child.wait().expect("its end");
    }
    outcome.turns.sort_by_key(|turn| turn.had);
    outcome.commands = stand.commands().1 - before;
    let end = outcome.turns.last().map_or(start, |turn| turn.released);
    outcome.seconds = end.saturating_sub(start) as f64 / 1e9;
    outcome
}

/// Counts the attempts of the last acquisition.
#[derive(Default)]
struct Attempts(AtomicU32);

impl Observer for Attempts {
    fn acquired(&self, event: &Acquired) {
        self.0.store(event.attempts(), Ordering::Relaxed);
    }
}

/// Does what the rest of the command line says.
pub(crate) fn run(order: &[&str]) {
    let [kind, length, rivals, wake_ups, held, addresses @ ..] = order else {
        panic!("--rival kind length rivals wake-ups held …")
    };
    let period = PERIOD * rivals.parse().expect("a number");
    let held = Duration::from_micros(held.parse().expect("a number"));
    let length: u64 = length.parse().expect("a number");
    let attempts = Arc::new(Attempts::default());
    let client = Redlock::builder()
        .nodes(addresses.iter().map(|address| format!("redis://{address}")))
        .node_timeout(Duration::from_secs(1))
        .wake_ups(*wake_ups == "true")
        .observer(Arc::clone(&attempts))
        .build()
        .expect("a client");
    // The connections are made before it begins.
    drop(client.mutex(format!("rivals/warm-up/{}", std::process::id())).lock());
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("when to begin");
    let start: u64 = line.trim().parse().expect("a time");
    let mutex = ours::mutex(&client, "rivals");
    let mut turns = Vec::new();
    let mut turn = |wanted: u64| {
        let Ok(guard) = mutex.lock() else { return };
        let had = now();
        if !held.is_zero() {
            thread::sleep(held);
        }
        let released = now();
        let _ = guard.unlock();
        turns.push([wanted, had, released, attempts.0.load(Ordering::Relaxed).into()]);
    };
    if *kind == "rounds" {
        for round in 0..length {
            let at = start + round * period.as_nanos() as u64;
            wait_until(at);
            turn(at);
        }
    } else {
        wait_until(start);
        let end = start + length * 1_000_000;
        while now() < end {
            turn(now());
        }
    }
    let mut text = String::new();
    for turn in turns {
        text += &format!("{} {} {} {}\n", turn[0], turn[1], turn[2], turn[3]);
    }
    print!("{text}");
}

fn wait_until(at: u64) {
    thread::sleep(Duration::from_nanos(at.saturating_sub(now())));
}

/// The clock that all processes share, in nanoseconds.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
