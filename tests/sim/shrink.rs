//! Makes a plan that breaks a rule smaller, for as long as the rule is still broken.
//!
//! Everything random in a run comes from one generator, so whatever is left out shuffles the rest.
//! Each smaller plan is therefore tried with several seeds. The final plan has only what it takes:
//! the faults, clients and nodes without which the rule holds, and of all seeds that were tried the
//! one with the shortest trace.

use crate::campaign;
use crate::plan::{Bounds, Fault, MILLISECOND, Plan};

/// Seeds that each smaller plan is tried with.
const TRIES: u64 = 40;
/// Seeds among which the shortest trace is looked for.
const TRACES: u64 = 300;

/// Nodes that are left: with fewer it is another failure. Of five, one that forgets is enough.
const FEWEST_NODES: usize = 3;

/// The smallest plan found that breaks the same rule.
pub(crate) fn shrink(plan: &Plan, rule: &str) -> Plan {
    let mut plan = plan.clone();
    loop {
        let mut is_smaller = false;
        for candidate in simpler(&plan) {
            if let Some(smaller) = candidate(&plan)
                && let Some(broken) = breaks(&smaller, rule)
            {
                plan = broken;
                is_smaller = true;
            }
        }
        let faults = plan.faults.len();
        plan = without_faults(plan, rule);
        if !is_smaller && plan.faults.len() == faults {
            return shortest_story(plan, rule);
        }
    }
}

fn breaks(plan: &Plan, rule: &str) -> Option<Plan> {
    (0..TRIES).find_map(|step| {
        let mut plan = plan.clone();
        plan.seed = plan.seed.wrapping_add(step);
        let world = campaign::run(plan.clone(), crate::trace::Trace::silent());
        matches!(world.judge.finding, Some((broken, ..)) if broken == rule).then_some(plan)
    })
}

type Simpler = Box<dyn Fn(&Plan) -> Option<Plan>>;

fn simpler(plan: &Plan) -> Vec<Simpler> {
    let mut all: Vec<Simpler> = vec![
        changed(|plan| plan.loss = 0),
        changed(|plan| plan.straggling = 0),
        changed(|plan| plan.skew = 0),
        changed(|plan| plan.hints.loss = 0),
        changed(|plan| plan.hints.repetition = 0),
        changed(|plan| plan.hints.delay = 0),
        changed(|plan| plan.hints.disorder = 0),
        changed(|plan| plan.hints.strays = None),
        changed(|plan| plan.piece = 0),
        changed(|plan| plan.window = 64 * 1024),
        changed(|plan| plan.preemption_rarity = 0),
        changed(|plan| plan.pause_rarity = 0),
        changed(|plan| plan.watchdog_rarity = 0),
        changed(|plan| plan.extension_rarity = 0),
        changed(|plan| plan.resources = 1),
        changed(|plan| plan.has_sets = false),
        changed(|plan| plan.is_mixed = false),
        changed(|plan| plan.has_permits = false),
        changed(|plan| plan.has_tls = false),
        changed(|plan| plan.shares_leases = false),
        changed(|plan| plan.lateness = 0),
        changed(|plan| plan.ttls.truncate(1)),
        changed(|plan| plan.fault_time /= 2),
        changed(|plan| {
            plan.fault_time /= 2;
            plan.faults.iter_mut().for_each(|fault| fault.at /= 2);
        }),
        changed(|plan| plan.clients.iter_mut().for_each(|client| client.rate = 0)),
        changed(|plan| plan.nodes.iter_mut().for_each(|node| node.rate = 0)),
        changed(|plan| {
            plan.clients
                .iter_mut()
                .for_each(|client| client.is_observed = false)
        }),
        changed(|plan| {
            plan.paths
                .iter_mut()
                .for_each(|path| (path.delay, path.jitter) = (MILLISECOND / 10, MILLISECOND / 100));
        }),
    ];
    for client in 0..plan.clients.len() {
        all.push(changed(move |plan| {
            if let Some(client) = plan.clients.get_mut(client) {
                client.threads = 1;
            }
        }));
        all.push(Box::new(move |plan| without_client(plan, client)));
    }
    for node in (0..plan.nodes.len()).rev() {
        all.push(Box::new(move |plan| without_node(plan, node)));
    }
    all
}

/// The plan with a change, if it is one.
fn changed(change: impl Fn(&mut Plan) + 'static) -> Simpler {
    Box::new(move |plan| {
        let mut other = plan.clone();
        change(&mut other);
        other.faults.retain(|fault| fault.at < other.fault_time);
        (format!("{other:?}") != format!("{plan:?}")).then_some(other)
    })
}

fn without_client(plan: &Plan, client: usize) -> Option<Plan> {
    if plan.clients.len() < 2 || client >= plan.clients.len() {
        return None;
    }
    let mut other = plan.clone();
    other.clients.remove(client);
    let nodes = plan.nodes.len();
    other.paths.drain(client * nodes..(client + 1) * nodes);
    other.faults = renumbered(&plan.faults, client, |fault| &mut fault.client);
    Some(other)
}

fn without_node(plan: &Plan, node: usize) -> Option<Plan> {
    let fewest = if plan.bounds == Bounds::Amnesia {
        5
    } else {
        FEWEST_NODES
    };
    if plan.nodes.len() <= fewest || node >= plan.nodes.len() {
        return None;
    }
    let mut other = plan.clone();
    other.nodes.remove(node);
    let mut index = 0;
    let nodes = plan.nodes.len();
    other.paths.retain(|_| {
        index += 1;
        (index - 1) % nodes != node
    });
    other.faults = renumbered(&plan.faults, node, |fault| &mut fault.node);
    other.hints.strays = other
        .hints
        .strays
        .filter(|strays| strays.node < other.nodes.len());
    Some(other)
}

/// The faults as they are when a client or node that some strike is gone.
fn renumbered(
    faults: &[Fault],
    gone: usize,
    target: fn(&mut Fault) -> &mut Option<usize>,
) -> Vec<Fault> {
    let moved = |fault: &Fault| {
        let mut fault = *fault;
        match target(&mut fault) {
            Some(number) if *number == gone => return None,
            Some(number) if *number > gone => *number -= 1,
            _ => {}
        }
        Some(fault)
    };
    faults.iter().filter_map(moved).collect()
}

/// Leaves out faults, in ever smaller parts.
fn without_faults(mut plan: Plan, rule: &str) -> Plan {
    let mut part = plan.faults.len().div_ceil(2);
    while part > 0 {
        let mut first = 0;
        while first < plan.faults.len() {
            let mut smaller = plan.clone();
            smaller
                .faults
                .drain(first..(first + part).min(plan.faults.len()));
            match breaks(&smaller, rule) {
                Some(broken) => plan = broken,
                None => first += part,
            }
        }
        part /= 2;
    }
    plan
}

fn shortest_story(plan: Plan, rule: &str) -> Plan {
    let stories = (0..TRACES).filter_map(|step| {
        let mut plan = plan.clone();
        plan.seed = plan.seed.wrapping_add(step);
        let world = campaign::replay(plan.clone());
        let broken = matches!(world.judge.finding, Some((broken, ..)) if broken == rule);
        broken.then(|| (world.trace.story_length(), plan))
    });
    stories
        .min_by_key(|(length, _)| *length)
        .map_or(plan, |(_, plan)| plan)
}
