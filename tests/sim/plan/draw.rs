//! Draws a plan from its seed.

use super::faults::{Data, Fault, Kind};
use super::{Bounds, ClientPlan, MILLISECOND, NodePlan, PathPlan, Plan, Reckoning, SECOND};
use crate::endings::Ending;
use crate::hints::HintPlan;
use crate::random::Random;
use crate::refusals::Refusal;
use crate::{losses, profiles};
use quorumlock::RestartPolicy;
use quorumlock::embedded::{Condition, ServerKind};

/// How many kinds there are to be weighed.
const KINDS: usize = 14;

impl Plan {
    pub(crate) fn of_seed(seed: u64, bounds: Bounds) -> Plan {
        let mut random = Random::new(seed);
        let node_count = match bounds {
            Bounds::Kept => random.pick(&[1, 2, 3, 3, 3, 3, 4, 5, 5, 5, 6, 7]),
            Bounds::Amnesia => 5,
            _ => random.pick(&[3, 5]),
        };
        let client_count = random.pick(&[1, 2, 2, 2, 3, 3, 4]);
        let drift = match bounds {
            Bounds::WildClocks => random.pick(&[20_000, 100_000, 300_000]),
            _ => random.pick(&[0, 100, 4_950]),
        };
        let wall_steps_back = random.once_in(2);
        // Often as fast, or as slow, as may be.
        let rate = |random: &mut Random| match random.below(4) {
            0 => drift as i64,
            1 => -(drift as i64),
            _ => random.between(0, 2 * drift) as i64 - drift as i64,
        };
        let reckoning = if bounds == Bounds::SteadyClock {
            Reckoning::SteadyClock
        } else {
            Reckoning::LeaseClock
        };
        let is_fenced = Random::new(!seed).once_in(3);
        // It decides nothing. Without it, no seed would be the run that it was.
        random.once_in(8);
        let nodes = (0..node_count).map(|_| {
            let flavour = random.pick(&[
                ServerKind::Redis,
                ServerKind::Redis,
                ServerKind::Redis,
                ServerKind::Valkey9,
            ]);
            NodePlan {
                flavour,
                has_password: random.once_in(4),
                rate: rate(&mut random),
                service: random.magnitude(5_000, 200_000),
            }
        });
        let nodes: Vec<NodePlan> = nodes.collect();
        let clients = (0..client_count).map(|_| ClientPlan {
            rate: rate(&mut random),
            counts_sleep: reckoning == Reckoning::LeaseClock
                && (wall_steps_back || random.once_in(2)),
            is_observed: random.once_in(2),
            callback: 0,
            threads: random.pick(&[1, 1, 2, 2, 3]),
            begins_at: 0,
            holds_on: false,
            is_brief: false,
            trusts_all: false,
        });
        let clients: Vec<ClientPlan> = clients.collect();
        let node_timeout = random.pick(&[10, 50, 50, 50, 200]) * MILLISECOND;
        // In good times there and back again takes a quarter of the node timeout at most.
        let farthest = random.magnitude(50_000, node_timeout / 16);
        let paths = (0..client_count * node_count).map(|_| PathPlan {
            delay: random.magnitude(20_000, farthest),
            jitter: random.magnitude(1_000, farthest),
        });
        let paths = paths.collect();
        let ttl = |random: &mut Random| match random.below(10) {
            0 => random.magnitude(10, 60),
            1 | 2 => random.magnitude(10_000, 60_000),
            _ => random.magnitude(50, 5_000),
        };
        let ttls = (0..random.between(1, 3))
            .map(|_| ttl(&mut random))
            .collect();
        // Drawn apart, so that no other number changes with it.
        let guards = [
            RestartPolicy::Off,
            RestartPolicy::Off,
            RestartPolicy::Observed,
            RestartPolicy::Strict,
        ];
        let restart_policy = if bounds == Bounds::Kept {
            Random::new(seed ^ 0x9e37_79b9).pick(&guards)
        } else {
            RestartPolicy::Off
        };
        let fault_time = random.magnitude(SECOND / 4, 10 * SECOND);
        let mut plan = Plan {
            seed,
            bounds,
            reckoning,
            drift_factor: 10,
            restart_policy,
            nodes,
            clients,
            paths,
            resources: random.pick(&[1, 1, 1, 2, 3]),
            is_fenced,
            is_mixed: Random::new(seed ^ 0x006d_6978_6564).once_in(3),
            has_permits: Random::new(seed ^ 0x7065_726d_6974).once_in(6),
            is_fair: Random::new(seed ^ 0x6661_6972).once_in(3),
            // Drawn apart, as above.
            has_sets: Random::new(seed ^ 0x7365_7473).once_in(4),
            has_tls: Random::new(seed ^ 0x0074_6c73).once_in(4),
            is_read_write: Random::new(seed ^ 0x7265_6164_6572).once_in(3),
            shares_leases: Random::new(seed ^ 0x0073_6861_7265).once_in(2),
            only: None,
            ttls,
            node_timeout,
            loss: random.pick(&[0, 0, 0, 1000, 100, 20]),
            straggling: random.pick(&[0, 0, 100, 10, 2]),
            longest_straggling: random.magnitude(MILLISECOND, SECOND),
            skew: 0,
            hints: HintPlan::default(),
            fault_time,
            window: random.pick(&[64 * 1024, 64 * 1024, 64 * 1024, 2048, 300, 40]),
            piece: random.pick(&[0, 0, 0, 1, 20, 200]),
            lateness: random.magnitude(1_000, 5 * MILLISECOND),
            preemption_rarity: random.pick(&[0, 0, 2000, 300, 50]),
            pause_rarity: random.pick(&[0, 0, 0, 5000, 500]),
            longest_pause: random.magnitude(2 * MILLISECOND, 10 * SECOND),
            watchdog_rarity: random.pick(&[0, 1, 2, 5]),
            extension_rarity: random.pick(&[0, 2, 5]),
            idle: random.magnitude(MILLISECOND, SECOND),
            attention: 0,
            stride: 0,
            ending: Ending::GoesOn,
            faults: Vec::new(),
        };
        plan.draw_faults(&mut random, wall_steps_back);
        plan.draw_refusals();
        plan.draw_notifications();
        plan.draw_queue_faults();
        losses::draw(&mut plan);
        profiles::steer(&mut plan);
        plan
    }

    fn draw_faults(&mut self, random: &mut Random, wall_steps_back: bool) {
        let weights: Vec<u64> = (0..KINDS)
            .map(|_| {
                if random.once_in(2) {
                    0
                } else {
                    random.magnitude(1, 64)
                }
            })
            .collect();
        let total: u64 = weights.iter().sum();
        if total == 0 {
            return;
        }
        let count = random.magnitude(1, 60) - 1;
        let longest = random.magnitude(5 * MILLISECOND, 15 * SECOND);
        for _ in 0..count {
            let mut draw = random.below(total);
            let kind = weights.iter().position(|&weight| {
                let hit = draw < weight;
                draw = draw.saturating_sub(weight);
                hit
            });
            let at = random.below(self.fault_time);
            let fault = self.draw_fault(kind.unwrap_or(0), longest, random, wall_steps_back);
            self.add(at, fault);
        }
        self.faults.sort_by_key(|fault| fault.at);
    }

    /// Nodes refuse requests instead of loading, being replicas, or having no memory. Drawn apart,
    /// so that no other number changes with it.
    fn draw_refusals(&mut self) {
        let random = &mut Random::new(self.seed ^ 0x7265_6675_7361_6c73);
        for fault in &mut self.faults {
            if matches!(fault.kind, Kind::Condition(_)) && random.once_in(3) {
                fault.kind = Kind::Refuse(random.pick(&Refusal::ALL));
            }
        }
    }

    /// Drawn apart, so that no other number changes with it.
    fn draw_notifications(&mut self) {
        let random = &mut Random::new(self.seed ^ 0x6e6f_7469_6669_6564);
        if self.bounds == Bounds::Kept {
            self.skew = if random.once_in(4) {
                random.magnitude(10_000, self.node_timeout / 8)
            } else {
                0
            };
            self.hints = HintPlan::draw(random);
        }
    }

    /// What happens to queues and to those that wait in them. Drawn apart, so that no other number
    /// changes with it.
    fn draw_queue_faults(&mut self) {
        let random = &mut Random::new(self.seed ^ 0x0071_7565_7565_7300);
        if self.bounds != Bounds::Kept || !random.once_in(3) {
            return;
        }
        let longest = random.magnitude(5 * MILLISECOND, 5 * SECOND);
        for _ in 0..random.magnitude(1, 30) {
            let at = random.below(self.fault_time);
            let node = random.index(self.nodes.len());
            let client = (!random.once_in(3)).then(|| random.index(self.clients.len()));
            let fault = match random.below(8) {
                0 | 1 => Kind::CutSubscribers.between(client, Some(node)),
                2 => Kind::LoseQueues.of_node(node),
                3 => Kind::KillFirst.of_node(node),
                4 => {
                    // By an hour or a day: tickets are made of it. Fences are, too, and bear no
                    // more than a day.
                    let hours = if self.sorts().iter().any(|sort| sort.has_fence()) {
                        1
                    } else {
                        random.pick(&[1, 24])
                    };
                    let sign = if self.has_steady_walls() || random.once_in(2) {
                        1
                    } else {
                        -1
                    };
                    let by = sign * hours * 3_600 * SECOND as i64;
                    Kind::SetWallClock(by).of_client(client.unwrap_or(0))
                }
                _ => {
                    let time = random.magnitude(MILLISECOND, longest);
                    Kind::StopFirst.of_node(node).lasting(time)
                }
            };
            self.add(at, fault);
        }
        self.faults.sort_by_key(|fault| fault.at);
    }

    /// Whether wall clocks may not be set back: some client goes by them for what its steady clock
    /// does not count.
    fn has_steady_walls(&self) -> bool {
        self.clients.iter().any(|client| !client.counts_sleep)
    }

    fn draw_fault(
        &self,
        kind: usize,
        longest: u64,
        random: &mut Random,
        wall_steps_back: bool,
    ) -> Fault {
        let time = random.magnitude(MILLISECOND, longest);
        let node = random.index(self.nodes.len());
        let client = random.index(self.clients.len());
        let directions = random.pick(&[[true, true], [true, true], [true, false], [false, true]]);
        match kind {
            0..3 => Kind::Block(directions)
                .between((kind != 1).then_some(client), (kind != 2).then_some(node))
                .lasting(time),
            3 | 4 => Kind::Cut.between((kind == 3).then_some(client), Some(node)),
            5 => Kind::Void.between(Some(client), Some(node)),
            6 => Kind::Hang.of_node(node).lasting(time),
            7 => {
                let condition = random.pick(&[
                    Condition::Loading,
                    Condition::OutOfMemory,
                    Condition::Replica,
                ]);
                Kind::Condition(condition).of_node(node).lasting(time)
            }
            8 => Kind::Pause.of_client(client).lasting(time),
            9 => Kind::Sleep.of_client(client).lasting(time),
            10 if random.once_in(4) => Kind::Leave.of_client(client),
            11 => {
                let by = random.magnitude(MILLISECOND, 30 * SECOND) as i64;
                let is_back = wall_steps_back && random.once_in(2);
                Kind::SetWallClock(if is_back { -by } else { by }).of_client(client)
            }
            12 if self.bounds == Bounds::Eviction => Kind::Evict.of_node(node),
            12 => {
                let by = match self.bounds {
                    Bounds::ClockJumps => random.magnitude(MILLISECOND, 30 * SECOND) as i64,
                    _ => -(random.magnitude(MILLISECOND, 2 * SECOND) as i64),
                };
                Kind::SetNodeClock(by).of_node(node)
            }
            _ => {
                let may_forget =
                    self.bounds == Bounds::Amnesia || self.restart_policy == RestartPolicy::Strict;
                let data = if !may_forget || random.once_in(3) {
                    Data::Kept
                } else {
                    Data::Lost
                };
                Kind::crash(data, random.once_in(2))
                    .of_node(node)
                    .lasting(time)
            }
        }
    }
}
