//! Latency: how long one thread waits for a lock and for its release.
//!
//! Healthy nodes are measured against the floor. With nodes that hang or are gone, the library is
//! measured against itself on healthy nodes as well, in turns with them: what the disturbance
//! costs.

use crate::comparison::{Plan, Samples, interleave, repeat, timed};
use crate::floor::Floor;
use crate::library;
use crate::servers::{DISTURBANCES, Disturbance, Servers};
use crate::setting::Setting;
use crate::table::{Row, Rows};
use std::time::Duration;

const NODES: usize = 5;

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let plan = setting.plan();
    let servers = Servers::start(setting, NODES);
    let healthy = [1, 3, NODES]
        .into_iter()
        .flat_map(|nodes| healthy(&servers, nodes, plan));
    let disturbed = DISTURBANCES
        .into_iter()
        .flat_map(|disturbance| disturbed(setting, &servers, disturbance, plan));
    healthy
        .chain(disturbed)
        .chain([first_lock(setting, plan)])
        .collect()
}

/// The first lock of a client, which connects for it, while a node hangs. The floor connects too.
fn first_lock(setting: &Setting, plan: Plan) -> Row {
    let servers = Servers::start(setting, NODES);
    let addresses = servers.addresses(NODES);
    servers.processes[1].pause().expect("a server to stop");
    // A server that hangs keeps each connection in its backlog, which has room for 511.
    let plan = Plan {
        turns: 2,
        operations: 5,
        ..plan
    };
    let [floor, library] = &interleave(
        plan,
        &mut [
            &mut || {
                timed(
                    || {
                        let mut floor = Floor::connect(&addresses, "latency/first/floor", 1);
                        assert!(floor.take(), "no other client has this resource");
                        floor
                    },
                    |mut floor| assert!(floor.release(), "no other client has this token"),
                )
            },
            &mut || {
                let client = library::client(&addresses);
                library::pair(&library::mutex(&client, "latency/first/library"))
            },
        ],
    );
    let name = "one of 5 hung: first lock of a client, p50".to_owned();
    let row = Row::ratio(name, "µs", library, ("floor", floor), Samples::lock_p50);
    row.ratio_at_most(2.0)
}

fn healthy(servers: &Servers, nodes: usize, plan: Plan) -> Vec<Row> {
    let addresses = servers.addresses(nodes);
    let client = library::client(&addresses);
    let mutex = library::mutex(&client, "latency/library");
    let mut floor = Floor::connect(&addresses, "latency/floor", 1);
    let mut again = Floor::connect(&addresses, "latency/again", 2);
    let sleeping = library::builder(&addresses).spin(Duration::ZERO);
    let sleeping = library::mutex(&sleeping.build().expect("a client"), "latency/sleeping");
    let mut number = 0_u64;
    let mut fresh = || {
        number += 1;
        library::pair(&library::mutex(&client, &format!("latency/fresh/{number}")))
    };
    let [floor, library, again, sleeping, fresh] = &interleave(
        plan,
        &mut [
            &mut || floor.pair(),
            &mut || library::pair(&mutex),
            &mut || again.pair(),
            &mut || library::pair(&sleeping),
            &mut fresh,
        ],
    );

    let title = format!("N = {nodes}, healthy: ");
    let rows = Rows::new(title, library, ("floor", floor));
    let fresh = rows.about(fresh);
    let sleeping = rows.about(sleeping);
    let mut all = vec![
        rows.row("pair p50", "µs", Samples::pair_p50)
            .ratio_at_most(1.05),
        rows.row("pair p99", "µs", Samples::pair_p99)
            .ratio_at_most(1.2),
        rows.row("lock p50", "µs", Samples::lock_p50),
        rows.row("unlock p50", "µs", Samples::unlock_p50),
        fresh
            .row(
                "a fresh Mutex and name each time, pair p50",
                "µs",
                Samples::pair_p50,
            )
            .ratio_at_most(1.05),
        sleeping.row("without busy poll, pair p50", "µs", Samples::pair_p50),
    ];
    if nodes == NODES {
        let again = rows.about(again);
        all.push(
            again
                .row("the floor again, pair p50", "µs", Samples::pair_p50)
                .note("noise"),
        );
        all.push(
            again
                .row("the floor again, pair p99", "µs", Samples::pair_p99)
                .note("noise"),
        );
    }
    all
}

fn disturbed(
    setting: &Setting,
    healthy: &Servers,
    (name, count, befall): Disturbance,
    plan: Plan,
) -> Vec<Row> {
    let mut servers = Servers::start(setting, NODES);
    let addresses = servers.addresses(NODES);
    let undisturbed = library::mutex(
        &library::client(&healthy.addresses(NODES)),
        "latency/undisturbed",
    );
    let mutex = library::mutex(&library::client(&addresses), "latency/library");
    let mut floor = Floor::connect(&addresses, "latency/floor", 1);
    // Disturbed are nodes that were there before, in the midst of the others.
    repeat(plan.operations, || library::pair(&mutex));
    servers.processes[1..=count].iter_mut().for_each(befall);
    // Two turns' worth for the library to notice, which takes it one node timeout.
    repeat(2 * plan.operations, || library::pair(&mutex));
    let [floor, library, undisturbed] = &interleave(
        plan,
        &mut [
            &mut || floor.pair(),
            &mut || library::pair(&mutex),
            &mut || library::pair(&undisturbed),
        ],
    );

    let rows = Rows::new(format!("{name}: "), library, ("healthy", undisturbed));
    let to_floor = rows.against("floor", floor);
    vec![
        rows.row("lock p50", "µs", Samples::lock_p50)
            .ratio_at_most(1.1),
        rows.row("lock p99", "µs", Samples::lock_p99)
            .ratio_at_most(1.5),
        rows.row("unlock p50", "µs", Samples::unlock_p50)
            .ratio_at_most(1.1),
        rows.row("unlock p99", "µs", Samples::unlock_p99)
            .ratio_at_most(1.5),
        to_floor.row("pair p50", "µs", Samples::pair_p50),
        to_floor.row("pair p99", "µs", Samples::pair_p99),
    ]
}
