//! Nodes that lose what they have, drawn for plans in which clients look at what nodes remember.
//!
//! A node comes back empty, or with a copy of its data from any time before. A replica that lags
//! becomes the master. A node is flushed, or is the replica of another one for a while, and its
//! process goes on.

use crate::events::extension::ExtendOutcome;
use crate::plan::{Bounds, Data, Kind, MILLISECOND, Plan, SECOND};
use crate::random::Random;
use crate::{clients, kernel, recovery};
use quorumlock::RestartPolicy;
use std::time::Duration;

/// How a node loses what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Restart,
    Snapshot,
    FailOver,
    Flush,
    Resync,
}

impl Way {
    pub(crate) const ALL: [Way; 5] = [
        Way::Restart,
        Way::Snapshot,
        Way::FailOver,
        Way::Flush,
        Way::Resync,
    ];
}

/// Draws losses for one plan in three, and programs that begin at any time. From a generator of its
/// own, so that no other number changes.
pub(crate) fn draw(plan: &mut Plan) {
    let random = &mut Random::new(plan.seed ^ 0x006c_6f73_7365_7300);
    if !plan.is_protected() || !random.once_in(3) {
        return;
    }
    for client in 1..plan.clients.len() {
        plan.clients[client].begins_at = if random.once_in(2) {
            random.below(plan.fault_time)
        } else {
            0
        };
    }
    for _ in 0..random.magnitude(1, 8) {
        let at = random.below(plan.fault_time);
        let node = random.index(plan.nodes.len());
        let way = random.pick(&Way::ALL);
        let longest = if random.once_in(2) {
            20 * MILLISECOND
        } else {
            3 * SECOND
        };
        let time = random.magnitude(MILLISECOND, longest);
        lose(plan, random, (way, node), at, time);
    }
    plan.faults.sort_by_key(|fault| fault.at);
}

/// A node loses what it has, and is away for so long if it goes away.
pub(crate) fn lose(
    plan: &mut Plan,
    random: &mut Random,
    (way, node): (Way, usize),
    at: u64,
    time: u64,
) {
    let copies = matches!(way, Way::Snapshot | Way::FailOver | Way::Resync);
    if copies && !random.once_in(4) {
        let age = if random.once_in(2) {
            random.below(at + 1)
        } else {
            random.magnitude(MILLISECOND, at + 1)
        };
        plan.add(at.saturating_sub(age), Kind::Save.of_node(node));
    }
    let kind = match way {
        Way::Restart => Kind::crash(Data::Lost, random.once_in(2)),
        Way::Snapshot => Kind::crash(Data::Saved, random.once_in(2)),
        Way::FailOver => Kind::Crash(Data::OfReplica),
        Way::Flush => Kind::Flush,
        Way::Resync => Kind::Resync,
    };
    let time = if way == Way::Flush { 0 } else { time };
    plan.add(at, kind.of_node(node).lasting(time));
}

impl Plan {
    /// Whether a loss of data is part of what the library promises to survive: nodes are noted, and
    /// clients wait.
    pub(crate) fn is_protected(&self) -> bool {
        self.bounds == Bounds::Kept && self.restart_policy != RestartPolicy::Off
    }

    /// What a client does about nodes that were restarted.
    pub(crate) fn policy(&self, client: usize) -> RestartPolicy {
        if self.clients[client].trusts_all {
            RestartPolicy::Off
        } else {
            self.restart_policy
        }
    }

    /// The longest that a lock of a client may last, in milliseconds.
    pub(crate) fn max_ttl(&self, client: usize) -> u64 {
        self.ttls_of(client)
            .iter()
            .copied()
            .max()
            .unwrap_or(0)
            .max(self.settling_ttl())
    }

    /// The times to live of a client's locks, in milliseconds.
    pub(crate) fn ttls_of(&self, client: usize) -> &[u64] {
        if self.clients[client].is_brief {
            &self.ttls[..1]
        } else {
            &self.ttls
        }
    }
}

/// Two programs begin at once. When the one whose locks last longer has a lock, every node knows of
/// that, also where the other one was quicker.
#[test]
fn a_longer_time_to_live_is_known_everywhere_before_a_lock_is_taken() {
    fn take(client: usize) {
        let guard = clients::open(client).mutex(format!("r{client}")).try_lock();
        assert!(guard.is_ok_and(|guard| guard.is_some()));
        let least = kernel::with(|world| {
            let nodes = world.nodes.iter();
            nodes.filter_map(|node| node.noted_ttl(world.now)).min()
        });
        assert!(
            client == 1 || least >= Some(5_000),
            "a node knows {least:?}"
        );
    }
    for seed in 0..100 {
        let mut plan = recovery::quiet(seed, 3);
        plan.restart_policy = RestartPolicy::Observed;
        plan.clients = vec![plan.clients[0].clone(); 2];
        plan.clients[1].is_brief = true;
        plan.ttls = vec![1_000, 5_000];
        plan.paths = vec![plan.paths[0].clone(); 6];
        recovery::play(plan, || {
            kernel::spawn(1, || take(1));
            take(0);
        });
    }
}

/// Two of three nodes are flushed, and report it first. The call that they end leaves, and no
/// thread reads what the third one replies: it has kept its locks, and the next call finds that out
/// before it judges the others.
#[test]
fn a_reply_that_no_thread_has_read_is_no_late_one() {
    for seed in 0..20 {
        let mut plan = recovery::quiet(seed, 3);
        plan.restart_policy = RestartPolicy::Observed;
        plan.ttls = vec![5_000];
        // It makes no call at the end, and so it does not learn that nodes count again.
        plan.clients[0].is_observed = false;
        plan.paths[1].delay = 3 * MILLISECOND;
        for node in [0, 2] {
            plan.add(3 * SECOND, Kind::Flush.of_node(node));
        }
        recovery::play(plan, || {
            let redlock = clients::open(0);
            let guard = redlock.mutex("r0").try_lock().unwrap().unwrap();
            kernel::sleep_until(3_100 * MILLISECOND);
            let extended = guard.extend(Duration::from_secs(5)).unwrap();
            assert_eq!(extended, ExtendOutcome::Lost);
            kernel::sleep_until(3_500 * MILLISECOND);
            let taken = redlock.mutex("r1").try_lock();
            assert!(taken.is_err(), "no node is to be founded anew");
        });
    }
}

/// Two of three nodes are near, and a call has its quorum before the third one replies. That one is
/// noted all the same, soon after the call: where the program trusts every node, and where the
/// third node was flushed.
#[test]
fn nodes_are_noted_though_no_call_waits_for_it() {
    for seed in 0..40 {
        let mut plan = recovery::quiet(seed, 3);
        (plan.restart_policy, plan.clients[0].trusts_all) =
            (RestartPolicy::Observed, seed % 2 == 0);
        // Its locks are not the judge's.
        plan.clients[0].is_observed = false;
        plan.paths[2].delay = 3 * MILLISECOND;
        plan.add(2 * SECOND, Kind::Flush.of_node(2));
        recovery::play(plan, || {
            let mutex = clients::open(0).mutex("r0");
            for call in 0..4 {
                kernel::sleep_until(call * 1_100 * MILLISECOND);
                assert!(mutex.try_lock().is_ok_and(|guard| guard.is_some()));
                kernel::sleep_until((call * 1_100 + 1_000) * MILLISECOND);
                let are_noted = kernel::with(|world| {
                    let mut nodes = world.nodes.iter();
                    nodes.all(|node| node.noted_ttl(world.now).is_some())
                });
                // The flush is seen by the next call.
                assert!(call == 1 || are_noted, "call {call}");
            }
        });
    }
}
