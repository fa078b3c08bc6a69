//! One attempt of a call for a permit: the search for a slot.
//!
//! ```text
//!   a slot to try first? ── refused ──► ask how long each slot is held ──► one is free: try it
//!            │                                      │
//!            └── granted                            └── none: the attempt is lost, like a refused one
//! ```
//!
//! A thread that becomes the head of its queue while its client listens to all slots has nothing to ask: the head
//! before it has asked, and has tried what was announced since. So it waits for the next release, and asks after a
//! moment.
//!
//! So an attempt takes one round trip where permits are left, and three at most, each within a node timeout. What the
//! first slot's attempt has set is undone before the question goes out.

use super::attempts::{Attempts, random};
use super::slots::PermitSlots;
use super::waiter::ReleaseWaiter;
use crate::algorithm::holder::HolderTag;
use crate::algorithm::node::NodeSet;
use crate::algorithm::vote::Outcome;
use crate::api::guard::MutexGuard;
use crate::engine::calls::{AttemptRecord, RoundResult};
use crate::engine::local_queue::slots::TakenSlot;
use crate::events::error::Result;

impl<'a> Attempts<'a, '_> {
    /// Does what the machine asks for until it is done, and gives the slot with its guard.
    pub(super) fn run_for_permit(mut self) -> Result<Option<(MutexGuard, TakenSlot)>> {
        let guard = self.drive()?.map(|won| won.guard);
        let taken = self.search.taken.take();
        taken.iter().for_each(TakenSlot::hold);
        Ok(guard.zip(taken))
    }

    /// Searches a slot, and makes an attempt at it.
    pub(super) fn search(&mut self) -> Result<()> {
        let Some(permits) = self.call.permits else { return Ok(()) };
        let mut round_trips = 0;
        let was_announced = self.search.announced.is_some();
        let is_handed_on = !was_announced && permits.first_choice().is_some();
        if let Some(slot) = self.first_slot(permits)
            && let Some((mut record, result)) = self.try_slot(permits, slot)?
        {
            round_trips += 1;
            // A slot that stays in the program is not one that a waiting program has had.
            record.has_waited &= !is_handed_on;
            // Another program was faster. Of what else is free, the waiter is notified.
            let is_overtaken =
                was_announced && self.waiter.as_ref().is_some_and(|waiter| waiter.listener().is_attentive());
            if is_overtaken || result.tally.acquisition() != Outcome::Held {
                self.searched(record, result, round_trips);
                return Ok(());
            }
            self.undo_refused(&record, &result);
            self.give_up_slot();
        } else if self.waiter.is_none() && self.listens_on(permits) && self.machine.may_defer(self.now.steady) {
            self.machine.defer_attempt(1, self.now.steady, random());
            return Ok(());
        }
        round_trips += 1;
        self.listens_on(permits);
        let deadline = |t0, connects| self.machine.attempt_deadline(t0, connects);
        let (record, result) = self.call.client.engine().survey(permits.keys(), deadline);
        self.now = self.call.client.engine().readings();
        self.report_endless(permits, &result);
        let start = random() as usize % permits.keys().len();
        let free = |now| {
            let is_open = |slot| permits.slots().is_open(permits.keys(), slot, now);
            result.survey()?.free_slot(&result.tally, start, is_open)
        };
        // One that another thread of this client takes just now is not open any more.
        while let Some(slot) = free(self.now.lease) {
            if let Some((record, tried)) = self.try_slot(permits, slot)? {
                let free_at = result.into_refusal().free_at;
                self.searched(record, RoundResult { free_at, ..tried }, round_trips + 1);
                return Ok(());
            }
        }
        self.searched(record, result.into_refusal(), round_trips);
        Ok(())
    }

    /// Reports slots whose keys have no expiry: their permits are lost, though a call that gets another one succeeds.
    fn report_endless(&self, permits: &PermitSlots, result: &RoundResult) {
        let Some(survey) = result.survey() else { return };
        let found: Vec<(usize, NodeSet)> = survey.endless_slots(&result.tally).collect();
        let (slots, engine) = (found.iter().map(|&(slot, _)| slot).collect::<Vec<_>>(), self.call.client.engine());
        let reported = permits.slots().note_endless(&slots, self.now.steady, engine.node_timeout());
        for &(slot, nodes) in found.iter().filter(|(slot, _)| reported.contains(slot)) {
            self.call.client.report().key_without_expiry(&permits.keys()[slot], nodes);
        }
    }

    /// The thread that was the head before may listen for the slots. This one goes on with that, so that the client
    /// does not subscribe to all of them anew for each permit. Gives whether no release can escape it.
    fn listens_on(&mut self, permits: &PermitSlots) -> bool {
        let engine = self.call.client.engine();
        let goes_on = |key| self.waiter.is_none() && self.account.has_waited() && engine.listens_to(key);
        if let (Some(ticket), Some(key)) = (&self.ticket, permits.keys().first())
            && goes_on(key)
        {
            self.waiter = Some(ReleaseWaiter::begin(engine, ticket, self.wait, (permits.keys(), true, None)));
        }
        self.waiter.as_ref().is_some_and(|waiter| waiter.listener().is_attentive())
    }

    /// The slot to try before any question: one that was just released, or in a call that has not waited, any.
    fn first_slot(&mut self, permits: &PermitSlots) -> Option<usize> {
        let announced = self.search.announced.take();
        announced.or_else(|| permits.slots().last_released(permits.keys())).or_else(|| {
            let is_first = self.machine.attempts() == 0 && !self.account.has_waited();
            let start = || random() as usize % permits.keys().len();
            is_first.then(|| permits.slots().open_slot(permits.keys(), start(), self.now.lease))?
        })
    }

    /// Asks for a slot, while the next thread in the queue goes for another one. None if a thread of this client has
    /// it.
    fn try_slot(&mut self, permits: &'a PermitSlots, slot: usize) -> Result<Option<(AttemptRecord, RoundResult)>> {
        let Some(taken) = permits.slots().take(permits.keys(), slot, self.now.lease) else { return Ok(None) };
        self.search.taken = Some(taken);
        if let Some(ticket) = &self.ticket {
            ticket.set_away(true);
        }
        self.call.key = permits.lock(slot);
        self.ask().map(Some)
    }

    /// Queues the release of what a refused attempt may have set.
    fn undo_refused(&self, record: &AttemptRecord, result: &RoundResult) {
        let reached = record.reached.without(result.tally.refused());
        if !reached.is_empty() {
            let (attempt, key_lasts) = (AttemptRecord { reached, ..record.clone() }, self.call.ttl.duration());
            self.call.client.engine().undo(self.call.key, attempt, None, key_lasts);
        }
    }

    /// Counts the whole attempt.
    fn searched(&mut self, record: AttemptRecord, mut result: RoundResult, round_trips: u32) {
        if !result.is_won() {
            self.give_up_slot();
        }
        // What is known of the slots as a whole changes with each release. As long as none is announced, the waiter
        // asks less and less often.
        result.holder = Some(HolderTag::exact(&self.search.heard.to_ne_bytes()));
        self.attempted(record, result, round_trips);
        // A slot that was granted too late is given up as well.
        if self.machine.is_lost() {
            self.give_up_slot();
        }
    }

    /// The slot that was tried is not acquired: the thread is back at its place in the queue.
    fn give_up_slot(&mut self) {
        if let Some(ticket) = &self.ticket {
            ticket.set_away(false);
        }
        self.search.taken = None;
    }
}
