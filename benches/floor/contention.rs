//! Contention: several [programs](crate::competition) want one lock.
//!
//! Two settings take turns: with release notifications, and without, where a waiter gets the lock
//! only by the delay between attempts. Two competitors are also compared with two [bare
//! programs](crate::bare_handoff): a hand-off takes a release, a notification and an attempt, and
//! so more than an attempt alone.

use crate::Setting;
use crate::comparison::{self, interleave, take_all_turns};
use crate::competition::{Length, Outcome, Workload, run};
use crate::competitor::Means;
use crate::library;
use crate::servers::Servers;
use crate::table::{Goal, Row};
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, 5);
    let addresses = servers.addresses(5);
    let uncontended = uncontended(setting, &addresses);
    let mut rows = Vec::new();
    let time = Length::Time(Duration::from_millis(setting.choose(500, 200)));
    for (name, competitors) in [("2 programs alternate", 2), ("8 programs", 8)] {
        let run = |means| {
            let groups = [(means, competitors)];
            run(&addresses, Workload::new(&groups, time))
        };
        let contenders: &mut [&mut dyn FnMut() -> Outcome] = &mut [
            &mut || run(Means::WakeUps),
            &mut || run(Means::Delay),
            &mut || run(Means::Bare),
        ];
        // There are exactly two bare programs.
        let contenders = if competitors == 2 {
            contenders
        } else {
            &mut contenders[..2]
        };
        let done = take_all_turns(setting.choose((5, 1), (2, 1)), contenders);
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
            rows.push(
                Row::value(name("first has it, p50"), "µs", times.quantile(0.5))
                    .against("uncontended", uncontended),
            );
            rows.push(
                Row::value(name("first has it, p99"), "µs", times.quantile(0.99))
                    .against("uncontended", uncontended),
            );
            rows.push(Row::value(
                name("attempts of the first, p50"),
                "",
                attempts.quantile(0.5),
            ));
            rows.push(Row::value(
                name("attempts of the first, most"),
                "",
                attempts.quantile(1.0),
            ));
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
    let against = ("no wake-ups", without);
    let ratio = |figure: &str, unit, of: &dyn Fn(&Outcome) -> f64| {
        Row::ratio(
            format!("{name}: {figure}"),
            unit,
            with,
            against,
            |outcome| of(outcome),
        )
    };
    let median =
        |of: &dyn Fn(&Outcome) -> f64| comparison::Spread::over(with, |outcome| of(outcome)).median;
    let per_lock = |part: f64| {
        let figure = move |outcome: &Outcome| outcome.gaps().quantile(part);
        Row::value(
            format!("{name}: gap p{}, of an uncontended lock", part * 100.0),
            "µs",
            median(&figure),
        )
        .against("uncontended", uncontended)
    };
    vec![
        ratio(
            "gap from unlock to the other's lock, p50",
            "µs",
            &|outcome| outcome.gaps().quantile(0.5),
        ),
        ratio("the same, p99", "µs", &|outcome| {
            outcome.gaps().quantile(0.99)
        }),
        // Of many on one core, most must be scheduled before the one whose turn it is.
        if competitors == 2 {
            per_lock(0.5).goal(Goal::RatioAtMost(2.5))
        } else {
            per_lock(0.5)
        },
        if competitors == 2 {
            per_lock(0.99).goal(Goal::RatioAtMost(10.0))
        } else {
            per_lock(0.99)
        },
        ratio("acquisitions/s", "", &Outcome::rate),
        ratio("longest wait, of the mean", "", &|outcome| {
            outcome.waits().quantile(1.0) / outcome.mean_wait()
        })
        .goal(Goal::ValueAtMost(10.0)),
        ratio("longest wait", "ms", &|outcome| {
            outcome.waits().quantile(1.0) / 1000.0
        }),
        ratio("attempts an acquisition", "", &|outcome| {
            outcome
                .turns
                .iter()
                .map(|turn| f64::from(turn.attempts))
                .sum::<f64>()
                / outcome.turns.len() as f64
        }),
    ]
}

/// A bare program's hand-off as a ratio to an uncontended lock, and the library's as a ratio to
/// that.
fn floor_of(name: &str, with: &[Outcome], bare: &[Outcome], uncontended: f64) -> Vec<Row> {
    let gap = |what: &str, part: f64| {
        Row::ratio(
            format!("{name}: {what}"),
            "µs",
            with,
            ("floor", bare),
            move |outcome| outcome.gaps().quantile(part),
        )
    };
    let floor = comparison::Spread::over(bare, |outcome| outcome.gaps().quantile(0.5)).median;
    vec![
        gap("gap p50, of a bare program's", 0.5),
        gap("gap p99, of a bare program's", 0.99),
        Row::value(
            format!("{name}: a bare program's gap p50, of an uncontended lock"),
            "µs",
            floor,
        )
        .against("uncontended", uncontended),
    ]
}

/// The median of an uncontended lock, in microseconds.
pub(crate) fn uncontended(setting: &Setting, addresses: &[SocketAddr]) -> f64 {
    let client = library::client(addresses);
    let mutex = library::mutex(&client, "contention/uncontended");
    let plan = comparison::Plan {
        rounds: 3,
        turns: setting.choose(10, 2),
        operations: 50,
    };
    let samples = interleave(plan, &mut [&mut || library::pair(&mutex)]);
    comparison::Spread::over(&samples[0], |samples| samples.lock.quantile(0.5)).median
}
