//! Fair locks: what the order costs, against a plain lock on the same nodes: alone, and with programs that compete.

use crate::Setting;
use crate::comparison::{Plan, Samples, interleave, take_turns};
use crate::competitor::Means;
use crate::library;
use crate::programs::{Length, Outcome, Workload, run};
use crate::servers::Servers;
use crate::table::{Goal, Row};
use std::time::Duration;

const PROGRAMS: usize = 8;
const HELD: Duration = Duration::from_millis(1);

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, 5);
    let mut rows = Vec::new();
    for (nodes, most) in [(3, 1.35), (5, 1.6)] {
        rows.extend(alone(setting, &servers, nodes, most));
    }
    for threads in [1, 4] {
        rows.extend(programs(setting, &servers, threads));
    }
    rows
}

fn alone(setting: &Setting, servers: &Servers, nodes: usize, most: f64) -> Vec<Row> {
    let plan =
        setting.choose(Plan { rounds: 9, turns: 12, operations: 50 }, Plan { rounds: 2, turns: 2, operations: 25 });
    let client = library::client(&servers.addresses(nodes));
    let (plain, fair) = (library::mutex(&client, "fair/plain"), library::mutex(&client, "fair/fair").fair());
    let rounds = interleave(plan, &mut [&mut || library::pair(&plain), &mut || library::pair(&fair)]);
    let [plain, fair] = &rounds[..] else { return Vec::new() };
    let row = |figure: &str, get: fn(&Samples) -> f64| {
        Row::ratio(format!("N = {nodes}, alone: fair {figure}"), "µs", fair, ("plain", plain), get)
    };
    vec![
        row("pair p50", |round| round.pair.quantile(0.5)).goal(Goal::RatioAtMost(most)),
        row("lock p50", |round| round.lock.quantile(0.5)),
        row("unlock p50", |round| round.unlock.quantile(0.5)),
    ]
}

fn programs(setting: &Setting, servers: &Servers, threads: usize) -> Vec<Row> {
    let addresses = servers.addresses(3);
    let length = Length::Time(Duration::from_millis(setting.choose(1000, 200)));
    let play = |means| {
        run(servers, &addresses, Workload { competitors: PROGRAMS, threads, means, polling: 0, held: HELD, length })
    };
    let each = if threads == 1 { String::new() } else { format!(" of {threads} threads") };
    let rounds =
        take_turns(setting.choose((5, 1), (2, 1)), &mut [&mut || play(Means::WakeUps), &mut || play(Means::Fair)]);
    let [plain, fair] = &rounds[..] else { return Vec::new() };
    let row = |figure: &str, unit, get: fn(&Outcome) -> f64| {
        Row::ratio(format!("8 programs{each}: fair, {figure}"), unit, fair, ("plain", plain), get)
    };
    let commands = row("commands sent an acquisition", "", Outcome::commands_each);
    vec![
        row("acquisitions/s", "", Outcome::rate).goal(Goal::RatioAtLeast(0.9)),
        if threads > 1 { commands.goal(Goal::RatioAtMost(0.6)) } else { commands },
        row("gap from unlock to the next lock, p50", "µs", |outcome| outcome.gaps().quantile(0.5)),
        row("longest wait, of the mean", "", |outcome| outcome.waits().quantile(1.0) / outcome.mean_wait()),
    ]
}
