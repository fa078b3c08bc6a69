//! What a seed stands for: machines, their clocks and ways, what the clients are up to, and every fault, before it
//! begins.
//!
//! Swarm-style: each seed turns whole kinds of faults off and weighs the others wildly, so that some runs are nothing
//! but resets and others nothing but pauses. All of a plan is there to be read, and to be made smaller.

use crate::endings::Ending;
use crate::hints::HintPlan;
use crate::locks::Sort;
use crate::losses;
use crate::profiles;
use crate::random::Random;
use crate::refusals::Refusal;
use quorumlock::RestartPolicy;
use quorumlock::embedded::{Condition, ServerKind};

pub(crate) const MILLISECOND: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MILLISECOND;

/// How long after the end of an attempt, and of all faults, its keys must be gone.
pub(crate) const SETTLED_AFTER: u64 = 16 * SECOND;

/// How long an entry in front may let others wait, in milliseconds.
pub(crate) const PLACE_LEASE: u64 = 1_000;

/// What every lock of two resources has besides its own: so two of them exclude each other, and a node may have set the
/// one key and refuse the other.
pub(crate) const SHARED_KEY: &str = "x";

/// Which faults there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// What the library promises to stand. That nodes lose their data is part of it where clients look at what nodes
    /// remember, or are strict about restarts.
    Kept,
    /// Nodes also come back without their data, and no client minds.
    Amnesia,
    /// Wall clocks of nodes are also set forward.
    ClockJumps,
    /// Nodes also evict keys.
    Eviction,
    /// Kept; but leases are reckoned by the clocks of the system that stand still in sleep.
    SteadyClock,
    /// Kept; and what clients write under a lock is looked at.
    Writes,
    /// Clocks also run faster and slower than `drift_factor` allows.
    WildClocks,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) bounds: Bounds,
    /// What leases are reckoned by, and the thousandths by which clocks may disagree.
    pub(crate) reckoning: Reckoning,
    pub(crate) drift_factor: u32,
    /// What clients do about nodes that were restarted.
    pub(crate) restart_policy: RestartPolicy,
    pub(crate) nodes: Vec<NodePlan>,
    pub(crate) clients: Vec<ClientPlan>,
    /// By client and node.
    pub(crate) paths: Vec<PathPlan>,
    pub(crate) resources: u64,
    /// Whether the locks have fences, or most writers of read-write locks. Then all nodes have scripts.
    pub(crate) is_fenced: bool,
    /// Whether locks of all kinds are taken, where every node has scripts.
    pub(crate) is_mixed: bool,
    /// Whether most locks are permits.
    pub(crate) has_permits: bool,
    /// Whether most locks are fair, where they can be.
    pub(crate) is_fair: bool,
    /// Whether some locks are those of two resources: one of their own, and the [`SHARED_KEY`].
    pub(crate) has_sets: bool,
    /// Whether locks are read-write locks, where they can be.
    pub(crate) is_read_write: bool,
    /// Whether the threads of a client share its leases to read, as they do in a program.
    pub(crate) shares_leases: bool,
    /// The one rule that matters, where others are broken as well.
    pub(crate) only: Option<&'static str>,
    /// Times to live, in milliseconds.
    pub(crate) ttls: Vec<u64>,
    pub(crate) node_timeout: u64,
    /// While faults strike, one packet in so many is lost, and one in so many comes later by up to a span; zero is
    /// none.
    pub(crate) loss: u64,
    pub(crate) straggling: u64,
    pub(crate) longest_straggling: u64,
    /// Longest by which one connection of a node lags behind its others, each way, as where several threads of a server
    /// read and write; zero is not at all. It goes on when the faults have ended.
    pub(crate) skew: u64,
    /// What becomes of published releases.
    pub(crate) hints: HintPlan,
    /// How long faults strike.
    pub(crate) fault_time: u64,
    /// Whether nodes are reached through the stand-in of TLS.
    pub(crate) has_tls: bool,
    /// Bytes that a connection takes before it must wait.
    pub(crate) window: usize,
    /// Longest piece that bytes arrive in; zero is whole.
    pub(crate) piece: u64,
    /// Most by which a timer is late.
    pub(crate) lateness: u64,
    /// A thread is interrupted, and a client paused, at one in so many points; zero is never.
    pub(crate) preemption_rarity: u64,
    pub(crate) pause_rarity: u64,
    pub(crate) longest_pause: u64,
    /// One lock in so many has a watchdog; zero is none.
    pub(crate) watchdog_rarity: u64,
    /// One hold in so many is extended by hand.
    pub(crate) extension_rarity: u64,
    /// Most that threads wait between locks.
    pub(crate) idle: u64,
    /// Longest that a thread does not look at a lock whose lease is about to end; zero is as long as it likes.
    pub(crate) attention: u64,
    /// About how long a thread leaves a lock alone that it holds; zero is as long as it likes.
    pub(crate) stride: u64,
    pub(crate) ending: Ending,
    pub(crate) faults: Vec<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reckoning {
    /// The library's own clock.
    LeaseClock,
    /// What every other library uses: a steady clock, and nothing else.
    SteadyClock,
}

#[derive(Clone, Debug)]
pub(crate) struct NodePlan {
    pub(crate) flavour: ServerKind,
    pub(crate) has_password: bool,
    /// Millionths by which its clock is fast.
    pub(crate) rate: i64,
    /// How long it takes to answer.
    pub(crate) service: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct ClientPlan {
    pub(crate) rate: i64,
    /// Whether its steady clock goes on while the machine sleeps.
    pub(crate) counts_sleep: bool,
    pub(crate) is_observed: bool,
    /// How long its observer takes for one event. A client whose observer takes any time has many threads, most of
    /// which take locks and drop them as fast as they can.
    pub(crate) callback: u64,
    pub(crate) threads: usize,
    /// When its program starts.
    pub(crate) begins_at: u64,
    /// It holds most locks until they are lost, or for as long as threads ever do.
    pub(crate) holds_on: bool,
    /// Its locks have the first time to live, and no program knows of a longer one from it.
    pub(crate) is_brief: bool,
    /// It counts every node, whatever the others do.
    pub(crate) trusts_all: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct PathPlan {
    pub(crate) delay: u64,
    pub(crate) jitter: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) at: u64,
    pub(crate) kind: Kind,
}

/// What a node that comes back has of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    Kept,
    Lost,
    /// What was saved last, or nothing.
    Saved,
    /// The same, of another node that was its replica and is a master now.
    OfReplica,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Block {
        client: Option<usize>,
        node: Option<usize>,
        directions: [bool; 2],
        time: u64,
    },
    Condition {
        node: usize,
        condition: Condition,
        time: u64,
    },
    Crash {
        node: usize,
        time: u64,
        data: Data,
        is_dark: bool,
    },
    Cut {
        client: Option<usize>,
        node: usize,
    },
    /// The subscriber connections of clients.
    CutSubscribers {
        client: Option<usize>,
        node: usize,
    },
    Evict {
        node: usize,
    },
    /// All keys are deleted.
    Flush {
        node: usize,
    },
    ForgetScripts {
        node: usize,
    },
    Hang {
        node: usize,
        time: u64,
    },
    Leave {
        client: usize,
    },
    /// The queues of locks are deleted.
    LoseQueues {
        node: usize,
    },
    Pause {
        client: usize,
        time: u64,
    },
    Refuse {
        node: usize,
        refusal: Refusal,
        time: u64,
    },
    /// The node is a replica of one that has what was saved last, or nothing, and then a master again.
    Resync {
        node: usize,
        time: u64,
    },
    /// A copy of the node's data is made.
    Save {
        node: usize,
    },
    SetNodeClock {
        node: usize,
        by: i64,
    },
    SetWallClock {
        client: usize,
        by: i64,
    },
    /// The client whose entry is the first of a queue is stopped for so long, or killed.
    StopFirst {
        node: usize,
        time: Option<u64>,
    },
    Sleep {
        client: usize,
        time: u64,
    },
    Void {
        client: usize,
        node: usize,
    },
}

/// How many kinds there are to be weighed.
const KINDS: usize = 14;

impl Kind {
    /// Whether a node loses what it has.
    pub(crate) fn loses_data(&self) -> bool {
        match self {
            Kind::Crash { data, .. } => *data != Data::Kept,
            Kind::Evict { .. } | Kind::Flush { .. } | Kind::Resync { .. } => true,
            _ => false,
        }
    }
}

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
        let reckoning = if bounds == Bounds::SteadyClock { Reckoning::SteadyClock } else { Reckoning::LeaseClock };
        let is_fenced = Random::new(!seed).once_in(3);
        // It decides nothing. Without it, no seed would be the run that it was.
        random.once_in(8);
        let nodes = (0..node_count).map(|_| {
            let flavour = random.pick(&[ServerKind::Redis, ServerKind::Redis, ServerKind::Redis, ServerKind::Valkey9]);
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
            counts_sleep: reckoning == Reckoning::LeaseClock && (wall_steps_back || random.once_in(2)),
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
        let paths = (0..client_count * node_count)
            .map(|_| PathPlan { delay: random.magnitude(20_000, farthest), jitter: random.magnitude(1_000, farthest) });
        let paths = paths.collect();
        let ttl = |random: &mut Random| match random.below(10) {
            0 => random.magnitude(10, 60),
            1 | 2 => random.magnitude(10_000, 60_000),
            _ => random.magnitude(50, 5_000),
        };
        let ttls = (0..random.between(1, 3)).map(|_| ttl(&mut random)).collect();
        // Drawn apart, so that no other number changes with it.
        let guards = [RestartPolicy::Off, RestartPolicy::Off, RestartPolicy::Observed, RestartPolicy::Strict];
        let restart_policy =
            if bounds == Bounds::Kept { Random::new(seed ^ 0x9e37_79b9).pick(&guards) } else { RestartPolicy::Off };
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
        let weights: Vec<u64> =
            (0..KINDS).map(|_| if random.once_in(2) { 0 } else { random.magnitude(1, 64) }).collect();
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
            let kind = self.draw_kind(kind.unwrap_or(0), longest, random, wall_steps_back);
            self.faults.push(Fault { at, kind });
        }
        self.faults.sort_by_key(|fault| fault.at);
    }

    /// Nodes refuse requests instead of loading, being replicas, or having no memory. Drawn apart, so that no other
    /// number changes with it.
    fn draw_refusals(&mut self) {
        let random = &mut Random::new(self.seed ^ 0x7265_6675_7361_6c73);
        for fault in &mut self.faults {
            if let Kind::Condition { node, time, .. } = fault.kind
                && random.once_in(3)
            {
                fault.kind = Kind::Refuse { node, refusal: random.pick(&Refusal::ALL), time };
            }
        }
    }

    /// Drawn apart, so that no other number changes with it.
    fn draw_notifications(&mut self) {
        let random = &mut Random::new(self.seed ^ 0x6e6f_7469_6669_6564);
        if self.bounds == Bounds::Kept {
            self.skew = if random.once_in(4) { random.magnitude(10_000, self.node_timeout / 8) } else { 0 };
            self.hints = HintPlan::draw(random);
        }
    }

    /// What happens to queues and to those that wait in them. Drawn apart, so that no other number changes with it.
    fn draw_queue_faults(&mut self) {
        let random = &mut Random::new(self.seed ^ 0x0071_7565_7565_7300);
        if self.bounds != Bounds::Kept || !random.once_in(3) {
            return;
        }
        let longest = random.magnitude(5 * MILLISECOND, 5 * SECOND);
        for _ in 0..random.magnitude(1, 30) {
            let (at, node) = (random.below(self.fault_time), random.index(self.nodes.len()));
            let client = (!random.once_in(3)).then(|| random.index(self.clients.len()));
            let kind = match random.below(8) {
                0 | 1 => Kind::CutSubscribers { client, node },
                2 => Kind::LoseQueues { node },
                3 => Kind::StopFirst { node, time: None },
                4 => {
                    // By an hour or a day: tickets are made of it. Fences are, too, and bear no more than a day.
                    let hours =
                        if self.sorts().iter().any(|sort| sort.has_fence()) { 1 } else { random.pick(&[1, 24]) };
                    let sign = if self.has_steady_walls() || random.once_in(2) { 1 } else { -1 };
                    let by = sign * hours * 3_600 * SECOND as i64;
                    Kind::SetWallClock { client: client.unwrap_or(0), by }
                }
                _ => Kind::StopFirst { node, time: Some(random.magnitude(MILLISECOND, longest)) },
            };
            self.faults.push(Fault { at, kind });
        }
        self.faults.sort_by_key(|fault| fault.at);
    }

    /// Whether wall clocks may not be set back: some client goes by them for what its steady clock does not count.
    fn has_steady_walls(&self) -> bool {
        self.clients.iter().any(|client| !client.counts_sleep)
    }

    fn draw_kind(&self, kind: usize, longest: u64, random: &mut Random, wall_steps_back: bool) -> Kind {
        let time = random.magnitude(MILLISECOND, longest);
        let (node, client) = (random.index(self.nodes.len()), random.index(self.clients.len()));
        let directions = random.pick(&[[true, true], [true, true], [true, false], [false, true]]);
        match kind {
            0 => Kind::Block { client: Some(client), node: Some(node), directions, time },
            1 => Kind::Block { client: None, node: Some(node), directions, time },
            2 => Kind::Block { client: Some(client), node: None, directions, time },
            3 => Kind::Cut { client: Some(client), node },
            4 => Kind::Cut { client: None, node },
            5 => Kind::Void { client, node },
            6 => Kind::Hang { node, time },
            7 => {
                let condition = random.pick(&[Condition::Loading, Condition::OutOfMemory, Condition::Replica]);
                Kind::Condition { node, condition, time }
            }
            8 => Kind::Pause { client, time },
            9 => Kind::Sleep { client, time },
            10 if random.once_in(4) => Kind::Leave { client },
            11 => {
                let by = random.magnitude(MILLISECOND, 30 * SECOND) as i64;
                Kind::SetWallClock { client, by: if wall_steps_back && random.once_in(2) { -by } else { by } }
            }
            12 => match self.bounds {
                Bounds::ClockJumps => {
                    Kind::SetNodeClock { node, by: random.magnitude(MILLISECOND, 30 * SECOND) as i64 }
                }
                Bounds::Eviction => Kind::Evict { node },
                _ => Kind::SetNodeClock { node, by: -(random.magnitude(MILLISECOND, 2 * SECOND) as i64) },
            },
            _ => {
                let may_forget = self.bounds == Bounds::Amnesia || self.restart_policy == RestartPolicy::Strict;
                let data = if !may_forget || random.once_in(3) { Data::Kept } else { Data::Lost };
                Kind::Crash { node, time, data, is_dark: random.once_in(2) }
            }
        }
    }

    /// The longest time to live, in true time, whatever the clocks do.
    fn longest_ttl(&self) -> u64 {
        let set_back: i64 = self
            .faults
            .iter()
            .map(|fault| if let Kind::SetNodeClock { by, .. } = fault.kind { by.min(0) } else { 0 })
            .sum();
        self.ttls.iter().max().map_or(0, |&ttl| ttl.max(self.settling_ttl()) * MILLISECOND * 101 / 100)
            + set_back.unsigned_abs()
    }

    /// How long after the end of all faults every client must have had the lock.
    pub(crate) fn settling_time(&self) -> u64 {
        let threads: u64 = self.clients.iter().map(|client| client.threads as u64).sum();
        self.longest_ttl() + 16 * SECOND + threads * SECOND
    }

    /// When the judge looks for the first time: before keys with a long time to live have gone by themselves.
    pub(crate) fn first_look(&self) -> u64 {
        self.fault_time + SETTLED_AFTER
    }

    /// When the judge looks for the last time.
    pub(crate) fn end(&self) -> u64 {
        self.fault_time + self.settling_time() + 8 * SECOND
    }

    /// A time to live, in milliseconds, with which a lock can be had in good times.
    pub(crate) fn settling_ttl(&self) -> u64 {
        self.ttls[0].max(20 + self.node_timeout * 2 / MILLISECOND)
    }

    /// The locks that threads take, each as often as it is in here. All kinds run together on one name, or those that
    /// share a key.
    pub(crate) fn sorts(&self) -> Vec<Sort> {
        use Sort::{Fair, Fenced, FencedFair, FencedWrite, Permit, Plain, Read, Set, Write};
        let mut sorts = match (self.is_fenced, self.is_read_write) {
            _ if self.is_mixed => {
                vec![
                    Plain,
                    Plain,
                    Fair,
                    Fair,
                    Fenced,
                    FencedFair,
                    Read,
                    Read,
                    Read,
                    Write,
                    FencedWrite,
                    Permit,
                    Permit,
                    Set,
                ]
            }
            (false, true) => vec![Read, Read, Write],
            (true, true) => {
                vec![Read, Read, Read, Read, Read, Read, Read, Read, FencedWrite, FencedWrite, FencedWrite, Write]
            }
            (true, false) if self.is_fair => vec![FencedFair, FencedFair, Fenced],
            (true, false) => vec![Fenced],
            (false, false) if self.is_fair => vec![Fair, Fair, Plain],
            (false, false) => vec![Plain],
        };
        if self.has_permits && !self.is_fenced {
            sorts = [sorts, vec![Permit; 4]].concat();
        }
        if self.has_sets && sorts.contains(&Plain) {
            sorts.push(Set);
        }
        sorts
    }

    /// Whether some locks are sets.
    pub(crate) fn takes_sets(&self) -> bool {
        self.sorts().contains(&Sort::Set)
    }

    /// The longest time that bytes take one way, while nothing fails.
    pub(crate) fn longest_way(&self) -> u64 {
        let path = self.paths.iter().map(|path| path.delay + path.jitter).max().unwrap_or(0);
        path + self.skew + self.nodes.iter().map(|node| node.service).max().unwrap_or(0)
    }

    /// Nothing fails, and no thread or message is held up, but as [`skew`](Plan::skew) and [`hints`](Plan::hints) say.
    pub(crate) fn is_calm(&self) -> bool {
        self.faults.is_empty() && self.is_prompt()
    }

    /// No thread or message is held up but by faults.
    pub(crate) fn is_prompt(&self) -> bool {
        let is_slow = |client: &ClientPlan| client.callback > 0;
        let delays = [self.loss, self.straggling, self.piece, self.preemption_rarity, self.pause_rarity];
        delays == [0; 5] && self.window >= 64 * 1024 && !self.clients.iter().any(is_slow)
    }

    pub(crate) fn majority(&self) -> usize {
        self.nodes.len() / 2 + 1
    }
}

/// A time in readable form.
pub(crate) fn seconds(nanos: u64) -> String {
    format!("{}.{:03} s", nanos / SECOND, nanos % SECOND / MILLISECOND)
}
