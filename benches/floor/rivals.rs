//! Waiting at scale, beside others: many programs, programs that poll, servers with I/O threads, strangers.
//!
//! The [programs](crate::programs) are those of the contention section. What one program does that has many waiters, or
//! none that waits for long, is in [`waiters`]. Settings that are compared take turns.

use crate::Setting;
use crate::comparison::{Spread, take_turns};
use crate::competitor::Means;
use crate::contention;
use crate::programs::{Length, Outcome, Workload, run};
use crate::servers::Servers;
use crate::table::{Goal, Row};
use crate::waiters;
use std::time::Duration;

/// How many programs are many.
const MANY: usize = 50;
/// How many programs of each kind are compared with those that poll.
const EACH: usize = 2;

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let mut rows: Vec<Row> = [1, 3, 5].into_iter().map(|nodes| with_io_threads(setting, nodes)).collect();
    let servers = Servers::start(setting, 5);
    // For the programs that poll.
    servers.load_script();
    rows.extend(waiters::measure(setting, &servers));
    rows.extend(many(setting, &servers));
    rows.extend(beside_polling(setting, &servers));
    rows.push(two(setting, &servers));
    rows
}

/// 4 programs at servers that have I/O threads, as a ratio to the same servers without.
fn with_io_threads(setting: &Setting, nodes: usize) -> Row {
    let what = format!("4 programs, hold 2 ms, N = {nodes} with 4 I/O threads: acquisitions/s");
    let Some(threaded) = Servers::try_with(setting, nodes, &["--io-threads", "4"]) else {
        return Row::missing(what, "this server has no I/O threads");
    };
    let plain = Servers::start(setting, nodes);
    let length = Length::Time(Duration::from_millis(setting.choose(1000, 200)));
    let held = Duration::from_millis(2);
    let workload = Workload { competitors: 4, threads: 1, means: Means::WakeUps, polling: 0, held, length };
    let on = |servers: &Servers| run(servers, &servers.addresses(nodes), workload);
    let done = take_turns(setting.choose((3, 1), (1, 1)), &mut [&mut || on(&threaded), &mut || on(&plain)]);
    Row::ratio(what, "", &done[0], ("no I/O threads", &done[1]), Outcome::rate).goal(Goal::RatioAtLeast(0.9))
}

/// Many programs, and the same with 2.
fn many(setting: &Setting, servers: &Servers) -> Vec<Row> {
    let held = Duration::from_millis(1);
    let length = Length::Time(Duration::from_millis(setting.choose(2000, 200)));
    let addresses = servers.addresses(5);
    let of = |competitors| {
        run(servers, &addresses, Workload { competitors, threads: 1, means: Means::WakeUps, polling: 0, held, length })
    };
    let done = take_turns(setting.choose((3, 1), (1, 1)), &mut [&mut || of(MANY), &mut || of(2)]);
    let [many, two] = &done[..] else { return Vec::new() };
    let name = |what: &str| format!("{MANY} programs, hold 1 ms: {what}");
    let median = |figure: &dyn Fn(&Outcome) -> f64| Spread::over(many, figure).median / 1000.0;
    // In turn, each waits for all others: each of them holds the lock and hands it on.
    let round = MANY as f64 * (held.as_secs_f64() * 1e3 + median(&|outcome| outcome.gaps().quantile(0.5)));
    let against = ("2 programs", &two[..]);
    vec![
        Row::ratio(name("commands an acquisition"), "", many, against, Outcome::commands_each)
            .goal(Goal::ValueAtMost(40.0)),
        Row::ratio(name("acquisitions/s"), "", many, against, Outcome::rate).goal(Goal::RatioAtLeast(0.8)),
        Row::value(name("longest wait"), "ms", median(&|outcome| outcome.waits().quantile(1.0)))
            .against("programs × (hold + median hand-off)", round)
            .goal(Goal::RatioAtMost(3.0)),
    ]
}

/// Beside programs that poll every 10 ms, and neither publish nor subscribe.
fn beside_polling(setting: &Setting, servers: &Servers) -> Vec<Row> {
    let length = Length::Time(Duration::from_millis(setting.choose(5000, 500)));
    let held = Duration::from_millis(2);
    let workload = Workload { competitors: EACH, threads: 1, means: Means::WakeUps, polling: EACH, held, length };
    let addresses = servers.addresses(5);
    let done = take_turns(setting.choose((3, 1), (1, 1)), &mut [&mut || run(servers, &addresses, workload)]);
    let name = |what: &str| format!("{EACH} programs beside {EACH} that poll: {what}");
    let even: Vec<Outcome> = done[0].iter().map(|outcome| outcome.of_first(EACH * 2)).collect();
    let ours: Vec<Outcome> = done[0].iter().map(|outcome| outcome.of_first(EACH)).collect();
    let share = Spread::over(&ours, |outcome| outcome.turns.len() as f64).median;
    let all = Spread::over(&even, |outcome| outcome.turns.len() as f64).median;
    let longest = Spread::over(&ours, |outcome| outcome.waits().quantile(1.0)).median / 1000.0;
    vec![
        Row::value(name("acquisitions"), "", share).against("an even share", all / 2.0).goal(Goal::RatioAtLeast(0.7)),
        Row::value(name("longest wait"), "ms", longest).goal(Goal::ValueAtMost(2000.0)),
    ]
}

/// A hand-off between two, as a ratio to a lock that no other program wants.
fn two(setting: &Setting, servers: &Servers) -> Row {
    let length = Length::Time(Duration::from_millis(setting.choose(1000, 200)));
    let workload = Workload {
        competitors: 2,
        threads: 1,
        means: Means::WakeUps,
        polling: 0,
        held: Duration::from_millis(1),
        length,
    };
    let addresses = servers.addresses(5);
    let done = take_turns(setting.choose((5, 1), (1, 1)), &mut [&mut || run(servers, &addresses, workload)]);
    let gap = Spread::over(&done[0], |outcome| outcome.gaps().quantile(0.5)).median;
    Row::value("2 programs, hold 1 ms: gap p50, of an uncontended lock", "µs", gap)
        .against("uncontended", contention::uncontended(setting, &addresses))
        .goal(Goal::RatioAtMost(5.7))
}
