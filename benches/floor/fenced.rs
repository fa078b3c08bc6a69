//! Fenced locks: what the number costs, against a plain lock on the same nodes, alone and with a
//! competitor.

use crate::comparison::{Plan, Samples, interleave};
use crate::library;
use crate::servers::Servers;
use crate::setting::Setting;
use crate::table::{Row, Rows};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const MOST_NODES: usize = 5;

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let plan = setting.plan();
    let servers = Servers::start(setting, MOST_NODES);
    [3, MOST_NODES]
        .into_iter()
        .flat_map(|nodes| {
            [false, true].map(|competitor| against_plain(&servers, nodes, competitor, plan))
        })
        .flatten()
        .collect()
}

/// Pairs of both kinds in turns; where there is a competitor, it takes both locks in turns as well,
/// from a client of its own.
fn against_plain(servers: &Servers, nodes: usize, has_competitor: bool, plan: Plan) -> Vec<Row> {
    let addresses = servers.addresses(nodes);
    let mutexes = |client| {
        [
            library::mutex(client, "fenced/plain").erase(),
            library::mutex(client, "fenced/fenced").fenced().erase(),
        ]
    };
    let client = library::client(&addresses);
    let other = library::client(&addresses);
    let [plain, fenced] = mutexes(&client);
    let is_over = AtomicBool::new(!has_competitor);
    let rounds = thread::scope(|scope| {
        scope.spawn(|| {
            let competitors = mutexes(&other);
            while !is_over.load(Ordering::Relaxed) {
                for competitor in &competitors {
                    library::pair(competitor);
                }
            }
        });
        let rounds = interleave(
            plan,
            &mut [&mut || library::pair(&plain), &mut || {
                library::pair(&fenced)
            }],
        );
        is_over.store(true, Ordering::Relaxed);
        rounds
    });
    let [plain, fenced] = &rounds;
    let against = if has_competitor {
        "one competitor"
    } else {
        "alone"
    };
    let title = format!("N = {nodes}, {against}: fenced ");
    let rows = Rows::new(title, fenced, ("plain", plain));
    vec![
        rows.row("pair p50", "µs", Samples::pair_p50),
        rows.row("pair p99", "µs", Samples::pair_p99),
        rows.row("lock p50", "µs", Samples::lock_p50),
        rows.row("unlock p50", "µs", Samples::unlock_p50),
    ]
}
