//! What a seed determines: machines, their clocks and ways, what the clients are up to, and every
//! fault, before it begins.
//!
//! Swarm-style: each seed turns whole kinds of faults off and weighs the others wildly, so that
//! some runs are nothing but resets and others nothing but pauses. All of a plan is there to be
//! read, and to be made smaller. [`draw`] draws it, and [`faults`] has the kinds of faults.

mod draw;
mod faults;

pub(crate) use faults::{Data, Fault, Kind};

use crate::endings::Ending;
use crate::hints::HintPlan;
use crate::locks::Sort;
use quorumlock::RestartPolicy;
use quorumlock::embedded::ServerKind;

pub(crate) const MILLISECOND: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MILLISECOND;

/// How long after the end of an attempt, and of all faults, its keys must be gone.
pub(crate) const SETTLED_AFTER: u64 = 16 * SECOND;

/// How long an entry in front may let others wait, in milliseconds.
pub(crate) const PLACE_LEASE: u64 = 1_000;

/// What every lock of two resources has in addition to its own: so two of them exclude each other,
/// and a node may have set the one key and refuse the other.
pub(crate) const SHARED_KEY: &str = "x";

/// Which faults there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// What the library promises to tolerate. That nodes lose their data is part of it where
    /// clients look at what nodes remember, or are strict about restarts.
    Kept,
    /// Nodes also come back without their data, and no client minds.
    Amnesia,
    /// Wall clocks of nodes are also set forward.
    ClockJumps,
    /// Nodes also evict keys.
    Eviction,
    /// Kept; but leases are reckoned by the clocks of the system that stop in sleep.
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
    /// Whether the locks have fences, or most writers of read-write locks. Then all nodes have
    /// scripts.
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
    /// While faults strike, one packet in so many is lost, and one in so many comes later by up to
    /// a span; zero is none.
    pub(crate) loss: u64,
    pub(crate) straggling: u64,
    pub(crate) longest_straggling: u64,
    /// Longest by which one connection of a node lags behind its others, each way, as where several
    /// threads of a server read and write; zero is not at all. It goes on when the faults have
    /// ended.
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
    /// Longest that a thread does not look at a lock whose lease is about to end; zero is as long
    /// as it likes.
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
    /// How long its observer takes for one event. A client whose observer takes any time has many
    /// threads, most of which take locks and drop them as fast as they can.
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

impl PathPlan {
    pub(crate) fn new(delay: u64, jitter: u64) -> PathPlan {
        PathPlan { delay, jitter }
    }
}

impl Plan {
    /// The longest time to live, in true time, whatever the clocks do.
    fn longest_ttl(&self) -> u64 {
        let set_back = |fault: &Fault| match fault.kind {
            Kind::SetNodeClock(by) => by.min(0),
            _ => 0,
        };
        let set_back: i64 = self.faults.iter().map(set_back).sum();
        self.ttls.iter().max().map_or(0, |&ttl| {
            ttl.max(self.settling_ttl()) * MILLISECOND * 101 / 100
        }) + set_back.unsigned_abs()
    }

    /// How long after the end of all faults every client must have had the lock.
    pub(crate) fn settling_time(&self) -> u64 {
        let threads: u64 = self
            .clients
            .iter()
            .map(|client| client.threads as u64)
            .sum();
        self.longest_ttl() + 16 * SECOND + threads * SECOND
    }

    /// When the judge looks for the first time: before keys with a long time to live have gone by
    /// themselves.
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

    /// The locks that threads take, each as often as it is in here. All kinds run together on one
    /// name, or those that share a key.
    pub(crate) fn sorts(&self) -> Vec<Sort> {
        use Sort::{Fair, Fenced, FencedFair, FencedWrite, Permit, Plain, Read, Set, Write};
        let mut sorts = match (self.is_fenced, self.is_read_write) {
            _ if self.is_mixed => [
                vec![Plain; 2],
                vec![Fair; 2],
                vec![Fenced, FencedFair],
                vec![Read; 3],
                vec![Write, FencedWrite],
                vec![Permit; 2],
                vec![Set],
            ]
            .concat(),
            (false, true) => vec![Read, Read, Write],
            (true, true) => [vec![Read; 8], vec![FencedWrite; 3], vec![Write]].concat(),
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
        let path = self
            .paths
            .iter()
            .map(|path| path.delay + path.jitter)
            .max()
            .unwrap_or(0);
        path + self.skew
            + self
                .nodes
                .iter()
                .map(|node| node.service)
                .max()
                .unwrap_or(0)
    }

    /// Nothing fails, and no thread or message is held up, but as [`skew`](Plan::skew) and
    /// [`hints`](Plan::hints) specify.
    pub(crate) fn is_calm(&self) -> bool {
        self.faults.is_empty() && self.is_prompt()
    }

    /// No thread or message is held up but by faults.
    pub(crate) fn is_prompt(&self) -> bool {
        let is_slow = |client: &ClientPlan| client.callback > 0;
        let delays = [
            self.loss,
            self.straggling,
            self.piece,
            self.preemption_rarity,
            self.pause_rarity,
        ];
        delays == [0; 5] && self.window >= 64 * 1024 && !self.clients.iter().any(is_slow)
    }

    pub(crate) fn add(&mut self, at: u64, fault: Fault) {
        self.faults.push(Fault { at, ..fault });
    }

    /// Leaves out all faults and what only delays a run, and all resources but one.
    pub(crate) fn quieten(&mut self) {
        self.faults.clear();
        self.resources = 1;
        self.loss = 0;
        self.straggling = 0;
        self.skew = 0;
        self.hints = HintPlan::default();
        self.window = 64 * 1024;
        self.piece = 0;
        self.preemption_rarity = 0;
        self.pause_rarity = 0;
        self.watchdog_rarity = 0;
        self.extension_rarity = 0;
    }

    pub(crate) fn majority(&self) -> usize {
        self.nodes.len() / 2 + 1
    }
}

/// A time in readable form.
pub(crate) fn seconds(nanos: u64) -> String {
    format!("{}.{:03} s", nanos / SECOND, nanos % SECOND / MILLISECOND)
}
