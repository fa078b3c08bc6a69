//! Fair locks: what the order costs a lock that no other program wants, against a plain lock on the
//! same nodes.

use crate::Setting;
use crate::comparison::{Samples, interleave};
use crate::library;
use crate::servers::Servers;
use crate::table::{Goal, Row};

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, 5);
    let mut rows = Vec::new();
    for (nodes, most) in [(3, 1.35), (5, 1.6)] {
        rows.extend(alone(setting, &servers, nodes, most));
    }
    rows
}

fn alone(setting: &Setting, servers: &Servers, nodes: usize, most: f64) -> Vec<Row> {
    let plan = setting.plan();
    let client = library::client(&servers.addresses(nodes));
    let plain = library::mutex(&client, "fair/plain");
    let fair = library::mutex(&client, "fair/fair").fair();
    let [plain, fair] = &interleave(
        plan,
        &mut [&mut || library::pair(&plain), &mut || library::pair(&fair)],
    );
    let row = |figure: &str, get: fn(&Samples) -> f64| {
        Row::ratio(
            format!("N = {nodes}, alone: fair {figure}"),
            "µs",
            fair,
            ("plain", plain),
            get,
        )
    };
    vec![
        row("pair p50", |round| round.pair.quantile(0.5)).goal(Goal::RatioAtMost(most)),
        row("lock p50", |round| round.lock.quantile(0.5)),
        row("unlock p50", |round| round.unlock.quantile(0.5)),
    ]
}
