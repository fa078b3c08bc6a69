//! The rule about observers: each event is reported once, and as it was.
//!
//! Some clients have an observer. Most are quick: while they are called, nothing else runs. Some
//! take a while for each event, so that more happens than one thread can deliver; then no call may
//! deliver more than its share. Locks are distinguished by their keys, of which each call for a
//! lock has one of its own here.

use crate::call_rules::ReportedCall;
use crate::events::event::{Event, LossReason};
use crate::events::extension::ExtendOutcome;
use crate::events::release::ReleaseOutcome;
use crate::kernel::{sleep_until, with};
use crate::plan::SECOND;
use crate::world::World;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Time after which the outcome of a release is reported in a client that is used.
const REPORTED_AFTER: u64 = 4 * SECOND;
/// Most events that one call delivers: the share that the documentation states, and two of its own.
pub(crate) const MOST_DELIVERED: u32 = 32 + 2;

/// The observer of one client.
pub(crate) struct Listener {
    pub(crate) client: usize,
}

/// What was reported of one lock.
#[derive(Default)]
struct Reported {
    client: usize,
    /// Kept, so that no other lock gets the same address.
    key: Arc<str>,
    lost: u32,
    /// Extensions by hand that were reported as successful, and as failed.
    extended: u32,
    extension_failed: u32,
    /// Whether its channel brought a message.
    is_known_lost: bool,
    /// When it was released, and whether by dropping; not known where threads share it.
    left: Option<(u64, Option<bool>)>,
    end: Option<End>,
}

/// How its release ended, and whether the guard was dropped.
type End = (Option<ReleaseOutcome>, bool);

/// All that was reported.
#[derive(Default)]
pub(crate) struct Reports {
    locks: Vec<Reported>,
    by_key: BTreeMap<usize, usize>,
    /// By thread, the lock that was reported last and whose guard was not seen yet.
    latest: BTreeMap<usize, usize>,
    /// By thread, how many events it has delivered.
    delivered: BTreeMap<usize, u32>,
    /// By thread, what was reported of the call that it is in.
    pub(crate) calls: BTreeMap<usize, ReportedCall>,
    /// By client and node, the state that was reported last.
    nodes: BTreeMap<(usize, String), Look>,
    /// By client and node, whether it is in quarantine.
    quarantined: BTreeMap<(usize, String), bool>,
}

/// The state of a node, as reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Down,
    Quarantined,
    Up,
}

impl Listener {
    pub(crate) fn event(&self, event: &Event) {
        let is_counted = !matches!(
            event,
            Event::AttemptLost { .. }
                | Event::NodeQuarantined { .. }
                | Event::QuarantineEnded { .. }
                | Event::Repaired { .. }
        );
        if is_counted {
            sleep_until(with(|world| world.delivers(self.client)));
        }
        with(|world| {
            // A client that is gone reports nothing.
            if !world.clients[self.client].is_gone {
                world.on_event(self.client, event);
            }
        });
    }
}

impl World {
    /// One event is delivered. Returns when that has been done.
    fn delivers(&mut self, client: usize) -> u64 {
        let task = self.current_task();
        *self.reports.delivered.entry(task).or_default() += 1;
        self.now + self.plan.clients[client].callback
    }

    fn on_event(&mut self, client: usize, event: &Event) {
        match event {
            Event::Acquired {
                name,
                attempts,
                has_waited,
                ..
            } => {
                self.present_call().ended(None, *has_waited, *attempts);
                // Without an attempt, a thread shares the lease of another one.
                if *attempts > 0 {
                    self.on_acquired(client, name);
                }
            }
            Event::AttemptLost { .. } => self.present_call().lost_attempt(),
            // The watchdog may be ahead of the thread that has taken the lock, and is about to
            // report it.
            Event::Extended {
                name,
                is_automatic: false,
                ..
            } => _ = self.reported(name).map(|lock| lock.extended += 1),
            Event::ExtensionFailed {
                name,
                is_automatic: false,
                ..
            } => _ = self.reported(name).map(|lock| lock.extension_failed += 1),
            Event::GaveUp {
                reason,
                attempts,
                has_waited,
                ..
            } => self
                .present_call()
                .ended(Some(*reason), *has_waited, *attempts),
            Event::Lost { name, reason, .. } => self.on_lost(name, *reason),
            Event::NodeDown { node, .. } => self.on_node(client, node, Look::Down),
            Event::NodeQuarantined { node, .. } => {
                let key = (client, node.to_string());
                self.reports.quarantined.insert(key, true);
                self.on_node(client, node, Look::Quarantined);
            }
            Event::NodeUp { node, .. } => {
                let key = (client, node.to_string());
                if self.reports.quarantined.get(&key) == Some(&true) {
                    self.misreport("a node was reported up, and is in quarantine");
                }
                self.on_node(client, node, Look::Up);
            }
            Event::QuarantineEnded { node } => {
                let key = (client, node.to_string());
                if self.reports.quarantined.insert(key, false) != Some(true) {
                    self.misreport("the end of a quarantine was reported that had not begun");
                }
            }
            Event::ReleaseFailed {
                name, is_dropped, ..
            } => {
                self.saw("an observer gets a failed release");
                self.on_end(name, (None, *is_dropped));
            }
            Event::Released {
                name,
                is_dropped,
                outcome,
                ..
            } => {
                self.saw("an observer gets a release");
                self.on_end(name, (Some(*outcome), *is_dropped));
            }
            Event::Repaired { name, .. } => {
                self.saw("an observer gets a repair");
                self.reported(name);
            }
            Event::Waiting { .. } => self.present_call().waits(),
            _ => {}
        }
    }

    /// What was reported of the call of the running thread.
    fn present_call(&mut self) -> &mut ReportedCall {
        let task = self.current_task();
        self.reports.calls.entry(task).or_default()
    }

    /// What was reported of the lock that an event is about.
    fn reported(&mut self, name: &Arc<str>) -> Option<&mut Reported> {
        let index = self.reports.by_key.get(&address(name)).copied();
        if index.is_none() {
            self.misreport("an event came about a lock that was not reported taken");
        }
        index.map(|index| &mut self.reports.locks[index])
    }

    fn on_acquired(&mut self, client: usize, name: &Arc<str>) {
        let task = self.current_task();
        let index = self.reports.locks.len();
        self.reports.by_key.insert(address(name), index);
        self.reports.locks.push(Reported {
            client,
            key: Arc::clone(name),
            ..Reported::default()
        });
        if self.reports.latest.insert(task, index).is_some() {
            self.misreport("a lock was reported taken twice, or without a guard");
        }
    }

    fn on_lost(&mut self, name: &Arc<str>, reason: LossReason) {
        self.saw("an observer gets a loss");
        let times = self.reported(name).map(|lock| {
            lock.lost += 1;
            lock.lost
        });
        if times > Some(1) {
            self.misreport("a loss was reported twice");
        }
        let lock = self.reports.by_key.get(&address(name)).copied();
        if reason == LossReason::KeyGone && lock.is_some() {
            let mut holds = self.judge.holds.iter();
            if let Some(hold) = holds.find(|hold| hold.reported_as == lock) {
                self.check_loss(hold.token, "was reported lost");
            }
        }
    }

    fn on_end(&mut self, name: &Arc<str>, end: End) {
        // A call may drop a lock whose lease ended before it returned.
        let index = self.reports.by_key.get(&address(name));
        let mut in_calls = self.reports.latest.values();
        let is_in_call = end.1 && in_calls.any(|latest| Some(latest) == index);
        let Some(lock) = self.reported(name) else {
            return;
        };
        let wrong = match (lock.left, lock.end.replace(end)) {
            (_, Some(_)) => "the outcome of a release was reported twice",
            (None, None) if is_in_call => return,
            (None, _) => "a release was reported, and the guard is there",
            (Some((_, was_dropped)), None) if was_dropped.is_some_and(|it| it != end.1) => {
                "a drop and an unlock were mixed up"
            }
            (Some(_), None) => return,
        };
        self.misreport(wrong);
    }

    fn on_node(&mut self, client: usize, node: &str, look: Look) {
        self.saw(match look {
            Look::Down => "an observer gets a node that is down",
            Look::Quarantined => "an observer gets a quarantine",
            Look::Up => "an observer gets a node that is up",
        });
        self.record(|| format!("client {client} reports that {node} is {look:?}"));
        let before = self.reports.nodes.insert((client, node.to_owned()), look);
        // Another quarantine may begin before the last one has ended.
        if before == Some(look) && look != Look::Quarantined {
            self.misreport("a node was reported in the state that it had already");
        }
    }

    fn misreport(&mut self, what: &str) {
        let client = self.current_client();
        self.violate("reported once", format!("client {client}: {what}"));
    }

    pub(crate) fn is_observed_now(&self) -> bool {
        let client = self.current_client();
        self.plan.clients[client].is_observed && !self.clients[client].is_gone
    }

    /// A call for the lock returned a guard: which lock it is, of those that were reported.
    pub(crate) fn reported_guard(&mut self) -> Option<usize> {
        let lock = self.reports.latest.remove(&self.current_task());
        if lock.is_none() && self.is_observed_now() {
            self.misreport("a lock that was taken was not reported");
        }
        lock
    }

    /// A call for the lock fails, because the lease of the lock that it took has ended: it has
    /// dropped the lock.
    pub(crate) fn reported_lost_in_call(&mut self) {
        if let Some(lock) = self.reports.latest.remove(&self.current_task()) {
            self.reports.locks[lock].left = Some((self.now, Some(true)));
        }
    }

    /// A call for the lock returned without a guard.
    pub(crate) fn reported_none(&mut self) {
        if self.reports.latest.remove(&self.current_task()).is_some() && self.is_observed_now() {
            self.misreport("a lock was reported taken, and there is no guard");
        }
    }

    /// A call for the lock returned a guard of this attempt, which another thread may have made.
    pub(crate) fn reported_share(&mut self, token: usize, is_own: bool) -> Option<usize> {
        if !is_own {
            return self
                .judge
                .holds
                .iter()
                .find(|hold| hold.token == token)
                .and_then(|hold| hold.reported_as);
        }
        let lock = self.reported_guard();
        // Another thread may have been quicker.
        self.judge
            .holds
            .iter_mut()
            .filter(|hold| hold.token == token)
            .for_each(|hold| hold.reported_as = lock);
        lock
    }

    pub(crate) fn reported_by_channel(&mut self, lock: Option<usize>) {
        if let Some(lock) = lock {
            self.reports.locks[lock].is_known_lost = true;
        }
    }

    /// The guard is about to be released.
    pub(crate) fn reported_leaving(&mut self, lock: Option<usize>, by_dropping: Option<bool>) {
        if let Some(lock) = lock {
            self.reports.locks[lock].left = Some((self.now, by_dropping));
        }
    }

    /// How many events the running thread has delivered so far.
    pub(crate) fn delivered(&self) -> u32 {
        self.reports
            .delivered
            .get(&self.current_task())
            .copied()
            .unwrap_or(0)
    }

    /// A call that makes one attempt at most has returned.
    pub(crate) fn has_delivered(&mut self, what: &str, before: u32) {
        let delivered = self.delivered() - before;
        if self.is_observed_now() && delivered == MOST_DELIVERED - 2 {
            self.saw("a call that delivers as many events as it may");
        }
        if self.is_observed_now() && delivered > MOST_DELIVERED {
            self.violate(
                "bounded delivery",
                format!("{what} delivered {delivered} events"),
            );
        }
    }

    /// `unlock` returned: its outcome has been reported by then.
    pub(crate) fn reported_unlock(&mut self, lock: Option<usize>, outcome: Option<ReleaseOutcome>) {
        if let Some(lock) = lock
            && self.is_observed_now()
            && self.reports.locks[lock].end != Some((outcome, false))
        {
            let reported = self.reports.locks[lock].end;
            self.misreport(&format!(
                "unlock said {outcome:?}, and the observer got {reported:?}"
            ));
        }
    }

    /// `extend` returned: its outcome has been reported by then.
    pub(crate) fn reported_extend(
        &mut self,
        lock: Option<usize>,
        before: (u32, u32),
        outcome: &ExtendOutcome,
    ) {
        let Some(lock) = lock.filter(|_| self.is_observed_now()) else {
            return;
        };
        let (extended, failed) = self.reported_extensions(Some(lock));
        let reported = (extended - before.0, failed - before.1);
        let expected = match outcome {
            ExtendOutcome::Extended => (1, 0),
            ExtendOutcome::Failed(_) => (0, 1),
            ExtendOutcome::Lost => (0, 0),
        };
        if reported != expected {
            self.misreport(&format!(
                "extend said {outcome:?}, and the observer got {reported:?}"
            ));
        }
    }

    pub(crate) fn reported_extensions(&self, lock: Option<usize>) -> (u32, u32) {
        lock.map_or((0, 0), |lock| {
            (
                self.reports.locks[lock].extended,
                self.reports.locks[lock].extension_failed,
            )
        })
    }

    /// When the network has healed and clients go on to be used, nothing is left to report.
    pub(crate) fn look_for_unreported(&mut self) {
        let mut unreported = None;
        for lock in &self.reports.locks {
            let is_over = lock
                .left
                .is_some_and(|(at, _)| at + REPORTED_AFTER < self.now);
            if !is_over || self.clients[lock.client].is_gone {
                continue;
            }
            if lock.end.is_none() {
                unreported = Some(format!(
                    "client {}: the outcome of a release was never reported",
                    lock.client
                ));
            }
            if lock.is_known_lost && lock.lost == 0 {
                unreported = Some(format!(
                    "client {}: its channel said that a lock is lost, the observer nothing",
                    lock.client
                ));
            }
        }
        for ((client, node), look) in &self.reports.nodes {
            if *look != Look::Up && !self.clients[*client].is_gone {
                unreported = Some(format!(
                    "client {client}: {node} was reported {look:?}, and never up again"
                ));
            }
        }
        if let Some(unreported) = unreported {
            self.violate("reported once", unreported);
        }
    }
}

fn address(key: &Arc<str>) -> usize {
    Arc::as_ptr(key).addr()
}
