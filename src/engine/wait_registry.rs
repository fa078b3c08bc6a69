//! Which threads wait for which key, and what the nodes have announced about it.
//!
//! Invariants:
//! 1. No announcement is lost between two waits. One that comes while no thread sleeps ends the next wait at once,
//!    unless an attempt has begun since, which finds out by itself.
//! 2. A release is one reason to wake, however many nodes announce it; [`turns`](crate::algorithm::turns) has the
//!    rules.
//! 3. A waiter is woken when so many nodes have confirmed its subscription that no release by a quorum can escape it.
//!    It is woken again when a node confirms that was lost before: what that node announced meanwhile did not arrive.
//! 4. A thread that waits for any of several keys sleeps for each. The releases of each of them count towards its turn.

use super::interrupt::Interrupt;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::place::PlaceId;
use crate::algorithm::time::Timestamp;
use crate::algorithm::turns::{AnnouncedReleases, Contention, Line, WakeOrder};
use crate::protocol::publish::Hint;
use crate::protocol::session::Ticket;
use crate::protocol::subscription::Key;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// For how long it counts that a release was not announced.
const MISSED_LASTS: Duration = Duration::from_secs(10);
/// Most locks of which that is known. It bounds the memory.
const MISSED_LOCKS: usize = 1024;

/// What has ended a wait before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// The interrupt was set.
    Interrupted,
    /// The lock was released.
    Released(WakeOrder),
    /// From now on no release can escape.
    Subscribed,
    /// From now on a release can escape, or the nodes are gone.
    Unsubscribed,
}

/// The waiters of one client, by key.
pub(crate) struct WaitRegistry {
    /// Whether releases are published and subscribed to.
    pub(crate) is_on: bool,
    nodes: usize,
    /// In order, so that a simulated run can be repeated.
    pub(crate) waiters_by_key: BTreeMap<Key, KeyWaiters>,
    /// How many threads sleep.
    sleepers: usize,
    contention: Contention,
    /// When locks were last seen to have changed hands without an announcement.
    missed: BTreeMap<Key, Timestamp>,
    /// Whether any lock is contended. It is read without the lock of the engine.
    pub(crate) is_crowded: Arc<AtomicBool>,
}

/// A key that at least one thread waits for.
#[derive(Default)]
pub(crate) struct KeyWaiters {
    /// How many wait. Usually one: only the head of a program's queue waits for other programs.
    listeners: u32,
    /// Whether one of them has subscribed.
    is_subscribed: bool,
    /// Those that sleep: at most one for each listener.
    pub(crate) sleepers: Vec<Waiter>,
    /// The nodes that have confirmed the subscription.
    pub(crate) live: NodeSet,
    /// The nodes that were lost since, and whose announcements may have been missed.
    missed: NodeSet,
    releases: AnnouncedReleases,
    /// Of a fair lock: the place of the call that waits, and whether it was the first when it last asked.
    place: Option<(PlaceId, bool)>,
    /// Whether the last announcement named that call.
    is_named: bool,
    /// The call before it, if that has left it the place.
    predecessor: Option<PlaceId>,
    /// Whether a release has named a call of another program.
    has_heard_of_others: bool,
    /// The key whose line of programs is that of this key as well, if it is another one.
    group: Option<Key>,
    /// A reason to wake that no waiter has taken.
    reason: Option<WakeReason>,
}

/// One thread that sleeps.
pub(crate) struct Waiter {
    pub(crate) ticket: Ticket,
    pub(crate) interrupt: Arc<Interrupt>,
    reason: Option<WakeReason>,
}

impl Waiter {
    pub(crate) fn new(ticket: Ticket, interrupt: &Arc<Interrupt>) -> Waiter {
        Waiter { ticket, interrupt: Arc::clone(interrupt), reason: None }
    }
}

impl WaitRegistry {
    pub(crate) fn new(nodes: usize, is_on: bool) -> WaitRegistry {
        WaitRegistry {
            is_on,
            nodes,
            waiters_by_key: BTreeMap::new(),
            sleepers: 0,
            contention: Contention::default(),
            missed: BTreeMap::new(),
            is_crowded: Arc::default(),
        }
    }

    /// Whether any thread sleeps.
    pub(crate) fn has_sleepers(&self) -> bool {
        self.sleepers > 0
    }

    /// Registers a thread that is about to wait for a key; true when that has to be subscribed to.
    pub(crate) fn enter(&mut self, key: &Key, subscribes: bool) -> bool {
        let waiters = self.waiters_by_key.entry(Arc::clone(key)).or_default();
        waiters.listeners += 1;
        subscribes && !std::mem::replace(&mut waiters.is_subscribed, true)
    }

    /// Gives these keys one line of programs: each waits for any of them.
    pub(crate) fn group(&mut self, keys: &[Key]) {
        let Some((first, others)) = keys.split_first() else { return };
        // A thread that waits for any of several may get one from its own program.
        if others.is_empty() {
            self.end_run(first);
        }
        for key in others {
            if let Some(waiters) = self.waiters_by_key.get_mut(key) {
                waiters.group = Some(Arc::clone(first));
            }
        }
    }

    /// A thread of this client leaves a key to other programs.
    pub(crate) fn end_run(&mut self, key: &[u8]) {
        self.contention.note_wait(key);
    }

    /// Unregisters a thread, which `has_won` the lock or not. If it was the last for the key, gives whether that was
    /// subscribed to. With a successor, that stays as it is, and what is announced meanwhile is kept for that call.
    pub(crate) fn leave(
        &mut self,
        key: &Key,
        (has_won, successor): (bool, Option<PlaceId>),
        now: Timestamp,
    ) -> Option<bool> {
        let others = self.releases(key, |releases| releases.others())?;
        if has_won {
            if others > 0 {
                self.contention.note_others(key, others, now);
            }
            self.releases(key, AnnouncedReleases::had_turn);
        }
        let waiters = self.waiters_by_key.get_mut(key)?;
        waiters.listeners -= 1;
        if waiters.listeners > 0 {
            return None;
        }
        if let (Some(successor), true) = (successor, waiters.is_subscribed) {
            let predecessor = waiters.place.map(|(id, _)| id);
            let KeyWaiters { live, missed, .. } = *waiters;
            let place = Some((successor, true));
            *waiters = KeyWaiters { live, missed, place, predecessor, is_subscribed: true, ..KeyWaiters::default() };
            return None;
        }
        self.waiters_by_key.remove(key).map(|waiters| waiters.is_subscribed)
    }

    /// No thread will wait with the place that was left to it. Gives whether the key was subscribed to for that.
    pub(crate) fn forget_successor(&mut self, key: &Key) -> bool {
        let is_left = self.waiters_by_key.get(key).is_some_and(|waiters| waiters.listeners == 0);
        is_left && self.waiters_by_key.remove(key).is_some_and(|waiters| waiters.is_subscribed)
    }

    /// The keys that are subscribed to.
    pub(crate) fn subscribed(&self) -> impl Iterator<Item = &Key> {
        self.waiters_by_key.iter().filter(|(_, waiters)| waiters.is_subscribed).map(|(key, _)| key)
    }

    /// A registered thread goes to sleep; false when there is a reason to wake already.
    pub(crate) fn sleep(&mut self, key: &Key, mut waiter: Waiter) -> bool {
        let Some(waiters) = self.waiters_by_key.get_mut(key) else { return false };
        waiter.reason = waiters.reason.take();
        let is_quiet = waiter.reason.is_none() && !waiter.interrupt.is_set();
        waiters.sleepers.push(waiter);
        self.sleepers += 1;
        is_quiet
    }

    /// A thread is awake. Gives the reason, if it was not its deadline.
    pub(crate) fn wake(&mut self, key: &Key, ticket: Ticket) -> Option<WakeReason> {
        let waiters = self.waiters_by_key.get_mut(key)?;
        let index = waiters.sleepers.iter().position(|waiter| waiter.ticket == ticket)?;
        let waiter = waiters.sleepers.swap_remove(index);
        self.sleepers -= 1;
        let was_interrupted = waiter.interrupt.take();
        waiter.reason.or(was_interrupted.then_some(WakeReason::Interrupted))
    }

    /// A thread is awake that slept for each of these keys. Gives the reason, and the place of its key. Of several, a
    /// release counts. Another one that was announced meanwhile ends the next wait.
    pub(crate) fn wake_of(&mut self, keys: &[Key], ticket: Ticket) -> Option<(WakeReason, usize)> {
        let mut found = None;
        for (place, key) in keys.iter().enumerate() {
            let Some(reason) = self.wake(key, ticket) else { continue };
            match (found, reason) {
                (Some((WakeReason::Released(_), _)), WakeReason::Released(_)) => {
                    if let Some(waiters) =
                        self.waiters_by_key.get_mut(key).filter(|waiters| waiters.sleepers.is_empty())
                    {
                        waiters.reason = Some(reason);
                    }
                }
                (Some((WakeReason::Released(_), _)), _) => {}
                _ => found = Some((reason, place)),
            }
        }
        found
    }

    /// Whether a thread waits for a key, and its releases are subscribed to.
    pub(crate) fn is_subscribed(&self, key: &[u8]) -> bool {
        self.waiters_by_key.get(key).is_some_and(|waiters| waiters.is_subscribed)
    }

    /// A registered thread begins an attempt: it finds out about all that was announced so far.
    pub(crate) fn look_into(&mut self, key: &[u8]) {
        if let Some(waiters) = self.waiters_by_key.get_mut(key) {
            waiters.reason = None;
        }
    }

    /// A node has confirmed a subscription. Gives the waiters to wake, if any.
    pub(crate) fn confirmed(&mut self, key: &Key, node: NodeId) -> Option<&KeyWaiters> {
        let enough = self.enough();
        let waiters = self.waiters_by_key.get_mut(key)?;
        let was_missed = waiters.missed.contains(node);
        waiters.missed = waiters.missed.without(NodeSet::from_iter([node]));
        let is_reason = waiters.live.insert(node) && (was_missed || waiters.live.len() == enough);
        is_reason.then(|| waiters.note(WakeReason::Subscribed))
    }

    /// A node has announced a release. Gives the waiters to wake, if any.
    pub(crate) fn announced(&mut self, key: &Key, node: NodeId, hint: Hint, now: Timestamp) -> Option<&KeyWaiters> {
        self.waiters_by_key.get_mut(key).into_iter().for_each(|waiters| waiters.is_named = false);
        self.take_announcement(key, node, hint, now)
    }

    fn take_announcement(&mut self, key: &Key, node: NodeId, hint: Hint, now: Timestamp) -> Option<&KeyWaiters> {
        let quorum = self.quorum();
        self.contention.note_release(key);
        let hint = (hint.crowd, hint.has_waited);
        let order = match self.waiters_by_key.get(key)?.place {
            None => self.releases(key, |releases| releases.announced(node, hint, quorum, now))??,
            // It may not say whose turn it is: a plain client has released the lock, or the queue is lost there.
            Some((_, true)) => {
                let waiters = self.waiters_by_key.get_mut(key)?;
                waiters.releases.due(node, waiters.is_named, quorum, now)?
            }
            Some((_, false)) => return None,
        };
        let waiters = self.waiters_by_key.get_mut(key)?;
        Some(waiters.note(WakeReason::Released(order)))
    }

    /// A node has announced a release of a fair lock, and which call is the first there. Gives the waiters to wake, if
    /// any.
    pub(crate) fn passed(
        &mut self,
        key: &Key,
        node: NodeId,
        (hint, first): (Hint, PlaceId),
        now: Timestamp,
    ) -> Option<&KeyWaiters> {
        let waiters = self.waiters_by_key.get_mut(key)?;
        match waiters.place.as_mut() {
            Some((own, is_first)) if *own == first => (*is_first, waiters.is_named) = (true, true),
            // A node that is late names the call that has had the lock since.
            Some(_) => {
                waiters.has_heard_of_others |= waiters.predecessor != Some(first);
                return None;
            }
            None => {}
        }
        self.take_announcement(key, node, hint, now)
    }

    /// Notes the place of a call that waits for a fair lock, and whether it is the first.
    pub(crate) fn set_place(&mut self, key: &Key, place: (PlaceId, bool)) {
        self.waiters_by_key.get_mut(key).into_iter().for_each(|waiters| waiters.place = Some(place));
    }

    /// Whether a release of a fair lock has named a call of another program, since the present call has its place.
    pub(crate) fn has_heard_of_others(&self, key: &Key) -> bool {
        self.waiters_by_key.get(key).is_some_and(|waiters| waiters.has_heard_of_others)
    }

    /// A node has passed on how many wait for the key.
    pub(crate) fn counted(&mut self, key: &Key, waiting: u8) {
        self.releases(key, |releases| releases.counted(waiting));
    }

    /// As [`AnnouncedReleases::followed`].
    pub(crate) fn followed(&mut self, key: &Key, is_refused: bool, now: Timestamp) -> bool {
        let quorum = self.quorum();
        // The call for a fair lock that a release names asks before a quorum has announced it, and often too early.
        let is_named = self.waiters_by_key.get(key).is_some_and(|waiters| waiters.is_named);
        !is_named && self.releases(key, |releases| releases.followed(is_refused, quorum, now)).unwrap_or(false)
    }

    /// The subscriptions at a node are lost. Gives the waiters to wake: those that a release can escape now.
    pub(crate) fn lost(&mut self, node: NodeId) -> Vec<&KeyWaiters> {
        let enough = self.enough();
        let mut woken = Vec::new();
        for waiters in self.waiters_by_key.values_mut().filter(|waiters| waiters.live.contains(node)) {
            waiters.live = waiters.live.without(NodeSet::from_iter([node]));
            waiters.missed.insert(node);
            if waiters.live.len() + 1 == enough {
                woken.push(waiters.note(WakeReason::Unsubscribed));
            }
        }
        woken
    }

    /// Whether no release of the key by a quorum can escape.
    pub(crate) fn is_attentive(&self, key: &Key) -> bool {
        self.waiters_by_key.get(key).is_some_and(|waiters| waiters.live.len() >= self.enough())
    }

    /// Whether a release by a quorum may be announced by a single node, and ignored.
    pub(crate) fn may_ignore(&self, key: &Key, now: Timestamp) -> bool {
        let is_alone = |waiters: &&KeyWaiters| waiters.live.len() <= self.enough();
        let waiters = self.waiters_by_key.get(key).filter(is_alone);
        waiters.is_some_and(|waiters| waiters.releases.distrusts(self.quorum(), now))
    }

    /// Notes that the lock has changed hands, and no release was announced.
    pub(crate) fn note_missed(&mut self, key: &Key, now: Timestamp) {
        if self.missed.len() >= MISSED_LOCKS {
            self.missed.clear();
        }
        self.missed.insert(Arc::clone(key), now);
    }

    /// Whether releases of the lock were not announced lately.
    pub(crate) fn misses_releases(&self, key: &Key, now: Timestamp) -> bool {
        self.missed.get(key).is_some_and(|&missed_at| now.since(missed_at) < MISSED_LASTS)
    }

    /// Notes how many programs received the announcement of a release by this client. Gives whether that are many more
    /// than it announced.
    pub(crate) fn note_crowd(&mut self, key: &[u8], waiters: u8, now: Timestamp) -> bool {
        self.is_crowded.store(true, Ordering::Relaxed);
        self.contention.note_waiters(key, waiters, now)
    }

    /// How many programs waited for the key when this client last released it.
    pub(crate) fn crowd(&self, key: &[u8], now: Timestamp) -> u8 {
        self.contention.waiters(key, now)
    }

    /// As [`Contention::defers_to`].
    pub(crate) fn defers_to(&mut self, key: &[u8], is_handed_on: bool, now: Timestamp) -> u8 {
        let others = self.contention.defers_to(key, is_handed_on, now);
        self.is_crowded.store(!self.contention.is_empty(), Ordering::Relaxed);
        others
    }

    /// Does something with the announced releases of a key, and the line of all keys that it is grouped with.
    fn releases<R>(&mut self, key: &Key, act: impl FnOnce(&mut AnnouncedReleases) -> R) -> Option<R> {
        let group = self.waiters_by_key.get(key)?.group.clone();
        let mut line = Line::default();
        let mut swap_line = |waiters: Option<&mut KeyWaiters>| {
            waiters.into_iter().for_each(|waiters| waiters.releases.swap_line(&mut line));
        };
        // Another waiter for this key alone may be left, without the group.
        let group = group.filter(|group| self.waiters_by_key.contains_key(group));
        let Some(group) = group else {
            return self.waiters_by_key.get_mut(key).map(|waiters| act(&mut waiters.releases));
        };
        swap_line(self.waiters_by_key.get_mut(&group));
        swap_line(self.waiters_by_key.get_mut(key));
        let result = self.waiters_by_key.get_mut(key).map(|waiters| act(&mut waiters.releases));
        swap_line(self.waiters_by_key.get_mut(key));
        swap_line(self.waiters_by_key.get_mut(&group));
        result
    }

    fn quorum(&self) -> usize {
        self.nodes / 2 + 1
    }

    /// How many nodes must have confirmed, so that no release by a quorum escapes.
    fn enough(&self) -> usize {
        self.nodes + 1 - self.quorum()
    }
}

impl KeyWaiters {
    /// Keeps a reason for the threads that sleep, or for the first that will. A release outweighs a confirmation. Of a
    /// fair lock, that a quorum has announced it outweighs what another node announces behind that.
    fn note(&mut self, reason: WakeReason) -> &KeyWaiters {
        let is_early = self.place.is_some() && reason == WakeReason::Released(WakeOrder::Early);
        let keep = |kept: &mut Option<WakeReason>| {
            let is_behind = is_early && matches!(kept, Some(WakeReason::Released(_)));
            if kept.is_none() || matches!(reason, WakeReason::Released(_)) && !is_behind {
                *kept = Some(reason);
            }
        };
        match &mut self.sleepers[..] {
            [] => keep(&mut self.reason),
            sleepers => sleepers.iter_mut().for_each(|waiter| keep(&mut waiter.reason)),
        }
        self
    }
}

#[cfg(test)]
mod tests;
