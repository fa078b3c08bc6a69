//! Sets: several resources together, against one of them alone, in turns and by the same client.

use crate::comparison::{Samples, interleave};
use crate::servers::Servers;
use crate::table::{Goal, Row};
use crate::{Setting, library};
use quorumlock::{MutexSet, Redlock};
use std::time::Duration;

const NODES: usize = 5;

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let plan = setting.plan();
    let servers = Servers::start(setting, NODES);
    let client = library::client(&servers.addresses(NODES));
    let single = library::mutex(&client, "sets/single");
    let two = set(&client, 2);
    let eight = set(&client, 8);
    let [single, two, eight] = &interleave(
        plan,
        &mut [
            &mut || library::pair(&single),
            &mut || library::pair(&two),
            &mut || library::pair(&eight),
        ],
    );
    let row = |name: &str, rounds, get: fn(&Samples) -> f64| {
        Row::ratio(
            format!("{name}, N = {NODES}"),
            "µs",
            rounds,
            ("a lock", &single[..]),
            get,
        )
    };
    vec![
        row("a set of 2, pair p50", two, |round| {
            round.pair.quantile(0.5)
        })
        .goal(Goal::RatioAtMost(1.2)),
        row("a set of 8, pair p50", eight, |round| {
            round.pair.quantile(0.5)
        })
        .goal(Goal::RatioAtMost(1.8)),
        row("a set of 2, lock p50", two, |round| {
            round.lock.quantile(0.5)
        }),
        row("a set of 8, lock p50", eight, |round| {
            round.lock.quantile(0.5)
        }),
    ]
}

fn set(client: &Redlock, count: usize) -> MutexSet {
    let names = (0..count).map(|number| format!("sets/{count}/{number}"));
    client.mutex_set(names).ttl(Duration::from_secs(60))
}
