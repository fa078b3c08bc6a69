//! Rivals: several programs want one lock, each with a client of its own.
//!
//! Each rival is this program again, as a child. The children share the client's core, as programs of one machine do. They
//! write down when they had the lock, by the clock that all processes of a machine share; who waited for how long, and how
//! long the lock lay free between two of them, follows from that. What is to be compared takes turns: with wake-ups, and
//! without, where only the delay between attempts brings the lock to somebody else. Two of them are also compared with two
//! [bare programs](crate::bare): it takes a release, a hint and an attempt to hand a lock on, and so much more than an attempt.

use crate::Setting;
use crate::contest::{self, Times, interleave, take_turns};
use crate::ours;
use crate::rival::{MARK, Means, now};
use crate::stand::Stand;
use crate::table::{Goal, Row};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long from the parent's word until all begin.
const HEAD_START: Duration = Duration::from_millis(30);

/// What rivals do, and for how long.
#[derive(Clone, Copy)]
struct Game {
    rivals: usize,
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
    // For the bare programs.
    stand.load_script();
    let uncontended = uncontended(setting, &addresses);
    let mut rows = Vec::new();
    let time = Length::Time(Duration::from_millis(setting.choose(1000, 200)));
    for (name, rivals) in [("2 programs alternate", 2), ("8 programs", 8)] {
        let play =
            |means| play(&stand, &addresses, Game { rivals, means, held: Duration::from_millis(1), length: time });
        let players: &mut [&mut dyn FnMut() -> Outcome] =
            &mut [&mut || play(Means::WakeUps), &mut || play(Means::Delay), &mut || play(Means::Bare)];
        // The bare ones are two.
        let players = if rivals == 2 { players } else { &mut players[..2] };
        let played = take_turns(setting.choose((7, 1), (2, 1)), players);
        let [with, without, bare @ ..] = &played[..] else { continue };
        rows.extend(rows_of((name, rivals), with, without, uncontended));
        for bare in bare {
            rows.extend(floor_of(name, with, bare, uncontended));
        }
    }
    for nodes in [3, 4, 5] {
        for rivals in setting.choose(&[2, 8, 32][..], &[8]) {
            let length = Length::Rounds(setting.choose(30, 4));
            let game = Game { rivals: *rivals, means: Means::WakeUps, held: Duration::ZERO, length };
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

/// What a bare program's hand-off is, of an uncontended lock, and ours of that.
fn floor_of(name: &str, with: &[Outcome], bare: &[Outcome], uncontended: f64) -> Vec<Row> {
    let gap = |what: &str, part: f64| {
        Row::ratio(format!("{name}: {what}"), "µs", with, ("floor", bare), move |outcome| {
            outcome.gaps().quantile(part)
        })
    };
    let floor = contest::Spread::over(bare, |outcome| outcome.gaps().quantile(0.5)).median;
    vec![
        gap("gap p50, of a bare program's", 0.5),
        gap("gap p99, of a bare program's", 0.99),
        Row::value(format!("{name}: a bare program's gap p50, of an uncontended lock"), "µs", floor)
            .against("uncontended", uncontended),
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
        .map(|index| {
            let mut command = Command::new(&program);
            command.args([
                MARK,
                kind,
                &length,
                &game.rivals.to_string(),
                &index.to_string(),
                game.means.name(),
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
