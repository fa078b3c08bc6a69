//! Waiting at scale: what it costs that many programs want one lock, of each kind, beside those
//! that fail or poll.
//!
//! The [programs](crate::competition) are the contention section's. Settings that are compared take
//! turns. With `n` programs in turn, each waits for all others: the longest wait is compared with
//! `n` turns of that run.

use crate::comparison::{Spread, each_of, in_turns};
use crate::competition::{Disturbance, Length, Outcome, Workload, commands_each, run};
use crate::competitor::{Means, PERMITS};
use crate::contention;
use crate::servers::Servers;
use crate::setting::Setting;
use crate::table::Row;
use std::net::SocketAddr;
use std::ops::Range;
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
    let all = MANY.map(|(programs, _)| programs);
    let mut rows = Vec::new();
    for (means, nodes, programs, most) in [
        (Means::WakeUps, NODES, &all[..], 500),
        (Means::Fair, NODES, &all, 500),
        (Means::Fenced, NODES, &all, 50),
        (Means::Set, NODES, &all, 50),
        (Means::WakeUps, 5, &[SOME], SOME),
    ] {
        let most = setting.choose(most, 8);
        for &programs in programs.iter().filter(|&&programs| programs <= most) {
            rows.extend(many(setting, &servers, means, nodes, programs));
        }
    }
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

/// Lets workloads take turns.
fn outcomes<const N: usize>(
    setting: &Setting,
    addresses: &[SocketAddr],
    workloads: [Workload<'_>; N],
) -> [Vec<Outcome>; N] {
    let turns = setting.choose((3, 1), (1, 1));
    each_of(in_turns(turns, N, |index| run(addresses, workloads[index])))
}

/// Many programs, and the same with 2.
fn many(
    setting: &Setting,
    servers: &Servers,
    means: Means,
    nodes: usize,
    programs: usize,
) -> Vec<Row> {
    let addresses = servers.addresses(nodes);
    // Long enough for several turns of each.
    let time = Duration::from_millis(setting.choose(2000.max(programs as u64 * 20), 200));
    let groups = [(means, programs)];
    let crowd = workload(&groups, time);
    let [many, two] = &outcomes(setting, &addresses, [crowd, workload(&[(means, 2)], time)]);
    let name = |what: &str| format!("{programs} programs, {}, N = {nodes}: {what}", means.name());
    let keys = if means == Means::Set { 2.0 } else { 1.0 };
    let commands = commands_each(servers, &addresses, crowd) / keys;
    let bound = MANY
        .iter()
        .find(|(known, _)| *known == programs)
        .map_or(1.6, |(_, bound)| *bound);
    let value = |what: &str, value| Row::value(name(what), "", value);
    vec![
        Row::ratio(
            name("acquisitions/s"),
            "",
            many,
            ("2 programs", two),
            Outcome::rate,
        )
        .ratio_at_least(0.9),
        value("longest wait, to programs × turn", longest(many, programs)).value_at_most(bound),
        value("commands of an acquisition for a key at a node", commands).value_at_most(3.5),
        left(servers, name("queues left")),
    ]
}

/// The longest wait of each round, to a turn of every program.
fn longest(rounds: &[Outcome], programs: usize) -> f64 {
    let of =
        |outcome: &Outcome| outcome.longest_wait_millis() / 1e3 * outcome.rate() / programs as f64;
    Spread::over(rounds, of).median
}

fn left(servers: &Servers, name: String) -> Row {
    thread::sleep(SETTLED);
    let queues: usize = servers.queues().iter().sum();
    Row::value(name, "", queues as f64).value_at_most(0.0)
}

/// A hand-off between two, as a ratio to a lock that no other program wants.
fn two(setting: &Setting, servers: &Servers) -> Row {
    let addresses = servers.addresses(5);
    let time = Duration::from_millis(setting.choose(1000, 200));
    let done = in_turns(setting.choose((5, 1), (1, 1)), 1, |_| {
        run(&addresses, workload(&[(Means::WakeUps, 2)], time))
    });
    let gap = Spread::over(&done[0], Outcome::gap_p50).median;
    Row::value("2 programs: gap p50, of an uncontended lock", "µs", gap)
        .against("uncontended", contention::uncontended(setting, &addresses))
        .ratio_at_most(5.7)
}

/// Three programs that read and three that write, without a pause.
fn readers_and_writers(setting: &Setting, servers: &Servers) -> Vec<Row> {
    let groups = [(Means::Read, 3), (Means::Write, 3)];
    let time = Duration::from_millis(setting.choose(3000, 200));
    let addresses = servers.addresses(NODES);
    let [done] = outcomes(setting, &addresses, [workload(&groups, time)]);
    let share = |side: Range<usize>| {
        let of = |outcome: &Outcome| outcome.of(side.clone()).count() / outcome.count();
        Spread::over(&done, of).median * 100.0
    };
    [("readers", 0..3), ("writers", 3..6)]
        .map(|(name, side)| {
            let name = format!("3 readers and 3 writers: turns of the {name}");
            Row::value(name, "%", share(side)).value_at_least(30.0)
        })
        .into()
}

/// Programs that share permits, and as many with a lock each as there are permits.
fn permits(setting: &Setting, servers: &Servers) -> Row {
    let time = Duration::from_millis(setting.choose(2000, 200));
    let sharing = [(Means::Permit, 8)];
    let alone = [(Means::Own, PERMITS)];
    let workloads = [workload(&sharing, time), workload(&alone, time)];
    let [shared, own] = &outcomes(setting, &servers.addresses(NODES), workloads);
    let name = format!("8 programs, {PERMITS} permits: acquisitions/s");
    Row::ratio(name, "", shared, ("a lock each", own), Outcome::rate).ratio_at_least(0.85)
}

/// One fair program beside four plain ones on one node: each has the same share.
fn fair_beside_plain(setting: &Setting, servers: &Servers) -> Row {
    let groups = [(Means::Fair, 1), (Means::WakeUps, 4)];
    let time = Duration::from_millis(setting.choose(3000, 200));
    let [done] = outcomes(setting, &servers.addresses(1), [workload(&groups, time)]);
    let turns = |side: Range<usize>| {
        let programs = side.len() as f64;
        Spread::over(&done, |outcome| outcome.of(side.clone()).count()).median / programs
    };
    let name = "1 fair program beside 4 plain ones, N = 1: turns";
    Row::value(name, "", turns(0..1))
        .against("a plain one", turns(1..5))
        .ratio_at_least(0.9)
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
    let [disturbed, undisturbed] = &outcomes(setting, &addresses, [disturbed, undisturbed]);
    let name = |what: &str| format!("{SOME} programs, one in ten killed each second: {what}");
    let undisturbed = ("undisturbed", &undisturbed[..]);
    let longest = Spread::over(disturbed, Outcome::longest_wait_millis).median;
    vec![
        Row::ratio(
            name("acquisitions/s"),
            "",
            disturbed,
            undisturbed,
            Outcome::rate,
        )
        .ratio_at_least(0.7),
        Row::value(name("longest wait"), "ms", longest).value_at_most(400.0),
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
    let [done] = outcomes(setting, &addresses, [disturbed]);
    let others = |outcome: &Outcome| outcome.of(0..groups[0].1 - 1).longest_wait_millis();
    Row::value(
        format!("one of {SOME} programs stopped for {stop:?}: longest wait of the others"),
        "ms",
        Spread::over(&done, others).median,
    )
    .value_at_most(2000.0)
}

/// Beside programs that poll every 10 ms, and neither publish nor subscribe.
fn beside_polling(setting: &Setting, servers: &Servers) -> Vec<Row> {
    let time = Duration::from_millis(setting.choose(5000, 500));
    let groups = [(Means::WakeUps, EACH), (Means::Poll, EACH)];
    let beside = Workload {
        held: HELD * 2,
        ..workload(&groups, time)
    };
    let [done] = outcomes(setting, &servers.addresses(5), [beside]);
    let name = |what: &str| format!("{EACH} programs beside {EACH} that poll: {what}");
    let ours: Vec<Outcome> = done.iter().map(|outcome| outcome.of(0..EACH)).collect();
    let share = Spread::over(&ours, Outcome::count).median;
    let all = Spread::over(&done, Outcome::count).median;
    let longest = Spread::over(&ours, Outcome::longest_wait_millis).median;
    vec![
        Row::value(name("acquisitions"), "", share)
            .against("an even share", all / 2.0)
            .ratio_at_least(0.7),
        Row::value(name("longest wait"), "ms", longest).value_at_most(2000.0),
    ]
}

/// 4 programs at servers that have I/O threads, as a ratio to the same servers without.
fn with_io_threads(setting: &Setting, nodes: usize) -> Row {
    let what = format!("4 programs, N = {nodes} with 4 I/O threads: acquisitions/s");
    let Some(threaded) = Servers::try_with(setting, nodes, &["--io-threads", "4"]) else {
        return Row::missing(what, "this server has no I/O threads");
    };
    let plain = Servers::start(setting, nodes);
    let groups = [(Means::WakeUps, 4)];
    let time = Duration::from_millis(setting.choose(1000, 200));
    let load = Workload {
        held: HELD * 2,
        ..workload(&groups, time)
    };
    let servers = [threaded, plain];
    let addresses = servers.each_ref().map(|servers| servers.addresses(nodes));
    let turns = setting.choose((3, 1), (1, 1));
    let done = in_turns(turns, 2, |index| run(&addresses[index], load));
    Row::ratio(
        what,
        "",
        &done[0],
        ("no I/O threads", &done[1]),
        Outcome::rate,
    )
    .ratio_at_least(0.9)
}
