//! Waiting at scale: what it costs that many programs want one lock, of each kind, beside those
//! that fail or poll.
//!
//! The [programs](crate::competition) are the contention section's. Settings that are compared take
//! turns. With `n` programs in turn, each waits for all others: the longest wait is compared with
//! `n` turns of that run.

use crate::Setting;
use crate::comparison::{Spread, take_turns};
use crate::competition::{Disturbance, Length, Outcome, Workload, commands_each, run};
use crate::competitor::{Means, PERMITS};
use crate::contention;
use crate::servers::Servers;
use crate::table::{Goal, Row};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

const NODES: usize = 3;
const HELD: Duration = Duration::from_millis(1);
/// How many programs want one lock, and how long one of them may wait at the most, in turns of all.
const MANY: [(usize, f64); 4] = [(8, 2.0), (50, 1.6), (200, 1.6), (500, 1.7)];
/// The programs of the settings in which some fail, and of those that are compared with programs
/// that poll.
const SOME: usize = 50;
const EACH: usize = 2;
/// The lock of a program that may be killed while it holds it: many turns long.
const SHORT_TTL: Duration = Duration::from_millis(250);
/// Queues that are left on the nodes are counted so long after a run: releases in flight have
/// arrived.
const SETTLED: Duration = Duration::from_secs(1);

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, 5);
    // For the programs that poll.
    let mut rows = Vec::new();
    for (means, most) in [
        (Means::WakeUps, setting.choose(500, 8)),
        (Means::Fair, setting.choose(500, 8)),
        (Means::Fenced, setting.choose(50, 8)),
        (Means::Set, setting.choose(50, 8)),
    ] {
        rows.extend(many(
            setting,
            &servers,
            means,
            NODES,
            &MANY.map(|(programs, _)| programs),
            most,
        ));
    }
    rows.extend(many(
        setting,
        &servers,
        Means::WakeUps,
        5,
        &[SOME],
        setting.choose(SOME, 8),
    ));
    rows.push(two(setting, &servers));
    rows.extend(readers_and_writers(setting, &servers));
    rows.push(permits(setting, &servers));
    rows.push(fair_beside_plain(setting, &servers));
    rows.extend(killed(setting, &servers));
    rows.push(stopped(setting, &servers));
    rows.extend(beside_polling(setting, &servers));
    rows.extend([1, 3, 5].map(|nodes| with_io_threads(setting, nodes)));
    rows
}

/// A workload of one kind that nothing disturbs.
fn workload(groups: &[(Means, usize)], time: Duration) -> Workload<'_> {
    Workload::new(groups, Length::Time(time))
}

/// Many programs, and the same with 2.
fn many(
    setting: &Setting,
    servers: &Servers,
    means: Means,
    nodes: usize,
    programs: &[usize],
    most: usize,
) -> Vec<Row> {
    let addresses = servers.addresses(nodes);
    let mut rows = Vec::new();
    for &programs in programs.iter().filter(|&&programs| programs <= most) {
        // Long enough for several turns of each.
        let time = Duration::from_millis(setting.choose(2000.max(programs as u64 * 20), 200));
        let of = |programs| run(&addresses, workload(&[(means, programs)], time));
        let [many, two] = &take_turns(
            setting.choose((3, 1), (1, 1)),
            &mut [&mut || of(programs), &mut || of(2)],
        );
        let name =
            |what: &str| format!("{programs} programs, {}, N = {nodes}: {what}", means.name());
        let keys = if means == Means::Set { 2.0 } else { 1.0 };
        let commands =
            commands_each(servers, &addresses, workload(&[(means, programs)], time)) / keys;
        rows.push(
            Row::ratio(
                name("acquisitions/s"),
                "",
                many,
                ("2 programs", two),
                Outcome::rate,
            )
            .goal(Goal::RatioAtLeast(0.9)),
        );
        let longest = Row::value(
            name("longest wait, to programs × turn"),
            "",
            longest(many, programs),
        );
        let bound = MANY
            .iter()
            .find(|(known, _)| *known == programs)
            .map_or(1.6, |(_, bound)| *bound);
        rows.push(longest.goal(Goal::ValueAtMost(bound)));
        rows.push(
            Row::value(
                name("commands of an acquisition for a key at a node"),
                "",
                commands,
            )
            .goal(Goal::ValueAtMost(3.5)),
        );
        rows.push(left(servers, name("queues left")));
    }
    rows
}

/// The longest wait of each round, to a turn of every program.
fn longest(rounds: &[Outcome], programs: usize) -> f64 {
    let of =
        |outcome: &Outcome| outcome.waits().quantile(1.0) / 1e6 * outcome.rate() / programs as f64;
    Spread::over(rounds, of).median
}

fn left(servers: &Servers, name: String) -> Row {
    thread::sleep(SETTLED);
    Row::value(name, "", servers.queues()).goal(Goal::ValueAtMost(0.0))
}

/// A hand-off between two, as a ratio to a lock that no other program wants.
fn two(setting: &Setting, servers: &Servers) -> Row {
    let addresses = servers.addresses(5);
    let time = Duration::from_millis(setting.choose(1000, 200));
    let hand_over = || run(&addresses, workload(&[(Means::WakeUps, 2)], time));
    let done = take_turns(setting.choose((5, 1), (1, 1)), &mut [&mut || hand_over()]);
    let gap = Spread::over(&done[0], |outcome| outcome.gaps().quantile(0.5)).median;
    Row::value("2 programs: gap p50, of an uncontended lock", "µs", gap)
        .against("uncontended", contention::uncontended(setting, &addresses))
        .goal(Goal::RatioAtMost(5.7))
}

/// Three programs that read and three that write, without a pause.
fn readers_and_writers(setting: &Setting, servers: &Servers) -> Vec<Row> {
    let groups = [(Means::Read, 3), (Means::Write, 3)];
    let time = Duration::from_millis(setting.choose(3000, 200));
    let addresses = servers.addresses(NODES);
    let done = take_turns(
        setting.choose((3, 1), (1, 1)),
        &mut [&mut || run(&addresses, workload(&groups, time))],
    );
    let share = |side: std::ops::Range<usize>| {
        let of = |outcome: &Outcome| {
            outcome.of(side.clone()).turns.len() as f64 / outcome.turns.len() as f64
        };
        Spread::over(&done[0], of).median * 100.0
    };
    [("readers", 0..3), ("writers", 3..6)]
        .map(|(name, side)| {
            Row::value(
                format!("3 readers and 3 writers: turns of the {name}"),
                "%",
                share(side),
            )
            .goal(Goal::ValueAtLeast(30.0))
        })
        .into()
}

/// Programs that share permits, and as many with a lock each as there are permits.
fn permits(setting: &Setting, servers: &Servers) -> Row {
    let addresses = servers.addresses(NODES);
    let time = Duration::from_millis(setting.choose(2000, 200));
    let of = |groups: &[(Means, usize)]| run(&addresses, workload(groups, time));
    let [shared, own] = &take_turns(
        setting.choose((3, 1), (1, 1)),
        &mut [&mut || of(&[(Means::Permit, 8)]), &mut || {
            of(&[(Means::Own, PERMITS)])
        }],
    );
    Row::ratio(
        format!("8 programs, {PERMITS} permits: acquisitions/s"),
        "",
        shared,
        ("a lock each", own),
        Outcome::rate,
    )
    .goal(Goal::RatioAtLeast(0.85))
}

/// One fair program beside four plain ones on one node: each has the same share.
fn fair_beside_plain(setting: &Setting, servers: &Servers) -> Row {
    let groups = [(Means::Fair, 1), (Means::WakeUps, 4)];
    let time = Duration::from_millis(setting.choose(3000, 200));
    let addresses = servers.addresses(1);
    let done = take_turns(
        setting.choose((3, 1), (1, 1)),
        &mut [&mut || run(&addresses, workload(&groups, time))],
    );
    let turns = |side: std::ops::Range<usize>| {
        let programs = side.len() as f64;
        Spread::over(&done[0], |outcome| {
            outcome.of(side.clone()).turns.len() as f64
        })
        .median
            / programs
    };
    Row::value(
        "1 fair program beside 4 plain ones, N = 1: turns",
        "",
        turns(0..1),
    )
    .against("a plain one", turns(1..5))
    .goal(Goal::RatioAtLeast(0.9))
}

/// One in ten is killed each second, and may hold the lock then.
fn killed(setting: &Setting, servers: &Servers) -> Vec<Row> {
    let addresses = servers.addresses(NODES);
    let time = Duration::from_millis(setting.choose(4000, 400));
    let groups = [(Means::WakeUps, setting.choose(SOME, 8))];
    let undisturbed = Workload {
        ttl: SHORT_TTL,
        ..workload(&groups, time)
    };
    let disturbed = Workload {
        disturbance: Disturbance::Killed(SOME as u32 / 10),
        ..undisturbed
    };
    let [disturbed, undisturbed] = &take_turns(
        setting.choose((3, 1), (1, 1)),
        &mut [&mut || run(&addresses, disturbed), &mut || {
            run(&addresses, undisturbed)
        }],
    );
    let name = |what: &str| format!("{SOME} programs, one in ten killed each second: {what}");
    let against = ("undisturbed", &undisturbed[..]);
    let longest = Spread::over(disturbed, |outcome| outcome.waits().quantile(1.0)).median / 1000.0;
    vec![
        Row::ratio(
            name("acquisitions/s"),
            "",
            disturbed,
            against,
            Outcome::rate,
        )
        .goal(Goal::RatioAtLeast(0.7)),
        Row::value(name("longest wait"), "ms", longest).goal(Goal::ValueAtMost(400.0)),
        left(servers, name("queues left")),
    ]
}

/// One is stopped for three times the default of `place_lease`.
fn stopped(setting: &Setting, servers: &Servers) -> Row {
    let addresses = servers.addresses(NODES);
    let stop = Duration::from_millis(setting.choose(3000, 200));
    let groups = [(Means::WakeUps, setting.choose(SOME, 8))];
    let disturbed = Workload {
        ttl: SHORT_TTL,
        disturbance: Disturbance::Stopped(stop),
        ..workload(&groups, stop * 2)
    };
    let done = take_turns(
        setting.choose((3, 1), (1, 1)),
        &mut [&mut || run(&addresses, disturbed)],
    );
    let others = |outcome: &Outcome| outcome.of(0..groups[0].1 - 1).waits().quantile(1.0) / 1000.0;
    Row::value(
        format!("one of {SOME} programs stopped for {stop:?}: longest wait of the others"),
        "ms",
        Spread::over(&done[0], others).median,
    )
    .goal(Goal::ValueAtMost(2000.0))
}

/// Beside programs that poll every 10 ms, and neither publish nor subscribe.
fn beside_polling(setting: &Setting, servers: &Servers) -> Vec<Row> {
    let time = Duration::from_millis(setting.choose(5000, 500));
    let groups = [(Means::WakeUps, EACH), (Means::Poll, EACH)];
    let beside = Workload {
        held: HELD * 2,
        ..workload(&groups, time)
    };
    let addresses = servers.addresses(5);
    let done = take_turns(
        setting.choose((3, 1), (1, 1)),
        &mut [&mut || run(&addresses, beside)],
    );
    let name = |what: &str| format!("{EACH} programs beside {EACH} that poll: {what}");
    let ours: Vec<Outcome> = done[0].iter().map(|outcome| outcome.of(0..EACH)).collect();
    let share = Spread::over(&ours, |outcome| outcome.turns.len() as f64).median;
    let all = Spread::over(&done[0], |outcome| outcome.turns.len() as f64).median;
    let longest = Spread::over(&ours, |outcome| outcome.waits().quantile(1.0)).median / 1000.0;
    vec![
        Row::value(name("acquisitions"), "", share)
            .against("an even share", all / 2.0)
            .goal(Goal::RatioAtLeast(0.7)),
        Row::value(name("longest wait"), "ms", longest).goal(Goal::ValueAtMost(2000.0)),
    ]
}

/// 4 programs at servers that have I/O threads, as a ratio to the same servers without.
fn with_io_threads(setting: &Setting, nodes: usize) -> Row {
    let what = format!("4 programs, N = {nodes} with 4 I/O threads: acquisitions/s");
    let Some(threaded) = Servers::try_with(setting, nodes, &["--io-threads", "4"]) else {
        return Row::missing(what, "this server has no I/O threads");
    };
    let plain = Servers::start(setting, nodes);
    let time = Duration::from_millis(setting.choose(1000, 200));
    let on = |servers: &Servers| {
        let addresses: Vec<SocketAddr> = servers.addresses(nodes);
        run(
            &addresses,
            Workload {
                held: HELD * 2,
                ..workload(&[(Means::WakeUps, 4)], time)
            },
        )
    };
    let done = take_turns(
        setting.choose((3, 1), (1, 1)),
        &mut [&mut || on(&threaded), &mut || on(&plain)],
    );
    Row::ratio(
        what,
        "",
        &done[0],
        ("no I/O threads", &done[1]),
        Outcome::rate,
    )
    .goal(Goal::RatioAtLeast(0.9))
}
