//! Contention: several [programs](crate::competition) want one lock.
//!
//! Two settings take turns: with release notifications, and without, where a waiter gets the lock
//! only by the delay between attempts. Two competitors are also compared with two [bare
//! programs](crate::bare_handoff): a hand-off takes a release, a notification and an attempt, and
//! so more than an attempt alone.

use crate::comparison::{Plan, Samples, Spread, in_turns, interleave};
use crate::competition::{Length, Outcome, Workload, run};
use crate::competitor::Means;
use crate::library;
use crate::servers::Servers;
use crate::setting::Setting;
use crate::table::{Row, Rows};
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, 5);
    let addresses = servers.addresses(5);
    let uncontended = uncontended(setting, &addresses);
    let mut rows = Vec::new();
    let time = Length::Time(Duration::from_millis(setting.choose(500, 200)));
    for (name, competitors) in [("2 programs alternate", 2), ("8 programs", 8)] {
        // There are exactly two bare programs.
        let means = match competitors {
            2 => &[Means::WakeUps, Means::Delay, Means::Bare][..],
            _ => &[Means::WakeUps, Means::Delay],
        };
        let done = in_turns(setting.turns(), means.len(), |index| {
            let groups = [(means[index], competitors)];
            run(&addresses, Workload::new(&groups, time))
        });
        let [with, without, bare @ ..] = &done[..] else {
            continue;
        };
        rows.extend(rows_of((name, competitors), with, without, uncontended));
        for bare in bare {
            rows.extend(floor_of(name, with, bare, uncontended));
        }
    }
    for nodes in [3, 4, 5] {
        for competitors in setting.choose(&[2, 8, 32][..], &[8]) {
            let length = Length::Rounds(setting.choose(12, 4));
            let groups = [(Means::WakeUps, *competitors)];
            let workload = Workload {
                held: Duration::ZERO,
                ..Workload::new(&groups, length)
            };
            let outcome = run(&addresses[..nodes], workload);
            let (times, attempts) = outcome.firsts();
            let name =
                |what: &str| format!("{competitors} programs start at once, {nodes} nodes: {what}");
            for (what, part) in [("p50", 0.5), ("p99", 0.99)] {
                let name = name(&format!("first has it, {what}"));
                let row = Row::value(name, "µs", times.quantile(part));
                rows.push(row.against("uncontended", uncontended));
            }
            for (what, part) in [("p50", 0.5), ("most", 1.0)] {
                let name = name(&format!("attempts of the first, {what}"));
                rows.push(Row::value(name, "", attempts.quantile(part)));
            }
        }
    }
    rows
}

fn rows_of(
    (name, competitors): (&str, usize),
    with: &[Outcome],
    without: &[Outcome],
    uncontended: f64,
) -> Vec<Row> {
    let rows = Rows::new(format!("{name}: "), with, ("no wake-ups", without));
    let per_lock = |part: f64, bound| {
        let what = format!("{name}: gap p{}, of an uncontended lock", part * 100.0);
        let gap = Spread::over(with, |outcome| outcome.gaps().quantile(part)).median;
        let row = Row::value(what, "µs", gap).against("uncontended", uncontended);
        // Of many on one core, most must be scheduled before the one whose turn it is.
        match competitors {
            2 => row.ratio_at_most(bound),
            _ => row,
        }
    };
    vec![
        rows.row(
            "gap from unlock to the other's lock, p50",
            "µs",
            Outcome::gap_p50,
        ),
        rows.row("the same, p99", "µs", Outcome::gap_p99),
        per_lock(0.5, 2.5),
        per_lock(0.99, 10.0),
        rows.row("acquisitions/s", "", Outcome::rate),
        rows.row("longest wait, of the mean", "", |outcome| {
            outcome.waits().quantile(1.0) / outcome.mean_wait()
        })
        .value_at_most(10.0),
        rows.row("longest wait", "ms", Outcome::longest_wait_millis),
        rows.row("attempts an acquisition", "", |outcome| {
            let attempts = outcome.turns.iter().map(|turn| f64::from(turn.attempts));
            attempts.sum::<f64>() / outcome.count()
        }),
    ]
}

/// A bare program's hand-off as a ratio to an uncontended lock, and the library's as a ratio to
/// that.
fn floor_of(name: &str, with: &[Outcome], bare: &[Outcome], uncontended: f64) -> Vec<Row> {
    let rows = Rows::new(format!("{name}: "), with, ("floor", bare));
    let floor = Spread::over(bare, Outcome::gap_p50).median;
    let what = format!("{name}: a bare program's gap p50, of an uncontended lock");
    vec![
        rows.row("gap p50, of a bare program's", "µs", Outcome::gap_p50),
        rows.row("gap p99, of a bare program's", "µs", Outcome::gap_p99),
        Row::value(what, "µs", floor).against("uncontended", uncontended),
    ]
}

/// The median of an uncontended lock, in microseconds.
pub(crate) fn uncontended(setting: &Setting, addresses: &[SocketAddr]) -> f64 {
    let client = library::client(addresses);
    let mutex = library::mutex(&client, "contention/uncontended");
    let plan = Plan {
        rounds: 3,
        turns: setting.choose(10, 2),
        operations: 50,
    };
    let samples = interleave(plan, &mut [&mut || library::pair(&mutex)]);
    Spread::over(&samples[0], Samples::lock_p50).median
}
