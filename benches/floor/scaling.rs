//! Growth: what a pair costs with more nodes, and with more locks held at the same time.

use crate::comparison::{Plan, Samples, Spread, interleave_all};
use crate::floor::{Floor, MOST_NODES};
use crate::library;
use crate::servers::Servers;
use crate::setting::Setting;
use crate::table::Row;
use quorumlock::Mutex;

const NODES: usize = 5;

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let plan = setting.unless_quick(Plan {
        rounds: 5,
        turns: 8,
        operations: 25,
    });
    let servers = Servers::start(setting, MOST_NODES);
    let mut rows = with_nodes(&servers, plan);
    rows.extend(with_held(
        &servers,
        plan,
        setting.choose([0, 1000, 10_000], [0, 100, 1000]),
    ));
    rows
}

fn with_nodes(servers: &Servers, plan: Plan) -> Vec<Row> {
    let numbers = 1..=MOST_NODES;
    let mutex = |nodes| {
        library::mutex(
            &library::client(&servers.addresses(nodes)),
            "scaling/library",
        )
    };
    let mutexes: Vec<Mutex> = numbers.clone().map(mutex).collect();
    let floor = |nodes| Floor::connect(&servers.addresses(nodes), "scaling/floor", 1);
    let mut floors: Vec<Floor> = numbers.clone().map(floor).collect();

    let rounds = interleave_all(plan, 2 * MOST_NODES, |index| match index % 2 {
        0 => library::pair(&mutexes[index / 2]),
        _ => floors[index / 2].pair(),
    });

    let [single, ..] = &rounds[..] else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    for (nodes, both) in numbers.zip(rounds.chunks_exact(2)).skip(1) {
        let to_floor = Spread::ratio(&both[0], &both[1], Samples::pair_p50).median;
        // Linear: N nodes cost no more than N times what one costs.
        let name = format!("N = {nodes}: pair p50");
        let row = Row::ratio(name, "µs", &both[0], ("N = 1", single), Samples::pair_p50);
        rows.push(
            row.ratio_at_most(nodes as f64)
                .note(format!("{to_floor:.2} × the floor")),
        );
    }
    rows
}

fn with_held(servers: &Servers, plan: Plan, numbers: [usize; 3]) -> Vec<Row> {
    let addresses = servers.addresses(NODES);
    let clients = numbers.map(|_| library::client(&addresses));
    let held: Vec<_> = clients
        .iter()
        .zip(numbers)
        .map(|(client, number)| library::hold(client, number, &format!("scaling/held/{number}")))
        .collect();
    let mutexes = clients
        .each_ref()
        .map(|client| library::mutex(client, "scaling/beside"));
    let rounds = interleave_all(plan, mutexes.len(), |index| library::pair(&mutexes[index]));
    drop(held);
    let [none, others @ ..] = &rounds[..] else {
        return Vec::new();
    };
    let row = |(rounds, number): (&Vec<Samples>, &usize)| {
        let name = format!("beside {number} held locks: pair p50");
        Row::ratio(name, "µs", rounds, ("none held", none), Samples::pair_p50).ratio_at_most(1.1)
    };
    others.iter().zip(&numbers[1..]).map(row).collect()
}
