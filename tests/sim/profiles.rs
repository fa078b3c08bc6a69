//! Circumstances that independent draws rarely bring together, and that certain faults of a library
//! need to show.
//!
//! A fault can need three unlikely things at once: a long time to live, a node that crashes twice
//! while one lock is held, and a release between the two. Eleven seeds of twelve are steered: a
//! profile sets such circumstances and leaves the rest of the plan as drawn.
//! [`planting`](crate::planting) shows what each profile is for.
//!
//! | profile | what it makes common | faults that it finds |
//! |---|---|---|
//! | absent nodes | releases for nodes without a connection, of keys that live long; scripts that are forgotten | pending releases, releases by an unknown hash |
//! | slow answers | answers that come after a short lease has ended | a quorum that comes too late |
//! | unequal clocks | leases used to their end by slow clocks and fast nodes; sleep | drift, a clock that stops |
//! | partitions | watched locks that end because one client reaches no node | a renewal from its answer |
//! | two extenders | extensions by hand, with another time to live, while a renewal is due | a renewal that overtakes |
//! | lost keys | extensions that find a key gone, near the end of the lease or of the hold | repairs |
//! | newcomers | nodes that lose their data, by a restart or as replicas; clients that meet them for the first time | quarantine |
//! | forgetful nodes | a majority that forgets a held lock while one node has kept it; programs that begin then, of several kinds | what nodes remember |
//! | narrow sockets | releases that the socket does not take, of clients that then idle or drop their last handle | releases left unsent |
//! | refused releases | nodes that run no release for a moment, of keys that live long; scripts of fenced locks that are forgotten | releases that were not run |
//! | slow observer | events that come faster than the observer takes them | one thread that delivers the events of all |
//! | paused writers | pauses that are longer than a lease, of clients that write: for late writes alone | none of the library |
//! | lost hints | published releases that are lost, late, repeated or out of order, a stranger that publishes, skewed delivery; and nothing else | waits |
//! | close fences | fences that differ by one, keys that end early, late raises | rules of fences |

use crate::endings::Ending;
use crate::hints::{HintPlan, Strays};
use crate::losses::{self, Way};
use crate::plan::{
    Bounds, ClientPlan, Data, Fault, Kind, MILLISECOND, PathPlan, Plan, Reckoning, SECOND,
};
use crate::random::Random;
use crate::refusals::Refusal;
use quorumlock::RestartPolicy;
use quorumlock::embedded::{Condition, ServerKind};

/// One seed in so many has each of the profiles.
const SPREAD: u64 = 12;
const BOTH: [bool; 2] = [true, true];
const REPLIES: [bool; 2] = [false, true];

/// Applies the profile of the plan's seed, if it has one. Draws from a generator of its own: no
/// other number changes.
pub(crate) fn steer(plan: &mut Plan) {
    if plan.bounds == Bounds::Writes {
        return paused_writers(plan, &mut Random::new(plan.seed));
    }
    if plan.bounds != Bounds::Kept || plan.reckoning != Reckoning::LeaseClock {
        return;
    }
    let random = &mut Random::new(plan.seed ^ 0x7072_6f66_696c_6573);
    match random.below(SPREAD) {
        0 => absent_nodes(plan, random),
        1 => slow_answers(plan, random),
        2 => unequal_clocks(plan, random),
        3 => partitions(plan, random),
        4 => two_extenders(plan, random),
        5 => lost_keys(plan, random),
        6 if Random::new(plan.seed ^ 0x0066_6f72_6765_7400).once_in(2) => {
            forgetful_nodes(plan, random)
        }
        6 => newcomers(plan, random),
        7 => close_fences(plan, random),
        8 => narrow_sockets(plan, random),
        9 if random.once_in(2) => slow_observer(plan, random),
        9 => refused_releases(plan, random),
        10 => lost_hints(plan, random),
        _ => return,
    }
    plan.faults.sort_by_key(|fault| fault.at);
}

/// Clients that write under short leases are paused for longer than a lease lasts.
fn paused_writers(plan: &mut Plan, random: &mut Random) {
    reset(plan, random, &[1, 3], &[2, 3]);
    plan.ttls = vec![random.between(50, 300)];
    plan.resources = 1;
    plan.idle = 20 * MILLISECOND;
    plan.watchdog_rarity = 0;
    plan.extension_rarity = 0;
    plan.pause_rarity = 100;
    plan.longest_pause = 2 * SECOND;
}

/// Keys live for longer than the run takes to look for remaining keys.
fn absent_nodes(plan: &mut Plan, random: &mut Random) {
    outlive(plan, random, &[3, 3, 5], 30_000, 3);
    if random.once_in(2) {
        plan.restart_policy = RestartPolicy::Observed;
    }
    for node in &mut plan.nodes {
        if random.once_in(2) {
            node.flavour = ServerKind::Redis;
        }
    }
    for _ in 0..random.between(6, 16) {
        let node = random.index(plan.nodes.len());
        let time = random.magnitude(100 * MILLISECOND, 2 * SECOND);
        let is_dark = random.once_in(4);
        let kind = Kind::crash(Data::Kept, is_dark);
        strike(plan, random, kind.of_node(node).lasting(time));
    }
    forget_scripts(plan, random, 10, 40);
}

/// Few clients with many locks of keys that live for longer than the run.
fn outlive(plan: &mut Plan, random: &mut Random, nodes: &[usize], least_ttl: u64, threads: usize) {
    reset(plan, random, nodes, &[1, 2]);
    plan.ttls = vec![random.between(least_ttl, 60_000)];
    plan.fault_time = random.between(4 * SECOND, 8 * SECOND);
    each_client(plan, |client| client.threads = threads);
    plan.resources = 3;
    plan.idle = 20 * MILLISECOND;
}

fn forget_scripts(plan: &mut Plan, random: &mut Random, least: u64, most: u64) {
    for _ in 0..random.between(least, most) {
        let node = random.index(plan.nodes.len());
        strike(plan, random, Kind::ForgetScripts.of_node(node));
    }
}

fn slow_answers(plan: &mut Plan, random: &mut Random) {
    reset(plan, random, &[1, 2, 3], &[1, 2]);
    plan.ttls = vec![random.between(10, 40)];
    plan.node_timeout = 200 * MILLISECOND;
    plan.fault_time = random.between(2 * SECOND, 6 * SECOND);
    plan.straggling = 2;
    plan.longest_straggling = random.between(20, 60) * MILLISECOND;
    // What has come when a thread wakes up late counts, if it came in time.
    plan.lateness = 5 * MILLISECOND;
    plan.idle = 5 * MILLISECOND;
}

fn unequal_clocks(plan: &mut Plan, random: &mut Random) {
    reset(plan, random, &[1, 3], &[2, 3]);
    plan.ttls = vec![random.between(600, 3_000)];
    plan.fault_time = 10 * SECOND;
    each_client(plan, |client| {
        (client.rate, client.counts_sleep) = (-4_950, false)
    });
    plan.nodes.iter_mut().for_each(|node| node.rate = 4_950);
    each_client(plan, |client| client.holds_on = true);
    plan.attention = 2 * MILLISECOND;
    let count = random.pick(&[0, 10]);
    for _ in 0..count {
        let client = random.index(plan.clients.len());
        let time = random.magnitude(200 * MILLISECOND, 4 * SECOND);
        strike(plan, random, Kind::Sleep.of_client(client).lasting(time));
    }
}

fn partitions(plan: &mut Plan, random: &mut Random) {
    reset(plan, random, &[1, 1, 3], &[2]);
    each_client(plan, |client| client.threads = 1);
    plan.ttls = vec![random.between(300, 500)];
    plan.node_timeout = 400 * MILLISECOND;
    plan.fault_time = 10 * SECOND;
    // Far from one client, near to the others.
    for (index, path) in plan.paths.iter_mut().enumerate() {
        let delay = if index < plan.nodes.len() {
            40 * MILLISECOND
        } else {
            MILLISECOND / 5
        };
        *path = PathPlan::new(delay, delay / 10);
    }
    plan.watchdog_rarity = random.pick(&[1, 1, 1, 0]);
    plan.extension_rarity = random.pick(&[0, 0, 4]);
    (plan.clients[0].holds_on, plan.attention, plan.idle) = (true, MILLISECOND, 500 * MILLISECOND);
    for _ in 0..random.between(8, 16) {
        let time = random.between(300, 600) * MILLISECOND;
        let directions = random.pick(&[BOTH, BOTH, REPLIES]);
        let block = Kind::Block(directions).of_client(0);
        strike(plan, random, block.lasting(time));
    }
}

fn two_extenders(plan: &mut Plan, random: &mut Random) {
    reset(plan, random, &[1], &[2]);
    each_client(plan, |client| client.threads = 1);
    plan.ttls = vec![random.between(60, 100), random.between(2_000, 3_000)];
    plan.node_timeout = 50 * MILLISECOND;
    plan.fault_time = 10 * SECOND;
    plan.paths.fill(PathPlan::new(5 * MILLISECOND, MILLISECOND));
    plan.straggling = random.between(4, 8);
    plan.longest_straggling = random.between(100, 400) * MILLISECOND;
    plan.watchdog_rarity = 1;
    plan.extension_rarity = 1;
    plan.stride = random.between(200, 500) * MILLISECOND;
    each_client(plan, |client| client.holds_on = true);
    plan.idle = 5 * MILLISECOND;
}

/// A node that is out of memory refuses keys, and extends those that it has.
fn lost_keys(plan: &mut Plan, random: &mut Random) {
    reset(plan, random, &[3, 3, 4, 5], &[2, 3]);
    plan.ttls = vec![random.between(60, 400)];
    plan.node_timeout = random.pick(&[50, 200]) * MILLISECOND;
    plan.fault_time = 10 * SECOND;
    let is_watched = random.once_in(2);
    plan.straggling = random.pick(&[0, 4]);
    plan.longest_straggling = random.between(20, 100) * MILLISECOND;
    (plan.watchdog_rarity, plan.extension_rarity) = if is_watched { (1, 0) } else { (0, 1) };
    plan.preemption_rarity = if is_watched { 30 } else { 0 };
    plan.resources = 3;
    plan.paths.fill(PathPlan::new(
        plan.node_timeout / 20,
        plan.node_timeout / 40,
    ));
    plan.idle = 20 * MILLISECOND;
    for _ in 0..random.between(40, 80) {
        let node = random.index(plan.nodes.len());
        let time = random.between(50, 400) * MILLISECOND;
        let kind = Kind::Condition(Condition::OutOfMemory);
        strike(plan, random, kind.of_node(node).lasting(time));
    }
}

fn newcomers(plan: &mut Plan, random: &mut Random) {
    reset(plan, random, &[1, 1, 2, 3], &[2, 3, 4]);
    plan.restart_policy = RestartPolicy::Strict;
    plan.ttls = vec![random.between(1_500, 3_000)];
    plan.fault_time = 10 * SECOND;
    plan.attention = 20 * MILLISECOND;
    each_client(plan, |client| client.holds_on = true);
    // Instead of being restarted, nodes are replicas of an empty master for a while, which a client
    // that connects later cannot see.
    let demotes = Random::new(plan.seed ^ 0x6465_6d6f_7465).once_in(3);
    if demotes {
        plan.is_fenced = false;
        plan.idle = 4 * SECOND;
    }
    let mut at = random.between(SECOND, 3 * SECOND);
    for _ in 0..random.between(1, 2) {
        for node in 0..plan.nodes.len() {
            let time = random.between(1, 20) * MILLISECOND;
            let is_dark = random.once_in(2);
            let fault = if demotes {
                let time = 1_500 * MILLISECOND + 50 * time;
                Kind::Resync.of_node(node).lasting(time)
            } else {
                Kind::crash(Data::Lost, is_dark).of_node(node).lasting(time)
            };
            plan.add(at, fault);
        }
        for client in 1..plan.clients.len() {
            if random.once_in(2) && plan.clients[client].begins_at == 0 && !demotes {
                plan.clients[client].begins_at = at + random.magnitude(30 * MILLISECOND, SECOND);
            }
            let by = random.between(3, 30) * SECOND;
            let then = at + random.magnitude(30 * MILLISECOND, SECOND);
            plan.add(then, Kind::SetWallClock(by as i64).of_client(client));
        }
        at += random.between(4 * SECOND, 6 * SECOND);
    }
}

/// Most nodes lose what they have, one after the other or at once, while locks are held; but for
/// now and then, one has kept it. Programs begin then that have met no node.
fn forgetful_nodes(plan: &mut Plan, random: &mut Random) {
    reset(plan, random, &[1, 3, 3, 3, 5], &[2, 3, 4]);
    plan.restart_policy = if random.once_in(4) {
        RestartPolicy::Strict
    } else {
        RestartPolicy::Observed
    };
    plan.node_timeout = random.pick(&[50, 200]) * MILLISECOND;
    plan.fault_time = 10 * SECOND;
    plan.ttls = vec![random.between(1_500, 3_000)];
    plan.attention = 20 * MILLISECOND;
    plan.watchdog_rarity = random.pick(&[0, 0, 1]);
    each_client(plan, |client| client.holds_on = true);
    // A node that is a moment slower.
    let slow = random.index(plan.nodes.len());
    let delay = random.magnitude(MILLISECOND / 10, plan.node_timeout / 40);
    plan.paths
        .fill(PathPlan::new(MILLISECOND / 10, MILLISECOND / 20));
    plan.paths
        .iter_mut()
        .skip(slow)
        .step_by(plan.nodes.len())
        .for_each(|path| path.delay = delay);
    let ways: &[Way] = match random.below(6) {
        // Programs with locks that last longer, and others that begin later.
        0 => {
            plan.ttls.insert(0, random.between(200, 600));
            plan.clients
                .iter_mut()
                .skip(1)
                .for_each(|client| client.is_brief = true);
            &[Way::Restart, Way::Snapshot]
        }
        // One that began first, and trusts every node.
        1 => {
            plan.clients[0].trusts_all = true;
            &Way::ALL
        }
        // Clocks of nodes are set forward when they have restarted; the programs' clocks are right.
        2 | 3 => {
            each_client(plan, |client| client.rate = 0);
            &[Way::Restart]
        }
        4 => &[Way::FailOver, Way::Resync],
        _ => &Way::ALL,
    };
    let steps = *ways == [Way::Restart];
    let mut at = random.between(SECOND, 4 * SECOND);
    while at < plan.fault_time {
        forget(plan, random, ways, at, steps);
        for client in 1..plan.clients.len() {
            if random.once_in(2) && plan.clients[client].begins_at == 0 {
                plan.clients[client].begins_at =
                    at + random.magnitude(30 * MILLISECOND, 2 * SECOND);
            }
        }
        at += random.between(3 * SECOND, 6 * SECOND);
    }
}

/// Some nodes lose what they have: a majority, or fewer, or now and then all.
fn forget(plan: &mut Plan, random: &mut Random, ways: &[Way], at: u64, steps: bool) {
    let nodes = plan.nodes.len();
    let first = random.index(plan.nodes.len());
    let way = random.pick(ways);
    let count = match random.below(8) {
        0 => nodes,
        1 | 2 => nodes / 2,
        _ => plan.majority().min(nodes - 1),
    }
    .max(1);
    for node in (first..first + count).map(|node| node % nodes) {
        let is_long = way == Way::Resync && random.once_in(2);
        let time = if is_long {
            1_500 * MILLISECOND
        } else {
            random.between(1, 20) * MILLISECOND
        };
        losses::lose(plan, random, (way, node), at, time);
        // One that was noted as a founder votes at once, and its clock matters.
        if steps && count < nodes && random.once_in(2) {
            let then = at + time + random.magnitude(MILLISECOND, SECOND);
            let by = random.between(2, 30) * SECOND;
            plan.add(then, Kind::SetNodeClock(by as i64).of_node(node));
        }
    }
}

/// Nothing fails, so that every release must reach its node. Keys live for longer than the run
/// takes to look for leftover keys.
fn narrow_sockets(plan: &mut Plan, random: &mut Random) {
    reset(plan, random, &[1, 3, 5], &[1, 2]);
    plan.ttls = vec![random.between(40_000, 60_000)];
    plan.node_timeout = 200 * MILLISECOND;
    plan.fault_time = random.between(SECOND, 3 * SECOND);
    plan.paths.fill(PathPlan::new(2 * MILLISECOND, MILLISECOND));
    // The scripts that waiting calls ask by have 8 KB. By 40 bytes, one alone takes longer than a
    // client that quits waits.
    plan.window = random.pick(&[300, 1000]);
    plan.resources = 3;
    plan.ending = random.pick(&[Ending::Idles, Ending::Quits]);
    // A client that is not used delivers no events.
    each_client(plan, |client| client.is_observed = false);
}

/// Nodes refuse requests for a moment, again and again. Keys live for longer than the run takes to
/// look for leftover keys.
fn refused_releases(plan: &mut Plan, random: &mut Random) {
    outlive(plan, random, &[1, 3, 3, 5], 40_000, 2);
    plan.is_fenced = random.once_in(2);
    for _ in 0..random.between(20, 60) {
        let node = random.index(plan.nodes.len());
        let refusal = random.pick(&Refusal::ALL);
        let time = random.magnitude(10 * MILLISECOND, SECOND);
        let kind = Kind::Refuse(refusal);
        strike(plan, random, kind.of_node(node).lasting(time));
    }
    forget_scripts(plan, random, 20, 60);
}

/// No clock matters to fences: here they are set at will, and nothing else is judged.
fn close_fences(plan: &mut Plan, random: &mut Random) {
    reset(plan, random, &[3], &[2, 3, 4]);
    plan.is_fenced = true;
    plan.is_mixed = false;
    plan.only = Some("fences grow");
    plan.ttls = vec![random.between(50, 500)];
    plan.node_timeout = 200 * MILLISECOND;
    plan.fault_time = 10 * SECOND;
    plan.straggling = random.between(2, 5);
    plan.longest_straggling = random.between(20, 100) * MILLISECOND;
    plan.idle = 5 * MILLISECOND;
    for client in 0..plan.clients.len() {
        // The floors lie behind what nodes have given out: fences go up by one.
        let at = random.below(300 * MILLISECOND);
        let by = random.between(20 * SECOND, 60 * SECOND);
        plan.add(at, Kind::SetWallClock(-(by as i64)).of_client(client));
    }
    for _ in 0..random.between(60, 120) {
        let node = random.index(plan.nodes.len());
        let by = random.magnitude(50 * MILLISECOND, SECOND);
        strike(plan, random, Kind::SetNodeClock(by as i64).of_node(node));
    }
}

/// The observer is slower than events come: five threads take a lock each and drop it as fast as
/// they can. Not for long, so that it can catch up afterwards.
fn slow_observer(plan: &mut Plan, random: &mut Random) {
    reset(plan, random, &[1, 3], &[1, 2]);
    each_client(plan, |client| {
        (client.threads, client.is_observed) = (6, true)
    });
    plan.clients[0].callback = random.magnitude(MILLISECOND, 3 * MILLISECOND);
    // One for each of its threads.
    plan.resources = 6;
    plan.ttls = vec![random.between(1_000, 5_000)];
    plan.fault_time = SECOND / 2;
    plan.is_fenced = false;
}

/// Nothing fails, so that all that a waiter does depends on what becomes of published releases.
/// With three clients or more, one neither publishes nor subscribes.
fn lost_hints(plan: &mut Plan, random: &mut Random) {
    let skew = random.magnitude(10_000, plan.node_timeout / 8);
    let hints = HintPlan::draw(random);
    reset(plan, random, &[1, 2, 3, 3, 5], &[2, 2, 3, 3, 4]);
    each_client(plan, |client| client.threads = 1 + random.index(2));
    plan.ttls = vec![random.between(1_000, 10_000)];
    plan.fault_time = random.between(4 * SECOND, 10 * SECOND);
    plan.skew = if random.once_in(2) { skew } else { 0 };
    plan.idle = random.magnitude(MILLISECOND, 50 * MILLISECOND);
    plan.hints = HintPlan::default();
    match random.below(8) {
        0 => {}
        1 | 2 => plan.hints.loss = 1,
        3 => plan.hints.delay = 100 * MILLISECOND,
        4 => plan.hints.repetition = 1,
        5 => plan.hints.disorder = random.pick(&[5, 100]) * MILLISECOND,
        _ => plan.hints = hints,
    }
    if random.once_in(3) {
        let node = random.index(plan.nodes.len());
        let interval = random.magnitude(MILLISECOND / 2, 20 * MILLISECOND);
        plan.hints.strays = Some(Strays { node, interval });
    }
    if plan.takes_sets() {
        // Those of one resource lack the key that they share while one of the other is held.
        plan.resources = 2;
    }
}

/// So many nodes and clients, one resource, and nothing of what only delays a run: faults come with
/// the profile.
fn reset(plan: &mut Plan, random: &mut Random, nodes: &[usize], clients: &[usize]) {
    let node = plan.nodes[0].clone();
    let client = plan.clients[0].clone();
    plan.nodes.resize(random.pick(nodes), node);
    plan.clients.resize(random.pick(clients), client);
    let farthest = random.magnitude(200_000, plan.node_timeout / 16);
    let path = |random: &mut Random| PathPlan {
        delay: random.magnitude(50_000, farthest),
        jitter: random.magnitude(1_000, farthest),
    };
    plan.paths = (0..plan.clients.len() * plan.nodes.len())
        .map(|_| path(random))
        .collect();
    plan.restart_policy = RestartPolicy::Off;
    plan.quieten();
    plan.lateness = plan.lateness.min(MILLISECOND / 4);
    plan.idle = plan.idle.min(50 * MILLISECOND);
}

fn each_client(plan: &mut Plan, change: impl FnMut(&mut ClientPlan)) {
    plan.clients.iter_mut().for_each(change);
}

/// Adds a fault at any time before all faults end.
fn strike(plan: &mut Plan, random: &mut Random, fault: Fault) {
    let at = random.below(plan.fault_time);
    plan.add(at, fault);
}
