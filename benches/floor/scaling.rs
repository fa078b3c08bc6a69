//! Growth: what a pair costs with more nodes, and with more locks held at the same time.

use crate::Setting;
use crate::comparison::{Pair, Plan, Samples, Spread, interleave_all};
use crate::floor::{Floor, MOST_NODES};
use crate::library;
use crate::servers::Servers;
use crate::table::{Goal, Row};
use quorumlock::{Mutex, MutexGuard};

const NODES: usize = 5;

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let plan = setting.choose(
        Plan {
            rounds: 5,
            turns: 8,
            operations: 25,
        },
        Plan {
            rounds: 2,
            turns: 2,
            operations: 10,
        },
    );
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

    let mut contenders: Vec<Box<dyn FnMut() -> Pair>> = Vec::new();
    for (mutex, floor) in mutexes.iter().zip(&mut floors) {
        contenders.push(Box::new(|| library::pair(mutex)));
        contenders.push(Box::new(|| floor.pair()));
    }
    let mut turns: Vec<&mut dyn FnMut() -> Pair> =
        contenders.iter_mut().map(|one| &mut **one as _).collect();
    let rounds = interleave_all(plan, &mut turns);

    let [single, ..] = &rounds[..] else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    for (nodes, both) in numbers.zip(rounds.chunks_exact(2)).skip(1) {
        let to_floor = Spread::ratio(&both[0], &both[1], median).median;
        // Linear: N nodes cost no more than N times what one costs.
        let row = Row::ratio(
            format!("N = {nodes}: pair p50"),
            "µs",
            &both[0],
            ("N = 1", single),
            median,
        );
        rows.push(
            row.goal(Goal::RatioAtMost(nodes as f64))
                .note(format!("{to_floor:.2} × the floor")),
        );
    }
    rows
}

fn with_held(servers: &Servers, plan: Plan, numbers: [usize; 3]) -> Vec<Row> {
    let addresses = servers.addresses(NODES);
    let clients = numbers.map(|_| library::client(&addresses));
    let hold = |client, number: usize| -> Vec<Option<MutexGuard>> {
        (0..number)
            .map(|index| {
                library::lock(&library::mutex(
                    client,
                    &format!("scaling/held/{number}/{index}"),
                ))
            })
            .collect()
    };
    let held: Vec<_> = clients
        .iter()
        .zip(numbers)
        .map(|(client, number)| hold(client, number))
        .collect();
    let mutexes = clients
        .each_ref()
        .map(|client| library::mutex(client, "scaling/beside"));
    let mut contenders: Vec<Box<dyn FnMut() -> Pair>> = Vec::new();
    for mutex in &mutexes {
        contenders.push(Box::new(|| library::pair(mutex)));
    }
    let mut turns: Vec<&mut dyn FnMut() -> Pair> =
        contenders.iter_mut().map(|one| &mut **one as _).collect();
    let rounds = interleave_all(plan, &mut turns);
    drop(held);
    let [none, others @ ..] = &rounds[..] else {
        return Vec::new();
    };
    let row = |(rounds, number): (&Vec<Samples>, &usize)| {
        let name = format!("beside {number} held locks: pair p50");
        Row::ratio(name, "µs", rounds, ("none held", none), median).goal(Goal::RatioAtMost(1.1))
    };
    others.iter().zip(&numbers[1..]).map(row).collect()
}

fn median(round: &Samples) -> f64 {
    round.pair.quantile(0.5)
}
