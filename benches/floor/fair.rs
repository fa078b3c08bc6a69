//! Fair locks: what the order costs a lock that no other program wants, against a plain lock on the
//! same nodes.

use crate::comparison::{Samples, interleave};
use crate::library;
use crate::servers::Servers;
use crate::setting::Setting;
use crate::table::{Row, Rows};

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
    let title = format!("N = {nodes}, alone: fair ");
    let rows = Rows::new(title, fair, ("plain", plain));
    vec![
        rows.row("pair p50", "µs", Samples::pair_p50)
            .ratio_at_most(most),
        rows.row("lock p50", "µs", Samples::lock_p50),
        rows.row("unlock p50", "µs", Samples::unlock_p50),
    ]
}
