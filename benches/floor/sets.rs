//! Sets: several resources together, against one of them alone, in turns and by the same client.

use crate::comparison::{Samples, interleave};
use crate::library;
use crate::servers::Servers;
use crate::setting::Setting;
use crate::table::{Row, Rows};
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
    let rows = |count: usize, set| {
        let title = format!("a set of {count}, N = {NODES}: ");
        Rows::new(title, set, ("a lock", &single[..]))
    };
    let two = rows(2, two);
    let eight = rows(8, eight);
    vec![
        two.row("pair p50", "µs", Samples::pair_p50)
            .ratio_at_most(1.2),
        eight
            .row("pair p50", "µs", Samples::pair_p50)
            .ratio_at_most(1.8),
        two.row("lock p50", "µs", Samples::lock_p50),
        eight.row("lock p50", "µs", Samples::lock_p50),
    ]
}

fn set(client: &Redlock, count: usize) -> MutexSet {
    let names = (0..count).map(|number| format!("sets/{count}/{number}"));
    client.mutex_set(names).ttl(Duration::from_secs(60))
}
